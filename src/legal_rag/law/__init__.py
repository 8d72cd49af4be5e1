"""How French law is written: dates, sums, articles, decisions, courts, outlines, outcomes; citations read and written.

It reads and writes text only: no file, no connection, no other room but `base`.
"""

from legal_rag.base.extras import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
