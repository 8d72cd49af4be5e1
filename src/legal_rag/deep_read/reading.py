"""Read deeply: choose programs or map-reduce, run them, conclude."""

import dataclasses
import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from legal_rag.agent.event_log import EventLog
from legal_rag.agent.failures import reason_in_french
from legal_rag.agent.prediction import Event, Prediction
from legal_rag.agent.tools import entities_of
from legal_rag.citations.enricher import EnrichedResponse
from legal_rag.corpus.cleaning import storable
from legal_rag.corpus_index.index import CorpusIndex
from legal_rag.deep_read.conclusion import MAX_PASSAGES, conclude, is_cited
from legal_rag.deep_read.environment import create_multi_doc_env
from legal_rag.deep_read.functions import MultiDocREPL
from legal_rag.deep_read.map_reduce.run import map_reduce
from legal_rag.deep_read.models import ChatModel
from legal_rag.deep_read.prompts import (
    CONTEXT_OF_CORPUS,
    CONTEXT_OF_DOCUMENTS,
    CONTEXT_TOO_LONG,
    MAX_CONTEXT_CHARS,
    SAMPLES,
    corpus_description,
    system_prompt,
)
from legal_rag.deep_read.provenance import Returned
from legal_rag.deep_read.settings import DEEP_READ_BUDGET, DeepReadSettings
from legal_rag.extraction.entities import ExtractionResult
from legal_rag.extraction.outputs import build_enriched_context
from legal_rag.llm import Budget, BudgetExceededError, UsageTracker, price_of

if TYPE_CHECKING:
    import dspy

    from legal_rag.corpus_index.index import CorpusIndex
    from legal_rag.deep_read.rlm import RlmOutcome, RunSetup, Turn
    from legal_rag.library.library import Library
    from legal_rag.retriever.retriever import Retriever

logger = logging.getLogger(__name__)

DEFAULT_SETTINGS = DeepReadSettings()
SHOWN_CHARS = 2000  # of a thought or a program, in an event
PROGRAM = "programme"  # what the event of a turn calls its tool
NO_PROGRAM = "Le modèle n'a écrit aucun programme qui fonctionne"
CANNOT_RUN = "Ce système ne peut pas exécuter de programme en sûreté"
INSTEAD = "les décisions ont été lues une à une"
NEAREST = "Ont été lues les {} décisions les plus proches de la question, non tout le corpus"


def deep_read(
    question: str,
    doc_ids: Sequence[str] | str | None = None,
    *,
    library: "Library",
    lm: "dspy.BaseLM",
    sub_lm: "dspy.BaseLM | None" = None,
    budget: Budget | None = None,
    settings: DeepReadSettings = DEFAULT_SETTINGS,
    retriever: "Retriever | None" = None,
    trace: str | Path | None = None,
    unfinished: Path | None = None,
    on_start: Callable[[str], None] = logger.info,
    on_event: Callable[[Event], None] = lambda event: None,
) -> Prediction:
    """Answer a question over whole decisions.

    Args:
        question: In French.
        doc_ids: Of the documents that it is about, or of one; None means the whole corpus.
        library: With a corpus index.
        lm: The root model, which writes the programs.
        sub_lm: The sub-model, which reads parts; None takes the root model.
        budget: How much the run may take; its steps are the root model's turns. None is `DEEP_READ_BUDGET`.
        settings: How it is read.
        retriever: For searches by meaning; None searches by words.
        trace: A file to keep the trace in, in rlms' form: a call with the same question, corpus, models and settings
            resumes the run. No reply that is stored (see `build_language_model`) is paid for again.
        unfinished: A folder for it where none is to be kept; it is deleted when the run has ended.
        on_start: Told, in a French sentence, what the read may cost at most, before a model is asked.
        on_event: Told what happens while it happens.

    Raises:
        TypeError: If what should be a language model is none.
        ValueError: If the question is empty, the trace is of another run, the corpus index is stale, or programs are
            asked for where the system cannot contain them.
        LookupError: If a document is unknown.
        FileNotFoundError: If there is no corpus index.
    """
    if not question.strip():
        raise ValueError("the question is empty (expected one in French)")
    for model in (lm, sub_lm or lm):
        if not callable(model):
            raise TypeError(f"not a language model: {model!r} (expected a dspy.LM, as build_language_model gives)")
    doc_ids = [doc_ids] if isinstance(doc_ids, str) else doc_ids
    trace = None if trace is None else Path(trace).expanduser()
    if trace and trace.is_dir():
        raise ValueError(f"{trace} is a folder (expected a file for the trace)")
    tracker = UsageTracker(budget or DEEP_READ_BUDGET)
    work = ReadingTask(
        question=storable(question.strip()),
        doc_ids=[library.document(doc_id).id for doc_id in dict.fromkeys(doc_ids or ())],
        index=CorpusIndex.open(library),
        root=ChatModel(lm, tracker),
        sub=ChatModel(sub_lm or lm, tracker),
        tracker=tracker,
        settings=settings,
        retriever=retriever,
        log=EventLog(),
        on_event=on_event,
    )
    file = trace or (unfinished / f"{work.digest()}.jsonl" if unfinished else None)
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
    on_start(most_in_french(work.doc_ids, library, tracker.budget, [lm, sub_lm or lm], settings))
    prediction = _read(work, file)
    if file and trace is None and prediction.status in ("answered", "unverified", "abstained"):
        file.unlink(missing_ok=True)
    return prediction


