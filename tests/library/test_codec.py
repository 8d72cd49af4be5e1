import os
import resource
import shutil

import numpy as np
import pytest
from support.plaid_cases import One, checksums, random_codec, random_passages, reference_engine, write

from legal_rag.library.plaid import codec as plaid_codec
from legal_rag.library.plaid.codec import (
    CODEC_FILES,
    NearestCentroids,
    Packer,
    copy_passages,
    read_codec,
    sample_vectors,
    train_codec,
    write_codec,
    write_shard,
)
from legal_rag.library.plaid.files import open_files, unpacking_table

LENGTHS = [9] * 40
QUERY = random_passages([4], seed=1)[0]


@pytest.fixture(scope="module")
def vectors():
    return random_passages([6000], seed=3)[0]


@pytest.fixture(scope="module")
def codec(vectors):
    return train_codec(vectors, n_bits=4, seed=0)


@pytest.fixture
def folder(tmp_path, codec):
    (tmp_path / "codec").mkdir()
    write_codec(tmp_path / "codec", codec)
    return tmp_path / "codec"


def unpacked(codec, codes, residuals):
    vectors = unpacking_table(codec.weights, codec.n_bits)[residuals].reshape(len(codes), -1) + codec.centroids[codes]
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_equal_seeds_train_equal_codebooks_and_centroids_are_unit_rows_as_many_as_asked_for(vectors):
    codec = train_codec(vectors, n_bits=4, seed=0, n_centroids=100)
    assert (codec.centroids.shape, codec.centroids.dtype) == ((100, 32), np.float16)
    np.testing.assert_allclose(np.linalg.norm(codec.centroids.astype(np.float32), axis=1), 1, atol=1e-3)
    assert len(train_codec(vectors[:20], n_bits=4, seed=0, n_centroids=100).centroids) == 20
    one, same, other = (train_codec(vectors[:2000], n_bits=2, seed=seed) for seed in (5, 5, 6))
    assert all(np.array_equal(a, b) for a, b in zip(one, same, strict=True))
    assert not np.array_equal(one.centroids, other.centroids)


@pytest.mark.parametrize(("n_bits", "lowest"), [(1, 0.85), (2, 0.95), (4, 0.994)])
def test_packed_vectors_decode_to_near_the_originals(vectors, n_bits, lowest):
    codec = train_codec(vectors, n_bits=n_bits, seed=0)
    assert codec.n_bits == n_bits
    assert (unpacked(codec, *Packer(codec)(vectors)) * vectors).sum(axis=1).mean() > lowest


@pytest.mark.parametrize("n_tokens", [1, 5, 31])
def test_fewer_tokens_than_a_block_of_anything_are_trained_packed_and_found(tmp_path, n_tokens):
    passages = random_passages([1] * n_tokens)
    hits = One(write(tmp_path / "few", passages)).search(passages[-1], n_tokens)
    assert hits.positions[0] == n_tokens - 1
    assert hits.scores[0] == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("engine", [One, pytest.param(reference_engine, marks=pytest.mark.slow)])
def test_vectors_that_are_all_equal_are_an_index(tmp_path, engine):
    same = np.tile(random_passages([1])[0], (500, 1))
    hits = engine(write(tmp_path / "same", np.split(same, 100))).search(same[:3], 100)
    np.testing.assert_allclose(hits.scores, 3, atol=0.02)


@pytest.mark.parametrize(("shape", "n_bits"), [((0, 32), 4), ((5, 32), 3), ((5, 32), 0), ((5, 7), 1), ((5, 3), 4)])
def test_a_sample_that_makes_no_codebook_is_refused(shape, n_bits):
    with pytest.raises(ValueError, match=rf"^cannot train a codebook of {n_bits} bits on token vectors of shape"):
        train_codec(np.ones(shape, dtype=np.float32), n_bits=n_bits, seed=0)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_vectors_that_are_not_finite_are_refused(tmp_path, vectors, codec, value):
    damaged = vectors[:200].copy()
    damaged[150, 3] = value
    with pytest.raises(ValueError, match="^a token vector is not finite"):
        train_codec(damaged, n_bits=4, seed=0)
    with pytest.raises(ValueError, match="^a token vector is not finite"):
        write_shard(tmp_path / "shard", damaged.astype(np.float16), [200], codec)
    assert not (tmp_path / "shard" / "metadata.json").exists()


