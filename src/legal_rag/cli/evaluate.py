"""Commands that evaluate retrieval and generate questions."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from legal_rag.cli.options import (
    Place,
    column_options,
    doc_ids_option,
    dry_run_option,
    figures_json,
    filter_at_fault,
    filter_options,
    ids_file_option,
    judged_queries,
    language_model,
    limit_option,
    model_options,
    note,
    place_options,
    print_json,
    ranking_options,
    reading_options,
    search_settings,
    source_option,
    trust_option,
)
from legal_rag.cli.settings import setting, settings_of
from legal_rag.evaluation.questions.checks import STRATEGIES, WORKERS, QuestionSettings
from legal_rag.evaluation.trec import NO_MODEL

if TYPE_CHECKING:
    import dspy

    from legal_rag.evaluation.abstention import AbstentionEvaluation
    from legal_rag.evaluation.metrics import Evaluation, RunComparison
    from legal_rag.evaluation.questions.dataset import Documents, QuestionReport
    from legal_rag.evaluation.questions.generate import Estimate
    from legal_rag.evaluation.trec import Qrels, Query
    from legal_rag.library.filters import Filters

SHOWN_CHARS = 100  # of a question


@click.command("evaluate")
@place_options
@click.option(
    "--queries",
    multiple=True,
    required=True,
    help="JSONL with qid, question and doc_id, or a saved dataset's folder; may be repeated.",
)
@click.option("--qrels", help="Judgements, as trec_eval reads them; else each question's own doc_id.")
@click.option("--k", default=100, help="Documents ranked for each question.")
@click.option("--output", help="Write run.txt and qrels.txt into this folder, as trec_eval reads them.")
@click.option("--force", is_flag=True, help="Replace files that are in --output already.")
@click.option("--compare", metavar="RUN", help="Test the differences from another run, by randomisation.")
@click.option("--show", default=0, metavar="N", help="Show N questions drawn at random, found (HIT) or not (MISS).")
@click.option("--pyserini", is_flag=True, help="Print trec_eval's own figures too, by the environment of 'make trec'.")
@click.option("--abstention", is_flag=True, help="Answer the questions instead: which are known to have no answer?")
@model_options
@ranking_options
@filter_options
@trust_option
def evaluate_command(place: Place, filters: "Filters", mode: Any, k: int, **settings: Any) -> None:
    """Rank documents for many questions and measure the ranking, with 95 % confidence intervals."""
    from legal_rag import evaluation
    from legal_rag.evaluation.metrics import absent_documents
    from legal_rag.retriever.retriever import build_retriever

    queries, qrels = judged_queries(settings["queries"], settings["qrels"])
    if settings["abstention"]:
        _evaluate_abstention(place, filters, {**settings, "mode": mode}, queries, qrels)
        return
    files = _output_files(settings["output"], force=settings["force"])
    if settings["pyserini"]:
        evaluation.trec_python()  # before the work, too
    other = evaluation.read_run(settings["compare"]) if settings["compare"] is not None else None
    library = place.open()
    library.check_values(filters)
    how = search_settings(settings)
    retriever = build_retriever(library, settings=how, trust_remote_code=settings["trust_remote_code"])
    run = evaluation.batch_query(retriever, queries, k, mode=mode, filters=filters)
    if files:
        files[0].parent.mkdir(parents=True, exist_ok=True)
        evaluation.write_run(files[0], run)
        evaluation.write_qrels(files[1], qrels)
    measures = evaluation.measures(k)
    measured = evaluation.evaluate_run(qrels, run, measures)
    others = [] if other is None else [evaluation.evaluate_run(qrels, other, measures)]
    compared = [test for against in others for test in evaluation.compare_runs(measured, against)]
    theirs = evaluation.trec_eval(qrels, run) if settings["pyserini"] else {}
    fault = f": no document meets {at_fault}" if (at_fault := filter_at_fault(library, filters)) else ""
    nothing = "" if any(run.values()) else f"no passage found{fault}"
    caution = "; ".join(filter(None, [nothing, evaluation.caution(queries)])) or None
    absent = absent_documents(qrels, library)
    if place.as_json:
        differences = {test.measure: {"difference": test.difference, "p_value": test.p_value} for test in compared}
        print_json(
            {
                "documents": len(library),
                "queries": len(measured.by_query),
                "figures": figures_json(measured.figures),
                "by_query": measured.by_query,
                "comparison": differences,
                "trec_eval": theirs,
                "absent_documents": absent,
                "caution": caution,
            }
        )
    else:
        click.echo(f"{len(measured.by_query)} queries over {len(library)} documents")
        for question in evaluation.sampled(qrels, run, settings["show"]):
            texts = {query.qid: query.text for query in queries}
            result = f"HIT {question.first_rank}" if question.first_rank else "MISS"
            click.echo(f"{result:8} {question.qid}  {texts.get(question.qid, '')[:SHOWN_CHARS]}")
        print_figures(measured, compared, theirs)
        if caution:
            click.echo(f"caution: {caution}")
        note(f"written: {', '.join(map(str, files))}") if files else None
        if absent:
            click.echo(f"{len(absent)} of the documents judged relevant are not in the index, e.g. {absent[0]}")


def _evaluate_abstention(
    place: Place, filters: "Filters", settings: dict[str, Any], queries: "list[Query]", qrels: "Qrels"
) -> None:
    from legal_rag import evaluation
    from legal_rag.agent.agent import build_agent

    if others := [name for name in ("mode", "output", "compare", "show", "pyserini") if settings[name]]:
        raise ValueError(f"--abstention answers questions and makes no run: --{others[0]} does not go with it")
    lm = language_model(settings)
    library = place.open()
    library.check_values(filters)
    agent = build_agent(
        library, lm=lm, match_words=False, filters=filters, trust_remote_code=settings["trust_remote_code"]
    )
    measured = evaluation.evaluate_abstention(agent, queries, qrels)
    rows = {kind: measured.outcomes(answerable=kind == "answerable") for kind in ("answerable", "unanswerable")}
    if place.as_json:
        answers = [answer._asdict() for answer in measured.answers]
        figures = figures_json(measured.figures)
        print_json({"documents": len(library), "outcomes": rows, "figures": figures, "answers": answers})
        return
    click.echo(f"{len(queries)} questions over {len(library)} documents")
    for kind, counts in rows.items():
        click.echo(f"{sum(counts.values()):6} {kind}: {', '.join(f'{n} {name}' for name, n in counts.items() if n)}")
    print_figures(measured)


def _output_files(output: str | None, *, force: bool) -> list[Path]:
    """Return the files to write, the run and the judgements; checked before the work, not after it."""
    if output is None:
        return []
    files = [Path(output).expanduser() / name for name in ("run.txt", "qrels.txt")]
    taken = [str(file) for file in files if file.exists()]
    if taken and not force:
        raise FileExistsError(f"there already: {', '.join(taken)} (expected --force, or another --output)")
    return files


def print_figures(
    measured: "Evaluation | AbstentionEvaluation",
    compared: "Sequence[RunComparison]" = (),
    theirs: Mapping[str, float] | None = None,
) -> None:
    """Print a line for each measure: mean, interval, difference from another run, trec_eval's own mean."""
    differences = {test.measure: f"  {test.difference:+.4f} (p = {test.p_value:.4f})" for test in compared}
    for figure in measured.figures:
        interval = f"[{figure.low:.4f}, {figure.high:.4f}]"
        trec_mean = f"  trec_eval {theirs[figure.measure]:.4f}" if theirs and figure.measure in theirs else ""
        click.echo(f"{figure.measure:10} {figure.mean:.4f}  {interval}{trec_mean}{differences.get(figure.measure, '')}")


