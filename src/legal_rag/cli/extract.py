"""The command that extracts entities."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from legal_rag.cli.options import (
    Place,
    count,
    extract_options,
    extraction_settings,
    note,
    place_options,
    read_options,
    source_option,
    source_options,
)

if TYPE_CHECKING:
    from legal_rag.extraction.schemas import ExtractionSettings
    from legal_rag.indexer.entities import ExtractReport


DEFAULT_OUTPUT = "entities"  # the folder for what was extracted without a Library
LISTED_IDS = 5  # in a message


@click.command("extract")
@place_options
@source_option
@source_options
@extract_options
@click.option("--output", help=f"Folder for the files; else the Library's own, or, with --source, ./{DEFAULT_OUTPUT}.")
@click.option("--view", is_flag=True, help="Open the page of all entities in the browser.")
def extract_command(source: str | None, output: str | None, view: bool, place: Place, **options: Any) -> int:
    """Extract grounded entities: parties, dates, amounts, articles… of a Library's documents, or of a source's.

    Without --extract-model, Gemini extracts where there is a key for it, else rules do. A run that was stopped
    is resumed by the same command.
    """
    from legal_rag.indexer.config import IndexConfig
    from legal_rag.indexer.entities import extract_library, extract_source

    settings = extraction_settings(options)
    if source is not None:
        cfg = IndexConfig(source=source, **read_options(options))
        report = extract_source(cfg, settings, output or DEFAULT_OUTPUT)
    else:
        if options["limit"] is not None or options["ids_file"] is not None:
            raise click.UsageError("--limit and --ids-file go with --source: of a Library, all documents are extracted")
        # What a model was paid for is not redone by rules, unless these are asked for.
        keep_models = options["extract_model"] is None
        report = extract_library(place.open(), settings, output, keep_models=keep_models)
    folder = Path(report.files[0]).parent
    place.show(report.to_json(), f"{report.entities} entities in {count(report.documents, 'document')}: {folder}")
    if not place.as_json:
        note(f"page: {_html_page(report)}")
    _print_limits_of_rules(report)
    print_losses(report)
    if view:
        from legal_rag.extraction.outputs import view_entities

        view_entities(folder)
    return 1 if report.failed else 0


def extract_after_index(library: Any, settings: "ExtractionSettings", *, keep_models: bool) -> None:
    """Extract missing entities of a new Library's documents; see `legal_rag.indexer.extract_library`."""
    from legal_rag.indexer.entities import extract_library

    report = extract_library(library, settings, keep_models=keep_models)
    counts = f"{report.entities} entities in {report.documents} documents, by {report.model}, {report.seconds:.1f} s"
    note(f"{counts}; page: {_html_page(report)}")
    print_losses(report)


def _print_limits_of_rules(report: "ExtractReport") -> None:
    """Say which classes the rules looked for, where those are not the whole schema."""
    from legal_rag.extraction.rules import classes_found
    from legal_rag.extraction.schemas import AUTO, RULES, get_schema

    if report.model != RULES or report.schema == AUTO:
        return
    schema = get_schema(report.schema)
    names = classes_found(schema)
    if len(names) < len(schema.classes):
        looked = f"looked for {len(names)} of the {len(schema.classes)} classes of {schema.name!r}: {', '.join(names)}"
        note(f"the rules know decisions and regulations; they {looked} (a model finds all: --extract-model)")


def _html_page(report: "ExtractReport") -> str:
    return next(file for file in report.files if file.endswith(".html"))


def extract_after_answer(library: Any, doc_ids: Sequence[str], settings: "ExtractionSettings") -> None:
    """Extract missing entities of the documents that an answer cites; a failure is only a message."""
    with _failure_as_message("documents cited"):
        _extract_missing(library, doc_ids, settings, "documents cited")


def extract_before_reading(library: Any, doc_ids: Sequence[str], settings: "ExtractionSettings") -> None:
    """Extract missing entities of the documents to be read, those named or all, after printing the cost.

    A failure is a message: the documents are read without.
    """
    from legal_rag.indexer.entities import missing_entities

    with _failure_as_message("documents"):
        missing, requests = missing_entities(library, doc_ids or None, settings)
        if missing:
            cost = f", about {requests} requests" if requests else ""
            note(f"extracting {len(missing)} documents first, by {settings.model_id}{cost}")
            _extract_missing(library, missing, settings, "documents")


@contextmanager
def _failure_as_message(what: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, OSError, sqlite3.DatabaseError) as error:
        note(f"the {what} were not extracted: {error}")


def _extract_missing(library: Any, doc_ids: Sequence[str], settings: "ExtractionSettings", what: str) -> None:
    from legal_rag.indexer.entities import complete_documents

    report = complete_documents(library, doc_ids, settings)
    if report.extracted:
        note(f"{report.entities} entities in the {report.documents} {what}, by {report.model}")
    print_losses(report)


def print_missing_ids(missing: Sequence[str]) -> None:
    """Say which ids of an ids file have no document."""
    if missing:
        listed = ", ".join(missing[:LISTED_IDS])
        note(f"{len(missing)} ids of the ids file were not found, or not readable: {listed}")


def print_losses(report: "ExtractReport") -> None:
    """Say which documents were not extracted, or not whole."""
    if report.bad_records:
        note(f"{count(report.bad_records, 'record')} left out")
    print_missing_ids(report.missing_ids)
    if report.with_gaps:
        ids = ", ".join(report.with_gaps[:LISTED_IDS])
        note(f"{len(report.with_gaps)} documents not read whole: {ids} (the same command asks again)")
    for doc_id, why in list(report.failed.items())[:LISTED_IDS]:
        note(f"{doc_id} was not extracted: {why}")
    if len(report.failed) > LISTED_IDS:
        note(f"{len(report.failed)} documents in all were not extracted (the same command tries again)")
