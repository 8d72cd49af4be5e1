"""Commands that measure: rankings, systems side by side, a model's errors, published figures; and make questions."""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from legal_rag.cli.options import (
    Place,
    column_options,
    count,
    doc_ids_option,
    dry_run_option,
    figures_json,
    filter_at_fault,
    filter_options,
    ids_file_option,
    json_option,
    judged_queries,
    language_model,
    limit_option,
    model_options,
    note,
    page_to_write,
    place_options,
    print_json,
    ranking_options,
    reading_options,
    search_settings,
    source_option,
    trust_option,
    write_page,
)
from legal_rag.cli.settings import setting, settings_of
from legal_rag.evaluation.questions.checks import STRATEGIES, WORKERS, QuestionSettings
from legal_rag.evaluation.trec import NO_MODEL

if TYPE_CHECKING:
    import dspy
    from ir_measures import Measure

    from legal_rag.evaluation.abstention import AbstentionEvaluation
    from legal_rag.evaluation.comparison import SystemComparison
    from legal_rag.evaluation.metrics import Evaluation, RunComparison
    from legal_rag.evaluation.probe import ProbeReport
    from legal_rag.evaluation.questions.dataset import Documents, QuestionReport
    from legal_rag.evaluation.questions.generate import Estimate
    from legal_rag.evaluation.reproductions import Row, RowOutcome
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


@click.command("compare")
@place_options
@click.argument("systems", nargs=-1, required=True, metavar="SYSTEM...")
@click.option("--queries", required=True, help="JSONL with qid, question and doc_id; or a saved dataset's folder.")
@click.option("--qrels", help="Judgements, as trec_eval reads them; else each question's own doc_id.")
@click.option("--k", type=click.IntRange(min=1), default=100, help="Documents ranked for each question.")
@click.option("--baseline", metavar="SYSTEM", help="The one that others are tested against; else the first.")
@click.option("--measure", "wanted", multiple=True, metavar="MEASURE", help="E.g. nDCG@10; may be repeated.")
@click.option("--output", help="Write each run into this folder; those that are there are not made again.")
@click.option("--force", is_flag=True, help="Replace runs in --output that other settings made.")
@click.option("--latex", metavar="FILE", help="Write the table for LaTeX too.")
@setting("exhaustive", bool, False)
@trust_option
def compare_command(place: Place, systems: tuple[str, ...], wanted: tuple[str, ...], **options: Any) -> None:
    """Measure several systems over the same questions, and test their differences from a baseline.

    A SYSTEM is a mode (bm25, bm25+rerank, colbert, hybrid), bm25s, lucene, use, mean:ENCODER, encoder:ENCODER,
    'rrf(A,B)', or the file of a run in TREC's form.
    """
    from legal_rag import evaluation

    table = page_to_write(options["latex"], ".tex")
    measures = [_measure(name) for name in wanted] or None
    queries, qrels = judged_queries([options["queries"]], options["qrels"])
    compared = evaluation.compare_systems(
        place.open(),
        queries,
        qrels,
        systems,
        wanted=measures,
        settings=search_settings(options),
        **{name: options[name] for name in ("k", "baseline", "output", "force", "trust_remote_code")},
    )
    write_page(table, compared.to_latex)
    if place.as_json:
        print_json(_comparison_json(compared))
    else:
        _print_comparison(compared)
    if caution := evaluation.caution(queries):
        note(f"caution: {caution}")
    if compared.absent:
        n, first = len(compared.absent), compared.absent[0]
        note(f"{n} of the documents judged relevant are not in the index, e.g. {first}")


def _measure(name: str) -> "Measure":
    import ir_measures

    try:
        return ir_measures.parse_measure(name)
    except (NameError, ValueError) as error:
        raise ValueError(f"no such measure: {name!r} (expected one of ir_measures, e.g. nDCG@10, R@100, AP)") from error


def _print_comparison(compared: "SystemComparison") -> None:
    """Print the figures of each system, then the corrected p-values of those that were tested."""
    from legal_rag.evaluation.comparison import MARK

    (_, *names), *rows = compared.rows("{:.4f}")
    width = max(len(system) for system, *_ in rows) + 2

    def show(first: str, cells: Iterable[str], last: str = "") -> None:
        columns = (f"{cell:>10}" if cell.endswith(MARK) else f"{cell:>9} " for cell in cells)
        click.echo(f"{first:{width}}{''.join(columns)}{last:>10}".rstrip())

    show("", names, "ms/query")
    for system, *cells in rows:
        spent = compared.milliseconds.get(system)
        show(system, cells, "" if spent is None else f"{spent:.1f}")
    if compared.tests:
        click.echo(f"{MARK} {compared.describe_tests()}\n\ncorrected p")
    p_values = {test[:2]: f"{test.corrected:.4f}" for test in compared.tests}
    for system in dict.fromkeys(test.system for test in compared.tests):
        show(system, (p_values.get((system, name), "") for name in names))


def _comparison_json(compared: "SystemComparison") -> dict[str, Any]:
    return {
        "baseline": compared.baseline,
        "systems": {
            system: {
                "figures": figures_json(measured.figures),
                "milliseconds": compared.milliseconds.get(system),
                "by_query": measured.by_query,
            }
            for system, measured in compared.evaluations.items()
        },
        "tests": {
            system: {test.measure: test._asdict() for test in compared.tests if test.system == system}
            for system in compared.evaluations
            if system != compared.baseline
        },
        "absent_documents": compared.absent,
    }


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


