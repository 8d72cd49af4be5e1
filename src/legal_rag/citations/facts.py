"""Checkable facts of a sentence: dates, sums, percentages, articles, case numbers, durations."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from legal_rag.corpus.patterns import (
    MONTHS,
    Identifier,
    LegalDate,
    find_amounts,
    find_article_citations,
    find_dates,
    find_identifiers,
    find_texts,
)
from legal_rag.corpus.patterns.amounts import FIGURES, NUMBER_IN_WORDS, figures_value, words_value
from legal_rag.corpus.patterns.scanning import Around

FactKind = Literal["date", "amount", "percentage", "article", "case", "month", "duration", "number", "figure"]
WEAK = frozenset({"month", "duration", "number", "figure"})  # too common to tell by themselves what is spoken of
Span = tuple[int, int]

FIGURE = re.compile(rf"(?<![\w.,/-])(?:{FIGURES})(?!\d|[-/]\d)")
_BARE_NUMBER = re.compile(rf"(?<![\w/°.,-])(?<!\d[ \u00a0\u202f]){FIGURES}(?![\w/%°]|[-–]\w|[.,]\d)")
_PERCENT = r"[ \u00a0\u202f]{0,2}(?:%|pour[ \u00a0]?cents?\b|p\.[ \u00a0]?100\b)"
_PERCENTAGE = re.compile(
    rf"(?<![\w.,])(?P<figures>{FIGURES}){_PERCENT}|(?<!\w)(?P<words>{NUMBER_IN_WORDS})[ \u00a0]pour[ \u00a0]?cents?\b",
    re.IGNORECASE,
)
_MONTH = Around(
    rf"(?<!\w)(?:(?P<day>\d{{1,2}}|1er)[ \u00a0])?(?P<month>{'|'.join(MONTHS)})(?:[ \u00a0](?P<year>\d{{4}}))?(?!\w)",
    MONTHS,
    before=5,
    after=60,
)
_UNITS = {"an": "an", "année": "an"} | {
    unit: unit for unit in ("mois", "jour", "semaine", "heure", "minute", "trimestre", "semestre")
}
_FIGURES = re.compile(r"[^\s()«»\"“”;:!?*]{0,30}\d[^\s()«»\"“”;:!?*]{0,30}")
_ORDINAL = re.compile(r"\d{1,2}(?:er|ère|re|e|è|ème|eme|nd|nde)")
_DURATION = Around(
    rf"(?<![\w.,-])(?:(?P<figures>\d{{1,4}})|(?P<words>{NUMBER_IN_WORDS}))[ \u00a0\n]{{1,2}}"
    rf"(?P<unit>{'|'.join(_UNITS)})s?(?!\w)",
    [f"{blank}{unit}" for unit in _UNITS for blank in " \u00a0\n"],
    before=60,
    after=50,
)
_WORDS = re.compile(rf"(?<![\w'’-]){NUMBER_IN_WORDS}", re.IGNORECASE)
_CURRENCY_WORDS = {"EUR": "euros", "FRF": "francs"}
_GROUP_SIGNS = (" ", "\u00a0", "\u202f", ".", ",")
_DATE_WORDS = ("mil neuf cent", "mille neuf cent", "deux mil")  # of years written in letters
MOST_PLACES = 200  # of a needle in one text that are looked at: what stands everywhere tells nothing
LIST_GAP = 8  # characters between the articles of one list: ", ", " et de l'"
MONTH_STEMS = tuple((month[:3], month[:3].replace("é", "e").replace("û", "u")) for month in MONTHS)
DAY_AFTER = 6  # characters behind a year in which its day may stand: 2024-04-01
BEFORE, AFTER = 60, 90  # characters around a needle in which its fact stands


class Fact(NamedTuple):
    """One fact, as one text writes it."""

    kind: FactKind
    value: Any  # equal for two ways of writing the same; see `is_same`
    start: int  # characters
    end: int


def find_facts(text: str) -> list[Fact]:
    """Return the facts of a text, in order; a number that is part of another fact is not one of its own."""
    dates, identifiers = find_dates(text), find_identifiers(text)
    kinds = (
        _dates(dates),
        _amounts(text),
        _percentages(text),
        _articles(text, dates, identifiers),
        _cases(identifiers),
        _months(text),
        _durations(text),
        _bare_numbers(text),
        _figures(text),
    )
    facts: list[Fact] = []
    taken = bytearray(len(text))
    for found in kinds:
        for one in found:
            if not any(taken[one.start : one.end]):
                facts.append(one)
                taken[one.start : one.end] = b"\1" * (one.end - one.start)
    return sorted(facts, key=lambda one: one.start)


def is_same(one: Fact, other: Fact) -> bool:
    """Tell whether a fact is another one; an article that is named without its text is that article of any text."""
    if one.kind != other.kind:
        return False
    if one.kind == "article":
        (number, text), (other_number, other_text) = one.value, other.value
        return bool(number == other_number and (not text or text == other_text))
    return bool(one.value == other.value)


def stands_in(fact: Fact, text: str) -> bool:
    """Tell whether a short text states a fact."""
    if fact.kind == "number":
        return fact.value in _numbers(text) or fact.value in _numbers_in_words(text)
    if fact.kind == "month":
        days = [(str(one.value.day), one.value.month, str(one.value.year)) for one in find_dates(text)]
        return any(_covers(day, fact.value) for day in (*days, *(one.value for one in _months(text))))
    if fact.kind == "figure":
        return re.search(rf"(?<![\w-]){re.escape(fact.value)}(?![\w-])", text.lower()) is not None
    if fact.kind == "duration":
        return any(one.value == fact.value for one in _durations(text))
    return bool(places_of(fact, text, text.lower()))


def places_of(fact: Fact, text: str, lower: str) -> list[Span]:
    """Return where a text states a fact, in order, reading only what stands around its figures.

    Args:
        fact: Any but a bare number.
        text: Where.
        lower: The same text in lower case, of the same length.
    """
    found: set[Span] = set()
    for at, end in _needle_places(NEEDLES[fact.kind](fact.value), lower):
        first = max(0, at - BEFORE)
        near = lower[first : end + DAY_AFTER]
        if fact.kind == "date" and lower[at:end].isdecimal() and not _may_be_day(fact.value, near):
            continue  # the year is everywhere, the day is not
        for one in FINDERS[fact.kind](text[first : end + AFTER]):
            span = (one.start + first, one.end + first)
            if is_same(fact, one) and span[0] < end and at < span[1]:
                found.add(span)
    return sorted(found)


def _may_be_day(day: date, near: str) -> bool:
    """Tell whether a few words in small letters may name a day: they have its figures, and its month's, or its name."""
    figures = str(day.day) in near or "premier" in near
    return figures and (str(day.month) in near or any(stem in near for stem in MONTH_STEMS[day.month - 1]))


