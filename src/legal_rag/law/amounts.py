"""Sums of money and numbers in figures or words, with their values."""

import re
from decimal import Decimal
from typing import NamedTuple

from legal_rag.law.scanning import BLANK, DASH, Around

# Words that a number in letters is made of; read by text2num, which knows "quatre-vingt-dix" and "nonante".
NUMBER_WORD = (
    "(?:zéro|une?|deux|trois|quatre|cinq|six|sept|huit|neuf|dix|onze|douze|treize|quatorze|quinze|seize|vingt|trente|"
    "quarante|cinquante|soixante|septante|octante|huitante|nonante|cent|mille|mil|million|milliard)s?(?!\\w)"
)
_STEP = rf"(?:{BLANK}{{1,3}}et{BLANK}{{1,3}}|{BLANK}?{DASH}{BLANK}?(?:et{DASH})?|{BLANK}{{1,3}})"
NUMBER_IN_WORDS = rf"{NUMBER_WORD}(?:{_STEP}{NUMBER_WORD}){{0,20}}"
# "1 000", "1.000", "1 000 000,50"; a figure of four or more without groups; not a part of a longer number.
# Careless typing puts a blank after the sign: "37. 752, 18".
_GROUPS = r"\d{1,3}(?:(?:[ .\u00a0\u202f'’]|\.[ \u00a0])\d{3}(?!\d)){1,4}"
FIGURES = rf"(?:{_GROUPS}|\d{{1,12}})(?:[.,]\d{{1,2}}(?!\d)|,[ \u00a0]\d\d(?!\d))?"


def figures_value(text: str) -> Decimal:
    """Parse figures: '1 000', '1.000' and '1000' are 1000, '1.500,50' is 1500.5."""
    whole, decimals = re.fullmatch(r"(.*?)(?:[.,]\s?(\d{1,2}))?", text.strip(), re.DOTALL).groups()  # type: ignore[union-attr]
    return Decimal(f"{re.sub(r'[^0-9]', '', whole)}.{decimals or 0}")


def words_value(text: str) -> Decimal | None:
    """Parse a number in French words; None for what is not a number, such as 'vingt trente'."""
    from text_to_num import text2num

    words = re.sub(r"\bmil\b", "mille", re.sub(rf"{DASH}|\s+", " ", text.lower()))
    try:
        return Decimal(text2num(words, "fr"))
    except ValueError:
        return None


class LegalAmount(NamedTuple):
    """A sum of money in a text."""

    value: Decimal
    currency: str  # ISO 4217 where there is a code: 'EUR', 'FRF', 'USD'…
    start: int  # characters
    end: int


