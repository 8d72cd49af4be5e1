"""A Library's later commits: documents added, replaced and removed.

In: a source, or ids. Out: the Library's next commit; what was there is not written again.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from legal_rag.corpus import Document
from legal_rag.encoder import Encoder
from legal_rag.extraction.moving import forget_entities
from legal_rag.index_config import (
    IndexConfig,
    IndexReport,
    as_the_library,
    chunker_of,
    mapping_head,
    shard_settings,
    source_entry,
)
from legal_rag.library import DEFAULT_FOLDER, DEFAULT_NAME, STORE, Library
from legal_rag.library_encoder import load_encoder
from legal_rag.library_writer import LibraryUpdate, append_bad_records, staging, updating
from legal_rag.pipeline import Stopwatch, fill_shards
from legal_rag.selection import open_documents
from legal_rag.shard_draft import discard_shards
from legal_rag.store import StoreWriter


def add_documents(cfg: IndexConfig, encoder: Encoder | None = None) -> IndexReport:
    """Add the documents of a source to a Library, in shards of their own; nothing else is written again.

    Documents that are there unchanged are passed over; one that changed is replaced. All are chunked and encoded as the
    Library's others were, whatever `cfg` says of that.

    Args:
        cfg: The source and its options, the limit, the ids file, and where the Library is.
        encoder: The Library's encoder, if it is loaded already.

    Raises:
        FileNotFoundError: If there is no Library, or the source or the encoder does not exist.
        ValueError: If the encoder is not the Library's, or another process is writing to it.
    """
    started = time.perf_counter()
    report = IndexReport()
    documents, wanted = open_documents(cfg, report)
    with updating(cfg.index_folder, cfg.index_name) as update:
        cfg = as_the_library(cfg, update.manifest)
        allowed = cfg.encoder.trust_remote_code
        encoder = load_encoder(update.manifest, update.path, encoder, trust_remote_code=allowed, documents=True)
        key = {"lineage": update.manifest["lineage"], "commit": update.commit}
        key["backend"] = getattr(encoder, "backend", "")
        with (
            staging(update.path, "adding", key) as scratch,
            closing(_store_for(update, scratch / STORE, cfg.shard_chunks)) as store,
        ):
            new = _changed(documents, update, report)
            watch = Stopwatch(report.seconds)
            fill_shards(update.path, new, store, chunker_of(cfg, encoder), encoder, shard_settings(cfg), watch)
            store.finish()
            if store.n_documents or report.bad:
                _commit_added(update, store, cfg, report)
        report.path, report.encoder = str(update.path), encoder.identity.name
    report.missing_ids = sorted(wanted)
    report.seconds["total"] = time.perf_counter() - started
    return report


def remove_documents(
    doc_ids: Iterable[str], index_folder: str | Path = DEFAULT_FOLDER, index_name: str = DEFAULT_NAME
) -> int:
    """Remove documents from a Library, and return how many; their passages are found no longer from then on.

    What they take on the disk is given back by `legal_rag.compaction.compact_index`.

    Raises:
        FileNotFoundError: If there is no Library.
        LookupError: If one of the documents is not there; then none is removed.
    """
    ids = list(doc_ids)
    with updating(index_folder, index_name) as update:
        removed = update.remove(ids)
        forget_entities(update.path, ids)
    return removed


class IncrementalIndexer:
    """Adds documents to a Library and removes them one by one; its corpus index follows.

    Args:
        library: The Library, or its folder.
    """

    def __init__(self, library: Library | str | Path) -> None:
        path = (library.path if isinstance(library, Library) else Path(library).expanduser()).absolute()
        self._folder, self._name = str(path.parent), path.name

    def add_document(self, source: str | Path | Document | Mapping[str, Any]) -> IndexReport:
        """Add a document; one with the same id is replaced.

        Args:
            source: A file, whose name becomes the id, a document, or a row of a dataset.

        Raises:
            FileNotFoundError: If there is no such file, or no Library.
            ValueError: If it holds no text, or another process is writing to the Library.
        """
        row = source.row() if isinstance(source, Document) else source
        given = [row] if isinstance(row, Mapping) else row
        return add_documents(IndexConfig(source=given, index_folder=self._folder, index_name=self._name))

    def remove_document(self, doc_id: str) -> None:
        """Remove a document.

        Raises:
            LookupError: If there is no such document.
            ValueError: If another process is writing to the Library.
        """
        remove_documents([doc_id], self._folder, self._name)


def _store_for(update: LibraryUpdate, path: Path, shard_chunks: int) -> StoreWriter:
    """Open the store of an addition, whose shards are written into the Library: until a commit nobody sees them."""
    return StoreWriter(
        path,
        shard_chunks=shard_chunks,
        first_shard=len(update.manifest["shards"]),
        on_forget=partial(discard_shards, update.path),
    )


def _changed(documents: Iterable[Document], update: LibraryUpdate, report: IndexReport) -> Iterator[Document]:
    for document in documents:
        if update.holds(document):
            report.unchanged += 1
        else:
            yield document


def _commit_added(update: LibraryUpdate, store: StoreWriter, cfg: IndexConfig, report: IndexReport) -> None:
    append_bad_records(update.path, report.bad, update.manifest["counts"]["bad_records"])
    shards = range(store.first_shard, store.first_shard + store.n_shards)
    source = source_entry(cfg)
    entry = {"source": source, "bad_records": len(report.bad)}
    done = update.add(store.path, shards, mapping_head(source), entry)
    report.documents, report.chunks, report.replaced = done.added.documents, done.added.chunks, done.removed.documents
    report.tokens = done.tokens
