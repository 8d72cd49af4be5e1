"""The knowledge graph of a Library: decisions, articles, courts, parties, and what links them, each with its source."""

from legal_rag.base.extras import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
