"""The outlines of a Library's documents, and who speaks where in them; `outlines.sqlite`, an optional part.

What is stored depends on a document's text alone, so it is kept by content hash and outlives commits and builds.
"""

import json
import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from legal_rag.base.files import beside, sync
from legal_rag.base.html import displayed
from legal_rag.base.sqlite import ThreadConnections, answers, connect_to_read, connect_to_write, transaction
from legal_rag.corpus.documents import Document
from legal_rag.law.scanning import tables_version
from legal_rag.law.tree import Paragraph, TreeNode, section_titles
from legal_rag.library.filters import Condition, Filters, UnsupportedFilterError
from legal_rag.library.manifest import record_checksums
from legal_rag.library.parts import LibraryPart, StoredDocument, bring_up_to_date

if TYPE_CHECKING:
    from legal_rag.library.library import Library

logger = logging.getLogger(__name__)

OUTLINES = "outlines.sqlite"
RULES_VERSION = (7 << 32) + tables_version()  # of rules and tables of law: outlines of others are made anew
BY_RULES = ""
BATCH = 200  # documents stored in one transaction
LEAST_CHARS = 80  # that a chunk shares with a passage that a filter wants, unless it holds all of it
MAKE_COMMAND = "'legal-rag rebuild --only trees' makes them"
# What reading a damaged file raises: it may hold anything.
DAMAGE = (sqlite3.DatabaseError, ValueError, TypeError, KeyError, RecursionError)
_SCHEMA = """
CREATE TABLE IF NOT EXISTS outlines (
    outline_key INTEGER PRIMARY KEY, content_hash TEXT NOT NULL UNIQUE,
    rules INTEGER NOT NULL, made_by TEXT NOT NULL, -- '', or what wrote the summaries or the outline itself
    description TEXT NOT NULL, tree TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS passages (
    outline_key INTEGER NOT NULL, char_start INTEGER NOT NULL, char_end INTEGER NOT NULL,
    part TEXT, speaker TEXT, censured INTEGER NOT NULL, PRIMARY KEY (outline_key, char_start)
) WITHOUT ROWID;
"""
_IS_LACKING = """
    NOT EXISTS (SELECT 1 FROM outlines AS o WHERE o.content_hash = d.content_hash AND o.rules = ?)
"""


@displayed
class Outline(NamedTuple):
    """A document's outline, with who speaks where."""

    tree: TreeNode
    passages: list[Paragraph]  # in order; neighbours differ in part, speaker or censure
    description: str = ""  # of the document, where one was written
    made_by: str = BY_RULES


def make_outline(document: Document) -> Outline:
    """Outline a document by rules; linear in its length."""
    return Outline(document.reading.tree, list(_merge_paragraphs(document.reading.paragraphs)))


def outline_of(corpus: "Library", doc_id: str) -> TreeNode:
    """Return the stored outline of a document, or else make it; LookupError if there is no such document."""
    return whole_outline_of(corpus, doc_id).tree


def whole_outline_of(corpus: "Library", doc_id: str) -> Outline:
    """Return the stored outline of a document with its passages, or else make it.

    LookupError if there is no such document.
    """
    document = corpus.document(doc_id)
    return corpus.stored_outline(document) or make_outline(document)


def passages_in(corpus: "Library", doc_id: str, start: int, end: int) -> list["LocatedPassage"]:
    """Return who speaks in a span of a document, and under which headings, in order; empty for a text without outline.

    LookupError if there is no such document.
    """
    outline = whole_outline_of(corpus, doc_id)
    passages = [passage for passage in outline.passages if passage.start < end and passage.end > start]
    starts = [max(passage.start, start) for passage in passages]
    return [
        LocatedPassage(first, min(passage.end, end), section_titles(outline.tree, first), passage)
        for first, passage in zip(starts, passages, strict=True)
    ]


