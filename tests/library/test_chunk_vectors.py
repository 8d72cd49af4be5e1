import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

from legal_rag.library import chunk_vectors
from legal_rag.library.chunk_vectors import (
    FRAME,
    ChunkVectors,
    Frame,
    fit_frame,
    quantise_means,
    read_frame,
    write_frame,
    write_segment,
)

DIM = 24
SIZES = [70, 0, 301, 129]  # chunks of each shard
SEGMENTS = [200, 1, 299]  # cut elsewhere


def random_means(n, dim=DIM, seed=0):
    generator = np.random.default_rng(seed)
    return (generator.standard_normal((n, dim)) + 1).astype(np.float32)


def random_query(seed=0, dim=DIM):
    return np.random.default_rng(100 + seed).standard_normal((5, dim)).astype(np.float32)


def write(folder, means, segments=SEGMENTS):
    folder.mkdir()
    frame = fit_frame(means)
    write_frame(folder, frame)
    bounds = np.cumsum([0, *segments])
    blocks = (quantise_means([means[i:j]], frame) for i, j in pairwise(bounds))
    return [write_segment(folder, f"{i}.npy", block, means.shape[1]) for i, block in enumerate(blocks)]


def write_rows(folder, rows):
    """Write chunk vectors whose numbers are given."""
    folder.mkdir()
    write_frame(folder, Frame(np.zeros(rows.shape[1], np.float32), 1.0))
    np.save(folder / "0.npy", rows.astype(np.int8))
    return [{"file": "0.npy", "chunks": len(rows)}]


def stored(folder, segments):
    rows = [np.lib.format.open_memmap(folder / one["file"], mode="r") for one in segments]
    return np.concatenate(rows).astype(np.int64)


def by_hand(rows, query, n, allowed, sizes=SIZES):
    """Rank by a full sort; ties by row."""
    numbers = chunk_vectors._quantise_query(query).astype(np.int64)
    order = sorted(np.flatnonzero(allowed), key=lambda row: (-int(rows[row] @ numbers), row))[:n]
    shard_rows = pairwise(np.cumsum([0, *sizes]))
    return [sorted(int(row - start) for row in order if start <= row < end) for start, end in shard_rows]


def as_lists(found):
    assert all(one.dtype == np.int64 for one in found)
    return [one.tolist() for one in found]


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chunk-vectors") / "whole"
    return folder, write(folder, random_means(sum(SIZES)))


@pytest.fixture
def copy(tmp_path):
    folder = tmp_path / "copy"
    return folder, write(folder, random_means(30), [20, 10])


@pytest.mark.parametrize("n", [1, 7, 8, 64, 65, 499, 500, 501, 10**9])
def test_the_nearest_chunks_are_those_of_a_full_sort(whole, n):
    vectors = ChunkVectors(*whole, SIZES)
    for seed in range(5):
        query = random_query(seed)
        expected = by_hand(stored(*whole), query, n, np.ones(sum(SIZES), dtype=bool))
        assert as_lists(vectors.nearest(query, n)) == expected


@pytest.mark.parametrize("n", [1, 20, 100, 1000])
def test_subsets_are_searched_without_removed_chunks(whole, n):
    removed = [np.array([0, 69]), np.array([], dtype=np.int64), np.arange(0, 301, 3), np.array([5])]
    subsets = [np.arange(0, 70, 2), None, None, np.array([4, 5, 6, 128])]
    allowed = np.zeros(sum(SIZES), dtype=bool)
    allowed[0:70:2] = allowed[70:371] = allowed[[375, 376, 377, 499]] = True
    allowed[[0, 69, 376]] = allowed[70:371:3] = False
    vectors = ChunkVectors(*whole, SIZES, removed)
    expected = by_hand(stored(*whole), random_query(), n, allowed)
    assert as_lists(vectors.nearest(random_query(), n, subsets)) == expected
    removed = [np.arange(70), np.array([], dtype=np.int64), np.arange(301), np.arange(128)]
    assert as_lists(ChunkVectors(*whole, SIZES, removed).nearest(random_query(), n)) == [[], [], [], [128]]


def test_a_narrow_filter_reads_its_own_rows_only(whole, monkeypatch):
    read, kernel = [], chunk_vectors._multiply_rows

    def counted(vectors, rows, query, out):
        read.extend(rows.tolist())
        kernel(vectors, rows, query, out)

    monkeypatch.setattr(chunk_vectors, "_multiply_rows", counted)
    none = np.array([], dtype=np.int64)
    ChunkVectors(*whole, SIZES).nearest(random_query(), 1, [none, None, np.array([7, 200]), none])
    assert sorted(read) == [69, 77]  # chunk 70 + 200 is row 69 of the last segment


