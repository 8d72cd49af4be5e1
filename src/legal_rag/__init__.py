"""French legal questions answered by quotations from court decisions, each checked against their text.

Importing this package loads nothing heavy: torch, DSPy and the like are imported where they are used.

>>> import legal_rag as lr
>>> library = lr.build("sample")
>>> lr.search(library, "trouble anormal de voisinage", k=5)  # doctest: +SKIP
"""

from legal_rag.base.extras import exports

__getattr__, __dir__, _ = exports(__name__, __file__)  # the rooms too: `legal_rag.agent`
__all__ = "Document Filters add ask build deep_read evaluate extract open search show verify".split()
