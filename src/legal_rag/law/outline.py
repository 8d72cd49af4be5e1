"""The outline of a document: a tree of spans, built from a decision's main parts, headings, numbers and paragraphs."""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise

from legal_rag.base.text import Span
from legal_rag.law.headings import (
    ARTICLE,
    PARAGRAPH,
    PART,
    TITLE_CHARS,
    WEAK,
    Mark,
    headings,
    is_dense,
    numbered_marks,
    title_of,
)
from legal_rag.law.parts import is_part_heading
from legal_rag.law.ruling import operative_part
from legal_rag.law.sentences import split_sentences
from legal_rag.law.speakers import main_parts, read_paragraphs
from legal_rag.law.tree import PART_TITLES, Paragraph, Part, TreeNode

PART_CHARS = 3000  # of a part at most
_LEAST_CHARS = 1200  # of a part that ends before a paragraph
_NEAR = 600  # characters before its end searched first for a part's last sentence

# A paragraph begins after a line break, or, in a text of one line, at a court's next reason.
_PARAGRAPH = re.compile(
    r"(?<=\n)[^\S\n]*+(?=[A-ZÀ-ÖØ-ÞŒ«\"\d–—-])"
    r"|(?<=[.;,:]) (?=(?:\d{1,3}\. ?)?(?:(?:MAIS |Mais )?(?:ATTENDU|[Aa]ttendu)|CONSID[EÉ]RANT|[Cc]onsid[ée]rant|Vu)\b)"
)
_NEW_PARAGRAPH = re.compile(r"(?<=\n)[^\S\n]*+(?=[A-ZÀ-ÖØ-ÞŒ])")
_STARS = re.compile(r"^[^\S\n]*+\*(?:[ *-]{0,80}\*)?[^\S\n]*+\n\s*+(?=[^\s*])", re.MULTILINE)
_BEHIND_PART = re.compile(r"[.;]?\s*")
_SIGNED = re.compile(r"^(?=(?:Fait (?:à|le|en)|FAIT (?:À|A|LE|EN)|Signé)\b)", re.MULTILINE)
_END = Mark(sys.maxsize, sys.maxsize, "", 0)  # after the last mark of any text
_MAIN, _LOWEST = 0, 1000  # ranks above and below all others
_BULLET_CHARS = 12  # or number, before a heading
FRONT = "En-tête"  # title of the text before the first heading


def build_tree(text: str, paragraphs: Sequence[Paragraph] | None = None) -> TreeNode:
    """Build a document's outline: a decision's main parts, headings, then numbers; long stretches in bounded pieces.

    Linear in the length of any text, and deterministic.

    Args:
        text: The document's.
        paragraphs: Its paragraphs, if `read_paragraphs` has read them already.
    """
    parts = main_parts(read_paragraphs(text) if paragraphs is None else paragraphs, len(text))
    return _make_node(text, _nest_marks(_all_marks(text, parts), len(text)), 0, count())


@dataclass
class _Draft:
    """A section under construction."""

    mark: Mark
    rank: int
    end: int = 0
    children: list["_Draft"] = field(default_factory=list)


def _all_marks(text: str, main: Sequence[Part]) -> list[Mark]:
    numbered = numbered_marks(text)
    titled = headings(text, numbered)
    by_start = {mark.start: mark for mark in (*_separated(text), *_closing(text, titled), *titled, *numbered)}
    parts = [_main_part(text, part, by_start) for part in main]
    if len(parts) == 1 and parts[0].start == parts[0].end:  # an excerpt: one section for all of it is useless
        parts = []
    following = pairwise([*sorted([*parts, *by_start.values()], key=lambda mark: (mark.start, mark.rank)), _END])
    marks = [mark._replace(end=min(mark.end, after.start)) for mark, after in following]
    has_front = marks and text[: marks[0].start].strip()
    return [*([Mark(0, 0, FRONT, _LOWEST)] if has_front else []), *_with_rests(text, marks)]


def _main_part(text: str, part: Part, by_start: dict[int, Mark]) -> Mark:
    """Return the mark of a main part; its own heading is removed from `by_start`."""
    near = next((at for at in range(part.start, part.start + _BULLET_CHARS) if at in by_start), None)
    mark = Mark(part.start, part.start, PART_TITLES[part.kind], _MAIN, part.kind, deciding=part.kind == "ruling")
    if near is None or not is_part_heading(part.kind, text, part.start):
        return mark
    heading = by_start.pop(near)
    return mark._replace(end=heading.end, title=heading.title)


