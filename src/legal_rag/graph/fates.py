"""What became of a decision: quashed, upheld, confirmed, reversed, rectified, remitted; its case, step by step."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from legal_rag.base.html import displayed
from legal_rag.corpus.documents import Document
from legal_rag.graph.facts import joined_keys, node_of_document
from legal_rag.graph.graph import Edge, KnowledgeGraph, Node
from legal_rag.graph.names import DOCUMENT
from legal_rag.graph.page import MAX_QUOTED, name_of, quote
from legal_rag.graph.rulings import (
    CONSTITUTIONAL,
    DESCRIBED,
    FOLLOWS,
    INTERPRETS,
    ON_REMAND,
    OVERRULES,
    RECTIFIES,
    UPHOLDS,
    Ruling,
    court_key,
    find_rulings,
    is_in_part,
    referred_to,
)
from legal_rag.graph.store import GraphFormatError
from legal_rag.law.citation import legal_date
from legal_rag.law.courts import APPEAL, SUPREME, level_of
from legal_rag.law.keys import own_keys
from legal_rag.law.outcomes import CASSATION, CONFIRMATION, kinds_of
from legal_rag.library.library import STORE, Library
from legal_rag.library.store import write_fallen

logger = logging.getLogger(__name__)

Kind = Literal[
    "quashed", "quashed_in_part", "reversed", "reversed_in_part", "withdrawn",
    "upheld", "confirmed", "rectified", "interpreted", "after",
]  # fmt: skip
WHOLLY: frozenset[Kind] = frozenset(("quashed", "reversed", "withdrawn"))
FALLEN: frozenset[Kind] = WHOLLY | {"quashed_in_part", "reversed_in_part"}
RULES: dict[Kind, str] = {  # as it precedes the decision ruled on
    "quashed": "casse",
    "quashed_in_part": "casse en partie",
    "reversed": "infirme",
    "reversed_in_part": "infirme en partie",
    "withdrawn": "rétracte",
    "upheld": "rejette le pourvoi contre",
    "confirmed": "confirme",
    "rectified": "rectifie",
    "interpreted": "interprète",
    "after": "statue sur renvoi après",
}
STAGES = {"first": "première instance", "appeal": "appel", "remand": "renvoi", "supreme": "cassation", "": ""}
CASE_TYPES = (OVERRULES, UPHOLDS, RECTIFIES, INTERPRETS, FOLLOWS)
MOST_STEPS = 30  # of a case
LEAST_WORDS = 60  # characters of a ruling's words, from which they need no context
AS_FAR_AS_KNOWN = "à la connaissance de cet index"
NO_LATER = "Aucune décision postérieure sur celle-ci n'est connue de cet index : cela ne dit pas qu'il n'y en a pas."


@displayed
class Effect(NamedTuple):
    """What a decision does to another, as its text says; of `after`, the quashing that it follows on remand."""

    kind: Kind
    court: str  # of the other decision, as written
    day: str  # its day, ISO 8601
    number: str  # empty if the text gives none
    referred_to: str  # the court to which the case is remitted; empty if it is not
    start: int  # characters of the words that say so
    end: int


@displayed
class Fate(NamedTuple):
    """What a later decision did to one: that it was quashed in part, and where a text says so."""

    kind: Kind
    by: str  # the later decision, as lawyers cite it
    day: str  # its day, ISO 8601; empty if unknown
    by_id: str  # its document in the Library; empty if it is known by reference only
    treatment: str  # in French, as it precedes `by`: "cassé en partie par"
    words: str  # of its operative part, or of the text that reports it; empty if only a column says so
    doc_id: str  # the document whose words they are
    char_start: int  # characters of its content; -1 if only a column says so
    char_end: int
    referred_to: str  # the court to which the case is remitted; empty if none is known
    undone_by: str  # what quashed or withdrew the later decision as a whole; empty if nothing is known to have

    @property
    def is_fall(self) -> bool:
        """Whether less than all of the decision stands: it was quashed, reversed or withdrawn, and that stands."""
        return self.kind in FALLEN and not self.undone_by

    @property
    def in_french(self) -> str:
        """A line: "cassé en partie par Cass. soc., 12 mars 2019, n° 17-31.442 ; renvoi devant : CA Lyon"."""
        undone = f" (lui-même {self.undone_by})" if self.undone_by else ""
        referred = f" ; renvoi devant : {self.referred_to}" if self.referred_to else ""
        return f"{self.treatment} {self.by}{undone}{referred}"


@displayed
class Step(NamedTuple):
    """A decision of a case: one of the Library's, or one that a text names."""

    stage: str  # in French: "première instance", "appel", "cassation", "renvoi"; empty if unknown
    name: str  # as lawyers cite it
    day: str  # ISO 8601; empty if unknown
    doc_id: str  # empty if it is known by reference only
    key: str  # of its node
    rules: tuple[tuple[Kind, str], ...]  # what it does to other steps: the kind, the other's key


