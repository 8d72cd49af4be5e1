"""`entities.sqlite`: the extracted entities of a Library, with the recipe that made them."""

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from tenacity import retry, retry_if_exception, stop_after_delay, wait_random

from legal_rag.extraction.entities import Entity, ExtractionResult
from legal_rag.files import cache_folder
from legal_rag.sqlite import PATIENCE_SECONDS, ThreadConnections, connect_as_allowed, transaction

STORE_FILE = "extractions.sqlite"  # in the cache folder
FORMAT_VERSION = 1
SCHEMA = """
CREATE TABLE IF NOT EXISTS recipes (
    recipe_key TEXT PRIMARY KEY, schema_name TEXT NOT NULL, schema_version TEXT NOT NULL, model_id TEXT NOT NULL,
    passes INTEGER NOT NULL, prompt_hash TEXT NOT NULL, max_char_buffer INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS results (
    text_hash TEXT NOT NULL, recipe_key TEXT NOT NULL, result BLOB NOT NULL, PRIMARY KEY (text_hash, recipe_key)
);
CREATE TABLE IF NOT EXISTS replies (
    text_hash TEXT NOT NULL, recipe_key TEXT NOT NULL, prompt_hash TEXT NOT NULL, pass INTEGER NOT NULL,
    reply TEXT NOT NULL, PRIMARY KEY (text_hash, recipe_key, prompt_hash, pass)
);
CREATE TABLE IF NOT EXISTS held (
    doc_id TEXT PRIMARY KEY, content_hash TEXT NOT NULL, text_hash TEXT NOT NULL, recipe_key TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS held_by_text ON held (text_hash, recipe_key);
CREATE TABLE IF NOT EXISTS terms (
    term TEXT NOT NULL, doc_id TEXT NOT NULL, class TEXT NOT NULL, PRIMARY KEY (term, doc_id, class)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS terms_by_document ON terms (doc_id);
"""


class Recipe(NamedTuple):
    """All that decides what is extracted of a text. The server that a model runs on does not."""

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


HeldRow = tuple[str, str, str, Recipe, ExtractionResult, Iterable[tuple[str, str]]]  # as `ExtractionStore.hold` takes


