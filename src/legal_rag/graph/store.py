"""`graph.sqlite`: nodes and edges, each with the text that supports it; an optional part of a Library.

Edges from documents are keyed by document id and content hash and survive commits and builds; a reader sees those whose
text is in the corpus at its commit. Edges from answers are keyed by the answer's id.
"""

import json
import logging
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from legal_rag.base.files import beside, sync
from legal_rag.base.sqlite import (
    BUSY_OR_FULL,
    connect_to_read,
    connect_to_write,
    copy_database,
    create_tables,
    parameter,
    transaction,
    version_of,
)
from legal_rag.extraction.entities import ENTITIES
from legal_rag.extraction.store import ExtractionStore
from legal_rag.graph.facts import RULES_VERSION, GraphFact, entity_facts, laws_named, text_facts
from legal_rag.graph.names import DOCUMENT, Named
from legal_rag.graph.types import ExtractedEpisode
from legal_rag.law.scanning import tables_version
from legal_rag.library.manifest import record_checksums
from legal_rag.library.parts import LibraryPart, StoredDocument, bring_up_to_date

logger = logging.getLogger(__name__)

GRAPH = "graph.sqlite"
FORMAT_VERSION = 1  # `user_version` of the file
BATCH = 200  # rows read at a time
CACHED_NODES = 100_000  # node numbers cached while filling
TEXT, STATED, UNSUPPORTED = "text", "stated", "none"  # how far a text supports an edge
SUPPORTS = (TEXT, STATED, UNSUPPORTED)
MAKE_COMMAND = "'legal-rag rebuild --only graph' makes it"
# Reading a damaged file may raise any of these.
DAMAGE = (sqlite3.DatabaseError, ValueError, TypeError, KeyError, AttributeError)
BY_TEXT, BY_ENTITIES, BY_ANSWER = "text", "entities", "answer"  # kinds of sources


