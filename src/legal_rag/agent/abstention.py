"""Abstention: are the retrieved passages relevant enough to answer? Measured against off-topic questions."""

import hashlib
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from legal_rag.base.files import cache_folder, write_whole
from legal_rag.base.text import read_words
from legal_rag.encoder.encoder import TokenVectors
from legal_rag.retriever.retriever import EncodedQuery, Retriever, SearchHit

logger = logging.getLogger(__name__)

OFF_TOPIC = read_words("legal_rag.agent", "abstention.toml")["off_topic"]
# Deviations above the background. Chosen by benchmarks/abstention.py over several Libraries and encoders; the share of
# a question's words that the passages hold, plain or weighed by rarity, did not tell more.
THRESHOLD = 1.15


class Background(NamedTuple):
    """Mean MaxSim of questions that the corpus cannot answer with their best passages, by the corpus's own encoder."""

    mean: float
    deviation: float

    def nearness(self, mean_maxsim: float) -> float:
        """Return how far a question's mean MaxSim lies above, in standard deviations."""
        return (mean_maxsim - self.mean) / self.deviation


def is_relevant(mean_maxsim: float, background: Background) -> bool:
    """Return whether passages are relevant enough to quote: nearer to the question than to off-topic ones."""
    return background.nearness(mean_maxsim) >= THRESHOLD


def background_of(retriever: Retriever) -> Background:
    """Measure a corpus's background, once for each build of a Library: it is kept in the cache folder."""
    path = _kept_in(retriever)
    try:
        return Background(*map(float, json.loads(path.read_text(encoding="utf-8"))))
    except (OSError, ValueError, TypeError):  # none yet, or a damaged one
        background = _measured(retriever)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(background))
    except OSError as error:
        logger.warning("%s cannot be written (%s): it is measured again next time", path, error)
    return background


def _kept_in(retriever: Retriever) -> Path:
    corpus = retriever.corpus
    key = (corpus.build_id, corpus.commit, retriever.encoder.identity, OFF_TOPIC)
    return cache_folder() / "abstention" / f"{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.json"


def _measured(retriever: Retriever) -> Background:
    values, anything = [], None
    for question in OFF_TOPIC:
        try:
            query = retriever.query(question)
        except ValueError:  # longer than the encoder reads
            continue
        if hits := retriever.search(query, 1, mode="bm25") or retriever.search(query, 1):
            read = [retriever.document_tokens(hit.doc_id, near=hit.char_start) for hit in hits]
            values.append(mean_maxsim(query, hits, read))
        else:  # no word in common with any passage
            if anything is None:
                anything = retriever.document_tokens(next(iter(retriever.corpus)))
            values.append(_nearness(query, anything.vectors))
    if not values:
        return Background(-1.0, 1.0)  # nothing is known: all is quoted
    return Background(float(np.mean(values)), max(float(np.std(values)), 1e-3))


def mean_maxsim(query: EncodedQuery, hits: Sequence[SearchHit], read: Sequence[TokenVectors]) -> float:
    """Return the mean over a question's tokens of their best cosine in its best passage, -1 to 1; -1 without any.

    Args:
        query: Its own words count, not the special tokens and prefixes, which match everything.
        hits: Of the question, best first.
        read: The token vectors of the first hit's document at least, with their characters in it.
    """
    if not hits:
        return -1.0
    starts = read[0].offsets[:, 0]
    return _nearness(query, read[0].vectors[(starts >= hits[0].char_start) & (starts < hits[0].char_end)])


def _nearness(query: EncodedQuery, passage: np.ndarray) -> float:
    vectors, offsets = query.tokens
    own_words = vectors[offsets[:, 0] < offsets[:, 1]]
    return float((own_words @ passage.T).max(axis=1).mean()) if len(own_words) and len(passage) else -1.0
