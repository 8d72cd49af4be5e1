"""Searching a Library by its words alone: no encoder is loaded, and nothing is encoded.

In: a question, filters. Out: `SearchHit`s by BM25; what goes by a name in the question comes first.
"""

import unicodedata
from functools import cached_property
from typing import cast

from legal_rag.chunking import chunk_id
from legal_rag.filters import Filters
from legal_rag.library import Library
from legal_rag.plaid import SearchSettings, Shards
from legal_rag.ranking import Question, Ranker
from legal_rag.retriever import SearchHit

NO_SHARDS = cast("Shards", ())  # BM25 asks none


class WordSearch:
    """Search by BM25 over one Library; its index of words is opened when it is first needed."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def search(
        self, query: str, k: int, filters: Filters | None = None, *, by_document: bool = False
    ) -> list[SearchHit]:
        """Rank passages that share words or names with a question.

        Args:
            query: The question.
            k: How many at most.
            filters: Search the documents that pass them only.
            by_document: Count documents: each appears once, by its best passage.
        """
        text = unicodedata.normalize("NFC", query)
        named = self._library.positions_named(text)
        first = [one for one in (named.own, named.citing) if one is not None]
        question = Question(text, None, first, named.having)
        subsets = self._library.positions(filters) if filters else None
        wanted = k * 4 if by_document else k
        while True:
            (ranked,) = self._ranker.rank([question], wanted, "bm25", subsets)
            hits = self._hits(ranked, by_document=by_document)
            if len(hits) >= k or len(ranked) < wanted:
                return [hit._replace(rank=rank) for rank, hit in enumerate(hits[:k], start=1)]
            wanted *= 4

    @cached_property
    def _ranker(self) -> Ranker:
        return Ranker(NO_SHARDS, SearchSettings(), self._library.lexical_index(), self._library.citation_links())

    def _hits(self, ranked: list[tuple[int, int, float]], *, by_document: bool) -> list[SearchHit]:
        chunks = self._library.chunks_at([one[:2] for one in ranked])
        hits: list[SearchHit] = []
        seen: set[str] = set()
        for (_, _, score), chunk in zip(ranked, chunks, strict=True):
            if by_document and chunk.doc_id in seen:
                continue
            seen.add(chunk.doc_id)
            where = (chunk.title, chunk.decision_date, chunk.char_start, chunk.char_end, chunk.text)
            hits.append(
                SearchHit(len(hits) + 1, chunk_id(chunk.doc_id, chunk.chunk_index), chunk.doc_id, score, *where)
            )
        return hits
