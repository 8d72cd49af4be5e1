"""IDF weights of a question's tokens in MaxSim: the rarer its word in the corpus, the more a token counts.

MaxSim with scaled vectors is the weighted sum of the tokens' best similarities. An encoder trained for late interaction
learns such lengths; one that was not treats "le" and "licenciement" alike.
"""

import re
from collections.abc import Callable

import numpy as np

WORD = re.compile(r"\w+")


def idf_weighted_query(
    question: str, vectors: np.ndarray, offsets: np.ndarray, rarity: Callable[[str], float]
) -> np.ndarray:
    """Scale a question's token vectors by IDF; drop those of stop words, punctuation and special tokens.

    A token weighs the square root of its word's inverse document frequency; weights have mean 1. Rows beyond the
    question's own tokens, by which an encoder expands it, weigh 1.

    Args:
        question: The question.
        vectors: Shape (n_rows, dim), unit rows.
        offsets: Shape (n_tokens, 2): the characters that the first rows stand for.
        rarity: The inverse document frequency of a word, 0 for one that does not count.

    Returns:
        Shape (n_weighed, dim), at most n_rows; all of `vectors` as they are where no word counts.
    """
    weights = np.zeros(len(vectors), dtype=np.float32)
    for word in WORD.finditer(question):
        inside = (offsets[:, 0] < word.end()) & (offsets[:, 1] > word.start())
        weights[: len(offsets)][inside[: len(weights)]] = np.sqrt(rarity(word.group()))
    counting = weights > 0
    if not counting.any():
        return vectors
    weights /= weights[counting].mean()
    weights[len(offsets) :] = 1.0
    kept = weights > 0
    return np.asarray(vectors[kept] * weights[kept, None], dtype=np.float32)
