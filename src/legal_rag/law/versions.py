"""When the text of an article is in force: from which day on, up to which day, by its source's columns."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple

from legal_rag.base.html import displayed
from legal_rag.law.words import MONTHS

NEVER = "MODIFIE_MORT_NE"  # DILA's state of a version replaced before its first day
POSTPONED = "VIGUEUR_DIFF"  # its state of a version whose first day may not be known yet
CREATES = ("CREE", "CREATION")  # its types of links to the act that wrote the first version of an article
WRITES = ("MODIFIE", *CREATES)  # to the one that wrote a version
REPEALS = ("ABROGE", "ABROGATION")  # to the one that repealed it
NO_DAYS = ("2222-02-22", "2999-01-01")  # what DILA writes for a day not yet known, and for none
ENDS_LATER = "ABROGE_DIFF"  # its state of a version whose last day may not be known yet
# Its states of a version that no other one of the article replaced: what became of the article.
ENDINGS = {
    "ABROGE": "abrogé",
    ENDS_LATER: "abrogé",
    "ANNULE": "annulé",
    "DISJOINT": "disjoint",
    "PERIME": "périmé",
    "TRANSFERE": "transféré",
}


_ACT_NUMBER = re.compile(r"\bn\s?[°º]\s?(\d+(?:-\d+)+)")


@displayed
class Act(NamedTuple):
    """A law, an ordinance or a decree, as a source's link names it."""

    day: date
    number: str = ""  # "2016-1088"; empty: the link has none

    @property
    def in_french(self) -> str:
        """The act by its number and day: "acte n° 2016-1088 du 8 août 2016"."""
        return f"acte{f' n° {self.number}' * bool(self.number)} du {long_date(self.day)}"


@displayed
class Force(NamedTuple):
    """The days on which one version of an article is in force."""

    first: date  # `date.min`: not known; `date.max`: no day is set
    until: date  # the first day after; `date.max`: without end
    state: str = ""  # DILA's: "VIGUEUR", "ABROGE", "TRANSFERE"…
    acts: tuple[Act, ...] = ()  # that wrote it, by the source's links
    repeals: tuple[Act, ...] = ()  # that repealed it, by the same
    never_before: date = date.min  # no version of the article was in force before, by its text's day or its creation

    def holds(self, day: date) -> bool:
        """Was, is or will it be in force on a day?"""
        return self.first <= day < self.until

    @property
    def is_empty(self) -> bool:
        """Is it in force on no day, as far as is known?"""
        return self.first >= self.until

    @property
    def ending(self) -> str:
        """What became of the article when it ended: "article abrogé le 10 août 2016", "article qui sera abrogé le…".

        Empty of a version that is in force without end, or that another one replaced. Others may have come later.
        """
        ended = ENDINGS.get(self.state)
        if not ended:
            return ""
        if self.until == date.max:
            return "abrogation différée, sans date"
        if self.is_empty:
            return f"article {ended}"
        return f"article {'qui sera ' if self.until > date.today() else ''}{ended} le {long_date(self.until)}"

    @property
    def in_french(self) -> str:
        """When it is in force, and how it ended: "en vigueur du 3 mai 2008 au 9 août 2016, article abrogé le…"."""
        if self.first == date.max and self.state == POSTPONED:
            return "entrée en vigueur différée, sans date"
        if self.is_empty:
            return self.ending or "jamais en vigueur"
        last = "" if self.until == date.max else long_date(self.until - timedelta(days=1))
        if self.first == date.min:
            days = f"en vigueur jusqu'au {last}"
        elif last:
            days = f"en vigueur du {long_date(self.first)} au {last}"
        else:
            days = f"en vigueur {'à compter du' if self.state == POSTPONED else 'depuis le'} {long_date(self.first)}"
        return ", ".join(filter(None, (days, self.ending)))

    @property
    def version_in_french(self) -> str:
        """The same of a version: "version en vigueur depuis le 1er mai 2008", "version de l'article annulé"."""
        said = self.in_french
        of = "de l'" if said.startswith("article") else "à l'" if said.startswith("entrée") else ""
        return f"version {of}{said}"

    def on(self, day: date) -> str:
        """Say in French when it is in force, after that it is not on a day: "plus en vigueur le 3 mai 2012 : …"."""
        if self.holds(day) or self.is_empty:
            return self.in_french
        return f"{'pas encore' if day < self.first else 'plus'} en vigueur le {long_date(day)} : {self.in_french}"


def force_of(columns: Mapping[str, Any]) -> Force | None:
    """Return when a document is in force, by its columns `valid_from`, `valid_until` (excluded), `state` and `links`.

    None for one without versions, such as a decision: it is always seen. Days are ISO 8601; a day that cannot be read,
    or that DILA writes for none, counts as missing. What has ended on an unknown day is known to be in force on none.
    """
    first, until = day_of_version(columns.get("valid_from")), day_of_version(columns.get("valid_until"))
    state = str(columns.get("state") or "")
    if state == NEVER or (state == POSTPONED and first is None):
        return Force(date.max, until or date.max, state)
    if until is None and state in ENDINGS and state != ENDS_LATER:
        until = first = first or date.min
    if first is None and until is None:
        return None
    written, created, repealed = (tuple(_acts(columns.get("links"), types)) for types in (WRITES, CREATES, REPEALS))
    never_before = first if created else day_of_version(columns.get("text_signed"))
    return Force(first or date.min, until or date.max, state, written, repealed, never_before or date.min)


def order_of(columns: Mapping[str, Any]) -> tuple[date, date]:
    """Return the place of a version among those of its article; one never in force stands where it was to begin."""
    force = force_of(columns) or Force(date.min, date.max)
    return day_of_version(columns.get("valid_from")) or force.first, day_of_version(
        columns.get("valid_until")
    ) or force.until


def long_date(day: date) -> str:
    """Write a date as prose does: "1er mai 2008"."""
    return f"{'1er' if day.day == 1 else day.day} {MONTHS[day.month - 1]} {day.year}"


def _acts(links: Any, types: Sequence[str]) -> Iterator[Act]:
    for link in links if isinstance(links, list) else ():
        is_named = isinstance(link, Mapping) and link.get("type") in types and link.get("direction") == "cible"
        if is_named and (day := day_of_version(link.get("date"))):
            titled = _ACT_NUMBER.search(str(link.get("title")))
            yield Act(day, str(link.get("text_number") or (titled[1] if titled else "")))


def day_of_version(value: object) -> date | None:
    """Parse a day of a version, ISO 8601 with or without a time; None for one that DILA writes for none, or is none."""
    text = str(value or "")[:10]
    try:
        return None if text in NO_DAYS else date.fromisoformat(text)
    except ValueError:
        return None


def unreadable_day(columns: Mapping[str, Any]) -> str:
    """Describe a day of a version that is none, without which it would count as in force on any; '' if all are."""
    for name in ("valid_from", "valid_until"):
        value = columns.get(name)
        if value and str(value)[:10] not in NO_DAYS and day_of_version(value) is None:
            return f"{name} is no day: {value!r:.80} (expected e.g. '2019-06-01')"
    return ""
