"""Tables of `corpus_index.sqlite`, their rows and reference statistics."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from legal_rag.base import sqlite
from legal_rag.corpus_index.clusters import Centres
from legal_rag.corpus_index.keywords import TermStatistics

FORMAT_VERSION = 1
CACHE_KB = 4000  # of each file, for each thread: the postings of a frequent term are many pages
BUILD_COMMAND = "build one with 'legal-rag corpus-index'"
COUNTED = "counted"  # in `meta`: the size of the sample that document frequencies count
ASSIGNED_AT_ONCE = 1000  # documents
KEYED_TABLES = ("sections", "postings", "keywords", "documents")  # by document_key; referring tables first


class Described(NamedTuple):
    """The rows that the index stores of one document."""

    content_hash: str
    char_count: int
    file_size: int  # bytes in UTF-8
    doc_type: str
    summary_source: str
    summary: str
    keywords: list[tuple[str, str, float]]  # term, surface form, weight; by falling weight
    postings: Mapping[str, float]  # weights by the terms that find it

    @property
    def weights(self) -> dict[str, float]:
        """The keywords' weights by term, which decide on its cluster."""
        return {term: weight for term, _, weight in self.keywords}


class Row(NamedTuple):
    """A described document, and its place in the store."""

    document_key: int
    doc_id: str
    added: int  # the commit that added it
    described: Described
    cluster: int | None = None


def open_to_write(path: Path) -> sqlite3.Connection:
    """Open an index for writing; create its tables in a new file."""
    connection = sqlite.connect_to_write(path)
    if not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        schema = (files("legal_rag.corpus_index") / "schema.sql").read_text("utf-8")
        connection.executescript(f"BEGIN; {schema} COMMIT;")
    return connection


def read_meta(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return the table `meta`."""
    return {name: json.loads(value) for name, value in connection.execute("SELECT name, value FROM meta")}


def write_meta(connection: sqlite3.Connection, values: Mapping[str, Any]) -> None:
    """Write values into the table `meta`."""
    rows = [(name, json.dumps(value, ensure_ascii=False)) for name, value in values.items()]
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)


def checked_meta(connection: sqlite3.Connection, path: Path, lineage: str, commit: int) -> dict[str, Any]:
    """Return the table `meta` of a complete index of its Library, at one of its commits.

    Raises:
        ValueError: If the index is damaged, incomplete, of another build of the Library, or lacks the commit.
    """
    try:
        meta = read_meta(connection)
        counted = connection.execute("SELECT 1 FROM totals WHERE at_commit = ?", (commit,)).fetchone()
    except (sqlite3.DatabaseError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error} ({BUILD_COMMAND})") from error
    if meta.get("format_version") != FORMAT_VERSION:
        raise ValueError(f"{path} has format {meta.get('format_version')!r}, not {FORMAT_VERSION} ({BUILD_COMMAND})")
    if meta.get("lineage") != lineage:
        raise ValueError(f"{path} is of another build of the Library ({BUILD_COMMAND})")
    if not counted:  # written without this index, or while it was damaged, or by a later build
        raise ValueError(f"{path} knows nothing of the Library's commit {commit} (open that again, or {BUILD_COMMAND})")
    return meta


def put_rows(connection: sqlite3.Connection, rows: Iterable[Row]) -> None:
    """Insert documents; the caller has begun a transaction."""
    for key, doc_id, added, described, cluster in rows:
        hashed, chars, size, kind, source, summary, keywords, postings = described
        values = (key, doc_id, hashed, added, None, chars, size, kind, cluster, source, summary)
        connection.execute("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        connection.executemany(
            "INSERT INTO keywords VALUES (?, ?, ?, ?, ?)", ((key, place, *row) for place, row in enumerate(keywords))
        )
        connection.executemany(
            "INSERT INTO postings VALUES (?, ?, ?)", ((term, key, weight) for term, weight in postings.items())
        )


def keyword_vectors(connection: sqlite3.Connection) -> Iterator[tuple[int, str, dict[str, float]]]:
    """Stream key, id and weighted keywords of all documents, in order."""
    query = """
        SELECT document_key, id, term, weight FROM documents LEFT JOIN keywords USING (document_key)
        ORDER BY document_key, term
    """
    for (key, doc_id), rows in groupby(connection.execute(query), key=itemgetter(0, 1)):
        yield key, doc_id, {term: weight for _, _, term, weight in rows if term is not None}


def assign_all(connection: sqlite3.Connection, centres: Centres) -> None:
    """Assign every document to its nearest cluster; the caller has begun a transaction."""
    vectors = keyword_vectors(connection)
    while batch := list(islice(vectors, ASSIGNED_AT_ONCE)):
        rows = [(centres.assign(weights), key) for key, _, weights in batch]
        connection.executemany("UPDATE documents SET cluster = ? WHERE document_key = ?", rows)


def delete_after(connection: sqlite3.Connection, document_key: int) -> None:
    """Delete the rows of the documents after a key; the caller has begun a transaction."""
    for table in KEYED_TABLES:
        connection.execute(f"DELETE FROM {table} WHERE document_key > ?", (document_key,))  # noqa: S608


def write_statistics(connection: sqlite3.Connection, statistics: TermStatistics) -> None:
    """Write document frequencies, in one transaction."""
    connection.execute("BEGIN")
    connection.execute("DELETE FROM terms")
    rows = ((term, statistics.shown[term], n) for term, n in sorted(statistics.frequencies.items()))
    connection.executemany("INSERT INTO terms VALUES (?, ?, ?)", rows)
    write_meta(connection, {COUNTED: statistics.n_documents})
    connection.execute("COMMIT")


def read_statistics(connection: sqlite3.Connection, terms: Iterable[str] | None = None) -> TermStatistics:
    """Read document frequencies, of all terms or of some."""
    query, values = "SELECT term, shown, frequency FROM terms", []
    if terms is not None:
        query, values = f"{query} WHERE term IN (SELECT value FROM json_each(?))", [json.dumps(list(terms))]  # noqa: S608
    rows = connection.execute(query, values).fetchall()
    (counted,) = connection.execute("SELECT value FROM meta WHERE name = ?", (COUNTED,)).fetchone()
    return TermStatistics(int(counted), {term: n for term, _, n in rows}, {term: shown for term, shown, _ in rows})


def write_centres(connection: sqlite3.Connection, centres: Centres, labels: list[str]) -> None:
    """Write the cluster centres and their topics; the caller has begun a transaction."""
    connection.execute("DELETE FROM features")
    connection.execute("DELETE FROM clusters")
    connection.executemany("INSERT INTO features VALUES (?, ?)", enumerate(centres.terms))
    rows = ((number, label, centres.matrix[number].astype("<f4").tobytes()) for number, label in enumerate(labels))
    connection.executemany("INSERT INTO clusters VALUES (?, ?, ?)", rows)


def read_centres(connection: sqlite3.Connection) -> Centres:
    """Read the cluster centres.

    Raises:
        ValueError: If the file is damaged.
    """
    terms = [term for (term,) in connection.execute("SELECT term FROM features ORDER BY place")]
    data = b"".join(centre for (centre,) in connection.execute("SELECT centre FROM clusters ORDER BY cluster"))
    return Centres.from_bytes(terms, data)
