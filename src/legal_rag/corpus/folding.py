"""Case and typography folding with a map back to the original offsets; spans at word and number borders."""

import re
import unicodedata
from array import array
from bisect import bisect_right
from typing import NamedTuple

from legal_rag.corpus.cleaning import normalized

Span = tuple[int, int]  # characters: start, end

APOSTROPHES = "’‘ʼ′`´"
DASHES = "‐‑‒–—―−"
QUOTATION_MARKS = "«»“”„"
INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
LETTERS = {"œ": "oe", "Œ": "oe", "æ": "ae", "Æ": "ae", "ﬁ": "fi", "ﬂ": "fl", "…": "..."}

# What folding changes besides case; each match becomes what `_fold_match` returns.
_BREAK = "<[bB][rR]\\s?/?>"  # a line-break tag is a blank
_BLANKS = rf"(?:[\s{INVISIBLE}]|{_BREAK})"
# Characters that only change case, unless a combining accent follows: most of a text, skipped at once.
_ORDINARY = r"""[A-Za-z0-9,.;:()'?!/"\-À-ÅÇ-åç-ÿ](?![\u0300-\u036f])"""
_SPECIAL = re.compile(
    rf"(?!{_ORDINARY})(?:(?P<quote>«{_BLANKS}*|{_BLANKS}*»|[{QUOTATION_MARKS}])"
    rf"|(?P<blank>[^\S ]{_BLANKS}*| {_BLANKS}+|[{INVISIBLE}]+\s{_BLANKS}*|{_BREAK}{_BLANKS}*)"
    rf"|(?P<apostrophe>[{APOSTROPHES}])|(?P<dash>[{DASHES}])|(?P<invisible>[{INVISIBLE}]+)"
    rf"|(?P<letter>[{''.join(LETTERS)}])"
    r"|(?P<accented>[^\W\d_][\u0300-\u036f]+))"
)
_SIGNS = {"quote": '"', "blank": " ", "apostrophe": "'", "dash": "-", "invisible": ""}
# Marks that Unicode sorts; for more than the 30 that a text may have one after another (UAX #15, Stream-Safe Text
# Format), `unicodedata` takes quadratic time.
# A number with its groups of three and its decimals.
_NUMBER = re.compile(r"\d{1,3}(?:[ \u00a0\u202f.]\d{3})+(?:,\d+)?(?!\d)|\d+(?:[.,]\d+)*")
_LONGEST_NUMBER = 20  # characters


class Folded(NamedTuple):
    """A folded text with the origin of each character."""

    text: str
    starts: "array[int]"  # original offset of each folded character, ascending; then the original's length

    def original_span(self, start: int, end: int) -> Span:
        """Map a span of the folded text to the original; ValueError if it is empty or outside."""
        if not 0 <= start < end < len(self.starts):
            raise ValueError(f"not a span of the folded text: {start}-{end} (expected within 0-{len(self.text)})")
        # The two letters of a folded "œ" have one origin: it ends where the next character begins.
        return self.starts[start], self.starts[bisect_right(self.starts, self.starts[end - 1])]


def fold(text: str) -> Folded:
    """Fold a text of any length, in linear time."""
    pieces: list[str] = []
    starts = array("q")
    done = 0
    for match in _SPECIAL.finditer(text):
        _lower(text, done, match.start(), pieces, starts)
        folded = _fold_match(match)
        pieces.append(folded)
        starts.extend([match.start()] * len(folded))
        done = match.end()
    _lower(text, done, len(text), pieces, starts)
    starts.append(len(text))
    return Folded("".join(pieces), starts)


def fold_text(text: str) -> str:
    """Fold a text without the map back."""
    return _SPECIAL.sub(_fold_match, text).casefold()


def find_folded(passage: str, text: str | Folded) -> list[Span]:
    """Find the spans of `text` equal to `passage` up to folding, in order; they may overlap.

    Args:
        passage: Blanks around it are ignored; a blank one has no match.
        text: Folded already, if it is searched more than once.
    """
    folded = text if isinstance(text, Folded) else fold(text)
    return [folded.original_span(*span) for span in find_exact(fold_text(passage).strip(), folded.text)]


def find_exact(passage: str, text: str) -> list[Span]:
    """Find the spans of `text` equal to `passage`, in order; they may overlap."""
    spans: list[Span] = []
    at = text.find(passage) if passage else -1
    while at >= 0:
        spans.append((at, at + len(passage)))
        at = text.find(passage, at + 1)
    return spans


def _lower(text: str, start: int, end: int, pieces: list[str], starts: "array[int]") -> None:
    piece = text[start:end]
    lower = piece.casefold()
    if len(lower) == len(piece):
        pieces.append(lower)
        starts.extend(range(start, end))
        return
    for at, letter in enumerate(piece, start):  # a letter that folds to two, such as "ß"
        pieces.append(letter.casefold())
        starts.extend([at] * len(pieces[-1]))


def _fold_match(match: re.Match[str]) -> str:
    kind = match.lastgroup or ""
    if kind in _SIGNS:
        return _SIGNS[kind]
    if kind == "letter":
        return LETTERS[match.group()]
    return normalized(match.group()).casefold()


def is_whole(text: str, span: Span) -> bool:
    """Does a span begin and end at borders of words and numbers?"""
    return not any(_is_within_word(text, at) for at in span) and not cuts_number(text, span)


def widened(text: str, span: Span) -> Span:
    """Widen a span to whole words."""
    start, end = span
    while _is_within_word(text, start):
        start -= 1
    while _is_within_word(text, end):
        end += 1
    return start, end


def cuts_number(text: str, span: Span) -> bool:
    """Does a span begin or end inside a number, as '000 euros' in '1 000 euros'?"""
    return any(
        match.start() < end < match.end()
        for end in span
        for match in _NUMBER.finditer(text, max(0, end - _LONGEST_NUMBER), end + _LONGEST_NUMBER)
    )


def _is_within_word(text: str, at: int) -> bool:
    """Are both neighbours of an offset part of one word, combining accents included?"""
    return 0 < at < len(text) and all(char.isalnum() or unicodedata.combining(char) for char in text[at - 1 : at + 1])
