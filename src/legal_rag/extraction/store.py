"""`entities.sqlite`: extracted entities of a Library, with the recipe of each extraction."""

import hashlib
import json
import sqlite3
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from tenacity import retry, retry_if_exception, stop_after_delay, wait_random

from legal_rag.base.files import cache_folder
from legal_rag.base.html import displayed
from legal_rag.base.sqlite import (
    PATIENCE_SECONDS,
    ThreadConnections,
    connect_as_allowed,
    create_tables,
    transaction,
    version_of,
)
from legal_rag.extraction.entities import Entity, ExtractionResult
from legal_rag.extraction.lookup import search_words_of

STORE_FILE = "extractions.sqlite"  # in the cache folder
FORMAT_VERSION = 1
MAX_PER_WORD = 50  # entities indexed per word and document, the first ones


@displayed
class Recipe(NamedTuple):
    """Everything that determines an extraction; the model's server does not."""

    schema_name: str
    schema_version: str
    model_id: str
    passes: int
    prompt_hash: str
    max_char_buffer: int

    @property
    def key(self) -> str:
        """Its hash, 64 hexadecimal digits."""
        return hashlib.sha256(json.dumps(list(self)).encode()).hexdigest()


# Id, content hash and text of a document, recipe and result of its extraction, its terms with their classes.
HeldRow = tuple[str, str, str, Recipe, ExtractionResult, Iterable[tuple[str, str]]]


