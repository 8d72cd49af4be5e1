"""A node and its links as an HTML page: a table by year, with the quoted passages."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from legal_rag.base.html import (
    NotebookFrame,
    frame_of_page,
    french_decimal,
    french_number,
    own_script,
    own_style,
    page_template,
)
from legal_rag.base.text import printable
from legal_rag.graph.graph import CITING_TYPES, MOST_EDGES, RULING_TYPES, Edge, KnowledgeGraph, Node
from legal_rag.graph.names import LOWER
from legal_rag.graph.store import STATED, TEXT, UNSUPPORTED
from legal_rag.graph.types import EDGE_TYPES, NODE_TYPES, REVERSED_EDGE_TYPES
from legal_rag.law.citation import Link, legal_citation, legal_date
from legal_rag.law.european import european_link
from legal_rag.library.library import Library

PACKAGE = "legal_rag.graph"
TITLE = "Graphe des décisions"
MAX_NODES = 300  # shown around one; the page says how many are left out
MAX_READ = 5000  # edges read for each type and direction, from which the shown ones are chosen
CONTEXT = 140  # characters on either side of the supporting passage
MAX_QUOTED = 500  # characters of that passage
NAME_CHARS = 240  # displayed
HISTORY_CHARS = 800  # of a line of what became of a decision
_LONG_WORD = re.compile(r"(\S{100})\S+")
_BLANKS = re.compile(r"[^\S\u00a0\u202f]+")
_DAY = re.compile(r"\b\d{4}-\d\d-\d\d\b")


class PageQuotation(NamedTuple):
    """The passage that supports a link, with its context, each on one line."""

    before: str
    text: str
    after: str

    @property
    def whole(self) -> str:
        """The passage with its context, on one line."""
        return f"{self.before}{self.text}{self.after}"


class NodeView(NamedTuple):
    """A node with everything that the graph holds on it."""

    node: Node
    name: str  # as lawyers cite it
    edges: list[Edge]  # facts, by type
    rulings: list[Edge]  # among them: those that say how later decisions treat it
    stated: list[Edge]  # a model's claims with both names in one sentence
    unsupported: list[Edge]  # a model's claims without support in the texts
    most: int  # edges read of each type and direction


def view_node(graph: KnowledgeGraph, node: Node | str, *, with_all: bool = False, most: int = MOST_EDGES) -> NodeView:
    """Collect what the graph holds on a node, `most` edges of each type and direction; `with_all` the claims of models
    too.

    Raises as `KnowledgeGraph.find` does.
    """
    node = graph.find(node) if isinstance(node, str) else node

    def of(support: str) -> list[Edge]:
        return [
            edge
            for edge_type in EDGE_TYPES
            for edge in graph.neighbours(node, types=(edge_type,), supports=(support,), most=most)
        ]

    stated, unsupported = (of(support) if with_all else [] for support in (STATED, UNSUPPORTED))
    return NodeView(node, name_of(graph, node), of(TEXT), graph.rulings(node), stated, unsupported, most)


def name_of(graph: KnowledgeGraph, node: Node) -> str:
    """Return a node's name as lawyers cite it: a decision's citation."""
    try:
        return legal_citation(graph.library.document(node.doc_id)).with_name if node.doc_id else node.name
    except LookupError:  # removed meanwhile
        return node.name


def facts_about(node: Node) -> list[str]:
    """List a node's type, court, date, outcome and document id."""
    known = [NODE_TYPES.get(node.type, node.type), node.court, legal_date(node.decision_date), node.solution]
    return [value for value in (*known, node.doc_id) if value]


def link_of(node: Node) -> Link | None:
    """Return the page on EUR-Lex or HUDOC of a European text or case that the Library does not hold."""
    is_cited = node.type in ("article", "decision", "statute") and not node.doc_id
    return european_link(node.name) if is_cited else None


