"""Commands that search an index and print a document."""

from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from legal_rag.cli.options import (
    Place,
    filter_at_fault,
    filter_options,
    html_option,
    language_model,
    model_options,
    note,
    page_to_write,
    place_options,
    print_json,
    ranking_options,
    refuse_unknown_values,
    search_settings,
    trust_option,
    write_page,
)
from legal_rag.corpus.chunking import chunk_id
from legal_rag.corpus.documents import document_of
from legal_rag.law.citation import legal_citation
from legal_rag.law.sentences import cut_at_blanks, split_sentences

if TYPE_CHECKING:
    from pathlib import Path

    from legal_rag.law.citation import LegalCitation
    from legal_rag.library.filters import Filters
    from legal_rag.library.library import Library
    from legal_rag.library.outlines import LocatedPassage
    from legal_rag.retriever.retriever import Retriever, SearchHit
    from legal_rag.retriever.structured import Reasoner

EXCERPT_CHARS = 300  # of a passage found


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
@trust_option
def search_command(query: str, k: int, place: Place, structured: bool, filters: "Filters", **settings: Any) -> None:
    """Rank the passages closest to QUERY."""
    from legal_rag.retriever.retriever import Retriever

    _check_options(structured=structured)
    library = place.open()
    refuse_unknown_values(library, filters)
    # Loads what the mode needs.
    retriever = Retriever(library, settings=search_settings(settings), trust_remote_code=settings["trust_remote_code"])
    if structured:
        _print_structured(place, library, retriever, query, k, filters, settings)
        return
    ranked_by = {name: settings[name] for name in ("mode", "by_document", "diverse")}
    hits = retriever.search(query, k, filters=filters, **ranked_by)
    if place.as_json:
        print_json([_hit_json(library, hit, filters) for hit in hits])
        return
    if not hits:
        note(f"no passage found{filter_at_fault(library, filters)}")
    for hit in hits:
        click.echo(f"{hit.rank}. {hit.chunk_id}  {hit.score:.3f}  {_cite_document(library, hit.doc_id).plain}")
        _print_excerpt(hit, _hit_passages(library, hit, filters), query)
    if hits:
        place.suggest(f"lookup {quote(hits[0].chunk_id)}")


def _hit_json(library: "Library", hit: "SearchHit", filters: "Filters") -> dict[str, Any]:
    passages = [passage.to_json() for passage in _hit_passages(library, hit, filters)]
    return {**hit._asdict(), "passages": passages, "citation": _cite_document(library, hit.doc_id).text}


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
    """Print what `StructuredProvider` finds, with the part that found it and why."""
    from legal_rag.retriever.structured import StructuredProvider

    provider = StructuredProvider(retriever, _reasoner(settings), settings["mode"])
    hits = provider.retrieve(query, k, filters)
    if place.as_json:
        cited = [{**hit.to_json(), "citation": _cite_document(library, hit.doc_id).text} for hit in hits]
        print_json([{"rank": rank, **hit} for rank, hit in enumerate(cited, start=1)])
        return
    if missing := provider.health_check().missing:
        note(click.style(f"without {', '.join(missing)}", dim=True))
    if not hits:
        note(f"no passage found{filter_at_fault(library, filters)}")
    for rank, hit in enumerate(hits, start=1):
        named = _cite_document(library, hit.doc_id).plain
        click.echo(f"{rank}. {hit.doc_id} {hit.char_start}-{hit.char_end}  {hit.score:.3f}  {hit.source}  {named}")
        click.echo(click.style("   " + " ".join(f"{' › '.join(hit.sections)} - {hit.reason}".split()), dim=True))
        excerpt = " ".join(hit.text[:EXCERPT_CHARS].split())
        click.echo(f"   {excerpt}{'…' * (len(hit.text) > EXCERPT_CHARS)}\n")


def _reasoner(settings: dict[str, Any]) -> "Reasoner | None":
    if (lm := language_model(settings)) is None:
        return None
    from legal_rag.agent.outlines import tree_reasoner

    return tree_reasoner(lm)