class GraphWriter:
    """Writes into a graph's file, in the transactions that the caller opens."""

    def __init__(self, path: Path, corpus: Path | None = None) -> None:
        """Open a graph, created if missing; `corpus` is a document store to attach under that name."""
        self.path = path
        self.connection = _open_or_replace(path)
        self._nodes: dict[str, int] = {}
        if corpus is not None:
            self.connection.execute("ATTACH ? AS corpus", (str(corpus),))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all that the block writes, or, after an error, nothing."""
        try:
            with transaction(self.connection):
                yield
        except BaseException:
            self._nodes.clear()  # some were rolled back
            raise

    def close(self) -> None:
        """Close the file, sync it to disk, and record its checksum."""
        self.connection.close()
        sync(self.path)
        record_checksums(self.path.parent, self.path.name)

    def node(self, named: Named, *, of_text: bool = False) -> int:
        """Return a node's number; the first name from a text wins, else the first from an answer."""
        if (known := self._nodes.get(named.key)) is not None:
            return known
        key, *rest = map(parameter, named)
        if of_text:
            self.connection.execute(_NAME_NODE, (*rest, key))
        self.connection.execute("INSERT OR IGNORE INTO nodes (key, type, name) VALUES (?, ?, ?)", (key, *rest))
        (key,) = self.connection.execute("SELECT node_key FROM nodes WHERE key = ?", (key,)).fetchone()
        if len(self._nodes) >= CACHED_NODES:
            self._nodes.clear()
        self._nodes[named.key] = key
        return int(key)

    def text(self, doc_id: str, content_hash: str) -> int:
        """Return the number of a document's text."""
        values = (doc_id, content_hash)
        self.connection.execute("INSERT OR IGNORE INTO texts (doc_id, content_hash) VALUES (?, ?)", values)
        query = "SELECT text_key FROM texts WHERE doc_id = ? AND content_hash = ?"
        return int(self.connection.execute(query, values).fetchone()[0])

    def source(self, kind: str, text_key: int | None, made_by: str, answer_id: str | None = None) -> int:
        """Add a source of edges, replacing that of the same document or answer; return its number."""
        where, value = ("answer_id = ?", answer_id) if answer_id else (f"kind = '{kind}' AND text_key = ?", text_key)
        self.delete_sources(f"SELECT source_key FROM sources WHERE {where}", value)  # noqa: S608
        now = datetime.now(UTC).isoformat(timespec="seconds") if answer_id else ""  # else the file differs each time
        row = (kind, text_key, answer_id, made_by, now)
        sql = "INSERT INTO sources (kind, text_key, answer_id, made_by, recorded) VALUES (?, ?, ?, ?, ?)"
        return int(self.connection.execute(sql, row).lastrowid or 0)

    def edge(
        self,
        source_key: int,
        fact: GraphFact,
        text_key: int | None,
        *,
        support: str = TEXT,
        confidence: float = 1.0,
        of_text: bool = False,
    ) -> None:
        """Add an edge, `of_text` if a text names its ends; a duplicate within one source is ignored."""
        first, second = (self.node(end, of_text=of_text) for end in (fact.source, fact.target))
        place = (text_key, fact.start, fact.end, fact.n)
        row = (first, fact.type, second, source_key, support, *place, confidence, fact.detail)
        self.connection.execute(f"INSERT OR IGNORE INTO edges VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608

    def mention(
        self, source_key: int, named: Named, place: tuple[int | None, int, int], confidence: float, description: str
    ) -> None:
        """Store an occurrence of a name from an answer; the place has no text if there is none."""
        row = (self.node(named), source_key, *place, confidence, description)
        self.connection.execute("INSERT INTO mentions VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def episode(self, source_key: int, episode: ExtractedEpisode, named: Iterable[Named]) -> None:
        """Store an episode of an answer, about some nodes."""
        lessons = json.dumps(episode.lessons, ensure_ascii=False)
        nodes = json.dumps([self.node(node) for node in named])
        row = (source_key, episode.decision, episode.context, episode.status, lessons, nodes)
        sql = "INSERT INTO episodes (source_key, decision, context, status, lessons, nodes) VALUES (?, ?, ?, ?, ?, ?)"
        self.connection.execute(sql, row)

    def facts(self, kind: str, doc_id: str, content_hash: str, made_by: str, facts: Iterable[GraphFact]) -> int:
        """Store the facts from a document's text or entities, replacing earlier ones; return their source's number."""
        text_key = self.text(doc_id, content_hash)
        source_key = self.source(kind, text_key, made_by)
        for fact in facts:
            self.edge(source_key, fact, text_key, of_text=True)
        return source_key

    def laws(self, source_key: int, laws: Iterable[tuple[str, str]]) -> None:
        """Store the laws that a text names by day and number."""
        rows = ((*law, source_key) for law in sorted(laws))
        self.connection.executemany("INSERT INTO laws VALUES (?, ?, ?)", rows)

    def delete_sources(self, select: str, *values: object, renaming: bool = False) -> int:
        """Delete the sources that a query selects and everything that came from them; return how many.

        With `renaming`, what they named loses its name, and for each node the first other document that has it lacks
        its edges, to be made again with the name as that one writes it.
        """
        keys = [key for (key,) in self.connection.execute(select, values)]
        if not keys:
            return 0
        source_keys = json.dumps(keys)
        touched = self._touched(source_keys)
        for table in ("edges", "laws", "mentions", "episodes", "sources"):
            held = "source_key IN (SELECT value FROM json_each(?))"
            self.connection.execute(f"DELETE FROM {table} WHERE {held}", (source_keys,))  # noqa: S608
        self.connection.execute(
            "DELETE FROM nodes WHERE node_key IN (SELECT value FROM json_each(?))"
            " AND NOT EXISTS (SELECT 1 FROM edges WHERE from_key = node_key)"
            " AND NOT EXISTS (SELECT 1 FROM edges WHERE to_key = node_key)"
            " AND NOT EXISTS (SELECT 1 FROM mentions WHERE mentions.node_key = nodes.node_key)"
            " AND node_key NOT IN (SELECT n.value FROM episodes JOIN json_each(episodes.nodes) AS n)",
            (touched,),
        )
        for statement in _UNNAME_NODES if renaming else ():
            self.connection.execute(statement, {"touched": touched})
        self._nodes.clear()
        return len(keys)

    def _touched(self, sources: str) -> str:
        held = "source_key IN (SELECT value FROM json_each(:sources))"
        query = (
            f"SELECT from_key FROM edges WHERE {held} UNION SELECT to_key FROM edges WHERE {held}"  # noqa: S608
            f" UNION SELECT node_key FROM mentions WHERE {held}"
            f" UNION SELECT n.value FROM episodes JOIN json_each(episodes.nodes) AS n WHERE {held}"
        )
        return json.dumps([key for (key,) in self.connection.execute(query, {"sources": sources})])


@contextmanager
def graph_parts(
    folder: Path, store: Path, entities: Path | None = None, *, anew: bool = False
) -> Iterator[list[LibraryPart]]:
    """Open the edges that documents and entities lack (`anew`: all but those of answers); drop those of others."""
    with closing(GraphWriter(folder / GRAPH, store)) as writer:
        if anew:
            writer.connection.execute("UPDATE sources SET made_by = '' WHERE kind != ?", (BY_ANSWER,))
        has_deleted = _delete_gone(writer, renaming=True)
        yield [_text_part(writer), _entity_part(writer, entities or folder / ENTITIES)]
        if has_deleted:
            writer.connection.execute("VACUUM")  # else the file's free pages keep what was deleted


def fill_graph(folder: Path, store: Path, entities: Path | None = None, *, anew: bool = False) -> int:
    """Store the missing edges of documents and entities (see `graph_parts`); return the number of documents read.

    The caller locks out other writers of the Library. Work done before a kill is kept.
    """
    with graph_parts(folder, store, entities, anew=anew) as parts:
        return bring_up_to_date(store, parts, "Linking")


def fill_documents(folder: Path, store: Path, doc_ids: Collection[str]) -> None:
    """Store the missing edges of some documents' entities; no other document is read."""
    with closing(GraphWriter(folder / GRAPH, store)) as writer:
        bring_up_to_date(store, [_entity_part(writer, folder / ENTITIES, doc_ids)], "Linking")


def add_to_graph(folder: Path, store: Path) -> None:
    """Store the edges of another store's texts, if the Library has a graph; its other edges stay."""
    if (folder / GRAPH).is_file():
        with closing(GraphWriter(folder / GRAPH, store)) as writer:
            bring_up_to_date(store, [_text_part(writer)], "Linking")


def _text_part(writer: GraphWriter) -> LibraryPart:
    def put(rows: Iterable[_ReadText]) -> None:
        with writer.transaction():
            for row in rows:
                source_key = writer.facts(BY_TEXT, row.doc_id, row.content_hash, _RULES, row.facts)
                writer.laws(source_key, row.laws)

    return LibraryPart(_lacking_texts(writer.connection), _read_text, put)


def _entity_part(writer: GraphWriter, entities: Path, doc_ids: Collection[str] | None = None) -> LibraryPart:
    """The edges from entities that were extracted by another recipe than the stored ones."""
    lacking = _lacking_entities(writer.connection, entities, doc_ids)

    def put(rows: Iterable[StoredDocument]) -> None:
        with ExtractionStore(entities) as store, writer.transaction():
            for key, _, document in rows:
                facts = entity_facts(document, store.entities_of(document.id, document.content_hash) or [])
                writer.facts(BY_ENTITIES, document.id, document.content_hash, lacking[key], facts)

    return LibraryPart(sorted(lacking), _as_stored, put)


class _ReadText(NamedTuple):
    doc_id: str
    content_hash: str
    facts: list[GraphFact]
    laws: set[tuple[str, str]]  # by day, by number


def _read_text(stored: StoredDocument) -> _ReadText:
    document = stored.document
    return _ReadText(document.id, document.content_hash, text_facts(document), laws_named(document))


def _as_stored(stored: StoredDocument) -> StoredDocument:
    return stored


def forget_in_graph(folder: Path, store: Path, doc_ids: Iterable[str]) -> None:
    """Delete what came from some documents, unless their texts are still in the corpus."""
    if not (folder / GRAPH).is_file():
        return
    with closing(GraphWriter(folder / GRAPH, store)) as writer:
        _delete_gone(writer, "doc_id IN (SELECT value FROM json_each(?))", json.dumps(list(doc_ids)))


def answers_about(folder: Path, doc_ids: Iterable[str]) -> list[str]:
    """Return the ids of the answers that gave a graph edges or names of some documents or supported by their texts.

    A graph that is missing or damaged has none.
    """
    query = f"""
        WITH gone AS (SELECT value AS doc_id FROM json_each(?)),
            of_texts AS (SELECT text_key FROM texts JOIN gone USING (doc_id)),
            of_nodes AS (SELECT node_key FROM nodes JOIN gone ON key = '{DOCUMENT}' || doc_id)
        SELECT answer_id FROM sources WHERE answer_id IS NOT NULL AND source_key IN (
            SELECT source_key FROM edges WHERE text_key IN of_texts OR from_key IN of_nodes OR to_key IN of_nodes
            UNION SELECT source_key FROM mentions WHERE text_key IN of_texts OR node_key IN of_nodes
        ) ORDER BY answer_id
    """  # noqa: S608
    with suppress(*DAMAGE), closing(read_graph(folder / GRAPH)) as connection:
        return [answer_id for (answer_id,) in connection.execute(query, (json.dumps(list(doc_ids)),))]
    return []


def count_unlinked(folder: Path, store: Path) -> int:
    """Count the documents whose edges are not all stored; all documents if the file is damaged."""
    present = "SELECT COUNT(*) FROM corpus.documents WHERE removed IS NULL"
    try:
        with closing(read_graph(folder / GRAPH, corpus=store)) as connection:
            return len({*_lacking_texts(connection), *_lacking_entities(connection, folder / ENTITIES)})
    except (sqlite3.DatabaseError, GraphFormatError):  # also if it is missing
        with closing(connect_to_read(store)) as connection:
            return int(connection.execute(present.replace("corpus.", "")).fetchone()[0])


def graph_problems(folder: Path, store: Path, present: str) -> Iterator[str]:
    """Yield the problems of a graph, if there is one: damage, spans outside their text."""
    if not (folder / GRAPH).is_file():
        return
    try:
        with closing(read_graph(folder / GRAPH, corpus=store)) as connection:
            (verdict,) = connection.execute("PRAGMA main.quick_check(1)").fetchone()
            if verdict != "ok":
                yield f"{GRAPH}: {verdict}"
            query = f"""
                SELECT d.id, e.char_start, e.char_end FROM edges AS e JOIN texts AS t USING (text_key)
                JOIN corpus.documents AS d ON d.id = t.doc_id AND d.content_hash = t.content_hash AND {present}
                WHERE e.char_start >= 0 AND NOT (e.char_start < e.char_end AND e.char_end <= length(d.content)) LIMIT 1
            """  # noqa: S608
            for doc_id, start, end in connection.execute(query):
                yield f"{GRAPH}: an edge stands at {start}-{end} of {doc_id!r}, which it has not ({MAKE_COMMAND} anew)"
    except GraphFormatError as error:
        yield str(error)
    except DAMAGE as error:
        yield f"{GRAPH}: {type(error).__name__}: {error} ({MAKE_COMMAND} anew once it is deleted)"


def copy_graph(source: Path, target: Path) -> None:
    """Copy a consistent snapshot of a graph's file; a damaged one is skipped with a warning."""
    with _despite_damage(source, "it is made anew"):
        copy_database(source, target)


@contextmanager
def leaving_bad_graph(folder: Path) -> Iterator[None]:
    """Set a damaged graph aside with a warning, so that it does not block changes to the Library."""
    is_whole = False
    with _despite_damage(folder / GRAPH, f"it is set aside, {MAKE_COMMAND} anew"):
        yield
        is_whole = True
    if not is_whole:
        _set_aside(folder / GRAPH)
        record_checksums(folder, GRAPH)


@contextmanager
def carrying_graph(old: Path, new: Path) -> Iterator[None]:
    """Copy the records of answers into the graph of the folder that replaces a Library; see `locked_answers`."""
    if (old / GRAPH).is_file():
        with _despite_damage(old / GRAPH, "what answers gave is left behind"):
            _copy_answers(old / GRAPH, new / GRAPH)
    yield


@contextmanager
def _despite_damage(path: Path, consequence: str) -> Iterator[None]:
    try:
        yield
    except DAMAGE as error:
        if not is_damage(error):
            raise
        logger.warning("%s is damaged (%s): %s", path, error, consequence)


def _copy_answers(old: Path, new: Path) -> None:
    with closing(connect_to_write(old)) as connection:
        _create(connection)  # what an earlier version lacks; checks its tables
    with closing(GraphWriter(new)) as writer:
        writer.connection.execute("ATTACH ? AS old", (str(old),))
        with writer.transaction():
            writer.delete_sources("SELECT source_key FROM sources WHERE answer_id IS NOT NULL")
            for statement in _COPY_ANSWERS.split(";"):
                writer.connection.execute(statement)


# Rows of answers get the numbers that their node, text and source have in the new file.
_COPY_ANSWERS = """
INSERT INTO main.sources (kind, answer_id, made_by, recorded)
    SELECT kind, answer_id, made_by, recorded FROM old.sources WHERE answer_id IS NOT NULL ORDER BY source_key;
CREATE TEMP TABLE copied_sources AS
    SELECT o.source_key, n.source_key AS number FROM old.sources AS o JOIN main.sources AS n USING (answer_id);
CREATE TEMP TABLE copied_edges AS SELECT e.*, number FROM old.edges AS e JOIN copied_sources USING (source_key);
CREATE TEMP TABLE copied_mentions AS SELECT m.*, number FROM old.mentions AS m JOIN copied_sources USING (source_key);
CREATE TEMP TABLE copied_episodes AS SELECT e.*, number FROM old.episodes AS e JOIN copied_sources USING (source_key);
INSERT OR IGNORE INTO main.nodes (key, type, name) SELECT key, type, name FROM old.nodes WHERE node_key IN (
    SELECT from_key FROM copied_edges UNION SELECT to_key FROM copied_edges UNION SELECT node_key FROM copied_mentions
    UNION SELECT about.value FROM copied_episodes JOIN json_each(nodes) AS about
) ORDER BY node_key;
INSERT OR IGNORE INTO main.texts (doc_id, content_hash) SELECT doc_id, content_hash FROM old.texts WHERE text_key IN (
    SELECT text_key FROM copied_edges UNION SELECT text_key FROM copied_mentions
) ORDER BY text_key;
CREATE TEMP TABLE copied_nodes AS
    SELECT o.node_key, n.node_key AS number FROM old.nodes AS o JOIN main.nodes AS n USING (key);
CREATE UNIQUE INDEX temp.node_numbers ON copied_nodes (node_key, number);
CREATE TEMP TABLE copied_texts AS
    SELECT o.text_key, n.text_key AS number FROM old.texts AS o JOIN main.texts AS n USING (doc_id, content_hash);
INSERT INTO main.edges SELECT f.number, e.type, t.number, e.number, support, x.number, char_start, char_end, n,
        confidence, detail
    FROM copied_edges AS e JOIN copied_nodes AS f ON f.node_key = from_key JOIN copied_nodes AS t ON t.node_key = to_key
    LEFT JOIN copied_texts AS x USING (text_key);
INSERT INTO main.mentions SELECT n.number, m.number, x.number, char_start, char_end, confidence, description
    FROM copied_mentions AS m JOIN copied_nodes AS n USING (node_key) LEFT JOIN copied_texts AS x USING (text_key)
    ORDER BY m.rowid;
INSERT INTO main.episodes (source_key, decision, context, status, lessons, nodes)
    SELECT e.number, decision, context, status, lessons, (
        SELECT json_group_array(n.number) FROM json_each(e.nodes) AS about JOIN copied_nodes AS n
        ON n.node_key = about.value
    ) FROM copied_episodes AS e ORDER BY episode_key
"""
_NAME_NODE = "UPDATE nodes SET type = ?, name = ? WHERE key = ? AND (degree = 0 OR name = '')"
_UNNAME_NODES = (
    """
    CREATE TEMP TABLE namesakes AS SELECT touched.value AS node_key, (
        SELECT source_key FROM (
            SELECT source_key FROM edges WHERE from_key = touched.value
            UNION SELECT source_key FROM edges WHERE to_key = touched.value
        ) JOIN sources AS s USING (source_key) JOIN texts AS t ON t.text_key = s.text_key
        JOIN corpus.documents AS d ON d.id = t.doc_id AND d.content_hash = t.content_hash AND d.removed IS NULL
        ORDER BY document_key, kind DESC LIMIT 1
    ) AS source_key FROM json_each(:touched) AS touched
    """,
    "UPDATE nodes SET name = '' WHERE node_key IN (SELECT node_key FROM namesakes WHERE source_key IS NOT NULL)",
    "UPDATE sources SET made_by = '' WHERE source_key IN (SELECT source_key FROM namesakes)",
    "DROP TABLE namesakes",
)
_RULES = f"{RULES_VERSION}.{tables_version():08x}"


def _open_or_replace(path: Path) -> sqlite3.Connection:
    connection = connect_to_write(path)
    is_whole = False
    with _despite_damage(path, "it is made anew, without what answers gave"):
        _create(connection)
        is_whole = True
    if not is_whole:
        connection.close()
        _set_aside(path)
        connection = connect_to_write(path)
        _create(connection)
    return connection


def _set_aside(path: Path) -> None:
    os.replace(path, beside(path, "damaged"))


def _create(connection: sqlite3.Connection) -> None:
    if version_of(connection) < FORMAT_VERSION:  # else the schema exists, and no lock is needed
        create_tables(connection, _schema(), FORMAT_VERSION)
    _check_schema(connection)


class GraphFormatError(ValueError):
    """Another version made a graph."""


def read_graph(path: Path, corpus: Path | None = None) -> sqlite3.Connection:
    """Open a graph read-only, with a store as `corpus`.

    Raises:
        GraphFormatError: If another version made it.
        sqlite3.DatabaseError: If it is missing, damaged or no graph.
    """
    connection = connect_to_read(path) if corpus is None else connect_to_read(path, corpus=corpus)
    try:
        if (version := version_of(connection)) != FORMAT_VERSION:
            made_by = f"another version made {path}: it is of format {version} (expected {FORMAT_VERSION})"
            raise GraphFormatError(f"{made_by}; {MAKE_COMMAND} anew")
        _check_schema(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_schema(connection: sqlite3.Connection) -> None:
    """Check that a graph holds exactly the expected tables, indexes and triggers.

    A Library may come from an untrusted source, and triggers and views run their SQL.
    """
    connection.execute("PRAGMA trusted_schema = OFF")
    if _schema_of(connection) != _expected_schema():
        raise sqlite3.DatabaseError("its tables are not those of a graph")


def _schema() -> str:
    return (files("legal_rag.graph") / "schema.sql").read_text("utf-8")


@cache
def _expected_schema() -> frozenset[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_schema())
        return _schema_of(connection)


def _schema_of(connection: sqlite3.Connection) -> frozenset[tuple[str, ...]]:
    return frozenset(connection.execute("SELECT type, name, tbl_name, COALESCE(sql, '') FROM main.sqlite_master"))


def is_damage(error: Exception) -> bool:
    """Tell whether an error means a damaged file, rather than a full disk or another process."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF not in BUSY_OR_FULL


def _lacking_texts(connection: sqlite3.Connection) -> list[int]:
    """Return the keys, ascending, of the documents whose text has no edges yet."""
    query = f"""
        SELECT document_key FROM corpus.documents AS d WHERE d.removed IS NULL AND NOT EXISTS (
            SELECT 1 FROM texts AS t JOIN sources AS s USING (text_key) WHERE t.doc_id = d.id
            AND t.content_hash = d.content_hash AND s.kind = '{BY_TEXT}' AND s.made_by = ?
        ) ORDER BY document_key
    """  # noqa: S608
    return [key for (key,) in connection.execute(query, (_RULES,))]


def _lacking_entities(
    connection: sqlite3.Connection, entities: Path, doc_ids: Collection[str] | None = None
) -> dict[int, str]:
    """Return, by document key, the version (`made_by`) of the entity edges that are still to be stored."""
    if not entities.is_file():
        return {}
    query = f"""
        SELECT d.document_key, s.made_by FROM corpus.documents AS d
        LEFT JOIN texts AS t ON t.doc_id = d.id AND t.content_hash = d.content_hash
        LEFT JOIN sources AS s ON s.text_key = t.text_key AND s.kind = '{BY_ENTITIES}'
        WHERE d.id = ? AND d.content_hash = ? AND d.removed IS NULL
    """  # noqa: S608
    lacking: dict[int, str] = {}
    made_by: dict[str, str] = {}  # by recipe
    try:
        with ExtractionStore(entities) as store:
            for doc_id, content_hash, recipe in store.held_keys(doc_ids):
                current = made_by.setdefault(recipe, f"{_RULES} {recipe}")
                rows = connection.execute(query, (doc_id, content_hash))
                lacking |= {key: current for key, known in rows if known != current}
    except DAMAGE as error:  # reported by the file's owner; the rest of the graph needs no entities
        logger.warning("%s cannot be read (%s): the graph is made without entities", entities, error)
        return {}
    return lacking


def _delete_gone(writer: GraphWriter, condition: str = "TRUE", *values: str, renaming: bool = False) -> bool:
    """Delete what came from texts no longer in the corpus; edges of answers lose the support of such texts.

    Returned is whether there was any; for `renaming` see `GraphWriter.delete_sources`.
    """
    query = f"""
        SELECT text_key FROM texts AS t WHERE {condition} AND NOT EXISTS (
            SELECT 1 FROM corpus.documents AS d
            WHERE d.id = t.doc_id AND d.content_hash = t.content_hash AND d.removed IS NULL
        )
    """  # noqa: S608
    keys = [key for (key,) in writer.connection.execute(query, values)]
    if not keys:
        return False
    gone = json.dumps(keys)
    held = "text_key IN (SELECT value FROM json_each(?))"
    with writer.transaction():
        writer.delete_sources(f"SELECT source_key FROM sources WHERE {held}", gone, renaming=renaming)  # noqa: S608
        _unsupport(writer.connection, held, gone)
        writer.connection.execute(f"DELETE FROM texts WHERE {held}", (gone,))  # noqa: S608
    return True


def _unsupport(connection: sqlite3.Connection, held: str, gone: str) -> None:
    """Mark the edges and mentions of answers whose text is gone; edges are reinserted to keep degrees correct."""
    rows = connection.execute(f"SELECT * FROM edges WHERE {held}", (gone,)).fetchall()  # noqa: S608
    connection.execute(f"DELETE FROM edges WHERE {held}", (gone,))  # noqa: S608
    for row in rows:
        marked = (*row[:4], UNSUPPORTED, None, -1, -1, *row[8:])
        connection.execute(f"INSERT INTO edges VALUES ({', '.join('?' * len(marked))})", marked)  # noqa: S608
    connection.execute(
        f"UPDATE mentions SET text_key = NULL, char_start = -1, char_end = -1 WHERE {held}",  # noqa: S608
        (gone,),
    )