def test_a_sample_is_rows_in_order_and_all_of_them_where_it_would_be_larger(vectors):
    sample = sample_vectors(vectors, 100, 7)
    rows = [int(np.flatnonzero((vectors == one).all(axis=1))[0]) for one in sample]
    assert len(set(rows)) == 100
    assert rows == sorted(rows)
    np.testing.assert_array_equal(sample_vectors(vectors, 6001, 7), vectors)


def test_two_steps_find_the_nearest_centroid_or_one_about_as_near():
    generator = np.random.default_rng(2)
    topics = generator.standard_normal((60, 32))
    vectors = topics[generator.integers(60, size=8000)] + 0.5 * generator.standard_normal((8000, 32))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    nearest = NearestCentroids(vectors[:2048])
    products = vectors[2048:] @ vectors[:2048].T
    found = products[np.arange(len(products)), nearest(vectors[2048:])]
    assert (found >= products.max(axis=1) - 1e-6).mean() > 0.98
    assert (products.max(axis=1) - found).mean() < 0.001


@pytest.mark.parametrize("n_centroids", [1, 2, 5, 33, 700])
def test_looking_into_all_cells_is_looking_at_all_centroids(vectors, n_centroids):
    nearest = NearestCentroids(vectors[:n_centroids], n_probed=n_centroids)(vectors)
    np.testing.assert_array_equal(nearest, (vectors @ vectors[:n_centroids].T).argmax(axis=1))


def test_what_a_token_is_packed_as_does_not_depend_on_its_block(vectors, codec):
    packer = Packer(codec)
    codes, residuals = packer(vectors)
    order = np.random.default_rng(1).permutation(len(vectors))
    for start, end in ((0, 1), (1, 4), (4, 700), (700, 6000)):
        mixed = packer(vectors[order[start:end]])
        np.testing.assert_array_equal(mixed[0], codes[order[start:end]])
        np.testing.assert_array_equal(mixed[1], residuals[order[start:end]])


def test_files_are_the_same_with_any_number_of_threads(tmp_path, vectors, monkeypatch):
    monkeypatch.setattr(plaid_codec, "BLOCK_TOKENS", 500)
    written = []
    for n_threads in ("1", "2", "5"):
        monkeypatch.setenv("OMP_NUM_THREADS", n_threads)
        written.append(checksums(write(tmp_path / n_threads, [vectors])))
    assert written[0] == written[1] == written[2]


def test_vectors_of_another_dim_are_refused(tmp_path, codec):
    message = r"^token vectors of shape \(5, 16\) do not fit a codebook of dim 32$"
    with pytest.raises(ValueError, match=message):
        Packer(codec)(np.ones((5, 16), dtype=np.float32))
    with pytest.raises(ValueError, match=message):
        write_shard(tmp_path / "shard", np.ones((5, 16), dtype=np.float16), [5], codec)
    assert not (tmp_path / "shard").exists()


@pytest.mark.slow
def test_fast_plaid_reads_codes_of_two_bytes_as_it_does_those_of_four(tmp_path):
    short = write(tmp_path / "short", random_passages(LENGTHS))
    wide = shutil.copytree(short, tmp_path / "wide")
    codes = np.load(short / "0.codes.npy")
    assert codes.dtype == np.int16
    np.save(wide / "0.codes.npy", codes.astype(np.int32))
    for query in random_passages([4] * 5, seed=9):
        one, other = (reference_engine(folder).search(query, 10) for folder in (short, wide))
        assert one.positions.tolist() == other.positions.tolist()
        assert one.scores.tolist() == other.scores.tolist()
        np.testing.assert_allclose(One(short).search(query, 10).scores, one.scores, atol=0.05)


