"""A node with its links as a page: drawn by year and court, and as a table with the words of each text."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from legal_rag.corpus.legal_citations import code_abbreviations, legal_citation, legal_date
from legal_rag.graph.drawing import HEIGHT, WIDTH, Drawing, Placed, draw, years_of
from legal_rag.graph.graph import CITING_TYPES, MOST_EDGES, Edge, Episode, KnowledgeGraph, Node
from legal_rag.graph.names import LOWER
from legal_rag.graph.store import STATED, TEXT, UNSUPPORTED
from legal_rag.graph.types import EDGE_TYPES, EPISODE_STATUSES, NODE_TYPES, REVERSED_EDGE_TYPES
from legal_rag.html import (
    NotebookFrame,
    frame_of_page,
    french_decimal,
    french_number,
    own_script,
    own_style,
    page_template,
)
from legal_rag.library.corpus import Corpus

PACKAGE = "legal_rag.graph"
TITLE = "Graphe des décisions"
MAX_NODES = 300  # drawn; a page that leaves some out says so
MAX_READ = 5000  # edges of each type and direction, among which those to draw are chosen
MAX_LISTED = 100  # of episodes, of contradictions
CONTEXT = 140  # characters on either side of the words that support a link
MAX_QUOTED = 500  # characters of these words
D3 = ("dispatch", "color", "interpolate", "timer", "ease", "selection", "drag", "transition", "zoom")
LABEL_CHARS, LANE_CHARS, NAME_CHARS, NOTE_CHARS = 22, 60, 240, 1200  # shown of a text that may be of any length
_BLANKS = re.compile(r"[^\S\u00a0\u202f]+")
_ARTICLE = re.compile(r"^article (?=\S)")
_DAY = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_BANDS = {
    "decision": "Décisions sans date connue",
    "article": "Articles et textes",
    "statute": "Articles et textes",
    "court": "Juridictions",
    "party": "Parties et conseils",
    "person": "Parties et conseils",
    "organization": "Parties et conseils",
    "judge_or_counsel": "Parties et conseils",
}
_TREATED = {
    "overrules": "cassé, annulé ou infirmé par",
    "upholds": "maintenu par",
    "follows": "suivi par",
    "distinguishes": "distingué par",
    "interprets": "interprété par",
}


class Quotation(NamedTuple):
    """The words of a text that support a link, and those around them, each in one line."""

    before: str
    text: str
    after: str

    @property
    def whole(self) -> str:
        """All of it in one line."""
        return f"{self.before}{self.text}{self.after}"


class NodeView(NamedTuple):
    """A node with what the graph knows of it."""

    node: Node
    name: str  # as lawyers cite it
    edges: list[Edge]  # facts, by type
    rulings: list[Edge]  # among them: those that say how later decisions treat it
    stated: list[Edge]  # what a model said; one sentence holds both names
    unsupported: list[Edge]  # what a model said, and no text that it read
    episodes: list[Episode]
    most: int  # edges read of each type and direction


def view_node(graph: KnowledgeGraph, node: Node | str, *, with_all: bool = False, most: int = MOST_EDGES) -> NodeView:
    """Gather what the graph knows of a node.

    Args:
        graph: The graph.
        node: The node, or what `KnowledgeGraph.find` takes.
        with_all: Also what models said that is no fact.
        most: Edges of each type and direction.

    Raises:
        LookupError: If there is no such node, or several.
    """
    node = graph.find(node) if isinstance(node, str) else node

    def of(support: str) -> list[Edge]:
        return [
            edge
            for edge_type in EDGE_TYPES
            for edge in graph.neighbours(node, types=(edge_type,), supports=(support,), most=most)
        ]

    return NodeView(
        node,
        name_of(graph, node),
        of(TEXT),
        graph.treatment(node).rulings,
        of(STATED) if with_all else [],
        of(UNSUPPORTED) if with_all else [],
        graph.episodes(node, MAX_LISTED),
        most,
    )


def name_of(graph: KnowledgeGraph, node: Node) -> str:
    """Name a node as lawyers do: a decision by its citation."""
    try:
        return legal_citation(graph.library.document(node.doc_id)).with_name if node.doc_id else node.name
    except LookupError:  # removed meanwhile
        return node.name


def facts_about(node: Node) -> list[str]:
    """Say what a node is: type, court, date, outcome, the document's id."""
    known = [NODE_TYPES.get(node.type, node.type), node.court, legal_date(node.decision_date), node.solution]
    return [value for value in (*known, node.doc_id) if value]


