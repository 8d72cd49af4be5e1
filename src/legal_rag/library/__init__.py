"""The index folder: manifest, SQLite, PLAID shards, BM25, filters, citation links."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

if TYPE_CHECKING:
    from legal_rag.encoder.runtime import install_fast_plaid
    from legal_rag.library.bm25 import LexicalIndex
    from legal_rag.library.corpus import Corpus, StoredChunk
    from legal_rag.library.filters import Filters
    from legal_rag.library.foreign import export_pylate
    from legal_rag.library.library import DEFAULT_FOLDER, DEFAULT_NAME, Library
    from legal_rag.library.plaid.search import SearchSettings
    from legal_rag.library.plaid.shards import PlaidShards
else:
    __all__, __getattr__ = lazy_exports(__name__, __file__)
