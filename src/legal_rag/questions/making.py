"""How one document becomes a record: a model asked about it, and its question tried on the index."""

import threading
import time
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

import dspy

from legal_rag.library import Library
from legal_rag.question_settings import QuestionSettings
from legal_rag.questions.checkpoint import Record, RecordMaker
from legal_rag.questions.checks import judge, tidy
from legal_rag.questions.dataset import make_row
from legal_rag.questions.pacing import Pace, PacedLM
from legal_rag.questions.writer import Writer, prompt_hash
from legal_rag.windows import draw_window

if TYPE_CHECKING:
    from legal_rag.retriever import Retriever


class ModelQuestions:
    """Asks a model about documents, by their ids; threads may share it."""

    def __init__(self, library: Library, lm: dspy.BaseLM, settings: QuestionSettings, pace: Pace) -> None:
        self._library, self._lm, self._settings, self._pace = library, lm, settings, pace
        self._writer = Writer(settings)
        self._prompt_hash = prompt_hash()

    def __call__(self, doc_id: str) -> Record:
        """Ask about a document until a pair passes, or tries are used up."""
        started = time.perf_counter()
        document = self._library.document(doc_id)
        settings = self._settings
        start, end = draw_window(document.content, f"{settings.seed}:{doc_id}", settings.context_chars)
        context = document.content[start:end]
        lm = PacedLM(self._lm, self._pace, self._sampling_seed(doc_id))
        reply = self._writer(context, lm)
        self._pace.count(lm.document.failure)
        usage = lm.tracker.usage
        verdict = judge(context, reply)
        record = Record(
            doc_id=doc_id,
            content_hash=document.content_hash,
            status="rejected",
            reason=next(iter(verdict.problems), ""),
            replies=lm.document.replies,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cost=usage.cost,
            seconds=round(time.perf_counter() - started, 3),
        )
        if reply is None or verdict.span is None or verdict.score < self._settings.threshold:
            if lm.document.failure is None:
                return record
            return replace(record, status="failed", reason=type(lm.document.failure).__name__)
        row = make_row(
            document,
            tidy(reply.question),
            (start + verdict.span[0], start + verdict.span[1]),
            main_topic=tidy(reply.main_topic or ""),
            summary=tidy(reply.summary or ""),
            score=verdict.score,
            model=str(self._lm.model),
            prompt_hash=self._prompt_hash,
        )
        return replace(record, status="accepted", reason="", row=row)

    def _sampling_seed(self, doc_id: str) -> int | None:
        if not str(self._lm.model).startswith("openai/"):
            return None  # whoever else may not know what it is
        return int.from_bytes(sha256(f"{self._settings.seed}:{doc_id}".encode()).digest()[:3], "big")


def with_round_trip(make: RecordMaker, retriever: "Retriever", settings: QuestionSettings) -> RecordMaker:
    """Try each question on the index: what finds its document too late is rejected, what else it finds is kept."""
    lock = threading.Lock()
    depth = max(settings.must_retrieve, settings.hard_negatives + 1)

    def made(doc_id: str) -> Record:
        record = make(doc_id)
        if record.row is None:
            return record
        lost, question = replace(record, status="rejected", reason="not_retrieved", row=None), record.row["question"]
        try:
            retriever.encoder.check_query(question)
        except ValueError:  # longer than the encoder reads
            return lost
        with lock:  # the encoder takes all cores as it is
            found = [hit.doc_id for hit in retriever.search(question, depth, by_document=True)]
        if settings.must_retrieve and doc_id not in found[: settings.must_retrieve]:
            return lost
        if settings.hard_negatives:
            negatives = [one for one in found if one != doc_id][: settings.hard_negatives]
            return replace(record, row={**record.row, "hard_negatives": negatives})
        return record

    return made
