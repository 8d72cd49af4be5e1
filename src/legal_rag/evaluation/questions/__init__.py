"""Question–answer datasets generated from documents, each answer a verbatim span of its document."""

from legal_rag.base.extras import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
