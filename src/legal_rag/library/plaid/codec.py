"""A codebook for token vectors: training it, storing it, packing vectors with it."""

import math
import mmap
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from legal_rag.encoder.runtime import n_lanes
from legal_rag.library.plaid.files import map_array, pack_buckets

MAX_CENTROIDS = 2**13  # by default; below 2^15, so that a code takes two bytes
POINTS_PER_CENTROID = 16  # tokens that k-means sees for each; with 64 the mean cosine is 0.9993 instead of 0.9992
SAMPLE_TOKENS = MAX_CENTROIDS * POINTS_PER_CENTROID  # all that training uses
KMEANS_ITERATIONS = 5
PROBED_CELLS = 8  # of about 128: 99 tokens in 100 get the centroid that is truly nearest, the others one about as near
CELL_ITERATIONS = 6  # of the k-means that sorts centroids into cells
BUCKET_TOKENS = 8192  # tokens that the buckets are fitted to
LEVEL_ITERATIONS = 50
BLOCK_TOKENS = 4096  # tokens read and packed in one go
CENTROIDS = "centroids.npy"
CODEC_FILES = (CENTROIDS, "bucket_cutoffs.npy", "bucket_weights.npy", "avg_residual.npy", "cluster_threshold.npy")
NOT_FINITE = "a token vector is not finite (expected unit rows)"

T = TypeVar("T")


class Codec(NamedTuple):
    """Centroids, and how residuals are quantised."""

    centroids: np.ndarray  # (n_centroids, dim), float16, unit rows
    cutoffs: np.ndarray  # (2^bits - 1,), float32, rising
    weights: np.ndarray  # (2^bits,), float32: the residual that each bucket decodes to
    mean_residual: np.ndarray  # (dim,), float32, of absolute values
    threshold: np.ndarray  # (1,), float32: three quarters of the tokens lie nearer to their centroids

    @property
    def n_bits(self) -> int:
        """Return the bits a dimension: 1, 2 or 4."""
        return len(self.weights).bit_length() - 1


def count_centroids(n_tokens: int) -> int:
    """Return how many centroids fast-plaid gives an index of `n_tokens`: the power of two below 16 * sqrt(n_tokens)."""
    return min(n_tokens, int(2 ** math.floor(math.log2(16 * math.sqrt(n_tokens)))))


def read_blocks(vectors: np.ndarray) -> Iterator[np.ndarray]:
    """Yield `vectors` as float32 blocks of BLOCK_TOKENS.

    Pages of a mapped file are released once read, or they would count as this process's memory.
    """
    for start in range(0, len(vectors), BLOCK_TOKENS):
        yield np.asarray(vectors[start : start + BLOCK_TOKENS], dtype=np.float32)
        _release(vectors)