def treatment_in_french(node: Node, rulings: Iterable[Edge]) -> str:
    """Describe in French how later decisions treat a node: « maintenu par 2 décisions, cité par 14 »."""
    counts = Counter(edge.type for edge in rulings)
    treatments = [
        f"{REVERSED_EDGE_TYPES[kind].removeprefix('est ')} {_format_decisions(counts[kind])}"
        for kind in RULING_TYPES
        if counts[kind]
    ]
    return ", ".join([*treatments, *([f"cité par {_format_decisions(node.cited)}"] if node.cited else [])])


def origin_in_french(edge: Edge) -> str:
    """Describe in French an edge's source: a span of a text, or an answer's model with date and confidence."""
    place = f"{edge.doc_id}, caractères {edge.char_start}-{edge.char_end}" if edge.char_start >= 0 else edge.doc_id
    dated = f"{place} ({legal_date(edge.source.decision_date)})" if edge.source.decision_date and place else place
    if edge.is_fact:
        return dated or "métadonnées"
    model = f"selon le modèle (réponse {edge.answer_id}, {legal_date(edge.recorded[:10])})"
    sure = f"confiance {french_decimal(edge.confidence)}"
    return ", ".join(filter(None, [model, sure, f"mêmes mots dans {place}" if place else ""]))


def grouped(view: NodeView) -> dict[str, list[tuple[Edge, Node]]]:
    """Group a node's facts by their wording from the node's side, each with the node at the other end."""
    groups: dict[str, list[tuple[Edge, Node]]] = {}
    for edge in view.edges:
        groups.setdefault(says(edge, view.node), []).append((edge, other_end(edge, view.node)))
    return groups


def other_end(edge: Edge, node: Node) -> Node:
    """Return the end of an edge that is not this node."""
    return edge.source if edge.target.key == node.key else edge.target


def says(edge: Edge, node: Node) -> str:
    """Return the French wording of an edge from the side of one end: « cite », « est cité par »."""
    words = REVERSED_EDGE_TYPES if edge.target.key == node.key else EDGE_TYPES
    return words.get(edge.type, edge.type)


def quote(graph: KnowledgeGraph, edge: Edge) -> PageQuotation | None:
    """Return the passage that supports an edge; None for a column's edge, or an unsupported one."""
    if not edge.doc_id or edge.char_start < 0:
        return None
    try:
        text = graph.library.document(edge.doc_id).content
    except LookupError:  # removed meanwhile
        return None
    start, end = edge.char_start, min(edge.char_end, edge.char_start + MAX_QUOTED)
    first, last = max(0, start - CONTEXT), end + CONTEXT
    before = text[first:start].partition(" ")[2] if first else text[:start]
    after = text[end:last].rpartition(" ")[0] if last < len(text) else text[end:]
    cut = "…" * (end < edge.char_end)
    return PageQuotation(
        f"{'…' * (first > 0)}{_to_line(before)}",
        _to_line(text[start:end]) + cut,
        f"{_to_line(after)}{'…' * (last < len(text))}",
    )


def _clip(text: str, most: int = NAME_CHARS) -> str:
    line = _to_line(text).strip()
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def _to_line(text: str) -> str:
    return _BLANKS.sub(" ", printable(text))  # no-break spaces are kept


class NodeLink(NamedTuple):
    """A link as displayed."""

    edge: Edge
    kind: str  # a known edge type, for the style
    says: str  # wording from the node's side
    name: str  # of the node at the other end
    facts: list[str]  # about it
    day: str  # of that decision, ISO 8601; empty if unknown
    quoted: PageQuotation | None
    origin: str