def _print_excerpt(hit: "SearchHit", passages: Sequence["LocatedPassage"], query: str) -> None:
    """Print where a hit shares the most words with a question: section, speaker, `EXCERPT_CHARS` characters."""
    spans = [(passage.char_start - hit.char_start, passage.char_end - hit.char_start) for passage in passages]
    start, end = _nearest_sentence(hit.text, query, spans or [(0, len(hit.text))])
    of = next((passage for passage, span in zip(passages, spans, strict=True) if span[0] <= start < span[1]), None)
    if of is not None and (known := [" › ".join(of.sections), of.said.in_french]) != ["", ""]:
        click.echo(click.style(f"   {' - '.join(filter(None, known))}", dim=True))
    start = max(0, min((start + end - EXCERPT_CHARS) // 2, len(hit.text) - EXCERPT_CHARS))
    end = start + EXCERPT_CHARS
    excerpt = " ".join(hit.text[start:end].split())
    click.echo(f"   {'…' * (start > 0)}{excerpt}{'…' * (end < len(hit.text))}\n")


def _nearest_sentence(text: str, query: str, spans: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the piece of a sentence, within some spans of a text, that shares the most words with a question."""
    from legal_rag.library.bm25 import lexical_words

    asked = set(lexical_words(query))
    pieces = [
        (start + first, start + last)
        for start, end in spans
        for sentence in split_sentences(text[start:end])
        for first, last in cut_at_blanks(text[start:end], *sentence, EXCERPT_CHARS)
    ]
    return max(pieces, key=lambda piece: len(asked.intersection(lexical_words(text[slice(*piece)]))), default=(0, 0))


def _hit_passages(library: "Library", hit: "SearchHit", filters: "Filters") -> list["LocatedPassage"]:
    """Return the passages of a hit, those that the filters ask for if they do."""
    from legal_rag.library.outlines import passages_in

    return [
        passage
        for passage in passages_in(library, hit.doc_id, hit.char_start, hit.char_end)
        if filters.speaker in (None, passage.said.speaker) and filters.section in (None, passage.said.part)
    ]


@click.command("lookup")
@place_options
@click.argument("identifier", metavar="ID")
@click.option("--outline", is_flag=True, help="Print its outline instead, and who speaks in each section.")
@html_option
def lookup_command(identifier: str, place: Place, outline: bool, html: str | None) -> None:
    """Print the whole document that ID names: a chunk's id, a document's, or a case number."""
    from legal_rag.agent.prediction import CitedDocument
    from legal_rag.agent.tool_arguments import find_chunks, find_document, resolve_id
    from legal_rag.tools import lookup_legal_doc

    page = page_to_write(html)
    library = place.open()
    identifier = resolve_id(identifier, library)
    try:
        document = find_document(identifier, library)
    except LookupError:  # worded for the agent, in French
        document = document_of(library, identifier.strip())
    try:
        find_chunks(identifier, 0, library)
    except LookupError:  # the document exists, not the passage
        last = chunk_id(document.id, len(library.chunks_of(document.id)) - 1)
        note(f"no passage {identifier!r} (the document's last is {last!r})")
    if outline or page:
        _show_outline(place, library, document.id, page, as_text=outline)
    elif place.as_json:
        print_json({**CitedDocument.of(document)._asdict(), "content": document.content})
    else:
        click.echo(lookup_legal_doc(identifier, library))


def _show_outline(place: Place, library: "Library", doc_id: str, page: "Path | None", *, as_text: bool) -> None:
    from legal_rag.library.outlines import whole_outline_of
    from legal_rag.report.outline import format_outline, list_sections, render_outline

    if place.as_json:
        sections = [section.to_json() for section in list_sections(whole_outline_of(library, doc_id))]
        print_json({"doc_id": doc_id, "sections": sections})
    elif as_text:
        click.echo(format_outline(library, doc_id))
    write_page(page, lambda: render_outline(library, doc_id))
