"""The index folder: manifest, SQLite, PLAID shards, BM25, filters, citation links."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

_HOMES = {
    "Corpus": "corpus",
    "DEFAULT_FOLDER": "library",
    "DEFAULT_NAME": "library",
    "Filters": "filters",
    "LexicalIndex": "bm25",
    "Library": "library",
    "PlaidShards": "plaid.shards",
    "SearchSettings": "plaid.search",
    "StoredChunk": "corpus",
}
__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from legal_rag.library.bm25 import LexicalIndex as LexicalIndex
    from legal_rag.library.corpus import Corpus as Corpus
    from legal_rag.library.corpus import StoredChunk as StoredChunk
    from legal_rag.library.filters import Filters as Filters
    from legal_rag.library.library import DEFAULT_FOLDER as DEFAULT_FOLDER
    from legal_rag.library.library import DEFAULT_NAME as DEFAULT_NAME
    from legal_rag.library.library import Library as Library
    from legal_rag.library.plaid.search import SearchSettings as SearchSettings
    from legal_rag.library.plaid.shards import PlaidShards as PlaidShards
else:
    __getattr__ = lazy_exports(__name__, _HOMES)
