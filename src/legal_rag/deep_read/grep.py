"""Regular-expression search in a document or the corpus, within a time limit."""

import math
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NotRequired, TypedDict

import regex

from legal_rag.agent.tool_arguments import PATTERN, as_sent
from legal_rag.base import deadline
from legal_rag.base.text import PLAIN_CHARS, normalized, storable
from legal_rag.library.bm25 import LexicalIndex, lexical_words
from legal_rag.library.library import Library

MAX_IN_DOCUMENT = 10_000
SHOWN_CHARS = 300  # of a match
MAX_CONTEXT = 1000  # characters on either side
MAX_CHARS = 10_000_000  # shown by one search, over all matches; each counts as `MATCH_CHARS` more
MATCH_CHARS = 100
SECONDS, DOCUMENT_SECONDS = 20.0, 5.0  # that a search of the corpus, or of a document, may take
MAX_REPEATS = 10_000  # of counted repetitions, one within the other: compiling writes them out
MAX_CANDIDATES = 50_000  # documents from the index of words; beyond, texts are streamed
SHARE_OF_CORPUS = 2  # one in two: where the index names more, it saves nothing

# Parts of a pattern without fixed text, innermost groups first; word boundaries; and whole literal words.
_UNCERTAIN = re.compile(
    r"\\[^\w\s]|\\[a-zA-Z]|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\\.|[^()\\])*\)|[^()](?:[*+?]|\{[\d,]+\})|[.^$]", re.DOTALL
)
_BORDERS = re.compile(r"\\(?:s\+?|[bAZ])(?![*?{])")
_WHOLE_WORD = re.compile(r"(?<![^\s'’.,;:])\w+(?![^\s'’.,;:])")
UNKNOWN = "\uffff"


class Match(TypedDict):
    """A passage that a pattern matches: `content[start:end]`."""

    start: int  # characters of the document's content
    end: int
    text: str  # the passage, or its first `SHOWN_CHARS` and "…"
    context: NotRequired[str]  # the passage and what surrounds it, if requested


@dataclass
class GrepResult:
    """Matches by document, in the corpus's order, and how far the search went."""

    total: int  # documents that it was about
    matches: dict[str, list[Match]] = field(default_factory=dict)
    scanned: int = 0  # documents whose text was read; the index of words ruled the others out
    is_complete: bool = True  # false: `max_docs`, a limit of size or the time ended it early
    out_of_time: bool = False
    shortened: list[str] = field(default_factory=list)  # documents that match more often than is shown

    def state(self) -> dict[str, Any]:
        """Return the state that programs see."""
        return {
            "total": self.total,
            "scanned": self.scanned,
            "complete": self.is_complete,
            "shortened": list(self.shortened),
        }


@dataclass(frozen=True)
class GrepQuery:
    """A pattern, where to search, and how much to return."""

    pattern: str  # see `compile_pattern`
    max_docs: int | None = 100  # matching documents returned at most; None is all
    doc_ids: tuple[str, ...] | None = None  # documents to search; None is all, unknown ids are ignored
    ignore_case: bool = True
    fold: bool = False
    max_matches_per_doc: int | None = 50  # None is `MAX_IN_DOCUMENT`
    context: int = 0  # characters shown on either side of each match


