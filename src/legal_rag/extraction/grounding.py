"""Ground a model's extractions: read them from its reply, and find their exact offsets."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from legal_rag.base.text import Folded, Span, find_exact, find_folded, fold, fold_text, is_whole
from legal_rag.extraction.entities import Alignment, Entity
from legal_rag.extraction.schemas import Schema
from legal_rag.llm import json_in

EXTRACTIONS, ATTRIBUTES = "extractions", "_attributes"  # LangExtract's own keys


class Extraction(NamedTuple):
    """What a model says it found in a piece."""

    extraction_class: str
    text: str
    attributes: dict[str, str]


class UnreadableExtractionError(ValueError):
    """A reply that is not LangExtract's JSON, for example because it was cut off."""


class Piece:
    """A part of a document that a model read in one prompt."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self.start, self.text = start, text[start:end]
        self.end = 0  # of the last extraction located in it
        self.taken: defaultdict[str, set[Span]] = defaultdict(set)  # spans already grounded, by class

    @cached_property
    def folded(self) -> Folded:
        """The part's text, folded."""
        return fold(self.text)

    def locate(self, extraction: Extraction) -> tuple[int, int, Alignment] | None:
        """Return the offsets of an extraction in the piece, and how it was found."""
        passage = extraction.text.strip()
        if span := self._free_span(extraction.extraction_class, find_exact(passage, self.text)):
            return (*span, "exact")
        if span := self._free_span(extraction.extraction_class, find_folded(passage, self.folded)):
            return (*span, "folded")
        return None

    def _free_span(self, extraction_class: str, spans: Sequence[Span]) -> Span | None:
        """Take the first free occurrence behind the extraction before it, as replies follow the text; else any."""
        taken = self.taken[extraction_class]
        free = [span for span in spans if span not in taken and is_whole(self.text, span)]
        if not free:
            return None
        span = next((span for span in free if span[0] >= self.end), free[0])
        taken.add(span)
        self.end = span[1]
        return span


@dataclass
class Grounded:
    """The grounded entities of a document, and how many extractions were dropped."""

    entities: list[Entity] = field(default_factory=list)
    ungrounded: int = 0  # not found in its piece
    echoed: int = 0  # copied from the prompt's examples
    wrong_class: int = 0  # not a class of the schema

    def add(self, extractions: Iterable[Extraction], piece: Piece, schema: Schema) -> None:
        """Find the exact offsets of each extraction of a piece, in the order of the reply, or drop it.

        A text that does not occur verbatim is searched with case, apostrophes, ligatures, composed accents, blanks and
        line-break tags folded. Only whole words match.
        """
        examples = {fold_text(shown.extraction_text) for example in schema.examples for shown in example.extractions}
        for extraction in extractions:
            if extraction.extraction_class not in schema.classes:
                self.wrong_class += 1
            elif located := piece.locate(extraction):
                start, end, alignment = located
                entity = Entity(
                    extraction_class=extraction.extraction_class,
                    extraction_text=piece.text[start:end],
                    char_start=piece.start + start,
                    char_end=piece.start + end,
                    attributes=extraction.attributes,
                    alignment=alignment,
                )
                self.entities.append(entity)
            elif fold_text(extraction.text).strip() in examples:
                self.echoed += 1
            else:
                self.ungrounded += 1


def extractions_of(reply: str) -> list[Extraction]:
    """Parse a reply, a list of items `{class: text, class_attributes: {…}}`, dropping malformed ones.

    Raises:
        UnreadableExtractionError: If the reply is not JSON, or has no list of entities.
    """
    value = json_in(reply, repair=False)
    if isinstance(value, dict):
        value = value.get(EXTRACTIONS)
    if not isinstance(value, list):
        raise UnreadableExtractionError(f"no list of {EXTRACTIONS!r} in the reply")
    return [extraction for item in value if isinstance(item, dict) for extraction in _extractions_in(item)]


def _extractions_in(item: dict[str, Any]) -> Iterator[Extraction]:
    if isinstance(item.get("extraction_class"), str):  # LangExtract's own field names, which models copy
        name, attributes = item["extraction_class"], item.get("attributes")
        item = {name: item.get("extraction_text"), f"{name}{ATTRIBUTES}": attributes}
    for name, text in item.items():
        if name and not name.endswith(ATTRIBUTES) and isinstance(text, str | int | float) and str(text).strip():
            yield Extraction(name, str(text), _attributes_as_text(item.get(f"{name}{ATTRIBUTES}")))


def _attributes_as_text(attributes: Any) -> dict[str, str]:
    """Convert attributes to text: lists are joined, empty values dropped."""
    if not isinstance(attributes, dict):
        return {}
    texts = {
        str(name): ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        for name, value in attributes.items()
        if value not in (None, "", [], {})
    }
    return {name: text for name, text in texts.items() if text}