def text_hash(text: str) -> str:
    """Return the hash of a text, 64 hexadecimal digits; half a surrogate pair does no harm."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class ExtractionStore:
    """A store, open for reading and writing; one in a folder that cannot be written to is read all the same.

    Args:
        path: Its file, created with its folder if it is not there; None is `extractions.sqlite` in the cache folder.

    Raises:
        ValueError: If the file was written by a later version.
        sqlite3.DatabaseError: If the file is no store, or damaged.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = _default_path() if path is None else Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._connections = ThreadConnections(self.path, self._connect)
        try:
            _prepare(self._connections.get(), self.path)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "ExtractionStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, in all threads."""
        self._connections.close()

    # --- results, by text and recipe

    def get(self, text: str, recipe: Recipe) -> ExtractionResult | None:
        """Return what was extracted of a text by a recipe; None if nothing complete was."""
        sql = "SELECT result FROM results WHERE text_hash = ? AND recipe_key = ?"
        row = self._row(sql, text_hash(text), recipe.key)
        return _result_of(row[0]) if row else None

    def put(self, text: str, recipe: Recipe, result: ExtractionResult) -> None:
        """Keep what was extracted of a text; the replies that it was made of are forgotten.

        Raises:
            ValueError: If the result has gaps.
        """
        with self._writing() as connection:
            _put(connection, text_hash(text), recipe, result)

    def invalidate(self, text: str, recipe: Recipe | None = None) -> None:
        """Forget what was extracted of a text, by one recipe or by all."""
        condition, values = "text_hash = ?", [text_hash(text)]
        if recipe is not None:
            condition, values = f"{condition} AND recipe_key = ?", [*values, recipe.key]
        with self._writing() as connection:
            sql = f"SELECT doc_id FROM held WHERE {condition}"  # noqa: S608
            _drop(connection, [doc_id for (doc_id,) in connection.execute(sql, values)])
            for table in ("results", "replies"):
                connection.execute(f"DELETE FROM {table} WHERE {condition}", values)  # noqa: S608

    def clear(self) -> None:
        """Forget everything."""
        with self._writing() as connection:
            for table in ("results", "replies", "held", "terms", "recipes"):
                connection.execute(f"DELETE FROM {table}")  # noqa: S608

    # --- a model's replies, as long as the result is not complete

    def reply(self, text_hash: str, recipe_key: str, prompt_hash: str, number_of_pass: int) -> str | None:
        """Return what a model once replied to a prompt in a pass (from 0) over a text; None if it did not."""
        sql = "SELECT reply FROM replies WHERE text_hash = ? AND recipe_key = ? AND prompt_hash = ? AND pass = ?"
        row = self._row(sql, text_hash, recipe_key, prompt_hash, number_of_pass)
        return row[0] if row else None

    def put_reply(self, text_hash: str, recipe_key: str, prompt_hash: str, number_of_pass: int, reply: str) -> None:
        """Keep a model's reply; it outlives this process, however that ends."""
        values = (text_hash, recipe_key, prompt_hash, number_of_pass, reply)
        with self._writing() as connection:
            connection.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?)", values)

    # --- a Library's documents

    def hold(
        self,
        doc_id: str,
        content_hash: str,
        text: str,
        recipe: Recipe,
        result: ExtractionResult,
        terms: Iterable[tuple[str, str]],
    ) -> None:
        """Say what was extracted of a document, in place of what was said before.

        Args:
            doc_id: Of the document.
            content_hash: Of the document, as the Library has it.
            text: The document's.
            recipe: By which it was extracted.
            result: A complete one.
            terms: (term, class) that the document is looked up by.

        Raises:
            ValueError: If the result has gaps.
        """
        self.hold_many([(doc_id, content_hash, text, recipe, result, terms)])

    def hold_many(self, rows: Iterable[HeldRow]) -> None:
        """Do for many documents what `hold` does for one: all of them, or none."""
        with self._writing() as connection:
            for doc_id, content_hash, text, recipe, result, terms in rows:
                hashed = text_hash(text)
                _drop(connection, [doc_id])
                _put(connection, hashed, recipe, result)
                connection.execute("INSERT INTO held VALUES (?, ?, ?, ?)", (doc_id, content_hash, hashed, recipe.key))
                rows_of_terms = [(term, doc_id, of_class) for term, of_class in terms]
                connection.executemany("INSERT OR IGNORE INTO terms VALUES (?, ?, ?)", rows_of_terms)

    def entities_of(self, doc_id: str, content_hash: str) -> list[Entity] | None:
        """Return what was extracted of a document; None if nothing was, or its text has changed since."""
        sql = "SELECT result FROM held JOIN results USING (text_hash, recipe_key) WHERE doc_id = ? AND content_hash = ?"
        row = self._row(sql, doc_id, content_hash)
        return _result_of(row[0]).extractions if row else None

    def is_held(self, doc_id: str, content_hash: str, recipe_key: str) -> bool:
        """Tell whether a document, as it is now, was extracted by a recipe."""
        recipe = self.held_recipe(doc_id, content_hash)
        return recipe is not None and recipe.key == recipe_key

    def held_recipe(self, doc_id: str, content_hash: str) -> Recipe | None:
        """Return the recipe that a document, as it is now, was extracted by; None if it was not."""
        sql = f"SELECT {_RECIPE} FROM held JOIN recipes USING (recipe_key) WHERE doc_id = ? AND content_hash = ?"  # noqa: S608
        row = self._row(sql, doc_id, content_hash)
        return Recipe(*row) if row else None

    def held_recipes(self) -> list[tuple[Recipe, int]]:
        """Return the recipes that documents were extracted by, and how many documents by each."""
        sql = f"SELECT COUNT(*), {_RECIPE} FROM held JOIN recipes USING (recipe_key) GROUP BY recipe_key ORDER BY 1, 2"  # noqa: S608
        return [(Recipe(*row), n_documents) for n_documents, *row in self._rows(sql)]

    def held_ids(self) -> Iterator[str]:
        """Yield the ids of the documents that were extracted, in their order."""
        return (doc_id for (doc_id,) in self._rows("SELECT doc_id FROM held ORDER BY doc_id"))

    def held_hashes(self, doc_ids: Iterable[str]) -> dict[str, str]:
        """Return, of those documents that were extracted, the hash of the content that it was extracted of."""
        sql = "SELECT doc_id, content_hash FROM held WHERE doc_id IN (SELECT value FROM json_each(?)) ORDER BY doc_id"
        return dict(self._rows(sql, json.dumps(list(doc_ids))))

    def held_count(self) -> int:
        """Return how many documents were extracted."""
        return self._rows("SELECT COUNT(*) FROM held")[0][0]

    def drop(self, doc_ids: Iterable[str]) -> None:
        """Forget documents, and what was extracted of them; unknown ones do no harm."""
        with self._writing() as connection:
            _drop(connection, doc_ids)

    def doc_ids_having(self, term: str, most: int | None = None, extraction_class: str | None = None) -> list[str]:
        """Return the ids, in order, of documents that have a term, the first `most` of them.

        Args:
            term: As it was held.
            most: How many at most; None is all.
            extraction_class: Of the entity that the term comes from; None is any.
        """
        condition = "" if extraction_class is None else "AND class = ?"
        values = [term] if extraction_class is None else [term, extraction_class]
        sql = f"SELECT DISTINCT doc_id FROM terms WHERE term = ? {condition} ORDER BY doc_id LIMIT ?"  # noqa: S608
        return [doc_id for (doc_id,) in self._rows(sql, *values, -1 if most is None else most)]

    def has_class(self, extraction_class: str) -> bool:
        """Tell whether any document has a term of a class; for one that none has, all terms are read."""
        return self._row("SELECT 1 FROM terms WHERE class = ? LIMIT 1", extraction_class) is not None

    def _connect(self) -> sqlite3.Connection:
        connection = connect_as_allowed(self.path)
        connection.execute("PRAGMA synchronous=NORMAL")  # survives a kill; a power cut may cost the last seconds
        return connection

    def _writing(self) -> AbstractContextManager[sqlite3.Connection]:
        return transaction(self._connections.get())

    def _row(self, sql: str, *values: Any) -> Any:
        return self._connections.get().execute(sql, values).fetchone()

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        return self._connections.get().execute(sql, values).fetchall()


