"""From a question to ranked chunks: search modes, filters, near-duplicates."""

import logging
import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from legal_rag.base.html import Rows, displayed
from legal_rag.corpus.chunking import chunk_id
from legal_rag.encoder.encoder import Encoder, TokenVectors, check_text, load_encoder
from legal_rag.encoder.encoder import build_encoder as build_encoder
from legal_rag.law.keys import ParsedQuery
from legal_rag.library.bm25 import LexicalIndex, Ranked, bounded_query
from legal_rag.library.filters import Filters as Filters
from legal_rag.library.library import Library
from legal_rag.library.plaid.search import PlaidShards, SearchSettings, Shards
from legal_rag.library.query_language import EVERYTHING, Node, TextMatches, find_matches, split_places
from legal_rag.library.store import Place, StoredChunk
from legal_rag.retriever.ranking import (
    Mode,
    OnTheFlyReranker,
    QueryFeatures,
    Ranker,
    Subsets,
    idf_weighted_query,
    intersection,
)

if TYPE_CHECKING:
    from legal_rag.library.chunk_vectors import ChunkVectors

logger = logging.getLogger(__name__)

CONDITIONS_KEPT = 8  # a search box looks one up before it searches
SHINGLE_WORDS = 5
CHUNKS_READ = 64  # of a document, to find its best passage: some 100,000 characters
NEAR = 0.6  # Jaccard similarity of shingles from which one text is a near-duplicate of the other


@displayed
class SearchHit(NamedTuple):
    """A ranked chunk with its display fields."""

    rank: int  # from 1
    title: str
    decision_date: str
    doc_id: str
    chunk_id: str
    score: float  # falls with the rank; see `legal_rag.retriever.ranking`
    char_start: int
    char_end: int
    text: str  # content[char_start:char_end]


@displayed
@dataclass(frozen=True)
class EncodedQuery(ParsedQuery):
    """A question checked by `Retriever.query`; parsed and encoded once."""

    encoder: Encoder = field(repr=False, compare=False)

    @cached_property
    def tokens(self) -> TokenVectors:
        """Its token vectors, with offsets."""
        return TokenVectors(*self.encoder.encode_with_offsets(self.text, as_query=True))


