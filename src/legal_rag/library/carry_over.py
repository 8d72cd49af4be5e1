"""Carry saved answers and entities over when an index folder is replaced; drop those of removed documents."""

import logging
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from legal_rag.base.files import beside, link_or_copy, sync
from legal_rag.base.sqlite import connect_to_write, copy_database
from legal_rag.extraction.entities import ENTITIES
from legal_rag.library.checksums import record_checksums
from legal_rag.library.library import RUNS

logger = logging.getLogger(__name__)

LOCK_SECONDS = 10.0  # that a writer waits for another, whose work takes moments


@contextmanager
def locked_answers(library: Path) -> Iterator[None]:
    """Lock a Library's saved answers against other writers; the lock file survives a replacement of the folder.

    Raises:
        OSError: If another process holds the lock for longer than `LOCK_SECONDS`.
    """
    from filelock import FileLock, Timeout

    try:
        with FileLock(beside(library, f"{RUNS}.lock"), timeout=LOCK_SECONDS):
            yield
    except Timeout as error:
        raise OSError(f"another process has been writing there for {LOCK_SECONDS:.0f} seconds") from error


@contextmanager
def carrying_answers(old: Path, new: Path) -> Iterator[None]:
    """Link a Library's saved answers into the folder that replaces it, and lock them until the block has done that."""
    shutil.rmtree(new / RUNS, ignore_errors=True)
    if not old.is_dir():
        yield
        return
    with locked_answers(old):
        for file in (old / RUNS).glob("*.json"):
            (new / RUNS).mkdir(exist_ok=True)
            link_or_copy(file, new / RUNS / file.name)
        yield


@contextmanager
def carrying_entities(old: Path, new: Path) -> Iterator[None]:
    """Copy a Library's entities into the folder that replaces it, and lock them until the block ends.

    A damaged file is left behind with a warning: its entities can be extracted again.
    """
    source = old / ENTITIES
    if not source.is_file():
        yield
        return
    with closing(connect_to_write(source)) as connection:
        _copy_entities(connection, source, new / ENTITIES)
        yield  # closing the connection releases its lock on the old file


def forget_entities(library: Path, doc_ids: Iterable[str]) -> None:
    """Delete the entities of removed documents, and the exported files of all: `legal-rag extract` writes new ones."""
    if not (library / ENTITIES).is_file():
        return
    from legal_rag.extraction.outputs import OUTPUTS, delete_outputs
    from legal_rag.extraction.store import ExtractionStore

    with ExtractionStore(library / ENTITIES) as store:
        store.drop(doc_ids)
    delete_outputs(library)
    record_checksums(library, ENTITIES, *OUTPUTS)


def _copy_entities(connection: sqlite3.Connection, source: Path, target: Path) -> None:
    try:
        connection.execute("BEGIN IMMEDIATE")  # holds the write lock; there is nothing to commit
        copy_database(source, target)
    except sqlite3.OperationalError:  # such as a full disk
        raise
    except sqlite3.DatabaseError as error:
        logger.warning("%s is damaged (%s): its entities are left behind, extract them again", source, error)
        return
    sync(target)
