"""Grounding: exact offsets for a model's extractions, and the format of LangExtract's prompts and replies."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from legal_rag.base.text import Folded, Span, find_exact, find_folded, fold, fold_text, is_whole
from legal_rag.extraction.entities import Alignment, Entity
from legal_rag.extraction.schemas import Schema
from legal_rag.llm import json_in

PIECE = "legal_rag_piece"  # attribute that carries the piece's number through LangExtract
ANSWER = "\nA: "  # ends a prompt
_QUESTION = "Q: "
_EXAMPLE_ANSWER = re.compile(r"\nA: (?=\s*[\[{`]|extractions:)")  # JSON, YAML, or a fence: an example's
EXTRACTIONS, ATTRIBUTES = "extractions", "_attributes"  # LangExtract's own keys


@dataclass
class Grounded:
    """The grounded entities of a document, and how many extractions were dropped."""

    entities: list[Entity] = field(default_factory=list)
    ungrounded: int = 0  # not found in its piece
    echoed: int = 0  # copied from the prompt's examples
    wrong_class: int = 0  # not a class of the schema


class Piece:
    """A part of a document that a model read in one prompt."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self.start, self.text = start, text[start:end]
        self.taken: defaultdict[str, set[Span]] = defaultdict(set)  # spans already grounded, by class

    @cached_property
    def folded(self) -> Folded:
        """The part's text, folded."""
        return fold(self.text)


class UnreadableExtractionError(ValueError):
    """A reply that LangExtract cannot read as JSON, for example because it was cut off."""


def ground(extractions: Iterable[Any], text: str, pieces: Sequence[Piece], schema: Schema) -> Grounded:
    """Find the exact offsets of each extraction, or drop it.

    The n-th of equal extractions gets the n-th occurrence in the piece; a text that does not occur verbatim is searched
    with case, apostrophes, ligatures, composed accents, blanks and line-break tags folded. Only whole words match.

    Args:
        extractions: LangExtract's, in the order of the reply, each with the number of its piece as an attribute.
        text: The document.
        pieces: By their numbers.
        schema: Its classes are kept; copies of its examples are counted as echoes.
    """
    examples = {fold_text(passage.extraction_text) for example in schema.examples for passage in example.extractions}
    grounded = Grounded()
    for extraction in extractions:
        attributes = dict(extraction.attributes or {})
        piece = pieces[int(attributes.pop(PIECE))]
        if extraction.extraction_class not in schema.classes:
            grounded.wrong_class += 1
            continue
        located = _locate(extraction, piece)
        if located is None:
            if fold_text(extraction.extraction_text).strip() in examples:
                grounded.echoed += 1
            else:
                grounded.ungrounded += 1
            continue
        start, end, alignment = located
        grounded.entities.append(
            Entity(
                extraction_class=extraction.extraction_class,
                extraction_text=text[piece.start + start : piece.start + end],
                char_start=piece.start + start,
                char_end=piece.start + end,
                attributes=attributes,
                alignment=alignment,
            )
        )
    return grounded


def piece_of(prompt: str) -> str:
    """Return the piece that a prompt asks about, after the last example.

    An example's answer is JSON, followed by an empty line and the next question; other lines beginning with 'Q:' or
    'A:' belong to the text.

    Raises:
        ValueError: If the prompt is not LangExtract's.
    """
    body = "\n" + without_answer(prompt)
    start = body.find(f"\n{_QUESTION}")
    if start < 0:
        raise ValueError(f"not a prompt of LangExtract's: {prompt[-60:]!r} (expected '… Q: <text>\\nA: ')")
    while answer := _EXAMPLE_ANSWER.search(body, start):
        following = body.find(f"\n\n{_QUESTION}", answer.end())
        if following < 0:  # an answer in the text itself
            break
        start = following + 1
    return body[start + 1 + len(_QUESTION) :]


def without_answer(prompt: str) -> str:
    """Cut a prompt at the end of its piece; a client may have stripped the last blank."""
    return prompt.removesuffix(" ").removesuffix(ANSWER.rstrip())


def extractions_of(reply: str) -> list[dict[str, Any]]:
    """Parse a reply into items `{class: text, class_attributes: {…}}`, dropping malformed ones.

    Raises:
        UnreadableExtractionError: If the reply is not JSON, or has no list of entities.
    """
    value = json_in(reply, repair=False)
    if isinstance(value, dict):
        value = value.get(EXTRACTIONS)
    if not isinstance(value, list):
        raise UnreadableExtractionError(f"no list of {EXTRACTIONS!r} in the reply")
    return [entity for item in value if isinstance(item, dict) for entity in _normalise_item(item)]


def reply_of(extractions: list[dict[str, Any]]) -> str:
    """Format items as a reply that LangExtract reads."""
    return json.dumps({EXTRACTIONS: extractions}, ensure_ascii=False)


def _locate(extraction: Any, piece: Piece) -> tuple[int, int, Alignment] | None:
    passage = extraction.extraction_text.strip()
    span = _unused(extraction, piece, find_exact(passage, piece.text))
    if span is not None:
        return (*span, "exact")
    span = _unused(extraction, piece, find_folded(passage, piece.folded))
    return None if span is None else (*span, "folded")


def _unused(extraction: Any, piece: Piece, spans: Sequence[Span]) -> Span | None:
    """Choose LangExtract's own offsets if they are free, else the next free occurrence."""
    taken = piece.taken[extraction.extraction_class]
    free = [span for span in spans if span not in taken and is_whole(piece.text, span)]
    if not free:
        return None
    last = max(taken.intersection(spans), default=(-1, -1))
    given = _given_span(extraction, piece)
    chosen = given if given in free else next((span for span in free if span > last), free[0])
    taken.add(chosen)
    return chosen


def _given_span(extraction: Any, piece: Piece) -> Span | None:
    interval = extraction.char_interval
    if interval is None or interval.start_pos is None or interval.end_pos is None:
        return None
    return interval.start_pos - piece.start, interval.end_pos - piece.start


def _normalise_item(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if isinstance(item.get("extraction_class"), str):  # LangExtract's own field names, which models copy
        name, attributes = item["extraction_class"], item.get("attributes")
        item = {name: item.get("extraction_text"), f"{name}{ATTRIBUTES}": attributes}
    for name, text in item.items():
        if name and not name.endswith(ATTRIBUTES) and isinstance(text, str | int | float) and str(text).strip():
            yield {name: str(text), f"{name}{ATTRIBUTES}": _attributes_as_text(item.get(f"{name}{ATTRIBUTES}"))}


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
