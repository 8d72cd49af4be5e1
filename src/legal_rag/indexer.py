"""The offline pipeline: a source becomes a Library.

In: an `IndexConfig`. Out: the Library folder, and an `IndexReport` of what went in and how long it took.
What passes between source and folder is in `pipeline`; adding and removing, in `updates`.
"""

import dataclasses
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from legal_rag.chunking import chunk_document
from legal_rag.corpus_index.building import fill_index
from legal_rag.encoder import Encoder, build_encoder
from legal_rag.index_config import (
    PLAID_SETTINGS,
    IndexConfig,
    IndexReport,
    chunker_of,
    library_path,
    mapping_head,
    shard_settings,
    source_entry,
    source_label,
)
from legal_rag.library import STORE, Library
from legal_rag.library_writer import append_bad_records, building, finish_library
from legal_rag.pipeline import Stopwatch, fill_shards
from legal_rag.rows import document_of_row
from legal_rag.selection import open_documents, read_ids
from legal_rag.shard_draft import discard_shards
from legal_rag.store import StoreWriter
from legal_rag.updates import IncrementalIndexer, add_documents, remove_documents

__all__ = [
    "IncrementalIndexer",
    "IndexConfig",
    "IndexReport",
    "add_documents",
    "build_index",
    "chunk_document",
    "open_index",
    "preprocess",
    "remove_documents",
]


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

    A build that was killed is taken up by the next one with the same settings, and gives the same index.

    Args:
        cfg: What to build, and where.
        encoder: One already loaded, in place of the one `cfg` names.

    Raises:
        FileNotFoundError: If the source, the ids file or the encoder does not exist.
        ValueError: If no document is left, a column is unknown, or the folder holds something else than a Library.
        OSError: If the disk is full; what was there before is untouched.
    """
    started = time.perf_counter()
    report = IndexReport()
    documents, wanted = open_documents(cfg, report)
    encoder = encoder or build_encoder(cfg.encoder)
    with filling(cfg, encoder, report) as (scratch, store):
        watch = Stopwatch(report.seconds)
        fill_shards(scratch, documents, store, chunker_of(cfg, encoder), encoder, shard_settings(cfg), watch)
    report.missing_ids = sorted(wanted)
    report.seconds["total"] = time.perf_counter() - started
    return report


@contextmanager
def filling(cfg: IndexConfig, encoder: Encoder, report: IndexReport) -> Iterator[tuple[Path, StoreWriter]]:
    """Give a folder and a store to fill with documents and their shards; on leaving they become the Library of `cfg`.

    Args:
        cfg: What is built, and where.
        encoder: The Library's.
        report: Told what the Library holds.

    Raises:
        ValueError: If no document held any text, or for what `building` says.
        OSError: If the disk is full.
    """
    with building(cfg.index_folder, cfg.index_name, _build_key(cfg, encoder)) as scratch:
        forget = partial(discard_shards, scratch)
        with closing(StoreWriter(scratch / STORE, shard_chunks=cfg.shard_chunks, on_forget=forget)) as store:
            yield scratch, store
            _complete_build(scratch, store, cfg, encoder, report)


def _complete_build(scratch: Path, store: StoreWriter, cfg: IndexConfig, encoder: Encoder, report: IndexReport) -> None:
    if not store.n_chunks:
        raise ValueError(f"no chunk in {cfg.source!s}: its documents hold no text the encoder can read")
    store.finish()
    append_bad_records(scratch, report.bad, 0)
    report.documents, report.chunks = store.n_documents, store.n_chunks
    report.path, report.encoder = str(library_path(cfg)), encoder.identity.name
    manifest = _manifest(cfg, encoder, report)
    manifest = finish_library(scratch, manifest, mapping_head(manifest["source"]), store.n_shards)
    report.tokens = manifest["counts"]["tokens"]
    if cfg.corpus_index:
        with Stopwatch(report.seconds).timed("corpus_index"):
            fill_index(scratch, manifest["lineage"], manifest["commit"])


def open_index(cfg: IndexConfig) -> Library:
    """Open the Library that `build_index` made with `cfg`."""
    return Library.open(cfg.index_folder, cfg.index_name)


def _build_key(cfg: IndexConfig, encoder: Encoder) -> dict[str, Any]:
    """Return what two attempts at a build must have in common for one to go on where the other stopped."""
    return {
        **{name: getattr(cfg, name) for name in ("limit", *PLAID_SETTINGS)},
        "source": str(source_label(cfg)),
        "options": cfg.options._asdict(),
        "ids": sorted(read_ids(cfg.ids_file)),
        "chunks": dataclasses.asdict(cfg.chunks),
        "encoder": dataclasses.asdict(encoder.identity),
        "backend": getattr(encoder, "backend", ""),  # what was encoded in another precision is not gone on with
    }


def _manifest(cfg: IndexConfig, encoder: Encoder, report: IndexReport) -> dict[str, Any]:
    return {
        "commit": 1,
        "encoder": dataclasses.asdict(encoder.identity),
        "chunks": dataclasses.asdict(cfg.chunks),
        "plaid": {name: getattr(cfg, name) for name in PLAID_SETTINGS},
        "source": source_entry(cfg),
        "counts": {"documents": report.documents, "chunks": report.chunks, "bad_records": len(report.bad)},
        "built": {},
    }
