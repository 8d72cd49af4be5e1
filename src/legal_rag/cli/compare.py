"""Command that compares systems over one set of queries."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from legal_rag.cli.options import (
    Place,
    figures_json,
    judged_queries,
    note,
    page_to_write,
    place_options,
    print_json,
    search_settings,
    trust_option,
    write_page,
)
from legal_rag.cli.settings import setting

if TYPE_CHECKING:
    from ir_measures import Measure

    from legal_rag.evaluation.comparison import SystemComparison


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
        print_json(_as_json(compared))
    else:
        _print_tables(compared)
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


def _print_tables(compared: "SystemComparison") -> None:
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


def _as_json(compared: "SystemComparison") -> dict[str, Any]:
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
