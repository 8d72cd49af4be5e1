"""Commands that search an index and print a document."""

from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from legal_rag.cli.options import (
    filter_at_fault,
    filter_options,
    model_options,
    open_library,
    place_options,
    print_json,
    ranking_options,
    refuse_unknown_values,
    sampling_settings,
    search_settings,
    suggest,
    trust_option,
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
    from legal_rag.retriever.ranking import Mode
    from legal_rag.retriever.retriever import Retriever, SearchHit
    from legal_rag.retriever.structured import Reasoner

EXCERPT_CHARS = 300  # of a passage found
MODEL_OPTIONS = ("model", "api_base", "api_key", "temperature", "max_reply_tokens")


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
def search_command(
    query: str,
    k: int,
    index_folder: str,
    index_name: str,
    as_json: bool,
    structured: bool,
    filters: "Filters",
    **settings: Any,
) -> None:
    """Rank the passages closest to QUERY."""
    from legal_rag.retriever.retriever import Retriever

    model = {option: settings.pop(option) for option in MODEL_OPTIONS}
    _check_options(settings, model, structured=structured)
    library = open_library(index_folder, index_name)
    refuse_unknown_values(library, filters)
    how = search_settings(settings)
    # Loads what the mode needs.
    retriever = Retriever(library, settings=how, trust_remote_code=settings.pop("trust_remote_code"))
    if structured:
        _print_structured(library, retriever, query, k, filters, settings["mode"], model, as_json=as_json)
        return
    hits = retriever.search(query, k, filters=filters, **settings)
    if as_json:
        print_json([_hit_json(library, hit, filters) for hit in hits])
        return
    if not hits:
        click.echo(f"no passage found{filter_at_fault(library, filters)}", err=True)
    for hit in hits:
        click.echo(f"{hit.rank}. {hit.chunk_id}  {hit.score:.3f}  {_cite_document(library, hit.doc_id).plain}")
        _print_excerpt(hit, _hit_passages(library, hit, filters), query)
    if hits:
        suggest(f"lookup {quote(hits[0].chunk_id)}", index_folder, index_name)


def _hit_json(library: "Library", hit: "SearchHit", filters: "Filters") -> dict[str, Any]:
    passages = [passage.to_json() for passage in _hit_passages(library, hit, filters)]
    return {**hit._asdict(), "passages": passages, "citation": _cite_document(library, hit.doc_id).text}


def _cite_document(library: "Library", doc_id: str) -> "LegalCitation":
    return legal_citation(library.document(doc_id))


def _check_options(settings: dict[str, Any], model: dict[str, Any], *, structured: bool) -> None:
    unused = [name for name in ("by_document", "diverse") if settings[name]] if structured else []
    unused += [] if structured else [name for name, value in model.items() if value is not None]
    if unused:
        option = unused[0].replace("_", "-")
        raise click.UsageError(f"--{option} {'does not go' if structured else 'goes only'} with --structured")


def _print_structured(
    library: "Library",
    retriever: "Retriever",
    query: str,
    k: int,
    filters: "Filters",
    mode: "Mode | None",
    model: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    """Print what `StructuredProvider` finds, with the part that found it and why."""
    from legal_rag.retriever.structured import StructuredProvider

    provider = StructuredProvider(retriever, _reasoner(model), mode)
    hits = provider.retrieve(query, k, filters)
    if as_json:
        cited = [{**hit.to_json(), "citation": _cite_document(library, hit.doc_id).text} for hit in hits]
        print_json([{"rank": rank, **hit} for rank, hit in enumerate(cited, start=1)])
        return
    if missing := provider.health_check().missing:
        click.echo(click.style(f"without {', '.join(missing)}", dim=True), err=True)
    if not hits:
        click.echo(f"no passage found{filter_at_fault(library, filters)}", err=True)
    for rank, hit in enumerate(hits, start=1):
        named = _cite_document(library, hit.doc_id).plain
        click.echo(f"{rank}. {hit.doc_id} {hit.char_start}-{hit.char_end}  {hit.score:.3f}  {hit.source}  {named}")
        click.echo(click.style("   " + " ".join(f"{' › '.join(hit.sections)} - {hit.reason}".split()), dim=True))
        excerpt = " ".join(hit.text[:EXCERPT_CHARS].split())
        click.echo(f"   {excerpt}{'…' * (len(hit.text) > EXCERPT_CHARS)}\n")


def _reasoner(model: dict[str, Any]) -> "Reasoner | None":
    from legal_rag.llm import build_language_model, is_asked

    endpoint = model["api_key"], model["api_base"]
    if not is_asked(*endpoint, model["model"]):
        return None
    from legal_rag.agent.outlines import tree_reasoner

    return tree_reasoner(build_language_model(model["model"], *endpoint, **sampling_settings(model)))


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
@click.option("--html", metavar="FILE", help="Write the text beside its outline, coloured by speaker, as one page.")
def lookup_command(
    identifier: str, index_folder: str, index_name: str, as_json: bool, outline: bool, html: str | None
) -> None:
    """Print the whole document that ID names: a chunk's id, a document's, or a case number."""
    from legal_rag.agent.prediction import CitedDocument
    from legal_rag.agent.tool_arguments import find_chunks, find_document, resolve_id
    from legal_rag.cli.ask import page_to_write
    from legal_rag.tools import lookup_legal_doc

    page = page_to_write(html)
    library = open_library(index_folder, index_name)
    identifier = resolve_id(identifier, library)
    try:
        document = find_document(identifier, library)
    except LookupError:  # worded for the agent, in French
        document = document_of(library, identifier.strip())
    try:
        find_chunks(identifier, 0, library)
    except LookupError:  # the document exists, not the passage
        last = chunk_id(document.id, len(library.chunks_of(document.id)) - 1)
        click.echo(f"no passage {identifier!r} (the document's last is {last!r})", err=True)
    if outline or page:
        _show_outline(library, document.id, page, as_text=outline and not as_json, as_json=as_json)
    elif as_json:
        print_json({**CitedDocument.of(document)._asdict(), "content": document.content})
    else:
        click.echo(lookup_legal_doc(identifier, library))


def _show_outline(library: "Library", doc_id: str, page: "Path | None", *, as_text: bool, as_json: bool) -> None:
    from legal_rag.cli.ask import write_page
    from legal_rag.library.outlines import whole_outline_of
    from legal_rag.report.outline import format_outline, list_sections, render_outline

    if as_json:
        sections = [section.to_json() for section in list_sections(whole_outline_of(library, doc_id))]
        print_json({"doc_id": doc_id, "sections": sections})
    if as_text:
        click.echo(format_outline(library, doc_id))
    if page:
        write_page(page, render_outline(library, doc_id))
