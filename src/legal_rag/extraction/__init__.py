"""Grounded entities of a decision, extracted by rules or by a language model, each at its exact place."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

_HOMES = {
    "Entity": "entities",
    "ExtractionResult": "entities",
    "ExtractionSettings": "schemas",
    "ExtractionStore": "store",
    "Schema": "schemas",
    "build_enriched_context": "outputs",
    "format_extraction_index": "outputs",
    "get_schema": "schemas",
    "on_demand_extract": "engine",
    "run_batch_extraction": "engine",
    "run_extraction": "engine",
    "view_entities": "outputs",
}
__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from legal_rag.extraction.engine import on_demand_extract as on_demand_extract
    from legal_rag.extraction.engine import run_batch_extraction as run_batch_extraction
    from legal_rag.extraction.engine import run_extraction as run_extraction
    from legal_rag.extraction.entities import Entity as Entity
    from legal_rag.extraction.entities import ExtractionResult as ExtractionResult
    from legal_rag.extraction.outputs import build_enriched_context as build_enriched_context
    from legal_rag.extraction.outputs import format_extraction_index as format_extraction_index
    from legal_rag.extraction.outputs import view_entities as view_entities
    from legal_rag.extraction.schemas import ExtractionSettings as ExtractionSettings
    from legal_rag.extraction.schemas import Schema as Schema
    from legal_rag.extraction.schemas import get_schema as get_schema
    from legal_rag.extraction.store import ExtractionStore as ExtractionStore
else:
    __getattr__ = lazy_exports(__name__, _HOMES)
