"""Commands that read deeply and show traces."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from legal_rag.cli.ask import instructions_text, keep_answer, open_store, print_answer, save_options, write_papers
from legal_rag.cli.extract import extract_before_reading
from legal_rag.cli.options import (
    Place,
    budget_of,
    budget_options,
    doc_ids_option,
    extract_option,
    extract_options,
    extraction_settings,
    html_option,
    instructions_option,
    json_option,
    language_model,
    model_options,
    note,
    page_to_write,
    place_options,
    print_json,
    run_settings,
    write_page,
)
from legal_rag.cli.settings import setting, settings_of
from legal_rag.deep_read.settings import DEEP_READ_BUDGET, DeepReadSettings
from legal_rag.report.lines import event_line

if TYPE_CHECKING:
    from legal_rag.agent.prediction import Prediction
    from legal_rag.library.library import Library


NO_MODEL = "Sans modèle de langage, rien n'est lu en profondeur : voici les passages les plus proches de la question."
SETTINGS = ("plan", "workers", "map_documents")  # named as in `DeepReadSettings`


@click.command("deep-read")
@place_options
@click.argument("question")
@doc_ids_option
@model_options
@setting("sub_model", str)
@settings_of(DeepReadSettings(), *SETTINGS)
@click.option("--trace", metavar="FILE", help="Record every turn, program and call.")
@html_option
@save_options
@instructions_option
@run_settings
@budget_options(DEEP_READ_BUDGET)
@extract_option("First, extract entities of the documents that have none. [default: of those named by --doc-id alone]")
@extract_options
def deep_read_command(
    question: str,
    place: Place,
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
    library = place.open()
    store = open_store(library, answers_folder, to_write=True) if save else None
    page = page_to_write(html)
    how = {name: options[name] for name in ("seed", "cache")}
    lm = language_model(options, **how)
    if extract or (extract is None and doc_ids and lm):
        extract_before_reading(library, doc_ids, extraction)
    if lm is None:
        prediction = _evidence(library, question, doc_ids, trust_remote_code=options["trust_remote_code"])
    else:
        from legal_rag.deep_read.reading import deep_read
        from legal_rag.retriever.retriever import Retriever

        prediction = deep_read(
            question,
            doc_ids or None,
            library=library,
            lm=lm,
            sub_lm=language_model({**options, "model": options["sub_model"] or options["model"]}, **how),
            budget=budget,
            settings=settings,
            retriever=Retriever(library, trust_remote_code=options["trust_remote_code"]),
            trace=Path(trace).expanduser() if trace else None,
            on_start=note,
            on_event=lambda event: note(event_line(event)) if stream else None,
        )
    print_answer(prediction, as_json=place.as_json)
    write_papers(prediction, [page], library)
    keep_answer(prediction, store)


@click.command("trace")
@click.argument("file", metavar="FILE")
@html_option
@json_option
def trace_command(file: str, html: str | None, as_json: bool) -> None:
    """Show a deep read turn by turn on a page, FILE.html without --html: reasoning, programs, output."""
    path = Path(file).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"no trace at {path} (expected the file that 'deep-read --trace FILE' wrote)")
    from legal_rag.deep_read.trace import read_trace, render_trace

    page = page_to_write(html or f"{path}.html")
    trace = read_trace(path)
    if as_json:
        print_json(trace.to_json())
    else:
        write_page(page, lambda: render_trace(trace))


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
