"""One int8 vector a chunk: which chunks are worth scoring by MaxSim, found by an exact scan of all.

A row is the mean of a chunk's token vectors, brought to unit length, less the corpus's mean row, in int8. Its product
with the sum of a query's token vectors ranks chunks much as MaxSim does, at a thousandth of the cost; without unit
length, passages of many similar tokens outrank others. Products are integers: the same on every machine, whatever the
number of threads.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from legal_rag.base.files import sha256_of, written_whole
from legal_rag.library.manifest import FRAME
from legal_rag.library.plaid.files import map_npy
from legal_rag.library.plaid.search import run_jobs, top

MAKE_COMMAND = "'legal-rag rebuild --only vectors' makes them"
LARGEST = 127  # of a row's numbers, either sign
CLIPPED_DEVIATIONS = 4.0  # a row's numbers further out are clipped: one in ten thousand
JOB_ROWS = 16_384  # rows scanned by one thread in one go
BLOCK_ROWS = 64  # scores of which only the best is looked at first


class Frame(NamedTuple):
    """Quantisation of rows to int8, fixed for a Library's life: a row is `scale` times its numbers, plus `mean`."""

    mean: np.ndarray  # (dim,), float32
    scale: float  # above 0


def fit_frame(means: np.ndarray) -> Frame:
    """Fit a frame to a sample of chunks: means of their token vectors, of any length, shape (n, dim), float32."""
    rows = _normalise_rows(means)
    mean = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    deviation = float(np.std(rows - mean, dtype=np.float64))
    return Frame(mean, float(np.float32(CLIPPED_DEVIATIONS * max(deviation, 1e-6) / LARGEST)))


def write_frame(folder: Path, frame: Frame) -> None:
    """Write a frame into the folder of chunk vectors, which is created."""
    folder.mkdir(exist_ok=True)
    with written_whole(folder / FRAME) as file:
        np.lib.format.write_array(file, np.append(frame.mean, frame.scale).astype(np.float32), allow_pickle=False)


def read_frame(folder: Path) -> Frame:
    """Read a frame.

    FileNotFoundError if it is missing; ValueError if it is damaged.
    """
    stored = _map_vectors(folder / FRAME, np.dtype(np.float32), 1)
    if len(stored) < 2 or not np.isfinite(stored).all() or stored[-1] <= 0:
        raise ValueError(f"damaged chunk vectors: {folder / FRAME} (no mean and scale); {MAKE_COMMAND}")
    return Frame(stored[:-1].copy(), float(stored[-1]))


def segment_name(first: int, n_shards: int) -> str:
    """Name a segment by its shards: another description of the Library never finds other rows under its name."""
    return f"{first}-{first + n_shards}.npy"


def write_segment(folder: Path, name: str, blocks: Iterable[np.ndarray], dim: int) -> dict[str, Any]:
    """Write chunks as a new segment, and return its manifest entry: `file`, `chunks`, `sha256`.

    `blocks` hold rows, (n, dim), int8, in order of (shard, position); memory holds one. After an error there is no
    file.

    Raises:
        OSError: If it cannot be written.
    """
    n_rows = 0
    with written_whole(folder / name) as file:
        _write_header(file, 0, dim)
        for block in blocks:
            file.write(block.tobytes())
            n_rows += len(block)
        file.seek(0)
        _write_header(file, n_rows, dim)  # as long as the first: numpy leaves room for a larger number
    return {"file": name, "chunks": n_rows, "sha256": sha256_of(folder / name)}


def quantise_means(blocks: Iterable[np.ndarray], frame: Frame) -> Iterator[np.ndarray]:
    """Yield the rows, int8, of blocks of means as for `fit_frame`.

    ValueError if a block has another dim than the frame.
    """
    for means in blocks:
        if means.ndim != 2 or means.shape[1] != len(frame.mean):
            raise ValueError(f"chunk vectors of shape {means.shape} do not fit a frame of dim {len(frame.mean)}")
        numbers = np.rint((_normalise_rows(means) - frame.mean) / np.float32(frame.scale))
        yield np.clip(numbers, -LARGEST, LARGEST).astype(np.int8)


