"""Map step: question a document window by window and verify the quotations."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from legal_rag.agent.failures import UnusableAnswerError
from legal_rag.agent.step_parsing import folded_key
from legal_rag.agent.tool_outputs import as_data
from legal_rag.base.deadline import check
from legal_rag.base.text import Span, storable
from legal_rag.citations.checks import Citation
from legal_rag.citations.claims import QUOTED_BLANKS, Quotation, is_evidence
from legal_rag.citations.enricher import is_abstention
from legal_rag.citations.markers import take_out_markers
from legal_rag.citations.sources import SourceText
from legal_rag.corpus.documents import Document
from legal_rag.corpus.windows import cut_windows
from legal_rag.deep_read.prompts import BRIEFLY, again, map_prompt, map_reduce_notice
from legal_rag.law.sentences import cut_at_blanks
from legal_rag.library.library import Library
from legal_rag.llm import HOPELESS, BudgetExceededError, ModelError, TextModel, json_in

T = TypeVar("T")
Item = TypeVar("Item")

UNREADABLE = ModelError("unreadable").reason


class Judged(NamedTuple, Generic[T]):
    """Verdict on a reply."""

    value: T | None  # parsed from it; None if it is unusable
    problem: str = ""  # in French, for the model: why it is asked again
    reason: str = UNREADABLE  # in French: why there is no value


def ask_twice(model: TextModel, prompt: str, judge: Callable[[str], Judged[T]]) -> T:
    """Return the value parsed from the reply to a prompt, or from a second one if the first has a problem.

    Raises:
        ModelError: If the model fails, or neither reply is usable.
        BudgetExceededError: If the budget has no room for a call.
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
        raise UnusableAnswerError(judged.reason) if reply.strip() else ModelError("empty")
    return judged.value


def _query_or_empty(model: TextModel, prompt: str) -> str:
    try:
        return model.query(prompt)
    except ModelError as error:
        if error.kind == "empty":  # worth a second try, with another prompt
            return ""
        raise


AHEAD = 2  # windows under way or waiting, for each worker
SHORTEST_WINDOW = 1500  # characters: what a model finds too long is not halved below
LONGEST_QUOTE = 2500  # characters; of a longer one the beginning is kept
SHOWN_INVENTED = 3  # quotations shown to the model as invented
UNKNOWN = "document absent du corpus"
NO_QUOTE = 'elle ne donne aucune citation : recopiez mot pour mot, dans "citations", la phrase du texte qui le prouve'
INVENTED = "aucune citation ne se trouve mot pour mot dans le texte : {}"
TOO_SHORT = "ses citations sont trop courtes pour prouver quoi que ce soit : recopiez la phrase entière"

# How replies are read.
MAX_CHARS = 60_000  # of a reply: a regular one is 20 times shorter, a runaway model's may not be
MAX_TRIES = 100  # places where an object may begin
DEEPEST = 4  # objects within objects: {"resultat": [{…}]}
MAX_QUOTES, ANSWER_CHARS = 8, 1500  # of one reply; further quotations are dropped and counted
PERTINENT = ("pertinent", "pertinente", "pertinence", "est_pertinent", "relevant", "is_relevant")
ANSWER = ("reponse", "answer", "response", "constat", "resume", "reponse_courte")
QUOTES = ("citations", "citation", "quotes", "quote", "extraits", "extrait", "passages", "passage", "preuves")
TEXTS = ("citation", "texte", "text", "quote", "extrait", "passage", "phrase")  # of a quotation given as an object
YES = frozenset("oui vrai true yes 1 pertinent pertinente partiellement".split())
NO = frozenset("non faux false no 0 aucun aucune null none".split())
MARKS = "«»“”„\"'`" + QUOTED_BLANKS  # around a quotation
EMPTY = "elle est vide"
NO_JSON = "ce n'est pas l'objet JSON demandé"
NO_KEYS = 'l\'objet JSON n\'a ni "pertinent", ni "reponse", ni "citations"'


