"""The offline pipeline: build, add, remove, compact, extract, check an index."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

if TYPE_CHECKING:
    from legal_rag.corpus.chunking import chunk_document
    from legal_rag.indexer.build import add_documents, build_index, open_index, preprocess, remove_documents
    from legal_rag.indexer.compaction import compact_index
    from legal_rag.indexer.config import IndexConfig, IndexReport
    from legal_rag.indexer.doctor import examine
    from legal_rag.indexer.entities import extract_library
else:
    __all__, __getattr__ = lazy_exports(__name__, __file__)
