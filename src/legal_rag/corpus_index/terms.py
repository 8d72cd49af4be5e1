"""Terms of a text: its words and its repeated pairs of words, with how often each stands in it.

In: a text. Out: `TextTerms`. Only words in lower case count, and acronyms behind an article ("la TVA"): what else has a
capital is a name, or as likely one. A text all in capitals is read as if it were not.
"""

from typing import NamedTuple

from legal_rag.corpus_index.words import CAPITAL, CLOSES, DETERMINER, LINK, OPENS, UPPER, WORDS, raw_words

PAIR_TIMES = 2  # a pair that stands only once in a text is as likely chance as an expression
MOST_LINKS = 2  # small words within a pair: "impôt sur le revenu"
LONGEST_ACRONYM = 8  # letters

Pair = tuple[str, str]


class TextTerms(NamedTuple):
    """What a text says, as counts."""

    counts: dict[str, int]  # by term: a stem, or two with a blank between them
    shown: dict[str, str]  # by term: how the text writes it where it first does
    nouns: frozenset[str]  # the terms that stand behind an article or the like somewhere in the text


def read_terms(text: str) -> TextTerms:
    """Count the terms of a text; an empty one, or one of stop words, has none."""
    return count_terms([raw_words(line) for line in text.split("\n")])


def count_terms(lines: list[list[str]]) -> TextTerms:
    """Count the terms of lines of raw words; no pair goes over the end of a line."""
    counting = _Counting()
    for line in lines:
        counting.read(line)
    if counting.capitals > sum(counting.counts.values()):
        counting = _Counting()
        for line in lines:
            counting.read([raw.lower() for raw in line])
    return counting.terms()


class _Counting:
    """Counts in the making."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.capitals = 0  # words all in capitals
        self._shown: dict[str, str] = {}
        self._nouns: set[str] = set()
        self._pairs: dict[Pair, int] = {}
        self._written: dict[Pair, list[str]] = {}
        self._led: set[Pair] = set()

    def read(self, line: list[str]) -> None:
        counts, pairs, words = self.counts, self._pairs, WORDS
        before, began, links, led, led_before = "", 0, 0, False, False
        for at, raw in enumerate(line):
            stem, shown, signs = words[raw]
            if signs & OPENS:
                before, led = "", False
            if signs & CAPITAL:
                self.capitals += (signs & UPPER) > 0
                if not (signs & UPPER and led and len(shown) <= LONGEST_ACRONYM):
                    stem = ""
                    signs &= CLOSES | DETERMINER | UPPER
            if stem:
                if stem in counts:
                    counts[stem] += 1
                else:
                    counts[stem] = 1
                    self._shown[stem] = shown
                if led:
                    self._nouns.add(stem)
                if before and before != stem:
                    pair = (before, stem)
                    if pair in pairs:
                        pairs[pair] += 1
                    else:
                        pairs[pair] = 1
                        self._written[pair] = line[began : at + 1]
                    if led_before:
                        self._led.add(pair)
                before, began, links, led_before = stem, at, 0, led
                if signs & CLOSES:
                    before = ""
                led = False
            else:
                if before:
                    links += 1
                    if links > MOST_LINKS or not signs & LINK or signs & CLOSES:
                        before = ""
                led = signs & (DETERMINER | CLOSES | UPPER) == DETERMINER

    def terms(self) -> TextTerms:
        counts, shown, nouns = dict(self.counts), dict(self._shown), set(self._nouns)
        for pair, times in self._pairs.items():
            if times >= PAIR_TIMES:
                term = " ".join(pair)
                counts[term] = counts.get(term, 0) + times
                shown.setdefault(term, _written(self._written[pair]))
                if pair in self._led:
                    nouns.add(term)
        return TextTerms(counts, shown, frozenset(nouns))


def _written(raws: list[str]) -> str:
    words = [WORDS[raw].shown + ("'" if raw.endswith("'") else " ") for raw in raws[:-1]]
    return "".join(words) + WORDS[raws[-1]].shown
