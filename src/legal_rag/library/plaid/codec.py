"""Codebooks for token vectors: training, storing, packing vectors with one, writing a shard in fast-plaid's format."""

import json
import math
import mmap
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numba import njit

from legal_rag.base.files import link_or_copy, write_whole, written_whole
from legal_rag.base.futures import results_of
from legal_rag.encoder.runtime import n_lanes
from legal_rag.library.plaid.files import (
    CENTROIDS,
    CODEC_FILES,
    LISTS,
    METADATA,
    PLAN,
    PlaidFiles,
    PlaidParts,
    PlaidSource,
    lengths_of,
    map_array,
    open_files,
    pack_buckets,
    part_files,
    parts_of,
    read_counts,
)

MAX_CENTROIDS = 2**13  # by default; below 2^15, so that a code takes two bytes
POINTS_PER_CENTROID = 16  # tokens that k-means sees for each; with 64 the mean cosine is 0.9993 instead of 0.9992
SAMPLE_TOKENS = MAX_CENTROIDS * POINTS_PER_CENTROID  # all that training uses
KMEANS_ITERATIONS = 5
PROBED_CELLS = 8  # of about 128: 99 tokens in 100 get the centroid that is truly nearest, the others one about as near
CELL_ITERATIONS = 6  # of the k-means that sorts centroids into cells
BUCKET_TOKENS = 8192  # tokens that the buckets are fitted to
LEVEL_ITERATIONS = 50
BLOCK_TOKENS = 4096  # tokens read and packed in one go
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
        yield from results_of((pool.submit(function, block) for block in blocks), 2 * n_lanes() + 1)


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

    The sample has shape (n_tokens, dim), unit rows, float16 or float32. `n_centroids` is by default one for
    POINTS_PER_CENTROID tokens, in a power of two up to MAX_CENTROIDS, or as many as fast-plaid would take if more.
    ValueError if there is no token, one is not finite, or rows do not fill bytes.
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

    FileNotFoundError if one of its files is missing; ValueError if one is damaged, or they contradict one another.
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

        ValueError if a vector is not finite.
        """
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
    cells = np.empty((len(vectors), n), dtype=np.int32)
    nearest_cells(vectors, _fill_tiles(means), len(means), cells)
    return cells


def _fill_tiles(rows: np.ndarray) -> np.ndarray:
    """Repeat the last row until rows fill whole tiles of the kernels."""
    return np.concatenate([rows, np.repeat(rows[-1:], -len(rows) % TILE, axis=0)])


class Packer:
    """Packs blocks of token vectors with a codebook; for any number of threads at once."""

    def __init__(self, codec: Codec) -> None:
        self._nearest, self._cutoffs, self._n_bits = NearestCentroids(codec.centroids), codec.cutoffs, codec.n_bits
        self._numbers = self._nearest.numbers.astype(code_type(len(codec.centroids)))

    def __call__(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the centroids of tokens, unit rows (n, dim), and their packed residuals, (n, dim * bits / 8), uint8.

        ValueError if a vector is not finite or its dim is not the codebook's.
        """
        vectors, table = np.ascontiguousarray(vectors, dtype=np.float32), self._nearest.table
        if vectors.ndim != 2 or vectors.shape[1] != table.shape[1]:
            raise ValueError(f"token vectors of shape {vectors.shape} do not fit a codebook of dim {table.shape[1]}")
        rows = self._nearest.rows(vectors)
        residuals, buckets = vectors - table[rows], np.zeros(vectors.shape, dtype=np.uint8)
        for cutoff in self._cutoffs:
            buckets += residuals > cutoff
        return self._numbers[rows], pack_buckets(buckets, self._n_bits)


def code_type(n_centroids: int) -> type[np.signedinteger]:
    """Return the type of codes for `n_centroids`: two bytes where they suffice."""
    return np.int16 if n_centroids <= 2**15 else np.int32


