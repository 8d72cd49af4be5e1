"""Look into runs: recall, hits and misses, ids that do not meet, scores, the hardest questions, a picture.

Run: python scripts/analyze_retrieval_results.py --qrels qrels.txt run.txt… [--queries questions.jsonl] [--png plot.png]
"""

import sys
from collections.abc import Callable, Iterable, Set
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from legal_rag.cli.evaluate import print_figures
from legal_rag.corpus.chunking import parse_chunk_id
from legal_rag.evaluation import (
    Qrels,
    Run,
    caution,
    evaluate_run,
    metrics,
    read_qrels,
    read_queries,
    read_run,
    trec_eval,
)
from legal_rag.law import legal_citation
from legal_rag.library import DEFAULT_FOLDER, DEFAULT_NAME, Library
from legal_rag.library.library import is_library


class Overlap(NamedTuple):
    """How far judgements and a run cover the same queries and documents."""

    queries: int  # in both
    only_judged: int  # queries without results
    only_run: int  # queries without judgements
    wanted: int  # relevant documents, query by query
    returned: int  # of them, those that the run has at any rank


class Mismatch(NamedTuple):
    """Ids that differ between judgements and run, and would be equal if written alike."""

    why: str
    n: int
    judged: str  # the first such id in the judgements
    found: str  # and in the run


class Absence(NamedTuple):
    """A document judged relevant that is not in the index."""

    doc_id: str
    why: str


def overlap(qrels: Qrels, run: Run) -> Overlap:
    """Count the queries and relevant documents that judgements and run have in common."""
    relevant = {(qid, doc_id) for qid, judged in qrels.items() for doc_id in metrics.relevant_documents(judged)}
    returned = {(qid, doc_id) for qid, ranked in run.items() for doc_id, _ in ranked}
    shared = len(qrels.keys() & run.keys())
    return Overlap(shared, len(qrels) - shared, len(run) - shared, len(relevant), len(relevant & returned))


def id_mismatches(qrels: Qrels, run: Run) -> list[Mismatch]:
    """Find judged ids that the run lacks as they are written, but has in another case, or as chunk ids."""
    relevant = {doc_id for judged in qrels.values() for doc_id in metrics.relevant_documents(judged)}
    returned = {doc_id for ranked in run.values() for doc_id, _ in ranked}
    mismatches = [
        _find_mismatch("query ids differ in case", qrels.keys(), run.keys(), str.casefold, str.casefold),
        _find_mismatch("document ids differ in case", relevant, returned, str.casefold, str.casefold),
        _find_mismatch("document ids are the run's chunk ids less their numbers", relevant, returned, str, _parent_id),
        _find_mismatch("document ids are chunk ids, the run's are not", relevant, returned, _parent_id, str),
    ]
    return [mismatch for mismatch in mismatches if mismatch is not None]


def _find_mismatch(
    why: str, judged: Set[str], returned: Set[str], of_judged: Callable[[str], str], of_returned: Callable[[str], str]
) -> Mismatch | None:
    """Pair judged ids that the run lacks with returned ids that are the same in another form."""
    forms = {of_returned(name): name for name in sorted(returned, reverse=True)}
    pairs = [(name, forms[form]) for name in sorted(judged - returned) if (form := of_judged(name)) in forms]
    return Mismatch(why, len(pairs), *pairs[0]) if pairs else None


def _parent_id(doc_id: str) -> str:
    """Return the document of a chunk id; '' for any other id."""
    try:
        return parse_chunk_id(doc_id)[0]
    except ValueError:
        return ""


def scores_by_relevance(qrels: Qrels, run: Run) -> dict[str, list[float]]:
    """Return the scores of the relevant documents and those of the others, in judged queries."""
    scores: dict[str, list[float]] = {"relevant": [], "others": []}
    for qid in qrels.keys() & run.keys():
        for doc_id, score in run[qid]:
            scores["relevant" if qrels[qid].get(doc_id, 0) > 0 else "others"].append(score)
    return scores


def absences(qrels: Qrels, corpus: Any) -> list[Absence]:
    """Return the relevant documents that a corpus lacks, with the likely reason; it has `in` and `nearest_id`."""
    return [Absence(doc_id, _why_absent(doc_id, corpus)) for doc_id in metrics.absent_documents(qrels, corpus)]


def _why_absent(doc_id: str, corpus: Any) -> str:
    if (parent := _parent_id(doc_id)) and parent in corpus:
        return f"this is the id of a chunk; its document {parent!r} is indexed"
    for candidate in (doc_id.strip(), doc_id.upper(), doc_id.lower()):
        if candidate != doc_id and candidate in corpus:
            return f"indexed as {candidate!r}"
    nearest = corpus.nearest_id(doc_id)
    return f"not indexed; the nearest id is {nearest!r}" if nearest else "not indexed"