class ChunkVectors:
    """All chunks' vectors at one commit, memory-mapped; searched from any number of threads."""

    def __init__(
        self,
        folder: Path,
        segments: Sequence[Mapping[str, Any]],
        sizes: Sequence[int],
        removed: Sequence[np.ndarray] | None = None,
    ) -> None:
        """Open segments, described by `write_segment`, whose rows one after the other are the chunks of all shards.

        For each shard, `sizes` has its number of chunks, `removed` the positions of those that are never returned.
        FileNotFoundError if a file is missing; ValueError if files, segments and sizes contradict one another.
        """
        self._frame = read_frame(folder)
        dim = len(self._frame.mean)
        self._segments = [_open_segment(folder, segment, dim) for segment in segments]
        self._segment_starts = np.cumsum([0, *map(len, self._segments)])
        self._shard_starts = np.cumsum([0, *sizes], dtype=np.int64)
        n_rows, expected = self._segment_starts[-1], self._shard_starts[-1]
        if n_rows != expected:
            raise ValueError(f"damaged chunk vectors: {folder} has {n_rows} of {expected} chunks; {MAKE_COMMAND}")
        self._present = np.ones(expected, dtype=bool)
        if removed is not None:
            self._present[self._select_rows(removed)] = False
        self._all = np.flatnonzero(self._present)
        self.dim = dim

    def nearest(
        self, query: np.ndarray, n: int, subsets: Sequence[np.ndarray | None] | None = None
    ) -> list[np.ndarray]:
        """Find the `n` chunks nearest to a query, (n_query_tokens, dim); a row's length is the token's weight.

        `subsets` has for each shard the rising positions to search among, or None for all. Returned are each shard's
        rising positions, int64; of equally near chunks the first by shard and position are chosen.

        Raises:
            ValueError: If n is below 1, the query's dim is another, or a subset names a missing chunk.
        """
        if n < 1:
            raise ValueError(f"n must be at least 1, got {n}")
        if query.ndim != 2 or query.shape[1] != self.dim:
            raise ValueError(f"query vectors of shape {query.shape} do not fit chunk vectors of dim {self.dim}")
        rows = self._all
        if subsets is not None:
            rows = self._select_rows(subsets)
            rows = rows[self._present[rows]]
        if len(rows) > n:
            rows = rows[_select_best(self._score_rows(_quantise_query(query), rows), n)]
        bounds = np.searchsorted(rows, self._shard_starts)
        return [rows[i:j] - start for (i, j), start in zip(pairwise(bounds), self._shard_starts[:-1], strict=True)]

    def decode(self) -> np.ndarray:
        """Return the means of the chunks that are not removed, by shard and position: (n, dim), float32, unit rows."""
        rows = np.concatenate(self._segments)[self._all]
        return _normalise_rows(rows * np.float32(self._frame.scale) + self._frame.mean)

    def copy_into(self, folder: Path, places: Sequence[np.ndarray]) -> dict[str, Any]:
        """Write the rows of some chunks as the only segment of a new folder, and return its manifest entry.

        `places` has for each shard there the shards and positions here, shape (n_chunks, 2).
        """
        folder.mkdir()
        write_frame(folder, self._frame)
        rows = np.concatenate([self._shard_starts[of_shard[:, 0]] + of_shard[:, 1] for of_shard in places])
        blocks = (self._read_rows(rows[start : start + JOB_ROWS]) for start in range(0, len(rows), JOB_ROWS))
        segment = write_segment(folder, segment_name(0, len(places)), blocks, self.dim)
        return {"frame": sha256_of(folder / FRAME), "segments": [segment]}

    def _read_rows(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of some rows, in their order: (n, dim), int8."""
        read = np.empty((len(rows), self.dim), dtype=np.int8)
        segments = np.searchsorted(self._segment_starts, rows, side="right") - 1
        for segment in np.unique(segments).tolist():
            within = segments == segment
            read[within] = self._segments[segment][rows[within] - self._segment_starts[segment]]
        return read

    def _select_rows(self, positions: Sequence[np.ndarray | None]) -> np.ndarray:
        """Return the rows of some positions of each shard, rising as these do."""
        sizes = np.diff(self._shard_starts)
        if len(positions) != len(sizes):
            raise ValueError(f"positions in {len(positions)} shards do not fit {len(sizes)} shards")
        rows = [np.empty(0, dtype=np.int64)]
        for subset, start, size in zip(positions, self._shard_starts[:-1], sizes, strict=True):
            chosen = np.arange(size) if subset is None else np.asarray(subset, dtype=np.int64)
            if len(chosen) and (chosen.min() < 0 or chosen.max() >= size):
                raise ValueError(
                    f"no chunk at {chosen.min()} or {chosen.max()} (expected positions from 0 to {size - 1})"
                )
            rows.append(chosen + start)
        return np.concatenate(rows)

    def _score_rows(self, query: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Score some rows, given in rising order, on all cores: the kernel releases the GIL."""
        scores = np.empty(len(rows), dtype=np.int32)

        def work(job: tuple[int, int, int]) -> None:
            segment, i, j = job
            _multiply_rows(self._segments[segment], rows[i:j] - self._segment_starts[segment], query, scores[i:j])

        bounds = np.searchsorted(rows, self._segment_starts)
        jobs = [
            (segment, start, min(start + JOB_ROWS, high))
            for segment, (low, high) in enumerate(pairwise(bounds))
            for start in range(low, high, JOB_ROWS)
        ]
        run_jobs(work, jobs)
        return scores


@njit(nogil=True, cache=True)
def _multiply_rows(vectors: np.ndarray, rows: np.ndarray, query: np.ndarray, out: np.ndarray) -> None:
    """Fill `out`, int32 (n,), with the products of `rows` of `vectors`, int8, and a query, int16 (dim,)."""
    for i in range(len(rows)):
        row = vectors[rows[i]]
        total = np.int32(0)
        for d in range(len(query)):
            total = np.int32(total + np.int32(row[d]) * np.int32(query[d]))  # not int64, numba's default: half as fast
        out[i] = total


def _select_best(scores: np.ndarray, n: int) -> np.ndarray:
    """Return the rising places of the `n` best scores, the first among equals; `n` is below their number.

    The n-th best of the maxima of blocks bounds the n-th best score from below: few blocks have anything above it.
    """
    maxima = np.maximum.reduceat(scores, np.arange(0, len(scores), BLOCK_ROWS))
    kept = max(len(maxima) - n, 0)
    bound = np.partition(maxima, kept)[kept]
    blocks = np.flatnonzero(maxima >= bound)
    places = (blocks[:, None] * BLOCK_ROWS + np.arange(BLOCK_ROWS)).ravel()
    places = places[places < len(scores)]
    return top(places, scores[places], n).positions


def _quantise_query(query: np.ndarray) -> np.ndarray:
    """Return the sum of a query's vectors in int16, as finely as no product with a row of int8 leaves int32."""
    total = np.nan_to_num(query.sum(axis=0, dtype=np.float64))
    largest, absolute = np.abs(total).max(), np.abs(total).sum()
    if not absolute:
        return np.zeros(len(total), dtype=np.int16)
    room = np.iinfo(np.int32).max / (LARGEST + 1) - len(total)  # each rounding adds at most one half
    return np.rint(total * min(np.iinfo(np.int16).max / largest, room / absolute)).astype(np.int16)


def _normalise_rows(vectors: np.ndarray) -> np.ndarray:
    vectors = np.nan_to_num(vectors)  # damaged residuals may decode to anything
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, np.float32(1e-12)), dtype=np.float32)


