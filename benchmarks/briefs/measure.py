"""Briefs as lawyers have them, in twelve formats: what `verify_text` finds, wrongly confirms, wrongly calls wrong.

Run: python benchmarks/briefs/measure.py --data FOLDER --index-folder FOLDER --half dev|held [--decisions decisions]
     [--code travail] [--references 1000] [--seed 0] [--show N --kind K --layout L] [--speed]

FOLDER holds `decisions.jsonl.gz` and `code-du-travail.jsonl.gz`; the index folder holds a Library of each, both asked.
Decisions and articles belong to one half or the other by their ids: mend the verifier by `dev`, look only at the
figures of `held`. `forms.toml` has the forms, `references.py` what is made of them, `layouts.py` the formats.

A reference is found if one of its sort touches its words in the text as read; `pack/score.py` judges. Bars: found 0.98,
wrong or absent ones called confirmed 0.01, right ones called wrong or absent 0.003, wrong
things named 0.95. Printed as JSON: how many, of how many.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from itertools import cycle, islice, takewhile
from pathlib import Path
from typing import NamedTuple

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))

from false_answers import squash
from layouts import LAYOUTS, UNSEEN, Layout, filler, inlined, parts
from material import Material
from pack.score import Judged, Verdict, judge, shares_of
from references import CALL, Mention, Passage, passages, unrelated

from legal_rag.citations import Reference, Verification, verify_text
from legal_rag.corpus import read_documents, read_paper
from legal_rag.library import Library

PAGE = 3000  # characters
PASSAGES = 16  # of a brief: about 20 references


class Scored(NamedTuple):
    """A mention, the words that it stands in, and what the verifier made of it."""

    mention: Mention
    context: str
    references: tuple[Reference, ...]
    judged: Judged


class Squashed(NamedTuple):
    """A text's letters and figures alone, each with its place."""

    text: str
    places: Sequence[int]

    @classmethod
    def of(cls, text: str) -> "Squashed":
        letters = [(letter, at) for at, character in enumerate(text) for letter in squash(character)]
        return cls("".join(letter for letter, _ in letters), [at for _, at in letters])

    def span(self, words: str, context: str) -> tuple[int, int] | None:
        """Find words whatever lines and hyphens do to them; of several places, the one with what stood around them."""
        sought, around = squash(words), squash(context)
        at = around.find(sought)
        before, after = around[max(0, at - 40) : at], around[at + len(sought) : at + len(sought) + 40]
        spans = [(start, start + len(sought)) for start in _occurrences(self.text, sought)]
        if not spans and len(sought) > 12:  # a page's head or a line's number stands among the words
            spans = [
                (start, self.text.find(sought[-6:], start) + 6)
                for start in _occurrences(self.text, sought[:6])
                if 0 <= self.text.find(sought[-6:], start) - start < len(sought) + 80
            ]
            spans = [span for span in spans if _shared(self.text[span[0] : span[1]], sought) > 0.8]
        if not spans:
            return None
        start, end = max(spans, key=lambda span: _around(self.text, span, before, after))
        return self.places[start], self.places[end - 1] + 1


def _occurrences(text: str, words: str) -> Iterable[int]:
    at = text.find(words)
    while at >= 0:
        yield at
        at = text.find(words, at + 1)


def _around(text: str, span: tuple[int, int], before: str, after: str) -> int:
    left, right = text[: span[0]][-len(before) :] if before else "", text[span[1] : span[1] + len(after)]
    pairs = (zip(left[::-1], before[::-1], strict=False), zip(right, after, strict=False))
    return sum(1 for pair in pairs for _ in takewhile(lambda letters: letters[0] == letters[1], pair))


def _shared(text: str, words: str) -> float:
    pieces = [words[at : at + 4] for at in range(0, len(words) - 3, 4)]
    return sum(piece in text for piece in pieces) / len(pieces)


def verification_of(path: Path, libraries: Sequence[Library]) -> Verification:
    """Read a brief and check it against both Libraries."""
    return verify_text(read_paper(path), libraries)


def check_brief(layout: Layout, brief: Sequence[Passage], verification: Verification) -> list[Scored]:
    """Return what became of each mention, by the references that touch its words in the text as read."""
    text, results = Squashed.of(verification.text), []
    for passage in brief:
        for mention in passage.mentions:
            context = next((part for part in parts(passage) if squash(mention.text) in squash(part)), passage.text)
            context = inlined(passage) if context == passage.text else context
            span = text.span(mention.text, context)
            touching = [
                reference
                for reference in verification.references
                if span and reference.start < span[1] and span[0] < reference.end and reference.kind in mention.sorts
            ]
            results.append(scored(mention, layout, context, touching))
    if layout.hides:
        number = squash(UNSEEN[-9:])
        unseen = [reference for reference in verification.references if number in squash(reference.text)]
        results.append(scored(Mention("struck out or hidden", UNSEEN, "none"), layout, UNSEEN, unseen))
    return results


