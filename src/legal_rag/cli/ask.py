"""Commands that answer a question, show saved answers, and check any text against a Library."""

import tempfile
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from legal_rag.agent.tags import TagSettings
from legal_rag.cli.extract import extract_after_answer
from legal_rag.cli.options import (
    extract_options,
    extraction_settings,
    model_options,
    open_library,
    options,
    place_options,
    print_json,
    sampling_settings,
    trust_option,
)
from legal_rag.llm import Budget
from legal_rag.report.lines import (
    VERBATIM_MODES,
    citations_in_french,
    event_line,
    french_seconds,
    graph_line,
    in_one_line,
    printable,
    warning_lines,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from legal_rag.agent.agent import LegalReActAgent
    from legal_rag.agent.contradictions import Comparison
    from legal_rag.agent.evidence import EvidenceAgent
    from legal_rag.agent.prediction import Prediction
    from legal_rag.library.library import Library
    from legal_rag.report.saved_answers import SavedAnswers, SavedAnswerSummary

TAGS = TagSettings()
QUESTION_CHARS = 80  # of a question in the list of answers
save_option = click.option("--save", is_flag=True, help="Save the answer, question included; `answers` lists it.")
stream_option = click.option("--stream", is_flag=True, help="Print each step on stderr.")
html_option = click.option("--html", metavar="FILE", help="Write the answer and its evidence as one page.")
paper_options = options(
    click.option("--docx", metavar="FILE", help="Write the answer as a Word document, decisions by legal citation."),
    click.option("--bibtex", metavar="FILE", help="Write BibTeX entries of the decisions cited."),
)
answers_folder_option = click.option(
    "--answers-folder", "--runs-folder", metavar="DIR", help="Folder of saved answers; by default the index's own."
)


def budget_options(default: Budget) -> Callable[[Any], Any]:
    """Make the options that limit one run: see `budget_of`."""
    return options(
        click.option(
            "--max-steps", "steps", default=default.steps, help="Steps, each a thought and a tool call or program."
        ),
        click.option("--max-calls", "model_calls", default=default.model_calls, help="Calls of the model."),
        click.option("--max-tokens", "tokens", default=default.tokens, help="Tokens read and written, in all."),
        click.option("--max-seconds", "seconds", default=default.seconds),
        click.option("--max-cost", "cost", type=float, default=default.cost, help="Dollars, where the price is known."),
    )


@click.command("ask")
@place_options
@click.argument("question")
@model_options
@stream_option
@html_option
@paper_options
@click.option("--compare", is_flag=True, help="Add decisions that cite the same article and came out the other way.")
@save_option
@answers_folder_option
@click.option(
    "--instructions",
    metavar="NAME|FILE",
    help="Instructions to the model. [default: the index's instructions.md, else jurisprudence]",
)
@click.option("--no-cache", is_flag=True, help="Do not reuse earlier replies of the model.")
@click.option(
    "--tags/--no-tags",
    "single_pass_extraction_enabled",
    default=TAGS.single_pass_extraction_enabled,
    help="Let the model add tags to its answer, which go into the index's graph, not into the text; no further call.",
)
@click.option(
    "--tag-threshold",
    "extraction_confidence_threshold",
    type=float,
    default=TAGS.extraction_confidence_threshold,
    help="Confidence, 0 to 1, from which a tag counts.",
)
@click.option("--seed", type=int, help="Seed of the model's sampling; the same gives the same answer.")
@budget_options(Budget())
@click.option(
    "--extract/--no-extract",
    default=None,
    help="Afterwards, extract entities of the documents cited that have none. [default: --extract with a model's key]",
)
@extract_options
@trust_option
def ask_command(
    question: str,
    index_folder: str,
    index_name: str,
    as_json: bool,
    stream: bool,
    html: str | None,
    docx: str | None,
    bibtex: str | None,
    compare: bool,
    save: bool,
    answers_folder: str | None,
    extract: bool | None,
    **settings: Any,
) -> None:
    """Answer QUESTION in French with checked citations; without a model, by verbatim passages alone.

    A question asked before, with the same model and index, costs no call of the model.
    """
    extraction = extraction_settings(settings)
    agent_settings = _agent_settings(settings) | {"match_words": bool(html or save)}
    library = open_library(index_folder, index_name)
    store = open_store(library, answers_folder, to_write=True) if save else None
    page, papers = page_to_write(html), (page_to_write(docx), page_to_write(bibtex))
    agent = _open_agent(library, agent_settings)
    prediction = _run_agent(agent, question, stream=stream)
    comparison = None
    if compare:
        from legal_rag.agent.contradictions import contradictions

        comparison = contradictions(prediction, library, getattr(agent, "lm", None))
    print_answer(prediction, comparison, as_json=as_json)
    if prediction.graph and (line := graph_line(prediction.graph)):
        click.echo(line, err=True)
    keep_answer(prediction, page, store, library)
    _write_papers(prediction, *papers, library)
    if extract or (extract is None and extraction.api_key):
        extract_after_answer(library, [citation.doc_id for citation in prediction.citations], extraction)


def print_answer(prediction: "Prediction", comparison: "Comparison | None" = None, *, as_json: bool) -> None:
    """Print an answer: notice, text, citation counts, documents, ungrounded claims."""
    if as_json:
        print_json(prediction.to_json() | ({"comparison": comparison.to_json()} if comparison else {}))
        return
    if prediction.notice:
        click.echo(printable(prediction.notice) + "\n")
    click.echo(printable(prediction.answer))
    if counts := citations_in_french(prediction.citation_counts, verbatim=prediction.mode in VERBATIM_MODES):
        click.echo(f"\n{counts}.")
    for line in warning_lines(prediction.citations):
        click.echo(line)
    if prediction.documents:
        click.echo("\nDécisions consultées :")
    for document in prediction.documents:
        click.echo(in_one_line(f"- {document.doc_id} : {document.citation or document.title}", 1000))
    if prediction.ungrounded_claims:
        click.echo("\nAffirmations qu'aucune citation n'appuie :")
    for claim in prediction.ungrounded_claims:
        click.echo(in_one_line(f"- {claim}", 1000))
    if comparison:
        from legal_rag.agent.contradictions import render_comparison

        click.echo("\n" + printable(render_comparison(comparison)))


def page_to_write(html: str | None) -> Path | None:
    """Return the file to write the page to, checked before any model call.

    Raises:
        ValueError: If it is a folder or a device, or its folder does not exist.
        OSError: If nothing can be written there.
    """
    if html is None:
        return None
    page = Path(html).expanduser()
    if page.exists() and not page.is_file():
        raise ValueError(f"no page can be written to {page}: it is not a file")
    if not page.parent.is_dir():
        raise ValueError(f"no folder {page.parent} to write {page.name} into (make it first)")
    with tempfile.TemporaryFile(dir=page.parent):
        return page


def write_page(page: Path, html: str) -> None:
    """Write a page atomically, and say where."""
    from legal_rag.base.files import write_whole

    write_whole(page, html)
    click.echo(f"page written: {page}", err=True)


def _write_papers(prediction: "Prediction", docx: Path | None, bibtex: Path | None, library: "Library | None") -> None:
    from legal_rag.base.files import write_whole
    from legal_rag.report.brief import answer_bibtex, answer_docx

    for path, write in ((docx, answer_docx), (bibtex, answer_bibtex)):
        if path:
            write_whole(path, write(prediction, library))
            click.echo(f"written: {path}", err=True)


def open_store(library: Any, answers_folder: str | None, *, to_write: bool = False) -> "SavedAnswers":
    """Open the folder of saved answers, the one named or the index's own; check that it is writable if need be."""
    from legal_rag.report.saved_answers import SavedAnswers

    store = SavedAnswers(answers_folder) if answers_folder else SavedAnswers.of(library)
    if to_write:
        store.check_writable()
    return store


def keep_answer(
    prediction: "Prediction", page: Path | None, store: "SavedAnswers | None", library: "Library | None"
) -> None:
    """Write an answer's page, with the texts of the Library if there is one, and save the answer, where asked for."""
    if page:
        from legal_rag.report.page import render_answer

        write_page(page, render_answer(prediction, library))
    if store:
        click.echo(f"saved as answer {store.save(prediction)}", err=True)


def budget_of(settings: dict[str, Any]) -> Budget:
    """Return the limits that `budget_options` gave."""
    return Budget(**{limit.name: settings[limit.name] for limit in fields(Budget)})


def _agent_settings(settings: dict[str, Any]) -> dict[str, Any]:
    named = settings["instructions"]
    return {name: settings[name] for name in ("model", "api_base", "api_key", "seed", "trust_remote_code")} | {
        "budget": budget_of(settings),
        **{field.name: settings[field.name] for field in fields(TagSettings)},
        "cache": not settings["no_cache"],
        "instructions": None if named is None else instructions_text(named),
        **sampling_settings(settings),
    }


def instructions_text(named: str) -> str:
    """Return the package's instructions of that name, or a file's text."""
    from legal_rag.agent.instructions import default_instructions, instruction_names

    file = Path(named).expanduser()
    if named in (names := instruction_names()):
        return default_instructions(named)
    if not file.is_file():
        raise ValueError(f"no instructions {named!r} (expected a file, or one of {', '.join(names)})")
    try:
        text = file.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not UTF-8 text: {error}") from error
    if not text:
        raise ValueError(f"no instructions in {file}: it is empty")
    return text


def _open_agent(library: Any, settings: dict[str, Any]) -> "LegalReActAgent | EvidenceAgent":
    from legal_rag.agent.agent import build_agent
    from legal_rag.llm import is_asked

    if not is_asked(settings["api_key"], settings["api_base"], settings["model"]):
        return build_agent(library, **settings)
    from legal_rag.deep_read.reading import deep_read_tool

    return build_agent(library, extra_tools=[deep_read_tool], **settings)


def _run_agent(agent: "LegalReActAgent | EvidenceAgent", question: str, *, stream: bool) -> "Prediction":
    if not stream:
        return agent(question)
    with agent.stream(question) as answer:
        for event in answer:
            click.echo(event_line(event), err=True)
        return answer.prediction


@click.command("answers")
@place_options
@click.argument("answer_id", metavar="[ANSWER_ID]", required=False)
@html_option
@paper_options
@answers_folder_option
@click.option("--remove", metavar="ANSWER_ID", help="Delete this answer, and what it gave to the index's graph.")
def answers_command(
    answer_id: str | None,
    index_folder: str,
    index_name: str,
    as_json: bool,
    html: str | None,
    docx: str | None,
    bibtex: str | None,
    answers_folder: str | None,
    remove: str | None,
) -> None:
    """List the answers that `ask --save` and `deep-read --save` kept, newest first, or show the answer ANSWER_ID."""
    if remove and (answer_id or html or docx or bibtex):
        raise click.UsageError("--remove goes alone: it names the answer itself")
    for option, file in (("html", html), ("docx", docx), ("bibtex", bibtex)):
        if file and not answer_id:
            raise click.UsageError(f"--{option} goes with ANSWER_ID")
    library = None if answers_folder else open_library(index_folder, index_name)
    store = open_store(library, answers_folder)
    if remove:
        store.remove(remove, index=library.path if library else Path(index_folder).expanduser() / index_name)
        print_json({"removed": remove}) if as_json else click.echo(f"removed answer {remove}")
    elif answer_id:
        page, papers = page_to_write(html), (page_to_write(docx), page_to_write(bibtex))
        prediction = store.load(answer_id)
        if not as_json:
            click.echo(f"Question : {printable(prediction.question)}\n")
        print_answer(prediction, as_json=as_json)
        keep_answer(prediction, page, None, library)
        _write_papers(prediction, *papers, library)
    elif as_json:
        print_json([answer._asdict() for answer in store.list()])
    else:
        _print_answers(store.list())


def _print_answers(answers: "Sequence[SavedAnswerSummary]") -> None:
    if not answers:
        click.echo("no saved answers ('legal-rag ask --save' keeps one)", err=True)
    for row in answers:
        click.echo(f"{row.answer_id}  {in_one_line(row.question, QUESTION_CHARS)}")
        counts = citations_in_french(row.citations, verbatim=row.mode in VERBATIM_MODES) or "aucune citation"
        cost = "" if not row.cost else f", {row.cost:.4f} $"
        calls = f", {row.model_calls} appel{'s' if row.model_calls > 1 else ''} du modèle" if row.model_calls else ""
        click.echo(f"   {row.mode}, {row.status}, {counts}, {french_seconds(row.seconds)}{calls}{cost}")


@click.command("verify")
@place_options
@click.argument("file", metavar="FILE")
@click.option("--html", metavar="PAGE", help="Write the text with its verdicts in the margins as one page.")
def verify_command(file: str, index_folder: str, index_name: str, as_json: bool, html: str | None) -> int:
    """Check every decision, article and quotation of FILE (Markdown, text, HTML, DOCX, PDF) against a Library.

    Status 0: nothing is wrong; 1: a reference is wrong; 2: the text could not be checked, or not all of it.
    """

    from legal_rag.corpus.readers import read_file
    from legal_rag.verification.page import format_verification, render_verification
    from legal_rag.verification.verdicts import verify_text

    page = page_to_write(html)
    library = open_library(index_folder, index_name)
    verification = verify_text(read_file(file), library)
    if as_json:
        print_json({"file": file, **verification.to_json()})
    else:
        click.echo(format_verification(verification))
    if page:
        write_page(page, render_verification(verification, Path(file).name))
    return verification.status
