"""Options that several commands share."""

from collections.abc import Callable
from dataclasses import fields
from difflib import get_close_matches
from functools import wraps
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from legal_rag.base.text import escaped_json
from legal_rag.corpus.documents import DEFAULT_SPLIT, ID_COLUMN, TEXT_COLUMN, SourceOptions
from legal_rag.extraction.schemas import AUTO, DEFAULT_MODEL, KEY_VARIABLE, RULES, ExtractionSettings, default_model
from legal_rag.library.filters import Filters
from legal_rag.library.library import DEFAULT_FOLDER, DEFAULT_NAME
from legal_rag.retriever.ranking import MODES

if TYPE_CHECKING:
    from legal_rag.library.plaid.search import SearchSettings

EXTRACTION = ExtractionSettings()
VALUES_LISTED = 12  # of a filter
ALIKE = 0.75  # of two spellings, from which one is suggested for the other


def options(*several: Any) -> Callable[[Any], Any]:
    """Make one decorator of several options, which `--help` lists in this order."""

    def add(command: Any) -> Any:
        for option in reversed(several):
            command = option(command)
        return command

    return add


trust_option = click.option("--trust-remote-code", is_flag=True, help="Run Python code that comes with the encoder.")
# How a search ranks: see `search_settings`.
ranking_options = options(
    click.option("--mode", type=click.Choice(MODES), help="Default: hybrid, where words are indexed."),
    click.option("--exhaustive", is_flag=True, help="Compare the question with every passage, token by token."),
)


def search_settings(settings: dict[str, Any]) -> "SearchSettings":
    """Pop the thoroughness options of `ranking_options` from a command's options; the mode stays."""
    from legal_rag.library.plaid.search import SearchSettings

    return SearchSettings(exhaustive=settings.pop("exhaustive"))


