"""Build an index; add and remove documents."""

import dataclasses
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from legal_rag.corpus.documents import Document, document_of_row
from legal_rag.corpus_index.building import fill_index
from legal_rag.encoder.encoder import Encoder, build_encoder, load_encoder
from legal_rag.indexer.commit import LibraryUpdate, append_bad_records, building, finish_library, staging, updating
from legal_rag.indexer.config import (
    PLAID_SETTINGS,
    IndexConfig,
    IndexReport,
    as_the_library,
    chunker_of,
    library_path,
    mapping_head,
    open_documents,
    read_ids,
    shard_settings,
    source_entry,
    source_label,
)
from legal_rag.indexer.pipeline import Stopwatch, discard_shards, fill_shards
from legal_rag.library.carry_over import forget_entities
from legal_rag.library.library import DEFAULT_FOLDER, DEFAULT_NAME, STORE, Library
from legal_rag.library.store import StoreWriter


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

    What they take on the disk is given back by `legal_rag.indexer.compact_index`.

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
