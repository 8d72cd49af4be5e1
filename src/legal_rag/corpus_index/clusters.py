"""Topics: clusters of documents by their terms."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

SEED = 20240229
MAX_CLUSTERS = 200
MAX_FEATURES = 4096  # key terms that centres are made of, those of most documents
MIN_DOCUMENTS = 2  # a key term of a single document links it to none
BATCH = 1024  # documents per step of k-means
LABEL_TERMS = 4  # of a topic


@dataclass(frozen=True)
class Centres:
    """Cluster centres, the largest cluster first; each row is a unit vector."""

    terms: tuple[str, ...]  # the key terms of the columns
    matrix: np.ndarray  # float32, shape (n_clusters, n_terms)

    @classmethod
    def from_bytes(cls, terms: Sequence[str], data: bytes) -> "Centres":
        """Read the rows of the matrix, little-endian; ValueError if the bytes are not a whole number of rows."""
        width = 4 * len(terms)
        if len(data) % max(width, 1):
            raise ValueError(f"not centres: {len(data)} bytes for {len(terms)} terms (expected a multiple of {width})")
        rows = len(data) // width if width else 0
        return cls(tuple(terms), np.frombuffer(data, dtype="<f4").astype(np.float32).reshape(rows, len(terms)))

    def assign(self, weights: Mapping[str, float]) -> int | None:
        """Return the cluster nearest to a document's weighted key terms; None if it shares no term with any."""
        weighted = sorted((self._features[term], weight) for term, weight in weights.items() if term in self._features)
        if not weighted:
            return None
        columns = [column for column, _ in weighted]
        # Summed in one order and without BLAS, so that a document gets the same cluster alone and in a batch.
        scores = (self._by_term[columns] * np.array([[weight] for _, weight in weighted])).sum(axis=0)
        best = int(scores.argmax())
        return best if scores[best] > 0 else None

    def labels(self, shown: Mapping[str, str]) -> list[str]:
        """Return each cluster's topic, all different, in surface forms: the terms that distinguish it best from the
        others.
        """
        labels: list[str] = []
        for cluster in range(len(self.matrix)):
            terms = (shown.get(term, term) for term in self._distinctive(cluster))
            labels.append(_distinct_label(terms, set(labels), cluster))
        return labels

    @cached_property
    def _features(self) -> dict[str, int]:
        return {term: column for column, term in enumerate(self.terms)}

    @cached_property
    def _by_term(self) -> np.ndarray:
        return np.ascontiguousarray(self.matrix.T, dtype=np.float64)

    def _distinctive(self, cluster: int) -> Iterator[str]:
        """Yield a centre's terms by how far they exceed the mean of all centres, skipping those without a new word."""
        row = self.matrix[cluster]
        above = row - self.matrix.mean(axis=0) if len(self.matrix) > 1 else row
        yielded: set[str] = set()
        best = sorted(np.flatnonzero(row > 0), key=lambda column: (-above[column], -row[column], self.terms[column]))
        for column in best:
            words = set(self.terms[column].split())
            if not words <= yielded:
                yielded |= words
                yield self.terms[column]


def n_clusters(n_documents: int) -> int:
    """Return the number of clusters, 1 to 200: the root of half the documents (Mardia, 1979)."""
    return max(1, min(MAX_CLUSTERS, round(math.sqrt(n_documents / 2))))


def fit_centres(documents: Iterable[Mapping[str, float]], n: int | None = None) -> Centres:
    """Cluster documents, weights above 0 by key term, into at most `n` clusters; equal input gives equal centres.

    All are held in memory: of a large corpus, pass a sample (`is_sampled`).
    """
    vectors = list(documents)
    terms, rows = _sparse_unit_rows(vectors)
    if not terms:
        return Centres((), np.empty((0, 0), dtype=np.float32))
    return Centres(terms, _k_means(rows, min(n or n_clusters(len(vectors)), rows.shape[0])))


def _sparse_unit_rows(vectors: Sequence[Mapping[str, float]]) -> tuple[tuple[str, ...], Any]:
    """Return the most frequent terms, and the documents that hold any as a sparse matrix of unit rows."""
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.preprocessing import normalize

    if not any(vectors):
        return (), None
    vectorizer = DictVectorizer()
    matrix = vectorizer.fit_transform(vectors)
    counts = matrix.getnnz(axis=0)
    kept = np.argsort(-counts, kind="stable")[:MAX_FEATURES]  # equal counts in alphabetical order
    kept = kept[counts[kept] >= MIN_DOCUMENTS]
    if not kept.size:
        return (), None
    rows = matrix[:, kept].sorted_indices()
    rows = normalize(rows[rows.getnnz(axis=1) > 0]).astype(np.float32)
    return tuple(vectorizer.get_feature_names_out()[kept]), rows


def _k_means(rows: Any, n: int) -> np.ndarray:
    """Return at most `n` unit centres of the rows of a sparse matrix, those of most rows first."""
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # sums in one order, on however many cores
        model = MiniBatchKMeans(n, random_state=SEED, batch_size=BATCH, n_init=3).fit(rows)
    sizes = np.bincount(model.labels_, minlength=n)
    order = [cluster for cluster in np.argsort(-sizes, kind="stable") if sizes[cluster]]
    centres = model.cluster_centers_[order]
    unit: np.ndarray = centres / np.linalg.norm(centres, axis=1, keepdims=True)
    return unit


def _distinct_label(terms: Iterable[str], taken: set[str], cluster: int) -> str:
    label: list[str] = []
    for term in terms:
        label.append(term)
        if len(label) >= LABEL_TERMS and ", ".join(label) not in taken:
            return ", ".join(label)
    return ", ".join(label) if ", ".join(label) not in taken else ", ".join([*label, str(cluster)])
