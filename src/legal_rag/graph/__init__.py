"""The knowledge graph of a Library: decisions, articles, courts, parties, and what links them, each with its source."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

if TYPE_CHECKING:
    from legal_rag.graph.answers import AnswerRecorder, add_answer, remove_answer
    from legal_rag.graph.export import ExportCounts, export_graphml, export_json
    from legal_rag.graph.graph import Edge, Episode, KnowledgeGraph, Mention, Node, Treatment
    from legal_rag.graph.page import render_graph, view_graph
    from legal_rag.graph.store import fill_graph
    from legal_rag.graph.tags import parse_extraction_tags
    from legal_rag.graph.types import (
        EDGE_TYPES,
        EPISODE_STATUSES,
        NODE_TYPES,
        AnswerFacts,
        ExtractedEntity,
        ExtractedEpisode,
        ExtractedRelationship,
        ExtractionResult,
    )
else:
    __all__, __getattr__ = lazy_exports(__name__, __file__)
