"""Headings of French decisions, from `headings.toml`, and the pattern that finds them however they are written."""

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Literal, NamedTuple

from legal_rag.law.scanning import read_table
from legal_rag.law.tree import PartKind, Speaker

_FORMS = {letter: f"[{forms}]" for forms in ("EÉÈÊ", "AÀ", "CÇ", "OÔ") for letter in forms} | {"'": "['’ ]"}


class Heading(NamedTuple):
    """A row of `headings.toml`, which says what each field means."""

    words: str
    example: str
    part: PartKind | None = None
    section: Literal["part", "step", "weak", "none"] = "part"
    more: bool = False
    alone: bool = False
    inline: Literal["", "anywhere", "sentence"] = ""
    speaker: Speaker | None = None
    articles: bool = False

    @property
    def speaks(self) -> Speaker | None:
        """Who speaks below it, where that is certain."""
        return self.speaker or ("party" if self.part == "claims" else "court" if self.part == "reasons" else None)


HEADINGS = tuple(Heading(**row) for row in read_table("headings.toml")["heading"])


def phrases(**fields: object) -> list[str]:
    """Return the words of the rows whose fields have these values."""
    return [row.words for row in HEADINGS if all(getattr(row, name) == value for name, value in fields.items())]


def spelt(words: Iterable[str], blank: str = r"\s") -> str:
    """Return a pattern for phrases in capitals: their letters spaced, without accents or pseudonymised.

    Args:
        words: Of two that begin alike the longer is tried first. Of none the pattern matches nothing.
        blank: What may be between letters and words.
    """
    by_letter: dict[str, list[str]] = defaultdict(list)  # so that `re` skips at once what begins otherwise
    for phrase in sorted(words, key=len, reverse=True):
        by_letter[_FORMS.get(phrase[0], phrase[0])].append(_spell(phrase[1:], blank))
    spelt_alike = [f"{first}(?:{'|'.join(rests)})" for first, rests in by_letter.items()]
    return f"(?:{'|'.join(spelt_alike) or '(?!)'})"


def _spell(letters: str, blank: str) -> str:
    pieces, gap = [], f"{blank}?"
    for letter in letters:
        if letter == " ":
            gap = f"{blank}{{1,4}}"
            continue
        form = _FORMS.get(letter, re.escape(letter))
        pieces.append(f"{gap}(?:{form}|[A-Z]\\.{{3}})" if letter.isalpha() else gap + form)
        gap = f"{blank}?"
    return "".join(pieces)


def letters_of(words: str) -> str:
    """Return the letters of a heading in capitals, without accents: the same however it is written."""
    return "".join(filter(str.isalpha, words)).upper().translate(_PLAIN)


_PLAIN = str.maketrans("ÉÈÊÀÇÔ", "EEEACO")
