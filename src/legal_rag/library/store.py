"""`corpus.sqlite`: documents, chunks and reference keys, with the commits of each row; citation links."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from legal_rag.base.html import displayed
from legal_rag.base.sqlite import connect_to_write, transaction
from legal_rag.corpus.chunking import Chunk
from legal_rag.corpus.documents import Document
from legal_rag.law.keys import relaxed_key, resolve_key

SCHEMA = """
CREATE TABLE documents (
    document_key INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    content_hash TEXT NOT NULL, added INTEGER NOT NULL, removed INTEGER,
    title TEXT NOT NULL, decision_date TEXT NOT NULL, juridiction TEXT NOT NULL, formation TEXT NOT NULL,
    solution TEXT NOT NULL, applied_laws TEXT NOT NULL, config TEXT NOT NULL,
    -- The long ones last: SQLite reads through all that precedes the column it is asked for.
    summary TEXT NOT NULL, extra TEXT NOT NULL, content TEXT NOT NULL
);
CREATE INDEX documents_by_id ON documents (id);
CREATE UNIQUE INDEX documents_present ON documents (id) WHERE removed IS NULL;
CREATE INDEX documents_by_court ON documents (juridiction, formation);
CREATE INDEX documents_by_solution ON documents (solution);
CREATE INDEX documents_by_date ON documents (decision_date);
CREATE INDEX documents_removed ON documents (removed) WHERE removed IS NOT NULL;
CREATE TABLE chunks (
    document_key INTEGER NOT NULL REFERENCES documents, chunk_index INTEGER NOT NULL,
    char_start INTEGER NOT NULL, char_end INTEGER NOT NULL,
    shard INTEGER NOT NULL, position INTEGER NOT NULL,
    PRIMARY KEY (document_key, chunk_index)
) WITHOUT ROWID;
CREATE UNIQUE INDEX chunks_by_position ON chunks (shard, position);
-- Reference keys: what identifies a document (own = 1) and what it cites; see legal_rag.law.keys. Queries say
-- INDEXED BY names_own: by the primary key SQLite would read every document that cites a key to find the one it names.
CREATE TABLE names (
    term TEXT NOT NULL, document_key INTEGER NOT NULL REFERENCES documents, own INTEGER NOT NULL,
    PRIMARY KEY (term, document_key)
) WITHOUT ROWID;
CREATE INDEX names_by_document ON names (document_key, own);
CREATE INDEX names_own ON names (term) WHERE own;
"""
# The days on which articles that have versions are in force, ISO 8601, `until` excluded: see `Document.force`.
# Libraries written before there were versions have no such table.
VERSIONS_SCHEMA = """
CREATE TABLE IF NOT EXISTS versions (
    document_key INTEGER PRIMARY KEY REFERENCES documents,
    article TEXT NOT NULL, -- the same for all versions of one
    first TEXT NOT NULL, until TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS versions_by_article ON versions (article);
"""
SCHEMA += VERSIONS_SCHEMA
KEYED_TABLES = ("published", "versions", "names", "chunks", "documents")  # with a document_key; referring tables first
# Documents that pass, or do not pass, a filter: `published` is made with the index of words, `fallen` of the graph at a
# commit. Libraries written before have neither.
PUBLISHED_SCHEMA = "CREATE TABLE IF NOT EXISTS published (document_key INTEGER PRIMARY KEY REFERENCES documents)"
FALLEN_SCHEMA = """
CREATE TABLE IF NOT EXISTS fallen (document_key INTEGER PRIMARY KEY REFERENCES documents);
CREATE TABLE IF NOT EXISTS fallen_at (commit_number INTEGER NOT NULL);
"""
DOCUMENT_COLUMNS = tuple(field.name for field in fields(Document))
STORED_COLUMNS = (*DOCUMENT_COLUMNS, "content_hash")
SELECT_DOCUMENTS = f"SELECT {', '.join(DOCUMENT_COLUMNS)} FROM documents"  # noqa: S608
SELECT_HASHED = SELECT_DOCUMENTS.replace("SELECT ", "SELECT content_hash, ", 1)
JSON_COLUMNS = ("applied_laws", "extra")
MAX_HOLDERS = 10  # documents with one key (an article's versions); a key of more is ambiguous
CITATIONS_KEPT = 2**16  # terms whose resolution is remembered: the best documents of a question cite thousands

Place = tuple[int, int]  # shard, position


@displayed
class StoredChunk(NamedTuple):
    """A chunk with its offsets, and the fields of its document that a list of results shows."""

    doc_id: str
    chunk_index: int
    char_start: int
    char_end: int
    text: str
    title: str
    decision_date: str


def present_at(commit: int, alias: str = "") -> str:
    """Return the SQL condition that a document is present at a commit; `alias` names `documents` in the query."""
    table = f"{alias}." if alias else ""
    return f"({table}added <= {commit:d} AND ({table}removed IS NULL OR {table}removed > {commit:d}))"


def present_keys(commit: int, last_key: int) -> str:
    """Return the SQL condition on `document_key` that a document was in the corpus at a commit.

    Unlike `present_at` it reads no row, each a page of the file.

    Args:
        commit: The commit.
        last_key: The key of the last document added up to it; keys rise from commit to commit.
    """
    removed = f"SELECT document_key FROM documents WHERE removed <= {commit:d}"  # noqa: S608
    return f"(+document_key <= {last_key:d} AND +document_key NOT IN ({removed}))"  # +: no range of keys to search in


def document_of_stored(row: Sequence[Any]) -> Document:
    """Read a row of `SELECT_DOCUMENTS`."""
    values = dict(zip(DOCUMENT_COLUMNS, row, strict=True))
    values["applied_laws"] = tuple(json.loads(values["applied_laws"]))
    values["extra"] = json.loads(values["extra"])
    return Document(**values)


class Contents:
    """The texts of the documents present at one commit, which `present` selects: see `present_at`."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], present: str) -> None:
        self._connect, self._present = connect, present

    def all(self) -> Iterator[tuple[str, bytes]]:
        """Stream all texts."""
        return self._stream_contents("TRUE")

    def of(self, doc_ids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Stream the texts of some documents; unknown ids are left out."""
        return self._stream_contents("id IN (SELECT value FROM json_each(?))", json.dumps(list(doc_ids)))

    def known(self, doc_ids: Sequence[str]) -> set[str]:
        """Return those of some ids that documents have."""
        query = f"SELECT id FROM documents WHERE id IN (SELECT value FROM json_each(?)) AND {self._present}"  # noqa: S608
        return {doc_id for (doc_id,) in self._connect().execute(query, (json.dumps(list(doc_ids)),))}

    def at(self, places: Sequence[Place]) -> Iterator[tuple[str, bytes]]:
        """Stream the texts of the documents of the chunks at some places."""
        held = """
            SELECT chunks.document_key FROM json_each(?) AS place
            JOIN chunks ON shard = json_extract(place.value, '$[0]') AND position = json_extract(place.value, '$[1]')
        """
        return self._stream_contents(f"document_key IN ({held})", json.dumps(list(places)))

    def with_chunks(self, places: Sequence[int]) -> Iterator[tuple[int, str, list[tuple[int, int, int]]]]:
        """Stream the documents whose first chunks are at some places, one integer each: see `bm25.encode_place`.

        Each has its place, its text, and first character, end and place of each of its chunks.
        """
        texts = f"""
            SELECT place.value, document_key, content FROM json_each(?) AS place
            JOIN chunks ON shard = place.value >> 32 AND position = place.value & 4294967295
            JOIN documents USING (document_key) WHERE {self._present}
        """  # noqa: S608
        chunks = "SELECT char_start, char_end, shard << 32 | position FROM chunks WHERE document_key = ?"
        connection = self._connect()
        for place, key, content in connection.execute(texts, (json.dumps(list(places)),)):
            yield place, content, connection.execute(chunks, (key,)).fetchall()

    def bearing(self, keys: Sequence[str]) -> dict[int, int]:
        """Return the chunks of the documents that have one of some keys as their own, with their documents, as places.

        A place is one integer, as in `with_chunks`.
        """
        query = f"""
            SELECT document_key, shard << 32 | position FROM chunks JOIN documents USING (document_key)
            WHERE document_key IN (
                SELECT document_key FROM names INDEXED BY names_own
                WHERE own AND term IN (SELECT value FROM json_each(?))
            ) AND {self._present} ORDER BY document_key, chunk_index
        """  # noqa: S608
        rows = self._connect().execute(query, (json.dumps(list(keys)),)).fetchall()
        first: dict[int, int] = {}
        return {place: first.setdefault(key, place) for key, place in rows}

    def _stream_contents(self, condition: str, *values: str) -> Iterator[tuple[str, bytes]]:
        # As bytes: decoding takes longer than reading, and most texts are only searched.
        query = f"""
            SELECT id, CAST(content AS BLOB) FROM documents
            WHERE {condition} AND {self._present} ORDER BY document_key
        """  # noqa: S608
        yield from self._connect().execute(query, values)


class StoreWriter:
    """Fills a new store, but for reference keys: see `bm25.word_part`.

    Chunks fill shards of `shard_chunks` each in the order they come, across documents.

    Args:
        path: The store's file; one of an attempt that was cut off is replaced.
        shard_chunks: Chunks in a shard.
        first_shard: The number of the first shard.
    """

    def __init__(self, path: Path, *, shard_chunks: int, first_shard: int = 0) -> None:
        self.path, self.shard_chunks, self.first_shard = path, shard_chunks, first_shard
        self.n_documents = self.n_chunks = 0
        for file in path.parent.glob(f"{path.name}*"):  # its journals too
            file.unlink()
        self._connection = connect_to_write(path)
        self._connection.execute("PRAGMA journal_mode=WAL")  # lets others read while more is added
        self._connection.execute("PRAGMA synchronous=NORMAL")
        self._connection.executescript(SCHEMA)

    @property
    def n_shards(self) -> int:
        """How many shards the chunks fill, the last one perhaps in part."""
        return -(-self.n_chunks // self.shard_chunks)

    def add(self, document: Document, chunks: Sequence[Chunk]) -> None:
        """Store a document and its chunks, in a transaction that `commit` ends."""
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN")
        self.n_documents += 1
        marks = ", ".join("?" * (len(STORED_COLUMNS) + 2))
        columns = ", ".join(("document_key", *STORED_COLUMNS, "added"))
        self._connection.execute(
            f"INSERT INTO documents ({columns}) VALUES ({marks})",  # noqa: S608
            (self.n_documents, *_column_values(document), document.content_hash, 1),
        )
        if document.force is not None:
            days = document.force.first.isoformat(), document.force.until.isoformat()
            article = str(document.extra.get("article_id") or document.id)
            self._connection.execute("INSERT INTO versions VALUES (?, ?, ?, ?)", (self.n_documents, article, *days))
        rows = []
        for chunk in chunks:
            shard, position = divmod(self.n_chunks, self.shard_chunks)
            place = (self.first_shard + shard, position)
            rows.append((self.n_documents, chunk.chunk_index, chunk.char_start, chunk.char_end, *place))
            self.n_chunks += 1
        self._connection.executemany("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?)", rows)

    def commit(self) -> None:
        """Make what was added durable, and visible to readers."""
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")

    def finish(self) -> None:
        """Commit, and leave a single file without write-ahead log."""
        self.commit()
        self._connection.execute("PRAGMA journal_mode=DELETE")
        self._connection.close()

    def close(self) -> None:
        """Close the store as it was at the last commit."""
        self._connection.close()


def has_table(connection: sqlite3.Connection, name: str, schema: str = "main") -> bool:
    """Tell whether a store has a table, which those written by an earlier version may lack."""
    query = f"SELECT 1 FROM {schema}.sqlite_master WHERE type = 'table' AND name = ?"  # noqa: S608
    return connection.execute(query, (name,)).fetchone() is not None


def has_versions(connection: sqlite3.Connection, schema: str = "main") -> bool:
    """Tell whether a store holds articles with versions."""
    rows = f"SELECT 1 FROM {schema}.versions LIMIT 1"  # noqa: S608
    return has_table(connection, "versions", schema) and connection.execute(rows).fetchone() is not None


def write_published(connection: sqlite3.Connection, keys: Iterable[int]) -> None:
    """Store the keys of all documents that are published: see `legal_rag.law.citation.is_published`."""
    with transaction(connection):
        connection.execute(PUBLISHED_SCHEMA)
        connection.execute("DELETE FROM published")
        connection.executemany("INSERT INTO published VALUES (?)", ((key,) for key in keys))


def knows_fallen(connection: sqlite3.Connection, commit: int) -> bool:
    """Tell whether a store holds which documents have fallen at a commit, or at a later one."""
    if not has_table(connection, "fallen_at"):
        return False
    return bool(connection.execute("SELECT MAX(commit_number) >= ? FROM fallen_at", (commit,)).fetchone()[0])


def write_fallen(store: Path, commit: int, doc_ids: Iterable[str]) -> None:
    """Store which documents have fallen at a commit, in place of what was held of an earlier one."""
    with closing(connect_to_write(store)) as connection:
        connection.executescript(FALLEN_SCHEMA)
        with transaction(connection):
            connection.execute("DELETE FROM fallen")
            connection.execute("DELETE FROM fallen_at")
            query = f"INSERT INTO fallen SELECT document_key FROM documents WHERE id = ? AND {present_at(commit)}"  # noqa: S608
            connection.executemany(query, ((doc_id,) for doc_id in doc_ids))
            connection.execute("INSERT INTO fallen_at VALUES (?)", (commit,))


def copy_store(source: Path, target: Path, commit: int, moves: Iterable[tuple[int, int, int, int]]) -> None:
    """Write a store of the documents present at a commit, whose chunks move to other places.

    `moves` are shard and position before, shard and position after, of every chunk that stays.
    """
    with closing(connect_to_write(target)) as connection:
        connection.executescript(f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; {SCHEMA}")
        connection.execute("ATTACH ? AS source", (str(source),))
        with transaction(connection):
            connection.execute(
                "CREATE TEMP TABLE moves (shard, position, new_shard, new_position, PRIMARY KEY (shard, position))"
            )
            connection.executemany("INSERT INTO moves VALUES (?, ?, ?, ?)", moves)
            columns = ", ".join(("document_key", *STORED_COLUMNS, "added"))
            connection.execute(
                f"INSERT INTO documents ({columns}) SELECT {columns} FROM source.documents"  # noqa: S608
                f" WHERE {present_at(commit)} ORDER BY document_key"
            )
            connection.execute(
                "INSERT INTO chunks SELECT document_key, chunk_index, char_start, char_end, new_shard, new_position"
                " FROM source.chunks JOIN moves USING (shard, position) ORDER BY document_key, chunk_index"
            )
            connection.execute(
                "INSERT INTO names SELECT term, document_key, own FROM source.names"
                " WHERE document_key IN (SELECT document_key FROM main.documents) ORDER BY term, document_key"
            )
            if has_versions(connection, "source"):
                connection.execute(
                    "INSERT INTO versions SELECT * FROM source.versions"
                    " WHERE document_key IN (SELECT document_key FROM main.documents)"
                )


def _column_values(document: Document) -> list[Any]:
    return [
        json.dumps(getattr(document, name), ensure_ascii=False) if name in JSON_COLUMNS else getattr(document, name)
        for name in DOCUMENT_COLUMNS
    ]


@displayed
class CitationLink(NamedTuple):
    """A document cites another."""

    citing: int  # key of the document
    cited: int
    name: str  # the relaxed key of the document cited
    share: float  # of all that the citing one cites, indexed or not; in (0, 1]


class CitationLinks:
    """Citations between the documents present at one commit, which `present` selects: see `present_keys`."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], present: str) -> None:
        self._connect, self._present = connect, present

    def documents_at(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the document key of each place."""
        query = """
            SELECT shard, position, document_key FROM json_each(?) AS place
            JOIN chunks ON shard = json_extract(place.value, '$[0]') AND position = json_extract(place.value, '$[1]')
        """
        rows = self._connect().execute(query, (json.dumps(list(places)),))
        return {(shard, position): key for shard, position, key in rows}

    def links_from(self, documents: Iterable[int]) -> list[CitationLink]:
        """Return the links from some documents, each pair once, in the order of keys."""
        # One row a document: a row a term takes three times as long.
        query = """
            SELECT document_key, json_group_array(term) FROM names INDEXED BY names_by_document
            WHERE document_key IN (SELECT value FROM json_each(?)) AND own = 0 GROUP BY document_key
        """
        rows = self._connect().execute(query, (json.dumps(sorted(documents)),))
        cited = {citing: _resolve_terms(json.loads(terms)) for citing, terms in rows}
        held = self._find_holders({citation.key for resolved in cited.values() for citation in resolved})
        links: dict[tuple[int, int], CitationLink] = {}
        for citing, resolved in sorted(cited.items()):
            for citation in (citation for citation in resolved if citation.key in held):
                holders = held[citation.key] if citation.whole or len(held[citation.key]) == 1 else []
                for holder in holders:
                    before = links.get((citing, holder))
                    share = 1 / len(resolved) / len(holders) + (before.share if before else 0.0)
                    links[citing, holder] = CitationLink(citing, holder, citation.name, share)
        return [links[pair] for pair in sorted(links) if pair[0] != pair[1]]

    def _find_holders(self, names: Iterable[str]) -> dict[str, list[int]]:
        """Return the documents with each own key, of keys that at most `MAX_HOLDERS` have."""
        query = f"""
            SELECT value, (SELECT json_group_array(document_key) FROM (
                SELECT document_key FROM names INDEXED BY names_own
                WHERE own AND term = value AND {self._present} LIMIT {MAX_HOLDERS + 1}
            )) FROM json_each(?) WHERE EXISTS (SELECT 1 FROM names INDEXED BY names_own WHERE own AND term = value)
        """  # noqa: S608
        rows = self._connect().execute(query, (json.dumps(self._drop_absent_kinds(names)),))
        held = {name: sorted(json.loads(keys)) for name, keys in rows}
        return {name: keys for name, keys in held.items() if 0 < len(keys) <= MAX_HOLDERS}

    def _drop_absent_kinds(self, names: Iterable[str]) -> list[str]:
        """Drop keys of kinds that identify no document, such as articles where only decisions are indexed; sort."""
        by_kind: dict[str, list[str]] = defaultdict(list)
        for name in names:
            by_kind[name.partition(":")[0]].append(name)
        query = """
            SELECT value FROM json_each(?) WHERE EXISTS (
                SELECT 1 FROM names INDEXED BY names_own WHERE own AND term >= value || ':' AND term < value || ';'
            )
        """
        kinds = self._connect().execute(query, (json.dumps(list(by_kind)),))
        return sorted(name for (kind,) in kinds for name in by_kind[kind])

    def places_of(self, documents: Sequence[int]) -> dict[int, list[Place]]:
        """Return the places of each document's chunks, in order."""
        query = """
            SELECT document_key, shard, position FROM chunks
            WHERE document_key IN (SELECT value FROM json_each(?)) ORDER BY document_key, chunk_index
        """
        places: dict[int, list[Place]] = defaultdict(list)
        for key, shard, position in self._connect().execute(query, (json.dumps(list(documents)),)):
            places[key].append((shard, position))
        return places


class _Citation(NamedTuple):
    key: str  # of the document cited
    whole: bool  # with code or series
    name: str  # without


@lru_cache(CITATIONS_KEPT)
def _resolve_term(term: str) -> _Citation | None:
    resolved = resolve_key(term)
    return _Citation(*resolved, relaxed_key(term)) if resolved else None


def _resolve_terms(terms: Iterable[str]) -> list[_Citation]:
    """Resolve terms; a partial citation of what is also cited in full is dropped."""
    resolved = [citation for citation in map(_resolve_term, terms) if citation is not None]
    in_full = {citation.name for citation in resolved if citation.whole}
    return [citation for citation in resolved if citation.whole or citation.name not in in_full]
