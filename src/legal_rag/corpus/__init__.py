"""Decisions as values: reading a source, cleaning, sentences, chunks, French legal usage, outlines."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

if TYPE_CHECKING:
    from legal_rag.corpus.chunking import Chunk, ChunkConfig, build_chunker, chunk_document, parse_chunk_id
    from legal_rag.corpus.documents import ID_COLUMN, Document, SourceOptions, read_documents
    from legal_rag.corpus.legal_citations import LegalCitation, legal_citation
    from legal_rag.corpus.sentences import split_sentences
    from legal_rag.corpus.sources import BadRecord
else:
    __all__, __getattr__ = lazy_exports(__name__, __file__)
