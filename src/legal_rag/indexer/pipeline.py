"""The stages of a build: chunk, train a codebook, encode, write shards; the files of a shard."""

import hashlib
import os
import shutil
import sqlite3
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from legal_rag.base.files import made_once, parse_json, progress, sync, write_whole
from legal_rag.base.sqlite import connect_to_read
from legal_rag.corpus.chunking import Chunker, document_header, has_header
from legal_rag.corpus.chunking import chunk_document as chunk_document
from legal_rag.corpus.documents import Document
from legal_rag.encoder.encoder import Encoder
from legal_rag.encoder.runtime import give_back_memory
from legal_rag.indexer.config import IndexConfig, chunker_of
from legal_rag.library.plaid.files import METADATA, PLAID_FOLDER
from legal_rag.library.store import SELECT_DOCUMENTS, StoreWriter, document_of_stored

if TYPE_CHECKING:
    from tqdm import tqdm

TOKEN_VECTORS = "token_vectors.f16"  # noqa: S105 (rows of the chunks in order, little-endian)
PASSAGE_TOKENS = "passage_tokens.i32"  # number of those rows for each chunk
SHARDS = "shards"
CODEBOOK = "codebook"  # next to the store until a build is finished: what its shards are made of and with
BATCH_CHUNKS = 128  # encoded at a time: enough to sort them into batches of similar length
CODEC = "codec"  # in it
SAMPLE_BATCHES = 8  # spread over the corpus, of which the codebook is trained
COMMIT_DOCUMENTS = 200  # stored in one transaction

T = TypeVar("T")
_END = object()


def shard_home(library: Path, number: int) -> Path:
    """Return the folder of a shard's files until it is a part of the Library's index."""
    return library / SHARDS / str(number)


class ShardWriter:
    """Writes a shard into its folder `home`: token vectors batch by batch, in whose place then come PLAID files."""

    def __init__(self, home: Path, dim: int) -> None:
        self.home, self._dim = home, dim

    @property
    def passage_tokens(self) -> np.ndarray:
        """Return the number of token vectors of each chunk written so far, shape (n_chunks,), int32."""
        file = self.home / PASSAGE_TOKENS
        return np.fromfile(file, dtype="<i4") if file.is_file() else np.empty(0, dtype="<i4")

    def append(self, matrices: Sequence[np.ndarray]) -> None:
        """Write the token vectors of the next chunks, each of shape (n_tokens, dim)."""
        self.home.mkdir(parents=True, exist_ok=True)
        _append(self.home / TOKEN_VECTORS, np.concatenate([matrix.astype("<f2") for matrix in matrices]))
        _append(self.home / PASSAGE_TOKENS, np.array([len(matrix) for matrix in matrices], dtype="<i4"))

    def write_plaid(self, codec_folder: Path) -> None:
        """Write the PLAID files with the codec in a folder; then delete the vectors.

        FileNotFoundError if there is no codec in the folder; ValueError if it is damaged, or of another dim.
        """
        from legal_rag.library.plaid.codec import read_codec, write_shard

        scratch = self.home / f".{PLAID_FOLDER}.building"
        shutil.rmtree(scratch, ignore_errors=True)
        lengths = self.passage_tokens
        write_shard(
            scratch, self._map_rows(lengths), lengths.tolist(), read_codec(codec_folder), codec_from=codec_folder
        )
        give_back_memory()
        for file in scratch.iterdir():
            sync(file)
        _put_plaid(scratch, self.home, len(lengths))
        discard_vectors(self.home)

    def _map_rows(self, lengths: np.ndarray) -> np.ndarray:
        shape = (int(lengths.sum(dtype=np.int64)), self._dim)
        return np.memmap(self.home / TOKEN_VECTORS, dtype="<f2", mode="r", shape=shape)


def is_complete(home: Path, n_chunks: int) -> bool:
    """Tell whether a shard has all its PLAID files, for `n_chunks` chunks."""
    folder = home / PLAID_FOLDER
    return (folder / METADATA).is_file() and int(_read_metadata(folder)["num_documents"]) == n_chunks


def install_shard(made: Path, home: Path, n_chunks: int) -> None:
    """Move a complete shard from `made`, where a worker wrote it, to its own folder, unless another was first."""
    _put_plaid(made / PLAID_FOLDER, home, n_chunks)


def _put_plaid(made: Path, home: Path, n_chunks: int) -> None:
    """Move finished PLAID files to a shard's folder, unless another process was first: its own are the same."""
    try:
        os.replace(made, home / PLAID_FOLDER)
    except OSError:  # a folder that holds files is not replaced
        if not is_complete(home, n_chunks):
            raise
        shutil.rmtree(made, ignore_errors=True)
    sync(home)


