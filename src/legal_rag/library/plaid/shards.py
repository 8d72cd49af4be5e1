"""PLAID shards opened for search, on CPU or GPU."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from legal_rag.library.plaid.files import open_files
from legal_rag.library.plaid.search import (
    SearchSettings,
    Shard,
    ShardHits,
    ShardSize,
    default_device,
    in_scope,
    live_positions,
    search_shards,
)


class FastPlaidShard:
    """A shard searched by fast-plaid; see `legal_rag.library.plaid.search.Shard`.

    Its candidates come with final scores, so `scores` returns them unchanged.
    """

    def __init__(
        self,
        folder: Path,
        settings: SearchSettings | None = None,
        device: str = "cuda",
        excluded: np.ndarray | None = None,
    ) -> None:
        from fast_plaid.search import FastPlaid

        files = open_files(folder)
        self.size = ShardSize(len(files.passage_tokens), int(files.passage_tokens.sum()))
        self.dim = int(files.centroids.shape[1])
        self._live = live_positions(self.size.n_passages, excluded)
        settings = settings or SearchSettings()
        self._n_probe = min(settings.n_probe, len(files.centroids))  # fast-plaid panics if asked for more
        self._index = FastPlaid(str(folder), device=device)

    def candidates(self, queries: Sequence[np.ndarray], n: int, subset: np.ndarray | None = None) -> list[ShardHits]:
        """Return the best `n` passages for each query."""
        return self.best(queries, n, subset)

    def scores(self, queries: Sequence[np.ndarray], candidates: Sequence[ShardHits]) -> list[ShardHits]:
        """Return the candidates as they are."""
        return list(candidates)

    def best(self, queries: Sequence[np.ndarray], k: int, subset: np.ndarray | None = None) -> list[ShardHits]:
        """Return the best `k` passages for each query, in rising order of position."""
        allowed = in_scope(self._live, subset)
        # One list serves all queries; fast-plaid takes no empty one.
        names = None if allowed is None else [int(position) for position in allowed]
        return [self._search(query, k, names) for query in queries]

    def _search(self, query: np.ndarray, k: int, allowed: list[int] | None) -> ShardHits:
        import torch

        if allowed is not None and not allowed:
            return ShardHits(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))
        (hits,) = self._index.search(
            torch.from_numpy(query)[None],
            top_k=min(k, self.size.n_passages),
            n_ivf_probe=self._n_probe,
            n_full_scores=max(4096, 10 * k),
            show_progress=False,
            subset=None if allowed is None else [allowed],
        )
        positions = np.array([position for position, _ in hits], dtype=np.int64)
        order = np.argsort(positions)
        return ShardHits(positions[order], np.array([score for _, score in hits], dtype=np.float32)[order])


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
    device = device or default_device()
    if device == "cpu":
        from legal_rag.library.plaid.cpu import MappedShard  # loads numba, 0.2 s that BM25 need not wait

        return MappedShard(folder, settings, excluded)
    return FastPlaidShard(folder, settings, device, excluded)


class PlaidShards:
    """The `Shards` of this process; a Ray actor holds its own."""

    def __init__(
        self,
        folders: Sequence[Path],
        settings: SearchSettings | None = None,
        device: str | None = None,
        excluded: Sequence[np.ndarray] | None = None,
    ) -> None:
        """Open the shards in `folders`, in that order; see `open_shard`.

        Args:
            folders: One per shard.
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
        """Return each shard's candidates; see `Shards`."""
        return [shard.candidates(queries, n, one) for shard, one in zip(self._shards, subsets, strict=True)]

    def scores(self, queries: Sequence[np.ndarray], candidates: Sequence[Sequence[ShardHits]]) -> list[list[ShardHits]]:
        """Return each shard's candidates with their scores; see `Shards`."""
        return [shard.scores(queries, own) for shard, own in zip(self._shards, candidates, strict=True)]

    def best(
        self, queries: Sequence[np.ndarray], k: int, subsets: Sequence[np.ndarray | None]
    ) -> list[list[ShardHits]]:
        """Return each shard's best passages; see `Shards`."""
        return [shard.best(queries, k, one) for shard, one in zip(self._shards, subsets, strict=True)]
