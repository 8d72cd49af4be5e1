"""Deep reading: questions over many decisions, answered by sandboxed programs or by map-reduce."""

from legal_rag.base.extras import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
