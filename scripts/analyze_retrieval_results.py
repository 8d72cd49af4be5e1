"""Look into runs: recall curve and first hits as a picture, the hardest questions, relevant documents not indexed.

Run: python scripts/analyze_retrieval_results.py --queries questions.jsonl [--qrels qrels.txt] [--png plot.png] run.txt…
"""

import sys
from pathlib import Path

import click

from legal_rag.evaluation import analysis, read_qrels, read_queries, read_run
from legal_rag.library import DEFAULT_FOLDER, DEFAULT_NAME, Library


@click.command()
@click.argument("runs", nargs=-1, required=True)
@click.option("--queries", required=True, help="JSONL with qid and question, or a saved dataset's folder.")
@click.option("--qrels", help="Judgements; else each question's own doc_id.")
@click.option("--png", help="Write the picture here.")
@click.option("--hardest", default=10, show_default=True, help="How many of the hardest questions to list.")
@click.option("--index-folder", default=DEFAULT_FOLDER, show_default=True)
@click.option("--index-name", default=DEFAULT_NAME, show_default=True)
def analyze(
    runs: tuple[str, ...],
    queries: str,
    qrels: str | None,
    png: str | None,
    hardest: int,
    index_folder: str,
    index_name: str,
) -> None:
    """Say where RUNS succeed and fail; titles come from the index."""
    library = Library.open(index_folder, index_name)
    asked, judged = read_queries(queries)
    judged = read_qrels(qrels) if qrels is not None else judged
    texts = {query.qid: query.text for query in asked}
    by_name = {Path(path).stem: read_run(path) for path in runs}
    for name, run in by_name.items():
        curve = ", ".join(f"{depth}: {recall:.4f}" for depth, recall in analysis.recall_curve(judged, run))
        click.echo(f"{name}: recall at {curve}")
        for failure in analysis.hardest(judged, run, hardest):
            click.echo(f"\n{failure.qid}, first hit at {failure.first_rank or 'no rank'}: {texts.get(failure.qid, '')}")
            for label, ids in (("wanted", failure.wanted), ("returned", failure.returned)):
                for doc_id in ids:
                    title = library.document(doc_id).title if doc_id in library else "not in the index"
                    click.echo(f"  {label:8} {doc_id}  {title}")
    for absence in analysis.absences(judged, library):
        click.echo(f"absent: {absence.doc_id}: {absence.why}")
    if png is not None:
        analysis.save_plot(analysis.plot_runs(judged, by_name), png)


def main(argv: list[str] | None = None) -> int:
    """Run the command; expected errors are one line and status 1."""
    try:
        analyze.main(args=argv, standalone_mode=False)
    except click.ClickException as error:
        click.echo(f"analyze_retrieval_results: {error.format_message()}", err=True)
        return 1
    except (ValueError, LookupError, OSError) as error:
        click.echo(f"analyze_retrieval_results: {error}", err=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
