"""The entities of a Library, taken along into the folder that takes its place, or forgotten with their documents.

In: the Library's folder, and the new one. Out: a copy of what was extracted, complete also where another process goes
on extracting meanwhile: what it finished before is in the copy, and what it wants to write later has to wait until the
new folder is in place, where `legal_rag.extraction.run` then writes it.
"""

import logging
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from legal_rag.extraction.entities import ENTITIES
from legal_rag.folders import sync
from legal_rag.sqlite import connect_to_read, connect_to_write

logger = logging.getLogger(__name__)


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