def kind_of(edge_type: str, detail: str, *, is_supreme: bool) -> Kind | None:
    """Return the kind of fate that a ruling's type and words make, by the level of the court that ruled."""
    if edge_type in (RECTIFIES, INTERPRETS, FOLLOWS):
        names: dict[str, Kind] = {RECTIFIES: "rectified", INTERPRETS: "interpreted", FOLLOWS: "after"}
        return names[edge_type] if edge_type != FOLLOWS or detail == ON_REMAND else None
    head = detail.partition(" : ")[0]
    kinds = kinds_of(head)
    if edge_type == UPHOLDS:
        return "upheld" if is_supreme and CONFIRMATION not in kinds else "confirmed"
    if edge_type != OVERRULES:
        return None
    if "non avenu" in head.lower() or "rabat" in head.lower():
        return "withdrawn"
    in_part = is_in_part(detail) or CONFIRMATION in kinds
    if is_supreme or CASSATION in kinds:
        return "quashed_in_part" if in_part else "quashed"
    return "reversed_in_part" if in_part else "reversed"


def read_effects(document: Document) -> list[Effect]:
    """Return what a decision's text says it does to others that it names by court and day."""
    node = node_of_document(document)
    rulings = find_rulings(document, node, {*own_keys(document), *joined_keys(document)})
    return [effect for ruling in rulings if ruling.source == node for effect in _effect_of(ruling, document)]


def _effect_of(ruling: Ruling, document: Document) -> Iterator[Effect]:
    is_supreme = level_of(document.juridiction, document.formation, document.title) == SUPREME
    kind = kind_of(ruling.type, ruling.detail, is_supreme=is_supreme)
    described = DESCRIBED.fullmatch(ruling.target.key)
    if kind and described:
        court = _court_of(ruling.target.name, described["day"])
        referred = referred_to(document, court) if kind in ("quashed", "quashed_in_part") else ""
        yield Effect(kind, court, described["day"], described["number"] or "", referred, ruling.start, ruling.end)


def _court_of(name: str, day: str) -> str:
    """Return the court in the name of a decision that is known by court and day."""
    return name.rpartition(f", {legal_date(day)}")[0] or name


def fates_of(graph: KnowledgeGraph, node: Node | str) -> list[Fate]:
    """Return what later decisions did to one, by date, as far as the texts of the Library say.

    An empty list says no more than that: a decision that is not in the Library may have quashed it.

    Raises:
        LookupError: As `KnowledgeGraph.find` does.
    """
    with graph.unchanging():
        return [
            _fate(graph, edge, kind, _undone(graph, edge.source) if kind in FALLEN else "")
            for edge, kind in _later(graph, node)
            if kind != "after"
        ]


def fates_of_document(graph: KnowledgeGraph | None, doc_id: str) -> list[Fate]:
    """Return the fates of a document of the Library; none without a graph."""
    return fates_of(graph, Node(DOCUMENT + doc_id, "decision", doc_id, doc_id)) if graph else []


def graph_of(library: Library) -> KnowledgeGraph | None:
    """Open the graph of a Library, if it has one; without that of another version, with a warning."""
    try:
        return KnowledgeGraph(library)
    except FileNotFoundError:
        return None
    except GraphFormatError as error:
        logger.warning("later fate is not known: %s", error)
        return None


def standing_in_french(fates: Iterable[Fate]) -> str:
    """Say in French by what a decision has fallen, wholly or in part; empty if nothing is known to have done so."""
    return " ; ".join(fate.in_french for fate in fates if fate.is_fall)


def standing_of(graph: KnowledgeGraph | None, doc_id: str) -> str:
    """Say in French by what a document of the Library has fallen; empty without a graph too."""
    return standing_in_french(fates_of_document(graph, doc_id))


def _later(graph: KnowledgeGraph, node: Node | str) -> list[tuple[Edge, Kind]]:
    """Return the rulings on a decision, by date, each with its kind."""
    return _unrepeated([(edge, kind) for edge in graph.rulings(node) if (kind := _kind_of_edge(edge))])


