"""Terms of a text (tokens, stems, stop words), and keywords by TF-IDF over the corpus."""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from legal_rag.base.html import displayed
from legal_rag.base.text import APOSTROPHES, DASHES, INVISIBLE, LETTERS, normalized, read_words, without_accents
from legal_rag.law.words import FULL_MONTHS, ORDINALS, TITLES_OF_MEN, TITLES_OF_WOMEN, WEEKDAYS

MIN_STEMMED = 4  # letters: shorter words have no ending to strip
LONGEST_TOKEN = 60  # characters: longer tokens are not words
SHORTEST, LONGEST = 3, 32  # letters of a word that can be a term
CACHED_WORDS = 200_000  # some 80 MB; then the cache is cleared

# Flags of a word.
OPENS, CLOSES = 1, 2  # has punctuation before it, after it
LINK, DETERMINER = 4, 8  # may occur within an expression; may precede a noun
CAPITAL = 16  # begins with a capital: a name, not a term

MIN_PAIR_COUNT = 2  # a pair that occurs once in a text is as likely chance as an expression
MAX_LINKS = 2  # link words within a pair: "impôt sur le revenu"
LONGEST_ACRONYM = 8  # letters
CAPITALS_SHARE = 0.8  # of the letters of a text that is written in capitals

_LISTS = read_words("legal_rag.corpus_index")
LINKS, DETERMINERS, PREFIXES = (frozenset(_LISTS[name]) for name in ("links", "determiners", "prefixes"))
# Dropped from hyphenated words, too.
FUNCTION_WORDS = (TITLES_OF_MEN | TITLES_OF_WOMEN).union(
    *(FULL_MONTHS, WEEKDAYS, ORDINALS, _LISTS["function"], _LISTS["numbers"])
)
STOP_WORDS = FUNCTION_WORDS.union(_LISTS["verbs"], _LISTS["procedure"], _LISTS["english"])
_IRREGULAR = {
    "travaux": "travail", "baux": "bail", "vitraux": "vitrail", "aulx": "ail", "yeux": "oeil", "cieux": "ciel",
    "jeux": "jeu", "lieux": "lieu", "milieux": "milieu", "enjeux": "enjeu", "voeux": "voeu", "aveux": "aveu",
    "feux": "feu", "neveux": "neveu", "cheveux": "cheveu", "taux": "taux", "faux": "faux", "chaux": "chaux",
}  # fmt: skip
# An ending and its replacement; the first that fits. Accents are not folded yet.
_ENDINGS = (
    ("eaux", "eau"),  # bureaux
    ("aux", "al"),  # électoraux
    ("eux", "eus"),  # contentieux, like contentieuse
    ("trice", "teur"),  # directrice
    ("ère", "er"),  # financière
    ("ète", "et"),  # complète
    ("ève", "ef"),  # brève
    ("ive", "if"),  # législative
    ("ée", "é"),
)  # fmt: skip
_ADVERB = re.compile(r"(?:[^cv]elle|aire|ive|euse|able|ible|ique|iere|am|em)ment$")  # unlike nouns: "licenciement"
_UNACCENTED = re.compile(r"e(e?s?)\b")  # where a missing accent changes the stem: "salarie", "annulees"
_SIGNS = {**LETTERS, **dict.fromkeys(DASHES, "-"), **dict.fromkeys(INVISIBLE, "")}

# One token of a text; a plain tuple, for the hot loop of a build unpacks named ones more slowly.
# Its stem, empty if it is not a term (two stems with a blank between them for "procès-verbal"); its form in lower case,
# without punctuation except the apostrophe of an elision; its flags; in capitals, its stem as an acronym.
Word = tuple[str, str, int, str]
Pair = tuple[str, str]

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


class TextTerms(NamedTuple):
    """The terms of a text."""

    counts: dict[str, int]  # by term: a stem, or two with a blank between them
    shown: dict[str, str]  # by term: its first surface form in the text
    nouns: set[str]  # terms that follow a determiner somewhere in the text
    lines: list[list[Word]]  # every token, line by line


