"""Map-reduce question answering over documents: each is asked, quotations are checked, one answer is written."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, NamedTuple

from legal_rag.agent.evidence import NO_PASSAGE
from legal_rag.agent.failures import NOT_FRENCH as IN_ANOTHER_LANGUAGE
from legal_rag.agent.failures import UNCITED
from legal_rag.agent.prediction import Event
from legal_rag.agent.step_parsing import clean_answer
from legal_rag.citations.checks import Citation
from legal_rag.citations.enricher import CitationEnricher, is_abstention
from legal_rag.corpus.language import is_french_answer
from legal_rag.deep_read.mapping import (
    DocumentRead,
    Finding,
    Judged,
    Mapped,
    MapReduceSettings,
    ask_twice,
    map_documents,
)
from legal_rag.deep_read.prompts import (
    AS_ASKED,
    NO_ANSWER,
    UNVERIFIED,
    Scope,
    cited_answer,
    error_text,
    final_prompt,
    quoted,
    unread_text,
)
from legal_rag.library.library import Library
from legal_rag.llm import BudgetExceededError, ModelError, TextModel, Usage, UsageTracker

DEFAULT_SETTINGS = MapReduceSettings()
# For programs, whose budget counts calls and whose questions ask for lists and tables.
EACH_SETTINGS = MapReduceSettings(window_chars=40_000, overlap_chars=1000, answer_chars=4000, answer_form=AS_ASKED)
WORKERS = 8  # calls at once
TOOL = "lecture"  # what events call it
MAX_NAMED = 5  # documents that a notice names
MAX_SEARCHED = 40  # documents in which quotations without a marker are looked for
MAX_QUOTED = 30  # quotations of an answer that no model wrote
EMPTY = "elle est vide"
NOT_FRENCH = "elle n'est pas en français"
UNPROVEN = (
    "aucune source ne la prouve : recopiez mot pour mot les citations, et après chacune son repère, crochets compris"
)
BEFORE_THE_END = "Passages relevés avant l'arrêt :"
FOUND = "Passages relevés :"
OTHERS = "[{} autres passages relevés ne sont pas repris ici.]"
LEFT_OUT = "{} autres passages relevés n'ont pas été lus par le modèle qui a répondu : ils n'y tenaient pas"
FEWEST_CHARS = 4000  # of findings: what a model finds too long is not halved below


# Writes an answer from findings, their documents' metadata and the scope; see `written_answer`.
Writer = Callable[[Sequence[Finding], Mapping[str, str], Scope], tuple[str, str]]


def written_answer(
    question: str,
    findings: Sequence[Finding],
    notices: Mapping[str, str],
    scope: Scope,
    *,
    model: TextModel,
    library: Library,
    most: int,
) -> tuple[str, str]:
    """Have a model write one answer from findings; return it, and what it was not shown, in French.

    Args:
        question: In French.
        findings: Verified ones; at least one.
        notices: The metadata of their documents as text, by id.
        scope: How many documents the answer is about.
        model: The model that writes.
        library: Where its citations point.
        most: Characters of findings that it is shown, half as many where it finds them too long.

    Raises:
        ModelError: If the model fails, or neither of two replies is a French answer with a citation that holds.
        BudgetExceededError: If the budget has no room for a call.
    """
    enricher = CitationEnricher(library)
    read = list(dict.fromkeys(finding.doc_id for finding in findings))[:MAX_SEARCHED]

    def judged(reply: str) -> Judged[str]:
        text = clean_answer(reply)
        if not text:
            return Judged(None, EMPTY)
        if not is_french_answer(text):
            return Judged(None, NOT_FRENCH, IN_ANOTHER_LANGUAGE)
        cited = (citation.status != "unverified" for citation in enricher.enrich(text, read=read).citations)
        return Judged(text) if is_abstention(text) or any(cited) else Judged(None, UNPROVEN, UNCITED)

    while True:
        shown, left = _select_quotations(findings, notices, most)
        try:
            answer = ask_twice(model, final_prompt(question, shown, scope), judged)
        except ModelError as error:
            if error.kind != "context" or most < 2 * FEWEST_CHARS:
                raise
            most //= 2
        else:
            return answer, LEFT_OUT.format(left) if left else ""


def _select_quotations(findings: Sequence[Finding], notices: Mapping[str, str], most: int) -> tuple[list[str], int]:
    """Return findings with the quotations that fit, and how many do not."""
    shown: dict[int, list[str]] = {}
    left = 0
    for number, citation in _interleave_citations(findings):
        finding, lines = findings[number], [quoted(citation)]
        if number not in shown:
            lines = [*filter(None, [notices[finding.doc_id], finding.answer and f"Constat : {finding.answer}"]), *lines]
        size = sum(len(line) + 1 for line in lines)
        if size <= most or not shown:
            shown[number] = [*shown.get(number, []), *lines]
            most -= size
        else:
            left += 1
    return ["\n".join(shown[number]) for number in sorted(shown)], left


def _interleave_citations(findings: Sequence[Finding]) -> Iterator[tuple[int, Citation]]:
    """Yield the first quotation of each finding with its number, then the second ones."""
    rows = zip_longest(*([(number, item) for item in finding.citations] for number, finding in enumerate(findings)))
    return (pair for row in rows for pair in row if pair)


def quotations_text(findings: Sequence[Finding], introduction: str) -> tuple[str, tuple[Citation, ...]]:
    """Return an answer made of quotations alone, and these."""
    citations = tuple(dict.fromkeys(citation for _, citation in _interleave_citations(findings)))
    shown = citations[:MAX_QUOTED]
    left = len(citations) - len(shown)
    rest = [OTHERS.format(left)] if left else []
    return "\n\n".join([introduction, *map(quoted, shown), *rest]), shown


@dataclass(frozen=True, kw_only=True)
class MapReduceResult:
    """The answer and its evidence; documents are in the order given."""

    text: str  # the answer in French, with markers; empty where the run ended before anything was found
    findings: tuple[Finding, ...] = ()  # all of them; those that are not verified are not used
    read: tuple[str, ...] = ()  # documents read whole
    unread: tuple[str, ...] = ()  # documents not read, or not whole, because the run ended early
    failed: dict[str, str] = field(default_factory=dict)  # documents of which a window failed, and why
    dropped_quotes: int = 0  # that are in no document, or prove nothing
    exhausted: BudgetExceededError | None = None  # the limit that ended the run
    failure: str = ""  # why the answer is not the root model's, in French without a full stop
    quoted: tuple[Citation, ...] = ()  # of an answer that no model wrote: its quotations, in order
    remarks: tuple[str, ...] = ()  # for the reader, in French without a full stop

    @property
    def verified(self) -> tuple[Finding, ...]:
        """The findings with a quotation that was found in the document."""
        return tuple(finding for finding in self.findings if finding.is_verified)

    @property
    def notice(self) -> str:
        """Notice on the run for the reader, in French without a last full stop; empty if it was complete."""
        sentences = [
            self.exhausted.notice if self.exhausted else "",
            self.failure,
            _format_unread("non lue jusqu'au bout", "non lues jusqu'au bout", self.unread),
            _format_unread("n'a pas pu être lue", "n'ont pas pu être lues", tuple(self.failed)),
            *self.remarks,
        ]
        return ". ".join(filter(None, sentences))


def map_reduce(
    question: str,
    doc_ids: Sequence[str],
    *,
    library: Library,
    root: TextModel,
    sub: TextModel,
    workers: int = WORKERS,
    settings: MapReduceSettings = DEFAULT_SETTINGS,
    on_event: Callable[[Event], None] = lambda event: None,
    tracker: UsageTracker | None = None,
) -> MapReduceResult:
    """Have the sub-model read each document, verify its quotations, and have the root model write one answer.

    Args:
        question: In French.
        doc_ids: Of the documents; each is read once, in this order as far as the budget goes.
        library: Where they are.
        root: The model that writes the answer.
        sub: The model that reads the documents.
        workers: Calls at once.
        settings: How much one prompt shows.
        on_event: Called in this thread with each document read ('read') and each text that the root model wrote
            ('think'), in the order in which they are done.
        tracker: Of both models: events carry the usage since the one before.
    """
    events = _Events(on_event, tracker)
    mapped = map_documents(
        question,
        list(dict.fromkeys(doc_ids)),
        library=library,
        model=sub,
        workers=workers,
        settings=settings,
        on_done=events.read,
    )

    def write(*asked: Any) -> tuple[str, str]:
        written = written_answer(question, *asked, model=root, library=library, most=settings.findings_chars)
        events.wrote("réponse")
        return written

    return _build_result(mapped, write)


class DocumentAnswers(NamedTuple):
    """What each document answers to a question."""

    answers: dict[str, str]  # by document, in the order given; only those that were complete when the budget ended
    read: list[str]  # documents of which at least a part was read
    exhausted: BudgetExceededError | None  # the limit that ended the run


def answer_each(
    question: str,
    doc_ids: Sequence[str],
    *,
    library: Library,
    model: TextModel,
    workers: int = WORKERS,
    settings: MapReduceSettings = EACH_SETTINGS,
) -> DocumentAnswers:
    """Ask each document the same question.

    An answer has a line for each window that answers: the model's words, and the quotations that were found in the
    document, with their markers; `UNVERIFIED` follows where none was found. It is `NO_ANSWER` where the document gives
    none, "Erreur : …" where the model fails. Windows that could not be read are named below.

    Args:
        question: In French.
        doc_ids: Of the documents; each is asked once.
        library: Where they are.
        model: The model that reads.
        workers: Calls at once.
        settings: How much one prompt shows.
    """
    ids = list(dict.fromkeys(doc_ids))
    mapped = map_documents(question, ids, library=library, model=model, workers=workers, settings=settings)
    read = [doc.doc_id for doc in mapped.documents if doc.parts]
    if mapped.failure:
        _fail_the_rest(mapped)

    answers = {doc.doc_id: _document_answer(doc) for doc in mapped.documents if doc.is_done}
    answers |= {doc_id: error_text(mapped.failure) for doc_id in mapped.not_begun if mapped.failure}
    return DocumentAnswers(answers, read, mapped.exhausted)


def _fail_the_rest(mapped: Mapped) -> None:
    """Set the model's permanent error on every window left unread."""
    for read in mapped.documents:
        for number in range(len(read.windows)):
            if number not in read.parts:
                read.errors.setdefault(number, mapped.failure)


