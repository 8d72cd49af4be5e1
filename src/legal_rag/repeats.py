"""Decisions that nearly repeat one another: told by the runs of words they share.

In: texts. Out: which of them to leave out. Series of like cases are common: one ground of appeal, twenty appellants.
"""

import re
from collections.abc import Sequence

SHINGLE_WORDS = 5
NEAR = 0.6  # share of the runs of words in either text that are in both (Jaccard), from which one repeats the other


def first_of_each(texts: Sequence[str]) -> list[int]:
    """Return the numbers of the texts that do not nearly repeat one kept before them, rising."""
    kept: list[tuple[int, set[str]]] = []
    for number, text in enumerate(texts):
        runs = _runs(text)
        if not any(jaccard(runs, others) >= NEAR for _, others in kept):
            kept.append((number, runs))
    return [number for number, _ in kept]


def _runs(text: str) -> set[str]:
    words = re.findall(r"\w+", text.lower())
    return {" ".join(words[i : i + SHINGLE_WORDS]) for i in range(max(len(words) - SHINGLE_WORDS + 1, 1))}


def jaccard(some: set[str], others: set[str]) -> float:
    """Return the share of what is in either set that is in both, 0 to 1; 0 for two empty sets."""
    return len(some & others) / (len(some | others) or 1)
