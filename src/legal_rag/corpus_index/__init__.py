"""The corpus index: metadata, summaries, keywords, links and clusters of a Library's documents, in two levels.

Level 1 has one entry per document, and inverted indexes; level 2 has a document's sections, built on demand.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from legal_rag.lazy import lazy_exports

if TYPE_CHECKING:
    from legal_rag.corpus_index.building import CorpusIndexer
    from legal_rag.corpus_index.index import CorpusIndex, DocumentMeta, has_corpus_index
    from legal_rag.corpus_index.sections import DocumentIndex
else:
    _names, _lazy = lazy_exports(__name__, __file__)
    __all__ = sorted([*_names, "IncrementalIndexer"])

    def __getattr__(name: str) -> Any:
        if name == "IncrementalIndexer":  # defined in the indexer, which builds on this package
            return import_module("legal_rag.indexer.build").IncrementalIndexer
        return _lazy(name)
