"""The command line: arguments to one library call each, results to stdout, talk to stderr.

An expected error is one line and status 1; a bug keeps its traceback.
"""

import json
import logging
import os
import sqlite3
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import click

from legal_rag.chunking import ChunkConfig
from legal_rag.corpus import DEFAULT_DATASET, DEFAULT_SPLIT, ID_COLUMN, TEXT_COLUMN, SourceOptions
from legal_rag.encoder import AUTO, BUNDLED, DEFAULT_ENCODER, EncoderConfig, resolve_encoder
from legal_rag.indexer import BAD_RECORDS_LISTED, IndexConfig, IndexReport
from legal_rag.library import DEFAULT_FOLDER, DEFAULT_NAME

if TYPE_CHECKING:
    from legal_rag.prediction import Prediction

CHUNKS, INDEX = ChunkConfig(), IndexConfig()


def run() -> NoReturn:
    """Run the command line and leave the process with its status."""
    sys.exit(main())


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: The arguments; None takes the process's own.

    Returns:
        0, or 1 after an expected error, which was told in one line on stderr.
    """
    logging.basicConfig(format="%(message)s", level=logging.WARNING, stream=sys.stderr)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    try:
        commands.main(args=argv, prog_name="legal-rag", standalone_mode=False)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.Abort:
        return _fail("interrupted")
    except click.ClickException as error:
        return _fail(error.format_message())
    except (ValueError, LookupError, OSError, sqlite3.DatabaseError) as error:
        if isinstance(error, KeyError | IndexError | UnicodeError | BrokenPipeError):
            raise  # a bug, or a closed pipe, not something the user can mend
        return _fail(str(error) or type(error).__name__)
    return 0


def _fail(message: str) -> int:
    click.echo("legal-rag: " + " ".join(message.split()), err=True)
    return 1


def _place_options(command: Any) -> Any:
    """Give a command the options that every command has."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON value."),
        click.option("--index-name", default=DEFAULT_NAME, show_default=True, help="The Library's own folder name."),
        click.option("--index-folder", default=DEFAULT_FOLDER, show_default=True, help="The folder Libraries lie in."),
    ):
        command = option(command)
    return command


trust_option = click.option("--trust-remote-code", is_flag=True, help="Run Python code that comes with the encoder.")


def _open(index_folder: str, index_name: str) -> Any:
    from legal_rag.library import Library

    return Library.open(index_folder, index_name)


def _print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False))


@click.group(no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="legal-rag")
def commands() -> None:
    """Ask French court decisions in French: answers made of quotations checked against the text."""


@commands.command("index")
@_place_options
@click.option(
    "--source",
    default=DEFAULT_DATASET,
    show_default=True,
    help="A file, a folder, a Hugging Face dataset, or 'sample'.",
)
@click.option("--config", help="Dataset configurations, comma-separated, e.g. juri,constit.")
@click.option("--split", default=DEFAULT_SPLIT, show_default=True)
@click.option("--id-column", default=ID_COLUMN, show_default=True)
@click.option("--text-column", default=TEXT_COLUMN, show_default=True)
@click.option("--html", is_flag=True, help="Parse every text as HTML, tags or not.")
@click.option("--limit", type=int, help="How many documents at most.")
@click.option("--ids-file", help="A file of ids, one a line: these documents are taken first.")
@click.option(
    "--encoder",
    default=AUTO,
    show_default=True,
    help=f"'auto', '{BUNDLED}', a hub id such as {DEFAULT_ENCODER}, a folder.",
)
@click.option("--query-prefix", help="In place of the encoder's own, e.g. [QueryMarker].")
@click.option("--document-prefix", help="In place of the encoder's own, e.g. [DocumentMarker].")
@click.option("--query-length", type=int, help="Tokens the encoder reads of a question.")
@click.option("--document-length", type=int, help="Tokens the encoder reads of a chunk.")
@trust_option
@click.option("--chunk-tokens", type=int, default=CHUNKS.chunk_tokens, show_default=True)
@click.option("--overlap-tokens", type=int, default=CHUNKS.overlap_tokens, show_default=True)
@click.option("--header", default="Titre=title,Date=decision_date", show_default=True, help="Labels and columns.")
@click.option("--header-on", type=click.Choice(["first", "every", "none"]), default=CHUNKS.header_on, show_default=True)
@click.option("--n-bits", type=int, default=INDEX.n_bits, show_default=True, help="1, 2 or 4.")
@click.option("--seed", type=int, default=INDEX.seed, show_default=True)
def index_command(index_folder: str, index_name: str, as_json: bool, header: str, **settings: Any) -> None:
    """Build a Library from a source; one already there answers until the new one is complete."""
    from legal_rag.indexer import build_index

    cfg = IndexConfig(
        source=settings["source"],
        options=SourceOptions(**{name: settings[name] for name in SourceOptions._fields}),
        limit=settings["limit"],
        ids_file=settings["ids_file"],
        encoder=_encoder_config(settings),
        chunks=ChunkConfig(
            chunk_tokens=settings["chunk_tokens"],
            overlap_tokens=settings["overlap_tokens"],
            header_columns=_header_columns(header),
            header_on=settings["header_on"],
        ),
        n_bits=settings["n_bits"],
        seed=settings["seed"],
        index_folder=index_folder,
        index_name=index_name,
    )
    _tell_encoder(settings["encoder"], cfg.encoder.name)
    report = build_index(cfg)
    if as_json:
        _print_json(report.to_json())
    else:
        _print_report(report)


