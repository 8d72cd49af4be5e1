"""What a compaction is to do: which shards are copied, and which chunks go together into new ones.

In: a Library. Out: its shards to be, each with the places its passages have now. Nothing is written here.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from legal_rag.library import Library

LARGE = 0.5  # of a full shard's chunks: a shard that still has them keeps its files


class NewShard(NamedTuple):
    """A shard to be, and where its passages are now."""

    number: int
    places: np.ndarray  # shape (n_chunks, 2): shard and position before, in the order of the new positions
    is_copy: bool  # of one shard, with the vectors quantised as they are


def plan_shards(library: Library, *, requantise: bool = False) -> list[NewShard]:
    """Decide which shards are copied and which chunks go together into new ones.

    Args:
        library: The Library to compact.
        requantise: Make every shard of the token vectors that were kept.

    Raises:
        ValueError: If all documents were removed.
    """
    full = library.manifest["plaid"]["shard_chunks"]
    live = [
        np.setdiff1d(np.arange(shard["chunks"]), removed)
        for shard, removed in zip(library.manifest["shards"], library.removed_positions(), strict=True)
    ]
    small = [number for number, positions in enumerate(live) if len(positions) < LARGE * full]
    if len([number for number in small if len(live[number])]) == 1:  # alone it would only be encoded again
        small = [number for number in small if not len(live[number])]
    copied = [_places(number, positions) for number, positions in enumerate(live) if number not in small]
    waiting = _in_document_order(library, small)
    merged = [waiting[start : start + full] for start in range(0, len(waiting), full)]
    groups = [(places, not requantise) for places in copied] + [(places, False) for places in merged]
    if not groups:
        raise ValueError(f"no document is left in {library.path}: there is nothing to compact")
    return [NewShard(number, places, is_copy) for number, (places, is_copy) in enumerate(groups)]


def _places(shard: int, positions: np.ndarray) -> np.ndarray:
    return np.column_stack([np.full(len(positions), shard), positions])


def _in_document_order(library: Library, shards: Sequence[int]) -> np.ndarray:
    """Return the places of the chunks that some shards still hold, in the order of documents and chunks."""
    return np.array(library.places_in(shards), dtype=np.int64).reshape(-1, 2)
