"""SQLite connections: read-only snapshots, one connection a thread, transactions; a deadline interrupts queries."""

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from legal_rag.base import deadline

T = TypeVar("T")

PATIENCE_SECONDS = 60.0  # that a reader waits for a commit to end, and a commit for readers
READ_CACHE_KB = 512  # of each connection: few pages are read twice, and the system keeps those as well
STEPS = 20_000  # of SQLite's machine between two looks at the clock: at most some milliseconds
# What a disk or another process does, not damage.
BUSY_OR_FULL = frozenset(
    getattr(sqlite3, f"SQLITE_{name}")
    for name in ("FULL", "IOERR", "BUSY", "LOCKED", "READONLY", "CANTOPEN", "PERM", "NOMEM")
)
ANY_ROW = "SELECT 1 FROM sqlite_master LIMIT 1"  # reads the file, whatever tables are in it


def connect_to_read(path: Path, *, cache_kb: int = READ_CACHE_KB, **attached: Path) -> sqlite3.Connection:
    """Open a file for reading only, and others attached by schema name, if they are there; any thread may use it.

    `cache_kb` bounds the pages kept in memory, of each file.

    Raises:
        sqlite3.DatabaseError: If the file is missing or damaged.
    """
    connection = _read_only(path)
    try:
        connection.execute(ANY_ROW)
    except sqlite3.OperationalError:  # only a writer can roll back what a kill left half-written
        connection.close()
        with closing(connect_to_write(path)) as writer:
            writer.execute(ANY_ROW)
        connection = _read_only(path)
    for name, file in attached.items():
        if file.is_file():
            connection.execute(f"ATTACH ? AS {name}", (_address(file, "mode=ro"),))
            connection.execute(f"PRAGMA {name}.cache_size = -{cache_kb:d}")
    connection.execute(f"PRAGMA main.cache_size = -{cache_kb:d}")  # only now: it reads the file
    return connection


def connect_to_write(path: Path, patience: float | None = None, *, create: bool = True) -> sqlite3.Connection:
    """Open a file for reading and writing, in autocommit mode: see `transaction`.

    `patience` is how many seconds to wait for another process's lock. Without `create` a missing file is an error.
    """
    timeout = PATIENCE_SECONDS if patience is None else patience
    address = str(path) if create else _address(path, "mode=rw")
    return _new_connection(address, uri=not create, timeout=timeout)


def connect_snapshot(path: Path) -> sqlite3.Connection:
    """Open a file that nobody writes to: without locks or a journal, which not every storage or user can have."""
    return _new_connection(_address(path, "mode=ro&immutable=1"))


def connect_as_allowed(path: Path, patience: float | None = None) -> sqlite3.Connection:
    """Open a file for reading and writing, or as a snapshot where this user can write neither into nor next to it."""
    # Without write access to its folder there is no place for the journal that reading takes.
    if path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        return connect_snapshot(path)
    return connect_to_write(path, patience)


def copy_database(source: Path, target: Path) -> None:
    """Write a snapshot of a database file to `target`, replacing what is there.

    Raises:
        sqlite3.DatabaseError: If the source is damaged; then there is no target.
    """
    target.unlink(missing_ok=True)
    try:
        with closing(connect_to_read(source)) as reader:
            reader.execute("VACUUM INTO ?", (str(target),))
    except sqlite3.DatabaseError:
        target.unlink(missing_ok=True)
        raise


def answers(connection: sqlite3.Connection) -> bool:
    """Tell whether a connection can read; one that was open when a writer was killed during a commit cannot."""
    try:
        connection.execute(ANY_ROW)
    except sqlite3.OperationalError:
        return False
    return True


