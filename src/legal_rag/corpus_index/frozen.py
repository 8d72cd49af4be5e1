"""The frozen numbers of a corpus index: document frequencies and cluster centres of its last full build.

In: the index's file. Out: `TermStatistics` and `Centres`, written once, read by whatever describes a document later.
"""

import json
import sqlite3
from collections.abc import Iterable

from legal_rag.corpus_index.clusters import Centres
from legal_rag.corpus_index.frequencies import TermStatistics
from legal_rag.corpus_index.tables import read_meta, write_meta

COUNTED = "counted"  # in `meta`: documents whose terms were counted


def write_statistics(connection: sqlite3.Connection, statistics: TermStatistics) -> None:
    """Write what a full build counted, in one transaction."""
    connection.execute("BEGIN")
    connection.execute("DELETE FROM terms")
    rows = ((term, statistics.shown[term], n) for term, n in sorted(statistics.frequencies.items()))
    connection.executemany("INSERT INTO terms VALUES (?, ?, ?)", rows)
    write_meta(connection, {COUNTED: statistics.n_documents})
    connection.execute("COMMIT")


def read_statistics(connection: sqlite3.Connection, terms: Iterable[str] | None = None) -> TermStatistics:
    """Read them, all or of some terms only."""
    query, values = "SELECT term, shown, frequency FROM terms", []
    if terms is not None:
        query, values = f"{query} WHERE term IN (SELECT value FROM json_each(?))", [json.dumps(list(terms))]  # noqa: S608
    rows = connection.execute(query, values).fetchall()
    (counted,) = connection.execute("SELECT value FROM meta WHERE name = ?", (COUNTED,)).fetchone()
    return TermStatistics(int(counted), {term: n for term, _, n in rows}, {term: shown for term, shown, _ in rows})


def write_centres(connection: sqlite3.Connection, centres: Centres, labels: list[str]) -> None:
    """Write the centres and their topics; the caller has begun a transaction."""
    connection.execute("DELETE FROM features")
    connection.execute("DELETE FROM clusters")
    connection.executemany("INSERT INTO features VALUES (?, ?)", enumerate(centres.terms))
    rows = ((number, label, centres.matrix[number].astype("<f4").tobytes()) for number, label in enumerate(labels))
    connection.executemany("INSERT INTO clusters VALUES (?, ?, ?)", rows)


def read_centres(connection: sqlite3.Connection) -> Centres:
    """Read the centres.

    Raises:
        ValueError: If the file is damaged.
    """
    terms = [term for (term,) in connection.execute("SELECT term FROM features ORDER BY place")]
    data = b"".join(centre for (centre,) in connection.execute("SELECT centre FROM clusters ORDER BY cluster"))
    return Centres.from_bytes(terms, data)


def is_counted_already(connection: sqlite3.Connection) -> bool:
    """Tell whether the statistics were written."""
    return COUNTED in read_meta(connection)
