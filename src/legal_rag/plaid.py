"""Searching PLAID shards: queries as token vectors in, passages with MaxSim scores out.

On a CPU the shard's files are mapped and searched with vectorised products; on a GPU fast-plaid does it.
Both give positions: a passage's number in its shard, from 0.

Method: Santhanam et al., PLAID (2022): the centroids nearest to the query's tokens name candidate passages; these are
scored by their tokens' centroids alone; the best are decompressed and scored exactly.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from legal_rag.device import best_device
from legal_rag.plaid_format import PlaidFiles, open_files, unpacking_table
from legal_rag.plaid_kernels import centroid_only_scores, decompress, sum_of_maxima


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """How thorough a search is."""

    n_probe: int = 16  # centroids visited for each query token
    n_full_scores: int = 512  # passages decompressed and scored exactly, at least four for each wanted
    exact_below: int = 100_000  # shards of fewer tokens are scored exactly throughout


class ShardHits(NamedTuple):
    """Ranked passages of one shard."""

    positions: np.ndarray  # (n,), int64
    scores: np.ndarray  # (n,), float32, falling; each at most the query's number of tokens


class Shard(Protocol):
    """One PLAID shard, whoever searches it."""

    n_passages: int

    def search(self, query: np.ndarray, k: int, subset: np.ndarray | None = None) -> ShardHits:
        """Rank the shard's passages; see `MappedShard.search`."""


def open_shard(folder: Path, settings: SearchSettings | None = None, device: str | None = None) -> Shard:
    """Open a shard with the engine for `device`: 'cuda' or 'cpu'; None takes the GPU where there is one.

    Raises:
        FileNotFoundError: If the folder holds no complete index.
        ValueError: If its files contradict one another.
    """
    if (device or best_device()) == "cpu":
        return MappedShard(folder, settings)
    return FastPlaidShard(folder, settings, device or "cuda")


class MappedShard:
    """A shard whose files are mapped into memory and searched with numpy."""

    def __init__(self, folder: Path, settings: SearchSettings | None = None) -> None:
        self._files: PlaidFiles = open_files(folder)
        self._settings = settings or SearchSettings()
        self._table = unpacking_table(self._files.bucket_weights, self._files.n_bits)
        self._starts = np.concatenate([[0], np.cumsum(self._files.passage_tokens)])
        self.n_passages = len(self._files.passage_tokens)
        self.dim = int(self._files.centroids.shape[1])

    def search(self, query: np.ndarray, k: int, subset: np.ndarray | None = None) -> ShardHits:
        """Rank passages by MaxSim.

        Args:
            query: Shape (n_query_tokens, dim), unit rows.
            k: How many passages at most.
            subset: Positions to search among, each once, in rising order; None searches all.

        Raises:
            ValueError: If the query's dim is not the shard's.
        """
        if query.ndim != 2 or query.shape[1] != self.dim:
            raise ValueError(f"query vectors of shape {query.shape} do not fit an index of dim {self.dim}")
        query = np.ascontiguousarray(query, dtype=np.float32)
        candidates = self._candidates(query, k, subset)
        scores = self._exact_scores(query, candidates)
        order = np.lexsort((candidates, -scores))[:k]
        return ShardHits(candidates[order], scores[order])

    def token_vectors(self, positions: np.ndarray) -> np.ndarray:
        """Decompress passages: shape (their tokens one after the other, dim), float32, unit rows."""
        rows = _ranges(self._starts[positions], self._starts[positions + 1])
        codes, residuals = self._gather(rows)
        vectors = np.empty((len(rows), self.dim), dtype=np.float32)
        decompress(codes, residuals, self._files.centroids, self._table, vectors)
        return vectors

    def _candidates(self, query: np.ndarray, k: int, subset: np.ndarray | None) -> np.ndarray:
        """Choose the passages worth scoring exactly, in rising order."""
        n_full = max(self._settings.n_full_scores, 4 * k)
        everything = np.arange(self.n_passages) if subset is None else np.asarray(subset, dtype=np.int64)
        n_tokens = int(self._files.passage_tokens[everything].sum())
        if len(everything) <= n_full or n_tokens < self._settings.exact_below:
            return everything
        centroid_scores = self._files.centroids @ query.T  # (n_centroids, n_query_tokens)
        probed = np.unique(_top_rows(centroid_scores, self._settings.n_probe))
        lists = _ranges(self._files.ivf_starts[probed], self._files.ivf_starts[probed + 1])
        found = np.unique(self._files.ivf[lists]).astype(np.int64)
        candidates = found if subset is None else np.intersect1d(found, everything, assume_unique=True)
        if len(candidates) < k:  # too few hits for what was asked: the rest may matter after all
            candidates = everything
        approximate = self._centroid_only_scores(centroid_scores, candidates)
        return np.sort(candidates[np.argsort(-approximate, kind="stable")[:n_full]])

    def _centroid_only_scores(self, centroid_scores: np.ndarray, candidates: np.ndarray) -> np.ndarray:
        def score(block: np.ndarray) -> np.ndarray:
            codes, _ = self._gather(_ranges(self._starts[block], self._starts[block + 1]), with_residuals=False)
            scores = np.empty(len(block), dtype=np.float32)
            ends = np.cumsum(self._files.passage_tokens[block])
            centroid_only_scores(centroid_scores, codes, ends - self._files.passage_tokens[block], ends, scores)
            return scores

        return _in_blocks(score, candidates, size=2048)

    def _exact_scores(self, query: np.ndarray, candidates: np.ndarray) -> np.ndarray:
        def score(block: np.ndarray) -> np.ndarray:
            scores = np.empty(len(block), dtype=np.float32)
            sum_of_maxima(self.token_vectors(block) @ query.T, self._files.passage_tokens[block], scores)
            return scores

        return _in_blocks(score, candidates, size=64)

    def _gather(self, rows: np.ndarray, *, with_residuals: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Read tokens' codes and residuals from the parts; `rows` are token numbers in rising order."""
        part_bounds = np.searchsorted(rows, self._files.part_starts)
        codes, residuals = [], []
        for part, files in enumerate(self._files.parts):
            local = rows[part_bounds[part] : part_bounds[part + 1]] - self._files.part_starts[part]
            codes.append(files.codes[local])
            if with_residuals:
                residuals.append(files.residuals[local])
        return np.concatenate(codes), np.concatenate(residuals) if residuals else np.empty((0, 0), dtype=np.uint8)


class FastPlaidShard:
    """A shard searched by fast-plaid itself: the engine on a GPU, and the reference on a CPU."""

    def __init__(self, folder: Path, settings: SearchSettings | None = None, device: str = "cuda") -> None:
        from fast_plaid.search import FastPlaid

        files = open_files(folder)
        self.n_passages = len(files.passage_tokens)
        self._settings = settings or SearchSettings()
        self._n_probe = min(self._settings.n_probe, len(files.centroids))  # fast-plaid panics if asked for more
        self._index = FastPlaid(str(folder), device=device)

    def search(self, query: np.ndarray, k: int, subset: np.ndarray | None = None) -> ShardHits:
        """Rank passages by MaxSim; see `MappedShard.search`."""
        import torch

        if subset is not None and not len(subset):
            return ShardHits(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))
        (hits,) = self._index.search(
            torch.from_numpy(np.ascontiguousarray(query, dtype=np.float32))[None],
            top_k=min(k, self.n_passages),
            n_ivf_probe=self._n_probe,
            n_full_scores=max(4096, 10 * k),
            show_progress=False,
            subset=None if subset is None else [[int(position) for position in subset]],
        )
        positions = np.array([position for position, _ in hits], dtype=np.int64)
        return ShardHits(positions, np.array([score for _, score in hits], dtype=np.float32))


