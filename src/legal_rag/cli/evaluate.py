"""Commands that evaluate retrieval and generate questions."""

from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from legal_rag.cli.options import (
    filter_options,
    mode_option,
    model_options,
    open_library,
    place_options,
    print_json,
    sampling_settings,
    trust_option,
)
from legal_rag.evaluation.questions.checks import STRATEGIES, WORKERS, QuestionSettings

if TYPE_CHECKING:
    import dspy

    from legal_rag.evaluation.metrics import Evaluation, RunComparison
    from legal_rag.evaluation.questions.dataset import QuestionReport
    from legal_rag.evaluation.questions.generate import Estimate
    from legal_rag.library.filters import Filters


@click.command("evaluate")
@place_options
@click.option("--queries", required=True, help="JSONL with qid, question and doc_id; or a saved dataset's folder.")
@click.option("--qrels", help="Judgements, as trec_eval reads them; else each question's own doc_id.")
@click.option("--k", default=100, help="Documents ranked for each question.")
@click.option("--run-out", help="Write the run here, as trec_eval reads it.")
@click.option("--qrels-out", help="Write the judgements here.")
@click.option("--run-name", default="legal_rag")
@click.option("--compare", metavar="RUN", help="Test the differences from another run, by randomisation.")
@mode_option
@filter_options
@trust_option
def evaluate_command(
    index_folder: str, index_name: str, as_json: bool, filters: "Filters", mode: Any, k: int, **settings: Any
) -> None:
    """Rank documents for many questions and measure the ranking, with 95 % confidence intervals."""
    from legal_rag import evaluation
    from legal_rag.retriever.retriever import build_retriever

    queries, qrels = evaluation.read_queries(settings["queries"])
    if settings["qrels"] is not None:
        qrels = evaluation.read_qrels(settings["qrels"])
    if not qrels:
        raise ValueError(f"{settings['queries']} names no doc_id: give the judgements with --qrels")
    for name in ("run_out", "qrels_out"):  # before the work, not after it
        if settings[name] is not None and not Path(settings[name]).expanduser().absolute().parent.is_dir():
            raise FileNotFoundError(f"no folder for --{name.replace('_', '-')}: {settings[name]}")
    other = evaluation.read_run(settings["compare"]) if settings["compare"] is not None else None
    library = open_library(index_folder, index_name)
    retriever = build_retriever(library, trust_remote_code=settings["trust_remote_code"])
    run = evaluation.batch_query(retriever, queries, k, mode=mode, filters=filters)
    if settings["run_out"] is not None:
        evaluation.write_run(settings["run_out"], run, settings["run_name"])
    if settings["qrels_out"] is not None:
        evaluation.write_qrels(settings["qrels_out"], qrels)
    measured = evaluation.evaluate_run(qrels, run)
    compared = evaluation.compare_runs(measured, evaluation.evaluate_run(qrels, other)) if other is not None else []
    absent = sorted({doc_id for judged in qrels.values() for doc_id in judged if doc_id not in library})
    if as_json:
        figures = {one.measure: {"mean": one.mean, "low": one.low, "high": one.high} for one in measured.figures}
        differences = {one.measure: {"difference": one.difference, "p_value": one.p_value} for one in compared}
        print_json(
            {
                "documents": len(library),
                "queries": len(measured.by_query),
                "figures": figures,
                "by_query": measured.by_query,
                "comparison": differences,
                "absent_documents": absent,
            }
        )
    else:
        click.echo(f"{len(measured.by_query)} queries over {len(library)} documents")
        _print_figures(measured, compared)
        if absent:
            click.echo(f"{len(absent)} of the documents judged relevant are not in the index, e.g. {absent[0]}")


def _print_figures(measured: "Evaluation", compared: "list[RunComparison]") -> None:
    differences = {one.measure: f"  {one.difference:+.4f} (p = {one.p_value:.4f})" for one in compared}
    for one in measured.figures:
        interval = f"[{one.low:.4f}, {one.high:.4f}]"
        click.echo(f"{one.measure:10} {one.mean:.4f}  {interval}{differences.get(one.measure, '')}")


DEFAULT = QuestionSettings()


