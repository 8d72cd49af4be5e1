"""How surely the passages found answer a question: compared with questions that the corpus cannot answer."""

import hashlib
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from legal_rag.agent.prediction import Grade
from legal_rag.base.files import cache_folder, write_whole
from legal_rag.base.text import json_safe, read_words
from legal_rag.encoder.encoder import TokenVectors
from legal_rag.retriever.ranking import Mode
from legal_rag.retriever.retriever import EncodedQuery, Retriever, SearchHit

logger = logging.getLogger(__name__)

OFF_TOPIC = read_words("legal_rag.agent", "abstention.toml")["off_topic"]
# Deviations above the background, chosen over several Libraries; the share of a question's
# words that the passages hold, plain or weighed by rarity, did not tell more.
THRESHOLD = 1.15  # of nearness: below, and below `CLOSE`, nothing is quoted
CLOSE, SURE = 1.6, 2.4  # of surety: see `Background.grade`
DOCUMENTS_READ = 2  # whose mean surety takes: a question that is answered seldom has one near document alone
SCORE_WEIGHT, MOST_SCORE = 0.3, 4.0  # a name in a question makes its score as high as one likes


class Signs(NamedTuple):
    """What tells how well the best passages answer a question."""

    maxsim: float  # mean over the question's tokens of their best cosine in the best passage, -1 to 1
    cosine: float  # of the mean vectors of the question's tokens and of a passage's, -1 to 1
    score: float  # of hybrid search; 0 where another mode ranks, whose scores depend on the question's length


class Background(NamedTuple):
    """Mean and standard deviation of the signs of questions that the corpus cannot answer, by its own encoder."""

    mean: Signs
    deviation: Signs

    def nearness(self, signs: Signs) -> float:
        """Return how far a question's MaxSim lies above, in standard deviations."""
        return self._above(signs)[0]

    def surety(self, signs: Signs) -> float:
        """Return how far a question's cosine and score lie above, weighed, in standard deviations of the cosine."""
        _, cosine, score = self._above(signs)
        return cosine + SCORE_WEIGHT * min(score, MOST_SCORE)

    def grade(self, signs: Signs) -> Grade:
        """Grade passages: "answers" is right of most questions with an answer, "unsure" wrong of few."""
        surety = self.surety(signs)
        return "answers" if surety >= SURE else "close" if surety >= CLOSE else "unsure"

    def _above(self, signs: Signs) -> Signs:
        parts = zip(signs, self.mean, self.deviation, strict=True)
        return Signs(*((value - mean) / deviation for value, mean, deviation in parts))


def is_relevant(signs: Signs, background: Background) -> bool:
    """Return whether passages are relevant enough to quote: nearer to the question than to off-topic ones."""
    return background.nearness(signs) >= THRESHOLD or background.grade(signs) != "unsure"


def signs_of(
    retriever: Retriever, query: EncodedQuery, hits: Sequence[SearchHit], read: Sequence[TokenVectors]
) -> Signs:
    """Return the signs of a question's best passages, the lowest ones without any.

    MaxSim is of the first passage; cosine and score are means over the first `DOCUMENTS_READ`. The question's own words
    count, not special tokens and prefixes, which match everything. Of `hits`, each of another document, best first,
    `read` has the token vectors of the documents.
    """
    signs = []
    for hit, tokens in list(zip(hits, read, strict=True))[:DOCUMENTS_READ]:
        starts = tokens.offsets[:, 0]
        passage = tokens.vectors[(starts >= hit.char_start) & (starts < hit.char_end)]
        signs.append(_signs(query, passage, hit.score if retriever.default_mode == "hybrid" else 0.0))
    if not signs:
        return Signs(-1.0, -1.0, 0.0)
    _, cosine, score = np.mean(signs, axis=0).tolist()
    return Signs(signs[0].maxsim, cosine, score)


def background_of(retriever: Retriever) -> Background:
    """Measure a corpus's background, once for each build of a Library: it is kept in the cache folder."""
    path = _background_file(retriever)
    try:
        mean, deviation = json.loads(path.read_text(encoding="utf-8"))
        return Background(Signs(*map(float, mean)), Signs(*map(float, deviation)))
    except (OSError, ValueError, TypeError):  # none yet, or a damaged one
        background = _measure_background(retriever)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(background))
    except OSError as error:
        logger.warning("%s cannot be written (%s): it is measured again next time", path, error)
    return background


def _background_file(retriever: Retriever) -> Path:
    corpus = retriever.corpus
    key = (corpus.build_id, corpus.commit, retriever.encoder.identity, OFF_TOPIC, DOCUMENTS_READ)
    digest = hashlib.sha256(json.dumps(json_safe(key)).encode()).hexdigest()
    return cache_folder() / "abstention" / f"{digest[:32]}.json"


def _measure_background(retriever: Retriever) -> Background:
    measured, anything = [], None
    mode: Mode | None = (
        None if retriever.default_mode == "hybrid" else "bm25"
    )  # not one that encodes a hundred passages
    for question in OFF_TOPIC:
        try:
            query = retriever.query(question)
        except ValueError:  # longer than the encoder reads
            continue
        hits = retriever.search(query, DOCUMENTS_READ, mode=mode, by_document=True)
        hits = hits or retriever.search(query, DOCUMENTS_READ, by_document=True)
        if hits:
            read = [retriever.document_tokens(hit.doc_id, near=hit.char_start) for hit in hits]
            measured.append(signs_of(retriever, query, hits, read))
        else:  # no word in common with any passage
            if anything is None:
                anything = retriever.document_tokens(next(iter(retriever.corpus)))
            measured.append(_signs(query, anything.vectors, 0.0))
    if not measured:
        return Background(Signs(-1.0, -1.0, 0.0), Signs(1.0, 1.0, 1.0))  # nothing is known: all is quoted
    deviation = np.maximum(np.std(measured, axis=0), 1e-3)
    return Background(Signs(*np.mean(measured, axis=0).tolist()), Signs(*deviation.tolist()))


def _signs(query: EncodedQuery, passage: np.ndarray, score: float) -> Signs:
    vectors, offsets = query.tokens
    own_words = vectors[offsets[:, 0] < offsets[:, 1]]
    if not len(own_words) or not len(passage):
        return Signs(-1.0, -1.0, score)
    maxsim = float((own_words @ passage.T).max(axis=1).mean())
    return Signs(maxsim, _cosine(own_words.mean(axis=0), passage.mean(axis=0)), score)


def _cosine(vector: np.ndarray, other: np.ndarray) -> float:
    return float(vector @ other / (np.linalg.norm(vector) * np.linalg.norm(other) + 1e-9))
