"""Peak memory of a build, and of opening it and answering, as the corpus grows.

Run: python benchmarks/memory.py --data FOLDER [--chunks 10000 --chunks 40000] [--chunk-words 128]

FOLDER holds `decisions.jsonl.gz`, read over and over with new ids until there are chunks enough. Each build, and each
opening, is a process of its own; its peak is the system's own figure, pages of mapped files included. The network alone
is left out: a word's vector is a row of a fixed random table, 384 wide, so that minutes suffice. All else is what
`build_index` does, in shards of 2,560 chunks.
"""

import argparse
import gzip
import itertools
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from legal_rag.corpus import ChunkConfig
from legal_rag.encoder import EncoderIdentity
from legal_rag.encoder.encoder import TokenVectors
from legal_rag.indexer import IndexConfig, build_index
from legal_rag.library import Library
from legal_rag.retriever import Retriever

DIM = 384
WORDS = 50_000  # rows of the table
QUERY = "La cour d'appel a-t-elle violé l'article 1382 du code civil ?"


class WordVectors:
    """An encoder without a network."""

    identity = EncoderIdentity(
        name="word vectors",
        revision="",
        dim=DIM,
        query_length=64,
        document_length=511,
        query_prefix="",
        document_prefix="",
    )

    def __init__(self) -> None:
        table = np.random.default_rng(0).standard_normal((WORDS, DIM)).astype(np.float32)
        self._table = table / np.linalg.norm(table, axis=1, keepdims=True)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def encode_documents(self, texts: Sequence[str]) -> list[np.ndarray]:
        return [self._table[[zlib.crc32(word.encode()) % WORDS for word in text.split()]] for text in texts]

    def check_query(self, text: str) -> None:
        """Take any."""

    def query_tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        offsets = ([word.span() for word in re.finditer(r"\S+", text)] for text in texts)
        return [TokenVectors(*pair) for pair in zip(self.encode_documents(texts), map(np.array, offsets), strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--chunks", type=int, action="append")
    parser.add_argument("--chunk-words", type=int, default=128)
    parser.add_argument("--step", choices=["build", "open"], help="What a process of the benchmark itself does.")
    parser.add_argument("--folder", help="Where it does so.")
    arguments = parser.parse_args()
    sizes = arguments.chunks or [10_000, 40_000]
    if arguments.step:
        print(json.dumps(measure(arguments.step, arguments.data, arguments.folder, sizes[0], arguments.chunk_words)))
        return
    print(f"{'chunks':>8}{'documents':>11}{'tokens':>12}{'build s':>9}{'build MB':>10}{'open+query s':>14}{'MB':>7}")
    with tempfile.TemporaryDirectory() as scratch:
        for size in sizes:
            options = ["--data", arguments.data, "--chunks", size, "--chunk-words", arguments.chunk_words]
            built, opened = (run([*options, "--step", step, "--folder", scratch]) for step in ("build", "open"))
            print(f"{built['chunks']:8,}{built['documents']:11,}{built['tokens']:12,}", end="")
            print(f"{built['seconds']:9.0f}{built['peak']:10,.0f}{opened['seconds']:14.2f}{opened['peak']:7,.0f}")


def run(options: Sequence[object]) -> dict[str, float]:
    command = [sys.executable, __file__, *map(str, options)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)  # noqa: S603


def measure(step: str, data: Path, folder: str, n_chunks: int, chunk_words: int) -> dict[str, float]:
    encoder, started = WordVectors(), time.perf_counter()
    cfg = IndexConfig(
        source=enough(data, n_chunks, chunk_words),
        chunks=ChunkConfig(chunk_tokens=chunk_words),
        index_folder=folder,
        index_name=str(n_chunks),
    )
    if step == "build":
        build_index(cfg, encoder)
    else:
        hits = Retriever(Library.open(folder, cfg.index_name), encoder).search(QUERY, 10)
        assert len(hits) == 10
    counts = Library.open(folder, cfg.index_name).manifest["counts"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {**counts, "seconds": time.perf_counter() - started, "peak": peak}


def enough(data: Path, n_chunks: int, chunk_words: int) -> Iterator[dict[str, str]]:
    """Yield rows, their ids numbered anew in every round, until their words fill so many chunks."""
    words = 0
    for round_number in itertools.count():
        with gzip.open(data / "decisions.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                yield {**row, "id": f"{row['id']}.{round_number}"}
                words += len(row["content"].split())
                if words >= n_chunks * chunk_words * 0.9:  # chunks end with a sentence: they are not quite full
                    return


if __name__ == "__main__":
    main()
