"""French legal usage as tables of patterns: what names a decision, an article, a day, a sum, a court, a text.

In: text. Out: plain values with character offsets. Retrieval, the extraction rules and the citations all read from
here, so that what is known of French usage stands in one place.
"""

from legal_rag.legal_patterns.articles import article_value
from legal_rag.legal_patterns.dates import MONTHS, LegalDate, find_dates
from legal_rag.legal_patterns.identifiers import SERIES, Identifier, decision_identifiers, find_identifiers

__all__ = [
    "MONTHS",
    "SERIES",
    "Identifier",
    "LegalDate",
    "article_value",
    "decision_identifiers",
    "find_dates",
    "find_identifiers",
]
