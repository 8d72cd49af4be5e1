"""Texts of the cited documents, and where a quotation or a fact is in them."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

from legal_rag.citations.claims import content_words, readings_of
from legal_rag.citations.facts import Fact, find_facts, is_same, places_of
from legal_rag.corpus.folding import INVISIBLE, find_exact, find_folded, fold, fold_text, is_whole

Span = tuple[int, int]  # characters: start, end

# A word that reads the same before and after folding but for case: these letters may have been one sign before.
_MAY_BE_ONE = re.compile("oe|ae|fi|fl|ss")
_KEY = re.compile(r"[^\W_]+")
_CHANGED_SIGNS = (*INVISIBLE, "ß", "İ")  # what makes a word found only by folding the whole text
SLACK = 60  # characters that a document may have more than half as many again as the quotation: line breaks
MOST_LEFT_OUT = 1500  # characters of the document that one cut may stand for
MOST_PLACES = 1000  # of a word in one text: a quotation of nothing rarer is searched for letter by letter
MOST_PARTS, MOST_SPANS = 20, 200  # of one quotation, and of each part in one text
PART_WORDS = 2  # content words that each side of a cut needs when a sentence ends between them
_SENTENCE_END = re.compile(r"(?<=\w\w)[.;!?]\s|\n\s*\n")
NEGATION = re.compile(r"\b(?:ne|n['’]|pas|point|jamais|aucune?|nul|nulle|non|sauf|ni|sans)\b|\bn['’]")
_NUMBER_GOES_ON, _NUMBER_BEFORE = re.compile(r"[-/.]\d"), re.compile(r"\d[-/.]$")
KEYS_TRIED = 2


class SourceText:
    """One document's text, searched as often as an answer asks."""

    def __init__(
        self, doc_id: str, content: str, title: str = "", header: str = "", tell_tales: dict[str, str] | None = None
    ) -> None:
        """Take a text.

        Args:
            doc_id: The document's id.
            content: Its text.
            title: The document's.
            header: What else is known of it: date, numbers.
            tell_tales: For quotations, a word that was missing in another text; shared with the other texts searched.
        """
        self._tell_tales = {} if tell_tales is None else tell_tales
        self.doc_id, self.content, self.title, self._header = doc_id, content, title, header
        self._found: dict[str, list[Span]] = {}
        self._facts: dict[Fact, list[Span]] = {}

    def quotation_spans(self, quotation: str) -> list[Span]:
        """Return where the text holds a quotation, whole words only, in order; its cuts may stand for anything."""
        if quotation not in self._found:
            readings = readings_of(quotation)
            # The loosest reading has the fewest words: where one of them is missing, no reading stands.
            tried = readings if readings and self._has_words(readings[-1]) else []
            self._found[quotation] = next(filter(None, map(self._spans_in_order, tried)), [])
        return self._found[quotation]

    def fact_spans(self, fact: Fact) -> list[Span]:
        """Return where the text states a fact, in order."""
        if fact not in self._facts:
            self._facts[fact] = places_of(fact, self.content, self.lower)[:MOST_SPANS]
        return self._facts[fact]

    def knows(self, fact: Fact) -> bool:
        """Tell whether a fact is the document's own date, number or title."""
        return any(is_same(fact, other) for other in self._own_facts)

    @cached_property
    def lower(self) -> str:
        """The text in lower case, character by character."""
        lower = self.content.lower()
        if len(lower) == len(self.content):
            return lower
        return "".join(low if len(low := letter.lower()) == 1 else letter for letter in self.content)

    @cached_property
    def _own_facts(self) -> list[Fact]:
        known = f"{self.title}\n{self._header}".strip()
        return [one for one in find_facts(known) if one.kind in ("date", "case")] if known else []

    @cached_property
    def _folded(self) -> Any:
        return fold(self.content)

    @cached_property
    def _is_plain(self) -> bool:
        """Whether every word of the text reads the same once it is folded, but for case."""
        composed = unicodedata.is_normalized("NFC", self.content)
        return composed and not any(sign in self.content for sign in _CHANGED_SIGNS)

    def _has_words(self, parts: Sequence[str]) -> bool:
        """Tell whether every word of a quotation is somewhere; the one that was missing last is tried first."""
        if not self._is_plain:
            return True
        name = " ".join(parts)
        tell_tale = self._tell_tales.get(name)
        if tell_tale and tell_tale not in self.lower:
            return False
        missing = next((key for part in parts for key in _needle(part)[1] if key not in self.lower), None)
        if missing:
            self._tell_tales[name] = missing
        return missing is None

    def _spans_in_order(self, parts: Sequence[str]) -> list[Span]:
        if not parts:
            return []
        runs = [(span, span) for span in self._spans(parts[0])[:MOST_SPANS]]  # first and last part found so far
        for before, part in pairwise(parts[:MOST_PARTS]):
            spans = self._spans(part)[:MOST_SPANS] if runs else []
            telling = all(len(content_words(one)) >= PART_WORDS for one in (before, part))
            following = ((first, self._next(last[1], spans, telling)) for first, last in runs)
            runs = [(first, span) for first, span in following if span]
        return [(first[0], last[1]) for first, last in runs]

    def _next(self, start: int, spans: Sequence[Span], telling: bool) -> Span | None:
        """Return the first span from a place on that a cut may lead to."""
        number = bisect_left(spans, (start, 0))
        return spans[number] if number < len(spans) and self._may_be_cut(start, spans[number][0], telling) else None

    def _may_be_cut(self, start: int, end: int, telling: bool) -> bool:
        """Tell whether a cut may stand for what lies between two parts.

        Not for half the decision; within a sentence, for no negation; from one sentence to another, only where both
        parts say something by themselves (`telling`).
        """
        if end - start > MOST_LEFT_OUT:
            return False
        if _SENTENCE_END.search(self.lower, start, end):
            return telling
        return not NEGATION.search(self.lower, start, end)

    def _spans(self, passage: str) -> list[Span]:
        """Return the spans that are one passage, but for what folding evens out."""
        folded, keys = _needle(passage)
        if not keys or not self._is_plain:
            return self._whole_words(find_folded(passage, self._folded)) if keys else []
        if not all(key in self.lower for key in keys):
            return []
        key = min(keys[:KEYS_TRIED], key=self.lower.count)
        places, literal = find_exact(key, self.lower), find_exact(passage.strip(), self.content)
        if len(places) == len(literal) or len(places) > MOST_PLACES:  # nothing is left that only folding would find
            return self._whole_words(literal)
        before = folded.find(key)
        after = len(folded) - before - len(key)
        slack = SLACK + len(folded) // 2
        windows = ((max(0, at - before - slack), end + after + slack) for at, end in places)
        near = (one for one in windows if all(key in self.lower[slice(*one)] for key in keys))
        spans: list[Span] = []
        for first, last in _merged(near):
            window = fold(self.content[first:last])
            found = (window.original_span(*span) for span in find_exact(folded, window.text))
            spans += [(first + start, first + end) for start, end in found]
        return self._whole_words(spans)

    def _whole_words(self, spans: Sequence[Span]) -> list[Span]:
        return [span for span in spans[:MOST_SPANS] if is_whole(self.content, span) and not self._cuts_name(span)]

    def _cuts_name(self, span: Span) -> bool:
        """Tell whether a span ends or begins within a number such as 'L. 1232-6' or '12-34.567'."""
        start, end = span
        behind = self.content[end - 1].isdigit() and _NUMBER_GOES_ON.match(self.content, end)
        ahead = self.content[start].isdigit() and _NUMBER_BEFORE.search(self.content, max(0, start - 2), start)
        return bool(behind or ahead)