class Retriever:
    """Search over one corpus by late interaction, BM25, or both; threads may share it.

    Attributes:
        corpus: Whose chunks are searched.
    """

    def __init__(
        self,
        corpus: Library,
        encoder: Encoder | None = None,
        settings: SearchSettings | None = None,
        shards: Shards | None = None,
        *,
        trust_remote_code: bool = False,
    ) -> None:
        """Open a corpus for searching; without an encoder, lazily: BM25 alone loads neither encoder nor shards.

        Args:
            corpus: Whose chunks are searched.
            encoder: The one its index was made with; None loads the one that the manifest names, when first needed.
            settings: How thorough searches are.
            shards: The corpus's shards, if they are open already, e.g. in Ray actors.
            trust_remote_code: Run code that comes with the encoder; an index cannot allow it by itself.
        """
        self.corpus, self._encoder, self._shards = corpus, encoder, shards
        self._settings = settings or SearchSettings()
        self._trust_remote_code = trust_remote_code
        self._lock, self._shards_lock = threading.RLock(), threading.RLock()  # encoder and shards are loaded once
        if encoder is not None:
            self._open_shards()
            _ = self._ranker, self._chunk_vectors

    @property
    def encoder(self) -> Encoder:
        """The encoder that the index was made with, loaded on first use; see `load_encoder` for what is raised."""
        with self._lock:
            if self._encoder is None:
                manifest, path = self.corpus.manifest, self.corpus.path
                self._encoder = load_encoder(manifest, path, trust_remote_code=self._trust_remote_code)
            return self._encoder

    @cached_property
    def _lexical_index(self) -> LexicalIndex:
        return self.corpus.lexical_index()

    @cached_property
    def _ranker(self) -> Ranker:
        lexical, links = self._lexical_index, self.corpus.citation_links()
        self.corpus.check_unchanged()  # once all is open, so that all is of one build
        return Ranker(
            self._open_shards,
            self._settings,
            lexical,
            links,
            open_vectors=lambda: self._chunk_vectors,
            searchable=self._has_plaid,
        )

    @cached_property
    def _chunk_vectors(self) -> "ChunkVectors | None":
        try:
            vectors = None if self._settings.exhaustive else self.corpus.chunk_vectors()
        except (OSError, ValueError):
            self.corpus.check_unchanged()  # files of another build are not damaged ones
            raise
        self.corpus.check_unchanged()
        return vectors

    @property
    def default_mode(self) -> Mode:
        """How `search` ranks by default: the first mode that the corpus is indexed for."""
        return self._ranker.checked(None)

    @property
    def _has_plaid(self) -> bool:
        return bool(self.corpus.manifest["plaid"]["n_bits"])

    def load(self) -> None:
        """Load encoder and shards now, at once: compiling the encoder leaves Python's lock to numba."""
        with self._lock:
            if self._encoder is None and self._has_plaid:
                with ThreadPoolExecutor(1) as other:
                    loaded = other.submit(self._load_shards)
                    _ = self.encoder
                    loaded.result()
            _ = self.encoder

    def _load_shards(self) -> None:
        """Open what MaxSim needs, and rank one passage so that numba compiles its code."""
        shards = self._open_shards()
        first = [np.arange(number == 0 and size.n_passages > 0) for number, size in enumerate(shards.sizes)]
        query = np.zeros((1, shards.dim), dtype=np.float32)
        shards.best([query], 1, first)
        if self._chunk_vectors is not None:
            self._chunk_vectors.nearest(query, 1, first)

    def _open_shards(self) -> Shards:
        with self._shards_lock:
            if self._shards is None:
                has_plaid = self._has_plaid
                self._shards = self._plaid_shards() if has_plaid else OnTheFlyReranker(self.corpus, self.encoder)
                self.corpus.check_unchanged()
            return self._shards

    def _plaid_shards(self) -> PlaidShards:
        corpus = self.corpus
        return PlaidShards(corpus.shards, corpus.removed_positions(), sizes=corpus.shard_sizes)

    def reload(self) -> "Retriever":
        """Return a retriever for the latest commit of the same Library; this one keeps its own."""
        trust = self._trust_remote_code
        return Retriever(self.corpus.reload(), self._encoder, self._settings, trust_remote_code=trust)

    def query(self, text: str | EncodedQuery) -> EncodedQuery:
        """Check a question, so that searches need not check, parse or encode it again.

        ValueError if it is empty, longer than the encoder reads, or not text.
        """
        if isinstance(text, EncodedQuery):
            return text
        parsed = bounded_query(text)
        self.load()
        query = EncodedQuery(parsed.text, self.encoder)
        self.encoder.check_query(query.text)
        return query

    def search(
        self,
        query: str | EncodedQuery,
        k: int = 5,
        *,
        mode: Mode | None = None,
        filters: Filters | None = None,
        condition: Node | None = None,
        by_document: bool = False,
        diverse: bool = False,
    ) -> Rows[SearchHit]:
        """Rank the chunks that answer a question.

        Exact identifier matches rank first, then documents citing that identifier, then the best chunks of documents
        that share rare entities with the question.

        Args:
            query: The question.
            k: How many hits at most.
            mode: One of `MODES`; None takes the first that the corpus is indexed for.
            filters: Restrict the search to documents that pass them, of articles to versions in force today by default.
            condition: What their texts must hold, of `legal_rag.library.query_language`; passages that hold it first.
            by_document: Count documents: each appears once, by its best chunk.
            diverse: Leave out near-duplicates of a chunk ranked above.

        Raises:
            ValueError: If the question is empty or, unless BM25 alone ranks, too long for the encoder, or the corpus is
                not indexed for the mode.
        """
        how = {"by_document": by_document, "diverse": diverse}
        return self.search_batch([query], k, mode=mode, filters=filters, condition=condition, **how)[0]

    def search_batch(
        self,
        queries: Sequence[str | EncodedQuery],
        k: int = 5,
        *,
        mode: Mode | None = None,
        filters: Filters | None = None,
        condition: Node | None = None,
        by_document: bool = False,
        diverse: bool = False,
    ) -> list[Rows[SearchHit]]:
        """Rank the chunks for several questions, encoded and searched in one batch; see `search`."""
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        mode = self._ranker.checked(mode)
        questions = self._questions(queries, mode)
        filters = self.corpus.dated(filters)
        subsets: Subsets | None = self.corpus.positions(filters) if filters else None
        if condition == EVERYTHING:  # those that share no word come last
            questions = [question._replace(tiers=[*question.tiers, subsets or []]) for question in questions]
        if condition not in (None, EVERYTHING):
            n_shards, matches = len(self.corpus.manifest["shards"]), self.matches(condition)
            best = split_places(matches.best or (), n_shards)
            held = split_places(matches.any, n_shards)
            subsets = held if subsets is None else intersection(held, subsets)
            questions = [question._replace(tiers=[*question.tiers, best], facts=None) for question in questions]
        n_ranked = k * 4 if by_document or diverse else k
        answers = []
        for question, ranked in zip(questions, self._ranker.rank(questions, n_ranked, mode, subsets), strict=True):
            n, hits = n_ranked, self._build_hits(ranked, by_document=by_document, diverse=diverse)
            while len(hits) < k and len(ranked) == n:
                n *= 4
                (ranked,) = self._ranker.rank([question], n, mode, subsets)
                hits = self._build_hits(ranked, by_document=by_document, diverse=diverse)
            answers.append(Rows(hit._replace(rank=rank) for rank, hit in enumerate(hits[:k], start=1)))
        return answers

    def matches(self, condition: Node) -> TextMatches:
        """Look up where a condition on texts holds; the last ones are remembered."""
        return self._find_matches(condition)

    @cached_property
    def _find_matches(self) -> Callable[[Node], TextMatches]:
        lexical, contents = self._lexical_index, self.corpus.contents()
        return lru_cache(CONDITIONS_KEPT)(lambda condition: find_matches(condition, lexical, contents))

    def document_tokens(self, doc_id: str, near: int = 0) -> TokenVectors:
        """Return the token vectors of a document, with their characters in its content, in order.

        As stored in the index; re-encoded where the index cannot return them or has pooled them. Of a document of more
        than `CHUNKS_READ` chunks, those nearest to the character `near` are read. LookupError if there is no such
        document.
        """
        positions = self.corpus.positions(Filters(doc_ids=(doc_id,)))
        places = [(shard, int(row)) for shard, rows in enumerate(positions) for row in rows]
        if not places:
            raise LookupError(f"no chunk of {doc_id!r:.200} in {self.corpus.path}")
        chunks = sorted(zip(self.corpus.chunks_at(places), places, strict=True), key=lambda pair: pair[0].chunk_index)
        at = next((n for n, (chunk, _) in enumerate(chunks) if near < chunk.char_end), 0)
        first = max(0, min(at - CHUNKS_READ // 2, len(chunks) - CHUNKS_READ))
        chunks = chunks[first : first + CHUNKS_READ]
        read = [self._chunk_tokens(chunk, place) for chunk, place in chunks]
        pairs = zip(read, chunks, strict=True)
        offsets = np.concatenate([tokens.offsets + chunk.char_start for tokens, (chunk, _) in pairs])
        order = np.argsort(offsets[:, 0], kind="stable")
        return TokenVectors(np.concatenate([tokens.vectors for tokens in read])[order], offsets[order])

    def _chunk_tokens(self, chunk: StoredChunk, place: Place) -> TokenVectors:
        """Return the token vectors of a chunk's text, without its header and special tokens."""
        shards = self._open_shards()
        stored = shards.token_vectors(place) if isinstance(shards, PlaidShards) else None
        offsets = self.encoder.document_offsets(chunk.text)
        vectors = stored[len(stored) - len(offsets) :] if stored is not None and len(stored) >= len(offsets) else None
        if vectors is None or self.encoder.identity.pool_factor > 1:
            vectors, offsets = self.encoder.encode_with_offsets(chunk.text)
        in_text = offsets[:, 0] < offsets[:, 1]
        return TokenVectors(vectors[in_text], offsets[in_text])

    def _questions(self, queries: Sequence[str | EncodedQuery], mode: Mode) -> list[QueryFeatures]:
        parsed = [bounded_query(query) for query in queries]
        if mode == "bm25":  # takes questions of any length
            for query in parsed:
                check_text(query.text)
        vectors = [None] * len(parsed) if mode == "bm25" else self._query_vectors(parsed)
        questions = []
        for query, query_vectors in zip(parsed, vectors, strict=True):
            matches = self.corpus.positions_named(query)
            tiers = [tier for tier in (matches.exact, matches.citing) if tier is not None]
            questions.append(QueryFeatures(query, query_vectors, tiers, matches.facts))
        return questions

    def _query_vectors(self, queries: Sequence[ParsedQuery]) -> list[np.ndarray]:
        """Encode questions, new ones checked and in one batch, and weigh their tokens by IDF."""
        self.load()
        new = [query.text for query in queries if not isinstance(query, EncodedQuery)]
        encoded = iter(self.encoder.query_tokens(new) if new else [])
        tokens = [query.tokens if isinstance(query, EncodedQuery) else next(encoded) for query in queries]
        rarity = self._lexical_index.rarity
        return [idf_weighted_query(query.text, *read, rarity) for query, read in zip(queries, tokens, strict=True)]

    def _build_hits(self, ranked: Ranked, *, by_document: bool, diverse: bool) -> list[SearchHit]:
        chunks = self.corpus.chunks_at([(shard, position) for shard, position, _ in ranked])
        hits = [
            SearchHit(
                rank=rank,
                chunk_id=chunk_id(chunk.doc_id, chunk.chunk_index),
                doc_id=chunk.doc_id,
                score=score,
                title=chunk.title,
                decision_date=chunk.decision_date,
                char_start=chunk.char_start,
                char_end=chunk.char_end,
                text=chunk.text,
            )
            for rank, ((_, _, score), chunk) in enumerate(zip(ranked, chunks, strict=True), start=1)
        ]
        if by_document:
            hits = _best_of_each_document(hits)
        return [hits[i] for i in deduplicate_near_duplicates([hit.text for hit in hits])] if diverse else hits


def build_retriever(
    corpus: Library | str | Path,
    encoder: Encoder | None = None,
    *,
    settings: SearchSettings | None = None,
    trust_remote_code: bool = False,
) -> Retriever:
    """Make a corpus, or the Library in a folder, searchable with the encoder that its index was made with.

    Args:
        corpus: A Library, or its folder.
        encoder: One already loaded; None loads the one that the manifest names.
        settings: How thorough searches are.
        trust_remote_code: Run code that comes with the encoder; an index cannot allow it by itself.

    Raises:
        FileNotFoundError: If there is no complete Library, or its encoder cannot be found.
        ValueError: If the encoder is not the one that the index was made with.
    """
    opened = Library(corpus) if isinstance(corpus, str | Path) else corpus
    if encoder is not None:
        encoder = load_encoder(opened.manifest, opened.path, encoder)
    retriever = Retriever(opened, encoder, settings, trust_remote_code=trust_remote_code)
    retriever.load()
    return retriever


def open_with_encoder(
    corpus: Library | str | Path, encoder: Encoder | None = None, *, trust_remote_code: bool = False
) -> tuple[Library, Encoder]:
    """Open a corpus and load the encoder that its index was made with; see `build_retriever`."""
    opened = Library(corpus) if isinstance(corpus, str | Path) else corpus
    return opened, load_encoder(opened.manifest, opened.path, encoder, trust_remote_code=trust_remote_code)


class RayRetriever(Retriever):
    """A retriever whose PLAID shards are spread over Ray actors, balanced by tokens.

    Questions are encoded, and texts read, by this process. Close it, or use it as a context manager.
    """

    def __init__(
        self,
        corpus: Library | str | Path,
        encoder: Encoder | None = None,
        *,
        n_actors: int = 2,
        address: str | None = None,
        settings: SearchSettings | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        """Start `n_actors` at most, one per shard at most; see `build_retriever` for the other arguments.

        `address` is the cluster's, as for `ray.init`; None takes the one `RAY_ADDRESS` names, or this machine alone.
        """
        from legal_rag.library.ray import RayShards

        opened, encoder = open_with_encoder(corpus, encoder, trust_remote_code=trust_remote_code)
        self._n_actors, self._address = n_actors, address
        self._remote = RayShards(opened, n_actors, address=address)
        super().__init__(opened, encoder, settings, shards=self._remote)

    def __enter__(self) -> "RayRetriever":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the actors, and the cluster if it was started for them."""
        self._remote.close()

    def reload(self) -> "RayRetriever":
        """Return a retriever for the latest commit of the same Library, with new actors; close this one then."""
        return RayRetriever(
            self.corpus.reload(), self.encoder, n_actors=self._n_actors, address=self._address, settings=self._settings
        )


def _best_of_each_document(hits: Sequence[SearchHit]) -> list[SearchHit]:
    best: dict[str, SearchHit] = {}
    for hit in hits:
        best.setdefault(hit.doc_id, hit)
    return list(best.values())


def deduplicate_near_duplicates(texts: Sequence[str]) -> list[int]:
    """Return the rising indices of the texts that are not near-duplicates of an earlier one kept."""
    kept: list[tuple[int, set[str]]] = []
    for number, text in enumerate(texts):
        shingles = _word_shingles(text)
        if not any(jaccard(shingles, others) >= NEAR for _, others in kept):
            kept.append((number, shingles))
    return [number for number, _ in kept]


def _word_shingles(text: str) -> set[str]:
    words = re.findall(r"\w+", text.lower())
    return {" ".join(words[i : i + SHINGLE_WORDS]) for i in range(max(len(words) - SHINGLE_WORDS + 1, 1))}


def jaccard(some: set[str], others: set[str]) -> float:
    """Return the Jaccard similarity of two sets, 0 to 1; 0 for two empty sets."""
    return len(some & others) / (len(some | others) or 1)
