"""Grounding: every entity at its exact place in the document, or none.

In: extractions as a model gave them and LangExtract placed them, each with the piece of the document that it was found
in. Out: entities whose `text[start:end]` is what they say, and a count of what was left out. Nothing is guessed.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from legal_rag.extraction.entities import OCCURRENCE, Alignment, Entity
from legal_rag.extraction.schemas import Schema
from legal_rag.folding import Folded, find_exact, find_folded, fold
from legal_rag.word_spans import is_whole

PIECE = "legal_rag_piece"  # attribute on the way through LangExtract: the number of the piece


@dataclass
class Grounded:
    """What of a reply stands in the document, and how much does not."""

    entities: list[Entity] = field(default_factory=list)
    ungrounded: int = 0  # stands nowhere in its piece
    echoed: int = 0  # copied from the prompt's examples
    wrong_class: int = 0  # of a class that was not asked for


class Piece:
    """A part of a document that a model was shown."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self.start, self.text = start, text[start:end]
        self.used: Counter[tuple[str, str]] = Counter()  # how often each text of a class was placed

    @cached_property
    def folded(self) -> Folded:
        """The part's text, folded."""
        return fold(self.text)


def ground(extractions: Iterable[Any], text: str, pieces: Sequence[Piece], schema: Schema) -> Grounded:
    """Give each extraction its exact place.

    One whose text stands in its piece is placed there, the n-th of equal ones at the n-th place; one that does not, is
    looked for with case, apostrophes, ligatures, composed accents, blanks and line-break tags evened out. A place
    within a word or a number is none.

    Args:
        extractions: LangExtract's, in the order of the reply, each with the number of its piece as an attribute.
        text: The document.
        pieces: What the numbers stand for.
        schema: What was asked for.
    """
    examples = {fold(one.extraction_text).text for example in schema.examples for one in example.extractions}
    grounded = Grounded()
    for extraction in extractions:
        attributes = dict(extraction.attributes or {})
        piece = pieces[int(attributes.pop(PIECE))]
        occurrence = attributes.pop(OCCURRENCE, None)
        if extraction.extraction_class not in schema.classes:
            grounded.wrong_class += 1
            continue
        found = _place(extraction, piece, occurrence)
        if found is None:
            if fold(extraction.extraction_text).text.strip() in examples:
                grounded.echoed += 1
            else:
                grounded.ungrounded += 1
            continue
        start, end, alignment = found
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


def _place(extraction: Any, piece: Piece, occurrence: str | None) -> tuple[int, int, Alignment] | None:
    wanted = extraction.extraction_text.strip()
    if occurrence is not None and occurrence.isdecimal():
        places = find_exact(wanted, piece.text)
        return (*places[int(occurrence)], "rules") if int(occurrence) < len(places) else None
    key = (extraction.extraction_class, fold(wanted).text)
    exact = [span for span in find_exact(wanted, piece.text) if is_whole(piece.text, span)]
    alignment: Alignment = "exact"
    if not exact:
        exact = [span for span in find_folded(wanted, piece.folded) if is_whole(piece.text, span)]
        alignment = "folded"
    number = piece.used[key]
    if number >= len(exact):
        return None
    placed = _aligned(extraction, piece, exact) if alignment == "exact" and not number else None
    piece.used[key] += 1 if placed is None else exact.index(placed) + 1
    return (*(placed or exact[number]), alignment)


def _aligned(extraction: Any, piece: Piece, places: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """Return where LangExtract placed an extraction, if its text stands there."""
    interval = extraction.char_interval
    if interval is None or interval.start_pos is None or interval.end_pos is None:
        return None
    span = (interval.start_pos - piece.start, interval.end_pos - piece.start)
    return span if span in places else None
