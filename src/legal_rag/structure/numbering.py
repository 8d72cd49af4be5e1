"""Numbered lines: "1.", "2.1", "3°/", "IV -", "B.", "c)", where they follow one another.

In: a text. Out: marks, in order: titles where most lines of a run read as such, else numbered paragraphs.
A number that has no neighbour is a number, and no beginning of anything.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from legal_rag.legal_patterns.parts import BLANK
from legal_rag.structure.marks import ITEM, NUMBERED_TITLE, PARAGRAPH, TITLE_CHARS, Mark, is_dense, title_of

# The sign behind a number, or its first, tells the kind of numbering: "1." is not "1)" nor "1°/".
_SIGN = rf"{BLANK}?(?P<sign>[.)°/:–—-]|[oº](?={BLANK}?[)/]))(?!\.)[.)°/:–— -]{{0,3}}"
_NUMBERED = re.compile(
    rf"^{BLANK}*+(?:[«\"“]{BLANK}?)?(?P<number>(?P<figures>\d{{1,3}}(?:\.\d{{1,2}}){{0,4}})|(?P<roman>[IVX]{{1,6}})"
    rf"|(?P<upper>[A-Z])|(?P<lower>[a-z]))"
    rf"(?:{_SIGN}|(?<=\.\d)(?={BLANK})|(?<=\.\d\d)(?={BLANK})){BLANK}*+(?=[^\W\d_]|[«\"“(\[])(?!\.)(?P<rest>[^\n]*)",
    re.MULTILINE,
)
_ORDER = ("figures", "roman", "upper", "lower")
_STARTS = {"roman": 1, "upper": ord("A"), "lower": ord("a")}  # runs of letters begin with their first
_ROMAN = {"I": 1, "V": 5, "X": 10}
_OPEN = 8  # runs of one kind that may wait to go on, so that a page of ones takes linear time
_GAP = 2  # one figure may be missing
_TITLE_LINE = 120  # characters of a numbered title at most
_LEAST_PARAGRAPH, _LEAST_ITEM = 60, 150  # characters on the average, below which a run needs no sections

Shape = tuple[str, int, str]  # kind of number, how many it is made of, its sign


class _Line(NamedTuple):
    start: int  # of the number, or of the quotation mark before it
    number_end: int  # with its sign
    end: int  # of the line
    numbers: tuple[int, ...]
    is_title: bool


@dataclass(eq=False)
class _Run:
    """Lines of one shape whose numbers follow one another."""

    shape: Shape
    lines: list[_Line]
    within: "_Run | None" = None  # the run that goes on behind it
    depth: int = field(default=0)

    def takes(self, line: _Line) -> bool:
        """Tell whether a line goes on with the run."""
        last = self.lines[-1].numbers
        most = _GAP if self.shape[0] == "figures" else 1
        return line.numbers[:-1] == last[:-1] and 0 < line.numbers[-1] - last[-1] <= most


def numbered_marks(text: str) -> list[Mark]:
    """Return the marks of a text's numbered lines, in order."""
    lines: dict[Shape, list[_Line]] = defaultdict(list)
    matches = list(_NUMBERED.finditer(text))
    for match in matches if not is_dense(len(matches), text) else []:
        shape, line = _read(match)
        lines[shape].append(line)
    runs = [run for shape, found in lines.items() for run in _runs(shape, found)]
    return sorted(mark for run in runs for mark in _marks(text, run))


def _read(match: re.Match[str]) -> tuple[Shape, _Line]:
    """Return the kind of a numbered line, and the line."""
    kind = next(name for name in ("figures", "roman", "upper", "lower") if match[name])
    written = match["number"]
    if kind == "figures":
        numbers = tuple(map(int, written.split(".")))
    else:
        numbers = (_roman(written) if kind == "roman" else ord(written),)
    length = match.end() - match.start("number")
    ending = match["rest"].rstrip()[-3:]
    is_title = length <= _TITLE_LINE and (
        kind in ("roman", "upper") or ending[-1:] not in (".", ";", ",") or ending == "..."
    )
    sign = "-" if (match["sign"] or "") in "–—-" and match["sign"] else match["sign"] or ""
    return (kind, len(numbers), sign), _Line(match.start("number"), match.start("rest"), match.end(), numbers, is_title)


def _roman(written: str) -> int:
    values = [_ROMAN[letter] for letter in written]
    return sum(-one if one < after else one for one, after in zip(values, [*values[1:], 0], strict=True))


def _runs(shape: Shape, lines: list[_Line]) -> Iterator[_Run]:
    """Yield the runs of lines of one shape, each before those inside it."""
    waiting: list[_Run] = []
    runs: list[_Run] = []
    for line in lines:
        taking = next((run for run in reversed(waiting) if run.takes(line)), None)
        if taking is None:
            taking = _Run(shape, [])
            runs.append(taking)
            waiting = [*waiting[1 - _OPEN :], taking]
        else:
            inner = waiting[waiting.index(taking) + 1 :]
            for run in inner:
                run.within = run.within or taking
            del waiting[-len(inner) or len(waiting) :]
        taking.lines.append(line)
    for run in runs:
        run.depth = run.within.depth + 1 if run.within else 0
        yield run


def _marks(text: str, run: _Run) -> Iterator[Mark]:
    """Yield the marks of a run; none if it is no run, or its texts are too short to be sections."""
    kind, size, sign = run.shape
    first, last = run.lines[0], run.lines[-1]
    is_title = 2 * sum(line.is_title for line in run.lines) > len(run.lines)
    numbered = kind == "figures" and sign == "."
    if kind in _STARTS and first.numbers[0] > _STARTS[kind]:
        return  # initials of names
    if len(run.lines) == 1 and (not numbered or first.numbers != (1,) or is_title):
        return
    if is_title:
        for line in run.lines if not _is_list(text, run) else []:
            title = title_of(text, line.start, line.end)
            yield Mark(line.start, line.end, title, NUMBERED_TITLE, family=f"{run.shape}{run.depth}")
        return
    if _mean_chars(run) < (_LEAST_PARAGRAPH if numbered else _LEAST_ITEM):
        return
    rank = (PARAGRAPH if numbered else ITEM + 10 * _ORDER.index(kind)) + min(size - 1 + run.depth, 9)
    for line in run.lines:
        title = title_of(text, line.start, line.end, TITLE_CHARS)
        line_end = line.end if line is last and not line.is_title else 0
        yield Mark(line.start, line.number_end, title, rank, "number", line_end=line_end)


def _is_list(text: str, run: _Run) -> bool:
    """Tell whether short lines follow one another without text below them."""
    bare = sum(not text[line.end : after.start].strip(' \n\t«"“') for line, after in pairwise(run.lines))
    return 2 * bare > len(run.lines) - 1


def _mean_chars(run: _Run) -> float:
    first, last = run.lines[0], run.lines[-1]
    between = last.start - first.start
    return (between + last.end - last.start) / len(run.lines)
