"""Measuring retrieval the TREC way: queries, qrels, runs, figures."""

from legal_rag.base.extras import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
