"""Split an answer into sentences, quotations and what each claims."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from legal_rag.citations.facts import FIGURE, Fact, find_facts
from legal_rag.corpus.sentences import split_sentences

QUOTATION_MARK = re.compile(r"[«»“”‹›\"]|\n[^\S\n]*\n")
QUOTATION_ENDS = '«»“”‹›" \u00a0\u202f.!?…'
GOES_ON = re.compile(r"[*_ \u00a0\u202f]*(?:[.,;:!?)\]]|[a-zà-ÿ])")  # behind a quotation: its stop ends no sentence
CLOSING_MARKS = {"«": "»", "“": "”", "‹": "›"}
CONTENT_WORD = re.compile(r"[^\W\d_]{4,}")  # shorter words are mostly grammar
ANALYSIS = re.compile(r"\[\s*analy(?:sis|se)\s*\]", re.IGNORECASE)
ENUMERATOR = re.compile(r"^[^\S\n]*(?:#{1,6}[^\S\n]+)?(?:[-*•–][^\S\n]+)?\**\(?\d{1,2}\s?[.)°](?=\s|\*)", re.MULTILINE)
QUOTED_WORDS = 2  # content words that a quotation needs to bear out its sentence: « une » proves nothing
# What a quotation leaves out: [...], (…). Other words in brackets are not the document's, or its own: M. [X].
CUT = re.compile(r"\[[ \u00a0]{0,3}(?:\.{3}|…|sic)[ \u00a0]{0,3}\]|\([ \u00a0]{0,3}(?:\.{3}|…)[ \u00a0]{0,3}\)")
CHANGED_LETTER = re.compile(r"\[([^\W\d_])\](?=[^\W\d_])")
BARE_CUT = re.compile(r"(?<![A-ZÀ-Ý.])(?:\.{3}|…)")  # "X..." is a name
STOPS = ".,;:!? \u00a0\u202f…"
QUOTED_BLANKS = " \u00a0\u202f\t\n"


class Quotation(NamedTuple):
    """What an answer gives as a document's own words."""

    start: int  # characters, marks included
    end: int
    text: str  # between the marks


class Claim(NamedTuple):
    """A sentence, or the part of one that a marker vouches for, and what in it can be checked."""

    start: int  # characters
    end: int
    text: str
    quotations: list[Quotation]
    facts: list[Fact]

    @property
    def anchors(self) -> list["Quotation | Fact"]:
        """What must stand in a source as it is."""
        return [*self.quotations, *self.facts]

    @property
    def is_checkable(self) -> bool:
        """Whether it holds anything that must stand in a source word for word, or figure for figure."""
        return bool(self.quotations or self.facts)


class AnswerText:
    """An answer's plain text, read once: its sentences, quotations, facts, and where it analyses."""

    def __init__(self, plain: str) -> None:
        self.plain = plain
        self.quotations = find_quotations(plain)
        self.facts = find_facts(_masked_for_facts(plain, self.quotations))
        self.sentences = split_sentences(_masked_for_sentences(plain, self.quotations))
        self._quotation_starts = [one.start for one in self.quotations]
        self._quotation_ends = [one.end for one in self.quotations]
        self._fact_starts = [one.start for one in self.facts]
        words = (match.start() for match in CONTENT_WORD.finditer(plain))
        self._said = sorted({*words, *self._quotation_starts, *self._fact_starts})  # where anything is
        self._analyses = [(match.start(), _line_end(plain, match.end())) for match in ANALYSIS.finditer(plain)]

    def sentence_at(self, offset: int) -> int:
        """Return the number of the sentence that a marker at `offset` belongs to: one after a full stop ends it."""
        before = bisect_left(self._said, offset)
        said = self._said[before - 1] if before else 0
        return max(bisect_right(self.sentences, (said, len(self.plain))) - 1, 0)

    def claim(self, start: int, end: int) -> Claim:
        """Return what a span of the text claims; a quotation that it cuts counts as far as it goes."""
        first, last = bisect_right(self._quotation_ends, start), bisect_left(self._quotation_starts, end)
        quotations = [cut for one in self.quotations[first:last] if (cut := self._cut(one, start, end))]
        facts = self.facts[bisect_left(self._fact_starts, start) : bisect_left(self._fact_starts, end)]
        return Claim(start, end, self.plain[start:end], quotations, facts)

    def is_analysis(self, offset: int) -> bool:
        """Tell whether what stands at `offset` is marked as analysis, to the end of its line."""
        number = bisect_right(self._analyses, (offset, len(self.plain))) - 1
        return number >= 0 and offset < self._analyses[number][1]

    def says_something(self, start: int, end: int) -> bool:
        """Tell whether there is more than blanks, signs and small words between two places."""
        return bisect_left(self._said, start) < bisect_left(self._said, end)

    def begins_line(self, offset: int) -> bool:
        """Tell whether a place is the first of a line that goes on, list signs apart."""
        start = self.plain.rfind("\n", 0, offset) + 1
        return not self.says_something(start, offset) and self.says_something(offset, _line_end(self.plain, offset))

    def _cut(self, one: Quotation, start: int, end: int) -> Quotation | None:
        if start <= one.start:  # what stands in the same quotation behind a marker was said of the source too
            return one
        piece = self.plain[max(start, one.start) : min(end, one.end)]
        text = piece.strip('«»“”"' + QUOTED_BLANKS)
        return Quotation(max(start, one.start), min(end, one.end), text) if text else None


