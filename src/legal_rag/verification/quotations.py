"""Find a quotation in one document or in a whole corpus: word for word, or nearly, with the differences."""

import difflib
import re
from array import array
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from legal_rag.citations.sources import SourceText
from legal_rag.corpus.folding import LETTERS, Span, fold_text
from legal_rag.library.bm25 import LexicalIndex, lexical_words
from legal_rag.library.library import Library

MAX_WORDS = 400  # of a quotation whose nearest passage is looked for
MAX_CANDIDATES = 8  # documents that a quotation is looked for in, when many have its words
MAX_HAVING = 40  # documents that have all its words, all of which are read
RARE_WORDS = 14  # by which candidates are ranked
KEPT_CHARS = 8_000_000  # of documents, in memory
COMMON = 60  # places of a word in one document, above which it leads nowhere
MOST_ADDED = 80  # characters of the document that an editor's words in brackets may stand for

_KEPT = re.compile(r"[^\W_]+|[%‰€$£§]|(?<=\d),(?=\d)|(?<![\w)])[-−](?=\d)")
_NUMBER_SIGN = re.compile(r"\bn\s?[°º]")
_WORD = re.compile(r"[^\W_]+|[%‰€$£§]")
_CUT = re.compile(r"[\[(]\s{0,3}(?:\.{3}|…)\s{0,3}[\])]")
_BRACKETS = re.compile(r"\[[^\[\]\n]{1,80}\]")


class Difference(NamedTuple):
    """Words of a quotation, and what the document has instead; either may be empty."""

    quoted: str
    document: str


class NearPassage(NamedTuple):
    """The passage of a document that is nearest to a quotation."""

    doc_id: str
    char_start: int
    char_end: int
    text: str
    likeness: float  # share of words that are equal, in [0, 1]
    differences: tuple[Difference, ...]


class _Word(NamedTuple):
    folded: str
    start: int  # characters
    end: int


