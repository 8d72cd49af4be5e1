"""Commands on the graph of a Library."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from legal_rag.cli.options import (
    Place,
    count,
    html_option,
    note,
    page_to_write,
    place_options,
    print_json,
    write_page,
)
from legal_rag.graph.types import EDGE_TYPES, REVERSED_EDGE_TYPES
from legal_rag.report.lines import in_one_line

if TYPE_CHECKING:
    from legal_rag.graph.graph import Edge, KnowledgeGraph, Node
    from legal_rag.graph.page import NodeView

CITED_TYPES = ("article", "decision", "statute")  # what documents cite
LINE_CHARS = 400
all_option = click.option(
    "--all", "with_all", is_flag=True, help="Also what models said that no rule found in a text; never as facts."
)


def _json_of_edge(edge: "Edge") -> dict[str, Any]:
    return {**edge._asdict(), "source": edge.source._asdict(), "target": edge.target._asdict()}


@click.group("graph")
def graph_command() -> None:
    """Show, search and export the graph of a Library: decisions, articles, courts, parties, and what links them.

    A node is named by a document's id, a number, an article, a court, or its name.
    """


@graph_command.command("show")
@place_options
@click.argument("name")
@click.option("--most", default=20, type=click.IntRange(min=1), help="Lines of each kind of link.")
@html_option
@all_option
def show_command(name: str, place: Place, most: int, html: str | None, with_all: bool) -> None:
    """Show the node NAME: what it cites, what cites it, how later decisions treat it."""
    from legal_rag.graph.page import render_graph, view_node

    page = page_to_write(html)
    graph = _open_graph(place)
    node = graph.find(name)
    if place.as_json:
        print_json(_json_of_view(view_node(graph, node, with_all=with_all)))
    elif not page:
        _print_lines(_lines_of_view(graph, view_node(graph, node, with_all=with_all), most))
    write_page(page, lambda: render_graph(graph, node))


@graph_command.command("path")
@place_options
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
def path_command(first: str, second: str, place: Place) -> None:
    """Show a shortest chain of facts from the node A to the node B, each with its words in the text."""
    graph = _open_graph(place)
    start = graph.find(first)
    end = graph.find(second)
    if start.key == end.key:
        raise ValueError(f"{first!r} and {second!r} name the same node: {start.name}")
    edges = graph.path(start, end)
    if place.as_json:
        print_json([_json_of_edge(edge) for edge in edges])
    elif not edges:
        note("no chain of facts between them")
    else:
        _print_lines(_lines_of_path(graph, start, edges))


@graph_command.command("most-cited")
@place_options
@click.option("--type", "node_type", default="article", type=click.Choice(CITED_TYPES), help="Of nodes.")
@click.option("--k", default=20, type=click.IntRange(min=1), help="How many.")
def most_cited_command(node_type: str, k: int, place: Place) -> None:
    """List the articles, or other nodes, that most documents cite."""
    from legal_rag.graph.page import name_of

    graph = _open_graph(place)
    nodes = graph.most_cited(node_type, k)
    if place.as_json:
        print_json([node._asdict() for node in nodes])
        return
    if not nodes:
        note(f"nothing of the type {node_type} is cited")
    _print_lines((f"{node.cited:>6}  ", name_of(graph, node), False) for node in nodes)


@graph_command.command("export")
@place_options
@click.argument("file", metavar="FILE")
@all_option
def export_graph_command(file: str, place: Place, with_all: bool) -> None:
    """Write the graph into FILE: .json, or .graphml (Gephi, networkx, yEd, Neo4j)."""
    from legal_rag.graph.graph import EXPORTS
    from legal_rag.graph.store import SUPPORTS

    form = Path(file).suffix.lstrip(".").lower()
    if form not in EXPORTS:
        expected = ", ".join(f".{suffix}" for suffix in EXPORTS)
        raise ValueError(f"no format for {file!r} (expected a name ending in one of {expected})")
    target = page_to_write(file)
    counts = EXPORTS[form](_open_graph(place), target or file, SUPPORTS if with_all else SUPPORTS[:1])
    place.show(
        {"file": str(target), "format": form, **counts._asdict()},
        f"{count(counts.nodes, 'node')}, {count(counts.edges, 'edge')}: {target}",
    )


def _open_graph(place: Place) -> "KnowledgeGraph":
    from legal_rag.graph.graph import KnowledgeGraph

    return KnowledgeGraph(place.open())


Line = tuple[str, str, bool]  # indent and sign, text of any origin, whether it is quiet


def _print_lines(lines: Iterable[Line]) -> None:
    for lead, text, quiet in lines:
        line = lead + in_one_line(text, LINE_CHARS)
        click.echo(click.style(line, dim=True) if quiet else line)


def _json_of_view(view: "NodeView") -> dict[str, Any]:
    edges = {name: [_json_of_edge(edge) for edge in getattr(view, name)] for name in ("edges", "stated", "unsupported")}
    return {
        "node": view.node._asdict(),
        "name": view.name,
        "cited_by": view.node.cited,
        "rulings": [_json_of_edge(edge) for edge in view.rulings],
        **edges,
    }


def _lines_of_view(graph: "KnowledgeGraph", view: "NodeView", most: int) -> Iterator[Line]:
    from legal_rag.graph.page import facts_about, treatment_in_french

    yield "", view.name, False
    yield "", " · ".join(facts_about(view.node)), True
    if treatment := treatment_in_french(view.node, view.rulings):
        yield "", f"Traitement : {treatment}.", False
    yield from _lines_of_links(graph, view, most)
    for heading, edges in (
        ("Selon le modèle, non vérifié :", view.stated),
        ("Selon le modèle, sans appui dans les textes lus, non vérifié :", view.unsupported),
    ):
        if edges:
            yield "\n", heading, False
            yield from _lines_of_edges(graph, edges[:most])
            yield from _lines_left_out(len(edges) - most)


def _lines_of_links(graph: "KnowledgeGraph", view: "NodeView", most: int) -> Iterator[Line]:
    """Group the facts by what they say, as seen from the node."""
    from legal_rag.graph.page import grouped, name_of

    for says, ends in grouped(view).items():
        yield "\n", f"{says} ({len(ends)}{' au moins' if len(ends) >= view.most else ''}) :", False
        for edge, other in ends[:most]:
            detail = f" ({edge.detail})" if edge.detail else ""
            yield "  - ", f"{name_of(graph, other)}{detail}  [{_format_place(edge)}]", False
        yield from _lines_left_out(len(ends) - most)


def _lines_left_out(n: int) -> Iterator[Line]:
    if n > 0:
        yield "  ", f"… et {n} autre{'s' if n > 1 else ''} (--most en montre plus)", True


def _lines_of_edges(graph: "KnowledgeGraph", edges: Sequence["Edge"]) -> Iterator[Line]:
    from legal_rag.graph.page import name_of, origin_in_french

    for edge in edges:
        fact = f"{name_of(graph, edge.source)} {EDGE_TYPES.get(edge.type, edge.type)} {name_of(graph, edge.target)}"
        yield "  ? ", f"{fact} — {origin_in_french(edge)}", False


def _lines_of_path(graph: "KnowledgeGraph", start: "Node", edges: Sequence["Edge"]) -> Iterator[Line]:
    from legal_rag.graph.page import name_of, quote

    yield "", name_of(graph, start), False
    here = start.key
    for edge in edges:
        backward = edge.target.key == here
        here, other = (edge.source.key, edge.source) if backward else (edge.target.key, edge.target)
        says = (REVERSED_EDGE_TYPES if backward else EDGE_TYPES).get(edge.type, edge.type)
        yield "  ", f"{says} {name_of(graph, other)}", False
        quoted = quote(graph, edge)
        yield "     ", f"[{_format_place(edge)}]{f' « {quoted.whole} »' if quoted else ''}", True


def _format_place(edge: "Edge") -> str:
    return edge.doc_id + (f", {edge.char_start}-{edge.char_end}" if edge.char_start >= 0 else ", métadonnées")
