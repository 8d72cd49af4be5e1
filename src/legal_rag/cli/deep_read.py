"""Commands that read deeply and show traces."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from legal_rag.cli.ask import (
    answers_folder_option,
    budget_of,
    budget_options,
    html_option,
    instructions_text,
    keep_answer,
    open_store,
    page_to_write,
    print_answer,
    save_option,
    stream_option,
    write_page,
)
from legal_rag.cli.extract import extract_before_reading
from legal_rag.cli.options import (
    extract_options,
    extraction_settings,
    model_options,
    open_library,
    place_options,
    print_json,
    sampling_settings,
    trust_option,
)
from legal_rag.deep_read.settings import DEEP_READ_BUDGET, DeepReadSettings, PlanName
from legal_rag.report.lines import event_line

if TYPE_CHECKING:
    import dspy

    from legal_rag.agent.prediction import Prediction
    from legal_rag.library.library import Library


DEFAULTS = DeepReadSettings()
NO_MODEL = "Sans modèle de langage, rien n'est lu en profondeur : voici les passages les plus proches de la question."
SETTINGS = ("plan", "workers", "map_documents")  # options named as the settings are


@click.command("deep-read")
@place_options
@click.argument("question")
@click.option("--doc-id", "doc_ids", multiple=True, metavar="ID", help="Read this document; may be repeated.")
@model_options
@click.option("--sub-model", help="The model that reads parts, at the same address; else the same model.")
@click.option("--plan", type=click.Choice(get_args(PlanName)), default=DEFAULTS.plan)
@click.option("--map-documents", default=DEFAULTS.map_documents, help="Of plan 'map'.")
@click.option("--workers", default=DEFAULTS.workers, help="Questions asked at once.")
@click.option("--trace", metavar="FILE", help="Record every turn, program and call.")
@stream_option
@html_option
@save_option
@answers_folder_option
@click.option("--instructions", metavar="NAME|FILE", help="Further instructions to the model.")
@click.option("--no-cache", is_flag=True, help="Do not reuse earlier replies of the models.")
@click.option("--seed", type=int, help="Of the models' sampling; the same seed gives the same answer.")
@budget_options(DEEP_READ_BUDGET)
@click.option(
    "--extract/--no-extract",
    default=None,
    help="First, extract entities of the documents that have none. [default: of those named by --doc-id alone]",
)
@extract_options
@trust_option
def deep_read_command(
    question: str,
    index_folder: str,
    index_name: str,
    as_json: bool,
    doc_ids: tuple[str, ...],
    stream: bool,
    html: str | None,
    save: bool,
    answers_folder: str | None,
    trace: str | None,
    extract: bool | None,
    **options: Any,
) -> None:
    """Answer QUESTION over many decisions, or whole ones, by programs that a model writes and that run in a sandbox.

    What the read may cost at most is said before it starts. A read that was killed is resumed by the same command.
    """
    extraction = extraction_settings(options)
    budget = budget_of(options)
    named = options["instructions"]
    instructions = "" if named is None else instructions_text(named)
    settings = DeepReadSettings(instructions=instructions, **{name: options[name] for name in SETTINGS})
    library = open_library(index_folder, index_name)
    store = open_store(library, answers_folder, to_write=True) if save else None
    page = page_to_write(html)
    models = _build_models(options)
    if extract or (extract is None and doc_ids and models):
        extract_before_reading(library, doc_ids, extraction)
    if models is None:
        prediction = _evidence(library, question, doc_ids, trust_remote_code=options["trust_remote_code"])
    else:
        from legal_rag.deep_read.reading import deep_read
        from legal_rag.retriever.retriever import Retriever

        prediction = deep_read(
            question,
            doc_ids or None,
            library=library,
            lm=models[0],
            sub_lm=models[1],
            budget=budget,
            settings=settings,
            retriever=Retriever(library, trust_remote_code=options["trust_remote_code"]),
            trace=Path(trace).expanduser() if trace else None,
            on_start=lambda message: click.echo(message, err=True),
            on_event=lambda event: click.echo(event_line(event), err=True) if stream else None,
        )
    print_answer(prediction, as_json=as_json)
    keep_answer(prediction, page, store, library)


@click.command("trace")
@click.argument("file", metavar="FILE")
@click.option("--html", metavar="PAGE", help="The page to write.  [default: FILE.html]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON value instead.")
def trace_command(file: str, html: str | None, as_json: bool) -> None:
    """Show a deep read turn by turn on a page: reasoning, programs, output."""
    path = Path(file).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"no trace at {path} (expected the file that 'deep-read --trace FILE' wrote)")
    from legal_rag.deep_read.trace import read_trace, render_trace

    page = page_to_write(html or f"{path}.html")
    trace = read_trace(path)
    if as_json:
        print_json(trace.to_json())
    elif page:
        write_page(page, render_trace(trace))


def _build_models(options: dict[str, Any]) -> "tuple[dspy.LM, dspy.LM] | None":
    from legal_rag.llm import build_language_model, is_asked

    model, endpoint = options["model"], (options["api_key"], options["api_base"])
    if not is_asked(*endpoint, model):
        return None
    cache = not options["no_cache"]
    root, sub = (
        build_language_model(name, *endpoint, cache=cache, seed=options["seed"], **sampling_settings(options))
        for name in (model, options["sub_model"] or model)
    )
    return root, sub


def _evidence(library: "Library", question: str, doc_ids: tuple[str, ...], *, trust_remote_code: bool) -> "Prediction":
    """Answer by passages alone, with a notice why."""
    from legal_rag.agent.evidence import EvidenceAgent
    from legal_rag.library.filters import Filters
    from legal_rag.retriever.retriever import build_retriever

    named = tuple(library.document(doc_id).id for doc_id in doc_ids)
    retriever = build_retriever(library, trust_remote_code=trust_remote_code)
    filters = Filters(doc_ids=named) if named else None
    prediction = EvidenceAgent(retriever, match_words=False, filters=filters)(question)
    return dataclasses.replace(prediction, notice=NO_MODEL)