class LocatedPassage(NamedTuple):
    """A stretch of a document by one speaker in one main part."""

    char_start: int
    char_end: int
    sections: tuple[str, ...]  # titles, the main part's first
    said: Paragraph  # the whole stretch

    def to_json(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        part, speaker, censured = self.said[2:]
        named = {"section": list(self.sections), "part": part, "speaker": speaker, "censured": censured}
        return {"char_start": self.char_start, "char_end": self.char_end, **named}


class LibraryOutlines:
    """The outlines stored next to a Library's texts, read by content hash."""

    def __init__(self, store: Path, file: Path) -> None:
        self._store, self._file = store, file
        self._connections = ThreadConnections(file, self._connect_outlines, answers)

    def _connect_outlines(self) -> sqlite3.Connection:
        return connect_to_read(self._store, outlines=self._file)

    def get(self, content_hash: str) -> Outline | None:
        """Return an outline; None if it is not stored, or the file is damaged, which is logged."""
        if not self._file.is_file():
            return None
        try:
            return _read_outline(self._connections.get(), content_hash)
        except DAMAGE as error:
            logger.warning("%s cannot be read (%s): delete it, %s anew", self._file, error, MAKE_COMMAND)
            return None

    def connection(self) -> sqlite3.Connection:
        """Return this thread's connection to the Library's store, with the schema `outlines`.

        UnsupportedFilterError if the Library has no outlines.
        """
        if not self._file.is_file():
            raise UnsupportedFilterError(f"no outlines in {self._file.parent}: {MAKE_COMMAND}")
        return self._connections.get()


def passage_condition(filters: Filters, *, of_chunks: bool) -> Condition | None:
    """Compile the filters by speaker and section: chunks, or documents, that hold such a passage; None without them."""
    columns = [(name, value) for name, value in (("speaker", filters.speaker), ("part", filters.section)) if value]
    if not columns:
        return None
    shared = (
        " AND MIN(p.char_end, chunks.char_end) - MAX(p.char_start, chunks.char_start)"
        f" >= MIN({LEAST_CHARS}, p.char_end - p.char_start)"
    )
    conditions = "".join(f" AND p.{name} = ?" for name, _ in columns)
    sql = f"""EXISTS (
        SELECT 1 FROM outlines.outlines AS o JOIN outlines.passages AS p USING (outline_key)
        WHERE o.content_hash = documents.content_hash{conditions}{shared if of_chunks else ""}
    )"""  # noqa: S608
    return Condition(sql, tuple(value for _, value in columns))


@contextmanager
def outline_part(
    library: Path, store: Path, *, earlier: Path | None = None, anew: bool = False, keep_others: bool = False
) -> Iterator[LibraryPart]:
    """Open the outlines that a store's documents lack; see `bring_up_to_date`.

    They are in the folder `library`; those of no document of the store are dropped, unless `keep_others`. Outlines of
    the same texts are copied from the file `earlier`. With `anew`, existing ones are remade; of those imported or
    summarised by a model, only who speaks.
    """
    with closing(_open_outlines(library / OUTLINES)) as connection:
        connection.execute("ATTACH ? AS store", (str(store),))
        if anew:
            connection.execute("UPDATE outlines SET rules = -1")  # of no version: what a kill leaves counts as lacking
        if earlier is not None and earlier.is_file():
            _copy_earlier(connection, earlier)
        if not keep_others:
            with transaction(connection):
                gone = "SELECT outline_key FROM outlines WHERE content_hash NOT IN (SELECT content_hash FROM documents)"
                for table in ("passages", "outlines"):
                    connection.execute(f"DELETE FROM {table} WHERE outline_key IN ({gone})")  # noqa: S608
        query = f"SELECT document_key FROM store.documents AS d WHERE d.removed IS NULL AND {_IS_LACKING}"  # noqa: S608
        lacking = [key for (key,) in connection.execute(f"{query} ORDER BY document_key", (RULES_VERSION,))]
        yield LibraryPart(lacking, _hash_and_outline, partial(_store_outlines, connection))
    sync(library / OUTLINES)
    record_checksums(library, OUTLINES)


def fill_outlines(library: Path, store: Path) -> None:
    """Make the outlines that a store's documents lack, and drop those of no document."""
    with outline_part(library, store) as part:
        bring_up_to_date(store, [part], "Outlining")


def _hash_and_outline(stored: StoredDocument) -> tuple[str, Outline]:
    return stored.document.content_hash, make_outline(stored.document)


def _store_outlines(connection: sqlite3.Connection, rows: Iterable[tuple[str, Outline]]) -> None:
    """Store outlines by content hash; a tree that was imported or summarised stays."""
    with transaction(connection):
        for content_hash, outline in rows:
            try:
                kept = _read_outline(connection, content_hash, schema="main")
            except (ValueError, TypeError, KeyError):  # a damaged row may hold anything
                kept = None
            if kept and kept.made_by:
                outline = kept._replace(passages=outline.passages)
            _insert_outline(connection, content_hash, outline)


def count_lacking(library: Path, store: Path) -> int:
    """Count the documents without an outline by the present rules; all, if the file is missing or damaged."""
    condition = _IS_LACKING.replace("FROM outlines", "FROM outlines.outlines")
    lacking = _count_documents(library, store, condition, RULES_VERSION)
    if lacking is not None:
        return lacking
    with closing(connect_to_read(store)) as connection:
        return int(connection.execute("SELECT COUNT(*) FROM documents WHERE removed IS NULL").fetchone()[0])


def count_outlines(library: Path, store: Path) -> int:
    """Count the documents with an outline; 0 without any, or if the file is damaged."""
    held = "d.content_hash IN (SELECT content_hash FROM outlines.outlines)"
    return _count_documents(library, store, held) or 0


def _count_documents(library: Path, store: Path, condition: str, *values: int) -> int | None:
    """Count the documents `d` that meet a condition on outlines; None if the file cannot be read."""
    query = f"SELECT COUNT(*) FROM documents AS d WHERE d.removed IS NULL AND {condition}"  # noqa: S608
    try:
        with closing(connect_to_read(store, outlines=library / OUTLINES)) as connection:
            return int(connection.execute(query, values).fetchone()[0])
    except sqlite3.DatabaseError:  # also where it is missing
        return None


def put_outlines(library: Path, outlines: Iterable[tuple[Document, Outline]], batch: int = BATCH) -> int:
    """Store outlines, replacing existing ones, `batch` in a transaction; return how many."""
    n = 0
    with closing(_open_outlines(library / OUTLINES)) as connection:
        waiting = iter(outlines)
        while group := list(islice(waiting, batch)):
            with transaction(connection):
                for document, outline in group:
                    _insert_outline(connection, document.content_hash, outline)
            n += len(group)
    sync(library / OUTLINES)
    record_checksums(library, OUTLINES)
    return n


def outline_problems(library: Path, documents: Iterable[Document]) -> Iterator[str]:
    """Yield the problems of the stored outlines, if there are any: damage, spans outside their text."""
    path = library / OUTLINES
    if not path.is_file():
        return
    try:
        with closing(connect_to_read(library / OUTLINES)) as connection:
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                yield f"{OUTLINES}: {verdict}"
            for document in documents:
                outline = _read_outline(connection, document.content_hash, schema="main")
                if outline is not None and outline.tree.char_end != len(document.content):
                    yield f"{OUTLINES}: the outline of {document.id!r} is of another text ({MAKE_COMMAND} anew)"
    except DAMAGE as error:
        yield f"{OUTLINES}: {type(error).__name__}: {error} ({MAKE_COMMAND} anew once it is deleted)"


def _open_outlines(path: Path) -> sqlite3.Connection:
    connection = connect_to_write(path)
    try:
        connection.executescript(_SCHEMA)
    except sqlite3.OperationalError:  # such as a full disk
        connection.close()
        raise
    except sqlite3.DatabaseError as error:  # all of it can be remade
        connection.close()
        logger.warning("%s is damaged (%s): it is made anew", path, error)
        os.replace(path, beside(path, "damaged"))
        beside(path, "damaged").unlink()
        connection = connect_to_write(path)
        connection.executescript(_SCHEMA)
    return connection


def _copy_earlier(connection: sqlite3.Connection, earlier: Path) -> None:
    try:
        connection.execute("ATTACH ? AS earlier", (str(earlier),))
        with transaction(connection):
            connection.execute(
                "INSERT OR IGNORE INTO outlines (content_hash, rules, made_by, description, tree)"
                " SELECT content_hash, rules, made_by, description, tree FROM earlier.outlines"
                " WHERE content_hash IN (SELECT content_hash FROM documents WHERE removed IS NULL)"
            )
            connection.execute(
                "INSERT OR IGNORE INTO passages"
                " SELECT o.outline_key, p.char_start, p.char_end, p.part, p.speaker, p.censured"
                " FROM main.outlines AS o JOIN earlier.outlines AS e USING (content_hash)"
                " JOIN earlier.passages AS p ON p.outline_key = e.outline_key"
                " WHERE NOT EXISTS (SELECT 1 FROM main.passages AS m WHERE m.outline_key = o.outline_key)"
            )
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:
        logger.warning("%s is damaged (%s): its outlines are made anew", earlier, error)


def _insert_outline(connection: sqlite3.Connection, content_hash: str, outline: Outline) -> None:
    (key,) = connection.execute(
        "INSERT INTO outlines (content_hash, rules, made_by, description, tree) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (content_hash) DO UPDATE SET rules = excluded.rules, made_by = excluded.made_by,"
        " description = excluded.description, tree = excluded.tree RETURNING outline_key",
        (content_hash, RULES_VERSION, outline.made_by, outline.description, json.dumps(_pack_tree(outline.tree))),
    ).fetchone()
    connection.execute("DELETE FROM passages WHERE outline_key = ?", (key,))
    connection.executemany(
        "INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?)", ((key, *passage) for passage in outline.passages)
    )


def _read_outline(connection: sqlite3.Connection, content_hash: str, schema: str = "outlines") -> Outline | None:
    query = f"SELECT outline_key, made_by, description, tree FROM {schema}.outlines WHERE content_hash = ?"  # noqa: S608
    row = connection.execute(query, (content_hash,)).fetchone()
    if row is None:
        return None
    key, made_by, description, tree = row
    columns = "char_start, char_end, part, speaker, censured"
    query = f"SELECT {columns} FROM {schema}.passages WHERE outline_key = ? ORDER BY char_start"  # noqa: S608
    rows = connection.execute(query, (key,))
    passages = [Paragraph(start, end, part, speaker, bool(censured)) for start, end, part, speaker, censured in rows]
    return Outline(_unpack_tree(json.loads(tree), 0), passages, description, made_by)


def _pack_tree(node: TreeNode) -> list[Any]:
    span = (node.char_start, node.char_end, *node.heading)
    return [node.node_id, node.title, node.kind, *span, node.summary, [_pack_tree(child) for child in node.children]]


def _unpack_tree(value: Sequence[Any], level: int) -> TreeNode:
    node_id, title, kind, start, end, heading_start, heading_end, summary, children = value
    if {*map(type, (node_id, title, kind, summary))} != {str} or {*map(type, value[3:7])} != {int}:
        raise TypeError(f"section {node_id!r} is damaged")
    below = tuple(_unpack_tree(child, level + 1) for child in children)
    return TreeNode(node_id, title, level, start, end, (heading_start, heading_end), kind, below, summary)


def _merge_paragraphs(paragraphs: Iterable[Paragraph]) -> Iterator[Paragraph]:
    for key, group in groupby(paragraphs, key=lambda paragraph: paragraph[2:]):
        run = list(group)
        yield Paragraph(run[0].start, run[-1].end, *key)
