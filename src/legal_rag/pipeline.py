"""The stages of a build: documents are stored with their chunks, chunks are encoded, shards are written.

In: a stream of documents, a folder. Out: a store and complete shards in that folder. The stages overlap: while one
window of chunks is written, the next is being encoded and further documents are being cut into chunks.
A build that was killed is taken up where it stopped: stored documents are compared with the source, not cut again;
encoded chunks are not encoded again; a shard is written from the same vectors as it would have been.
"""

import sqlite3
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from legal_rag.chunking import Chunk, Chunker, chunk_document, document_header, has_header
from legal_rag.corpus import Document
from legal_rag.encoder import Encoder
from legal_rag.progress import progress
from legal_rag.shard_draft import ShardDraft, discard_attempts, discard_plaid, is_complete, shard_home
from legal_rag.sqlite import connect_to_read
from legal_rag.store import SELECT_DOCUMENTS, StoreWriter, document_of_stored

WINDOW_CHUNKS = 256  # chunks encoded at a time, and lost by a kill: enough for batches of like lengths
COMMIT_DOCUMENTS = 200  # stored before others see them, and lost by a kill

T = TypeVar("T")
_END = object()


class ShardSettings(NamedTuple):
    """What decides a shard's files besides its chunks."""

    n_bits: int  # 0: no PLAID files
    seed: int
    keep_vectors: bool


class FullShard(NamedTuple):
    """A shard all of whose chunks are stored."""

    number: int
    n_chunks: int


class EncodedWindow(NamedTuple):
    """Token vectors of chunks that follow one another in a shard."""

    shard: FullShard
    matrices: list[np.ndarray]  # none where all were encoded before
    ends_shard: bool


@dataclass
class Stopwatch:
    """Seconds spent in each stage; stages run beside one another."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the time of a block to a stage."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.add({stage: time.perf_counter() - started})

    def add(self, seconds: Mapping[str, float]) -> None:
        """Add the times of another watch."""
        for stage, one in seconds.items():
            self.seconds[stage] = self.seconds.get(stage, 0.0) + one

    def timing(self, stage: str, items: Iterable[T]) -> Iterator[T]:
        """Hand items on, adding the time they take to come to a stage."""
        iterator = iter(items)
        while True:
            with self.timed(stage):
                item = next(iterator, _END)
            if item is _END:
                return
            yield item  # type: ignore[misc]


def fill_shards(
    folder: Path,
    documents: Iterable[Document],
    store: StoreWriter,
    chunker: Chunker,
    encoder: Encoder,
    settings: ShardSettings,
    watch: Stopwatch,
) -> None:
    """Store documents and write their shards into `folder`, going on from what is there.

    Raises:
        OSError: If the disk is full; what was done so far stays for the next attempt.
    """
    discard_attempts(folder)
    if not settings.n_bits:
        for _ in store_documents(documents, store, chunker, watch):
            pass
        return
    with (
        closing(connect_to_read(store.path)) as connection,
        progress("Indexing", unit=" chunks") as bar,
        prefetched(store_documents(documents, store, chunker, watch)) as full,
        prefetched(encode_shards(folder, connection, full, chunker, encoder, watch)) as windows,
    ):
        for window in write_shards(folder, windows, encoder.identity.dim, settings, watch):
            bar.total = store.n_chunks
            bar.update(len(window.matrices))


def write_shards(
    folder: Path, windows: Iterable[EncodedWindow], dim: int, settings: ShardSettings, watch: Stopwatch
) -> Iterator[EncodedWindow]:
    """Write encoded windows into their shards, and a shard's PLAID files with its last one; hand each window on."""
    for window in windows:
        if window.matrices:
            draft_of(folder, window.shard, dim).append(window.matrices)
        if window.ends_shard:
            with watch.timed("write_plaid"):
                draft_of(folder, window.shard, dim).write_plaid(**settings._asdict())
        yield window


