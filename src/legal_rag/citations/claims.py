"""Split an answer into sentences, quotations and what each claims."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from legal_rag.citations.facts import FIGURE, Fact, find_facts
from legal_rag.citations.plain import line_end
from legal_rag.citations.wording import CONTENT_WORD, cues_of
from legal_rag.corpus.sentences import split_sentences

QUOTATION_MARK = re.compile(r"[«»“”‹›\"]|\n[^\S\n]*\n")
_REOPENS = re.compile(r"\s*«")
SINGLE_MARK = re.compile(r"(?<![\w’'])[‘'](?=\S)|(?<=\S)[’'](?!\w)|\n")
_ELIDED = re.compile(
    r"(?:\A|(?<![\w]))(?:[ldnscjmt]|(?:jus|lors|puis|quoi)?qu)\Z", re.IGNORECASE
)  # "d' opter" in careless typing
QUOTATION_ENDS = '«»“”‹›" \u00a0\u202f.!?…'
GOES_ON = re.compile(r"[*_ \u00a0\u202f]*(?:[.,;:!?)\]]|[a-zà-ÿ])")  # behind a quotation: its stop ends no sentence
CLOSING_MARKS = {"«": "»", "“": "”", "‹": "›"}
ANALYSIS = re.compile(r"\[\s*analy(?:sis|se)\s*\]", re.IGNORECASE)
QUOTED_WORDS = 2  # content words that a quotation needs to bear out its sentence: « une » proves nothing
CUT = re.compile(r"\[[ ]{0,3}(?:\.{3}|…)[ ]{0,3}\]|\([ ]{0,3}(?:\.{3}|…)[ ]{0,3}\)")
SIC = re.compile(r"[ ]?[\[(][ ]?sic[ ]?[\])]")
CHANGED_LETTER = re.compile(r"\[([^\W\d_])\](?=[^\W\d_])")
# What an editor puts for a pronoun, or adds to one: "[le salarié]"; not a name such as "[X]", nor a word that denies.
INSERTION = re.compile(
    r"\[(?P<words>(?:(?:l|d|qu)['’]|(?:le|la|les|une?|ce|cet|cette|ces|son|sa|ses|leurs?|du|de|des|aux?|ils?|elles?|dudit|ladite|ledit)[ ])[^\W\d_]"
    r"[^\[\]\d]{0,58}|ils?|elles?|celui-ci|celle-ci|ceux-ci|celles-ci)\]"
)
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


class Part(NamedTuple):
    """Words of a quotation that stand together, and what follows them."""

    text: str
    then: Join = "nothing"


class Claim(NamedTuple):
    """A sentence, or the part of one that a marker vouches for, and what in it can be checked."""

    start: int  # characters
    end: int
    text: str
    quotations: list[Quotation]
    facts: list[Fact]  # outside the quotations

    @property
    def quotes(self) -> bool:
        """Whether a quotation of it is long enough to bear it out."""
        return any(is_evidence(one) for one in self.quotations)

    def only(self, kept: Container["Quotation"]) -> "Claim":
        """Return the claim with some of its quotations, the others blank."""
        others = [one for one in self.quotations if one not in kept]
        moved = [
            one._replace(start=max(one.start - self.start, 0), end=min(one.end, self.end) - self.start)
            for one in others
        ]
        return self._replace(
            text=_without(self.text, moved), quotations=[one for one in self.quotations if one in kept]
        )

    @property
    def masked(self) -> str:
        """The claim's words as long as they are, its quotations blank but for their marks."""
        pieces, done = [], self.start
        for one in self.quotations:
            start, end = max(one.start, done), min(one.end, self.end)
            pieces += [
                self.text[done - self.start : start - self.start],
                f"“{' ' * (end - start - 2)}”" if end > start + 1 else "",
            ]
            done = max(done, end)
        return "".join([*pieces, self.text[done - self.start :]])