def _document_answer(read: DocumentRead) -> str:
    if read.errors and not read.parts:
        return error_text(read.error)
    verified = [cited_answer(finding.answer, finding.citations) for finding in read.findings if finding.is_verified]
    unproven = [finding.answer for finding in read.findings if finding.answer]
    lines = verified or ([*unproven, UNVERIFIED] if unproven else [NO_ANSWER])
    unread = [unread_text(read.windows[number], reason) for number, reason in sorted(read.errors.items())]
    return "\n".join([*lines, *unread])


def _build_result(mapped: Mapped, write: Writer) -> MapReduceResult:
    findings = tuple(finding for doc in mapped.documents for finding in doc.findings)
    begun = tuple(doc.doc_id for doc in mapped.documents if not doc.is_done and not doc.error)
    written = _write_answer(mapped, [finding for finding in findings if finding.is_verified], write)
    failure = [mapped.failure] if mapped.failure and mapped.failure != written.failure else []
    return replace(
        written,
        findings=findings,
        read=tuple(doc.doc_id for doc in mapped.documents if doc.is_whole),
        unread=begun + mapped.not_begun,
        failed={doc.doc_id: doc.error for doc in mapped.documents if doc.error},
        dropped_quotes=sum(doc.dropped for doc in mapped.documents),
        remarks=(*failure, *written.remarks),
    )


