"""Relevance: true quotations beside sentences that they bear out, or that they have nothing to do with.

Run: python benchmarks/relevance.py [--data FOLDER] [--show N] [--restated 12]

data/relevance.jsonl has pairs written by hand: a sentence, and words that stand in a decision of the sample, or of
FOLDER, which holds `decisions.jsonl.gz` and `code-du-travail.jsonl.gz`; without it the pairs from there are left out. A
pair is honest, or false: of another topic, of the same topic but another rule, a contradiction, or beside a visa, a
heading, a saisine, a formula, a party, a signature. The rule was chosen by `dev`; `held-out` was written after it, and
its first figures showed a fault, which was mended; `last` was written after that.

With FOLDER also `--restated` sentences of each kind of `stated_changes`: a clause of a decision changed in one thing,
or spelt otherwise, beside the clause itself. Figures are printed as JSON.
"""

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from false_answers import Decisions, Scene
from stated_changes import FALSE, RESPELT

from legal_rag.citations import Citation, CitationEnricher
from legal_rag.citations.sources import SourceText
from legal_rag.corpus import Document, read_documents
from legal_rag.corpus.sources import SAMPLE_FILE

PAIRS = Path(__file__).parent / "data" / "relevance.jsonl"


class Pair(NamedTuple):
    """A sentence, and a quotation set beside it."""

    half: str  # dev, held-out or last
    truth: str  # honest or false
    kind: str
    doc_id: str
    sentence: str
    quotation: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--show", type=int, default=0, help="So many pairs that came out otherwise than they should.")
    parser.add_argument("--restated", type=int, default=12, help="Sentences of each kind of change.")
    arguments = parser.parse_args()
    pairs = [Pair(**json.loads(line)) for line in PAIRS.read_text("utf-8").splitlines()]
    documents = dict(_documents(arguments.data, {pair.doc_id for pair in pairs}))
    enricher = CitationEnricher(Decisions(documents))
    pairs = [pair for pair in pairs if pair.doc_id in documents]
    judged = [(pair, _check(pair, documents[pair.doc_id], enricher)) for pair in pairs]
    figures: dict[str, Any] = _statuses(judged)
    wrong = [(pair, citation) for pair, citation in judged if (pair.truth == "honest") != citation.holds]
    for pair, citation in wrong[: arguments.show]:
        doubts = " ".join([citation.reason, *citation.warnings])
        print(f"\n{pair.half}, {pair.truth}, {pair.kind}: {citation.status}, {doubts}", file=sys.stderr)
        print(f"  {pair.sentence}\n  « {pair.quotation} »", file=sys.stderr)
    if arguments.data:
        decisions = list(read_documents(arguments.data / "decisions.jsonl.gz"))
        figures["beside itself"] = _restated(decisions, arguments.restated)
    print(json.dumps(figures, indent=1))


def _documents(folder: Path | None, doc_ids: set[str]) -> Iterator[tuple[str, Document]]:
    files = [folder / f"{name}.jsonl.gz" for name in ("decisions", "code-du-travail")] if folder else []
    for path in (SAMPLE_FILE, *files):
        yield from ((document.id, document) for document in read_documents(path) if document.id in doc_ids)


def _check(pair: Pair, document: Document, enricher: CitationEnricher) -> Citation:
    start, end = SourceText(document.id, document.content).quotation_spans(pair.quotation)[0]
    marker = f"[Source: {document.id}, chars {start}-{end}]"
    return enricher.enrich(f"{pair.sentence} « {pair.quotation} » {marker}.").citations[0]


def _statuses(judged: Sequence[tuple[Pair, Citation]]) -> dict[str, dict[str, Counter[str]]]:
    """Count pairs by what they are, half, and status; `vouched for` are all statuses that hold."""
    counts: dict[str, dict[str, Counter[str]]] = {}
    for pair, citation in judged:
        sort = "honest" if pair.truth == "honest" else "contradiction" if pair.kind == "contradiction" else "other"
        of_half = counts.setdefault(sort, {}).setdefault(pair.half, Counter(pairs=0, **{"vouched for": 0}))
        of_half.update(["pairs", citation.status])
        of_half["vouched for"] += citation.holds
    return counts


def _restated(decisions: Sequence[Document], n: int) -> dict[str, dict[str, int]]:
    """Count the clauses that are vouched for, changed or spelt otherwise, beside themselves."""
    enricher = CitationEnricher(Decisions({document.id: document for document in decisions}))
    scene, rng = Scene(decisions, "dev", 0), random.Random(0)
    counts = {}
    for name, rules in (("changed in one thing", FALSE), ("spelt otherwise", RESPELT)):
        made = vouched = 0
        for rule in rules.values():
            start, left = rng.randrange(len(scene.clauses)), n
            for clause in (*scene.clauses[start:], *scene.clauses[:start]):
                change = rule(rng, clause.text) if left else None
                if change and change.text != clause.text:
                    left -= 1
                    doc_id, first, last = clause.place[:3]
                    sentence = f"{change.text[0].upper()}{change.text[1:]}"
                    answer = f"{sentence} « {clause.text} » [Source: {doc_id}, chars {first}-{last}]."
                    made += 1
                    vouched += any(citation.holds for citation in enricher.enrich(answer, [doc_id]).citations)
        counts[name] = {"clauses": made, "vouched for": vouched}
    return counts


if __name__ == "__main__":
    main()
