"""Score what any tool says of the references of the pack: needs Python 3.11, and nothing else.

Run: python score.py VERDICTS.jsonl

A line of VERDICTS.jsonl is one reference that the tool found, {"document": "brief-4.md", "text": "Cass. soc., …",
"status": "confirmed"}: its words as the document has them, and one of `confirmed`, `wrong`, `ambiguous`, `absent`,
`out_of_scope`, `unread`. Of a wrong one, "what" may name the wrong things: `date`, `court`, `outcome`, `number`,
`article`, `words`, `source`, `speaker`, `point`. "kind" (`decision`, `article`, `quotation`) may say what it is.

A verdict is on the reference of the key with which it shares the longest run of letters and figures, if that is more
than half of the shorter one and six at least, or all of four.
"""

import json
import sys
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

RIGHT = ("confirmed", "ambiguous", "out_of_scope")  # statuses of references with which nothing is wrong
FAILURES = (
    "not found",
    "called confirmed",
    "called wrong",
    "not named",
    "another status",
    "something found in nothing",
)


class Verdict(NamedTuple):
    """A tool's verdict on a reference."""

    status: str
    what: Collection[str] = ()


class Judged(NamedTuple):
    """A reference of the key, and whether the verdicts on it are right."""

    kind: str
    place: str  # document, or layout
    expected: str  # status, or "none": it refers to nothing
    failure: str  # one of FAILURES; empty: none
    named: bool  # whether what is wrong is named


def judge(kind: str, place: str, expected: str, what: Collection[str], verdicts: Iterable[Verdict]) -> Judged:
    """Compare the verdicts that touch a reference's words with the one that it calls for."""
    verdicts = list(verdicts)
    statuses = {verdict.status for verdict in verdicts}
    absent = expected == "absent" or "words" in what  # words that stand nowhere may be called absent
    named = (absent and "absent" in statuses) or any(set(verdict.what) & set(what) for verdict in verdicts)
    return Judged(kind, place, expected, _failure(expected, statuses, named), named)


def _failure(expected: str, statuses: set[str], named: bool) -> str:
    if expected == "none":
        return "something found in nothing" if statuses else ""
    if not statuses:
        return "not found"
    if expected in RIGHT:
        return "called wrong" if statuses & {"wrong", "absent"} else "" if statuses == {expected} else "another status"
    if statuses == {"confirmed"}:
        return "called confirmed"
    return "" if named else "not named" if statuses & {"wrong", "absent"} else "another status"


def shares_of(results: Sequence[Judged]) -> dict[str, tuple[int, int]]:
    """Count what was found, confirmed, called wrong and named; each with how many it could have been."""
    references = [result for result in results if result.expected != "none"]
    right = [result for result in references if result.expected in RIGHT]
    wrong = [result for result in references if result.expected not in RIGHT]
    shares = {
        "found": (references, lambda result: result.failure != "not found"),
        "wrong or absent called confirmed": (wrong, lambda result: result.failure == "called confirmed"),
        "right called wrong or absent": (right, lambda result: result.failure == "called wrong"),
        "wrong whose wrong thing is named": (
            [result for result in wrong if result.expected == "wrong"],
            lambda result: result.named,
        ),
        "absent called absent": (
            [result for result in wrong if result.expected == "absent"],
            lambda result: result.named,
        ),
        "right with its status": (right, lambda result: not result.failure),
        "something found in nothing": (
            [result for result in results if result.expected == "none"],
            lambda result: bool(result.failure),
        ),
    }
    return {title: (sum(map(counts, among)), len(among)) for title, (among, counts) in shares.items()}


def print_scores(results: Sequence[Judged]) -> None:
    """Print the shares, then the failures of each kind and place."""
    for title, (count, among) in shares_of(results).items():
        print(f"{title:34} {count / max(1, among):.4f}  {count:4} of {among:4}")
    for at in (0, 1):
        counts, failures = (
            Counter(result[at] for result in results),
            Counter((result[at], result.failure) for result in results),
        )
        print()
        for name, count in sorted(counts.items()):
            sorts = ", ".join(f"{failures[name, failure]} {failure}" for failure in FAILURES if failures[name, failure])
            print(f"{name:46} {count:5}  {sorts}")


def squash(text: str) -> str:
    """Return the letters and figures of a text alone, without accents or case."""
    plain = unicodedata.normalize("NFKD", text.replace("œ", "oe").replace("Œ", "oe"))
    return "".join(letter for letter in plain.casefold() if letter.isalnum())


def touched(text: str, references: Sequence[str]) -> list[int]:
    """Return which references a verdict is on, all texts squashed: those with which it shares most, or none."""
    shares = [_shared(text, reference) for reference in references]
    return [at for at, share in enumerate(shares) if share[0] and share == max(shares)]


def _shared(text: str, reference: str) -> tuple[int, int]:
    """Measure the longest run that two texts share, and how near they are in length; a short run says nothing."""
    run = SequenceMatcher(None, text, reference, autojunk=False).find_longest_match().size
    shorter = min(len(text), len(reference))
    is_long = run > 0.5 * shorter and run >= max(4, min(shorter, 6))
    return (run, -abs(len(text) - len(reference))) if is_long else (0, 0)


def score(keys: Sequence[dict[str, Any]], verdicts: Iterable[dict[str, Any]]) -> list[Judged]:
    """Judge each reference of the key by the verdicts on it."""
    on: dict[int, list[Verdict]] = {}
    for verdict in verdicts:
        near = [
            at
            for at, key in enumerate(keys)
            if key["document"] == verdict["document"] and verdict.get("kind", key["sorts"][0]) in key["sorts"]
        ]
        for place in touched(squash(verdict["text"]), [squash(keys[at]["text"]) for at in near]):
            on.setdefault(near[place], []).append(Verdict(verdict["status"], verdict.get("what", ())))
    return [
        judge(key["kind"], key["document"], key["status"], key["what"], on.get(at, ())) for at, key in enumerate(keys)
    ]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read a JSONL file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


if __name__ == "__main__":
    print_scores(score(read_lines(Path(__file__).with_name("keys.jsonl")), read_lines(Path(sys.argv[1]))))
