"""Map-reduce over documents: each is asked window by window, quotations are checked, one answer is written."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Generic, NamedTuple, TypeVar

from legal_rag.agent.evidence import NO_PASSAGE
from legal_rag.agent.prediction import NOT_FRENCH as IN_ANOTHER_LANGUAGE
from legal_rag.agent.prediction import UNCITED, Event
from legal_rag.agent.replies import clean_answer, folded_key, without_tags
from legal_rag.agent.tool_outputs import as_data
from legal_rag.base.deadline import check
from legal_rag.base.futures import results_of
from legal_rag.base.text import Span
from legal_rag.citations.checks import Citation
from legal_rag.citations.claims import QUOTED_BLANKS, Quotation, is_evidence
from legal_rag.citations.enricher import CitationEnricher, is_abstention
from legal_rag.citations.markers import without_markers
from legal_rag.citations.sources import SourceText
from legal_rag.corpus.chunking import cut_windows
from legal_rag.corpus.documents import Document
from legal_rag.corpus.files import is_french_answer
from legal_rag.deep_read.prompts import (
    AS_ASKED,
    BRIEFLY,
    NO_ANSWER,
    UNVERIFIED,
    again,
    cited_answer,
    cited_text,
    error_text,
    final_prompt,
    map_prompt,
    map_reduce_notice,
    unread_text,
)
from legal_rag.deep_read.settings import WORKERS
from legal_rag.law.sentences import cut_at_blanks
from legal_rag.library.library import Library
from legal_rag.llm import HOPELESS, BudgetExceededError, ModelError, TextModel, json_in

T = TypeVar("T")
Item = TypeVar("Item")

AHEAD = 8  # windows under way, waiting or done, for each worker: a slow one holds up as many at most
TOOL = "lecture"  # what events call it
MAX_NAMED = 5  # documents that a notice names
MAX_SEARCHED = 40  # documents in which quotations without a marker are looked for
MAX_QUOTED = 30  # quotations of an answer that no model wrote
FEWEST_CHARS = 4000  # of findings: what a model finds too long is not halved below
SHORTEST_WINDOW = 1500  # characters: likewise
LONGEST_QUOTE = 2500  # characters; of a longer one the beginning is kept
MAX_QUOTES, ANSWER_CHARS = 8, 1500  # of one reply
SHOWN_INVENTED = 3  # quotations shown to the model as invented
BEFORE_THE_END, FOUND = "Passages relevés avant l'arrêt :", "Passages relevés :"
OTHERS = "[{} autres passages relevés ne sont pas repris ici.]"
LEFT_OUT = "{} autres passages relevés n'ont pas été lus par le modèle qui a répondu : ils n'y tenaient pas"
UNKNOWN = "document absent du corpus"

# Why a model is asked again.
EMPTY, NOT_FRENCH = "elle est vide", "elle n'est pas en français"
NO_JSON = "ce n'est pas l'objet JSON demandé"
NO_KEYS = 'l\'objet JSON n\'a ni "pertinent", ni "reponse", ni "citations"'
NO_QUOTE = 'elle ne donne aucune citation : recopiez mot pour mot, dans "citations", la phrase du texte qui le prouve'
INVENTED = "aucune citation ne se trouve mot pour mot dans le texte : {}"
TOO_SHORT = "ses citations sont trop courtes pour prouver quoi que ce soit : recopiez la phrase entière"
UNPROVEN = (
    "aucune source ne la prouve : recopiez mot pour mot les citations, et après chacune son repère, crochets compris"
)
UNREADABLE = ModelError("unreadable").reason

NONE = frozenset("none null n_a aucun aucune rien aucune_reponse sans_reponse".split())  # in place of an answer
NO = frozenset("non faux false no 0 aucun aucune pas".split())  # in place of false
MARKS = "«»“”„\"'`" + QUOTED_BLANKS  # around a quotation


class Judged(NamedTuple, Generic[T]):
    """Verdict on a reply."""

    value: T | None  # parsed from it; None if it is unusable
    problem: str = ""  # in French, for the model: why it is asked again
    reason: str = UNREADABLE  # in French: why there is no value


def ask_twice(model: TextModel, prompt: str, judge: Callable[[str], Judged[T]]) -> T:
    """Return the value parsed from the reply to a prompt, or from a second one if the first has a problem.

    ModelError if the model fails, or neither reply is usable; BudgetExceededError if the budget has no room for a call.
    """
    reply = _query_or_empty(model, prompt)
    judged = judge(reply)
    if judged.problem:
        try:
            second = _query_or_empty(model, again(prompt, reply, judged.problem))
        except ModelError:
            if judged.value is None:
                raise
            return judged.value
        second_judged = judge(second)
        if second_judged.value is not None or judged.value is None:
            reply, judged = second, second_judged
    if judged.value is None:
        raise ModelError("unreadable", reason=judged.reason) if reply.strip() else ModelError("empty")
    return judged.value


def _query_or_empty(model: TextModel, prompt: str) -> str:
    try:
        return model.query(prompt)
    except ModelError as error:
        if error.kind == "empty":  # worth a second try, with another prompt
            return ""
        raise


@dataclass(frozen=True, kw_only=True)
class MapReduceSettings:
    """How much one prompt shows; sizes in characters, of which a token has some 3.5."""

    window_chars: int = 16_000  # of a document in one prompt; nine decisions in ten are shorter
    overlap_chars: int = 400  # shared by two windows at least: two or three sentences
    findings_chars: int = 48_000  # of findings, when the answer is written
    answer_chars: int = ANSWER_CHARS  # kept of the answer to one window
    answer_form: str = BRIEFLY  # form asked of that answer, in French
    takes_text: bool = False  # a reply that is not the JSON asked for, twice, is an answer without quotations


DEFAULT_SETTINGS = MapReduceSettings()
# For programs, whose budget counts calls and whose questions ask for lists and tables.
EACH_SETTINGS = MapReduceSettings(
    window_chars=40_000, overlap_chars=1000, answer_chars=4000, answer_form=AS_ASKED, takes_text=True
)


class Finding(NamedTuple):
    """A model's answer from one window, and the quotations that prove it."""

    doc_id: str
    answer: str  # the model's own words, which are not checked
    citations: tuple[Citation, ...]  # quotations found in the document; without one it is not taken for a fact


