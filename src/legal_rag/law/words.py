"""Closed lists of words: months, days of the week, ordinals, titles of persons."""

import re

from legal_rag.base.text import without_accents
from legal_rag.law.amounts import words_value

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


def ordinal_value(word: str) -> int | None:
    """Parse an ordinal in lower case; None for a word that is none.

    >>> ordinal_value("seconde"), ordinal_value("trente-quatrième"), ordinal_value("vingt et unième")
    (2, 34, 21)
    """
    if word in ORDINALS:
        return ORDINALS[word]
    stem = re.sub("ièmes?$", "", word).replace("cinqu", "cinq").replace("neuv", "neuf")
    value = words_value(stem) or words_value(f"{stem}e")  # "deuxième", but "onzième"
    return None if value is None else int(value)
