"""Find the citations of an answer, check them against the decisions, and complete them."""

from legal_rag.base.extras import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
