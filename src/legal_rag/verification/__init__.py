"""Verify a text against a Library: the decisions and articles that it names, and its quotations."""

from legal_rag.base.extras import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
