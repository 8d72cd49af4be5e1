"""Clusters: documents that share key terms, and the topics they are about.

In: the weighted key terms of documents. Out: `Centres`, frozen, which assign any document and name topics.

Documents are unit vectors of their key terms' weights, divided by k-means (scikit-learn's, seeded, from one start by
k-means++); centres are unit vectors too, and the nearest is the one of greatest cosine (Dhillon and Modha, 2001).
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

SEED = 20240229
MOST_CLUSTERS = 200
MOST_FEATURES = 4096  # key terms that centres are made of: those of most documents
LEAST_DOCUMENTS = 2  # a key term of one document joins it to no other
BATCH = 1024  # documents a step of k-means looks at
LABEL_TERMS = 4  # of a topic's label


@dataclass(frozen=True)
class Centres:
    """Centres of clusters. The largest cluster is 0; each row is a unit vector."""

    terms: tuple[str, ...]  # the key terms that columns stand for
    matrix: np.ndarray  # float32, shape (n_clusters, n_terms)

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or self.matrix.dtype != np.float32 or self.matrix.shape[1] != len(self.terms):
            raise ValueError(
                f"not centres: {self.matrix.dtype} of shape {self.matrix.shape} for {len(self.terms)} terms "
                "(expected float32 of shape (n_clusters, n_terms))"
            )

    @classmethod
    def from_bytes(cls, terms: Sequence[str], data: bytes) -> "Centres":
        """Return the centres that `to_bytes` gave.

        Raises:
            ValueError: If the bytes are no whole number of rows.
        """
        width = 4 * len(terms)
        if bool(data) != bool(width) or (width and len(data) % width):
            raise ValueError(f"not centres: {len(data)} bytes for {len(terms)} terms (expected a multiple of {width})")
        rows = len(data) // width if width else 0
        return cls(tuple(terms), np.frombuffer(data, dtype="<f4").astype(np.float32).reshape(rows, len(terms)))

    def to_bytes(self) -> bytes:
        """Return the matrix row by row, little-endian."""
        return self.matrix.astype("<f4").tobytes()

    def assign(self, weights: Mapping[str, float]) -> int | None:
        """Return the cluster nearest to a document; None if it shares no term with any.

        Args:
            weights: The document's key terms, in whatever order.
        """
        found = sorted((self._columns[term], weight) for term, weight in weights.items() if term in self._columns)
        if not found:
            return None
        columns = [column for column, _ in found]
        # Summed in one order and without BLAS: a document assigned alone gets what it got among others.
        scores = (self._by_term[columns] * np.array([[weight] for _, weight in found])).sum(axis=0)
        best = int(scores.argmax())
        return best if scores[best] > 0 else None

    def labels(self, shown: Mapping[str, str]) -> list[str]:
        """Return each cluster's topic: the terms that tell it best from the others, as many as no other label has.

        Args:
            shown: By term, how it is written; see `TermStatistics`.
        """
        labels: list[str] = []
        for number in range(len(self.matrix)):
            terms = (shown.get(term, term) for term in self._telling(number))
            labels.append(_label(terms, set(labels), number))
        return labels

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {term: column for column, term in enumerate(self.terms)}

    @cached_property
    def _by_term(self) -> np.ndarray:
        return np.ascontiguousarray(self.matrix.T, dtype=np.float64)

    def _telling(self, number: int) -> Iterator[str]:
        """Yield a centre's terms that weigh most above the mean of all centres, but for words of those before."""
        row = self.matrix[number]
        above = row - self.matrix.mean(axis=0) if len(self.matrix) > 1 else row
        said: set[str] = set()
        best = sorted(np.flatnonzero(row > 0), key=lambda column: (-above[column], -row[column], self.terms[column]))
        for column in best:
            words = set(self.terms[column].split())
            if not words <= said:
                said |= words
                yield self.terms[column]


def n_clusters(n_documents: int) -> int:
    """Return into how many clusters documents are divided, 1 to 200: the root of half their number (Mardia, 1979)."""
    return max(1, min(MOST_CLUSTERS, round(math.sqrt(n_documents / 2))))


def fit_centres(documents: Iterable[Mapping[str, float]], n: int | None = None) -> Centres:
    """Divide documents into clusters. Equal documents in equal order give equal centres.

    All are held in memory: of a large corpus, give those that `is_counted` draws.

    Args:
        documents: Each one's key terms with their weights, above 0.
        n: How many clusters at most; by default what `n_clusters` says of the documents.
    """
    held = list(documents)
    counts = Counter(term for weights in held for term in weights)
    kept = sorted((term for term in counts if counts[term] >= LEAST_DOCUMENTS), key=lambda term: (-counts[term], term))
    terms = tuple(kept[:MOST_FEATURES])
    rows = _unit_rows(held, {term: column for column, term in enumerate(terms)})
    if not rows:
        return Centres((), np.empty((0, 0), dtype=np.float32))
    return Centres(terms, _k_means(rows, len(terms), min(n or n_clusters(len(held)), len(rows))))


def _unit_rows(documents: Iterable[Mapping[str, float]], columns: Mapping[str, int]) -> list[dict[int, float]]:
    rows = []
    for weights in documents:
        row = {columns[term]: weight for term, weight in weights.items() if term in columns}
        if row:
            norm = math.sqrt(sum(weight * weight for weight in row.values()))
            rows.append({column: row[column] / norm for column in sorted(row)})
    return rows


def _k_means(rows: list[dict[int, float]], n_columns: int, n: int) -> np.ndarray:
    """Return the centres of rows, shape (at most n, n_columns), those of most rows first."""
    from scipy.sparse import csr_array
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    ends = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int32)
    columns = np.fromiter((column for row in rows for column in row), dtype=np.int32)
    values = np.fromiter((value for row in rows for value in row.values()), dtype=np.float32)
    matrix = csr_array((values, columns, ends), shape=(len(rows), n_columns))
    with threadpool_limits(1):  # sums in one order, on however many cores
        model = MiniBatchKMeans(n, random_state=SEED, batch_size=BATCH, n_init=3).fit(matrix)
    sizes = np.bincount(model.labels_, minlength=n)
    order = [cluster for cluster in np.argsort(-sizes, kind="stable") if sizes[cluster]]
    centres = model.cluster_centers_[order].astype(np.float32)
    unit: np.ndarray = centres / np.linalg.norm(centres, axis=1, keepdims=True)
    return unit


def _label(terms: Iterable[str], taken: set[str], number: int) -> str:
    """Return a label that none of those taken is."""
    label: list[str] = []
    for term in terms:
        label.append(term)
        if len(label) >= LABEL_TERMS and ", ".join(label) not in taken:
            return ", ".join(label)
    return ", ".join(label) if ", ".join(label) not in taken else ", ".join([*label, str(number)])
