"""Closeness: how much two passages have in common, by the words that few passages have.

In: two passages, and the index of words that says how rare each is. Out: a share, from 0 to 1.
"""

from collections.abc import Iterable

from legal_rag.claims import content_words
from legal_rag.lexical import LexicalIndex, words_of


class Closeness:
    """Compares passages; it remembers the words' rarities, so one serves one thread for one answer."""

    def __init__(self, lexical: LexicalIndex | None) -> None:
        """Take the index; without one every word counts alike."""
        self._lexical = lexical
        self._stems: dict[str, tuple[str, ...]] = {}
        self._rarity: dict[str, float] = {}

    def of(self, one: str, other: str) -> float:
        """Return the share of words in common, each counted by its rarity (Dice's coefficient, weighted)."""
        words, others = self._terms(one), self._terms(other)
        both = self._weight(words) + self._weight(others)
        return 2 * self._weight(words & others) / both if both else 0.0

    def _terms(self, text: str) -> set[str]:
        terms: set[str] = set()
        for word in set(content_words(text)):
            if word not in self._stems:
                self._stems[word] = tuple(words_of(word))
                for stem in self._stems[word]:
                    self._rarity.setdefault(stem, self._lexical.rarity(word) if self._lexical else 1.0)
            terms.update(self._stems[word])
        return terms

    def _weight(self, terms: Iterable[str]) -> float:
        return sum(self._rarity[term] for term in terms)
