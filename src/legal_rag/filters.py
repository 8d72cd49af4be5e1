"""Filters: which documents a search is about, by court, chamber, outcome, date, number, article, entities or id.

In: what a user writes ("Cass. soc.", "chambre sociale", "SOCIALE"). Out: sets of words to compare with a column's
values, and days. A value fits where it has all the words asked for: "cassation" fits "Cassation partielle" too.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import date, datetime

from legal_rag.court_ranks import words_of_value
from legal_rag.extraction.terms import wanted_entity
from legal_rag.legal_patterns import MONTHS, find_dates
from legal_rag.names import article_keys


class UnsupportedFilterError(ValueError):
    """A corpus is not indexed for what a filter asks: it has no entities, or no column of that name."""


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Conditions that all must hold; None sets none."""

    juridiction: str | None = None  # court, as usually written: "Cass. soc.", "CA Lyon", "Conseil constitutionnel"
    formation: str | None = None  # chamber
    solution: str | None = None  # outcome
    date_from: str | date | None = None  # of the decision, included; a year alone is its first day
    date_to: str | date | None = None  # included; a year alone is its last day
    number: str | None = None  # the decision's own number, or its ECLI
    article: str | None = None  # that it cites, or is: "L. 1152-1 du code du travail"
    doc_ids: tuple[str, ...] | None = None
    entity: str | tuple[str, ...] | None = None  # extracted of its text: "partie=Société Lever", "montant=1 000 francs"

    def __post_init__(self) -> None:
        if self.doc_ids is not None:
            object.__setattr__(self, "doc_ids", tuple(self.doc_ids))  # any iterable is taken
        for name in ("juridiction", "formation", "solution"):
            value = getattr(self, name)
            if value is not None and not words_of_value(value):
                raise ValueError(f"{name} {value!r} names none (expected e.g. 'Cass. soc.' or 'Rejet')")
        for name, last in (("date_from", False), ("date_to", True)):
            object.__setattr__(self, name, _day(name, getattr(self, name), last=last))

        if self.article is not None:
            article_keys(self.article)
        if self.entity is not None:
            given = (self.entity,) if isinstance(self.entity, str) else tuple(self.entity)
            object.__setattr__(self, "entity", given)
            for condition in given:
                wanted_entity(condition)

    def __bool__(self) -> bool:
        """Tell whether any condition is set."""
        return any(getattr(self, one.name) is not None for one in fields(self))


def fitting(wanted: str, values: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return those of some values that have all the words of the one wanted."""
    words = words_of_value(wanted)
    return [value for value in values if words <= words_of_value(" ".join(value))]


def _day(name: str, value: str | date | None, *, last: bool) -> date | None:
    """Read a day: a date, '2023-11-08', '8 novembre 2023', '08/11/2023', or a year."""
    if value is None or isinstance(value, date):
        return value.date() if isinstance(value, datetime) else value
    text = value.strip()
    if re.fullmatch(r"\d{4}", text) and int(text):
        return date(int(text), len(MONTHS), 31) if last else date(int(text), 1, 1)
    found = find_dates(text)
    if len(found) != 1 or (found[0].start, found[0].end) != (0, len(text)):
        raise ValueError(f"{name} is no day: {value!r} (expected e.g. '2023-11-08', '8 novembre 2023' or '2023')")
    return found[0].value
