"""One shard in the making: token vectors that outlive a kill, then its PLAID files.

In: the token vectors of a shard's chunks, window by window. Out: the shard's folder, complete once it holds
`fast_plaid_index`, which appears there whole.
Two files grow together, first the vectors, then their numbers, each on the disk itself before the next window: what the
second one counts is there, whatever happened.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from legal_rag.device import give_back_memory
from legal_rag.folders import sync
from legal_rag.plaid_format import METADATA, PLAID_FOLDER

TOKEN_VECTORS = "token_vectors.f16"  # noqa: S105 (rows of the passages one after the other, little-endian)
PASSAGE_TOKENS = "passage_tokens.i32"  # how many of those rows each passage has
SHARDS = "shards"
ATTEMPTS = "attempts"  # what workers on other machines make shards in: see `legal_rag.distributed`


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
        from legal_rag.plaid_writer import write_shard

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
