"""The inner loops of writing a PLAID shard, compiled by numba.

In: products or vectors. Out: labels or packed residuals. Every kernel runs without Python's lock, on one core.
"""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def argmax_rows(products: np.ndarray, out: np.ndarray) -> None:
    """Find the place of each row's highest value, the first among equals.

    Floats compare as the integers of the same bits do, unless both are negative; and integers compare many at a time.

    Args:
        products: Shape (n_rows, n_columns): finite floats, seen as integers of their width.
        out: Shape (n_rows,), int32, filled with column numbers.
    """
    for i in range(len(products)):
        row = products[i]
        best = row[0]
        for value in row:
            best = max(best, value)
        if best < 0:  # all are negative: the nearest to zero is the lowest integer
            for value in row:
                best = min(best, value)
        for j in range(len(row)):
            if row[j] == best:
                out[i] = j
                break


@njit(nogil=True, cache=True)
def pack_residuals(
    vectors: np.ndarray,
    centroids: np.ndarray,
    codes: np.ndarray,
    cutoffs: np.ndarray,
    stored: np.ndarray,
    out: np.ndarray,
) -> None:
    """Quantise what a token's centroid leaves of it, and pack it.

    Args:
        vectors: Shape (n, dim), float32.
        centroids: Shape (n_centroids, dim), float32.
        codes: Shape (n,), the tokens' centroids.
        cutoffs: Shape (2^bits - 1,), float32, rising: a residual's bucket is the number of cutoffs below it.
        stored: Shape (2^bits,), uint8: the bits that stand for each bucket, as `pack_buckets` orders them.
        out: Shape (n, dim * bits / 8), uint8, filled.
    """
    dim, width = vectors.shape[1], out.shape[1]
    per_byte = dim // width
    n_bits = 8 // per_byte
    residual = np.empty(dim, dtype=np.float32)
    buckets = np.empty(dim, dtype=np.int32)
    for i in range(len(vectors)):
        vector, centroid = vectors[i], centroids[codes[i]]
        for d in range(dim):
            residual[d] = vector[d] - centroid[d]
            buckets[d] = 0
        for cutoff in cutoffs:
            for d in range(dim):
                buckets[d] += residual[d] > cutoff
        for byte in range(width):
            packed = np.uint8(0)
            for j in range(per_byte):
                packed = np.uint8((packed << n_bits) | stored[buckets[byte * per_byte + j]])
            out[i, byte] = packed
