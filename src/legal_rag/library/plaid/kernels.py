"""Numba kernels of late interaction: candidate scores, MaxSim from packed codes, packing."""

import numpy as np
from numba import njit

# Sums may be taken in another order; infinities keep their meaning, since a maximum starts from one.
FAST = {"reassoc", "contract"}
TILE = 4  # tokens and query tokens multiplied in one go
BINS = 512  # of the histogram that finds the nearest centroids
KEY_BITS = 12  # of an integer that holds a product and, in these, a token's number in its passage


@njit(nogil=True, cache=True, fastmath=FAST)
def probe(
    centroid_scores: np.ndarray,
    n_probe: int,
    ivf: np.ndarray,
    ivf_starts: np.ndarray,
    seen: np.ndarray,
    out: np.ndarray,
) -> bool:
    """Score all passages by the query tokens' nearest centroids.

    A passage gets, for each query token, the score of the best probed centroid that it has a token of. Where it has
    none, it gets the score of the last centroid probed, which its own best cannot exceed (Lee et al., XTR, 2023).

    Args:
        centroid_scores: Shape (n_query_tokens, n_centroids), float32.
        n_probe: How many centroids are visited for each query token, at least.
        ivf: Passages by centroid.
        ivf_starts: Shape (n_centroids + 1,), where each centroid's passages begin in `ivf`.
        seen: Shape (n_passages,), int32, scratch.
        out: Shape (n_passages,), float32, filled with the scores.

    Returns:
        Whether all passages in the lists exist.
    """
    n_passages = len(out)
    out[:] = 0
    seen[:] = -1
    floor = np.float32(0.0)
    for q in range(len(centroid_scores)):
        row = centroid_scores[q]
        nearest = _nearest(row, n_probe)
        missing = row[nearest[-1]]
        floor += missing
        for centroid in nearest:
            gain = row[centroid] - missing
            for i in range(ivf_starts[centroid], ivf_starts[centroid + 1]):
                passage = ivf[i]
                if passage < 0 or passage >= n_passages:
                    return False
                if seen[passage] != q:
                    seen[passage] = q
                    out[passage] += gain
    out += floor
    return True


@njit(nogil=True, cache=True, fastmath=FAST)
def _nearest(row: np.ndarray, n: int) -> np.ndarray:
    """Return the places of the highest values, highest first: `n`, or a few more where they are close together."""
    low, high = np.float32(np.inf), np.float32(-np.inf)
    for value in row:
        low, high = min(low, value), max(high, value)
    scale = np.float32(BINS - 1) / max(high - low, np.float32(1e-12))
    counts = np.zeros(BINS, dtype=np.int32)
    bins = np.empty(len(row), dtype=np.int32)
    for i in range(len(row)):
        # Bounded in integers: a damaged file may hold numbers that are none.
        place = np.int32((row[i] - low) * scale)
        bins[i] = 0 if place < 0 else BINS - 1 if place >= BINS else place
    for i in range(len(row)):
        counts[bins[i]] += 1
    last, found = BINS - 1, counts[BINS - 1]
    while found < n and last > 0:
        last -= 1
        found += counts[last]
    places = np.empty(found, dtype=np.int32)
    at = 0
    for i in range(len(row)):
        if bins[i] >= last:
            places[at] = i
            at += 1
    return places[np.argsort(-row[places])]


