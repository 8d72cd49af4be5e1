"""The file of the corpus index, open for reading at a Library's commit: one connection a thread, queries, no meaning.

In: a Library. Out: rows. What is wrong with the file is told when it is opened.
"""

import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from legal_rag.corpus_index.tables import BUILD_COMMAND, checked_meta, connect_to_read, present_at, storable
from legal_rag.library import CORPUS_INDEX, ENTITIES, STORE, Library

PAGE = 500  # rows read at once


def has_corpus_index(corpus: Any) -> bool:
    """Tell whether a corpus is a Library with a corpus index that holds for it."""
    if not isinstance(corpus, Library):
        return False
    path = corpus.path / CORPUS_INDEX
    if not path.is_file():
        return False
    try:
        with closing(connect_to_read(path)) as connection:
            checked_meta(connection, path, corpus.manifest["lineage"], corpus.commit)
    except (ValueError, sqlite3.DatabaseError):
        return False
    return True


class IndexFile:
    """The index's file of one Library, for whoever looks things up in it.

    Args:
        library: The Library.

    Raises:
        FileNotFoundError: If no index was built in it.
        ValueError: If the index is of another build of the Library, of another form, or damaged.
    """

    def __init__(self, library: Library) -> None:
        self.library = library
        self.path = library.path / CORPUS_INDEX
        if not self.path.is_file():
            raise FileNotFoundError(f"no corpus index in {library.path} ({BUILD_COMMAND})")
        self._entities = library.path / ENTITIES
        self._present = present_at(library.commit)
        self._local = threading.local()
        self.meta: Mapping[str, Any] = {}
        _ = self._connection  # from now on what is wrong with it is told

    @property
    def _connection(self) -> sqlite3.Connection:
        # One connection a thread: SQLite's own rule, and it lets threads read at once; it is closed with its thread.
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is not None and not self._local.with_entities and self._entities.is_file():
            connection = None  # they were extracted since
        if connection is None:
            self._local.with_entities = self._entities.is_file()
            connection, self.meta = self._opened()
            self._local.connection = connection
        return connection

    def _opened(self) -> tuple[sqlite3.Connection, dict[str, Any]]:
        library = self.library
        try:
            connection = connect_to_read(self.path, corpus=library.path / STORE, entities=self._entities)
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{self.path} is damaged: {error} ({BUILD_COMMAND})") from error
        return connection, checked_meta(connection, self.path, library.manifest["lineage"], library.commit)

    def _execute(self, query: str, *values: Any) -> sqlite3.Cursor:
        return self._connection.execute(query, [storable(value) for value in values])

    def _one(self, query: str, *values: Any) -> Any:
        return self._execute(query, *values).fetchone()

    def _rows(self, query: str, *values: Any) -> list[Any]:
        return self._execute(query, *values).fetchall()

    def _column(self, query: str, *values: Any) -> list[Any]:
        return [row[0] for row in self._execute(query, *values)]

    def _pages(self, query: str, first: str | int, *values: Any) -> Iterator[Any]:
        """Stream rows page by page; no query stays open between two, so that no commit waits for who reads slowly.

        Args:
            query: Its first column rises from row to row; its last two parameters are the value of that column behind
                which rows are wanted, and how many.
            first: What lies before all values of the first column.
            values: The query's other parameters.
        """
        while rows := self._rows(query, *values, first, PAGE):
            yield from rows
            first = rows[-1][0]