class AnswerText:
    """An answer's plain text, read once: its sentences, quotations, facts, and where it analyses."""

    def __init__(self, plain: str) -> None:
        self.plain = plain
        self.quotations = find_quotations(plain)
        self.facts = find_facts(_without(plain, self.quotations, "¤"))
        self.sentences = list(_joined(plain, split_sentences(_masked_for_sentences(plain, self.quotations))))
        self._quotation_starts = [one.start for one in self.quotations]
        self._quotation_ends = [one.end for one in self.quotations]
        self._fact_starts = [one.start for one in self.facts]
        words = (match.start() for match in CONTENT_WORD.finditer(plain))
        self._said = sorted({*words, *self._quotation_starts, *self._fact_starts})  # where anything is
        self._analyses = [(match.start(), line_end(plain, match.end())) for match in ANALYSIS.finditer(plain)]

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
        return not self.says_something(start, offset) and self.says_something(offset, line_end(self.plain, offset))

    def _cut(self, one: Quotation, start: int, end: int) -> Quotation | None:
        if start <= one.start:  # what stands in the same quotation behind a marker was said of the source too
            return one
        piece = self.plain[max(start, one.start) : min(end, one.end)]
        text = piece.strip('«»“”"' + QUOTED_BLANKS)
        return Quotation(max(start, one.start), min(end, one.end), text) if text else None


def find_quotations(text: str) -> list[Quotation]:
    """Return the outermost quotations; one left open goes to the end of its paragraph.

    Marks that open or close may hold paragraphs; straight ones, which do both, do not. Single marks count where they
    cannot be apostrophes, and close in their line.
    """
    found = _in_double_marks(text)
    rest = _without(text, found) if found else text
    if "‘" in rest or "'" in rest:
        found = sorted([*found, *_in_single_marks(rest)])
    return found


def _in_double_marks(text: str) -> list[Quotation]:
    found: list[Quotation] = []
    opened: list[tuple[str, int]] = []  # the closing mark awaited, and where the quotation begins
    tokens = list(QUOTATION_MARK.finditer(text))
    for match, closes in zip(tokens, _next_closing(tokens), strict=True):
        mark = match.group()
        if mark in CLOSING_MARKS:
            if opened and mark == "«" and not text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip():
                continue  # each paragraph of a quotation opens anew
            opened.append((CLOSING_MARKS[mark], match.start()))
        elif mark[0] == "\n":
            if opened and _REOPENS.match(text, match.end()) and opened[0][0] == "»":
                continue
            if opened and closes.get(opened[0][0]) is not True:
                found.append(_quotation(text, opened[0][1], match.start()))
                opened = []
        elif opened and opened[-1][0] == mark:
            _, start = opened.pop()
            if not opened:
                found.append(_quotation(text, start, match.end()))
        elif mark == '"' and not opened:
            opened.append((mark, match.start()))
    return [*found, _quotation(text, opened[0][1], len(text))] if opened else found


def _next_closing(tokens: Sequence[re.Match[str]]) -> list[dict[str, bool]]:
    """Tell of each token, by closing mark, whether the next mark of its pair behind it closes a quotation."""
    answers: list[dict[str, bool]] = [{}] * len(tokens)
    state: dict[str, bool] = {}
    for number in range(len(tokens) - 1, -1, -1):
        answers[number] = state
        mark = tokens[number].group()
        if closing := CLOSING_MARKS.get(mark):
            state = {**state, closing: False}
        elif mark in CLOSING_MARKS.values():
            state = {**state, mark: True}
    return answers


def _in_single_marks(text: str) -> Iterator[Quotation]:
    start = -1
    for match in SINGLE_MARK.finditer(text):
        mark = match.group()
        if mark == "\n":
            start = -1
        elif (
            start < 0
            and text[match.end() : match.end() + 1].strip()
            and not text[match.start() - 1 : match.start()].isalnum()
        ):
            start = match.start()
        elif start >= 0 and " " in text[start : match.start()] and not _ELIDED.search(text, start + 1, match.start()):
            yield _quotation(text, start, match.end())
            start = -1


