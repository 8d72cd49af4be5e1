"""French legal questions answered by quotations from court decisions, each checked against their text.

Importing this package loads nothing heavy: torch, DSPy and the like are imported where they are used.
"""

from legal_rag.base.extras import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
