"""Score fusion: MaxSim, chunk BM25 and document BM25 as one score; citation propagation between documents."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from legal_rag.citation_links import Link

Mode = Literal["hybrid", "colbert", "bm25", "bm25+rerank"]
MODES: tuple[Mode, ...] = get_args(Mode)
LATE_WEIGHT, CHUNK_WEIGHT, DOCUMENT_WEIGHT = 0.5, 0.1, 0.4  # of MaxSim; of BM25 of the chunk; of its document
FUSED_CHUNKS = 128  # that each part brings into a hybrid ranking, at least
LENGTH_PRIOR_WEIGHT = 1.25  # of the logarithm of the chances that its chunk count gives a document
LENGTH_PRIOR_PER_CHUNK = 0.5  # chances that each further chunk adds to the first one's
CITING_DOCUMENTS = 200  # best documents that propagate their scores to what they cite
CITED_WEIGHT = 1.0  # of what a document gets from those that cite it


def fuse(
    late: np.ndarray, words: np.ndarray, wholes: np.ndarray, n_chunks: np.ndarray, first: np.ndarray
) -> np.ndarray:
    """Fuse scores: a weighted sum of z-scores, less a length prior.

    Mean and deviation are taken over the best `FUSED_CHUNKS` among `first`, so that a score does not depend on how many
    chunks are asked for. Documents of many chunks have many chances of a high score: a penalty in proportion to the
    logarithm of these chances makes every document equally likely to come first, as before a question is asked.

    Args:
        late: MaxSim, shape (n,).
        words: BM25, shape (n,).
        wholes: BM25 of the documents that the chunks are of, shape (n,).
        n_chunks: How many chunks these documents have, shape (n,).
        first: Which chunks are among the `FUSED_CHUNKS` best by MaxSim or by BM25, shape (n,), bool.

    Returns:
        Shape (n,), float64; higher is more relevant, comparable within one query only.
    """
    parts = ((LATE_WEIGHT, late), (CHUNK_WEIGHT, words), (DOCUMENT_WEIGHT, wholes))
    fused = np.sum([weight * _standard(scores, first) for weight, scores in parts], axis=0)
    chances = 1 + LENGTH_PRIOR_PER_CHUNK * (n_chunks - 1)
    return np.asarray(fused - LENGTH_PRIOR_WEIGHT * np.log(chances))


def propagate_citations(
    scores: Mapping[int, float], links: Sequence[Link], shares: Mapping[str, float]
) -> dict[int, float]:
    """Propagate scores along citations: one step of a random walk (Page et al., 1999) from the best documents.

    Each of the best `CITING_DOCUMENTS` passes on its score above the last of them, in equal parts to all that it cites.
    The gain expected if they cited as all documents do is subtracted, so that what everybody cites gains nothing.

    Args:
        scores: Of documents, by their keys.
        links: From them.
        shares: Of all documents, the part that names what each link's name stands for; in [0, 1].

    Returns:
        By key, only what is above 0; in the unit of the scores.
    """
    best = sorted(scores, key=lambda key: (-scores[key], key))[:CITING_DOCUMENTS]
    surplus = {key: scores[key] - scores[best[-1]] for key in best}
    gained: dict[int, float] = defaultdict(float)
    expected: dict[int, float] = {}
    for link in links:
        gained[link.cited] += surplus.get(link.citing, 0.0) * link.share
        expected[link.cited] = max(expected.get(link.cited, 0.0), shares[link.name])
    total = sum(gained.values())
    return {key: gain for key, sum_ in gained.items() if (gain := sum_ - expected[key] * total) > 0}


def _standard(scores: np.ndarray, first: np.ndarray) -> np.ndarray:
    best = np.sort(scores[first].astype(np.float64))[-FUSED_CHUNKS:]
    spread = best.std() if len(best) else 0.0
    return (scores - best.mean()) / spread if spread else np.zeros(len(scores))
