"""The offline pipeline: build, add, remove, compact, extract, check an index."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

_HOMES = {
    "IndexConfig": "config",
    "IndexReport": "config",
    "add_documents": "build",
    "build_index": "build",
    "chunk_document": "legal_rag.corpus.chunking",
    "compact_index": "compaction",
    "examine": "doctor",
    "extract_library": "entities",
    "open_index": "build",
    "preprocess": "build",
    "remove_documents": "build",
}
__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from legal_rag.corpus.chunking import chunk_document as chunk_document
    from legal_rag.indexer.build import add_documents as add_documents
    from legal_rag.indexer.build import build_index as build_index
    from legal_rag.indexer.build import open_index as open_index
    from legal_rag.indexer.build import preprocess as preprocess
    from legal_rag.indexer.build import remove_documents as remove_documents
    from legal_rag.indexer.compaction import compact_index as compact_index
    from legal_rag.indexer.config import IndexConfig as IndexConfig
    from legal_rag.indexer.config import IndexReport as IndexReport
    from legal_rag.indexer.doctor import examine as examine
    from legal_rag.indexer.entities import extract_library as extract_library
else:
    __getattr__ = lazy_exports(__name__, _HOMES)
