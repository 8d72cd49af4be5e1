"""Numba kernels of packing: sums of clusters, nearest centroids in two steps, quantised residuals."""

import numpy as np
from numba import njit

FAST = {"reassoc", "contract"}  # sums may be taken in another order; infinities keep their meaning
TILE = 4  # vectors and centroids multiplied in one go


@njit(nogil=True, cache=True)
def add_rows(vectors: np.ndarray, places: np.ndarray, sums: np.ndarray) -> None:
    """Add each vector, shape (n, dim), to the row of `sums` that `places`, shape (n,), has for it; all float32."""
    for i in range(len(vectors)):
        row, vector = sums[places[i]], vectors[i]
        for d in range(len(row)):
            row[d] += vector[d]


@njit(nogil=True, cache=True)
def nearest_cells(vectors: np.ndarray, means: np.ndarray, n_cells: int, out: np.ndarray) -> None:
    """Find the cells with the highest dot products, the first among equals.

    Args:
        vectors: Shape (n, dim), float32.
        means: Float32, a row for each cell, padded to a multiple of TILE.
        n_cells: How many of them are not padding; at least `out` has columns.
        out: Shape (n, n_nearest), int32, filled, nearest first; 0 where a vector's products are NaN.
    """
    n_nearest = out.shape[1]
    best = np.empty(n_nearest, dtype=np.float32)
    tile = np.empty((TILE, vectors.shape[1]), dtype=np.float32)
    products = np.empty((TILE, len(means)), dtype=np.float32)
    for start in range(0, len(vectors), TILE):
        n = min(TILE, len(vectors) - start)
        for k in range(n):
            tile[k] = vectors[start + k]
        _multiply_tile(tile, means, products)
        for k in range(n):
            cells = out[start + k]
            best[:] = -np.inf
            cells[:] = 0
            for cell in range(n_cells):
                product = products[k, cell]
                if product > best[-1]:
                    place = n_nearest - 1
                    while place > 0 and product > best[place - 1]:
                        best[place], cells[place] = best[place - 1], cells[place - 1]
                        place -= 1
                    best[place], cells[place] = product, cell


@njit(nogil=True, cache=True)
def nearest_rows(
    vectors: np.ndarray,
    cells: np.ndarray,
    table: np.ndarray,
    starts: np.ndarray,
    out: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Find among the rows of some cells the one with the highest dot product, the first among equals.

    Vectors are taken cell by cell, so that a cell's rows are read once for all of them.

    Args:
        vectors: Shape (n, dim), float32.
        cells: Shape (n, n_probed), int32: the cells to look into for each vector.
        table: Shape (n_rows, dim), float32, cell after cell, each a multiple of TILE rows.
        starts: Shape (n_cells + 1,), where each cell begins in `table`.
        out: Shape (n,), int32, filled with rows.
        scores: Shape (n,), float32, filled with their products; minus infinity where all are NaN.
    """
    n_cells, n_probed = len(starts) - 1, cells.shape[1]
    bounds = np.zeros(n_cells + 1, dtype=np.int64)
    for i in range(len(vectors)):
        for cell in cells[i]:
            bounds[cell + 1] += 1
    bounds = np.cumsum(bounds)
    at = bounds.copy()
    members = np.empty(len(vectors) * n_probed, dtype=np.int32)
    for i in range(len(vectors)):
        for cell in cells[i]:
            members[at[cell]] = i
            at[cell] += 1
    tile = np.empty((TILE, vectors.shape[1]), dtype=np.float32)
    products = np.empty((TILE, np.diff(starts).max()), dtype=np.float32)
    out[:] = 0
    scores[:] = -np.inf
    for cell in range(n_cells):
        first, n_rows = starts[cell], starts[cell + 1] - starts[cell]
        for start in range(bounds[cell], bounds[cell + 1], TILE):
            n = min(TILE, bounds[cell + 1] - start)
            for k in range(n):
                tile[k] = vectors[members[start + k]]
            _multiply_tile(tile, table[first : first + n_rows], products)
            for k in range(n):
                row = products[k, :n_rows]
                best = row[0]
                for product in row:
                    best = max(best, product)
                if best > scores[members[start + k]]:
                    scores[members[start + k]] = best
                    for j in range(n_rows):
                        if row[j] == best:
                            out[members[start + k]] = first + j
                            break


@njit(nogil=True, cache=True, fastmath=FAST)
def _multiply_tile(tile: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """Multiply TILE vectors with rows in a multiple of TILE; sixteen sums stay in registers."""
    t0, t1, t2, t3 = tile[0], tile[1], tile[2], tile[3]
    for r in range(0, len(rows), TILE):
        r0, r1, r2, r3 = rows[r], rows[r + 1], rows[r + 2], rows[r + 3]
        s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = np.float32(0.0)
        s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = np.float32(0.0)
        for d in range(len(t0)):
            a0, a1, a2, a3 = t0[d], t1[d], t2[d], t3[d]
            b0, b1, b2, b3 = r0[d], r1[d], r2[d], r3[d]
            s00 += a0 * b0
            s01 += a0 * b1
            s02 += a0 * b2
            s03 += a0 * b3
            s10 += a1 * b0
            s11 += a1 * b1
            s12 += a1 * b2
            s13 += a1 * b3
            s20 += a2 * b0
            s21 += a2 * b1
            s22 += a2 * b2
            s23 += a2 * b3
            s30 += a3 * b0
            s31 += a3 * b1
            s32 += a3 * b2
            s33 += a3 * b3
        out[0, r], out[0, r + 1], out[0, r + 2], out[0, r + 3] = s00, s01, s02, s03
        out[1, r], out[1, r + 1], out[1, r + 2], out[1, r + 3] = s10, s11, s12, s13
        out[2, r], out[2, r + 1], out[2, r + 2], out[2, r + 3] = s20, s21, s22, s23
        out[3, r], out[3, r + 1], out[3, r + 2], out[3, r + 3] = s30, s31, s32, s33


@njit(nogil=True, cache=True)
def pack_residuals(
    vectors: np.ndarray,
    centroids: np.ndarray,
    codes: np.ndarray,
    cutoffs: np.ndarray,
    stored: np.ndarray,
    out: np.ndarray,
) -> None:
    """Quantise and pack the residuals of tokens: vector less centroid.

    Args:
        vectors: Shape (n, dim), float32.
        centroids: Shape (n_centroids, dim), float32.
        codes: Shape (n,), the tokens' centroids.
        cutoffs: Shape (2^bits - 1,), float32, rising: a residual's bucket is the number of cutoffs below it.
        stored: Shape (2^bits,), uint8: the bits that encode each bucket, as `pack_buckets` orders them.
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