@lru_cache(1024)
def readings_of(quotation: str) -> list[list[Part]]:
    """Return the ways to read what a quotation quotes, the most literal first: each its parts in order.

    A letter in brackets is the text's own; other words in brackets are the editor's, unless they stand in the text. A
    stop at the very end may be the answer's, as French typography has it, and is left out; so may dots in its midst be,
    which then stand for what was left out.
    """
    plain = CHANGED_LETTER.sub(r"\1", SIC.sub("", quotation))
    cut = _split([Part(plain)], CUT, "cut")
    readings = [_without_stop([Part(quotation)]), _without_stop(cut)]
    inserted = _split(cut, INSERTION, "insertion")
    readings.append(_without_stop(inserted))
    readings.append(_without_stop(_split(inserted, BARE_CUT, "cut")))
    return [one for number, one in enumerate(readings) if one and one not in readings[:number]]


def _split(parts: Iterable[Part], pattern: re.Pattern[str], join: Join) -> list[Part]:
    """Cut parts where a pattern matches; an insertion that turns the meaning stays in its part."""
    pieces: list[Part] = []
    for part in parts:
        done = 0
        for match in pattern.finditer(part.text):
            if join == "insertion" and (len(match["words"].split()) > INSERTED_WORDS or cues_of(match["words"])):
                continue
            pieces.append(Part(part.text[done : match.start()], join))
            done = match.end()
        pieces.append(Part(part.text[done:], part.then))
    return pieces


def _without_stop(parts: Sequence[Part]) -> list[Part]:
    stripped = [one._replace(text=one.text.strip(QUOTED_BLANKS + "…")) for one in parts]
    if stripped:
        stripped[-1] = Part(stripped[-1].text.rstrip(STOPS))
    said = [one for one in stripped if one.text]
    return [*said[:-1], Part(said[-1].text)] if said else []


@lru_cache(4096)
def is_evidence(quotation: Quotation) -> bool:
    """Tell whether a quotation is long enough to bear out a sentence by standing in a text."""
    words = len(CONTENT_WORD.findall(quotation.text))
    return words >= QUOTED_WORDS or (words > 0 and FIGURE.search(quotation.text) is not None)


def _quotation(text: str, start: int, end: int) -> Quotation:
    inner_end = end - 1 if end > start + 1 and text[end - 1] in "»”›\"’'" else end
    return Quotation(start, end, text[start + 1 : inner_end].strip(QUOTED_BLANKS))


def _joined(text: str, sentences: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Join a sentence to the one before where a dash within the line goes on: "Article 1er. - La requête…"."""
    last: tuple[int, int] | None = None
    for start, end in sentences:
        if last and text[start : start + 1] in "-–—" and "\n" not in text[last[0] : start]:
            last = (last[0], end)
            continue
        if last:
            yield last
        last = (start, end)
    if last:
        yield last


def _without(text: str, quotations: Sequence[Quotation], filler: str = " ") -> str:
    pieces, end = [], 0
    for start, stop, _ in quotations:
        pieces += [text[end:start], filler * (stop - start)]
        end = stop
    return "".join([*pieces, text[end:]])


def _masked_for_sentences(text: str, quotations: Sequence[Quotation]) -> str:
    """Return a text as long in which sentences end where the answer's do: not within a quotation, unless both end."""
    pieces, end = [], 0
    for start, stop, _ in quotations:
        quoted = text[start + 1 : stop]
        inside = len(quoted) if GOES_ON.match(text, stop) else len(quoted.rstrip(QUOTATION_ENDS))
        pieces += [text[end : start + 1], "x" * inside, quoted[inside:]]
        end = stop
    return "".join([*pieces, text[end:]]).replace(";", ",")
