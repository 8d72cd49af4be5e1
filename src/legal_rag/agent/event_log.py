"""Event log of one answer, the stream of its events, and the base class of agents."""

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from typing import Any, TypeVar

from legal_rag.agent.passages import complete_evidence, located, warning_of_censured, warning_of_fallen
from legal_rag.agent.pieces import Pieces
from legal_rag.agent.prediction import (
    CitedDocument,
    Event,
    EventType,
    Grade,
    Mode,
    Passage,
    Prediction,
    Status,
    new_answer_id,
)
from legal_rag.agent.tool_outputs import Exchange, Trajectory
from legal_rag.base.text import json_safe
from legal_rag.citations.enricher import EnrichedResponse
from legal_rag.citations.markers import without_markers
from legal_rag.citations.wording import telling_stems
from legal_rag.corpus.documents import Document
from legal_rag.encoder.encoder import Encoder
from legal_rag.graph.fates import graph_of, standing_of
from legal_rag.library.library import Library
from legal_rag.llm import Usage
from legal_rag.retriever.retriever import EncodedQuery, Retriever, SearchHit
from legal_rag.retriever.search_box import outcome_in_words

ARGUMENT_CHARS, ARGUMENT_ITEMS = 2000, 100  # kept of the arguments of a call

MOST_EXCHANGES, EXCHANGE_CHARS = 3, 1500  # before a question, that a model is shown; of each answer
# Content words of a question that is searched by itself; of one that refers to what was said before.
FEWEST_TELLING, FEWEST_REFERRING = 2, 5
_GOES_ON = re.compile(r"\W*(?:et|mais|alors|donc|sinon|dans ce cas)\b", re.IGNORECASE)
_REFERS = re.compile(
    r"\b(?:cel(?:ui|le)-ci|ce(?:ux|lles)-ci|cela|ça|ce cas"
    r"|cette (?:décision|règle|hypothèse)|cet arrêt)\b",
    re.IGNORECASE,
)

History = Sequence[Prediction | tuple[str, str]]
Result = TypeVar("Result")
Steps = Generator[None, None, Result]  # yields where events may be shown, and the work be stopped


class EventLog:
    """The events, passages and documents of one answer, in the order they came."""

    def __init__(self, history: Sequence[Exchange] = ()) -> None:
        """Begin a log; the history are the exchanges before this one."""
        self._started = time.perf_counter()
        self._yielded = 0  # events
        self._read: dict[str, None] = {}  # ids of documents, in the order they were read
        self.events: list[Event] = []
        self.passages: dict[str, Passage] = {}
        self.documents: dict[str, CitedDocument] = {}
        self.trajectory = Trajectory(history)
        self.pieces = Pieces()  # shown to the model
        self.remarks: dict[str, None] = {}  # in French, on how the question was read: they begin the notice

    @contextmanager
    def record(self, kind: EventType, tool: str, **arguments: Any) -> Iterator[list[str]]:
        """Record one call: the ids that the block puts in the list, and the time it took."""
        ids: list[str] = []
        started = time.perf_counter()
        try:
            yield ids
        finally:
            self.add(Event(kind, tool, _shortened(arguments), ids, time.perf_counter() - started))

    def add(self, event: Event) -> None:
        """Record an event; values of its input that JSON cannot hold are replaced."""
        self.events.append(event._replace(input=json_safe(event.input, keep_nan=True)))

    def checked(self, answer: EnrichedResponse, seconds: float) -> None:
        """Record the check of an answer's citations."""
        counts = {**answer.counts, "removed": len(answer.removed)}
        self.add(Event("cite", "citations", counts, _cited_doc_ids(answer), seconds))

    def answered(
        self,
        tool: str,
        question: str,
        answer: EnrichedResponse,
        seconds: float,
        usage: Usage | None = None,
        **details: Any,
    ) -> None:
        """Record that the answer was written; `usage` is of the model calls for it."""
        self.add(Event("answer", tool, {"question": question, **details}, _cited_doc_ids(answer), seconds, usage))

    def failed(self, error: str, usage: Usage, seconds: float) -> None:
        """Record the model calls that no event accounts for, if any; `usage` and `seconds` are of all calls."""
        for event in self.events:
            if event.usage is not None:
                usage, seconds = usage.minus(event.usage), seconds - event.seconds
        if usage.calls or usage.cached:
            self.add(Event("think", "", {"error": error}, [], max(0.0, seconds), usage))

    def news(self) -> Iterator[Event]:
        """Yield the events that were not yielded before."""
        while self._yielded < len(self.events):
            self._yielded += 1
            yield self.events[self._yielded - 1]

    @property
    def sources(self) -> Sequence[str]:
        """Ids of the documents: those read, then those only found."""
        return list(dict.fromkeys([*self._read, *self.documents]))

    def saw(self, hit: SearchHit) -> None:
        """Record a passage found; its best score counts."""
        known = self.passages.get(hit.chunk_id)
        if known is None or known.score is None or known.score < hit.score:
            fields = hit._asdict()
            self.passages[hit.chunk_id] = Passage(**{name: fields[name] for name in Passage._fields if name in fields})
        self.documents.setdefault(hit.doc_id, CitedDocument(hit.doc_id, hit.title, hit.decision_date))

    def found(self, document: Document) -> None:
        """Record a decision found, of which no passage was shown."""
        self.documents.setdefault(document.id, CitedDocument.of(document))

    def read(self, document: Document) -> None:
        """Record a decision read."""
        self._read.setdefault(document.id)
        self.documents.setdefault(document.id, CitedDocument.of(document))

    def take_over(self, prediction: Prediction, corpus: Library) -> None:
        """Add another answer's findings, without its checks and its text; what it cites counts as read."""
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
        corpus: Library,
        *,
        mode: Mode,
        status: Status,
        notice: str | None,
        grade: Grade | None = None,
        usage: Usage | None = None,
        query: EncodedQuery | None = None,
        encoder: Encoder | None = None,
    ) -> Prediction:
        """End an answer from a corpus; `usage` is of all model calls, query and encoder are for word matches."""
        citations = located(answer.citations, corpus)
        cited = {citation.doc_id for citation in citations}
        graph = graph_of(corpus)
        fates = {doc_id: standing_of(graph, doc_id) for doc_id in cited}
        warnings = [warning_of_censured(citations, corpus), warning_of_fallen(fates, corpus)]
        notice = " ".join(filter(None, [*self.remarks, notice, *warnings])) or None
        return Prediction(
            question=question,
            answer=answer.text,
            mode=mode,
            status=status,
            grade=grade,
            notice=notice,
            documents=[_cited_document(corpus.document(doc_id), fates.get(doc_id)) for doc_id in self.documents],
            citations=citations,
            ungrounded_claims=answer.ungrounded_claims,
            grounding_rate=answer.grounding_rate,
            evidence=complete_evidence(list(self.passages.values()), answer.citations, corpus, query, encoder),
            events=list(self.events),
            trajectory=json_safe(self.trajectory.as_fields(), keep_nan=True),
            usage=usage or Usage(),
            seconds=time.perf_counter() - self._started,
            answer_id=new_answer_id(),
        )


