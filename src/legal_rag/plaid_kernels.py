"""The inner loops of a PLAID search, compiled by numba.

In: a shard's arrays. Out: scores. Every kernel runs without Python's lock and on one core, so that a pool of threads
shares the passages out, and several searches may run at once (numba's own thread pool allows neither).
"""

import numpy as np
from numba import njit

# Sums may be taken in another order; infinities keep their meaning, since a maximum starts from one.
FAST = {"reassoc", "contract"}


@njit(nogil=True, cache=True, fastmath=FAST)
def centroid_only_scores(
    centroid_scores: np.ndarray, codes: np.ndarray, starts: np.ndarray, ends: np.ndarray, out: np.ndarray
) -> None:
    """Score passages by their tokens' centroids alone.

    Args:
        centroid_scores: Shape (n_centroids, n_query_tokens), float32.
        codes: Shape (n_tokens,), the tokens' centroids.
        starts: Shape (n_passages,), where each passage's tokens begin in `codes`.
        ends: Shape (n_passages,), where they end.
        out: Shape (n_passages,), float32, filled with the sums over query tokens of the best centroid's score.
    """
    n_query_tokens = centroid_scores.shape[1]
    best = np.empty(n_query_tokens, dtype=np.float32)
    for passage in range(len(starts)):
        best[:] = -np.inf
        for token in range(starts[passage], ends[passage]):
            row = centroid_scores[codes[token]]
            for q in range(n_query_tokens):
                best[q] = max(best[q], row[q])
        total = np.float32(0.0)
        for q in range(n_query_tokens):
            total += best[q]
        out[passage] = total


@njit(nogil=True, cache=True, fastmath=FAST)
def decompress(
    codes: np.ndarray, residuals: np.ndarray, centroids: np.ndarray, table: np.ndarray, out: np.ndarray
) -> None:
    """Rebuild token vectors: centroid plus residual, brought back to unit length.

    Args:
        codes: Shape (n_tokens,).
        residuals: Shape (n_tokens, dim * bits / 8), uint8.
        centroids: Shape (n_centroids, dim), float32.
        table: Shape (256, 8 / bits), float32: the residuals that each byte stands for.
        out: Shape (n_tokens, dim), float32, filled with unit rows.
    """
    per_byte = table.shape[1]
    for token in range(len(codes)):
        centroid, vector = centroids[codes[token]], out[token]
        squares = np.float32(0.0)
        for byte in range(residuals.shape[1]):
            values = table[residuals[token, byte]]
            for i in range(per_byte):
                value = centroid[byte * per_byte + i] + values[i]
                vector[byte * per_byte + i] = value
                squares += value * value
        scale = np.float32(1.0) / max(np.sqrt(squares), np.float32(1e-12))
        for d in range(len(vector)):
            vector[d] *= scale


@njit(nogil=True, cache=True, fastmath=FAST)
def sum_of_maxima(similarities: np.ndarray, lengths: np.ndarray, out: np.ndarray) -> None:
    """Sum over query tokens the maximum over each passage's tokens.

    Args:
        similarities: Shape (n_tokens, n_query_tokens), float32, passages one after the other.
        lengths: Shape (n_passages,), tokens of each passage.
        out: Shape (n_passages,), float32, filled with MaxSim scores.
    """
    n_query_tokens = similarities.shape[1]
    best = np.empty(n_query_tokens, dtype=np.float32)
    token = 0
    for passage in range(len(lengths)):
        best[:] = -np.inf
        for _ in range(lengths[passage]):
            for q in range(n_query_tokens):
                best[q] = max(best[q], similarities[token, q])
            token += 1
        total = np.float32(0.0)
        for q in range(n_query_tokens):
            total += best[q]
        out[passage] = total
