"""Marks: where a section of a text begins, and how high it ranks. A rule of headings makes one, or a numbered run.

In: what a rule found in a text. Out: marks, with titles made for reading.
"""

import re
from typing import NamedTuple

from legal_rag.structure.tree import Kind

# Ranks: a section ends where another of its own or a smaller rank begins. Titles that are numbered ("I.", "A.") have
# none of their own: they stand below the heading in which the first of them comes.
MESSAGE, BOOK, PART, CAPITALS, SUBJECT, ARTICLE, STEP, WEAK = 7, 10, 20, 30, 40, 50, 55, 60
NUMBERED_TITLE = 59
PARAGRAPH, ITEM = 100, 200  # numbered texts, and those of an enumeration inside them

HEADING_CHARS = 250  # of what the text itself writes over a section
TITLE_CHARS = 80  # of a title that is the beginning of a longer text

_MANY, _LEAST_CHARS = 1000, 50  # lines, and characters from one to the next
_LETTERS_APART = re.compile(r"(?:\w[ \t\u00a0\u202f'’]+){3,}\w\b")
_EDGE = " \t\n\r\u00a0\u202f:;,.-–—*•#_|"


class Mark(NamedTuple):
    """The beginning of a section."""

    start: int
    end: int  # of what the text writes over the section: its title or its number
    title: str
    rank: int
    kind: Kind = "heading"
    family: str = ""  # of numbered titles: those numbered alike inside one section are sisters
    deciding: bool = False  # it opens the operative part, where no short line is a heading
    line_end: int = 0  # of the last of a run of numbered texts: what stands below its line is not its own


def title_of(text: str, start: int, end: int, most: int = HEADING_CHARS) -> str:
    """Return the title that a span makes: on one line, without the signs around it, cut behind a word if long."""
    words = " ".join(text[start : min(end, start + most + 100)].split())
    title = words.lstrip(_EDGE) if words.endswith("...") else words.strip(_EDGE)
    if len(title) <= most:
        return title or words[:most] or "…"
    return title[: most + 1].rsplit(" ", 1)[0][:most].rstrip(" ,;:.") + "…"


def is_spaced(words: str) -> bool:
    """Tell whether letters stand apart: 'P A R C E S M O T I F S'."""
    return _LETTERS_APART.match(words) is not None


def is_dense(n_lines: int, text: str) -> bool:
    """Tell whether so many lines of a text look like beginnings of sections that none is one: a table, or a list."""
    return n_lines > _MANY and n_lines * _LEAST_CHARS > len(text)
