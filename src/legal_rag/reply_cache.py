"""Caches of model replies by request, so that none is paid for twice: of all models, and of one run until it ends.

DSPy's own cache on disk is made of pickles; these are SQLite files of JSON, which can hold nothing but text. Requests
are hashed: no key and no address gets into a file.
"""

import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")

REPLIES = "replies.sqlite"
MOST_REPLIES = 20_000  # kept on disk, of some kilobytes each; what was not asked for longest goes
FORGET_EVERY = 500  # replies written by one process between two looks at how many there are
PATIENCE_SECONDS = 5.0  # that a write waits for another process's
SCHEMA = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, used REAL NOT NULL, reply TEXT NOT NULL)"
RUN_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS replies (key TEXT, number INTEGER, reply TEXT NOT NULL, PRIMARY KEY (key, number))"
)
PRIVATE = 0o600
DSPY = "_dspy_format"  # marks what DSPy writes down itself
LITELLM = "litellm_reply"  # marks what LiteLLM gave, which comes back as an object of its own


def use_reply_cache(folder: str | Path | None = None) -> Path:
    """Have DSPy keep the replies of all models in this process here, in place of its own cache.

    The command line does so; in a notebook, where DSPy's settings are the user's, it is for the user to call.

    Args:
        folder: Where the replies lie; None takes `replies_folder()`.

    Returns:
        The file they lie in. Where it cannot be read or written, replies are remembered until the process ends.
    """
    import dspy

    file = (replies_folder() if folder is None else Path(folder).expanduser()) / REPLIES
    cache = dspy.clients.Cache(enable_disk_cache=False, enable_memory_cache=True, disk_cache_dir=None)
    cache.disk_cache, cache.enable_disk_cache = Replies(file, dspy.__version__), True
    dspy.cache = cache
    return file


def replies_folder() -> Path:
    """Return the folder that replies lie in: DSPy's own setting DSPY_CACHEDIR, or one in the cache folder."""
    from legal_rag.folders import cache_folder

    return Path(os.environ.get("DSPY_CACHEDIR") or cache_folder() / "replies")


class Replies:
    """Replies on disk by the hash of their request, for any number of threads and processes.

    Nothing of it ever fails: a reply that cannot be read is asked for again, and one that cannot be written is not
    kept, which is told once.
    """

    def __init__(self, file: Path, version: str, most: int = MOST_REPLIES) -> None:
        """Name the file, which need not exist.

        Args:
            file: An SQLite file.
            version: Of DSPy: what one version wrote, another need not understand.
            most: Replies kept.
        """
        self._file, self._version, self._most = file, version, most
        self._written, self._told = 0, False

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def get(self, key: str) -> Any:
        """Return the reply to a request, or None if there is none."""
        if not self._file.is_file():
            return None
        reply = self._try(lambda connection: self._read(connection, key), self._connect_to_read)
        if reply is not None:
            self._touch(key)
        return reply

    def set(self, key: str, reply: Any) -> None:
        """Keep the reply to a request."""
        self._try(lambda connection: self._write(connection, key, reply))

    def delete(self, key: str) -> None:
        """Forget a reply."""
        self._try(lambda connection: connection.execute("DELETE FROM replies WHERE key = ?", (self._named(key),)))

    def _named(self, key: str) -> str:
        return f"{self._version} {key}"

    def _read(self, connection: sqlite3.Connection, key: str) -> Any:
        row = connection.execute("SELECT reply FROM replies WHERE key = ?", (self._named(key),)).fetchone()
        return None if row is None else _loaded(row[0])

    def _touch(self, key: str) -> None:
        """Note the time of use, which only decides what is dropped first: never waits, and may fail."""
        with suppress(sqlite3.Error), closing(sqlite3.connect(self._file, timeout=0)) as connection, connection:
            connection.execute("UPDATE replies SET used = ? WHERE key = ?", (time.time(), self._named(key)))

    def _write(self, connection: sqlite3.Connection, key: str, reply: Any) -> None:
        connection.execute(
            "INSERT OR REPLACE INTO replies VALUES (?, ?, ?)", (self._named(key), time.time(), _dumped(reply))
        )
        if self._written % FORGET_EVERY == 0:
            old = "SELECT key FROM replies ORDER BY used DESC LIMIT -1 OFFSET ?"
            connection.execute(f"DELETE FROM replies WHERE key IN ({old})", (self._most,))  # noqa: S608
        self._written += 1

    def _connect_to_read(self) -> sqlite3.Connection:
        return sqlite3.connect(f"{self._file.absolute().as_uri()}?mode=ro", uri=True, timeout=PATIENCE_SECONDS)

    def _connect_to_write(self) -> sqlite3.Connection:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self._file, timeout=PATIENCE_SECONDS)
        connection.execute(SCHEMA)
        return connection

    def _try(
        self, work: Callable[[sqlite3.Connection], T], connect: Callable[[], sqlite3.Connection] | None = None
    ) -> T | None:
        try:
            with closing((connect or self._connect_to_write)()) as connection, connection:
                return work(connection)
        except (
            OSError,
            sqlite3.Error,
            ValueError,
            TypeError,
            RecursionError,
        ) as error:  # what lies there may be anything
            if not self._told:
                logger.warning("replies are not kept in %s (%s); if it is damaged, delete it", self._file, error)
            self._told = True
            return None


