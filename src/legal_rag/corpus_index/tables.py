"""The file of the corpus index: `corpus_index.sqlite` in a Library's folder, its tables, and how it is opened.

In: the file. Out: connections. A row of `documents` says in which commit of the Library it came and went, as the
store's do; the numbers of a full build, by which later documents are judged, stay as they were then: they are frozen.
"""

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from legal_rag import sqlite

FORMAT_VERSION = 1
CACHE_KB = 4000  # of each file, for each thread: what a frequent term leads to is many pages
BUILD_COMMAND = "build one with 'legal-rag corpus-index'"
SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID; -- JSON: format, lineage, frozen counts
CREATE TABLE documents (
    document_key INTEGER PRIMARY KEY, -- the store's
    id TEXT NOT NULL, content_hash TEXT NOT NULL, added INTEGER NOT NULL, removed INTEGER,
    char_count INTEGER NOT NULL, file_size INTEGER NOT NULL, doc_type TEXT NOT NULL,
    cluster INTEGER, -- none where a document has no keyword of the full build
    summary_source TEXT NOT NULL, summary TEXT NOT NULL
);
CREATE INDEX documents_by_id ON documents (id, added, removed, content_hash); -- all that a look-up by id asks for
CREATE INDEX documents_by_cluster ON documents (cluster);
CREATE INDEX documents_removed ON documents (removed) WHERE removed IS NOT NULL;
CREATE TABLE keywords (
    document_key INTEGER NOT NULL REFERENCES documents, place INTEGER NOT NULL, -- from 0, the weightiest first
    term TEXT NOT NULL, shown TEXT NOT NULL, weight REAL NOT NULL,
    PRIMARY KEY (document_key, place)
) WITHOUT ROWID;
CREATE INDEX keywords_by_shown ON keywords (shown);
CREATE TABLE postings ( -- by what a document is found: its keywords, and the words of those that are expressions
    term TEXT NOT NULL, document_key INTEGER NOT NULL REFERENCES documents, weight REAL NOT NULL,
    PRIMARY KEY (term, document_key)
) WITHOUT ROWID;
CREATE INDEX postings_by_document ON postings (document_key);
CREATE TABLE terms (
    term TEXT PRIMARY KEY, shown TEXT NOT NULL, frequency INTEGER NOT NULL -- documents that held it at the full build
) WITHOUT ROWID;
-- A centre is numbers of four bytes, little-endian, one for each feature.
CREATE TABLE clusters (cluster INTEGER PRIMARY KEY, topic TEXT NOT NULL UNIQUE, centre BLOB NOT NULL);
CREATE TABLE features (place INTEGER PRIMARY KEY, term TEXT NOT NULL); -- what the centres' numbers stand for
CREATE TABLE totals (at_commit INTEGER PRIMARY KEY, documents INTEGER NOT NULL, chars INTEGER NOT NULL);
CREATE TABLE sections (
    document_key INTEGER PRIMARY KEY REFERENCES documents, made_by TEXT NOT NULL, value TEXT NOT NULL
);
"""
KEYED_TABLES = (
    "sections",
    "postings",
    "keywords",
    "documents",
)  # those with a document's key, the ones that refer to others first


def open_to_write(path: Path) -> sqlite3.Connection:
    """Open an index for writing; its tables are made where there is none."""
    connection = sqlite.connect_to_write(path)
    if not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        connection.executescript(f"BEGIN; {SCHEMA} COMMIT;")
    return connection


def read_meta(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return all that an index says of itself."""
    return {name: json.loads(value) for name, value in connection.execute("SELECT name, value FROM meta")}


def write_meta(connection: sqlite3.Connection, values: Mapping[str, Any]) -> None:
    """Have an index say something of itself."""
    rows = [(name, json.dumps(value, ensure_ascii=False)) for name, value in values.items()]
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)


def checked_meta(connection: sqlite3.Connection, path: Path, lineage: str, commit: int) -> dict[str, Any]:
    """Return all that an index says of itself, if it is a whole one of the Library it lies in, at a commit of it.

    Raises:
        ValueError: If it is not.
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
    if not counted:  # who wrote to the Library knew of no index, or found it damaged; or it was built since
        raise ValueError(f"{path} knows nothing of the Library's commit {commit} (open that again, or {BUILD_COMMAND})")
    return meta
