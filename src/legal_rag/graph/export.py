"""Export a graph for other tools, as `graph.json` or GraphML; streamed, so that any size fits in memory."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple
from xml.sax.saxutils import escape

from legal_rag.base.files import written_whole
from legal_rag.base.html import plain_json
from legal_rag.graph.graph import Edge, Episode, KnowledgeGraph, Node
from legal_rag.graph.store import SUPPORTS, TEXT
from legal_rag.graph.types import EDGE_TYPES, NODE_TYPES

FORMAT, VERSION = "legal_rag.graph", 1  # of `graph.json`
GRAPHML = "http://graphml.graphdrawing.org/xmlns"
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
    """Write a graph, in its state at the start, as JSON; see docs/graph.md for the format. Writers wait for the end.

    The target is a path, replaced once all is written, or an open text file. `supports` selects edges: 'text' for
    facts, 'stated' for claims of models, 'none' for unsupported claims; ValueError for others.
    """
    head = {"format": FORMAT, "version": VERSION, "commit": graph.library.commit, "supports": sorted(supports)}
    return _export(graph, target, supports, lambda items: _json_parts(head, items))


def export_graphml(graph: KnowledgeGraph, target: Target, supports: Collection[str] = (TEXT,)) -> ExportCounts:
    """Write a graph as GraphML, without episodes; characters that XML 1.0 forbids become U+FFFD. See `export_json`."""
    return _export(graph, target, supports, _graphml_parts)


# By the suffix of the file.
EXPORTS: Mapping[str, Callable[[KnowledgeGraph, Target, Collection[str]], ExportCounts]] = {
    "json": export_json,
    "graphml": export_graphml,
}

Items = Mapping[str, Iterator[dict[str, Any]]]  # values of nodes, edges, episodes


def _export(
    graph: KnowledgeGraph, target: Target, supports: Collection[str], parts: Callable[[Items], Iterable[str]]
) -> ExportCounts:
    if unknown := sorted(set(supports) - set(SUPPORTS)):
        raise ValueError(f"no support {unknown[0]!r} (expected some of {', '.join(SUPPORTS)})")
    counts: Counter[str] = Counter()

    def counted(name: str, values: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for value in values:
            counts[name] += 1
            yield value

    with graph.unchanging():
        items = {
            "nodes": counted("nodes", (node._asdict() for node in graph.iter_nodes(supports))),
            "edges": counted("edges", map(_values_of_edge, graph.iter_edges(supports))),
            "episodes": counted("episodes", map(_values_of_episode, graph.episodes())),
        }
        if not isinstance(target, str | Path):
            target.writelines(parts(items))
        else:
            with written_whole(Path(target).expanduser()) as file:
                file.writelines(part.encode() for part in parts(items))
    return ExportCounts(**counts)


def _values_of_edge(edge: Edge) -> dict[str, Any]:
    return {**edge._asdict(), "source": edge.source.key, "target": edge.target.key}


def _values_of_episode(episode: Episode) -> dict[str, Any]:
    return {**episode._asdict(), "nodes": [node.key for node in episode.nodes]}


def _json_parts(head: dict[str, Any], items: Items) -> Iterator[str]:
    yield plain_json(head)[:-1]
    for name, values in items.items():
        yield f',\n"{name}": ['
        for number, value in enumerate(values):
            yield f"{',' * (number > 0)}\n{plain_json(value)}"
        yield "\n]"
    yield "\n}\n"


def _graphml_parts(items: Items) -> Iterator[str]:
    yield f'<?xml version="1.0" encoding="utf-8"?>\n<graphml xmlns="{GRAPHML}">\n'
    fields: dict[str, list[str]] = {}
    for element, values_type in (("node", Node), ("edge", Edge)):
        types = {name: kind for name, kind in values_type.__annotations__.items() if kind in _GRAPHML_TYPES}
        fields[element] = [*types, "label"]
        for name, kind in {**types, "label": str}.items():
            named = f'attr.name="{name}" attr.type="{_GRAPHML_TYPES[kind]}"'
            yield f'<key id="{element}_{name}" for="{element}" {named}/>\n'
    yield '<graph id="G" edgedefault="directed">\n'
    for node in items["nodes"]:
        node["label"] = NODE_TYPES.get(node["type"], node["type"])
        yield f'<node id="{_xml_id(node["key"])}">{_graphml_data("node", fields["node"], node)}</node>\n'
    for edge in items["edges"]:
        edge["label"] = EDGE_TYPES.get(edge["type"], edge["type"])
        ends = f'source="{_xml_id(edge["source"])}" target="{_xml_id(edge["target"])}"'
        yield f"<edge {ends}>{_graphml_data('edge', fields['edge'], edge)}</edge>\n"
    yield "</graph></graphml>\n"


def _graphml_data(element: str, names: Iterable[str], values: Mapping[str, Any]) -> str:
    texts = {name: escape(_NOT_XML.sub("\ufffd", str(values[name]))) for name in names}
    return "".join(f'<data key="{element}_{name}">{text}</data>' for name, text in texts.items() if text)


def _xml_id(key: str) -> str:
    """Encode a key as an XML name token, injectively."""
    return _NOT_IN_ID.sub(lambda match: f"_{ord(match[0]):x}_", key)
