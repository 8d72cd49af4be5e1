"""Building a Library beside its final place, and moving it there whole.

In: documents, chunks and shards while they are made. Out: a complete Library folder, or nothing changed.
Readers see the Library before it or the new one, never a mixture: `manifest.json` is written last, then the folder is
moved.
"""

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from legal_rag.chunking import Chunk
from legal_rag.corpus import Document
from legal_rag.folders import beside, locked, put_in_place, sync
from legal_rag.library import DOCUMENT_COLUMNS, FORMAT_VERSION, JSON_COLUMNS, MANIFEST, MAPPING, SCHEMA, STORE


class LibraryWriter:
    """A Library being built, in a folder that nobody reads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = sqlite3.connect(path / STORE)
        self._connection.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" + SCHEMA)
        self.n_documents = 0

    def add_document(self, document: Document, chunks: Sequence[Chunk], shard: int, first_position: int) -> None:
        """Store a document and its chunks, which follow one another in the shard."""
        values = [getattr(document, name) for name in DOCUMENT_COLUMNS]
        stored = [
            json.dumps(value, ensure_ascii=False) if name in JSON_COLUMNS else value
            for name, value in zip(DOCUMENT_COLUMNS, values, strict=True)
        ]
        columns = ", ".join((*DOCUMENT_COLUMNS, "content_hash"))
        marks = ", ".join("?" * (len(DOCUMENT_COLUMNS) + 1))
        cursor = self._connection.execute(
            f"INSERT INTO documents ({columns}) VALUES ({marks})",  # noqa: S608
            (*stored, document.content_hash),
        )
        self._connection.executemany(
            "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?)",
            [
                (cursor.lastrowid, chunk.chunk_index, chunk.char_start, chunk.char_end, shard, first_position + offset)
                for offset, chunk in enumerate(chunks)
            ],
        )
        self.n_documents += 1

    def write_mapping(self, shard: int, folder: Path, dataset: str, split: str, config: str) -> None:
        """Stream `doc_mapping.json` for one shard: `entries` maps each position to a document id."""
        query = "SELECT position, id FROM chunks JOIN documents USING (document_key) WHERE shard = ? ORDER BY position"
        head = json.dumps({"dataset": dataset, "split": split, "config": config}, ensure_ascii=False)
        with (folder / MAPPING).open("w", encoding="utf-8") as file:
            file.write(head[:-1] + ', "entries": {')
            for number, (position, doc_id) in enumerate(self._connection.execute(query, (shard,))):
                comma = ",\n" if number else "\n"
                file.write(f"{comma}{json.dumps(str(position))}: {json.dumps(doc_id, ensure_ascii=False)}")
            file.write("\n}}\n")

    def finish(self, manifest: dict[str, Any]) -> None:
        """Close the store and write the manifest, with the shards' checksums, last."""
        self._connection.commit()
        self._connection.close()
        for shard in manifest["shards"]:
            shard["checksums"] = {
                path.name: _sha256(path) for path in sorted((self.path / shard["path"]).iterdir()) if path.is_file()
            }
        for path in self.path.rglob("*"):
            if path.is_file():
                sync(path)
        text = json.dumps({"format_version": FORMAT_VERSION, **manifest}, ensure_ascii=False, indent=2)
        (self.path / MANIFEST).write_text(text + "\n", encoding="utf-8")
        sync(self.path / MANIFEST)

    def close(self) -> None:
        """Close the store without finishing it."""
        self._connection.close()


@contextmanager
def building(index_folder: str | Path, index_name: str) -> Iterator[LibraryWriter]:
    """Build a Library beside its final place; on leaving without an error it takes the place of any before it.

    After an error, or a kill, the Library before it is as it was.

    Raises:
        ValueError: If another process is building the same Library, or the folder holds something else.
        OSError: If the disk is full.
    """
    target = Path(index_folder).expanduser() / index_name
    if target.exists() and not (target / MANIFEST).is_file() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(
            f"will not overwrite {target}: it is not a Library (expected a {MANIFEST}, or an empty folder)"
        )
    with locked(target):
        scratch = beside(target, "building")
        try:
            yield from _build_in(scratch)
            put_in_place(scratch, target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _build_in(scratch: Path) -> Iterator[LibraryWriter]:
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    writer = LibraryWriter(scratch)
    try:
        yield writer
    except sqlite3.OperationalError as error:  # how SQLite says that the disk is full
        raise OSError(f"cannot write {scratch / STORE}: {error}") from error
    finally:
        writer.close()
    if not (scratch / MANIFEST).is_file():
        raise RuntimeError(f"{scratch} was left unfinished: LibraryWriter.finish was not called")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
