"""Abstention: are the retrieved passages relevant enough to answer?

Two features are weighed: mean MaxSim of the best passage over the question's own tokens, and the share of the
question's words that the best three passages contain. Near and far lie differently for each encoder, so the weights are
calibrated for each by `benchmarks/abstention.py`.
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


class AbstentionFeatures(NamedTuple):
    """Features of a question and its hits, from which abstention is decided."""

    mean_maxsim: float  # mean over the question's tokens of their best cosine in the best passage, -1 to 1
    coverage: float  # share of the question's words that the best passages contain, 0 to 1


class Calibration(NamedTuple):
    """A linear rule: relevant where `maxsim_weight * mean_maxsim + coverage_weight * coverage` reaches `threshold`."""

    maxsim_weight: float
    coverage_weight: float
    threshold: float


CALIBRATIONS = {"bundled": Calibration(maxsim_weight=1.0, coverage_weight=0.037, threshold=0.8188)}


def is_relevant(features: AbstentionFeatures, encoder_name: str, rule: Calibration | None = None) -> bool:
    """Tell whether passages are worth quoting.

    Without a calibration for the encoder, only passages that share no word with the question are refused.

    Args:
        features: From `abstention_features`.
        encoder_name: Whose calibration to use.
        rule: Another one to use instead.
    """
    rule = rule or CALIBRATIONS.get(encoder_name)
    if rule is None:
        return features.coverage > 0
    return rule.maxsim_weight * features.mean_maxsim + rule.coverage_weight * features.coverage >= rule.threshold


def abstention_features(question: str, passages: Sequence[str], best_similarities: np.ndarray) -> AbstentionFeatures:
    """Measure the features of a question and the passages found for it.

    Args:
        question: The question.
        passages: The texts found, best first; without any, both features are at their lowest.
        best_similarities: Shape (n,), for each token of the question's own words its highest cosine with the tokens
            of the best passage. Special tokens and prefixes are left out: they match everything.
    """
    if not passages or not len(best_similarities):
        return AbstentionFeatures(-1.0, 0.0)
    asked = _stems(question)
    found = set().union(*(_stems(passage) for passage in passages[:PASSAGES_READ]))
    return AbstentionFeatures(float(best_similarities.mean()), len(asked & found) / len(asked) if asked else 0.0)


def _stems(text: str) -> set[str]:
    letters = unicodedata.normalize("NFD", text.replace("œ", "oe").replace("Œ", "oe").lower())
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return {word[:STEM_LETTERS] for word in CONTENT_WORD.findall(plain) if word not in QUESTION_WORDS}
