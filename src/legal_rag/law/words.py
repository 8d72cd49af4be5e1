"""Closed lists of words: months, days of the week, ordinals, titles of persons, negations, headings of decisions."""

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Literal, NamedTuple

from legal_rag.base.text import without_accents
from legal_rag.law.scanning import read_table
from legal_rag.law.tree import PartKind, Speaker

MONTHS = (
    "janvier", "février", "mars", "avril", "mai", "juin",
    "juillet", "août", "septembre", "octobre", "novembre", "décembre",
)  # fmt: skip
SHORT_MONTHS = ("janv.", "févr.", "mars", "avr.", "mai", "juin", "juill.", "août", "sept.", "oct.", "nov.", "déc.")
ENGLISH_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
WEEKDAYS = ("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche")


def _with_unaccented(words: dict[str, int]) -> dict[str, int]:
    return words | {without_accents(word): number for word, number in words.items()}


# The numbers of months by their spellings in lower case, without full stop: in full, and in full or short.
FULL_MONTHS = _with_unaccented({month: number for number, month in enumerate(MONTHS, start=1)})
FRENCH_MONTHS = FULL_MONTHS | _with_unaccented(
    {"fév": 2, "juil": 7} | {month.rstrip("."): number for number, month in enumerate(SHORT_MONTHS, start=1)}
)
MONTH_NUMBERS = FRENCH_MONTHS | {month: number for number, month in enumerate(ENGLISH_MONTHS, start=1)}

_FIRST = {"premier": 1, "première": 1, "second": 2, "seconde": 2}
_NUMBERED = (
    "deuxième troisième quatrième cinquième sixième septième huitième neuvième dixième onzième douzième treizième"
    " quatorzième quinzième seizième dix-septième dix-huitième dix-neuvième vingtième"
)
ORDINALS = _with_unaccented(_FIRST | {word: number for number, word in enumerate(_NUMBERED.split(), start=2)})

TITLES_OF_MEN = frozenset("m mr monsieur sieur".split())
TITLES_OF_WOMEN = frozenset("mme mlle madame mademoiselle dame demoiselle".split())
TITLES_OF_ANYONE = frozenset("me maître maitre dr docteur pr".split())
# What precedes a person's name, in lower case, without full stop.
TITLES = frozenset().union(
    *(TITLES_OF_MEN, TITLES_OF_WOMEN, TITLES_OF_ANYONE),
    "mm mmes mlles messieurs mesdames mes maîtres maitres veuve vve époux epoux épouse epouse consorts cts".split(),
)


class Negation(NamedTuple):
    """A row of `negation.toml`, which says what each field means."""

    word: str
    example: str
    kind: Literal["not", "except"] = "not"
    verb: bool = False
    after: bool = False


NEGATIONS = tuple(Negation(**row) for row in read_table("negation.toml")["negation"])


def negations(**fields: object) -> str:
    """Return a pattern of the words whose rows have these values, in lower case."""
    rows = (row for row in NEGATIONS if all(getattr(row, name) == value for name, value in fields.items()))
    return rf"\b(?:{'|'.join(row.word for row in rows)})(?:(?<=['’])|\b)"  # no border follows "n'" before a cut


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
    """Return a pattern for phrases in capitals, their letters spaced by `blank`, without accents or pseudonymised.

    Of two that begin alike the longer is tried first; without any the pattern matches nothing.
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
