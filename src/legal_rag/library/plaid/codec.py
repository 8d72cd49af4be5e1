"""Train a shard's codebook: centroids and residual buckets."""

import math
import mmap
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from legal_rag.encoder.runtime import OpenVinoError, compile_model, import_openvino, multiplies_bfloat16
from legal_rag.library.plaid.files import pack_buckets

KMEANS_ITERATIONS = 4  # fast-plaid's own
POINTS_PER_CENTROID = 32  # tokens that k-means sees for each centroid; fast-plaid takes up to 256
RESIDUAL_SAMPLE = 16_384  # tokens that the buckets are fitted to
BLOCK_TOKENS = 4096  # tokens read and packed in one go
SMALL_CODEBOOK = 1024  # centroids
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
    """Cluster a sample of the tokens by spherical k-means (Dhillon and Modha, 2001).

    Args:
        vectors: Shape (n_tokens, dim), unit rows.
        generator: Chooses the sample and the first centroids.

    Returns:
        Shape (n_centroids, dim), float16, unit rows.
    """
    n_centroids = count_centroids(len(vectors))
    sample = _read_rows(vectors, sample_rows(len(vectors), n_centroids * POINTS_PER_CENTROID, generator))
    centroids = sample[sample_rows(len(sample), n_centroids, generator)].astype(np.float32)
    for _ in range(KMEANS_ITERATIONS):
        sums = _sums_by_centroid(sample, centroids)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        lost = np.flatnonzero(lengths[:, 0] < 1e-6)  # nearest to no token: each begins anew at one
        centroids = sums / np.maximum(lengths, 1e-12)
        centroids[lost] = sample[generator.integers(len(sample), size=len(lost))]
    return centroids.astype(np.float16)


def _sums_by_centroid(sample: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    """Sum the vectors that each centroid is nearest to: shape (n_centroids, dim), float32."""
    from scipy.sparse import csr_array

    nearest, sums = NearestCentroids(centroids), np.zeros_like(centroids)
    for block in read_blocks(sample):
        members = (np.ones(len(block), dtype=np.float32), (nearest(block), np.arange(len(block))))
        sums += csr_array(members, shape=(len(centroids), len(block))) @ block
    return sums


def _read_rows(vectors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return some rows in their stored precision: float32 would double the peak memory of a build."""
    sample = np.empty((len(rows), vectors.shape[1]), dtype=vectors.dtype)
    at = 0
    for block in read_blocks(vectors, rows):
        sample[at : at + len(block)] = block
        at += len(block)
    return sample


class NearestCentroids:
    """The centroid with the highest dot product, for blocks of vectors."""

    def __init__(self, centroids: np.ndarray) -> None:
        self._table = centroids.astype(np.float32)
        self._multiply: Callable[[np.ndarray], np.ndarray] = self._multiply_exactly
        if len(centroids) > SMALL_CODEBOOK:  # below, compiling takes longer than the products
            with suppress(ImportError, OpenVinoError):  # OpenVINO does not run here
                self._multiply = _CompiledProducts(self._table)

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """Return the number of the nearest centroid of each row of `vectors`, float32: shape (n,), int32."""
        from legal_rag.library.plaid.kernels import argmax_rows

        nearest = np.empty(len(vectors), dtype=np.int32)
        for start in range(0, len(vectors), PRODUCT_TOKENS):
            rows = slice(start, start + PRODUCT_TOKENS)
            argmax_rows(self._multiply(vectors[rows]), nearest[rows])
        return nearest

    def _multiply_exactly(self, rows: np.ndarray) -> np.ndarray:
        return (rows @ self._table.T).view(np.int32)


class _CompiledProducts:
    """Products of up to PRODUCT_TOKENS vectors with a table, by OpenVINO, as integers that compare as they do."""

    def __init__(self, table: np.ndarray) -> None:
        openvino = import_openvino()
        from openvino import opset15

        # bfloat16 errs only between centroids about equally near; the residual is taken from the chosen one.
        number, kind = ("bf16", np.int16) if multiplies_bfloat16() else ("f32", np.int32)
        block = opset15.parameter([PRODUCT_TOKENS, table.shape[1]], np.float32)
        products = opset15.convert(opset15.matmul(block, opset15.constant(table), False, True), number)
        graph = openvino.Model([opset15.result(products)], [block], "products")
        self._request = compile_model(graph, n_streams=1).create_infer_request()
        self._block = np.zeros((PRODUCT_TOKENS, table.shape[1]), dtype=np.float32)
        self._products = np.empty((PRODUCT_TOKENS, len(table)), dtype=kind)
        shared = openvino.Tensor(self._products, list(self._products.shape), getattr(openvino.Type, number))
        self._request.set_output_tensor(shared)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        self._block[: len(rows)] = rows
        self._request.infer([self._block], share_inputs=True, share_outputs=True)
        return self._products[: len(rows)]


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
