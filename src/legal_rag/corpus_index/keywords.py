"""Keywords: the terms that tell a text from the others of its corpus.

In: the terms of a text, and how many documents hold each. Out: the weightiest, words and expressions of two words.

A term weighs (1 + ln tf) * (ln((N + 1) / (df + 1)) + 1), tf its times in the text, df its documents of N: sublinear tf
(Manning, Raghavan and Schütze, "Introduction to Information Retrieval", 2008, 6.4.1) and the smoothed idf of
scikit-learn. What never stands behind an article is hardly a noun and weighs less. Terms of most documents are none.
"""

import math
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from legal_rag.corpus_index.frequencies import TermStatistics
from legal_rag.corpus_index.terms import TextTerms, read_terms

N_KEYWORDS = 12  # shown of a document
COMMON_SHARE = 0.7  # of the documents: what more of them hold tells none from the others
FEW_DOCUMENTS = 20  # in a corpus of fewer nothing is common, nor unknown
RAREST = 4  # documents: what stands in fewer counts as if in so many, for rare words are often slips or names
NO_NOUN = 0.4  # weight of a term that never stands behind an article
PAIR = 0.9  # weight of an expression: both its words may be keywords as well
COVERED = 0.5  # share of a word's times that stand in one expression: the expression says it better
OVERLAPPED = 0.8  # the same for an expression's words that stand in weightier ones
LEAST_WEIGHT = 0.3  # of the weightiest term's: what weighs less is no keyword
CACHED = 50_000  # logarithms that are remembered


class Keyword(NamedTuple):
    """A key term of a text."""

    term: str  # a stem, or two with a blank between them: what it is found by
    shown: str  # as the corpus writes it most often: "compte de campagne"
    weight: float  # above 0; of one document comparable with each other


def keywords_of(
    text: str | TextTerms, statistics: TermStatistics | None = None, most: int = N_KEYWORDS
) -> list[Keyword]:
    """Return the key terms of a text, weightiest first; equal texts and statistics give equal keywords.

    Args:
        text: A text, or its terms if they are read already.
        statistics: Of the corpus; without any, terms weigh by their times in the text alone.
        most: How many at most.
    """
    terms = read_terms(text) if isinstance(text, str) else text
    statistics = statistics or TermStatistics()
    weighed = sorted(_weighed(terms, statistics))
    chosen: list[Keyword] = []
    taken: Counter[str] = Counter()  # by word: its times in the expressions chosen
    for minus_weight, term in weighed:
        if len(chosen) == most or minus_weight > LEAST_WEIGHT * weighed[0][0]:
            break
        if " " in term:
            words = term.split()
            if any(taken[word] >= OVERLAPPED * terms.counts.get(word, math.inf) for word in words):
                continue
            taken.update(dict.fromkeys(words, terms.counts[term]))
        chosen.append(Keyword(term, statistics.shown.get(term, terms.shown[term]), -minus_weight))
    return chosen


def index_terms(keywords: Iterable[Keyword]) -> dict[str, float]:
    """Return the terms by which a text with these keywords is found, with weights: they, and the words they hold.

    What "clause de non-concurrence" is a keyword of is found by "clause" and by "concurrence", too.
    """
    found: dict[str, float] = {}
    for term, _, weight in keywords:
        for one in (term, *_words(term)):
            if weight > found.get(one, 0.0):
                found[one] = weight
    return found


def _words(term: str) -> list[str]:
    if " " not in term and "-" not in term:
        return []
    return [word for part in term.split() for word in (part, part.rpartition("-")[2])]


def _weighed(terms: TextTerms, statistics: TermStatistics) -> list[tuple[float, str]]:
    """Return the terms of a text that may be keywords, each behind its weight with a minus."""
    n, frequencies, nouns = statistics.n_documents, statistics.frequencies, terms.nouns
    few = n < FEW_DOCUMENTS
    common = math.inf if few else n * COMMON_SHARE
    covered = _covered(terms)
    weighed: list[tuple[float, str]] = []
    for term, times in terms.counts.items():
        documents = frequencies.get(term, 0)
        if documents > common or not (documents or times > 1 or few):
            continue
        weight = -_tf(times) * _idf(documents, n)
        if " " in term:
            if all(frequencies.get(word, 0) > common for word in term.split()):
                continue
            weight *= PAIR
        elif term in covered and covered[term] >= COVERED * times:
            continue
        weighed.append((weight if term in nouns else weight * NO_NOUN, term))
    return weighed


@lru_cache(CACHED)
def _tf(times: int) -> float:
    return 1 + math.log(times)


@lru_cache(CACHED)
def _idf(documents: int, n: int) -> float:
    return 1 + math.log((n + 1) / (min(max(documents, RAREST), n) + 1))


def _covered(terms: TextTerms) -> dict[str, int]:
    """Return for the words of expressions how often they stand in the one that is most frequent."""
    covered: dict[str, int] = {}
    for term, times in terms.counts.items():
        if " " in term:
            for word in term.split():
                covered[word] = max(times, covered.get(word, 0))
    return covered