def _separated(text: str) -> list[Mark]:
    starts = [match.end() for match in _STARS.finditer(text)]
    return [] if is_dense(len(starts), text) else [_part(text, start, len(text), WEAK) for start in starts]


def _closing(text: str, titled: list[Mark]) -> Iterator[Mark]:
    """Yield the mark of the text after the operative part, or of an agreement's last lines."""
    part = operative_part(text)
    match = _BEHIND_PART.match(text, part.end) if part else _SIGNED.search(text)
    articles = [mark.start for mark in titled if mark.rank == ARTICLE] if part and part.in_articles else []
    if match and max([*articles, -1]) < match.end() < len(text):
        yield _part(text, match.end(), len(text), PART)


def _with_rests(text: str, marks: list[Mark]) -> Iterator[Mark]:
    """Yield marks, and those of text after the last item of a numbered run."""
    for mark, following in pairwise([*marks, _END]):
        yield mark
        if mark.line_end and (rest := _NEW_PARAGRAPH.search(text, mark.line_end, following.start)):
            yield _part(text, rest.end(), following.start, mark.rank)


def _part(text: str, start: int, end: int, rank: int) -> Mark:
    """Return the mark of a section titled by the beginning of its text."""
    return Mark(start, start, title_of(text, start, end, TITLE_CHARS), rank, "part")


def _nest_marks(marks: list[Mark], length: int) -> _Draft:
    document = _Draft(Mark(0, 0, "", -1, "document"), -1, length)
    open_ones = [document]
    for mark in marks:
        if (mark.rank == WEAK or mark.deciding) and any(draft.mark.deciding for draft in open_ones):
            continue
        rank = _close_sections(open_ones, mark)
        draft = _Draft(mark, rank, length)
        open_ones[-1].children.append(draft)
        open_ones.append(draft)
    return document


def _close_sections(open_ones: list[_Draft], mark: Mark) -> int:
    """Close the sections that end at a mark, and return its rank among those that stay open."""
    rank = mark.rank
    if mark.family:
        sisters = [draft.rank for draft in open_ones if draft.mark.family == mark.family]
        above = [draft.rank for draft in open_ones if draft.rank < WEAK]
        rank = sisters[0] if sisters else max(above[-1], PART) + 1
    while open_ones[-1].rank >= rank:
        open_ones.pop().end = mark.start
    return rank


def _make_node(text: str, draft: _Draft, level: int, numbers: "count[int]") -> TreeNode:
    node_id = f"{next(numbers):04d}"
    children = [_make_node(text, child, level + 1, numbers) for child in _with_parts(text, draft)]
    mark = draft.mark
    heading = (mark.start, mark.end)
    return TreeNode(node_id, mark.title, level, mark.start, draft.end, heading, mark.kind, tuple(children))


def _with_parts(text: str, draft: _Draft) -> Iterator[_Draft]:
    """Yield a section's children; its own text is cut into parts if it is long."""
    first = draft.children[0].mark.start if draft.children else draft.end
    parts = _split_long(text, draft.mark.end, first) if first - draft.mark.end > PART_CHARS else ()
    for start, end in parts:
        yield _Draft(_part(text, start, end, PARAGRAPH), PARAGRAPH, end)
    yield from draft.children


def _split_long(text: str, start: int, end: int) -> Iterator[Span]:
    while end - start > PART_CHARS:
        cut = _part_end(text, start, start + PART_CHARS)
        yield start, cut
        start = cut
    yield start, end


def _part_end(text: str, start: int, limit: int) -> int:
    """Return where a part that begins at `start` ends, at `limit` at the latest."""
    if match := _PARAGRAPH.search(text, start + _LEAST_CHARS, limit):
        return match.end()
    for begun in (limit - _NEAR, start):
        sentences = split_sentences(text[begun:limit])
        if len(sentences) > 1:
            return begun + sentences[-1][0]
    blank = text.rfind(" ", start + _LEAST_CHARS, limit)
    return blank + 1 if blank > 0 else limit
