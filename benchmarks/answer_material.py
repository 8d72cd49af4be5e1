"""What synthetic answers are made of: passages and facts of the documents read, with their exact places.

In: texts by document id. Out: `Passage`s to quote, `Fact`s to state, and how often a wording stands in the texts.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from legal_rag.base.text import find_exact, fold

MONTHS = "janvier février mars avril mai juin juillet août septembre octobre novembre décembre".split()
QUOTE_SIGNS = re.compile(r"[«»“”„\"]")
WORD = re.compile(r"(?<!\S)\S+")
FROM_LETTER_TO_LETTER = re.compile(r"\w(?:.*\w)?", re.DOTALL)
CLAUSE_START = re.compile(r"(?:[;:.]\s+|\n+)(?=\w)")
CLAUSE_END = re.compile(r"[;:\n«»\"“”()\[\]]|(?<![A-Z])\.\s")
LONGEST_WORD = 12  # characters a word takes up at most, on average and with its blank

FACTS = {
    "date": re.compile(
        rf"\b(?P<day>1er|[1-9]|[12]\d|3[01]) (?P<month>{'|'.join(MONTHS)}) (?P<year>1[89]\d\d|20\d\d)\b"
    ),
    "amount": re.compile(
        r"(?<!\d)(?<!\d[ ,.])(?<!\d[,.] )"  # not the end of a longer number
        r"(?P<units>[1-9]\d{0,2}(?:[ .]?\d{3})+)(?P<cents>,\d\d)? (?P<currency>euros|francs)\b"
    ),
    "article": re.compile(r"\barticle (?P<letters>L\.O\.|L\.|R\.) (?P<number>\d+(?:-\d+)*)(?![\d-])"),
    "percentage": re.compile(r"(?<![\d,.])(?P<rate>\d{1,2}(?:,\d{1,2})?) ?%"),
    "case number": re.compile(r"\bn° (?P<case>(?:[A-Z] )?\d\d-\d\d[.]\d{3})\b"),
}


class Passage(NamedTuple):
    """A place in a document."""

    doc_id: str
    char_start: int
    char_end: int

    def holds(self, other: "Passage") -> bool:
        """Tell whether all of `other` lies in it."""
        return self.doc_id == other.doc_id and self.char_start <= other.char_start and other.char_end <= self.char_end


class Fact(NamedTuple):
    """A date, an amount, an article… of a document."""

    kind: str  # of FACTS
    value: tuple[str, ...]  # the same for every spelling of one fact
    place: Passage
    text: str


class Material:
    """The documents that an answer is made of."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        self.facts = [fact for doc_id, text in texts.items() for fact in find_facts(doc_id, text)]
        self.times = Counter(fact.value for fact in self.facts)

    def text_of(self, passage: Passage) -> str:
        """Return the text at a place."""
        return self.texts[passage.doc_id][passage.char_start : passage.char_end]

    def count(self, wording: str) -> int:
        """Return how often a wording stands in the documents, signs and case left aside."""
        looked_for = letters_of(wording)
        return sum(len(find_exact(looked_for, letters_of(text))) for text in self.texts.values())

    def count_fact(self, text: str) -> int:
        """Return how often a fact is stated, in an enumeration ("articles L. 1 et 2") or another currency too."""
        bare = re.sub(r"^(?:article|n°) |(?:,\d\d)? (?:euros|francs)$", "", text)
        number = r"\W{0,2}".join(map(re.escape, re.split(r"[ .]", bare)))
        return sum(len(re.findall(rf"(?<!\d){number}(?!\d)", one, re.IGNORECASE)) for one in self.texts.values())

    def holders(self, fact: Fact) -> set[str]:
        """Return the ids of the documents that state a fact."""
        return {one.place.doc_id for one in self.facts if one.value == fact.value}

    def passage(self, rng: random.Random, fewest: int = 6, most: int = 40, doc_id: str = "") -> Passage:
        """Return a passage fit to be quoted, of `fewest` to `most` words, that stands in the documents only once."""
        while True:
            of = doc_id or rng.choice(list(self.texts))
            found = draw_passage(rng, of, self.texts[of], rng.randint(fewest, most))
            if found and self.count(self.text_of(found)) == 1:
                return found