def _encoder_config(settings: dict[str, Any]) -> EncoderConfig:
    names = ("query_prefix", "document_prefix", "query_length", "document_length", "trust_remote_code")
    return EncoderConfig(name=resolve_encoder(settings["encoder"]), **{one: settings[one] for one in names})


def _tell_encoder(asked: str, name: str) -> None:
    if asked == AUTO:
        why = " (name an encoder to download it)" if name == BUNDLED else " (found in the local cache)"
        click.echo(f"encoder: {name}{why}", err=True)


def _header_columns(text: str) -> tuple[tuple[str, str], ...]:
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if wrong := [label for label, sign, column in pairs if not (label.strip() and sign and column.strip())]:
        raise ValueError(f"--header must look like 'Titre=title,Date=decision_date', got {text!r} (see {wrong[0]!r})")
    return tuple((label.strip(), column.strip()) for label, _, column in pairs)


def _print_report(report: IndexReport) -> None:
    click.echo(f"{report.documents} documents, {report.chunks} chunks, {report.tokens} token vectors: {report.path}")
    click.echo(", ".join(f"{step} {seconds:.1f} s" for step, seconds in report.seconds.items()), err=True)
    if report.bad:
        listed = "" if len(report.bad) <= BAD_RECORDS_LISTED else f", the first {BAD_RECORDS_LISTED} told above"
        click.echo(f"{len(report.bad)} records left out{listed}: all in {report.path}/bad_records.jsonl", err=True)
    if report.missing_ids:
        some = ", ".join(report.missing_ids[:5])
        click.echo(f"{len(report.missing_ids)} ids of the ids file were not found, or not readable: {some}", err=True)


@commands.command("info")
@_place_options
def info_command(index_folder: str, index_name: str, as_json: bool) -> None:
    """Say what a Library holds, and with what it was made."""
    library = _open(index_folder, index_name)
    manifest = library.manifest
    if as_json:
        _print_json(manifest)
        return
    counts, encoder = manifest["counts"], manifest["encoder"]
    click.echo(f"{library.path}: {counts['documents']} documents, {counts['chunks']} chunks, {counts['tokens']} tokens")
    click.echo(f"source: {manifest['source']['name']}")
    click.echo(f"encoder: {encoder['name']} {encoder['revision']}, {encoder['dim']} wide".replace("  ", " "))
    click.echo(f"chunks: {manifest['chunks']['chunk_tokens']} tokens, header on {manifest['chunks']['header_on']}")


@commands.command("search")
@_place_options
@click.argument("query")
@click.option("--k", type=int, default=5, show_default=True, help="How many chunks (or documents).")
@click.option("--by-document", is_flag=True, help="Count documents, each by its best chunk.")
@trust_option
def search_command(query: str, k: int, index_folder: str, index_name: str, as_json: bool, **settings: bool) -> None:
    """Rank the passages closest to QUERY."""
    from legal_rag.retriever import build_retriever

    library = _open(index_folder, index_name)
    retriever = build_retriever(library, trust_remote_code=settings["trust_remote_code"])
    hits = retriever.search(query, k, by_document=settings["by_document"])
    if as_json:
        _print_json([hit._asdict() for hit in hits])
        return
    for hit in hits:
        date = f" ({hit.decision_date})" if hit.decision_date else ""
        click.echo(f"{hit.rank}. {hit.chunk_id}  {hit.score:.3f}  {hit.title}{date}")
        click.echo(f"   {' '.join(hit.text.split())[:300]}\n")


@commands.command("lookup")
@_place_options
@click.argument("identifier", metavar="ID")
def lookup_command(identifier: str, index_folder: str, index_name: str, as_json: bool) -> None:
    """Print the whole document that ID names: a chunk's id or a document's."""
    from legal_rag.tools import find_document, lookup_legal_doc

    library = _open(index_folder, index_name)
    document = find_document(identifier, library)
    if as_json:
        names = {"doc_id": "id", "title": "title", "decision_date": "decision_date", "content": "content"}
        _print_json({key: getattr(document, name) for key, name in names.items()})
    else:
        click.echo(lookup_legal_doc(identifier, library))


@commands.command("ask")
@_place_options
@click.argument("question")
@click.option("--model", help="The model's id; else GENERATOR_MODEL_ID.")
@click.option("--api-base", help="Address of an OpenAI-compatible server; else GENERATOR_API_BASE.")
@click.option("--api-key", help="Its key, never stored; else GENERATOR_API_KEY.")
@trust_option
def ask_command(question: str, index_folder: str, index_name: str, as_json: bool, **settings: Any) -> None:
    """Answer QUESTION in French with checked citations; without a model, by verbatim passages alone."""
    from legal_rag.agent import build_agent

    agent = build_agent(_open(index_folder, index_name), **settings)
    prediction = agent(question)
    if as_json:
        _print_json(prediction.to_json())
    else:
        _print_prediction(prediction)


def _print_prediction(prediction: "Prediction") -> None:
    if prediction.notice:
        click.echo(prediction.notice + "\n")
    click.echo(prediction.answer)
    if prediction.documents:
        click.echo("\nDécisions consultées :")
    for document in prediction.documents:
        date = f" ({document.decision_date})" if document.decision_date else ""
        click.echo(f"- {document.doc_id} : {document.title}{date}")