def test_chunks_as_near_to_a_query_come_in_the_order_of_shard_and_position(whole, tmp_path):
    segments = write_rows(tmp_path / "equal", np.ones((500, DIM)))
    found = ChunkVectors(tmp_path / "equal", segments, SIZES).nearest(np.ones((1, DIM)), 72)
    assert as_lists(found) == [list(range(70)), [], [0, 1], []]
    for no_direction in (np.zeros((3, DIM)), np.full((3, DIM), np.nan), np.empty((0, DIM))):
        assert as_lists(ChunkVectors(*whole, SIZES).nearest(no_direction, 2)) == [[0, 1], [], [], []]


@pytest.mark.parametrize("job_rows", [1, 3, 1000])
def test_the_answer_does_not_depend_on_how_the_work_is_cut(whole, monkeypatch, job_rows):
    expected = as_lists(ChunkVectors(*whole, SIZES).nearest(random_query(), 33))
    monkeypatch.setattr(chunk_vectors, "JOB_ROWS", job_rows)
    monkeypatch.setattr(chunk_vectors, "BLOCK_ROWS", job_rows)
    assert as_lists(ChunkVectors(*whole, SIZES).nearest(random_query(), 33)) == expected


@pytest.mark.parametrize("dim", [1, 24, 384, 1024])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_the_largest_numbers_do_not_overflow(tmp_path, dim, size):
    rows = np.array([[-128] * dim, [127] * dim, [0] * dim])
    vectors = ChunkVectors(tmp_path / "x", write_rows(tmp_path / "x", rows), [3])
    assert as_lists(vectors.nearest(np.full((2, dim), size), 1)) == [[1]]
    assert as_lists(vectors.nearest(np.full((2, dim), -size), 1)) == [[0]]
    numbers = chunk_vectors._quantise_query(np.full((2, dim), size)).astype(np.int64)
    assert numbers.sum() * 128 <= 2**31 - 1
    assert numbers.max() >= min(32_767, 2**24 // dim - 2)


def test_decoded_means_are_near_those_written_without_removed_chunks(tmp_path):
    means = random_means(30)
    segments = write(tmp_path / "x", means, [30])
    decoded = ChunkVectors(tmp_path / "x", segments, [20, 10], [np.array([3]), np.array([0, 9])]).decode()
    kept = np.delete(means, [3, 20, 29], axis=0)
    kept /= np.linalg.norm(kept, axis=1, keepdims=True)
    assert decoded.dtype == np.float32
    assert np.linalg.norm(decoded, axis=1) == pytest.approx(np.ones(27), abs=1e-6)
    assert (decoded * kept).sum(axis=1).min() > 0.9995


def test_a_chunk_is_found_by_its_own_words(tmp_path):
    generator = np.random.default_rng(0)
    tokens = generator.standard_normal((400, 30, 64)) + 3 * generator.standard_normal((400, 1, 64)) + 2
    tokens /= np.linalg.norm(tokens, axis=2, keepdims=True)
    segments = write(tmp_path / "x", tokens.mean(axis=1).astype(np.float32), [400])
    vectors = ChunkVectors(tmp_path / "x", segments, [400])
    found = [as_lists(vectors.nearest(passage[:4], 1))[0][0] for passage in tokens]
    assert found == list(range(400))


def test_a_row_is_its_direction_less_the_mean_one_to_half_a_step(whole):
    folder, segments = whole
    frame, means = read_frame(folder), random_means(sum(SIZES))
    unit = means / np.linalg.norm(means, axis=1, keepdims=True)
    rows = stored(folder, segments)
    inside = np.abs(rows) < 127
    assert inside.mean() > 0.99
    assert np.abs(rows * frame.scale + frame.mean - unit)[inside].max() <= 0.51 * frame.scale


def test_writing_holds_one_block_in_memory(tmp_path):
    block, frame = random_means(1000, 256), fit_frame(random_means(10, 256))
    tracemalloc.start()
    try:
        write_segment(tmp_path, "0.npy", quantise_means((block for _ in range(100)), frame), 256)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (tmp_path / "0.npy").stat().st_size > 100 * 1000 * 256
    assert peak < 16 * block.nbytes  # a quarter of that, but other threads may allocate too


def test_a_write_that_breaks_off_leaves_what_was_there(tmp_path):
    means = random_means(4)
    write_segment(tmp_path, "0.npy", quantise_means([means], fit_frame(means)), DIM)
    before = (tmp_path / "0.npy").read_bytes()

    def breaking_off():
        yield means
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space left"):
        write_segment(tmp_path, "0.npy", quantise_means(breaking_off(), fit_frame(means)), DIM)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"0.npy": before}


