"""Export a graph for other tools, as `graph.json` or GraphML; streamed, so that any size fits in memory."""

import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple
from xml.sax.saxutils import XMLGenerator
from xml.sax.xmlreader import AttributesImpl

from legal_rag.base.files import written_whole
from legal_rag.base.html import plain_json
from legal_rag.graph.graph import Edge, Episode, KnowledgeGraph, Node
from legal_rag.graph.store import SUPPORTS, TEXT
from legal_rag.graph.types import EDGE_TYPES, NODE_TYPES

FORMAT, VERSION = "legal_rag.graph", 1  # of `graph.json`
GRAPHML = "http://graphml.graphdrawing.org/xmlns"
BUFFER_CHARS = 1 << 16
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NOT_IN_ID = re.compile(r"[^A-Za-z0-9:.\-]")
_GRAPHML_TYPES = {int: "int", float: "double", str: "string"}

Target = str | Path | IO[str]


class ExportCounts(NamedTuple):
    """Numbers of exported items."""

    nodes: int = 0
    edges: int = 0
    episodes: int = 0


def export_json(graph: KnowledgeGraph, target: Target, supports: Collection[str] = (TEXT,)) -> ExportCounts:
    """Write a graph as JSON, one node, edge or episode per line; see docs/graph.md for the format.

    Args:
        graph: Its state at the start is written; writers wait for the end.
        target: A file's path, replaced once all is written, or an open text file.
        supports: Of edges: 'text' for facts, 'stated' for claims of models, 'none' for unsupported claims.

    Raises:
        ValueError: If there is no such support.
        OSError: If the file cannot be written.
    """
    head = {"format": FORMAT, "version": VERSION, "commit": graph.library.commit, "supports": sorted(supports)}

    def parts(counter: "_Counter") -> Iterator[str]:
        yield plain_json(head)[:-1]
        yield from _json_list("nodes", map(_values_of_node, counter.nodes(graph.iter_nodes(supports))))
        yield from _json_list("edges", map(_values_of_edge, counter.edges(graph.iter_edges(supports))))
        yield from _json_list("episodes", map(_values_of_episode, counter.episodes(graph.iter_episodes())))
        yield "\n}\n"

    return _export(graph, target, supports, parts)


def export_graphml(graph: KnowledgeGraph, target: Target, supports: Collection[str] = (TEXT,)) -> ExportCounts:
    """Write a graph as GraphML, without episodes; characters that XML 1.0 forbids become U+FFFD.

    Arguments and errors are those of `export_json`.
    """
    return _export(graph, target, supports, lambda counter: _graphml_parts(graph, supports, counter))


# By the suffix of the file.
EXPORTS: Mapping[str, Callable[[KnowledgeGraph, Target, Collection[str]], ExportCounts]] = {
    "json": export_json,
    "graphml": export_graphml,
}


class _Counter:
    def __init__(self) -> None:
        self.counts = ExportCounts()

    def nodes(self, nodes: Iterable[Node]) -> Iterator[Node]:
        for number, node in enumerate(nodes, start=1):
            self.counts = self.counts._replace(nodes=number)
            yield node

    def edges(self, edges: Iterable[Edge]) -> Iterator[Edge]:
        for number, edge in enumerate(edges, start=1):
            self.counts = self.counts._replace(edges=number)
            yield edge

    def episodes(self, episodes: Iterable[Episode]) -> Iterator[Episode]:
        for number, episode in enumerate(episodes, start=1):
            self.counts = self.counts._replace(episodes=number)
            yield episode


def _export(
    graph: KnowledgeGraph, target: Target, supports: Collection[str], parts: Callable[[_Counter], Iterable[str]]
) -> ExportCounts:
    if unknown := sorted(set(supports) - set(SUPPORTS)):
        raise ValueError(f"no support {unknown[0]!r} (expected some of {', '.join(SUPPORTS)})")
    counter = _Counter()
    with graph.unchanging():
        if not isinstance(target, str | Path):
            target.writelines(parts(counter))
        else:
            with written_whole(Path(target).expanduser()) as file:
                file.writelines(part.encode() for part in parts(counter))
    return counter.counts


