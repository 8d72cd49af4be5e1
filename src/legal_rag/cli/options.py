"""Options that several commands share, and where a command's Library is."""

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import date
from functools import wraps
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from legal_rag.base.text import escaped_json
from legal_rag.cli.settings import Invocation, setting, settings_of
from legal_rag.corpus.documents import ID_COLUMN, TEXT_COLUMN, SourceOptions
from legal_rag.extraction.schemas import AUTO, DEFAULT_MODEL, KEY_VARIABLE, RULES, ExtractionSettings, default_model
from legal_rag.library.filters import Filters, read_day
from legal_rag.library.library import DEFAULT_FOLDER, DEFAULT_NAME
from legal_rag.llm import Budget
from legal_rag.retriever.ranking import MODES

if TYPE_CHECKING:
    import dspy

    from legal_rag.evaluation.metrics import Figure
    from legal_rag.evaluation.trec import Qrels, Query
    from legal_rag.library.library import Library
    from legal_rag.library.plaid.search import SearchSettings

WITHOUT_INFERRED = "Sans ce qui est déduit : --no-inferred-filters"
EXTRACTION = ExtractionSettings()


def options(*several: Any) -> Callable[[Any], Any]:
    """Make one decorator of several options, which `--help` lists in this order."""

    def add(command: Any) -> Any:
        for option in reversed(several):
            command = option(command)
        return command

    return add


@dataclass(frozen=True)
class Place:
    """Where a command's Library lies, and whether its result is printed as JSON."""

    index_folder: str
    index_name: str
    as_json: bool

    @property
    def path(self) -> Path:
        """The Library's own folder."""
        return Path(self.index_folder).expanduser() / self.index_name

    def open(self) -> "Library":
        """Open the Library."""
        from legal_rag.library.library import Library

        return Library.open(self.index_folder, self.index_name)

    def show(self, value: Any, *lines: str) -> None:
        """Print a result: as JSON where that is asked for, else its lines."""
        if self.as_json:
            print_json(value)
            return
        for line in lines:
            click.echo(line)

    def suggest(self, command: str) -> None:
        """Print the command to run next on stderr, with the options of a Library that is not the default."""
        given = (("--index-folder", self.index_folder, DEFAULT_FOLDER), ("--index-name", self.index_name, DEFAULT_NAME))
        flags = "".join(f" {option} {quote(value)}" for option, value, default in given if value != default)
        note(click.style(f"→ legal-rag {command}{flags}", dim=True))


def place_options(command: Any) -> Any:
    """Add the options of every command on a Library; the command gets them as `place`."""

    @wraps(command)
    def placed(*arguments: Any, places: list[Place], **settings: Any) -> Any:
        return command(*arguments, place=places[0], **settings)

    name_option = click.option("--index-name", default=DEFAULT_NAME, help="The Library's own folder name.")
    return _at_places(placed, name_option, json_option)


def places_options(command: Any) -> Any:
    """Add the options of a command on several Libraries of one folder; the command gets them as `places`."""
    return _at_places(command, index_names_option, json_option)


def served_options(command: Any) -> Any:
    """Add the same options, but for `--json`: to a command that prints no result."""
    return _at_places(command, index_names_option)


def _at_places(command: Any, *further: Any) -> Any:
    @wraps(command)
    def placed(
        *arguments: Any, index_folder: str, index_name: str | tuple[str, ...], as_json: bool = False, **settings: Any
    ) -> Any:
        names = [index_name] if isinstance(index_name, str) else dict.fromkeys(index_name)
        places = [Place(index_folder, name, as_json) for name in names]
        click.get_current_context().ensure_object(Invocation).indexes = [place.path for place in places]
        return command(*arguments, places=places, **settings)

    folder_option = click.option("--index-folder", default=DEFAULT_FOLDER, help="The folder Libraries lie in.")
    return options(folder_option, *further)(placed)


