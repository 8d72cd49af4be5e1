"""Writing a PLAID shard on a CPU: fast-plaid's files, made with wide matrix products.

In: the token vectors of some passages. Out: a folder that fast-plaid, or `legal_rag.plaid`, opens and searches.
fast-plaid's own `create` goes through a scalar half-precision loop on a CPU and would take hours here; on a GPU it is
the faster one, and `write_shard` uses it there.

Method: Santhanam et al., PLAID (2022): k-means centroids, each token stored as its centroid's number and a residual
whose dimensions are quantised into buckets of equal mass.
"""

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from legal_rag.device import best_device, product_dtype
from legal_rag.plaid_format import pack_buckets

KMEANS_ITERATIONS = 4  # fast-plaid's own
POINTS_PER_CENTROID = 32  # tokens that k-means sees for each centroid; fast-plaid takes up to 256
RESIDUAL_SAMPLE = 50_000  # tokens that the buckets are fitted to
PART_TOKENS = 2**20  # tokens in a part of the shard
BLOCK_TOKENS = 4096  # tokens assigned to centroids in one matrix product


def write_shard(folder: Path, vectors: np.ndarray, passage_tokens: Sequence[int], *, n_bits: int, seed: int) -> None:
    """Write a shard's files into `folder`, which is created.

    Args:
        folder: A new folder.
        vectors: Shape (n_tokens, dim), unit rows, float16 or float32; may be memory-mapped.
        passage_tokens: Tokens of each passage, in order; their sum is n_tokens.
        n_bits: Bits a dimension: 1, 2 or 4.
        seed: Of the samples and of k-means.

    Raises:
        ValueError: If there is no token, a passage has none, or the lengths do not add up.
    """
    if not len(vectors) or sum(passage_tokens) != len(vectors):
        raise ValueError(f"passages of {sum(passage_tokens)} tokens do not fit {len(vectors)} token vectors")
    if min(passage_tokens) < 1:
        raise ValueError(f"passage {list(passage_tokens).index(min(passage_tokens))} has no token")
    folder.mkdir(parents=True)
    if best_device() == "cuda":
        _write_with_fast_plaid(folder, vectors, passage_tokens, n_bits, seed)
        return
    generator = np.random.default_rng(seed)
    centroids = _train_centroids(vectors, generator, seed)
    cutoffs = _fit_buckets(folder, vectors, centroids, n_bits, generator)
    np.save(folder / "centroids.npy", centroids)
    codes = _write_parts(folder, vectors, passage_tokens, centroids, cutoffs, n_bits)
    _write_ivf(folder, codes, passage_tokens, len(centroids))
    _write_metadata(folder, passage_tokens, n_bits, len(centroids))


def count_centroids(n_tokens: int) -> int:
    """Return how many centroids an index of `n_tokens` gets: the power of two below 16 * sqrt(n_tokens)."""
    return min(n_tokens, int(2 ** math.floor(math.log2(16 * math.sqrt(n_tokens)))))


def _write_with_fast_plaid(
    folder: Path, vectors: np.ndarray, passage_tokens: Sequence[int], n_bits: int, seed: int
) -> None:
    import torch
    from fast_plaid.search import FastPlaid

    passages = torch.split(torch.from_numpy(np.asarray(vectors)), list(passage_tokens))
    with FastPlaid(str(folder)) as index:
        # start_from_scratch=0: otherwise a small index also gets `embeddings.npy`, which is a pickle.
        index.create(list(passages), nbits=n_bits, seed=seed, start_from_scratch=0)


def _train_centroids(vectors: np.ndarray, generator: np.random.Generator, seed: int) -> np.ndarray:
    import torch
    from fastkmeans import FastKMeans

    n_centroids = count_centroids(len(vectors))
    sample = _sample_rows(vectors, n_centroids * POINTS_PER_CENTROID, generator)
    kmeans = FastKMeans(
        d=vectors.shape[1],
        k=n_centroids,
        niter=KMEANS_ITERATIONS,
        gpu=False,
        seed=seed,
        chunk_size_data=BLOCK_TOKENS,
        dtype=product_dtype(),
        use_triton=False,
    )
    with torch.random.fork_rng(), _numpy_state_kept():  # fastkmeans seeds the whole process
        kmeans.train(sample)
    centroids = np.asarray(kmeans.centroids, dtype=np.float32)
    lengths = np.linalg.norm(centroids, axis=1, keepdims=True)
    return (centroids / np.maximum(lengths, 1e-12)).astype(np.float16)


@contextmanager
def _numpy_state_kept() -> Iterator[None]:
    state = np.random.get_state()
    try:
        yield
    finally:
        np.random.set_state(state)


def _sample_rows(vectors: np.ndarray, size: int, generator: np.random.Generator) -> np.ndarray:
    if size >= len(vectors):
        return np.asarray(vectors, dtype=np.float32)
    rows = np.sort(generator.choice(len(vectors), size, replace=False))  # sorted: a mapped file is read forwards
    return np.asarray(vectors[rows], dtype=np.float32)


