"""The index folder: manifest, SQLite, PLAID shards, BM25, filters, citation links."""

from legal_rag.base.extras import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
