"""Whether the passages found have to do with the question at all: when to abstain.

In: a question and the passages found. Out: yes or no. Two signs are weighed: how close the best passage is (the mean,
over the tokens of the question's words, of their best match in it), and how many of those words stand in the best three
passages. How far apart near and far lie differs from encoder to encoder, so the weights are measured for each:
`benchmarks/abstention.py` does it.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

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

    closeness: float  # of the best passage: mean over the question's tokens of their best cosine, -1 to 1
    coverage: float  # share of the question's words that stand in the best passages, 0 to 1


class Calibration(NamedTuple):
    """A linear rule: relevant where `closeness_weight * closeness + coverage_weight * coverage` reaches `threshold`."""

    closeness_weight: float
    coverage_weight: float
    threshold: float


CALIBRATIONS = {"bundled": Calibration(closeness_weight=1.0, coverage_weight=0.037, threshold=0.8188)}


def is_relevant(signs: Signs, encoder_name: str, rule: Calibration | None = None) -> bool:
    """Tell whether passages are worth quoting.

    With an encoder that was never calibrated, only passages that share no word with the question are refused.

    Args:
        signs: From `measure_signs`.
        encoder_name: Whose calibration to use.
        rule: Another one to use instead.
    """
    rule = rule or CALIBRATIONS.get(encoder_name)
    if rule is None:
        return signs.coverage > 0
    return rule.closeness_weight * signs.closeness + rule.coverage_weight * signs.coverage >= rule.threshold


def measure_signs(question: str, passages: Sequence[str], best_similarities: np.ndarray) -> Signs:
    """Measure how near passages are to a question.

    Args:
        question: The question.
        passages: The texts found, best first; without any, both signs are at their lowest.
        best_similarities: Shape (n,), for each token of the question's own words its highest cosine with the tokens
            of the best passage. Special tokens and prefixes are left out: they are near to everything.
    """
    if not passages or not len(best_similarities):
        return Signs(-1.0, 0.0)
    asked = _stems(question)
    found = set().union(*(_stems(passage) for passage in passages[:PASSAGES_READ]))
    return Signs(float(best_similarities.mean()), len(asked & found) / len(asked) if asked else 0.0)


def _stems(text: str) -> set[str]:
    letters = unicodedata.normalize("NFD", text.replace("œ", "oe").replace("Œ", "oe").lower())
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return {word[:STEM_LETTERS] for word in CONTENT_WORD.findall(plain) if word not in QUESTION_WORDS}