def _overlap(one: Fact, other: Fact) -> bool:
    return one.start < other.end and other.start < one.end


def _dates(dates: Iterable[LegalDate]) -> Iterator[Fact]:
    return (Fact("date", one.value, one.start, one.end) for one in dates)


def _amounts(text: str) -> Iterator[Fact]:
    return (Fact("amount", (one.value, one.currency), one.start, one.end) for one in find_amounts(text))


def _percentages(text: str) -> Iterator[Fact]:
    if not any(sign in text for sign in ("%", "cent", "100", "CENT")):
        return
    for match in _PERCENTAGE.finditer(text):
        value = figures_value(match["figures"]) if match["figures"] else words_value(match["words"])
        if value is not None:
            yield Fact("percentage", value, *match.span())


def _articles(text: str, dates: Sequence[LegalDate], identifiers: Iterable[Identifier]) -> Iterator[Fact]:
    """Yield the articles named: with the text that they are of, where it is said."""
    cited = find_article_citations(text, find_texts(text, dates))
    taken = bytearray(len(text))
    of, following = "", len(text)
    for one in reversed(cited):
        taken[one.start : one.end] = b"\1" * (one.end - one.start)
        in_list = following - one.end <= LIST_GAP  # "les articles 9 et 14 du code civil": both are of that code
        of = _plain(text[one.text_start : one.text_end]) or (of if in_list else "")
        following = one.start
        yield Fact("article", (one.value, of), one.start, one.end)
    for other in identifiers:
        if other.kind == "article" and not any(taken[other.start : other.end]):
            yield Fact("article", (other.value, _plain(other.code)), other.start, other.end)


