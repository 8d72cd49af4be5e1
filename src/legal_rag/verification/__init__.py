"""Verify a text against a Library: the decisions and articles that it names, and its quotations."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

if TYPE_CHECKING:
    from legal_rag.verification.page import format_verification, render_verification, show_verification
    from legal_rag.verification.reading import read_text
    from legal_rag.verification.verdicts import Correction, Nearest, Reference, Verification, verify_text
else:
    __all__, __getattr__ = lazy_exports(__name__, __file__)
