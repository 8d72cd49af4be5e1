"""The log of one run: what the tools did and found, whatever becomes of the model's own memory of it.

In: each call, written down by the tool that made it. Out: the run's `Prediction`.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from legal_rag.citations import CheckedAnswer
from legal_rag.cleaning import storable
from legal_rag.corpus import Document
from legal_rag.prediction import CitedDocument, Event, EventType, Mode, Passage, Prediction, Status
from legal_rag.retriever import SearchHit


class RunLog:
    """The events, passages and documents of one run, in the order they came."""

    def __init__(self) -> None:
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
            self.events.append(Event(kind, tool, said, ids, time.perf_counter() - started))

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
        self.documents.setdefault(document.id, CitedDocument(document.id, document.title, document.decision_date))

    def prediction(
        self, question: str, checked: CheckedAnswer, *, mode: Mode, status: Status, notice: str | None
    ) -> Prediction:
        """Put the run and its checked answer together."""
        return Prediction(
            question=question,
            answer=checked.text,
            mode=mode,
            status=status,
            notice=notice,
            documents=list(self.documents.values()),
            citations=checked.citations,
            evidence=sorted(self.passages.values(), key=lambda passage: -(passage.score or 0.0)),
            events=list(self.events),
        )
