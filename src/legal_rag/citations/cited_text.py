"""A text as references are read in it: its sentences, courts, dates and numbers, and what it quotes."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from legal_rag.base.text import Span
from legal_rag.citations.claims import Quotation, find_quotations
from legal_rag.law import Identifier, find_dates, find_identifiers
from legal_rag.law.articles import find_texts
from legal_rag.law.courts import find_cited_courts, find_short_courts
from legal_rag.law.mentions import Pinpoint, find_mentions, find_pinpoints
from legal_rag.law.sentences import split_sentences
from legal_rag.law.statutes import find_statutes

DECISION = r"arr[êe]ts?|d[ée]cisions?|jugements?|ordonnances?|avis"  # what a decision is called; any case
# A line break inside a citation or before its code, as in a cell.
_UNFINISHED = re.compile(
    r"(?<=[,(])\n(?!\n)|(?<=\b(?:n°|du|le|la))\n(?!\n)|(?<=\b(?:de|et|au))\n(?!\n)|(?<=\bart\.)\n(?!\n)"
)
_MARKS = re.compile(r"[*_`~\\]")


class CitedText:
    """A text, parsed once; all offsets are its characters."""

    def __init__(self, text: str, quoted: Sequence[Span]) -> None:
        """Take a text, and the spans set off as quotations without marks of their own."""
        self.quotations = _with_blocks(find_quotations(text), text, quoted)
        self.plain = _UNFINISHED.sub(" ", _MARKS.sub(" ", text).replace("º", "°"))
        self.outside = _mask_quotations(self.plain, self.quotations)  # the text without what it quotes
        self.sentences = split_sentences(self.outside)
        self.dates = {date.start: date for date in find_dates(self.plain)}
        self.texts = find_texts(self.plain, list(self.dates.values()))  # statutes, codes, treaties
        self._quotation_starts = [quotation.start for quotation in self.quotations]
        self._date_starts = sorted(self.dates)
        self.statutes = find_statutes(self.plain, list(self.dates.values()), self.texts)
        named = {(one.start, one.end) for some in (self.texts, self.statutes) for one in some}
        self.days_of_texts = {day for span in named for day in self.days_in(*span)}
        self.names: dict[int, list[Identifier]] = {}  # of decisions
        self.articles: list[Identifier] = []
        for identifier in find_identifiers(self.plain):
            if identifier.kind == "article":
                self.articles.append(identifier)
            else:
                self.names.setdefault(identifier.start, []).append(identifier)
        for mention in find_mentions(self.plain):
            if mention.kind not in ("address", "jurisdata", "arrêt"):
                self.names.setdefault(mention.start, []).append(Identifier(*mention))
        self.points = [place for place in find_pinpoints(self.plain) if place.kind == "point"]
        self._point_starts = [place.start for place in self.points]
        self.courts = find_cited_courts(self.plain)
        self.short_courts = {start for start, _ in find_short_courts(self.plain)}
        self._court_starts = [start for start, _ in self.courts]
        self._named_starts = sorted(self.names)
        self._sentence_starts = [start for start, _ in self.sentences]

    def before(self, place: int, most: int) -> str:
        """Return the characters before a place, at most so many."""
        return self.plain[max(place - most, 0) : place]

    def sentence_at(self, place: int) -> int:
        """Return the number of the sentence that a place is in."""
        return max(bisect_right(self._sentence_starts, place) - 1, 0)

    def sentence_around(self, place: int, most: int) -> Span:
        """Return the sentence of a place, cut at `most` characters before and after it."""
        start, end = self.sentences[self.sentence_at(place)]
        return max(start, place - most), min(end, place + most)

    def in_quotation(self, place: int) -> bool:
        """Is a place inside a quotation?"""
        return self.outside[place : place + 1] != self.plain[place : place + 1]

    def quotation_behind(self, place: int, most: int) -> Quotation | None:
        """Return the first quotation that begins at most so many characters behind a place, in its sentence."""
        number = bisect_left(self._quotation_starts, place)
        near = self.quotations[number : number + 1]
        within = near and near[0].start <= min(place + most, self.sentences[self.sentence_at(max(place - 1, 0))][1])
        return near[0] if within else None

    def courts_in(self, start: int, end: int) -> list[Span]:
        """Return the courts that begin in a span."""
        return self.courts[bisect_left(self._court_starts, start) : bisect_left(self._court_starts, end)]

    def last_court(self, start: int, end: int) -> str:
        """Return the court that begins last in a span, as written; empty if there is none."""
        number = bisect_left(self._court_starts, end) - 1
        known = number >= 0 and self._court_starts[number] >= start
        return self.plain[slice(*self.courts[number])] if known else ""

    def days_in(self, start: int, end: int) -> list[int]:
        """Return where dates begin in a span."""
        return self._date_starts[bisect_left(self._date_starts, start) : bisect_left(self._date_starts, end)]

    def points_in(self, start: int, end: int) -> list[Pinpoint]:
        """Return the numbered paragraphs that are named in a span."""
        return self.points[bisect_left(self._point_starts, start) : bisect_left(self._point_starts, end)]

    def last_named(self, end: int) -> int:
        """Return where the last number of a decision begins before a place; -1 if there is none."""
        number = bisect_left(self._named_starts, end) - 1
        return self._named_starts[number] if number >= 0 else -1


def _with_blocks(quotations: Sequence[Quotation], text: str, blocks: Iterable[Span]) -> list[Quotation]:
    """Add what is set off as a quotation, unless most of it is in quotation marks of its own."""
    starts = [quotation.start for quotation in quotations]
    alone: list[Quotation] = []
    dropped: set[Quotation] = set()
    for start, end in blocks:
        inside = quotations[bisect_left(starts, start) : bisect_left(starts, end)]
        if 2 * sum(quotation.end - quotation.start for quotation in inside) < len(text[start:end].strip()):
            alone.append(Quotation(start, end, text[start:end]))
            dropped.update(inside)
    kept: list[Quotation] = []
    for quotation in sorted([*(quotation for quotation in quotations if quotation not in dropped), *alone]):
        if not kept or quotation.start >= kept[-1].end:  # of two that overlap, the first: blocks may be nested
            kept.append(quotation)
    return kept


def _mask_quotations(text: str, quotations: Iterable[Quotation]) -> str:
    """Replace quoted characters by a noncharacter; the length stays."""
    pieces, done = [], 0
    for start, end, _ in quotations:
        pieces += [
            text[done : start + 1],
            re.sub(r"[^\n]", "\ufdd0", text[start + 1 : end - 1]),
            text[max(start + 1, end - 1) : end],
        ]
        done = end
    return "".join([*pieces, text[done:]])
