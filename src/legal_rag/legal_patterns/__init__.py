"""French legal usage as tables of patterns: what names a decision, an article, a day, a sum, a court, a text.

In: text. Out: plain values with character offsets. Retrieval, the extraction rules and the citations all read from
here, so that what is known of French usage stands in one place.
"""

from legal_rag.legal_patterns.amounts import LegalAmount, find_amounts
from legal_rag.legal_patterns.article_citations import ArticleCitation, find_article_citations
from legal_rag.legal_patterns.articles import article_value
from legal_rag.legal_patterns.cited_decisions import CitedDecision, find_cited_decisions
from legal_rag.legal_patterns.courts import Court, Formation, find_courts, find_formations
from legal_rag.legal_patterns.dates import MONTHS, LegalDate, find_dates
from legal_rag.legal_patterns.durations import TimeLimit, find_time_limits
from legal_rag.legal_patterns.identifiers import SERIES, Identifier, decision_identifiers, find_cases, find_identifiers
from legal_rag.legal_patterns.texts import LegalText, find_texts

__all__ = [
    "MONTHS",
    "SERIES",
    "ArticleCitation",
    "CitedDecision",
    "Court",
    "Formation",
    "Identifier",
    "LegalAmount",
    "LegalDate",
    "LegalText",
    "TimeLimit",
    "article_value",
    "decision_identifiers",
    "find_amounts",
    "find_article_citations",
    "find_cases",
    "find_cited_decisions",
    "find_courts",
    "find_dates",
    "find_formations",
    "find_identifiers",
    "find_texts",
    "find_time_limits",
]