_RECIPE = ", ".join(Recipe._fields)


def _is_busy(error: BaseException) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


# SQLite does not wait for others when a file's kind of journal is changed.
@retry(retry=retry_if_exception(_is_busy), stop=stop_after_delay(PATIENCE_SECONDS), wait=wait_random(0.01, 0.1),
       reraise=True)  # fmt: skip
def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new file; refuse one that a later version wrote."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > FORMAT_VERSION:
        raise ValueError(f"{path} is of format {version} (expected {FORMAT_VERSION}): a later version wrote it")
    if version < FORMAT_VERSION:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA user_version = {FORMAT_VERSION}; COMMIT;")


def _put(connection: sqlite3.Connection, hashed: str, recipe: Recipe, result: ExtractionResult) -> None:
    if not result.complete:
        gaps = f"{result.dropped_chunks} dropped chunks, error {result.error}"
        raise ValueError(f"not a complete result: {result.doc_name!r} has {gaps}")
    value = zlib.compress(json.dumps(asdict(result), ensure_ascii=False).encode("utf-8", "surrogatepass"))
    key = recipe.key
    connection.execute("INSERT OR IGNORE INTO recipes VALUES (?, ?, ?, ?, ?, ?, ?)", (key, *recipe))
    connection.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", (hashed, key, value))
    connection.execute("DELETE FROM replies WHERE text_hash = ? AND recipe_key = ?", (hashed, key))


def _drop(connection: sqlite3.Connection, doc_ids: Iterable[str]) -> None:
    """Forget documents, and results that no other document has."""
    for doc_id in doc_ids:
        row = connection.execute("SELECT text_hash, recipe_key FROM held WHERE doc_id = ?", (doc_id,)).fetchone()
        if row is None:
            continue
        connection.execute("DELETE FROM held WHERE doc_id = ?", (doc_id,))
        connection.execute("DELETE FROM terms WHERE doc_id = ?", (doc_id,))
        sql = "SELECT 1 FROM held WHERE text_hash = ? AND recipe_key = ?"
        if connection.execute(sql, row).fetchone() is None:
            for table in ("results", "replies"):
                connection.execute(f"DELETE FROM {table} WHERE text_hash = ? AND recipe_key = ?", row)  # noqa: S608


def _result_of(value: bytes) -> ExtractionResult:
    return ExtractionResult(**json.loads(zlib.decompress(value).decode("utf-8", "surrogatepass")))


def _default_path() -> Path:
    return cache_folder() / STORE_FILE
