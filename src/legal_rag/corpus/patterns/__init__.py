"""French legal usage as patterns: decisions, articles, dates, sums, courts and statutes, with character offsets."""

from legal_rag.corpus.patterns.amounts import LegalAmount, find_amounts
from legal_rag.corpus.patterns.articles import ArticleCitation, article_value, find_article_citations
from legal_rag.corpus.patterns.courts import find_courts, find_formations
from legal_rag.corpus.patterns.dates import (
    MONTHS,
    LegalDate,
    LegalDuration,
    find_dates,
    find_durations,
    find_time_limits,
)
from legal_rag.corpus.patterns.decisions import (
    SERIES,
    Identifier,
    decision_identifiers,
    find_cases,
    find_cited_decisions,
    find_identifiers,
)
from legal_rag.corpus.patterns.letterheads import Letterhead, read_letterhead
from legal_rag.corpus.patterns.statutes import LegalText, find_texts

__all__ = [
    "MONTHS",
    "SERIES",
    "ArticleCitation",
    "Identifier",
    "LegalAmount",
    "LegalDate",
    "LegalDuration",
    "LegalText",
    "Letterhead",
    "article_value",
    "decision_identifiers",
    "find_amounts",
    "find_article_citations",
    "find_cases",
    "find_cited_decisions",
    "find_courts",
    "find_dates",
    "find_durations",
    "find_formations",
    "find_identifiers",
    "find_texts",
    "find_time_limits",
    "read_letterhead",
]
