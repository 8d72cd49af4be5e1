"""Split an answer into sentences, quotations and what each claims."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Literal, NamedTuple

from legal_rag.base.text import Span
from legal_rag.citations.facts import FIGURE, Fact, find_facts
from legal_rag.citations.plain import line_end
from legal_rag.citations.wording import CONTENT_WORD, cues_of
from legal_rag.law.sentences import split_sentences

QUOTATION_MARK = re.compile(r"[«»“”‹›\"]|\n[^\S\n]*\n")
_REOPENS = re.compile(r"\s*«")
SINGLE_MARK = re.compile(r"(?<![\w’'])[‘'](?=\S)|(?<=\S)[’'](?!\w)|\n")
_ELIDED = re.compile(
    r"(?:\A|(?<![\w]))(?:[ldnscjmt]|(?:jus|lors|puis|quoi)?qu)\Z", re.IGNORECASE
)  # "d' opter" in careless typing
QUOTATION_ENDS = '«»“”‹›" \u00a0\u202f.!?…'
GOES_ON = re.compile(r"[*_ \u00a0\u202f]*(?:[.,;:!?)\]]|[a-zà-ÿ])")  # after a quotation: its full stop ends no sentence
CLOSING_MARKS = {"«": "»", "“": "”", "‹": "›"}
ANALYSIS = re.compile(r"\[\s*analy(?:sis|se)\s*\]", re.IGNORECASE)
QUOTED_WORDS = 2  # content words that a quotation needs to support its sentence: « une » proves nothing
CUT = re.compile(r"\[[ ]{0,3}(?:\.{3}|…)[ ]{0,3}\]|\([ ]{0,3}(?:\.{3}|…)[ ]{0,3}\)")
SIC = re.compile(r"[ ]?[\[(][ ]?sic[ ]?[\])]")
CHANGED_LETTER = re.compile(r"\[([^\W\d_])\](?=[^\W\d_])")
# What an editor puts for a pronoun, or adds to one: "[le salarié]"; not a name such as "[X]", nor a word that denies.
INSERTION = re.compile(
    r"\[(?P<words>(?:(?:l|d|qu)['’]|(?:le|la|les|une?|ce|cet|cette|ces|son|sa|ses|leurs?|du|de|des|aux?|ils?|elles?|dudit|ladite|ledit)[ ])[^\W\d_]"
    r"[^\[\]\d]{0,58}|ils?|elles?|celui-ci|celle-ci|ceux-ci|celles-ci)\]"
)
BRACKETS = re.compile(r"\[(?!\s{0,3}(?:\.{3}|…)\s{0,3}\])[^\[\]\n]{1,80}\]")  # any words of an editor, not an ellipsis
BARE_CUT = re.compile(r"(?<![A-ZÀ-Ý.])(?:\.{3}|…)")  # "X..." is a name
STOPS = ".,;:!? \u00a0\u202f…"
QUOTED_BLANKS = " \u00a0\u202f\t\n"
INSERTED_WORDS = 6

Join = Literal["cut", "insertion", "nothing"]  # what stands between two parts of a quotation


class Quotation(NamedTuple):
    """What an answer gives as a document's own words."""

    start: int  # characters, marks included
    end: int
    text: str  # between the marks


class ClaimPart(NamedTuple):
    """Contiguous words of a quotation, and what follows them."""

    text: str
    then: Join = "nothing"


class Claim(NamedTuple):
    """A sentence, or the part of one that a marker covers, and what can be checked in it."""

    start: int  # characters
    end: int
    text: str
    quotations: list[Quotation]
    facts: list[Fact]  # outside the quotations
    lead: str = ""  # what its sentence says before it, cut off by another marker, where it says nothing but quotations
    is_pointed: bool = False  # its quotations were written for it: they must say all that it says

    @property
    def own_words(self) -> "Claim":
        """The claim without quotations: what it says itself, or else its lead."""
        if self.lead:
            return self._replace(text=self.lead, quotations=[], facts=[])
        return self._replace(text=self.masked, quotations=[])

    @property
    def quotes(self) -> bool:
        """Whether one of its quotations is long enough to support it."""
        return any(is_evidence(quotation) for quotation in self.quotations)

    def only(self, kept: Container["Quotation"]) -> "Claim":
        """Return the claim with some of its quotations, the others blank."""
        others = (quote for quote in self.quotations if quote not in kept)
        return self._replace(
            text=blanked(self.text, map(self._place_of, others)),
            quotations=[quote for quote in self.quotations if quote in kept],
        )

    @property
    def masked(self) -> str:
        """The claim's text at the same length, its quotations blank except for their marks."""
        return blanked(
            self.text, map(self._place_of, self.quotations), lambda length: f"“{' ' * (length - 2)}”"[:length]
        )

    def _place_of(self, quotation: Quotation) -> Span:
        return max(quotation.start - self.start, 0), min(quotation.end - self.start, len(self.text))