def most_in_french(
    doc_ids: Sequence[str],
    library: "Library",
    budget: Budget,
    models: Sequence["dspy.BaseLM"],
    settings: DeepReadSettings = DEFAULT_SETTINGS,
) -> str:
    """Say what is read, and what that may cost; in dollars too, where LiteLLM's list has the prices of all models."""
    prices = [price_of(str(one.model)) for one in models]
    dollars = ""
    if budget.cost is None and (known := [price for price in prices if price]) and len(known) == len(prices):
        dearest = max(max(price) for price in known)  # of a million tokens
        dollars = f", soit moins de {budget.tokens * dearest / 1e6:.2f} $".replace(".", ",")
    read = _read_in_french(doc_ids, len(library), settings)
    return f"Lecture approfondie ({read}) : au plus {budget.in_french()}{dollars} ; un appel commencé va à son terme."


def _read_in_french(doc_ids: Sequence[str], n_documents: int, settings: DeepReadSettings) -> str:
    if doc_ids:
        return _decisions(len(doc_ids))
    if settings.plan == "map" and settings.map_documents < n_documents:
        return f"{_decisions(settings.map_documents)} au plus sur {n_documents}, celles que les mots désignent"
    return f"tout le corpus, {_decisions(n_documents)}"


def _decisions(n: int) -> str:
    return f"{n} décision{'s' if n > 1 else ''}"


@dataclass(frozen=True, kw_only=True)
class ReadingTask:
    """A question, and what it is answered with."""

    question: str
    doc_ids: list[str]  # empty means the whole corpus
    index: "CorpusIndex"
    root: ChatModel
    sub: ChatModel
    tracker: UsageTracker
    settings: DeepReadSettings
    retriever: "Retriever | None"
    log: EventLog
    on_event: Callable[[Event], None]

    @property
    def library(self) -> "Library":
        """Where the documents are."""
        return self.index.library

    def emit(self, *events: Event) -> None:
        """Log events, and pass on all that were logged since the last time."""
        for event in events:
            self.log.add(event)
        for event in self.log.news():
            self.on_event(event)

    def key(self) -> dict[str, Any]:
        """Return what identifies the run: an attempt resumes an earlier one of the same key."""
        return {
            "question": self.question,
            "doc_ids": self.doc_ids,
            "lineage": self.library.manifest["lineage"],
            "commit": self.library.commit,
            "models": [self.root.name, self.sub.name],
            "sampling": [self.root.sampling, self.sub.sampling],
            "instructions": self.settings.instructions,
            "limits": dataclasses.asdict(self.settings.limits),
        }

    def digest(self) -> str:
        """Return a hash of the key."""
        return hashlib.sha256(json.dumps(self.key(), sort_keys=True).encode()).hexdigest()[:24]