def _write_header(file: Any, n_rows: int, dim: int) -> None:
    header = {"descr": "|i1", "fortran_order": False, "shape": (n_rows, dim)}
    np.lib.format.write_array_header_1_0(file, header)


def _open_segment(folder: Path, segment: Mapping[str, Any], dim: int) -> np.ndarray:
    name, n_chunks = segment["file"], segment["chunks"]
    rows = _map_vectors(folder / name, np.dtype(np.int8), 2)
    if rows.shape != (n_chunks, dim):
        problem = f"shape {rows.shape}, expected {(n_chunks, dim)}"
        raise ValueError(f"damaged chunk vectors: {folder / name} ({problem}); {MAKE_COMMAND}")
    return rows


def _map_vectors(path: Path, dtype: np.dtype, n_dimensions: int) -> np.ndarray:
    if not path.is_file():
        raise FileNotFoundError(f"no chunk vectors: {path} is missing; {MAKE_COMMAND}")
    try:
        array = map_npy(path)
    except (ValueError, OSError) as error:
        raise ValueError(f"damaged chunk vectors: {path} ({error}); {MAKE_COMMAND}") from error
    if array.dtype != dtype or array.ndim != n_dimensions or not array.flags.c_contiguous:
        problem = f"{array.dtype}, shape {array.shape}"
        raise ValueError(f"damaged chunk vectors: {path} (an array of {problem}); {MAKE_COMMAND}")
    return array