def text_hash(text: str) -> str:
    """Return the hash of a text, 64 hexadecimal digits; lone surrogates are allowed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class ExtractionStore:
    """Thread-safe store of extraction results; read-only if the folder is not writable.

    The file is created if missing; by default it is `extractions.sqlite` in the cache folder.

    Raises:
        ValueError: If the file was written by a later version.
        sqlite3.DatabaseError: If the file is not a store, or is damaged.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = cache_folder() / STORE_FILE if path is None else Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._connections = ThreadConnections(self.path, self._connect_store)
        try:
            _prepare_store(self._connections.get(), self.path)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "ExtractionStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections of all threads."""
        self._connections.close()

    def get(self, text: str, recipe: Recipe) -> ExtractionResult | None:
        """Return the complete result of a recipe for a text, if saved."""
        sql = "SELECT result FROM results WHERE text_hash = ? AND recipe_key = ?"
        row = self._query_store_row(sql, text_hash(text), recipe.key)
        return _result_of(row[0]) if row else None

    def put(self, text: str, recipe: Recipe, result: ExtractionResult) -> None:
        """Save a complete result; ValueError for another."""
        with transaction(self._connections.get()) as connection:
            _put_result(connection, text_hash(text), recipe, result)

    def invalidate(self, text: str) -> None:
        """Delete the results saved for a text, of all recipes, except those that a Library's documents hold."""
        with transaction(self._connections.get()) as connection:
            connection.execute(f"DELETE FROM results WHERE text_hash = ? AND {_FREE}", (text_hash(text),))  # noqa: S608

    def clear(self) -> None:
        """Delete all saved results, except those that a Library's documents hold."""
        with transaction(self._connections.get()) as connection:
            connection.execute(f"DELETE FROM results WHERE {_FREE}")  # noqa: S608

    def hold_many(self, rows: Iterable[HeldRow]) -> None:
        """Store the complete results of a Library's documents, replacing earlier ones: all rows, or none."""
        with transaction(self._connections.get()) as connection:
            for doc_id, content_hash, text, recipe, result, terms in rows:
                hashed = text_hash(text)
                _drop(connection, [doc_id])
                _put_result(connection, hashed, recipe, result)
                connection.execute("INSERT INTO held VALUES (?, ?, ?, ?)", (doc_id, content_hash, hashed, recipe.key))
                rows_of_terms = [(term, doc_id, of_class) for term, of_class in terms]
                connection.executemany("INSERT OR IGNORE INTO terms VALUES (?, ?, ?)", rows_of_terms)
                _put_words(connection, doc_id, result.extractions)

    def count_worded(self) -> int:
        """Return roughly how many documents have an index of their entities' words."""
        return self._query_store_row("SELECT COALESCE(MAX(document_key), 0) FROM worded")[0]

    def count_having_word(self, word: str, most: int) -> int:
        """Count the documents with a word in an entity, up to `most`."""
        return self._query_store_row("SELECT COUNT(*) FROM (SELECT 1 FROM words WHERE word = ? LIMIT ?)", word, most)[0]

    def entities_having_word(self, word: str) -> list[tuple[int, str]]:
        """Return, by document key, the places of the entities with a word, as '3 17 22'."""
        return self._query_store("SELECT document_key, numbers FROM words WHERE word = ?", word)

    def worded_ids(self, document_keys: Iterable[int]) -> dict[int, str]:
        """Return the ids of documents by the keys of `entities_having_word`."""
        sql = "SELECT document_key, doc_id FROM worded WHERE document_key IN (SELECT value FROM json_each(?))"
        return dict(self._query_store(sql, json.dumps(list(document_keys))))

    def entities_of(self, doc_id: str, content_hash: str) -> list[Entity] | None:
        """Return a document's entities; None if it was not extracted, or has changed since."""
        sql = "SELECT result FROM held JOIN results USING (text_hash, recipe_key) WHERE doc_id = ? AND content_hash = ?"
        row = self._query_store_row(sql, doc_id, content_hash)
        return _result_of(row[0]).extractions if row else None

    def held_recipe(self, doc_id: str, content_hash: str) -> Recipe | None:
        """Return the recipe of a document's extraction; None if there is none, or the document has changed since."""
        sql = f"SELECT {_RECIPE} FROM held JOIN recipes USING (recipe_key) WHERE doc_id = ? AND content_hash = ?"  # noqa: S608
        row = self._query_store_row(sql, doc_id, content_hash)
        return Recipe(*row) if row else None

    def held_recipes(self) -> list[tuple[Recipe, int]]:
        """Return the recipes in use, each with its number of documents."""
        sql = f"SELECT COUNT(*), {_RECIPE} FROM held JOIN recipes USING (recipe_key) GROUP BY recipe_key ORDER BY 1, 2"  # noqa: S608
        return [(Recipe(*row), n_documents) for n_documents, *row in self._query_store(sql)]

    def remember(self, schema_name: str, model_id: str) -> None:
        """Save the schema and the model that a Library's documents are extracted by."""
        with transaction(self._connections.get()) as connection:
            connection.execute("DELETE FROM made_by")
            connection.execute("INSERT INTO made_by VALUES (?, ?)", (schema_name, model_id))

    @property
    def made_by(self) -> tuple[str, str] | None:
        """Schema as named, and model, of the last extraction; None before one."""
        return self._query_store_row("SELECT schema_name, model_id FROM made_by")

    def held_ids(self) -> Iterator[str]:
        """Yield the ids of the extracted documents, sorted."""
        return (doc_id for doc_id, *_ in self.held_keys())

    def held_keys(self, doc_ids: Iterable[str] | None = None) -> Iterator[tuple[str, str, str]]:
        """Yield id, content hash and recipe key of the extracted documents, all or some, in order of id."""
        where = "" if doc_ids is None else "WHERE doc_id IN (SELECT value FROM json_each(?))"
        query = f"SELECT doc_id, content_hash, recipe_key FROM held {where} ORDER BY doc_id"  # noqa: S608
        values = () if doc_ids is None else (json.dumps(list(doc_ids)),)
        yield from self._connections.get().execute(query, values)

    def held_hashes(self, doc_ids: Iterable[str]) -> dict[str, str]:
        """Return the content hash of each document when it was extracted."""
        return {doc_id: content_hash for doc_id, content_hash, _ in self.held_keys(doc_ids)}

    def held_count(self) -> int:
        """Return the number of extracted documents."""
        return self._query_store("SELECT COUNT(*) FROM held")[0][0]

    def drop(self, doc_ids: Iterable[str]) -> None:
        """Delete documents and their results; unknown ids are ignored."""
        with transaction(self._connections.get()) as connection:
            _drop(connection, doc_ids)

    def doc_ids_having(self, term: str, most: int | None = None, extraction_class: str | None = None) -> list[str]:
        """Return the sorted ids of the documents that have a term, of one class or any, up to `most`."""
        condition = "" if extraction_class is None else "AND class = ?"
        values = [term] if extraction_class is None else [term, extraction_class]
        sql = f"SELECT DISTINCT doc_id FROM terms WHERE term = ? {condition} ORDER BY doc_id LIMIT ?"  # noqa: S608
        return [doc_id for (doc_id,) in self._query_store(sql, *values, -1 if most is None else most)]

    def has_class(self, extraction_class: str) -> bool:
        """Tell whether any document has a term of a class; scans all terms if none has."""
        return self._query_store_row("SELECT 1 FROM terms WHERE class = ? LIMIT 1", extraction_class) is not None

    def _connect_store(self) -> sqlite3.Connection:
        connection = connect_as_allowed(self.path)
        connection.execute("PRAGMA synchronous=NORMAL")  # survives a kill; a power cut may cost the last seconds
        return connection

    def _query_store_row(self, sql: str, *values: Any) -> Any:
        return self._connections.get().execute(sql, values).fetchone()

    def _query_store(self, sql: str, *values: Any) -> list[Any]:
        return self._connections.get().execute(sql, values).fetchall()


