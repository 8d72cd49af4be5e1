"""Terms of a text: its words and its repeated pairs of words, with how often each stands in it.

In: a text. Out: `TextTerms`. Only words in lower case count, and acronyms behind an article ("la TVA"): what else has a
capital is a name, or as likely one. A text all in capitals is read as if it were not.
"""

from typing import NamedTuple

from legal_rag.corpus_index.words import CLOSES, DETERMINER, LINK, OPENS, Word, words_by_line

PAIR_TIMES = 2  # a pair that stands only once in a text is as likely chance as an expression
MOST_LINKS = 2  # small words within a pair: "impôt sur le revenu"
LONGEST_ACRONYM = 8  # letters
CAPITALS = 0.8  # of the letters of a text that is written in capitals

Pair = tuple[str, str]


class TextTerms(NamedTuple):
    """What a text says, as counts."""

    counts: dict[str, int]  # by term: a stem, or two with a blank between them
    shown: dict[str, str]  # by term: how the text writes it where it first does
    nouns: set[str]  # the terms that stand behind an article or the like somewhere in the text
    lines: list[list[Word]]  # all that was read, line by line


def read_terms(text: str) -> TextTerms:
    """Count the terms of a text; an empty one, or one of stop words, has none. No pair goes over the end of a line."""
    lines = words_by_line(text)
    found = _Found()
    capitals = sum([_count(line, found) for line in lines])
    if capitals > sum(found.counts.values()) and _is_in_capitals(text):
        lines = words_by_line(text.lower())
        found = _Found()
        for line in lines:
            _count(line, found)
    return found.terms(lines)


def _is_in_capitals(text: str) -> bool:
    return sum(map(str.isupper, text)) >= CAPITALS * sum(map(str.isalpha, text))


class _Found:
    """What the lines read so far hold."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.shown: dict[str, str] = {}
        self.nouns: set[str] = set()
        self.pairs: dict[Pair, int] = {}
        self.written: dict[Pair, list[Word]] = {}  # where the pair first stands
        self.noun_pairs: set[Pair] = set()  # whose first word stands behind an article

    def terms(self, lines: list[list[Word]]) -> TextTerms:
        """Return all words, and the pairs that are repeated."""
        counts, shown, nouns = self.counts, self.shown, self.nouns
        for pair, times in self.pairs.items():
            if times >= PAIR_TIMES:
                term = f"{pair[0]} {pair[1]}"
                counts[term] = counts.get(term, 0) + times  # "procès-verbal" may be counted as a word
                shown.setdefault(term, " ".join([word[1] for word in self.written[pair]]).replace("' ", "'"))
                if pair in self.noun_pairs:
                    nouns.add(term)
        return TextTerms(counts, shown, nouns, lines)


def _count(line: list[Word], found: _Found) -> int:
    """Count the words and pairs of a line; return how many of its words are all in capitals.

    One pass over every word of the corpus: it is written for speed, with what it needs in local names.
    """
    counts, pairs = found.counts, found.pairs
    capitals = links = began = 0
    before, after_article, before_led = "", False, False  # the word that a pair may begin with; what stands in front
    for at, (stem, shown, signs, acronym) in enumerate(line):
        if acronym:
            capitals += 1
            if after_article and len(shown) <= LONGEST_ACRONYM:
                stem = acronym
        if stem:
            if signs & OPENS:
                before, after_article = "", False
            if stem in counts:
                counts[stem] += 1
            else:
                counts[stem] = 1
                found.shown[stem] = shown
            if after_article:
                found.nouns.add(stem)
            if before and before != stem:
                pair = (before, stem)
                if pair in pairs:
                    pairs[pair] += 1
                else:
                    pairs[pair] = 1
                    found.written[pair] = line[began : at + 1]
                if before_led:
                    found.noun_pairs.add(pair)
            before = "" if signs & CLOSES else stem
            began, links, before_led, after_article = at, 0, after_article, False
        elif signs:
            after_article = signs & (DETERMINER | CLOSES) == DETERMINER
            links += 1
            if links > MOST_LINKS or signs & (LINK | CLOSES) != LINK:
                before = ""
        else:
            before, after_article = "", False
    return capitals
