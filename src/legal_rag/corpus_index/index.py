"""Read the corpus index: documents by keyword, entity, date, topic and link."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from legal_rag.base.deadline import check
from legal_rag.base.sqlite import ThreadConnections, answers, connect_to_read, parameter
from legal_rag.corpus.documents import Document
from legal_rag.corpus.sources import is_text_file
from legal_rag.corpus_index.keywords import TermStatistics
from legal_rag.corpus_index.lookups import EntityLookup, QueryMapping
from legal_rag.corpus_index.sections import DocumentIndex, build_document_index, sections_of_json
from legal_rag.corpus_index.tables import BUILD_COMMAND, CACHE_KB, checked_meta, read_statistics
from legal_rag.corpus_index.terms import query_terms, read_terms
from legal_rag.extraction.entities import ENTITIES
from legal_rag.library.filters import Filters
from legal_rag.library.library import CORPUS_INDEX, STORE, Library
from legal_rag.library.outlines import outline_of
from legal_rag.library.store import present_at
from legal_rag.llm import TextModel

PAGE = 500  # rows or ids per query
MAX_WORDS = 50  # of a query: no document has as many keywords
# `corpus` is the store; from the eighth column on, the fields of `DocumentMeta` of these names.
_FIELDS = "file_size char_count title summary doc_type date juridiction formation solution cluster".split()
SELECT_ENTRIES = """
    SELECT i.document_key, i.id, d.extra, EXISTS (SELECT 1 FROM sections AS s WHERE s.document_key = i.document_key),
           r.title, r.date, r.author, i.file_size, i.char_count, d.title, i.summary, i.doc_type, d.decision_date,
           d.juridiction, d.formation, d.solution, i.cluster
    FROM main.documents AS i JOIN corpus.documents AS d USING (document_key)
    LEFT JOIN model_records AS r USING (document_key)
