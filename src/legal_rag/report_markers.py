"""The buttons of a report: each marker of an answer as the number of the passage it stands for.

In: an answer with its markers, and its citations. Out: the answer with a place for a button where each marker stood;
the buttons.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from legal_rag.citation_markers import LONGEST_MARKER, format_marker
from legal_rag.citations import Citation
from legal_rag.run_lines import STATUS_WORDS

SIGNS: Mapping[str, str] = {"verified": "✓", "supported": "≈", "relocated": "↷", "unverified": "?"}
# Code points that are no characters, so that what is said of an answer by them is told from what it says itself.
HELD, BREAK = "\ufdd0", "\ufdd1"
NOT_SAID = str.maketrans({HELD: "\ufffd", BREAK: "\ufffd"})
PLACE = re.compile(rf"\[{HELD}(\d+){HELD}\]")  # where a marker stood, within brackets as Markdown knows them
MOST_ENDS = 20  # brackets that may close one marker: an id may hold some
BUTTON = Markup(
    '<button type="button" class="cite {status}" popovertarget="passage-{number}" aria-haspopup="dialog"'
    ' aria-label="Source {number}, {words}" title="{title} — {words}">'
    '{number}<span aria-hidden="true">{sign}</span></button>'
)


class Note(NamedTuple):
    """A passage that the answer cites, under the number that its buttons bear."""

    number: int  # from 1
    citation: Citation
    title: str


def notes_of(citations: Iterable[Citation], titles: Mapping[str, str]) -> list[Note]:
    """Number the passages cited, in the order of the text; one cited twice alike has one number.

    Args:
        citations: Of the answer.
        titles: Of the documents, by their ids.
    """
    different = dict.fromkeys(citations)
    return [Note(number, one, titles.get(one.doc_id) or one.doc_id) for number, one in enumerate(different, start=1)]


def marker_button(note: Note) -> Markup:
    """Write the button that opens a passage: its number, and a sign and a name for its status, not a colour alone."""
    status = note.citation.status
    return BUTTON.format(
        status=status, number=note.number, words=STATUS_WORDS[status], title=note.title, sign=SIGNS[status]
    )


def with_places(text: str, citations: Sequence[Citation], notes: Sequence[Note]) -> str:
    """Put a place for a button where each marker stands; markers of no citation stay text.

    Args:
        text: The answer.
        citations: In the order of their markers.
        notes: The numbers of those that are shown.
    """
    numbers = {note.citation: note.number for note in notes}
    waiting: dict[str, list[int]] = {}
    for one in citations:
        written = format_marker(one.doc_id, one.char_start, one.char_end, verified=one.status != "unverified")
        waiting.setdefault(written, []).append(numbers.get(one, 0))
    pieces, done = [], 0
    for at in (match.start() for match in re.finditer(r"\[Source", text)):
        marker = _marker_at(text, at, waiting) if at >= done else None
        if marker is None:
            continue
        of_marker = waiting[marker]
        number = of_marker.pop(0) if len(of_marker) > 1 else of_marker[0]
        if number:
            pieces += [text[done:at].translate(NOT_SAID), f"[{HELD}{number}{HELD}]"]
            done = at + len(marker)
    return "".join([*pieces, text[done:].translate(NOT_SAID)])


def _marker_at(text: str, start: int, markers: Mapping[str, Any]) -> str | None:
    end = start
    for _ in range(MOST_ENDS):
        end = text.find("]", end, start + LONGEST_MARKER) + 1
        if not end:
            return None
        if text[start:end] in markers:
            return text[start:end]
    return None
