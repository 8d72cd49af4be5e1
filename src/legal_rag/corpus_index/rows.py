"""The rows of documents in the index: put in, marked as removed, forgotten.

In: described documents. Out: the tables `documents`, `keywords` and `postings`.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from legal_rag.corpus_index.clusters import Centres
from legal_rag.corpus_index.describing import Described
from legal_rag.corpus_index.tables import KEYED_TABLES

ASSIGNED = 1000  # documents put into clusters at once


class Row(NamedTuple):
    """A described document, and its place in the store."""

    document_key: int
    doc_id: str
    added: int  # the commit that it came with
    described: Described
    cluster: int | None = None


def put_rows(connection: sqlite3.Connection, rows: Iterable[Row]) -> None:
    """Put documents in; the caller has begun a transaction."""
    for key, doc_id, added, described, cluster in rows:
        hashed, chars, size, kind, source, summary, keywords, postings = described
        values = (key, doc_id, hashed, added, None, chars, size, kind, cluster, source, summary)
        connection.execute("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        connection.executemany(
            "INSERT INTO keywords VALUES (?, ?, ?, ?, ?)", ((key, place, *one) for place, one in enumerate(keywords))
        )
        connection.executemany(
            "INSERT INTO postings VALUES (?, ?, ?)", ((term, key, weight) for term, weight in postings.items())
        )


def posted(connection: sqlite3.Connection) -> Iterator[tuple[int, str, dict[str, float]]]:
    """Stream key, id and weighted keywords of all documents, in order."""
    query = """
        SELECT document_key, id, term, weight FROM documents LEFT JOIN keywords USING (document_key)
        ORDER BY document_key, term
    """
    key, doc_id, weights = None, "", dict[str, float]()
    for found, name, term, weight in connection.execute(query):
        if found != key:
            if key is not None:
                yield key, doc_id, weights
            key, doc_id, weights = found, name, {}
        if term is not None:
            weights[term] = weight
    if key is not None:
        yield key, doc_id, weights


def assign_all(connection: sqlite3.Connection, centres: Centres) -> None:
    """Put every document into its nearest cluster; the caller has begun a transaction."""
    reading = posted(connection)
    while some := list(islice(reading, ASSIGNED)):
        rows = [(centres.assign(weights), key) for key, _, weights in some]
        connection.executemany("UPDATE documents SET cluster = ? WHERE document_key = ?", rows)


def forget_after(connection: sqlite3.Connection, document_key: int) -> None:
    """Delete the rows of the documents behind a key; the caller has begun a transaction."""
    for table in KEYED_TABLES:
        connection.execute(f"DELETE FROM {table} WHERE document_key > ?", (document_key,))  # noqa: S608
