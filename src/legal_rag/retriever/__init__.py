"""From a question to ranked chunks."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

if TYPE_CHECKING:
    from legal_rag.encoder.encoder import build_encoder
    from legal_rag.library.corpus import Corpus
    from legal_rag.library.filters import Filters
    from legal_rag.retriever.ranking import MODES
    from legal_rag.retriever.ray import RayRetriever
    from legal_rag.retriever.retriever import Retriever, SearchHit, build_retriever, open_corpus
    from legal_rag.retriever.structured import (
        ChosenNode,
        DocumentOutline,
        Health,
        Reasoner,
        StructuredProvider,
        StructuredResult,
    )
else:
    __all__, __getattr__ = lazy_exports(__name__, __file__)
