"""Read the corpus index: documents by keyword, entity, date, topic and link."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from legal_rag.base.deadline import check
from legal_rag.base.html import displayed
from legal_rag.base.sqlite import ThreadConnections, answers, connect_to_read, parameter
from legal_rag.corpus.documents import Document
from legal_rag.corpus.sources import is_text_file
from legal_rag.corpus_index.keywords import TermStatistics, query_terms, read_terms
from legal_rag.corpus_index.sections import DocumentIndex, build_document_index, sections_of_json
from legal_rag.extraction import entities as classes
from legal_rag.extraction.entities import ENTITIES, Entity
from legal_rag.extraction.lookup import (
    DATE_CLASSES,
    NAME_KINDS,
    WORD,
    amount_terms,
    date_terms,
    folded_term,
    name_term,
    name_words,
)
from legal_rag.law.keys import all_reference_keys
from legal_rag.library.filters import UnsupportedFilterError
from legal_rag.library.library import CORPUS_INDEX, STORE, Library
from legal_rag.library.outlines import outline_of
from legal_rag.library.store import present_at
from legal_rag.llm import TextModel

FORMAT_VERSION = 1
CACHE_KB = 4000  # of each file, for each thread: the postings of a frequent term are many pages
BUILD_COMMAND = "build one with 'legal-rag corpus-index'"
COUNTED = "counted"  # in `meta`: the size of the sample that document frequencies count
PAGE = 500  # rows or ids per query
MAX_WORDS = 50  # of a query: no document has as many keywords, no name as many words
MAX_NAMES = 20  # shown of a document
NAMED_CLASSES = (*NAME_KINDS, classes.JURIDICTION)  # people, bodies, courts
FOLDED_CLASSES = tuple(name for name in classes.KNOWN_CLASSES if name not in NAME_KINDS and name not in DATE_CLASSES)
_KINDS = tuple(dict.fromkeys(NAME_KINDS.values()))
# `corpus` is the store; from the eighth column on, the fields of `DocumentMeta` of these names.
_FIELDS = "file_size char_count title summary doc_type date juridiction formation solution cluster".split()
SELECT_ENTRIES = """
    SELECT i.document_key, i.id, d.extra, EXISTS (SELECT 1 FROM sections AS s WHERE s.document_key = i.document_key),
           r.title, r.date, r.author, i.file_size, i.char_count, d.title, i.summary, i.doc_type, d.decision_date,
           d.juridiction, d.formation, d.solution, i.cluster
    FROM present AS i JOIN corpus.documents AS d USING (document_key)
    LEFT JOIN model_records AS r USING (document_key) WHERE i.id IN (SELECT value FROM json_each(?))