@lru_cache(maxsize=8192)
def letters_of(text: str) -> str:
    """Return a text's words, folded, without any sign between them."""
    return " ".join(re.findall(r"\w+", fold(text).text))


@lru_cache(maxsize=8192)
def find_facts(doc_id: str, text: str) -> tuple[Fact, ...]:
    """Return the facts of a text, kind by kind; spellings other than those of `FACTS` are left out."""
    return tuple(
        Fact(kind, value_of(kind, match), Passage(doc_id, *core(match)), match.group())
        for kind, pattern in FACTS.items()
        for match in pattern.finditer(text)
    )


def core(match: re.Match[str]) -> tuple[int, int]:
    """Return the span of what a citation of a fact must hold: without the word "article" or the sign "n°"."""
    first = next(iter(match.re.groupindex))
    return match.start(first), match.end()


def value_of(kind: str, match: re.Match[str]) -> tuple[str, ...]:
    """Return what a fact says, however it is spelt."""
    return (kind, *(re.sub(r"\W|(?<=^1)er$", "", part or "") for part in match.groups()))


def draw_passage(rng: random.Random, doc_id: str, text: str, n_words: int) -> Passage | None:
    """Draw `n_words` words of a text, six times of ten from the start of a clause; None where no passage is fit."""
    at = rng.randrange(len(text))
    clause = CLAUSE_START.search(text, at)
    if clause and rng.random() < 0.6:
        at = clause.end()
    words = list(WORD.finditer(text, at, at + n_words * LONGEST_WORD))
    if len(words) <= n_words:  # the last one may have been cut
        return None
    inner = FROM_LETTER_TO_LETTER.search(text, words[0].start(), words[n_words - 1].end())
    if inner is None:
        return None
    return Passage(doc_id, *inner.span()) if is_quotable(inner.group()) else None


def is_quotable(text: str) -> bool:
    """Tell whether a model might quote this: running text, its brackets closed, no quotation of its own."""
    letters = sum(letter.isalpha() for letter in text)
    closed = text.count("[") == text.count("]") and text.count("(") == text.count(")")
    long_words = len(set(re.findall(r"[^\W\d_]{4,}", text)))
    return closed and long_words >= 3 and letters > 0.7 * len(text) and not QUOTE_SIGNS.search(text)


def clause_around(rng: random.Random, text: str, place: Passage) -> Passage:
    """Return a place with the words around it in its clause, up to ten on either side; no number is cut."""
    before = CLAUSE_END.split(text[max(0, place.char_start - 120) : place.char_start])[-1].lstrip()
    after = CLAUSE_END.split(text[place.char_end : place.char_end + 120])[0]
    left = "".join(re.findall(r"\S+\s*", before)[-rng.randint(4, 10) :])
    right = "".join(re.findall(r"\s*\S+", after)[: rng.randint(2, 10)])
    left, right = re.sub(r"^(?:\S*\d\S*\s*)+", "", left), re.sub(r"(?:\s*\S*\d\S*)+$", "", right)
    return Passage(place.doc_id, place.char_start - len(left), place.char_end + len(right))


def window(rng: random.Random, text: str, place: Passage, widest: int = 1500) -> Passage:
    """Return a place with up to `widest` characters more around it, as a chunk shown by a tool has them."""
    more = rng.randint(0, widest)
    start = max(0, place.char_start - rng.randint(0, more))
    return Passage(place.doc_id, start, min(len(text), place.char_end + more - (place.char_start - start)))


def with_facts(material: Material, kinds: tuple[str, ...], times: range) -> Iterator[Fact]:
    """Yield the facts of some kinds that are stated so many times in the documents."""
    return (fact for fact in material.facts if fact.kind in kinds and material.times[fact.value] in times)
