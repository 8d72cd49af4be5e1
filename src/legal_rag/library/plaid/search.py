"""Late-interaction search by exact MaxSim over memory-mapped shards, on the processor."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import numpy as np

from legal_rag.base import deadline
from legal_rag.base.html import displayed
from legal_rag.encoder.runtime import n_cores
from legal_rag.library.plaid.files import PlaidFiles, PlaidSource, open_files, unpacking_table

if TYPE_CHECKING:
    from legal_rag.library.plaid.kernels import Query, Tables

HALF_WINDOW = 32  # tokens; a passage's windows are of twice as many, one beginning every so many


@displayed
@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """How thorough a search is."""

    n_candidates: int = 256  # passages nearest by their chunk vectors, scored exactly; more where words bring none
    exhaustive: bool = False  # whether all passages are scored exactly

    def __post_init__(self) -> None:
        if self.n_candidates < 1:
            raise ValueError(f"n_candidates must be at least 1, got {self.n_candidates}")


@displayed
class ShardHits(NamedTuple):
    """Passages of one shard, with their scores for one query."""

    positions: np.ndarray  # (n,), int64
    scores: np.ndarray  # (n,), float32; each at most the query's number of tokens


@displayed
class ShardSize(NamedTuple):
    """Counts of a shard."""

    n_passages: int
    n_tokens: int


class Shards(Protocol):
    """PLAID shards in a fixed order, in this process or in others; queries have shape (n_query_tokens, dim), float32.

    Each method is called once per search, so that an implementation may query all shards in parallel. For
    `window_weight`, see `max_sim`.
    """

    dim: int

    @property
    def sizes(self) -> Sequence[ShardSize]:
        """Return the counts of each shard."""

    def scores(
        self, queries: Sequence[np.ndarray], candidates: Sequence[Sequence[ShardHits]], window_weight: float = 0.0
    ) -> list[list[ShardHits]]:
        """Return each shard's own candidates with MaxSim scores; both by shard, then by query."""

    def best(
        self, queries: Sequence[np.ndarray], k: int, subsets: Sequence[np.ndarray | None], window_weight: float = 0.0
    ) -> list[list[ShardHits]]:
        """Return each shard's best passages, by shard, then by query."""


def search_shards(
    shards: Shards,
    queries: Sequence[np.ndarray],
    k: int,
    subsets: Sequence[np.ndarray | None] | None = None,
    window_weight: float = 0.0,
) -> list[list[tuple[int, int, float]]]:
    """Rank the passages of all shards for each query, independently of how shards are spread over processes.

    Queries have shape (n_query_tokens, dim); a row's length is the token's weight. `subsets` holds for each shard the
    rising positions to search among, or None for all. Returned are, for each query, the `k` best (shard, position,
    score), scores falling; equal scores in the order of shard and position. For `window_weight`, see `max_sim`.
    ValueError if a query's dim is not the shards', or there are not as many subsets as shards.
    """
    if shards.sizes:
        queries = [_check_query(query, shards.dim) for query in queries]
    subsets = [None] * len(shards.sizes) if subsets is None else list(subsets)
    if len(subsets) != len(shards.sizes):
        raise ValueError(f"{len(subsets)} subsets do not fit {len(shards.sizes)} shards")
    if not queries or not shards.sizes or k < 1:
        return [[] for _ in queries]
    answers = shards.best(queries, k, subsets, window_weight)
    return [_merge_hits([answer[query] for answer in answers], k) for query in range(len(queries))]


def rescore(
    shards: Shards, query: np.ndarray, candidates: Sequence[np.ndarray], window_weight: float = 0.0
) -> list[tuple[int, int, float]]:
    """Rank some passages, the rising positions in each shard, by MaxSim for one query; see `search_shards`.

    ValueError if the query's dim is not the shards'.
    """
    hits = [[ShardHits(np.asarray(subset, np.int64), np.zeros(len(subset), np.float32))] for subset in candidates]
    if not any(len(subset) for subset in candidates):
        return []  # shards may be on other machines: no empty calls
    answers = shards.scores([_check_query(query, shards.dim)], hits, window_weight)
    return _merge_hits([answer[0] for answer in answers], sum(map(len, candidates)))


