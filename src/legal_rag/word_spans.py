"""Spans and words: whether a span of a text cuts a word or a number, and the whole words around it."""

import re
import unicodedata

Span = tuple[int, int]  # characters: start, end

# A number with its groups of three and its decimals: part of it is another number.
_NUMBER = re.compile(r"\d{1,3}(?:[ \u00a0\u202f.]\d{3})+(?:,\d+)?(?!\d)|\d+(?:[.,]\d+)*")
_LONGEST_NUMBER = 20  # characters


def is_whole(text: str, span: Span) -> bool:
    """Tell whether a span neither begins nor ends within a word or a number."""
    return widened(text, span) == span and not cuts_number(text, span)


def widened(text: str, span: Span) -> Span:
    """Widen a span to whole words."""
    start, end = span
    while _is_within_word(text, start):
        start -= 1
    while _is_within_word(text, end):
        end += 1
    return start, end


def cuts_number(text: str, span: Span) -> bool:
    """Tell whether a span begins or ends within a number: '5 ans' does in '15 ans', '000 euros' in '1 000 euros'."""
    return any(
        match.start() < end < match.end()
        for end in span
        for match in _NUMBER.finditer(text, max(0, end - _LONGEST_NUMBER), end + _LONGEST_NUMBER)
    )


def _is_within_word(text: str, at: int) -> bool:
    """Tell whether what stands before and after a place belongs to one word; a separate accent is part of it."""
    return 0 < at < len(text) and all(one.isalnum() or unicodedata.combining(one) for one in text[at - 1 : at + 1])