def render_graph(graph: KnowledgeGraph, node: Node | str, *, most: int = MAX_NODES) -> str:
    """Render a node with its links to `most` others, by year, as a self-contained French HTML page.

    Claims of models are labelled; unsupported ones are left out. Raises as `KnowledgeGraph.find` does.
    """
    from legal_rag.graph.fates import history_in_french  # which quotes and names as this module does

    view = view_node(graph, node, with_all=True, most=MAX_READ)
    history = history_in_french(graph, view.node) if view.node.type == "decision" else []
    others = _rank_neighbours(view)
    shown = {other.key: _clip(name_of(graph, other)) for other in others[:most]}
    edges = [edge for edge in [*view.edges, *view.stated] if other_end(edge, view.node).key in shown]
    links = [_as_link(graph, view.node, edge, shown) for edge in edges]
    links.sort(key=lambda link: link.says)
    links.sort(key=lambda link: link.day, reverse=True)
    values = {
        "view": view,
        "name": _clip(view.name),
        "facts": list(map(_clip, facts_about(view.node))),
        "link": link_of(view.node),
        "years": [(year, list(of_year)) for year, of_year in groupby(links, key=lambda link: link.day[:4])],
        "kinds": Counter((link.kind, link.edge.is_fact) for link in links),
        "n_shown": len(shown),
        "left_out": _count_left_out(view, others, len(shown)),
        "treatment": treatment_in_french(view.node, view.rulings),
        "history": [_clip(_LONG_WORD.sub(r"\1…", line), HISTORY_CHARS) for line in history],
        "edge_types": EDGE_TYPES,
        "cut": _clip,
        "day": legal_date,
        "number": french_number,
    }
    frame = frame_of_page(f"{_clip(view.name, 100)} — {TITLE}", *_script_and_style())
    return page_template(PACKAGE, "graph.html.j2").render(**frame, **values)


def view_graph(library: Library | str | Path, name: str, height: int = 820) -> NotebookFrame:
    """Render a node of an open Library, or of a folder's, for a notebook, in a sandboxed frame of `height` pixels.

    Raises:
        LookupError: If there is no such node, or several.
        FileNotFoundError: If there is no Library in that folder, or no graph in it.
    """
    return NotebookFrame(render_graph(KnowledgeGraph(library), name), TITLE, height)


@cache
def _script_and_style() -> tuple[Any, Any]:
    return own_script(PACKAGE, "graph.js"), own_style(PACKAGE, "graph.css")


def _rank_neighbours(view: NodeView) -> list[Node]:
    """Return the neighbours, most important first: rulings, cited nodes, then the latest."""
    rulings = {edge.source.key for edge in view.rulings}
    others: dict[str, tuple[tuple[Any, ...], Node]] = {}
    for edge in [*view.edges, *view.stated]:
        other = other_end(edge, view.node)
        day = int("".join(letter for letter in other.decision_date if letter.isdigit())[:8] or 0)
        rank = (other.key not in rulings, edge.source.key != view.node.key, -day, -other.cited, other.key)
        if other.key != view.node.key:
            others[other.key] = min(others.get(other.key, (rank, other)), (rank, other))
    return [node for _, node in sorted(others.values())]


def _count_left_out(view: NodeView, others: Sequence[Node], shown: int) -> int:
    """Count the nodes that are left out, a lower bound: edges beyond `most` were not read."""
    citing = {edge.source.key for edge in view.edges if edge.type in CITING_TYPES and edge.target.key == view.node.key}
    return len(others) - shown + max(0, view.node.cited - len(citing))


def _as_link(graph: KnowledgeGraph, node: Node, edge: Edge, names: Mapping[str, str]) -> NodeLink:
    other = other_end(edge, node)
    dated = _DAY.search(other.key) if other.key.startswith(LOWER) else None
    return NodeLink(
        edge,
        edge.type if edge.type in EDGE_TYPES else "related_to",
        says(edge, node),
        names[other.key],
        list(map(_clip, facts_about(other))),
        dated[0] if dated else other.decision_date,
        quote(graph, edge),
        _clip(origin_in_french(edge)),
    )


def _format_decisions(n: int) -> str:
    return f"{french_number(n)} décision{'s' if n > 1 else ''}"
