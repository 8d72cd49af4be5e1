"""What decisions do to others, as the rules read it, against two readers of the texts alone.

Run: python benchmarks/fates.py --data FOLDER [--list]

FOLDER holds decisions.jsonl.gz; benchmarks/data/fates.jsonl what two readers found in 150 of them, adjudicated. A fact
is a decision below (court and day) with what became of it, the court to which a case is remitted, or the quashing that
a decision on remand follows. Printed as JSON: precision and recall of the facts, in all and by kind; `--list` names
what is missed and what is wrong on stderr.
"""

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from legal_rag.corpus.documents import read_documents
from legal_rag.graph.fates import Effect, read_effects
from legal_rag.graph.names import court_node
from legal_rag.law import find_courts

LABELS = Path(__file__).parent / "data" / "fates.jsonl"
NO_FATE = ("none", "ended")  # a decision that stays as it was: the appeal was inadmissible, withdrawn, without object


class Fact(NamedTuple):
    """Something a decision says of a fate."""

    kind: str  # an effect, "renvoi" or "after"
    court: str  # key
    day: str  # of the decision below, or of the quashing that is followed; empty of a renvoi


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--list", action="store_true", help="Name the errors on stderr.")
    arguments = parser.parse_args()
    labels = {row["id"]: row for row in map(json.loads, LABELS.read_text().splitlines())}
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for document in read_documents(arguments.data / "decisions.jsonl.gz"):
        if document.id in labels:
            wanted = Counter(_labelled(labels[document.id]))
            found = Counter(fact for effect in read_effects(document) for fact in _found(effect))
            for name, facts in (("right", found & wanted), ("wrong", found - wanted), ("missed", wanted - found)):
                for fact in facts.elements():
                    counts[fact.kind][name] += 1
                    if arguments.list and name != "right":
                        print(name, document.id, *fact, file=sys.stderr)
    total = sum(counts.values(), Counter[str]())
    figures = {kind: _figures(counts[kind]) for kind in sorted(counts)}
    print(json.dumps({"decisions": len(labels), "all": _figures(total), "kinds": figures}, indent=1))


def _labelled(row: dict[str, Any]) -> Iterator[Fact]:
    for target in row["targets"]:
        if target["effect"] not in NO_FATE:
            yield Fact(target["effect"], _court(target["court"]), target["date"])
        if target["renvoi"]:
            yield Fact("renvoi", _court(target["renvoi"]), "")
    if row["after"]:
        yield Fact("after", _court(row["after"]["court"]), row["after"]["date"])


def _found(effect: Effect) -> Iterator[Fact]:
    yield Fact(effect.kind, _court(effect.court), effect.day)
    if effect.referred_to:
        yield Fact("renvoi", _court(effect.referred_to), "")


def _court(name: str) -> str:
    """Return the key of a court, without its president, its chamber or what the readers noted beside it."""
    courts = find_courts(name)[-1:]
    node = court_node(name[slice(*courts[0])] if courts else name)
    return node.key if node else ""


def _figures(counts: Counter[str]) -> dict[str, float]:
    right, wrong, missed = counts["right"], counts["wrong"], counts["missed"]
    return {
        "facts": right + missed,
        "precision": round(right / max(right + wrong, 1), 4),
        "recall": round(right / max(right + missed, 1), 4),
        "wrong": wrong,
        "missed": missed,
    }


if __name__ == "__main__":
    main()