Findings = tuple[Finding, ...]  # of one window: none if it is irrelevant, several if it had to be read in halves


@dataclass
class DocumentRead:
    """The state of one document; its text is not kept."""

    doc_id: str
    windows: Sequence[Span] = ()
    parts: dict[int, Findings] = field(default_factory=dict)  # by number of the window, those read
    errors: dict[int, str] = field(default_factory=dict)  # by number of the window, in French
    began: float = field(default_factory=time.perf_counter)

    @property
    def is_done(self) -> bool:
        """Whether every window was read or failed."""
        return len(self.parts) + len(self.errors) >= len(self.windows)

    @property
    def is_whole(self) -> bool:
        """Whether every window was read."""
        return self.is_done and not self.errors

    @property
    def error(self) -> str:
        """The error of the first window that failed; empty if none did."""
        return next(iter(self.errors.values()), "")

    @property
    def findings(self) -> Findings:
        """The findings in the order of the windows."""
        return tuple(finding for findings in self.parts.values() for finding in findings)


@dataclass
class Mapped:
    """The documents read, and why reading stopped early, if it did."""

    documents: list[DocumentRead] = field(default_factory=list)  # those begun, in the order of the ids
    exhausted: BudgetExceededError | None = None  # the limit reached
    failure: str = ""  # an error of the model that will not pass, in French


class Source(NamedTuple):
    """A document, and its text as models are shown it, from which they copy; same length and offsets."""

    document: Document
    shown: SourceText


