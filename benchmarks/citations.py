"""Citations: what is vouched for though it is false, what is not confirmed though it is true, and what checking takes.

Run: python benchmarks/citations.py --data FOLDER [--cases 12] [--half dev] [--show N --kind K] [--dump FILE]
     [--answers 300] [--seed 0] [--speed]

FOLDER holds `decisions.jsonl.gz`. Three parts, printed as JSON:

- false and honest answers of one claim (`false_answers`), --cases of each kind, in two halves by decision: rules are
  made by `dev`; of `held-out` only the figures are looked at. A false answer is "vouched for" if a citation of it is
  verified or relocated; "given a marker" if it had none;
- scores of answers of 3 to 8 sentences over twenty decisions (`synthetic_answers`): precision and recall of `verified`,
  places found anew, statuses by kind. "wrongly": the citation does not hold the passage that bears the claim out;
- with --speed, milliseconds of process time for an answer of some 500 words over twenty documents of 20,000 characters.

--show N prints N failures of the kinds whose name contains K, of `dev` unless --half names the other.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from citation_scores import FAILURES, Judged, Outcome, judge, outcomes_of, scores_of
from false_answers import HALVES, Decisions, make_cases
from synthetic_answers import N_READ, SyntheticAnswer, make_answers

LONG = 20_000  # characters of a document, in the table of speed
WORDS = range(450, 551)  # of an answer, there
N_LONG_ANSWERS = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cases", type=int, default=12, help="Of each kind of false and honest answers; 0: none.")
    parser.add_argument("--half", choices=HALVES, help="One half only.")
    parser.add_argument("--answers", type=int, default=300, help="Of several sentences; 0: none.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--kind", default="", help="Show failures of the kinds whose name contains this.")
    parser.add_argument("--failure", default="", help="Show failures of this sort only, e.g. 'vouched for'.")
    parser.add_argument("--dump", type=Path, help="Write every case and what became of it, as JSON lines.")
    parser.add_argument("--speed", action="store_true")
    arguments = parser.parse_args()
    from legal_rag.citations import CitationEnricher
    from legal_rag.corpus import read_documents

    decisions = list(read_documents(arguments.data / "decisions.jsonl.gz"))
    documents = {one.id: one.content for one in decisions}
    judged: list[Judged] = []
    figures: dict[str, Any] = {}
    if arguments.cases:
        enrich = CitationEnricher(Decisions({one.id: one for one in decisions})).enrich
        for half in [arguments.half] if arguments.half else HALVES:
            cases = make_cases(decisions, half, arguments.cases, arguments.seed)
            of_half = [judge(case, enrich, documents) for case in cases]
            judged += of_half
            figures[half] = figures_of(of_half)
        show_judged(judged, arguments)
    if arguments.dump:
        arguments.dump.write_text("".join(json.dumps(row(one), ensure_ascii=False) + "\n" for one in judged))
    if arguments.answers:
        answers = make_answers(documents, arguments.answers, arguments.seed)
        outcomes, changed = outcomes_of(answers, CitationEnricher(documents).enrich)
        figures["answers of several sentences"] = scores_of(outcomes, changed)._asdict()
        if not arguments.cases:
            show([one for one in outcomes if arguments.kind in one.claim.kind], arguments.show)
    if arguments.speed:
        figures["milliseconds"] = speed(documents, arguments.seed)
    print(json.dumps(figures, indent=1, ensure_ascii=False))


def figures_of(judged: Sequence[Judged]) -> dict[str, Any]:
    """Count the answers of a half by truth and failure, and the failures of each kind."""
    truths = dict.fromkeys(one.case.truth for one in judged)
    counts = Counter((one.case.truth, one.failure) for one in judged)
    by_truth = {
        truth: {
            "answers": sum(n for (of, _), n in counts.items() if of == truth),
            **{failure: counts[truth, failure] for failure in FAILURES},
        }
        for truth in truths
    }
    kinds: dict[str, Counter[str]] = {}
    for one in judged:
        if one.failure:
            kinds.setdefault(one.case.kind, Counter())[one.failure] += 1
    return {**by_truth, "failures by kind": dict(sorted(kinds.items()))}


def show_judged(judged: Sequence[Judged], arguments: argparse.Namespace) -> None:
    """Print failures whose kind and sort are asked for."""
    wanted = (
        one for one in judged if one.failure and arguments.kind in one.case.kind and arguments.failure in one.failure
    )
    for one in islice((one for one in wanted if arguments.half or one.case.half == "dev"), arguments.show):
        print(f"\n{one.case.kind} ({one.case.truth}): {one.failure}\n  {one.case.text}", file=sys.stderr)
        print(f"  decision: {one.case.true}\n  place: {one.case.place}", file=sys.stderr)
        for cited in one.citations:
            print(
                f"  {cited.status}: {cited.doc_id} {cited.char_start}-{cited.char_end} {cited.quote[:300]!r}",
                file=sys.stderr,
            )


def row(one: Judged) -> dict[str, Any]:
    """Return what became of a case as a row."""
    cited = [{**citation._asdict()} for citation in one.citations]
    return {
        **one.case._asdict(),
        "half": one.case.half,
        "failure": one.failure,
        "citations": cited,
        "checked": one.text,
    }


def show(outcomes: list[Outcome], n: int) -> None:
    """Print claims that came out otherwise than they should."""
    for one in islice((one for one in outcomes if not one.as_it_should_be()), n):
        print(f"\n{one.claim.kind} {one.claim.detail}\n  {one.claim.text}", file=sys.stderr)
        print(
            f"  truth: {', '.join(f'{p.doc_id} {p.char_start}-{p.char_end}' for p in one.claim.passages) or 'none'}",
            file=sys.stderr,
        )
        for cited in one.citations:
            print(
                f"  {cited.status}: {cited.doc_id} {cited.char_start}-{cited.char_end} {cited.quote[:300]!r}",
                file=sys.stderr,
            )
        if not one.citations:
            print(f"  {one.cells()[0]}", file=sys.stderr)


def speed(documents: Mapping[str, str], seed: int) -> dict[str, dict[str, float]]:
    """Return what checking takes."""
    from legal_rag.citations import CitationEnricher
    from legal_rag.indexer import IndexConfig, build_index
    from legal_rag.library import Library

    joined, answers = long_answers(documents, seed)
    with tempfile.TemporaryDirectory() as folder:
        rows = [{"id": doc_id, "title": doc_id, "content": text} for doc_id, text in joined.items()]
        build_index(IndexConfig(source=rows, index_folder=folder, index_name="long", n_bits=0))
        library = Library(Path(folder, "long"))
        kept = CitationEnricher(joined)
        kept_of_library = CitationEnricher(library)
        ways: dict[str, Callable[[], Any]] = {
            "mapping, fresh enricher": lambda: CitationEnricher(joined),
            "mapping, kept enricher": lambda: kept,
            "Library, fresh enricher": lambda: CitationEnricher(library),
            "Library, kept enricher": lambda: kept_of_library,
        }
        times = {name: [milliseconds(enricher, answer) for answer in answers] for name, enricher in ways.items()}
        return {name: {"median": median(some), "p95": quantiles(some, n=20)[-1]} for name, some in times.items()}


def milliseconds(enricher: Callable[[], Any], answer: SyntheticAnswer) -> float:
    """Return what checking an answer takes."""
    started = time.process_time()
    enricher().enrich(answer.text, answer.read)
    return 1000 * (time.process_time() - started)


def long_answers(documents: Mapping[str, str], seed: int) -> tuple[dict[str, str], list[SyntheticAnswer]]:
    """Join decisions to long documents, and make long answers over them."""
    texts = list(documents.values())
    random.Random(seed).shuffle(texts)
    whole = "\n\n".join(text for text in texts if len(text) < LONG)
    joined = {f"LONG{number:06}": whole[number * LONG : (number + 1) * LONG] for number in range(N_READ)}
    answers = make_answers(joined, 5 * N_LONG_ANSWERS, seed, n_claims=(14, 20))
    return joined, [one for one in answers if len(one.text.split()) in WORDS][:N_LONG_ANSWERS]


if __name__ == "__main__":
    main()