def _unrepeated(known: Sequence[tuple[Edge, Kind]]) -> list[tuple[Edge, Kind]]:
    """Leave out of the rulings on a decision what one text reports of an indexed decision of that day."""
    indexed = {(_day_of(edge.source), kind in FALLEN) for edge, kind in known if edge.source.doc_id}
    return [
        (edge, kind)
        for edge, kind in known
        if edge.source.doc_id or (_day_of(edge.source), kind in FALLEN) not in indexed
    ]


def _kind_of_edge(edge: Edge) -> Kind | None:
    return kind_of(edge.type, edge.detail, is_supreme=_level(edge.source) == SUPREME) if edge.is_fact else None


def _level(node: Node) -> str:
    named = DESCRIBED.fullmatch(node.key)
    court = _court_of(node.name, named["day"]) if named else node.court
    return SUPREME if node.key.startswith("pourvoi:") else level_of(court, "", node.name)


def _day_of(node: Node) -> str:
    named = DESCRIBED.fullmatch(node.key)
    return named["day"] if named else node.decision_date


def _undone(graph: KnowledgeGraph, node: Node) -> str:
    """Return what quashed, reversed or withdrew a decision as a whole: "cassé par Cass. soc., …"."""
    for edge, kind in _later(graph, node):
        if kind in WHOLLY:
            return f"{edge.treatment} {name_of(graph, edge.source)}"
    return ""


def _fate(graph: KnowledgeGraph, edge: Edge, kind: Kind, undone_by: str) -> Fate:
    referred = ""
    if edge.source.doc_id and kind in ("quashed", "quashed_in_part"):
        below = edge.target.court or _court_of(edge.target.name, _day_of(edge.target))
        referred = referred_to(graph.library.document(edge.source.doc_id), below)
    stated = _whole_statement(graph, edge)
    quoted = quote(graph, stated or edge)
    words = (quoted.text if stated or len(quoted.text) >= LEAST_WORDS else quoted.whole) if quoted else ""
    by = name_of(graph, edge.source)
    place = edge.doc_id, (stated or edge).char_start, edge.char_end
    return Fate(kind, by, _day_of(edge.source), edge.source.doc_id, edge.treatment, words, *place, referred, undone_by)


def _whole_statement(graph: KnowledgeGraph, edge: Edge) -> Edge | None:
    """Return an edge from where its statement in the operative part begins; None if it is not of that part."""
    reading = graph.library.document(edge.doc_id).reading if edge.char_start >= 0 else None
    part = reading.operative if reading else None
    if reading is None or part is None or not part.start <= edge.char_start < part.end:
        return None
    holding = (start for start, end in reading.statements if start <= edge.char_start < end)
    start = next(holding, edge.char_start)
    return edge._replace(char_start=start) if edge.char_end - start <= MAX_QUOTED else edge


def chronology(graph: KnowledgeGraph, node: Node | str) -> list[Step]:
    """Return the decisions of a decision's case by date: first instance, appeal, cassation, remand.

    At most `MOST_STEPS`; a decision alone is a case of one step. Raises as `KnowledgeGraph.find` does.
    """
    with graph.unchanging():
        first = graph.find(node) if isinstance(node, str) else node
        nodes, edges, frontier = {first.key: first}, list[tuple[Edge, Kind]](), [first]
        while frontier and len(nodes) < MOST_STEPS:
            near = frontier.pop(0)
            for edge in graph.neighbours(near, types=CASE_TYPES):
                kind = _kind_of_edge(edge)
                if kind and edge not in [known for known, _ in edges]:
                    edges.append((edge, kind))
                    new = [end for end in (edge.source, edge.target) if end.key not in nodes]
                    nodes |= {end.key: end for end in new}
                    frontier += [] if edge.type in (RECTIFIES, INTERPRETS) else new  # one may rectify several cases
        same = _same_decisions(graph, nodes.values())
        rules = [(same[edge.source.key], (kind, same[edge.target.key])) for edge, kind in edges]
        steps = (_step(graph, nodes[key], [rule for by, rule in rules if by == key]) for key in set(same.values()))
        return sorted(steps, key=lambda step: (step.day, step.key))


def _same_decisions(graph: KnowledgeGraph, nodes: Iterable[Node]) -> dict[str, str]:
    """Map the keys of the decisions of one case to one key for each, a document's where there is one.

    One that a text names by court and day, and another by its number, is the same.
    """
    read = [(node, _known_of(graph, node)) for node in nodes]
    known: dict[str, _Known] = {}
    same = {}
    # First those of which most is known: one without a number and one without a day may be the same third one.
    for node, one in sorted(read, key=lambda pair: (not pair[0].doc_id, not pair[1].numbers, not pair[1].day)):
        keys = [key for key, other in known.items() if one.may_be(other)]
        same[node.key] = keys[0] if len(keys) == 1 else node.key  # of several it may be any
        known.setdefault(same[node.key], one)
    return same


