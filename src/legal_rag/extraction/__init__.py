"""Grounded entities of a decision, extracted by rules or by a language model, with exact offsets."""

from legal_rag.base.extras import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