def treatment_in_french(node: Node, rulings: Iterable[Edge]) -> str:
    """Say how later decisions treat a node: « maintenu par 2 décisions, cité par 14 »."""
    counts = Counter(edge.type for edge in rulings)
    treatments = [f"{words} {_format_decisions(counts[kind])}" for kind, words in _TREATED.items() if counts[kind]]
    return ", ".join([*treatments, *([f"cité par {_format_decisions(node.cited)}"] if node.cited else [])])


def origin_in_french(edge: Edge) -> str:
    """Say where an edge comes from: a place in a text, or the model of an answer, with its date and confidence."""
    place = f"{edge.doc_id}, caractères {edge.char_start}-{edge.char_end}" if edge.char_start >= 0 else edge.doc_id
    dated = f"{place} ({legal_date(edge.source.decision_date)})" if edge.source.decision_date and place else place
    if edge.is_fact:
        return dated or "métadonnées"
    model = f"selon le modèle (réponse {edge.answer_id}, {legal_date(edge.recorded[:10])})"
    sure = f"confiance {french_decimal(edge.confidence)}"
    return ", ".join(filter(None, [model, sure, f"mêmes mots dans {place}" if place else ""]))


def grouped(view: NodeView) -> dict[str, list[tuple[Edge, Node]]]:
    """Group a node's facts by what they say, seen from the node; with the node at the other end."""
    groups: dict[str, list[tuple[Edge, Node]]] = {}
    for edge in view.edges:
        groups.setdefault(says(edge, view.node), []).append((edge, other_end(edge, view.node)))
    return groups


def other_end(edge: Edge, node: Node) -> Node:
    """Return the end of an edge that is not this node."""
    return edge.source if edge.target.key == node.key else edge.target


def says(edge: Edge, node: Node) -> str:
    """Say what an edge says, seen from one of its ends: « cite », « est cité par »."""
    words = REVERSED_EDGE_TYPES if edge.target.key == node.key else EDGE_TYPES
    return words.get(edge.type, edge.type)


def quote(graph: KnowledgeGraph, edge: Edge) -> Quotation | None:
    """Return the words of the text that support an edge; None where a column does, or nothing."""
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
    return Quotation(
        f"{'…' * (first > 0)}{_to_line(before)}",
        _to_line(text[start:end]) + cut,
        f"{_to_line(after)}{'…' * (last < len(text))}",
    )


def _clip(text: str, most: int = NAME_CHARS) -> str:
    """Put a text into one line of at most so many characters."""
    line = _to_line(text).strip()
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def _to_line(text: str) -> str:
    """Put a text into one line, without what turns the direction of writing; no-break spaces stay."""
    inner = "".join(char if char.isprintable() or char.isspace() else "\ufffd" for char in text)
    return _BLANKS.sub(" ", inner)


class Link(NamedTuple):
    """A link as the page shows it."""

    edge: Edge
    other: int  # the number of the node at its other end
    says: str  # seen from the node in the middle
    kind: str  # its type if it is a known one, for the style
    path: str  # in SVG
    quoted: Quotation | None
    origin: str


class Shown(NamedTuple):
    """A node as the page shows it."""

    node: Node
    name: str
    label: str  # short, without what turns the direction of writing
    place: Placed
    facts: list[str]


def render_graph(graph: KnowledgeGraph, node: Node | str, *, most: int = MAX_NODES) -> str:
    """Render a node with its links as a French HTML page that loads nothing from elsewhere.

    What models said is drawn dashed and labelled; what no text supports is not shown.

    Args:
        graph: The graph.
        node: The node, or what `KnowledgeGraph.find` takes.
        most: Nodes drawn.

    Raises:
        LookupError: If there is no such node, or several.
    """
    view = view_node(graph, node, with_all=True, most=MAX_READ)
    others = _rank_neighbours(view)
    shown = [_shown_node(graph, drawn) for drawn in [view.node, *others[: most - 1]]]
    drawing = draw([item.place for item in shown])
    links = _graph_links(graph, view, shown, drawing)
    frame = frame_of_page(f"{shown[0].name[:100]} — {TITLE}", *_script_and_style())
    values = {
        "view": view,
        "shown": shown,
        "drawing": drawing,
        "links": links,
        "kinds": Counter((link.kind, link.edge.is_fact) for link in links),
        "years": years_of(item.place for item in shown),
        "left_out": _count_left_out(view, others, len(shown) - 1),
        "treatment": treatment_in_french(view.node, view.rulings),
        "edge_types": EDGE_TYPES,
        "statuses": EPISODE_STATUSES,
        "origin": lambda edge: _clip(origin_in_french(edge)),
        "name_of": lambda node: _clip(name_of(graph, node)),
        "cut": _clip,
        "note": lambda text: _clip(text, NOTE_CHARS),
        "day": legal_date,
        "number": french_number,
        "size": (WIDTH, HEIGHT),
    }
    return page_template(PACKAGE, "graph.html.j2").render(**frame, **values)


