"""The command line: arguments to one library call each, results to stdout, talk to stderr.

An expected error is one line and status 1; a bug keeps its traceback.
"""

import logging
import os
import sqlite3
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import click

from legal_rag.cli.ask import ask_command, runs_command
from legal_rag.cli.deep_read import deep_read_command, trace_command
from legal_rag.cli.evaluate import evaluate_command, questions_command
from legal_rag.cli.extract import extract_command
from legal_rag.cli.library import LIBRARY_COMMANDS, corpus_index_command
from legal_rag.cli.options import filter_options, mode_option, open_library, place_options, print_json, trust_option

if TYPE_CHECKING:
    from legal_rag.library.filters import Filters


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
        status = commands.main(args=argv, prog_name="legal-rag", standalone_mode=False)
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
    return status or 0


def _fail(message: str) -> int:
    click.echo("legal-rag: " + " ".join(message.split()), err=True)
    return 1


@click.group(no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="legal-rag")
def commands() -> None:
    """Ask French court decisions in French: answers made of quotations checked against the text."""


OTHERS = (
    corpus_index_command,
    ask_command,
    deep_read_command,
    trace_command,
    runs_command,
    extract_command,
    evaluate_command,
    questions_command,
)
for command in (*LIBRARY_COMMANDS, *OTHERS):
    commands.add_command(command)


@commands.command("search")
@place_options
@click.argument("query")
@click.option("--k", type=int, default=5, show_default=True, help="How many chunks (or documents).")
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


@commands.command("lookup")
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