@click.command("questions")
@place_options
@click.option("--output", required=True, help="The dataset's folder; one begun before is resumed.")
@click.option("--limit", type=int, help="How many documents, drawn at random; all without it.")
@click.option("--workers", default=WORKERS, help="Requests to the model under way at once.")
@click.option("--seed", default=DEFAULT.seed)
@model_options
@click.option("--no-model", is_flag=True, help="Make questions of official summaries and titles.")
@click.option("--strategy", type=click.Choice(STRATEGIES), default=DEFAULT.strategy)
@click.option("--tries", default=DEFAULT.tries, help="For each document, at most.")
@click.option("--threshold", default=DEFAULT.threshold, help="Score from which a pair is kept.")
@click.option("--context-chars", default=DEFAULT.context_chars, help="Shown of a document.")
@click.option(
    "--must-retrieve", default=DEFAULT.must_retrieve, metavar="K", help="Keep what finds its document within rank K."
)
@click.option(
    "--hard-negatives", default=DEFAULT.hard_negatives, metavar="N", help="Store the first N others that it finds."
)
@click.option("--requests-per-minute", type=float, help="At most.")
@trust_option
@click.option("--dry-run", is_flag=True, help="Estimate requests, tokens and cost, and ask nothing.")
@click.option("--prices", type=(float, float), metavar="IN OUT", help="Dollars a million tokens, for --dry-run.")
def questions_command(index_folder: str, index_name: str, as_json: bool, **options: Any) -> None:
    """Make grounded French questions and answers of the index's documents: a dataset that `evaluate` reads."""
    from legal_rag.evaluation.questions.generate import Price, estimate, generate_questions

    settings = QuestionSettings(**{one.name: options[one.name] for one in fields(QuestionSettings)})
    lm = _language_model(options)
    library = open_library(index_folder, index_name)
    if options["dry_run"]:
        if lm is None:
            raise ValueError("without a model nothing is asked: there is nothing to estimate")
        price = Price(*options["prices"]) if options["prices"] else None
        _print_estimate(estimate(library, lm, limit=options["limit"], settings=settings, price=price), as_json)
        return
    report = generate_questions(
        library,
        lm,
        limit=options["limit"],
        workers=options["workers"],
        output=options["output"],
        requests_per_minute=options["requests_per_minute"],
        trust_remote_code=options["trust_remote_code"],
        **asdict(settings),
    )
    _print_report(report, as_json)


def _language_model(options: dict[str, Any]) -> "dspy.LM | None":
    from legal_rag.agent.llm import build_language_model, has_endpoint

    if options["no_model"]:
        return None
    endpoint = options["api_key"], options["api_base"]
    if not has_endpoint(*endpoint, options["model"]):
        click.echo("no model to ask (--api-base or --api-key): questions are made of summaries and titles", err=True)
        return None
    # a new try wants a new reply
    return build_language_model(options["model"], *endpoint, cache=False, **sampling_settings(options))


def _print_estimate(estimate: "Estimate", as_json: bool) -> None:
    if as_json:
        print_json(estimate._asdict())
        return
    click.echo(f"documents          {estimate.documents}")
    for name in ("requests", "prompt_tokens", "completion_tokens"):
        least, most = getattr(estimate, name)
        click.echo(f"{name.replace('_', ' '):18} {least:,} to {most:,}")
    dollars = "unknown (give --prices)" if estimate.dollars is None else "{:.2f} to {:.2f}".format(*estimate.dollars)
    click.echo(f"dollars            {dollars}")


def _print_report(report: "QuestionReport", as_json: bool) -> None:
    if as_json:
        print_json({**asdict(report), "folder": str(report.folder)})
        return
    splits = ", ".join(f"{n} {split}" for split, n in report.splits.items())
    click.echo(f"{report.accepted} questions from {report.documents} documents in {report.folder} ({splits})")
    left_out = {**report.rejected, **{f"failed: {name}": n for name, n in report.failed.items()}}
    left_out["duplicate"] = report.duplicates
    for reason, n in left_out.items():
        click.echo(f"  {n:6} {reason}") if n else None
    if report.failed:
        click.echo("the same command tries the failed ones again")