def _release(vectors: np.ndarray) -> None:
    mapped = getattr(vectors, "_mmap", None)
    # Only of a file mapped read-only: other pages may hold unwritten data.
    if mapped is not None and getattr(vectors, "mode", None) == "r" and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


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
    """Fill `out`, int32 (n, n_nearest), with the cells of the highest dot products, the first among equals.

    `means`, float32, has a row for each of `n_cells`, padded to a multiple of TILE; NaN as products give cell 0.
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

    Vectors are taken cell by cell, so that a cell's rows are read once for all of them. `cells`, int32 (n, n_probed),
    are those to look into for each vector; `starts` is where each begins in `table`, as a multiple of TILE rows. The
    rows fill `out`, int32 (n,), and their products `scores`, float32: minus infinity where all are NaN.
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


PART_TOKENS = 2**20  # tokens in a part of the shard


def write_shard(
    folder: Path,
    vectors: np.ndarray,
    passage_tokens: Sequence[int],
    codec: Codec,
    *,
    codec_from: Path | None = None,
) -> None:
    """Write a shard's files into `folder`, which is created.

    `vectors` has shape (n_tokens, dim), unit rows, float16 or float32; if mapped from a file (mode 'r'), memory holds
    only blocks of it and 24 bytes per token. `codec_from` is a shard's folder that holds the files of this same
    codebook, to be linked instead of written.

    Raises:
        ValueError: If there is no token, a passage has none, the lengths do not add up, the codebook is of another
            dim, or a vector is not finite.
    """
    if not len(vectors) or sum(passage_tokens) != len(vectors):
        raise ValueError(f"passages of {sum(passage_tokens)} tokens do not fit {len(vectors)} token vectors")
    if min(passage_tokens) < 1:
        raise ValueError(f"passage {list(passage_tokens).index(min(passage_tokens))} has no token")
    n_centroids, dim = codec.centroids.shape
    if vectors.shape[1] != dim:
        raise ValueError(f"token vectors of shape {vectors.shape} do not fit a codebook of dim {dim}")
    folder.mkdir(parents=True)
    if codec_from is None:
        write_codec(folder, codec)
    else:
        _link_codec(codec_from, folder)
    parts, packer = list(_split_into_parts(passage_tokens)), Packer(codec)
    codes, at = [], 0
    for part, lengths in enumerate(parts):
        blocks = map_blocks(packer, read_blocks(vectors[at : at + sum(lengths)]))
        codes.append(_write_part(folder, part, at, lengths, dim * codec.n_bits // 8, blocks))
        at += sum(lengths)
    _write_rest(folder, np.concatenate(codes), passage_tokens, codec.n_bits, n_centroids, len(parts))


def _link_codec(source: Path, folder: Path) -> None:
    for name in CODEC_FILES:
        link_or_copy(source / name, folder / name)


def join_shards(target: Path, before: PlaidParts | None, shards: Sequence[PlaidParts]) -> list[PlaidParts]:
    """Make shards with one codebook further parts of the index in `target`, and return where each is there.

    `before` are the parts that the index has; None makes a new one, with the first shard's codebook. Codes and
    residuals are linked. The parts before stay as they are; the inverted lists and, last, the metadata are replaced,
    and further parts, of an addition that was cut off, deleted.

    Raises:
        ValueError: If the inverted lists are damaged.
    """
    if before is None:
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        _link_codec(shards[0].folder, target)
    lengths = [lengths_of(before)] if before else []
    lists = [_InvertedLists(target, 0, sum(map(len, lengths)))] if before else []
    joined, end = list[PlaidParts](), before.end if before else 0
    for folder, first, last in shards:
        added = lengths_of(PlaidParts(folder, first, last))
        n_passages = sum(map(len, lengths))
        lists.append(_InvertedLists(folder, n_passages, n_passages + len(added)))
        joined.append(PlaidParts(target, end, end + last - first))
        n_tokens = sum(int(of_shard.sum()) for of_shard in lengths)
        for part in range(first, last):
            n_tokens += _link_part(folder, part, target, end, n_tokens)
            end += 1
        lengths.append(added)
    _merge_lists(lists, target)
    _write_metadata(target, np.concatenate(lengths), read_counts(shards[0])[1], _n_centroids(target), end)
    while any((target / name).exists() for name in part_files(end)):
        for name in part_files(end):
            (target / name).unlink(missing_ok=True)
        end += 1
    return joined


def link_shard(source: PlaidParts, target: Path) -> None:
    """Write a shard as an index of its own, its codes and residuals linked.

    FileNotFoundError if it is not complete; ValueError if it is damaged.
    """
    files, codes, n_tokens = open_files(source), [], 0
    target.mkdir(parents=True)
    _link_codec(source.folder, target)
    for number, part in enumerate(files.parts):
        codes.append(_checked_codes(part.codes, files, source).astype(code_type(len(files.centroids))))
        n_tokens += _link_part(source.folder, source.first + number, target, number, n_tokens)
    lengths, n_centroids = files.passage_tokens.tolist(), len(files.centroids)
    _write_rest(target, np.concatenate(codes), lengths, files.n_bits, n_centroids, len(codes))


def _link_part(source: Path, part: int, target: Path, number: int, first_token: int) -> int:
    """Link a part under another number; return its tokens."""
    for name, new_name in zip(part_files(part)[:3], part_files(number), strict=False):
        link_or_copy(source / name, target / new_name)
    lengths = lengths_of(PlaidParts(source, part, part + 1))
    _write_part_metadata(target, number, first_token, lengths)
    return int(lengths.sum())


def _n_centroids(folder: Path) -> int:
    return len(map_array(folder / CENTROIDS, "f", 2))


class _InvertedLists:
    """The lists of an index whose passages become those from `first` to `end` of another."""

    def __init__(self, folder: Path, first: int, end: int) -> None:
        self._passages, lengths = (map_array(folder / name, "iu", 1) for name in LISTS)
        self._starts, self._first, self._end = np.cumsum([0, *lengths.tolist()]), first, end
        adds_up = self._starts[-1] == len(self._passages) and len(lengths) == _n_centroids(folder)
        if not adds_up or (lengths < 0).any():
            raise ValueError(f"damaged PLAID index: {folder} (lists of unknown centroids)")

    def __len__(self) -> int:
        return int(np.count_nonzero(self._passages < self._end - self._first))

    def of(self, centroid: int) -> np.ndarray:
        """Return a centroid's passages, without those that a commit cut off may have added."""
        passages = self._passages[self._starts[centroid] : self._starts[centroid + 1]] + np.int32(self._first)
        return passages[passages < self._end]


