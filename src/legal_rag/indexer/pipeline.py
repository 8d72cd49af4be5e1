"""The stages of a build: chunk, train a codebook, encode, write shards."""

import hashlib
import shutil
import sqlite3
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
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
    CODEBOOK,
    ShardWriter,
    discard_plaid,
    discard_shards,
    discard_vectors,
    is_complete,
    shard_home,
)
from legal_rag.library.store import SELECT_DOCUMENTS, StoreWriter, document_of_stored

BATCH_CHUNKS = 128  # encoded at a time: enough to sort them into batches of similar length
CODEC = "codec"
SAMPLE_BATCHES = 8  # spread over the corpus, of which the codebook is trained
COMMIT_DOCUMENTS = 200  # stored in one transaction

T = TypeVar("T")
_END = object()


class FullShard(NamedTuple):
    """A shard all of whose chunks are stored."""

    number: int
    n_chunks: int


class EncodedBatch(NamedTuple):
    """Token vectors of consecutive chunks of a shard."""

    shard: FullShard
    matrices: list[np.ndarray]
    ends_shard: bool


EncodedAhead = dict[tuple[int, int], list[np.ndarray]]  # by shard and first position: batches of the sample


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
    """Store documents and write their shards into `folder`; those that an earlier attempt completed are kept.

    `codec_folder` holds the codec of the shards; without it, one is trained.

    Raises:
        FileNotFoundError: If there is no codec in `codec_folder`.
        OSError: If the disk is full; what was done so far stays for the next attempt.
    """
    chunker = chunker_of(cfg, encoder)
    stored = store_documents(documents, store, chunker, watch)
    if not cfg.n_bits or not stored:
        return
    sampled: EncodedAhead = {}
    with closing(connect_to_read(store.path)) as connection:
        codebook = keep_shards(folder, store, connection)
        if codec_folder is None:
            codec_folder = codebook / CODEC
            sampled = prepare_codebook(codec_folder, connection, stored, chunker, encoder, cfg, watch)
        with (
            progress("Indexing", unit=" chunks", total=store.n_chunks) as bar,
            prefetched(encode_shards(folder, connection, stored, chunker, encoder, watch, sampled)) as batches,
        ):
            for batch in write_shards(folder, batches, encoder.identity.dim, codec_folder, cfg, watch):
                bar.update(len(batch.matrices))


def store_documents(
    documents: Iterable[Document], store: StoreWriter, chunker: Chunker, watch: Stopwatch
) -> list[FullShard]:
    """Cut documents into chunks and store both; return the shards that the chunks fill."""
    read = progress("Storing", iterable=watch.timing("read", documents), unit=" documents")
    for number, document in enumerate(read, start=1):
        with watch.timed("chunk"):
            store.add(document, chunks_of(document, chunker))
        if number % COMMIT_DOCUMENTS == 0:
            store.commit()
    store.commit()
    starts = range(0, store.n_chunks, store.shard_chunks)
    return [
        FullShard(store.first_shard + number, min(store.shard_chunks, store.n_chunks - start))
        for number, start in enumerate(starts)
    ]


def keep_shards(folder: Path, store: StoreWriter, connection: sqlite3.Connection) -> Path:
    """Discard the shards of an attempt in `folder` unless they were made of the documents stored now.

    Returns:
        The folder of the codebook, next to the store.
    """
    codebook, digest = store.path.parent / CODEBOOK, hashlib.sha256()
    for (content_hash,) in connection.execute("SELECT content_hash FROM documents ORDER BY document_key"):
        digest.update(content_hash.encode())
    note = codebook / "documents.sha256"
    if not note.is_file() or note.read_text(encoding="utf-8") != digest.hexdigest():
        note.unlink(missing_ok=True)  # first: what a kill leaves behind it is discarded by the next attempt
        discard_shards(folder, store.first_shard)
        shutil.rmtree(codebook, ignore_errors=True)
        codebook.mkdir()
        write_whole(note, digest.hexdigest())
    return codebook


def prepare_codebook(
    target: Path,
    connection: sqlite3.Connection,
    shards: Sequence[FullShard],
    chunker: Chunker,
    encoder: Encoder,
    cfg: IndexConfig,
    watch: Stopwatch,
) -> EncodedAhead:
    """Train the codec of all `shards` of a build into `target`, unless an earlier attempt did.

    The sample is some whole batches, which are returned, so that `encode_shards` encodes nothing twice.
    """
    if target.is_dir():
        return {}
    batches = [(shard, start) for shard in shards for start in range(0, shard.n_chunks, BATCH_CHUNKS)]
    chosen = np.unique(np.linspace(0, len(batches) - 1, SAMPLE_BATCHES).astype(int)).tolist()
    sampled: EncodedAhead = {}
    for shard, start in progress("Sampling", iterable=[batches[i] for i in chosen], unit=" batches"):
        matrices = _encode_batch(connection, shard, start, chunker, encoder, watch)
        sampled[shard.number, start] = [matrix.astype("<f2") for matrix in matrices]
    train_into(target, np.concatenate([matrix for matrices in sampled.values() for matrix in matrices]), cfg, watch)
    return sampled


def train_into(target: Path, sample: np.ndarray, cfg: IndexConfig, watch: Stopwatch) -> None:
    """Train a codec on a sample of token vectors, and write it into the new folder `target`."""
    from legal_rag.library.plaid.codec import SAMPLE_TOKENS, sample_vectors, train_codec, write_codec

    with watch.timed("train"), made_once(target) as scratch:
        sample = sample_vectors(sample, SAMPLE_TOKENS, cfg.seed)
        write_codec(scratch, train_codec(sample, n_bits=cfg.n_bits, seed=cfg.seed))


def encode_shards(
    folder: Path,
    connection: sqlite3.Connection,
    shards: Iterable[FullShard],
    chunker: Chunker,
    encoder: Encoder,
    watch: Stopwatch,
    sampled: EncodedAhead,
) -> Iterator[EncodedBatch]:
    """Encode, batch by batch, each incomplete shard from its beginning; batches in `sampled` are taken from there."""
    for shard in shards:
        home = shard_home(folder, shard.number)
        if is_complete(home, shard.n_chunks):
            continue
        discard_plaid(home)
        discard_vectors(home)
        for start in range(0, shard.n_chunks, BATCH_CHUNKS):
            matrices = sampled.pop((shard.number, start), None)
            if matrices is None:
                matrices = _encode_batch(connection, shard, start, chunker, encoder, watch)
            yield EncodedBatch(shard, matrices, ends_shard=start + BATCH_CHUNKS >= shard.n_chunks)


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
        writer.append(batch.matrices)
        if batch.ends_shard:
            with watch.timed("write_plaid"):
                writer.write_plaid(codec_folder, keep_vectors=cfg.keep_embeddings)
        yield batch


def shard_writer(folder: Path, shard: FullShard, dim: int) -> ShardWriter:
    """Open the writer of a shard in `folder`."""
    return ShardWriter(shard_home(folder, shard.number), dim)


def chunks_of(document: Document, chunker: Chunker) -> list[Chunk]:
    """Chunk a document, whose columns the header may name."""
    return chunk_document(
        document.content, document.id, document.title, document.decision_date, chunker, columns=document.row()
    )


def _encode_batch(
    connection: sqlite3.Connection,
    shard: FullShard,
    start: int,
    chunker: Chunker,
    encoder: Encoder,
    watch: Stopwatch,
) -> list[np.ndarray]:
    texts = list(_encoder_inputs(connection, shard.number, start, start + BATCH_CHUNKS, chunker))
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