def discard_vectors(home: Path) -> None:
    """Delete a shard's token vectors."""
    for name in (TOKEN_VECTORS, PASSAGE_TOKENS):
        (home / name).unlink(missing_ok=True)


def discard_plaid(home: Path) -> None:
    """Delete a shard's PLAID files, finished or not; first the one that marks it as complete."""
    (home / PLAID_FOLDER / METADATA).unlink(missing_ok=True)
    for folder in (PLAID_FOLDER, f".{PLAID_FOLDER}.building"):
        shutil.rmtree(home / folder, ignore_errors=True)


def discard_shards(library: Path, first: int) -> None:
    """Delete all files of the shards from number `first` on."""
    folder = library / SHARDS
    for home in list(folder.iterdir()) if folder.is_dir() else []:
        if home.name.isdecimal() and int(home.name) >= first:
            discard_plaid(home)
            shutil.rmtree(home)


def _read_metadata(folder: Path) -> dict[str, Any]:
    metadata: dict[str, Any] = parse_json((folder / METADATA).read_text(encoding="utf-8"))
    return metadata


def _append(path: Path, numbers: np.ndarray) -> None:
    with path.open("ab") as file:
        file.write(numbers.tobytes())


class FullShard(NamedTuple):
    """A shard all of whose chunks are stored."""

    number: int
    n_chunks: int


class EncodedBatch(NamedTuple):
    """Token vectors of consecutive chunks of a shard."""

    shard: FullShard
    matrices: list[np.ndarray]
    ends_shard: bool
    was_sampled: bool = False  # the codebook was trained on them


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
    with (
        closing(connect_to_read(store.path)) as connection,
        progress("Encoding", unit=" chunks", total=store.n_chunks) as bar,
    ):
        codebook = keep_shards(folder, store, connection)
        if codec_folder is None:
            codec_folder = codebook / CODEC
            sampled = prepare_codebook(codec_folder, connection, stored, chunker, encoder, cfg, watch, bar)
        with prefetched(encode_shards(folder, connection, stored, chunker, encoder, watch, sampled)) as batches:
            for batch in write_shards(folder, batches, encoder.identity.dim, codec_folder, watch):
                bar.update(0 if batch.was_sampled else len(batch.matrices))


def store_documents(
    documents: Iterable[Document], store: StoreWriter, chunker: Chunker, watch: Stopwatch
) -> list[FullShard]:
    """Cut documents into chunks and store both; return the shards that the chunks fill."""
    read = progress("Storing", iterable=watch.timing("read", documents), unit=" documents")
    for number, document in enumerate(read, start=1):
        with watch.timed("chunk"):
            columns = document.row()  # which the header may name
            chunks = chunk_document(
                document.content, document.id, document.title, document.decision_date, chunker, columns=columns
            )
            store.add(document, chunks)
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
    bar: "tqdm",
) -> EncodedAhead:
    """Train the codec of all `shards` of a build into `target`, unless an earlier attempt did.

    The sample is some whole batches, all of a small corpus, which are returned, so that `encode_shards` encodes nothing
    twice; `bar` counts their chunks.
    """
    if target.is_dir():
        return {}
    batches = [(shard, start) for shard in shards for start in range(0, shard.n_chunks, BATCH_CHUNKS)]
    chosen = np.unique(np.linspace(0, len(batches) - 1, SAMPLE_BATCHES).astype(int)).tolist()
    sampled: EncodedAhead = {}
    for shard, start in (batches[i] for i in chosen):
        matrices = _encode_batch(connection, shard, start, chunker, encoder, watch)
        sampled[shard.number, start] = [matrix.astype("<f2") for matrix in matrices]
        bar.update(len(matrices))
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
            ahead = sampled.pop((shard.number, start), None)
            matrices = ahead or _encode_batch(connection, shard, start, chunker, encoder, watch)
            ends = start + BATCH_CHUNKS >= shard.n_chunks
            yield EncodedBatch(shard, matrices, ends_shard=ends, was_sampled=ahead is not None)


def write_shards(
    folder: Path,
    batches: Iterable[EncodedBatch],
    dim: int,
    codec_folder: Path,
    watch: Stopwatch,
) -> Iterator[EncodedBatch]:
    """Write encoded batches into their shards, and PLAID files after a shard's last batch; yield each batch."""
    for batch in batches:
        writer = ShardWriter(shard_home(folder, batch.shard.number), dim)
        writer.append(batch.matrices)
        if batch.ends_shard:
            with watch.timed("write_plaid"):
                writer.write_plaid(codec_folder)
        yield batch


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
