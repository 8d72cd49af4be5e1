"""Sets of characters as ranges of code points, and the sets that regular expressions name: letters, figures, blanks.

In: characters, ranges, properties. Out: sorted ranges that neither touch nor overlap, and a class of a pattern.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import cache

import regex

LAST = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)  # halves of characters, which are in no text
# Where Unicode has characters with properties: the planes between are empty, the last two are for private use.
SCANNED = (range(SURROGATES[0]), range(SURROGATES[1] + 1, 0x40000), range(0xE0000, 0xE1000))
FEW = 64  # characters of a set that are looked at one by one

CharSet = tuple[tuple[int, int], ...]  # ranges, both ends included, rising


def char_set(ranges: Iterable[tuple[int, int]]) -> CharSet:
    """Return the set of the characters of some ranges, which may overlap."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def of_chars(chars: Iterable[str]) -> CharSet:
    """Return the set of some characters."""
    return char_set((ord(one), ord(one)) for one in chars)


def union(*sets: CharSet) -> CharSet:
    """Return the set of what is in any of some sets."""
    return char_set(one for some in sets for one in some)


def complement(some: CharSet) -> CharSet:
    """Return the set of all characters that are not in a set."""
    ends = [-1, *(end for low, high in char_set([*some, SURROGATES]) for end in (low, high)), LAST + 1]
    gaps = zip(ends[::2], ends[1::2], strict=True)
    return tuple((before + 1, after - 1) for before, after in gaps if before + 1 < after)


def minus(some: CharSet, others: CharSet) -> CharSet:
    """Return the set of what is in one set and not in another."""
    return complement(union(complement(some), others))


def holds(some: CharSet, char: str) -> bool:
    """Tell whether a character is in a set."""
    at = bisect_right(some, (ord(char), LAST)) - 1
    return at >= 0 and ord(char) <= some[at][1]


def count(some: CharSet) -> int:
    """Return how many characters are in a set."""
    return sum(high - low + 1 for low, high in some)


def char_class(some: CharSet) -> str:
    """Write a set as RE2 reads it; a class that matches nothing where it is empty."""
    if not some:
        return r"[^\x00-\x{10FFFF}]"
    return "[" + "".join(f"\\x{{{low:X}}}-\\x{{{high:X}}}" for low, high in some) + "]"


@cache
def word_chars() -> CharSet:
    r"""Return what `\w` stands for here: letters, figures and low lines as for Python, and marks that letters carry."""
    return _having(regex.compile(r"[\p{Alphabetic}\p{L}\p{M}\p{N}_]+"))


@cache
def space_chars() -> CharSet:
    r"""Return what `\s` stands for, as for Python."""
    return _having(re.compile(r"\s+"))


@cache
def digit_chars() -> CharSet:
    r"""Return what `\d` stands for, as for Python."""
    return _having(re.compile(r"\d+"))


@cache
def case_pairs() -> tuple[tuple[int, int], ...]:
    """Return the pairs of a small letter and its capital that are one character each and nothing else's."""
    pairs = ((low, low.upper()) for low in map(chr, range(SURROGATES[0])) if low.islower())
    return tuple((ord(low), ord(high)) for low, high in pairs if len(high) == 1 and high.lower() == low)


def in_any_case(some: CharSet) -> CharSet:
    """Return a set with the capitals of its small letters and the small letters of its capitals."""
    if count(some) <= FEW:
        return char_set(one for char in _chars_of(some) for one in [(ord(char), ord(char)), *_cases_of(char)])
    found = list(some)
    for low, high in case_pairs():
        if holds(some, chr(low)):
            found.append((high, high))
        elif holds(some, chr(high)):
            found.append((low, low))
    return char_set(found)


def _cases_of(char: str) -> list[tuple[int, int]]:
    """Return the ranges of a letter's two forms, if they are a pair; see `case_pairs`."""
    low = char.lower()
    high = low.upper()
    is_pair = len(low) == len(high) == 1 and high.lower() == low and char in (low, high)
    return [(ord(low), ord(low)), (ord(high), ord(high))] if is_pair else []


def _chars_of(some: CharSet) -> list[str]:
    return [chr(one) for low, high in some for one in range(low, high + 1)]


def _having(runs: "re.Pattern[str] | regex.Pattern[str]") -> CharSet:
    """Return the set of the characters of which a pattern finds runs."""
    found = []
    for some in SCANNED:
        text = "".join(map(chr, some))
        found += [(some[one.start()], some[one.end() - 1]) for one in runs.finditer(text)]
    return char_set(found)
