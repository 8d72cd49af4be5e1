"""Whether the passages found have to do with the question at all: when to abstain.

In: a question and its best hits. Out: yes or no. Two signs are weighed: how close the best passage is (its MaxSim,
divided by the number of query tokens), and how many of the question's words stand in the best three passages. How far
apart near and far lie differs from encoder to encoder, so the weights are measured for each:
`benchmarks/abstention.py` does it.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from legal_rag.retriever import SearchHit

CONTENT_WORD = re.compile(r"[a-z0-9]{4,}")
STEM_LETTERS = 6  # words are compared by their beginnings: "licenciement" and "licencié" are one
PASSAGES_READ = 3
QUESTION_WORDS = frozenset(
    "quel quels quelle quelles comment pourquoi combien quand lequel laquelle lesquels lesquelles cette celui celle "
    "ceux avec dans pour sans sous entre chez vers depuis avant apres pendant leur leurs elle elles nous vous sont "
    "etre avoir fait faire peut peuvent doit doivent faut plus moins tout tous toute toutes ainsi comme mais donc "
    "aussi dont".split()
)


class Signs(NamedTuple):
    """What is measured of a question and its hits."""

    closeness: float  # of the best passage: MaxSim over the number of query tokens, -1 to 1
    coverage: float  # share of the question's words that stand in the best passages, 0 to 1


class Calibration(NamedTuple):
    """A linear rule: relevant where `closeness_weight * closeness + coverage_weight * coverage` reaches `threshold`."""

    closeness_weight: float
    coverage_weight: float
    threshold: float


CALIBRATIONS = {"bundled": Calibration(closeness_weight=1.0, coverage_weight=0.0152, threshold=0.8102)}


def is_relevant(signs: Signs, encoder_name: str) -> bool:
    """Tell whether hits are worth quoting.

    With an encoder that was never calibrated, only hits that share no word with the question are refused.
    """
    rule = CALIBRATIONS.get(encoder_name)
    if rule is None:
        return signs.coverage > 0
    return rule.closeness_weight * signs.closeness + rule.coverage_weight * signs.coverage >= rule.threshold


def measure_signs(question: str, hits: Sequence[SearchHit], n_query_tokens: int) -> Signs:
    """Measure how near the best hits are to the question; without a hit both signs are at their lowest."""
    if not hits:
        return Signs(-1.0, 0.0)
    asked = _stems(question)
    found = set().union(*(_stems(hit.text) for hit in hits[:PASSAGES_READ]))
    return Signs(hits[0].score / n_query_tokens, len(asked & found) / len(asked) if asked else 0.0)


def _stems(text: str) -> set[str]:
    letters = unicodedata.normalize("NFD", text.replace("œ", "oe").replace("Œ", "oe").lower())
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return {word[:STEM_LETTERS] for word in CONTENT_WORD.findall(plain) if word not in QUESTION_WORDS}
