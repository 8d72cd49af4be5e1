"""Commands that pool what several systems rank first, for judges, and merge what two judges say."""

from pathlib import Path

import click

from legal_rag.cli.options import (
    Place,
    count,
    json_option,
    note,
    page_to_write,
    place_options,
    print_json,
    trust_option,
)


@click.group("pool")
def pool_command() -> None:
    """Judge what several systems rank first: `make` writes a sheet, two judges fill a copy each, `merge` reads both."""


@pool_command.command("make")
@place_options
@click.option("--queries", required=True, help="JSONL with qid, question and perhaps doc_id, which is judged already.")
@click.option("--qrels", help="Present judgements: what they hold is not judged again.")
@click.option("--run", "runs", multiple=True, required=True, metavar="RUN", help="A TREC run; one for each system.")
@click.option("--depth", default=10, type=click.IntRange(min=1), help="Documents of each run that are judged.")
@click.option("--output", required=True, metavar="SHEET.csv", help="The sheet; its page lies beside it, as .html.")
@trust_option
def make_command(
    place: Place, queries: str, qrels: str | None, runs: tuple[str, ...], depth: int, output: str, **settings: bool
) -> None:
    """Write the unjudged first documents of each run, with their passages, for a judge: CSV, and a page to mark it in.

    Neither shows which system ranked what where.
    """
    from legal_rag import evaluation
    from legal_rag.base.files import write_whole
    from legal_rag.retriever.retriever import build_retriever

    asked, judged = evaluation.read_queries(queries)
    judged = judged if qrels is None else evaluation.read_qrels(qrels)
    page_to_write(output, ".csv")
    sheet = Path(output).expanduser()
    page = sheet.with_suffix(".html")
    if taken := [str(file) for file in (sheet, page) if file.exists()]:
        raise FileExistsError(f"there already, perhaps with marks: {', '.join(taken)} (expected another --output)")
    library = place.open()
    read = {name: evaluation.read_run(name) for name in runs}
    known = {query.qid for query in asked}
    for name, run in read.items():
        if not known & run.keys():
            raise ValueError(f"{name} is of another collection: none of its {len(run)} queries is in {queries}")
        if not any(doc_id in library for ranked in run.values() for doc_id, _ in ranked[:depth]):
            raise ValueError(f"{name} is of another collection: none of its first {depth} is in {library.path}")
    pooled = evaluation.pool_runs(list(read.values()), judged, depth)
    retriever = build_retriever(library, trust_remote_code=settings["trust_remote_code"])
    rows = evaluation.make_sheet(retriever, asked, pooled)
    n_pooled = sum(len(doc_ids) for qid, doc_ids in pooled.items() if qid in known)
    if not rows:
        raise ValueError(f"nothing to judge: {n_pooled} unjudged pairs, none with a document of {library.path}")
    evaluation.write_sheet(sheet, rows)
    write_whole(page, evaluation.render_sheet(rows, sheet.name))
    if n_pooled > len(rows):
        note(f"{count(n_pooled - len(rows), 'pair')} left out: {library.path} lacks the documents")
    questions = len({row.qid for row in rows})
    result = {"sheet": str(sheet), "page": str(page), "pairs": len(rows), "queries": questions, "pooled": n_pooled}
    place.show(result, f"{count(len(rows), 'pair')} of {questions} questions to judge: {sheet}, or in a browser {page}")


@pool_command.command("merge")
@click.argument("first", metavar="A.csv")
@click.argument("second", metavar="B.csv")
@click.option("--queries", help="JSONL of questions: the document that each was written from has grade 3.")
@click.option("--qrels", help="Present judgements, which stay.")
@click.option("--output", metavar="QRELS", help="Write all judgements together, as trec_eval reads them.")
@json_option
def merge_command(
    first: str, second: str, queries: str | None, qrels: str | None, output: str | None, as_json: bool
) -> None:
    """Print how far two judges of one sheet agree (Cohen's kappa) and where not; write their judgements, merged.

    Where they differ, the lower grade counts. A judge's marks may also be a .qrels file.
    """
    from legal_rag import evaluation
    from legal_rag.evaluation.pooling import SOURCE_GRADE

    marks = [evaluation.read_marks(sheet) for sheet in (first, second)]
    found = evaluation.agreement(*marks)
    present = evaluation.read_qrels(qrels) if qrels else {}
    for qid, answers in (evaluation.read_queries(queries)[1] if queries else {}).items():
        for doc_id in answers:
            present.setdefault(qid, {}).setdefault(doc_id, SOURCE_GRADE)
    merged = evaluation.merge_judgements(present, *marks)
    if output is not None:
        evaluation.write_qrels(Path(output).expanduser(), merged)
        note(f"written: {output}")
    if as_json:
        print_json({**found._asdict(), "disagreements": [pair._asdict() for pair in found.disagreements]})
        return
    for pair in found.disagreements:
        click.echo(f"{pair.qid}  {pair.doc_id}  {pair.first} {pair.second}")
    click.echo(f"{count(found.pairs, 'pair')}, {found.same} with equal grades")
    for name in ("kappa", "linear", "quadratic", "binary"):
        value = getattr(found, name)
        click.echo(f"{name:10} {'undefined: all marks are equal' if value is None else f'{value:.4f}'}")