def _read(work: ReadingTask, trace: Path | None) -> Prediction:
    """Read by programs, or by map-reduce where that is the plan or no program can be run."""
    plan = work.settings.plan
    if plan == "map":
        return _by_map_reduce(work)
    from legal_rag.deep_read.rlm import SandboxRefusedError

    try:
        prediction = _by_programs(work, trace)
    except SandboxRefusedError as error:
        if plan == "rlm":
            raise ValueError(str(error)) from error
        return _by_map_reduce(work, CANNOT_RUN)
    return prediction or _by_map_reduce(work, NO_PROGRAM)


def _by_programs(work: ReadingTask, trace: Path | None) -> Prediction | None:
    """Answer by programs; None where the plan allows another way and the model wrote no program that runs.

    Raises:
        SandboxRefusedError: If the system cannot contain programs.
        ValueError: If the trace is of another run.
    """
    from legal_rag.deep_read.rlm import run_rlm

    description = corpus_description(
        work.library.path.name, work.index.total_docs, work.index.total_chars, work.index.summaries(limit=SAMPLES)
    )
    context, said = _context(work, description)
    returned = Returned()
    outcome = run_rlm(work.question, context, _setup(work, trace, description, said, returned))
    work.emit()
    wrote_none = not outcome.codes and not outcome.is_final and (outcome.gave_up or outcome.out_of_turns)
    if wrote_none and work.settings.plan != "rlm":
        return None
    stopped, failed = _why_stopped(work, outcome)
    seen = frozenset([*work.log.sources, *returned.records])
    account = None if outcome.is_prose else returned.account_for(outcome.value, is_cited(work.library, seen))
    return _concluded(work, outcome.value, stopped=stopped, failed=failed, account=account, seen=seen)


def _setup(work: ReadingTask, trace: Path | None, description: str, context: str, returned: Returned) -> "RunSetup":
    from legal_rag.deep_read.rlm import RunSetup
    from legal_rag.deep_read.trace import TraceLogger

    settings = work.settings
    sub = work.sub.recorded()
    env = create_multi_doc_env(work.index, sub, work.retriever, log=work.log, workers=settings.workers)
    returned.give("nombre de documents du corpus", work.index.total_docs)
    returned.give("nombre de caractères du corpus", work.index.total_chars)
    if work.doc_ids:
        returned.give("documents sur lesquels porte la question", work.doc_ids)
    if "doc_ids" in env.values:
        returned.give("documents du corpus", env.values["doc_ids"])
    return RunSetup(
        root=work.root,
        sub=sub,
        tracker=work.tracker,
        functions={name: returned.watch(name, function) for name, function in env.functions.items()},
        values={**env.values, "corpus_path": work.library.path.name, "extraction_index": work.doc_ids or None},
        descriptions=env.descriptions,
        prompt=system_prompt(description, context, settings.instructions, settings.limits),
        logger=TraceLogger(trace, work.key()) if trace else None,
        limits=settings.limits,
        accept_no_walls=settings.accept_no_walls,
        max_depth=settings.max_depth,
        on_turn=lambda turn: _tell_turn(work, turn),
    )