@click.command()
@click.argument("runs", nargs=-1, required=True)
@click.option("--qrels", help="Judgements; else each question's own doc_id.")
@click.option("--queries", help="JSONL with qid and question, or a saved dataset's folder: the questions' texts.")
@click.option("--png", help="Write the picture here.")
@click.option("--hardest", default=10, show_default=True, help="How many of the hardest questions to list.")
@click.option("--show", default=5, show_default=True, help="How many questions, drawn at random, to show.")
@click.option("--pyserini", is_flag=True, help="Print trec_eval's own figures too.")
@click.option("--index-folder", help=f"Where titles come from. [default: {DEFAULT_FOLDER}, if there is one]")
@click.option("--index-name", help=f"[default: {DEFAULT_NAME}]")
def analyze(
    runs: tuple[str, ...],
    qrels: str | None,
    queries: str | None,
    png: str | None,
    hardest: int,
    show: int,
    pyserini: bool,
    index_folder: str | None,
    index_name: str | None,
) -> None:
    """Say where RUNS succeed and fail; run and qrels files are enough."""
    if qrels is None and queries is None:
        raise click.UsageError("no judgements: give --qrels, or --queries that name a doc_id")
    asked, judged = read_queries(queries) if queries is not None else ([], {})
    judged = read_qrels(qrels) if qrels is not None else judged
    texts = {query.qid: query.text for query in asked}
    by_name = {path: read_run(path) for path in runs}
    library = _holding_any(by_name.values(), _library(index_folder, index_name))
    for name, run in by_name.items():
        click.echo(f"{name}")
        print_figures(evaluate_run(judged, run), theirs=trec_eval(judged, run) if pyserini else None)
        _print_ids_and_scores(judged, run)
        for one in metrics.sampled(judged, run, show):
            hit = f"HIT {one.first_rank}" if one.first_rank else "MISS"
            click.echo(f"{hit:8} {one.qid}  {texts.get(one.qid, '')}")
        for one in metrics.hardest(judged, run, hardest):
            click.echo(f"\n{one.qid}, first hit at {one.first_rank or 'no rank'}: {texts.get(one.qid, '')}")
            for label, ids in (("wanted", one.wanted), ("returned", one.returned)):
                for doc_id in ids:
                    click.echo(f"  {label:8} {doc_id}  {_citation(library, doc_id)}")
    for absence in absences(judged, library) if library is not None else ():
        click.echo(f"absent: {absence.doc_id}: {absence.why}")
    if warning := caution(asked):
        click.echo(f"caution: {warning}")
    if png is not None:
        metrics.save_plot(metrics.plot_runs(judged, by_name), png)


def _library(index_folder: str | None, index_name: str | None) -> Library | None:
    place = Path(index_folder or DEFAULT_FOLDER), index_name or DEFAULT_NAME
    if index_folder is None and index_name is None and not is_library(Path(*place)):
        return None
    return Library.open(*place)


def _holding_any(runs: Iterable[Run], library: Library | None) -> Library | None:
    """Return the index if a document of the runs is in it; say so if none is."""
    found = [doc_id for run in runs for ranked in run.values() for doc_id, _ in ranked]
    if library is None or not found or any(doc_id in library for doc_id in found):
        return library
    click.echo(
        f"no document of the runs is in {library.path}: no titles (--index-name names the index that was searched)",
        err=True,
    )
    return None


def _citation(library: Library | None, doc_id: str) -> str:
    if library is None:
        return ""
    return legal_citation(library.document(doc_id)).plain if doc_id in library else "not in the index"


def _print_ids_and_scores(judged: Qrels, run: Run) -> None:
    shared = overlap(judged, run)
    click.echo(
        f"queries    {shared.queries} in both, {shared.only_judged} only judged, {shared.only_run} only in the run"
    )
    click.echo(f"relevant   {shared.returned} of {shared.wanted} documents in the run, at any rank")
    for one in id_mismatches(judged, run):
        click.echo(f"mismatch   {one.n} judged {one.why}: {one.judged}, {one.found}")
    for of, scores in scores_by_relevance(judged, run).items():
        spread = "  ".join(f"{value:.3f}" for value in np.quantile(scores, (0, 0.25, 0.5, 0.75, 1))) if scores else ""
        click.echo(f"scores     {of:8} {len(scores):6}  {spread}  (least, quartiles, highest)")


def main(argv: list[str] | None = None) -> int:
    """Run the command; expected errors are one line and status 1."""
    try:
        analyze.main(args=argv, standalone_mode=False)
    except click.ClickException as error:
        click.echo(f"analyze_retrieval_results: {error.format_message()}", err=True)
        return 1
    except (ValueError, LookupError, OSError, ModuleNotFoundError) as error:
        click.echo(f"analyze_retrieval_results: {error}", err=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
