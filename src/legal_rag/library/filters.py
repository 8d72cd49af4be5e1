"""Filters by metadata and by entities, and the SQL that applies them."""

import json
import logging
import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from legal_rag.base.html import displayed
from legal_rag.base.text import key_of
from legal_rag.extraction.entities import JURISPRUDENCE, KNOWN_CLASSES
from legal_rag.extraction.lookup import (
    FoundEntity,
    Passing,
    discriminative_documents,
    documents_with_entities,
    entities_like,
    wanted_entity,
)
from legal_rag.law import find_dates
from legal_rag.law.courts import words_of_value
from legal_rag.law.keys import ParsedQuery, article_keys, candidate_keys, candidate_keys_of_number, decision_keys
from legal_rag.law.tree import PART_KINDS, SPEAKERS, PartKind, Speaker
from legal_rag.library.store import has_table, has_versions, knows_fallen, present_at

if TYPE_CHECKING:
    from legal_rag.extraction.store import ExtractionStore

logger = logging.getLogger(__name__)

IS_DATE = "decision_date GLOB '[0-9][0-9][0-9][0-9]*'"  # neither 'inconnue' nor empty
LONGEST_CONDITION = 500  # characters of one condition: a name, a number, a date
MAX_NAMED = 1000  # documents that a reference may identify; one of more is a subject
TEXTS = "juridiction formation solution date_from date_to number article speaker section at".split()
# What people write for who speaks, and for a decision's main parts; without accents and hyphens.
IN_FRENCH: dict[str, Speaker | PartKind] = {
    "juridiction": "court", "cour": "court", "partie": "party", "parties": "party", "texte": "text",
    "decision attaquee": "lower_court", "juges du fond": "lower_court",
    "en tete": "header", "expose": "statement", "faits": "statement", "visas": "statement",
    "moyens": "claims", "pretentions": "claims", "motifs": "reasons", "dispositif": "ruling", "moyens annexes": "annex",
}  # fmt: skip


class UnsupportedFilterError(ValueError):
    """The corpus is not indexed for a filter: it has no entities, or no such column."""


@displayed
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
    entity: str | tuple[str, ...] | None = None  # extracted: "partie=Société Lever", "montant=1 000 francs"
    speaker: Speaker | None = None  # who speaks in the passage: "court", "party", "lower_court", "text"
    standing: bool | None = None  # not known to be quashed or reversed
    published: bool | None = None  # in the Bulletin, the Recueil Lebon or a report of its court
    section: PartKind | None = None  # main part of the decision; in French too: "motifs", "dispositif"
    at: date | None = None  # of an article, its version in force on this day, which a text may say; others pass

    def __post_init__(self) -> None:
        if self.doc_ids is not None:
            object.__setattr__(self, "doc_ids", tuple(self.doc_ids))  # any iterable is accepted
        for name in TEXTS:
            _require_short(name, getattr(self, name))
        for name in ("juridiction", "formation", "solution"):
            value = getattr(self, name)
            if value is not None and not words_of_value(value):
                raise ValueError(f"{name} {value!r:.200} names none (expected e.g. 'Cass. soc.' or 'Rejet')")
        for name, last in (("date_from", False), ("date_to", True)):
            object.__setattr__(self, name, _parse_day(name, getattr(self, name), last=last))
        object.__setattr__(self, "at", read_day("at", self.at))
        if self.article is not None:
            article_keys(self.article)
        object.__setattr__(self, "speaker", _resolve_choice("speaker", self.speaker, SPEAKERS))
        object.__setattr__(self, "section", _resolve_choice("section", self.section, PART_KINDS))
        if self.entity is not None:
            conditions = (self.entity,) if isinstance(self.entity, str) else tuple(self.entity)
            object.__setattr__(self, "entity", conditions)
            for condition in conditions:
                _require_short("entity", condition)
                wanted_entity(condition)

    def __bool__(self) -> bool:
        """Tell whether any condition is set."""
        return any(getattr(self, field.name) is not None for field in fields(self))