class AnswerStream(Iterator[Event], AbstractContextManager["AnswerStream"]):
    """Events of an answer as they come; `prediction` works to the end. Closing it, or its block, stops the work."""

    def __init__(self, steps: Steps[Prediction], log: EventLog) -> None:
        """`steps` is the work, which records its events in the log; it does not start yet."""
        self._steps, self._log = steps, log
        self._prediction: Prediction | None = None

    def __next__(self) -> Event:
        while (event := next(self._log.news(), None)) is None:
            try:
                next(self._steps)
            except StopIteration as end:
                self._prediction = end.value or self._prediction  # exhausted steps end again, without a value
                raise
        return event

    @property
    def prediction(self) -> Prediction:
        """The finished answer; the rest of the work is done first.

        Raises:
            RuntimeError: If the stream was stopped before its end.
        """
        for _ in self:
            pass
        if self._prediction is None:
            raise RuntimeError("the stream was stopped before its end: there is no prediction")
        return self._prediction

    def close(self) -> None:
        """Stop the work: nothing further is searched or asked."""
        self._steps.close()

    def __exit__(self, *error: object) -> None:
        self.close()


class Agent(ABC):
    """Answers questions from a corpus, at once or event by event. Thread-safe.

    Both raise ValueError for a question that is empty or longer than the encoder reads.
    """

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever

    @abstractmethod
    def steps(self, query: EncodedQuery, log: EventLog) -> Steps[Prediction]:
        """Answer a question, recording events in the log."""

    def __call__(self, question: str, history: History = ()) -> Prediction:
        """Answer a question in French; see `stream`."""
        return self.stream(question, history).prediction

    def stream(self, question: str, history: History = ()) -> AnswerStream:
        """Answer a question, event by event; nothing happens before the first event is asked for.

        The history is what was asked and answered before, oldest first: predictions, or pairs of question and answer.
        The model is shown the last `MOST_EXCHANGES`; a question that says too little by itself ("Et en appel ?") is
        searched with the one before it.
        """
        query = self._retriever.query(question)  # checked before a model is asked
        log = EventLog(_exchanges(history))
        return AnswerStream(self.steps(query, log), log)

    def _query_in_context(self, query: EncodedQuery, log: EventLog) -> EncodedQuery:
        """Return what is to be searched: the question, or the one before with it."""
        history = log.trajectory.history
        if not history or not _is_elliptical(query.text):
            return query
        try:
            return self._retriever.query(f"{history[-1].question} {query.text}")
        except ValueError:  # longer together than the encoder reads
            return query


def _cited_document(document: Document, fate: str | None) -> CitedDocument:
    """Take a document's metadata; of one cited, with its fate, its outcome is read in its text if no column has it."""
    known = CitedDocument.of(document)
    return known if fate is None else known._replace(solution=known.solution or outcome_in_words(document), fate=fate)


def _exchanges(history: History) -> list[Exchange]:
    pairs = ((item.question, item.answer) if isinstance(item, Prediction) else item for item in history)
    kept = list(pairs)[-MOST_EXCHANGES:]
    return [Exchange(question, without_markers(answer)[:EXCHANGE_CHARS]) for question, answer in kept]


def _is_elliptical(question: str) -> bool:
    """Does a question refer to what was said before, or name too little to be searched by itself?"""
    fewest = FEWEST_REFERRING if _REFERS.search(question) else FEWEST_TELLING
    return bool(_GOES_ON.match(question)) or len(telling_stems(question)) < fewest


def _shortened(value: Any) -> Any:
    """Cut the texts and lists of a call's arguments, which were bounded before."""
    if isinstance(value, str):
        return value if len(value) <= ARGUMENT_CHARS else f"{value[:ARGUMENT_CHARS]}…"
    if isinstance(value, Mapping):
        return {name: _shortened(item) for name, item in islice(value.items(), ARGUMENT_ITEMS)}
    return [_shortened(item) for item in value[:ARGUMENT_ITEMS]] if isinstance(value, list | tuple) else value


def _cited_doc_ids(answer: EnrichedResponse) -> list[str]:
    return list(dict.fromkeys(citation.doc_id for citation in answer.citations))