@pytest.mark.filterwarnings("error")
def test_a_mean_that_is_no_number_is_written_like_that_of_no_direction(tmp_path):
    means = random_means(4)
    means[1], means[2] = np.nan, 0
    rows = stored(tmp_path / "x", write(tmp_path / "x", means, [4]))
    assert (rows[1] == rows[2]).all()
    assert np.isfinite(read_frame(tmp_path / "x").mean).all()


def test_a_frame_comes_back_as_it_was_written_and_one_chunk_is_enough_for_it(tmp_path):
    frame = fit_frame(random_means(40))
    write_frame(tmp_path, frame)
    assert (read_frame(tmp_path).mean == frame.mean).all()
    assert read_frame(tmp_path).scale == frame.scale > 0
    assert fit_frame(random_means(1)).scale > 0


@pytest.mark.parametrize(
    "numbers",
    [
        np.full(DIM + 1, np.nan, np.float32),
        np.zeros(DIM + 1, np.float32),
        np.full(DIM + 1, -1, np.float32),
        np.ones(1, np.float32),
        np.ones((2, DIM), np.float32),
        np.ones(DIM + 1, np.float64),
        np.ones(DIM + 1, ">f4"),
    ],
    ids=["nan", "no scale", "negative scale", "no mean", "two rows", "doubles", "other byte order"],
)
def test_a_damaged_frame_is_refused(copy, numbers):
    np.save(copy[0] / FRAME, numbers)
    with pytest.raises(ValueError, match=r"damaged chunk vectors: .*frame.npy .*legal-rag rebuild --only vectors"):
        ChunkVectors(*copy, [30])


@pytest.mark.parametrize("name", ["frame.npy", "0.npy"])
def test_a_missing_file_is_named_with_the_command_that_makes_it(copy, name):
    (copy[0] / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"{name} is missing; 'legal-rag rebuild --only vectors'"):
        ChunkVectors(*copy, [30])


def archive(path):
    with path.open("wb") as file:
        np.savez(file, rows=np.arange(3))


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        *(lambda path, kept=kept: path.write_bytes(path.read_bytes()[:kept]) for kept in (5, 100, 200, -1)),
        *(
            lambda path, rows=rows: np.save(path, rows, allow_pickle=True)
            for rows in (
                np.zeros((19, DIM), np.int8),
                np.zeros((20, DIM - 1), np.int8),
                np.zeros((20, DIM), np.uint8),
                np.zeros((20, DIM), np.float32),
                np.zeros(20 * DIM, np.int8),
                np.asfortranarray(np.zeros((20, DIM), np.int8)),
                np.array([{}], dtype=object),
            )
        ),
        archive,
    ],
)
def test_a_damaged_segment_is_refused(copy, damage):
    damage(copy[0] / "0.npy")
    with pytest.raises(ValueError, match=r"damaged chunk vectors: .*0.npy .*legal-rag rebuild --only vectors"):
        ChunkVectors(*copy, [30])


@pytest.mark.parametrize("sizes", [[29], [31], [30, 1], []])
def test_chunk_vectors_of_another_number_of_chunks_are_refused(copy, sizes):
    with pytest.raises(ValueError, match=rf"has 30 of {sum(sizes)} chunks; 'legal-rag rebuild --only vectors'"):
        ChunkVectors(*copy, sizes)


@pytest.mark.parametrize("subset", [[-1], [30], [2, 2**40]])
def test_positions_that_are_not_there_are_refused(copy, subset):
    with pytest.raises(ValueError, match="expected positions from 0 to 29"):
        ChunkVectors(*copy, [30]).nearest(random_query(), 1, [np.array(subset)])
    with pytest.raises(ValueError, match="expected positions from 0 to 29"):
        ChunkVectors(*copy, [30], [np.array(subset)])


def test_a_query_and_its_subsets_must_fit_the_vectors(copy):
    vectors = ChunkVectors(*copy, [30])
    with pytest.raises(ValueError, match="positions in 2 shards do not fit 1 shards"):
        vectors.nearest(random_query(), 1, [None, None])
    with pytest.raises(ValueError, match=r"shape \(2, 8\) do not fit chunk vectors of dim 24"):
        vectors.nearest(random_query()[:2, :8], 1)
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        vectors.nearest(random_query(), 0)
