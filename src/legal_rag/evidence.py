"""Evidence mode: an answer made only of verbatim passages, with no language model.

The `Prediction` quotes the closest passages with their exact offsets, or abstains; it says nothing else about the law.
"""

import asyncio
import time
from collections.abc import Generator, Sequence
from typing import NamedTuple

import numpy as np

from legal_rag.answer_stream import AnswerStream
from legal_rag.budget import Usage
from legal_rag.citations import Citation, EnrichedResponse, format_marker
from legal_rag.encoded_texts import EncodedTexts
from legal_rag.filters import Filters
from legal_rag.prediction import Event, Mode, Prediction, Status
from legal_rag.relevance import AbstentionFeatures, abstention_features, is_relevant
from legal_rag.retriever import EncodedQuery, Retriever, SearchHit
from legal_rag.run_log import RunLog
from legal_rag.sentences import split_sentences, without_blanks

QUOTE_CHARS = 500  # of a passage quoted in the answer, about three sentences
NO_PASSAGE = "Aucun passage pertinent n'a été trouvé dans le corpus pour cette question."
INSTEAD = "Voici, à la place, les passages les plus proches, cités mot pour mot."
INTRODUCTION = "Passages les plus proches de la question, cités mot pour mot :"


class Reading(NamedTuple):
    """A hit with the similarity of each of its tokens to each token of the question."""

    hit: SearchHit
    similarities: np.ndarray  # (n_query_tokens, n_tokens), cosines
    offsets: np.ndarray  # (n_tokens, 2), each token's characters in the hit's text


class Findings(NamedTuple):
    """The passages found for a question, and the features that decide on abstention."""

    readings: list[Reading]
    features: AbstentionFeatures


