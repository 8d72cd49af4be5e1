"""Decisions and articles of one or several Libraries, looked up as texts name them; the nearest to a missing one."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from cachetools import LRUCache

from legal_rag.citations.sources import QuotedCorpus, SourceText, SourceTexts
from legal_rag.citations.stated import StatedArticle, StatedDecision
from legal_rag.citations.verdicts import CitedSource, Nearest
from legal_rag.corpus.documents import Document
from legal_rag.graph import KnowledgeGraph, Node
from legal_rag.graph.fates import fates_of, fates_of_document, graph_of
from legal_rag.law import SERIES, Identifier, find_dates, find_identifiers
from legal_rag.law.citation import LegalCitation, legal_citation
from legal_rag.law.courts import CourtName, parse_court, words_of_value
from legal_rag.law.keys import canonical_key, relaxed_key
from legal_rag.law.outcomes import ANNULATION, CASSATION, INELIGIBLE, REJET, kinds_named, kinds_of
from legal_rag.library.filters import Filters
from legal_rag.library.library import Library

MAX_SAME_DAY = 300  # decisions of one day that are compared
MAX_NEAR = 60  # decisions whose numbers are near to a missing one, that are compared
MAX_CITING = 10  # decisions citing a number, checked for whether it is their own
HEAD, TAIL = 4000, 3000  # characters of a decision in which it states its numbers and dates
KEPT_DOCUMENTS = 2000  # in memory
# Where a decision states its date; those of its hearing and deliberation differ.
_DAY_OF_DECISION = re.compile(
    r"(?<!débats en l['’])(?:audience publique|rendue? publi|prononcée?|mise à disposition|lecture)[^.;\n]{0,80}$",
    re.IGNORECASE,
)
_HEARING = re.compile(r"[\s,;]*(?:où|à laquelle|devant|tenue|composée)\b", re.IGNORECASE)
_REJECTED = re.compile(
    r"rejett\w+\s+(?:\w+\s+){1,3}pourvoi|(?<!des )requêtes?\b(?:(?!surplus)[^.]){0,120}\brejetée", re.IGNORECASE
)
_JOINING = re.compile(r"\b(?:join\w+|jonction|connexité)\b", re.IGNORECASE)
# What may stand between the numbers of one list.
_IN_LIST = re.compile(r"(?i:[\s,;:/.()à-]|\bet\b|\bpourvois?\b|n[°os.]{1,2}|\bR\.?\s?G\.?)*+(?:[A-Z](?!\w)\s?)?")
_RECTIFIED = re.compile(r"R\d?(?: [A-Z]+)?$")


class Held(NamedTuple):
    """A document of one of the Libraries."""

    library: Library
    document: Document

    @property
    def key(self) -> tuple[str, str]:
        """The names of the Library and of the document."""
        return str(self.library.path), self.document.id

    @property
    def court(self) -> CourtName:
        """The court of a decision, by its columns, else by its title."""
        name = f"{self.document.juridiction} {self.document.formation}".strip()
        return parse_court(name or self.document.title)

    @property
    def rectifies(self) -> bool:
        """Whether a decision of the Conseil constitutionnel rectifies the one whose number it has: "93-1213R"."""
        return _RECTIFIED.search(str(self.document.extra.get("number") or "")) is not None

    def is_of_day(self, day: str) -> bool:
        """Was a decision given, read or made public on a day?"""
        document = self.document
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", document.decision_date):
            return day.startswith(document.decision_date[:4]) if document.decision_date[:4].isdecimal() else True
        if document.decision_date == day:
            return True
        text = f"{document.content[:HEAD]}\n\n{document.content[HEAD:][-TAIL:]}"
        return any(
            stated.value.isoformat() == day
            and _DAY_OF_DECISION.search(text[max(stated.start - 100, 0) : stated.start]) is not None
            and not _HEARING.match(text, stated.end)
            and abs((stated.value - date.fromisoformat(document.decision_date)).days) <= 120
            for stated in find_dates(text)
        )

    def outcomes(self) -> frozenset[str]:
        """Return how a decision ended, by its column and its ruling; see `legal_rag.law.outcomes`."""
        part = self.document.reading.operative
        ruling = self.document.content[part.start : part.end].casefold() if part else ""
        kinds = kinds_of(self.document.solution) | kinds_named(ruling)
        if "inéligible" in ruling:
            kinds |= {INELIGIBLE}
        if REJET not in kinds_of(self.document.solution) and kinds - {REJET} and not _REJECTED.search(ruling):
            kinds -= {REJET}  # of other claims
        if "cassation" in self.court.types and kinds & {CASSATION, ANNULATION}:
            kinds |= {CASSATION, ANNULATION}
        return kinds


class Shelf:
    """The Libraries in which references are looked up, and what was read of them."""

    def __init__(self, libraries: Sequence[Library]) -> None:
        self.libraries = tuple(libraries)
        self._held: LRUCache[tuple[str, str], Held] = LRUCache(KEPT_DOCUMENTS)
        self._texts = {library.path: SourceTexts(library) for library in libraries}
        self._citations: LRUCache[tuple[str, str], LegalCitation] = LRUCache(KEPT_DOCUMENTS)
        self.corpora = {library.path: QuotedCorpus(library, self._texts[library.path]) for library in libraries}

    def get(self, library: Library, doc_id: str) -> Held:
        """Return a document, read once."""
        key = str(library.path), doc_id
        if (held := self._held.get(key)) is None:
            held = self._held[key] = Held(library, library.document(doc_id))
        return held

    def text(self, held: Held) -> SourceText:
        """Return a document's text with its cached searches, and who speaks in it."""
        return self._texts[held.library.path][held.document.id]

    def title(self, held: Held) -> str:
        """Cite a document."""
        return self._citation(held).text

    def _citation(self, held: Held) -> LegalCitation:
        if (citation := self._citations.get(held.key)) is None:
            citation = self._citations[held.key] = legal_citation(held.document)
        return citation

    def source(self, held: Held) -> CitedSource:
        """Describe a document to a reader."""
        cited, document = self._citation(held), held.document
        court = ", ".join(filter(None, (document.juridiction, document.formation)))
        facts = court, document.decision_date, document.solution, cited.publication, cited.links
        return CitedSource(held.library.path.name, document.id, cited.text, *facts)

    def fate(self, held: Held) -> tuple[Nearest, ...]:
        """Return the later decisions that quashed, upheld, confirmed, reversed or rectified a decision.

        Those that its Library has, and those that a text of it reports, without an id.
        """
        graph, library = self._graphs[held.library.path], held.library.path.name
        return tuple(
            Nearest(fate.by_id, fate.by, fate.treatment, library)
            for fate in fates_of_document(graph, held.document.id)
            if not fate.undone_by
        )

    def fate_of_missing(self, stated: StatedDecision) -> tuple[Nearest, ...]:
        """Return what decisions of the Libraries did to one that none holds, named by its court, its day, its number."""
        if not stated.court or stated.date is None:
            return ()
        court, day = re.split(r"[,(]", stated.court)[0], stated.date.value.isoformat()
        numbers = {name.value for name in stated.names}
        fates = (
            (fate, library)
            for library in self.libraries
            if (graph := self._graphs[library.path])
            for node in graph.described(court, day)
            if not numbers or any(node.key.endswith(f" {number}") for number in numbers)
            for fate in fates_of(graph, node)
            if not fate.undone_by
        )
        return tuple(Nearest(fate.by_id, fate.by, fate.treatment, library.path.name) for fate, library in fates)

    def of_party(self, name: str) -> list[Held]:
        """Return decisions with a party of that name."""
        graphs = ((library, self._graphs[library.path]) for library in self.libraries)
        return [
            self.get(library, doc_id) for library, graph in graphs if graph for doc_id in graph.decisions_of_party(name)
        ]

    @property
    def has_graph(self) -> bool:
        """Whether a Library has a graph, by which laws, parties and later decisions are known."""
        return any(self._graphs.values())

    def law(self, name: str) -> Node | None:
        """Return a law, an ordinance or a decree as the decisions of a Library cite it."""
        for graph in filter(None, self._graphs.values()):
            try:
                node = graph.find(name)
            except LookupError:
                continue
            if node.type == "statute":
                return node
        return None

    @cached_property
    def _graphs(self) -> dict[Path, KnowledgeGraph | None]:
        return {library.path: graph_of(library) for library in self.libraries}

    def nearest(self, held: Held, why: str) -> Nearest:
        """Describe a document that is near to what is missing."""
        return Nearest(held.document.id, self.title(held), why, held.library.path.name)


