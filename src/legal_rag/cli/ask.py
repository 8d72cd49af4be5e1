"""Commands that answer a question or read deeply, show answers and traces, and check any text against a Library."""

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from legal_rag.agent.replies import TagSettings
from legal_rag.cli.options import (
    HTML_SUFFIXES,
    WITHOUT_INFERRED,
    Place,
    at_option,
    budget_of,
    budget_options,
    day_of,
    doc_ids_option,
    extract_option,
    extract_options,
    extraction_settings,
    filter_options,
    html_option,
    inferred_filters_option,
    instructions_option,
    json_option,
    language_model,
    model_options,
    note,
    options,
    page_to_write,
    place_options,
    places_options,
    print_json,
    run_settings,
    served_options,
    write_page,
)
from legal_rag.cli.settings import setting, settings_of
from legal_rag.deep_read.settings import DEEP_READ_BUDGET, WORKERS, DeepReadSettings
from legal_rag.llm import Budget
from legal_rag.report.lines import (
    MODES_IN_FRENCH,
    STATES_IN_FRENCH,
    VERBATIM_MODES,
    citations_in_french,
    document_line,
    event_line,
    french_seconds,
    graph_line,
    in_one_line,
    printable_lines,
    warning_lines,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import dspy

    from legal_rag.agent.agent import LegalReActAgent
    from legal_rag.agent.evidence import EvidenceAgent
    from legal_rag.agent.prediction import Prediction
    from legal_rag.library.filters import Filters
    from legal_rag.library.library import Library
    from legal_rag.report.saved_answers import SavedAnswers, SavedAnswerSummary

SETTINGS = ("plan", "map_documents")  # named as in `DeepReadSettings`
TAGS = TagSettings()
QUESTION_CHARS = 80  # of a question in the list of answers
PAPERS = {"html": HTML_SUFFIXES, "docx": (".docx",), "bibtex": (".bib", ".bibtex")}
paper_options = options(
    html_option,
    click.option("--docx", metavar="FILE", help="Write the answer as a Word document, decisions by legal citation."),
    click.option("--bibtex", metavar="FILE", help="Write BibTeX entries of the decisions cited."),
)
save_options = options(
    click.option("--stream", is_flag=True, help="Print each step on stderr."),
    click.option("--save", is_flag=True, help="Save the answer, question included; `answers` lists it."),
)


@click.command("ask")
@place_options
@click.argument("question")
@model_options
@paper_options
@save_options
@click.option("--after", metavar="ANSWER_ID", multiple=True, help="A saved answer that the question follows on from.")
@filter_options
@inferred_filters_option
@instructions_option
@click.option(
    "--structured",
    is_flag=True,
    help="Begin with rules and other entities; with a model, also with sections that it names in outlines.",
)
@click.option("--tools", metavar="NAMES", help="What the model may call beside search and reading, by commas.")
@run_settings
@settings_of(TAGS, "single_pass_extraction_enabled", "extraction_confidence_threshold")
@budget_options(Budget())
@extract_option(
    "Afterwards, extract entities of the documents cited that have none. [default: --extract with a model's key]"
)
@extract_options
def ask_command(
    question: str,
    place: Place,
    stream: bool,
    html: str | None,
    docx: str | None,
    bibtex: str | None,
    save: bool,
    after: tuple[str, ...],
    extract: bool | None,
    filters: "Filters",
    **settings: Any,
) -> None:
    """Answer QUESTION in French with checked citations; without a model, by verbatim passages alone.

    A question asked before, with the same model and index, costs no call of the model.
    """
    from legal_rag.report.saved_answers import SavedAnswers
    from legal_rag.retriever.search_box import INFERRED

    extraction = extraction_settings(settings)
    agent_settings = _agent_settings(settings) | {"match_words": bool(html or save)}
    agent_settings |= {"filters": filters, "infer_filters": settings["inferred_filters"]}
    agent_settings |= {"structured": settings["structured"]}
    lm = language_model(settings, seed=settings["seed"], cache=settings["cache"])
    library = place.open()
    library.check_values(filters)
    store = _writable_store(library) if save else None
    papers = [page_to_write(file, *PAPERS[kind]) for kind, file in (("html", html), ("docx", docx), ("bibtex", bibtex))]
    history = [*map(SavedAnswers.of(library).load, after)]
    agent = _open_agent(library, lm, agent_settings)
    prediction = _run_agent(agent, question, history, stream=stream)
    print_answer(prediction, as_json=place.as_json)
    if INFERRED in (prediction.notice or ""):
        note(WITHOUT_INFERRED)
    if prediction.graph and (line := graph_line(prediction.graph)):
        note(line)
    write_papers(prediction, papers, library)
    keep_answer(prediction, store)
    if extract or (extract is None and extraction.api_key):
        from legal_rag.cli.library import extract_missing

        cited = [citation.doc_id for citation in prediction.citations]
        extract_missing(library, cited, extraction, "documents cited")


def print_answer(prediction: "Prediction", *, as_json: bool) -> None:
    """Print an answer: notice, text, citation counts, documents, ungrounded claims."""
    if as_json:
        print_json(prediction.to_json())
        return
    if prediction.notice:
        click.echo(printable_lines(prediction.notice) + "\n")
    click.echo(printable_lines(prediction.answer))
    if counts := citations_in_french(prediction.citation_counts, verbatim=prediction.mode in VERBATIM_MODES):
        click.echo(f"\n{counts}.")
    for line in warning_lines(prediction.citations):
        click.echo(line)
    if prediction.documents:
        click.echo("\nDécisions consultées :")
    for document in prediction.documents:
        click.echo(f"- {document_line(document)}")
    if prediction.ungrounded_claims:
        click.echo("\nAffirmations qu'aucune citation n'appuie :")
    for claim in prediction.ungrounded_claims:
        click.echo(in_one_line(f"- {claim}", 1000))


def write_papers(prediction: "Prediction", files: "Sequence[Path | None]", library: "Library") -> None:
    """Write an answer as a page, a Word document and BibTeX entries, where each is asked for."""
    if not any(files):
        return
    from legal_rag.report.brief import answer_bibtex, answer_docx
    from legal_rag.report.page import render_answer

    for file, make in zip(files, (render_answer, answer_docx, answer_bibtex), strict=False):
        write_page(file, lambda make=make: make(prediction, library))  # type: ignore[misc]


def _writable_store(library: "Library") -> "SavedAnswers":
    from legal_rag.report.saved_answers import SavedAnswers

    store = SavedAnswers.of(library)
    store.check_writable()
    return store


def keep_answer(prediction: "Prediction", store: "SavedAnswers | None") -> None:
    """Save an answer, where that is asked for."""
    if store:
        note(f"enregistrée : {store.save(prediction)}")


def _agent_settings(settings: dict[str, Any]) -> dict[str, Any]:
    named = settings["instructions"]
    return {
        "trust_remote_code": settings["trust_remote_code"],
        "budget": budget_of(settings),
        **{name: settings[name] for name in vars(TAGS)},
        "tools": None if settings.get("tools") is None else [name.strip() for name in settings["tools"].split(",")],
        "instructions": None if named is None else instructions_text(named),
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


def _open_agent(
    library: "Library", lm: "dspy.LM | None", settings: dict[str, Any]
) -> "LegalReActAgent | EvidenceAgent":
    from legal_rag.agent.agent import build_agent

    if lm is None:
        return build_agent(library, **settings)
    from legal_rag.deep_read.reading import deep_read_tool

    return build_agent(library, lm=lm, extra_tools=[deep_read_tool], **settings)


def _run_agent(
    agent: "LegalReActAgent | EvidenceAgent", question: str, history: "Sequence[Prediction]", *, stream: bool
) -> "Prediction":
    if not stream:
        return agent(question, history)
    with agent.stream(question, history) as answer:
        for event in answer:
            note(event_line(event))
        return answer.prediction


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
    chosen = {name: options[name] for name in SETTINGS}
    settings = DeepReadSettings(instructions=instructions, workers=options["workers"] or WORKERS, **chosen)
    how = {name: options[name] for name in ("seed", "cache")}
    lm = language_model(options, **how)
    library = place.open()
    store = _writable_store(library) if save else None
    page = page_to_write(html, *HTML_SUFFIXES)
    if extract or (extract is None and doc_ids and lm):
        from legal_rag.cli.library import extract_missing

        extract_missing(library, doc_ids or None, extraction)
    from legal_rag.deep_read.reading import deep_read, quote_passages
    from legal_rag.retriever.retriever import Retriever

    retriever = Retriever(library, trust_remote_code=options["trust_remote_code"])
    if lm is None:
        prediction = quote_passages(question, doc_ids, retriever)
    else:
        prediction = deep_read(
            question,
            doc_ids or None,
            library=library,
            lm=lm,
            sub_lm=language_model({**options, "model": options["sub_model"] or options["model"]}, **how),
            budget=budget,
            settings=settings,
            retriever=retriever,
            trace=Path(trace).expanduser() if trace else None,
            on_start=note,
            on_event=lambda event: note(event_line(event)) if stream else None,
        )
    print_answer(prediction, as_json=place.as_json)
    write_papers(prediction, [page], library)
    keep_answer(prediction, store)


@click.command("mcp")
@served_options
@click.option(
    "--http",
    is_flag=False,
    flag_value=8765,
    type=click.IntRange(0, 65535),
    metavar="[PORT]",
    help="On 127.0.0.1 (8765), behind a bearer token: LEGAL_RAG_MCP_TOKEN, or else a new one, printed on stderr.",
)
@click.option("--read-only", is_flag=True, help="Offer no tool that asks a model: no deep_read.")
@model_options
@budget_options(DEEP_READ_BUDGET)
def mcp_command(places: "Sequence[Place]", http: int | None, *, read_only: bool, **options: Any) -> None:
    """Serve Libraries to a client of the Model Context Protocol, over standard input and output.

    All tools read an index; where a model is named, deep_read asks it, within the budget each time.
    """
    from legal_rag.base.extras import require
    from legal_rag.llm import is_asked

    require("mcp")
    from legal_rag.mcp_server import LegalTools, serve

    asks = is_asked(None, options["api_base"], options["model"]) and not read_only
    if asks:
        require("rlm")
    libraries = [place.open() for place in places]
    tools = LegalTools(libraries, (lambda: language_model(options)) if asks else None, budget_of(options))

    def announce(address: str, token: str) -> None:
        note(f"{address}{f'  Authorization: Bearer {token}' * bool(token)}")

    with redirect_stdout(getattr(sys.stdout, "raw", sys.stdout)):  # the protocol's own bytes, as they are
        serve(tools, http, announce)


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

    page = page_to_write(html or f"{path}.html", *HTML_SUFFIXES)
    trace = read_trace(path)
    if as_json:
        print_json(trace.to_json())
    else:
        write_page(page, lambda: render_trace(trace))


@click.command("answers")
@place_options
@click.argument("answer_id", metavar="[ANSWER_ID]", required=False)
@paper_options
@click.option("--remove", metavar="ANSWER_ID", help="Delete this answer, and what it gave to the index's graph.")
def answers_command(answer_id: str | None, place: Place, remove: str | None, **files: str | None) -> None:
    """List the answers that `ask --save` and `deep-read --save` kept, newest first, or show the answer ANSWER_ID."""
    from legal_rag.report.saved_answers import SavedAnswers

    if remove and (answer_id or any(files.values())):
        raise click.UsageError("--remove goes alone: it names the answer itself")
    for option, file in files.items():
        if file and not answer_id:
            raise click.UsageError(f"--{option} goes with ANSWER_ID")
    library = place.open()
    store = SavedAnswers.of(library)
    if remove:
        store.remove(remove)
        place.show({"removed": remove}, f"réponse retirée : {remove}")
    elif answer_id:
        papers = [page_to_write(files[option], *suffixes) for option, suffixes in PAPERS.items()]
        prediction = store.load(answer_id)
        if not place.as_json:
            click.echo(f"Question : {printable_lines(prediction.question)}\n")
        print_answer(prediction, as_json=place.as_json)
        write_papers(prediction, papers, library)
    elif place.as_json:
        print_json([answer._asdict() for answer in store.list()])
    else:
        _print_answers(store.list())


def _print_answers(answers: "Sequence[SavedAnswerSummary]") -> None:
    if not answers:
        note("aucune réponse enregistrée ('legal-rag ask --save' en garde une)")
    for row in answers:
        click.echo(f"{row.answer_id}  {in_one_line(row.question, QUESTION_CHARS)}")
        counts = citations_in_french(row.citations, verbatim=row.mode in VERBATIM_MODES) or "aucune citation"
        cost = "" if not row.cost else f", {row.cost:.4f} $"
        calls = f", {row.model_calls} appel{'s' if row.model_calls > 1 else ''} du modèle" if row.model_calls else ""
        how = f"{MODES_IN_FRENCH[row.mode]}, {STATES_IN_FRENCH[row.status].lower()}"
        click.echo(f"   {how}, {counts}, {french_seconds(row.seconds)}{calls}{cost}")


@click.command("verify")
@places_options
@click.argument("file", metavar="FILE")
@html_option
@click.option("--docx", metavar="COMMENTED", help="Write a FILE that is DOCX again, with a comment at each reference.")
@at_option
def verify_command(file: str, places: "Sequence[Place]", html: str | None, docx: str | None, at: str | None) -> int:
    """Check every decision, article and quotation of FILE (Markdown, text, HTML, DOCX, PDF) against Libraries.

    An article is compared with its version of the day that FILE gives for it, else with that of the day --at.

    Status 0: all is confirmed; 1: something is wrong or absent; 2: the text could not be checked; 3: something is
    ambiguous, unread or out of scope.
    """
    from legal_rag.citations.page import comment_of, format_verification, render_verification
    from legal_rag.citations.verifier import verify_text
    from legal_rag.corpus.files import read_paper

    if docx and Path(file).suffix.lower() != ".docx":
        raise click.UsageError(f"--docx goes with a DOCX, not with {file}")
    day = day_of(at)
    page, commented = page_to_write(html, *HTML_SUFFIXES), page_to_write(docx, ".docx")
    verification = verify_text(read_paper(file), [place.open() for place in places], at=day)
    if places[0].as_json:
        print_json({"file": file, **verification.to_json()})
    else:
        click.echo(format_verification(verification))
    write_page(page, lambda: render_verification(verification, Path(file).name))
    if commented:
        from legal_rag.corpus.docx import annotate_docx

        comments = [(reference.start, reference.end, comment_of(reference)) for reference in verification.references]
        annotate_docx(file, commented, comments)
        note(f"écrit : {commented}")
    return verification.status
