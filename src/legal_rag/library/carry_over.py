"""Carry saved answers and entities over when an index folder is replaced."""

import logging
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from legal_rag.extraction.entities import ENTITIES
from legal_rag.files import beside, link_or_copy, sync
from legal_rag.library.library import RUNS
from legal_rag.sqlite import connect_to_read, connect_to_write

logger = logging.getLogger(__name__)


PATIENCE_SECONDS = 10.0  # that a writer waits for another: what is done meanwhile takes moments


@contextmanager
def writing_runs(library: Path) -> Iterator[None]:
    """Keep others from writing into a Library's folder of runs, and from moving it away.

    Args:
        library: The Library's folder. The lock lies beside it, where it stays when the folder is replaced.

    Raises:
        OSError: If another process does not let go of it.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(beside(library, f"{RUNS}.lock"), timeout=PATIENCE_SECONDS)
    try:
        lock.acquire()
    except Timeout as error:
        raise OSError(f"another process has been writing there for {PATIENCE_SECONDS:.0f} seconds") from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def runs_taken_along(old: Path, new: Path) -> Iterator[None]:
    """Give a Library's runs to the folder that takes its place, and keep others from saving until the block ends.

    Args:
        old: The Library's folder, which the block moves away.
        new: The folder that the block puts in its place; runs that lie there already go.
    """
    shutil.rmtree(new / RUNS, ignore_errors=True)
    if not old.is_dir():
        yield
        return
    with writing_runs(old):
        for file in (old / RUNS).glob("*.json"):
            (new / RUNS).mkdir(exist_ok=True)
            link_or_copy(file, new / RUNS / file.name)
        yield


@contextmanager
def entities_taken_along(old: Path, new: Path) -> Iterator[None]:
    """Copy the entities of a Library's folder, and keep others from adding to them until the block ends.

    Damaged ones are left behind, which is told: they can be extracted again.

    Args:
        old: The Library's folder, which the block moves away.
        new: The folder that the block puts in its place.
    """
    source = old / ENTITIES
    if not source.is_file():
        yield
        return
    with closing(connect_to_write(source)) as connection:
        _copy(connection, source, new / ENTITIES)
        yield  # the connection, and with it its lock, goes with the old file


def forget_entities(library: Path, doc_ids: Iterable[str]) -> None:
    """Forget what was extracted of documents that were removed, and delete the files that show all documents.

    `legal-rag extract` writes these anew.
    """
    if not (library / ENTITIES).is_file():
        return
    from legal_rag.extraction.outputs import delete_outputs
    from legal_rag.extraction.store import ExtractionStore

    with ExtractionStore(library / ENTITIES) as store:
        store.drop(doc_ids)
    delete_outputs(library)


def _copy(connection: sqlite3.Connection, source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    try:
        connection.execute("BEGIN IMMEDIATE")  # from now on nobody else writes
        with closing(connect_to_read(source)) as reader:
            reader.execute("VACUUM INTO ?", (str(target),))  # what was forgotten stays behind
    except sqlite3.OperationalError:  # such as a full disk
        raise
    except sqlite3.DatabaseError as error:
        target.unlink(missing_ok=True)
        logger.warning("%s is damaged (%s): its entities are left behind, extract them again", source, error)
        return
    sync(target)
