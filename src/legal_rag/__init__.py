"""French legal questions answered by quotations from court decisions, each checked against their text.

Importing this package loads nothing heavy: torch, DSPy and the like are imported where they are used.
"""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

if TYPE_CHECKING:
    from legal_rag.verification.verdicts import verify_text
else:
    __all__, __getattr__ = lazy_exports(__name__, __file__)
