"""Re-ranking for a Library without PLAID files: candidates of BM25 are encoded when they are scored.

MaxSim is exact to the encoder's precision. Nothing can be searched this way: scoring a chunk costs its encoding.
"""

from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from legal_rag.chunking import build_chunker, chunks_recorded, document_header, has_header
from legal_rag.encoder import Encoder
from legal_rag.library import Library
from legal_rag.plaid_search import ShardHits, ShardSize

NOT_SEARCHABLE = "this Library was built without one (n_bits 0): its modes are bm25 and bm25+rerank"


class OnTheFlyReranker:
    """`Shards` of a Library without PLAID files: scores candidates, cannot search."""

    def __init__(self, library: Library, encoder: Encoder) -> None:
        self.dim = encoder.identity.dim
        self.sizes = [ShardSize(int(shard["chunks"]), 0) for shard in library.manifest["shards"]]
        self._library, self._encoder = library, encoder
        settings, limit = chunks_recorded(library.manifest), encoder.identity.document_length
        self._chunker = build_chunker(settings, encoder.count_tokens, limit)

    def scores(self, queries: Sequence[np.ndarray], candidates: Sequence[Sequence[ShardHits]]) -> list[list[ShardHits]]:
        """Encode all candidates, each once, and return their MaxSim scores."""
        places = sorted(
            {(shard, int(one)) for shard, own in enumerate(candidates) for hits in own for one in hits.positions}
        )
        vectors = dict(zip(places, self._encoder.encode_documents(self._texts(places)), strict=True))
        return [
            [
                ShardHits(
                    hits.positions,
                    np.array([_max_sim(query, vectors[shard, int(one)]) for one in hits.positions], dtype=np.float32),
                )
                for query, hits in zip(queries, own, strict=True)
            ]
            for shard, own in enumerate(candidates)
        ]

    def candidates(
        self, queries: Sequence[np.ndarray], n: int, subsets: Sequence[np.ndarray | None]
    ) -> list[list[ShardHits]]:
        """Raise ValueError: there is nothing to search."""
        _refuse()

    def best(
        self, queries: Sequence[np.ndarray], k: int, subsets: Sequence[np.ndarray | None]
    ) -> list[list[ShardHits]]:
        """Raise ValueError: there is nothing to search."""
        _refuse()

    def _texts(self, places: Sequence[tuple[int, int]]) -> list[str]:
        """Return what the encoder is given of chunks: their text, with the document's header where the index has it."""
        texts = []
        for chunk in self._library.chunks_at(places):
            header = ""
            if has_header(self._chunker.config, chunk.chunk_index):
                header = document_header(self._chunker, self._library.document(chunk.doc_id).row())
            texts.append(header + chunk.text)
        return texts


def _max_sim(query: np.ndarray, document: np.ndarray) -> float:
    return float((query @ document.T).max(axis=1).sum())


def _refuse() -> NoReturn:
    raise ValueError(NOT_SEARCHABLE)
