"""Align extractions to the text: exact offsets, or dropped and counted."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from legal_rag.corpus.folding import Folded, Span, find_exact, find_folded, fold, fold_text, is_whole
from legal_rag.extraction.entities import OCCURRENCE, Alignment, Entity
from legal_rag.extraction.schemas import Schema

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


ANSWER = "\nA: "  # ends a prompt
_QUESTION = "Q: "
_EXAMPLE_ANSWER = re.compile(r"\nA: (?=\s*[\[{`]|extractions:)")  # JSON, YAML, or a fence: an example's
_FENCE = re.compile(r"```[a-zA-Z]*\s*\n(?P<inside>.*)```", re.DOTALL)
_THOUGHTS = re.compile(r"<think>.*?</think>", re.DOTALL | re.IGNORECASE)
EXTRACTIONS, ATTRIBUTES = "extractions", "_attributes"  # LangExtract's own keys


class UnreadableExtractionError(ValueError):
    """A reply is no JSON of the form that LangExtract reads, for example because it was cut off."""


def without_answer(prompt: str) -> str:
    """Return a prompt up to the piece's end; a client may have taken off its last blank."""
    return prompt.removesuffix(" ").removesuffix(ANSWER.rstrip())


def piece_of(prompt: str) -> str:
    """Return the text that a prompt asks about: what stands behind the last example.

    Lines of the text itself that begin with 'Q:' or 'A:' are no examples: behind an example's answer, which is JSON,
    comes an empty line and the next question.

    Raises:
        ValueError: If the prompt is not one of LangExtract's.
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


def extractions_of(reply: str) -> list[dict[str, Any]]:
    """Read a reply: each entity as `{class: text, class_attributes: {…}}`; what has another form is left out.

    Raises:
        UnreadableReplyError: If the reply is no JSON, or holds no list of entities.
    """
    value = _json_in(reply)
    if isinstance(value, dict):
        value = value.get(EXTRACTIONS)
    if not isinstance(value, list):
        raise UnreadableExtractionError(f"no list of {EXTRACTIONS!r} in the reply")
    return [one for item in value if isinstance(item, dict) for one in _entities(item)]


def _json_in(reply: str) -> Any:
    """Read what a reply holds, as it is, without a model's thoughts before it, or between fences."""
    without_thoughts = _THOUGHTS.sub("", reply)
    fenced = _FENCE.search(without_thoughts)
    failure: Exception = ValueError("empty")
    for form in (reply, without_thoughts, fenced["inside"] if fenced else ""):
        try:
            return json.loads(form)
        except (ValueError, RecursionError) as error:  # a number may be too long, brackets too deep
            failure = error if form is reply else failure
    raise UnreadableExtractionError(f"not JSON: {failure}")


def reply_of(extractions: list[dict[str, Any]]) -> str:
    """Write entities as a reply that LangExtract reads."""
    return json.dumps({EXTRACTIONS: extractions}, ensure_ascii=False)


def _entities(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if isinstance(item.get("extraction_class"), str):  # LangExtract's own names, which models take for the form
        name, attributes = item["extraction_class"], item.get("attributes")
        item = {name: item.get("extraction_text"), f"{name}{ATTRIBUTES}": attributes}
    for name, text in item.items():
        if name and not name.endswith(ATTRIBUTES) and isinstance(text, str | int | float) and str(text).strip():
            yield {name: str(text), f"{name}{ATTRIBUTES}": _plain(item.get(f"{name}{ATTRIBUTES}"))}


def _plain(attributes: Any) -> dict[str, str]:
    """Make attributes plain text: a list is joined, what is empty left out."""
    if not isinstance(attributes, dict):
        return {}
    texts = {
        str(name): ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        for name, value in attributes.items()
        if value not in (None, "", [], {})
    }
    return {name: text for name, text in texts.items() if text}