def _fit_buckets(
    folder: Path, vectors: np.ndarray, centroids: np.ndarray, n_bits: int, generator: np.random.Generator
) -> np.ndarray:
    """Save the residual buckets, cutoffs at equal masses, weights at the middle of each; return the cutoffs."""
    sample = _sample_rows(vectors, RESIDUAL_SAMPLE, generator)
    residuals = sample - centroids.astype(np.float32)[np.concatenate(list(_nearest(sample, centroids)))]
    n_buckets = 2**n_bits
    cutoffs = np.quantile(residuals, np.arange(1, n_buckets) / n_buckets).astype(np.float32)
    weights = np.quantile(residuals, (np.arange(n_buckets) + 0.5) / n_buckets).astype(np.float32)
    np.save(folder / "bucket_cutoffs.npy", cutoffs)
    np.save(folder / "bucket_weights.npy", weights)
    np.save(folder / "avg_residual.npy", np.abs(residuals).mean(axis=0).astype(np.float32))
    # Read by fast-plaid's `update` alone; a copy of the index may meet it.
    threshold = np.quantile(np.linalg.norm(residuals, axis=1), [0.75]).astype(np.float32)
    np.save(folder / "cluster_threshold.npy", threshold)
    return cutoffs


def _nearest(vectors: np.ndarray, centroids: np.ndarray) -> Iterator[np.ndarray]:
    """Yield, block by block, the number of the centroid with the highest dot product for each vector."""
    import torch

    # bfloat16 picks another centroid only where two are about equally near, and the residual is measured from it.
    dtype = product_dtype()
    table = torch.from_numpy(centroids.astype(np.float32)).to(dtype).T
    for start in range(0, len(vectors), BLOCK_TOKENS):
        block = torch.from_numpy(np.asarray(vectors[start : start + BLOCK_TOKENS], dtype=np.float32))
        yield (block.to(dtype) @ table).argmax(dim=1).numpy().astype(np.int32)


def _write_parts(
    folder: Path,
    vectors: np.ndarray,
    passage_tokens: Sequence[int],
    centroids: np.ndarray,
    cutoffs: np.ndarray,
    n_bits: int,
) -> np.ndarray:
    """Write codes, residuals and lengths part by part, and return all codes."""
    all_codes, at = [], 0
    for part, lengths in enumerate(_split_into_parts(passage_tokens)):
        n_tokens = sum(lengths)
        width = vectors.shape[1] * n_bits // 8
        header = {"descr": "|u1", "fortran_order": False, "shape": (n_tokens, width)}
        # A plain file, not a mapped one: where the disk is full, writing to a mapping kills the process (SIGBUS).
        with (folder / f"{part}.residuals.npy").open("wb") as residuals:
            np.lib.format.write_array_header_1_0(residuals, header)
            codes = _compress(vectors[at : at + n_tokens], centroids, cutoffs, n_bits, residuals)
        np.save(folder / f"{part}.codes.npy", codes)
        _write_json(folder / f"doclens.{part}.json", lengths)
        _write_json(
            folder / f"{part}.metadata.json",
            {"embedding_offset": at, "num_documents": len(lengths), "num_embeddings": n_tokens},
        )
        all_codes.append(codes)
        at += n_tokens
    return np.concatenate(all_codes)


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


def _compress(
    vectors: np.ndarray, centroids: np.ndarray, cutoffs: np.ndarray, n_bits: int, out: BinaryIO
) -> np.ndarray:
    """Write packed residuals to `out` and return the tokens' centroids, shape (n_tokens,), int32."""
    import torch

    wide, edges = centroids.astype(np.float32), torch.from_numpy(cutoffs)
    codes = []
    for number, nearest in enumerate(_nearest(vectors, centroids)):
        start = number * BLOCK_TOKENS
        residuals = np.asarray(vectors[start : start + len(nearest)], dtype=np.float32) - wide[nearest]
        buckets = torch.bucketize(torch.from_numpy(residuals), edges, out_int32=True).numpy().astype(np.uint8)
        out.write(pack_buckets(buckets, n_bits).tobytes())
        codes.append(nearest)
    return np.concatenate(codes)


def _write_ivf(folder: Path, codes: np.ndarray, passage_tokens: Sequence[int], n_centroids: int) -> None:
    """Write the inverted lists: for each centroid, the passages that have a token there, once each."""
    passages = np.repeat(np.arange(len(passage_tokens), dtype=np.int64), np.asarray(passage_tokens))
    pairs = np.unique(codes.astype(np.int64) * len(passage_tokens) + passages)
    np.save(folder / "ivf.npy", (pairs % len(passage_tokens)).astype(np.int32))
    lengths = np.bincount(pairs // len(passage_tokens), minlength=n_centroids)
    np.save(folder / "ivf_lengths.npy", lengths.astype(np.int32))


def _write_metadata(folder: Path, passage_tokens: Sequence[int], n_bits: int, n_centroids: int) -> None:
    n_parts = sum(1 for _ in _split_into_parts(passage_tokens))
    _write_json(folder / "plan.json", {"nbits": n_bits, "num_chunks": n_parts})
    _write_json(
        folder / "metadata.json",
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


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")
