"""PLAID shards opened for search."""

from collections.abc import Hashable, Sequence
from itertools import groupby
from pathlib import Path
from threading import Lock

import numpy as np

from legal_rag.library.plaid.cpu import Codebooks, MappedShard, max_sim
from legal_rag.library.plaid.search import ShardHits, ShardSize, search_shards

NO_HITS = ShardHits(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))


class PlaidShards:
    """The `Shards` of this process, each opened when it is first searched; a Ray actor holds its own."""

    def __init__(
        self,
        folders: Sequence[Path],
        excluded: Sequence[np.ndarray] | None = None,
        *,
        sizes: Sequence[ShardSize] | None = None,
        codebooks: Sequence[Hashable] | None = None,
    ) -> None:
        """Hold the shards in `folders`, in that order.

        Args:
            folders: One per shard.
            excluded: For each shard the positions never to be returned, in rising order; None excludes none.
            sizes: The shards', where they are known: then only the first is opened before it is searched.
            codebooks: For each shard a key, equal for shards with the same codec, which memory then holds once; None
                takes each to have its own.

        Raises:
            FileNotFoundError: If a folder holds no complete index. This and what follows may be raised later, when a
                shard is opened.
            ValueError: If a shard's files contradict one another, its size or the other shards' dim, or an excluded
                position is not in it.
        """
        for values, name in ((excluded, "lists of excluded passages"), (sizes, "sizes"), (codebooks, "codebooks")):
            if values is not None and len(values) != len(folders):
                raise ValueError(f"{len(values)} {name} do not fit {len(folders)} shards")
        self._folders, self._excluded = folders, excluded
        self._sizes, self._keys, self._codebooks = sizes, codebooks, Codebooks()
        self._opened: dict[int, MappedShard] = {}
        self._lock = Lock()
        self.dim = 0
        opened = [self._get_shard(number) for number in range(len(folders))[: None if sizes is None else 1]]
        self.sizes = [shard.size for shard in opened] if sizes is None else list(sizes)

    def search(
        self, query: np.ndarray, k: int, subsets: Sequence[np.ndarray | None] | None = None
    ) -> list[tuple[int, int, float]]:
        """Rank the passages of all shards for one query; see `search_shards`."""
        return self.search_batch([query], k, subsets)[0]

    def search_batch(
        self, queries: Sequence[np.ndarray], k: int, subsets: Sequence[np.ndarray | None] | None = None
    ) -> list[list[tuple[int, int, float]]]:
        """Rank the passages of all shards for several queries; see `search_shards`."""
        return search_shards(self, queries, k, subsets)

    def scores(self, queries: Sequence[np.ndarray], candidates: Sequence[Sequence[ShardHits]]) -> list[list[ShardHits]]:
        """Return each shard's candidates with their scores; see `Shards`."""
        hits_by_query = zip(*candidates, strict=True)
        by_query = [self._rescore(query, hits) for query, hits in zip(queries, hits_by_query, strict=True)]
        return [list(one_shard) for one_shard in zip(*by_query, strict=True)]

    def best(
        self, queries: Sequence[np.ndarray], k: int, subsets: Sequence[np.ndarray | None]
    ) -> list[list[ShardHits]]:
        """Return each shard's best passages; see `Shards`."""
        return [self._search_shard(number, queries, k, subset) for number, subset in enumerate(subsets)]

    def token_vectors(self, place: tuple[int, int]) -> np.ndarray:
        """Return the stored token vectors of the passage at (shard, position): (n_tokens, dim), float32, unit rows."""
        return self._get_shard(place[0]).token_vectors(np.array([place[1]]))

    def _search_shard(
        self, number: int, queries: Sequence[np.ndarray], k: int, subset: np.ndarray | None
    ) -> list[ShardHits]:
        if subset is not None and not len(subset):
            return [NO_HITS for _ in queries]
        return self._get_shard(number).best(queries, k, subset)

    def _rescore(self, query: np.ndarray, candidates: Sequence[ShardHits]) -> list[ShardHits]:
        """Score candidates by shard, all shards with the same codebook in one go."""
        hits = list(candidates)
        opened = [(number, self._get_shard(number)) for number, hit in enumerate(hits) if len(hit.positions)]
        for _, group in groupby(opened, lambda pair: pair[1].codebook):
            numbers, shards = zip(*group, strict=True)
            positions = [hits[number].positions for number in numbers]
            for number, scores in zip(numbers, max_sim(query, shards, positions), strict=True):
                hits[number] = hits[number]._replace(scores=scores)
        return hits

    def _get_shard(self, number: int) -> MappedShard:
        with self._lock:
            if number not in self._opened:
                self._opened[number] = self._open_shard(number)
            return self._opened[number]

    def _open_shard(self, number: int) -> MappedShard:
        folder = self._folders[number]
        excluded = None if self._excluded is None else self._excluded[number]
        shard = MappedShard(folder, excluded, self._codebooks, None if self._keys is None else self._keys[number])
        if self._sizes is not None and shard.size != self._sizes[number]:
            raise ValueError(f"damaged PLAID index: {folder} ({shard.size}, expected {self._sizes[number]})")
        if self.dim not in (0, shard.dim):
            raise ValueError(f"shards of different dims: {sorted({self.dim, shard.dim})} (expected one)")
        self.dim = shard.dim
        return shard
