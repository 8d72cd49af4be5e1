"""An answer as a page, a Word document or lines of text; a document with its outline; saved answers."""

from legal_rag.base.extras import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
