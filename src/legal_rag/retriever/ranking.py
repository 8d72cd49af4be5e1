"""Fuse MaxSim and BM25, boost named documents, propagate scores along citations, re-rank on the fly."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, get_args

import numpy as np

from legal_rag.base.deadline import check
from legal_rag.corpus.chunking import build_chunker, chunks_recorded, document_header, has_header
from legal_rag.encoder.encoder import Encoder
from legal_rag.law.keys import ParsedQuery
from legal_rag.library.bm25 import LexicalIndex, Ranked
from legal_rag.library.library import Library
from legal_rag.library.plaid.search import (
    HALF_WINDOW,
    SearchSettings,
    ShardHits,
    Shards,
    ShardSize,
    rescore,
    search_shards,
)
from legal_rag.library.store import CitationLink, CitationLinks, Place

if TYPE_CHECKING:
    from legal_rag.library.chunk_vectors import ChunkVectors

Mode = Literal["hybrid", "colbert", "bm25", "bm25+rerank"]
MODES: tuple[Mode, ...] = get_args(Mode)
WINDOW_WEIGHT = 0.5  # of a chunk's best window in its MaxSim, where that is fused or re-ranks
MAXSIM_WEIGHT, DOCUMENT_BM25_WEIGHT = 0.5, 0.5
FUSED_CHUNKS = 128  # candidates of MaxSim and of BM25 in a hybrid ranking, at least
WORD_CANDIDATES = 256  # of BM25, scored by MaxSim too: a mean vector may hide the sentence asked for
ALONE = 4  # times as many candidates where words bring none
CANDIDATES_PER_HIT = 2  # chunks scored exactly for each of many hits asked for
RERANKED_CHUNKS = 100  # candidates of BM25 that are re-ranked by MaxSim
BOOSTED_CHUNKS = 2  # of each document that shares rare entities with the query
LENGTH_PRIOR_WEIGHT = 1.25  # of the logarithm of a document's chances
LENGTH_PRIOR_PER_CHUNK = 0.5  # chances that each further chunk adds to the first one's
CITING_SHARE, CITING_DOCUMENTS = 0.01, (10, 150)  # best documents that propagate their scores: of all; bounds
SURPLUS_POWER = 2  # of a score above the last of them: the best pass on more than their share
NOT_SEARCHABLE = "this Library was built without one (n_bits 0): its modes are bm25 and bm25+rerank"
WORD = re.compile(r"\w+")

Subsets = Sequence[np.ndarray]  # for each shard, rising positions


class QueryFeatures(NamedTuple):
    """Features of one query that ranking uses."""

    query: ParsedQuery
    vectors: np.ndarray | None  # (n_query_tokens, dim); None in mode bm25
    tiers: Sequence[Subsets] = ()  # chunks ranked above all others: exact matches, then chunks citing them
    facts: Subsets | None = None  # chunks of documents sharing rare entities: the best of each rank next


class Ranker:
    """Ranks chunks by the PLAID shards, the BM25 index and the citation links of one corpus.

    `open_shards` is called only in modes that need them; unless `searchable`, they can only score given chunks. MaxSim
    ranks the chunks that the chunk vectors of `open_vectors` find nearest, or all chunks where it gives none.
    """

    def __init__(
        self,
        open_shards: Callable[[], Shards],
        settings: SearchSettings,
        lexical: LexicalIndex,
        links: CitationLinks,
        *,
        open_vectors: "Callable[[], ChunkVectors | None]" = lambda: None,
        searchable: bool = True,
    ) -> None:
        self._open_shards, self._settings, self._lexical, self._links = open_shards, settings, lexical, links
        self._open_vectors, self._searchable = open_vectors, searchable

    def checked(self, mode: str | None) -> Mode:
        """Return a mode that the corpus is indexed for, else ValueError; None takes the best available."""
        if mode is None:
            mode = "hybrid" if self._searchable else "bm25+rerank"
        if mode not in MODES:
            raise ValueError(f"no such mode: {mode!r:.200} (expected one of {', '.join(MODES)})")
        if mode in ("colbert", "hybrid") and not self._searchable:
            raise ValueError(f"mode {mode!r:.200} needs a PLAID index, and {NOT_SEARCHABLE}")
        return mode

    def rank(
        self, questions: Sequence[QueryFeatures], k: int, mode: Mode, subsets: Subsets | None = None
    ) -> list[Ranked]:
        """Rank at most `k` places for each question, among `subsets` where they are given."""
        answers = self._by_mode(questions, k, mode, subsets)
        return [
            self._boost_known_items(question, answer, k, mode, subsets)
            if question.tiers or question.facts is not None
            else answer
            for question, answer in zip(questions, answers, strict=True)
        ]

    def _boost_known_items(
        self, question: QueryFeatures, answer: Ranked, k: int, mode: Mode, subsets: Subsets | None
    ) -> Ranked:
        tiers = [self._rank_all(question, k, mode, intersection(tier, subsets)) for tier in question.tiers]
        if question.facts is not None:
            facts = intersection(question.facts, subsets)
            tiers.append(self._best_of_each(self._rank_all(question, max(k, FUSED_CHUNKS), mode, facts)))
        return tiered_merge([*tiers, answer])[:k]

    def _best_of_each(self, ranked: Ranked) -> Ranked:
        """Keep `BOOSTED_CHUNKS` of each document: rare entities may mislead, so others must stay in sight."""
        documents = self._links.documents_at({hit[:2] for hit in ranked})
        seen: Counter[int] = Counter()
        kept: Ranked = []
        for hit in ranked:
            seen[documents[hit[:2]]] += 1
            if seen[documents[hit[:2]]] <= BOOSTED_CHUNKS:
                kept.append(hit)
        return kept

    def _rank_all(self, question: QueryFeatures, k: int, mode: Mode, named: Subsets) -> Ranked:
        """Rank all given places; those without a score come last, with score 0."""
        (ranked,) = self._by_mode([question], k, mode, named)
        ranked_places = {hit[:2] for hit in ranked}
        places = ((shard, int(position)) for shard, positions in enumerate(named) for position in positions)
        rest = (place for place in places if place not in ranked_places)
        return tiered_merge([ranked, [(*place, 0.0) for place in islice(rest, k - len(ranked))]])

    def _by_mode(self, questions: Sequence[QueryFeatures], k: int, mode: Mode, subsets: Subsets | None) -> list[Ranked]:
        check()
        if mode == "colbert":
            ranked = self._rank_prefix_stable(questions, k, subsets, ALONE * self._settings.n_candidates, 0.0)
            return [hits[:k] for hits in ranked]
        if mode == "bm25":
            return self._by_bm25(questions, k, subsets)
        if mode == "bm25+rerank":
            candidates = self._by_bm25(questions, max(k, RERANKED_CHUNKS), subsets)
            return [self._reranked(*pair)[:k] for pair in zip(questions, candidates, strict=True)]
        maxsim = self._rank_prefix_stable(questions, k, subsets, self._settings.n_candidates, WINDOW_WEIGHT)
        bm25 = self._by_bm25(questions, max(k, WORD_CANDIDATES), subsets)
        return [self._fused(*parts, subsets)[:k] for parts in zip(questions, maxsim, bm25, strict=True)]

    def _by_maxsim(
        self,
        questions: Sequence[QueryFeatures],
        k: int,
        subsets: Subsets | None,
        n_candidates: int,
        window_weight: float,
    ) -> list[Ranked]:
        queries, shards = [_require_vectors(question) for question in questions], self._open_shards()
        vectors = self._open_vectors()
        if vectors is None:
            return search_shards(shards, queries, k, subsets, window_weight)
        n = max(n_candidates, CANDIDATES_PER_HIT * k)
        return [rescore(shards, query, vectors.nearest(query, n, subsets), window_weight)[:k] for query in queries]

    def _rank_prefix_stable(
        self,
        questions: Sequence[QueryFeatures],
        k: int,
        subsets: Subsets | None,
        n_candidates: int,
        window_weight: float,
    ) -> list[Ranked]:
        """Rank by MaxSim so that a larger `k` only appends to the ranking of a smaller one."""
        few = max(FUSED_CHUNKS, n_candidates // CANDIDATES_PER_HIT)
        if self._open_vectors() is None:  # all are ranked, whatever `k` is
            return self._by_maxsim(questions, max(k, few), subsets, n_candidates, window_weight)
        first = self._by_maxsim(questions, few, subsets, n_candidates, window_weight)
        if k <= few:
            return first
        more = self._by_maxsim(questions, k, subsets, n_candidates, window_weight)
        return [_append_new(*pair)[:k] for pair in zip(first, more, strict=True)]

    def _by_bm25(self, questions: Sequence[QueryFeatures], k: int, subsets: Subsets | None) -> list[Ranked]:
        return [self._lexical.search(question.query, k, subsets) for question in questions]

    def _reranked(self, question: QueryFeatures, bm25: Ranked) -> Ranked:
        """Re-rank the top `RERANKED_CHUNKS` of BM25 by MaxSim; the rest keep their order below."""
        places = [hit[:2] for hit in bm25[:RERANKED_CHUNKS]]
        return tiered_merge([_ordered(places, self._score_places(question, places)), bm25[RERANKED_CHUNKS:]])

    def _fused(self, question: QueryFeatures, maxsim: Ranked, bm25: Ranked, subsets: Subsets | None) -> Ranked:
        """Score the union of candidates by both indexes; then add what the best of them cite, with citation gains."""
        first = {hit[:2] for part in (maxsim, bm25) for hit in part[:FUSED_CHUNKS]}
        known = {hit[:2]: hit[2] for hit in maxsim}
        if not (places := sorted(known.keys() | {hit[:2] for hit in bm25})):
            return []
        parts, top = self._partial_scores(question, places, known), np.array([place in first for place in places])
        gains = self._citation_gains(dict(zip(places, fuse(parts, top), strict=True)), first)
        cited = islice((place for place in gains if _is_among(place, subsets)), FUSED_CHUNKS)
        new = sorted(set(cited).difference(places))
        places += new
        parts = np.hstack([parts, self._partial_scores(question, new, {})])
        scores = fuse(parts, np.append(top, np.zeros(len(new), dtype=bool)))
        return _ordered(places, scores + np.array([gains.get(place, 0.0) for place in places]))

    def _partial_scores(
        self, question: QueryFeatures, places: Sequence[Place], maxsim: Mapping[Place, float]
    ) -> np.ndarray:
        """Return what `fuse` takes, shape (3, n_places); scores by MaxSim that are not known yet are computed."""
        unknown = [place for place in places if place not in maxsim]
        by_place = {**maxsim, **dict(zip(unknown, self._score_places(question, unknown).tolist(), strict=True))}
        scores = [by_place[place] for place in places]
        return np.array([scores, *self._lexical.document_scores(question.query, places)])

    def _citation_gains(self, scores: dict[Place, float], first: Set[Place]) -> dict[Place, float]:
        """Return the citation gains of the chunks of documents that the best ones cite, largest first."""
        links = self._links
        best = _best_by_document(links.documents_at(first), scores)
        n_citing = int(np.clip(CITING_SHARE * self._lexical.n_documents, *CITING_DOCUMENTS))
        outgoing = links.links_from(best)
        shares = {name: self._lexical.share_citing(name) for name in {link.name for link in outgoing}}
        gained = propagate_citations(best, outgoing, shares, n_citing)
        places = links.places_of(list(gained))
        most = sorted(gained, key=lambda document: (-gained[document], document))
        return {place: gained[document] for document in most for place in places[document]}

    def _score_places(self, question: QueryFeatures, places: Sequence[Place]) -> np.ndarray:
        """Score places by MaxSim, windows weighted in, shape (n_places,)."""
        if not places:
            return np.empty(0, dtype=np.float32)  # shards may be on other machines: no empty calls
        shards = self._open_shards()
        positions: list[list[int]] = [[] for _ in shards.sizes]
        for shard, position in sorted(places):
            positions[shard].append(position)
        candidates = [np.array(rows, dtype=np.int64) for rows in positions]
        ranked = rescore(shards, _require_vectors(question), candidates, WINDOW_WEIGHT)
        scores = {hit[:2]: hit[2] for hit in ranked}
        return np.array([scores[place] for place in places], dtype=np.float32)


def fuse(parts: np.ndarray, top: np.ndarray) -> np.ndarray:
    """Fuse scores: a weighted sum of z-scores, less a length prior.

    Mean and deviation are taken over the best `FUSED_CHUNKS` among `top`, so that scores do not depend on how many
    chunks are asked for. A document of many chunks has many chances of a high score; the prior, proportional to the
    logarithm of these chances, evens this out.

    Args:
        parts: Shape (3, n): of each chunk its MaxSim, of its document the BM25 and the number of chunks.
        top: Which chunks are among the `FUSED_CHUNKS` best by MaxSim or by BM25, shape (n,), bool.

    Returns:
        Shape (n,), float64; higher is more relevant, comparable within one query only.
    """
    *scores, n_chunks = parts
    weights = (MAXSIM_WEIGHT, DOCUMENT_BM25_WEIGHT)
    fused = np.sum([weight * _z_scores(part, top) for weight, part in zip(weights, scores, strict=True)], axis=0)
    chances = 1 + LENGTH_PRIOR_PER_CHUNK * (n_chunks - 1)
    return np.asarray(fused - LENGTH_PRIOR_WEIGHT * np.log(chances))


def propagate_citations(
    scores: Mapping[int, float], links: Sequence[CitationLink], shares: Mapping[str, float], n_citing: int
) -> dict[int, float]:
    """Propagate scores along citations: one step of a random walk (Page et al., 1999) from the best documents.

    Each of the best `n_citing` passes on its score above the last of them, in equal parts to all that it cites; of the
    best one's, to the power `SURPLUS_POWER`, so that many that are barely relevant do not outweigh a few that are. The
    gain expected if they cited as all documents do is subtracted, so that what everybody cites gains nothing.
    `scores` are of documents, by key; `shares` say, by link name, what share of all documents cites it.

    Returns:
        Positive gains by key, in the unit of the scores.
    """
    best = sorted(scores, key=lambda key: (-scores[key], key))[:n_citing]
    most = scores[best[0]] - scores[best[-1]] or 1.0
    surplus = {key: most * ((scores[key] - scores[best[-1]]) / most) ** SURPLUS_POWER for key in best}
    gained: dict[int, float] = defaultdict(float)
    expected: dict[int, float] = {}
    for link in links:
        gained[link.cited] += surplus.get(link.citing, 0.0) * link.share
        expected[link.cited] = max(expected.get(link.cited, 0.0), shares[link.name])
    total = sum(gained.values())
    return {key: gain for key, sum_ in gained.items() if (gain := sum_ - expected[key] * total) > 0}


def tiered_merge(tiers: Sequence[Ranked]) -> Ranked:
    """Merge rankings by priority: each place in its first tier, higher tiers' scores lifted above lower ones."""
    above: set[Place] = set()
    distinct: list[Ranked] = []
    for tier in tiers:
        distinct.append([hit for hit in tier if hit[:2] not in above])
        above |= {hit[:2] for hit in tier}
    result: Ranked = []
    for tier in reversed([tier for tier in distinct if tier]):
        lift = max(result[0][2] - tier[-1][2] + 1.0, 0.0) if result else 0.0
        result = [(shard, position, score + lift) for shard, position, score in tier] + result
    return result


