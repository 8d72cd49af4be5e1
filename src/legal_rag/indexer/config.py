"""Settings of an index, and the selection of its documents."""

import dataclasses
import itertools
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from legal_rag.base.html import displayed
from legal_rag.corpus.chunking import ChunkConfig, Chunker, build_chunker, chunks_recorded
from legal_rag.corpus.documents import DEFAULT_DATASET, Document, SourceOptions, read_documents
from legal_rag.corpus.sources import BadRecord
from legal_rag.encoder.encoder import Encoder, EncoderConfig
from legal_rag.library.library import DEFAULT_FOLDER, DEFAULT_NAME

PLAID_SETTINGS = ("n_bits", "seed", "shard_chunks")
STAGES = ("open", "shards", "parts")
RebuiltPart = Literal[
    "words", "vectors", "entities", "corpus-index", "trees", "graph"
]  # of a Library: made without encoding
REBUILT_PARTS: tuple[RebuiltPart, ...] = get_args(RebuiltPart)
BAD_RECORDS_LISTED = 20  # while building; the Library lists all

logger = logging.getLogger(__name__)


@displayed
@dataclass(frozen=True, kw_only=True)
class IndexConfig:
    """Everything that decides what an index contains; saved in its manifest."""

    source: Any = DEFAULT_DATASET  # see `legal_rag.corpus.read_documents`
    options: SourceOptions = field(default_factory=SourceOptions)
    limit: int | None = None  # documents; None takes all
    ids_file: str | None = None  # one id a line: these documents are taken first, `limit` fills up with others
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    chunks: ChunkConfig = field(default_factory=ChunkConfig)
    n_bits: int = 1  # bits per residual dimension in the PLAID index: 1, 2 or 4; 0 makes none, nor encodes anything
    seed: int = 42
    shard_chunks: int = 2560  # about a million tokens: bounds the memory of a build, and what a kill can cost
    corpus_index: bool = True  # what each document is and says, for questions over many of them
    index_folder: str = DEFAULT_FOLDER
    index_name: str = DEFAULT_NAME

    def __post_init__(self) -> None:
        if self.n_bits not in (0, 1, 2, 4):
            raise ValueError(f"n_bits must be 1, 2 or 4, or 0 for no PLAID index, got {self.n_bits}")
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"limit must be at least 1, got {self.limit}")
        if self.shard_chunks < 1:
            raise ValueError(f"shard_chunks must be at least 1, got {self.shard_chunks}")
        if not self.index_name or Path(self.index_name).name != self.index_name or self.index_name.startswith("."):
            raise ValueError(f"index_name must be a plain folder name, got {self.index_name!r}")


@displayed
@dataclass
class IndexReport:
    """What a build did."""

    path: str = ""
    encoder: str = ""
    documents: int = 0
    chunks: int = 0
    tokens: int = 0  # token vectors stored
    unchanged: int = 0  # documents already indexed, when adding
    replaced: int = 0  # documents indexed before with another content, when adding
    bad: list[BadRecord] = field(default_factory=list)  # records left out; also in the Library's bad_records.jsonl
    missing_ids: list[str] = field(default_factory=list)  # of the ids file, absent or not readable
    seconds: dict[str, float] = field(default_factory=dict)  # by stage, and `total`; see `stages`, `overlapping`

    def stages(self) -> dict[str, float]:
        """Return the seconds of the stages that follow one another: they add up to the total."""
        timed = {name: self.seconds[name] for name in STAGES if name in self.seconds}
        return {**timed, "other": max(0.0, self.seconds["total"] - sum(timed.values()))}

    def overlapping(self) -> dict[str, float]:
        """Return the seconds of the concurrent stages within `shards`."""
        return {name: seconds for name, seconds in self.seconds.items() if name not in (*STAGES, "total")}

    def to_json(self) -> dict[str, Any]:
        """Return the form that `legal-rag index --json` prints."""
        return {**dataclasses.asdict(self), "bad": [record._asdict() for record in self.bad]}


def library_path(cfg: IndexConfig) -> Path:
    """Return the Library's folder."""
    return Path(cfg.index_folder).expanduser() / cfg.index_name


def chunker_of(cfg: IndexConfig, encoder: Encoder) -> Chunker:
    """Make the chunker for a configuration and its encoder."""
    return build_chunker(cfg.chunks, encoder.count_tokens, encoder.identity.document_length)


def as_recorded(cfg: IndexConfig, manifest: Mapping[str, Any]) -> IndexConfig:
    """Return `cfg` with a Library's own chunk and PLAID settings."""
    plaid = {name: manifest["plaid"][name] for name in PLAID_SETTINGS}
    return dataclasses.replace(cfg, chunks=chunks_recorded(manifest), **plaid)


def source_entry(cfg: IndexConfig) -> dict[str, Any]:
    """Return a manifest's entry on the source of a commit."""
    return {"name": source_label(cfg), **cfg.options._asdict(), "limit": cfg.limit}


def source_label(cfg: IndexConfig) -> str:
    """Name the source without its folder: a shared index should not show its maker's paths."""
    if not isinstance(cfg.source, str | Path):
        return type(cfg.source).__name__
    path = Path(cfg.source).expanduser()
    return path.name if path.exists() else str(cfg.source)


def open_documents(cfg: IndexConfig, report: IndexReport) -> Iterator[Document]:
    """Read the first document of a source, so that a wrong one fails at once, and stream all.

    Reading adds bad records and missing ids to the report. FileNotFoundError if the source or the ids file does not
    exist; ValueError if there is no document, or a column is unknown.
    """
    documents = _selected_documents(cfg, read_ids(cfg.ids_file), report)
    first = next(documents, None)
    if first is None:
        raise ValueError(f"no document in {cfg.source!s}")
    return itertools.chain([first], documents)


def _selected_documents(cfg: IndexConfig, asked: set[str], report: IndexReport) -> Iterator[Document]:
    noted: set[BadRecord] = set()  # with an ids file the source is read twice

    def note(record: BadRecord) -> None:
        if record in noted:
            return
        noted.add(record)
        report.bad.append(record)
        if len(report.bad) <= BAD_RECORDS_LISTED:
            logger.warning("left out %s: %s", record.where, record.problem)

    if not asked:
        yield from itertools.islice(read_documents(cfg.source, cfg.options, on_bad=note), cfg.limit)
        return
    if isinstance(cfg.source, Iterator):
        raise ValueError("with an ids file the source is read twice, and an iterator can be read only once")
    missing, taken = set(asked), 0
    for document in read_documents(cfg.source, cfg.options, on_bad=note):
        if document.id in asked:
            missing.discard(document.id)
            if cfg.limit is None or taken < cfg.limit:
                taken += 1
                yield document
        if not missing:
            break
    report.missing_ids = sorted(missing)
    others = (d for d in read_documents(cfg.source, cfg.options, on_bad=note) if d.id not in asked)
    yield from itertools.islice(others, None if cfg.limit is None else cfg.limit - taken)


def read_ids(ids_file: str | None) -> set[str]:
    """Read a file of ids, one a line; none without a file.

    FileNotFoundError if there is no such file; ValueError if it holds no id.
    """
    if ids_file is None:
        return set()
    path = Path(ids_file).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"no such ids file: {path}")
    ids = {line.strip() for line in path.read_text(encoding="utf-8-sig", errors="replace").splitlines()} - {""}
    if not ids:
        raise ValueError(f"no id in {path} (expected one a line)")
    return ids