class _Known(NamedTuple):
    """What is known of a decision; empty: it is not."""

    court: str  # its key
    day: str
    numbers: frozenset[str]

    def may_be(self, other: "_Known") -> bool:
        """Tell whether, within a case, another decision is this one: by a number, or else by court and day."""
        if self.numbers and other.numbers:
            agree = all(not one or not two or one == two for one, two in zip(self[:2], other[:2], strict=True))
            return agree and not self.numbers.isdisjoint(other.numbers)
        return bool(self.day) and self[:2] == other[:2]


def _known_of(graph: KnowledgeGraph, node: Node) -> _Known:
    if named := DESCRIBED.fullmatch(node.key):
        number = named["number"]
        return _Known(named["court"], named["day"], frozenset([number.replace(".", "")] if number else []))
    if not node.doc_id:
        return _Known("", "", frozenset([node.key.partition(":")[2]]))
    document = graph.library.document(node.doc_id)
    numbers = frozenset(key.partition(":")[2] for key in own_keys(document))
    return _Known(court_key(document.juridiction, document.title), document.decision_date, numbers)


def _step(graph: KnowledgeGraph, node: Node, rules: Iterable[tuple[Kind, str]]) -> Step:
    rules = tuple(dict.fromkeys(rules))
    level = _level(node)
    stage = "remand" if level == APPEAL and any(kind == "after" for kind, _ in rules) else level
    if CONSTITUTIONAL in node.court.lower():
        stage = ""
    return Step(STAGES[stage], name_of(graph, node), _day_of(node), node.doc_id, node.key, rules)


def steps_in_french(steps: Iterable[Step]) -> list[str]:
    """Write the steps of a case, one a line: "12 mars 2019, cassation : Cass. soc., … — casse CA Douai, …"."""
    steps = list(steps)
    names = {step.key: step.name for step in steps}
    lines = []
    for step in steps:
        did = " ; ".join(f"{RULES[kind]} {names.get(key, key)}" for kind, key in step.rules)
        known = "" if step.doc_id else " (connu par référence)"
        lines.append(f"{step.stage + ' : ' if step.stage else ''}{step.name}{known}{' — ' + did if did else ''}")
    return lines


def history_in_french(graph: KnowledgeGraph, node: Node | str) -> list[str]:
    """Write what became of a decision, with the words that say so, and its case; one line where nothing is known."""
    fates, steps = fates_of(graph, node), chronology(graph, node)
    lines = [f"{'⚠ ' if fate.is_fall else ''}{fate.in_french[:1].upper()}{fate.in_french[1:]}" for fate in fates]
    lines = [f"{line} : « {fate.words} »" if fate.words else line for line, fate in zip(lines, fates, strict=True)]
    if len(steps) > 1:
        lines += [f"Chronologie de l'affaire, {AS_FAR_AS_KNOWN} :", *(f"  - {line}" for line in steps_in_french(steps))]
    return lines or [NO_LATER]


def store_fallen(folder: Path) -> None:
    """Store which of a Library's decisions are known to be quashed, reversed or withdrawn, even in part, for filters.

    Nothing without a graph. The caller keeps other writers out, and records the store's checksum.
    """
    if graph := graph_of(library := Library(folder)):
        with graph.unchanging():
            doc_ids = set(_fallen(graph))
        write_fallen(library.path / STORE, library.commit, sorted(doc_ids))


def _fallen(graph: KnowledgeGraph) -> Iterator[str]:
    """Yield the documents that have a fall among their fates, without reading the texts that say so."""
    known = defaultdict[str, list[tuple[Edge, Kind]]](list)
    for edge in graph.overruling():
        if kind := _kind_of_edge(edge):
            known[edge.target.key].append((edge, kind))
    later = {key: _unrepeated(rulings) for key, rulings in known.items()}
    undone = {key for key, rulings in later.items() if any(kind in WHOLLY for _, kind in rulings)}
    for rulings in later.values():
        for edge, _ in rulings:
            if edge.target.doc_id and edge.source.key not in undone:
                yield edge.target.doc_id


def to_json(fate: Fate) -> dict[str, Any]:
    """Return a fate as JSON has it, with its line in French."""
    return {**fate._asdict(), "in_french": fate.in_french}
