"""A PLAID shard searched by fast-plaid itself: the engine on a GPU, and the reference on a CPU.

In: a shard's folder. Out: hits. fast-plaid writes merged copies of the parts into the folder when it first opens it.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from legal_rag.plaid_format import open_files
from legal_rag.plaid_search import SearchSettings, ShardHits, ShardSize, in_scope, live_positions


class FastPlaidShard:
    """A shard searched by fast-plaid; see `legal_rag.plaid_search.Shard`.

    Its candidates already have the scores of a whole search, so that `scores` has nothing to add.
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
