"""Headings: which lines of a text stand over a section.

In: a text, and the marks of its numbered lines. Out: marks, in order.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from legal_rag.legal_patterns.parts import BLANK
from legal_rag.structure.heading_rules import INLINE, RULES, Rule, put_together
from legal_rag.structure.marks import ARTICLE, PART, TITLE_CHARS, Mark, is_dense, is_spaced, title_of

# A line that may be a heading: its bullet is no part of it.
_LINE = re.compile(rf"^{BLANK}*+(?:[-–—•*.]{BLANK}{{0,3}})?(?=[A-ZÀ-ÖØ-ÞŒŸ#][^\n]{{2}})", re.MULTILINE)
_NEXT_LINE = re.compile(rf"\s*+(?:[-–—•*.]{BLANK}{{0,3}})?([^\s][^\n]{{0,90}})")
_NUMBER_ONLY = re.compile(r"\w+\.?\s\w+")  # "Article premier": what follows makes it a title
_TEXT_CHARS = 60  # a line as long as this is running text
_BEHIND = re.compile(rf"(?<=[.;:,»)\]*_-]){BLANK}{{0,2}}(?=[A-ZÉ])")  # where one may stand inside a line


class _Table:
    """Rules, tried in their order by one pattern."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._any = re.compile("|".join(f"({rule.pattern.pattern})" for rule in rules), re.MULTILINE)

    def first(self, text: str, start: int) -> tuple[Rule, int] | None:
        """Return the first rule that a place is a heading by, and where the heading ends."""
        found = self._any.match(text, start)
        if found is None or found.lastindex is None:
            return None
        for rule in self._rules[found.lastindex - 1 :]:
            match = rule.pattern.match(text, start)
            if match and rule.holds(match):
                return rule, match.end()
        return None


_LINES, _WITHIN = _Table(RULES), _Table(INLINE)


def headings(text: str, numbered: Sequence[Mark]) -> list[Mark]:
    """Return the marks of a text's headings, in order.

    Args:
        text: The text.
        numbered: The marks of its numbered lines: they are no headings of another kind.
    """
    ranks = {mark.start: mark.rank for mark in numbered}
    found: list[tuple[int, Rule, int]] = []
    for match in _LINE.finditer(text):
        start = match.end()
        within = found and start < found[-1][2]
        if start not in ranks and not within and (heading := _LINES.first(text, start)):
            found.append((start, *heading))
    if is_dense(len(found), text):
        return []
    body = _body(found, numbered)
    kept: list[Mark] = []
    for start, rule, end in reversed(found):
        if not rule.over_text or (start >= body and _stands_over(text, end, rule.rank, ranks)):
            ranks[start] = rule.rank
            kept.append(_mark(text, start, end, rule))
    return sorted([*kept, *(mark for mark in _inline(text) if mark.start not in ranks)])


def _body(found: Sequence[tuple[int, Rule, int]], numbered: Sequence[Mark]) -> int:
    """Return where a decision's first known part or numbered title begins; 0 for other texts.

    What looks like a heading before it names the court, its judges or the parties.
    """
    parts = [(start, rule.deciding) for start, rule, _ in found if rule.rank == PART]
    if not any(deciding for _, deciding in parts):
        return 0
    starts = [mark.start for mark in numbered if mark.kind == "heading"]
    starts += [start for start, deciding in parts if not deciding]
    deciding = min(start for start, decides in parts if decides)
    return min([start for start in starts if start < deciding], default=0)


def _stands_over(text: str, end: int, rank: int, ranks: Mapping[int, int]) -> bool:
    """Tell whether running text stands below a line, or a heading of a lower rank."""
    following = _NEXT_LINE.match(text, end)
    if following is None:
        return False
    line = following[1]
    if following.start(1) in ranks:
        return ranks[following.start(1)] > rank
    return len(line) >= _TEXT_CHARS and (line[0].isupper() or line[0] in '«"“-–—(') and not line.isupper()


def _inline(text: str) -> Iterator[Mark]:
    for match in _BEHIND.finditer(text):
        if heading := _WITHIN.first(text, match.end()):
            yield _mark(text, match.end(), heading[1], heading[0])


def _mark(text: str, start: int, end: int, rule: Rule) -> Mark:
    line_end = text.find("\n", start, end)
    title = title_of(text, start, line_end if line_end > 0 else end)
    if rule.rank == ARTICLE and _NUMBER_ONLY.fullmatch(title):
        title = title_of(text, start, _end_of_next_line(text, end), TITLE_CHARS)
    return Mark(start, end, put_together(title) if is_spaced(title) else title, rule.rank, deciding=rule.deciding)


def _end_of_next_line(text: str, start: int) -> int:
    """Return where the line ends that says what an article without a title is about."""
    line = _NEXT_LINE.match(text, start)
    return line.end() if line else start
