"""Abstention: are the passages found nearer to a question than any are to questions that the corpus cannot answer?"""

import hashlib
import json
import logging
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from legal_rag.corpus.words import read_words
from legal_rag.encoder.encoder import TokenVectors
from legal_rag.files import cache_folder, write_whole
from legal_rag.library.library import Library
from legal_rag.retriever.ranking import Mode
from legal_rag.retriever.retriever import EncodedQuery, Retriever, SearchHit

logger = logging.getLogger(__name__)

CONTENT_WORD = re.compile(r"[a-z0-9]{4,}")
STEM_LETTERS = 6  # words are compared by prefixes: "licenciement" and "licencié" are equal
PASSAGES_READ = 3  # for coverage
WORDS = read_words("legal_rag.agent", "abstention.toml")
QUESTION_WORDS = frozenset(WORDS["question_words"])
# Fitted by benchmarks/abstention.py to questions of several Libraries and encoders; the threshold was then lowered from
# 1.86, since no answer to a question that has one is worse than passages quoted for one that has none.
COVERAGE_WEIGHT, THRESHOLD = 1.38, 1.6


class AbstentionFeatures(NamedTuple):
    """Features of a question and its hits, from which abstention is decided."""

    mean_maxsim: float  # over the question's tokens: best cosine in the best passage, -1 to 1
    coverage: float  # share of the question's words that the best passages contain, 0 to 1


class Background(NamedTuple):
    """`mean_maxsim` of questions that the corpus cannot answer, by the corpus's own encoder."""

    mean: float
    deviation: float


def is_relevant(features: AbstentionFeatures, background: Background) -> bool:
    """Tell whether passages are relevant enough to quote: nearer to the question than background, or in its words."""
    nearness = (features.mean_maxsim - background.mean) / background.deviation
    return nearness + COVERAGE_WEIGHT * features.coverage >= THRESHOLD


def background_of(retriever: Retriever) -> Background:
    """Measure a corpus's background, once for each build of a Library: it is kept in the cache folder."""
    path = _kept_in(retriever)
    if path is None:
        return _measured(retriever)
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


def _kept_in(retriever: Retriever) -> Path | None:
    corpus = retriever.corpus
    if not isinstance(corpus, Library):
        return None
    key = (corpus.build_id, retriever.encoder.identity, WORDS["off_topic"])
    return cache_folder() / "abstention" / f"{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.json"


def _measured(retriever: Retriever) -> Background:
    by_words: Mode | None = "bm25" if retriever.corpus.lexical_index() is not None else None
    found = []
    for question in WORDS["off_topic"]:
        query = retriever.query(question)
        hits = retriever.search(query, 1, mode=by_words) or retriever.search(query, 1)
        read = [retriever.document_tokens(hit.doc_id, near=hit.char_start) for hit in hits]
        found.append(abstention_features(query, hits, read).mean_maxsim)
    return Background(float(np.mean(found)), max(float(np.std(found)), 1e-3))


def abstention_features(
    query: EncodedQuery, hits: Sequence[SearchHit], read: Sequence[TokenVectors]
) -> AbstentionFeatures:
    """Compute the features of a question and its hits, best first; minimal without hits.

    Args:
        query: Its own words count, not the special tokens and prefixes, which match everything.
        hits: Of the question.
        read: The token vectors of the first hit's document at least, with their characters in it.
    """
    if not hits:
        return AbstentionFeatures(-1.0, 0.0)
    vectors, offsets = query.tokens
    own_words = vectors[offsets[:, 0] < offsets[:, 1]]
    starts = read[0].offsets[:, 0]
    passage = read[0].vectors[(starts >= hits[0].char_start) & (starts < hits[0].char_end)]
    nearest = (own_words @ passage.T).max(axis=1) if len(own_words) and len(passage) else np.full(1, -1.0)
    return AbstentionFeatures(float(nearest.mean()), coverage(query.text, [hit.text for hit in hits]))


def coverage(question: str, passages: Sequence[str]) -> float:
    """Return the share of a question's words that its best passages contain, 0 to 1."""
    asked = _stems(question)
    found = set().union(*(_stems(passage) for passage in passages[:PASSAGES_READ]))
    return len(asked & found) / len(asked) if asked else 0.0


def _stems(text: str) -> set[str]:
    letters = unicodedata.normalize("NFD", text.replace("œ", "oe").replace("Œ", "oe").lower())
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return {word[:STEM_LETTERS] for word in CONTENT_WORD.findall(plain) if word not in QUESTION_WORDS}
