"""From a question to ranked chunks."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

_HOMES = {
    "Corpus": "legal_rag.library.corpus",
    "Filters": "legal_rag.library.filters",
    "MODES": "ranking",
    "RayRetriever": "ray",
    "Retriever": "retriever",
    "SearchHit": "retriever",
    "build_encoder": "legal_rag.encoder.encoder",
    "build_retriever": "retriever",
    "open_corpus": "retriever",
}
__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from legal_rag.encoder.encoder import build_encoder as build_encoder
    from legal_rag.library.corpus import Corpus as Corpus
    from legal_rag.library.filters import Filters as Filters
    from legal_rag.retriever.ranking import MODES as MODES
    from legal_rag.retriever.ray import RayRetriever as RayRetriever
    from legal_rag.retriever.retriever import Retriever as Retriever
    from legal_rag.retriever.retriever import SearchHit as SearchHit
    from legal_rag.retriever.retriever import build_retriever as build_retriever
    from legal_rag.retriever.retriever import open_corpus as open_corpus
else:
    __getattr__ = lazy_exports(__name__, _HOMES)
