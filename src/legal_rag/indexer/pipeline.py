"""The stages of a build: chunk, train a codebook, encode, write shards; each resumes where an attempt stopped."""

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from legal_rag.base.files import made_once, progress, write_whole
from legal_rag.base.sqlite import connect_to_read
from legal_rag.corpus.chunking import Chunk, Chunker, document_header, has_header
from legal_rag.corpus.chunking import chunk_document as chunk_document
from legal_rag.corpus.documents import Document
from legal_rag.encoder.encoder import Encoder
from legal_rag.indexer.config import IndexConfig, chunker_of
from legal_rag.indexer.shards import (
    ShardWriter,
    discard_attempts,
    discard_plaid,
    discard_shards,
    is_complete,
    shard_home,
)
from legal_rag.library.store import SELECT_DOCUMENTS, StoreWriter, document_of_stored

BATCH_CHUNKS = 128  # encoded at a time, and lost by a kill: enough to sort them into batches of similar length
CODEBOOK = "codebook"  # in a build's folder until it is finished: the codec, and the batches it was trained on
CODEC = "codec"
SAMPLE_BATCHES = 8  # spread over the corpus, of which the codebook is trained
COMMIT_DOCUMENTS = 200  # stored in one transaction, and lost by a kill

T = TypeVar("T")
_END = object()


class FullShard(NamedTuple):
    """A shard all of whose chunks are stored."""

    number: int
    n_chunks: int


class EncodedBatch(NamedTuple):
    """Token vectors of consecutive chunks of a shard."""

    shard: FullShard
    matrices: list[np.ndarray]  # empty where an earlier attempt encoded all
    ends_shard: bool


@dataclass
class Stopwatch:
    """Seconds spent in each stage; stages overlap."""

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
        for stage, spent in seconds.items():
            self.seconds[stage] = self.seconds.get(stage, 0.0) + spent

    def timing(self, stage: str, items: Iterable[T]) -> Iterator[T]:
        """Yield items, adding the time that each takes to arrive to a stage."""
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
    encoder: Encoder,
    cfg: IndexConfig,
    watch: Stopwatch,
    codec_folder: Path | None = None,
) -> None:
    """Store documents and write their shards into `folder`, resuming an earlier attempt.

    `codec_folder` holds the codec of the shards; without it, one is trained.

    Raises:
        FileNotFoundError: If there is no codec in `codec_folder`.
        OSError: If the disk is full; what was done so far stays for the next attempt.
    """
    discard_attempts(folder)
    chunker = chunker_of(cfg, encoder)
    stored = list(store_documents(documents, store, chunker, watch))
    if not cfg.n_bits or not stored:
        return
    with closing(connect_to_read(store.path)) as connection:
        codec_folder = codec_folder or prepare_codebook(folder, connection, stored, chunker, encoder, cfg, watch)
        with (
            progress("Indexing", unit=" chunks", total=store.n_chunks) as bar,
            prefetched(
                encode_shards(folder, connection, stored, chunker, encoder, watch, folder / CODEBOOK)
            ) as batches,
        ):
            for batch in write_shards(folder, batches, encoder.identity.dim, codec_folder, cfg, watch):
                bar.update(len(batch.matrices))


def store_documents(
    documents: Iterable[Document], store: StoreWriter, chunker: Chunker, watch: Stopwatch
) -> Iterator[FullShard]:
    """Cut documents into chunks and store both; yield each shard as soon as all its chunks are stored."""
    n_full = 0
    read = progress("Storing", iterable=watch.timing("read", documents), unit=" documents")
    for number, document in enumerate(read, start=1):
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


def prepare_codebook(
    folder: Path,
    connection: sqlite3.Connection,
    shards: Sequence[FullShard],
    chunker: Chunker,
    encoder: Encoder,
    cfg: IndexConfig,
    watch: Stopwatch,
) -> Path:
    """Train the codec of all `shards` of a build in its `folder`, unless an attempt did; return the codec's folder.

    The sample is some whole batches, which `encode_shards` reuses: nothing is encoded twice.
    """
    target, note = folder / CODEBOOK / CODEC, folder / CODEBOOK / "shards.json"
    trained_on = note.read_text(encoding="utf-8") if note.is_file() else ""
    if target.is_dir() and trained_on != json.dumps(shards):  # the source has grown since
        discard_codebook(folder)
    if not target.is_dir():
        batches = [(shard, start) for shard in shards for start in range(0, shard.n_chunks, BATCH_CHUNKS)]
        chosen = np.unique(np.linspace(0, len(batches) - 1, SAMPLE_BATCHES).astype(int)).tolist()
        sample: list[np.ndarray] = []
        for shard, start in progress("Sampling", iterable=[batches[i] for i in chosen], unit=" batches"):
            ahead = _ahead(folder / CODEBOOK, shard, start, encoder)
            end = min(start + BATCH_CHUNKS, shard.n_chunks)
            if ahead.resume(end - start) < end - start:
                ahead.append(_encode_batch(connection, shard, start, end, chunker, encoder, watch))
            sample += ahead.matrices()
        write_whole(note, json.dumps(shards))
        train_into(target, np.concatenate(sample), cfg, watch)
    return target


