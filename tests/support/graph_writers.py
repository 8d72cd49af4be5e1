"""A program that writes a graph over and over, until killed: `python graph_writers.py answers|fills FOLDER [SEED]`."""

import itertools
import random
import sys
import time
from pathlib import Path

from legal_rag.graph import ExtractedEntity, ExtractedEpisode, ExtractedRelationship, ExtractionResult, store
from legal_rag.graph.answers import add_answer
from legal_rag.library import Library, parts
from legal_rag.library.library import STORE

ANSWERS = 3  # that are written by turns


def answer_of(generation: int, doc_ids: list[str]) -> ExtractionResult:
    """Return what an answer says in some generation: each part tells which, in percent of confidence or in words."""
    confidence = generation % 100 / 100
    names = [f"notion {number}" for number in range(10)]
    return ExtractionResult(
        [ExtractedEntity(name, "concept", confidence) for name in names],
        [ExtractedRelationship(doc_id, name, "related_to", confidence) for doc_id in doc_ids for name in names],
        [ExtractedEpisode(f"{confidence} {number}", entities=tuple(names)) for number in range(10)],
    )


def write_answers(folder: Path, seed: int) -> None:
    """Record answers, each in place of its last generation; the first, and how long the second took, before "ready"."""
    library, generator = Library(folder), random.Random(seed)
    doc_ids = list(library)[:3]
    for number in itertools.count(seed):
        started = time.perf_counter()
        add_answer(library, f"answer {number % ANSWERS}", answer_of(generator.randrange(1, 100), doc_ids), doc_ids)
        if number == seed + 1:  # the first opens what the others find open
            print("ready", time.perf_counter() - started, flush=True)


def write_fills(folder: Path) -> None:
    """Fill a graph up, then make it anew over and over, a few documents in a transaction."""
    parts.BATCH = 7
    print("ready", flush=True)
    store.fill_graph(folder, folder / STORE)
    while True:
        store.fill_graph(folder, folder / STORE, anew=True)


if __name__ == "__main__":
    work, place, *rest = sys.argv[1:]
    write_answers(Path(place), int(rest[0])) if work == "answers" else write_fills(Path(place))
