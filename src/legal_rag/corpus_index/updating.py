"""Documents added to a Library and removed one by one, its corpus index included.

In: a file, a row, an id. Out: the Library's next commit; `following` says what the index does with it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from legal_rag.corpus import Document
from legal_rag.index_config import IndexConfig, IndexReport
from legal_rag.library import Library
from legal_rag.updates import add_documents, remove_documents


class IncrementalIndexer:
    """Adds documents to a Library and removes them, its corpus index included.

    Args:
        library: The Library, or its folder.
    """

    def __init__(self, library: Library | str | Path) -> None:
        path = (library.path if isinstance(library, Library) else Path(library).expanduser()).absolute()
        self._folder, self._name = str(path.parent), path.name

    def add_document(self, source: str | Path | Document | Mapping[str, Any]) -> IndexReport:
        """Add a document; one of the same id is replaced.

        Args:
            source: A file, whose name is its id, a document, or its row.

        Raises:
            FileNotFoundError: If there is no such file, or no Library.
            ValueError: If it holds no text, or another process is writing to the Library.
        """
        row = source.row() if isinstance(source, Document) else source
        given = [row] if isinstance(row, Mapping) else row
        return add_documents(IndexConfig(source=given, index_folder=self._folder, index_name=self._name))

    def remove_document(self, doc_id: str) -> None:
        """Remove a document.

        Raises:
            LookupError: If it is not there.
            ValueError: If another process is writing to the Library.
        """
        remove_documents([doc_id], self._folder, self._name)
