"""Near-duplicate passages, by Jaccard similarity of word shingles.

Series of like cases are common: one ground of appeal, twenty appellants.
"""

import re
from collections.abc import Sequence

SHINGLE_WORDS = 5
NEAR = 0.6  # Jaccard similarity of shingles from which one text repeats the other


def deduplicate_near_duplicates(texts: Sequence[str]) -> list[int]:
    """Return the indices of the texts that are no near-duplicate of an earlier one kept, rising."""
    kept: list[tuple[int, set[str]]] = []
    for number, text in enumerate(texts):
        shingles = _shingles(text)
        if not any(jaccard(shingles, others) >= NEAR for _, others in kept):
            kept.append((number, shingles))
    return [number for number, _ in kept]


def _shingles(text: str) -> set[str]:
    words = re.findall(r"\w+", text.lower())
    return {" ".join(words[i : i + SHINGLE_WORDS]) for i in range(max(len(words) - SHINGLE_WORDS + 1, 1))}


def jaccard(some: set[str], others: set[str]) -> float:
    """Return the Jaccard similarity of two sets, 0 to 1; 0 for two empty sets."""
    return len(some & others) / (len(some | others) or 1)
