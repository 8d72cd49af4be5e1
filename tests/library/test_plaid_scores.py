"""MaxSim from packed codes: near the definition's, and equal however the sums are taken."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.plaid_cases import max_sim, random_passages, write

from legal_rag.library.plaid import search as cpu
from legal_rag.library.plaid.files import open_files
from legal_rag.library.plaid.kernels import TILE, TOKENS, has_vnni
from legal_rag.library.plaid.search import Codebook, MappedShard

LENGTHS = [1, 2, TILE - 1, TILE, TILE + 1, TOKENS - 1, TOKENS, TOKENS + 1, 500]
EVERY = np.arange(len(LENGTHS))
ERROR = 0.025  # of a unit query token, times the square root of the dim; an encoder's residuals are half as long
# Words of each size; some that are not full.
SHAPES = [(384, 4), (384, 1), (128, 4), (128, 2), (132, 2), (40, 4), (32, 1), (6, 4)]


def clustered(dim):
    """Return passages whose tokens lie around some directions, as an encoder's do."""
    centres, noise = random_passages([64, sum(LENGTHS)], dim=dim, seed=dim)
    vectors = centres[np.arange(sum(LENGTHS)) * 7 % 64] + noise
    return np.split(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.cumsum(LENGTHS)[:-1])


@pytest.fixture(scope="module", params=SHAPES, ids=lambda shape: "{}x{}".format(*shape))
def shard(request, tmp_path_factory):
    dim, n_bits = request.param
    return MappedShard(write(tmp_path_factory.mktemp("scores") / "shard", clustered(dim), n_bits=n_bits))


def weighted(n_tokens, dim):
    (rows,) = random_passages([n_tokens], dim=dim, seed=n_tokens)
    return rows * np.linspace(0.1, 2, n_tokens, dtype=np.float32)[:, None]


def scores_of(shard, query, positions=EVERY):
    (scores,) = cpu.max_sim(query, [shard], [positions])
    return scores


def by_both_ways(folder, query):
    """Score with AVX-512 VNNI, where the processor has it, and without."""
    return [
        scores_of(MappedShard(folder, codebook=Codebook(open_files(folder), vectorized=vectorized)), query)
        for vectorized in (None, False)
    ]


@pytest.mark.parametrize("n_tokens", [1, 16, 17, 33, 64, 70])
def test_scores_are_max_sim_over_the_decompressed_vectors(shard, n_tokens):
    query = weighted(n_tokens, shard.dim)
    expected = [max_sim(query.astype(np.float64), shard.token_vectors(np.array([p]))) for p in EVERY]
    weights = np.linalg.norm(query, axis=1).sum()
    np.testing.assert_allclose(scores_of(shard, query), expected, rtol=0, atol=ERROR / np.sqrt(shard.dim) * weights)


def best_window(query, vectors):
    starts = range(0, max(len(vectors) - TOKENS, 1), TOKENS)
    return max(max_sim(query, vectors[start : start + 2 * TOKENS]) for start in starts)


@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_the_best_window_has_its_weight_in_a_score(shard, weight):
    query = weighted(20, shard.dim)
    vectors = [shard.token_vectors(np.array([p])) for p in EVERY]
    whole, window = (np.array([score(query, own) for own in vectors]) for score in (max_sim, best_window))
    (scores,) = cpu.max_sim(query, [shard], [EVERY], weight)
    expected = whole + weight * (window - whole)
    bound = ERROR / np.sqrt(shard.dim) * np.linalg.norm(query, axis=1).sum()
    np.testing.assert_allclose(scores, expected, rtol=0, atol=bound)
    assert np.argmax(scores < scores_of(shard, query)) == len(EVERY) - 1  # the others fit a window


@pytest.mark.skipif(not has_vnni(), reason="one way on this processor")
@pytest.mark.parametrize("n_tokens", [1, 16, 40, 64])
def test_scores_are_the_same_to_the_last_bit_with_and_without_vnni(shard, n_tokens):
    query = weighted(n_tokens, shard.dim)
    vectorized, portable = by_both_ways(shard.folder, query)
    assert vectorized.tobytes() == portable.tobytes()


@pytest.mark.parametrize("name", ["centroids", "bucket_weights"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0, 1e-44, 3e38])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_scores_of_numbers_that_are_none_are_the_same_both_ways(tmp_path, name, value):
    folder = write(tmp_path / "shard", clustered(32))
    values = np.load(folder / f"{name}.npy").astype(np.float32)
    values[::3] = value
    np.save(folder / f"{name}.npy", values)
    vectorized, portable = by_both_ways(folder, weighted(20, 32))
    assert vectorized.tobytes() == portable.tobytes()


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e38])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_query_token_that_is_no_number_leaves_the_other_tokens_their_scores(shard, value):
    query = weighted(4, shard.dim)
    whole = cpu.max_sim(query[:3], [shard], [EVERY])[0]
    query[3] = value
    assert not np.isnan(scores_of(shard, query)).any()
    assert cpu.max_sim(query[:3], [shard], [EVERY])[0].tobytes() == whole.tobytes()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_codes_of_each_type_that_is_written_give_the_same_scores(tmp_path, dtype):
    folder, query = write(tmp_path / "shard", clustered(32)), weighted(20, 32)
    expected = scores_of(MappedShard(folder), query)
    np.save(folder / "0.codes.npy", np.load(folder / "0.codes.npy").astype(dtype))
    assert scores_of(MappedShard(folder), query).tobytes() == expected.tobytes()


def test_passage_means_are_those_of_the_decompressed_vectors_and_a_score_depends_on_the_passage_alone(
    shard, monkeypatch
):
    means = shard.passage_means(2, 9)
    expected = [shard.token_vectors(np.array([p])).astype(np.float64).mean(axis=0) for p in range(2, 9)]
    np.testing.assert_allclose(means, expected, atol=1e-6)
    assert shard.passage_means(3, 3).shape == (0, shard.dim)
    query = weighted(20, shard.dim)
    expected = scores_of(shard, query)
    assert [scores_of(shard, query, np.array([p]))[0] for p in EVERY] == expected.tolist()
    monkeypatch.setattr(cpu, "JOB_TOKENS", (1, 1))
    for n_cores in (1, 3):
        with ThreadPoolExecutor(n_cores) as pool:
            monkeypatch.setattr(cpu, "_workers", lambda pool=pool: pool)
            assert scores_of(shard, query).tobytes() == expected.tobytes()


@pytest.mark.slow  # numba compiles anew
def test_a_processor_without_vectors_gives_the_same_scores(tmp_path):
    folder, query = write(tmp_path / "shard", clustered(128)), weighted(20, 128)
    np.save(tmp_path / "query.npy", query)
    program = """
import sys, numpy as np
from pathlib import Path
from legal_rag.library.plaid.search import MappedShard, max_sim
from legal_rag.library.plaid.kernels import has_vnni
assert not has_vnni()
root = Path(sys.argv[1])
query = np.lib.format.open_memmap(root / "query.npy", mode="r")
shard = MappedShard(root / "shard")
print(max_sim(np.array(query), [shard], [np.arange(shard.size.n_passages)])[0].tobytes().hex())
"""
    plain = {**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path], env=plain, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == scores_of(MappedShard(folder), query).tobytes().hex()