class _Task(NamedTuple):
    read: DocumentRead
    source: Source
    number: int  # of the window


def map_documents(
    question: str,
    doc_ids: Sequence[str],
    *,
    library: Library,
    model: TextModel,
    workers: int,
    settings: MapReduceSettings,
    on_done: Callable[[DocumentRead], None] = lambda read: None,
) -> Mapped:
    """Read documents, `workers` windows at a time, until the budget or the model ends it.

    Calls under way when it ends are paid for: their results are waited for and kept. `on_done` is called in this thread
    with each document that is done; an unknown one has an error.
    """
    mapped = Mapped()

    def read_window(task: _Task) -> Findings | str | None:
        """Return a window's findings, the error, or None if the budget ended."""
        if mapped.exhausted or mapped.failure:
            return mapped.failure or None
        try:
            return _read_window(question, task.source, task.read.windows[task.number], model, settings)
        except BudgetExceededError as error:
            mapped.exhausted = error
            return None
        except ModelError as error:
            mapped.failure = mapped.failure or (error.reason if error.kind in HOPELESS else "")
            return error.reason

    tasks = _iter_tasks(doc_ids, library, settings, mapped, on_done)
    pairs = map_in_threads(lambda task: (task, read_window(task)), tasks, workers)
    for (read, _, number), result in pairs:
        if isinstance(result, str):
            read.errors[number] = result
        elif result is not None:
            read.parts[number] = result
        if read.is_done:
            on_done(read)
    return mapped


def _iter_tasks(
    doc_ids: Sequence[str],
    library: Library,
    settings: MapReduceSettings,
    mapped: Mapped,
    on_done: Callable[[DocumentRead], None],
) -> Iterator[_Task]:
    """Yield the windows of the documents; each document is loaded when reached."""
    for doc_id in doc_ids:
        check()
        if mapped.exhausted or mapped.failure:
            return
        read = DocumentRead(doc_id)
        mapped.documents.append(read)
        try:
            document = library.document(doc_id)
        except LookupError:  # removed since it was chosen
            read.errors[0] = UNKNOWN
            on_done(read)
            continue
        read.windows = cut_windows(document.content, settings.window_chars, settings.overlap_chars)
        if not read.windows:
            on_done(read)
        source = Source(document, SourceText(doc_id, as_data(document.content)))
        for number in range(len(read.windows)):
            yield _Task(read, source, number)


