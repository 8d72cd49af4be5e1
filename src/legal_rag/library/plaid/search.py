"""Late-interaction search over shards by exact MaxSim."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """How thorough a search is."""

    n_candidates: int = 256  # passages nearest by their chunk vectors, scored exactly; more where words bring none
    exhaustive: bool = False  # whether all passages are scored exactly

    def __post_init__(self) -> None:
        if self.n_candidates < 1:
            raise ValueError(f"n_candidates must be at least 1, got {self.n_candidates}")


class ShardHits(NamedTuple):
    """Passages of one shard, with their scores for one query."""

    positions: np.ndarray  # (n,), int64
    scores: np.ndarray  # (n,), float32; each at most the query's number of tokens


class ShardSize(NamedTuple):
    """Counts of a shard."""

    n_passages: int
    n_tokens: int


class Shards(Protocol):
    """PLAID shards in a fixed order, in this process or in others; queries have shape (n_query_tokens, dim), float32.

    Each method is called once per search, so that an implementation may query all shards in parallel.
    """

    dim: int

    @property
    def sizes(self) -> Sequence[ShardSize]:
        """Return the counts of each shard."""

    def scores(self, queries: Sequence[np.ndarray], candidates: Sequence[Sequence[ShardHits]]) -> list[list[ShardHits]]:
        """Return each shard's own candidates with MaxSim scores; both by shard, then by query."""

    def best(
        self, queries: Sequence[np.ndarray], k: int, subsets: Sequence[np.ndarray | None]
    ) -> list[list[ShardHits]]:
        """Return each shard's best passages, by shard, then by query."""


def search_shards(
    shards: Shards,
    queries: Sequence[np.ndarray],
    k: int,
    subsets: Sequence[np.ndarray | None] | None = None,
) -> list[list[tuple[int, int, float]]]:
    """Rank the passages of all shards for each query, independently of how shards are spread over processes.

    Args:
        shards: What is searched.
        queries: Each of shape (n_query_tokens, dim); a row's length is the token's weight.
        k: How many passages at most.
        subsets: For each shard the positions to search among, each once, in rising order, or None for all.

    Returns:
        For each query (shard, position, score), scores falling; equal scores in the order of shard and position.

    Raises:
        ValueError: If a query's dim is not the shards', or there are not as many subsets as shards.
    """
    if shards.sizes:
        queries = [_check_query(query, shards.dim) for query in queries]
    subsets = [None] * len(shards.sizes) if subsets is None else list(subsets)
    if len(subsets) != len(shards.sizes):
        raise ValueError(f"{len(subsets)} subsets do not fit {len(shards.sizes)} shards")
    if not queries or not shards.sizes or k < 1:
        return [[] for _ in queries]
    answers = shards.best(queries, k, subsets)
    return [_merge_hits([answer[query] for answer in answers], k) for query in range(len(queries))]


def rescore(shards: Shards, query: np.ndarray, candidates: Sequence[np.ndarray]) -> list[tuple[int, int, float]]:
    """Rank some passages by MaxSim for one query.

    Args:
        shards: The shards that hold them.
        query: Shape (n_query_tokens, dim); a row's length is the token's weight.
        candidates: For each shard the rising positions of the passages.

    Returns:
        All of them as (shard, position, score), in the order of `search_shards`.

    Raises:
        ValueError: If the query's dim is not the shards'.
    """
    hits = [[ShardHits(np.asarray(subset, np.int64), np.zeros(len(subset), np.float32))] for subset in candidates]
    if not any(len(subset) for subset in candidates):
        return []  # shards may be on other machines: no empty calls
    answers = shards.scores([_check_query(query, shards.dim)], hits)
    return _merge_hits([answer[0] for answer in answers], sum(map(len, candidates)))


def top(positions: np.ndarray, scores: np.ndarray, n: int) -> ShardHits:
    """Keep the `n` best of some passages, in rising order of position; among equals the first positions.

    Args:
        positions: Shape (n_passages,), rising.
        scores: Shape (n_passages,).
        n: How many.
    """
    if len(positions) > n:
        scores = np.where(np.isnan(scores), -np.inf, scores)  # a damaged file may hold NaN
        threshold = np.partition(scores, len(scores) - n)[len(scores) - n]
        chosen = scores > threshold
        ties = np.flatnonzero(scores == threshold)
        chosen[ties[: n - int(chosen.sum())]] = True
        positions, scores = positions[chosen], scores[chosen]
    return ShardHits(positions, scores)


def live_positions(n_passages: int, excluded: np.ndarray | None) -> np.ndarray | None:
    """Return the positions that are not excluded, rising; None if none is excluded.

    Raises:
        ValueError: If an excluded position is not one of the shard's.
    """
    if excluded is None or not len(excluded):
        return None
    excluded = np.asarray(excluded)
    if excluded.dtype.kind not in "iu" or excluded.min() < 0 or excluded.max() >= n_passages:
        raise ValueError(f"excluded passages {excluded} (expected positions from 0 to {n_passages - 1})")
    live = np.ones(n_passages, dtype=bool)
    live[excluded] = False
    return np.flatnonzero(live)


def in_scope(live: np.ndarray | None, subset: np.ndarray | None) -> np.ndarray | None:
    """Return the positions to search among, rising: those of `subset` that are live; None for all of the shard."""
    if live is None or subset is None:
        return live if subset is None else np.asarray(subset, dtype=np.int64)
    return np.intersect1d(subset, live, assume_unique=True)


def _check_query(query: np.ndarray, dim: int) -> np.ndarray:
    if query.ndim != 2 or query.shape[1] != dim:
        raise ValueError(f"query vectors of shape {query.shape} do not fit an index of dim {dim}")
    return np.ascontiguousarray(query, dtype=np.float32)


def _merge_hits(answers: Sequence[ShardHits], k: int) -> list[tuple[int, int, float]]:
    shards = np.repeat(np.arange(len(answers)), [len(hits.positions) for hits in answers])
    positions = np.concatenate([hits.positions for hits in answers])
    scores = np.concatenate([hits.scores for hits in answers])
    order = np.lexsort((positions, shards, -scores))[:k]
    return [(int(shards[i]), int(positions[i]), float(scores[i])) for i in order]
