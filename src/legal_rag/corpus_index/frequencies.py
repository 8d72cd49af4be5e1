"""Document frequencies: in how many documents of a corpus a term stands, counted once and then frozen.

In: the terms of documents, in whatever order and batches. Out: `TermStatistics`. A large corpus is counted by a sample
of its documents, drawn by their ids, so that memory does not grow with it and the same documents give the same counts.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from legal_rag.corpus_index.terms import TextTerms

SAMPLED = 20_000  # documents counted, about: enough to tell one in a hundred from one in a thousand
LEAST_DOCUMENTS = 2  # a term of fewer is not kept: most such are names and slips of the pen
MOST_TERMS = 300_000  # kept, the most frequent ones: some 60 MB


@dataclass(frozen=True)
class TermStatistics:
    """What is known of the terms of a corpus; without documents, all terms are as good as unknown.

    The mappings may be of any kind, also ones that look into a file.
    """

    n_documents: int = 0  # that were counted
    frequencies: Mapping[str, int] = field(default_factory=dict)  # by term, of the documents counted
    shown: Mapping[str, str] = field(default_factory=dict)  # by term: how it is written most often


class TermCounter:
    """Counts in the making. Adding in another order, or in parts that are merged, comes to the same.

    A document counts for the one form in which it first writes a term, so that forms add up to terms.
    """

    def __init__(self) -> None:
        self.n_documents = 0
        self._documents: Counter[str] = Counter()  # by term and form, a tab between them

    def add(self, terms: TextTerms) -> None:
        """Count one document."""
        self.n_documents += 1
        self._documents.update([f"{term}\t{shown}" for term, shown in terms.shown.items()])

    def merge(self, other: "TermCounter") -> None:
        """Count the documents that another counter has counted."""
        self.n_documents += other.n_documents
        self._documents.update(other._documents)

    def freeze(self) -> TermStatistics:
        """Return the statistics of the documents counted so far."""
        frequencies: Counter[str] = Counter()
        best: dict[str, tuple[int, int, str]] = {}
        for form, n in self._documents.items():
            term, _, shown = form.partition("\t")
            frequencies[term] += n
            rank = (-n, len(shown), shown)
            if term not in best or rank < best[term]:
                best[term] = rank
        kept = [term for term, n in frequencies.items() if n >= LEAST_DOCUMENTS]
        kept = sorted(kept, key=lambda term: (-frequencies[term], term))[:MOST_TERMS]
        return TermStatistics(
            self.n_documents, {term: frequencies[term] for term in kept}, {term: best[term][2] for term in kept}
        )


def is_counted(doc_id: str, n_documents: int) -> bool:
    """Tell whether a document is one of those by which a corpus is counted: all, up to `SAMPLED`."""
    if n_documents <= SAMPLED:
        return True
    drawn = int.from_bytes(hashlib.blake2b(doc_id.encode(), digest_size=8).digest(), "big")
    return drawn * n_documents < SAMPLED << 64
