"""Grounding: every entity at its exact place in the document, or none.

In: extractions as a model gave them and LangExtract placed them, each with the piece of the document that it was found
in. Out: entities whose `text[start:end]` is what they say, and a count of what was left out. Nothing is guessed.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from legal_rag.extraction.entities import OCCURRENCE, Alignment, Entity
from legal_rag.extraction.schemas import Schema
from legal_rag.folding import Folded, find_exact, find_folded, fold, fold_text
from legal_rag.word_spans import Span, is_whole

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
        self.taken: defaultdict[str, set[Span]] = defaultdict(set)  # the spans of the entities of each class

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
    examples = {fold_text(one.extraction_text) for example in schema.examples for one in example.extractions}
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
            if fold_text(extraction.extraction_text).strip() in examples:
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
    found = _unused(extraction, piece, find_exact(wanted, piece.text))
    if found is not None:
        return (*found, "exact")
    found = _unused(extraction, piece, find_folded(wanted, piece.folded))
    return None if found is None else (*found, "folded")


def _unused(extraction: Any, piece: Piece, places: Sequence[Span]) -> Span | None:
    """Take the place that LangExtract gave, or the next behind those taken, of those that are whole and not taken."""
    taken = piece.taken[extraction.extraction_class]
    free = [span for span in places if span not in taken and is_whole(piece.text, span)]
    if not free:
        return None
    last = max(taken.intersection(places), default=(-1, -1))
    given = _given_place(extraction, piece)
    found = given if given in free else next((span for span in free if span > last), free[0])
    taken.add(found)
    return found


def _given_place(extraction: Any, piece: Piece) -> Span | None:
    interval = extraction.char_interval
    if interval is None or interval.start_pos is None or interval.end_pos is None:
        return None
    return interval.start_pos - piece.start, interval.end_pos - piece.start
