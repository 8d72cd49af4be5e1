"""Find a quotation in one document or in a whole corpus: word for word, or nearly, with the differences."""

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from cachetools import LRUCache

from legal_rag.base.text import LETTERS, Span
from legal_rag.citations.claims import BRACKETS
from legal_rag.citations.sources import SourceText
from legal_rag.law.words import negations
from legal_rag.library.bm25 import LexicalIndex, lexical_words
from legal_rag.library.library import Library

MAX_WORDS = 400  # of a quotation whose nearest passage is looked for
MAX_PASSAGES = 8  # by the index of words, in which a quotation is looked for
MAX_ALIGNED = 3  # of them, aligned word by word
FEW_HAVING, MANY_HAVING = 60, 1000  # documents that have all words of a quotation, read before and after the passages
MAX_READ = 20_000  # documents read for the quotations of one text, without those of the first passages
RARE_WORDS = 14  # by which passages are ranked
AROUND = 1500  # characters before and after a chunk, as long as a quotation may begin or end outside it
KEPT_TEXTS = 100  # documents, in memory
COMMON = 60  # occurrences of a word in one text, above which it is ignored
MOST_CUT = 3000  # characters of the document that an ellipsis may replace

_CUT = re.compile(r"[\[(]\s{0,3}(?:\.{3}|…)\s{0,3}[\])]|\.{3}|…")
_WORD = re.compile(rf"[^\W_]+|[%‰€$£§]|{_CUT.pattern}")
_LETTERS = str.maketrans(LETTERS)
_NEGATION = re.compile(negations(), re.IGNORECASE)
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
    differences: tuple[Difference, ...]  # empty: only ellipses


