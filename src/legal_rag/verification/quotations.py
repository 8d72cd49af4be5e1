"""Find a quotation in one document or in a whole corpus: word for word, or nearly, with the differences."""

import difflib
import re
from array import array
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from legal_rag.citations.sources import SourceText
from legal_rag.corpus.folding import LETTERS, Span
from legal_rag.library.bm25 import LexicalIndex, lexical_words
from legal_rag.library.library import Library

MAX_WORDS = 400  # of a quotation whose nearest passage is looked for
MAX_PASSAGES = 8  # by the index of words, in which a quotation is looked for
MAX_ALIGNED = 3  # of them, aligned word by word
FEW_HAVING, MANY_HAVING = 60, 1000  # documents that have all words of a quotation, read before and after the passages
MAX_READ = 20_000  # documents read for the quotations of one text, those of the first passages apart
RARE_WORDS = 14  # by which passages are ranked
AROUND = 1500  # characters before and after a chunk, as long as a quotation may begin or end outside it
KEPT_CHARS = 8_000_000  # of documents, in memory
COMMON = 60  # places of a word in one text, above which it leads nowhere
MOST_ADDED = 80  # characters of the document that an editor's words in brackets may stand for
MOST_CUT = 3000  # characters of the document that a cut may stand for

_KEPT = re.compile(r"[^\W_]+|[%‰€$£§]|(?<=\d),(?=\d)|(?<![\w)])[-−](?=\d)")
_NUMBER_SIGN = re.compile(r"\bn\s?[°º]", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+|[%‰€$£§]|\[\s{0,3}(?:\.{3}|…)\s{0,3}\]|\(\s{0,3}(?:\.{3}|…)\s{0,3}\)|\.{3}|…")
_CUT = re.compile(r"[\[(]\s{0,3}(?:\.{3}|…)\s{0,3}[\])]|\.{3}|…")
_BRACKETS = re.compile(r"\[(?!\s{0,3}(?:\.{3}|…)\s{0,3}\])[^\[\]\n]{1,80}\]")  # an editor's, no cut
_LETTERS = str.maketrans(LETTERS)
_NEGATION = re.compile(
    r"\b(?:n['’]|(?:ne|pas|jamais|aucune?|nul|nulle|non|sauf|ni|sans|hormis|point)\b)", re.IGNORECASE
)
_STOP = re.compile(r"[.;!?]\s")


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
    differences: tuple[Difference, ...]  # none: only what cuts leave out


class _Word(NamedTuple):
    folded: str
    start: int  # characters
    end: int


class QuotedText:
    """A document's text, or a part of it, searched for quotations."""

    def __init__(self, doc_id: str, content: str, offset: int = 0) -> None:
        """Take a text that begins `offset` characters into its document."""
        self.doc_id, self.content, self._offset = doc_id, content, offset
        self._source = SourceText(doc_id, content)

    def find(self, quotation: str) -> Span | None:
        """Return the first place of a quotation; typography, blanks and punctuation do not count.

        Words that an editor added in brackets may stand for others.
        """
        if spans := self._source.quotation_spans(quotation):
            return self._in_document(*spans[0])
        return None if _CUT.search(quotation) else self._in_pieces([one for one in _BRACKETS.split(quotation) if one])

    def votes(self, quotation: str) -> int:
        """Estimate how much of a quotation stands in one place; higher is more."""
        return self._window(_wanted(quotation))[1]

    def nearest(self, quotation: str) -> NearPassage | None:
        """Return the passage with most of a quotation's words in their order; None if it has few of them."""
        wanted = _wanted(quotation)
        (first, last), votes = self._window(wanted)
        here = self._words[first:last]
        blocks = _matcher(wanted, here).get_matching_blocks()[:-1] if votes else []
        if not blocks:
            return None
        last_block = blocks[-1]
        begin = max(blocks[0].b - blocks[0].a, 0)
        end = min(last_block.b + len(wanted) - last_block.a, len(here))
        here = here[begin : max(end, last_block.b + last_block.size)]
        differences = tuple(self._differences(_BRACKETS.sub(" ", quotation), wanted, here))
        cut = sum(len(one.document.split()) for one in differences if _CUT.fullmatch(one.quoted))
        n_cuts = sum(_CUT.fullmatch(one.folded) is not None for one in wanted)
        equal = sum(one.size for one in blocks)
        likeness = min(equal / max(len(wanted) - n_cuts, len(here) - cut, 1), 1.0)
        span = here[0].start, here[-1].end
        told = tuple(one for one in differences if not self._is_cut(one))
        return NearPassage(self.doc_id, *self._in_document(*span), self.content[slice(*span)], likeness, told)

    def _is_cut(self, one: Difference) -> bool:
        """Tell what a cut leaves out from what it hides: a negation within its sentence."""
        if not _CUT.fullmatch(one.quoted):
            return False
        return _STOP.search(one.document) is not None or _NEGATION.search(one.document) is None

    def _differences(self, said: str, wanted: Sequence[_Word], here: Sequence[_Word]) -> Iterator[Difference]:
        for tag, a, b, c, d in _matcher(wanted, here).get_opcodes():
            if tag != "equal":
                yield Difference(_span_of(said, wanted[a:b]), _span_of(self.content, here[c:d]))

    def _in_document(self, start: int, end: int) -> Span:
        return self._offset + start, self._offset + end

    @cached_property
    def _squeezed(self) -> str:
        return _squeeze(self.content)

    @cached_property
    def _squeezed_places(self) -> "array[int]":
        return _squeezed_places(self.content)

    @cached_property
    def _words(self) -> list[_Word]:
        return _words_of(self.content)

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for number, word in enumerate(self._words):
            places.setdefault(word.folded, []).append(number)
        return places

    def _in_pieces(self, pieces: Sequence[str]) -> Span | None:
        """Find pieces one behind another, letters and figures alone."""
        needles = [squeezed for piece in pieces if (squeezed := _squeeze(piece))]
        at = self._squeezed.find(needles[0]) if needles else -1
        while at >= 0:
            if (spans := self._following(needles, at)) and all(self._at_borders(*span) for span in spans):
                return self._in_document(spans[0][0], spans[-1][1])
            at = self._squeezed.find(needles[0], at + 1)
        return None

    def _following(self, needles: Sequence[str], at: int) -> list[Span]:
        """Return where each of some pieces stands, the first one at a place; none if one is missing or negated."""
        spans: list[Span] = []
        for needle in needles:
            at = self._squeezed.find(needle, at, at + len(needle) + (MOST_ADDED if spans else 0))
            if at < 0:
                return []
            start, end = self._squeezed_places[at], self._squeezed_places[at + len(needle) - 1] + 1
            if spans and _NEGATION.search(self.content, spans[-1][1], start):
                return []
            spans.append((start, end))
            at += len(needle)
        return spans

    def _at_borders(self, start: int, end: int) -> bool:
        around = self.content[max(start - 1, 0) : start], self.content[end : end + 1]
        inside = self.content[start], self.content[end - 1]
        return not any(out.isalnum() and within.isalnum() for out, within in zip(around, inside, strict=True))

    def _window(self, wanted: Sequence[_Word]) -> tuple[tuple[int, int], int]:
        """Return the words among which most of the wanted ones stand as far apart as they should, and the votes."""
        votes: Counter[int] = Counter()
        for number, word in enumerate(wanted):
            places = self._places.get(word.folded, ())
            if len(places) <= COMMON:
                for place in places:
                    votes[(place - number) // 8] += 1 + len(word.folded)
        if not votes:
            return (0, 0), 0
        best = max(votes, key=lambda one: votes[one] + votes[one + 1])
        first = max(best * 8 - 12, 0)
        # What a cut leaves out moves the rest.
        more = 44 + (MOST_CUT // 6 if any(_CUT.fullmatch(one.folded) for one in wanted) else 0)
        return (first, min(first + len(wanted) + more, len(self._words))), votes[best] + votes[best + 1]


class QuotedCorpus:
    """The documents of a Library, searched for quotations through its index of words."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._kept: OrderedDict[str, QuotedText] = OrderedDict()
        self._chars, self._to_read = 0, MAX_READ
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
        """Return a document that has a quotation word for word, and where."""
        if quotation not in self._found:
            self._found[quotation] = self._find(quotation)
        return self._found[quotation]

    def nearest(self, quotation: str) -> NearPassage | None:
        """Return the most similar of the passages that share most of a quotation's rare words."""
        passages = sorted(self._passages(quotation), key=lambda one: one.votes(quotation), reverse=True)
        found = (one.nearest(quotation) for one in passages[:MAX_ALIGNED])
        return max(filter(None, found), key=lambda one: one.likeness, default=None)

    def _find(self, quotation: str) -> tuple[str, Span] | None:
        few = self._having(quotation, FEW_HAVING)
        if few and (found := self._first_with(quotation, few)):
            return found
        for passage in self._passages(quotation):
            if span := passage.find(quotation):
                return passage.doc_id, span
        # A formula that many decisions repeat, each with a date or a name of its own.
        many = self._having(quotation, MANY_HAVING) if few is None and self._to_read > 0 else None
        return self._first_with(quotation, many or ())

    def _first_with(self, quotation: str, doc_ids: Sequence[str]) -> tuple[str, Span] | None:
        for doc_id, content in self.library.contents().of(doc_ids):
            self._to_read -= 1
            source = SourceText(doc_id, content.decode("utf-8"))
            if spans := source.quotation_spans(quotation):
                return doc_id, spans[0]
        return None

    def _having(self, quotation: str, most: int) -> list[str] | None:
        """Return the documents that have all words of a quotation; None if they are more than `most`."""
        terms = set(lexical_words(_BRACKETS.sub(" ", quotation)))
        if self._index is None or not terms:
            return []
        places = self._index.documents_having([terms], most)
        if places is None:
            return None
        return list(dict.fromkeys(one.doc_id for one in self.library.chunks_at(places)))

    def _passages(self, quotation: str) -> list[QuotedText]:
        """Return the passages that share the most of a quotation's rare words, with their surroundings."""
        if self._index is None:
            return []
        words = dict.fromkeys(one.folded for one in _wanted(quotation))
        rare = sorted(words, key=self._index.rarity, reverse=True)[:RARE_WORDS]
        hits = self._index.search(" ".join(rare), MAX_PASSAGES) if rare else []
        passages = []
        for chunk in self.library.chunks_at([(shard, position) for shard, position, _ in hits]):
            if chunk.doc_id in self.library:
                start, end = max(chunk.char_start - AROUND, 0), chunk.char_end + AROUND
                passages.append(QuotedText(chunk.doc_id, self.text(chunk.doc_id).content[start:end], start))
        return passages


def _wanted(quotation: str) -> list[_Word]:
    return _words_of(_BRACKETS.sub(" ", quotation))[:MAX_WORDS]


def _words_of(text: str) -> list[_Word]:
    matches = _WORD.finditer(text)
    return [_Word(one.group().translate(_LETTERS).casefold(), one.start(), one.end()) for one in matches]


def _matcher(wanted: Sequence[_Word], here: Sequence[_Word]) -> "difflib.SequenceMatcher[str]":
    return difflib.SequenceMatcher(None, [one.folded for one in wanted], [one.folded for one in here], autojunk=False)


def _span_of(text: str, words: Sequence[_Word]) -> str:
    return " ".join(text[words[0].start : words[-1].end].split()) if words else ""


def _squeeze(text: str) -> str:
    """Return letters and figures alone, in small letters; signs that change a sum are kept."""
    return "".join(_KEPT.findall(_signs_as_letters(text))).translate(_LETTERS).casefold()


def _squeezed_places(text: str) -> "array[int]":
    """Return where each letter of a squeezed text stood."""
    places = array("q")
    for match in _KEPT.finditer(_signs_as_letters(text)):
        for place, letter in enumerate(match.group(), match.start()):
            places.extend([place] * len(LETTERS.get(letter, letter).casefold()))
    return places


def _signs_as_letters(text: str) -> str:
    return _NUMBER_SIGN.sub(lambda sign: "n" + " " * (len(sign.group()) - 2) + "o", text)
