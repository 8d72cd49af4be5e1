"""Check what a text says of decisions: the citations of an answer, and all that any other text refers to."""

from legal_rag.base.extras import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
