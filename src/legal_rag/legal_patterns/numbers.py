"""Numbers in French text, in figures and in words, and what they amount to."""

import re
from decimal import Decimal

from legal_rag.legal_patterns.parts import BLANK, DASH

# Words that a number in letters is made of; read by text2num, which knows "quatre-vingt-dix" and "nonante".
NUMBER_WORD = (
    "(?:zéro|une?|deux|trois|quatre|cinq|six|sept|huit|neuf|dix|onze|douze|treize|quatorze|quinze|seize|vingts?|trente|"
    "quarante|cinquante|soixante|septante|octante|huitante|nonante|cents?|mille|mil|millions?|milliards?)(?!\\w)"
)
_STEP = rf"(?:{BLANK}{{1,3}}et{BLANK}{{1,3}}|{BLANK}?{DASH}{BLANK}?(?:et{DASH})?|{BLANK}{{1,3}})"
NUMBER_IN_WORDS = rf"{NUMBER_WORD}(?:{_STEP}{NUMBER_WORD}){{0,20}}"
# "1 000", "1.000", "1 000 000,50"; a figure of four or more without groups; not a part of a longer number.
# Careless typing puts a blank behind the sign: "37. 752, 18".
_GROUPS = r"\d{1,3}(?:(?:[ .\u00a0\u202f'’]|\.[ \u00a0])\d{3}(?!\d)){1,4}"
FIGURES = rf"(?:{_GROUPS}|\d{{1,12}})(?:[.,]\d{{1,2}}(?!\d)|,[ \u00a0]\d\d(?!\d))?"


def figures_value(text: str) -> Decimal:
    """Return what figures stand for: '1 000', '1.000' and '1000' are 1000, '1.500,50' is 1500.5."""
    whole, decimals = re.fullmatch(r"(.*?)(?:[.,]\s?(\d{1,2}))?", text.strip(), re.DOTALL).groups()  # type: ignore[union-attr]
    return Decimal(f"{re.sub(r'[^0-9]', '', whole)}.{decimals or 0}")


def words_value(text: str) -> Decimal | None:
    """Return what a number in words stands for; None if it is none, such as 'vingt trente'."""
    from text_to_num import text2num

    words = re.sub(r"\bmil\b", "mille", re.sub(rf"{DASH}|\s+", " ", text.lower()))
    try:
        return Decimal(text2num(words, "fr"))
    except ValueError:
        return None