_RECIPE = ", ".join(Recipe._fields)
_FREE = "(text_hash, recipe_key) NOT IN (SELECT text_hash, recipe_key FROM held)"


def _is_busy(error: BaseException) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


# Changing the journal mode fails at once where another connection holds the file.
@retry(retry=retry_if_exception(_is_busy), stop=stop_after_delay(PATIENCE_SECONDS), wait=wait_random(0.01, 0.1),
       reraise=True)  # fmt: skip
def _prepare_store(connection: sqlite3.Connection, path: Path) -> None:
    version = version_of(connection)
    if version > FORMAT_VERSION:
        raise ValueError(f"{path} is of format {version} (expected {FORMAT_VERSION}): a later version wrote it")
    if version < FORMAT_VERSION:
        connection.execute("PRAGMA journal_mode=WAL")
        schema = (files("legal_rag.extraction") / "schema.sql").read_text("utf-8")
        create_tables(connection, schema, FORMAT_VERSION)


def _put_result(connection: sqlite3.Connection, hashed: str, recipe: Recipe, result: ExtractionResult) -> None:
    if not result.complete:
        gaps = f"{result.dropped_chunks} dropped chunks, error {result.error}"
        raise ValueError(f"not a complete result: {result.doc_name!r} has {gaps}")
    value = zlib.compress(json.dumps({**vars(result), "text": ""}, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    key = recipe.key
    connection.execute("INSERT OR IGNORE INTO recipes VALUES (?, ?, ?, ?, ?, ?, ?)", (key, *recipe))
    connection.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", (hashed, key, value))


def _put_words(connection: sqlite3.Connection, doc_id: str, entities: Iterable[Entity]) -> None:
    places: dict[str, list[int]] = defaultdict(list)
    for number, entity in enumerate(entities):
        for word in search_words_of(entity):
            places[word].append(number)
    insert = "INSERT INTO worded (doc_id, words) VALUES (?, ?) RETURNING document_key"
    (key,) = connection.execute(insert, (doc_id, " ".join(sorted(places)))).fetchone()
    rows = [(word, key, " ".join(map(str, numbers[:MAX_PER_WORD]))) for word, numbers in places.items()]
    connection.executemany("INSERT INTO words VALUES (?, ?, ?)", rows)


def _drop_words(connection: sqlite3.Connection, doc_id: str) -> None:
    deleted = connection.execute("DELETE FROM worded WHERE doc_id = ? RETURNING document_key, words", (doc_id,))
    for key, words in deleted.fetchall():
        connection.executemany(
            "DELETE FROM words WHERE word = ? AND document_key = ?", [(w, key) for w in words.split()]
        )


def _drop(connection: sqlite3.Connection, doc_ids: Iterable[str]) -> None:
    """Delete documents, and their results unless shared with another document."""
    for doc_id in doc_ids:
        _drop_words(connection, doc_id)
        row = connection.execute("SELECT text_hash, recipe_key FROM held WHERE doc_id = ?", (doc_id,)).fetchone()
        if row is None:
            continue
        connection.execute("DELETE FROM held WHERE doc_id = ?", (doc_id,))
        connection.execute("DELETE FROM terms WHERE doc_id = ?", (doc_id,))
        sql = "SELECT 1 FROM held WHERE text_hash = ? AND recipe_key = ?"
        if connection.execute(sql, row).fetchone() is None:
            connection.execute("DELETE FROM results WHERE text_hash = ? AND recipe_key = ?", row)


def _result_of(value: bytes) -> ExtractionResult:
    return ExtractionResult(**json.loads(zlib.decompress(value).decode("utf-8", "surrogatepass")))
