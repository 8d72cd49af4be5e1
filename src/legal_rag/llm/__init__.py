"""The one way to ask a language model: endpoint, request, budget, retries, stored replies, parsing."""

from legal_rag.base.extras import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