def idf_weighted_query(
    question: str, vectors: np.ndarray, offsets: np.ndarray, rarity: Callable[[str], float]
) -> np.ndarray:
    """Scale a question's token vectors by IDF; drop those of stop words, punctuation and special tokens.

    A token weighs the square root of its word's inverse document frequency, as `rarity` gives it (0: a stop word);
    weights have mean 1. Rows of the encoder's query expansion weigh 1. See `TokenVectors` for `vectors` and `offsets`.

    Returns:
        Shape (n_kept, dim), at most n_rows; `vectors` unchanged where no word counts.
    """
    weights = np.zeros(len(vectors), dtype=np.float32)
    for word in WORD.finditer(question):
        inside = (offsets[:, 0] < word.end()) & (offsets[:, 1] > word.start())
        weights[inside] = np.sqrt(rarity(word.group()))
    counting = weights > 0
    if not counting.any():
        return vectors
    weights /= weights[counting].mean()
    weights[offsets[:, 0] < 0] = 1.0
    kept = weights > 0
    return np.asarray(vectors[kept] * weights[kept, None], dtype=np.float32)


class OnTheFlyReranker:
    """`Shards` of a Library without PLAID files: encodes and scores candidates, cannot search."""

    def __init__(self, library: Library, encoder: Encoder) -> None:
        self.dim = encoder.identity.dim
        self.sizes = [ShardSize(int(shard["chunks"]), 0) for shard in library.manifest["shards"]]
        self._library, self._encoder = library, encoder
        settings, limit = chunks_recorded(library.manifest), encoder.identity.document_length
        self._chunker = build_chunker(settings, encoder.count_tokens, limit)

    def scores(
        self, queries: Sequence[np.ndarray], candidates: Sequence[Sequence[ShardHits]], window_weight: float = 0.0
    ) -> list[list[ShardHits]]:
        """Encode all candidates, each once, and return their scores; see `max_sim` of `legal_rag.library.plaid`."""
        places = sorted(
            {(shard, int(row)) for shard, lists in enumerate(candidates) for hits in lists for row in hits.positions}
        )
        vectors = dict(zip(places, self._encoder.encode_documents(self._texts_to_encode(places)), strict=True))
        return [
            [
                ShardHits(
                    hits.positions,
                    np.array(
                        [_max_sim(query, vectors[shard, int(row)], window_weight) for row in hits.positions],
                        dtype=np.float32,
                    ),
                )
                for query, hits in zip(queries, by_query, strict=True)
            ]
            for shard, by_query in enumerate(candidates)
        ]

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise ValueError(NOT_SEARCHABLE)

    best = _refuse

    def _texts_to_encode(self, places: Sequence[Place]) -> list[str]:
        """Return the chunks' texts, each with the document's header where the index has it."""
        texts = []
        for chunk in self._library.chunks_at(places):
            header = ""
            if has_header(self._chunker.config, chunk.chunk_index):
                header = document_header(self._chunker, self._library.document(chunk.doc_id).row())
            texts.append(header + chunk.text)
        return texts


