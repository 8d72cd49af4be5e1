"""The command that lists saved runs, shows one again, or removes one."""

from typing import TYPE_CHECKING

import click

from legal_rag.cli_ask import html_option, open_store, page_to_write, runs_folder_option, tell, write_page
from legal_rag.cli_options import open_library, place_options, print_json
from legal_rag.run_lines import citations_in_french, french_seconds, in_one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from legal_rag.runs import RunSummary

QUESTION_CHARS = 80  # of a question in the list


@click.command("runs")
@place_options
@click.argument("run_id", required=False)
@html_option
@runs_folder_option
@click.option("--remove", metavar="RUN_ID", help="Delete this run.")
def runs_command(
    run_id: str | None,
    index_folder: str,
    index_name: str,
    as_json: bool,
    html: str | None,
    runs_folder: str | None,
    remove: str | None,
) -> None:
    """List the runs that `ask --save` kept, the newest first, or show the run RUN_ID again."""
    if remove and (run_id or html):
        raise click.UsageError("--remove goes alone: it names the run itself")
    if html and not run_id:
        raise click.UsageError("--html goes with RUN_ID")
    store = open_store(None if runs_folder else open_library(index_folder, index_name), runs_folder)
    if remove:
        store.remove(remove)
        print_json({"removed": remove}) if as_json else click.echo(f"removed run {remove}")
    elif run_id:
        page = page_to_write(html)
        prediction = store.load(run_id)
        tell(prediction, as_json=as_json)
        if page:
            write_page(prediction, page)
    elif as_json:
        print_json([run._asdict() for run in store.list()])
    else:
        _print_runs(store.list())


def _print_runs(runs: "Sequence[RunSummary]") -> None:
    if not runs:
        click.echo("no saved runs ('legal-rag ask --save' keeps one)", err=True)
    for run in runs:
        click.echo(f"{run.run_id}  {in_one_line(run.question, QUESTION_CHARS)}")
        counts = citations_in_french(run.citations) or "aucune citation"
        cost = "" if not run.cost else f", {run.cost:.4f} $"
        calls = f", {run.model_calls} appel{'s' if run.model_calls > 1 else ''} du modèle" if run.model_calls else ""
        click.echo(f"   {run.mode}, {run.status}, {counts}, {french_seconds(run.seconds)}{calls}{cost}")