def find_quotations(text: str) -> list[Quotation]:
    """Return the outermost quotations; one left open goes to the end of its paragraph.

    Guillemets may hold paragraphs; straight marks, which open and close alike, do not.
    """
    found: list[Quotation] = []
    opened: list[tuple[str, int]] = []  # the closing mark awaited, and where the quotation begins
    tokens = list(QUOTATION_MARK.finditer(text))
    closes_next = _closes_next(tokens)
    for match, goes_on in zip(tokens, closes_next, strict=True):
        mark = match.group()
        if mark in CLOSING_MARKS:
            opened.append((CLOSING_MARKS[mark], match.start()))
        elif mark[0] == "\n":
            if opened and not (opened[0][0] == "»" and goes_on):
                found.append(_quotation(text, opened[0][1], match.start()))
                opened = []
        elif opened and opened[-1][0] == mark:
            _, start = opened.pop()
            if not opened:
                found.append(_quotation(text, start, match.end()))
        elif mark == '"' and not opened:
            opened.append((mark, match.start()))
    return [*found, _quotation(text, opened[0][1], len(text))] if opened else found


@lru_cache(1024)
def readings_of(quotation: str) -> list[list[str]]:
    """Return the ways to read what a quotation quotes, the most literal first: each its parts, in order, between cuts.

    A letter in brackets is the text's own. A stop at the very end may be the answer's, as French typography has it, and
    is left out; so may dots in its midst be, which then stand for what was left out.
    """
    parts = _said(CUT.split(CHANGED_LETTER.sub(r"\1", quotation)))
    readings = [_without_stop([quotation]), _without_stop(parts)]
    readings.append(_said(piece for part in readings[-1] for piece in BARE_CUT.split(part)))
    return [one for number, one in enumerate(readings) if one and one not in readings[:number]]


def _without_stop(parts: Sequence[str]) -> list[str]:
    return _said([*parts[:-1], parts[-1].rstrip(STOPS)]) if parts else []


def content_words(text: str) -> list[str]:
    """Return the words of four letters and more, folded in case."""
    return [word.casefold() for word in CONTENT_WORD.findall(text)]


def is_evidence(quotation: Quotation) -> bool:
    """Tell whether a quotation is long enough to bear out a sentence by standing in a text."""
    return _proves(quotation.text)


@lru_cache(1024)
def _proves(quoted: str) -> bool:
    words = len(CONTENT_WORD.findall(quoted))
    return words >= QUOTED_WORDS or (words > 0 and FIGURE.search(quoted) is not None)


def _said(parts: Iterable[str]) -> list[str]:
    return [stripped for part in parts if (stripped := part.strip(QUOTED_BLANKS + "…"))]


def _closes_next(tokens: Sequence[re.Match[str]]) -> list[bool]:
    """Tell of each token whether the next guillemet after it closes a quotation."""
    answers, closes = [False] * len(tokens), False
    for number in range(len(tokens) - 1, -1, -1):
        answers[number] = closes
        if tokens[number].group() in "«»":
            closes = tokens[number].group() == "»"
    return answers


def _quotation(text: str, start: int, end: int) -> Quotation:
    inner_end = end - 1 if end > start + 1 and text[end - 1] in '»”›"' else end
    return Quotation(start, end, text[start + 1 : inner_end].strip(QUOTED_BLANKS))


def _masked_for_facts(text: str, quotations: Sequence[Quotation]) -> str:
    """Return a text as long, without its quotations and the numbers of its lists."""
    pieces, end = [], 0
    for start, stop, _ in quotations:
        pieces += [text[end:start], " " * (stop - start)]
        end = stop
    masked = "".join([*pieces, text[end:]])
    return ENUMERATOR.sub(lambda match: " " * len(match.group()), masked)


def _masked_for_sentences(text: str, quotations: Sequence[Quotation]) -> str:
    """Return a text as long in which sentences end where the answer's do: not within a quotation, unless both end."""
    pieces, end = [], 0
    for start, stop, _ in quotations:
        quoted = text[start + 1 : stop]
        inside = len(quoted) if GOES_ON.match(text, stop) else len(quoted.rstrip(QUOTATION_ENDS))
        pieces += [text[end : start + 1], "x" * inside, quoted[inside:]]
        end = stop
    return "".join([*pieces, text[end:]]).replace(";", ",")


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end
