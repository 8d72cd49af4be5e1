"""Keywords of a document by TF-IDF over the corpus."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from legal_rag.corpus_index.terms import TextTerms, read_terms

SAMPLE_SIZE = 20_000  # documents, about: enough to distinguish a frequency of 1 % from 0.1 %
MIN_DOCUMENTS = 2  # rarer terms are dropped: most are names and typos
MAX_TERMS = 300_000  # kept, the most frequent ones: some 60 MB
N_KEYWORDS = 12  # of a document
COMMON_SHARE = 0.7  # of the documents: more frequent terms are not keywords
FEW_DOCUMENTS = 20  # in a smaller corpus no term counts as common or unknown
RAREST = 4  # documents: the df of rarer terms is raised to it: they are often typos or names
NO_NOUN = 0.4  # weight of a term that never follows a determiner
PAIR = 0.9  # weight of a pair: both its words may be keywords as well
COVERED = 0.5  # share of a word's occurrences within one pair: the pair replaces it
OVERLAPPED = 0.8  # the same for a pair's words within weightier pairs
MIN_WEIGHT = 0.3  # of the top term's weight
CACHED_LOGARITHMS = 50_000


@dataclass(frozen=True)
class TermStatistics:
    """Document frequencies of a corpus; the mappings need not be dicts, nor iterable."""

    n_documents: int = 0  # in the sample
    frequencies: Mapping[str, int] = field(default_factory=dict)  # document frequency by term
    shown: Mapping[str, str] = field(default_factory=dict)  # by term: its most frequent surface form


class Keyword(NamedTuple):
    """A key term of a text."""

    term: str  # a stem, or two with a blank between them
    shown: str  # its most frequent surface form in the corpus: "compte de campagne"
    weight: float  # above 0, comparable within a document


class TermCounter:
    """Counts document frequencies; the result does not depend on the order of `add`.

    A document counts for the first surface form of a term, so that forms add up to terms.
    """

    def __init__(self) -> None:
        self.n_documents = 0
        self._forms: Counter[str] = Counter()  # by term and form, a tab between them

    def add(self, shown: Mapping[str, str]) -> None:
        """Count one document, whose terms have these surface forms."""
        self.n_documents += 1
        self._forms.update([f"{term}\t{form}" for term, form in shown.items()])

    def add_all(self, documents: Iterable[Mapping[str, str]]) -> None:
        """Count several documents."""
        for shown in documents:
            self.add(shown)

    def freeze(self) -> TermStatistics:
        """Return the statistics of the documents counted so far."""
        frequencies: Counter[str] = Counter()
        best: dict[str, tuple[int, int, str]] = {}
        for form, n in self._forms.items():
            term, _, shown = form.partition("\t")
            frequencies[term] += n
            rank = (-n, len(shown), shown)
            best[term] = min(best.get(term, rank), rank)
        kept = [term for term, n in frequencies.items() if n >= MIN_DOCUMENTS]
        kept = sorted(kept, key=lambda term: (-frequencies[term], term))[:MAX_TERMS]
        return TermStatistics(
            self.n_documents, {term: frequencies[term] for term in kept}, {term: best[term][2] for term in kept}
        )


def is_sampled(doc_id: str, n_documents: int) -> bool:
    """Is a document in the sample of a corpus of `n_documents`? All are, up to `SAMPLE_SIZE`.

    A hash of the id decides, so that the same corpus gives the same statistics, and memory does not grow with it.
    """
    if n_documents <= SAMPLE_SIZE:
        return True
    drawn = int.from_bytes(hashlib.blake2b(doc_id.encode(), digest_size=8).digest(), "big")
    return drawn * n_documents < SAMPLE_SIZE << 64


def keywords_of(
    text: str | TextTerms, statistics: TermStatistics | None = None, most: int = N_KEYWORDS
) -> list[Keyword]:
    """Return the key terms of a text, by falling weight; deterministic.

    Args:
        text: A text, or its terms.
        statistics: Of the corpus; by default terms weigh by their frequency in the text alone.
        most: How many at most.
    """
    terms = read_terms(text) if isinstance(text, str) else text
    statistics = statistics or TermStatistics()
    candidates = sorted(_weigh_candidates(terms, statistics))
    chosen: list[Keyword] = []
    in_pairs: Counter[str] = Counter()  # by word: its occurrences in the pairs chosen
    for minus_weight, term in candidates:
        if len(chosen) == most or minus_weight > MIN_WEIGHT * candidates[0][0]:
            break
        if " " in term:
            words = term.split()
            if any(in_pairs[word] >= OVERLAPPED * terms.counts.get(word, math.inf) for word in words):
                continue
            in_pairs.update(dict.fromkeys(words, terms.counts[term]))
        chosen.append(Keyword(term, statistics.shown.get(term, terms.shown[term]), -minus_weight))
    return chosen


def index_terms(keywords: Iterable[Keyword]) -> dict[str, float]:
    """Return the index terms of a text with these keywords, with weights: the keywords and their words.

    The keyword "clause de non-concurrence" is found by "clause" and by "concurrence", too.
    """
    weights: dict[str, float] = {}
    for term, _, weight in keywords:
        for key in (term, *_split_term(term)):
            weights[key] = max(weight, weights.get(key, 0.0))
    return weights


def _split_term(term: str) -> list[str]:
    if " " not in term and "-" not in term:
        return []
    return [word for part in term.split() for word in (part, part.rpartition("-")[2])]


def _weigh_candidates(terms: TextTerms, statistics: TermStatistics) -> list[tuple[float, str]]:
    """Return candidate keywords of a text as (negated weight, term)."""
    n, frequencies = statistics.n_documents, statistics.frequencies
    few = n < FEW_DOCUMENTS
    common = math.inf if few else n * COMMON_SHARE
    covered = _in_most_frequent_pair(terms)
    candidates: list[tuple[float, str]] = []
    for term, times in terms.counts.items():
        documents = frequencies.get(term, 0)
        if documents > common or not (documents or times > 1 or few):
            continue
        weight = -_tf(times) * _idf(documents, n)
        if " " in term:
            if all(frequencies.get(word, 0) > common for word in term.split()):
                continue
            weight *= PAIR
        elif covered.get(term, 0) >= COVERED * times:
            continue
        candidates.append((weight if term in terms.nouns else weight * NO_NOUN, term))
    return candidates


@lru_cache(CACHED_LOGARITHMS)
def _tf(times: int) -> float:
    return 1 + math.log(times)


@lru_cache(CACHED_LOGARITHMS)
def _idf(documents: int, n: int) -> float:
    return 1 + math.log((n + 1) / (min(max(documents, RAREST), n) + 1))


def _in_most_frequent_pair(terms: TextTerms) -> dict[str, int]:
    """Return, for each word of a pair, how often its most frequent pair occurs."""
    covered: dict[str, int] = {}
    for term, times in terms.counts.items():
        if " " in term:
            for word in term.split():
                covered[word] = max(times, covered.get(word, 0))
    return covered