@dataclass(frozen=True, kw_only=True)
class MapReduceSettings:
    """How much one prompt shows; sizes in characters, of which a token has some 3.5."""

    window_chars: int = 16_000  # of a document in one prompt; nine decisions in ten are shorter
    overlap_chars: int = 400  # shared by two windows at least: two or three sentences
    findings_chars: int = 48_000  # of findings, when the answer is written
    answer_chars: int = ANSWER_CHARS  # kept of the answer to one window
    answer_form: str = BRIEFLY  # form asked of that answer, in French


class Finding(NamedTuple):
    """A model's answer from one window, and the quotations that prove it."""

    doc_id: str
    window: Span  # of the document, that the model was shown
    answer: str  # the model's own words, which are not checked
    citations: tuple[Citation, ...]  # quotations found in the document

    @property
    def is_verified(self) -> bool:
        """Whether at least one quotation proves it; otherwise it is not taken for a fact."""
        return bool(self.citations)


class WindowRead(NamedTuple):
    """Result of reading one window."""

    findings: tuple[Finding, ...] = ()  # none if it is irrelevant; several if it had to be read in halves
    dropped: int = 0  # quotations that are not in the document, or prove nothing
    seconds: float = 0.0


@dataclass
class DocumentRead:
    """The state of one document; its text is not kept."""

    doc_id: str
    windows: Sequence[Span] = ()
    notice: str = ""  # the document's metadata as text; kept only with findings
    parts: dict[int, WindowRead] = field(default_factory=dict)  # by number of the window, those read
    errors: dict[int, str] = field(default_factory=dict)  # by number of the window, in French

    @property
    def is_done(self) -> bool:
        """Whether every window was read or failed."""
        return len(self.parts) + len(self.errors) >= len(self.windows)

    @property
    def is_whole(self) -> bool:
        """Whether every window was read."""
        return self.is_done and not self.error

    @property
    def error(self) -> str:
        """The error of the first window that failed; empty if none did."""
        return self.errors[min(self.errors)] if self.errors else ""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings in the order of the windows."""
        return tuple(finding for number in sorted(self.parts) for finding in self.parts[number].findings)

    @property
    def dropped(self) -> int:
        """Quotations that could not be verified."""
        return sum(part.dropped for part in self.parts.values())

    @property
    def seconds(self) -> float:
        """Time that its windows took, added up."""
        return sum(part.seconds for part in self.parts.values())


class Mapped(NamedTuple):
    """The documents read, and why reading stopped early, if it did."""

    documents: list[DocumentRead]  # those begun, in the order of the ids
    not_begun: tuple[str, ...]
    exhausted: BudgetExceededError | None  # the limit reached
    failure: str  # an error of the model that will not pass, in French


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
    """Read documents, several windows at a time, until the budget or the model ends it.

    Calls under way when it ends are paid for: their results are waited for and kept.

    Args:
        question: In French.
        doc_ids: Each once.
        library: Where they are; an unknown document gets an error.
        model: The model that reads.
        workers: Windows read at once.
        settings: How documents are cut and answers kept.
        on_done: Called in this thread with each document that is done, in the order in which they are.
    """

    def read_window(task: _Task) -> WindowRead:
        started = time.perf_counter()
        part = _read_window(question, task.source, task.read.windows[task.number], model, settings)
        return part._replace(seconds=time.perf_counter() - started)

    begun: list[DocumentRead] = []
    exhausted, failure = None, ""
    for task, future in _run_parallel(read_window, _iter_tasks(doc_ids, library, settings, begun, on_done), workers):
        read = task.read
        try:
            read.parts[task.number] = future.result()
        except BudgetExceededError as error:
            exhausted = error
            continue
        except ModelError as error:
            read.errors[task.number] = error.reason
            failure = failure or (error.reason if error.kind in HOPELESS else "")
        if read.is_done:
            read.notice = read.notice if read.findings else ""
            on_done(read)
    return Mapped(begun, tuple(doc_ids[len(begun) :]), exhausted, failure)


class Source(NamedTuple):
    """A document, and its text as models are shown it, from which they copy; same length and offsets."""

    document: Document
    shown: SourceText


class _Task(NamedTuple):
    read: DocumentRead
    source: Source
    number: int  # of the window


def _iter_tasks(
    doc_ids: Sequence[str],
    library: Library,
    settings: MapReduceSettings,
    begun: list[DocumentRead],
    on_done: Callable[[DocumentRead], None],
) -> Iterator[_Task]:
    """Yield the windows of the documents; each document is loaded when reached and added to `begun`."""
    for doc_id in doc_ids:
        check()
        read = DocumentRead(doc_id)
        begun.append(read)
        try:
            document = library.document(doc_id)
        except LookupError:  # removed since it was chosen
            read.errors[0] = UNKNOWN
            on_done(read)
            continue
        read.windows = cut_windows(document.content, settings.window_chars, settings.overlap_chars)
        read.notice = map_reduce_notice(document)
        if not read.windows:
            on_done(read)
        source = Source(document, SourceText(doc_id, as_data(document.content)))
        for number in range(len(read.windows)):
            yield _Task(read, source, number)


def _run_parallel(
    work: Callable[[_Task], WindowRead], tasks: Iterator[_Task], workers: int
) -> Iterator[tuple[_Task, "Future[WindowRead]"]]:
    """Yield each task with its future as soon as it is done; after a final error no task is started."""
    running: dict[Future[WindowRead], _Task] = {}
    is_stopped = False
    with ThreadPoolExecutor(workers) as pool:
        try:
            while True:
                while len(running) < AHEAD * workers and not is_stopped and (task := next(tasks, None)):
                    running[pool.submit(copy_context().run, work, task)] = task
                if not running:
                    return
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                finished = [(running.pop(future), future) for future in done]
                is_stopped = is_stopped or any(_is_final(future.exception()) for future in done)
                if is_stopped:
                    running = {future: task for future, task in running.items() if not future.cancel()}
                yield from finished
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def map_in_threads(function: Callable[[Item], T], items: Iterable[Item], workers: int) -> Iterator[T]:
    """Map a function over items in threads that share the context and deadline; results keep the order."""
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(copy_context().run, function, item) for item in items]
        try:
            for future in futures:
                yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _is_final(error: BaseException | None) -> bool:
    """Tell whether later calls would fail the same way: refused key, unknown model, exhausted budget."""
    return error is not None and not (isinstance(error, ModelError) and error.kind not in HOPELESS)


def _read_window(
    question: str, source: Source, window: Span, model: TextModel, settings: MapReduceSettings
) -> WindowRead:
    """Read a window, in halves if it is too long for the model; raises as `ask_twice` does."""
    prompt = map_prompt(question, source.document, window, settings.answer_form)
    try:
        return ask_twice(model, prompt, lambda reply: judge_reply(reply, source, window, settings.answer_chars))
    except ModelError as error:
        half = -(-(window[1] - window[0]) * 5 // 8)  # two of these cover the whole, and what they share
        if error.kind != "context" or half < SHORTEST_WINDOW:
            raise
    halves = cut_windows(source.document.content, half, min(settings.overlap_chars, half // 4), window)
    parts = [_read_window(question, source, part, model, settings) for part in halves]
    return WindowRead(tuple(item for part in parts for item in part.findings), sum(part.dropped for part in parts))


def judge_reply(reply: str, source: Source, window: Span, answer_chars: int = ANSWER_CHARS) -> Judged[WindowRead]:
    """Read a reply and verify its quotations; a reply without one that is in the document has a problem."""
    reading = read_reply(reply, answer_chars)
    if reading.problem:
        return Judged(None, reading.problem)
    if not reading.pertinent:
        return Judged(WindowRead())
    citations = [_verify_quote(quote, source, window) for quote in reading.quotes]
    verified = tuple(dict.fromkeys(citation for citation in citations if citation is not None))
    finding = Finding(source.document.id, window, reading.answer, verified)
    problem = "" if verified else _explain_problem(reading.quotes, source.shown)
    return Judged(WindowRead((finding,), reading.left_out + citations.count(None)), problem)


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


class Reading(NamedTuple):
    """Parsed reply about a window."""

    pertinent: bool
    answer: str = ""
    quotes: tuple[str, ...] = ()  # as the model writes them
    left_out: int = 0  # quotations beyond `MAX_QUOTES`
    problem: str = ""  # in French, for the model: why the reply cannot be read


def read_reply(text: str, answer_chars: int = ANSWER_CHARS) -> Reading:
    """Read a reply, JSON or nearly; several objects are merged.

    Args:
        text: The reply.
        answer_chars: Characters that are kept of the answer.
    """
    text = storable(text[:MAX_CHARS]).strip()
    if not text:
        return Reading(False, problem=EMPTY)
    values = list(_iter_json_values(text))
    if not values:
        return Reading(False, problem=NO_JSON)
    readings = [_read_object(entry) for value in values for entry in _iter_objects(value)]
    return _merge_readings(readings, answer_chars) if readings else Reading(False, problem=NO_KEYS)


def _iter_json_values(text: str) -> Iterator[Any]:
    """Yield the well-formed JSON values of a text that have one of our keys; failing these, a repaired one."""
    decoder, at, is_found = json.JSONDecoder(), 0, False
    for _ in range(MAX_TRIES):
        at = min((place for place in (text.find("{", at), text.find("[", at)) if place >= 0), default=-1)
        if at < 0:
            break
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):  # no JSON here; or brackets within brackets
            at += 1
            continue
        if any(True for _ in _iter_objects(value)):
            is_found = True
            yield value
    if not is_found and "{" in text and (value := json_in(text[text.index("{") :])):
        yield value


def _iter_objects(value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the objects in a value that have one of our keys, at most `DEEPEST` levels down."""
    if depth > DEEPEST:
        return
    if isinstance(value, dict):
        known = _fold_keys(value)
        if any(name in known for name in (*PERTINENT, *ANSWER, *QUOTES)):
            yield known
            return
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _iter_objects(item, depth + 1)