def top(positions: np.ndarray, scores: np.ndarray, n: int) -> ShardHits:
    """Keep the `n` best of some passages, in rising order of position; among equals the first positions.

    Both arrays have shape (n_passages,); `positions` rise.
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

    ValueError if an excluded position is not one of the shard's.
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


JOBS_PER_CORE = 8
JOB_TOKENS = 4096, 65_536  # scored by one thread in one go, about; a passage is not divided
JOB_CENTROIDS = 1024
KEPT_QUERIES = 4  # whose products with a codebook's centroids are kept, for the next shard
LEVELS = 127  # the largest 8-bit integer on either side of 0
NO_HITS = ShardHits(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))

Job = tuple[int, int, int]  # part, and the first and last + 1 of the positions
T = TypeVar("T")


class Codebook:
    """What scoring needs of the codec that all shards of an index share, made when it is first used."""

    def __init__(self, files: PlaidFiles, *, vectorized: bool | None = None) -> None:
        """Take a shard's codec.

        `vectorized`: whether AVX-512 VNNI does the sums; None where the processor has it. Scores are the same.
        """
        self._files, self._vectorized = files, vectorized
        self.prepare = lru_cache(KEPT_QUERIES)(self._prepare_query)

    def fits(self, files: PlaidFiles) -> bool:
        """Tell whether a shard's codec has the shapes of this one: kernels check no bounds."""
        own = self._files
        return (own.centroids.shape, own.n_bits) == (files.centroids.shape, files.n_bits)

    @cached_property
    def centroids(self) -> np.ndarray:
        """The centroids, (n_centroids, dim), float32."""
        return self._files.centroids.astype(np.float32)

    @cached_property
    def residuals(self) -> np.ndarray:
        """The residuals that each byte encodes, (256, 8 / n_bits), float32."""
        return unpacking_table(self._files.bucket_weights, self._files.n_bits)

    @cached_property
    def _bytes(self) -> bool:
        from legal_rag.library.plaid.kernels import has_vnni

        return has_vnni() if self._vectorized is None else self._vectorized

    @cached_property
    def tables(self) -> "Tables":
        """Centroids and residuals, rounded to integers."""
        from legal_rag.library.plaid.kernels import VECTOR, Tables

        dim, number = self.centroids.shape[1], np.dtype(np.uint8 if self._bytes else np.int16)
        unit, levels = _round_rows(self.residuals.reshape(1, -1))
        levels = (levels.reshape(self.residuals.shape).astype(np.int16) + self._zero).astype(number)
        units, rows = _round_rows(self.centroids)
        return Tables(
            table=levels.view(f"i{min(self.residuals.shape[1] * number.itemsize, 8)}"),
            zero=np.array([self._zero], dtype=number),
            unit=unit[0],
            centroids=np.pad(rows, ((0, 0), (0, -dim % VECTOR))),
            units=units,
            # Of half precision, these sums are exact, whatever the order.
            squares=np.einsum("ij,ij->i", self.centroids, self.centroids, dtype=np.float64).astype(np.float32),
            excess=self._excess(rows),
        )

    def _prepare_query(self, query_bytes: bytes) -> "Query":
        """Round a query, (n_query_tokens, dim), to integers, and multiply it with all centroids."""
        from legal_rag.library.plaid.kernels import LANES, WORD, Query

        dim = self.centroids.shape[1]
        query = np.frombuffer(query_bytes, dtype=np.float32).reshape(-1, dim)
        padded = np.pad(query, ((0, -len(query) % LANES), (0, 0)))
        units, rows = _round_rows(padded)
        number = np.dtype(np.int8 if self._bytes else np.int16)
        per_word = WORD // number.itemsize
        words = np.pad(rows, ((0, 0), (0, -dim % per_word))).reshape(len(rows) // LANES, LANES, -1, per_word)
        words = np.ascontiguousarray(words.transpose(0, 2, 1, 3), dtype=number)
        return Query(
            n_tokens=len(query),
            words=words.reshape(*words.shape[:2], -1),
            units=units * self.tables.unit,
            excess=self._excess(rows),
            centroid_scores=self._centroid_scores(padded),
        )

    def _centroid_scores(self, padded: np.ndarray) -> np.ndarray:
        """Multiply all centroids by query tokens; BLAS would round as its number of threads has it."""
        from legal_rag.library.plaid.kernels import LANES, score_centroids

        words = np.ascontiguousarray(padded.reshape(-1, LANES, padded.shape[1]).transpose(0, 2, 1))
        scores = np.empty((len(self.centroids), len(padded)), dtype=np.float32)

        def work(start: int) -> None:
            end = start + JOB_CENTROIDS
            score_centroids(self.centroids[start:end], words, scores[start:end])

        run_jobs(work, range(0, len(scores), JOB_CENTROIDS))
        return scores

    @property
    def _zero(self) -> int:
        """The integer that encodes a residual of 0."""
        return 128 if self._bytes else 0

    def _excess(self, rows: np.ndarray) -> np.ndarray:
        return self._zero * rows.sum(axis=1, dtype=np.int32)


class MappedShard:
    """A memory-mapped shard. Queries have shape (n_query_tokens, dim), float32."""

    def __init__(
        self,
        folder: PlaidSource,
        excluded: np.ndarray | None = None,
        codebook: Codebook | None = None,
    ) -> None:
        """Map the files of an index, or of some of its parts; `excluded` are rising positions never to be returned.

        `codebook` is shared with the other shards of an index; None reads the shard's own.

        Raises:
            FileNotFoundError: If the folder holds no complete index.
            ValueError: If its files contradict one another or the codebook, or an excluded position is not in it.
        """
        self.folder = folder
        self._files: PlaidFiles = open_files(folder)
        lengths = self._files.passage_tokens
        self.size = ShardSize(len(lengths), int(lengths.sum()))
        self.dim = int(self._files.centroids.shape[1])
        self._live = live_positions(len(lengths), excluded)
        self._starts = np.concatenate([[0], np.cumsum(lengths)])
        self.codebook = codebook or Codebook(self._files)
        if not self.codebook.fits(self._files):
            raise ValueError(f"damaged PLAID index: {folder} has a codebook of another shape than the other shards")

    def best(
        self, queries: Sequence[np.ndarray], k: int, subset: np.ndarray | None = None, window_weight: float = 0.0
    ) -> list[ShardHits]:
        """Return for each query the `k` best passages by MaxSim, in rising order of position.

        ValueError if a token's centroid is not one of the shard's.
        """
        scope = in_scope(self._live, subset)
        if scope is None:
            scope = np.arange(self.size.n_passages)
        return [top(scope, max_sim(query, [self], [scope], window_weight)[0], k) for query in queries]

    def token_vectors(self, positions: np.ndarray) -> np.ndarray:
        """Decompress passages: shape (their tokens one after the other, dim), float32, unit rows."""
        self.lengths(positions)  # refuses those that do not exist
        return np.concatenate([self._decompress(position, position + 1) for position in positions.tolist()])

    def passage_means(self, start: int, end: int) -> np.ndarray:
        """Return the mean token vectors of the passages from `start` to before `end`: (end - start, dim), float32."""
        lengths = self.lengths(np.arange(start, end))[:, None].astype(np.float32)
        if start == end:
            return np.empty((0, self.dim), dtype=np.float32)
        sums = np.add.reduceat(self._decompress(start, end), self._starts[start:end] - self._starts[start])
        return np.asarray(sums / lengths)

    def jobs(self, positions: np.ndarray, n_tokens: int) -> Iterator[Job]:
        """Yield jobs of about `n_tokens`: rising positions, cut also where another part begins."""
        bounds = np.searchsorted(positions, self._files.part_passages)
        for part, (low, high) in enumerate(pairwise(bounds)):
            ends = np.cumsum(self.lengths(positions[low:high]))
            cuts = np.searchsorted(ends, np.arange(n_tokens, ends[-1] if high > low else 0, n_tokens)) + low
            for start, end in pairwise(np.unique([low, *cuts, high]).tolist()):
                yield part, start, end

    def lengths(self, positions: np.ndarray) -> np.ndarray:
        """Return how many tokens passages have; ValueError if the shard has no such passage."""
        if len(positions) and not 0 <= positions.min() <= positions.max() < self.size.n_passages:
            wrong = positions.min() if positions.min() < 0 else positions.max()
            raise ValueError(f"{self.folder} has {self.size.n_passages} passages, none at {wrong}")
        return self._files.passage_tokens[positions]

    def run(self, kernel: Callable[..., bool], positions: np.ndarray, job: Job, *arguments: object) -> None:
        """Call a kernel with the packed codes and residuals of some passages, and `arguments`.

        ValueError if it says that a centroid does not exist.
        """
        number, start, end = job
        part, chosen = self._files.parts[number], positions[start:end]
        starts, ends = (self._starts[chosen + shift] - self._files.part_starts[number] for shift in (0, 1))
        if not kernel(part.codes, part.residuals, starts, ends, *arguments):
            raise ValueError(f"damaged PLAID index: {self.folder} (tokens of unknown centroids)")

    def _decompress(self, first: int, end: int) -> np.ndarray:
        """Rebuild the token vectors of successive passages: centroid plus residual, brought back to unit length."""
        codebook, blocks = self.codebook, []
        for part, start in zip(self._files.parts, self._files.part_starts[:-1], strict=True):
            rows = slice(max(self._starts[first] - start, 0), max(self._starts[end] - start, 0))
            codes = part.codes[rows].astype(np.int64)
            if len(codes) and not 0 <= codes.min() <= codes.max() < len(codebook.centroids):
                raise ValueError(f"damaged PLAID index: {self.folder} (tokens of unknown centroids)")
            vectors = codebook.residuals[part.residuals[rows]].reshape(len(codes), self.dim)
            vectors += codebook.centroids[codes]
            lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
            vectors /= np.maximum(lengths, np.float32(1e-12))[:, None]
            blocks.append(vectors)
        return np.concatenate(blocks)


class PlaidShards:
    """The `Shards` of this process, each opened when it is first searched; a Ray actor holds its own."""

    def __init__(
        self,
        folders: Sequence[PlaidSource],
        excluded: Sequence[np.ndarray] | None = None,
        *,
        sizes: Sequence[ShardSize] | None = None,
    ) -> None:
        """Hold the shards in `folders`, in that order, which have one codebook.

        Each further argument has an entry for each shard: `excluded` the rising positions never to be returned;
        `sizes`, where known, lets all but the first be opened only when searched.

        Raises:
            FileNotFoundError: If a folder holds no complete index. This and what follows may be raised later, when a
                shard is opened.
            ValueError: If a shard's files contradict one another, its size or the other shards' codebook, or an
                excluded position is not in it.
        """
        for values, name in ((excluded, "lists of excluded passages"), (sizes, "sizes")):
            if values is not None and len(values) != len(folders):
                raise ValueError(f"{len(values)} {name} do not fit {len(folders)} shards")
        self._folders, self._excluded = folders, excluded
        self._sizes = sizes
        self._codebook: Codebook | None = None  # of the shard that is opened first
        self._opened: dict[int, MappedShard] = {}
        self._lock = Lock()
        self.dim = 0
        opened = [self._get_shard(number) for number in range(len(folders))[: None if sizes is None else 1]]
        self.sizes = [shard.size for shard in opened] if sizes is None else list(sizes)

    def search(
        self, query: np.ndarray, k: int, subsets: Sequence[np.ndarray | None] | None = None
    ) -> list[tuple[int, int, float]]:
        """Rank the passages of all shards for one query; see `search_shards`."""
        return search_shards(self, [query], k, subsets)[0]

    def scores(
        self, queries: Sequence[np.ndarray], candidates: Sequence[Sequence[ShardHits]], window_weight: float = 0.0
    ) -> list[list[ShardHits]]:
        """Return each shard's candidates with their scores; see `Shards`."""
        hits_by_query = zip(*candidates, strict=True)
        by_query = [self._rescore(*asked, window_weight) for asked in zip(queries, hits_by_query, strict=True)]
        return [list(one_shard) for one_shard in zip(*by_query, strict=True)]

    def best(
        self, queries: Sequence[np.ndarray], k: int, subsets: Sequence[np.ndarray | None], window_weight: float = 0.0
    ) -> list[list[ShardHits]]:
        """Return each shard's best passages; see `Shards`."""
        return [
            [NO_HITS for _ in queries]
            if subset is not None and not len(subset)
            else self._get_shard(number).best(queries, k, subset, window_weight)
            for number, subset in enumerate(subsets)
        ]

    def token_vectors(self, place: tuple[int, int]) -> np.ndarray:
        """Return the stored token vectors of the passage at (shard, position): (n_tokens, dim), float32, unit rows."""
        return self._get_shard(place[0]).token_vectors(np.array([place[1]]))

    def _rescore(self, query: np.ndarray, candidates: Sequence[ShardHits], window_weight: float) -> list[ShardHits]:
        """Score candidates by shard, all in one go."""
        hits = list(candidates)
        opened = {number: self._get_shard(number) for number, hit in enumerate(hits) if len(hit.positions)}
        scored = max_sim(query, [*opened.values()], [hits[number].positions for number in opened], window_weight)
        for number, scores in zip(opened, scored, strict=True):
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
        shard = MappedShard(folder, excluded, self._codebook)
        if self._sizes is not None and shard.size != self._sizes[number]:
            raise ValueError(f"damaged PLAID index: {folder} ({shard.size}, expected {self._sizes[number]})")
        self._codebook, self.dim = shard.codebook, shard.dim
        return shard


def max_sim(
    query: np.ndarray, shards: Sequence[MappedShard], wanted: Sequence[np.ndarray], window_weight: float = 0.0
) -> list[np.ndarray]:
    """Score passages of several shards with one codebook, on all cores.

    `query` has shape (n_query_tokens, dim), float32; `wanted` are the rising positions in each shard, and returned are
    their scores, float32. A score depends on the passage and the query alone: it is the passage's MaxSim, in which the
    MaxSim of its best window of 64 tokens has a share of `window_weight`, 0 to 1. A window tells a passage that
    answers in a few sentences from one whose words lie far apart.

    Raises:
        ValueError: If a token's centroid does not exist, or a passage.
    """
    from legal_rag.library.plaid import kernels

    scores = [np.empty(len(positions), dtype=np.float32) for positions in wanted]
    n_tokens = sum(int(shard.lengths(positions).sum()) for shard, positions in zip(shards, wanted, strict=True))
    size = int(np.clip(n_tokens // (n_cores() * JOBS_PER_CORE), *JOB_TOKENS))
    jobs = [(i, job) for i, shard in enumerate(shards) for job in shard.jobs(wanted[i], size)]
    if not jobs:
        return scores
    codebook = shards[0].codebook
    prepared = codebook.prepare(query.tobytes())

    def work(numbered: tuple[int, Job]) -> None:
        i, job = numbered
        arguments = codebook.tables, prepared, window_weight, scores[i][job[1] : job[2]]
        shards[i].run(kernels.score_passages, wanted[i], job, *arguments)

    run_jobs(work, jobs)
    return scores


def _round_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Round rows to 8-bit integers: units, (n,), float32, and how many of them, (n, dim), int8."""
    units = (np.maximum(rows.max(axis=1), -rows.min(axis=1)) / np.float32(LEVELS)).astype(np.float32)
    with np.errstate(all="ignore"):
        levels = rows / np.where(units > 0, units, 1)[:, None]
    if not np.isfinite(units).all():  # of a damaged file; such units make all scores none
        levels = np.nan_to_num(levels)
    np.clip(np.rint(levels, out=levels), -LEVELS, LEVELS, out=levels)
    return units, levels.astype(np.int8)


def run_jobs(function: Callable[[T], None], jobs: Sequence[T]) -> None:
    """Run jobs on all cores; the kernels release the GIL. Past the deadline the next job raises DeadlineError."""
    for _ in _workers().map(function, jobs) if len(jobs) > 1 else map(function, jobs):
        deadline.check()


@cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_cores(), thread_name_prefix="plaid")
