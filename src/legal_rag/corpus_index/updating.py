"""Update the corpus index with each commit of the Library, and check it."""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from legal_rag.base.sqlite import connect_to_read
from legal_rag.corpus_index.clusters import Centres
from legal_rag.corpus_index.describing import describe
from legal_rag.corpus_index.tables import (
    Row,
    checked_meta,
    delete_after,
    open_to_write,
    put_rows,
    read_centres,
    read_statistics,
)
from legal_rag.corpus_index.terms import read_terms
from legal_rag.library.checksums import record_checksums
from legal_rag.library.library import CORPUS_INDEX, STORE, Library
from legal_rag.library.store import DOCUMENT_COLUMNS, document_of_stored, present_at

logger = logging.getLogger(__name__)


COMMIT_DOCUMENTS = 100  # described in one transaction
COLUMNS = ", ".join(DOCUMENT_COLUMNS)
REBUILD = "'legal-rag corpus-index' rebuilds it"


def update_corpus_index(folder: Path, lineage: str, commit: int) -> None:
    """Apply the next commit of a Library, whose rows are in the store already, to its corpus index, if it has one.

    Rows of an incomplete commit are deleted first. A damaged or stale index is left unchanged, with a warning.

    Args:
        folder: The Library's, locked by the caller.
        lineage: Of its manifest.
        commit: The new commit.
    """
    path = folder / CORPUS_INDEX
    if not path.is_file():
        return
    try:
        with closing(open_to_write(path)) as connection:
            checked_meta(connection, path, lineage, commit - 1)
            connection.execute("ATTACH ? AS corpus", (str(folder / STORE),))
            connection.execute("BEGIN IMMEDIATE")
            _delete_uncommitted_rows(connection, commit)
            _mark_removed_rows(connection, commit)
            _add_documents(connection, commit)
            _write_totals(connection, commit)
            connection.execute("COMMIT")
    except (sqlite3.DatabaseError, ValueError) as error:
        if _is_transient(error):
            raise
        # Readers reject an index that lacks the commit; the Library's own commit must not fail because of it.
        logger.warning("the corpus index is left as it is: %s", error)
    else:
        record_checksums(folder, CORPUS_INDEX)


def _is_transient(error: Exception) -> bool:
    """Is an error a full disk or a locked file, not damage such as a missing table?"""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)  # invalid UTF-8 has none
    return isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR


def _delete_uncommitted_rows(connection: sqlite3.Connection, commit: int) -> None:
    delete_after(connection, _last_before(connection, commit))
    connection.execute("UPDATE main.documents SET removed = NULL WHERE removed >= ?", (commit,))
    connection.execute("DELETE FROM totals WHERE at_commit >= ?", (commit,))


def _last_before(connection: sqlite3.Connection, commit: int) -> int:
    """Return the key of the last document of the earlier commits: keys rise from commit to commit."""
    query = "SELECT document_key FROM main.documents WHERE added < ? ORDER BY document_key DESC LIMIT 1"
    row = connection.execute(query, (commit,)).fetchone()
    return int(row[0]) if row else 0


def _mark_removed_rows(connection: sqlite3.Connection, commit: int) -> None:
    gone = "SELECT document_key FROM corpus.documents WHERE removed = ?"
    connection.execute(f"UPDATE main.documents SET removed = ? WHERE document_key IN ({gone})", (commit, commit))  # noqa: S608


def _add_documents(connection: sqlite3.Connection, commit: int) -> None:
    """Describe the commit's documents, in transactions of `COMMIT_DOCUMENTS` each.

    The caller has begun the first one, and commits the last.
    """
    query = f"""
        SELECT document_key, {COLUMNS} FROM corpus.documents WHERE document_key > ? AND added = ?
        ORDER BY document_key LIMIT ?
    """  # noqa: S608
    centres: Centres | None = None
    while True:
        (last,) = connection.execute("SELECT COALESCE(MAX(document_key), 0) FROM main.documents").fetchone()
        rows = connection.execute(query, (last, commit, COMMIT_DOCUMENTS)).fetchall()
        if not rows:
            return
        centres = centres or read_centres(connection)
        for key, *values in rows:
            document = document_of_stored(values)
            terms = read_terms(document.content)
            described = describe(document, read_statistics(connection, terms.counts), terms)
            put_rows(connection, [Row(key, document.id, commit, described, centres.assign(described.weights))])
        if len(rows) == COMMIT_DOCUMENTS:
            connection.execute("COMMIT")
            connection.execute("BEGIN IMMEDIATE")


