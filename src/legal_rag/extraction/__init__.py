"""The LangExtract layer: grounded entities of a document, from a language model or from rules, each at its exact place.

In: text and a schema. Out: entities whose `content[start:end]` is their text. The main names are imported when used.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "Entity": "entities",
    "ExtractionResult": "entities",
    "ExtractionSettings": "settings",
    "ExtractionStore": "store",
    "Schema": "schemas",
    "build_enriched_context": "outputs",
    "format_extraction_index": "outputs",
    "get_schema": "schemas",
    "on_demand_extract": "engine",
    "run_batch_extraction": "engine",
    "run_extraction": "engine",
    "view_entities": "view",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