class RunReplies:
    """Replies paid for by one run, kept until it ends however it was interrupted, each given once per attempt.

    The file belongs to the run alone, so that nothing is dropped from it before the run has ended. The same request
    made twice has two replies, which are given in the order they came. Threads and processes may share the file.
    """

    def __init__(self, file: Path) -> None:
        """Open a file, or begin it; its folder exists. One that is damaged is begun anew, with a warning.

        Raises:
            OSError: If it cannot be read and written.
        """
        self._file = file
        self._given: dict[str, int] = {}  # by key: number of the next reply to give
        self._lock = threading.Lock()
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, PRIVATE))
        try:
            self._execute(RUN_SCHEMA)
        except sqlite3.OperationalError as error:  # such as a full disk, or another process that does not let go
            raise OSError(f"cannot keep replies in {file}: {error}") from error
        except sqlite3.DatabaseError as error:
            logger.warning("%s is damaged (%s); its replies are asked for again", file, error)
            os.truncate(file, 0)
            self._execute(RUN_SCHEMA)

    def take(self, key: str) -> dict[str, Any] | None:
        """Return the next stored reply to a request, or None if all were given in this attempt."""
        look_up = "SELECT number, reply FROM replies WHERE key = ? AND number >= ? ORDER BY number"
        with self._lock:
            for number, text in self._try(look_up, key, self._given.get(key, 0)):
                self._given[key] = number + 1
                if (reply := _object(text)) is not None:
                    return reply
            return None

    def keep(self, key: str, reply: dict[str, Any]) -> None:
        """Store a reply, which was just given; it is on the disk when this returns, or a warning is logged."""
        add = (
            "INSERT INTO replies SELECT ?, coalesce(max(number) + 1, 0), ? FROM replies WHERE key = ? RETURNING number"
        )
        with self._lock:
            for (number,) in self._try(add, key, json.dumps(reply), key):
                self._given[key] = number + 1

    def _try(self, statement: str, *values: Any) -> list[Any]:
        try:
            return self._execute(statement, *values)
        except sqlite3.Error as error:  # the run goes on, and pays again where it is interrupted
            logger.warning("replies are not kept in %s (%s)", self._file, error)
            return []

    def _execute(self, statement: str, *values: Any) -> list[Any]:
        # A connection each time: threads of a run that was interrupted may still bring replies that were paid for.
        address = f"{self._file.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(address, uri=True, timeout=PATIENCE_SECONDS)) as connection, connection:
            return connection.execute(statement, values).fetchall()


def _object(text: Any) -> dict[str, Any] | None:
    """Return a stored reply, or None if it is damaged."""
    try:
        reply = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
    whole = isinstance(reply, dict) and isinstance(reply.get("text"), str) and isinstance(reply.get("cut_off"), bool)
    return reply if whole else None


def _dumped(reply: Any) -> str:
    """Write a reply down: DSPy's are plain values, LiteLLM's are pydantic models."""
    plain = {LITELLM: reply.model_dump(mode="json")} if hasattr(reply, "model_dump") else reply
    return json.dumps(plain, ensure_ascii=False)


def _loaded(text: str) -> Any:
    plain = json.loads(text)
    if not isinstance(plain, dict) or not {LITELLM, DSPY} & plain.keys():
        raise ValueError(f"not a reply: {text[:60]!r}")
    if DSPY in plain:
        return plain
    from litellm import ModelResponse

    return ModelResponse(**plain[LITELLM])
