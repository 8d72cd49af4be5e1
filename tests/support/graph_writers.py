"""Work for `support.killable`: to write a graph over and over, until killed."""

import itertools
import random
from collections.abc import Callable
from pathlib import Path

from legal_rag.graph import (
    EPISODE_STATUSES,
    ExtractedEntity,
    ExtractedEpisode,
    ExtractedRelationship,
    ExtractionResult,
)

ANSWERS = 3  # that are written by turns
STATUSES = sorted(EPISODE_STATUSES)


def answer_of(generation: int, doc_ids: list[str]) -> ExtractionResult:
    """Return what an answer says in some generation: each part tells which, in percent of confidence or in words."""
    confidence = generation % 100 / 100
    names = [f"notion {number}" for number in range(10)]
    return ExtractionResult(
        [ExtractedEntity(name, "concept", confidence) for name in names],
        [ExtractedRelationship(doc_id, name, "related_to", confidence) for doc_id in doc_ids for name in names],
        [ExtractedEpisode(f"{confidence} {number}", entities=tuple(names)) for number in range(10)],
    )


def write_answers(ready: Callable[[], None], folder: Path, seed: int) -> None:
    """Record answers, each in place of its last generation."""
    from legal_rag.graph.answers import add_answer
    from legal_rag.library import Library

    library, generator = Library(folder), random.Random(seed)
    doc_ids = list(library)[:3]
    ready()
    for number in itertools.count(seed):
        add_answer(library, f"answer {number % ANSWERS}", answer_of(generator.randrange(1, 100), doc_ids), doc_ids)


def fill_anew(ready: Callable[[], None], folder: Path) -> None:
    """Make a graph anew, a few documents in a transaction, once the file as it is was filled up."""
    from legal_rag.graph import store
    from legal_rag.library.library import STORE

    store.BATCH = 7
    ready()
    while True:
        store.fill_graph(folder, folder / STORE)
        store.fill_graph(folder, folder / STORE, anew=True)
