"""What is written of one document into the index: its size, kind, summary, keywords, and what it is found by.

In: a document and its corpus's frozen statistics. Out: rows. The same document and statistics give the same rows, in a
full build and when it is added later.
"""

from collections.abc import Mapping
from typing import NamedTuple

from legal_rag.corpus import Document
from legal_rag.corpus_index.frequencies import TermStatistics
from legal_rag.corpus_index.keywords import N_KEYWORDS, index_terms, keywords_of
from legal_rag.corpus_index.summaries import CENTROID, extractive_summary
from legal_rag.corpus_index.terms import TextTerms, read_terms

OFFICIAL, EXTRACTIVE = "official", "extractive"  # where a summary comes from; else a model's id
DECISION, OTHER = "décision", "document"  # what a document is where its source does not say


class Described(NamedTuple):
    """The rows of one document."""

    content_hash: str
    char_count: int
    file_size: int  # bytes in UTF-8
    doc_type: str
    summary_source: str
    summary: str
    keywords: list[tuple[str, str, float]]  # term, as it is shown, weight; the weightiest first
    postings: Mapping[str, float]  # what it is found by, with weights

    @property
    def weights(self) -> dict[str, float]:
        """The keywords' weights by term: what puts a document into its cluster."""
        return {term: weight for term, _, weight in self.keywords}


def describe(document: Document, statistics: TermStatistics, terms: TextTerms | None = None) -> Described:
    """Describe a document by its corpus's statistics.

    Args:
        document: The document.
        statistics: Of the corpus; only what they say of the document's own terms is asked for.
        terms: Of its text, if they are read already.
    """
    terms = read_terms(document.content) if terms is None else terms
    weighed = keywords_of(terms, statistics, CENTROID)
    keywords = weighed[:N_KEYWORDS]
    official = " ".join(document.summary.split())
    summary = official or extractive_summary(document.content, statistics, terms=terms, keywords=weighed).text
    return Described(
        document.content_hash,
        len(document.content),
        len(document.content.encode()),
        kind_of(document),
        OFFICIAL if official else EXTRACTIVE,
        summary,
        [(one.term, one.shown, one.weight) for one in keywords],
        index_terms(keywords),
    )


def kind_of(document: Document) -> str:
    """Return what kind of document it is: what its source says (`nature`), else a decision where a court is named."""
    named = str(document.extra.get("nature") or "").strip()
    return named or (DECISION if document.juridiction else OTHER)
