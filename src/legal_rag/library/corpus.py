"""What retrieval needs of an index: the base of `Library` and `ForeignIndex`."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from legal_rag.corpus.documents import Document
from legal_rag.extraction.entities import Entity
from legal_rag.extraction.lookup import FoundEntity
from legal_rag.law.keys import ParsedQuery
from legal_rag.library.bm25 import LexicalIndex
from legal_rag.library.citation_graph import CitationLinks
from legal_rag.library.filters import Filters
from legal_rag.library.store import Place

if TYPE_CHECKING:
    from legal_rag.library.chunk_vectors import ChunkVectors
    from legal_rag.library.outlines import Outline
    from legal_rag.library.plaid.search import ShardSize


class StoredChunk(NamedTuple):
    """A chunk with its offsets, and the fields of its document that a list of results shows."""

    doc_id: str
    chunk_index: int
    char_start: int
    char_end: int
    text: str
    title: str
    decision_date: str


class IdentifierMatches(NamedTuple):
    """Chunks that a question's identifiers and facts lead to: for each shard, rising positions; None for no match."""

    exact: list[np.ndarray] | None = None  # of documents that the question names
    citing: list[np.ndarray] | None = None  # of documents that cite a decision it names
    facts: list[np.ndarray] | None = None  # of documents that share rare entities with it


class Corpus(ABC):
    """An index opened for reading; the defaults suit an index with PLAID files only."""

    path: Path
    manifest: dict[str, Any]
    read_only = True  # fast-plaid on a GPU writes merged arrays into a shard's folder

    @property
    @abstractmethod
    def shard_folders(self) -> list[Path]:
        """Return the shards' folders, in their order."""

    @abstractmethod
    def document(self, doc_id: str) -> Document:
        """Return a document by its id.

        Raises:
            LookupError: If there is none; the message names the nearest id.
        """

    @abstractmethod
    def nearest_id(self, doc_id: str) -> str | None:
        """Return the document id most similar to the given one among its neighbours in sorted order, or None."""

    @abstractmethod
    def chunks_at(self, places: Sequence[Place]) -> list[StoredChunk]:
        """Return the chunks at (shard, position) places, in that order.

        Raises:
            LookupError: If a place holds no chunk.
        """

    @abstractmethod
    def chunks_of(self, doc_id: str, first: int = 0, last: int | None = None) -> list[StoredChunk]:
        """Return a document's chunks numbered `first` to `last` (both included), in order."""

    @abstractmethod
    def positions(self, filters: Filters) -> list[np.ndarray]:
        """Return, for each shard, the rising positions of the chunks of the documents that pass filters.

        Raises:
            UnsupportedFilterError: If the corpus is not indexed for one of them.
        """

    def positions_named(self, query: str | ParsedQuery) -> IdentifierMatches:
        """Return the positions of chunks that a question's identifiers and rare facts lead to."""
        return IdentifierMatches()

    def entities_of(self, doc_id: str) -> list[Entity] | None:
        """Return the entities of a document; None if none were extracted from its present text."""
        return None

    def entities_like(
        self, question: str | ParsedQuery, most: int = 10, filters: Filters | None = None
    ) -> list[FoundEntity]:
        """Return the entities that share the most words with a question, best first; none where there are none."""
        return []

    def stored_outline(self, document: Document) -> "Outline | None":
        """Return a document's outline; None if it is not stored: see `legal_rag.library.outlines.outline_of`."""
        return None

    def lexical_index(self) -> LexicalIndex | None:
        """Open the BM25 index, if there is one."""
        return None

    def chunk_vectors(self) -> "ChunkVectors | None":
        """Open the vectors by which a search finds its candidates, if there are any."""
        return None

    @property
    def codebooks(self) -> Sequence[Hashable] | None:
        """Return an id of each shard's codebook, the same for equal ones; None if that is not known."""
        return None

    @property
    def shard_sizes(self) -> "Sequence[ShardSize] | None":
        """Return the counts of each shard; None if only its files hold them."""
        return None

    def citation_links(self) -> CitationLinks | None:
        """Return the citation links between documents, if they are known."""
        return None

    def removed_positions(self) -> list[np.ndarray]:
        """Return, for each shard, the rising positions of chunks whose documents were removed or replaced."""
        return [np.empty(0, dtype=np.int64) for _ in self.manifest["shards"]]

    def check_unchanged(self) -> None:  # noqa: B027 - a bare index has no commits
        """Raise ValueError if the folder was rebuilt or compacted since it was opened."""

    def reload(self) -> Self:
        """Open the latest commit; this snapshot stays as it is."""
        return self
