"""The log of one run: what the tools did and found, whatever becomes of the model's own memory of it.

In: each call, written down by the tool that made it. Out: the run's `Prediction`.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from legal_rag.budget import Usage
from legal_rag.citations import EnrichedResponse
from legal_rag.cleaning import storable
from legal_rag.corpus import Document
from legal_rag.prediction import CitedDocument, Event, EventType, Mode, Passage, Prediction, Status
from legal_rag.retriever import Retriever, SearchHit
from legal_rag.token_matches import complete_evidence


class RunLog:
    """The events, passages and documents of one run, in the order they came."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._told = 0  # events
        self._read: dict[str, None] = {}  # ids of documents, in the order they were read
        self.events: list[Event] = []
        self.passages: dict[str, Passage] = {}
        self.documents: dict[str, CitedDocument] = {}

    @contextmanager
    def record(self, kind: EventType, tool: str, **arguments: Any) -> Iterator[list[str]]:
        """Write down one call: the ids that the block puts in the list, and the time it took."""
        ids: list[str] = []
        started = time.perf_counter()
        try:
            yield ids
        finally:
            said = {name: storable(value) if isinstance(value, str) else value for name, value in arguments.items()}
            self.add(Event(kind, tool, said, ids, time.perf_counter() - started))

    def add(self, event: Event) -> None:
        """Write down an event."""
        self.events.append(event)

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

    def prediction(
        self,
        question: str,
        answer: EnrichedResponse,
        retriever: Retriever,
        *,
        mode: Mode,
        status: Status,
        notice: str | None,
        usage: Usage | None = None,
    ) -> Prediction:
        """Put the run and its checked answer together; `retriever` is what its passages were found with."""
        found = sorted(self.passages.values(), key=lambda passage: -(passage.score or 0.0))
        evidence = complete_evidence(question, found, answer.citations, retriever.corpus, retriever.encoder)
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