DEFAULT = QuestionSettings()


@click.command("questions")
@place_options
@source_option
@column_options
@limit_option
@doc_ids_option
@ids_file_option
@click.option("--output", required=True, help="The dataset's folder; one begun before is resumed.")
@model_options
@click.option("--no-model", is_flag=True, help="Make questions of official summaries.")
@click.option("--strategy", type=click.Choice(STRATEGIES), default=DEFAULT.strategy)
@click.option(
    "--unanswerable",
    metavar="SHARE",
    default=DEFAULT.unanswerable,
    help="Of so many questions, 0 to 1, make a near miss too, which no document answers.",
)
@settings_of(DEFAULT, "seed", "tries", "threshold", "context_chars", "must_retrieve", "hard_negatives")
@setting("requests_per_minute", float)
@trust_option
@dry_run_option
def questions_command(place: Place, **options: Any) -> None:
    """Make grounded French questions and answers of an index's documents, or a source's: `evaluate` reads them.

    --limit draws documents at random; --dry-run estimates requests, tokens and cost.
    """
    from legal_rag.evaluation.questions.generate import estimate, generate_questions
    from legal_rag.indexer.config import read_ids

    settings = QuestionSettings(**{name: options[name] for name in vars(DEFAULT)})
    lm = _language_model(options)
    doc_ids = {*options["doc_ids"], *read_ids(options["ids_file"])}
    documents = _open_documents(place, doc_ids, options)
    drawn = {"limit": options["limit"], "doc_ids": doc_ids}
    if options["dry_run"]:
        if lm is None:
            raise ValueError("without a model nothing is asked: there is nothing to estimate")
        _print_estimate(place, estimate(documents, lm, **drawn, settings=settings))
        return
    report = generate_questions(
        documents,
        lm,
        **drawn,
        workers=options["workers"] or WORKERS,
        **{name: options[name] for name in ("output", "requests_per_minute", "trust_remote_code")},
        **vars(settings),
    )
    _print_question_report(place, report)