def train_into(target: Path, sample: np.ndarray, cfg: IndexConfig, watch: Stopwatch) -> None:
    """Train a codec on a sample of token vectors, and write it into the new folder `target`."""
    from legal_rag.library.plaid.codec import SAMPLE_TOKENS, sample_vectors, train_codec, write_codec

    with watch.timed("train"), made_once(target) as scratch:
        sample = sample_vectors(sample, SAMPLE_TOKENS, cfg.seed)
        write_codec(scratch, train_codec(sample, n_bits=cfg.n_bits, seed=cfg.seed))


def discard_codebook(folder: Path) -> None:
    """Delete the codebook of a build, after all shards that were made with it."""
    discard_shards(folder, 0)
    with suppress(FileNotFoundError):  # a half-deleted codec must not pass for a whole one
        os.replace(folder / CODEBOOK / CODEC, folder / CODEBOOK / f".{CODEC}")
    shutil.rmtree(folder / CODEBOOK, ignore_errors=True)


def encode_shards(
    folder: Path,
    connection: sqlite3.Connection,
    shards: Iterable[FullShard],
    chunker: Chunker,
    encoder: Encoder,
    watch: Stopwatch,
    sampled: Path,
) -> Iterator[EncodedBatch]:
    """Encode, batch by batch, what is not encoded yet of each incomplete shard; batches in `sampled` are reused."""
    for shard in shards:
        home = shard_home(folder, shard.number)
        if is_complete(home, shard.n_chunks):
            continue
        discard_plaid(home)
        done = shard_writer(folder, shard, encoder.identity.dim).resume(shard.n_chunks)
        if done == shard.n_chunks:
            yield EncodedBatch(shard, [], ends_shard=True)
        for start in range(done, shard.n_chunks, BATCH_CHUNKS):
            end = min(start + BATCH_CHUNKS, shard.n_chunks)
            matrices = _ahead(sampled, shard, start, encoder).matrices()
            if len(matrices) != end - start:
                matrices = _encode_batch(connection, shard, start, end, chunker, encoder, watch)
            yield EncodedBatch(shard, matrices, ends_shard=end == shard.n_chunks)


def write_shards(
    folder: Path,
    batches: Iterable[EncodedBatch],
    dim: int,
    codec_folder: Path,
    cfg: IndexConfig,
    watch: Stopwatch,
) -> Iterator[EncodedBatch]:
    """Write encoded batches into their shards, and PLAID files after a shard's last batch; yield each batch."""
    for batch in batches:
        writer = shard_writer(folder, batch.shard, dim)
        if batch.matrices:
            writer.append(batch.matrices)
        if batch.ends_shard:
            with watch.timed("write_plaid"):
                writer.write_plaid(codec_folder, keep_vectors=cfg.keep_embeddings)
        yield batch


def shard_writer(folder: Path, shard: FullShard, dim: int) -> ShardWriter:
    """Open the writer of a shard in `folder`."""
    return ShardWriter(shard_home(folder, shard.number), dim, BATCH_CHUNKS)


def chunks_of(document: Document, chunker: Chunker) -> list[Chunk]:
    """Chunk a document, whose columns the header may name."""
    return chunk_document(
        document.content, document.id, document.title, document.decision_date, chunker, columns=document.row()
    )


def _ahead(sampled: Path, shard: FullShard, start: int, encoder: Encoder) -> ShardWriter:
    """Open the files of a batch that was encoded before its shard."""
    return ShardWriter(sampled / f"{shard.number}-{start}", encoder.identity.dim, BATCH_CHUNKS)


def _encode_batch(
    connection: sqlite3.Connection,
    shard: FullShard,
    start: int,
    end: int,
    chunker: Chunker,
    encoder: Encoder,
    watch: Stopwatch,
) -> list[np.ndarray]:
    texts = list(_encoder_inputs(connection, shard.number, start, end, chunker))
    with watch.timed("encode"):
        return encoder.encode_documents(texts)


def _encoder_inputs(
    connection: sqlite3.Connection, shard: int, start: int, end: int, chunker: Chunker
) -> Iterator[str]:
    """Yield the texts to encode, headers included, of a shard's chunks from position `start` to below `end`."""
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


@contextmanager
def prefetched(items: Iterator[T]) -> Iterator[Iterator[T]]:
    """Make each item in a background thread while the one before is used.

    On leaving, also after an error, the item being made is waited for, and the generator of items is closed.
    """
    worker = ThreadPoolExecutor(1, thread_name_prefix="stage")
    try:
        yield _one_ahead(items, worker)
    finally:
        worker.shutdown()
        if isinstance(items, Generator):
            items.close()


def _one_ahead(items: Iterator[T], worker: ThreadPoolExecutor) -> Iterator[T]:
    upcoming = worker.submit(next, items, _END)
    while (item := upcoming.result()) is not _END:
        upcoming = worker.submit(next, items, _END)
        yield item  # type: ignore[misc]
