"""Token vectors of real decisions for the benchmarks of PLAID, made once and kept in a folder.

In: a folder with `decisions.jsonl.gz` and `questions-dev.jsonl`. Out, in the folder for vectors: `vectors.f16`, raw
float16, rows of the bundled encoder's dim; `lengths.npy`, the tokens of each passage; `queries.npz`, one array a query;
`meta.json`, with `n400`, the number of passages of the first 400 decisions.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from legal_rag.corpus import ChunkConfig, build_chunker, chunk_document, read_documents
from legal_rag.encoder import Encoder, bundled_encoder

ENOUGH_TOKENS = 1_000_000


class TokenVectors(NamedTuple):
    """Passages and queries, as an index holds them and as a search gets them."""

    vectors: np.ndarray  # (n_tokens, dim), float16, unit rows, mapped from a file
    lengths: list[int]  # tokens of each passage
    queries: list[np.ndarray]  # each (n_query_tokens, dim), float32, unit rows


def vectors_parser(description: str) -> argparse.ArgumentParser:
    """Make the arguments that the benchmarks of PLAID have in common."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--tokens", type=int, help="default: the first 400 decisions")
    parser.add_argument("--bits", type=int, default=4)
    return parser


def load(data: Path, folder: Path, dim: int, tokens: int | None) -> TokenVectors:
    """Read the vectors in `folder`, made from `data` where they are missing.

    Args:
        data: Folder with decisions and questions.
        folder: Where the vectors are kept.
        dim: Their width: the encoder's, or less, by a random projection of fixed seed.
        tokens: About how many; None takes the first 400 decisions.
    """
    if not (folder / "meta.json").is_file():
        _encode(data, folder)
    lengths = np.load(folder / "lengths.npy").tolist()
    n_passages = json.loads((folder / "meta.json").read_text(encoding="utf-8"))["n400"]
    if tokens is not None:
        n_passages = int(np.searchsorted(np.cumsum(lengths), tokens)) + 1
    with np.load(folder / "queries.npz") as stored:
        queries = [stored[name].astype(np.float32) for name in stored.files]
    path, width = folder / "vectors.f16", queries[0].shape[1]
    if dim < width:
        projection = np.random.default_rng(0).standard_normal((width, dim)).astype(np.float32)
        path = folder / f"vectors-{dim}.f16"
        if not path.is_file():
            _project(folder / "vectors.f16", path, projection)
        queries = [_unit(query @ projection) for query in queries]
    mapped = np.memmap(path, dtype=np.float16, mode="r").reshape(-1, dim)
    lengths = lengths[:n_passages]
    return TokenVectors(mapped[: sum(lengths)], lengths, queries)


def _encode(data: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    encoder = bundled_encoder()
    lengths: list[int] = []
    n_passages_of_400 = 0
    with (folder / "vectors.f16").open("wb") as file:
        for number, texts in enumerate(_texts(data, encoder), start=1):
            for vectors in encoder.encode_documents(texts):
                file.write(vectors.astype(np.float16).tobytes())
                lengths.append(len(vectors))
            if number == 400:
                n_passages_of_400 = len(lengths)
            if number >= 400 and sum(lengths) >= ENOUGH_TOKENS:
                break
    np.save(folder / "lengths.npy", np.array(lengths))
    questions = (data / "questions-dev.jsonl").read_text(encoding="utf-8").splitlines()
    queries = encoder.encode_queries([json.loads(line)["question"] for line in questions])
    np.savez(folder / "queries.npz", *queries)
    meta = {"n400": n_passages_of_400 or len(lengths), "tokens": sum(lengths)}
    (folder / "meta.json").write_text(json.dumps(meta), encoding="utf-8")


def _texts(data: Path, encoder: Encoder) -> Iterator[list[str]]:
    chunker = build_chunker(ChunkConfig(), encoder.count_tokens, encoder.identity.document_length)
    for document in read_documents(data / "decisions.jsonl.gz"):
        chunks = chunk_document(
            document.content, document.id, document.title, document.decision_date, chunker, columns=document.row()
        )
        yield [chunk.header + chunk.text for chunk in chunks]


def _project(source: Path, target: Path, projection: np.ndarray) -> None:
    vectors = np.memmap(source, dtype=np.float16, mode="r").reshape(-1, len(projection))
    with target.open("wb") as file:
        for start in range(0, len(vectors), 65_536):
            file.write(
                _unit(vectors[start : start + 65_536].astype(np.float32) @ projection).astype(np.float16).tobytes()
            )


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