def _merged(windows: Iterable[Span]) -> Iterator[Span]:
    """Join windows that overlap; they come in order."""
    first, last = 0, -1
    for start, end in windows:
        if start > last >= 0:
            yield first, last
        if last < 0 or start > last:
            first = start
        last = end
    if last >= 0:
        yield first, last


@lru_cache(1024)
def _needle(passage: str) -> tuple[str, list[str]]:
    """Return a passage folded, and its words that read the same unfolded, the longest first."""
    folded = fold_text(passage).strip()
    return folded, sorted(set(_KEY.findall(_MAY_BE_ONE.sub(" ", folded))), key=len, reverse=True)


class SourceTexts:
    """The documents that an answer may cite, each looked up once."""

    def __init__(self, documents: Any) -> None:
        """Take a Library, another corpus, or a mapping from document id to text."""
        self._documents = documents
        self._known: dict[str, SourceText | None] = {}
        self._tell_tales: dict[str, str] = {}

    def get(self, doc_id: str) -> SourceText | None:
        """Return a document's text, or None if there is no such document."""
        if doc_id not in self._known:
            self._known[doc_id] = self._look_up(doc_id)
        return self._known[doc_id]

    def all_ids(self) -> list[str]:
        """Return the ids of a mapping; of a corpus, none: it is never read as a whole."""
        return list(self._documents) if isinstance(self._documents, Mapping) else []

    def _look_up(self, doc_id: str) -> SourceText | None:
        try:
            doc_id.encode()
        except UnicodeEncodeError:  # half a character, which no store takes
            return None
        if hasattr(self._documents, "document"):
            return self._of_corpus(doc_id)
        content = self._documents.get(doc_id) if isinstance(self._documents, Mapping) else None
        return SourceText(doc_id, content, tell_tales=self._tell_tales) if isinstance(content, str) else None

    def _of_corpus(self, doc_id: str) -> SourceText | None:
        # A corpus that can tell is asked first: a failed look-up searches for the nearest id.
        if hasattr(self._documents, "__contains__") and doc_id not in self._documents:
            return None
        try:
            document = self._documents.document(doc_id)
        except LookupError:
            return None
        row = document.row()
        said = (row.get(name) for name in ("number", "ecli", "decision_date", "juridiction", "formation"))
        header = "\n".join(str(one) for one in said if one)
        return SourceText(document.id, document.content, document.title, header, self._tell_tales)