@click.command("probe")
@place_options
@model_options
@click.option("--output", help="Folder that keeps every reply; one begun before is resumed; without a model, judged.")
@click.option("--written", is_flag=True, help="Judge the answers written by hand with the probe, not a model's.")
def probe_command(place: Place, output: str | None, written: bool, **settings: Any) -> None:
    """Count the errors in French law of a model's answers, by kind, and those that the checks mark.

    The index is of the sample corpus: sixty questions, four for each of fifteen kinds of errors.
    """
    from legal_rag.evaluation.probe import REPLIES, probe_model, score_written

    if written:
        _print_probe(place, score_written(place.open()))
        return
    if output is None:
        raise ValueError("nowhere to keep the replies (expected --output FOLDER, or --written)")
    lm = language_model(settings)
    model = None
    if lm is not None:
        from legal_rag.llm import model_of

        model = model_of(lm)
    elif not (Path(output).expanduser() / REPLIES).exists():
        raise ValueError(f"no model to probe, and no replies in {output} (expected --model with --api-base or a key)")
    _print_probe(place, probe_model(place.open(), model, output))


def _print_probe(place: Place, report: "ProbeReport") -> None:
    head = ("kind", "asked", "right", "compare", "refused", "wrong", "refused", "compare", "unmarked", "vouched")
    table = [head, ["---", *["---:"] * (len(head) - 1)], *report.rows]
    lines = [f"| {' | '.join(map(str, row))} |" for row in table]
    shares = [f"{name}: {value:.1%} [{low:.1%}, {high:.1%}]" for name, (value, low, high) in report.shares.items()]
    place.show(report.to_json(), report.model, *lines, *shares)
    vouched = [one.id for one in report.outcomes if (one.verdict, one.shown) == ("wrong", "vouched")]
    if vouched:
        note(f"errors that a citation vouches for: {', '.join(vouched)} (their texts: --json)")


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
@settings_of(DEFAULT, "seed", "tries", "threshold", "context_chars")
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


@click.command("reproduce")
@click.argument("rows", nargs=-1, metavar="[ROW]...")
@click.option("--list", "listed", is_flag=True, help="Print the rows, their seconds, and what they need.")
@click.option("--libraries", metavar="FOLDER", help="Keep the Libraries built here, for the next time.")
@click.option("--log", metavar="FILE", help="Add a line for each row; rows right at this commit are not run again.")
@click.option("--update", is_flag=True, help="Write the figures found into the table as the expected ones.")
def reproduce_command(rows: tuple[str, ...], listed: bool, libraries: str | None, log: str | None, update: bool) -> int:
    """Run rows of a clone's benchmarks/reproductions.toml, and compare; status 1 where a figure moved.

    Without ROW all are run; 'sample-*' are those that need nothing but the clone.
    """
    from legal_rag.evaluation import reproductions

    table = reproductions.read_table(Path.cwd())
    chosen = table.named(rows)
    log_file = Path(log).expanduser() if log is not None else None
    if listed:
        lines = reproductions.read_log(log_file) if log_file is not None else []
        right = {line["row"]: line["date"] for line in lines if line["ok"]}
        for row in chosen:
            click.echo(_listed(row) + (f"  right on {right[row.name]}" if row.name in right else ""))
        return 0
    outcomes = []
    with tempfile.TemporaryDirectory() as scratch:
        for outcome in reproductions.reproduce(table, chosen, Path(libraries or scratch).expanduser(), log_file):
            _print_outcome(outcome)
            outcomes.append(outcome)
    if update:
        reproductions.update_table(table, outcomes)
        note(f"written: {reproductions.TABLE}; 'make reproductions' writes the page of it")
    wrong = sum(outcome.status in ("moved", "failed") for outcome in outcomes)
    skipped = sum(outcome.status == "skipped" for outcome in outcomes)
    told = f"{len(outcomes) - wrong - skipped} of {len(outcomes)} rows without a difference"
    click.echo(told + f", {skipped} skipped" * bool(skipped))
    return int(bool(wrong))


def _listed(row: "Row") -> str:
    needs = ", ".join([*row.needs, *(f"Library {name}" for name in row.libraries)])
    return f"{row.name:28} {row.seconds:5} s  {row.shows}" + f"  [{needs}]" * bool(needs)


def _print_outcome(outcome: "RowOutcome") -> None:
    row = outcome.row
    told = f"{len(row.figures)} figures, {outcome.seconds:.0f} s, expected {row.seconds} s"
    if outcome.status not in ("ok", "moved"):
        told = f"needs {outcome.reason}" if outcome.status == "skipped" else outcome.reason or "already, by the log"
    click.echo(f"{outcome.status:8} {row.name:28} {told}")
    for name in outcome.moved:
        expected, tolerance = row.figures[name]
        within = f" (tolerance {tolerance})" if tolerance else ""
        click.echo(f"  {name}: expected {expected}, found {outcome.found[name]:.10g}{within}")
    for name, expected in row.times.items():
        if name in outcome.found:
            click.echo(
                f"  {name}: {outcome.found[name]:.4g}, {outcome.found[name] / float(expected):.2f} times {expected}"
            )
