"""Command that runs reproductions and compares their figures with the expected ones."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from legal_rag.cli.options import note

if TYPE_CHECKING:
    from legal_rag.evaluation.reproductions import Row, RowOutcome


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
            _print(outcome)
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


def _print(outcome: "RowOutcome") -> None:
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