def test_a_codebook_is_read_as_it_was_written(folder, codec):
    for written, read in zip(codec, read_codec(folder), strict=True):
        np.testing.assert_array_equal(read, written)
        assert read.dtype == written.dtype


@pytest.mark.parametrize("name", CODEC_FILES)
def test_a_missing_damaged_or_foreign_file_of_a_codebook_is_named(folder, name):
    path = folder / name
    whole, nothing = path.read_bytes(), np.full_like(np.load(path), np.nan)
    for kept in (0, 20, -2):
        path.write_bytes(whole[:kept])
        with pytest.raises(ValueError, match=f"^damaged PLAID index: [^\n]*{name} [^\n]*$"):
            read_codec(folder)
    np.save(path, nothing)
    with pytest.raises(ValueError, match="^damaged PLAID index: [^\n]*not finite[^\n]*$"):
        read_codec(folder)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=f"^incomplete PLAID index: no {name} in [^\n]*$"):
        read_codec(folder)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("centroids.npy", (20, 16)),
        ("centroids.npy", (0, 32)),
        ("centroids.npy", (20, 0)),
        ("bucket_weights.npy", (3,)),
        ("bucket_weights.npy", (0,)),
        ("bucket_cutoffs.npy", (16,)),
        ("avg_residual.npy", (31,)),
        ("cluster_threshold.npy", (2,)),
    ],
)
def test_files_of_different_codebooks_are_refused(folder, name, shape):
    np.save(folder / name, np.ones(shape, dtype=np.float32))
    with pytest.raises(ValueError, match="^damaged PLAID index: [^\n]*codebook files of shapes [^\n]*$"):
        read_codec(folder)


@pytest.mark.parametrize("links", [True, False])
def test_a_second_shard_shares_the_files_of_the_codebook_where_the_disk_has_links(
    tmp_path, folder, codec, vectors, links, monkeypatch
):
    if not links:
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(PermissionError("no links here")))
    write_shard(tmp_path / "linked", vectors, [6000], codec, codec_from=folder)
    write_shard(tmp_path / "own", vectors, [6000], codec)
    assert checksums(tmp_path / "linked") == checksums(tmp_path / "own")
    for name in CODEC_FILES:
        assert (tmp_path / "linked" / name).samefile(folder / name) == links


@pytest.mark.parametrize("limit", [10, 5000, 20_000, 70_000])
def test_a_full_disk_is_an_error_of_the_system(tmp_path, vectors, limit):
    codec = random_codec(n_centroids=16)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        with pytest.raises(OSError, match=r"File too large|requested and \d+ written"):
            write_shard(tmp_path / "shard", vectors, [6000], codec)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not (tmp_path / "shard" / "metadata.json").exists()


def shard_of(folder, codec, seed):
    write_shard(folder, random_passages([sum(LENGTHS)], seed=seed)[0], LENGTHS, codec)
    return folder


def test_shards_of_one_codebook_become_one_with_it_and_their_own_codes(tmp_path, codec):
    shards = [shard_of(tmp_path / str(seed), codec, seed) for seed in range(3)]
    places = np.array([(number, position) for number in range(3) for position in range(len(LENGTHS))])
    copy_passages(shards, places, tmp_path / "merged")
    merged = open_files(tmp_path / "merged")
    for name in CODEC_FILES:
        assert (tmp_path / "merged" / name).read_bytes() == (shards[0] / name).read_bytes()
    codes = np.concatenate([np.load(one / "0.codes.npy") for one in shards])
    np.testing.assert_array_equal(np.concatenate([part.codes for part in merged.parts]), codes)
    hits = One(tmp_path / "merged").search(QUERY, 120)
    apart = np.concatenate([One(one).search(QUERY, 40).scores for one in shards])
    np.testing.assert_allclose(np.sort(hits.scores), np.sort(apart), rtol=1e-5)
