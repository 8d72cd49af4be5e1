"""The passages of a report: what is cited, where it stands, and which words of it answer the question's.

In: a prediction's citations and passages, as they were saved. Out: pieces of text, each with what marks it. Offsets are
not trusted: what does not lie in its text is left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from legal_rag.citations import Citation
from legal_rag.html_pages import french_decimal
from legal_rag.prediction import Passage, TokenMatch
from legal_rag.report_markers import Note

CONTEXT = 200  # characters shown on either side of what is cited
MOST_TEXT = 6000  # characters of one passage shown: an index that came from elsewhere may find whole decisions
MOST_MATCHES = 300  # of one passage
HEATS = 5  # steps of intensity


class Cited(NamedTuple):
    """A passage cited, with the text around it."""

    note: Note
    date: str
    before: str
    after: str
    in_context: bool  # whether a passage of the evidence shows where it stands


class Window(NamedTuple):
    """A stretch of a document's text."""

    start: int  # characters of the document
    text: str


class Piece(NamedTuple):
    """A piece of a text, and the matches that it takes part in."""

    text: str
    words: str  # numbers of matches, with blanks between
    heat: int  # 1 to 5, the nearer the higher; 0 where there is no match
    told: str  # what the matches say, for the reader


class Row(NamedTuple):
    """A passage of the evidence."""

    rank: int  # from 1
    passage: Passage
    notes: list[Note]  # that cite it
    question: list[Piece]  # the question, cut at its matched words
    text: list[Piece]
    cut: bool  # whether the text is longer than what is shown


def cited_passages(notes: Iterable[Note], evidence: Sequence[Passage], dates: Mapping[str, str]) -> list[Cited]:
    """Put what is cited into its context, as far as the evidence shows it.

    Args:
        notes: The passages cited.
        evidence: The passages kept.
        dates: Of the documents, by their ids.
    """
    of_document: dict[str, list[Window]] = {}
    for one in evidence:
        window = Window(one.char_start - len(one.before), one.before + one.text + one.after)
        of_document.setdefault(one.doc_id, []).append(window)
    return [_in_context(note, of_document.get(note.citation.doc_id, []), dates) for note in notes]


def evidence_rows(question: str, evidence: Sequence[Passage], notes: Sequence[Note]) -> list[Row]:
    """Cut the question and each passage where words of one match words of the other."""
    scale = _Scale([match.similarity for passage in evidence for match in passage.matches[:MOST_MATCHES]])
    return [_row(rank, question, passage, notes, scale) for rank, passage in enumerate(evidence, start=1)]


class _Scale:
    """Intensities of similarities: from the lowest of a report to its highest, since encoders differ in both."""

    def __init__(self, similarities: Sequence[float]) -> None:
        self._low, self._high = min(similarities, default=0.0), max(similarities, default=0.0)

    def heat(self, similarity: float) -> int:
        width = self._high - self._low
        return 1 + min(HEATS - 1, int(HEATS * (similarity - self._low) / width)) if width > 0 else HEATS


def _in_context(note: Note, windows: Sequence[Window], dates: Mapping[str, str]) -> Cited:
    one = note.citation
    found = [around for window in windows if (around := _around(one, window))]
    before, after = max(found, key=lambda around: len(around[0]) + len(around[1]), default=("", ""))
    return Cited(note, dates.get(one.doc_id, ""), before, after, bool(found))


def _around(one: Citation, window: Window) -> tuple[str, str] | None:
    """Return what stands before and after a citation, where a window shows it."""
    text, start = window.text, one.char_start - window.start
    end = start + len(one.quote)
    if not one.quote or start < 0 or text[start:end] != one.quote:
        return None
    return text[max(0, start - CONTEXT) : start], text[end : end + CONTEXT]


def _row(rank: int, question: str, passage: Passage, notes: Sequence[Note], scale: _Scale) -> Row:
    shown = passage.text[:MOST_TEXT]
    matches = [one for one in passage.matches[:MOST_MATCHES] if _is_within(one, question, passage, len(shown))]
    start = passage.char_start
    return Row(
        rank,
        passage,
        [note for note in notes if _cites(note.citation, passage)],
        _pieces(question, [(one.query_start, one.query_end) for one in matches], matches, question, passage, scale),
        _pieces(
            shown,
            [(one.char_start - start, one.char_end - start) for one in matches],
            matches,
            question,
            passage,
            scale,
        ),
        len(shown) < len(passage.text),
    )


def _is_within(match: TokenMatch, question: str, passage: Passage, length: int) -> bool:
    return (
        0 <= match.query_start < match.query_end <= len(question)
        and 0 <= match.char_start - passage.char_start < match.char_end - passage.char_start <= length
    )


def _cites(one: Citation, passage: Passage) -> bool:
    return one.doc_id == passage.doc_id and one.char_start < passage.char_end and passage.char_start < one.char_end


def _pieces(
    text: str,
    spans: Sequence[tuple[int, int]],
    matches: Sequence[TokenMatch],
    question: str,
    passage: Passage,
    scale: _Scale,
) -> list[Piece]:
    """Cut a text where spans begin and end; each of them is one match's."""
    places = sorted({0, len(text), *(place for span in spans for place in span)})
    pieces = []
    for begin, end in pairwise(places):
        over = [number for number, (first, last) in enumerate(spans) if first <= begin and end <= last]
        heat = max((scale.heat(matches[number].similarity) for number in over), default=0)
        told = " ; ".join(_told(matches[number], question, passage) for number in over)
        pieces.append(Piece(text[begin:end], " ".join(map(str, over)), heat, told))
    return pieces


def _told(match: TokenMatch, question: str, passage: Passage) -> str:
    asked = question[match.query_start : match.query_end]
    found = passage.text[match.char_start - passage.char_start : match.char_end - passage.char_start]
    return f"« {asked[:80]} » → « {found[:80]} » : {french_decimal(match.similarity)}"
