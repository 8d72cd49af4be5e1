"""Dates, durations, time limits, sums of money and numbers in French legal text, with their values."""

import re
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from legal_rag.base.html import displayed
from legal_rag.base.text import Span
from legal_rag.law.scanning import BLANK, DASH, FIRST, Around, Led, Scan
from legal_rag.law.words import ENGLISH_MONTHS, FRENCH_MONTHS, MONTH_NUMBERS, ORDINALS

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


@displayed
class LegalDate(NamedTuple):
    """A date in a text."""

    value: date
    start: int  # characters
    end: int


_ENGLISH_MONTH = "|".join(ENGLISH_MONTHS)
_MONTH = "|".join(sorted(FRENCH_MONTHS, key=len, reverse=True))
_DAY = rf"\d{{1,2}}|1{BLANK}?er|premier|{NUMBER_IN_WORDS}"
_YEAR = rf"\d{{4}}|{NUMBER_IN_WORDS}"
_BEGIN_WORDS = ("mars", "mai")  # as in "mais": they are looked for with the blank after them
_MONTH_STEMS = [
    *(month for month in FRENCH_MONTHS if month not in _BEGIN_WORDS),
    *(f"{month}{blank}" for month in _BEGIN_WORDS for blank in " \u00a0\t\u202f"),
]
_DATES: tuple[Scan, ...] = (
    # Both begin with a digit, so that `re` skips all else.
    Scan(rf"(?P<y>\d{FIRST}\d{{3}})-(?P<m>\d\d)-(?P<d>\d\d)(?![\w/-])"),
    Scan(rf"(?P<d>\d{FIRST}\d?)(?P<s>[/.-])(?P<m>\d{{1,2}})(?P=s)(?P<y>\d{{4}}|\d\d)(?![\w/-])"),
    Around(
        rf"(?<!\w)(?P<d>{_DAY}) (?P<m>{_MONTH})\.? (?P<y>{_YEAR})(?!\w)",
        _MONTH_STEMS,
        25,
        90,
    ),
    Around(
        rf"(?<!\w)(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<m>{_ENGLISH_MONTH}),? (?P<y>\d{{4}})(?!\w)",
        ENGLISH_MONTHS,
        10,
        40,
    ),
    Around(
        rf"(?<!\w)(?P<m>{_ENGLISH_MONTH}) (?P<d>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<y>\d{{4}})(?!\w)",
        ENGLISH_MONTHS,
        1,
        40,
    ),
    Around(
        rf"(?<!\w)an (?P<y>{NUMBER_IN_WORDS})_,? (?:et )?le (?P<d>{_DAY}) (?P<m>{_MONTH})(?!\w)",
        ["an ", "an\u00a0", "an\t", "an\u202f"],
        1,
        160,
    ),
)


def find_dates(text: str) -> list[LegalDate]:
    """Find full dates, in figures (08/11/2023, 2023-11-08, 8 novembre 2023) and in words, in text order.

    English months count too. Two-digit years mean 1930 to 2029; impossible dates are skipped.
    """
    matches = [match for pattern in _DATES for match in pattern.finditer(text)]
    dates = [LegalDate(value, *match.span()) for match in matches if (value := _parse_date(match)) is not None]
    dates.sort(key=lambda day: (day.start, -day.end))
    return [day for i, day in enumerate(dates) if not i or day.start >= dates[i - 1].end]


def _parse_date(match: re.Match[str]) -> date | None:
    day, month, year = match["d"].lower(), match["m"].lower(), match["y"].lower()
    try:
        return date(_year_of(year), MONTH_NUMBERS.get(month) or int(month), _day_of(day))
    except ValueError:  # the 31st of a shorter month, a month of 13, an unknown spelling
        return None


def _day_of(text: str) -> int:
    figures = re.match(r"\d+", text)
    return int(figures.group()) if figures else 1 if text == "premier" else int(words_value(text) or 0)


def _year_of(text: str) -> int:
    if not text.isdecimal():
        year = int(words_value(text) or 0)
        return year if 1900 <= year < 2100 else 0
    return int(text) if len(text) == 4 else (1900 if text >= "30" else 2000) + int(text)