def scored(mention: Mention, layout: Layout, context: str, references: Sequence[Reference]) -> Scored:
    """Judge a mention by the references that touch it."""
    verdicts = [
        Verdict(reference.status, [correction.what for correction in reference.corrections]) for reference in references
    ]
    judged = judge(mention.kind, layout.name, mention.status, mention.what, verdicts)
    return Scored(mention, context, tuple(references), judged)


def fitting(layout: Layout, passage: Passage) -> bool:
    """Tell whether a layout can hold a passage's characters."""
    try:
        "".join(parts(passage)).encode(layout.encoding)
    except UnicodeEncodeError:
        return False
    return True


def material_of(data: Path, half: str, seed: int) -> Material:
    """Read what briefs are made from."""
    decisions = list(read_documents(data / "decisions.jsonl.gz"))
    rows = list(read_documents(data / "code-du-travail.jsonl.gz"))
    articles = {str(row.extra["number"]): row.content for row in rows}
    ids = {str(row.extra["number"]): row.id for row in rows}
    return Material(decisions, half, random.Random(f"{half} {seed}"), articles, ids)


def score(material: Material, libraries: Sequence[Library], n_references: int) -> list[Scored]:
    """Make briefs, each layout in its turn, and check them."""
    results: list[Scored] = []
    drawn = passages(material)
    with tempfile.TemporaryDirectory() as folder:
        for layout in cycle(LAYOUTS):
            if sum(result.judged.expected != "none" for result in results) >= n_references:
                return results
            fit = (passage for passage in drawn if fitting(layout, passage))
            brief = list(islice(unrelated(material, fit), PASSAGES))
            path = Path(folder) / f"brief.{layout.suffix}"
            layout.write(brief, path, material.rng)
            results += check_brief(layout, brief, verification_of(path, libraries))
    return results


def show(results: Iterable[Scored]) -> None:
    """Print failures with what the verifier said."""
    for result in results:
        mention = result.mention
        expected = f"{mention.status} {'|'.join(mention.what)} {mention.right}"
        print(f"\n[{result.judged.failure}] {mention.kind} · {result.judged.place} · {expected}", file=sys.stderr)
        print(f"  {mention.text!r}\n  in {result.context.replace(CALL, '°')[:400]!r}", file=sys.stderr)
        for reference in result.references:
            corrections = [tuple(correction) for correction in reference.corrections[:3]]
            verdict = f"{reference.kind} {reference.status} {reference.text[:90]!r}"
            print(f"  -> {verdict} {reference.explanation} {corrections}", file=sys.stderr)


def speed(material: Material, libraries: Sequence[Library]) -> dict[str, float]:
    """Return what a brief of 45 pages with 278 references takes against both Libraries."""
    brief: list[Passage] = []
    for passage in passages(material):
        if sum(len(added.mentions) for added in brief) >= 278:
            break
        brief.append(passage)
    blocks = [inlined(passage) or " – ".join(passage.cells) for passage in brief]
    while sum(map(len, blocks)) < 45 * PAGE:
        blocks.insert(material.rng.randrange(len(blocks)), filler(material.rng, 2, 4))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "brief.txt"
        path.write_text("\n\n".join(blocks), "utf-8")
        started, used = time.perf_counter(), time.process_time()
        verification = verification_of(path, libraries)
        took, used = time.perf_counter() - started, time.process_time() - used
    return {"pages": sum(map(len, blocks)) / PAGE, "found": len(verification.references), "seconds": took, "cpu": used}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--index-folder", type=Path, required=True)
    parser.add_argument("--half", choices=["dev", "held"], required=True)
    parser.add_argument("--decisions", default="decisions", help="Name of the Library of decisions.")
    parser.add_argument("--code", default="travail", help="Name of the Library of the Code du travail.")
    parser.add_argument("--references", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--kind", default="", help="Show failures whose kind or sort contains this.")
    parser.add_argument("--layout", default="", help="Show failures of the layouts whose name contains this.")
    parser.add_argument("--speed", action="store_true")
    arguments = parser.parse_args()
    if arguments.show and arguments.half == "held":
        parser.error("failures of the held half are not looked at")
    material = material_of(arguments.data, arguments.half, arguments.seed)
    libraries = [Library.open(arguments.index_folder, name) for name in (arguments.decisions, arguments.code)]
    results = score(material, libraries, arguments.references)
    figures: dict[str, object] = {**shares_of([result.judged for result in results])}
    failed = (
        result
        for result in results
        if result.judged.failure
        and arguments.kind in f"{result.judged.kind} {result.judged.failure}"
        and arguments.layout in result.judged.place
    )
    show(islice(failed, arguments.show))
    if arguments.speed:
        figures["speed"] = speed(material, libraries)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
