"""Relevance: does a quotation speak of what its sentence says? By the words that both share, rare ones counting more."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property
from itertools import chain
from math import log

from legal_rag.base.text import Span, find_exact
from legal_rag.citations.claims import Claim, blanked
from legal_rag.citations.facts import Fact
from legal_rag.citations.sources import SourceText
from legal_rag.citations.wording import TABLES, content_stems, content_words, cues_of, is_grammar, is_shared
from legal_rag.law.courts import find_named_courts
from legal_rag.law.outcomes import REPORTED

# Chosen by the first half of the pairs of `benchmarks/relevance.py`.
ENOUGH = 0.6  # share of what a sentence says, by weight, that its quotation must hold
NEAREST, BY = 0.45, 0.1  # enough where no other place of the document holds as much, by this much more
IN_NEIGHBOUR = 0.5  # what a word counts that only a sentence next to the quotation has
UNKNOWN = 0.75  # weight of a word that the document does not have: perhaps a synonym of one
TOUCHED = (
    0.15  # of a paraphrase, that its passage must have: 94 of 100 honest ones have it, 8 of 100 beside other decisions
)
FACT = 2.0  # weight of a date, a sum, a number… that the quotation states too; others are checked as such
FEWEST_LEADING = 3  # words that lead into a quotation and say something: fewer name a subject, "Sur le bail, « … »"
ROOT = 6  # letters by which words are compared there
FAINT = 0.2  # share of a sentence that a passage shown beside it must hold
WINDOW = 200  # sentences before a quotation, and after it, with which it is compared

_VISA = re.compile(r"\W*(?:vus?\b|au vu\b|ensemble\b)", re.IGNORECASE)
_SEIZED = re.compile(r"\b(?:a été|est) saisie?\b", re.IGNORECASE)
# What one says of a part that proves nothing, beside its words: "la décision vise", "la seconde énonce".
_ABOUT_FORMAL = frozenset({*TABLES["of_answer"], "vise", "visa", "visent", "seconde"})
_TURNING = frozenset({"not", "except", "must", "maybe"})  # cues without which the same words say something else
# What a court decides upon, and how one says so; the outcome itself is checked as such.
_OF_OUTCOME = content_stems(
    "requête pourvoi recours appel protestation saisine élection opérations scrutin candidat inéligible déclare prononce"
)


class Topic:
    """What a claim says itself, and whether its quotations speak of it."""

    def __init__(self, claim: Claim, source: SourceText, places: Sequence[Span], facts: Sequence[Fact]) -> None:
        """Take a claim; where it quotes `source`; its facts that are not about the decision as such."""
        self._own, self._quotations = claim.own_words, claim.quotations
        self._source, self._places, self._facts = source, places, facts

    def is_spoken_of(self, *, is_sentence: bool) -> bool:
        """Is too little said, or do the quotations speak of it? `is_sentence`: it does not lead into them."""
        said = self.stems
        return len(said) < (1 if is_sentence else FEWEST_LEADING) or self._is_shared(said)

    @cached_property
    def is_formal(self) -> bool:
        """Whether all that is quoted beside something said proves nothing but its own words: visas, headings, parties…"""
        says_something = self._forms or cues_of(self._words) & _TURNING
        return bool(says_something) and all(map(self._is_formal_place, self._places))

    def _is_formal_place(self, place: Span) -> bool:
        paragraph = self._source.passage_at(place)
        if paragraph is None or paragraph.part is None:
            return False
        words = self._source.content[paragraph.start : paragraph.end]
        if paragraph.speaker == "text":
            return paragraph.part == "statement" or _VISA.match(words) is not None
        if paragraph.part == "statement" and _SEIZED.search(words):
            return True
        return paragraph.speaker is None or paragraph.part == "header"

    @cached_property
    def _words(self) -> str:
        """What is said, without facts and the names of courts, which are checked as such."""
        text = self._own.text
        facts = [(fact.start - self._own.start, fact.end - self._own.start) for fact in self._own.facts]
        return blanked(text, sorted([*find_named_courts(text), *facts]))

    @cached_property
    def _forms(self) -> set[str]:
        return _forms(self._words) - _ABOUT_FORMAL

    @cached_property
    def stems(self) -> frozenset[str]:
        """What is said, without what is known of the court, and the outcome."""
        stems = content_stems(self._words) - content_stems(self._source.own.court)
        outcomes = [match.group() for match in REPORTED.finditer(self._words.lower())]
        return stems - _OF_OUTCOME - content_stems(" ".join(outcomes)) if outcomes else stems

    def stands_there(self) -> bool:
        """Does all that is said stand in the sentences quoted, in the same forms of words?"""
        sentences = [self._source.sentence_around(place) for place in self._places]
        there = " ".join(self._source.content[slice(*span)] for span in sentences)
        if self._forms - _forms(there) or (cues_of(self._words) & _TURNING) - cues_of(there):
            return False
        return all(any(self._source.states(fact, *span) for span in sentences) for fact in self._facts)

    def is_touched(self, place: Span) -> bool:
        """Does a passage have some of the words that are said, or all that is stated?"""
        first, last = self._source.sentence_numbers(*place)
        begin = max(first - WINDOW, 0)
        sentences = self._source.stems_of_sentences(begin, last + WINDOW)
        weights = {stem: _weight(stem, sentences) for stem in self.stems}
        near = _union(sentences[max(first - begin - 1, 0) : last - begin + 1])
        stated = FACT * sum(self._source.states(fact, *place) for fact in self._facts)
        held = _held(weights, content_stems(self._source.content[slice(*place)]), near) + stated
        return held >= TOUCHED * (sum(weights.values()) + stated) and held > 0

    def _is_shared(self, said: Set[str]) -> bool:
        """Do the quotations hold enough of what is said, or more of it than any other place of the document?"""
        first, last = self._source.sentence_numbers(self._places[0][0], self._places[-1][1])
        begin = max(first - WINDOW, 0)
        sentences = self._source.stems_of_sentences(begin, last + WINDOW)
        numbers = (self._source.sentence_numbers(*place) for place in self._places)
        near = {number - begin for start, end in numbers for number in range(max(start - 1, 0), end + 1)}
        weights = {stem: _weight(stem, sentences) for stem in said}
        total = sum(weights.values())
        quoted = _union(content_stems(quotation.text) for quotation in self._quotations)
        held = _held(weights, quoted, _union(sentences[number] for number in near if 0 <= number < len(sentences)))
        stated = FACT * sum(any(self._source.states(fact, *place) for place in self._places) for fact in self._facts)
        if held + stated >= ENOUGH * (total + stated):
            return True
        others = (
            _held(weights, stems, _union(sentences[max(number - 1, 0) : number + 2]))
            for number, stems in enumerate(sentences)
            if number not in near
        )
        return held >= NEAREST * total and held >= max(others, default=0.0) + BY * total


def nearest_sentences(said: str, source: SourceText, most: int = 2) -> list[Span]:
    """Return at most `most` sentences of a document that share most of what is said, rare words counting more.

    One that holds less than `FAINT` of it, by weight, is none. Words are compared by their first letters: a document
    is searched in a fraction of a millisecond.
    """
    starts = [start for start, _ in source.sentence_spans]
    held: dict[int, float] = defaultdict(float)
    total = 0.0
    for beginning in {word[:ROOT] for word in content_words(said) if not is_grammar(word)}:
        places = (at for at, _ in find_exact(beginning, source.lower) if not source.lower[at - 1 : at].isalnum())
        having = {bisect_right(starts, at) - 1 for at in places}
        weight = log(1 + len(starts) / max(len(having), 1))
        total += weight
        for number in having:
            held[number] += weight
    best = sorted(held, key=lambda number: (-held[number], number))[:most]
    return [source.sentence_spans[number] for number in best if held[number] > FAINT * total]


def _forms(text: str) -> set[str]:
    return {word.rstrip("s") for word in content_words(text) if content_stems(word)}


def _weight(stem: str, sentences: Sequence[Set[str]]) -> float:
    """Return how much a stem tells sentences apart: 1 if only one has it."""
    n_having = sum(stem in stems for stems in sentences)
    return log(1 + len(sentences) / n_having) / log(1 + len(sentences)) if n_having else UNKNOWN


def _union(sets: Iterable[Set[str]]) -> frozenset[str]:
    return frozenset(chain.from_iterable(sets))


def _held(weights: Mapping[str, float], quoted: Set[str], near: Set[str]) -> float:
    """Return the weight of the stems that a quotation has, and of those that only its neighbours have, discounted."""
    return sum(
        weight * (1.0 if is_shared(stem, quoted) else IN_NEIGHBOUR if is_shared(stem, near) else 0.0)
        for stem, weight in weights.items()
    )
