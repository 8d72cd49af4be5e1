"""Commands that search an index, print a document, and show the graph."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from legal_rag.cli.options import (
    HTML_SUFFIXES,
    Place,
    at_option,
    count,
    day_of,
    filter_at_fault,
    filter_options,
    html_option,
    inferred_filters_option,
    language_model,
    model_options,
    note,
    note_remarks,
    page_to_write,
    place_options,
    print_json,
    ranking_options,
    search_settings,
    trust_option,
    write_page,
)
from legal_rag.corpus.chunking import chunk_id
from legal_rag.corpus.documents import document_of
from legal_rag.law import long_date
from legal_rag.law.citation import legal_citation
from legal_rag.report.lines import printable_lines

if TYPE_CHECKING:
    from legal_rag.graph.applications import Application, ArticleVersion
    from legal_rag.graph.graph import Edge, KnowledgeGraph, Node
    from legal_rag.graph.page import NodeView
    from legal_rag.law.citation import LegalCitation
    from legal_rag.library.filters import Filters
    from legal_rag.library.library import Library
    from legal_rag.library.outlines import LocatedPassage
    from legal_rag.library.versions import Version
    from legal_rag.retriever.retriever import Retriever, SearchHit
    from legal_rag.retriever.search_box import Excerpt, SearchResults
    from legal_rag.retriever.structured import Reasoner

EXCERPT_CHARS = 300  # of a passage found
MISSING = {"entities": "entités", "outlines": "plans", "chunks": "passages", "model": "modèle"}
CITED_TYPES = ("article", "decision", "statute")  # what documents cite
MOST_LINES, LINE_CHARS = 20, 400  # of each kind of link; of a line
all_option = click.option(
    "--all", "with_all", is_flag=True, help="Also what models said that no rule found in a text; never as facts."
)


@click.command("search")
@place_options
@click.argument("query")
@click.option("--k", default=5, help="How many chunks (or documents).")
@click.option("--by-document", is_flag=True, help="Count documents, each by its best chunk.")
@click.option("--diverse", is_flag=True, help="Leave out passages that nearly repeat one above them.")
@ranking_options
@click.option(
    "--structured",
    is_flag=True,
    help="Rank entities and sections too; with a model, also those that it names in the documents' outlines.",
)
@model_options
@filter_options
@inferred_filters_option
@trust_option
def search_command(query: str, k: int, place: Place, structured: bool, filters: "Filters", **settings: Any) -> None:
    """Rank the passages closest to QUERY.

    It takes « exact phrases », ET, OU, NON, -mot, mot*, numbers, articles and statutes in any form, and a court with a
    time ("chambre sociale en 2018").
    """
    from legal_rag.retriever.retriever import Retriever

    _check_options(structured=structured)
    library = place.open()
    library.check_values(filters)
    # Loads what the mode needs.
    retriever = Retriever(library, settings=search_settings(settings), trust_remote_code=settings["trust_remote_code"])
    if structured:
        _print_structured(place, library, retriever, query, k, filters, settings)
        return
    from legal_rag.graph.fates import graph_of
    from legal_rag.retriever.search_box import outcome_in_words, relevance, search_typed

    ranked_by = {name: settings[name] for name in ("mode", "by_document", "diverse")}
    results = search_typed(
        retriever, query, k, filters=filters, infer_filters=settings["inferred_filters"], **ranked_by
    )
    note_remarks(results.remarks)
    rated = list(zip(results.hits, relevance(results.hits), strict=True))
    graph = graph_of(library)
    if place.as_json:
        print_json([_hit_json(library, graph, hit, rating, results) for hit, rating in rated])
        return
    if not results.hits:
        _note_nothing_found(library, results.filters)
    for hit, rating in rated:
        document = library.document(hit.doc_id)
        said = (legal_citation(document).plain, document.in_force, outcome_in_words(document))
        named = ", ".join(filter(None, said))
        click.echo(f"{hit.rank}. {hit.chunk_id}  {rating}  {named}")
        _print_standing(graph, hit.doc_id)
        _print_excerpt(library, hit, results)
    if results.hits:
        place.suggest(f"lookup {quote(results.hits[0].chunk_id)}")


def _hit_json(
    library: "Library", graph: "KnowledgeGraph | None", hit: "SearchHit", rating: int, results: "SearchResults"
) -> dict[str, Any]:
    from legal_rag.graph.fates import standing_of
    from legal_rag.retriever.search_box import outcome_in_words

    document, passages = library.document(hit.doc_id), _hit_passages(library, hit, results.filters)
    excerpt, passage = _excerpt_of(hit, passages, results)
    return {
        **hit._asdict(),
        "relevance": rating,
        "outcome": outcome_in_words(document),
        "fate": standing_of(graph, hit.doc_id),
        "excerpt": {
            "text": hit.text[excerpt.start : excerpt.end],
            "char_start": hit.char_start + excerpt.start,
            "char_end": hit.char_start + excerpt.end,
            "matched": [hit.text[start:end] for start, end in excerpt.matched],
            "speaker": passage.said.speaker if passage else None,
        },
        "passages": [passage.to_json() for passage in passages],
        "citation": legal_citation(document).text,
        "version": document.in_force,
    }


def _print_standing(graph: "KnowledgeGraph | None", doc_id: str) -> None:
    from legal_rag.graph.fates import standing_of

    if fate := standing_of(graph, doc_id):
        _print_lines([("   ⚠ ", fate, False)])


def _cite_document(library: "Library", doc_id: str) -> "LegalCitation":
    return legal_citation(library.document(doc_id))


def _check_options(*, structured: bool) -> None:
    """Refuse options that have no effect, unless a settings file or the environment set them for all commands."""
    unused = ("by_document", "diverse") if structured else ("model", "api_base")
    for name in unused:
        if click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = name.replace("_", "-")
            raise click.UsageError(f"--{option} {'does not go' if structured else 'goes only'} with --structured")


def _print_structured(
    place: Place,
    library: "Library",
    retriever: "Retriever",
    query: str,
    k: int,
    filters: "Filters",
    settings: dict[str, Any],
) -> None:
    from legal_rag.graph.fates import graph_of
    from legal_rag.law.keys import ParsedQuery
    from legal_rag.retriever.search_box import dated, inferred_filters
    from legal_rag.retriever.structured import StructuredProvider

    if settings["inferred_filters"]:
        filters, said = dated(ParsedQuery(query), library, filters)
        inferred = inferred_filters(query, library, filters, in_prose=False)
        note_remarks((*inferred.remarks, *said))
        filters = inferred.filters
    provider = StructuredProvider(retriever, _reasoner(settings), settings["mode"])
    hits = provider.retrieve(query, k, filters)
    if place.as_json:
        cited = [{**hit.to_json(), "citation": _cite_document(library, hit.doc_id).text} for hit in hits]
        print_json([{"rank": rank, **hit} for rank, hit in enumerate(cited, start=1)])
        return
    if missing := provider.health_check().missing:
        note(click.style(f"sans : {', '.join(map(MISSING.__getitem__, missing))}", dim=True))
    if not hits:
        _note_nothing_found(library, filters)
    graph = graph_of(library)
    for rank, hit in enumerate(hits, start=1):
        named = _cite_document(library, hit.doc_id).plain
        click.echo(f"{rank}. {hit.doc_id} {hit.char_start}-{hit.char_end}  {hit.score:.3f}  {hit.source}  {named}")
        _print_standing(graph, hit.doc_id)
        click.echo(click.style("   " + " ".join(f"{' › '.join(hit.sections)} - {hit.reason}".split()), dim=True))
        excerpt = " ".join(hit.text[:EXCERPT_CHARS].split())
        click.echo(f"   {excerpt}{'…' * (len(hit.text) > EXCERPT_CHARS)}\n")


def _note_nothing_found(library: "Library", filters: "Filters") -> None:
    fault = filter_at_fault(library, filters)
    among = " parmi les documents qui répondent aux filtres" if filters else ""
    note(f"aucun passage trouvé{f' : aucun document ne répond à {fault}' if fault else among}")


def _reasoner(settings: dict[str, Any]) -> "Reasoner | None":
    if (lm := language_model(settings)) is None:
        return None
    from legal_rag.agent.outlines import tree_reasoner

    return tree_reasoner(lm)


def _print_excerpt(library: "Library", hit: "SearchHit", results: "SearchResults") -> None:
    """Print the best sentence of a hit, what was typed in bold, below its section and speaker."""
    excerpt, passage = _excerpt_of(hit, _hit_passages(library, hit, results.filters), results)
    if passage is not None and (known := [" › ".join(passage.sections), passage.said.in_french]) != ["", ""]:
        click.echo(click.style(f"   {' - '.join(filter(None, known))}", dim=True))
    shown, at = "", excerpt.start
    for start, end in excerpt.matched:
        shown += hit.text[at:start] + click.style(hit.text[start:end], bold=True)
        at = end
    shown += hit.text[at : excerpt.end]
    before, after = excerpt.start > 0, excerpt.end < len(hit.text)
    click.echo(f"   {'…' * before}{' '.join(shown.split())}{'…' * after}\n")


def _excerpt_of(
    hit: "SearchHit", passages: Sequence["LocatedPassage"], results: "SearchResults"
) -> tuple["Excerpt", "LocatedPassage | None"]:
    from legal_rag.retriever.search_box import best_sentence

    spans = [(passage.char_start - hit.char_start, passage.char_end - hit.char_start) for passage in passages]
    excerpt = best_sentence(hit.text, spans or [(0, len(hit.text))], results.query, results.condition)
    around = (passage for passage, (start, end) in zip(passages, spans, strict=True) if start <= excerpt.start < end)
    return excerpt, next(around, None)


def _hit_passages(library: "Library", hit: "SearchHit", filters: "Filters") -> list["LocatedPassage"]:
    from legal_rag.library.outlines import passages_in

    return [
        passage
        for passage in passages_in(library, hit.doc_id, hit.char_start, hit.char_end)
        if filters.speaker in (None, passage.said.speaker) and filters.section in (None, passage.said.part)
    ]


_FORMS = "expected an id, a case number, or a court and a day: 'CA Nîmes, 6 juin 2019'"


@click.command("lookup")
@place_options
@click.argument("identifier", metavar="ID")
@click.option("--outline", is_flag=True, help="Print its outline instead, and who speaks in each section.")
@at_option
@click.option("--versions", is_flag=True, help="Print all versions of an article instead, and what each changed.")
@html_option
def lookup_command(
    identifier: str, place: Place, outline: bool, at: str | None, versions: bool, html: str | None
) -> None:
    """Print the whole document that ID names: a chunk's or document's id, a case number, court and day, or an article.

    An article is the version in force today, or on the day --at.
    """
    from legal_rag.agent.prediction import CitedDocument
    from legal_rag.agent.tool_arguments import find_chunk, find_document, resolve_id
    from legal_rag.graph.fates import graph_of, standing_of
    from legal_rag.law.keys import ParsedQuery
    from legal_rag.library.filters import Filters
    from legal_rag.library.versions import not_in_force, version_at
    from legal_rag.retriever.search_box import dated
    from legal_rag.tools import lookup_legal_doc

    page, given = page_to_write(html, *HTML_SUFFIXES), Filters(at=day_of(at))
    library = place.open()
    if not identifier.strip():
        raise ValueError(f"the id is empty; {_FORMS}")
    filters, said = dated(ParsedQuery(identifier), library, given)
    day = filters.at
    note_remarks(said)
    if versions:
        _show_versions(place, library, identifier)
        return
    if day and (version := version_at(identifier, day, library)):
        identifier = version.id
    elif day and identifier in library and library.document(identifier).force:
        raise LookupError(not_in_force(identifier, [identifier.strip()], library, day).said)
    identifier = resolve_id(identifier, library, day)
    try:
        document = find_document(identifier, library)
    except LookupError:  # worded for the agent, in French
        try:
            document = document_of(library, identifier.strip())
        except LookupError as error:
            raise LookupError(f"{error}; {_FORMS}") from None
    try:
        find_chunk(identifier, library)
    except LookupError:  # the document exists, not the passage
        last = chunk_id(document.id, len(library.chunks_of(document.id)) - 1)
        note(f"pas de passage {identifier!r} (le dernier du document est {last!r})")
    if outline or page:
        _show_outline(place, library, document.id, page, as_text=outline)
    elif place.as_json:
        graph = graph_of(library)
        known = CitedDocument.of(document)._replace(fate=standing_of(graph, document.id))
        history = _history_json(graph, graph.find(document.id)) if graph else {}
        print_json({**known._asdict(), **history, "content": document.content})
    else:
        _print_history(graph_of(library), document.id)
        click.echo(lookup_legal_doc(identifier, library))


def _history_json(graph: "KnowledgeGraph", node: "Node") -> dict[str, Any]:
    """Return what became of a decision and its case, as far as the Library knows; of another node nothing."""
    from legal_rag.graph.fates import chronology, fates_of, to_json

    if node.type != "decision":
        return {}
    return {
        "fates": [to_json(fate) for fate in fates_of(graph, node)],
        "case": [step._asdict() for step in chronology(graph, node)],
    }


def _print_history(graph: "KnowledgeGraph | None", doc_id: str) -> None:
    """Print what became of a decision, and its case; nothing of one of which nothing is known."""
    from legal_rag.graph.fates import NO_LATER, history_in_french

    node = graph.find(doc_id) if graph else None
    if graph and node and node.type == "decision":
        lines = history_in_french(graph, node)
        if lines != [NO_LATER]:
            _print_lines(("", line, False) for line in [*lines, ""])


def _show_versions(place: Place, library: "Library", named: str) -> None:
    """Print the versions of an article, each with its days and the words that it changed."""
    from legal_rag.library.versions import versions_of

    versions = versions_of(named, library)
    if not versions:
        raise LookupError(
            f"no article with versions is named {named!r:.200} (expected one with days of force in the index)"
        )
    if place.as_json:
        print_json([_version_json(version) for version in versions])
        return
    for version in versions:
        document = version.document
        click.echo(printable_lines(f"{document.id}  {legal_citation(document).plain}, {document.in_force}"))
        for lead, before, after in version.changes:
            changed = " ".join(filter(None, (before and f"[-{before}-]", after and f"[+{after}+]")))
            click.echo(printable_lines(f"   {lead} {changed}"))


def _version_json(version: "Version") -> dict[str, Any]:
    document = version.document
    known = {name: document.extra.get(name) for name in ("valid_from", "valid_until", "state")}
    cited = {"doc_id": document.id, "citation": legal_citation(document).text, **known}
    return {**cited, "changes": [change._asdict() for change in version.changes], "content": document.content}


def _show_outline(place: Place, library: "Library", doc_id: str, page: "Path | None", *, as_text: bool) -> None:
    from legal_rag.library.outlines import whole_outline_of
    from legal_rag.report.outline import format_outline, list_sections, render_outline

    if place.as_json:
        sections = [section.to_json() for section in list_sections(whole_outline_of(library, doc_id))]
        print_json({"doc_id": doc_id, "sections": sections})
    elif as_text:
        click.echo(format_outline(library, doc_id))
    write_page(page, lambda: render_outline(library, doc_id))


@click.group("graph")
def graph_command() -> None:
    """Show, search and export the graph of a Library: decisions, articles, courts, parties, and what links them.

    A node is named by a document's id, a number, an article, a court, or its name.
    """


@graph_command.command("show")
@place_options
@click.argument("name")
@click.option("--at", metavar="DAY", help="Of an article: the decisions on its version of that day, e.g. 2019-06-01.")
@html_option
@all_option
def show_command(name: str, place: Place, at: str | None, html: str | None, with_all: bool) -> None:
    """Show the node NAME: what it cites, what cites it, how later decisions treat it."""
    from legal_rag.graph.page import render_graph, view_node

    page, day = page_to_write(html, *HTML_SUFFIXES), day_of(at)
    graph = _open_graph(place)
    node = graph.find(name)
    if day:
        if page:
            raise ValueError("--at and --html exclude each other")
        _show_applications(place, graph, node, day)
        return
    if place.as_json:
        print_json({**_json_of_view(view_node(graph, node, with_all=with_all)), **_history_json(graph, node)})
    elif not page:
        _print_lines(_lines_of_view(graph, view_node(graph, node, with_all=with_all)))
    write_page(page, lambda: render_graph(graph, node))


def _show_applications(place: Place, graph: "KnowledgeGraph", node: "Node", day: date) -> None:
    from legal_rag.graph.applications import applications

    versions, found = applications(graph, node)
    current = next((version for version in versions if version.force.holds(day)), None)
    if place.as_json:
        counts = Counter(one.doc_id for one in found)
        print_json(
            {
                "node": node._asdict(),
                "at": day.isoformat(),
                "version": current and current.doc_id,
                "versions": [
                    {"doc_id": version.doc_id, "in_force": version.force.in_french, "decisions": counts[version.doc_id]}
                    for version in versions
                ],
                "decisions": [{**one._asdict(), "edge": _json_of_edge(one.edge)} for one in found],
            }
        )
    else:
        _print_lines(_lines_of_applications(graph, node, day, versions, found))


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
        note("aucune suite de faits entre eux")
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
        note(f"rien du type {node_type} n'est cité")
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


def _json_of_edge(edge: "Edge") -> dict[str, Any]:
    return {**edge._asdict(), "source": edge.source._asdict(), "target": edge.target._asdict()}


Line = tuple[str, str, bool]  # indent and sign, text of any origin, whether it is quiet


def _print_lines(lines: Iterable[Line]) -> None:
    from legal_rag.report.lines import in_one_line

    for lead, text, quiet in lines:
        line = lead + in_one_line(text, LINE_CHARS)
        click.echo(click.style(line, dim=True) if quiet else line)


def _json_of_view(view: "NodeView") -> dict[str, Any]:
    from legal_rag.graph.page import link_of

    edges = {name: [_json_of_edge(edge) for edge in getattr(view, name)] for name in ("edges", "stated", "unsupported")}
    link = link_of(view.node)
    return {
        "node": view.node._asdict(),
        "name": view.name,
        "link": link and link.url,
        "cited_by": view.node.cited,
        "rulings": [_json_of_edge(edge) for edge in view.rulings],
        **edges,
    }


def _lines_of_view(graph: "KnowledgeGraph", view: "NodeView") -> Iterator[Line]:
    from legal_rag.graph.fates import NO_LATER, history_in_french
    from legal_rag.graph.page import facts_about, link_of, treatment_in_french

    yield "", view.name, False
    yield "", " · ".join(facts_about(view.node)), True
    if link := link_of(view.node):
        yield "", f"{link.name} : {link.url}", True
    if treatment := treatment_in_french(view.node, view.rulings):
        yield "", f"Traitement : {treatment}.", False
    if view.node.type == "decision":
        yield from (("", line, line == NO_LATER) for line in history_in_french(graph, view.node))
    yield from _lines_of_links(graph, view)
    for heading, edges in (
        ("Selon le modèle, non vérifié :", view.stated),
        ("Selon le modèle, sans appui dans les textes lus, non vérifié :", view.unsupported),
    ):
        if edges:
            yield "\n", heading, False
            yield from _lines_of_edges(graph, edges[:MOST_LINES])
            yield from _lines_left_out(len(edges) - MOST_LINES)


def _lines_of_links(graph: "KnowledgeGraph", view: "NodeView") -> Iterator[Line]:
    from legal_rag.graph.page import grouped, name_of

    for says, ends in grouped(view).items():
        yield "\n", f"{says} ({len(ends)}{' au moins' if len(ends) >= view.most else ''}) :", False
        for edge, other in ends[:MOST_LINES]:
            detail = f" ({edge.detail})" if edge.detail else ""
            yield "  - ", f"{name_of(graph, other)}{detail}  [{_format_place(edge)}]", False
        yield from _lines_left_out(len(ends) - MOST_LINES)


def _lines_of_applications(
    graph: "KnowledgeGraph",
    node: "Node",
    day: date,
    versions: Sequence["ArticleVersion"],
    found: Sequence["Application"],
) -> Iterator[Line]:
    from legal_rag.graph.applications import RULES_IN_FRENCH
    from legal_rag.graph.page import name_of
    from legal_rag.graph.types import REVERSED_EDGE_TYPES

    on = {version.doc_id: [one for one in found if one.doc_id == version.doc_id] for version in versions}
    yield "", node.name, False
    current = [version for version in versions if version.force.holds(day)]
    if not current:
        yield "", f"Aucune version en vigueur le {long_date(day)}.", False
    for version in current:
        said = f"Version en vigueur le {long_date(day)} : {version.doc_id}, {version.force.in_french}"
        yield "", f"{said} ; {_decisions(on[version.doc_id])}.", False
        for one in on[version.doc_id]:
            stated = f" (« {one.stated} »)" if one.stated else ""
            rule = (
                f"{REVERSED_EDGE_TYPES[one.edge.type]} {name_of(graph, one.edge.source)}, {RULES_IN_FRENCH[one.rule]}"
            )
            yield "  - ", f"{rule}{stated}  [{_format_place(one.edge)}]", False
    for version in versions:
        if version not in current:
            said = f"Autre version : {version.doc_id}, {version.force.in_french}"
            yield "", f"{said} ; {_decisions(on[version.doc_id])}.", True
    if rest := [one for one in found if not one.doc_id]:
        yield "", f"Aucune version de l'index n'est en vigueur au jour retenu pour {_decisions(rest)}.", True


def _decisions(found: Sequence["Application"]) -> str:
    return f"{len(found) or 'aucune'} décision{'s' if len(found) > 1 else ''}"


def _lines_left_out(n: int) -> Iterator[Line]:
    if n > 0:
        yield "  ", f"… et {n} autre{'s' if n > 1 else ''} (--json les donne tous)", True


def _lines_of_edges(graph: "KnowledgeGraph", edges: Sequence["Edge"]) -> Iterator[Line]:
    from legal_rag.graph.page import name_of, origin_in_french
    from legal_rag.graph.types import EDGE_TYPES

    for edge in edges:
        fact = f"{name_of(graph, edge.source)} {EDGE_TYPES.get(edge.type, edge.type)} {name_of(graph, edge.target)}"
        yield "  ? ", f"{fact} — {origin_in_french(edge)}", False


def _lines_of_path(graph: "KnowledgeGraph", start: "Node", edges: Sequence["Edge"]) -> Iterator[Line]:
    from legal_rag.graph.page import name_of, quote
    from legal_rag.graph.types import EDGE_TYPES, REVERSED_EDGE_TYPES

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
