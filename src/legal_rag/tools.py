"""The agent's tools as plain functions: search, read a decision."""

from typing import Any

from legal_rag.agent.tool_arguments import find_document
from legal_rag.agent.tool_outputs import document_text
from legal_rag.agent.tools import build_tools
from legal_rag.corpus.chunking import parse_chunk_id
from legal_rag.corpus.documents import ID_COLUMN
from legal_rag.retriever.retriever import Retriever, SearchHit

__all__ = ["ID_COLUMN", "build_tools", "find_document", "lookup_legal_doc", "parse_chunk_id", "search_legal_docs"]


def search_legal_docs(query: str, k: int = 5, *, retriever: Retriever) -> list[SearchHit]:
    """Search the decisions: the `k` best chunks, best first, each with score, title, date and text.

    Raises:
        ValueError: If the query is empty or too long for the encoder, or k is below 1.
    """
    return retriever.search(query, k)


def lookup_legal_doc(chunk_id: str, dataset: Any, score: float | None = None) -> str:
    """Render the whole decision that a chunk belongs to, in French.

    Args:
        chunk_id: A chunk's id, or a document's; for an unknown one a French sentence gives the nearest.
        dataset: A Library, a Hugging Face dataset, a list of rows, or a mapping from id to row.
        score: Of the chunk, to be shown.
    """
    try:
        document = find_document(chunk_id, dataset)
    except LookupError as error:
        return str(error)
    return document_text(document, score)
