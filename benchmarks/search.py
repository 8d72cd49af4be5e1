"""Milliseconds and recall of one query over a PLAID index on this machine, by this package and by fast-plaid.

Run: python benchmarks/search.py --data FOLDER --vectors FOLDER [--dim 128] [--tokens N] [--queries 60] [--warp]

All search the same files, written here from the first 400 decisions of `decisions.jsonl.gz` (or about N tokens of
them); fast-plaid and this package at their defaults, one query at a time, in turns; p50 is the median of all queries.
This package also scores all passages, with AVX-512 VNNI where there is any, and in 16-bit arithmetic.
Recall is of the ten best by exact MaxSim: over the original vectors, and over the decompressed ones.
`--warp` adds xtr-warp-rs where that is installed, with an index of its own of the same vectors.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from fast_plaid.search import FastPlaid
from token_vectors import TokenVectors, load, vectors_parser

from legal_rag.library import PlaidShards, SearchSettings
from legal_rag.library.chunk_vectors import ChunkVectors, fit_frame, write_frame, write_segment
from legal_rag.library.plaid.codec import SAMPLE_TOKENS, sample_vectors, train_codec, write_shard
from legal_rag.library.plaid.search import Codebooks, MappedShard, ShardHits, rescore

K = 10
Search = Callable[[np.ndarray], list[int]]


def main() -> None:
    parser = vectors_parser(__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--warp", action="store_true")
    arguments = parser.parse_args()
    data = load(arguments.data, arguments.vectors, arguments.dim, arguments.tokens)
    data = data._replace(queries=data.queries[: arguments.queries])
    print(
        f"{len(data.lengths)} passages, {len(data.vectors)} tokens x {arguments.dim}, {arguments.bits} bits,"
        f" {len(data.queries)} queries, load {os.getloadavg()[0]:.1f}"
    )
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / "index"
        codec = train_codec(sample_vectors(data.vectors, SAMPLE_TOKENS, 42), n_bits=arguments.bits, seed=42)
        write_shard(folder, data.vectors, data.lengths, codec)
        decompressed = MappedShard(folder).token_vectors(np.arange(len(data.lengths)))
        engines = _engines(folder, data)
        if arguments.warp:
            engines["xtr-warp-rs"] = _warp(Path(root) / "warp", data, arguments.bits)
        truths = [
            [set(exact(query)) for query in data.queries]
            for exact in (
                engines["exact, torch fp32"],
                _exact(decompressed, data.lengths),
            )
        ]
        _print_table(engines, data.queries, truths)


def _print_table(engines: dict[str, Search], queries: list[np.ndarray], truths: list[list[set[int]]]) -> None:
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    found: dict[str, list[set[int]]] = {name: [] for name in engines}
    for search in engines.values():
        search(queries[0])  # warm
    for query in queries:
        for name, search in engines.items():
            started = time.perf_counter()
            hits = search(query)
            seconds[name].append(time.perf_counter() - started)
            found[name].append(set(hits))
    reference = float(np.median(seconds["fast-plaid search"]))
    print(f"{'':28}{'p50 ms':>8}{'times':>7}{'recall@10':>11}{'of decompressed':>17}")
    for name in engines:
        recalls = [np.mean([len(a & b) / K for a, b in zip(found[name], truth, strict=True)]) for truth in truths]
        median = float(np.median(seconds[name]))
        print(f"{name:28}{median * 1000:8.1f}{reference / median:7.1f}{recalls[0]:11.3f}{recalls[1]:17.3f}")


def _engines(folder: Path, data: TokenVectors) -> dict[str, Search]:
    copy = Path(shutil.copytree(folder, folder.with_name("copy")))  # fast-plaid writes merged files into its folder
    index = FastPlaid(str(copy), device="cpu")

    def fast_plaid(query: np.ndarray) -> list[int]:
        (hits,) = index.search(torch.from_numpy(query)[None], top_k=K, show_progress=False)
        return [position for position, _ in hits]

    shard, plain = MappedShard(folder), MappedShard(folder, codebooks=Codebooks(vectorized=False))
    shards, vectors = PlaidShards([folder]), _chunk_vectors(folder.with_name("chunk_vectors"), shard)

    def by_chunk_vectors(query: np.ndarray) -> list[int]:
        candidates = vectors.nearest(query, SearchSettings().n_candidates)
        return [position for _, position, _ in rescore(shards, query, candidates)][:K]

    def exhaustive(shard: MappedShard) -> Search:
        return lambda query: _positions(shard.best([query], K)[0])

    return {
        "fast-plaid search": fast_plaid,
        "legal_rag": by_chunk_vectors,
        "legal_rag, exhaustive": exhaustive(shard),
        "the same, 16-bit arithmetic": exhaustive(plain),
        "exact, torch fp32": _exact(np.asarray(data.vectors, dtype=np.float32), data.lengths),
    }


def _chunk_vectors(folder: Path, shard: MappedShard) -> ChunkVectors:
    means, n = shard.passage_means(0, shard.size.n_passages), shard.size.n_passages
    folder.mkdir()
    frame = fit_frame(means)
    write_frame(folder, frame)
    return ChunkVectors(folder, [write_segment(folder, "0.i8", [means], frame)], [n])


def _positions(hits: ShardHits) -> list[int]:
    return [int(position) for position in hits.positions[np.argsort(-hits.scores, kind="stable")]]


def _exact(vectors: np.ndarray, lengths: list[int]) -> Search:
    held, starts = torch.from_numpy(vectors), np.cumsum([0, *lengths[:-1]])

    def search(query: np.ndarray) -> list[int]:
        products = (held @ torch.from_numpy(query).T).numpy()
        scores = np.maximum.reduceat(products, starts, axis=0).sum(axis=1)
        return [int(position) for position in np.argsort(-scores, kind="stable")[:K]]

    return search


def _warp(folder: Path, data: TokenVectors, n_bits: int) -> Search:
    from xtr_warp.search import XTRWarp

    index = XTRWarp(str(folder), device="cpu")
    passages = list(torch.split(torch.from_numpy(np.array(data.vectors)), data.lengths))
    index.create(embeddings_source=passages, nbits=n_bits)
    index.load()

    def search(query: np.ndarray) -> list[int]:
        (hits,) = index.search(queries_embeddings=torch.from_numpy(query)[None], top_k=K)
        return [hit[0] for hit in hits]

    return search


if __name__ == "__main__":
    main()