def _merge_lists(lists: Sequence[_InvertedLists], target: Path) -> None:
    """Write lists one after the other for each centroid, a centroid at a time: together they may not fit in memory."""
    lengths = np.zeros(_n_centroids(target), dtype=np.int32)
    with written_whole(target / LISTS[0]) as out:
        header = {"descr": "<i4", "fortran_order": False, "shape": (sum(map(len, lists)),)}
        np.lib.format.write_array_header_1_0(out, header)
        for centroid in range(len(lengths)):
            passages = np.concatenate([of_shard.of(centroid) for of_shard in lists])
            out.write(passages.astype("<i4").tobytes())
            lengths[centroid] = len(passages)
    with written_whole(target / LISTS[1]) as out:
        np.save(out, lengths)


def copy_passages(folders: Sequence[PlaidSource], places: np.ndarray, target: Path) -> None:
    """Write a shard of passages from shards with one codebook; codes and residuals stay as they are.

    `places`, shape (n_passages, 2), has the number in `folders` and the position of each passage, in the new order.

    Raises:
        FileNotFoundError: If a shard is not complete.
        ValueError: If one is damaged, or has no such passage.
    """
    sources = {number: open_files(folders[number]) for number in np.unique(places[:, 0]).tolist()}
    for number, files in sources.items():
        positions = places[places[:, 0] == number, 1]
        if positions.min() < 0 or positions.max() >= len(files.passage_tokens):
            raise ValueError(f"damaged PLAID index: {folders[number]} has only {len(files.passage_tokens)} passages")
    first = next(iter(sources))
    target.mkdir(parents=True)
    _link_codec(parts_of(folders[first]).folder, target)
    starts = {number: np.cumsum([0, *files.passage_tokens]) for number, files in sources.items()}
    lengths = [int(sources[number].passage_tokens[position]) for number, position in places.tolist()]
    width, n_centroids = sources[first].parts[0].residuals.shape[1], len(sources[first].centroids)
    codes, at, row = [], 0, 0
    for part, own_lengths in enumerate(_split_into_parts(lengths)):
        rows = places[row : row + len(own_lengths)].tolist()
        blocks = (
            _slice_passage(sources[number], starts[number], position, folders[number]) for number, position in rows
        )
        codes.append(_write_part(target, part, at, own_lengths, width, blocks))
        at, row = at + sum(own_lengths), row + len(own_lengths)
    _write_rest(target, np.concatenate(codes), lengths, sources[first].n_bits, n_centroids, len(codes))


