"""Highlighting: which words of a passage match which words of the question (MaxSim)."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple

import numpy as np

from legal_rag.agent.prediction import Passage, TokenMatch
from legal_rag.base.text import Span
from legal_rag.citations.checks import Citation
from legal_rag.corpus.documents import Document
from legal_rag.encoder.encoder import Encoder
from legal_rag.law.sentences import cut_at_blanks
from legal_rag.library.library import Library
from legal_rag.retriever.ranking import WORD
from legal_rag.retriever.retriever import EncodedQuery

SURROUNDINGS = 200  # characters shown on either side of a passage or citation
WINDOW_CHARS = 1500  # about 400 tokens: read at once of a passage that is longer than the encoder reads
MAX_WINDOWS = 4  # of one passage: in an imported index, one may be a whole decision
THREADS = 2  # an encoder reads one text at a time, on one core


class WordVectors(NamedTuple):
    """Token vectors grouped by the words of their text."""

    vectors: np.ndarray  # (n_tokens, dim): the tokens that belong to words
    first: np.ndarray  # (n_words,): the row of each word's first token
    spans: list[Span]  # of each word


def complete_evidence(
    passages: Sequence[Passage],
    citations: Sequence[Citation],
    corpus: Library,
    query: EncodedQuery | None = None,
    encoder: Encoder | None = None,
    *,
    most: int = 3,
) -> list[Passage]:
    """Add the surroundings of the passages found, the passages that were only cited, and word matches.

    Encoding a passage takes half a second on one core, so only the passages that readers look at are matched.
    They are the `most` best ones and those that are cited; without a query and its encoder, none is.

    Returns:
        By score, then the passages that were cited but not found. A passage of a document that is gone or has changed
        is left unchanged; citations of such documents, or of no text, add none.
    """
    shown = sorted(passages, key=lambda passage: (passage.score is None, -(passage.score or 0.0)))
    shown = [_surrounded(passage, corpus) for passage in shown]
    matched = [n for n, passage in enumerate(shown) if n < most or any(map(passage.is_cited_by, citations))]
    for citation in citations:
        shown += _passages_of_uncited(citation, shown, corpus)
    if query is None or encoder is None:
        return shown
    matches = match_words(query, [shown[number].text for number in matched], corpus, encoder)
    for number, in_passage in zip(matched, matches, strict=True):
        passage = shown[number]
        shown[number] = passage._replace(matches=tuple(_moved(match, passage.char_start) for match in in_passage))
    return shown


def match_words(query: EncodedQuery, texts: Sequence[str], corpus: Library, encoder: Encoder) -> list[list[TokenMatch]]:
    """Find the most similar word of each text for each word of a question, in the question's order.

    A text longer than the encoder reads is read in windows, up to 6,000 characters. Words that the corpus's lexical
    index does not hold are left out; offsets are those of the text.
    """
    if not texts:
        return []
    lexical = corpus.lexical_index()
    asked = _per_word(query.text, *query.tokens, lambda word: lexical is None or lexical.rarity(word) > 0)
    parts = [(number, *part) for number, text in enumerate(texts) for part in _cut_windows(text, encoder)]
    with ThreadPoolExecutor(THREADS, thread_name_prefix="encode") as threads:
        encoded = list(threads.map(encoder.encode_with_offsets, [text for _, _, text in parts]))
    by_text: list[list[list[TokenMatch]]] = [[] for _ in texts]
    for (number, start, text), tokens in zip(parts, encoded, strict=True):
        by_text[number].append([_moved(match, start) for match in _nearest_words(asked, _per_word(text, *tokens))])
    # The best match of each word of the question over the parts of a text.
    of_words = [zip(*filter(None, of_parts), strict=True) for of_parts in by_text]
    return [[max(matches, key=lambda match: match.similarity) for matches in of_text] for of_text in of_words]


def _surrounded(passage: Passage, corpus: Library) -> Passage:
    document = _document_or_none(passage.doc_id, corpus)
    start, end = passage.char_start, passage.char_end
    if document is None or document.content[start:end] != passage.text:
        return passage
    before, after = _surroundings_of(document.content, start, end)
    return passage._replace(before=before, after=after)


def _passages_of_uncited(citation: Citation, shown: Sequence[Passage], corpus: Library) -> Iterator[Passage]:
    """Yield the passage of a citation, unless one already shows it with its surroundings."""
    document = _document_or_none(citation.doc_id, corpus)
    start, end = citation.char_start, citation.char_end
    if document is None or not 0 <= start < end <= len(document.content):
        return
    content = document.content
    first, last = max(0, start - SURROUNDINGS), min(len(content), end + SURROUNDINGS)
    for passage in shown:
        shows = passage.char_start - len(passage.before) <= first and last <= passage.char_end + len(passage.after)
        if passage.doc_id == citation.doc_id and shows:
            return
    text, around = content[start:end], _surroundings_of(content, start, end)
    yield Passage(document.id, "", start, end, text, None, document.title, document.decision_date, *around)


def _document_or_none(doc_id: str, corpus: Library) -> Document | None:
    try:
        return corpus.document(doc_id)
    except (LookupError, UnicodeError):  # an id may hold half a surrogate pair, which no store takes
        return None


def _surroundings_of(content: str, start: int, end: int) -> tuple[str, str]:
    return content[max(0, start - SURROUNDINGS) : start], content[end : end + SURROUNDINGS]


def _cut_windows(text: str, encoder: Encoder) -> list[tuple[int, str]]:
    """Return the whole text, or its first windows, cut between words, each with its offset."""
    if len(text) <= WINDOW_CHARS or encoder.count_tokens([text])[0] <= encoder.identity.document_length:
        return [(0, text)]
    windows = islice(cut_at_blanks(text, 0, len(text), WINDOW_CHARS), MAX_WINDOWS)
    return [(start, text[start:end]) for start, end in windows]


def _per_word(
    text: str, vectors: np.ndarray, offsets: np.ndarray, counts: Callable[[str], bool] = lambda word: True
) -> WordVectors:
    """Group a text's token vectors (n_tokens, dim) by words, with the tokens' character offsets (n_tokens, 2).

    Tokens outside words are left out: punctuation, special tokens, expansion. `counts` selects the words kept.
    """
    spans = [match.span() for match in WORD.finditer(text) if counts(match.group())]
    bounds = np.array(spans, dtype=np.int64).reshape(-1, 2)
    # The first word that ends after a token begins: its own, if it begins before the token ends.
    word = np.searchsorted(bounds[:, 1], offsets[:, 0], side="right")
    near = np.minimum(word, max(len(spans) - 1, 0))
    inside = (word < len(spans)) & (offsets[:, 0] < offsets[:, 1])
    inside[inside] = bounds[near[inside], 0] < offsets[inside, 1]
    order = np.flatnonzero(inside)[np.argsort(word[inside], kind="stable")]
    present, first = np.unique(word[order], return_index=True)
    return WordVectors(vectors[order], first, [spans[number] for number in present])


def _nearest_words(asked: WordVectors, read: WordVectors) -> list[TokenMatch]:
    """Match each word of the question with the most similar word of the text, by mean over its tokens."""
    if not asked.spans or not read.spans:
        return []
    cosines = asked.vectors @ read.vectors.T
    best_piece = np.maximum.reduceat(cosines, read.first, axis=1)  # (n_query_tokens, n_words)
    pieces = np.diff([*asked.first, len(asked.vectors)])
    means = np.add.reduceat(best_piece, asked.first, axis=0) / pieces[:, None]
    nearest = means.argmax(axis=1)
    best = np.clip(means.max(axis=1), -1.0, 1.0)
    spans = [read.spans[word] for word in nearest]
    return [
        TokenMatch(query_start, query_end, start, end, similarity)
        for (query_start, query_end), (start, end), similarity in zip(asked.spans, spans, best.tolist(), strict=True)
    ]


def _moved(match: TokenMatch, by: int) -> TokenMatch:
    return match._replace(char_start=match.char_start + by, char_end=match.char_end + by)
