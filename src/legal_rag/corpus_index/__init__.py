"""The corpus index: metadata, summaries, keywords, links and clusters of a Library's documents, in two levels.

Level 1 has one entry per document, and inverted indexes; level 2 has a document's sections, built on demand.
"""

from importlib import import_module
from typing import Any

from legal_rag.base.extras import exports

_exported, __dir__, __all__ = exports(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "IncrementalIndexer":  # defined in the indexer, which builds on this package
        return import_module("legal_rag.indexer.build").IncrementalIndexer
    return _exported(name)