# Currencies as written, mis-decoded euro signs included; the named group that matched gives the code.
CURRENCIES: tuple[tuple[str, str], ...] = (
    ("XOF", r"(?:francs?|F)[ \u00a0]?C\.?F\.?A\b"),
    ("XPF", r"(?:francs?|F)[ \u00a0]?C\.?F\.?P\b|francs[ ]pacifiques?|francs[ ]pacifique"),
    ("CHF", r"francs[ ]suisses|CHF\b"),
    ("BEF", r"francs[ ]belges"),
    ("LUF", r"francs[ ]luxembourgeois"),
    ("EUR", r"€(?:uros?)?|euros?\b|EUR\b|\x80|[äç](?!\w)|(?=[ \u00a0]\d\d[ ]c\.)"),
    ("FRF", r"nouveaux[ ]francs\b|anciens[ ]francs\b|francs?\b|FRS?\b|frs?\b|(?-i:FF\b|F(?![\w'’-]))"),
    ("USD", r"dollars(?:[ ]américains|[ ]US|[ ]des[ ]Etats-Unis)?\b|USD\b|\$"),
    ("GBP", r"livres[ ]sterling\b|GBP\b|£"),
    ("DEM", r"deutsche?marks?\b|DM\b"),
    ("ITL", r"lires\b"),
)
_CURRENCY = "|".join(f"(?P<{code}>{pattern})" for code, pattern in CURRENCIES)
_SCALES = {"k": 1_000, "m": 1_000_000, "million": 1_000_000, "milliard": 1_000_000_000, "millier": 1_000}
_SCALE = r"(?P<scale>(?:millions?|milliards?|milliers?)(?:[ \u00a0]d['’]|[ \u00a0]de[ \u00a0])|[kKM](?=€|F\b|EUR))"
# Not a part of a longer number; may be glued to "de" and "à" by a typo; a minus may precede it.
_NOT_WITHIN = r"(?:(?<=\bde)|(?<=\bà)|(?<![\w,./])(?<!\w-)(?<!\d[ \u00a0\u202f])(?<!\d\.[ \u00a0]))"
_MONEY = ("franc", "euro", "dollar", "livres s", "marks", "mark ", "lires")
_SIGNS = ("€", "\x80", " ä", " ç", "$", "£", "USD", "GBP", "CHF", "dm", "F", "frs", "fr.", "fr ", "0eur", " eur", "c.")
_FIGURES = Around(
    rf"{_NOT_WITHIN}(?P<number>{FIGURES}){BLANK}{{0,3}}(?:{_SCALE})?{BLANK}{{0,3}}(?:{_CURRENCY})"
    rf"(?:{BLANK}{{1,3}}(?:et{BLANK}{{1,3}})?(?P<cents>\d{{1,2}}){BLANK}{{0,3}}(?:centimes?\b|cts?\b\.?|c\.))?",
    [*_MONEY, *_SIGNS],
    40,
    80,
)
# As banks and the English write: "EUR 1,000,000", "€ 1 500,50", "$15,000.00"; commas part thousands, in two groups or
# where the currency leads. Not the cents of "12 € 50".
_COMMAS = r"\d{1,3}(?:,\d{3}(?!\d))"
_LED = Around(
    rf"(?<![\w,./-])(?<!\d[ \u00a0\u202f])(?:(?P<EUR>EUR|€)|(?P<USD>US[D$]|\$)|(?P<GBP>GBP|£)|(?P<CHF>CHF))"
    rf"{BLANK}{{0,2}}(?P<number>{_COMMAS}{{1,4}}(?:\.\d\d(?!\d))?|{FIGURES})(?![\w%/]|[.,]\d)",
    ["EUR", "€", "USD", "US$", "$", "GBP", "£", "CHF"],
    2,
    40,
)
_PARTED = Around(
    rf"{_NOT_WITHIN}(?P<number>{_COMMAS}{{2,4}}(?:\.\d\d(?!\d))?){BLANK}{{0,3}}(?:{_CURRENCY})",
    [*_MONEY, *_SIGNS],
    40,
    80,
)
_WORDS = Around(
    rf"(?:(?<=\bd['’])|(?<![\w'’-]))(?!mill(?:ion|iard))(?P<number>{NUMBER_IN_WORDS}){BLANK}{{1,3}}(?:de{BLANK}|d['’])?"
    rf"(?:{_CURRENCY})"
    rf"(?:{BLANK}{{1,3}}(?:et{BLANK}{{1,3}})?(?P<cents>{NUMBER_IN_WORDS}){BLANK}{{1,3}}(?:centimes|cents)(?!\w))?"
    rf"(?![ ]de[ ]rente)",
    _MONEY,
    200,
    200,
)


def find_amounts(text: str) -> list[LegalAmount]:
    """Find sums of money, in figures and in words, in text order."""
    amounts = [_amount(match, figures_value(match["number"]), match["cents"]) for match in _FIGURES.finditer(text)]
    amounts += [
        _amount(match, _parted_value(match["number"])) for scan in (_LED, _PARTED) for match in scan.finditer(text)
    ]
    for match in _WORDS.finditer(text):
        if (value := words_value(match["number"])) is not None:
            amounts.append(_amount(match, value, match["cents"]))
    amounts.sort(key=lambda amount: (amount.start, -amount.end))
    kept: list[LegalAmount] = []
    for amount in amounts:
        if not kept or amount.start >= kept[-1].end:
            kept.append(amount)
    return kept


def _parted_value(text: str) -> Decimal:
    """Parse figures with optional thousands commas."""
    return Decimal(text.replace(",", "")) if re.match(rf"{_COMMAS}+", text) else figures_value(text)


def _amount(match: re.Match[str], value: Decimal, cents: str | None = None) -> LegalAmount:
    scale = re.match(r"[a-z]*?(?=s?(?![a-z]))", (match.groupdict().get("scale") or "").lower())
    currency = next(code for code, _ in CURRENCIES if match.groupdict().get(code) is not None)
    whole = value * _SCALES.get(scale.group() if scale else "", 1)
    return LegalAmount(whole + _cents(cents), currency, match.start(), match.end())


def _cents(text: str | None) -> Decimal:
    value = Decimal(text) if text and text.isdecimal() else words_value(text) if text else None
    return (value or Decimal(0)) / 100
