"""Grounded entities of a decision, extracted by rules or by a language model, with exact offsets."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

if TYPE_CHECKING:
    from legal_rag.extraction.engine import on_demand_extract, run_batch_extraction, run_extraction
    from legal_rag.extraction.entities import Entity, ExtractionResult
    from legal_rag.extraction.outputs import build_enriched_context, format_extraction_index, view_entities
    from legal_rag.extraction.schemas import ExtractionSettings, Schema, get_schema
    from legal_rag.extraction.store import ExtractionStore
else:
    __all__, __getattr__ = lazy_exports(__name__, __file__)