class Decisions:
    """The decisions of some Libraries."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._named: dict[str, list[Held]] = {}  # by key
        self._days: dict[tuple[str, str], list[Held]] = {}

    def look_up(self, stated: Iterable[StatedDecision]) -> None:
        """Look up all numbers at once."""
        names = {canonical_key(name) for decision in stated for name in decision.names}
        new = sorted((names | set(map(relaxed_key, names))) - self._named.keys())
        self._named |= {key: [] for key in new}
        for library in self._shelf.libraries:
            for key, doc_ids in library.ids_named(new).items():
                self._named[key] += [self._shelf.get(library, doc_id) for doc_id in doc_ids]

    def named(self, stated: StatedDecision) -> list[Held]:
        """Return the decisions that have one of the numbers; of another series only where none is stated."""
        if stated.party:
            return self._shelf.of_party(stated.party)
        if len(stated.names) < 2:
            return [held for name in stated.names for held in self._numbered(name)]
        _, *parts = (self._numbered(name) for name in stated.names)  # of joined cases: the first is all of them
        keys = [{held.key for held in part} for part in parts]
        return [held for held in parts[0] if all(held.key in part for part in keys)]

    def _numbered(self, name: Identifier) -> list[Held]:
        if name.kind == "id":
            return [self._shelf.get(library, name.value) for library in self._shelf.libraries if name.value in library]
        key = canonical_key(name)
        return self._named.get(key) or (self._named.get(relaxed_key(key), []) if name.kind == "number" else [])

    def of_court_and_day(self, stated: StatedDecision) -> list[Held]:
        """Return the decisions of the court and the day stated; with the arrêt's own number, if that is stated."""
        if stated.date is None:
            return []
        day = stated.date.value.isoformat()
        if not stated.ruling:
            return self.of_court_on(stated.court, day) if stated.court else []
        court = parse_court(stated.court)
        same = [held for held in self._of_day(day, stated.court) if not court.contradicts(held.court)]
        numbered = re.compile(rf"\barr[êe]t\s+n\W{{0,3}}{stated.ruling}(?!\d)", re.IGNORECASE)
        return [held for held in same if numbered.search(held.document.content[:HEAD])]

    def of_court_on(self, court: str, day: str) -> list[Held]:
        """Return the decisions of a court, as a text names it, on a day (ISO 8601)."""
        name = parse_court(court)
        return [held for held in self._of_day(day, court) if name.agrees_with(held.court)]

    def _of_day(self, day: str, court: str) -> list[Held]:
        """Return the decisions of a day, of the court named alone where it is one that the Libraries know."""
        if (day, court) not in self._days:
            self._days[day, court] = [
                self._shelf.get(library, doc_id)
                for library in self._shelf.libraries
                for doc_id in _ids_of_day(library, day, court)[:MAX_SAME_DAY]
            ]
        return self._days[day, court]

    def joined(self, stated: StatedDecision) -> Held | None:
        """Return the decision whose head lists the number with its own, or joins it: a joined case."""
        name = stated.names[0] if stated.names else None
        if name is None or name.kind not in ("pourvoi", "rg"):
            return None
        for library in self._shelf.libraries:
            for doc_id in library.ids_citing(_format_identifier(name))[:MAX_CITING]:
                held = self._shelf.get(library, doc_id)
                if _head_joins(held.document, name):
                    return held
        return None

    def near(self, stated: StatedDecision) -> Iterator[Nearest]:
        """Yield decisions close to a missing one: by its digits, then by its court and day."""
        seen: set[tuple[str, str]] = set()
        for held, why in chain(
            self._near_by_joined_number(stated),
            self._near_by_digits(stated),
            ((held, "même juridiction, même jour") for held in self.of_court_and_day(stated)[:3]),
            self._near_by_citing(stated),
        ):
            if held.key not in seen:
                seen.add(held.key)
                yield self._shelf.nearest(held, why)

    def _near_by_joined_number(self, stated: StatedDecision) -> Iterator[tuple[Held, str]]:
        for name in stated.names[1:]:
            for held in self._numbered(name)[:1]:
                yield held, f"n° {name.value} seulement"

    def _near_by_digits(self, stated: StatedDecision) -> Iterator[tuple[Held, str]]:
        """Yield decisions whose numbers differ in one digit; those of the court and the day stated come first."""
        if not stated.names:
            return
        name = stated.names[0]
        keys = [canonical_key(name._replace(value=value)) for value in _number_variants(name.value)]
        found = [
            (library, doc_ids) for library in self._shelf.libraries for doc_ids in library.ids_named(keys).values()
        ]
        numbered = (self._shelf.get(library, doc_id) for library, doc_ids in found for doc_id in doc_ids[:2])
        near = {held.key: held for held in islice(numbered, MAX_NEAR)}
        court = parse_court(stated.court)

        def differs(held: Held) -> tuple[bool, bool]:
            day = stated.date.value.isoformat() if stated.date else held.document.decision_date
            return court.contradicts(held.court), held.document.decision_date != day

        for held in sorted(near.values(), key=differs):
            yield held, "un chiffre d'écart"

    def _near_by_citing(self, stated: StatedDecision) -> Iterator[tuple[Held, str]]:
        if stated.names and stated.names[0].kind in ("pourvoi", "rg", *SERIES):
            for library in self._shelf.libraries:
                try:
                    doc_ids = library.ids_citing(_format_identifier(stated.names[0]))
                except ValueError:
                    return
                for doc_id in doc_ids[:1]:
                    yield self._shelf.get(library, doc_id), "cite cette décision"

    def holds_court(self, court: CourtName) -> bool:
        """Does a Library hold any decision of a court of this type? True where the type is not stated."""
        return not court.types or any(court.types & types for types in self._court_types)

    @cached_property
    def _court_types(self) -> set[frozenset[str]]:
        rows = {row for library in self._shelf.libraries for row in library.courts()}
        return {parse_court(" ".join(row)).types for row in rows}


