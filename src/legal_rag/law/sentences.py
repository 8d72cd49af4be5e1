"""Sentence splitting for French decisions."""

import re
from collections.abc import Iterable, Iterator

from legal_rag.base.text import Span, read_words
from legal_rag.law.words import FRENCH_MONTHS, FULL_MONTHS

ABBREVIATIONS = frozenset(read_words("legal_rag.law")["abbreviations"]) | FRENCH_MONTHS.keys() - FULL_MONTHS.keys()

# Sentence punctuation with its closing marks, or a semicolon, and the blanks after it; or line breaks.
# No match starts inside a run of marks (pages of dots take linear time); each begins with one of a few characters, so
# that `re` skips the rest.
PAUSE = re.compile(r"[.!?…;\n](?:(?<=\n)\s*|(?<=;)\s+|(?<=[.!?…])(?<![.!?…]{2})[.!?…]*(?:\s?[»”\"’)\]])*\s+)")
LAST_WORD = re.compile(r"[^\s(\[«“\"'’/,;:]+$")
LETTER_DOTS = re.compile(r"(?:[A-ZÀ-Ý]\.?-?)+")  # initials and acronyms: "J.-P", "S.A", "L", "R"
PSEUDONYM = re.compile(r"[A-ZÀ-Ý]{1,3}(?:\.{2,}|…)")  # "X...", "Y…"
NUMBERED = re.compile(r"(?:[IVXLC]+|\d{1,3})")  # "1. Considérant", "II. - Sur": the number opens its sentence


def split_sentences(text: str) -> list[Span]:
    """Return the spans (start, end) of the sentences of `text`, in order; they cover it, blanks after each included."""
    ends = [match.end() for match in PAUSE.finditer(text) if _is_boundary(text, match)]
    starts = [0, *ends]
    return [(start, end) for start, end in zip(starts, [*ends, len(text)], strict=True) if start < end]


def cut_at_blanks(text: str, start: int, end: int, most: int) -> Iterator[Span]:
    """Split a span into parts of at most `most` characters, after a blank where there is one."""
    while end - start > most:
        blank = text.rfind(" ", start + 1, start + most)
        cut = blank + 1 if blank > 0 else start + most
        yield start, cut
        start = cut
    yield start, end


def without_blanks(text: str, spans: Iterable[Span]) -> list[Span]:
    """Strip spans of surrounding blanks, and drop blank ones."""
    return [
        (end - len(text[start:end].lstrip()), start + len(text[start:end].rstrip()))
        for start, end in spans
        if text[start:end].strip()
    ]


def _is_boundary(text: str, pause: re.Match[str]) -> bool:
    mark = pause.group().rstrip()
    if not mark or "\n" in pause.group() or mark[0] in ";!?":
        return True
    following = text[pause.end() : pause.end() + 1]
    if following.islower() or following in ",;:)]":
        return False
    before = LAST_WORD.search(text, max(0, pause.start() - 40), pause.start())
    word = before.group() if before else ""
    if PSEUDONYM.fullmatch(word + mark):
        return False  # "M. X... Pierre": a name continues more often than a sentence ends
    if not mark.startswith(".") or mark.startswith(".."):
        return True
    return not (
        word.lower() in ABBREVIATIONS or LETTER_DOTS.fullmatch(word) or NUMBERED.fullmatch(word) or word.endswith("°")
    )
