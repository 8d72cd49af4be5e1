"""French legal usage as tables of patterns: what names a decision, an article, a day, a sum, a court, a text.

In: text. Out: plain values with character offsets. Retrieval, the extraction rules and the citations all read from
here, so that what is known of French usage stands in one place.
"""

from legal_rag.corpus.patterns.amounts import LegalAmount, find_amounts
from legal_rag.corpus.patterns.articles import ArticleCitation, article_value, find_article_citations
from legal_rag.corpus.patterns.courts import Court, Formation, find_courts, find_formations
from legal_rag.corpus.patterns.dates import MONTHS, LegalDate, TimeLimit, find_dates, find_time_limits
from legal_rag.corpus.patterns.decisions import (
    SERIES,
    CitedDecision,
    Identifier,
    decision_identifiers,
    find_cases,
    find_cited_decisions,
    find_identifiers,
)
from legal_rag.corpus.patterns.statutes import LegalText, find_texts

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
