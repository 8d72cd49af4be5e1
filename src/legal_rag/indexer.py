"""The offline pipeline: a source becomes a Library.

In: an `IndexConfig`. Out: the Library folder, and an `IndexReport` of what went in and how long it took.
Documents stream through: read, chunk, encode, append to a file of token vectors; PLAID is written from that file.
"""

import dataclasses
import itertools
import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from legal_rag.chunking import Chunk, ChunkConfig, Chunker, build_chunker, chunk_document
from legal_rag.corpus import DEFAULT_CONFIG, DEFAULT_DATASET, BadRecord, Document, SourceOptions, read_documents
from legal_rag.encoder import Encoder, EncoderConfig, build_encoder
from legal_rag.library import BAD_RECORDS, DEFAULT_FOLDER, DEFAULT_NAME, Library
from legal_rag.library_writer import LibraryWriter, building
from legal_rag.plaid_format import PLAID_FOLDER
from legal_rag.progress import progress
from legal_rag.rows import document_of_row

__all__ = ["IndexConfig", "IndexReport", "build_index", "chunk_document", "preprocess"]

ENCODING_CHUNKS = 256  # chunks encoded at a time: enough for batches of like lengths
BAD_RECORDS_LISTED = 20  # told while building; all are written into the Library

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class IndexConfig:
    """Everything that decides what an index contains; saved in its manifest."""

    source: Any = DEFAULT_DATASET  # see `legal_rag.corpus.read_documents`
    options: SourceOptions = field(default_factory=SourceOptions)
    limit: int | None = None  # documents; None takes all
    ids_file: str | None = None  # one id a line: these documents are taken first, `limit` fills up with others
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    chunks: ChunkConfig = field(default_factory=ChunkConfig)
    n_bits: int = 4  # bits per residual dimension in the PLAID index: 1, 2 or 4
    seed: int = 42
    index_folder: str = DEFAULT_FOLDER
    index_name: str = DEFAULT_NAME

    def __post_init__(self) -> None:
        if self.n_bits not in (1, 2, 4):
            raise ValueError(f"n_bits must be 1, 2 or 4, got {self.n_bits}")
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"limit must be at least 1, got {self.limit}")
        if not self.index_name or Path(self.index_name).name != self.index_name or self.index_name.startswith("."):
            raise ValueError(f"index_name must be a plain folder name, got {self.index_name!r}")


@dataclass
class IndexReport:
    """What a build did."""

    path: str = ""
    encoder: str = ""
    documents: int = 0
    chunks: int = 0
    tokens: int = 0  # token vectors stored
    bad: list[BadRecord] = field(default_factory=list)  # records left out; also in the Library's bad_records.jsonl
    missing_ids: list[str] = field(default_factory=list)  # asked for in the ids file, absent or not readable
    seconds: dict[str, float] = field(default_factory=dict)  # by step: read_chunk, encode, write_plaid, total

    def to_json(self) -> dict[str, Any]:
        """Return the form that `legal-rag index --json` prints."""
        return {**dataclasses.asdict(self), "bad": [record._asdict() for record in self.bad]}


def preprocess(sample: Mapping[str, Any]) -> dict[str, str]:
    """Take from a dataset row what chunking needs: `content`, `doc_id`, `title`, `decision_date`.

    Raises:
        LookupError: If the row has no id or no text.
    """
    document = document_of_row(sample)
    return {
        "content": document.content,
        "doc_id": document.id,
        "title": document.title,
        "decision_date": document.decision_date,
    }


def build_index(cfg: IndexConfig, encoder: Encoder | None = None) -> IndexReport:
    """Build a Library from a source; one already in its place is replaced when the new one is complete.

    Args:
        cfg: What to build, and where.
        encoder: One already loaded, in place of the one `cfg` names.

    Raises:
        FileNotFoundError: If the source, the ids file or the encoder does not exist.
        ValueError: If no document is left, or a column is unknown.
        OSError: If the disk is full; what was there before is untouched.
    """
    started = time.perf_counter()
    report = IndexReport()
    wanted = _read_ids(cfg.ids_file)
    documents = _selected_documents(cfg, wanted, report)
    first = next(documents, None)  # before the encoder is loaded: a wrong source is known at once
    if first is None:
        raise ValueError(f"no document in {cfg.source!s}")
    encoder = encoder or build_encoder(cfg.encoder)
    with building(cfg.index_folder, cfg.index_name) as writer:
        _fill(writer, itertools.chain([first], documents), encoder, cfg, report)
    report.path = str(Path(cfg.index_folder).expanduser() / cfg.index_name)
    report.encoder = encoder.identity.name
    report.missing_ids = sorted(wanted)
    report.seconds["total"] = time.perf_counter() - started
    return report


def open_index(cfg: IndexConfig) -> Library:
    """Open the Library that `build_index` made with `cfg`."""
    return Library.open(cfg.index_folder, cfg.index_name)


def _fill(
    writer: LibraryWriter, documents: Iterator[Document], encoder: Encoder, cfg: IndexConfig, report: IndexReport
) -> None:
    chunker = build_chunker(cfg.chunks, encoder.count_tokens, encoder.identity.document_length)
    vector_file = writer.path / "token_vectors.f16"
    passage_tokens: list[int] = []
    with vector_file.open("wb") as vectors:
        for batch in _chunk_batches(documents, chunker, writer, report):
            with _timed(report, "encode"):
                matrices = encoder.encode_documents([chunk.encoded_text for chunk in batch])
            for matrix in matrices:
                vectors.write(matrix.astype(np.float16).tobytes())
                passage_tokens.append(len(matrix))
    report.chunks, report.tokens = len(passage_tokens), sum(passage_tokens)
    if not passage_tokens:
        raise ValueError(f"no chunk in {cfg.source!s}: its documents hold no text the encoder can read")
    with _timed(report, "write_plaid"):
        _write_plaid(writer.path / PLAID_FOLDER, vector_file, passage_tokens, encoder.identity.dim, cfg)
    vector_file.unlink()
    writer.write_mapping(0, writer.path, str(_source_label(cfg)), cfg.options.split, _config_label(cfg))
    _write_bad_records(writer.path / BAD_RECORDS, report.bad)
    writer.finish(_manifest(cfg, encoder, report))