def _slice_passage(
    files: PlaidFiles, starts: np.ndarray, position: int, source: PlaidSource
) -> tuple[np.ndarray, np.ndarray]:
    part = int(np.searchsorted(files.part_passages, position, side="right")) - 1
    rows = slice(starts[position] - files.part_starts[part], starts[position + 1] - files.part_starts[part])
    codes = _checked_codes(files.parts[part].codes[rows], files, source)
    return codes.astype(code_type(len(files.centroids))), files.parts[part].residuals[rows]


def _checked_codes(codes: np.ndarray, files: PlaidFiles, source: PlaidSource) -> np.ndarray:
    """Return codes that name the centroids there are, int64."""
    codes = codes.astype(np.int64)
    if len(codes) and (codes.min() < 0 or codes.max() >= len(files.centroids)):
        raise ValueError(f"damaged PLAID index: {source} (tokens of unknown centroids)")
    return codes


def _write_part(
    folder: Path,
    part: int,
    first_token: int,
    lengths: Sequence[int],
    width: int,
    blocks: Iterable[tuple[np.ndarray, np.ndarray]],
) -> np.ndarray:
    n_tokens = sum(lengths)
    header = {"descr": "|u1", "fortran_order": False, "shape": (n_tokens, width)}
    codes = []
    # Not a mapped file: on a full disk, writing to a mapping kills the process (SIGBUS).
    with (folder / f"{part}.residuals.npy").open("wb") as residuals:
        np.lib.format.write_array_header_1_0(residuals, header)
        for nearest, packed in blocks:
            codes.append(nearest)
            residuals.write(packed.data)
    all_codes = np.concatenate(codes)
    np.save(folder / f"{part}.codes.npy", all_codes)
    _write_json(folder / f"doclens.{part}.json", list(lengths))
    _write_part_metadata(folder, part, first_token, lengths)
    return all_codes


def _write_part_metadata(folder: Path, part: int, first_token: int, lengths: Sequence[int] | np.ndarray) -> None:
    counts = {"embedding_offset": first_token, "num_documents": len(lengths), "num_embeddings": int(sum(lengths))}
    _write_json(folder / f"{part}.metadata.json", counts)


def _split_into_parts(passage_tokens: Sequence[int]) -> Iterator[list[int]]:
    part: list[int] = []
    n_tokens = 0
    for length in passage_tokens:
        if part and n_tokens + length > PART_TOKENS:
            yield part
            part, n_tokens = [], 0
        part.append(int(length))
        n_tokens += int(length)
    yield part


def _write_rest(
    folder: Path, codes: np.ndarray, passage_tokens: Sequence[int], n_bits: int, n_centroids: int, n_parts: int
) -> None:
    """Write the inverted lists and, last, the metadata, which marks the shard as complete."""
    _write_ivf(folder, codes, passage_tokens, n_centroids)
    _write_metadata(folder, passage_tokens, n_bits, n_centroids, n_parts)


def _write_metadata(
    folder: Path, passage_tokens: Sequence[int] | np.ndarray, n_bits: int, n_centroids: int, n_parts: int
) -> None:
    _write_json(folder / PLAN, {"nbits": n_bits, "num_chunks": n_parts})
    _write_json(
        folder / METADATA,
        {
            "avg_doclen": float(np.mean(passage_tokens)),
            "compress_only": False,
            "nbits": n_bits,
            "num_chunks": n_parts,
            "num_documents": len(passage_tokens),
            "num_embeddings": int(sum(passage_tokens)),
            "num_partitions": n_centroids,
        },
    )


def _write_ivf(folder: Path, codes: np.ndarray, passage_tokens: Sequence[int], n_centroids: int) -> None:
    """Write the inverted lists: for each centroid, the passages that have a token there, once each."""
    order = np.argsort(codes, kind="stable")
    passages = np.repeat(np.arange(len(passage_tokens), dtype=np.int32), np.asarray(passage_tokens))[order]
    codes = codes[order]
    first = np.concatenate([[True], (codes[1:] != codes[:-1]) | (passages[1:] != passages[:-1])])
    np.save(folder / LISTS[0], passages[first])
    lengths = np.bincount(codes[first], minlength=n_centroids)
    np.save(folder / LISTS[1], lengths.astype(np.int32))


def _write_json(path: Path, value: object) -> None:
    write_whole(path, json.dumps(value))
