"""What several commands of the command line share: options, opening a Library, printing JSON."""

import json
from typing import Any

import click

from legal_rag.corpus import DEFAULT_SPLIT, ID_COLUMN, TEXT_COLUMN, SourceOptions
from legal_rag.library import DEFAULT_FOLDER, DEFAULT_NAME

trust_option = click.option("--trust-remote-code", is_flag=True, help="Run Python code that comes with the encoder.")


def place_options(command: Any) -> Any:
    """Give a command the options that every command has."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON value."),
        click.option("--index-name", default=DEFAULT_NAME, show_default=True, help="The Library's own folder name."),
        click.option("--index-folder", default=DEFAULT_FOLDER, show_default=True, help="The folder Libraries lie in."),
    ):
        command = option(command)
    return command


def source_options(command: Any) -> Any:
    """Give a command the options that say which documents are read, and how."""
    for option in (
        click.option("--ids-file", help="A file of ids, one a line: these documents are taken first."),
        click.option("--limit", type=int, help="How many documents at most."),
        click.option("--html", is_flag=True, help="Parse every text as HTML, tags or not."),
        click.option("--text-column", default=TEXT_COLUMN, show_default=True),
        click.option("--id-column", default=ID_COLUMN, show_default=True),
        click.option("--split", default=DEFAULT_SPLIT, show_default=True),
        click.option("--config", help="Dataset configurations, comma-separated, e.g. juri,constit."),
    ):
        command = option(command)
    return command


def read_options(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of an `IndexConfig` that those options stand for."""
    options = SourceOptions(**{name: settings[name] for name in SourceOptions._fields})
    return {"options": options, "limit": settings["limit"], "ids_file": settings["ids_file"]}


def open_library(index_folder: str, index_name: str) -> Any:
    """Open the Library that a command is about."""
    from legal_rag.library import Library

    return Library.open(index_folder, index_name)


def print_json(value: Any) -> None:
    """Print one JSON value on stdout."""
    click.echo(json.dumps(value, ensure_ascii=False))