def map_in_threads(function: Callable[[Item], T], items: Iterable[Item], workers: int) -> Iterator[T]:
    """Map a function over items in threads that share the context and deadline; results keep the order.

    Items are drawn in this thread, a few ahead of the results.
    """
    with ThreadPoolExecutor(workers) as pool:
        try:
            yield from results_of((pool.submit(copy_context().run, function, item) for item in items), AHEAD * workers)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _read_window(
    question: str, source: Source, window: Span, model: TextModel, settings: MapReduceSettings
) -> Findings:
    """Read a window, in halves if it is too long for the model; raises as `ask_twice` does."""
    prompt = map_prompt(question, source.document, window, settings.answer_form)
    try:
        return ask_twice(model, prompt, lambda reply: _judge_reply(reply, source, window, settings))
    except ModelError as error:
        half = -(-(window[1] - window[0]) * 5 // 8)  # two of these cover the whole, and what they share
        if error.kind != "context" or half < SHORTEST_WINDOW:
            raise
    halves = cut_windows(source.document.content, half, min(settings.overlap_chars, half // 4), window)
    parts = [_read_window(question, source, part, model, settings) for part in halves]
    return tuple(finding for part in parts for finding in part)


def _judge_reply(reply: str, source: Source, window: Span, settings: MapReduceSettings) -> Judged[Findings]:
    """Read a reply and verify its quotations; a reply without one that is in the document has a problem."""
    reading = read_reply(reply, settings.answer_chars)
    if reading.problem == NO_JSON and settings.takes_text:
        said = _cut(_plain_answer(clean_answer(reply)), settings.answer_chars)
        return Judged(() if _is_none(said) else (Finding(source.document.id, said, ()),), NO_JSON)
    if reading.problem:
        return Judged(None, reading.problem)
    if not reading.pertinent:
        return Judged(())
    citations = (_verify_quote(quote, source, window) for quote in reading.quotes)
    verified = tuple(dict.fromkeys(citation for citation in citations if citation is not None))
    problem = "" if verified else _explain_problem(reading.quotes, source.shown)
    return Judged((Finding(source.document.id, reading.answer, verified),), problem)


def _verify_quote(quote: str, source: Source, window: Span) -> Citation | None:
    """Return a quotation as it is in the document; None if it is absent or too short to prove anything.

    Of several occurrences one within the window is preferred.
    """
    document = source.document
    spans = _find_quote_spans(quote, source.shown)
    inside = (span for span in spans if window[0] <= span[0] and span[1] <= window[1])
    span = next(inside, spans[0] if spans else (0, 0))
    start, end = next(cut_at_blanks(document.content, *span, LONGEST_QUOTE))
    text = document.content[start:end].rstrip()
    if not is_evidence(Quotation(start, end, text)):
        return None
    return Citation(document.id, start, start + len(text), text, "verified")


def _find_quote_spans(quote: str, shown: SourceText) -> Sequence[Span]:
    """Find a quotation in a text; marks around it may be the model's."""
    tries = (shown.quotation_spans(text) for text in dict.fromkeys((quote.strip(), quote.strip(MARKS))) if text)
    return next(filter(None, tries), [])


def _explain_problem(quotes: Sequence[str], shown: SourceText) -> str:
    if not quotes:
        return NO_QUOTE
    if any(_find_quote_spans(quote, shown) for quote in quotes):
        return TOO_SHORT
    return INVENTED.format(", ".join(f"« {quote[:200]} »" for quote in quotes[:SHOWN_INVENTED]))


class WindowReading(NamedTuple):
    """Parsed reply about a window."""

    pertinent: bool = False
    answer: str = ""
    quotes: tuple[str, ...] = ()  # as the model writes them, `MAX_QUOTES` at most
    problem: str = ""  # in French, for the model: why the reply cannot be read


def read_reply(text: str, answer_chars: int = ANSWER_CHARS) -> WindowReading:
    """Read a reply, JSON or nearly, and keep `answer_chars` characters of its answer."""
    if not text.strip():
        return WindowReading(problem=EMPTY)
    value = json_in(text)
    if not value:
        return WindowReading(problem=NO_JSON)
    entries = (item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict))
    objects = ({folded_key(str(name)): item for name, item in entry.items()} for entry in entries)
    fields = next((entry for entry in objects if entry.keys() & {"pertinent", "reponse", "citations"}), None)
    if fields is None:
        return WindowReading(problem=NO_KEYS)
    quotes = tuple(dict.fromkeys(_iter_quotes(fields.get("citations"))))
    answer, flag = _plain_answer(fields.get("reponse")), fields.get("pertinent")
    # "le document ne contient pas …" is no answer, whatever the flag says
    is_none = not quotes and (_is_none(answer) if answer else flag is not True)
    if is_none or flag is False or folded_key(str(flag)).partition("_")[0] in NO:
        return WindowReading()
    return WindowReading(True, _cut(answer, answer_chars), quotes[:MAX_QUOTES])


def _is_none(answer: str) -> bool:
    return folded_key(answer) in NONE or is_abstention(answer)


def _cut(answer: str, most: int) -> str:
    return answer if len(answer) <= most else f"{answer[:most]} […]"


def _iter_quotes(value: Any) -> Iterator[str]:
    """Yield the texts of a list of quotations, or of one; given as an object, of its values."""
    values = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else [value]
    for item in values:
        if isinstance(item, dict):
            yield from _iter_quotes(item)
        elif isinstance(item, str) and item.strip(MARKS + "…. "):
            yield item.strip()


def _plain_answer(value: Any) -> str:
    """Format an answer as text without markers: only ours point at checked quotations."""
    if isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        value = "\n".join(filter(None, map(_plain_answer, value)))
    if isinstance(value, dict | list):  # the question asked for a special form
        value = json.dumps(value, ensure_ascii=False) if value else ""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return ""
    text = str(value).strip()
    return without_markers(text).strip() if text.strip("…. ") else ""


def _write_answer(
    question: str,
    findings: Sequence[Finding],
    mapped: Mapped,
    n_left: int,
    model: TextModel,
    library: Library,
    most: int,
) -> tuple[str, str]:
    """Have a model write one answer from verified findings; return it, and what it was not shown, in French.

    It is shown at most `most` characters, half as many where it finds them too long; `n_left` documents were not read
    whole. ModelError if the model fails, or neither of two replies is a French answer with a citation that holds;
    BudgetExceededError if the budget has no room for a call.
    """
    enricher, telling = CitationEnricher(library), list(dict.fromkeys(finding.doc_id for finding in findings))
    notices = {doc_id: map_reduce_notice(library.document(doc_id)) for doc_id in telling}
    n_read = sum(bool(doc.parts) for doc in mapped.documents)

    def judged(reply: str) -> Judged[str]:
        text = clean_answer(reply)
        if not text:
            return Judged(None, EMPTY)
        if not is_french_answer(without_tags(text)):
            return Judged(None, NOT_FRENCH, IN_ANOTHER_LANGUAGE)
        citations = enricher.enrich(text, read=telling[:MAX_SEARCHED]).citations
        is_cited = any(citation.stands for citation in citations)
        return Judged(text) if is_cited or is_abstention(text) else Judged(None, UNPROVEN, UNCITED)

    while True:
        shown, left = _select_quotations(findings, notices, most)
        try:
            answer = ask_twice(model, final_prompt(question, shown, n_read, len(telling), n_left), judged)
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
        finding, lines = findings[number], [cited_text(citation)]
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


def _quotations_text(findings: Sequence[Finding], introduction: str) -> tuple[str, tuple[Citation, ...]]:
    """Return an answer made of quotations alone, and these."""
    citations = tuple(dict.fromkeys(citation for _, citation in _interleave_citations(findings)))
    shown = citations[:MAX_QUOTED]
    left = len(citations) - len(shown)
    rest = [OTHERS.format(left)] if left else []
    return "\n\n".join([introduction, *map(cited_text, shown), *rest]), shown


@dataclass(frozen=True, kw_only=True)
class MapReduceResult:
    """The answer and its evidence; documents are in the order given."""

    text: str  # the answer in French, with markers; empty where the run ended before anything was found
    findings: Findings = ()  # all of them; those without a quotation are not used
    read: tuple[str, ...] = ()  # documents read whole
    unread: tuple[str, ...] = ()  # documents not read, or not whole, because the run ended early
    failed: dict[str, str] = field(default_factory=dict)  # documents of which a window failed, and why
    exhausted: BudgetExceededError | None = None  # the limit that ended the run
    failure: str = ""  # why the answer is not the root model's, in French without a full stop
    quoted: tuple[Citation, ...] = ()  # of an answer that no model wrote: its quotations, in order
    remarks: tuple[str, ...] = ()  # for the reader, in French without a full stop

    @property
    def verified(self) -> Findings:
        """The findings with a quotation that was found in the document."""
        return tuple(finding for finding in self.findings if finding.citations)

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
) -> MapReduceResult:
    """Have the sub-model read each document, verify its quotations, and have the root model write one answer.

    Documents are read once, in their order as far as the budget goes. `on_event` is called in this thread with each
    document read ('read') and when the root model has written its answer ('think'). It is asked even if reading reached
    a limit: a reserve was kept for it. If it writes none, the quotations are the answer; without any, the result
    abstains if documents were read, and has no text if reading ended early.
    """
    ids = list(dict.fromkeys(doc_ids))
    mapped = map_documents(
        question,
        ids,
        library=library,
        model=sub,
        workers=workers,
        settings=settings,
        on_done=lambda read: on_event(_event_of(read)),
    )
    findings = tuple(finding for doc in mapped.documents for finding in doc.findings)
    verified = [finding for finding in findings if finding.citations]
    read = [doc.doc_id for doc in mapped.documents if doc.is_whole]
    failed = {doc.doc_id: doc.error for doc in mapped.documents if doc.errors}
    settled = {*read, *failed}
    exhausted, failure, remark, quoted = mapped.exhausted, "", "", tuple[Citation, ...]()
    if verified:
        try:
            n_left = len(ids) - len(read)
            most, started = settings.findings_chars, time.perf_counter()
            text, remark = _write_answer(question, verified, mapped, n_left, model=root, library=library, most=most)
            on_event(Event("think", TOOL, {"thought": "réponse"}, [], time.perf_counter() - started))
        except (BudgetExceededError, ModelError) as error:
            if isinstance(error, BudgetExceededError):
                exhausted = exhausted or error
            else:
                failure = error.reason
            text, quoted = _quotations_text(verified, BEFORE_THE_END if exhausted else FOUND)
    else:
        failure = mapped.failure or ("" if read else next(iter(failed.values()), ""))
        exhausted = None if failure and not read else exhausted  # failing calls may have used the budget up
        text = "" if exhausted or failure else NO_PASSAGE
    return MapReduceResult(
        text=text,
        findings=findings,
        read=tuple(read),
        unread=tuple(doc_id for doc_id in ids if doc_id not in settled),
        failed=failed,
        exhausted=exhausted,
        failure=failure,
        quoted=quoted,
        remarks=(mapped.failure if mapped.failure != failure else "", remark),
    )


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
    """
    ids = list(dict.fromkeys(doc_ids))
    mapped = map_documents(question, ids, library=library, model=model, workers=workers, settings=settings)
    answers = {doc.doc_id: _document_answer(doc) for doc in mapped.documents if doc.is_done}
    if mapped.failure:
        answers |= dict.fromkeys(ids[len(mapped.documents) :], error_text(mapped.failure))
    return DocumentAnswers(answers, [doc.doc_id for doc in mapped.documents if doc.parts], mapped.exhausted)


def _document_answer(read: DocumentRead) -> str:
    if read.errors and not read.parts:
        return error_text(read.error)
    verified = [cited_answer(finding.answer, finding.citations) for finding in read.findings if finding.citations]
    unproven = [finding.answer for finding in read.findings if finding.answer]
    lines = verified or ([*unproven, UNVERIFIED] if unproven else [NO_ANSWER])
    unread = [unread_text(read.windows[number], reason) for number, reason in read.errors.items()]
    return "\n".join([*lines, *unread])


def _format_unread(singular: str, plural: str, doc_ids: tuple[str, ...]) -> str:
    if not doc_ids:
        return ""
    named = ", ".join(doc_ids[:MAX_NAMED]) + (", …" if len(doc_ids) > MAX_NAMED else "")
    return f"1 décision {singular} ({named})" if len(doc_ids) == 1 else f"{len(doc_ids)} décisions {plural} ({named})"


def _event_of(read: DocumentRead) -> Event:
    quotes = sum(len(finding.citations) for finding in read.findings)
    fields = {"document": read.doc_id, "pertinent": bool(read.findings), "quotes": quotes}
    fields |= {"error": read.error} if read.errors else {}
    return Event("read", TOOL, fields, [read.doc_id], time.perf_counter() - read.began)
