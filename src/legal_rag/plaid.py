"""The PLAID shards of a Library: opened with the engine for the device at hand, searched as one.

In: folders, and queries as token vectors. Out: places (shard, position) with MaxSim scores; a position is a passage's
number in its shard, from 0. On a CPU the files are mapped and searched here; on a GPU fast-plaid does it.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from legal_rag.device import best_device
from legal_rag.plaid_gpu import FastPlaidShard
from legal_rag.plaid_mapped import MappedShard
from legal_rag.plaid_search import SearchSettings, Shard, ShardHits, Shards, ShardSize, search_shards

__all__ = [
    "FastPlaidShard",
    "MappedShard",
    "PlaidShards",
    "SearchSettings",
    "Shard",
    "ShardHits",
    "ShardSize",
    "Shards",
    "open_shard",
    "search_shards",
]


def open_shard(
    folder: Path,
    settings: SearchSettings | None = None,
    device: str | None = None,
    excluded: np.ndarray | None = None,
) -> Shard:
    """Open a shard with the engine for `device`.

    Args:
        folder: Where its files are.
        settings: How thorough searches are.
        device: 'cuda' or 'cpu'; None takes the GPU where there is one.
        excluded: Positions never to be returned, in rising order.

    Raises:
        FileNotFoundError: If the folder holds no complete index.
        ValueError: If its files contradict one another, or an excluded position is not in it.
    """
    device = device or best_device()
    if device == "cpu":
        return MappedShard(folder, settings, excluded)
    return FastPlaidShard(folder, settings, device, excluded)


class PlaidShards:
    """Shards held by this process, searched as one; also what a process elsewhere answers with (see `Shards`)."""

    def __init__(
        self,
        folders: Sequence[Path],
        settings: SearchSettings | None = None,
        device: str | None = None,
        excluded: Sequence[np.ndarray] | None = None,
    ) -> None:
        """Open the shards in `folders`, in that order; see `open_shard`.

        Args:
            folders: One a shard.
            settings: How thorough searches are.
            device: 'cuda' or 'cpu'; None takes the GPU where there is one.
            excluded: For each shard the positions never to be returned, in rising order; None excludes none.
        """
        if excluded is not None and len(excluded) != len(folders):
            raise ValueError(f"{len(excluded)} lists of excluded passages do not fit {len(folders)} shards")
        self._settings = settings or SearchSettings()
        self._shards = [
            open_shard(folder, self._settings, device, excluded[number] if excluded is not None else None)
            for number, folder in enumerate(folders)
        ]
        dims = {shard.dim for shard in self._shards}
        if len(dims) > 1:
            raise ValueError(f"shards of different dims: {sorted(dims)} (expected one)")
        self.dim = dims.pop() if dims else 0
        self.sizes = [shard.size for shard in self._shards]

    def search(
        self, query: np.ndarray, k: int, subsets: Sequence[np.ndarray | None] | None = None
    ) -> list[tuple[int, int, float]]:
        """Rank the passages of all shards for one query; see `search_shards`."""
        return self.search_batch([query], k, subsets)[0]

    def search_batch(
        self, queries: Sequence[np.ndarray], k: int, subsets: Sequence[np.ndarray | None] | None = None
    ) -> list[list[tuple[int, int, float]]]:
        """Rank the passages of all shards for several queries, which share the work; see `search_shards`."""
        return search_shards(self, queries, k, self._settings, subsets)

    def candidates(
        self, queries: Sequence[np.ndarray], n: int, subsets: Sequence[np.ndarray | None]
    ) -> list[list[ShardHits]]:
        """Ask every shard for its candidates; see `Shards`."""
        return [shard.candidates(queries, n, one) for shard, one in zip(self._shards, subsets, strict=True)]

    def scores(self, queries: Sequence[np.ndarray], candidates: Sequence[Sequence[ShardHits]]) -> list[list[ShardHits]]:
        """Ask every shard for the scores of its candidates; see `Shards`."""
        return [shard.scores(queries, own) for shard, own in zip(self._shards, candidates, strict=True)]

    def best(
        self, queries: Sequence[np.ndarray], k: int, subsets: Sequence[np.ndarray | None]
    ) -> list[list[ShardHits]]:
        """Ask every shard for its best passages; see `Shards`."""
        return [shard.best(queries, k, one) for shard, one in zip(self._shards, subsets, strict=True)]
