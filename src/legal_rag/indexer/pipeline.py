"""The stages of a build: chunk, encode, write shards, each resumable."""

import hashlib
import json
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
from typing import Any, NamedTuple, TypeVar

import numpy as np

from legal_rag.corpus.chunking import Chunk, Chunker, chunk_document, document_header, has_header
from legal_rag.corpus.documents import Document
from legal_rag.encoder.encoder import Encoder
from legal_rag.encoder.runtime import give_back_memory
from legal_rag.files import progress, sync
from legal_rag.library.plaid.files import METADATA, PLAID_FOLDER
from legal_rag.library.store import SELECT_DOCUMENTS, StoreWriter, document_of_stored
from legal_rag.sqlite import connect_to_read

TOKEN_VECTORS = "token_vectors.f16"  # noqa: S105 (rows of the passages one after the other, little-endian)
PASSAGE_TOKENS = "passage_tokens.i32"  # how many of those rows each passage has
SHARDS = "shards"
ATTEMPTS = "attempts"  # what workers on other machines make shards in: see `legal_rag.indexer.ray`


def shard_home(library: Path, number: int) -> Path:
    """Return the folder that a shard's files lie in: the first one's is the Library's own."""
    return library / SHARDS / str(number) if number else library


class ShardDraft:
    """The token vectors of a shard, on disk, from the first window on.

    Args:
        home: The shard's folder; created.
        dim: The width of a token vector.
        window: Chunks encoded at a time: what was written is kept in whole windows, so that an encoding taken up again
            goes on as the first one would have.
    """

    def __init__(self, home: Path, dim: int, window: int) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home, self._dim, self._window = home, dim, window

    @property
    def passage_tokens(self) -> np.ndarray:
        """How many token vectors each passage written so far has, shape (n_passages,), int32."""
        file = self.home / PASSAGE_TOKENS
        return np.fromfile(file, dtype="<i4") if file.is_file() else np.empty(0, dtype="<i4")

    def take_up(self, n_chunks: int) -> int:
        """Keep what is of use of an earlier attempt, and return how many of the shard's `n_chunks` it encoded."""
        lengths, vectors = self.passage_tokens, self.home / TOKEN_VECTORS
        row_bytes = 2 * self._dim
        rows_there = vectors.stat().st_size // row_bytes if vectors.is_file() else 0
        kept = int(np.searchsorted(np.cumsum(lengths, dtype=np.int64), rows_there, side="right"))
        if kept > n_chunks:
            kept = 0
        if kept < n_chunks:
            kept -= kept % self._window
        for file, size in ((self.home / PASSAGE_TOKENS, 4 * kept), (vectors, row_bytes * int(lengths[:kept].sum()))):
            if file.is_file():  # a kill may have left either alone
                os.truncate(file, size)
        return kept

    def append(self, matrices: Sequence[np.ndarray]) -> None:
        """Write the token vectors of the next passages, each of shape (n_tokens, dim)."""
        rows = np.concatenate([matrix.astype("<f2") for matrix in matrices])
        _append(self.home / TOKEN_VECTORS, rows)
        _append(self.home / PASSAGE_TOKENS, np.array([len(matrix) for matrix in matrices], dtype="<i4"))

    def write_plaid(self, *, n_bits: int, seed: int, keep_vectors: bool) -> None:
        """Write the PLAID files from the vectors, and drop these unless they are to be kept."""
        from legal_rag.library.plaid.writer import write_shard

        scratch = self.home / f".{PLAID_FOLDER}.building"
        shutil.rmtree(scratch, ignore_errors=True)
        lengths = self.passage_tokens
        shape = (int(lengths.sum()), self._dim)
        vectors = np.memmap(self.home / TOKEN_VECTORS, dtype="<f2", mode="r", shape=shape)
        write_shard(scratch, vectors, lengths.tolist(), n_bits=n_bits, seed=seed)
        give_back_memory()
        for file in scratch.iterdir():
            sync(file)
        os.replace(scratch, self.home / PLAID_FOLDER)
        sync(self.home)
        if not keep_vectors:
            discard_vectors(self.home)