@njit(nogil=True, cache=True, fastmath=FAST)
def estimate_scores(
    codes: np.ndarray,
    residuals: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    centroids: np.ndarray,
    table: np.ndarray,
    query: np.ndarray,
    keys: np.ndarray,
    out: np.ndarray,
) -> bool:
    """Score passages by the two tokens of each that lie nearest to each query token, judged by their centroids.

    Only these are decompressed, a tenth of a long passage's. The estimate never exceeds the exact score.

    Args:
        codes: As for `decompress`, and so are the next five.
        residuals: See `decompress`.
        starts: See `decompress`.
        ends: See `decompress`.
        centroids: See `decompress`.
        table: See `decompress`.
        query: Shape (n_query_tokens, dim), float32.
        keys: Shape (n_centroids, n_query_tokens), int32: their products in the upper bits, `KEY_BITS` lower ones free.
        out: Shape (n_passages,), float32, filled with the estimates.

    Returns:
        Whether all centroids exist.
    """
    n_query = len(query)
    best, second = np.empty(n_query, dtype=np.int32), np.empty(n_query, dtype=np.int32)
    scores = np.empty(n_query, dtype=np.float32)
    segment = 1 << KEY_BITS
    places = np.empty(segment, dtype=np.int32)
    vectors = np.empty((2 * n_query, centroids.shape[1]), dtype=np.float32)
    for passage in range(len(starts)):
        scores[:] = -np.inf
        for start in range(starts[passage], ends[passage], segment):
            n_tokens = min(segment, ends[passage] - start)
            if not _two_nearest(codes, start, n_tokens, keys, best, second):
                return False
            places[:n_tokens] = -1
            n_vectors = 0
            for q in range(n_query):
                for key in (best[q], second[q]):
                    token = key & (segment - 1)
                    if places[token] < 0:
                        _decompress_passage(
                            codes, residuals, start + token, 1, centroids, table, vectors[n_vectors : n_vectors + 1]
                        )
                        places[token] = n_vectors
                        n_vectors += 1
                    scores[q] = max(scores[q], _dot(query[q], vectors[places[token]]))
        total = np.float32(0.0)
        for q in range(n_query):
            total += scores[q]
        out[passage] = total
    return True


@njit(nogil=True, cache=True, fastmath=FAST)
def _two_nearest(
    codes: np.ndarray, start: int, n_tokens: int, keys: np.ndarray, best: np.ndarray, second: np.ndarray
) -> bool:
    """Find for each query token the keys of the two nearest tokens, each with the token's number added."""
    best[:] = 0
    second[:] = 0
    for token in range(n_tokens):
        code = codes[start + token]
        if code < 0 or code >= len(keys):
            return False
        row = keys[code]
        for q in range(len(best)):
            key = row[q] + np.int32(token)
            second[q] = max(second[q], min(key, best[q]))
            best[q] = max(best[q], key)
    return True


@njit(nogil=True, cache=True, fastmath=FAST)
def _dot(a: np.ndarray, b: np.ndarray) -> np.float32:
    total = np.float32(0.0)
    for d in range(len(a)):
        total += a[d] * b[d]
    return total


@njit(nogil=True, cache=True, fastmath=FAST)
def decompress(
    codes: np.ndarray,
    residuals: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    centroids: np.ndarray,
    table: np.ndarray,
    out: np.ndarray,
) -> bool:
    """Rebuild token vectors: centroid plus residual, brought back to unit length.

    Args:
        codes: Shape (n_tokens,), of one part of a shard.
        residuals: Shape (n_tokens, dim * bits / 8), uint8, of the same part.
        starts: Shape (n_passages,), where each passage's tokens begin in the part.
        ends: Shape (n_passages,), where they end.
        centroids: Shape (n_centroids, dim), float32.
        table: Shape (256, 4 / bits), float64: the residuals that each byte stands for, two float32 in each number.
        out: Shape (n_wanted_tokens, dim), float32, filled with unit rows, passages one after the other.

    Returns:
        Whether all centroids exist.
    """
    row = 0
    for passage in range(len(starts)):
        n_tokens = ends[passage] - starts[passage]
        if not _decompress_passage(codes, residuals, starts[passage], n_tokens, centroids, table, out[row:]):
            return False
        row += n_tokens
    return True


