"""The agent's tools as plain functions: search, read a passage, read a decision."""

from typing import Any

from legal_rag.agent.tool_arguments import edge_type_of, find_chunks, find_document, find_node
from legal_rag.agent.tool_outputs import document_text, edges_text, facts_around, passages_text
from legal_rag.agent.tools import build_tools
from legal_rag.corpus.chunking import parse_chunk_id
from legal_rag.corpus.documents import ID_COLUMN
from legal_rag.graph.graph import KnowledgeGraph
from legal_rag.library.library import Library
from legal_rag.retriever.retriever import Retriever, SearchHit

__all__ = [
    "ID_COLUMN",
    "build_tools",
    "find_document",
    "graph_neighbours",
    "lookup_chunk",
    "lookup_legal_doc",
    "parse_chunk_id",
    "search_legal_docs",
]


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


def lookup_chunk(chunk_id: str, context_chunks: int = 1, *, dataset: Library) -> str:
    """Render a chunk with its neighbours and what their decision is, in French, with the offsets that citations need.

    `context_chunks` are the neighbours on either side. For an unknown id, it is a French sentence.
    """
    try:
        asked, chunks = find_chunks(chunk_id, context_chunks, dataset)
        return "\n\n".join(passages_text(dataset.document(asked.doc_id), chunks, asked))
    except LookupError as error:
        return str(error)


def graph_neighbours(name: str, type: str = "", *, dataset: Library) -> str:
    """Render the facts of the knowledge graph around a name, in French, each with the place of the text that says so.

    Args:
        name: A document's id, a number, an article, a court, a party or a notion; for an unknown one a French sentence
            gives near ones.
        type: Of edges, one of `legal_rag.graph.EDGE_TYPES`; empty for all.
        dataset: A Library with a graph.

    Raises:
        FileNotFoundError: If there is no graph.
        ValueError: If there is no such type.
    """
    graph = KnowledgeGraph(dataset)
    try:
        node = find_node(name, graph)
    except LookupError as error:
        return str(error)
    edges, more = facts_around(node, graph, edge_type_of(type))
    return edges_text(node, edges, more=more)
