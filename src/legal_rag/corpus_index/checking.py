"""What can be wrong with a corpus index, told in lines: for the doctor.

In: a Library. Out: problems, none if the index is sound, or there is none.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

from legal_rag.corpus_index.frozen import read_centres
from legal_rag.corpus_index.tables import checked_meta
from legal_rag.library import CORPUS_INDEX, STORE, Library
from legal_rag.sqlite import connect_to_read
from legal_rag.store import present_at

AGAIN = "'legal-rag corpus-index' makes it anew"


def index_problems(library: Library) -> Iterator[str]:
    """Yield the problems of a Library's corpus index: another build's, damaged, documents missing or too many."""
    path = library.path / CORPUS_INDEX
    if not path.is_file():
        return
    try:
        with closing(connect_to_read(path, corpus=library.path / STORE)) as connection:
            (verdict,) = connection.execute("PRAGMA main.quick_check(1)").fetchone()
            if verdict != "ok":
                yield f"{CORPUS_INDEX}: {verdict} ({AGAIN})"
            try:
                checked_meta(connection, path, library.manifest["lineage"], library.commit)
            except ValueError as error:
                yield str(error)
                return
            read_centres(connection)
            yield from _document_problems(connection, library.commit)
            yield from _total_problems(connection, library.commit)
    except (sqlite3.DatabaseError, ValueError, TypeError, KeyError) as error:  # what it holds may be anything
        yield f"{CORPUS_INDEX}: {error} ({AGAIN})"


def _document_problems(connection: sqlite3.Connection, commit: int) -> Iterator[str]:
    """Compare which documents there are with the store, and look for rows of documents that there are not."""
    here = f"SELECT document_key, id FROM main.documents AS i WHERE {present_at(commit, 'i')}"  # noqa: S608
    there = f"SELECT document_key, id FROM corpus.documents AS d WHERE {present_at(commit, 'd')}"  # noqa: S608
    for what, query in (
        ("is not in it", f"{there} EXCEPT {here} LIMIT 1"),
        ("is in it, not in the Library", f"{here} EXCEPT {there} LIMIT 1"),
    ):
        for _, doc_id in connection.execute(query):
            yield f"{CORPUS_INDEX}: document {doc_id!r} {what} ({AGAIN})"
    for table in ("keywords", "postings", "sections"):
        query = f"SELECT 1 FROM {table} WHERE document_key NOT IN (SELECT document_key FROM main.documents) LIMIT 1"  # noqa: S608
        if connection.execute(query).fetchone():
            yield f"{CORPUS_INDEX}: {table} of a document that is not there ({AGAIN})"


def _total_problems(connection: sqlite3.Connection, commit: int) -> Iterator[str]:
    told = connection.execute("SELECT documents, chars FROM totals WHERE at_commit = ?", (commit,)).fetchone()
    counted = f"SELECT COUNT(*), COALESCE(SUM(char_count), 0) FROM main.documents AS i WHERE {present_at(commit, 'i')}"  # noqa: S608
    found = connection.execute(counted).fetchone()
    if told != found:
        yield f"{CORPUS_INDEX}: says {told} documents and characters, holds {found} ({AGAIN})"
