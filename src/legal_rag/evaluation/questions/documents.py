"""The documents that questions are made of: a Library's, or drawn from a source that has no index."""

import heapq
from collections.abc import Collection, Iterable, Iterator
from hashlib import sha256
from typing import Any, TypeVar

from legal_rag.corpus.documents import Document, SourceOptions, read_documents
from legal_rag.indexer.config import IndexConfig, source_label
from legal_rag.library.library import Library

T = TypeVar("T")


class SourceDocuments:
    """Documents drawn from a source while it is read, held in memory: as many as `limit` allows.

    The same documents as `draw` takes of a Library that holds the same source.
    """

    def __init__(
        self,
        source: Any,
        options: SourceOptions | None = None,
        *,
        limit: int | None = None,
        seed: int = 0,
        doc_ids: Collection[str] = (),
    ) -> None:
        """Read a source once, as `legal_rag.corpus.read_documents` does, and draw of it; see `draw`."""
        self.name = source_label(IndexConfig(source=source))
        documents = ((one.id, one) for one in read_documents(source, options))
        self._documents = dict(draw(documents, limit, seed, doc_ids))

    def __len__(self) -> int:
        return len(self._documents)

    def content_hashes(self) -> Iterator[tuple[str, str]]:
        """Return ids and content hashes, in the source's order."""
        return ((doc_id, document.content_hash) for doc_id, document in self._documents.items())

    def document(self, doc_id: str) -> Document:
        """Return a document by its id; KeyError if it was not drawn."""
        return self._documents[doc_id]


Documents = Library | SourceDocuments


def draw(
    pairs: Iterable[tuple[str, T]], limit: int | None, seed: int, doc_ids: Collection[str] = ()
) -> list[tuple[str, T]]:
    """Draw `limit` pairs (None: all) of a document's id and anything, in their order, among `doc_ids` if there are any.

    A lower limit draws some of the same. No more than `limit` pairs are held at a time.

    Raises:
        LookupError: If there is no pair of one of `doc_ids`.
        ValueError: If `limit` is below 1.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit}")
    if doc_ids:
        pairs = [pair for pair in pairs if pair[0] in doc_ids]
        if missing := sorted(set(doc_ids) - {doc_id for doc_id, _ in pairs}):
            raise LookupError(f"no document {missing[0]!r} ({len(missing)} of {len(set(doc_ids))} ids are unknown)")
    if limit is None:
        return list(pairs)
    lots = ((sha256(f"{seed}:{pair[0]}".encode()).digest(), number, pair) for number, pair in enumerate(pairs))
    return [pair for _, _, pair in sorted(heapq.nsmallest(limit, lots), key=lambda lot: lot[1])]
