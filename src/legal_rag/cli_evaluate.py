"""The command that measures a Library's retrieval."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from legal_rag.cli_options import filter_options, mode_option, open_library, place_options, print_json, trust_option

if TYPE_CHECKING:
    from legal_rag.evaluation import Comparison, Evaluation
    from legal_rag.filters import Filters


@click.command("evaluate")
@place_options
@click.option("--queries", required=True, help="JSONL with qid, question and doc_id; or a saved dataset's folder.")
@click.option("--qrels", help="Judgements, as trec_eval reads them; else each question's own doc_id.")
@click.option("--k", type=int, default=100, show_default=True, help="Documents ranked for each question.")
@click.option("--run-out", help="Write the run here, as trec_eval reads it.")
@click.option("--qrels-out", help="Write the judgements here.")
@click.option("--run-name", default="legal_rag", show_default=True)
@click.option("--compare", metavar="RUN", help="Test the differences from another run, by randomisation.")
@mode_option
@filter_options
@trust_option
def evaluate_command(
    index_folder: str, index_name: str, as_json: bool, filters: "Filters", mode: Any, k: int, **settings: Any
) -> None:
    """Rank documents for many questions and measure how well, with 95 % intervals."""
    from legal_rag import evaluation
    from legal_rag.retriever import build_retriever

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
        print_json(_json(measured, compared, absent, len(library)))
    else:
        click.echo(f"{len(measured.by_query)} queries over {len(library)} documents")
        _print_figures(measured, compared)
        if absent:
            click.echo(f"{len(absent)} of the documents judged relevant are not in the index, e.g. {absent[0]}")


def _json(measured: "Evaluation", compared: "list[Comparison]", absent: list[str], n_documents: int) -> dict[str, Any]:
    return {
        "documents": n_documents,
        "queries": len(measured.by_query),
        "figures": {one.measure: {"mean": one.mean, "low": one.low, "high": one.high} for one in measured.figures},
        "by_query": measured.by_query,
        "comparison": {one.measure: {"difference": one.difference, "p_value": one.p_value} for one in compared},
        "absent_documents": absent,
    }


def _print_figures(measured: "Evaluation", compared: "list[Comparison]") -> None:
    differences = {one.measure: f"  {one.difference:+.4f} (p = {one.p_value:.4f})" for one in compared}
    for one in measured.figures:
        interval = f"[{one.low:.4f}, {one.high:.4f}]"
        click.echo(f"{one.measure:10} {one.mean:.4f}  {interval}{differences.get(one.measure, '')}")
