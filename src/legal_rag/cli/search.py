"""Commands that search an index and print a document."""

from typing import TYPE_CHECKING, Any

import click

from legal_rag.cli.options import filter_options, mode_option, open_library, place_options, print_json, trust_option

if TYPE_CHECKING:
    from legal_rag.library.filters import Filters


@click.command("search")
@place_options
@click.argument("query")
@click.option("--k", default=5, help="How many chunks (or documents).")
@click.option("--by-document", is_flag=True, help="Count documents, each by its best chunk.")
@click.option("--diverse", is_flag=True, help="Leave out passages that nearly repeat one above them.")
@mode_option
@filter_options
@trust_option
def search_command(
    query: str, k: int, index_folder: str, index_name: str, as_json: bool, filters: "Filters", **settings: Any
) -> None:
    """Rank the passages closest to QUERY."""
    from legal_rag.retriever.retriever import build_retriever

    library = open_library(index_folder, index_name)
    retriever = build_retriever(library, trust_remote_code=settings.pop("trust_remote_code"))
    hits = retriever.search(query, k, filters=filters, **settings)
    if as_json:
        print_json([hit._asdict() for hit in hits])
        return
    for hit in hits:
        date = f" ({hit.decision_date})" if hit.decision_date else ""
        click.echo(f"{hit.rank}. {hit.chunk_id}  {hit.score:.3f}  {hit.title}{date}")
        click.echo(f"   {' '.join(hit.text.split())[:300]}\n")


@click.command("lookup")
@place_options
@click.argument("identifier", metavar="ID")
def lookup_command(identifier: str, index_folder: str, index_name: str, as_json: bool) -> None:
    """Print the whole document that ID names: a chunk's id or a document's."""
    from legal_rag.agent.tool_arguments import find_document
    from legal_rag.tools import lookup_legal_doc

    library = open_library(index_folder, index_name)
    document = find_document(identifier, library)
    if as_json:
        names = {"doc_id": "id", "title": "title", "decision_date": "decision_date", "content": "content"}
        print_json({key: getattr(document, name) for key, name in names.items()})
    else:
        click.echo(lookup_legal_doc(identifier, library))
