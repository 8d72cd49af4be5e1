"""Seconds to write a PLAID index on this machine, by this package and by fast-plaid.

Run: python benchmarks/build.py --data FOLDER --vectors FOLDER [--dim 128] [--tokens N] [--runs 3]

Both sides write the same vectors (the first 400 decisions of `decisions.jsonl.gz`, or about N tokens of them) with the
same bits and number of centroids, in turns; figures are medians. Cosine: mean of the decompressed vectors with the
originals. Bytes a token: of all files, before fast-plaid opens them and writes its merged copies.
"""

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from fast_plaid.search import FastPlaid
from token_vectors import TokenVectors, load, vectors_parser

from legal_rag.library.plaid.codec import SAMPLE_TOKENS, sample_vectors, train_codec, write_shard
from legal_rag.library.plaid.files import open_files
from legal_rag.library.plaid.search import MappedShard

SEED = 42


def main() -> None:
    parser = vectors_parser(__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    data = load(arguments.data, arguments.vectors, arguments.dim, arguments.tokens)
    load_average = os.getloadavg()[0]
    print(f"{len(data.vectors)} tokens x {arguments.dim}, {arguments.bits} bits, load {load_average:.1f}, medians")
    writers = {"fast-plaid create": _write_with_fast_plaid, "legal_rag write_shard": _write}
    seconds: dict[str, list[float]] = {name: [] for name in writers}
    with tempfile.TemporaryDirectory() as root:
        _write(Path(root) / "warm", data._replace(vectors=data.vectors[:999], lengths=[999]), arguments.bits)
        for _ in range(arguments.runs):
            for name, write in writers.items():
                seconds[name].append(_seconds(write, Path(root) / name, data, arguments.bits))
        print(f"{'':24}{'seconds':>9}{'times':>7}{'centroids':>11}{'cosine':>8}{'bytes/token':>13}")
        slowest = statistics.median(seconds["fast-plaid create"])
        for name in writers:
            median, folder = statistics.median(seconds[name]), Path(root) / name
            size = sum(path.stat().st_size for path in folder.iterdir()) / len(data.vectors)
            n_centroids = len(open_files(folder).centroids)
            figures = f"{median:9.1f}{slowest / median:7.1f}{n_centroids:11}{_cosine(folder, data):8.4f}{size:13.1f}"
            print(f"{name:24}{figures}")


def _seconds(write: Callable[[Path, TokenVectors, int], None], folder: Path, data: TokenVectors, n_bits: int) -> float:
    shutil.rmtree(folder, ignore_errors=True)
    started = time.perf_counter()
    write(folder, data, n_bits)
    return time.perf_counter() - started


def _write(folder: Path, data: TokenVectors, n_bits: int) -> None:
    codec = train_codec(sample_vectors(data.vectors, SAMPLE_TOKENS, SEED), n_bits=n_bits, seed=SEED)
    write_shard(folder, data.vectors, data.lengths, codec)


def _write_with_fast_plaid(folder: Path, data: TokenVectors, n_bits: int) -> None:
    passages = list(torch.split(torch.from_numpy(np.array(data.vectors)), data.lengths))
    with FastPlaid(str(folder), device="cpu") as index:
        index.create(passages, nbits=n_bits, seed=SEED, start_from_scratch=0)


def _cosine(folder: Path, data: TokenVectors) -> float:
    shard, ends = MappedShard(folder), np.cumsum(data.lengths)
    cosines = []
    for passage in range(0, len(data.lengths), max(1, len(data.lengths) // 200)):
        original = np.asarray(data.vectors[ends[passage] - data.lengths[passage] : ends[passage]], dtype=np.float32)
        cosines.append((shard.token_vectors(np.array([passage])) * original).sum(axis=1).mean())
    return float(np.mean(cosines))


if __name__ == "__main__":
    main()
