"""The file of the corpus index, open for reading at a Library's commit: one connection a thread, queries, no meaning.

In: a Library. Out: rows. What is wrong with the file is told when it is opened.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from legal_rag.corpus_index.tables import BUILD_COMMAND, CACHE_KB, checked_meta
from legal_rag.extraction.entities import ENTITIES
from legal_rag.library import CORPUS_INDEX, STORE, Library
from legal_rag.sqlite import ThreadConnections, answers, connect_to_read, parameter
from legal_rag.store import present_at

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
        self._present = present_at(library.commit, "i")
        self._connections = ThreadConnections(self.path, self._connect, self._is_usable)
        self.meta: Mapping[str, Any] = {}
        _ = self._connection  # from now on what is wrong with it is told

    @property
    def _connection(self) -> sqlite3.Connection:
        return self._connections.get()

    def _connect(self) -> sqlite3.Connection:
        library = self.library
        files = {"corpus": library.path / STORE, "entities": self._entities}
        try:
            connection = connect_to_read(self.path, cache_kb=CACHE_KB, **files)
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{self.path} is damaged: {error} ({BUILD_COMMAND})") from error
        self.meta = checked_meta(connection, self.path, library.manifest["lineage"], library.commit)
        return connection

    def _is_usable(self, connection: sqlite3.Connection) -> bool:
        """Tell whether a connection still answers, and has the entities, which may have been extracted since."""
        if not answers(connection):
            return False
        attached = {name for _, name, _ in connection.execute("PRAGMA database_list")}
        return "entities" in attached or not self._entities.is_file()

    def _execute(self, query: str, *values: Any) -> sqlite3.Cursor:
        return self._connection.execute(query, [parameter(value) for value in values])

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
