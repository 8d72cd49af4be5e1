"""Thread-safe, read-only snapshot of an index folder at its latest commit."""

import hashlib
import json
import re
import reprlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import date
from difflib import get_close_matches
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from legal_rag.base.files import beside
from legal_rag.base.html import displayed, table_of
from legal_rag.base.sqlite import ThreadConnections, answers, connect_to_read, version_of
from legal_rag.corpus.documents import NEAR_IDS, Document, is_near, most_like
from legal_rag.extraction.entities import ENTITIES, Entity
from legal_rag.extraction.lookup import FoundEntity
from legal_rag.law.keys import ParsedQuery, article_of_key
from legal_rag.library.bm25 import LEXICAL_FOLDER, MAKE_COMMAND, LexicalIndex
from legal_rag.library.filters import (
    Condition,
    Filters,
    LibraryEntities,
    citing_condition,
    compile_filters,
    distinct,
    naming_condition,
    own_name_condition,
    unknown_values,
)
from legal_rag.library.manifest import CHUNK_VECTORS, MANIFEST, read_manifest
from legal_rag.library.outlines import OUTLINES, LibraryOutlines, Outline, passage_condition
from legal_rag.library.plaid.files import PLAID_FOLDER, PlaidParts
from legal_rag.library.plaid.search import ShardSize
from legal_rag.library.store import (
    SELECT_DOCUMENTS,
    CitationLinks,
    Contents,
    Place,
    StoredChunk,
    document_of_stored,
    has_versions,
    present_at,
    present_keys,
)

if TYPE_CHECKING:
    from legal_rag.extraction.store import ExtractionStore
    from legal_rag.library.chunk_vectors import ChunkVectors

DEFAULT_FOLDER = "index"
DEFAULT_NAME = "legal_french_index"
STORE, MAPPING, BAD_RECORDS = "corpus.sqlite", "doc_mapping.json", "bad_records.jsonl"
CORPUS_INDEX = "corpus_index.sqlite"  # see `legal_rag.corpus_index`
INSTRUCTIONS = "instructions.md"  # a user's own, for the agent; kept when the index is replaced
RUNS = "runs"  # a user's saved answers; kept too, see `legal_rag.report.saved_answers`

VALUES_LISTED = 12  # of a filter
ALIKE = 0.75  # of two spellings, from which one is suggested for the other
DAYS_KEPT = 8  # of which it is remembered what is in force
LOCK_SECONDS = 10.0  # that a writer of answers waits for another, whose work takes moments
FEW_DOCUMENTS = 1000  # up to which chunks are looked up by document; above, in a map of all chunks
PART_CODES = re.compile(r"(\d{1,9})\.codes\.npy")
SELECT_PLACES = "SELECT shard, position FROM documents JOIN chunks USING (document_key)"


def today() -> date:
    """Return the day on which articles are seen unless another is asked for."""
    return date.today()


def is_library(folder: Path) -> bool:
    """Tell whether a folder is a Library."""
    return (folder / MANIFEST).is_file()


def place_of(library: Path, shard: Mapping[str, Any]) -> PlaidParts:
    """Return where a shard's files are, from its manifest entry: the parts of an index of which it has checksums."""
    parts = sorted(int(match[1]) for match in map(PART_CODES.fullmatch, shard["checksums"]) if match)
    if not parts or parts != list(range(parts[0], parts[0] + len(parts))):
        raise ValueError(f"damaged manifest: a shard at {shard['path']} without the checksums of its codes")
    return PlaidParts(library / shard["path"], parts[0], parts[-1] + 1)


def store_version(lineage: str) -> int:
    """Return the `user_version` that ties a store to its build: 31 bits, not 0."""
    return 1 + int(hashlib.sha256(lineage.encode()).hexdigest()[:7], 16)


@contextmanager
def locked_answers(library: Path) -> Iterator[None]:
    """Lock a Library's saved answers against other writers; the lock file survives a replacement of the folder.

    OSError if another process holds the lock for longer than `LOCK_SECONDS`.
    """
    from filelock import FileLock, Timeout

    try:
        with FileLock(beside(library, f"{RUNS}.lock"), timeout=LOCK_SECONDS):
            yield
    except Timeout as error:
        raise OSError(f"another process has been writing there for {LOCK_SECONDS:.0f} seconds") from error


