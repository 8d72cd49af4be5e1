"""Draw the decisions and paragraphs that are annotated for structure, and write what annotators are shown.

Run: python benchmarks/structure_sample.py DECISIONS FOLDER

DECISIONS is the decisions' JSONL (gzipped or not). FOLDER gets `dev-1.txt`, `dev-2.txt`, `test.txt` and `test-2.txt`:
the decisions with their paragraphs numbered and cut to 150 characters, those to be judged whole and marked `>>>`. A
paragraph is a line that is not blank; only those of 60 characters or more are judged. The draw is of a third each of
the Cour de cassation, the Conseil constitutionnel and the courts below; no two sets share a decision. The guideline is
data/structure/guideline.md; what annotators answered lies beside it. `test-2` was drawn when the rules had been judged
on `test`, which was then read to mend them.
"""

import argparse
import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SEED = 20261124
DEV, TEST, TEST_BORDERS = 27, 17, 10  # decisions of each kind of court; of the test's, those whose parts are marked
JUDGED = {"dev": 200, "test": 200}
SHOWN_CHARACTERS, JUDGED_CHARACTERS = 150, 60
COURTS = ("Cour de cassation", "Conseil constitutionnel", "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("decisions", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    opener = gzip.open if arguments.decisions.suffix == ".gz" else open
    with opener(arguments.decisions, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name, shown in listings(rows).items():
        (arguments.folder / f"{name}.txt").write_text("\n\n".join(shown) + "\n", encoding="utf-8")
        print(name, len(shown), "decisions,", sum(text.count("\n>>>") for text in shown), "paragraphs to judge")


def listings(rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Return, for each annotator, the decisions as shown."""
    rng = random.Random(SEED)
    dev, test = [], []
    for court in COURTS:
        own = sorted((row for row in rows if _court(row) == court), key=lambda row: row["id"])
        drawn = rng.sample(own, DEV + TEST)
        dev += drawn[:DEV]
        test += [(row, place < TEST_BORDERS) for place, row in enumerate(drawn[DEV:])]
    rng.shuffle(dev)
    judged_dev, judged_test = _judged(dev, JUDGED["dev"], rng), _judged([row for row, _ in test], JUDGED["test"], rng)
    shown = [_shown(row, judged_dev[row["id"]], True) for row in dev]
    half = len(shown) // 2
    tests = [_shown(row, judged_test[row["id"]], borders) for row, borders in test]
    second = _second_test(rows, {row["id"] for row in [*dev, *(row for row, _ in test)]})
    return {"dev-1": shown[:half], "dev-2": shown[half:], "test": tests, "test-2": second}


def _second_test(rows: list[dict[str, Any]], drawn: set[str]) -> list[str]:
    """Show as many other decisions as the test has, drawn by a seed of their own."""
    rng = random.Random(SEED + 1)
    test = []
    for court in COURTS:
        own = sorted(
            (row for row in rows if _court(row) == court and row["id"] not in drawn), key=lambda row: row["id"]
        )
        test += [(row, place < TEST_BORDERS) for place, row in enumerate(rng.sample(own, TEST))]
    judged = _judged([row for row, _ in test], JUDGED["test"], rng)
    return [_shown(row, judged[row["id"]], borders) for row, borders in test]


def paragraphs(content: str) -> Iterator[tuple[int, int]]:
    """Yield the first and last offset of each line that is not blank, white space at its ends left out."""
    start = 0
    for line in content.split("\n"):
        if stripped := line.strip():
            first = start + line.index(stripped)
            yield first, first + len(stripped)
        start += len(line) + 1


def _court(row: dict[str, Any]) -> str:
    return row["juridiction"] if row["juridiction"] in COURTS else ""


def _judged(rows: list[dict[str, Any]], number: int, rng: random.Random) -> dict[str, set[int]]:
    """Draw paragraphs, as evenly over the decisions as their lengths allow."""
    left = {row["id"]: rng.sample(long := _long(row["content"]), min(len(long), number)) for row in rows}
    drawn: dict[str, set[int]] = {row["id"]: set() for row in rows}
    while number and any(left.values()):
        for doc_id in rng.sample(sorted(left), len(left)):
            if number and left[doc_id]:
                drawn[doc_id].add(left[doc_id].pop())
                number -= 1
    return drawn


def _long(content: str) -> list[int]:
    return [n for n, (start, end) in enumerate(paragraphs(content)) if end - start >= JUDGED_CHARACTERS]


def _shown(row: dict[str, Any], judged: set[int], borders: bool) -> str:
    content = row["content"]
    lines = [f"=== {row['id']} ({row['title']}){'' if borders else ' [paragraphs only]'}"]
    for number, (start, end) in enumerate(paragraphs(content)):
        text = content[start:end]
        if number in judged:
            lines.append(f">>> {number}: {text}")
        else:
            lines.append(f"{number}: {text[:SHOWN_CHARACTERS]}{' …' if len(text) > SHOWN_CHARACTERS else ''}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
