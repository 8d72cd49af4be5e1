"""Milliseconds to find candidates among N chunks; and, of a Library, how many of MaxSim's best are among them.

Run: python benchmarks/candidates.py [--rows N ...] [--index-name NAME --queries FILE] [--seed 0]

Times: chunk vectors of random numbers in a scratch folder, files warm, 20 token vectors a query; a filter keeps one
chunk in a hundred. Reading the same bytes on all cores, xor being all that is done with them, is the floor. Shares: of
the 1, 10 and 100 chunks best by MaxSim of the stored codes over all, averaged over the queries, those among the first n
candidates.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from legal_rag.encoder.runtime import n_cores
from legal_rag.evaluation import read_queries
from legal_rag.library import DEFAULT_FOLDER, Library
from legal_rag.library.chunk_vectors import ChunkVectors, fit_frame, write_frame, write_segment
from legal_rag.library.plaid.search import PlaidShards
from legal_rag.retriever import build_retriever
from legal_rag.retriever.retriever import Retriever

ROWS = [14_382, 530_000, 2_100_000]
DIM, QUERY_TOKENS, N_CANDIDATES, ROUNDS = 384, 20, 256, 15
BLOCK = 10_000  # rows written in one go
FIRST, BEST = (64, 128, 256, 512, 1024), (1, 10, 100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS)
    parser.add_argument("--index-folder", default=DEFAULT_FOLDER)
    parser.add_argument("--index-name", help="of the Library whose shares are printed")
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    generator = np.random.default_rng(arguments.seed)
    print(f"{'chunks':>12}{'MB':>8}{'p50 ms':>9}{'least':>8}{'1 %':>8}{'reading':>9}{'GB/s':>7}")
    for n_rows in arguments.rows:
        print_times(n_rows, generator)
    print(f"{n_cores()} cores, load average {os.getloadavg()[0]:.1f}")
    if arguments.index_name:
        retriever = build_retriever(Library.open(arguments.index_folder, arguments.index_name))
        print_shares(retriever, [query.text for query in read_queries(arguments.queries)[0]])


def print_times(n_rows: int, generator: np.random.Generator) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        segments = write_random(folder, n_rows, generator)
        vectors = ChunkVectors(folder, segments, [n_rows])
        stored = np.lib.format.open_memmap(folder / segments[0]["file"], mode="r")
        queries = [generator.standard_normal((QUERY_TOKENS, DIM)).astype(np.float32) for _ in range(ROUNDS)]
        narrow = [np.sort(generator.choice(n_rows, max(n_rows // 100, 1), replace=False))]
        scan, filtered, floor = by_turns(
            [
                lambda query: vectors.nearest(query, N_CANDIDATES),
                lambda query: vectors.nearest(query, N_CANDIDATES, narrow),
                lambda query: read_all(stored),
            ],
            queries,
        )
        rate = stored.nbytes / min(scan) / 1e6
        print(
            f"{n_rows:12,}{stored.nbytes / 1e6:8.0f}{statistics.median(scan):9.2f}{min(scan):8.2f}"
            f"{min(filtered):8.2f}{min(floor):9.2f}{rate:7.1f}",
            flush=True,
        )


def write_random(folder: Path, n_rows: int, generator: np.random.Generator) -> list[dict[str, Any]]:
    """Write one segment of random chunk vectors."""

    def blocks() -> Iterator[np.ndarray]:
        for start in range(0, n_rows, BLOCK):
            yield generator.standard_normal((min(BLOCK, n_rows - start), DIM), dtype=np.float32)

    frame = fit_frame(next(blocks()))
    write_frame(folder, frame)
    return [write_segment(folder, "0.npy", blocks(), frame)]


def read_all(rows: np.ndarray) -> None:
    """Read all bytes on all cores, doing next to nothing with them."""
    words = rows.reshape(-1).view(np.int64)
    with ThreadPoolExecutor(n_cores()) as pool:
        list(pool.map(np.bitwise_xor.reduce, np.array_split(words, 8 * n_cores())))


def by_turns(calls: Sequence[Callable[[np.ndarray], object]], queries: Sequence[np.ndarray]) -> list[list[float]]:
    """Return the milliseconds of each call for each query, after one round that does not count."""
    times: list[list[float]] = [[] for _ in calls]
    for number, query in enumerate([queries[0], *queries]):
        for call, spent in zip(calls, times, strict=True):
            started = time.perf_counter()
            call(query)
            if number:
                spent.append((time.perf_counter() - started) * 1000)
    return times


def vectors_of(shards: PlaidShards, folder: Path, removed: Sequence[np.ndarray]) -> ChunkVectors:
    """Make chunk vectors of what a Library stores."""
    sizes = [size.n_passages for size in shards.sizes]
    places = [(shard, position) for shard, size in enumerate(sizes) for position in range(size)]
    means = np.stack([shards.token_vectors(place).mean(axis=0) for place in places])
    frame = fit_frame(means)
    write_frame(folder, frame)
    return ChunkVectors(folder, [write_segment(folder, "0.npy", [means], frame)], sizes, removed)


def print_shares(retriever: Retriever, texts: list[str]) -> None:
    """Print how many of the best by exact MaxSim are among the first candidates."""
    shards = retriever._open_shards()
    with tempfile.TemporaryDirectory() as name:
        vectors = vectors_of(shards, Path(name), retriever.corpus.removed_positions())
    print(f"{sum(size.n_passages for size in shards.sizes):,} chunks, {len(texts)} queries")
    print(f"{'best':>6}" + "".join(f"{f'of {n}':>9}" for n in FIRST))
    found: dict[tuple[int, int], list[float]] = {}
    for question in retriever._questions(texts, "hybrid"):
        query = question.vectors
        answers = [hits for (hits,) in shards.best([query], max(BEST), [None] * len(shards.sizes))]
        scores = np.concatenate([hits.scores for hits in answers])
        places = [(shard, int(one)) for shard, hits in enumerate(answers) for one in hits.positions]
        order = np.argsort(-scores, kind="stable")
        for n in FIRST:
            nearest = {(shard, int(one)) for shard, some in enumerate(vectors.nearest(query, n)) for one in some}
            for best in BEST:
                among = [places[i] in nearest for i in order[:best]]
                found.setdefault((best, n), []).append(statistics.mean(among))
    for best in BEST:
        print(f"{best:6}" + "".join(f"{statistics.mean(found[best, n]):9.3f}" for n in FIRST))


if __name__ == "__main__":
    main()
