"""Citations of an answer: found, checked against the decisions, completed."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

_HOMES = {
    "Citation": "checks",
    "CitationEnricher": "enricher",
    "CitationStatus": "checks",
    "EnrichedResponse": "enricher",
    "format_marker": "markers",
    "is_abstention": "enricher",
}
__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from legal_rag.citations.checks import Citation as Citation
    from legal_rag.citations.checks import CitationStatus as CitationStatus
    from legal_rag.citations.enricher import CitationEnricher as CitationEnricher
    from legal_rag.citations.enricher import EnrichedResponse as EnrichedResponse
    from legal_rag.citations.enricher import is_abstention as is_abstention
    from legal_rag.citations.markers import format_marker as format_marker
else:
    __getattr__ = lazy_exports(__name__, _HOMES)