def _read_object(known: Mapping[str, Any]) -> Reading:
    quotes = tuple(dict.fromkeys(_iter_quotes(_first_value(known, QUOTES))))
    answer = _plain_answer(_first_value(known, ANSWER))
    flag = _parse_flag(_first_value(known, PERTINENT))
    pertinent = bool(quotes or answer) if flag is None else flag
    if not quotes and answer and is_abstention(answer):
        pertinent = False  # "le document ne contient pas …" is no answer, whatever the flag says
    return Reading(True, answer, quotes) if pertinent else Reading(False)


def _merge_readings(readings: Sequence[Reading], answer_chars: int) -> Reading:
    """Merge and bound readings; one without content, such as the copied form, only counts if alone."""
    telling = [reading for reading in readings if reading.quotes or reading.answer] or [readings[-1]]
    quotes = tuple(dict.fromkeys(quote for reading in telling for quote in reading.quotes))
    answer = "\n".join(dict.fromkeys(reading.answer for reading in telling if reading.answer))
    kept = answer if len(answer) <= answer_chars else f"{answer[:answer_chars]} […]"
    left_out = max(0, len(quotes) - MAX_QUOTES)
    return Reading(telling[0].pertinent, kept, quotes[:MAX_QUOTES], left_out)


def _iter_quotes(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if value.strip(MARKS + "…. "):
            yield value.strip()
    elif isinstance(value, dict):
        yield from _iter_quotes(_first_value(_fold_keys(value), TEXTS))
    elif isinstance(value, list):
        for item in value:
            if not isinstance(item, list):
                yield from _iter_quotes(item)


def _plain_answer(value: Any) -> str:
    """Format an answer as text without markers: only ours point at checked quotations."""
    if isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        value = "\n".join(filter(None, map(_plain_answer, value)))
    if isinstance(value, dict | list):  # the question asked for a special form
        value = _as_json(value)
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return ""
    text = str(value).strip()
    return take_out_markers(text, lambda name: None).plain.strip() if text.strip("…. ") else ""


def _as_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False) if value else ""
    except RecursionError:  # deeper than `json` writes
        return ""


def _parse_flag(value: Any) -> bool | None:
    if isinstance(value, bool | int | float):
        return bool(value)
    words = folded_key(value).replace("_", " ").split() if isinstance(value, str) else []
    first = words[0] if words else ""
    return True if first in YES else False if first in NO or words[:2] == ["pas", "pertinent"] else None


def _first_value(values: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((values[name] for name in names if values.get(name) is not None), None)


def _fold_keys(values: Mapping[Any, Any]) -> dict[str, Any]:
    return {folded_key(str(name)): value for name, value in values.items()}
