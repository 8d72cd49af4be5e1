"""Train a shard's codebook: centroids and residual buckets."""

import math
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from legal_rag.encoder.runtime import product_dtype
from legal_rag.library.plaid.files import pack_buckets

KMEANS_ITERATIONS = 4  # fast-plaid's own
POINTS_PER_CENTROID = 32  # tokens that k-means sees for each centroid; fast-plaid takes up to 256
RESIDUAL_SAMPLE = 16_384  # tokens that the buckets are fitted to
BLOCK_TOKENS = 4096  # tokens read and packed in one go
KMEANS_TOKENS = 512  # tokens that k-means multiplies with all centroids in one go: a tenth faster than 4,096
PRODUCT_TOKENS = 256  # tokens multiplied with all centroids in one go: their products stay in the processor's cache


class Buckets(NamedTuple):
    """How residuals are quantised."""

    cutoffs: np.ndarray  # (2^bits - 1,), float32, rising
    weights: np.ndarray  # (2^bits,), float32: the residual that each bucket decodes to
    mean_residual: np.ndarray  # (dim,), float32, of absolute values
    threshold: np.ndarray  # (1,), float32: three quarters of the tokens lie nearer to their centroids


def count_centroids(n_tokens: int) -> int:
    """Return how many centroids an index of `n_tokens` gets: the power of two below 16 * sqrt(n_tokens)."""
    return min(n_tokens, int(2 ** math.floor(math.log2(16 * math.sqrt(n_tokens)))))


def read_blocks(vectors: np.ndarray, rows: np.ndarray | None = None) -> Iterator[np.ndarray]:
    """Yield `vectors`, or some of their rows in rising order, as float32 blocks of BLOCK_TOKENS.

    Pages of a mapped file are released once read, or they would count as this process's memory.
    """
    total = len(vectors) if rows is None else len(rows)
    for start in range(0, total, BLOCK_TOKENS):
        chosen = slice(start, min(start + BLOCK_TOKENS, total)) if rows is None else rows[start : start + BLOCK_TOKENS]
        yield np.asarray(vectors[chosen], dtype=np.float32)
        _release(vectors)


def sample_rows(n_rows: int, size: int, generator: np.random.Generator) -> np.ndarray:
    """Sample rows, in rising order so that a file is read forwards."""
    return np.sort(generator.choice(n_rows, size, replace=False)) if size < n_rows else np.arange(n_rows)


def train_centroids(vectors: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Cluster a sample of the tokens.

    Args:
        vectors: Shape (n_tokens, dim), unit rows.
        generator: Chooses the sample and seeds the k-means.

    Returns:
        Shape (n_centroids, dim), float16, unit rows.
    """
    import torch
    from fastkmeans import FastKMeans

    n_centroids = count_centroids(len(vectors))
    rows = sample_rows(len(vectors), n_centroids * POINTS_PER_CENTROID, generator)
    kmeans = FastKMeans(
        d=vectors.shape[1],
        k=n_centroids,
        niter=KMEANS_ITERATIONS,
        gpu=False,
        seed=int(generator.integers(2**31)),
        max_points_per_centroid=None,
        chunk_size_data=KMEANS_TOKENS,
        dtype=product_dtype(),
        use_triton=False,
    )
    with torch.random.fork_rng(), _numpy_state_kept():  # fastkmeans seeds the whole process
        kmeans.train(_read_rows(vectors, rows))
    centroids = np.asarray(kmeans.centroids, dtype=np.float32)
    return (centroids / np.maximum(np.linalg.norm(centroids, axis=1, keepdims=True), 1e-12)).astype(np.float16)


def _read_rows(vectors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return some rows in their stored precision: float32 would double the peak memory of a build."""
    sample = np.empty((len(rows), vectors.shape[1]), dtype=vectors.dtype)
    at = 0
    for block in read_blocks(vectors, rows):
        sample[at : at + len(block)] = block
        at += len(block)
    return sample


@contextmanager
def _numpy_state_kept() -> Iterator[None]:
    state = np.random.get_state()
    try:
        yield
    finally:
        np.random.set_state(state)


class NearestCentroids:
    """The centroid with the highest dot product, for blocks of vectors."""

    def __init__(self, centroids: np.ndarray) -> None:
        import torch

        # bfloat16 errs only between centroids about equally near; the residual is taken from the chosen one.
        self._dtype = product_dtype()
        self._integers = torch.int16 if self._dtype == torch.bfloat16 else torch.int32
        self._table = torch.from_numpy(centroids.astype(np.float32)).to(self._dtype).T
        self._products: Any = torch.empty((PRODUCT_TOKENS, len(centroids)), dtype=self._dtype)

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """Return the number of the nearest centroid of each row of `vectors`, float32: shape (n,), int32."""
        import torch

        from legal_rag.library.plaid.kernels import argmax_rows

        nearest = np.empty(len(vectors), dtype=np.int32)
        rounded = torch.from_numpy(vectors).to(self._dtype)
        for start in range(0, len(vectors), PRODUCT_TOKENS):
            rows = rounded[start : start + PRODUCT_TOKENS]
            products = torch.mm(rows, self._table, out=self._products[: len(rows)]).view(self._integers).numpy()
            # On this thread alone: torch's threads are busy-waiting for the next product.
            argmax_rows(products, nearest[start : start + len(rows)])
        return nearest


def fit_buckets(vectors: np.ndarray, centroids: np.ndarray, n_bits: int, generator: np.random.Generator) -> Buckets:
    """Fit the buckets to a sample's residuals: cutoffs at equal masses, weights at the middle of each mass."""
    rows = sample_rows(len(vectors), RESIDUAL_SAMPLE, generator)
    nearest, wide = NearestCentroids(centroids), centroids.astype(np.float32)
    residuals = np.concatenate([block - wide[nearest(block)] for block in read_blocks(vectors, rows)])
    steps = 2 ** (n_bits + 1)
    quantiles = np.quantile(residuals, np.arange(1, steps) / steps).astype(np.float32)
    return Buckets(
        cutoffs=quantiles[1::2],
        weights=quantiles[::2],
        mean_residual=np.abs(residuals).mean(axis=0).astype(np.float32),
        threshold=np.quantile(np.linalg.norm(residuals, axis=1), [0.75]).astype(np.float32),
    )


def compress(
    vectors: np.ndarray, centroids: np.ndarray, buckets: Buckets, n_bits: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield block by block the tokens' centroids, int32, and their packed residuals, (n, dim * bits / 8), uint8."""
    from legal_rag.library.plaid.kernels import pack_residuals

    nearest, wide = NearestCentroids(centroids), centroids.astype(np.float32)
    stored = _stored_bits(n_bits)
    for block in read_blocks(vectors):
        codes = nearest(block)
        packed = np.empty((len(block), block.shape[1] * n_bits // 8), dtype=np.uint8)
        pack_residuals(block, wide, codes, buckets.cutoffs, stored, packed)
        yield codes, packed


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