class _TextWord(NamedTuple):
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
        """Return the span of the first match of a quotation; an editor's words in brackets may replace others."""
        spans = self._source.quotation_spans(quotation) or self._source.edited_spans(quotation)
        return self._in_document(*spans[0]) if spans else None

    def votes(self, quotation: str) -> int:
        """Estimate how much of a quotation occurs in one place; higher is more."""
        return self._window(_quotation_words(quotation))[1]

    def nearest(self, quotation: str) -> NearPassage | None:
        """Return the passage with most of a quotation's words in their order; None if it has few of them."""
        words = _quotation_words(quotation)
        (first, last), votes = self._window(words)
        here = self._text_words[first:last]
        blocks = _matcher(words, here).get_matching_blocks()[:-1] if votes else []
        if not blocks:
            return None
        last_block = blocks[-1]
        begin = max(blocks[0].b - blocks[0].a, 0)
        end = min(last_block.b + len(words) - last_block.a, len(here))
        here = here[begin : max(end, last_block.b + last_block.size)]
        differences = tuple(self._word_changes(BRACKETS.sub(" ", quotation), words, here))
        cut = sum(len(difference.document.split()) for difference in differences if _CUT.fullmatch(difference.quoted))
        n_cuts = sum(_CUT.fullmatch(word.folded) is not None for word in words)
        equal = sum(block.size for block in blocks)
        likeness = min(equal / max(len(words) - n_cuts, len(here) - cut, 1), 1.0)
        span = here[0].start, here[-1].end
        reported = tuple(difference for difference in differences if not self._is_cut(difference))
        return NearPassage(self.doc_id, *self._in_document(*span), self.content[slice(*span)], likeness, reported)

    def _is_cut(self, difference: Difference) -> bool:
        """Does an ellipsis only leave words out, hiding no negation within its sentence?"""
        if not _CUT.fullmatch(difference.quoted):
            return False
        return _STOP.search(difference.document) is not None or _NEGATION.search(difference.document) is None

    def _word_changes(self, text: str, words: Sequence[_TextWord], here: Sequence[_TextWord]) -> Iterator[Difference]:
        for tag, a, b, c, d in _matcher(words, here).get_opcodes():
            if tag != "equal":
                yield Difference(_words_text(text, words[a:b]), _words_text(self.content, here[c:d]))

    def _in_document(self, start: int, end: int) -> Span:
        return self._offset + start, self._offset + end

    @cached_property
    def _text_words(self) -> list[_TextWord]:
        return _split_words(self.content)

    @cached_property
    def _word_places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for number, word in enumerate(self._text_words):
            places.setdefault(word.folded, []).append(number)
        return places

    def _window(self, words: Sequence[_TextWord]) -> tuple[Span, int]:
        """Return the range of words with most of a quotation's at their distances, and its votes."""
        votes: Counter[int] = Counter()
        for number, word in enumerate(words):
            places = self._word_places.get(word.folded, ())
            if len(places) <= COMMON:
                for place in places:
                    votes[(place - number) // 8] += 1 + len(word.folded)
        if not votes:
            return (0, 0), 0
        best = max(votes, key=lambda bucket: votes[bucket] + votes[bucket + 1])
        first = max(best * 8 - 12, 0)
        # What an ellipsis leaves out shifts the rest.
        more = 44 + (MOST_CUT // 6 if any(_CUT.fullmatch(word.folded) for word in words) else 0)
        return (first, min(first + len(words) + more, len(self._text_words))), votes[best] + votes[best + 1]


class QuotedCorpus:
    """The documents of a Library, searched for quotations through its lexical index."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._texts: LRUCache[str, QuotedText] = LRUCache(KEPT_TEXTS)
        self._to_read = MAX_READ
        self._places_by_quotation: dict[str, tuple[str, Span] | None] = {}

    @cached_property
    def _index(self) -> LexicalIndex | None:
        try:
            return self.library.lexical_index()
        except FileNotFoundError:
            return None

    @property
    def has_words(self) -> bool:
        """Whether the Library has a lexical index: without one only named documents are searched."""
        return self._index is not None

    def text(self, doc_id: str) -> QuotedText:
        """Return a document's text, cached for the next quotation."""
        if (text := self._texts.get(doc_id)) is None:
            text = self._texts[doc_id] = QuotedText(doc_id, self.library.document(doc_id).content)
        return text

    def find(self, quotation: str) -> tuple[str, Span] | None:
        """Return a document that has a quotation word for word, and where."""
        if quotation not in self._places_by_quotation:
            self._places_by_quotation[quotation] = self._search_quotation(quotation)
        return self._places_by_quotation[quotation]

    def nearest(self, quotation: str) -> NearPassage | None:
        """Return the most similar of the passages that share most of a quotation's rare words."""
        passages = sorted(self._rank_passages(quotation), key=lambda passage: passage.votes(quotation), reverse=True)
        candidates = (passage.nearest(quotation) for passage in passages[:MAX_ALIGNED])
        return max(filter(None, candidates), key=lambda candidate: candidate.likeness, default=None)

    def _search_quotation(self, quotation: str) -> tuple[str, Span] | None:
        few = self._ids_having_words(quotation, FEW_HAVING)
        if few and (match := self._first_containing(quotation, few)):
            return match
        for passage in self._rank_passages(quotation):
            if span := passage.find(quotation):
                return passage.doc_id, span
        # A formula that many decisions repeat, each with its own date or name.
        many = self._ids_having_words(quotation, MANY_HAVING) if few is None and self._to_read > 0 else None
        return self._first_containing(quotation, many or ())

    def _first_containing(self, quotation: str, doc_ids: Sequence[str]) -> tuple[str, Span] | None:
        for doc_id, content in self.library.contents().of(doc_ids):
            self._to_read -= 1
            source = SourceText(doc_id, content.decode("utf-8"))
            if spans := source.quotation_spans(quotation):
                return doc_id, spans[0]
        return None

    def _ids_having_words(self, quotation: str, most: int) -> list[str] | None:
        """Return the documents that have all words of a quotation; None if there are more than `most`."""
        terms = set(lexical_words(BRACKETS.sub(" ", quotation)))
        if self._index is None or not terms:
            return []
        places = self._index.documents_having([terms], most)
        if places is None:
            return None
        return list(dict.fromkeys(chunk.doc_id for chunk in self.library.chunks_at(places)))

    def _rank_passages(self, quotation: str) -> list[QuotedText]:
        if self._index is None:
            return []
        words = dict.fromkeys(word.folded for word in _quotation_words(quotation))
        rare = sorted(words, key=self._index.rarity, reverse=True)[:RARE_WORDS]
        hits = self._index.search(" ".join(rare), MAX_PASSAGES) if rare else []
        passages = []
        for chunk in self.library.chunks_at([(shard, position) for shard, position, _ in hits]):
            if chunk.doc_id in self.library:
                start, end = max(chunk.char_start - AROUND, 0), chunk.char_end + AROUND
                passages.append(QuotedText(chunk.doc_id, self.text(chunk.doc_id).content[start:end], start))
        return passages


def _quotation_words(quotation: str) -> list[_TextWord]:
    return _split_words(BRACKETS.sub(" ", quotation))[:MAX_WORDS]


def _split_words(text: str) -> list[_TextWord]:
    matches = _WORD.finditer(text)
    return [_TextWord(match.group().translate(_LETTERS).casefold(), match.start(), match.end()) for match in matches]


def _matcher(a: Sequence[_TextWord], b: Sequence[_TextWord]) -> "difflib.SequenceMatcher[str]":
    return difflib.SequenceMatcher(None, [word.folded for word in a], [word.folded for word in b], autojunk=False)


def _words_text(text: str, words: Sequence[_TextWord]) -> str:
    return " ".join(text[words[0].start : words[-1].end].split()) if words else ""