def store_documents(
    documents: Iterable[Document], store: StoreWriter, chunker: Chunker, watch: Stopwatch
) -> Iterator[FullShard]:
    """Cut documents into chunks and store both; yield each shard as soon as all its chunks are stored."""
    n_full = 0
    for number, document in enumerate(watch.timing("read", documents), start=1):
        if not store.holds_next(document):
            with watch.timed("chunk"):
                store.add(document, chunks_of(document, chunker))
        if number % COMMIT_DOCUMENTS == 0:
            store.commit()
        while store.n_chunks >= (n_full + 1) * store.shard_chunks:
            store.commit()
            yield FullShard(store.first_shard + n_full, store.shard_chunks)
            n_full += 1
    store.end_of_source()
    store.commit()
    if rest := store.n_chunks - n_full * store.shard_chunks:
        yield FullShard(store.first_shard + n_full, rest)


def encode_shards(
    folder: Path,
    connection: sqlite3.Connection,
    shards: Iterable[FullShard],
    chunker: Chunker,
    encoder: Encoder,
    watch: Stopwatch,
) -> Iterator[EncodedWindow]:
    """Encode what is not encoded yet of each shard that is not complete, window by window."""
    for shard in shards:
        if is_complete(shard_home(folder, shard.number), shard.n_chunks):
            continue
        discard_plaid(shard_home(folder, shard.number))
        done = draft_of(folder, shard, encoder.identity.dim).take_up(shard.n_chunks)
        if done == shard.n_chunks:
            yield EncodedWindow(shard, [], ends_shard=True)
        for start in range(done, shard.n_chunks, WINDOW_CHUNKS):
            end = min(start + WINDOW_CHUNKS, shard.n_chunks)
            texts = list(encoded_texts(connection, shard.number, start, end, chunker))
            with watch.timed("encode"):
                matrices = encoder.encode_documents(texts)
            yield EncodedWindow(shard, matrices, ends_shard=end == shard.n_chunks)


def encoded_texts(connection: sqlite3.Connection, shard: int, start: int, end: int, chunker: Chunker) -> Iterator[str]:
    """Yield what the encoder is given of a shard's chunks from position `start` to below `end`."""
    rows = connection.execute(
        "SELECT document_key, chunk_index, char_start, char_end FROM chunks"
        " WHERE shard = ? AND position >= ? AND position < ? ORDER BY position",
        (shard, start, end),
    ).fetchall()
    for key, chunks in groupby(rows, key=lambda row: row[0]):
        row = connection.execute(f"{SELECT_DOCUMENTS} WHERE document_key = ?", (key,)).fetchone()
        document = document_of_stored(row)
        header = document_header(chunker, document.row())
        for _, index, char_start, char_end in chunks:
            yield (header if has_header(chunker.config, index) else "") + document.content[char_start:char_end]


def draft_of(folder: Path, shard: FullShard, dim: int) -> ShardDraft:
    """Return the draft of a shard's token vectors."""
    return ShardDraft(shard_home(folder, shard.number), dim, WINDOW_CHUNKS)


@contextmanager
def prefetched(items: Iterator[T]) -> Iterator[Iterator[T]]:
    """Hand items on while the next one is being made, in a thread of its own that makes them all.

    On leaving, also because of an error, the item being made is waited for, and what makes them is closed.
    """
    worker = ThreadPoolExecutor(1, thread_name_prefix="stage")
    try:
        yield _handed_on(items, worker)
    finally:
        worker.shutdown()
        if isinstance(items, Generator):
            items.close()


def _handed_on(items: Iterator[T], worker: ThreadPoolExecutor) -> Iterator[T]:
    upcoming = worker.submit(next, items, _END)
    while (item := upcoming.result()) is not _END:
        upcoming = worker.submit(next, items, _END)
        yield item  # type: ignore[misc]


def chunks_of(document: Document, chunker: Chunker) -> list[Chunk]:
    """Cut a stored document, whose columns the header may name."""
    return chunk_document(
        document.content,
        document.id,
        document.title,
        document.decision_date,
        chunker,
        columns=document.row(),
    )