def version_of(connection: sqlite3.Connection) -> int:
    """Return a file's `user_version`; 0: none was written."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def create_tables(connection: sqlite3.Connection, schema: str, version: int) -> None:
    """Create what a file lacks of a schema, and write its `user_version`; a kill leaves the file as it was."""
    connection.executescript(f"BEGIN IMMEDIATE; {schema} PRAGMA user_version = {version}; COMMIT;")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Commit what the block writes, all of it or, after an error or an interruption, none."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
    except BaseException:
        if connection.in_transaction:  # SQLite itself rolls back where the disk is full
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def parameter(value: Any) -> Any:
    """Return a value that SQLite takes for a parameter and that equals what is stored, or nothing that is.

    Half a surrogate pair becomes a question mark; an integer of more than 64 bits becomes NULL.
    """
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    return None if isinstance(value, int) and abs(value) >= 2**63 else value


class ThreadConnections:
    """One connection for each thread of each process: what SQLite asks for, and threads read at the same time.

    A thread's connection is closed with its thread, or by `close`.
    """

    def __init__(
        self,
        path: Path,  # of the file, for error messages
        connect: Callable[[], sqlite3.Connection],  # opens one that another thread may close
        is_usable: Callable[[sqlite3.Connection], bool] = lambda _: True,  # of one opened before; else it is replaced
    ) -> None:
        self._path, self._connect, self._is_usable = path, connect, is_usable
        self._local, self._lock = threading.local(), threading.Lock()
        self._open: weakref.WeakSet[_HeldConnection] = weakref.WeakSet()
        self._inherited: list[_HeldConnection] = []
        self._is_closed = False

    def get(self) -> sqlite3.Connection:
        """Return this thread's connection; raise ValueError if all were closed."""
        held: _HeldConnection | None = getattr(self._local, "held", None)
        if held is not None and held.process != os.getpid():  # must be neither used nor closed by a forked process
            self._inherited.append(held)
            held = None
        if held is None or not self._is_usable(held.connection):
            held = self._local.held = self._open_connection()
        return held.connection

    def _open_connection(self) -> "_HeldConnection":
        self._require_open()
        held = _HeldConnection(self._connect())
        with self._lock:
            self._require_open()
            self._open.add(held)
        return held

    def _require_open(self) -> None:
        if self._is_closed:
            raise ValueError(f"the store {self._path} was closed")

    def close(self) -> None:
        """Close the connections of all threads."""
        with self._lock:
            self._is_closed = True
            for held in list(self._open):
                held.connection.close()
            self._open.clear()


class _HeldConnection:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection, self.process = connection, os.getpid()


def _read_only(path: Path) -> sqlite3.Connection:
    return _new_connection(_address(path, "mode=ro"))


def _new_connection(address: str, *, uri: bool = True, timeout: float = PATIENCE_SECONDS) -> sqlite3.Connection:
    connection = sqlite3.connect(
        address, uri=uri, timeout=timeout, isolation_level=None, check_same_thread=False, factory=_Connection
    )
    connection.set_progress_handler(lambda: deadline.seconds_left() <= 0, STEPS)  # true interrupts the query
    return connection


class _Connection(sqlite3.Connection):
    """Connection whose queries raise DeadlineError where the deadline interrupted them."""

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        return self.cursor(_Cursor).execute(*arguments)

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        return self.cursor(_Cursor).executemany(*arguments)


class _Cursor(sqlite3.Cursor):
    def execute(self, *arguments: Any) -> "_Cursor":
        return _call_in_time(super().execute, *arguments)

    def executemany(self, *arguments: Any) -> "_Cursor":
        return _call_in_time(super().executemany, *arguments)

    def fetchone(self) -> Any:
        return _call_in_time(super().fetchone)

    def fetchall(self) -> list[Any]:
        return _call_in_time(super().fetchall)

    def __next__(self) -> Any:
        return _call_in_time(super().__next__)


def _call_in_time(call: Callable[..., T], *arguments: Any) -> T:
    try:
        return call(*arguments)
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT and deadline.seconds_left() <= 0:
            raise deadline.DeadlineError from error
        raise


def _address(path: Path, options: str) -> str:
    return f"{path.absolute().as_uri()}?{options}"