@displayed
class IdentifierMatches(NamedTuple):
    """Chunks that a question's identifiers and facts lead to: for each shard, rising positions; None for no match."""

    exact: list[np.ndarray] | None = None  # of documents that the question names
    citing: list[np.ndarray] | None = None  # of documents that cite a decision it names
    facts: list[np.ndarray] | None = None  # of documents that share rare entities with it


class Library:
    """Thread-safe, read-only snapshot of an index folder at its latest commit.

    Later commits are not seen; `reload` opens the folder again.

    Raises:
        FileNotFoundError: If there is no complete Library in the folder.
        ValueError: If its manifest is damaged or of a later format.
    """

    def __init__(self, path: str | Path) -> None:
        self._place = Path(path).expanduser().absolute()  # the working directory may change before `reload`
        self.path = _recover(self._place)
        self.manifest = _read_manifest(self.path)
        self.commit = int(self.manifest["commit"])
        self._present = present_at(self.commit)
        self._connections = ThreadConnections(self.path / STORE, self._connect_store, answers)
        self._extracted = LibraryEntities(self.path / ENTITIES)
        self._outlines = LibraryOutlines(self.path / STORE, self.path / OUTLINES)

    @classmethod
    def open(cls, index_folder: str | Path = DEFAULT_FOLDER, index_name: str = DEFAULT_NAME) -> "Library":
        """Open the Library `index_name` in `index_folder`."""
        return cls(Path(index_folder).expanduser() / index_name)

    def reload(self) -> Self:
        """Open the folder at its latest commit; this snapshot stays as it is."""
        return type(self)(self._place)

    @property
    def build_id(self) -> str:
        """Return the id of the build that this commit descends from; it survives additions, not a compaction."""
        return str(self.manifest["lineage"])

    @property
    def n_documents(self) -> int:
        """Return how many documents the Library holds."""
        return int(self.manifest["counts"]["documents"])

    @property
    def shards(self) -> list[PlaidParts]:
        """Return where the shards' files are, in their order; ValueError if the Library has no PLAID index."""
        _ = self._connection  # opened before the folders, so that texts and shards are of one build
        return [place_of(self.path, shard) for shard in self.manifest["shards"]]

    def __repr__(self) -> str:
        counts = self.manifest["counts"]
        return f"Library({reprlib.repr(str(self.path))}, {counts['documents']} documents, {counts['chunks']} chunks)"

    def _repr_html_(self) -> str:
        return table_of({"path": str(self.path), **self.manifest["counts"]})

    def __len__(self) -> int:
        return self.n_documents

    def __contains__(self, doc_id: object) -> bool:
        query = f"SELECT 1 FROM documents WHERE id = ? AND {self._present}"  # noqa: S608
        return self._fetch_row(query, doc_id) is not None

    def __getitem__(self, doc_id: str) -> dict[str, Any]:
        return self.document(doc_id).row()

    def __iter__(self) -> Iterator[str]:
        query = f"SELECT id FROM documents WHERE {self._present} ORDER BY document_key"  # noqa: S608
        return (row[0] for row in self._connection.execute(query))

    def content_hashes(self) -> Iterator[tuple[str, str]]:
        """Stream id and `Document.content_hash` of all documents, in index order."""
        query = f"SELECT id, content_hash FROM documents WHERE {self._present} ORDER BY document_key"  # noqa: S608
        yield from self._connection.execute(query)

    def document(self, doc_id: str) -> Document:
        """Return a document by its id.

        Raises:
            LookupError: If there is none; the message names the nearest id, if one is near.
            ValueError: If its row is damaged.
        """
        row = self._fetch_row(f"{SELECT_DOCUMENTS} WHERE id = ? AND {self._present}", doc_id)
        if row is None:
            near = self.nearest_id(doc_id)
            hint = f" (the nearest id is {near!r})" if near and is_near(doc_id, near) else ""
            raise LookupError(f"no document {doc_id!r:.200} in {self.path}{hint}")
        try:
            return document_of_stored(row)
        except (ValueError, TypeError) as error:  # a damaged row may hold anything
            raise ValueError(f"{self.path / STORE} is damaged ({error}): 'legal-rag doctor' says more") from error

    def documents(self) -> Iterator[Document]:
        """Stream all documents in index order."""
        rows = self._connection.execute(f"{SELECT_DOCUMENTS} WHERE {self._present} ORDER BY document_key")
        return map(document_of_stored, rows)

    def chunks_of(self, doc_id: str, first: int = 0, last: int | None = None) -> list[StoredChunk]:
        """Return a document's chunks numbered `first` to `last` (both included), in order."""
        condition = f"documents.id = ? AND {self._present} AND chunk_index BETWEEN ? AND ? ORDER BY chunk_index"
        return [row[2] for row in self._chunk_rows(condition, (doc_id, first, 2**62 if last is None else last))]

    def chunks_at(self, places: Sequence[Place]) -> list[StoredChunk]:
        """Return the chunks at (shard, position) places, in that order; a missing one means a damaged Library."""
        pairs = "SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?)"
        rows = self._chunk_rows(f"(shard, position) IN ({pairs})", (json.dumps(list(places)),))
        chunks = {(shard, position): chunk for shard, position, chunk in rows}
        if missing := [place for place in places if place not in chunks]:
            raise LookupError(f"no chunk at shard {missing[0][0]}, position {missing[0][1]} of {self.path}")
        return [chunks[place] for place in places]

    def positions(self, filters: Filters) -> list[np.ndarray]:
        """Return, for each shard, the rising positions of the chunks that pass filters.

        Raises:
            ValueError: If they ask for entities or who speaks, and the Library has no such part.
        """
        rest = replace(filters, at=None)
        in_force = self._positions_on(filters.at) if filters.at and self.has_versions else None
        if in_force is not None and not rest:
            return in_force
        found = self._select_positions(self._compile_conditions(rest), passage_condition(rest, of_chunks=True))
        if in_force is None:
            return found
        return [np.intersect1d(*pair, assume_unique=True) for pair in zip(found, in_force, strict=True)]

    @cached_property
    def _positions_on(self) -> Callable[[date], list[np.ndarray]]:
        """Positions of what is in force on a day: most of a Library, selected once a day."""
        return lru_cache(DAYS_KEPT)(lambda day: self._select_positions(self._compile_conditions(Filters(at=day))))

    def ids(self, filters: Filters) -> list[str]:
        """Return the ids of the documents that pass filters, in index order.

        Raises:
            ValueError: If they ask for entities or who speaks, and the Library has no such part.
        """
        return self._select_ids(self._compile_conditions(filters), passage_condition(filters, of_chunks=False))

    def has_any(self, filters: Filters) -> bool:
        """Tell whether a document passes filters, reading no further than the first; raises as `ids` does."""
        spoken = passage_condition(filters, of_chunks=False)
        rows = self._select_documents("SELECT 1 FROM documents", self._compile_conditions(filters), spoken, "LIMIT 1")
        return rows.fetchone() is not None

    def unknown_values(self, filters: Filters) -> dict[str, list[str]]:
        """Return the existing values, nearest first, of filters whose value no document has; see `filters`."""
        return unknown_values(filters, self._connection)

    def check_values(self, filters: Filters) -> None:
        """Refuse a court, a chamber, an outcome or a document id that no document has, before anything is loaded.

        Raises:
            ValueError: If no document has a value; the message names those there are, and the nearest. Also if the
                Library does not hold what a filter asks.
            LookupError: If there is no document of an id.
        """
        for _ in compile_filters(filters, self._connection, self.commit):
            pass
        for doc_id in filters.doc_ids or ():
            if doc_id not in self:
                self.document(doc_id)
        for name, known in self.unknown_values(filters).items():
            listed = "; ".join(known[:VALUES_LISTED]) + ("…" if len(known) > VALUES_LISTED else "")
            value = str(getattr(filters, name))
            nearest = [existing.casefold() for existing in known[:1]]
            near = get_close_matches(value.casefold(), nearest, n=1, cutoff=ALIKE)
            hint = f": did you mean {known[0]!r}?" if near else ""
            raise ValueError(f"no document has the {name} {value!r}{hint} (there are: {listed or 'none'})")

    def filter_at_fault(self, filters: Filters) -> str:
        """Return the first filter that alone excludes every document, as "date_from '2050-01-01'"; '' if none does."""
        for name in (each.name for each in fields(filters)):
            value = getattr(filters, name)
            if value is not None and not self.has_any(Filters(**{name: value})):
                return f"{name} '{'; '.join(value) if isinstance(value, tuple) else value}'"
        return ""

    def courts(self) -> list[tuple[str, ...]]:
        """Return the courts whose decisions it holds, each with its chambers: pairs of juridiction and formation."""
        return distinct(self._connection, ("juridiction", "formation"))

    def ids_citing(self, name: str) -> list[str]:
        """Return the ids of the documents that cite an article or a decision, in index order.

        Raises:
            ValueError: If the name is neither.
        """
        return self._select_ids([naming_condition(name)])

    def ids_named(self, keys: Iterable[str]) -> dict[str, list[str]]:
        """Return, for each own key of `legal_rag.law.keys` that documents have, their ids in index order."""
        query = f"""
            SELECT value, documents.id FROM json_each(?) CROSS JOIN names INDEXED BY names_own ON term = value AND own
            CROSS JOIN documents USING (document_key) WHERE {self._present} ORDER BY document_key
        """  # noqa: S608
        doc_ids: dict[str, list[str]] = {}
        for key, doc_id in self._connection.execute(query, (json.dumps(list(dict.fromkeys(keys))),)):
            doc_ids.setdefault(key, []).append(doc_id)
        return doc_ids

    @cached_property
    def has_versions(self) -> bool:
        """Whether it holds articles in several versions, of which a search sees those in force on a day."""
        return has_versions(self._connection)

    def dated(self, filters: Filters | None) -> Filters | None:
        """Return the filters that a search applies: those given, at today's versions of articles unless at another day.

        Documents named by their ids are seen as they are; a Library without versions applies what is given.
        """
        if not self.has_versions or (filters and (filters.at or filters.doc_ids is not None)):
            return filters
        return replace(filters or Filters(), at=today())

    def in_force(self, doc_ids: Iterable[str], day: date | None = None) -> list[str]:
        """Return those of some documents that are in force on a day, today by default, or that have no versions."""
        doc_ids = list(doc_ids)
        if not self.has_versions:
            return doc_ids
        current = set(self.ids(Filters(doc_ids=tuple(doc_ids), at=day or today())))
        return [doc_id for doc_id in doc_ids if doc_id in current]

    def articles_of(self, doc_ids: Sequence[str]) -> dict[str, list[str]]:
        """Return the ids of all versions of the articles of some documents, by article, in the order of their days."""
        if not self.has_versions:
            return {}
        query = f"""
            SELECT article, id FROM documents JOIN versions USING (document_key) WHERE {self._present} AND article IN (
                SELECT article FROM versions JOIN documents USING (document_key)
                WHERE id IN (SELECT value FROM json_each(?)) AND {self._present}
            ) ORDER BY article, first, until, document_key
        """  # noqa: S608
        articles: dict[str, list[str]] = {}
        for article, doc_id in self._connection.execute(query, (json.dumps(list(doc_ids)),)):
            articles.setdefault(article, []).append(doc_id)
        return articles

    def beginning(self, day: date, naming: Sequence[str]) -> list[str]:
        """Return the versions of articles that begin on a day and whose columns have one of some words."""
        query = f"""
            SELECT id FROM versions CROSS JOIN documents USING (document_key) WHERE first = ? AND {self._present}
            AND EXISTS (SELECT 1 FROM json_each(?) WHERE instr(extra, value)) ORDER BY document_key
        """  # noqa: S608
        return [doc_id for (doc_id,) in self._connection.execute(query, (day.isoformat(), json.dumps(naming)))]

    def own_articles(self) -> Iterator[tuple[str, str]]:
        """Stream the articles that it holds, by number and code or statute; some more than once."""
        query = f"""
            SELECT term FROM names INDEXED BY names_own CROSS JOIN documents USING (document_key)
            WHERE own AND term >= 'article:' AND term < 'article;' AND {self._present}
        """  # noqa: S608
        return filter(None, (article_of_key(key) for (key,) in self._connection.execute(query)))

    @cached_property
    def texts_of_articles(self) -> frozenset[str]:
        """The codes and statutes of which it holds articles, as their keys name them."""
        return frozenset(text for _, text in self.own_articles())

    def positions_named(self, query: str | ParsedQuery) -> IdentifierMatches:
        """Return the positions of chunks that a question's identifiers and rare facts lead to."""
        query, connection = ParsedQuery.of(query), self._connection
        exact, citing = (find(query, connection, self._present) for find in (own_name_condition, citing_condition))
        facts = self._extracted.discriminative(query)
        positions = (self._select_positions([condition]) if condition else None for condition in (exact, citing, facts))
        return IdentifierMatches(*positions)

    @property
    def entity_store(self) -> "ExtractionStore | None":
        """The entities extracted from the documents; None if none were."""
        return self._extracted.store

    def entities_of(self, doc_id: str) -> list[Entity] | None:
        """Return the entities of a document; None if none were extracted from its present text.

        Raises:
            LookupError: If there is no such document.
        """
        store = self.entity_store
        return store.entities_of(doc_id, self.document(doc_id).content_hash) if store else None

    def entities_like(
        self, question: str | ParsedQuery, most: int = 10, filters: Filters | None = None
    ) -> list[FoundEntity]:
        """Return the entities that share the most words with a question, of the documents that pass filters.

        Raises:
            ValueError: As `ids` does.
        """
        conditions, spoken = (
            self._compile_conditions(filters or Filters()),
            passage_condition(filters or Filters(), of_chunks=False),
        )

        def passing(doc_ids: Sequence[str]) -> dict[str, str]:
            named = Condition("id IN (SELECT value FROM json_each(?))", (json.dumps(list(doc_ids)),))
            return dict(self._select_documents("SELECT id, content_hash FROM documents", [named, *conditions], spoken))

        return self._extracted.like(question, passing, most)

    def stored_outline(self, document: Document) -> Outline | None:
        """Return a document's outline; None if it is not stored."""
        return self._outlines.get(document.content_hash)

    def lexical_index(self) -> LexicalIndex:
        """Open the BM25 index.

        Raises:
            FileNotFoundError: If it is missing.
            ValueError: If it is damaged.
        """
        index = LexicalIndex(self.path / LEXICAL_FOLDER, len(self.manifest["shards"]), self.removed_positions())
        n_chunks = sum(shard["chunks"] for shard in self.manifest["shards"])
        if index.n_entries < n_chunks:
            raise ValueError(
                f"damaged index of words: {self.path / LEXICAL_FOLDER} has {index.n_entries} of {n_chunks} chunks"
                f" ({MAKE_COMMAND})"
            )
        return index

    def chunk_vectors(self) -> "ChunkVectors | None":
        """Open the vectors by which a search finds its candidates; None where there are no token vectors.

        Raises:
            FileNotFoundError: If one of their files is missing.
            ValueError: If one is damaged.
        """
        entry = self.manifest.get(CHUNK_VECTORS)
        if entry is None:
            return None
        from legal_rag.library.chunk_vectors import ChunkVectors  # loads numba, which BM25 need not wait for

        sizes = [shard["chunks"] for shard in self.manifest["shards"]]
        return ChunkVectors(self.path / CHUNK_VECTORS, entry["segments"], sizes, self.removed_positions())

    @property
    def shard_sizes(self) -> list[ShardSize]:
        """Return the counts of each shard."""
        return [ShardSize(int(shard["chunks"]), int(shard["tokens"])) for shard in self.manifest["shards"]]

    def contents(self) -> Contents:
        """Return the documents' texts, to be streamed."""
        return Contents(self._connections.get, self._present)

    def citation_links(self) -> CitationLinks:
        """Return the citation links between documents."""
        return CitationLinks(self._connections.get, present_keys(self.commit, self._last_key))

    def removed_positions(self) -> list[np.ndarray]:
        """Return, for each shard, the rising positions of chunks whose documents were removed or replaced."""
        return self._split_by_shard(self._connection.execute(f"{SELECT_PLACES} WHERE removed <= {self.commit:d}"))

    def places_in(self, shards: Iterable[int]) -> list[Place]:
        """Return the places of the present chunks of some shards, in the order of documents and chunks."""
        numbers = ", ".join(f"{shard:d}" for shard in shards)
        condition = f"shard IN ({numbers}) AND {self._present}"
        query = f"{SELECT_PLACES} WHERE {condition} ORDER BY document_key, chunk_index"
        return [(shard, position) for shard, position in self._connection.execute(query)]

    def chunk_ids(self) -> Iterator[tuple[str, int]]:
        """Stream document id and index of all chunks, by shard and position."""
        query = f"SELECT id, chunk_index FROM documents JOIN chunks USING (document_key) WHERE {self._present}"  # noqa: S608
        yield from self._connection.execute(f"{query} ORDER BY shard, position")

    def nearest_id(self, doc_id: str) -> str | None:
        """Return the id most similar to `doc_id` among its neighbours in sorted order, or None."""
        near: list[str] = []
        for operator, direction in ((">=", "ASC"), ("<", "DESC")):
            condition = f"id {operator} ? AND {self._present} ORDER BY id {direction} LIMIT {NEAR_IDS}"
            query = f"SELECT id FROM documents WHERE {condition}"  # noqa: S608
            near += [row[0] for row in self._connection.execute(query, (doc_id,))]
        return most_like(doc_id, near)

    @property
    def _connection(self) -> sqlite3.Connection:
        return self._connections.get()

    def _connect_store(self) -> sqlite3.Connection:
        connection = connect_to_read(self.path / STORE)
        self.check_unchanged()
        if version_of(connection) != store_version(self.build_id):
            raise ValueError(
                f"damaged index: {self.path / STORE} is of another Library ('legal-rag index' builds it anew)"
            )
        return connection

    def check_unchanged(self) -> None:
        """Check that the folder still holds this build, perhaps at a later commit, which has these shards too.

        Raises:
            ValueError: If it was rebuilt or compacted since it was opened.
        """
        latest, shards = _read_manifest(self.path), self.manifest["shards"]
        same = latest["lineage"] == self.build_id and latest["commit"] >= self.commit
        if not same or latest["shards"][: len(shards)] != shards:
            raise ValueError(f"{self.path} was built anew since it was opened: open it again")

    def _compile_conditions(self, filters: Filters) -> list[Condition]:
        conditions = compile_filters(filters, self._connection, self.commit)
        return [*conditions, *self._extracted.conditions(filters.entity)]

    def _select_ids(self, conditions: Sequence[Condition], spoken: Condition | None = None) -> list[str]:
        if spoken is not None:
            rows = self._select_documents("SELECT id FROM documents", conditions, spoken, "ORDER BY document_key")
        else:
            keys = json.dumps(self._select_keys(conditions).tolist())
            query = (
                "SELECT id FROM documents WHERE document_key IN (SELECT value FROM json_each(?)) ORDER BY document_key"
            )
            rows = self._connection.execute(query, (keys,))
        return [doc_id for (doc_id,) in rows]

    def _select_positions(self, conditions: Sequence[Condition], spoken: Condition | None = None) -> list[np.ndarray]:
        if spoken is not None:
            return self._split_by_shard(self._select_documents(SELECT_PLACES, conditions, spoken))
        keys = self._select_keys(conditions)
        if len(keys) <= FEW_DOCUMENTS:
            query = "SELECT shard, position FROM chunks WHERE document_key IN (SELECT value FROM json_each(?))"
            return self._split_by_shard(self._connection.execute(query, (json.dumps(keys.tolist()),)))
        selected = np.zeros(self._last_key + 1, dtype=bool)
        selected[keys] = True
        return [np.flatnonzero(selected[documents]) for documents in self._documents_of_chunks]

    def _select_keys(self, conditions: Sequence[Condition]) -> np.ndarray:
        """Return the keys of the present documents that meet all conditions, mostly from indexes alone."""
        present = present_keys(self.commit, self._last_key)
        sql = " AND ".join([*(f"({condition.sql})" for condition in conditions), present])
        values = [value for condition in conditions for value in condition.values]
        rows = self._connection.execute(f"SELECT document_key FROM documents WHERE {sql}", values)  # noqa: S608
        return np.fromiter((key for (key,) in rows), dtype=np.int64)

    @cached_property
    def _last_key(self) -> int:
        """The key of the last document added up to this commit; keys rise from commit to commit."""
        query = "SELECT document_key FROM documents WHERE added <= ? ORDER BY document_key DESC LIMIT 1"
        return int((self._fetch_row(query, self.commit) or (0,))[0])

    @cached_property
    def _documents_of_chunks(self) -> list[np.ndarray]:
        """For each shard, the document key of each position, int32."""
        # One text a shard: half the time of a row a chunk. A position is its high bits: sorting puts it in place.
        query = """
            SELECT shard, group_concat(position << 32 | document_key) FROM chunks WHERE shard < ? GROUP BY shard
        """
        sizes = [int(shard["chunks"]) for shard in self.manifest["shards"]]
        rows = dict(self._connection.execute(query, (len(sizes),)))
        packed = [np.sort(np.fromstring(rows.get(shard, ""), np.int64, sep=",")) for shard in range(len(sizes))]
        for shard, (entries, size) in enumerate(zip(packed, sizes, strict=True)):
            if not np.array_equal(entries >> 32, np.arange(size)):
                raise ValueError(f"damaged index: {self.path} names {size} chunks in shard {shard}, {STORE} has others")
        return [(entries & 0xFFFFFFFF).astype(np.int32) for entries in packed]

    def _select_documents(
        self, select: str, conditions: Sequence[Condition], spoken: Condition | None, order: str = ""
    ) -> sqlite3.Cursor:
        """Select rows of the present documents that meet all conditions; `spoken` is one on their passages."""
        connection = self._connection if spoken is None else self._outlines.connection()
        conditions = conditions if spoken is None else [*conditions, spoken]
        sql = " AND ".join([self._present, *(f"({condition.sql})" for condition in conditions)])
        values = [value for condition in conditions for value in condition.values]
        return connection.execute(f"{select} WHERE {sql} {order}", values)

    def _split_by_shard(self, places: Iterable[Place]) -> list[np.ndarray]:
        positions: list[list[int]] = [[] for _ in self.manifest["shards"]]
        for shard, position in places:
            positions[shard].append(position)
        return [np.array(sorted(shard_positions), dtype=np.int64) for shard_positions in positions]

    def _fetch_row(self, query: str, *values: Any) -> Any:
        return self._connection.execute(query, values).fetchone()

    def _chunk_rows(self, condition: str, values: Sequence[Any]) -> Iterator[tuple[int, int, StoredChunk]]:
        # `substr` inside SQLite: a hit in a long decision need not load all of it.
        query = f"""
            SELECT shard, position, id, chunk_index, char_start, char_end,
                   substr(content, char_start + 1, char_end - char_start), title, decision_date
            FROM chunks JOIN documents USING (document_key) WHERE {condition}
        """  # noqa: S608
        for shard, position, *chunk in self._connection.execute(query, values):
            yield shard, position, StoredChunk(*chunk)


def _recover(path: Path) -> Path:
    """Return `path`, or the previous folder where a swap was cut off between its two renamings."""
    previous = beside(path, "previous")
    return previous if not path.exists() and (previous / MANIFEST).is_file() else path


def _read_manifest(path: Path) -> dict[str, Any]:
    if not (path / MANIFEST).is_file():
        raise FileNotFoundError(f"no index at {path} ({_explain_missing_index(path)})")
    manifest = read_manifest(path)
    if not (path / STORE).is_file():
        raise FileNotFoundError(f"incomplete index at {path}: no {STORE} ('legal-rag index' builds it anew)")
    return manifest


def _explain_missing_index(path: Path) -> str:
    if beside(path, "building").is_dir() or (path / STORE).is_file():
        return "only an unfinished build; build it again: the same command resumes it"
    if (path / PLAID_FOLDER).is_dir():
        return "but an index of PyLate or fast-plaid: 'legal-rag import-pylate' makes a Library of it"
    return "build one with 'legal-rag index --source FILE_OR_FOLDER', or try it with '--source sample'"