def _z_scores(scores: np.ndarray, top: np.ndarray) -> np.ndarray:
    best = np.sort(scores[top].astype(np.float64))[-FUSED_CHUNKS:]
    spread = best.std() if len(best) else 0.0
    return (scores - best.mean()) / spread if spread else np.zeros(len(scores))


def _best_by_document(documents: Mapping[Place, int], scores: Mapping[Place, float]) -> dict[int, float]:
    best: dict[int, float] = {}
    for place, document in documents.items():
        best[document] = max(best.get(document, -math.inf), scores[place])
    return best


def _max_sim(query: np.ndarray, document: np.ndarray, window_weight: float) -> float:
    halves = np.maximum.reduceat(query @ document.T, np.arange(0, len(document), HALF_WINDOW), axis=1)
    windows = np.maximum(halves[:, :-1], halves[:, 1:]) if halves.shape[1] > 1 else halves
    whole, window = halves.max(axis=1).sum(), windows.sum(axis=0).max()
    return float(whole + window_weight * (window - whole))


def _append_new(first: Ranked, more: Ranked) -> Ranked:
    places = {hit[:2] for hit in first}
    return [*first, *(hit for hit in more if hit[:2] not in places)]


def _ordered(places: Sequence[Place], scores: np.ndarray) -> Ranked:
    ranked = [(*place, float(score)) for place, score in zip(places, scores, strict=True)]
    return sorted(ranked, key=lambda hit: (-hit[2], hit[:2]))


def intersection(subsets: Subsets, others: Subsets | None) -> Subsets:
    """Return the positions that are in both, for each shard; None stands for all."""
    if others is None:
        return subsets
    return [np.intersect1d(rows, other, assume_unique=True) for rows, other in zip(subsets, others, strict=True)]


def _is_among(place: Place, subsets: Subsets | None) -> bool:
    if subsets is None:
        return True
    shard, position = place
    i = np.searchsorted(subsets[shard], position)
    return bool(i < len(subsets[shard]) and subsets[shard][i] == position)


def _require_vectors(question: QueryFeatures) -> np.ndarray:
    assert question.vectors is not None  # noqa: S101 - the mode says whether questions are encoded
    return question.vectors