_UNITS_OF_TIME = (
    r"(?:jours?(?:[ ]francs?|[ ]ouvrables?|[ ]ouvrés?|[ ]calendaires?)?|semaines?|mois|ans?|années?|heures?)(?!\w)"
)
_COUNT = (
    rf"(?:\d{{1,3}}(?:{BLANK}?\([^()]{{1,20}}\))?|(?:{NUMBER_IN_WORDS})(?:{BLANK}?\(\d{{1,3}}\))?|quinzaine{BLANK}de)"
)
_DURATION = f"{_COUNT} {_UNITS_OF_TIME}"
_EACH = r"(?:jour|semaine|mois|année|an|trimestre|semestre|heure)(?:[ ](?:travaillée?|civile?|calendaire))?(?!\w)"
_MEASURED = Around(
    rf"(?<![\w,.])(?P<number>\d{{1,3}}(?:,\d{{1,2}})?|{NUMBER_IN_WORDS}|quinzaine{BLANK}de)"
    rf"(?:{BLANK}?\([^()]{{1,20}}\))? (?P<unit>jour|semaine|mois|année|an|heure)s?(?!\w)(?P<half> et demie?(?!\w))?"
    rf"(?: (?:francs?|ouvrables?|ouvrés?|calendaires?)(?!\w))?(?P<rate> (?:par|chaque) (?P<each>{_EACH}))?",
    [f"{blank}{unit}" for unit in ("jour", "semaine", "mois", "an", "heure") for blank in " \u00a0\u202f"],
    60,
    90,
)
_WORD = r"[^\W\d_]+(?:['’-][^\W\d_]+)*"
# Words before a duration that make it a time limit; those of `_NAMED` belong to its name.
_NAMED = "délais? (?:d['’]|de )"
_LEADS = (
    f"délais? (?:{_WORD} ){{0,5}}(?:d['’]|de )",
    f"dans les (?:{_WORD} ){{0,1}}",
    "(?:au plus tard|avant l['’]expiration|à l['’]issue|au bout) (?:des?|d['’]|de la période de|les) ?",
    f"(?:préavis|prescriptions?(?: {_WORD}){{0,2}}|forclusion|sursis) (?:d['’]|de )",
    "sous (?:un )?",
    f"se prescri(?:t|vent)(?: {_WORD}){{0,2}} par ",
)
# Words after a duration that make it a time limit.
_TAIL = " (?:à (?:compter|partir|dater)|(?:qui suiv(?:ent|aient|ront)|suivant|après|avant|au moins avant) )"
_NAMED_LIMIT = Led(rf"(?<!\w){_NAMED}(?:{_DURATION})", ["délai"])
_LED_LIMIT = Led(
    rf"(?<!\w)(?:{'|'.join(_LEADS)})(?P<duration>{_DURATION})",
    "délai|dans|au plus|avant l|à l|au bout|préavis|prescription|forclusion|sursis|sous|se prescri".split("|"),
)
_TAILED = Around(
    rf"(?<=\bles[ ]){_DURATION}(?={_TAIL})", [" jour", " semaine", " mois", " an", " heure", "quinzaine"], 60, 90
)


@displayed
class LegalDuration(NamedTuple):
    """A duration in a text: "deux jours et demi ouvrables par mois"."""

    value: Decimal  # 2.5
    unit: str  # singular: "jour", "semaine", "mois", "an", "heure"
    each: str  # unit of a rate ("mois"), else ""
    start: int  # characters, without the rate
    end: int


def find_durations(text: str) -> list[LegalDuration]:
    """Find all durations, in figures and in words, in text order, whether or not they are time limits."""
    durations = []
    for match in _MEASURED.finditer(text):
        value = _parse_count(match["number"])
        if value is not None:
            unit = {"année": "an"}.get(match["unit"].lower(), match["unit"].lower())
            half = Decimal("0.5") if match["half"] else 0
            end = match.start("rate") if match["rate"] else match.end()
            durations.append(LegalDuration(value + half, unit, (match["each"] or "").lower(), match.start(), end))
    return durations


def _parse_count(number: str) -> Decimal | None:
    if number[0].isdecimal():
        return Decimal(number.replace(",", "."))
    return Decimal(15) if number.lower().startswith("quinzaine") else words_value(number)


def find_time_limits(text: str) -> list[Span]:
    """Find durations that their context makes time limits, with a preceding 'délai de' included."""
    limits = {match.span() for match in _NAMED_LIMIT.finditer(text)}
    ends = {end for _, end in limits}
    for pattern, group in ((_LED_LIMIT, "duration"), (_TAILED, 0)):
        spans = (match.span(group) for match in pattern.finditer(text))
        limits |= {span for span in spans if span[1] not in ends}
        ends |= {end for _, end in limits}
    return sorted(limits)


@displayed
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
_SUM_IN_FIGURES = Around(
    rf"{_NOT_WITHIN}(?P<number>{FIGURES}){BLANK}{{0,3}}(?:{_SCALE})?{BLANK}{{0,3}}(?:{_CURRENCY})"
    rf"(?:{BLANK}{{1,3}}(?:et{BLANK}{{1,3}})?(?P<cents>\d{{1,2}}){BLANK}{{0,3}}(?:centimes?\b|cts?\b\.?|c\.))?",
    [*_MONEY, *_SIGNS],
    40,
    80,
)
# As banks and the English write: "EUR 1,000,000", "€ 1 500,50", "$15,000.00"; commas part thousands, in two groups or
# where the currency leads. Not the cents of "12 € 50".
_COMMAS = r"\d{1,3}(?:,\d{3}(?!\d))"
_SIGN_FIRST = Around(
    rf"(?<![\w,./-])(?<!\d[ \u00a0\u202f])(?:(?P<EUR>EUR|€)|(?P<USD>US[D$]|\$)|(?P<GBP>GBP|£)|(?P<CHF>CHF))"
    rf"{BLANK}{{0,2}}(?P<number>{_COMMAS}{{1,4}}(?:\.\d\d(?!\d))?|{FIGURES})(?![\w%/]|[.,]\d)",
    ["EUR", "€", "USD", "US$", "$", "GBP", "£", "CHF"],
    2,
    40,
)
_WITH_COMMAS = Around(
    rf"{_NOT_WITHIN}(?P<number>{_COMMAS}{{2,4}}(?:\.\d\d(?!\d))?){BLANK}{{0,3}}(?:{_CURRENCY})",
    [*_MONEY, *_SIGNS],
    40,
    80,
)
_SUM_IN_WORDS = Around(
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
    figures = _SUM_IN_FIGURES.finditer(text)
    with_commas = (match for scan in (_SIGN_FIRST, _WITH_COMMAS) for match in scan.finditer(text))
    amounts = [_amount(match, figures_value(match["number"]), match["cents"]) for match in figures]
    amounts += [_amount(match, _parted_value(match["number"])) for match in with_commas]
    for match in _SUM_IN_WORDS.finditer(text):
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