def _months(text: str) -> Iterator[Fact]:
    """Yield days without a year, and months: (day, month, year), what is not said as ""."""
    for match in _MONTH.finditer(text):
        if match["day"] or match["year"]:
            day = (match["day"] or "").lower().replace("er", "").lstrip("0")
            value = (day, MONTHS.index(match["month"].lower()) + 1, match["year"] or "")
            yield Fact("month", value, *match.span())


def _covers(day: tuple[str, int, str], wanted: tuple[str, int, str]) -> bool:
    return all(not part or part == other for part, other in zip(wanted, day, strict=True))


def _durations(text: str) -> Iterator[Fact]:
    for match in _DURATION.finditer(text):
        number = figures_value(match["figures"]) if match["figures"] else words_value(match["words"])
        if number is not None:
            yield Fact("duration", (number, _UNITS[match["unit"].lower()]), *match.span())


def _figures(text: str) -> Iterator[Fact]:
    """Yield whatever else has a figure in it, to be found as it is written; ordinals apart, which name courts."""
    for match in _FIGURES.finditer(text):
        written = match.group().strip(".,'’-–—[]").lower()
        if not _ORDINAL.fullmatch(written):
            yield Fact("figure", written, *match.span())


def _plain(name: str) -> str:
    return " ".join(name.lower().replace("’", "'").split())


def _cases(identifiers: Iterable[Identifier]) -> Iterator[Fact]:
    return (Fact("case", one.value, one.start, one.end) for one in identifiers if one.kind != "article")


def _bare_numbers(text: str) -> Iterator[Fact]:
    return (Fact("number", figures_value(match.group()), *match.span()) for match in _BARE_NUMBER.finditer(text))


def _numbers(text: str) -> set[Decimal]:
    return {figures_value(match.group()) for match in FIGURE.finditer(text)}


def _numbers_in_words(text: str) -> set[Decimal]:
    values = (words_value(match.group()) for match in _WORDS.finditer(text))
    return {value for value in values if value is not None}


FINDERS: dict[FactKind, Callable[[str], Iterator[Fact]]] = {
    "date": lambda text: _dates(find_dates(text)),
    "amount": _amounts,
    "percentage": _percentages,
    "article": lambda text: _articles(text, find_dates(text), find_identifiers(text)),
    "case": lambda text: _cases(find_identifiers(text)),
}


def _date_needles(value: Any) -> list[str]:
    return [str(value.year), *_DATE_WORDS]


def _amount_needles(value: Any) -> list[str]:
    number, currency = value
    whole = int(number)
    needles = list(dict.fromkeys([str(whole), *(f"{whole:,}".replace(",", sign) for sign in _GROUP_SIGNS)]))
    if whole % 1_000_000 == 0 and whole:
        needles.append("million")
    if (whole % 100 == 0 or whole < 100) and currency in _CURRENCY_WORDS:
        needles.append(_CURRENCY_WORDS[currency] if whole < 100 else f" {_CURRENCY_WORDS[currency]}")
    return needles


def _percentage_needles(value: Any) -> list[str]:
    whole, _, decimals = f"{value.normalize():f}".partition(".")
    if decimals:
        return [f"{whole}{sign}{decimals[0]}" for sign in ",."]
    return [f"{whole}{sign}" for sign in " %,.\u00a0\u202f"] + [" pour cent"]


def _article_needles(value: Any) -> list[str]:
    number = value[0].lower()
    digits = re.search(r"\d[\d-]*", number)
    if digits is None:
        return [number]
    if len(digits.group()) > 2:
        return [digits.group()]
    return [f"{lead}{digits.group()}" for lead in (" ", ".", "\u00a0")]


def _case_needles(value: Any) -> list[str]:
    number = str(value).lower()
    short = re.match(r"\d\d-\d\d(?=\d{3}$)|\d{1,4}/", number)
    return [short.group() if short else number]


NEEDLES: dict[FactKind, Callable[[Any], list[str]]] = {
    "date": _date_needles,
    "amount": _amount_needles,
    "percentage": _percentage_needles,
    "article": _article_needles,
    "case": _case_needles,
}


def _needle_places(needles: Sequence[str], lower: str) -> Iterator[Span]:
    for needle in needles:
        at, n = lower.find(needle), 0
        while at >= 0 and n < MOST_PLACES:
            yield at, at + len(needle)
            at, n = lower.find(needle, at + len(needle)), n + 1