NOTHING: Word = ("", "", OPENS | CLOSES, "")


def stem(word: str) -> str:
    """Strip number and gender from a lower-case word in NFC, and fold its accents.

    Snowball's French stemmer conflates what the law distinguishes ("délai" and "délit"; "commune", "communication" and
    "communiste") and keeps "travaux" from "travail". Light stemming retrieves as well (Savoy, "Light Stemming
    Approaches for the French, Portuguese, German and Hungarian Languages", 2006).

    >>> stem("électorales"), stem("électoraux"), stem("délais"), stem("délits")
    ('electoral', 'electoral', 'delai', 'delit')
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) < MIN_STEMMED:
        return without_accents(word)
    if word[-1] == "s" and word[-2] != "s":
        word = word[:-1]
    for ending, other in _ENDINGS:
        if word.endswith(ending):
            return without_accents(word[: -len(ending)] + other)
    if word[-1] == "e" and len(word) >= MIN_STEMMED:
        word = word[:-1]
        if word[-1] == word[-2] and word[-1] in "lnst":
            word = word[:-1]
    return without_accents(word)


def tokens(text: str) -> list[str]:
    """Split a text at blanks and after apostrophes; punctuation stays attached to the words."""
    return _separate(text).split()


def query_terms(text: str) -> list[tuple[str, ...]]:
    """Return the terms of a query, word by word; stop words are left out, case and number do not count.

    Each word gives its alternatives: one typed without accents ("salaries") may lack some.
    """
    alternatives = [_alternatives(token) for token in tokens(text.lower())]
    return list(dict.fromkeys(terms for terms in alternatives if terms))


def read_terms(text: str) -> TextTerms:
    """Count the terms of a text; pairs do not cross line ends.

    Only words in lower case count, and acronyms after an article ("la TVA"): other capitals are likely names. A text
    all in capitals is read in lower case.
    """
    lines = _words_by_line(text)
    counter = _PairCounter()
    capitals = sum([counter.add(line) for line in lines])
    if capitals > sum(counter.counts.values()) and _is_in_capitals(text):
        lines = _words_by_line(text.lower())
        counter = _PairCounter()
        for line in lines:
            counter.add(line)
    return counter.terms(lines)


def _words_by_line(text: str) -> list[list[Word]]:
    return [list(map(read_word, line.split())) for line in _separate(text).split("\n")]


def _separate(text: str) -> str:
    if not text.isascii():
        text = normalized(text)
        for sign in APOSTROPHES:
            text = text.replace(sign, "'")
    text = text.replace("rud'h", "rudh")  # prud'hommes are one word
    return text.replace("'", "' ")


def _alternatives(token: str) -> tuple[str, ...]:
    stems = [read_word(token)[0]]
    if token.isascii():
        stems.append(read_word(_UNACCENTED.sub("é\\1", token))[0])
    return tuple(dict.fromkeys(filter(None, stems)))


def _read_word(token: str) -> Word:
    """Read one of the `tokens` of a text; stop words, adverbs, numbers and initials have no stem."""
    if len(token) > LONGEST_TOKEN:
        return NOTHING
    start, end = 0, len(token)
    while start < end and not token[start].isalnum():
        start += 1
    while end > start and not token[end - 1].isalnum():
        end -= 1
    core, after = token[start:end], token[end:]
    shown = core.lower() if core.isascii() else "".join([_SIGNS.get(letter, letter) for letter in core.lower()])
    folded = without_accents(shown)
    if not (folded.isalpha() or folded.replace("-", "").isalpha()):
        return NOTHING
    flags = OPENS * (start > 0) | CLOSES * (after not in ("", "'"))
    upper = len(core) > 1 and core.isupper()
    elided = "'" * (after == "'" and len(core) < SHORTEST)
    if folded + elided in DETERMINERS and not upper:
        flags |= DETERMINER
    if core[0].isupper():
        acronym = _stem(shown, folded) if upper else ""  # empty for "LA" and "MM"
        return "", core if upper else shown, flags | CAPITAL, acronym
    if folded + elided in LINKS and not flags & OPENS:
        flags |= LINK
    return _stem(shown, folded), shown.replace("rudh", "rud'h") + elided, flags, ""


class _WordCache(dict[str, Word]):
    """Words by token; faster than `lru_cache`, which reorders its entries at each hit."""

    def __missing__(self, token: str) -> Word:
        if len(self) >= CACHED_WORDS:
            self.clear()
        word = self[token] = _read_word(token)
        return word


read_word = _WordCache().__getitem__


def _stem(shown: str, folded: str) -> str:
    if "-" not in shown:
        return stem(shown) if _is_term(folded) else ""
    first, *others = shown.split("-")
    if without_accents(first) in PREFIXES and len(others) == 1 and len(others[0]) >= SHORTEST:
        return f"{without_accents(first)}-{stem(others[0])}"
    parts = [part for part in (first, *others) if without_accents(part) not in FUNCTION_WORDS]
    if len(parts) == 2 and folded not in STOP_WORDS:
        return " ".join(map(stem, parts))
    return _stem(parts[0], without_accents(parts[0])) if len(parts) == 1 else ""


def _is_term(folded: str) -> bool:
    if not SHORTEST <= len(folded) <= LONGEST or folded in STOP_WORDS:
        return False
    return not (folded.endswith("ment") and _ADVERB.search(folded))


def _is_in_capitals(text: str) -> bool:
    return sum(map(str.isupper, text)) >= CAPITALS_SHARE * sum(map(str.isalpha, text))


class _PairCounter:
    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self._shown: dict[str, str] = {}
        self._nouns: set[str] = set()
        self._pairs: dict[Pair, int] = {}
        self._first_seen: dict[Pair, list[Word]] = {}  # the words of a pair's first occurrence, links included
        self._noun_pairs: set[Pair] = set()  # those whose first word follows a determiner

    def terms(self, lines: list[list[Word]]) -> TextTerms:
        """Return all words, and the pairs that are repeated."""
        counts, shown, nouns = self.counts, self._shown, self._nouns
        for pair, times in self._pairs.items():
            if times >= MIN_PAIR_COUNT:
                term = f"{pair[0]} {pair[1]}"
                counts[term] = counts.get(term, 0) + times  # "procès-verbal" may be counted as a word
                shown.setdefault(term, " ".join([word[1] for word in self._first_seen[pair]]).replace("' ", "'"))
                if pair in self._noun_pairs:
                    nouns.add(term)
        return TextTerms(counts, shown, nouns, lines)

    def add(self, line: list[Word]) -> int:
        """Count a line; return how many of its words are all in capitals.

        The hot loop of a build: it sees every word of the corpus, so it binds what it needs to local names.
        """
        counts, pairs = self.counts, self._pairs
        capitals = links = start = 0
        # First word of a possible pair, whether a determiner precedes this word, and whether one precedes the first.
        before, after_determiner, before_is_noun = "", False, False
        for at, (term, shown, flags, acronym) in enumerate(line):
            if acronym:
                capitals += 1
                if after_determiner and len(shown) <= LONGEST_ACRONYM:
                    term = acronym
            if term:
                if flags & OPENS:
                    before, after_determiner = "", False
                if term in counts:
                    counts[term] += 1
                else:
                    counts[term] = 1
                    self._shown[term] = shown
                if after_determiner:
                    self._nouns.add(term)
                if before and before != term:
                    pair = (before, term)
                    if pair in pairs:
                        pairs[pair] += 1
                    else:
                        pairs[pair] = 1
                        self._first_seen[pair] = line[start : at + 1]
                    if before_is_noun:
                        self._noun_pairs.add(pair)
                before = "" if flags & CLOSES else term
                start, links, before_is_noun, after_determiner = at, 0, after_determiner, False
            elif flags:
                after_determiner = flags & (DETERMINER | CLOSES) == DETERMINER
                links += 1
                if links > MAX_LINKS or flags & (LINK | CLOSES) != LINK:
                    before = ""
            else:
                before, after_determiner = "", False
        return capitals


@displayed
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

    Without statistics of the corpus, terms weigh by their frequency in the text alone.
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
