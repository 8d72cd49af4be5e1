"""The command that builds a Library's corpus index, or renews it."""

from typing import TYPE_CHECKING, Any

import click

from legal_rag.cli_options import open_library, place_options, print_json

if TYPE_CHECKING:
    from legal_rag.deep_read.models import ChatModel


@click.command("corpus-index")
@place_options
@click.option("--summaries", metavar="MODEL", help="A model that writes summaries where there is no official one.")
@click.option("--api-base", help="Its address, if it is an OpenAI-compatible server; else GENERATOR_API_BASE.")
@click.option("--api-key", help="Its key, never stored; else GENERATOR_API_KEY.")
@click.option("--parallel/--no-parallel", default=True, show_default=True, help="Describe documents on all cores.")
@click.option("--batch-size", type=click.IntRange(min=1), default=100, show_default=True, help="Documents at once.")
def corpus_index_command(
    index_folder: str,
    index_name: str,
    as_json: bool,
    summaries: str | None,
    api_base: str | None,
    api_key: str | None,
    parallel: bool,
    batch_size: int,
) -> None:
    """Build the corpus index, which `deep-read` needs: summaries, keywords, topics of every document.

    `index` builds it as well; `add` and `remove` keep it right, `compact` renews its frequencies and topics.
    """
    from legal_rag.corpus_index import CorpusIndexer

    library = open_library(index_folder, index_name)
    sub_llm = _model(summaries, api_key, api_base) if summaries else None
    index = CorpusIndexer(library, sub_llm).build_corpus_index(parallel, batch_size)
    said: dict[str, Any] = {
        "path": str(index.path),
        "documents": index.total_docs,
        "topics": len(index.topics),
        "summaries": index.summary_sources(),
    }
    if as_json:
        print_json(said)
        return
    kinds = ", ".join(f"{n} {source}" for source, n in said["summaries"].items())
    click.echo(f"{said['documents']} documents, {said['topics']} topics, summaries: {kinds}: {index.path}")


def _model(name: str, api_key: str | None, api_base: str | None) -> "ChatModel":
    from legal_rag.budget import UNLIMITED
    from legal_rag.deep_read.models import ChatModel
    from legal_rag.language_model import build_language_model, has_endpoint
    from legal_rag.model_calls import UsageTracker

    if not has_endpoint(api_key, api_base, name):
        raise click.ClickException(f"no endpoint to ask {name!r} at (expected --api-base, or GENERATOR_API_KEY)")
    # a summary for every document is what was asked for
    return ChatModel(build_language_model(name, api_key, api_base), UsageTracker(UNLIMITED))