class QuotedText:
    """One document's text, searched for quotations."""

    def __init__(self, doc_id: str, content: str) -> None:
        self.doc_id, self.content = doc_id, content
        self._source = SourceText(doc_id, content)

    def find(self, quotation: str) -> Span | None:
        """Return the first place of a quotation, word for word; typography, blanks and punctuation do not count.

        Cuts such as [...] may leave out what `SourceText.quotation_spans` allows; words that an editor added in
        brackets may stand for others.
        """
        spans = self._source.quotation_spans(quotation)
        if spans:
            return spans[0]
        return None if _CUT.search(quotation) else self._in_pieces([one for one in _BRACKETS.split(quotation) if one])

    def nearest(self, quotation: str) -> NearPassage | None:
        """Return the passage with most of a quotation's words in their order; None if it has few of them."""
        wanted = [_Word(*one) for one in _words_of(_BRACKETS.sub(" ", quotation))][:MAX_WORDS]
        if not wanted or not (window := self._window(wanted)):
            return None
        first, last = window
        here = self._words[first:last]
        matcher = difflib.SequenceMatcher(None, [one.folded for one in wanted], [one.folded for one in here], False)
        blocks = [one for one in matcher.get_matching_blocks() if one.size]
        if not blocks:
            return None
        begin, end = (
            blocks[0].b - blocks[0].a,
            blocks[-1].b + blocks[-1].size + len(wanted) - blocks[-1].a - blocks[-1].size,
        )
        begin, end = max(begin, 0), min(end, len(here))
        equal = sum(one.size for one in blocks)
        likeness = equal / max(len(wanted), end - begin)
        span = here[begin].start, here[end - 1].end
        return NearPassage(
            self.doc_id,
            *span,
            self.content[slice(*span)],
            likeness,
            self._differences(quotation, wanted, here[begin:end]),
        )

    def _differences(self, quotation: str, wanted: Sequence[_Word], here: Sequence[_Word]) -> tuple[Difference, ...]:
        said = _BRACKETS.sub(" ", quotation)
        matcher = difflib.SequenceMatcher(None, [one.folded for one in wanted], [one.folded for one in here], False)
        return tuple(
            Difference(_span_of(said, wanted[a:b]), _span_of(self.content, here[c:d]))
            for tag, a, b, c, d in matcher.get_opcodes()
            if tag != "equal"
        )

    @cached_property
    def _squeezed(self) -> tuple[str, "array[int]"]:
        return _squeeze(self.content)

    @cached_property
    def _words(self) -> list[_Word]:
        return [_Word(*one) for one in _words_of(self.content)]

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for number, word in enumerate(self._words):
            places.setdefault(word.folded, []).append(number)
        return places

    def _in_pieces(self, pieces: Sequence[str]) -> Span | None:
        """Find pieces one behind another, letters and figures alone."""
        text, starts = self._squeezed
        needles = [squeezed for piece in pieces if (squeezed := _squeeze(piece)[0])]
        at = text.find(needles[0]) if needles else -1
        while at >= 0:
            end = at + len(needles[0])
            for needle in needles[1:]:
                following = text.find(needle, end, end + MOST_ADDED + len(needle))
                end = following + len(needle) if following >= 0 else -1
                if end < 0:
                    break
            if end >= 0 and self._at_borders(starts[at], starts[end - 1] + 1):
                return starts[at], starts[end - 1] + 1
            at = text.find(needles[0], at + 1)
        return None

    def _at_borders(self, start: int, end: int) -> bool:
        around = self.content[max(start - 1, 0) : start], self.content[end : end + 1]
        inside = self.content[start], self.content[end - 1]
        return not any(out.isalnum() and within.isalnum() for out, within in zip(around, inside, strict=True))

    def _window(self, wanted: Sequence[_Word]) -> tuple[int, int] | None:
        """Return the words among which most of the wanted ones stand at the same distance from one another."""
        votes: Counter[int] = Counter()
        for number, word in enumerate(wanted):
            places = self._places.get(word.folded, ())
            if len(places) <= COMMON:
                for place in places:
                    votes[(place - number) // 8] += 1 + len(word.folded)
        if not votes:
            return None
        best = max(votes, key=lambda one: votes[one] + votes[one + 1])
        first = max(best * 8 - 12, 0)
        return first, min(first + len(wanted) + 44, len(self._words))


class QuotedCorpus:
    """The documents of a Library, searched for quotations through its index of words."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._kept: OrderedDict[str, QuotedText] = OrderedDict()
        self._chars = 0
        self._found: dict[str, tuple[str, Span] | None] = {}

    @cached_property
    def _index(self) -> LexicalIndex | None:
        try:
            return self.library.lexical_index()
        except FileNotFoundError:
            return None

    @property
    def has_words(self) -> bool:
        """Whether the Library has an index of words: without one only named documents are searched."""
        return self._index is not None

    def text(self, doc_id: str) -> QuotedText:
        """Return a document's text, kept for the next quotation."""
        if doc_id in self._kept:
            self._kept.move_to_end(doc_id)
            return self._kept[doc_id]
        one = self._kept[doc_id] = QuotedText(doc_id, self.library.document(doc_id).content)
        self._chars += len(one.content)
        while self._chars > KEPT_CHARS and len(self._kept) > 1:
            self._chars -= len(self._kept.popitem(last=False)[1].content)
        return one

    def find(self, quotation: str) -> tuple[str, Span] | None:
        """Return the first document found that has a quotation word for word, and where."""
        if quotation not in self._found:
            self._found[quotation] = self._find(quotation)
        return self._found[quotation]

    def nearest(self, quotation: str) -> NearPassage | None:
        """Return the most similar passage of the documents that share most of a quotation's rare words."""
        found = (self.text(doc_id).nearest(quotation) for doc_id in self._ranked(quotation))
        return max(filter(None, found), key=lambda one: one.likeness, default=None)

    def _find(self, quotation: str) -> tuple[str, Span] | None:
        tried: set[str] = set()
        for doc_ids in (self._having, self._ranked):
            for doc_id in doc_ids(quotation):
                if doc_id not in tried and (span := self.text(doc_id).find(quotation)):
                    return doc_id, span
                tried.add(doc_id)
        return None

    def _having(self, quotation: str) -> list[str]:
        """Return the documents that have all words of a quotation, unless they are many."""
        terms = set(lexical_words(_BRACKETS.sub(" ", quotation)))
        if self._index is None or not terms:
            return []
        places = self._index.documents_having([terms], MAX_HAVING)
        return self._present(places or ())

    def _ranked(self, quotation: str) -> list[str]:
        if self._index is None:
            return []
        words = dict.fromkeys(_WORD.findall(quotation.lower()))
        rare = sorted(words, key=self._index.rarity, reverse=True)[:RARE_WORDS]
        hits = self._index.search(" ".join(rare), 3 * MAX_CANDIDATES) if rare else []
        return self._present([(shard, position) for shard, position, _ in hits])[:MAX_CANDIDATES]

    def _present(self, places: Sequence[tuple[int, int]]) -> list[str]:
        chunks = self.library.chunks_at(places) if places else []
        return [doc_id for doc_id in dict.fromkeys(one.doc_id for one in chunks) if doc_id in self.library]


def _words_of(text: str) -> Iterator[tuple[str, int, int]]:
    for match in _WORD.finditer(text):
        yield fold_text(match.group()), match.start(), match.end()


def _span_of(text: str, words: Sequence[_Word]) -> str:
    return " ".join(text[words[0].start : words[-1].end].split()) if words else ""


def _squeeze(text: str) -> tuple[str, "array[int]"]:
    """Return letters and figures, in small letters, and where each stood; signs that change a sum are kept."""
    pieces: list[str] = []
    starts = array("q")
    text = _NUMBER_SIGN.sub(lambda sign: "n" + " " * (len(sign.group()) - 2) + "o", text)
    for match in _KEPT.finditer(text):
        for place, letter in enumerate(match.group(), match.start()):
            folded = LETTERS.get(letter, letter).casefold()
            pieces.append(folded)
            starts.extend([place] * len(folded))
    return "".join(pieces), starts
