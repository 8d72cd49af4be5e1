"""Looking for a regular expression in a whole corpus, or in one document.

In: a pattern. Out: where it matches, in characters of each document's content, and how much was looked at. The index of
words names the documents that can match, where the pattern asks for whole words; texts are streamed, none is kept.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NotRequired, TypedDict

from legal_rag.deep_read.patterns import Pattern, compile_pattern
from legal_rag.lexical import LexicalIndex
from legal_rag.library import Library

MOST_MATCHES = 100_000  # that one search gives, over all documents
MOST_IN_DOCUMENT = 10_000
SHOWN_CHARS = 300  # of a match
MOST_CONTEXT = 1000  # characters on either side
SECONDS = 20.0  # that a search may take before it stops between two documents
MOST_CANDIDATES = 50_000  # documents that the index of words may name; more are read as they come
SHARE_OF_CORPUS = 2  # one in two: where the index names more, it saves nothing


class Match(TypedDict):
    """A passage that a pattern matches: `content[start:end]`."""

    start: int  # characters of the document's content
    end: int
    text: str  # the passage, or its first `SHOWN_CHARS` and "…"
    context: NotRequired[str]  # the passage and what stands around it, where that was asked for


class Grepped(dict[str, list[Match]]):
    """The matches by document, in the order the documents were indexed, and how far the search went.

    `total` documents were asked about; the texts of `scanned` were read, the others the index of words ruled out, or
    the search never reached: then `complete` is false, and `out_of_time` says whether its time was over. In `shortened`
    are the documents that match more often than is shown.
    """

    def __init__(self, total: int) -> None:
        super().__init__()
        self.total, self.scanned, self.complete, self.out_of_time = total, 0, True, False
        self.shortened: list[str] = []


@dataclass(frozen=True)
class GrepQuery:
    """What is looked for, and how much of it is shown."""

    pattern: str  # see `compile_pattern`
    max_docs: int | None = 100  # documents found at most; None is all
    doc_ids: tuple[str, ...] | None = None  # of the documents to look at; None is all, unknown ones are left out
    ignore_case: bool = True
    fold: bool = False
    max_matches_per_doc: int | None = 50  # shown of each document; None is `MOST_IN_DOCUMENT`
    context: int = 0  # characters shown on either side of each match


class CorpusGrep:
    """Regular expressions over the texts of one Library; see `legal_rag.deep_read.patterns` for what they may hold."""

    def __init__(self, library: Library, seconds: float | None = SECONDS) -> None:
        """Prepare.

        Args:
            library: Whose documents are searched.
            seconds: After which a search stops, complete or not; None sets no limit.
        """
        self._library, self._seconds = library, seconds

    def search(self, query: GrepQuery) -> Grepped:
        """Find the documents that a pattern matches in.

        Raises:
            ValueError: If the pattern cannot be looked for; in French.
        """
        compiled = compile_pattern(query.pattern, ignore_case=query.ignore_case, fold=query.fold)
        wanted = None if query.doc_ids is None else list(dict.fromkeys(query.doc_ids))
        found = Grepped(self._library.n_documents if wanted is None else len(wanted))
        most = MOST_IN_DOCUMENT if query.max_matches_per_doc is None else query.max_matches_per_doc
        ends, left = None if self._seconds is None else time.monotonic() + self._seconds, MOST_MATCHES
        for doc_id, data in self._texts(compiled, wanted):
            found.out_of_time = ends is not None and time.monotonic() > ends
            if left <= 0 or found.out_of_time:
                found.complete = False
                break
            spans = _first(compiled.spans(data), min(most, left) + 1)
            if spans and query.max_docs is not None and len(found) >= query.max_docs:
                found.complete = False
                break
            found.scanned += 1
            if spans:
                shown = spans[: min(most, left)]
                found[doc_id] = matches_at(shown, data.decode(), query.context)
                found.shortened += [doc_id] * (len(spans) > len(shown))
                left -= len(shown)
        return found

    def _texts(self, pattern: Pattern, wanted: Sequence[str] | None) -> Iterator[tuple[str, bytes]]:
        """Stream the texts that the pattern may match in."""
        contents, places = self._library.contents(), self._candidates(pattern)
        if places is None or (wanted is not None and len(wanted) <= len(places)):
            return contents.all() if wanted is None else contents.of(wanted)
        if wanted is None:
            return contents.at(places)
        among = set(wanted)
        return (one for one in contents.at(places) if one[0] in among)

    def _candidates(self, pattern: Pattern) -> list[tuple[int, int]] | None:
        """Return a place of each document that has the words the pattern asks for; None if that does not help."""
        if pattern.required is None or self._lexical is None:
            return None
        most = min(self._library.n_documents // SHARE_OF_CORPUS, MOST_CANDIDATES)
        return self._lexical.documents_having(pattern.required, most)

    @cached_property
    def _lexical(self) -> LexicalIndex | None:
        try:
            return self._library.lexical_index()
        except FileNotFoundError:  # a search reads all the texts then
            return None


def grep_text(
    content: str, pattern: str, *, ignore_case: bool = True, fold: bool = False, context: int = 0
) -> list[Match]:
    """Find all the places where a pattern matches in one text; see `GrepQuery`.

    Raises:
        ValueError: If the pattern cannot be looked for, or matches more than `MOST_IN_DOCUMENT` times; in French.
    """
    compiled = compile_pattern(pattern, ignore_case=ignore_case, fold=fold)
    spans = _first(compiled.spans(content.encode()), MOST_IN_DOCUMENT + 1)
    if len(spans) > MOST_IN_DOCUMENT:
        raise ValueError(f"plus de {MOST_IN_DOCUMENT} occurrences dans ce document : précisez le motif")
    return matches_at(spans, content, context)


def matches_at(spans: Sequence[tuple[int, int]], content: str, context: int = 0) -> list[Match]:
    """Return the passages at some spans of a text, with so many characters on either side, if any."""
    found: list[Match] = []
    for start, end in spans:
        match = Match(start=start, end=end, text=_shown(content[start:end]))
        if context:
            before, after = content[max(0, start - context) : start], content[end : end + context]
            match["context"] = f"{before}{match['text']}{after}"
        found.append(match)
    return found


def _first(spans: Iterator[tuple[int, int]], most: int) -> list[tuple[int, int]]:
    return [span for _, span in zip(range(most), spans, strict=False)]


def _shown(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…"
