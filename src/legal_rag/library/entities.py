"""A Library's entities as search filters, and as rare facts shared with a query."""

import json
import logging
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from legal_rag.corpus.references import ParsedQuery
from legal_rag.extraction.entities import JURISPRUDENCE, KNOWN_CLASSES
from legal_rag.extraction.lookup import (
    FoundEntity,
    Passing,
    discriminative_documents,
    documents_with_entities,
    entities_like,
)
from legal_rag.extraction.terms import wanted_entity
from legal_rag.library.filters import Condition, UnsupportedFilterError

if TYPE_CHECKING:
    from legal_rag.extraction.store import ExtractionStore

logger = logging.getLogger(__name__)


class LibraryEntities:
    """The entities of a Library, opened on first use."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._store: ExtractionStore | None = None
        self._lock = threading.Lock()

    @property
    def store(self) -> "ExtractionStore | None":
        """The store of entities; None if nothing was extracted yet."""
        with self._lock:
            if self._store is None and self._file.is_file():
                from legal_rag.extraction.store import ExtractionStore

                self._store = ExtractionStore(self._file)
            return self._store

    def conditions(self, wanted: Sequence[str] | None) -> list[Condition]:
        """Compile the entity filter, if there is one, to a condition on documents.

        Raises:
            UnsupportedFilterError: If nothing, or nothing of that class, was extracted.
        """
        if wanted is None:
            return []
        if self.store is None:
            raise UnsupportedFilterError(f"no entities in {self._file.parent}: 'legal-rag extract' finds them")
        entities = [wanted_entity(one) for one in wanted]
        for name in {one.extraction_class for one in entities}.difference(KNOWN_CLASSES):
            if not self.store.has_class(name):
                expected = ", ".join(JURISPRUDENCE)
                raise UnsupportedFilterError(f"no entities of class {name!r} (expected e.g. {expected})")
        found = documents_with_entities(entities, self.store)
        return [_held(found, self.store)]

    def like(self, question: str | ParsedQuery, passing: Passing, most: int) -> list[FoundEntity]:
        """Return the entities most like a question; none if there are none, or the file is damaged, which is logged.

        Raises:
            UnsupportedFilterError: If the Library is not indexed for what `passing` asks.
        """
        try:
            return entities_like(question, self.store, passing, most) if self.store else []
        except UnsupportedFilterError:
            raise
        except (sqlite3.DatabaseError, ValueError, TypeError, KeyError) as error:  # a damaged file may hold anything
            self._warn(error)
            return []

    def discriminative(self, question: str | ParsedQuery) -> Condition | None:
        """Return the condition that a document has a discriminative (low document frequency) entity of the question.

        None if none has, or if the file is damaged, which is logged: searching works without it.
        """
        try:
            found = discriminative_documents(question, self.store) if self.store else []
            return _held(found, self.store) if found and self.store else None
        except sqlite3.DatabaseError as error:
            self._warn(error)
            return None

    def _warn(self, error: Exception) -> None:
        logger.warning("%s cannot be read (%s): delete it, 'legal-rag extract' makes it anew", self._file, error)


def _held(doc_ids: Iterable[str], store: "ExtractionStore") -> Condition:
    held = json.dumps(list(store.held_hashes(doc_ids).items()))
    pairs = "SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?)"
    return Condition(f"(id, content_hash) IN ({pairs})", (held,))