class PlaidShards:
    """All shards of a Library, searched as one."""

    def __init__(
        self, folders: Sequence[Path], settings: SearchSettings | None = None, device: str | None = None
    ) -> None:
        self._shards = [open_shard(folder, settings, device) for folder in folders]

    def search(
        self, query: np.ndarray, k: int, subsets: Sequence[np.ndarray | None] | None = None
    ) -> list[tuple[int, int, float]]:
        """Rank the passages of all shards.

        Args:
            query: Shape (n_query_tokens, dim), unit rows.
            k: How many passages at most.
            subsets: For each shard the positions to search among, or None for all.

        Returns:
            (shard, position, score), scores falling; equal scores in the order of shard and position.
        """
        merged = []
        for number, shard in enumerate(self._shards):
            hits = shard.search(query, k, subsets[number] if subsets else None)
            merged += [(number, int(p), float(s)) for p, s in zip(hits.positions, hits.scores, strict=True)]
        return sorted(merged, key=lambda hit: (-hit[2], hit[0], hit[1]))[:k]


def _ranges(starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Concatenate the ranges [start, end) of pairs: `_ranges([0, 7], [2, 9])` is `[0, 1, 7, 8]`."""
    lengths = ends - starts
    offsets = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return offsets + np.arange(int(lengths.sum()))


def _top_rows(scores: np.ndarray, n: int) -> np.ndarray:
    """Return the rows of the `n` highest values of every column, in no order."""
    n = min(n, len(scores))
    return np.argpartition(scores, len(scores) - n, axis=0)[len(scores) - n :].ravel()


def _in_blocks(score: Callable[[np.ndarray], np.ndarray], passages: np.ndarray, size: int) -> np.ndarray:
    """Score passages block by block on all cores: the blocks bound the memory, the kernels leave Python's lock."""
    blocks = [passages[start : start + size] for start in range(0, len(passages), size)]
    return np.concatenate([np.empty(0, dtype=np.float32), *_workers().map(score, blocks)])


@cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="plaid")