class EvidenceAgent:
    """Answers with the best passages of a corpus, or abstains."""

    def __init__(
        self, retriever: Retriever, *, n_passages: int = 3, match_words: bool = True, filters: Filters | None = None
    ) -> None:
        """Configure an agent.

        Args:
            retriever: What it searches with, and where.
            n_passages: How many it quotes at most, each of another document.
            match_words: Fill in the passages' `matches`.
            filters: Which documents it searches; None means all.

        Raises:
            ValueError: If `n_passages` is below 1.
        """
        if n_passages < 1:
            raise ValueError(f"n_passages must be at least 1, got {n_passages}")
        self._retriever, self._filters = retriever, filters
        self._n_passages, self._match_words = n_passages, match_words

    def __call__(self, question: str) -> Prediction:
        """Answer a question.

        Raises:
            ValueError: If the question is empty or longer than the encoder reads.
        """
        return self.stream(question).prediction

    def stream(self, question: str) -> AnswerStream:
        """Answer a question, event by event.

        Raises:
            ValueError: If the question is empty or longer than the encoder reads.
        """
        return AnswerStream(self.run(self._retriever.query(question), RunLog(), mode="evidence"))

    async def acall(self, question: str) -> Prediction:
        """Answer a question in a thread, for asyncio callers.

        Raises:
            ValueError: If the question is empty or longer than the encoder reads.
        """
        return await asyncio.to_thread(self, question)

    def run(
        self,
        question: str | EncodedQuery,
        log: RunLog,
        *,
        mode: Mode,
        failure: Status = "model_failed",
        notice: str | None = None,
        usage: Usage | None = None,
    ) -> Generator[Event, None, Prediction]:
        """Answer within a run that may have begun before: its events and documents are kept.

        Args:
            question: One that the encoder reads whole; checked unless `Retriever.query` made it.
            log: Of the run.
            mode: 'evidence', or 'fallback' where a model should have answered.
            failure: What became of that model.
            notice: For the reader.
            usage: What that model's calls came to.
        """
        query = self._retriever.query(question)
        question, encoded = query.text, EncodedTexts(self._retriever.encoder, query=query)
        with log.record("search", "search_legal_docs", query=question, k=self._n_passages) as ids:
            findings = self.find(query, encoded)
            ids += [reading.hit.chunk_id for reading in findings.readings]
        yield from log.news()
        relevant = is_relevant(findings.features, self._retriever.encoder.identity.name)
        started = time.perf_counter()
        answer = self._quote(findings.readings) if relevant else abstention()
        log.checked(answer, 0.0)  # verbatim by construction
        log.answered("evidence", question, answer, time.perf_counter() - started)
        for reading in findings.readings if relevant else []:
            log.saw(reading.hit)
        yield from log.news()
        status: Status = failure if mode == "fallback" else "answered" if relevant else "abstained"
        if mode == "fallback" and relevant:
            notice = f"{notice} {INSTEAD}"
        return log.prediction(
            question,
            answer,
            self._retriever.corpus,
            mode=mode,
            status=status,
            notice=notice,
            encoded=encoded if self._match_words else None,
            usage=usage,
        )

    def find(self, question: str | EncodedQuery, encoded: EncodedTexts | None = None) -> Findings:
        """Search for a question, one passage a document, and read the passages found.

        Args:
            question: The question; checked unless `Retriever.query` made it.
            encoded: Where what is read is kept, for those who need it again.

        Raises:
            ValueError: If the question is empty or longer than the encoder reads.
        """
        query = self._retriever.query(question)
        encoded = encoded or EncodedTexts(self._retriever.encoder)
        hits = self._retriever.search(query, self._n_passages, by_document=True, filters=self._filters)
        passages = encoded.passages([hit.text for hit in hits])
        vectors, offsets = query.tokens
        readings = [Reading(hit, vectors @ one.vectors.T, one.offsets) for hit, one in zip(hits, passages, strict=True)]
        own_words = offsets[:, 0] < offsets[:, 1]
        best = readings[0].similarities[own_words].max(axis=1) if readings else np.empty(0)
        return Findings(readings, abstention_features(query.text, [reading.hit.text for reading in readings], best))

    def _quote(self, readings: Sequence[Reading]) -> EnrichedResponse:
        # Build citations from offsets; re-parsing would trip over passages that contain « or [Source: …].
        lines, citations = [INTRODUCTION], []
        for hit, similarities, offsets in readings:
            start, end = max(_sentence_runs(hit.text), key=lambda run: _closeness(similarities, offsets, *run))
            span = (hit.char_start + start, hit.char_start + end)
            quote = self._retriever.corpus.document(hit.doc_id).content[slice(*span)]
            date = f" ({hit.decision_date})" if hit.decision_date else ""
            marker = format_marker(hit.doc_id, *span)
            lines.append(f"{hit.rank}. {hit.title or hit.doc_id}{date}\n« {quote} » {marker}")
            citations.append(Citation(hit.doc_id, *span, quote, "verified"))
        return EnrichedResponse("\n\n".join(lines), citations, [], [], 1.0, abstained=False)


def abstention(removed: Sequence[str] = ()) -> EnrichedResponse:
    """Say that nothing was found; `removed` are the citations of an answer that this one stands for."""
    return EnrichedResponse(NO_PASSAGE, [], [], list(removed), None, abstained=True)


def _closeness(similarities: np.ndarray, offsets: np.ndarray, start: int, end: int) -> float:
    """Score the tokens that lie in a span: MaxSim, from (n_query_tokens, n_tokens) similarities."""
    inside = (offsets[:, 0] >= start) & (offsets[:, 1] <= end) & (offsets[:, 0] < offsets[:, 1])
    return float(similarities[:, inside].max(axis=1).sum()) if inside.any() else -np.inf


def _sentence_runs(text: str) -> list[tuple[int, int]]:
    """Return the longest runs of whole sentences within `QUOTE_CHARS`, one from each sentence on, without blanks.

    A sentence longer than that is cut at a word.
    """
    spans = split_sentences(text)
    runs = []
    for first, (start, _) in enumerate(spans):
        ends = [end for _, end in spans[first:] if end - start <= QUOTE_CHARS]
        end = ends[-1] if ends else _cut_at_word(text, start)
        runs.append((start, end))
        if ends and ends[-1] == len(text):
            break  # the runs after this one are parts of it
    return without_blanks(text, runs)


def _cut_at_word(text: str, start: int) -> int:
    limit = start + QUOTE_CHARS
    cut = max(text.rfind(" ", start, limit), text.rfind("\n", start, limit))
    return cut if cut > start else min(limit, len(text))