"""

Item = TypeVar("Item")


@displayed
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
    try:
        CorpusIndex(library)
    except (FileNotFoundError, ValueError):
        return False
    return True


class CorpusIndex:
    """Read-only index of one Library at one commit; thread-safe, with one SQLite connection per thread.

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
        self._connections = ThreadConnections(self.path, self._open_connection, self._is_usable)
        self.meta: Mapping[str, Any] = {}
        _ = self._connection  # raises here if the file is damaged

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
    def documents(self) -> dict[str, DocumentMeta]:
        """All entries by id, in indexing order, with one query per document; `document_meta` reads one."""
        return {meta.doc_id: meta for meta in self.metas(entities=True)}

    @property
    def keyword_index(self) -> dict[str, list[str]]:
        """Document ids by keyword as shown, its most frequent surface form; `keyword` finds other forms as well."""
        query = "SELECT shown, id FROM keywords JOIN present USING (document_key) ORDER BY shown, document_key"
        return _group(self._fetch_rows(query))

    @property
    def entity_index(self) -> dict[str, list[str]]:
        """Document ids by entity term (`partie:lever`, `date:1993-05-12`); `entity` finds them as people write them."""
        if self.library.entity_store is None:
            return {}
        query = """
            SELECT DISTINCT t.term, i.id FROM entities.terms AS t JOIN present AS i ON i.id = t.doc_id
            JOIN entities.held AS h ON h.doc_id = i.id AND h.content_hash = i.content_hash
            ORDER BY t.term, i.document_key
        """
        return _group(self._fetch_rows(query))

    @property
    def date_index(self) -> dict[str, list[str]]:
        """Document ids by date, as the source writes it, ascending; a model's date where the source has none."""
        query = f"""
            SELECT COALESCE(NULLIF(d.decision_date, ''), r.date, '') AS day, d.id
            FROM corpus.documents AS d LEFT JOIN model_records AS r USING (document_key)
            WHERE {present_at(self.library.commit, "d")} AND day <> '' ORDER BY day, d.document_key
        """  # noqa: S608
        return _group(self._fetch_rows(query))

    @property
    def clusters(self) -> dict[int, list[str]]:
        """Document ids by cluster."""
        members = _group(self._fetch_rows("SELECT cluster, id FROM present ORDER BY document_key"))
        return {
            cluster: members.get(cluster, [])
            for cluster in self._fetch_column("SELECT cluster FROM clusters ORDER BY 1")
        }

    @property
    def topics(self) -> dict[str, list[str]]:
        """Document ids by topic, the label of a cluster."""
        names = self._fetch_column("SELECT topic FROM clusters ORDER BY cluster")
        return dict(zip(names, self.clusters.values(), strict=True))

    @property
    def links(self) -> dict[str, list[str]]:
        """By document id, the ids of the documents of the corpus that it cites; `cites` reads one."""
        ids = dict(self._fetch_rows("SELECT document_key, id FROM present ORDER BY document_key"))
        cited: dict[str, list[str]] = {doc_id: [] for doc_id in ids.values()}
        for link in self.library.citation_links().links_from(ids):
            cited[ids[link.citing]].append(ids[link.cited])
        return cited

    def document_ids(self, limit: int | None = None, offset: int = 0) -> list[str]:
        """Return ids in indexing order."""
        query = "SELECT id FROM present ORDER BY document_key LIMIT ? OFFSET ?"
        return self._fetch_column(query, -1 if limit is None else limit, offset)

    def last_id(self) -> str | None:
        """Return the id of the last document; None for an empty Library."""
        return next(iter(self._fetch_column("SELECT id FROM present ORDER BY document_key DESC LIMIT 1")), None)

    def document_meta(self, doc_id: str) -> DocumentMeta:
        """Return the entry of a document; KeyError if there is no such document."""
        self._require_key(doc_id)
        return next(self._metas_of([doc_id], entities=True))

    def metas(self, doc_ids: Iterable[str] | None = None, *, entities: bool = False) -> Iterator[DocumentMeta]:
        """Stream entries, `PAGE` per query: of these documents, in this order, unknown ids skipped; by default all, as
        indexed.

        Their entities cost one query per document.
        """
        for batch in _in_batches(self.document_ids() if doc_ids is None else dict.fromkeys(doc_ids)):
            metas = {meta.doc_id: meta for meta in self._metas_of(batch, entities)}
            yield from (metas[doc_id] for doc_id in batch if doc_id in metas)

    def summaries(self, doc_ids: Iterable[str] | None = None, limit: int | None = None) -> Iterator[tuple[str, str]]:
        """Stream ids with their summaries, in indexing order; unknown ids are skipped."""
        query = "SELECT id, summary FROM present WHERE id IN (SELECT value FROM json_each(?)) ORDER BY document_key"
        # Ids in any order take one query: each batch would be in order, but not all of them.
        batches = _in_batches(self.document_ids(limit)) if doc_ids is None else [list(doc_ids)]
        yield from islice((row for batch in batches for row in self._fetch_rows(query, json.dumps(batch))), limit)

    def summary_sources(self) -> dict[str, int]:
        """Count documents by the source of their summary: `official`, `extractive`, or a model's id."""
        return dict(self._fetch_rows("SELECT summary_source, COUNT(*) FROM present GROUP BY 1 ORDER BY 1"))

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

        The text is a name in any case ("société Lever"), a day, a sum, an article, a number, or an entity term. A name
        that no document has as a whole matches documents with all of its words in names of one kind.

        Raises:
            ValueError: If no entities were extracted.
        """
        if self.library.entity_store is None:
            raise UnsupportedFilterError(f"no entities in {self.library.path}: 'legal-rag extract' finds them")
        having = "SELECT doc_id FROM entities.terms WHERE term IN (SELECT value FROM json_each(?))"
        doc_ids = self._holding(having, json.dumps(list(dict.fromkeys(_entity_terms(text)))))
        words = name_words(text)
        if doc_ids or not 0 < len(words) <= MAX_WORDS:
            return doc_ids
        of_word = "SELECT doc_id FROM entities.terms WHERE term = ?"
        in_kind = f"SELECT * FROM ({' INTERSECT '.join([of_word] * len(words))})"  # noqa: S608
        values = [name_term(kind + WORD, [word]) for kind in _KINDS for word in words]
        return self._holding(" UNION ".join([in_kind] * len(_KINDS)), *values)

    def citing(self, name: str) -> list[str]:
        """Return the ids of the documents that cite an article or a decision; see `Library.ids_citing`."""
        return self.library.ids_citing(name)

    def cites(self, doc_id: str) -> list[str]:
        """Return the ids of the documents of the corpus that a document cites; KeyError if it is unknown."""
        links = self.library.citation_links().links_from([self._require_key(doc_id)])
        return self._ids_by_key(link.cited for link in links)

    def cited_by(self, doc_id: str) -> list[str]:
        """Return the ids of the documents that cite a document; KeyError if there is no such document."""
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

    def _metas_of(self, doc_ids: Sequence[str], entities: bool) -> Iterator[DocumentMeta]:
        rows = self._fetch_rows(SELECT_ENTRIES, json.dumps(list(doc_ids)))
        query = """
            SELECT document_key, shown FROM keywords WHERE document_key IN (SELECT value FROM json_each(?))
            ORDER BY document_key, place
        """
        keywords = _group(self._fetch_rows(query, json.dumps([row[0] for row in rows])))
        for row in rows:
            key, doc_id = row[:2]
            names = _names_shown(self.library.entities_of(doc_id) or []) if entities else ()
            yield _meta_of(row, tuple(keywords.get(key, ())), names, self.path)

    def _holding(self, doc_ids: str, *values: Any) -> list[str]:
        """Filter document ids, selected in SQL, by presence at the commit with the text that was extracted."""
        held = "EXISTS (SELECT 1 FROM entities.held AS h WHERE h.doc_id = id AND h.content_hash = present.content_hash)"
        return self._ids_where(f"id IN ({doc_ids}) AND {held}", *values)

    def _ids_by_key(self, keys: Iterable[int]) -> list[str]:
        return self._ids_where("document_key IN (SELECT value FROM json_each(?))", json.dumps(list(keys)))

    def _ids_where(self, condition: str, *values: Any) -> list[str]:
        return self._fetch_column(f"SELECT id FROM present WHERE {condition} ORDER BY document_key", *values)  # noqa: S608

    def _require_key(self, doc_id: str) -> int:
        row = self._fetch_one("SELECT document_key FROM present WHERE id = ?", str(doc_id))
        if row is None:
            raise KeyError(f"no document {doc_id!r} (the nearest is {self.library.nearest_id(parameter(doc_id))!r})")
        return int(row[0])

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
        view = f"CREATE TEMP VIEW present AS SELECT * FROM main.documents WHERE {present_at(library.commit)}"  # noqa: S608
        connection.execute(view)
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


def checked_meta(connection: sqlite3.Connection, path: Path, lineage: str, commit: int) -> dict[str, Any]:
    """Return the table `meta` of a complete index of its Library, at one of its commits; ValueError of any other."""
    try:
        rows = connection.execute("SELECT name, value FROM meta")
        meta = {name: json.loads(value) for name, value in rows}
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


def read_statistics(connection: sqlite3.Connection, terms: Iterable[str] | None = None) -> TermStatistics:
    """Read document frequencies, of all terms or of some."""
    query, values = "SELECT term, shown, frequency FROM terms", []
    if terms is not None:
        query, values = f"{query} WHERE term IN (SELECT value FROM json_each(?))", [json.dumps(list(terms))]  # noqa: S608
    rows = connection.execute(query, values).fetchall()
    (counted,) = connection.execute("SELECT value FROM meta WHERE name = ?", (COUNTED,)).fetchone()
    return TermStatistics(int(counted), {term: n for term, _, n in rows}, {term: shown for term, shown, _ in rows})


def _in_batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    rest = iter(items)
    while batch := list(islice(rest, PAGE)):
        check()
        yield batch


def _group(rows: Iterable[tuple[Any, str]]) -> dict[Any, list[str]]:
    groups: dict[Any, list[str]] = {}
    for key, value in rows:
        groups.setdefault(key, []).append(value)
    return groups


def _entity_terms(text: str) -> Iterator[str]:
    yield text
    yield from (*date_terms(text), *amount_terms(text))
    yield from all_reference_keys(text)
    if words := name_words(text):
        yield from (name_term(kind, words) for kind in _KINDS)
    for name in FOLDED_CLASSES:
        yield from folded_term(name, text)


def _names_shown(entities: Iterable[Entity]) -> tuple[str, ...]:
    """Return the distinct names in a document as its text writes them, people and bodies first."""
    names = [entity for entity in entities if entity["extraction_class"] in NAMED_CLASSES]
    names.sort(key=lambda entity: NAMED_CLASSES.index(entity["extraction_class"]))
    return tuple(dict.fromkeys(" ".join(entity["extraction_text"].split()) for entity in names))[:MAX_NAMES]


def _meta_of(row: Sequence[Any], keywords: tuple[str, ...], entities: tuple[str, ...], path: Path) -> DocumentMeta:
    _, doc_id, extra, has_sections, model_title, model_date, model_author, *values = row
    fields = dict(zip(_FIELDS, values, strict=True))
    columns: dict[str, Any] = json.loads(extra)
    is_file = is_text_file(doc_id)
    fields["date"] = fields["date"] or model_date or ""
    if model_title and (not fields["title"] or (is_file and fields["title"] == Path(doc_id).stem)):
        fields["title"] = model_title
    return DocumentMeta(
        doc_id=doc_id,
        file_path=str(columns.get("file_path") or (doc_id if is_file else "")),
        keywords=keywords,
        entities=entities,
        author=str(columns.get("author") or fields["juridiction"] or model_author or ""),
        number=str(columns.get("number") or ""),
        has_detailed_index=bool(has_sections),
        detailed_index_path=str(path) if has_sections else "",
        **fields,
    )
