"""Citations: every marker of an answer checked against the documents, mended where that is certain, and completed.

In: an answer and the documents it may cite. Out: the same answer with markers that say what was found, the citations,
and the sentences that state facts and cite nothing that holds.
"""

from collections.abc import Sequence
from typing import Any

from legal_rag.citation_checks import Citation, CitationStatus, count_by_status
from legal_rag.citation_markers import MarkedText, format_marker, take_out_markers
from legal_rag.document_names import DocumentNames
from legal_rag.enrichment import EnrichedResponse, Enrichment, is_abstention
from legal_rag.named_parties import entity_look_up
from legal_rag.source_texts import SourceTexts

__all__ = [
    "Citation",
    "CitationEnricher",
    "CitationStatus",
    "EnrichedResponse",
    "count_by_status",
    "format_marker",
    "is_abstention",
]

MOST_SEARCHED = 200  # documents that one answer's quotations are searched in


class CitationEnricher:
    """Checks the citations of answers; it keeps nothing between two answers, so threads may share it."""

    def __init__(self, documents: Any, extractions: Any = None) -> None:
        """Take the documents.

        Args:
            documents: A Library, another corpus, or any mapping from document id to text.
            extractions: What was extracted of them: a mapping from document id to entities, or `ExtractionResult`s;
                None takes what a Library holds.
        """
        self._documents = documents
        self._entities_of = entity_look_up(documents, extractions)

    def enrich(self, text: str, read: Sequence[str] | None = None) -> EnrichedResponse:
        """Check an answer.

        A marker is checked against its document; a quotation without one, or whose marker is wrong, is searched for in
        the documents that were read. What is added is certain: it stands in one of these documents only.

        Args:
            text: The answer, with markers in any usual spelling.
            read: Ids of the documents that the agent read, searched in this order; None takes those that the answer
                cites, or, of a mapping, all.
        """
        sources = SourceTexts(self._documents)
        names = DocumentNames(sources, read or ())
        marked = take_out_markers(text, names.document)
        return Enrichment(marked, sources, self._searched(marked, sources, read), self._entities_of).response()

    def _searched(self, marked: MarkedText, sources: SourceTexts, read: Sequence[str] | None) -> list[str]:
        cited = [one.doc_id for marker in marked.markers for one in marker.references]
        others = sources.all_ids() if read is None else read
        return list(dict.fromkeys([*others, *cited]))[:MOST_SEARCHED]