def _write_totals(connection: sqlite3.Connection, commit: int) -> None:
    """Write the commit's totals: the previous totals plus the changes."""
    before = "SELECT documents, chars FROM totals WHERE at_commit = ?"
    changed = "SELECT COUNT(*), COALESCE(SUM(char_count), 0) FROM main.documents"
    documents, chars = connection.execute(before, (commit - 1,)).fetchone()
    added = connection.execute(f"{changed} WHERE document_key > ?", (_last_before(connection, commit),)).fetchone()
    gone = connection.execute(f"{changed} WHERE removed = ?", (commit,)).fetchone()
    totals = (commit, documents + added[0] - gone[0], chars + added[1] - gone[1])
    connection.execute("INSERT INTO totals VALUES (?, ?, ?)", totals)


def index_problems(library: Library) -> Iterator[str]:
    """Yield the problems of a Library's corpus index, if it has one: damage, another build, wrong documents."""
    path = library.path / CORPUS_INDEX
    if not path.is_file():
        return
    try:
        with closing(connect_to_read(path, corpus=library.path / STORE)) as connection:
            (verdict,) = connection.execute("PRAGMA main.quick_check(1)").fetchone()
            if verdict != "ok":
                yield f"{CORPUS_INDEX}: {verdict} ({REBUILD})"
            try:
                checked_meta(connection, path, library.manifest["lineage"], library.commit)
            except ValueError as error:
                yield str(error)
                return
            read_centres(connection)
            yield from _document_problems(connection, library.commit)
            yield from _total_problems(connection, library.commit)
    except (sqlite3.DatabaseError, ValueError, TypeError, KeyError) as error:  # a damaged file may hold anything
        yield f"{CORPUS_INDEX}: {error} ({REBUILD})"


def _document_problems(connection: sqlite3.Connection, commit: int) -> Iterator[str]:
    """Compare the documents with the store's, and look for rows without a document."""
    indexed = f"SELECT document_key, id FROM main.documents AS i WHERE {present_at(commit, 'i')}"  # noqa: S608
    stored = f"SELECT document_key, id FROM corpus.documents AS d WHERE {present_at(commit, 'd')}"  # noqa: S608
    for what, query in (
        ("is missing", f"{stored} EXCEPT {indexed} LIMIT 1"),
        ("is not in the Library", f"{indexed} EXCEPT {stored} LIMIT 1"),
    ):
        for _, doc_id in connection.execute(query):
            yield f"{CORPUS_INDEX}: document {doc_id!r} {what} ({REBUILD})"
    for table in ("keywords", "postings", "sections"):
        query = f"SELECT 1 FROM {table} WHERE document_key NOT IN (SELECT document_key FROM main.documents) LIMIT 1"  # noqa: S608
        if connection.execute(query).fetchone():
            yield f"{CORPUS_INDEX}: {table} without a document ({REBUILD})"


def _total_problems(connection: sqlite3.Connection, commit: int) -> Iterator[str]:
    recorded = connection.execute("SELECT documents, chars FROM totals WHERE at_commit = ?", (commit,)).fetchone()
    counted = f"SELECT COUNT(*), COALESCE(SUM(char_count), 0) FROM main.documents AS i WHERE {present_at(commit, 'i')}"  # noqa: S608
    actual = connection.execute(counted).fetchone()
    if recorded != actual:
        yield f"{CORPUS_INDEX}: records {recorded} documents and characters, holds {actual} ({REBUILD})"