"""
NO_RECORDS = "CREATE TEMP TABLE model_records (document_key INTEGER PRIMARY KEY, title, date, author)"

Item = TypeVar("Item")


@dataclass(frozen=True)
class DocumentMeta:
    """Level 1: a document's metadata, without its text."""

    doc_id: str
    file_path: str  # of the source, where it was a file of a folder; else empty
    file_size: int  # of the text, bytes in UTF-8
    char_count: int
    title: str
    summary: str  # the official one, else a model's, else sentences of the text
    keywords: tuple[str, ...]  # a model's first, then by falling weight
    entities: tuple[str, ...]  # as named in the text; empty if none were extracted
    doc_type: str
    date: str  # ISO 8601, as far as it is known
    author: str  # the court or person who wrote it
    juridiction: str
    formation: str
    solution: str
    number: str
    cluster: int | None
    has_detailed_index: bool
    detailed_index_path: str

    def to_json(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {**asdict(self), "keywords": list(self.keywords), "entities": list(self.entities)}


def has_corpus_index(library: Library) -> bool:
    """Has a Library a valid corpus index?"""
    path = library.path / CORPUS_INDEX
    if not path.is_file():
        return False
    try:
        with closing(connect_to_read(path)) as connection:
            checked_meta(connection, path, library.manifest["lineage"], library.commit)
    except (ValueError, sqlite3.DatabaseError):
        return False
    return True


class CorpusIndex:
    """Read-only index of one Library at one commit; thread-safe, with one SQLite connection per thread.

    Args:
        library: The Library.

    Raises:
        FileNotFoundError: If no index was built in it.
        ValueError: If the index is damaged, of another format, or of another build of the Library.
    """

    def __init__(self, library: Library) -> None:
        self.library = library
        self.path = library.path / CORPUS_INDEX
        if not self.path.is_file():
            raise FileNotFoundError(f"no corpus index in {library.path} ({BUILD_COMMAND})")
        self._entities = library.path / ENTITIES
        self._present = present_at(library.commit, "i")
        self._connections = ThreadConnections(self.path, self._open_connection, self._is_usable)
        self.meta: Mapping[str, Any] = {}
        _ = self._connection  # raises here if the file is damaged
        self._entity_lookup = EntityLookup(library, self._fetch_column, self._stream_pages, self._present)

    @classmethod
    def open(cls, library: Library | str | Path) -> "CorpusIndex":
        """Open the index of a Library or of its folder; see the class."""
        return cls(library if isinstance(library, Library) else Library(Path(library).expanduser()))

    def __repr__(self) -> str:
        return f"<CorpusIndex of {self.library.path}: {self.total_docs} documents>"

    def reload(self) -> "CorpusIndex":
        """Return the index at the Library's latest commit; this one is unchanged."""
        return CorpusIndex(self.library.reload())

    @property
    def corpus_path(self) -> str:
        """The Library's folder."""
        return str(self.library.path)

    @property
    def total_docs(self) -> int:
        """The number of documents."""
        return self.library.n_documents

    @property
    def total_chars(self) -> int:
        """The characters of all documents."""
        return int(self._fetch_one("SELECT chars FROM totals WHERE at_commit = ?", self.library.commit)[0])

    @property
    def documents(self) -> Mapping[str, DocumentMeta]:
        """Documents by id, in indexing order."""
        return QueryMapping("document", self._meta, self._stream_ids, lambda: self.total_docs, self._nearest_id)

    @property
    def keyword_index(self) -> Mapping[str, list[str]]:
        """Document ids by keyword, in its most frequent surface form; see `keyword`."""
        exists = f"""
            EXISTS (SELECT 1 FROM keywords AS k CROSS JOIN main.documents AS i USING (document_key)
                    WHERE k.shown = one.shown AND {self._present})
        """  # noqa: S608
        keys = f"SELECT DISTINCT shown FROM keywords AS one WHERE shown > ? AND {exists} ORDER BY shown LIMIT ?"  # noqa: S608
        count = f"SELECT COUNT(*) FROM (SELECT DISTINCT shown FROM keywords) AS one WHERE {exists}"  # noqa: S608
        return QueryMapping(
            "keyword",
            lambda text: self.keyword(text) or None,
            lambda: (shown for (shown,) in self._stream_pages(keys, "")),
            lambda: int(self._fetch_one(count)[0]),
        )

    @property
    def entity_index(self) -> Mapping[str, list[str]]:
        """Document ids by entity term (`partie:lever`, `date:1993-05-12`), or as people write it; see `entity`."""
        entities = self._entity_lookup
        return QueryMapping("entity", lambda text: entities.find(text) or None, entities.terms, entities.count)

    @property
    def date_index(self) -> Mapping[str, list[str]]:
        """Document ids by date, as the source writes it, ascending."""
        present = present_at(self.library.commit, "d")
        of = f"FROM corpus.documents AS d WHERE {present}"
        by_model = f"""
            FROM model_records AS r JOIN corpus.documents AS d USING (document_key)
            WHERE d.decision_date = '' AND {present}
        """
        keys = f"""
            SELECT decision_date {of} AND decision_date > ?1
            UNION SELECT date {by_model} AND date > ?1 ORDER BY 1 LIMIT ?2
        """
        count = f"""
            SELECT COUNT(*) FROM
            (SELECT decision_date {of} AND decision_date <> '' UNION SELECT date {by_model} AND date <> '')
        """  # noqa: S608
        ids_query = f"""
            SELECT document_key, id {of} AND decision_date = ?1 AND decision_date <> ''
            UNION ALL SELECT document_key, id {by_model} AND date = ?1 AND date <> '' ORDER BY 1
        """
        return QueryMapping(
            "date",
            lambda date: [doc_id for _, doc_id in self._fetch_rows(ids_query, str(date))] or None,
            lambda: (date for (date,) in self._stream_pages(keys, "")),
            lambda: int(self._fetch_one(count)[0]),
        )

    @property
    def clusters(self) -> Mapping[int, list[str]]:
        """Document ids by cluster."""
        return self._by_cluster("cluster", self._in_cluster)

    @property
    def topics(self) -> Mapping[str, list[str]]:
        """Document ids by topic, the label of a cluster."""
        return self._by_cluster("topic", self._in_topic)

    @property
    def links(self) -> Mapping[str, list[str]]:
        """By document id, the ids of the documents of the corpus that it cites."""
        return QueryMapping("document", self._cited_ids, self._stream_ids, lambda: self.total_docs, self._nearest_id)

    def document_ids(self, limit: int | None = None, offset: int = 0) -> list[str]:
        """Return ids in indexing order."""
        query = f"SELECT id FROM main.documents AS i WHERE {self._present} ORDER BY document_key LIMIT ? OFFSET ?"  # noqa: S608
        return self._fetch_column(query, -1 if limit is None else limit, offset)

    def last_id(self) -> str | None:
        """Return the id of the last document; None for an empty Library."""
        query = f"SELECT id FROM main.documents AS i WHERE {self._present} ORDER BY document_key DESC LIMIT 1"  # noqa: S608
        return next(iter(self._fetch_column(query)), None)

    def metas(self, doc_ids: Iterable[str] | None = None, *, entities: bool = False) -> Iterator[DocumentMeta]:
        """Stream the entries of documents, `PAGE` per query.

        Args:
            doc_ids: Whose entries, in this order; unknown ids are skipped. By default all, in indexing order.
            entities: Include their entities, at the cost of one query per document.
        """
        if doc_ids is not None:
            for batch in _in_batches(dict.fromkeys(doc_ids)):
                metas = {meta.doc_id: meta for meta in self._metas_of(batch, entities)}
                yield from (metas[doc_id] for doc_id in batch if doc_id in metas)
            return
        query = f"{SELECT_ENTRIES} WHERE {self._present} AND i.document_key > ? ORDER BY i.document_key LIMIT ?"
        for rows in _in_batches(self._stream_pages(query, -1)):
            yield from self._as_metas(rows, entities)

    def summaries(self, doc_ids: Iterable[str] | None = None, limit: int | None = None) -> Iterator[tuple[str, str]]:
        """Stream ids with their summaries, in indexing order; unknown ids are skipped."""
        select = f"SELECT document_key, id, summary FROM main.documents AS i WHERE {self._present}"  # noqa: S608
        if doc_ids is None:
            rows = self._stream_pages(f"{select} AND document_key > ? ORDER BY document_key LIMIT ?", -1)
        else:  # in one query: each page would look up every id
            named = f"{select} AND id IN (SELECT value FROM json_each(?)) ORDER BY document_key"  # noqa: S608
            rows = iter(self._fetch_rows(named, json.dumps(list(doc_ids))))
        for _, doc_id, summary in islice(rows, limit):
            yield doc_id, summary

    def summary_sources(self) -> dict[str, int]:
        """Count documents by the source of their summary: `official`, `extractive`, or a model's id."""
        query = f"""
            SELECT summary_source, COUNT(*) FROM main.documents AS i WHERE {self._present}
            GROUP BY summary_source ORDER BY summary_source
        """  # noqa: S608
        return dict(self._fetch_rows(query))

    def keyword(self, text: str) -> list[str]:
        """Return the ids of the documents that have all words of `text` among their keywords, in indexing order.

        Number, gender, case and accents are ignored: "Élections" finds "élection".
        """
        words = query_terms(text)
        if not 0 < len(words) <= MAX_WORDS:
            return []
        of_word = "SELECT document_key FROM postings WHERE term IN (SELECT value FROM json_each(?))"
        return self._ids_where(
            f"document_key IN ({' INTERSECT '.join([of_word] * len(words))})", *map(json.dumps, words)
        )

    def entity(self, text: str) -> list[str]:
        """Return the ids of the documents that hold an entity, in indexing order.

        Args:
            text: A name in any case ("société Lever"), a day, a sum, an article, a number; or an entity term.

        Raises:
            ValueError: If no entities were extracted.
        """
        return self._entity_lookup.find(text)

    def find(self, filters: Filters) -> list[str]:
        """Return the ids of the documents that match filters; see `Library.ids`."""
        return self.library.ids(filters)

    def citing(self, name: str) -> list[str]:
        """Return the ids of the documents that cite an article or a decision; see `Library.ids_citing`."""
        return self.library.ids_citing(name)

    def cited_by(self, doc_id: str) -> list[str]:
        """Return the ids of the documents that cite a document.

        Raises:
            KeyError: If there is no such document.
        """
        key = self._require_key(doc_id)
        terms = "SELECT term FROM corpus.names WHERE document_key = ? AND own"
        query = f"SELECT DISTINCT document_key FROM corpus.names WHERE own = 0 AND term IN ({terms})"  # noqa: S608
        citing = self._fetch_column(query, key)
        links = self.library.citation_links().links_from(citing)
        return self._ids_by_key(sorted({link.citing for link in links if link.cited == key}))

    def document_index(self, doc_id: str) -> DocumentIndex:
        """Return the sections of a document: stored if a model wrote their summaries, else built now.

        Raises:
            KeyError: If there is no such document.
        """
        stored = self._fetch_one("SELECT value FROM sections WHERE document_key = ?", self._require_key(doc_id))
        return self.make_sections(doc_id) if stored is None else sections_of_json(stored[0])

    def make_sections(self, doc_id: str, sub_llm: TextModel | None = None) -> DocumentIndex:
        """Index a document by its sections, with the document frequencies of the last full build."""
        document = self.library.document(doc_id)
        return build_document_index(
            document,
            tree=outline_of(self.library, doc_id),
            entities=self.library.entities_of(doc_id),
            statistics=self.statistics_of(document),
            sub_llm=sub_llm,
            file_path=str(document.extra.get("file_path") or ""),
        )

    def statistics_of(self, document: Document) -> TermStatistics:
        """Return the document frequencies, at the last full build, of a document's terms."""
        return read_statistics(self._connection, read_terms(document.content).counts)

    def _meta(self, doc_id: Any) -> DocumentMeta | None:
        return next(iter(self._metas_of([str(doc_id)], entities=True)), None)

    def _metas_of(self, doc_ids: Sequence[str], entities: bool) -> Iterator[DocumentMeta]:
        condition = f"i.id IN (SELECT value FROM json_each(?)) AND {self._present}"  # noqa: S608
        rows = self._fetch_rows(f"{SELECT_ENTRIES} WHERE {condition}", json.dumps(list(doc_ids)))
        return self._as_metas(rows, entities)

    def _as_metas(self, rows: Sequence[tuple[Any, ...]], entities: bool) -> Iterator[DocumentMeta]:
        keywords: dict[int, list[str]] = {}
        query = """
            SELECT document_key, shown FROM keywords WHERE document_key IN (SELECT value FROM json_each(?))
            ORDER BY document_key, place
        """
        for key, shown in self._fetch_rows(query, json.dumps([row[0] for row in rows])):
            keywords.setdefault(key, []).append(shown)
        for row in rows:
            key, doc_id = row[:2]
            names = self._entity_lookup.shown_of(doc_id) if entities else ()
            yield _meta_of(row, tuple(keywords.get(key, ())), names, self.path)

    def _by_cluster(self, column: str, find: Callable[[Any], list[str] | None]) -> Mapping[Any, list[str]]:
        return QueryMapping(
            column,
            find,
            lambda: iter(self._fetch_column(f"SELECT {column} FROM clusters ORDER BY cluster")),  # noqa: S608
            lambda: int(self._fetch_one("SELECT COUNT(*) FROM clusters")[0]),
        )

    def _in_cluster(self, cluster: Any) -> list[str] | None:
        if not isinstance(cluster, int) or self._fetch_one("SELECT 1 FROM clusters WHERE cluster = ?", cluster) is None:
            return None
        return self._ids_where("cluster = ?", cluster)

    def _in_topic(self, topic: Any) -> list[str] | None:
        row = self._fetch_one("SELECT cluster FROM clusters WHERE topic = ?", str(topic))
        return None if row is None else self._in_cluster(row[0])

    def _cited_ids(self, doc_id: Any) -> list[str] | None:
        key = self._find_key(doc_id)
        if key is None:
            return None
        return self._ids_by_key(link.cited for link in self.library.citation_links().links_from([key]))

    def _ids_by_key(self, keys: Iterable[int]) -> list[str]:
        return self._ids_where("document_key IN (SELECT value FROM json_each(?))", json.dumps(list(keys)))

    def _ids_where(self, condition: str, *values: Any) -> list[str]:
        """Return the ids of the documents that meet a condition in SQL, in indexing order."""
        query = f"SELECT id FROM main.documents AS i WHERE {condition} AND {self._present} ORDER BY document_key"  # noqa: S608
        return self._fetch_column(query, *values)

    def _find_key(self, doc_id: Any) -> int | None:
        query = f"SELECT document_key FROM main.documents AS i WHERE id = ? AND {self._present}"  # noqa: S608
        return next(iter(self._fetch_column(query, str(doc_id))), None)

    def _require_key(self, doc_id: str) -> int:
        key = self._find_key(doc_id)
        if key is None:
            raise KeyError(f"no document {doc_id!r} (the nearest is {self._nearest_id(doc_id)!r})")
        return key

    def _nearest_id(self, doc_id: Any) -> str | None:
        return self.library.nearest_id(str(parameter(doc_id)))

    def _stream_ids(self) -> Iterator[str]:
        query = f"""
            SELECT document_key, id FROM main.documents AS i WHERE {self._present} AND document_key > ?
            ORDER BY document_key LIMIT ?
        """  # noqa: S608
        return (doc_id for _, doc_id in self._stream_pages(query, -1))

    @property
    def _connection(self) -> sqlite3.Connection:
        return self._connections.get()

    def _open_connection(self) -> sqlite3.Connection:
        library = self.library
        files = {"corpus": library.path / STORE, "entities": self._entities}
        try:
            connection = connect_to_read(self.path, cache_kb=CACHE_KB, **files)
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{self.path} is damaged: {error} ({BUILD_COMMAND})") from error
        self.meta = checked_meta(connection, self.path, library.manifest["lineage"], library.commit)
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'model_records'").fetchone():
            connection.execute(NO_RECORDS)
        return connection

    def _is_usable(self, connection: sqlite3.Connection) -> bool:
        """Is a connection still alive, with the entities attached, which may have been extracted since?"""
        if not answers(connection):
            return False
        attached = {name for _, name, _ in connection.execute("PRAGMA database_list")}
        return "entities" in attached or not self._entities.is_file()

    def _execute(self, query: str, *values: Any) -> sqlite3.Cursor:
        return self._connection.execute(query, [parameter(value) for value in values])

    def _fetch_one(self, query: str, *values: Any) -> Any:
        return self._execute(query, *values).fetchone()

    def _fetch_rows(self, query: str, *values: Any) -> list[Any]:
        return self._execute(query, *values).fetchall()

    def _fetch_column(self, query: str, *values: Any) -> list[Any]:
        return [row[0] for row in self._execute(query, *values)]

    def _stream_pages(self, query: str, first: str | int, *values: Any) -> Iterator[Any]:
        """Stream rows by keyset pagination; no query stays open between pages, so slow readers block no commit.

        Args:
            query: Ordered by its first column, without repeats; its last two parameters are the value of that column
                to start after, and the limit.
            first: A value below all of the first column.
            values: The query's other parameters.
        """
        while rows := self._fetch_rows(query, *values, first, PAGE):
            check()
            yield from rows
            first = rows[-1][0]


def _in_batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    rest = iter(items)
    while batch := list(islice(rest, PAGE)):
        check()
        yield batch


def _meta_of(row: Sequence[Any], keywords: tuple[str, ...], entities: tuple[str, ...], path: Path) -> DocumentMeta:
    _, doc_id, extra, has_sections, said_title, said_date, said_author, *values = row
    fields = dict(zip(_FIELDS, values, strict=True))
    more: dict[str, Any] = json.loads(extra)
    is_file = is_text_file(doc_id)
    fields["date"] = fields["date"] or said_date or ""
    if said_title and (not fields["title"] or (is_file and fields["title"] == Path(doc_id).stem)):
        fields["title"] = said_title
    return DocumentMeta(
        doc_id=doc_id,
        file_path=str(more.get("file_path") or (doc_id if is_file else "")),
        keywords=keywords,
        entities=entities,
        author=str(more.get("author") or fields["juridiction"] or said_author or ""),
        number=str(more.get("number") or ""),
        has_detailed_index=bool(has_sections),
        detailed_index_path=str(path) if has_sections else "",
        **fields,
    )