# Those of every command on a Library.
place_options = options(
    click.option("--index-folder", default=DEFAULT_FOLDER, help="The folder Libraries lie in."),
    click.option("--index-name", default=DEFAULT_NAME, help="The Library's own folder name."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON value."),
)

# How a source is read: see `reading_options`.
column_options = options(
    click.option("--config", help="Dataset configurations, comma-separated, e.g. juri,constit."),
    click.option("--split", default=DEFAULT_SPLIT),
    click.option("--id-column", default=ID_COLUMN),
    click.option("--text-column", default=TEXT_COLUMN),
    click.option("--html", is_flag=True, help="Parse every text as HTML, tags or not."),
)

# The documents of a source, and how they are read: see `read_options`.
source_options = options(
    column_options,
    click.option("--limit", type=int, help="How many documents at most."),
    click.option("--ids-file", help="A file of ids, one a line: these documents are taken first."),
)

model_options = options(
    click.option("--model", help="The model's id; else GENERATOR_MODEL_ID."),
    click.option("--api-base", help="Address of an OpenAI-compatible server; else GENERATOR_API_BASE."),
    click.option("--api-key", help="Its key, never stored; else GENERATOR_API_KEY."),
    click.option("--temperature", type=click.FloatRange(0, 2), help="Of the model's sampling. [default: 0.2]"),
    click.option("--max-reply-tokens", type=click.IntRange(min=1), help="Tokens of each reply. [default: 8000]"),
)

# Those of entity extraction: see `extraction_settings`.
extract_options = options(
    click.option(
        "--extract-model",
        help=f"'{RULES}', or a model's id; else {DEFAULT_MODEL} where there is a key, {RULES} where there is none.",
    ),
    click.option(
        "--extract-schema", default=EXTRACTION.schema_name, help="What is extracted: 'auto' chooses for each document."
    ),
    click.option("--extract-api-key", envvar=KEY_VARIABLE, help=f"The model's key, never stored; else {KEY_VARIABLE}."),
    click.option("--extract-api-base", help="Address of an OpenAI-compatible server, or Ollama's."),
    click.option(
        "--extract-passes", default=EXTRACTION.extraction_passes, help="Times that a model reads each piece, 1 to 5."
    ),
)


def filter_options(command: Any) -> Any:
    """Add the options that filter documents; the command gets them as `filters`."""

    @wraps(command)
    def filtered(*arguments: Any, **settings: Any) -> Any:
        values = {field.name: settings.pop(field.name) or None for field in fields(Filters)}
        try:
            filters = Filters(**values)
        except ValueError as error:  # which names the field, not the option
            name = str(error).partition(" ")[0]
            option = f"--{name.replace('_', '-')}" if name in values else name
            raise ValueError(option + str(error)[len(name) :]) from error
        if filters.date_from and filters.date_to and str(filters.date_from) > str(filters.date_to):
            raise ValueError(f"--date-from {values['date_from']} is after --date-to {values['date_to']}")
        return command(*arguments, filters=filters, **settings)

    return options(
        click.option("--juridiction", help="Court, perhaps with its chamber, e.g. 'Cass. soc.', 'CA Lyon'."),
        click.option("--formation", help="Chamber, e.g. 'soc.', '2e civ.'."),
        click.option("--solution", help="Outcome, e.g. 'rejet'."),
        click.option("--date-from", help="First day or year, e.g. 2023, 2023-11-08, '8 novembre 2023'."),
        click.option("--date-to", help="Last day or year, included."),
        click.option("--number", help="The decision's own number, or its ECLI."),
        click.option("--article", help="Documents that cite this article, or are it: 'L. 1152-1 du code du travail'."),
        click.option(
            "--entity",
            multiple=True,
            metavar="CLASS=VALUE",
            help="Documents with this entity: 'partie=Société Lever', 'montant=1 000 francs'; may be repeated.",
        ),
        click.option("--speaker", help="Who speaks in the passage: court, party, lower_court or text."),
        click.option("--section", help="Main part of the decision, e.g. motifs, dispositif."),
        click.option("--doc-id", "doc_ids", multiple=True, metavar="ID", help="Search this document; may be repeated."),
    )(filtered)


def extraction_settings(settings: dict[str, Any]) -> ExtractionSettings:
    """Return the extraction settings of a command, checked before any work is done.

    Raises:
        ValueError: If there is no such schema, or a number is out of range.
    """
    if (schema := settings["extract_schema"]) != AUTO:
        from legal_rag.extraction.schemas import get_schema

        get_schema(schema)
    key = settings["extract_api_key"] or None
    if settings["extract_api_base"] and not settings["extract_model"]:
        raise ValueError("--extract-api-base says where, not which model (expected --extract-model as well)")
    return ExtractionSettings(
        schema_name=schema,
        model_id=settings["extract_model"] or default_model(key),
        api_key=key,
        api_base=settings["extract_api_base"] or None,
        extraction_passes=settings["extract_passes"],
        max_workers=settings.get("extract_workers", EXTRACTION.max_workers),
    )


def sampling_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of `build_language_model` that `model_options` gave, besides model and endpoint."""
    return {"temperature": settings["temperature"], "max_tokens": settings["max_reply_tokens"]}


def reading_options(settings: dict[str, Any]) -> SourceOptions:
    """Return what `column_options` gave."""
    return SourceOptions(**{name: settings[name] for name in SourceOptions._fields})


def read_options(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of an `IndexConfig` that `source_options` gave."""
    return {"options": reading_options(settings), "limit": settings["limit"], "ids_file": settings["ids_file"]}


def open_library(index_folder: str, index_name: str) -> Any:
    """Open the Library of a command."""
    from legal_rag.library.library import Library

    return Library.open(index_folder, index_name)


def refuse_unknown_values(library: Any, filters: Filters) -> None:
    """Raise for an unknown court, chamber, outcome or document id, before anything is loaded.

    ValueError, or LookupError for an id, whose message names the nearest.
    """
    for doc_id in filters.doc_ids or ():
        if doc_id not in library:
            library.document(doc_id)
    for name, known in library.unknown_values(filters).items():
        listed = "; ".join(known[:VALUES_LISTED]) + ("…" if len(known) > VALUES_LISTED else "")
        value = str(getattr(filters, name))
        near = get_close_matches(value.casefold(), [existing.casefold() for existing in known[:1]], n=1, cutoff=ALIKE)
        hint = f": did you mean {known[0]!r}?" if near else ""
        raise ValueError(f"no document has the {name} {value!r}{hint} (there are: {listed or 'none'})")


def filter_at_fault(library: Any, filters: Filters) -> str:
    """Name the first filter that alone excludes every document, or else say that filters were applied."""
    for name in (field.name for field in fields(filters)):
        value = getattr(filters, name)
        if value is not None and not library.ids(type(filters)(**{name: value})):
            text = "; ".join(value) if isinstance(value, tuple) else value
            return f": no document meets --{name.replace('_', '-')} '{text}'"
    return " among the documents that meet the filters" if filters else ""


def suggest(command: str, index_folder: str, index_name: str) -> None:
    """Print the command to run next on stderr, with the options of a Library that is not the default."""
    places = (("--index-folder", index_folder, DEFAULT_FOLDER), ("--index-name", index_name, DEFAULT_NAME))
    flags = "".join(f" {option} {quote(given)}" for option, given, default in places if given != default)
    click.echo(click.style(f"next: legal-rag {command}{flags}", dim=True), err=True)


def count(n: int, what: str) -> str:
    """Write a number of things, the noun in the singular for one."""
    return f"{n} {what}" + "s" * (n != 1)


def print_json(value: Any) -> None:
    """Print one JSON value on stdout; what would steer a terminal is escaped."""
    from legal_rag.base.html import plain_json

    click.echo(escaped_json(plain_json(value)))
