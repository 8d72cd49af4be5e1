"""Events of a run: what was searched, seen, read and answered."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from legal_rag.agent.budget import Usage
from legal_rag.agent.highlighting import EncodedTexts, complete_evidence
from legal_rag.agent.prediction import CitedDocument, Event, EventType, Mode, Passage, Prediction, Status
from legal_rag.citations.enricher import EnrichedResponse
from legal_rag.corpus.cleaning import json_safe, storable
from legal_rag.corpus.documents import Document
from legal_rag.retriever.retriever import Corpus, SearchHit


class EventLog:
    """The events, passages and documents of one run, in the order they came."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._told = 0  # events
        self._read: dict[str, None] = {}  # ids of documents, in the order they were read
        self.events: list[Event] = []
        self.passages: dict[str, Passage] = {}
        self.documents: dict[str, CitedDocument] = {}

    def titles(self) -> dict[str, str]:
        """Titles of the documents found or read, by id."""
        return {one.doc_id: one.title for one in self.documents.values()}

    @contextmanager
    def record(self, kind: EventType, tool: str, **arguments: Any) -> Iterator[list[str]]:
        """Write down one call: the ids that the block puts in the list, and the time it took."""
        ids: list[str] = []
        started = time.perf_counter()
        try:
            yield ids
        finally:
            self.add(Event(kind, tool, arguments, ids, time.perf_counter() - started))

    def add(self, event: Event) -> None:
        """Write down an event; what a model sent is kept as far as JSON can hold it."""
        self.events.append(event._replace(tool=storable(event.tool), input=json_safe(event.input, keep_nan=True)))

    def checked(self, answer: EnrichedResponse, seconds: float) -> None:
        """Write down how the citations of an answer fared."""
        counts = {**answer.counts, "removed": len(answer.removed)}
        self.add(Event("cite", "citations", counts, _cited(answer), seconds))

    def answered(
        self, tool: str, question: str, answer: EnrichedResponse, seconds: float, usage: Usage | None = None
    ) -> None:
        """Write down that the answer was written; `usage` is of the model calls that it took."""
        self.add(Event("answer", tool, {"question": question}, _cited(answer), seconds, usage))

    def failed(self, error: str, usage: Usage, seconds: float) -> None:
        """Write down the model calls of the run that brought nothing, if there are any.

        Args:
            error: What went wrong, in French.
            usage: What all the run's model calls came to; what no event has told of it yet is told now.
            seconds: The time that they took, likewise.
        """
        for event in self.events:
            if event.usage is not None:
                usage, seconds = usage.minus(event.usage), seconds - event.seconds
        if usage.calls or usage.cached:
            self.add(Event("think", "", {"error": error}, [], max(0.0, seconds), usage))

    def news(self) -> Iterator[Event]:
        """Yield the events that were not yet yielded."""
        while self._told < len(self.events):
            self._told += 1
            yield self.events[self._told - 1]

    @property
    def sources(self) -> Sequence[str]:
        """Ids of the documents, those that were read before those that were only found."""
        return list(dict.fromkeys([*self._read, *self.documents]))

    def saw(self, hit: SearchHit) -> None:
        """Remember a passage; the best score stays."""
        known = self.passages.get(hit.chunk_id)
        if known is None or known.score is None or known.score < hit.score:
            self.passages[hit.chunk_id] = Passage(
                hit.doc_id,
                hit.chunk_id,
                hit.char_start,
                hit.char_end,
                hit.text,
                hit.score,
                hit.title,
                hit.decision_date,
            )
        self.documents.setdefault(hit.doc_id, CitedDocument(hit.doc_id, hit.title, hit.decision_date))

    def read(self, document: Document) -> None:
        """Remember a decision that was read."""
        self._read.setdefault(document.id)
        self.documents.setdefault(document.id, CitedDocument(document.id, document.title, document.decision_date))

    def take_over(self, prediction: Prediction, corpus: Corpus) -> None:
        """Remember what another run found, its checks and its answer apart; what it cites counts as read."""
        for event in prediction.events:
            if event.type not in ("cite", "answer"):
                self.add(event)
        for document in prediction.documents:
            self.documents.setdefault(document.doc_id, document)
        for passage in prediction.evidence:
            if passage.chunk_id:
                self.passages.setdefault(passage.chunk_id, passage)
        for citation in prediction.citations:
            if citation.holds:
                self.read(corpus.document(citation.doc_id))

    def prediction(
        self,
        question: str,
        answer: EnrichedResponse,
        corpus: Corpus,
        *,
        mode: Mode,
        status: Status,
        notice: str | None,
        encoded: EncodedTexts | None = None,
        usage: Usage | None = None,
    ) -> Prediction:
        """Put the run and its checked answer together.

        Args:
            question: That was answered.
            answer: With its citations.
            corpus: That its passages are from.
            mode: Who answered.
            status: What became of the run.
            notice: For the reader.
            encoded: What was encoded in the run, to match the question's words with; None matches none.
            usage: Of all model calls.
        """
        evidence = complete_evidence(question, list(self.passages.values()), answer.citations, corpus, encoded)
        return Prediction(
            question=question,
            answer=answer.text,
            mode=mode,
            status=status,
            notice=notice,
            documents=list(self.documents.values()),
            citations=answer.citations,
            ungrounded_claims=answer.ungrounded_claims,
            grounding_rate=answer.grounding_rate,
            evidence=evidence,
            events=list(self.events),
            usage=usage or Usage(),
            seconds=time.perf_counter() - self._started,
        )


def _cited(answer: EnrichedResponse) -> list[str]:
    return list(dict.fromkeys(citation.doc_id for citation in answer.citations))