@njit(nogil=True, cache=True, fastmath=FAST)
def max_sim(
    codes: np.ndarray,
    residuals: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    centroids: np.ndarray,
    table: np.ndarray,
    queries: np.ndarray,
    query_starts: np.ndarray,
    wanted: np.ndarray,
    out: np.ndarray,
) -> bool:
    """Score passages exactly, each decompressed once for all queries.

    Args:
        codes: As for `decompress`, and so are the next five.
        residuals: See `decompress`.
        starts: See `decompress`.
        ends: See `decompress`.
        centroids: See `decompress`.
        table: See `decompress`.
        queries: Shape (n, dim), float32: all queries' tokens, each query filled up with rows of zeros to a multiple
            of TILE; these add nothing to a score.
        query_starts: Shape (n_queries + 1,), where each query begins in `queries`.
        wanted: Shape (n_queries, n_passages), bool: whether the query wants the passage scored.
        out: Shape (n_queries, n_passages), float32, filled with MaxSim scores where wanted.

    Returns:
        Whether all centroids exist.
    """
    longest = (ends - starts).max()
    vectors = np.empty((longest + TILE, centroids.shape[1]), dtype=np.float32)
    for passage in range(len(starts)):
        n_tokens = ends[passage] - starts[passage]
        if not _decompress_passage(codes, residuals, starts[passage], n_tokens, centroids, table, vectors):
            return False
        padded = -(-n_tokens // TILE) * TILE
        for row in range(n_tokens, padded):
            vectors[row] = vectors[n_tokens - 1]  # once more the same token changes no maximum
        for query in range(len(wanted)):
            if wanted[query, passage]:
                tokens = queries[query_starts[query] : query_starts[query + 1]]
                out[query, passage] = _max_sim_of_tiles(vectors[:padded], tokens)
    return True


@njit(nogil=True, cache=True, fastmath=FAST)
def _max_sim_of_tiles(vectors: np.ndarray, query: np.ndarray) -> np.float32:
    """Return MaxSim; both have rows in multiples of TILE, whose sixteen sums stay in registers."""
    total = np.float32(0.0)
    for q in range(0, len(query), TILE):
        q0, q1, q2, q3 = query[q], query[q + 1], query[q + 2], query[q + 3]
        best0 = best1 = best2 = best3 = np.float32(-np.inf)
        for t in range(0, len(vectors), TILE):
            t0, t1, t2, t3 = vectors[t], vectors[t + 1], vectors[t + 2], vectors[t + 3]
            s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = np.float32(0.0)
            s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = np.float32(0.0)
            for d in range(len(t0)):
                a0, a1, a2, a3 = q0[d], q1[d], q2[d], q3[d]
                b0, b1, b2, b3 = t0[d], t1[d], t2[d], t3[d]
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
            best0 = max(best0, s00, s01, s02, s03)
            best1 = max(best1, s10, s11, s12, s13)
            best2 = max(best2, s20, s21, s22, s23)
            best3 = max(best3, s30, s31, s32, s33)
        total += best0 + best1 + best2 + best3
    return total


@njit(nogil=True, cache=True, fastmath=FAST)
def _decompress_passage(
    codes: np.ndarray,
    residuals: np.ndarray,
    start: int,
    n_tokens: int,
    centroids: np.ndarray,
    table: np.ndarray,
    out: np.ndarray,
) -> bool:
    pairs = table.shape[1]
    out_pairs = out.view(np.float64)
    for row in range(n_tokens):
        code = codes[start + row]
        if code < 0 or code >= len(centroids):
            return False
        packed, unpacked = residuals[start + row], out_pairs[row]
        if pairs == 1:  # four bits, the usual: one byte, one copy
            for byte in range(len(packed)):
                unpacked[byte] = table[packed[byte], 0]
        else:
            for byte in range(len(packed)):
                for pair in range(pairs):
                    unpacked[byte * pairs + pair] = table[packed[byte], pair]
        _add_and_scale(out[row], centroids[code])
    return True


@njit(nogil=True, cache=True, fastmath=FAST)
def _add_and_scale(vector: np.ndarray, centroid: np.ndarray) -> None:
    squares = np.float32(0.0)
    for d in range(len(vector)):
        value = vector[d] + centroid[d]
        vector[d] = value
        squares += value * value
    scale = np.float32(1.0) / max(np.sqrt(squares), np.float32(1e-12))
    for d in range(len(vector)):
        vector[d] *= scale


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
        means: Float32, a row for each cell, filled up to a multiple of TILE.
        n_cells: How many of them are no filling; at least `out` has columns.
        out: Shape (n, n_nearest), int32, filled, nearest first; with 0 where a vector's products are no numbers.
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
        scores: Shape (n,), float32, filled with their products; minus infinity where none is a number.
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