def _open_documents(place: Place, doc_ids: set[str], options: dict[str, Any]) -> "Documents":
    from legal_rag.evaluation.questions.dataset import SourceDocuments

    if options["source"] is None:
        if (config := options["config"]) is not None:
            raise ValueError(f"--dataset-config {config} goes with --source: an index holds what it was built with")
        library: Documents = place.open()
        return library
    limit, seed = options["limit"], options["seed"]
    return SourceDocuments(options["source"], reading_options(options), limit=limit, seed=seed, doc_ids=doc_ids)


def _language_model(options: dict[str, Any]) -> "dspy.LM | None":
    # Without a cache: a new try wants a new reply.
    lm = None if options["no_model"] else language_model(options, cache=False)
    if lm is None and not options["no_model"]:
        note("no model to ask (--api-base or GENERATOR_API_KEY): questions are made of official summaries")
    return lm


def _print_estimate(place: Place, estimate: "Estimate") -> None:
    lines = [f"documents          {estimate.documents}"]
    for name in ("requests", "prompt_tokens", "completion_tokens"):
        least, most = getattr(estimate, name)
        lines.append(f"{name.replace('_', ' '):18} {least:,} to {most:,}")
    dollars = "unknown" if estimate.dollars is None else "{:.2f} to {:.2f}".format(*estimate.dollars)
    place.show(estimate._asdict(), *lines, f"dollars            {dollars}")


def _print_question_report(place: Place, report: "QuestionReport") -> None:
    if place.as_json:
        print_json({**asdict(report), "folder": str(report.folder)})
        return
    splits = ", ".join(f"{n} {split}" for split, n in report.splits.items())
    click.echo(f"{report.accepted} questions from {report.documents} documents in {report.folder} ({splits})")
    if report.settings.unanswerable:
        click.echo(f"{report.unanswerable} questions more that no document answers")
    left_out = {**report.rejected, **{f"failed: {name}": n for name, n in report.failed.items()}}
    left_out |= {"duplicate": report.duplicates, **{f"near miss: {why}": n for why, n in report.near_rejected.items()}}
    for reason, n in left_out.items():
        click.echo(f"  {n:6} {reason}") if n else None
    if report.model.startswith(NO_MODEL):
        note("official summaries are enough to try an evaluation, not to judge a search engine")
        if not report.accepted:
            note("no question was made: name a --model, or documents with an official 'summary'")
    elif report.accepted:
        note("the checks compare words: none reads whether an answer answers its question; read a sample of them")
    if report.failed:
        click.echo("the same command tries the failed ones again")
