"""Command that probes a model for errors in French law."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from legal_rag.cli.options import Place, language_model, model_options, note, place_options

if TYPE_CHECKING:
    from legal_rag.evaluation.probe import ProbeReport


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
        _print_report(place, score_written(place.open()))
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
    _print_report(place, probe_model(place.open(), model, output))


def _print_report(place: Place, report: "ProbeReport") -> None:
    head = ("kind", "asked", "right", "compare", "refused", "wrong", "refused", "compare", "unmarked", "vouched")
    table = [head, ["---", *["---:"] * (len(head) - 1)], *report.rows]
    lines = [f"| {' | '.join(map(str, row))} |" for row in table]
    shares = [f"{name}: {value:.1%} [{low:.1%}, {high:.1%}]" for name, (value, low, high) in report.shares.items()]
    place.show(report.to_json(), report.model, *lines, *shares)
    vouched = [one.id for one in report.outcomes if (one.verdict, one.shown) == ("wrong", "vouched")]
    if vouched:
        note(f"errors that a citation vouches for: {', '.join(vouched)} (their texts: --json)")
