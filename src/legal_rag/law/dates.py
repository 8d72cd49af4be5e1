"""Dates, durations and time limits in French legal text, with their values."""

import re
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from legal_rag.base.text import Span
from legal_rag.law.amounts import NUMBER_IN_WORDS, words_value
from legal_rag.law.scanning import BLANK, FIRST, Around, Led, Scan
from legal_rag.law.words import ENGLISH_MONTHS, FRENCH_MONTHS, MONTH_NUMBERS


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
_NUMBER = (
    rf"(?:\d{{1,3}}(?:{BLANK}?\([^()]{{1,20}}\))?|(?:{NUMBER_IN_WORDS})(?:{BLANK}?\(\d{{1,3}}\))?|quinzaine{BLANK}de)"
)
_DURATION = f"{_NUMBER} {_UNITS_OF_TIME}"
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
_LED = Led(
    rf"(?<!\w)(?:{'|'.join(_LEADS)})(?P<duration>{_DURATION})",
    "délai|dans|au plus|avant l|à l|au bout|préavis|prescription|forclusion|sursis|sous|se prescri".split("|"),
)
_TAILED = Around(
    rf"(?<=\bles[ ]){_DURATION}(?={_TAIL})", [" jour", " semaine", " mois", " an", " heure", "quinzaine"], 60, 90
)


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
    for pattern, group in ((_LED, "duration"), (_TAILED, 0)):
        spans = (match.span(group) for match in pattern.finditer(text))
        limits |= {span for span in spans if span[1] not in ends}
        ends |= {end for _, end in limits}
    return sorted(limits)