index_names_option = click.option(
    "--index-name", multiple=True, default=[DEFAULT_NAME], help="A Library's own folder name; may be repeated."
)
HTML_SUFFIXES = (".html", ".htm")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON value.")
trust_option = click.option("--trust-remote-code", is_flag=True, help="Run Python code that comes with the encoder.")
html_option = click.option("--html", metavar="PAGE", help="Write the same as one page, beside the texts it rests on.")
doc_ids_option = click.option(
    "--doc-id", "doc_ids", multiple=True, metavar="ID", help="Of this document; may be repeated."
)
at_option = click.option(
    "--at", metavar="DAY", help="Articles as they were in force that day, e.g. 2019-06-01; by default today."
)
inferred_filters_option = click.option(
    "--inferred-filters/--no-inferred-filters",
    default=True,
    help="Read a court with a time, an article or a statute as a filter too.",
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Print what would be done, and do nothing.")
source_option = click.option(
    "--source", help="These documents, without a Library: a file, a folder, a dataset, 'sample'."
)
ids_file_option = click.option("--ids-file", help="A file of ids, one a line.")

# How a search ranks: see `search_settings`.
ranking_options = options(
    click.option("--mode", type=click.Choice(MODES), help="Default: hybrid, where words are indexed."),
    setting("exhaustive", bool, False),
)


def search_settings(settings: dict[str, Any]) -> "SearchSettings":
    """Pop the thoroughness settings of `ranking_options` from a command's options; the mode stays."""
    from legal_rag.library.plaid.search import SearchSettings

    return SearchSettings(exhaustive=settings.pop("exhaustive"))


# How a source is read: see `reading_options`.
column_options = options(
    click.option("--dataset-config", "config", help="Dataset configurations, comma-separated, e.g. juri,constit."),
    click.option("--id-column", default=ID_COLUMN),
    click.option("--text-column", default=TEXT_COLUMN),
    setting("split", str, SourceOptions().split),
    setting("html", bool, False),
)

# The documents of a source, and how they are read.
limit_option = click.option("--limit", type=int, help="How many documents at most.")
source_options = options(column_options, limit_option, ids_file_option)

# Where a model is asked, and how: see `request_settings`.
endpoint_options = options(
    click.option(
        "--api-base",
        envvar="GENERATOR_API_BASE",
        help="Address of an OpenAI-compatible server; else GENERATOR_API_BASE.",
    ),
    click.option("--timeout", default=120.0, help="Seconds that a whole reply of the model may take."),
    click.option(
        "--workers", type=click.IntRange(min=1), help="Requests to the model at once; else as its server has slots."
    ),
    click.option("--context-tokens", type=click.IntRange(min=1), help="That the model takes; else as its server says."),
    click.option("--model-options", metavar="JSON", help="Further members of each request to the model, an object."),
)
model_options = options(
    click.option("--model", envvar="GENERATOR_MODEL_ID", help="The model's id; else GENERATOR_MODEL_ID."),
    endpoint_options,
    setting("temperature", click.FloatRange(0, 2)),
    setting("max_reply_tokens", click.IntRange(min=1)),
)
instructions_option = click.option("--instructions", metavar="NAME|FILE", help="Instructions to the model.")
run_settings = options(setting("seed", int), setting("cache", bool, True), trust_option)  # of a model's replies


def budget_options(default: Budget) -> Callable[[Any], Any]:
    """Make the options and settings that limit one run: see `budget_of`."""
    return options(
        click.option("--max-seconds", "seconds", default=default.seconds),
        click.option("--max-cost", "cost", type=float, default=default.cost, help="Dollars, where the price is known."),
        settings_of(default, "steps", "model_calls", "tokens"),
    )


def budget_of(settings: dict[str, Any]) -> Budget:
    """Return the limits that `budget_options` gave."""
    return Budget(**{limit.name: settings[limit.name] for limit in fields(Budget)})


# Those of entity extraction: see `extraction_settings`.
extract_options = options(
    click.option(
        "--extract-model",
        help=f"'{RULES}', or a model's id; else as before, {DEFAULT_MODEL} with a key, {RULES} with none.",
    ),
    click.option(
        "--extract-schema",
        default=EXTRACTION.schema_name,
        help="What is extracted: 'auto' is as before, or chooses for each document.",
    ),
    setting("extract_api_base", str),
    setting("extract_passes", int, EXTRACTION.extraction_passes),
    setting("extract_workers", int, EXTRACTION.max_workers),
    setting("extract_timeout", float, EXTRACTION.timeout),
    setting("extract_model_options", str),
)


def extract_option(help_text: str) -> Callable[[Any], Any]:
    """Make the option that extracts entities by the way, or does not."""
    return click.option("--extract/--no-extract", default=None, help=help_text)


def filter_options(command: Any) -> Any:
    """Add the options that filter documents; the command gets them as `filters`."""

    @wraps(command)
    def filtered(*arguments: Any, **settings: Any) -> Any:
        values = {each.name: settings.pop(each.name) or None for each in fields(Filters)}
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
        click.option("--standing", is_flag=True, help="Without decisions that a later one here quashed or reversed."),
        click.option("--published", is_flag=True, help="Published ones: Bulletin, Recueil Lebon, report, letter."),
        at_option,
        doc_ids_option,
    )(filtered)


def day_of(at: str | None) -> date | None:
    """Return the day that `at_option` gave; ValueError if it is none."""
    return read_day("--at", at)


def extraction_settings(settings: dict[str, Any], place: "Place | None" = None) -> ExtractionSettings:
    """Return the extraction settings of a command, checked before any work is done.

    Without --extract-model, the model is that of the last extraction of the Library at `place`, if it can be asked.
    ValueError if there is no such schema, or a number is out of range.
    """
    if (schema := settings["extract_schema"]) != AUTO:
        from legal_rag.extraction.schemas import get_schema

        get_schema(schema)
    if settings["extract_api_base"] and not settings["extract_model"]:
        raise ValueError("extract_api_base says where, not which model (expected --extract-model as well)")
    key = os.environ.get(KEY_VARIABLE) or None
    return ExtractionSettings(
        schema_name=schema,
        model_id=settings["extract_model"] or _model_of(place, key) or default_model(key),
        api_key=key,
        api_base=settings["extract_api_base"] or None,
        extraction_passes=settings["extract_passes"],
        max_workers=settings["extract_workers"],
        timeout=settings["extract_timeout"],
        model_options=_json_object("extract_model_options", settings["extract_model_options"]),
    )


