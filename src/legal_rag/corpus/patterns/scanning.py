"""Pattern scanning that tries a regular expression only around the literals its matches contain."""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Protocol

_LOOK_AHEAD = 30  # characters that a pattern may look ahead behind its match


class Scan(Protocol):
    """A pattern, and where it is worth trying."""

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Yield the matches in the order of the text; none overlaps another."""


class _Compiled:
    """A pattern that is compiled when it is first needed: compiling them all would delay every start."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._source, self._flags = pattern, flags

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern itself."""
        return re.compile(self._source, self._flags)


class Around(_Compiled):
    """A pattern searched around the places of its words.

    Args:
        pattern: What to find.
        words: Of which each match has one; in small letters they stand for any, with a capital letter for themselves.
        before: Characters that a match may begin before its word.
        after: Characters that a match, and what it looks ahead to, may end behind the word's beginning.
        flags: Of `re`.
    """

    def __init__(self, pattern: str, words: Sequence[str], before: int, after: int, flags: int = re.IGNORECASE) -> None:
        super().__init__(pattern, flags)
        self._words, self._before, self._after = tuple(words), before, after

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Yield the matches in the order of the text."""
        lower = lowered(text)
        if lower is None:
            yield from self.pattern.finditer(text)
            return
        for start, end in _merged(places(text, lower, self._words), self._before, self._after):
            for match in self.pattern.finditer(text, start, min(end, len(text))):
                whole = match if match.end() < end - _LOOK_AHEAD else self.pattern.match(text, match.start())
                if whole is not None:  # else what follows forbids it, which could not be seen from within
                    yield whole


class Led(_Compiled):
    """A pattern tried where one of its first words stands, however long its match.

    Args:
        pattern: What to find; it begins with one of the words.
        words: In small letters, for any.
        flags: Of `re`.
    """

    def __init__(self, pattern: str, words: Sequence[str], flags: int = re.IGNORECASE) -> None:
        super().__init__(pattern, flags)
        self._words = tuple(words)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Yield the matches in the order of the text; none overlaps another."""
        lower = lowered(text)
        if lower is None:
            yield from self.pattern.finditer(text)
            return
        done = 0
        for place in places(text, lower, self._words):
            if place >= done and (match := self.pattern.match(text, place)):
                done = max(match.end(), place + 1)
                yield match


class FiguresLed(_Compiled):
    """A pattern tried where two or four figures stand before a dash or letters, as they begin a case number or a date.

    Args:
        pattern: What to find, in letters of either size.
        before: Characters that a match may begin before its figures.
    """

    def __init__(self, pattern: str, before: int = 0) -> None:
        super().__init__(pattern, re.IGNORECASE)
        self._before = before

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Yield the matches in the order of the text; none overlaps another."""
        done = 0
        for place in _figures(text):
            for start in range(max(place - self._before, done), place + 1):
                if match := self.pattern.match(text, start):
                    done = match.end()
                    yield match
                    break


@lru_cache(maxsize=8)
def lowered(text: str) -> str | None:
    """Return a text in small letters, of the same length; None in the rare case that it has another."""
    lower = text.lower()
    return lower if len(lower) == len(text) else None


def places(text: str, lower: str, words: Sequence[str]) -> list[int]:
    """Return where any of some words begins, rising; those in small letters are looked for in `lower`."""
    found: set[int] = set()
    for word in words:
        found.update(_places_of(text if word != word.lower() else lower, word))
    return sorted(found)


@lru_cache(maxsize=1024)  # several patterns look for the same words, one after the other
def _places_of(text: str, word: str) -> tuple[int, ...]:
    found, at = [], text.find(word)
    while at >= 0:
        found.append(at)
        at = text.find(word, at + 1)
    return tuple(found)


_FIGURES = re.compile(r"(?<![\w/.-])\d\d(?=(?:\d\d)?[-\u2010-\u2014]|[A-Za-z]{2}\d)")


@lru_cache(maxsize=8)
def _figures(text: str) -> tuple[int, ...]:
    return tuple(match.start() for match in _FIGURES.finditer(text))


def _merged(found: Sequence[int], before: int, after: int) -> Iterator[tuple[int, int]]:
    start = end = -1
    for place in found:
        if place - before > end:
            if end >= 0:
                yield start, end
            start = max(place - before, 0)
        end = place + after
    if end >= 0:
        yield start, end


DASH = "[-\u2010-\u2014]"
BLANK = r"[ \t\u00a0\u202f]"
GAP, SPACE = f"{BLANK}{{0,4}}", f"{BLANK}{{1,4}}"  # bounded: a page of blanks is no reason to search it again and again
NOT_INSIDE = r"(?<![\w/.-])"  # a longer number or word
NO_MORE = rf"(?![\w/]|{DASH}\d|\.\d)"
