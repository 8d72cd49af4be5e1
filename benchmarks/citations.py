"""Citations: how many of those called verified are true, how many true ones are, and what checking takes.

Run: python benchmarks/citations.py --data FOLDER [--answers 300] [--seed 0] [--show N] [--no-speed]

FOLDER holds `decisions.jsonl.gz`. `synthetic_answers` makes answers of 3 to 8 sentences, each by an author who has
read twenty decisions, and knows the truth about every sentence. Tables:

- scores: precision and recall of `verified`; what is verified though it was altered; places found anew;
- by kind: citations of each status. "wrongly": the citation does not hold the passage that bears the claim out; of an
  altered quotation, or of a fact that was changed, no passage does;
- speed: milliseconds of process time for an answer of about 500 words over twenty documents of 20,000 characters, with
  a fresh enricher for each answer and with one that is kept, over a mapping and over a Library.

--show N prints N claims that came out otherwise than the truth has it.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from citation_scores import COLUMNS, Outcome, Scores, outcomes_of, scores_of
from synthetic_answers import N_READ, SyntheticAnswer, make_answers

LONG = 20_000  # characters of a document, in the table of speed
WORDS = range(450, 551)  # of an answer, there
N_LONG_ANSWERS = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--answers", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--kind", default="", help="Show claims of this kind only.")
    parser.add_argument("--no-speed", action="store_true")
    arguments = parser.parse_args()
    from legal_rag.citations import CitationEnricher
    from legal_rag.corpus import read_documents

    documents = {one.id: one.content for one in read_documents(arguments.data / "decisions.jsonl.gz")}
    answers = make_answers(documents, arguments.answers, arguments.seed)
    outcomes, changed = outcomes_of(answers, CitationEnricher(documents).enrich)
    print_scores(scores_of(outcomes, changed), len(answers))
    show([one for one in outcomes if one.claim.kind.startswith(arguments.kind)], arguments.show)
    if not arguments.no_speed:
        speed(documents, arguments.seed)


def print_scores(scores: Scores, n_answers: int) -> None:
    """Print the scores, and the statuses of each kind of claim."""
    print(f"{n_answers} answers, {sum(one['claims'] for one in scores.table.values())} claims")
    print(f"precision of verified        {scores.precision:.4f}  (of {scores.n_verified})")
    print(f"recall of verified           {scores.recall:.4f}  (of {scores.n_correct})")
    print(f"altered and verified         {scores.altered_verified}")
    for kind, share in scores.placed.items():
        print(f"{kind:28} {share:.4f}  given the right place")
    print(f"swapped documents            {scores.relocated_or_unverified:.4f}  given the right place, or not verified")
    print(f"facts without marker         {scores.facts_cited:.4f}  cited, {scores.facts_right:.4f} of these rightly")
    print(f"answers whose words changed  {scores.changed_texts}")
    columns = ("claims", *COLUMNS, "ungrounded")
    print(f"\n{'':28}" + "".join(f"{column.replace(' wrongly', ' ✗'):>13}" for column in columns))
    for kind, counts in sorted(scores.table.items()):
        print(f"{kind:28}" + "".join(f"{counts[column] or '':>13}" for column in columns))


def show(outcomes: list[Outcome], n: int) -> None:
    """Print claims that came out otherwise than they should."""
    for one in islice((one for one in outcomes if not one.as_it_should_be()), n):
        print(f"\n{one.claim.kind} {one.claim.detail}\n  {one.claim.text}")
        print(f"  truth: {', '.join(f'{p.doc_id} {p.char_start}-{p.char_end}' for p in one.claim.passages) or 'none'}")
        for cited in one.citations:
            print(f"  {cited.status}: {cited.doc_id} {cited.char_start}-{cited.char_end} {cited.quote[:300]!r}")
        if not one.citations:
            print(f"  {one.cells()[0]}")


def speed(documents: Mapping[str, str], seed: int) -> None:
    """Print what checking takes."""
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
        print(f"\n{len(answers)} answers of about 500 words, {N_READ} documents of {LONG} characters each")
        for name, enricher in ways.items():
            times = [milliseconds(enricher, answer) for answer in answers]
            print(f"{name:28} median {median(times):6.1f} ms, p95 {quantiles(times, n=20)[-1]:6.1f} ms")


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
