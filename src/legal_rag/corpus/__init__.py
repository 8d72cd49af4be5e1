"""Decisions as values: reading a source, cleaning, sentences, chunks, French legal usage, outlines."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

_HOMES = {
    "BadRecord": "sources",
    "Chunk": "chunking",
    "ChunkConfig": "chunking",
    "Document": "documents",
    "ID_COLUMN": "documents",
    "SourceOptions": "documents",
    "build_chunker": "chunking",
    "chunk_document": "chunking",
    "parse_chunk_id": "chunking",
    "read_documents": "documents",
    "split_sentences": "sentences",
}
__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from legal_rag.corpus.chunking import Chunk as Chunk
    from legal_rag.corpus.chunking import ChunkConfig as ChunkConfig
    from legal_rag.corpus.chunking import build_chunker as build_chunker
    from legal_rag.corpus.chunking import chunk_document as chunk_document
    from legal_rag.corpus.chunking import parse_chunk_id as parse_chunk_id
    from legal_rag.corpus.documents import ID_COLUMN as ID_COLUMN
    from legal_rag.corpus.documents import Document as Document
    from legal_rag.corpus.documents import SourceOptions as SourceOptions
    from legal_rag.corpus.documents import read_documents as read_documents
    from legal_rag.corpus.sentences import split_sentences as split_sentences
    from legal_rag.corpus.sources import BadRecord as BadRecord
else:
    __getattr__ = lazy_exports(__name__, _HOMES)