class Articles:
    """The articles of codes and statutes of some Libraries."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._ordered: dict[str, list[tuple[tuple[str, tuple[int, ...]], str]]] = {}

    @cached_property
    def _numbers_by_code(self) -> dict[str, set[str]]:
        codes: dict[str, set[str]] = {}
        for library in self._shelf.libraries:
            for value, code in library.own_articles():
                codes.setdefault(code, set()).add(value)
        return codes

    def holds_code(self, code: str) -> bool:
        """Does a Library hold an article of a code?"""
        return code in self._numbers_by_code

    def versions(self, code: str, value: str) -> list[Held]:
        """Return an article of an indexed code in all versions of that number, the latest first."""
        key = f"article:{value} {code}"
        held = [
            self._shelf.get(library, doc_id)
            for library in self._shelf.libraries
            for doc_id in library.ids_named([key]).get(key, ())
        ]
        return sorted(held, key=_first_day, reverse=True)

    def of(self, stated: StatedArticle, at: date) -> list[Held]:
        """Return the versions of an article that the text may mean.

        Those that fit the days or the act that it states; any where it speaks of a version without a day; else the one
        in force on the day `at`.
        """
        versions = self.versions(stated.code, stated.value) if self.holds_code(stated.code) else []
        if stated.dated:
            meant = stated.dated.versions(held.document.force for held in versions if held.document.force)
            return [held for held in versions if held.document.force in meant]
        if stated.wording.meaning != "current" if stated.wording else stated.former:
            return [held for held in versions if _was_in_force(held)] if any(map(is_dated, versions)) else []
        return [held for held in versions if is_in_force(held, at)]

    def others(self, versions: Sequence[Held]) -> list[Held]:
        """Return all versions of the articles of some versions, under other numbers too, the latest first."""
        found = {
            held.key: held
            for one in versions
            for doc_ids in one.library.articles_of([one.document.id]).values()
            for held in (self._shelf.get(one.library, doc_id) for doc_id in doc_ids)
        }
        return sorted(({held.key: held for held in versions} | found).values(), key=_first_day, reverse=True)

    def _in_order(self, code: str) -> list[tuple[tuple[str, tuple[int, ...]], str]]:
        if code not in self._ordered:
            numbers = self._numbers_by_code[code]
            self._ordered[code] = sorted((_split_article_number(number), number) for number in numbers)
        return self._ordered[code]

    def near(self, code: str, value: str) -> list[Held]:
        """Return up to three articles nearest to a missing one: of another letter, else of a neighbouring number."""
        letter, numbers = _split_article_number(value)
        known = self._in_order(code)
        same = [article for article in known if article[0][0] == letter] or known
        at = bisect_left(same, ((letter, numbers), ""))
        other_letter = [number for (_, figures), number in known if figures == numbers and number != value]
        near = [*other_letter, *(number for _, number in same[max(at - 2, 0) : at + 1])]
        return [self.versions(code, number)[0] for number in list(dict.fromkeys(near))[:3]]


def is_dated(held: Held) -> bool:
    """Is it known when an article is in force as it is here?"""
    return held.document.force is not None


def is_in_force(held: Held, day: date) -> bool:
    """Is an article in force on a day as it is here? What has no versions always is."""
    return held.document.force is None or held.document.force.holds(day)


def _was_in_force(held: Held) -> bool:
    return held.document.force is None or not held.document.force.is_empty


def days_from(held: Held, day: date) -> int:
    """Return how many days lie between a day and those on which an article is in force as it is here."""
    force = held.document.force
    return max((force.first - day).days, (day - force.until).days + 1, 0) if force else 0


def _first_day(held: Held) -> date:
    return held.document.force.first if held.document.force else date.min


def _ids_of_day(library: Library, day: str, court: str) -> list[str]:
    doc_ids = library.ids(Filters(date_from=day, date_to=day))
    if len(doc_ids) <= MAX_SAME_DAY or not words_of_value(court):
        return doc_ids
    return library.ids(Filters(date_from=day, date_to=day, juridiction=court)) or doc_ids


def _head_joins(document: Document, name: Identifier) -> bool:
    """Does a decision's head list a number with the decision's own, or say that its case is joined?"""
    head = document.content[:HEAD]
    own = {one.value for one in find_identifiers(f"n° {document.extra.get('number') or ''} {document.title}")}
    cases = [one for one in find_identifiers(head) if one.kind != "article"]
    lists: list[list[Identifier]] = []
    for one in cases:
        if lists and _IN_LIST.fullmatch(head, lists[-1][-1].end, one.start):
            lists[-1].append(one)
        else:
            lists.append([one])
    for numbers in lists:
        values = {one.value for one in numbers}
        before = head[max(numbers[0].start - 200, 0) : numbers[0].start].rpartition(". ")[2]
        if name.value in values and (values & own or _JOINING.search(before)):
            return True
    return False


def _number_variants(value: str) -> Iterator[str]:
    """Yield numbers that differ in one digit, lack one or have one more, or have two neighbouring ones exchanged."""
    for place, figure in enumerate(value):
        if figure.isdecimal():
            yield from (value[:place] + other + value[place + 1 :] for other in "0123456789" if other != figure)
    for place in range(len(value) - 1):
        pair = value[place : place + 2]
        if pair.isdecimal() and pair[0] != pair[1]:
            yield value[:place] + pair[::-1] + value[place + 2 :]
    if len(value) > 4:
        for place, figure in enumerate(value):
            if figure.isdecimal():
                yield value[:place] + value[place + 1 :]
                yield from (value[:place] + other + value[place:] for other in "0123456789")


def _format_identifier(name: Identifier) -> str:
    if name.kind == "rg":
        return f"RG {name.value}"
    return f"{name.value} {name.kind.upper()}" if name.kind in SERIES else name.value


def _split_article_number(value: str) -> tuple[str, tuple[int, ...]]:
    letter = re.match(r"[A-Z]*", value)
    return (letter.group() if letter else ""), tuple(int(figures) for figures in re.findall(r"\d{1,9}", value))
