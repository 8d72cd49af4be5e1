"""Files of one shard: token vectors while it is encoded, then PLAID files; installing, describing."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from legal_rag.base.files import parse_json, sha256_of, sync
from legal_rag.encoder.runtime import give_back_memory
from legal_rag.library.plaid.files import METADATA, PLAID_FOLDER

TOKEN_VECTORS = "token_vectors.f16"  # noqa: S105 (rows of the chunks in order, little-endian)
PASSAGE_TOKENS = "passage_tokens.i32"  # number of those rows for each chunk
SHARDS = "shards"
CODEBOOK = "codebook"  # next to the store until a build is finished: what its shards are made of and with


def shard_home(library: Path, number: int) -> Path:
    """Return the folder of a shard's files; that of the first is the Library's own."""
    return library / SHARDS / str(number) if number else library


class ShardWriter:
    """Writes a shard into its folder `home`: token vectors batch by batch, then the PLAID files made of them."""

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

    def matrices(self) -> list[np.ndarray]:
        """Map the token vectors written so far: for each chunk, shape (n_tokens, dim), float16."""
        lengths = self.passage_tokens
        if not len(lengths):
            return []
        return np.split(self._map_rows(lengths), np.cumsum(lengths, dtype=np.int64)[:-1])

    def write_plaid(self, codec_folder: Path, *, keep_vectors: bool) -> None:
        """Write the PLAID files with the codec in a folder; then delete the vectors, unless they are to be kept.

        Raises:
            FileNotFoundError: If there is no codec in the folder.
            ValueError: If it is damaged, or of another dim.
        """
        from legal_rag.library.plaid.codec import read_codec
        from legal_rag.library.plaid.writer import write_shard

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
        if not keep_vectors:
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
    for name in (TOKEN_VECTORS, PASSAGE_TOKENS):  # before the PLAID files, which mark the shard as complete
        if (made / name).is_file():
            os.replace(made / name, home / name)
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


def describe_shard(library: Path, number: int) -> dict[str, Any]:
    """Return a complete shard's manifest entry: its folder, its counts, its files' SHA-256."""
    folder = shard_home(library, number) / PLAID_FOLDER
    metadata = _read_metadata(folder)
    return {
        "path": folder.relative_to(library).as_posix(),
        "chunks": int(metadata["num_documents"]),
        "tokens": int(metadata["num_embeddings"]),
        "checksums": {path.name: sha256_of(path) for path in sorted(folder.iterdir()) if path.is_file()},
    }


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
    if first == 0:  # its folder is the Library's own
        discard_plaid(library)
        discard_vectors(library)


def _read_metadata(folder: Path) -> dict[str, Any]:
    metadata: dict[str, Any] = parse_json((folder / METADATA).read_text(encoding="utf-8"))
    return metadata


def _append(path: Path, numbers: np.ndarray) -> None:
    with path.open("ab") as file:
        file.write(numbers.tobytes())