def blanked(text: str, spans: Iterable[Span], filling: Callable[[int], str] = lambda length: " " * length) -> str:
    """Replace spans, in order, by a filling of the same length; where two overlap, the second by the rest of it."""
    pieces, done = [], 0
    for start, end in spans:
        if end > max(start, done):
            pieces += [text[done:start], filling(end - max(start, done))]
            done = end
    return "".join([*pieces, text[done:]])


class AnswerText:
    """An answer's plain text, parsed once: its sentences, quotations, facts and analyses."""

    def __init__(self, plain: str) -> None:
        self.plain = plain
        self.quotations = find_quotations(plain)
        self.facts = find_facts(blanked(plain, _spans(self.quotations), lambda length: "¤" * length))
        self.sentences = _join_dashed(plain, split_sentences(_masked_for_sentences(plain, self.quotations)))
        self._quotation_starts = [quotation.start for quotation in self.quotations]
        self._quotation_ends = [quotation.end for quotation in self.quotations]
        self._fact_starts = [fact.start for fact in self.facts]
        words = (match.start() for match in CONTENT_WORD.finditer(plain))
        self._content_starts = sorted({*words, *self._quotation_starts, *self._fact_starts})  # offsets of content
        self._analyses = [(match.start(), line_end(plain, match.end())) for match in ANALYSIS.finditer(plain)]

    def sentence_at(self, offset: int) -> int:
        """Return the number of the sentence that a marker at `offset` belongs to, also right after its full stop."""
        before = bisect_left(self._content_starts, offset)
        last = self._content_starts[before - 1] if before else 0
        return max(bisect_right(self.sentences, (last, len(self.plain))) - 1, 0)

    def claim(self, start: int, end: int) -> Claim:
        """Return what a span of the text claims; a quotation begun before it is clipped to it."""
        first, last = bisect_right(self._quotation_ends, start), bisect_left(self._quotation_starts, end)
        quotations = [cut for quote in self.quotations[first:last] if (cut := self._clip(quote, start, end))]
        facts = self.facts[bisect_left(self._fact_starts, start) : bisect_left(self._fact_starts, end)]
        return Claim(start, end, self.plain[start:end], quotations, facts)

    def is_analysis(self, offset: int) -> bool:
        """Is `offset` in text marked as analysis, which goes to the end of its line?"""
        number = bisect_right(self._analyses, (offset, len(self.plain))) - 1
        return number >= 0 and offset < self._analyses[number][1]

    def says_something(self, start: int, end: int) -> bool:
        """Is there more than blanks, signs and short words between two offsets?"""
        return bisect_left(self._content_starts, start) < bisect_left(self._content_starts, end)

    def begins_line(self, offset: int) -> bool:
        """Does an offset begin, list signs apart, a line with content after it?"""
        start = self.plain.rfind("\n", 0, offset) + 1
        return not self.says_something(start, offset) and self.says_something(offset, line_end(self.plain, offset))

    def _clip(self, quotation: Quotation, start: int, end: int) -> Quotation | None:
        if start <= quotation.start:  # the rest of a quotation after a marker is attributed to the source too
            return quotation
        piece = self.plain[max(start, quotation.start) : min(end, quotation.end)]
        text = piece.strip('«»“”"' + QUOTED_BLANKS)
        return Quotation(max(start, quotation.start), min(end, quotation.end), text) if text else None


def find_quotations(text: str) -> list[Quotation]:
    """Return the outermost quotations; one left open goes to the end of its paragraph.

    Paired marks may hold paragraphs; straight ones may not. Single marks count where they cannot be apostrophes, and
    close in their line.
    """
    quotations = _in_double_marks(text)
    rest = blanked(text, _spans(quotations))
    if "‘" in rest or "'" in rest:
        quotations = sorted([*quotations, *_in_single_marks(rest)])
    return quotations


def _in_double_marks(text: str) -> list[Quotation]:
    quotations: list[Quotation] = []
    opened: list[tuple[str, int]] = []  # the expected closing mark, and where the quotation begins
    tokens = list(QUOTATION_MARK.finditer(text))
    for match, closes in zip(tokens, _next_closing(tokens), strict=True):
        mark = match.group()
        if mark in CLOSING_MARKS:
            if opened and mark == "«" and not text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip():
                continue  # each paragraph of a quotation repeats its opening mark
            opened.append((CLOSING_MARKS[mark], match.start()))
        elif mark[0] == "\n":
            if opened and _REOPENS.match(text, match.end()) and opened[0][0] == "»":
                continue
            if opened and closes.get(opened[0][0]) is not True:
                quotations.append(_make_quotation(text, opened[0][1], match.start()))
                opened = []
        elif opened and opened[-1][0] == mark:
            _, start = opened.pop()
            if not opened:
                quotations.append(_make_quotation(text, start, match.end()))
        elif mark == '"' and not opened:
            opened.append((mark, match.start()))
    return [*quotations, _make_quotation(text, opened[0][1], len(text))] if opened else quotations


