"""Pattern scanning that tries a regular expression only around the literals its matches contain."""

import re
from collections.abc import Iterator, Sequence
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Any
from zlib import crc32

from legal_rag.base.deadline import check
from legal_rag.base.text import Span, find_exact, read_toml

DASH = "[-\u00ad\u2010-\u2015\u2212]"  # with the soft hyphen and the minus that PDFs have for it
BLANK = r"[ \t\u00a0\u202f]"
GAP, SPACE = f"{BLANK}{{0,4}}", f"{BLANK}{{1,4}}"  # bounded: a page of blanks takes linear time
NOT_INSIDE = r"(?<![\w/.-])"  # a longer number or word
FIRST = r"(?<![\w/.-].)"  # the same, after the first character
NO_MORE = rf"(?![\w/]|{DASH}\d|\.\d)"
NUMBER_SIGN = r"(?:n(?:_[°ºo\u02da]s?\.?|um[ée]ros?|\.)|№)"
NO_BREAK = "\u00a0"

_IN_PATTERN = re.compile(r"\\.|\[(?:\\.|[^\]])*\]|\(\?P[<=]\w+|[ _]")
SHORT_TEXT = 500  # characters
_LOOK_AHEAD = 30  # characters that a pattern may look ahead after its match
# Not inside a longer word; the digit comes first, so that `re` skips all else.
_FIGURES = re.compile(
    r"\d(?<![\w/.-].)\d(?=(?:\d\d)?[-\u00ad\u2010-\u2015\u2212]|[ .]?[A-Za-z]{2}[ .]?\d|\d{4}"
    r"|\d?[ .\u00a0\u202f]\d\d[\d .\u00a0\u202f]\d?)"
)


def spaced(pattern: str) -> str:
    """Return a pattern in which each ' ' is `SPACE` and each '_' is `GAP`, except in a set such as '[ _]'."""
    return _IN_PATTERN.sub(lambda match: {" ": SPACE, "_": GAP}.get(match.group(), match.group()), pattern)


def read_table(name: str) -> dict[str, Any]:
    """Read a TOML file of this folder; "_" in a citation form becomes a no-break space."""
    tables = read_toml("legal_rag.law", name)
    for row in (row for rows in tables.values() if isinstance(rows, list) for row in rows):
        if isinstance(row, dict) and "cite" in row:
            row["cite"] = row["cite"].replace("_", NO_BREAK)
    return tables


@cache
def tables_version() -> int:
    """Return a number of 32 bits for what the tables of this folder say: what was made by others is made anew."""
    tables = sorted((file.name, file.read_bytes()) for file in files("legal_rag.law").iterdir() if ".toml" in file.name)
    return crc32(b"".join(content for _, content in tables))


def short_form(form: str) -> str:
    """Make a pattern of an abbreviation: dots and blanks of "C. trav." are optional, "CE" is in capitals, or "C.E."."""
    if form.isupper() and form.isalpha():
        return rf"(?-i:{form}|{'_'.join(rf'{letter}{chr(92)}.' for letter in form)})"
    pattern = re.escape(form.lower().replace(NO_BREAK, " ")).replace(r"\.", r"\.?").replace("\\ ", "_")
    return pattern.replace("'", "['’]").replace("é", "[eé]")


class Scan:
    """A pattern, `spaced`, tried everywhere; compiled on first use: all of them would delay every start."""

    def __init__(self, pattern: str, flags: int = re.IGNORECASE) -> None:
        self._source, self._flags = spaced(pattern), flags

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return re.compile(self._source, self._flags)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Yield the matches in text order; none overlaps another. DeadlineError past the deadline."""
        if len(text) > SHORT_TEXT:
            check()
        lower = lowered(text)
        return self.pattern.finditer(text) if lower is None else self._scan(text, lower)

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match."""
        return next(self.finditer(text), None)

    def _scan(self, text: str, lower: str) -> Iterator[re.Match[str]]:
        return self.pattern.finditer(text)


class Around(Scan):
    """A pattern searched around its words, of which each match contains one; those in lower case match any case.

    A match begins at most `before` characters before its word, and ends, with its lookahead, at most `after` characters
    behind the word's beginning.
    """

    def __init__(self, pattern: str, words: Sequence[str], before: int, after: int, flags: int = re.IGNORECASE) -> None:
        super().__init__(pattern, flags)
        self._words, self._before, self._after = tuple(words), before, after

    def _scan(self, text: str, lower: str) -> Iterator[re.Match[str]]:
        for start, end in _merge_windows(positions(text, lower, self._words), self._before, self._after):
            for match in self.pattern.finditer(text, start, min(end, len(text))):
                whole = match if match.end() < end - _LOOK_AHEAD else self.pattern.match(text, match.start())
                if whole is not None:  # None: a lookahead beyond the window rejects it
                    yield whole


class Led(Scan):
    """A pattern tried where one of the words occurs with which it begins; they are in lower case and match any case."""

    def __init__(self, pattern: str, words: Sequence[str], flags: int = re.IGNORECASE) -> None:
        super().__init__(pattern, flags)
        self._words = tuple(words)

    def _scan(self, text: str, lower: str) -> Iterator[re.Match[str]]:
        done = 0
        for place in positions(text, lower, self._words):
            if place >= done and (match := self.pattern.match(text, place)):
                done = max(match.end(), place + 1)
                yield match


class FiguresLed(Scan):
    """A pattern tried at digits before a dash, letters or more digits, and up to `before` characters before them."""

    def __init__(self, pattern: str, before: int = 0) -> None:
        super().__init__(pattern, re.IGNORECASE)
        self._before = before

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Yield the matches in text order; none overlaps another."""
        done = 0
        for place in _figures(text):
            for start in range(max(place - self._before, done), place + 1):
                if match := self.pattern.match(text, start):
                    done = match.end()
                    yield match
                    break


@lru_cache(maxsize=8)
def lowered(text: str) -> str | None:
    """Return a text in lower case; None in the rare case that its length changes."""
    lower = text.lower()
    return lower if len(lower) == len(text) else None


def positions(text: str, lower: str, words: Sequence[str]) -> list[int]:
    """Return where any of the words begins, ascending; words in lower case are searched in `lower`."""
    known = _known_places(text) if len(text) > SHORT_TEXT else {}
    starts: set[int] = set()
    for word, any_case in _with_case(tuple(words)):
        places = known.get(word)
        if places is None:
            searched = lower if any_case else text
            places = known[word] = [start for start, _ in find_exact(word, searched)] if word in searched else ()
        if places:
            starts.update(places)
    return sorted(starts)


@cache
def _with_case(words: tuple[str, ...]) -> tuple[tuple[str, bool], ...]:
    return tuple((word, word == word.lower()) for word in words)


@lru_cache(maxsize=8)  # several patterns search the same words in turn
def _known_places(text: str) -> dict[str, Sequence[int]]:
    """Return where the words searched so far occur, to be filled by `positions`."""
    return {}


@lru_cache(maxsize=8)
def _figures(text: str) -> tuple[int, ...]:
    return tuple(match.start() for match in _FIGURES.finditer(text))


def _merge_windows(starts: Sequence[int], before: int, after: int) -> Iterator[Span]:
    start = end = -1
    for place in starts:
        if place - before > end:
            if end >= 0:
                yield start, end
            start = max(place - before, 0)
        end = place + after
    if end >= 0:
        yield start, end
