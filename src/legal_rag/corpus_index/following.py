"""The corpus index brought to its Library's next commit, within that commit.

In: the store, which holds the commit's rows already. Out: rows that readers see with the commit, not before. What is
added is described by the frozen numbers of the last full build: no other document's rows change.
"""

import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from legal_rag.corpus_index.clusters import Centres
from legal_rag.corpus_index.describing import describe
from legal_rag.corpus_index.frozen import read_centres, read_statistics
from legal_rag.corpus_index.rows import Row, forget_after, put_rows
from legal_rag.corpus_index.tables import checked_meta, open_to_write
from legal_rag.corpus_index.terms import read_terms
from legal_rag.library import CORPUS_INDEX, STORE
from legal_rag.store import DOCUMENT_COLUMNS, document_of_stored

COMMIT_DOCUMENTS = 100  # described in one transaction
COLUMNS = ", ".join(DOCUMENT_COLUMNS)

logger = logging.getLogger(__name__)


def follow_commit(folder: Path, lineage: str, commit: int) -> None:
    """Bring the index of a Library to its next commit, whose rows are in the store already; without an index, nothing.

    Until the manifest names the commit no reader sees it; what a commit that never came left behind goes first.

    Args:
        folder: The Library's, which the caller has locked.
        lineage: Of its manifest.
        commit: The next one.
    """
    path = folder / CORPUS_INDEX
    if not path.is_file():
        return
    try:
        with closing(open_to_write(path)) as connection:
            checked_meta(connection, path, lineage, commit - 1)
            connection.execute("ATTACH ? AS corpus", (str(folder / STORE),))
            connection.execute("BEGIN IMMEDIATE")
            _forget_uncommitted(connection, commit)
            _remove(connection, commit)
            _add(connection, commit)
            _count(connection, commit)
            connection.execute("COMMIT")
    except (sqlite3.DatabaseError, ValueError) as error:
        if _is_of_the_moment(error):
            raise
        # No reader takes it for right, no commit waits for it.
        logger.warning("the corpus index is left as it is: %s", error)


def _is_of_the_moment(error: Exception) -> bool:
    """Tell whether the disk is full or the file locked; a table that is not there, is damage."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)  # text that is no UTF-8 has none
    return isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR


def _forget_uncommitted(connection: sqlite3.Connection, commit: int) -> None:
    forget_after(connection, _last_before(connection, commit))
    connection.execute("UPDATE main.documents SET removed = NULL WHERE removed >= ?", (commit,))
    connection.execute("DELETE FROM totals WHERE at_commit >= ?", (commit,))


def _last_before(connection: sqlite3.Connection, commit: int) -> int:
    """Return the key of the last document that an earlier commit added: those of this one lie behind it."""
    query = "SELECT document_key FROM main.documents WHERE added < ? ORDER BY document_key DESC LIMIT 1"
    row = connection.execute(query, (commit,)).fetchone()
    return int(row[0]) if row else 0


def _remove(connection: sqlite3.Connection, commit: int) -> None:
    """Mark what the store marks as removed with this commit."""
    gone = "SELECT document_key FROM corpus.documents WHERE removed = ?"
    connection.execute(f"UPDATE main.documents SET removed = ? WHERE document_key IN ({gone})", (commit, commit))  # noqa: S608


def _add(connection: sqlite3.Connection, commit: int) -> None:
    """Describe what the store holds behind the last document that is here, in transactions of some documents each.

    The caller has begun the first one, and commits the last.
    """
    query = f"""
        SELECT document_key, {COLUMNS} FROM corpus.documents WHERE document_key > ? AND added = ?
        ORDER BY document_key LIMIT ?
    """  # noqa: S608
    centres: Centres | None = None
    while True:
        (last,) = connection.execute("SELECT COALESCE(MAX(document_key), 0) FROM main.documents").fetchone()
        found = connection.execute(query, (last, commit, COMMIT_DOCUMENTS)).fetchall()
        if not found:
            return
        centres = centres or read_centres(connection)
        rows = [_row(connection, key, values, commit, centres) for key, *values in found]
        put_rows(connection, rows)
        if len(found) == COMMIT_DOCUMENTS:
            connection.execute("COMMIT")
            connection.execute("BEGIN IMMEDIATE")


def _row(connection: sqlite3.Connection, key: int, values: list[Any], commit: int, centres: Centres) -> Row:
    document = document_of_stored(values)
    terms = read_terms(document.content)
    described = describe(document, read_statistics(connection, terms.counts), terms)
    return Row(key, document.id, commit, described, centres.assign(described.weights))


def _count(connection: sqlite3.Connection, commit: int) -> None:
    """Write what the corpus comes to, from what it came to before: nothing is read that did not change."""
    before = "SELECT documents, chars FROM totals WHERE at_commit = ?"
    changed = "SELECT COUNT(*), COALESCE(SUM(char_count), 0) FROM main.documents"
    documents, chars = connection.execute(before, (commit - 1,)).fetchone()
    added = connection.execute(f"{changed} WHERE document_key > ?", (_last_before(connection, commit),)).fetchone()
    gone = connection.execute(f"{changed} WHERE removed = ?", (commit,)).fetchone()
    totals = (commit, documents + added[0] - gone[0], chars + added[1] - gone[1])
    connection.execute("INSERT INTO totals VALUES (?, ?, ?)", totals)