def _next_closing(tokens: Sequence[re.Match[str]]) -> list[dict[str, bool]]:
    """Map, for each token, each closing mark to whether the next mark of its pair is a closing one."""
    answers: list[dict[str, bool]] = []
    state: dict[str, bool] = {}
    for token in reversed(tokens):
        answers.append(state)
        opens = CLOSING_MARKS.get(token.group())
        if opens or token.group() in CLOSING_MARKS.values():
            state = {**state, opens or token.group(): opens is None}
    return answers[::-1]


def _in_single_marks(text: str) -> Iterator[Quotation]:
    start = -1
    for match in SINGLE_MARK.finditer(text):
        mark = match.group()
        if mark == "\n":
            start = -1
        elif (
            start < 0
            and text[match.end() : match.end() + 1].strip()
            and not text[max(match.start() - 1, 0) : match.start()].isalnum()
        ):
            start = match.start()
        elif start >= 0 and " " in text[start : match.start()] and not _ELIDED.search(text, start + 1, match.start()):
            yield _make_quotation(text, start, match.end())
            start = -1


@lru_cache(1024)
def readings_of(quotation: str) -> list[list[ClaimPart]]:
    """Return the ways to read what a quotation quotes, the most literal first: each its parts in order.

    A letter in brackets is the text's own; other words in brackets are the editor's, unless they occur in the text. A
    final full stop may be the answer's, as in French typography, and is dropped; dots inside a quotation may be too, and
    then mark an omission.
    """
    plain = CHANGED_LETTER.sub(r"\1", SIC.sub("", quotation))
    cut = _split_parts([ClaimPart(plain)], CUT, "cut")
    inserted = _split_parts(cut, INSERTION, "insertion")
    readings = map(_strip_stops, ([ClaimPart(quotation)], cut, inserted, _split_parts(inserted, BARE_CUT, "cut")))
    return [reading for reading, _ in groupby(readings) if reading]


def edited_reading(quotation: str) -> list[ClaimPart]:
    """Return the parts of a quotation if all words in brackets are an editor's, in place of the text's own."""
    return _strip_stops([ClaimPart(piece, "insertion") for piece in BRACKETS.split(quotation)])


def _split_parts(parts: Iterable[ClaimPart], pattern: re.Pattern[str], join: Join) -> list[ClaimPart]:
    """Cut parts where a pattern matches; an insertion that changes the meaning stays in its part."""
    pieces: list[ClaimPart] = []
    for part in parts:
        done = 0
        for match in pattern.finditer(part.text):
            if join == "insertion" and (len(match["words"].split()) > INSERTED_WORDS or cues_of(match["words"])):
                continue
            pieces.append(ClaimPart(part.text[done : match.start()], join))
            done = match.end()
        pieces.append(ClaimPart(part.text[done:], part.then))
    return pieces


def _strip_stops(parts: Sequence[ClaimPart]) -> list[ClaimPart]:
    stripped = [part._replace(text=part.text.strip(QUOTED_BLANKS + "…")) for part in parts]
    filled = [part for part in [*stripped[:-1], ClaimPart(stripped[-1].text.rstrip(STOPS))] if part.text]
    return [*filled[:-1], ClaimPart(filled[-1].text)] if filled else []


@lru_cache(4096)
def is_evidence(quotation: Quotation) -> bool:
    """Is a quotation long enough to support a sentence if a text has it?"""
    words = len(CONTENT_WORD.findall(quotation.text))
    return words >= QUOTED_WORDS or (words > 0 and FIGURE.search(quotation.text) is not None)


def _make_quotation(text: str, start: int, end: int) -> Quotation:
    inner_end = end - 1 if end > start + 1 and text[end - 1] in "»”›\"’'" else end
    return Quotation(start, end, text[start + 1 : inner_end].strip(QUOTED_BLANKS))


def _join_dashed(text: str, sentences: Iterable[Span]) -> list[Span]:
    """Join a sentence to the previous one where a dash continues the line: "Article 1er. - La requête…"."""
    joined: list[Span] = []
    for start, end in sentences:
        goes_on = joined and text[start : start + 1] in "-–—" and "\n" not in text[joined[-1][0] : start]
        joined.append((joined.pop()[0] if goes_on else start, end))
    return joined


def _spans(quotations: Iterable[Quotation]) -> Iterator[Span]:
    return ((start, end) for start, end, _ in quotations)


def _masked_for_sentences(text: str, quotations: Iterable[Quotation]) -> str:
    """Mask quotations at the same length, so that no sentence ends within one unless both end."""
    goes_on = ((start + 1, end, GOES_ON.match(text, end)) for start, end in _spans(quotations))
    spans = (
        (start, end if within else start + len(text[start:end].rstrip(QUOTATION_ENDS)))
        for start, end, within in goes_on
    )
    return blanked(text, spans, lambda length: "x" * length).replace(";", ",")