def _context(work: ReadingTask, description: str) -> tuple[str, str]:
    """Return what programs find as `context`, and what it is, said to the model."""
    if not work.doc_ids:
        return description, CONTEXT_OF_CORPUS
    n = len(work.doc_ids)
    metas = list(work.index.metas(work.doc_ids))
    if sum(meta.char_count for meta in metas) > MAX_CONTEXT_CHARS:
        listed = "\n".join(f"{one.doc_id}\t{one.date}\t{one.title}" for one in metas)
        return listed, CONTEXT_TOO_LONG.format(n=n)
    documents = [work.library.document(doc_id) for doc_id in work.doc_ids]
    for document in documents:
        work.log.read(document)
    extracted = [ExtractionResult(doc_name=one.id, extractions=entities_of(one, work.library)) for one in documents]
    texts = [{"name": one.id, "text": one.content} for one in documents]
    return build_enriched_context(texts, extracted), CONTEXT_OF_DOCUMENTS.format(n=n)


def _tell_turn(work: ReadingTask, turn: "Turn") -> None:
    said = {"thought": turn.thought[:SHOWN_CHARS], "code": turn.code[:SHOWN_CHARS]}
    work.emit(Event("think", PROGRAM, said, [], turn.seconds, turn.usage))


def _why_stopped(work: ReadingTask, outcome: "RlmOutcome") -> tuple[str, bool]:
    """Return why a run ended before its end, in French, and whether a model's failure was the reason."""
    if isinstance(outcome.error, BudgetExceededError):
        return outcome.error.notice, False
    if outcome.error is not None:
        return NO_PROGRAM if outcome.gave_up else reason_in_french(outcome.error), True
    if outcome.out_of_turns:
        return BudgetExceededError("steps", work.tracker.budget).notice, False
    return "", False


def _by_map_reduce(work: ReadingTask, why: str = "") -> Prediction:
    """Read the named documents, else those that rank first, and have one answer written from verified quotations.

    Args:
        work: The question and what it is answered with.
        why: Why no programs are run although they were asked for, in French without a full stop.
    """
    result = map_reduce(
        work.question,
        work.doc_ids or _nearest_ids(work),
        library=work.library,
        root=work.root,
        sub=work.sub,
        workers=work.settings.workers,
        on_event=work.emit,
        tracker=work.tracker,
    )
    for doc_id in dict.fromkeys(finding.doc_id for finding in result.verified):
        work.log.read(work.library.document(doc_id))
    quoted = EnrichedResponse(result.text, list(result.quoted), [], [], 1.0, abstained=False)
    chosen = "" if work.doc_ids or not result.read else NEAREST.format(len(result.read))
    is_cut = bool(result.exhausted or result.failure)
    remarks = [f"{why} : {INSTEAD}" if why else "", chosen, "" if is_cut else result.notice]
    value, stopped = quoted if result.is_quoted else result.text, result.notice if is_cut else ""
    return _concluded(work, value, stopped=stopped, failed=result.exhausted is None, remarks=remarks)


def _concluded(work: ReadingTask, value: Any, *, stopped: str, **ending: Any) -> Prediction:
    """Check the answer; `ending` says how the reading ended, see `conclude`; beyond the budget, it is exhausted."""
    budget, usage = work.tracker.budget, work.tracker.usage
    if not stopped and (limit := budget.exceeded(usage)):
        stopped, ending["failed"] = BudgetExceededError(limit, budget, usage).notice, False
    return conclude(
        work.question,
        value,
        work.log,
        work.library,
        usage=usage,
        stopped=stopped,
        nearest=lambda: _search_nearest(work),
        on_event=work.on_event,
        **ending,
    )


def _nearest_ids(work: ReadingTask) -> list[str]:
    """Return the ids of the documents that rank first for the question."""
    repl = MultiDocREPL(work.index, None)
    return [doc_id for doc_id, *_ in repl.rank_documents(work.question, work.settings.map_documents)]


def _search_nearest(work: ReadingTask) -> None:
    """Log the passages closest to the question, which stand in for an answer; errors leave nothing."""
    repl = MultiDocREPL(work.index, None, work.retriever, log=work.log)
    try:
        repl.search_passages(work.question, MAX_PASSAGES, doc_ids=work.doc_ids or None)
    except Exception:  # the run has failed already, and says so
        logger.debug("nothing stands in", exc_info=True)