def discard_vectors(home: Path) -> None:
    """Delete a shard's token vectors."""
    for name in (TOKEN_VECTORS, PASSAGE_TOKENS):
        (home / name).unlink(missing_ok=True)


def is_complete(home: Path, n_chunks: int) -> bool:
    """Tell whether a shard's PLAID files are all there, for as many chunks as it has now."""
    folder = home / PLAID_FOLDER
    return (folder / METADATA).is_file() and int(_metadata(folder)["num_documents"]) == n_chunks


def adopt_shard(made: Path, home: Path, n_chunks: int) -> None:
    """Move a complete shard from where it was made to its own folder, unless one was put there meanwhile.

    Two may make the same shard, each in a folder of its own: the first one stays, the other is of no use.

    Args:
        made: The folder of the shard's files.
        home: The shard's own folder, on the same disk; it exists.
        n_chunks: How many the shard has.

    Raises:
        FileNotFoundError: If there is none in `made`, as when it was discarded meanwhile.
    """
    if is_complete(home, n_chunks):
        return
    if not is_complete(made, n_chunks):
        raise FileNotFoundError(f"no complete shard of {n_chunks} chunks in {made}")
    for name in (TOKEN_VECTORS, PASSAGE_TOKENS):  # before the files that say that all is there
        if (made / name).is_file():
            os.replace(made / name, home / name)
        else:
            (home / name).unlink(missing_ok=True)
    try:
        os.replace(made / PLAID_FOLDER, home / PLAID_FOLDER)
    except OSError:  # a folder that holds files is not replaced
        if not is_complete(home, n_chunks):
            raise
    sync(home)


def discard_plaid(home: Path) -> None:
    """Delete a shard's PLAID files, finished or not; first the one that says that they are all there."""
    (home / PLAID_FOLDER / METADATA).unlink(missing_ok=True)
    for folder in (PLAID_FOLDER, f".{PLAID_FOLDER}.building"):
        shutil.rmtree(home / folder, ignore_errors=True)


def discard_attempts(library: Path) -> None:
    """Delete what workers were making, so that one that still runs, though given up, has nothing to put in place."""
    shutil.rmtree(library / ATTEMPTS, ignore_errors=True)


def discard_shards(library: Path, first: int) -> None:
    """Delete all files of the shards from number `first` on."""
    for name in _numbered(library):
        if int(name) >= first:
            discard_plaid(library / SHARDS / name)
            shutil.rmtree(library / SHARDS / name)
    if first == 0:  # its folder is the Library's own
        discard_plaid(library)
        discard_vectors(library)


def _numbered(library: Path) -> list[str]:
    folder = library / SHARDS
    return [path.name for path in folder.iterdir() if path.name.isdecimal()] if folder.is_dir() else []


def describe_shard(library: Path, number: int) -> dict[str, Any]:
    """Return what a manifest says of a complete shard: its folder, its counts, its files' checksums (SHA-256)."""
    folder = shard_home(library, number) / PLAID_FOLDER
    metadata = _metadata(folder)
    return {
        "path": folder.relative_to(library).as_posix(),
        "chunks": int(metadata["num_documents"]),
        "tokens": int(metadata["num_embeddings"]),
        "checksums": {path.name: sha256_of(path) for path in sorted(folder.iterdir()) if path.is_file()},
    }


def _metadata(folder: Path) -> dict[str, Any]:
    metadata: dict[str, Any] = json.loads((folder / METADATA).read_text(encoding="utf-8"))
    return metadata


def sha256_of(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _append(path: Path, numbers: np.ndarray) -> None:
    with path.open("ab") as file:
        file.write(numbers.tobytes())
        file.flush()
        os.fsync(file.fileno())


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