def _write_answer(mapped: Mapped, verified: list[Finding], write: Writer) -> MapReduceResult:
    """Have the root model write the answer; if it cannot, return the quotations.

    It is asked even if reading reached a limit: a reserve was kept for it.
    """
    if not verified:
        return _nothing_found(mapped)
    exhausted, failure = mapped.exhausted, ""
    try:
        text, remark = write(verified, {doc.doc_id: doc.notice for doc in mapped.documents}, _scope(mapped, verified))
        return MapReduceResult(text=text, exhausted=exhausted, remarks=(remark,))
    except BudgetExceededError as error:
        exhausted = exhausted or error
    except ModelError as error:
        failure = error.reason
    text, quoted = quotations_text(verified, BEFORE_THE_END if exhausted else FOUND)
    return MapReduceResult(text=text, exhausted=exhausted, failure=failure, quoted=quoted)


def _nothing_found(mapped: Mapped) -> MapReduceResult:
    """Abstain if documents were read; if reading ended early, give no text."""
    errors = [doc.error for doc in mapped.documents if doc.error]
    none_read = not any(doc.is_whole for doc in mapped.documents)
    failure = mapped.failure or (errors[0] if errors and none_read else "")
    exhausted = None if failure and none_read else mapped.exhausted  # failing calls may have used the budget up
    return MapReduceResult(text="" if exhausted or failure else NO_PASSAGE, exhausted=exhausted, failure=failure)


def _scope(mapped: Mapped, verified: list[Finding]) -> Scope:
    n_whole = sum(doc.is_whole for doc in mapped.documents)
    n_all = len(mapped.documents) + len(mapped.not_begun)
    return Scope(
        sum(bool(doc.parts) for doc in mapped.documents), len({finding.doc_id for finding in verified}), n_all - n_whole
    )


def _format_unread(singular: str, plural: str, doc_ids: tuple[str, ...]) -> str:
    if not doc_ids:
        return ""
    named = ", ".join(doc_ids[:MAX_NAMED]) + (", …" if len(doc_ids) > MAX_NAMED else "")
    return f"1 décision {singular} ({named})" if len(doc_ids) == 1 else f"{len(doc_ids)} décisions {plural} ({named})"


class _Events:
    """Emits events, each with the model calls since the one before."""

    def __init__(self, on_event: Callable[[Event], None], tracker: UsageTracker | None) -> None:
        self._on_event, self._tracker = on_event, tracker
        self._counted, self._at = self._usage(), time.perf_counter()

    def read(self, read: DocumentRead) -> None:
        fields = {
            "document": read.doc_id,
            "parts": len(read.windows),
            "pertinent": bool(read.findings),
            "quotes": sum(len(finding.citations) for finding in read.findings),
            "dropped": read.dropped,
            **({"error": read.error} if read.error else {}),
        }
        self._emit(Event("read", TOOL, fields, [read.doc_id], read.seconds))

    def wrote(self, what: str) -> None:
        now = time.perf_counter()
        self._emit(Event("think", TOOL, {"thought": what}, [], now - self._at))

    def _emit(self, event: Event) -> None:
        usage = self._usage()
        self._on_event(event._replace(usage=usage.minus(self._counted) if self._tracker else None))
        self._counted, self._at = usage, time.perf_counter()

    def _usage(self) -> Usage:
        return self._tracker.usage if self._tracker else Usage()
