"""Find the citations of an answer, check them against the decisions, and complete them."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

if TYPE_CHECKING:
    from legal_rag.citations.checks import Citation, CitationStatus
    from legal_rag.citations.enricher import CitationEnricher, EnrichedResponse, is_abstention
    from legal_rag.citations.markers import format_marker
else:
    __all__, __getattr__ = lazy_exports(__name__, __file__)
