"""Compare main parts and speakers with what people annotated.

Run: python benchmarks/structure.py DECISIONS [--errors dev|test|test-2]

DECISIONS is the decisions' JSONL (gzipped or not). Printed are the figures of each set as JSON. What was annotated, and
by which guideline, is in data/structure.
"""

import argparse
import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from legal_rag.law.parts import main_parts, read_paragraphs

HEADING_CHARS = 40
SETS = ("dev", "test", "test-2")
ANNOTATED = Path(__file__).parent / "data" / "structure"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("decisions", type=Path)
    parser.add_argument("--errors", choices=SETS, help="print each paragraph and border of a set that differs")
    arguments = parser.parse_args()
    opener = gzip.open if arguments.decisions.suffix == ".gz" else open
    with opener(arguments.decisions, "rt", encoding="utf-8") as lines:
        contents = {row["id"]: row["content"] for row in map(json.loads, lines)}
    figures = {}
    for name in [arguments.errors] if arguments.errors else SETS:
        spoken, borders = compare(contents, name, show_errors=bool(arguments.errors))
        figures[name] = {
            "paragraphs": spoken.total(),
            "speakers right": sum(n for (a, b), n in spoken.items() if a.rstrip("!") == b.rstrip("!")),
            "not the court's, called the court's": sum(
                n for (a, b), n in spoken.items() if b == "court" and a in ("party", "lower_court!")
            ),
            "borders": borders.total(),
            "borders exact": sum(n for (_, right), n in borders.items() if right),
        }
    print(json.dumps(figures, indent=1))


def paragraphs(content: str) -> Iterator[tuple[int, int]]:
    """Yield the first and last offset of each line that is not blank, white space at its ends left out."""
    start = 0
    for line in content.split("\n"):
        if stripped := line.strip():
            first = start + line.index(stripped)
            yield first, first + len(stripped)
        start += len(line) + 1


def compare(
    contents: Mapping[str, str], name: str, *, show_errors: bool = False
) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, bool]]]:
    """Count paragraphs by expected and found speaker, and borders by kind and whether they are exact."""
    spoken: Counter[tuple[str, str]] = Counter()
    borders: Counter[tuple[str, bool]] = Counter()
    for line in (ANNOTATED / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        text = contents[row["id"]]
        spans = list(paragraphs(text))
        read = read_paragraphs(text)
        for number, expected in row["speakers"].items():
            span = spans[int(number)]
            found = max(read, key=lambda one: min(one.end, span[1]) - max(one.start, span[0]))
            label = (found.speaker or "none") + ("!" if found.censured else "")
            spoken[expected, label] += 1
            if show_errors and label != expected:
                print(f"{row['id']} {number} [{found.part}] {label}, expected {expected}: {text[slice(*span)][:700]}\n")
        if "parts" in row:
            own = {(part.kind, part.start) for part in main_parts(read, len(text))}
            for kind, number in row["parts"]:
                exact = any(kind == one and _opens(spans, number, start) for one, start in own)
                borders[kind, exact] += 1
                if show_errors and not exact:
                    at = [n for k, s in own if k == kind for n, span in enumerate(spans) if span[0] <= s < span[1]]
                    print(
                        f"{row['id']} {kind}: expected {number} ({text[slice(*spans[number])][:90]!r}), found {at}"
                        f" {[text[slice(*spans[n])][:90] for n in at]}\n"
                    )
    return spoken, borders


def _opens(spans: list[tuple[int, int]], number: int, start: int) -> bool:
    """Does a part that begins at `start` open with a paragraph, or with a heading that ends the one before it?"""
    first = spans[number][0] if number else 0
    return first <= start < spans[number][1] or (number > 0 and spans[number - 1][1] - HEADING_CHARS <= start < first)


if __name__ == "__main__":
    main()