def view_graph(library: Corpus | str | Path, name: str, height: int = 820) -> NotebookFrame:
    """Render a node with its links for a notebook, in a sandboxed frame.

    Args:
        library: An open one, or its folder.
        name: What `KnowledgeGraph.find` takes: a number, an article, a court, a name.
        height: Of the frame, in pixels.

    Raises:
        LookupError: If there is no such node, or several.
        FileNotFoundError: If there is no Library in that folder, or no graph in it.
    """
    return NotebookFrame(render_graph(KnowledgeGraph(library), name), TITLE, height)


@cache
def _script_and_style() -> tuple[Any, Any]:
    vendored = [f"vendor/d3-{module}.min.js" for module in D3]
    return own_script(PACKAGE, *vendored, "graph.js"), own_style(PACKAGE, "graph.css")


def _rank_neighbours(view: NodeView) -> list[Node]:
    """Return the nodes around a node, those to draw first first: rulings, what it cites, then the latest."""
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
    """Count the nodes that are not drawn, as far as is known: edges beyond `most` were not read."""
    citing = {edge.source.key for edge in view.edges if edge.type in CITING_TYPES and edge.target.key == view.node.key}
    return len(others) - shown + max(0, view.node.cited - len(citing))


def _shown_node(graph: KnowledgeGraph, node: Node) -> Shown:
    try:
        cited = legal_citation(graph.library.document(node.doc_id)) if node.doc_id else None
    except LookupError:  # removed meanwhile
        cited = None
    name = cited.with_name if cited else node.name
    short = name.partition(", ")[2] if node.key.startswith(LOWER) else name  # its court has the lane
    if cited and cited.number:
        short = ", ".join(filter(None, (cited.formation, cited.number)))
    return Shown(node, _clip(name), _short_label(short or name), _placed(node), list(map(_clip, facts_about(node))))


def _short_label(text: str) -> str:
    text = _ARTICLE.sub("art. ", _to_line(text))
    for code, short in code_abbreviations().items():
        text = text.replace(f" du {code}", f" {short}").replace(f" des {code}", f" {short}")
    return _clip(text, LABEL_CHARS)


def _placed(node: Node) -> Placed:
    """Return where a node belongs: a decision by its court and year, if it has both."""
    day, court = node.decision_date, node.court.partition(", ")[0]
    if node.key.startswith(LOWER) and (dated := _DAY.search(node.key)):
        day, court = dated[0], node.name.partition(", ")[0]
    if node.type == "decision" and _DAY.match(day):
        court = _clip(court.replace("’", "'"), LANE_CHARS) or "Juridiction inconnue"
        return Placed(court[:1].upper() + court[1:], int(day[:4]))
    return Placed(_BANDS.get(node.type, "Notions et autres"), 0)


def _graph_links(graph: KnowledgeGraph, view: NodeView, shown: Sequence[Shown], drawing: Drawing) -> list[Link]:
    """Return the links to the nodes shown: facts first, the latest decisions first."""
    numbers = {item.node.key: number for number, item in enumerate(shown)}
    nth: Counter[int] = Counter()
    links = []
    for edge in [*view.edges, *view.stated]:
        other = numbers.get(other_end(edge, view.node).key, 0)
        if other:
            ends = (other, 0) if edge.target.key == view.node.key else (0, other)
            kind = edge.type if edge.type in EDGE_TYPES else "related_to"
            path = drawing.link(*ends, nth[other])
            nth[other] += 1
            links.append(
                Link(edge, other, says(edge, view.node), kind, path, quote(graph, edge), _clip(origin_in_french(edge)))
            )
    return sorted(links, key=lambda link: (not link.edge.is_fact, link.says, -shown[link.other].place.year))


def _format_decisions(n: int) -> str:
    return f"{french_number(n)} décision{'s' if n > 1 else ''}"
