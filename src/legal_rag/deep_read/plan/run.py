"""The plan without code, run: map in parallel, verify, reduce, within a budget, with what is known when it ends.

In: a question, ids of documents, two models. Out: a `PlanResult`, whatever becomes of the models. The same replies give
the same result, in whatever order threads come to them.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from legal_rag.budget import BudgetExceededError, Usage
from legal_rag.citation_checks import Citation
from legal_rag.deep_read.models import Meter, SubCallError, SubModel
from legal_rag.deep_read.plan.asked import AskedModel
from legal_rag.deep_read.plan.documents_read import DocumentRead, Documents, DocumentsReader, ReadSoFar
from legal_rag.deep_read.plan.findings import Finding, PlanResult
from legal_rag.deep_read.plan.journal import FindingsJournal
from legal_rag.deep_read.plan.mapping import PartReader
from legal_rag.deep_read.plan.prompts import Scope
from legal_rag.deep_read.plan.reducing import BEFORE_THE_END, FOUND, Reducer, quotations_text
from legal_rag.deep_read.plan.reserve import ReservingModel
from legal_rag.deep_read.plan.settings import PlanSettings
from legal_rag.evidence import NO_PASSAGE
from legal_rag.prediction import Event

DEFAULT_SETTINGS = PlanSettings()
TOOL = "lecture"  # what events call it


def run_plan(
    question: str,
    doc_ids: Sequence[str],
    *,
    library: Documents,
    root: SubModel,
    sub: SubModel,
    workers: int = 8,
    settings: PlanSettings = DEFAULT_SETTINGS,
    journal: FindingsJournal | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    meter: Meter | None = None,
) -> PlanResult:
    """Ask each document, check what it is said to hold, and have one answer written of it.

    Args:
        question: In French.
        doc_ids: Of the documents; each is read once, in this order as far as the budget goes.
        library: Where they are.
        root: The model that writes the answer.
        sub: The model that reads the documents.
        workers: Questions at once.
        settings: How much is shown at once.
        journal: Of what the models replied in earlier runs, and reply in this one.
        on_event: Told of each document that was read ('read'), and each text that the root model wrote ('think'), in
            this thread; the order is that in which documents are done.
        meter: Of both models: each event has the usage that was added since the one before, and reading leaves a tenth
            of the budget, and two calls, for the answer.

    Raises:
        ValueError: If the question is empty, or `workers` is below 1.
    """
    if not question.strip():
        raise ValueError("the question is empty (expected one in French)")
    if workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    teller = _Teller(on_event, meter)
    reading = AskedModel(ReservingModel(sub, meter) if meter else sub, journal)
    parts = PartReader(question.strip(), reading, settings)
    read = DocumentsReader(parts, library, settings, teller.read).run(list(dict.fromkeys(doc_ids)), workers)
    writing = AskedModel(root, journal)
    reducer = Reducer(
        question.strip(), writing, library, settings.findings_chars, workers=workers, on_call=teller.wrote
    )
    return _concluded(read, reducer)


def _concluded(read: ReadSoFar, reducer: Reducer) -> PlanResult:
    findings = tuple(finding for one in read.documents for finding in one.findings)
    failed = {one.doc_id: one.error for one in read.documents if one.error}
    whole = tuple(one.doc_id for one in read.documents if one.is_whole)
    begun = tuple(one.doc_id for one in read.documents if not one.is_done and not one.error)
    written = _written(read, [one for one in findings if one.is_verified], reducer)
    return PlanResult(
        text=written.text,
        findings=findings,
        read=whole,
        unread=begun + read.not_begun,
        failed=failed,
        dropped_quotes=sum(one.dropped for one in read.documents),
        exhausted=written.exhausted,
        failure=written.failure,
        quoted=written.quoted,
        remarks=(*([read.failure] if read.failure and read.failure != written.failure else []), *reducer.remarks),
    )


class _Written(NamedTuple):
    """The answer, and why it is not the root model's, if it is not."""

    text: str
    exhausted: BudgetExceededError | None = None
    failure: str = ""
    quoted: tuple[Citation, ...] = ()


def _written(read: ReadSoFar, verified: list[Finding], reducer: Reducer) -> _Written:
    """Have the root model write the answer; where it cannot, the quotations are the answer.

    It is asked even if the reading came to a limit: if there is room for its call, a reserve was left for it.
    """
    if not verified:
        return _nothing_found(read)
    exhausted, failure = read.exhausted, ""
    try:
        notices = {one.doc_id: one.notice for one in read.documents}
        return _Written(reducer.answer(verified, notices, _scope(read, verified)), exhausted)
    except BudgetExceededError as error:
        exhausted = exhausted or error
    except SubCallError as error:
        failure = str(error)
    text, quoted = quotations_text(verified, BEFORE_THE_END if exhausted else FOUND)
    return _Written(text, exhausted, failure, quoted)


def _nothing_found(read: ReadSoFar) -> _Written:
    """Abstain where documents were read; where the reading stopped before its end, nothing is known."""
    errors = [one.error for one in read.documents if one.error]
    none_read = not any(one.is_whole for one in read.documents)
    failure = read.failure or (errors[0] if errors and none_read else "")
    exhausted = None if failure and none_read else read.exhausted  # asking in vain may have used the budget up
    return _Written("" if exhausted or failure else NO_PASSAGE, exhausted, failure)


def _scope(read: ReadSoFar, verified: list[Finding]) -> Scope:
    n_whole = sum(one.is_whole for one in read.documents)
    n_all = len(read.documents) + len(read.not_begun)
    return Scope(sum(bool(one.parts) for one in read.documents), len({one.doc_id for one in verified}), n_all - n_whole)


class _Teller:
    """Tells events, each with the model calls since the one before."""

    def __init__(self, on_event: Callable[[Event], None], meter: Meter | None) -> None:
        self._on_event, self._meter = on_event, meter
        self._told, self._at = self._usage(), time.perf_counter()

    def read(self, reading: DocumentRead) -> None:
        said = {
            "document": reading.doc_id,
            "parts": reading.n_parts,
            "pertinent": bool(reading.findings),
            "quotes": sum(len(one.citations) for one in reading.findings),
            "dropped": reading.dropped,
            **({"error": reading.error} if reading.error else {}),
        }
        self._tell(Event("read", TOOL, said, [reading.doc_id], reading.seconds))

    def wrote(self, what: str) -> None:
        now = time.perf_counter()
        self._tell(Event("think", TOOL, {"thought": what}, [], now - self._at))

    def _tell(self, event: Event) -> None:
        usage = self._usage()
        self._on_event(event._replace(usage=usage.minus(self._told) if self._meter else None))
        self._told, self._at = usage, time.perf_counter()

    def _usage(self) -> Usage:
        return self._meter.usage if self._meter else Usage()
