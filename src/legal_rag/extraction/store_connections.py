"""Connections to a store's SQLite file: one for each thread of each process, all of them closed together."""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tenacity import retry, retry_if_exception, stop_after_delay, wait_random

from legal_rag.store import PATIENCE_SECONDS

FORMAT_VERSION = 1
SCHEMA = """
CREATE TABLE IF NOT EXISTS recipes (
    recipe_key TEXT PRIMARY KEY, schema_name TEXT NOT NULL, schema_version TEXT NOT NULL, model_id TEXT NOT NULL,
    passes INTEGER NOT NULL, prompt_hash TEXT NOT NULL, max_char_buffer INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS results (
    text_hash TEXT NOT NULL, recipe_key TEXT NOT NULL, result BLOB NOT NULL, PRIMARY KEY (text_hash, recipe_key)
);
CREATE TABLE IF NOT EXISTS replies (
    text_hash TEXT NOT NULL, recipe_key TEXT NOT NULL, prompt_hash TEXT NOT NULL, pass INTEGER NOT NULL,
    reply TEXT NOT NULL, PRIMARY KEY (text_hash, recipe_key, prompt_hash, pass)
);
CREATE TABLE IF NOT EXISTS held (
    doc_id TEXT PRIMARY KEY, content_hash TEXT NOT NULL, text_hash TEXT NOT NULL, recipe_key TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS held_by_text ON held (text_hash, recipe_key);
CREATE TABLE IF NOT EXISTS terms (
    term TEXT NOT NULL, doc_id TEXT NOT NULL, class TEXT NOT NULL, PRIMARY KEY (term, doc_id, class)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS terms_by_document ON terms (doc_id);
"""


def _is_busy(error: BaseException) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


class StoreConnections:
    """The connections of one file. The first one creates it, and its folder.

    Raises:
        ValueError: If the file was written by a later version.
        sqlite3.DatabaseError: If the file is no store, or damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local, self._lock = threading.local(), threading.Lock()
        self._open: list[sqlite3.Connection] = []
        self._is_closed = False
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._prepare(self.get())
        except BaseException:
            self.close()
            raise

    def get(self) -> sqlite3.Connection:
        """Return this thread's connection.

        Raises:
            ValueError: If the store was closed.
        """
        # What a process inherits from the one that it was forked off must not be used.
        held: tuple[int, sqlite3.Connection] | None = getattr(self._local, "connection", None)
        if held is None or held[0] != os.getpid():
            held = os.getpid(), self._connect()
            self._local.connection = held
        return held[1]

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Give a connection in a transaction of its own, which ends with the block."""
        connection = self.get()
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")

    def close(self) -> None:
        """Close the connections of all threads."""
        with self._lock:
            self._is_closed = True
            while self._open:
                self._open.pop().close()

    def _connect(self) -> sqlite3.Connection:
        with self._lock:
            if self._is_closed:
                raise ValueError(f"the store {self._path} was closed")
            connection = _connection(self._path)
            self._open.append(connection)
            return connection

    # SQLite does not wait for others when a file's kind of journal is changed.
    @retry(retry=retry_if_exception(_is_busy), stop=stop_after_delay(PATIENCE_SECONDS), wait=wait_random(0.01, 0.1),
           reraise=True)  # fmt: skip
    def _prepare(self, connection: sqlite3.Connection) -> None:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > FORMAT_VERSION:
            raise ValueError(
                f"{self._path} is of format {version} (expected {FORMAT_VERSION}): a later version wrote it"
            )
        if version == FORMAT_VERSION:
            return
        connection.execute("PRAGMA journal_mode=WAL")
        connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA user_version = {FORMAT_VERSION}; COMMIT;")


def _connection(path: Path) -> sqlite3.Connection:
    if path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        # Whoever cannot write beside it cannot keep the journal that reading takes, either.
        address = f"{path.absolute().as_uri()}?immutable=1"
        return sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None)
    connection = sqlite3.connect(path, timeout=PATIENCE_SECONDS, check_same_thread=False, isolation_level=None)
    connection.execute("PRAGMA synchronous=NORMAL")  # survives a kill; a power cut may cost the last seconds
    return connection
