"""One PLAID shard, memory-mapped and searched on the CPU."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from legal_rag.encoder.runtime import n_cores
from legal_rag.library.plaid import kernels as plaid_kernels
from legal_rag.library.plaid.files import PlaidFiles, open_files, unpacking_table
from legal_rag.library.plaid.search import SearchSettings, ShardHits, ShardSize, in_scope, live_positions, top

PROBE_TOKENS = 16  # query tokens probed in one go; fixed, so that sums do not depend on the number of cores
JOB_PASSAGES = 16  # passages scored by one thread in one go, one decompressed at a time
WIDE_SHARDS = 16  # shards whose centroids are kept in single precision, 4 * dim bytes each
_wide: "WeakKeyDictionary[MappedShard, np.ndarray]" = WeakKeyDictionary()

T = TypeVar("T")
U = TypeVar("U")


class MappedShard:
    """A memory-mapped shard; see `legal_rag.library.plaid.search.Shard`."""

    def __init__(
        self, folder: Path, settings: SearchSettings | None = None, excluded: np.ndarray | None = None
    ) -> None:
        self._folder, self._settings = folder, settings or SearchSettings()
        self._files: PlaidFiles = open_files(folder)
        lengths = self._files.passage_tokens
        self.size = ShardSize(len(lengths), int(lengths.sum()))
        self.dim = int(self._files.centroids.shape[1])
        self._live = live_positions(len(lengths), excluded)
        self._starts = np.concatenate([[0], np.cumsum(lengths)])
        self._table = unpacking_table(self._files.bucket_weights, self._files.n_bits).view(np.float64)

    def candidates(self, queries: Sequence[np.ndarray], n: int, subset: np.ndarray | None = None) -> list[ShardHits]:
        """Return for each query the best `n` passages, in rising order, by an estimate of their scores.

        Those worth an estimate are found by the centroids nearest to the query's tokens.

        Raises:
            ValueError: If the shard's lists name passages that it does not have.
        """
        scope = in_scope(self._live, subset)
        if scope is None:
            scope = np.arange(self.size.n_passages)
        products = np.concatenate(queries) @ _wide_centroids(self).T  # (all queries' tokens, n_centroids)
        bounds = np.cumsum([0] + [len(query) for query in queries])
        n_estimates = max(n, self._settings.n_estimates)
        hits = []
        for query, (start, end) in zip(queries, pairwise(bounds), strict=True):
            probed = scope
            if len(scope) > n_estimates:
                blocks = [products[at : min(at + PROBE_TOKENS, end)] for at in range(start, end, PROBE_TOKENS)]
                approximate = np.stack(list(_map(self._probe, blocks))).sum(axis=0)
                probed = top(scope, approximate[scope], n_estimates).positions
            hits.append(top(probed, self._estimate(query, products[start:end], probed), n))
        return hits

    def scores(self, queries: Sequence[np.ndarray], candidates: Sequence[ShardHits]) -> list[ShardHits]:
        """Return each query's candidates with their MaxSim scores.

        Raises:
            ValueError: If a token's centroid is not one of the shard's.
        """
        return self._score_exactly(queries, [hits.positions for hits in candidates])

    def best(self, queries: Sequence[np.ndarray], k: int, subset: np.ndarray | None = None) -> list[ShardHits]:
        """Return for each query the best `k` passages by MaxSim, in rising order of position.

        Raises:
            ValueError: If a token's centroid is not one of the shard's.
        """
        scope = in_scope(self._live, subset)
        if scope is None:
            scope = np.arange(self.size.n_passages)
        return [top(*hits, k) for hits in self._score_exactly(queries, [scope] * len(queries))]

    def token_vectors(self, positions: np.ndarray) -> np.ndarray:
        """Decompress passages, in rising order: shape (their tokens one after the other, dim), float32, unit rows."""
        bounds = np.concatenate([[0], np.cumsum(self._files.passage_tokens[positions])])
        vectors = np.empty((bounds[-1], self.dim), dtype=np.float32)
        jobs = [(part, positions[i:j], vectors[bounds[i] : bounds[j]]) for part, i, j in self._runs(positions)]
        list(_map(self._decompress, jobs))
        return vectors

    def _probe(self, centroid_scores: np.ndarray) -> np.ndarray:
        approximate = np.empty(self.size.n_passages, dtype=np.float32)
        files, seen = self._files, np.empty(self.size.n_passages, dtype=np.int32)
        n_probe = self._settings.n_probe
        if not plaid_kernels.probe(centroid_scores, n_probe, files.ivf, files.ivf_starts, seen, approximate):
            raise ValueError(f"damaged PLAID index: {self._folder} (lists of unknown passages)")
        return approximate

    def _estimate(self, query: np.ndarray, centroid_scores: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Estimate the MaxSim scores of some passages, given in rising order."""
        estimates = np.empty(len(positions), dtype=np.float32)
        # From 0 to 2^30: the rest of an int32 is for the token's number.
        levels = np.clip(np.nan_to_num(centroid_scores.T) + 1, 0, 2) * (2 ** (30 - plaid_kernels.KEY_BITS) - 1)
        keys = np.ascontiguousarray(levels.astype(np.int32) << plaid_kernels.KEY_BITS)

        def work(run: tuple[int, int, int]) -> bool:
            number, first, end = run
            part, offset = self._files.parts[number], self._files.part_starts[number]
            starts, ends = (self._starts[positions[first:end] + one] - offset for one in (0, 1))
            centroids, out = _wide_centroids(self), estimates[first:end]
            return plaid_kernels.estimate_scores(
                part.codes, part.residuals, starts, ends, centroids, self._table, query, keys, out
            )

        if not all(_map(work, self._runs(positions))):
            raise ValueError(f"damaged PLAID index: {self._folder} (tokens of unknown centroids)")
        return estimates

    def _runs(self, positions: np.ndarray) -> Iterator[tuple[int, int, int]]:
        """Yield (part, start, end): rising positions cut where another part begins, into jobs for all cores."""
        bounds = np.searchsorted(positions, self._files.part_passages)
        for part, (low, high) in enumerate(pairwise(bounds)):
            for start in range(low, high, JOB_PASSAGES):
                yield part, start, min(start + JOB_PASSAGES, high)

    def _decompress(self, job: tuple[int, np.ndarray, np.ndarray]) -> None:
        number, positions, out = job
        part, offset = self._files.parts[number], self._files.part_starts[number]
        starts, ends = self._starts[positions] - offset, self._starts[positions + 1] - offset
        centroids = _wide_centroids(self)
        if not plaid_kernels.decompress(part.codes, part.residuals, starts, ends, centroids, self._table, out):
            raise ValueError(f"damaged PLAID index: {self._folder} (tokens of unknown centroids)")

    def _score_exactly(self, queries: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> list[ShardHits]:
        """Score for each query the passages it wants, given in rising order; a passage is decompressed once."""
        union = wanted[0] if len(wanted) == 1 else np.unique(np.concatenate(wanted))
        asked = np.stack([np.isin(union, positions, assume_unique=True) for positions in wanted])
        scores = np.empty(asked.shape, dtype=np.float32)
        lengths = [-(-len(query) // plaid_kernels.TILE) * plaid_kernels.TILE for query in queries]
        starts = np.cumsum([0, *lengths])
        padded = np.zeros((starts[-1], self.dim), dtype=np.float32)
        for query, start in zip(queries, starts[:-1], strict=True):
            padded[start : start + len(query)] = query
        list(_map(lambda run: self._max_sim(run, union, padded, starts, asked, scores), self._runs(union)))
        return [ShardHits(mine, row[own]) for mine, row, own in zip(wanted, scores, asked, strict=True)]

    def _max_sim(
        self,
        run: tuple[int, int, int],
        union: np.ndarray,
        queries: np.ndarray,
        query_starts: np.ndarray,
        asked: np.ndarray,
        scores: np.ndarray,
    ) -> None:
        number, first, end = run
        part, offset = self._files.parts[number], self._files.part_starts[number]
        positions = union[first:end]
        if not plaid_kernels.max_sim(
            part.codes,
            part.residuals,
            self._starts[positions] - offset,
            self._starts[positions + 1] - offset,
            _wide_centroids(self),
            self._table,
            queries,
            query_starts,
            np.ascontiguousarray(asked[:, first:end]),
            scores[:, first:end],
        ):
            raise ValueError(f"damaged PLAID index: {self._folder} (tokens of unknown centroids)")


def _wide_centroids(shard: MappedShard) -> np.ndarray:
    """Return a shard's centroids in single precision, cached for up to `WIDE_SHARDS` open shards."""
    wide = _wide.get(shard)
    if wide is None:
        wide = shard._files.centroids.astype(np.float32)
        if len(_wide) >= WIDE_SHARDS:
            _wide.popitem()  # the last one: searches go through all shards in order, so the first is needed soonest
        _wide[shard] = wide
    return wide


def _map(function: Callable[[T], U], jobs: Iterable[T]) -> Iterable[U]:
    """Run jobs on all cores; the kernels release the GIL."""
    return _workers().map(function, jobs)


@cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_cores(), thread_name_prefix="plaid")