def _require_short(name: str, value: object) -> None:
    if isinstance(value, str) and len(value) > LONGEST_CONDITION:
        raise ValueError(f"{name} of {len(value)} characters (expected at most {LONGEST_CONDITION})")


def fitting(wanted: str, values: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the values that have all words of `wanted`."""
    words = words_of_value(wanted)
    return [value for value in values if words <= words_of_value(" ".join(value))]


def _resolve_choice(name: str, value: str | None, choices: Sequence[str]) -> str | None:
    """Resolve a value written in French or by its own name; ValueError if it is none of `choices`."""
    if value is None:
        return None
    named: dict[str, str] = {key_of(choice): choice for choice in choices} | IN_FRENCH
    if (meant := named.get(key_of(value))) not in choices:
        french = ", ".join(f"{words!r}" for words, choice in IN_FRENCH.items() if choice in choices)
        raise ValueError(f"unknown {name} {value!r:.200} (expected {', '.join(choices)}; in French {french})")
    return meant


def _parse_day(name: str, value: str | date | None, *, last: bool) -> date | None:
    """Read a day: a date, '2023-11-08', '8 novembre 2023', '08/11/2023', or a year."""
    if isinstance(value, str) and re.fullmatch(r"\s*\d{4}\s*", value) and (year := int(value)):
        return date(year, 12, 31) if last else date(year, 1, 1)
    return read_day(name, value, " or '2023'")


def read_day(name: str, value: str | date | None, others: str = "") -> date | None:
    """Read a day: a date, '2023-11-08', '8 novembre 2023', '08/11/2023'; ValueError, with `others`, if it is none."""
    if value is None or isinstance(value, date):
        return value.date() if isinstance(value, datetime) else value
    dates = find_dates(text := value.strip())
    if len(dates) != 1 or (dates[0].start, dates[0].end) != (0, len(text)):
        expected = "'2023-11-08', '8 novembre 2023'" if others else "'2023-11-08' or '8 novembre 2023'"
        raise ValueError(f"{name} is no day: {value!r:.200} (expected e.g. {expected}{others})")
    return dates[0].value


class Condition(NamedTuple):
    """SQL condition on a row of `documents`, with the values of its placeholders."""

    sql: str
    values: tuple[Any, ...]


NONE = Condition("FALSE", ())


def compile_filters(filters: Filters, connection: sqlite3.Connection, commit: int) -> Iterator[Condition]:
    """Compile filters, but for entities, to conditions that a document must all meet at a commit.

    UnsupportedFilterError if the store does not hold what a filter asks.
    """
    present = present_at(commit)
    wanted_courts = [court for court in (filters.juridiction, filters.formation) if court is not None]
    courts = distinct(connection, ("juridiction", "formation")) if wanted_courts else []
    for court in wanted_courts:
        yield _values_condition(("juridiction", "formation"), fitting(court, courts))
    if filters.solution is not None:
        yield _values_condition(("solution",), _fit_outcomes(filters.solution, distinct(connection, ("solution",))))
    if filters.date_from is not None:
        first = str(filters.date_from).removesuffix("-01-01")  # a column may hold a year alone
        yield Condition(f"{IS_DATE} AND decision_date >= ?", (first,))
    if filters.date_to is not None:
        yield Condition(f"{IS_DATE} AND decision_date <= ?", (str(filters.date_to),))
    if filters.number is not None:
        yield _names_condition(_select_known_keys(candidate_keys_of_number(filters.number), connection, present))
    if filters.article is not None:
        yield _names_condition(article_keys(filters.article), identifying=False)
    if filters.standing:
        if not knows_fallen(connection, commit):
            raise UnsupportedFilterError(
                "standing: not stored at this commit: 'legal-rag rebuild --only graph' does it"
            )
        yield Condition("document_key NOT IN (SELECT document_key FROM fallen)", ())
    if filters.published:
        if not has_table(connection, "published"):
            raise UnsupportedFilterError("published: not stored here: 'legal-rag rebuild --only words' does it")
        yield Condition("document_key IN (SELECT document_key FROM published)", ())
    if filters.doc_ids is not None:
        yield Condition("id IN (SELECT value FROM json_each(?))", (json.dumps(filters.doc_ids),))
    if filters.at is not None and has_versions(connection):
        other = "SELECT 1 FROM versions WHERE document_key = documents.document_key AND (first > ? OR until <= ?)"
        yield Condition(f"NOT EXISTS ({other})", (str(filters.at), str(filters.at)))


def _fit_outcomes(outcome: str, values: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the outcomes that have all words of `outcome`, or else those of its kind."""
    from legal_rag.law.outcomes import of_its_kinds

    return fitting(outcome, values) or [(value,) for value in of_its_kinds(outcome, (value for (value,) in values))]


def unknown_values(filters: Filters, connection: sqlite3.Connection) -> dict[str, list[str]]:
    """Return, for each filter by court, chamber or outcome whose value no document has, the existing values.

    The nearest in spelling come first.
    """
    columns = {"juridiction": ("juridiction", "formation"), "formation": ("juridiction", "formation")}
    unknown = {}
    for name in ("juridiction", "formation", "solution"):
        value = getattr(filters, name)
        if value is None:
            continue
        rows = distinct(connection, columns.get(name, (name,)))
        if not (fitting(value, rows) if name in columns else _fit_outcomes(value, rows)):
            values = {row[columns.get(name, (name,)).index(name)] for row in rows} - {""}
            nearest = get_close_matches(value, values, n=len(values) or 1, cutoff=0)
            unknown[name] = nearest
    return unknown


def own_name_condition(query: ParsedQuery, connection: sqlite3.Connection, present: str) -> Condition | None:
    """Return the condition that the query identifies a document; None if it matches none, or over `MAX_NAMED`."""
    return _few_condition(_select_known_keys(candidate_keys(query), connection, present), connection, present)


def citing_condition(query: ParsedQuery, connection: sqlite3.Connection, present: str) -> Condition | None:
    """Return the condition that a document cites a decision in the query; None as for `own_name_condition`."""
    return _few_condition(decision_keys(query), connection, present, identifying=False)


def naming_condition(name: str) -> Condition:
    """Return the condition that a document cites an article or a decision other than itself, without limit.

    ValueError if the name is neither an article nor a decision.
    """
    held = "SELECT document_key FROM names WHERE own = 0 AND term IN (SELECT value FROM json_each(?))"
    return Condition(f"document_key IN ({held})", (json.dumps(decision_keys(ParsedQuery(name)) or article_keys(name)),))


def _select_known_keys(candidates: Sequence[Sequence[str]], connection: sqlite3.Connection, present: str) -> list[str]:
    """Return the first key of each list that a present document has as its own; lists without one are left out."""
    if not candidates:
        return []
    held = f"""
        SELECT value FROM json_each(?) WHERE EXISTS (
            SELECT 1 FROM names INDEXED BY names_own JOIN documents USING (document_key)
            WHERE term = value AND own AND {present}
        )
    """  # noqa: S608
    keys = json.dumps([key for keys in candidates for key in keys])
    known = {key for (key,) in connection.execute(held, (keys,))}
    return [next(key for key in keys if key in known) for keys in candidates if not known.isdisjoint(keys)]


def distinct(connection: sqlite3.Connection, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the distinct value combinations of some indexed columns, sorted, by one statement.

    A loose index scan: one index seek per combination, however many documents share it.
    """
    names, marks = ", ".join(columns), ", ".join(f"value.{name}" for name in columns)
    query = f"""
        WITH RECURSIVE value AS (
            SELECT * FROM (SELECT {names} FROM documents ORDER BY {names} LIMIT 1)
            UNION ALL
            SELECT {", ".join(f"documents.{name}" for name in columns)} FROM value CROSS JOIN documents
            WHERE documents.document_key = (
                SELECT document_key FROM documents WHERE ({names}) > ({marks}) ORDER BY {names} LIMIT 1
            )
        )
        SELECT * FROM value
    """  # noqa: S608
    return connection.execute(query).fetchall()


def _values_condition(columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Condition:
    if not rows:
        return NONE
    marks = ", ".join(f"({', '.join('?' * len(columns))})" for _ in rows)
    return Condition(f"({', '.join(columns)}) IN (VALUES {marks})", tuple(value for row in rows for value in row))


def _names_condition(terms: Sequence[str], *, identifying: bool = True) -> Condition:
    source = "names INDEXED BY names_own WHERE own AND" if identifying else "names WHERE"
    held = f"SELECT document_key FROM {source} term IN (SELECT value FROM json_each(?))"  # noqa: S608
    return Condition(f"document_key IN ({held})", (json.dumps(terms),))


def _few_condition(
    keys: Sequence[str], connection: sqlite3.Connection, present: str, *, identifying: bool = True
) -> Condition | None:
    """Return the condition on documents with one of some keys; None unless 1 to `MAX_NAMED` documents meet it."""
    if not keys:
        return None
    condition = _names_condition(keys, identifying=identifying)
    matching = f"SELECT 1 FROM documents WHERE {condition.sql} AND {present} LIMIT {MAX_NAMED + 1}"  # noqa: S608
    query = f"SELECT COUNT(*) FROM ({matching})"  # noqa: S608
    (n,) = connection.execute(query, condition.values).fetchone()
    return condition if 0 < n <= MAX_NAMED else None


class LibraryEntities:
    """The entities of a Library, opened on first use."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._store: ExtractionStore | None = None
        self._lock = threading.Lock()

    @property
    def store(self) -> "ExtractionStore | None":
        """The store of entities; None if nothing was extracted yet."""
        with self._lock:
            if self._store is None and self._file.is_file():
                from legal_rag.extraction.store import ExtractionStore

                self._store = ExtractionStore(self._file)
            return self._store

    def conditions(self, wanted: Sequence[str] | None) -> list[Condition]:
        """Compile the entity filter, if there is one, to a condition on documents.

        UnsupportedFilterError if nothing, or nothing of that class, was extracted.
        """
        if wanted is None:
            return []
        if self.store is None:
            raise UnsupportedFilterError(f"no entities in {self._file.parent}: 'legal-rag extract' finds them")
        entities = [wanted_entity(condition) for condition in wanted]
        for name in {entity.extraction_class for entity in entities}.difference(KNOWN_CLASSES):
            if not self.store.has_class(name):
                expected = ", ".join(JURISPRUDENCE)
                raise UnsupportedFilterError(f"no entities of class {name!r} (expected e.g. {expected})")
        doc_ids = documents_with_entities(entities, self.store)
        return [_documents_condition(doc_ids, self.store)]

    def like(self, question: str | ParsedQuery, passing: Passing, most: int) -> list[FoundEntity]:
        """Return the entities most like a question; none if there are none, or the file is damaged, which is logged.

        UnsupportedFilterError if the Library is not indexed for what `passing` asks.
        """
        try:
            return entities_like(question, self.store, passing, most) if self.store else []
        except UnsupportedFilterError:
            raise
        except (sqlite3.DatabaseError, ValueError, TypeError, KeyError) as error:  # a damaged file may hold anything
            self._warn(error)
            return []

    def discriminative(self, question: str | ParsedQuery) -> Condition | None:
        """Return the condition that a document has a discriminative (low document frequency) entity of the question.

        None if none has, or if the file is damaged, which is logged: searching works without it.
        """
        try:
            doc_ids = discriminative_documents(question, self.store) if self.store else []
            return _documents_condition(doc_ids, self.store) if doc_ids and self.store else None
        except sqlite3.DatabaseError as error:
            self._warn(error)
            return None

    def _warn(self, error: Exception) -> None:
        logger.warning("%s cannot be read (%s): delete it, 'legal-rag extract' makes it anew", self._file, error)


def _documents_condition(doc_ids: Iterable[str], store: "ExtractionStore") -> Condition:
    held = json.dumps(list(store.held_hashes(doc_ids).items()))
    pairs = "SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?)"
    return Condition(f"(id, content_hash) IN ({pairs})", (held,))
