"""The rules: entities of a French decision found by patterns alone, without a model.

In: a document's text. Out: its entities, at their places.
"""

from legal_rag.extraction.classes import DATE
from legal_rag.extraction.entities import Entity, in_order
from legal_rag.legal_patterns import find_dates


def find_entities(text: str) -> list[Entity]:
    """Find the entities of a French decision, of the classes of the schema `jurisprudence`."""
    return in_order([entity(DATE, text, one.start, one.end) for one in find_dates(text)])


def entity(extraction_class: str, text: str, start: int, end: int, **attributes: str) -> Entity:
    """Make an entity of a passage."""
    return Entity(
        extraction_class=extraction_class,
        extraction_text=text[start:end],
        char_start=start,
        char_end=end,
        attributes=attributes,
        alignment="rules",
    )