def _values_of_node(node: Node) -> dict[str, Any]:
    return node._asdict()


def _values_of_edge(edge: Edge) -> dict[str, Any]:
    return {**edge._asdict(), "source": edge.source.key, "target": edge.target.key}


def _values_of_episode(episode: Episode) -> dict[str, Any]:
    return {**episode._asdict(), "nodes": [node.key for node in episode.nodes]}


def _json_list(name: str, values: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield an object member whose value is a list, one element per line."""
    yield f',\n"{name}": ['
    for number, value in enumerate(values):
        yield f"{',' * (number > 0)}\n{plain_json(value)}"
    yield "\n]"


def _graphml_parts(graph: KnowledgeGraph, supports: Collection[str], counter: _Counter) -> Iterator[str]:
    out = io.StringIO()
    xml = XMLGenerator(out, "utf-8", short_empty_elements=True)
    xml.startDocument()
    xml.startElement("graphml", AttributesImpl({"xmlns": GRAPHML}))
    node_keys, edge_keys = _declare_keys(xml, "node", Node), _declare_keys(xml, "edge", Edge)
    xml.startElement("graph", AttributesImpl({"id": "G", "edgedefault": "directed"}))
    for node in counter.nodes(graph.iter_nodes(supports)):
        values = {**_values_of_node(node), "label": NODE_TYPES.get(node.type, node.type)}
        _element(xml, "node", {"id": _xml_id(node.key)}, node_keys, values)
        yield from _drain(out)
    for edge in counter.edges(graph.iter_edges(supports)):
        ends = {"source": _xml_id(edge.source.key), "target": _xml_id(edge.target.key)}
        values = {**_values_of_edge(edge), "label": EDGE_TYPES.get(edge.type, edge.type)}
        _element(xml, "edge", ends, edge_keys, values)
        yield from _drain(out)
    xml.endElement("graph")
    xml.endElement("graphml")
    xml.endDocument()
    yield from _drain(out, at_least=0)


def _declare_keys(xml: XMLGenerator, of: str, values: Any) -> dict[str, str]:
    """Declare the data keys of nodes or edges; return the ids of the keys by name."""
    types = {name: kind for name, kind in values.__annotations__.items() if kind in _GRAPHML_TYPES} | {"label": str}
    for name, kind in types.items():
        attributes = {"id": f"{of}_{name}", "for": of, "attr.name": name, "attr.type": _GRAPHML_TYPES[kind]}
        xml.startElement("key", AttributesImpl(attributes))
        xml.endElement("key")
        xml.ignorableWhitespace("\n")
    return {name: f"{of}_{name}" for name in types}


def _element(
    xml: XMLGenerator, name: str, attributes: dict[str, str], keys: Mapping[str, str], values: Mapping[str, Any]
) -> None:
    """Write a node or an edge with its data; empty texts are omitted."""
    xml.startElement(name, AttributesImpl(attributes))
    for field, key in keys.items():
        if values[field] != "":
            xml.startElement("data", AttributesImpl({"key": key}))
            xml.characters(_NOT_XML.sub("\ufffd", str(values[field])))
            xml.endElement("data")
    xml.endElement(name)
    xml.ignorableWhitespace("\n")


def _drain(out: io.StringIO, at_least: int = BUFFER_CHARS) -> Iterator[str]:
    """Yield the buffer and empty it, once it has `at_least` characters."""
    if out.tell() >= at_least:
        yield out.getvalue()
        out.seek(0)
        out.truncate()


def _xml_id(key: str) -> str:
    """Encode a key as an XML name token, injectively."""
    return _NOT_IN_ID.sub(lambda match: f"_{ord(match[0]):x}_", key)