def _model_of(place: "Place | None", key: str | None) -> str | None:
    store = place.open().entity_store if place else None
    model = store.made_by[1] if store and store.made_by else None
    return model if key or model == RULES else None


def request_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of `build_language_model` that `endpoint_options` gave, besides the address."""
    if not settings["timeout"] > 0:
        raise ValueError(f"timeout must be above 0 seconds, got {settings['timeout']}")
    return {
        "timeout": settings["timeout"],
        "workers": settings["workers"],
        "window": settings["context_tokens"],
        "options": _json_object("model_options", settings["model_options"]),
    }


def sampling_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of `build_language_model` that `model_options` gave, besides model and address."""
    sampling = {"temperature": settings["temperature"], "max_tokens": settings["max_reply_tokens"]}
    return sampling | request_settings(settings)


def _json_object(name: str, text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text) if text else {}
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ValueError(f"{name} {text!r} is no JSON object (expected one such as '{{\"top_k\": 20}}')")
    return value


def language_model(settings: dict[str, Any], **further: Any) -> "dspy.LM | None":
    """Build the model that `model_options` name, with further settings of its own; None where none can be asked."""
    from legal_rag.llm import is_asked

    model, api_base = settings["model"], settings["api_base"]
    if not is_asked(None, api_base, model):
        return None
    from legal_rag.llm import build_language_model  # which needs the extra `agent`

    return build_language_model(model, None, api_base, **sampling_settings(settings), **further)


def reading_options(settings: dict[str, Any]) -> SourceOptions:
    """Return what `column_options` gave."""
    return SourceOptions(**{name: settings[name] for name in SourceOptions._fields})


def filter_at_fault(library: "Library", filters: Filters) -> str:
    """Return the first filter that alone excludes every document, as an option; empty if none does."""
    name, _, value = library.filter_at_fault(filters).partition(" ")
    return f"--{name.replace('_', '-')} {value}" if name else ""


def judged_queries(sources: Sequence[str], qrels: str | None) -> "tuple[list[Query], Qrels]":
    """Read questions, and the judgements on them, of `qrels` or else their own; ValueError if there are none."""
    from legal_rag.evaluation.trec import read_qrels, read_queries

    queries, judged = read_queries(*sources)
    if qrels is not None:
        judged = read_qrels(qrels)
    if not judged:
        raise ValueError(f"{', '.join(sources)} names no doc_id: give the judgements with --qrels")
    return queries, judged


def figures_json(figures: "Sequence[Figure]") -> dict[str, dict[str, float]]:
    """Return means and intervals by the names of their measures, as JSON has them."""
    return {name: {"mean": mean, "low": low, "high": high} for name, mean, low, high in figures}


def page_to_write(html: str | None, *suffixes: str) -> Path | None:
    """Return the file to write the page to, checked before any model call; `suffixes` are those of its kind.

    ValueError if it is named as another kind of file, is a folder or a device, or its folder does not exist; OSError if
    nothing can be written there.
    """
    if html is None:
        return None
    page = Path(html).expanduser()
    if page.exists() and not page.is_file():
        raise ValueError(f"no page can be written to {page}: it is not a file")
    if suffixes and page.suffix.lower() not in suffixes:
        raise ValueError(f"{html!r} does not end in {' or '.join(suffixes)}")
    if not page.parent.is_dir():
        raise ValueError(f"no folder {page.parent} to write {page.name} into (make it first)")
    with tempfile.TemporaryFile(dir=page.parent):
        return page


def write_page(page: Path | None, make: Callable[[], str | bytes]) -> None:
    """Write a page or a paper atomically, where one is asked for, and say where."""
    if page is not None:
        from legal_rag.base.files import write_whole

        write_whole(page, make())
        note(f"écrit : {page}")


def note(message: str) -> None:
    """Print a message on stderr, beside the result."""
    click.echo(message, err=True)


def note_remarks(remarks: Sequence[str]) -> None:
    """Print on stderr how a search was read, and how to undo that."""
    from legal_rag.retriever.search_box import INFERRED

    for remark in remarks:
        note(remark)
    if any(remark.startswith(INFERRED) for remark in remarks):
        note(click.style(WITHOUT_INFERRED, dim=True))


def count(n: int, what: str) -> str:
    """Write a number of things, the noun in the singular for one."""
    return f"{n} {what}" + "s" * (n != 1)


def print_json(value: Any) -> None:
    """Print one JSON value on stdout; what would steer a terminal is escaped."""
    from legal_rag.base.html import plain_json

    click.echo(escaped_json(plain_json(value)))