class CorpusGrep:
    """Regular-expression search over the texts of one Library; `seconds` limits each search, None does not."""

    def __init__(self, library: Library, seconds: float | None = SECONDS) -> None:
        self._library, self._seconds = library, seconds

    def search(self, query: GrepQuery) -> GrepResult:
        """Find the documents that match a pattern; ValueError if it is refused, see `compile_pattern`."""
        pattern = compile_pattern(query.pattern, ignore_case=query.ignore_case, fold=query.fold)
        doc_ids = None if query.doc_ids is None else list(dict.fromkeys(query.doc_ids))
        result = GrepResult(self._library.n_documents if doc_ids is None else len(doc_ids))
        most = MAX_IN_DOCUMENT if query.max_matches_per_doc is None else query.max_matches_per_doc
        ends = math.inf if self._seconds is None else time.monotonic() + self._seconds
        chars_left = MAX_CHARS
        for doc_id, data in self._iter_texts(pattern, doc_ids):
            result.out_of_time = result.out_of_time or time.monotonic() > ends
            if chars_left <= 0 or result.out_of_time:
                result.is_complete = False
                break
            content = data.decode()
            spans, result.out_of_time = pattern.spans(content, most + 1, ends)
            if spans and query.max_docs is not None and len(result.matches) >= query.max_docs:
                result.is_complete = False
                break
            result.scanned += not result.out_of_time
            if spans:
                shown = matches_at(spans[:most], content, query.context, chars_left)
                result.matches[doc_id] = shown
                chars_left -= sum(map(_match_size, shown))
                result.shortened += [doc_id] * (len(spans) > len(shown) or result.out_of_time)
        result.is_complete = result.is_complete and not result.out_of_time
        return result

    def _iter_texts(self, pattern: "Pattern", doc_ids: Sequence[str] | None) -> Iterator[tuple[str, bytes]]:
        contents, places = self._library.contents(), self._candidates(pattern)
        if places is None or (doc_ids is not None and len(doc_ids) <= len(places)):
            return contents.all() if doc_ids is None else contents.of(doc_ids)
        if doc_ids is None:
            return contents.at(places)
        among = set(doc_ids)
        return (row for row in contents.at(places) if row[0] in among)

    def _candidates(self, pattern: "Pattern") -> list[tuple[int, int]] | None:
        """Return a position of each document that holds the pattern's words; None if that does not help."""
        if not pattern.words or self._lexical is None:
            return None
        most = min(self._library.n_documents // SHARE_OF_CORPUS, MAX_CANDIDATES)
        return self._lexical.documents_having([pattern.words], most)

    @cached_property
    def _lexical(self) -> LexicalIndex | None:
        try:
            return self._library.lexical_index()
        except FileNotFoundError:  # all texts are read then
            return None


def grep_text(
    content: str, pattern: str, *, ignore_case: bool = True, fold: bool = False, context: int = 0
) -> list[Match]:
    """Find all matches in one text, see `GrepQuery`.

    ValueError, in French, if the pattern is refused, matches more than `MAX_IN_DOCUMENT` times, or takes too long.
    """
    compiled = compile_pattern(pattern, ignore_case=ignore_case, fold=fold)
    spans, is_late = compiled.spans(content, MAX_IN_DOCUMENT + 1, time.monotonic() + DOCUMENT_SECONDS)
    if len(spans) > MAX_IN_DOCUMENT:
        raise ValueError(f"plus de {MAX_IN_DOCUMENT} occurrences dans ce document : précisez le motif")
    if is_late:
        raise ValueError(
            f"motif trop lent : plus de {DOCUMENT_SECONDS:g} s ; évitez les répétitions l'une dans l'autre"
        )
    matches = matches_at(spans, content, context, MAX_CHARS)
    if len(matches) < len(spans):
        raise ValueError(f"plus de {MAX_CHARS} caractères d'occurrences : demandez moins de contexte")
    return matches


def matches_at(spans: Sequence[tuple[int, int]], content: str, context: int, most_chars: int) -> list[Match]:
    """Return the passages at some spans of a text, with `context` characters on either side, up to `most_chars`."""
    matches: list[Match] = []
    for start, end in spans:
        if most_chars <= 0:
            break
        text = content[start:end] if end - start <= SHOWN_CHARS else content[start : start + SHOWN_CHARS] + "…"
        match = Match(start=start, end=end, text=text)
        if context:
            match["context"] = f"{content[max(0, start - context) : start]}{text}{content[end : end + context]}"
        matches.append(match)
        most_chars -= _match_size(match)
    return matches


def _match_size(match: Match) -> int:
    return len(match["text"]) + len(match.get("context", "")) + MATCH_CHARS


@dataclass(frozen=True)
class Pattern:
    """A compiled pattern."""

    compiled: Any
    fold: bool
    words: frozenset[str]  # terms of the index of words which each match holds

    def spans(self, content: str, most: int, ends: float) -> tuple[list[tuple[int, int]], bool]:
        """Return the spans of up to `most` matches, in order, and whether the time `ends` (monotonic) cut it short.

        DeadlineError past the deadline.
        """
        text = content.translate(PLAIN_CHARS) if self.fold else content
        until_end, until_deadline = ends - time.monotonic(), deadline.seconds_left()
        seconds = max(min(until_end, until_deadline), 0.001)  # of processor time: that is what `regex` counts
        spans: list[tuple[int, int]] = []
        try:
            for match in self.compiled.finditer(text, timeout=seconds if seconds < math.inf else None):
                if match.end() > match.start():
                    spans.append(match.span())
                if len(spans) == most:
                    break
        except TimeoutError:
            if until_deadline < until_end:
                raise deadline.DeadlineError from None
            return spans, True
        return spans, False


@lru_cache(64)
def compile_pattern(pattern: str, *, ignore_case: bool = True, fold: bool = False) -> Pattern:
    r"""Compile a pattern in the syntax of the `regex` module, Python's and more; `^` and `$` match at line breaks.

    `fold` matches regardless of accents and of the kind of apostrophes, dashes and blanks. ValueError, in French, if
    the pattern is malformed, too long, too large, or matches an empty text.
    """
    if len(pattern) > PATTERN.text:
        raise ValueError(f"motif refusé : {len(pattern)} caractères, {PATTERN.text} au plus")
    if pattern != storable(pattern):
        raise ValueError("motif mal formé : il contient un demi-caractère")
    if math.prod(max(1, int(count)) for count in re.findall(r"\{(\d{1,9})", pattern)) > MAX_REPEATS:
        raise ValueError(f"motif refusé : plus de {MAX_REPEATS} répétitions comptées, l'une dans l'autre")
    pattern = normalized(pattern)
    written = re.sub(r"(?<!\\) +", r"\\s+", pattern.translate(PLAIN_CHARS)) if fold else pattern
    try:
        compiled = regex.compile(written, regex.MULTILINE | (regex.IGNORECASE if ignore_case else 0))
        is_empty = compiled.search("", timeout=1.0) is not None
    except (regex.error, RecursionError, TimeoutError, ValueError) as error:
        raise ValueError(f"motif mal formé ({as_sent(str(error), SHOWN_CHARS)})") from None
    if is_empty:
        raise ValueError("motif refusé : il correspond aussi à un texte vide ; précisez ce qu'il doit contenir")
    return Pattern(compiled, fold, frozenset() if fold else _certain_words(pattern))


def _certain_words(pattern: str) -> frozenset[str]:
    """Return the terms of words in every match; empty where the pattern is too complex to tell."""
    if re.search(r"\(\?[a-zA-Z]*x", pattern):  # blanks do not count then
        return frozenset()
    text, before = _BORDERS.sub(" ", pattern), ""
    while text != before:
        text, before = _UNCERTAIN.sub(UNKNOWN, text), text
    if any(sign in text for sign in "|()[]"):
        return frozenset()
    return frozenset(term for word in _WHOLE_WORD.findall(f"{UNKNOWN}{text}{UNKNOWN}") for term in lexical_words(word))
