"""What a Library's `entities.sqlite` is filled with, document by document, also while the Library is built anew.

In: documents and what was extracted of them. Out: both in the store of the folder that is the Library's now. A rebuild
takes along what was written before it moves the folders (`legal_rag.extraction.moving`); what is written into the old
folder after that is written into the new one too.
"""

import sqlite3
from collections.abc import Sequence
from typing import Literal

from legal_rag.corpus import Document
from legal_rag.extraction.engine import Extractor
from legal_rag.extraction.entities import ENTITIES, Entity, ExtractionResult
from legal_rag.extraction.settings import RULES, ExtractionSettings
from legal_rag.extraction.store import ExtractionStore
from legal_rag.extraction.terms import terms_of_all
from legal_rag.library import Library

FORGET_AT_ONCE = 500  # documents


Keep = Literal["none", "models", "all"]


class LibraryFiller:
    """The entities of one Library, open for writing; close it in the end.

    Args:
        library: Its folder is written to.
        settings: How documents are extracted.
        keep: What is left as it is, though it was extracted otherwise: nothing, what a model gave, or all.
    """

    def __init__(self, library: Library, settings: ExtractionSettings, *, keep: Keep = "none") -> None:
        self.library, self.settings = library, settings
        self._keep = keep
        self._stores: list[ExtractionStore] = []  # those of folders that were moved away are in use till the end
        self._gaps: dict[str, list[Entity]] = {}  # of documents that were not read whole, which no store holds
        self._open()

    def _open(self) -> None:
        path = self.library.path / ENTITIES
        self.store = ExtractionStore(path)
        self._stores.append(self.store)
        self._inode = path.stat().st_ino
        self._extractor = Extractor(self.settings, None if self.settings.model_id == RULES else self.store)

    def close(self) -> None:
        """Close what was opened."""
        for store in self._stores:
            store.close()

    def holds(self, document: Document) -> bool:
        """Tell whether a document needs no extraction: it has one of the same recipe, or one that is to be kept."""
        held = self.store.held_recipe(document.id, document.content_hash)
        if held is None:
            return False
        by_model = not held.model_id.startswith(RULES)
        if self._keep == "all" or (self._keep == "models" and by_model):
            return True
        return held.key == self._extractor.recipe_for(document.content).key

    def extract(self, text: str, doc_name: str) -> ExtractionResult:
        """Extract one document; safe for threads."""
        try:
            return self._extractor.extract(text, doc_name)
        except sqlite3.OperationalError:  # its store was moved away before it was told
            if not self._was_moved():
                raise
            return Extractor(self.settings, None).extract(text, doc_name)

    def keep(self, batch: Sequence[tuple[Document, ExtractionResult]]) -> None:
        """Write down what was extracted of documents; of those that were not read whole it lasts as long as this."""
        self._gaps.update({result.doc_name: result.extractions for _, result in batch if not result.complete})
        rows = [self._row(document, result) for document, result in batch if result.complete]
        try:
            self.store.hold_many(rows)
        except sqlite3.OperationalError:  # how SQLite may say that the file is no longer where it was
            if not self._was_moved():
                raise
        if self._was_moved():
            self._open()
            self.store.hold_many(rows)

    def _row(self, document: Document, result: ExtractionResult) -> tuple:
        terms = terms_of_all(result.extractions, document.decision_date)
        recipe = self._extractor.recipe_for(document.content)
        return document.id, document.content_hash, document.content, recipe, result, terms

    def _was_moved(self) -> bool:
        path = self.library.path / ENTITIES
        return not path.is_file() or path.stat().st_ino != self._inode

    def follow(self) -> bool:
        """Turn to the Library as it is now; tell whether it has changed since it was opened."""
        newest = self.library.reload()
        if self._was_moved():
            self._open()
        changed = newest.manifest["lineage"] != self.library.manifest["lineage"] or newest.commit != self.library.commit
        self.library = newest
        return changed

    def forget_others(self) -> None:
        """Drop what is held of documents that are no longer in the Library, and what belongs to no document."""
        gone = [doc_id for doc_id in self.store.held_ids() if doc_id not in self.library]
        for start in range(0, len(gone), FORGET_AT_ONCE):
            self.store.drop(gone[start : start + FORGET_AT_ONCE])

    def entities_of(self, document: Document) -> list[Entity]:
        """Return what was extracted of a document, which may be nothing."""
        held = self.store.entities_of(document.id, document.content_hash)
        return self._gaps.get(document.id, []) if held is None else held