def map_blocks(function: Callable[[np.ndarray], T], blocks: Iterable[np.ndarray]) -> Iterator[T]:
    """Yield `function` of each block, in order; it releases the GIL, so all cores work a little ahead."""
    with ThreadPoolExecutor(n_lanes(), thread_name_prefix="pack") as pool:
        ahead: deque[Future[T]] = deque()
        for block in blocks:
            ahead.append(pool.submit(function, block))
            if len(ahead) > 2 * n_lanes():
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def sample_vectors(vectors: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Sample up to `size` rows, in rising order so that a file is read forwards, in their stored precision."""
    if size >= len(vectors):
        return np.asarray(vectors)
    rows = np.sort(np.random.default_rng(seed).choice(len(vectors), size, replace=False))
    sample = np.empty((size, vectors.shape[1]), dtype=vectors.dtype)
    for start in range(0, size, BLOCK_TOKENS):
        sample[start : start + BLOCK_TOKENS] = vectors[rows[start : start + BLOCK_TOKENS]]
        _release(vectors)
    return sample


def train_codec(sample: np.ndarray, *, n_bits: int, seed: int, n_centroids: int | None = None) -> Codec:
    """Train a codebook: spherical k-means (Dhillon and Modha, 2001), then buckets for the residuals.

    Args:
        sample: Shape (n_tokens, dim), unit rows, float16 or float32; in memory.
        n_bits: Bits a dimension: 1, 2 or 4.
        seed: Of the first centroids.
        n_centroids: How many; None takes one for POINTS_PER_CENTROID tokens, in a power of two up to MAX_CENTROIDS,
            or as many as fast-plaid would, where these are more.

    Raises:
        ValueError: If there is no token, one is not finite, or rows do not fill bytes.
    """
    if not len(sample) or n_bits not in (1, 2, 4) or sample.shape[1] * n_bits % 8:
        raise ValueError(f"cannot train a codebook of {n_bits} bits on token vectors of shape {sample.shape}")
    if not all(np.isfinite(block).all() for block in read_blocks(sample)):
        raise ValueError(NOT_FINITE)
    generator = np.random.default_rng(seed)
    n_centroids = min(len(sample), n_centroids or _default_centroids(len(sample)))
    apart = np.sort(generator.choice(len(sample), min(BUCKET_TOKENS, len(sample)), replace=False))
    # A smaller sample is a whole corpus. Tokens that moved no centroid lie further from theirs, as most of a corpus do.
    learned = np.delete(sample, apart, axis=0) if len(sample) >= SAMPLE_TOKENS else sample
    centroids = _train_centroids(learned, n_centroids, generator)
    return _fit_buckets(sample[apart], centroids, n_bits)


def _default_centroids(n_tokens: int) -> int:
    carried = 2 ** int(math.log2(max(n_tokens / POINTS_PER_CENTROID, 1)))
    return min(MAX_CENTROIDS, max(carried, count_centroids(n_tokens)))


def _train_centroids(sample: np.ndarray, n_centroids: int, generator: np.random.Generator) -> np.ndarray:
    """Return centroids of shape (n_centroids, dim), float16, unit rows."""
    centroids = sample[np.sort(generator.choice(len(sample), n_centroids, replace=False))].astype(np.float32)
    for _ in range(KMEANS_ITERATIONS):
        sums = _sums_by_centroid(sample, centroids)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        lost = np.flatnonzero(lengths[:, 0] < 1e-6)  # nearest to no token: each restarts at one
        centroids = sums / np.maximum(lengths, 1e-12)
        centroids[lost] = sample[generator.integers(len(sample), size=len(lost))]
    return centroids.astype(np.float16)


def _sums_by_centroid(sample: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    """Sum the vectors that each centroid is nearest to: shape (n_centroids, dim), float32."""
    from legal_rag.library.plaid.packing import add_rows

    nearest, sums = NearestCentroids(centroids), np.zeros_like(centroids)
    for block, codes in map_blocks(lambda block: (block, nearest(block)), read_blocks(sample)):
        add_rows(block, codes, sums)
    return sums


def _fit_buckets(sample: np.ndarray, centroids: np.ndarray, n_bits: int) -> Codec:
    nearest, wide = NearestCentroids(centroids), centroids.astype(np.float32)
    residuals = np.concatenate([block - wide[nearest(block)] for block in read_blocks(sample)])
    cutoffs, weights = _fit_levels(residuals.ravel(), 2**n_bits)
    mean = np.abs(residuals).mean(axis=0)
    threshold = np.quantile(np.linalg.norm(residuals, axis=1), [0.75])
    return Codec(centroids, *(array.astype(np.float32) for array in (cutoffs, weights, mean, threshold)))


def _fit_levels(values: np.ndarray, n_levels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the cutoffs and levels that quantise numbers with the least square error (Lloyd, 1982)."""
    values = np.sort(values)
    sums = np.concatenate([[0], np.cumsum(values, dtype=np.float64)])
    levels = np.quantile(values, (np.arange(n_levels) + 0.5) / n_levels)
    for _ in range(LEVEL_ITERATIONS):
        cutoffs = (levels[1:] + levels[:-1]) / 2
        bounds = np.concatenate([[0], np.searchsorted(values, cutoffs, side="right"), [len(values)]])
        counts = np.diff(bounds)
        levels = np.where(counts, np.diff(sums[bounds]) / np.maximum(counts, 1), levels)
    return cutoffs, levels


def write_codec(folder: Path, codec: Codec) -> None:
    """Write a codebook's files, fast-plaid's, into a folder that exists."""
    for name, array in zip(CODEC_FILES, codec, strict=True):
        np.save(folder / name, array)


def read_codec(folder: Path) -> Codec:
    """Read the codebook of a shard.

    Raises:
        FileNotFoundError: If one of its files is missing.
        ValueError: If one is damaged, or they contradict one another.
    """
    dimensions = dict(zip(CODEC_FILES, (2, 1, 1, 1, 1), strict=True))
    codec = Codec(*(np.array(map_array(folder / name, "f", n)) for name, n in dimensions.items()))
    (n_centroids, dim), n_levels = codec.centroids.shape, len(codec.weights)
    shapes = [array.shape for array in codec]
    fitting = [(n_centroids, dim), (n_levels - 1,), (n_levels,), (dim,), (1,)]
    if shapes != fitting or n_levels not in (2, 4, 16) or not codec.centroids.size:
        raise ValueError(f"damaged PLAID index: {folder} (codebook files of shapes {shapes})")
    if not all(np.isfinite(array).all() for array in codec):
        raise ValueError(f"damaged PLAID index: {folder} (a codebook that is not finite)")
    return codec


class NearestCentroids:
    """The nearest centroid by dot product, for blocks of vectors, in two steps.

    Centroids are sorted into cells by k-means of their own. A vector is multiplied with the means of all cells, then
    with the centroids in the nearest few. What it gets depends on no other vector of its block.
    """

    def __init__(self, centroids: np.ndarray, n_probed: int = PROBED_CELLS) -> None:
        wide = centroids.astype(np.float32)
        self._means, cells = _sort_into_cells(wide)
        members = [_fill_tiles(np.flatnonzero(cells == cell)) for cell in range(len(self._means))]
        self._starts = np.cumsum([0] + [len(rows) for rows in members])
        self.numbers = np.concatenate(members)  # of the centroid in each row of `table`
        self.table = wide[self.numbers]  # cell after cell, each filled up to whole tiles
        self._n_probed = min(n_probed, len(self._means))

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """Return the number of the nearest centroid of each row of `vectors`, float32: shape (n,)."""
        return self.numbers[self.rows(vectors)]

    def rows(self, vectors: np.ndarray) -> np.ndarray:
        """Return the row of `table` that holds the nearest centroid of each of `vectors`, float32: shape (n,), int32.

        Raises:
            ValueError: If a vector is not finite.
        """
        from legal_rag.library.plaid.packing import nearest_rows

        cells = _nearest_cells(vectors, self._means, self._n_probed)
        rows, scores = np.empty(len(vectors), dtype=np.int32), np.empty(len(vectors), dtype=np.float32)
        nearest_rows(vectors, cells, self.table, self._starts, rows, scores)
        if not np.isfinite(scores).all():
            raise ValueError(NOT_FINITE)
        return rows


def _sort_into_cells(centroids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cluster centroids by k-means: means of the cells that have any, and the cell of each centroid.

    For n centroids about sqrt(2n) cells: with several of them probed, that makes the fewest products.
    """
    from legal_rag.library.plaid.packing import add_rows

    n_cells = int(math.sqrt(2 * len(centroids)))
    means = centroids[np.linspace(0, len(centroids) - 1, n_cells).astype(np.int64)]
    for _ in range(CELL_ITERATIONS):
        cells, sums = _nearest_cells(centroids, means, 1)[:, 0], np.zeros_like(means)
        add_rows(centroids, cells, sums)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        means = np.where(lengths < 1e-6, means, sums / np.maximum(lengths, 1e-12))
    used, cells = np.unique(_nearest_cells(centroids, means, 1)[:, 0], return_inverse=True)
    return means[used], cells


def _nearest_cells(vectors: np.ndarray, means: np.ndarray, n: int) -> np.ndarray:
    """Return the `n` cells nearest to each vector: shape (n_vectors, n), int32."""
    from legal_rag.library.plaid.packing import nearest_cells

    cells = np.empty((len(vectors), n), dtype=np.int32)
    nearest_cells(vectors, _fill_tiles(means), len(means), cells)
    return cells


def _fill_tiles(rows: np.ndarray) -> np.ndarray:
    """Repeat the last row until rows fill whole tiles of the kernels."""
    from legal_rag.library.plaid.packing import TILE

    return np.concatenate([rows, np.repeat(rows[-1:], -len(rows) % TILE, axis=0)])


class Packer:
    """Packs blocks of token vectors with a codebook; for any number of threads at once."""

    def __init__(self, codec: Codec) -> None:
        self._nearest, self._cutoffs, self._n_bits = NearestCentroids(codec.centroids), codec.cutoffs, codec.n_bits
        self._numbers = self._nearest.numbers.astype(code_type(len(codec.centroids)))
        self._stored = _stored_bits(codec.n_bits)

    def __call__(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the tokens' centroids, and their packed residuals, shape (n, dim * bits / 8), uint8.

        Args:
            vectors: Shape (n, dim), unit rows.

        Raises:
            ValueError: If a vector is not finite or its dim is not the codebook's.
        """
        from legal_rag.library.plaid.packing import pack_residuals

        vectors, table = np.ascontiguousarray(vectors, dtype=np.float32), self._nearest.table
        if vectors.ndim != 2 or vectors.shape[1] != table.shape[1]:
            raise ValueError(f"token vectors of shape {vectors.shape} do not fit a codebook of dim {table.shape[1]}")
        rows = self._nearest.rows(vectors)
        packed = np.empty((len(vectors), vectors.shape[1] * self._n_bits // 8), dtype=np.uint8)
        pack_residuals(vectors, table, rows, self._cutoffs, self._stored, packed)
        return self._numbers[rows], packed


def code_type(n_centroids: int) -> type[np.signedinteger]:
    """Return the type of codes for `n_centroids`: two bytes where they suffice."""
    return np.int16 if n_centroids <= 2**15 else np.int32


def _stored_bits(n_bits: int) -> np.ndarray:
    """Return the `n_bits` bits that each bucket number is stored as."""
    numbers = np.arange(2**n_bits, dtype=np.uint8)
    alone = np.zeros((len(numbers), 8 // n_bits), dtype=np.uint8)
    alone[:, -1] = numbers  # in the last dimension of a byte, its bits are the lowest
    return pack_buckets(alone, n_bits)[:, 0]


def _release(vectors: np.ndarray) -> None:
    mapped = getattr(vectors, "_mmap", None)
    # Only of a file mapped read-only: other pages may hold unwritten data.
    if mapped is not None and getattr(vectors, "mode", None) == "r" and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
