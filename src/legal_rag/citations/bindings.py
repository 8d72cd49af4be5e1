"""Which words of a sentence a value or a name belongs to: several dates in one sentence are dates of different things."""

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from legal_rag.base.text import Span, fold_text
from legal_rag.citations.facts import Fact, is_same, stated_in
from legal_rag.citations.plain import legible
from legal_rag.citations.wording import CONTENT_WORD, TABLES, stem_of, telling_stems

_BREAK = re.compile(
    r"(?:[;:,\n]|(?<!\b[A-Z])(?<!\bMM)\.)(?!\d)|\b(?:et|mais|ou|puis|alors|tandis|que|qui|dont|soit)\b|\bqu['’]"
)
# Of a person or a company, before its name.
_TITLE = re.compile(r"\b(?:MM?\.|Me|Mmes?|Mlles?|Monsieur|Madame|Maître|[Ss]ociété|SARL|SAS|SCI|SA|SCP)[ ]\Z")
_COMPANY = stem_of("société")  # stands by the name of any


def is_of_the_same(claim: str, source: str) -> bool:
    """Do the values of a claim stand by the same words as in a source that has several of their kind?

    Values are dates, quantities of one measure, and persons and companies. One belongs to the words between the values
    before and after it. It is another's where the words that lead to it in the claim are rather another's in the source.
    """
    claim, source = legible(claim), legible(source)
    stated, ours = _by_kind(source), _by_kind(claim)
    return all(_is_of_the_same(claim, facts, source, stated[kind]) for kind, facts in ours.items())


def _by_kind(text: str) -> dict[str, list[Fact]]:
    """Group the dates of a text, the quantities of each measure, and the persons and companies."""
    groups: dict[str, list[Fact]] = defaultdict(list)
    for fact in stated_in(text).facts:
        before = groups["name"][-1] if groups["name"] else None
        if fact.kind == "name" and before and fact.start == before.end + 1:  # "Jeanne Morel"
            groups["name"][-1] = before._replace(value=before.value | {fact.value[0]}, end=fact.end)
        elif fact.kind == "name" and _TITLE.search(text, max(fact.start - 20, 0), fact.start):
            groups["name"].append(fact._replace(value=frozenset({fact.value[0]})))
        elif fact.kind == "date":
            groups["date"].append(fact)
        elif fact.kind == "quantity" and fact.value.unit in TABLES["units"]:
            groups[fact.value.unit].append(fact)
    return groups


def _is_of_the_same(claim: str, facts: Sequence[Fact], source: str, stated: Sequence[Fact]) -> bool:
    facts = [fact for fact in facts if any(_is_same(fact, one) for one in stated)]  # others: the decision's own date
    spans = [(fact.start, fact.end) for fact in stated]
    theirs = [{stem for stem, _ in words} for words in _words_of_each(source, spans)]
    ours = _words_of_each(claim, [(fact.start, fact.end) for fact in facts])
    for fact, words in zip(facts, ours, strict=True):
        before = [(stem, distance) for stem, distance in words if distance > 0]
        # The nearest outweighs all others. "Le 9 juin, la société…" has none before it, and its verb is not near.
        weights = {stem: 0.5 ** abs(distance) for stem, distance in reversed(before or words)}
        own = other = 0.0
        for stems, one in zip(theirs, stated, strict=True):
            score = sum(weights.get(stem, 0) for stem in stems)
            own, other = (max(own, score), other) if _is_same(fact, one) else (own, max(other, score))
        if other and (other > own if before else not own):
            return False
    return True


def _is_same(fact: Fact, other: Fact) -> bool:
    return not fact.value.isdisjoint(other.value) if fact.kind == "name" else is_same(fact, other)


def _words_of_each(text: str, spans: Sequence[Span]) -> list[list[tuple[str, int]]]:
    """Return, for each span in order, the stems of its words, the nearest first, with their distances in words.

    Those of words after it are negative. Of the words between two spans, those cut off from one by a sign or a
    conjunction are the other's; others are both's.
    """
    telling = telling_stems(text) - {_COMPANY}
    words = [(stem_of(fold_text(match.group())), *match.span()) for match in CONTENT_WORD.finditer(text)]
    breaks = [match.start() for match in _BREAK.finditer(text)]
    bounds = [(0, 0), *spans, (len(text), len(text))]
    of_each: list[list[tuple[str, int]]] = [[] for _ in bounds]
    for number, ((_, first), (last, _)) in enumerate(pairwise(bounds)):
        cuts = [at for at in breaks if first <= at < last] if 0 < number < len(spans) else []
        between = [word for word in words if word[0] in telling and first <= word[1] and word[2] <= last]
        for place, (stem, start, end) in enumerate(between):
            behind, ahead = bool(cuts) and cuts[0] < start, bool(cuts) and cuts[-1] >= end
            if behind <= ahead:
                of_each[number].append((stem, -place - 1))
            if ahead <= behind:
                of_each[number + 1].append((stem, len(between) - place))
    return [sorted(words, key=lambda word: abs(word[1])) for words in of_each[1:-1]]
