"""The offline pipeline: build, add, update, remove, compact, extract, check an index."""

from legal_rag.base.extras import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