def _write_bad_records(file: Path, bad: list[BadRecord]) -> None:
    lines = [json.dumps(record._asdict(), ensure_ascii=False) + "\n" for record in bad]
    if lines:
        file.write_text("".join(lines), encoding="utf-8")


def _write_plaid(folder: Path, vector_file: Path, passage_tokens: list[int], dim: int, cfg: IndexConfig) -> None:
    from legal_rag.plaid_writer import write_shard

    vectors = np.memmap(vector_file, dtype=np.float16, mode="r", shape=(sum(passage_tokens), dim))
    write_shard(folder, vectors, passage_tokens, n_bits=cfg.n_bits, seed=cfg.seed)


def _chunk_batches(
    documents: Iterable[Document], chunker: Chunker, writer: LibraryWriter, report: IndexReport
) -> Iterator[list[Chunk]]:
    """Store documents and their chunks, and yield the chunks in batches for the encoder."""
    waiting: list[Chunk] = []
    position = 0
    for document in progress("Indexing", iterable=documents, unit=" documents"):
        with _timed(report, "read_chunk"):
            chunks = chunk_document(
                document.content,
                document.id,
                document.title,
                document.decision_date,
                chunker,
                columns=document.row(),
            )
            writer.add_document(document, chunks, shard=0, first_position=position)
        position += len(chunks)
        report.documents += 1
        waiting += chunks
        while len(waiting) >= ENCODING_CHUNKS:
            yield waiting[:ENCODING_CHUNKS]
            waiting = waiting[ENCODING_CHUNKS:]
    if waiting:
        yield waiting


def _selected_documents(cfg: IndexConfig, wanted: set[str], report: IndexReport) -> Iterator[Document]:
    """Stream the documents to index: those in `wanted`, which is emptied of the ones found, then the others."""

    noted: set[BadRecord] = set()  # with an ids file the source is read twice

    def note(record: BadRecord) -> None:
        if record in noted:
            return
        noted.add(record)
        report.bad.append(record)
        if len(report.bad) <= BAD_RECORDS_LISTED:
            logger.warning("left out %s: %s", record.where, record.problem)

    if not wanted:
        yield from itertools.islice(read_documents(cfg.source, cfg.options, on_bad=note), cfg.limit)
        return
    if isinstance(cfg.source, Iterator):
        raise ValueError("with an ids file the source is read twice, and an iterator can be read only once")
    asked = frozenset(wanted)
    taken = 0
    for document in read_documents(cfg.source, cfg.options, on_bad=note):
        if document.id in asked:
            wanted.discard(document.id)
            if cfg.limit is None or taken < cfg.limit:
                taken += 1
                yield document
        if not wanted:
            break
    others = (d for d in read_documents(cfg.source, cfg.options, on_bad=note) if d.id not in asked)
    yield from itertools.islice(others, None if cfg.limit is None else cfg.limit - taken)


def _read_ids(ids_file: str | None) -> set[str]:
    if ids_file is None:
        return set()
    path = Path(ids_file).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"no such ids file: {path}")
    ids = {line.strip() for line in path.read_text(encoding="utf-8-sig", errors="replace").splitlines()} - {""}
    if not ids:
        raise ValueError(f"no id in {path} (expected one a line)")
    return ids


def _manifest(cfg: IndexConfig, encoder: Encoder, report: IndexReport) -> dict[str, Any]:
    shard = {"path": PLAID_FOLDER, "chunks": report.chunks, "tokens": report.tokens}
    return {
        "encoder": dataclasses.asdict(encoder.identity),
        "chunks": dataclasses.asdict(cfg.chunks),
        "plaid": {"n_bits": cfg.n_bits, "seed": cfg.seed},
        "source": {
            "name": _source_label(cfg),
            **cfg.options._asdict(),
            "limit": cfg.limit,
            "fingerprint": _fingerprint(cfg.source),
        },
        "counts": {
            "documents": report.documents,
            "chunks": report.chunks,
            "tokens": report.tokens,
            "bad_records": len(report.bad),
        },
        "shards": [shard],
        "built": {},
    }


def _source_label(cfg: IndexConfig) -> str:
    """Name the source without the folder it lies in: an index may be shared, its maker's paths need not be."""
    if not isinstance(cfg.source, str | Path):
        return type(cfg.source).__name__
    path = Path(cfg.source).expanduser()
    return path.name if path.exists() else str(cfg.source)


def _config_label(cfg: IndexConfig) -> str:
    return cfg.options.config or (DEFAULT_CONFIG if cfg.source == DEFAULT_DATASET else "")


def _fingerprint(source: Any) -> str:
    """Return the size and change time of a local file or folder, to tell whether it changed since; else nothing."""
    path = Path(source).expanduser() if isinstance(source, str | Path) else None
    if path is None or not path.exists():
        return ""
    status = path.stat()
    return json.dumps({"bytes": status.st_size, "changed_ns": status.st_mtime_ns})


class _timed:  # noqa: N801
    """Add the seconds spent in a block to the report's step."""

    def __init__(self, report: IndexReport, step: str) -> None:
        self._seconds, self._step = report.seconds, step

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._seconds[self._step] = self._seconds.get(self._step, 0.0) + time.perf_counter() - self._started
