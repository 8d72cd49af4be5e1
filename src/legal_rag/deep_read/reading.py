"""Deep reading: run programs or map-reduce, and turn the results into a checked answer; `MultiDocRLM` over a folder."""

import code
import logging
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from legal_rag import llm
from legal_rag.agent.event_log import EventLog
from legal_rag.agent.evidence import EvidenceAgent, abstention
from legal_rag.agent.passages import sentence_runs
from legal_rag.agent.prediction import (
    PARAPHRASE,
    UNCITED,
    Event,
    Passage,
    Prediction,
    Status,
    notice_of,
    reason_in_french,
)
from legal_rag.agent.replies import take_tags, without_tags
from legal_rag.agent.tool_arguments import bounded, document_ids, question_of, refused, text_of
from legal_rag.agent.tool_outputs import as_data, block
from legal_rag.agent.tools import entities_of
from legal_rag.base.text import storable
from legal_rag.citations.checks import Citation
from legal_rag.citations.enricher import CitationEnricher, EnrichedResponse
from legal_rag.citations.markers import without_receipts
from legal_rag.corpus_index.index import CorpusIndex, has_corpus_index
from legal_rag.corpus_index.summaries import SUMMARY_TOKENS
from legal_rag.deep_read.functions import MultiDocREPL, create_multi_doc_env
from legal_rag.deep_read.map_reduce import map_reduce
from legal_rag.deep_read.prompts import (
    CONTEXT_OF_CORPUS,
    CONTEXT_OF_DOCUMENTS,
    CONTEXT_TOO_LONG,
    CORE,
    MAX_CONTEXT_CHARS,
    SAMPLES,
    SHOWN_SAMPLES,
    Sizes,
    answer_text,
    cited_text,
    corpus_description,
    system_prompt,
)
from legal_rag.deep_read.receipts import Account, Receipt, Receipts
from legal_rag.deep_read.settings import DEEP_READ_BUDGET, REPLY_TOKENS, WINDOW_TOKENS, DeepReadSettings
from legal_rag.extraction.entities import ExtractionResult
from legal_rag.extraction.outputs import build_enriched_context
from legal_rag.library.library import Library
from legal_rag.library.manifest import MANIFEST
from legal_rag.llm import (
    UNLIMITED,
    Budget,
    BudgetExceededError,
    ChatModel,
    Completion,
    ModelError,
    UsageTracker,
    has_endpoint,
    price_of,
    tokens_in,
    window_of,
)
from legal_rag.retriever.retriever import Retriever
from legal_rag.retriever.search_box import NO_FILTERS

if TYPE_CHECKING:
    import dspy
    from rlm.logger import RLMLogger

    from legal_rag.deep_read.rlm import RlmOutcome

logger = logging.getLogger(__name__)

DEFAULT_SETTINGS = DeepReadSettings()
THOUGHT_CHARS = 2000  # of a thought or a program, in an event
PROGRAM = "programme"  # what the event of a turn calls its tool
NO_PROGRAM = "Le modèle n'a écrit aucun programme qui fonctionne"
NEAREST = "Ont été lues les {} décisions les plus proches de la question, non tout le corpus"
ANSWER_SHARE, ANSWER_CALLS = 0.1, 2  # that reading leaves of each limit: for an answer and one retry
MAX_READ = 40  # documents in which uncited facts of an answer are looked for
MAX_PASSAGES = 3  # shown in place of an answer
MAX_WORDS = 12  # in a line of an answer; a longer one is prose, which always needs a citation
MAX_LISTED = 200  # receipts on a page
MAX_TOLD = 5  # receipts in a notice, and values without one
WITHHELD = "Le texte du modèle, que rien ne vérifie, n'est pas donné"
COMPUTED, PARTLY = "Réponse calculée par les fonctions du corpus", "Calculé"
UNVERIFIED, PROSE = "Sorti d'un programme, non vérifié", "texte du modèle"
UNFOUNDED = "La réponse du modèle ne repose sur rien que son programme ait trouvé dans le corpus"
# Of a model's window: what its first prompt may take, else it leaves out what is optional; what programs print of a
# turn; what the sub-model reads at once.
PROMPT_SHARE, SHOWN_SHARE, READ_SHARE = 0.25, 0.125, 0.5
UNBOUNDED = 10**9  # tokens of a window that is not known
TOKEN_CHARS = 3  # of a token of French, on the safe side
CALLS_KEPT, STEPS_KEPT = 3, 1  # of the agent's budget, for its own last steps and its answer
SECONDS_KEPT = 30.0
SHARE_KEPT = 0.25  # of its tokens, and of the seconds of a short budget
INDEX_SUFFIX = ".index"  # of the Library that is built of a folder of texts, next to it
BANNER = """Les fonctions du corpus sont là : {functions}…
demander("question") lit en profondeur. exit() termine."""
NO_MODEL = "Sans modèle de langage, rien n'est lu en profondeur : voici les passages les plus proches de la question."
NO_ROOM = "Lecture approfondie impossible : le budget restant n'y suffit pas. Répondez avec ce que vous avez lu."


def deep_read(
    question: str,
    doc_ids: Sequence[str] | str | None = None,
    *,
    library: Library,
    lm: "dspy.BaseLM",
    sub_lm: "dspy.BaseLM | None" = None,
    budget: Budget | None = None,
    settings: DeepReadSettings = DEFAULT_SETTINGS,
    retriever: Retriever | None = None,
    trace: str | Path | None = None,
    on_start: Callable[[str], None] = logger.info,
    on_event: Callable[[Event], None] = lambda event: None,
) -> Prediction:
    """Answer a question over whole decisions; a run that was killed or reached a limit is resumed by the same call.

    Args:
        question: In French.
        doc_ids: Of the documents that it is about, or of one; None means the whole corpus.
        library: With a corpus index.
        lm: The root model, which writes the programs.
        sub_lm: The sub-model, which reads parts; None takes the root model.
        budget: How much the run may take; its steps are the root model's turns. None is `DEEP_READ_BUDGET`.
        settings: How the question is answered.
        retriever: For searches by meaning; None searches by words.
        trace: A file to keep the trace in, in rlms' form; a trace that is there is replaced.
        on_start: Called before any model with a French sentence on the maximum cost.
        on_event: Called with each event as it happens.

    Raises:
        TypeError: If a language model is not callable.
        ValueError: If the question is empty, the file at the trace's path is not a trace, or the corpus index is stale.
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
    logger_of_run = _trace_logger(trace) if trace else None
    tracker = UsageTracker(budget or DEEP_READ_BUDGET)
    work = ReadingTask(
        question=storable(question.strip()),
        doc_ids=[library.document(doc_id).id for doc_id in dict.fromkeys(doc_ids or ())],
        index=CorpusIndex.open(library),
        root=ChatModel(llm.model_of(lm), tracker, reply_tokens=REPLY_TOKENS),
        sub=ChatModel(llm.model_of(sub_lm or lm), tracker, reply_tokens=REPLY_TOKENS),
        tracker=tracker,
        settings=settings,
        retriever=retriever,
        log=EventLog(),
        on_event=on_event,
        trace=logger_of_run,
    )
    on_start(most_in_french(work.doc_ids, library, tracker.budget, [lm, sub_lm or lm], settings))
    if settings.plan == "map":
        return _answer_by_map_reduce(work)
    return _answer_by_programs(work) or _answer_by_map_reduce(work, NO_PROGRAM)


def deep_read_library(
    library: Library | str | Path,
    question: str,
    doc_ids: Sequence[str] | str | None = None,
    *,
    model: str | None = None,
    api_key: str | None = None,
    api_base: str | None = None,
    lm: "dspy.BaseLM | None" = None,
    **settings: Any,
) -> Prediction:
    """Answer a question over whole decisions of a Library, an open one with a corpus index or its folder.

    The model is `lm`, or that of `legal_rag.llm.build_language_model` for `model`, `api_key` and `api_base`; the other
    settings are those of `legal_rag.deep_read.deep_read`, and so are the errors. Without a model, here or in the
    environment with its key, it answers by passages alone, as `ask` does.
    """
    opened = library if isinstance(library, Library) else Library(library)
    if lm is None and not llm.is_asked(api_key, api_base, model):
        return quote_passages(question, doc_ids, settings.get("retriever") or Retriever(opened))
    return deep_read(
        question, doc_ids, library=opened, lm=lm or llm.build_language_model(model, api_key, api_base), **settings
    )


def quote_passages(question: str, doc_ids: Sequence[str] | str | None, retriever: Retriever) -> Prediction:
    """Answer by the passages nearest to a question, of some documents or of all; the notice says that no model read."""
    named = [doc_ids] if isinstance(doc_ids, str) else doc_ids or ()
    ids = tuple(retriever.corpus.document(doc_id).id for doc_id in named)
    filters = replace(NO_FILTERS, doc_ids=ids or None)
    prediction = EvidenceAgent(retriever, match_words=False, filters=filters)(question)
    return replace(prediction, notice=NO_MODEL)


def _trace_logger(path: Path) -> "RLMLogger":
    """Start a trace in a file that only its owner may read; ValueError if there is something else at its path."""
    from rlm.logger import RLMLogger

    if path.is_dir() or (path.is_file() and path.stat().st_size and not path.read_bytes()[:9].startswith(b'{"type": ')):
        raise ValueError(f"{path} is no trace (expected a path where nothing is, or a trace, which is replaced)")
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
    path.chmod(0o600)
    logger = RLMLogger(log_dir=str(path.parent))
    logger.log_file_path = str(path)
    return logger


def most_in_french(
    doc_ids: Sequence[str],
    library: Library,
    budget: Budget,
    models: Sequence["dspy.BaseLM"],
    settings: DeepReadSettings = DEFAULT_SETTINGS,
) -> str:
    """Say what is read and its maximum cost, in dollars too if LiteLLM lists the prices of all models."""
    prices = [price_of(str(model.model)) for model in models]
    dollars = ""
    if budget.cost is None and (known := [price for price in prices if price]) and len(known) == len(prices):
        dearest = max(max(price) for price in known)  # of a million tokens
        dollars = f", soit moins de {budget.tokens * dearest / 1e6:.2f} $".replace(".", ",")
    read = _describe_reading(doc_ids, len(library), settings)
    return f"Lecture approfondie ({read}) : au plus {budget.in_french()}{dollars} ; un appel commencé va à son terme."


def _describe_reading(doc_ids: Sequence[str], n_documents: int, settings: DeepReadSettings) -> str:
    if doc_ids:
        return _count_decisions(len(doc_ids))
    if settings.plan == "map" and settings.map_documents < n_documents:
        return f"{_count_decisions(settings.map_documents)} au plus sur {n_documents}, celles que les mots désignent"
    return f"tout le corpus, {_count_decisions(n_documents)}"


def _count_decisions(n: int) -> str:
    return f"{n} décision{'s' if n > 1 else ''}"


@dataclass(frozen=True, kw_only=True)
class ReadingTask:
    """A question and the resources for answering it."""

    question: str
    doc_ids: list[str]  # empty means the whole corpus
    index: "CorpusIndex"
    root: ChatModel
    sub: ChatModel
    tracker: UsageTracker
    settings: DeepReadSettings
    retriever: Retriever | None
    log: EventLog
    on_event: Callable[[Event], None]
    trace: "RLMLogger | None" = None

    @property
    def library(self) -> Library:
        """Where the documents are."""
        return self.index.library

    def emit(self, *events: Event) -> None:
        """Log events, and forward all logged since the last call."""
        for event in events:
            self.log.add(event)
        for event in self.log.news():
            self.on_event(event)


def _answer_by_programs(work: ReadingTask) -> Prediction | None:
    """Answer by programs; None if the plan allows map-reduce and the model wrote no program that runs."""
    from legal_rag.deep_read.rlm import RunSetup, completion_of, run_rlm

    settings, calls, failures = work.settings, list[Any](), list[str]()

    def keep_call(prompt: str, reply: Completion, error: str) -> None:
        calls.append(completion_of(work.sub.name, prompt, reply, error))
        failures.extend(filter(None, [error]))

    sub = replace(work.sub, on_call=keep_call)
    description = corpus_description(
        work.library.path.name, work.index.total_docs, work.index.total_chars, work.index.summaries(limit=SAMPLES)
    )
    context, context_note, extracted = _build_context(work, description)
    env = create_multi_doc_env(work.index, sub, work.retriever, log=work.log, workers=settings.workers)
    if work.doc_ids:
        env.receipts.given("décisions sur lesquelles porte la question", work.doc_ids)
    prompt, shown_chars = _root_prompt(work, context_note, len(context), env.descriptions)
    setup = RunSetup(
        root=work.root,
        sub=sub,
        tracker=work.tracker,
        functions=env.functions,
        values={**env.values, "question": work.question, "corpus_path": work.library.path.name, **extracted},
        prompt=prompt,
        receipts=env.receipts,
        calls=calls,
        logger=work.trace,
        limits=settings.limits,
        shown_chars=shown_chars,
        is_founded=lambda value, has_read: _is_founded(work, env.receipts, value, has_read=has_read),
        on_turn=lambda *turn: _emit_turn(work, *turn),
    )
    outcome = run_rlm(work.question, context, setup)
    work.emit()
    wrote_none = not outcome.codes and not outcome.is_final and (outcome.gave_up or outcome.out_of_turns)
    if wrote_none and settings.plan != "rlm":
        return None
    stopped, failed = _explain_stop(work, outcome)
    seen = _seen(work, env.receipts)
    ended: dict[str, Any] = {"stopped": stopped, "failed": failed, "receipts": env.receipts, "seen": seen}
    if outcome.is_unfounded:
        prediction = _conclude(work, "", **{**ended, "stopped": (failures or [UNFOUNDED])[-1], "failed": True})
    elif outcome.is_prose:
        prediction = _conclude(work, outcome.value, **ended)
    else:
        account = env.receipts.account_for(without_tags(outcome.value), is_cited(work.library, seen))
        prediction = _conclude(work, account.answer, account=account, **ended)
    # A refused answer would be refused again and again; a run that a failing server ended goes on from its replies.
    if prediction.status == "model_failed" and not isinstance(outcome.error, ModelError):
        work.root.forget(outcome.asked)
    return prediction


def _seen(work: ReadingTask, receipts: Receipts) -> frozenset[str]:
    return frozenset([*work.log.sources, *receipts.documents])


def _is_founded(work: ReadingTask, receipts: Receipts, value: Any, *, has_read: bool) -> bool:
    """Tell whether an answer that a model wrote as a constant rests on the corpus: by receipts, or by citations.

    Where nothing was read, no receipt was asked for, and nothing was looked for in vain.
    """
    seen = _seen(work, receipts)
    if has_read and receipts.account_for(without_tags(value), is_cited(work.library, seen)).is_computed:
        return True
    checked = CitationEnricher(work.library).enrich(take_tags(answer_text(value))[1], read=[], seen=seen)
    return checked.holds or (has_read and checked.abstained)


def _root_prompt(work: ReadingTask, note: str, n_chars: int, functions: Mapping[str, str]) -> tuple[str, int]:
    """Return the root model's prompt, and how much of what programs print it is shown, in characters.

    A model with a small window is told of fewer functions, and of no decision.
    """
    name, index, settings = work.library.path.name, work.index, work.settings
    window, sub_window = window_of(work.root.model) or UNBOUNDED, window_of(work.sub.model) or UNBOUNDED
    shown, read = int(window * TOKEN_CHARS * SHOWN_SHARE), int(sub_window * TOKEN_CHARS * READ_SHARE)
    sizes = Sizes(n_chars, min(shown, Sizes().shown), min(read, Sizes().read))

    def written(n_summaries: int, told: Mapping[str, str]) -> str:
        shown = index.summaries(limit=n_summaries) if n_summaries else ()
        description = corpus_description(name, index.total_docs, index.total_chars, shown)
        return system_prompt(description, note, settings.instructions, settings.limits, told, sizes)

    prompt = written(SHOWN_SAMPLES, functions)
    if tokens_in(prompt) > window * PROMPT_SHARE:
        prompt = written(0, {name: text for name, text in functions.items() if name in CORE})
    return prompt, sizes.shown


def _build_context(work: ReadingTask, description: str) -> tuple[str, str, dict[str, Any]]:
    """Return the variable `context`, its description for the model, and further values for programs."""
    if not work.doc_ids:
        return description, CONTEXT_OF_CORPUS, {}
    n = len(work.doc_ids)
    metas = list(work.index.metas(work.doc_ids))
    if sum(meta.char_count for meta in metas) > MAX_CONTEXT_CHARS:
        listed = "\n".join(f"{meta.doc_id}\t{meta.date}\t{meta.title}" for meta in metas)
        return listed, CONTEXT_TOO_LONG.format(n=n), {}
    documents = [work.library.document(doc_id) for doc_id in work.doc_ids]
    for document in documents:
        work.log.read(document)
    entities = {document.id: entities_of(document, work.library) for document in documents}
    extracted = [ExtractionResult(doc_name=doc_id, extractions=items) for doc_id, items in entities.items()]
    texts = [{"name": document.id, "text": document.content} for document in documents]
    return build_enriched_context(texts, extracted), CONTEXT_OF_DOCUMENTS.format(n=n), {"extraction_index": entities}


def _emit_turn(work: ReadingTask, thought: str, code: str, reply: Completion) -> None:
    fields = {"thought": thought[:THOUGHT_CHARS], "code": code[:THOUGHT_CHARS]}
    work.emit(Event("think", PROGRAM, fields, [], reply.seconds, reply.usage))


def _explain_stop(work: ReadingTask, outcome: "RlmOutcome") -> tuple[str, bool]:
    """Return why a run ended early, in French, and whether a model's failure was the reason."""
    if isinstance(outcome.error, BudgetExceededError):
        return outcome.error.notice, False
    if outcome.error is not None:
        return NO_PROGRAM if outcome.gave_up else reason_in_french(outcome.error), True
    if outcome.out_of_turns:
        return BudgetExceededError("steps", work.tracker.budget).notice, False
    return "", False


def _answer_by_map_reduce(work: ReadingTask, why: str = "") -> Prediction:
    """Read the named documents, else those that rank first, and have one answer written from verified quotations.

    `why` says why no programs are run although they were requested, in French without a full stop.
    """
    ranked = () if work.doc_ids else MultiDocREPL(work.index).rank_documents(work.question, work.settings.map_documents)
    within = work.tracker.budget.reduced(ANSWER_SHARE, ANSWER_CALLS)
    result = map_reduce(
        work.question,
        work.doc_ids or [doc_id for doc_id, *_ in ranked],
        library=work.library,
        root=work.root,
        sub=replace(work.sub, within=within, reply_tokens=WINDOW_TOKENS),
        workers=work.settings.workers,
        on_event=work.emit,
    )
    for doc_id in dict.fromkeys(finding.doc_id for finding in result.verified):
        work.log.read(work.library.document(doc_id))
    quoted = EnrichedResponse(result.text, list(result.quoted), [], [], 1.0, abstained=False)
    chosen = "" if work.doc_ids or not result.read else NEAREST.format(len(result.read))
    is_cut = bool(result.exhausted or result.failure)
    remarks = [f"{why} : les décisions ont été lues une à une" if why else "", chosen, "" if is_cut else result.notice]
    value, stopped = quoted if result.quoted else result.text, result.notice if is_cut else ""
    return _conclude(work, value, stopped=stopped, failed=result.exhausted is None, remarks=remarks)


def _search_nearest(work: ReadingTask) -> None:
    """Log the passages closest to the question as a substitute for an answer; errors are ignored."""
    repl = MultiDocREPL(work.index, None, work.retriever, log=work.log)
    try:
        repl.search_passages(work.question, MAX_PASSAGES, doc_ids=work.doc_ids or None)
    except Exception:  # the run has failed already, and reports that
        logger.debug("nothing stands in", exc_info=True)


def _conclude(
    work: ReadingTask,
    value: Any,
    *,
    stopped: str,
    failed: bool,
    account: Account | None = None,
    receipts: Receipts | None = None,
    seen: Collection[str] = (),
    remarks: Sequence[str] = (),
) -> Prediction:
    """Check an answer and assemble the prediction.

    `value` is a text, a plain value, or an answer checked already; empty for none. `stopped` says in French without a
    full stop why the run ended early, and `failed` whether because a model failed, not at a limit. The `account` of an
    answer given by a program says which values have a receipt, and thus need no cited passage; the rest is marked as
    not verified. Prose is not shown, but the receipts that it names are. Citations may refer to documents `seen` too.
    """
    log, corpus, usage = work.log, work.library, work.tracker.usage
    if not stopped and (limit := work.tracker.budget.exceeded(usage)):
        stopped, failed = BudgetExceededError(limit, work.tracker.budget, usage).notice, False
    started = time.perf_counter()
    plain = not isinstance(value, str | EnrichedResponse)  # a list, a number: nothing is added to it
    named: dict[str, Receipt] = {}

    def bears_out(before: str, name: str) -> str | None:
        receipt = receipts.bears_out(before, name) if receipts else None
        named.update({receipt.statement(): receipt} if receipt else {})
        return receipt.shown if receipt else None

    checked = value if isinstance(value, EnrichedResponse) else None
    # Tags are not requested here; those that a model writes are dropped.
    if checked is None and value is not None and (text := take_tags(answer_text(value))[1]):
        read, known = [] if plain else log.sources[:MAX_READ], frozenset([*log.sources, *seen])
        checked = CitationEnricher(corpus).enrich(text, read=read, seen=known, bears_out=bears_out)
    if named:
        account = account or Account(value, unverified=(PROSE,))
        kept = {receipt.statement(): receipt for receipt in account.receipts} | named
        account = account._replace(receipts=tuple(kept.values()))
    answer, reported, remark = _select_answer(checked, account, plain=plain)
    if answer is None and not stopped:
        failed, stopped = True, UNCITED if checked else ModelError("empty").reason
    if answer is None and not log.passages:
        _search_nearest(work)
    given = answer or _quote_best_passages(log)
    log.checked(given, time.perf_counter() - started)
    details: dict[str, Any] = {}
    if plain and answer and checked and answer.text == checked.text:
        details["value"] = without_tags(value)
    if reported and reported.receipts:
        details["receipts"] = [receipt.to_json() for receipt in reported.receipts[:MAX_LISTED]]
    if reported:
        details["unverified"] = list(reported.unverified)
    log.answered("deep_read", work.question, given, 0.0, **details)
    work.emit()
    return log.prediction(
        work.question,
        given,
        corpus,
        mode="deep_read",
        status=_choose_status(given, stopped, reported, failed=failed),
        notice=notice_of(given, stopped, *remarks, remark, *(_provenance_notice(reported, given) if reported else ())),
        usage=usage,
    )


def _select_answer(
    checked: EnrichedResponse | None, account: Account | None, *, plain: bool
) -> tuple[EnrichedResponse | None, Account | None, str]:
    """Return the answer to give, the account of its values, and a remark on what is withheld.

    Unsupported words of the model are withheld; an answer that cites passages needs a citation that holds, or stands
    where no program gave it.
    """
    if checked is None:
        return None, None, ""
    if checked.holds:
        reported = account if account is None or plain else account._replace(unverified=())
        return checked, reported if reported and (reported.receipts or reported.unverified) else None, ""
    if not account and checked.stands and not checked.abstained:
        return checked, None, PARAPHRASE
    if account:
        cites = bool(checked.citations or checked.removed)
        if account.is_computed or not (cites or checked.abstained or _is_prose(checked.text)):
            return checked._replace(ungrounded_claims=[], grounding_rate=None), account, ""
        if account.receipts and not (cites or checked.abstained):
            return _list_receipts(account), account._replace(unverified=()), WITHHELD
    return (abstention(checked.removed) if checked.abstained else None), None, ""


def _choose_status(answer: EnrichedResponse, stopped: str, account: Account | None, *, failed: bool) -> Status:
    if stopped:
        return "model_failed" if failed else "exhausted"
    if account:
        return "answered" if account.is_computed else "unverified"
    return "abstained" if answer.abstained and not answer.holds else "answered"


def _provenance_notice(account: Account, answer: EnrichedResponse) -> Iterator[str]:
    """Yield notices on computed and unverified values, in French without full stops."""
    if account.unverified:
        yield _format_list(UNVERIFIED, account.unverified)
    if account.receipts:
        statements = [receipt.statement() for receipt in account.receipts]
        yield _format_list(PARTLY if account.unverified or answer.holds else COMPUTED, statements)
    elif not account.unverified:
        yield UNVERIFIED


def _list_receipts(account: Account) -> EnrichedResponse:
    lines = [f"- {receipt.id} : {receipt.shown}" for receipt in account.receipts]  # the notice says what they are
    return EnrichedResponse("\n".join(lines), [], [], [], None, abstained=False)


def _format_list(head: str, items: Sequence[str]) -> str:
    more = f" ; et {len(items) - MAX_TOLD} de plus, sur la page" if len(items) > MAX_TOLD else ""
    return f"{head} : {' ; '.join(items[:MAX_TOLD]).rstrip('.')}{more}" if items else head


def _is_prose(text: str) -> bool:
    return any(len(line.split()) > MAX_WORDS for line in without_receipts(text).splitlines())


def is_cited(corpus: "Library", seen: Collection[str]) -> Callable[[str], bool]:
    """Return a predicate: do citations that hold, of documents shown, support all of a text?"""

    def tells(text: str) -> bool:
        checked = CitationEnricher(corpus).enrich(text, read=[], seen=seen)
        holds = bool(checked.citations) and all(citation.holds for citation in checked.citations)
        return holds and not (checked.removed or checked.ungrounded_claims or checked.cut)

    return tells


def _quote_best_passages(log: EventLog) -> EnrichedResponse:
    """Quote the best passages found; without any, report that there is no result."""
    best = sorted(log.passages.values(), key=lambda passage: -(passage.score or 0.0))[:MAX_PASSAGES]
    if not best:
        return abstention()._replace(text="La lecture approfondie s'est arrêtée sans résultat.")
    citations = [_cite_passage(passage) for passage in best]
    text = "\n\n".join(["Passages trouvés :", *map(cited_text, citations)])
    return EnrichedResponse(text, citations, [], [], 1.0, abstained=False)


def _cite_passage(passage: Passage) -> Citation:
    first, last = next(sentence_runs(passage.text, 0, len(passage.text)))
    quote = passage.text[first:last]
    start = passage.char_start + first
    return Citation(passage.doc_id, start, start + len(quote), quote, "verified")


def deep_read_tool(
    retriever: Retriever, lm: "dspy.BaseLM", log: EventLog, tracker: UsageTracker | None = None
) -> Callable[..., str] | None:
    """Make the tool for one run of the agent, for `legal_rag.agent.build_agent(extra_tools=[deep_read_tool])`.

    The findings are added to the run's `log`, the usage to its `tracker`; without one the reading has a budget of its
    own. There is no tool where the corpus lacks the index that deep reading needs.
    """
    library = retriever.corpus
    if not (isinstance(library, Library) and has_corpus_index(library)):
        return None

    @bounded(refused)
    def read(question: str, doc_ids: str = "") -> str:
        """une question sur toutes les décisions d'un genre : un nombre, un classement, une comparaison, un croisement.

        Les décisions sont lues en entier, chacune par un appel au modèle au moins ; question est complète et en
        français ; doc_ids, facultatif, nomme les décisions à lire, séparées par des virgules.
        """
        with log.record("read", "deep_read", question=question, doc_ids=doc_ids) as ids:
            try:
                asked = question_of(question)
                selected_ids = document_ids(doc_ids, library) if text_of(doc_ids) else None
            except LookupError as error:
                return as_data(str(error.args[0]))
            except ValueError as error:
                return f"Lecture impossible : {error}."
            budget = _remaining_budget(tracker) if tracker else DEEP_READ_BUDGET
            if budget is None:
                return NO_ROOM
            prediction = deep_read(
                asked,
                selected_ids,
                library=library,
                lm=lm,
                budget=budget,
                retriever=retriever,
                on_start=lambda message: log.add(Event("think", "deep_read", {"thought": message}, [], 0.0)),
            )
            ids += [document.doc_id for document in prediction.documents]
        if tracker:
            tracker.add(prediction.usage)
            tracker.steps += sum(event.tool == PROGRAM for event in prediction.events)
        log.take_over(prediction, library)
        return _format_observation(prediction)

    read.__name__ = "deep_read"  # as the model knows it
    return read


def _remaining_budget(tracker: UsageTracker) -> Budget | None:
    """Return an agent's budget for a deep read, leaving enough to answer; None if too little is left."""
    budget, usage = tracker.budget, tracker.usage
    calls, steps = budget.model_calls - usage.calls - CALLS_KEPT, budget.steps - tracker.steps - STEPS_KEPT
    tokens = int((budget.tokens - usage.tokens) * (1 - SHARE_KEPT))
    seconds = tracker.seconds_left - min(SECONDS_KEPT, tracker.seconds_left * SHARE_KEPT)
    cost = None if budget.cost is None else budget.cost - (usage.cost or 0.0)
    if calls < 2 or steps < 1 or tokens < 1 or seconds <= 0 or (cost is not None and cost <= 0):
        return None
    return Budget(steps=steps, model_calls=calls, tokens=tokens, seconds=seconds, cost=cost)


def _format_observation(prediction: Prediction) -> str:
    notice = f"{prediction.notice}\n" if prediction.notice else ""
    return f"{notice}Réponse de la lecture approfondie, avec ses sources à reprendre :\n{block(prediction.answer)}"


class MultiDocRLM:
    """A Recursive Language Model over many documents: a Library's folder, or a source of texts such as a folder.

    The root model writes the programs and the sub-model reads the parts, each a model's id or a `dspy.LM`; the first is
    by default GENERATOR_MODEL_ID, the second is the first. `budget` is for each question.
    """

    def __init__(
        self,
        corpus_path: str | Path,
        root_model: "str | dspy.BaseLM | None" = None,
        sub_model: "str | dspy.BaseLM | None" = None,
        *,
        api_key: str | None = None,
        api_base: str | None = None,
        budget: Budget | None = None,
        settings: DeepReadSettings = DEFAULT_SETTINGS,
    ) -> None:
        self.corpus_path = Path(corpus_path).expanduser()
        self._models, self._endpoint = (root_model, sub_model), (api_key, api_base)
        self._budget, self._settings = budget or DEEP_READ_BUDGET, settings
        self._library: Library | None = None

    @property
    def library(self) -> Library:
        """The open Library; FileNotFoundError if none was built or loaded."""
        if self._library is None:
            if not (self.corpus_path / MANIFEST).is_file():
                raise FileNotFoundError(
                    f"no index of {self.corpus_path} yet (expected build_index or load_index first)"
                )
            self._library = Library(self.corpus_path)
        return self._library

    def build_index(
        self,
        parallel: bool = True,
        batch_size: int = 100,
        save_path: str | Path | None = None,
        *,
        entities: bool = True,
        by_model: bool = False,
    ) -> CorpusIndex:
        """Build the corpus index; of a folder of texts, first a Library that is searched by words.

        Args:
            parallel: On all cores.
            batch_size: Documents handed to a core at once.
            save_path: The Library's folder, if the corpus is not one yet; None puts it next to the texts.
            entities: Extract entities by rules, if nothing was extracted yet.
            by_model: The sub-model describes documents without an official summary; see `CorpusIndexer`.

        Raises:
            FileNotFoundError: If there is no such source.
            ValueError: If no document is left, `batch_size` is below 1, no model can be asked for `by_model`, or
                `save_path` is given for a Library, which keeps its place.
        """
        from legal_rag.corpus_index.building import CorpusIndexer
        from legal_rag.extraction.schemas import RULES, ExtractionSettings
        from legal_rag.indexer.entities import extract_library

        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        sub_llm = None
        if by_model:
            model = llm.model_of(self._require_models()[1])
            sub_llm = ChatModel(model, UsageTracker(UNLIMITED), reply_tokens=SUMMARY_TOKENS)
        if (self.corpus_path / MANIFEST).is_file():
            if save_path is not None:
                raise ValueError(f"{self.corpus_path} is a Library: its index is built in it (expected no save_path)")
            self._library = Library(self.corpus_path)
        else:
            self._library = _library_of_texts(self.corpus_path, save_path)
        if entities and self._library.entity_store is None:
            extract_library(self._library, ExtractionSettings(model_id=RULES))
        CorpusIndexer(self._library, sub_llm).build_corpus_index(parallel=parallel, batch_size=batch_size)
        return self._reopen()

    def load_index(self, path: str | Path) -> CorpusIndex:
        """Open a Library whose corpus index was built before, at once.

        FileNotFoundError if it does not exist, ValueError if it is damaged or stale.
        """
        self._library = Library(Path(path).expanduser())
        return CorpusIndex.open(self._library)

    def query(
        self, question: str, doc_ids: Sequence[str] | str | None = None, *, trace: str | Path | None = None
    ) -> Prediction:
        """Answer a question as `legal_rag.deep_read.deep_read` does; ValueError also if no model can be asked."""
        root, sub = self._require_models()
        return deep_read(
            question,
            doc_ids,
            library=self.library,
            lm=root,
            sub_lm=sub,
            budget=self._budget,
            settings=self._settings,
            retriever=Retriever(self.library),
            trace=trace,
        )

    def environment(self) -> dict[str, Any]:
        """Return the functions and values that programs find, to be called by hand.

        Those that call a model use the sub-model, as in programs, and raise ValueError if no model is configured.
        """
        models = self._build_root_and_sub()
        tracker = UsageTracker(self._budget)
        sub = ChatModel(llm.model_of(models[1]), tracker, reply_tokens=REPLY_TOKENS) if models else None
        retriever = Retriever(self.library)
        return dict(create_multi_doc_env(CorpusIndex.open(self.library), sub, retriever))

    def repl(self) -> None:
        """Start an interactive Python session with the functions; `demander(question)` reads deeply."""
        names = {**self.environment(), "demander": lambda question: print(self.query(question).answer)}
        shown = ", ".join(sorted(name for name, value in names.items() if callable(value))[:8])
        code.interact(banner=BANNER.format(functions=shown), local=names, exitmsg="")

    def add_document(self, source: str | Path | Mapping[str, Any]) -> CorpusIndex:
        """Add a document: a file, or a row; one of the same id is replaced.

        Its entities are extracted by rules where others have any; `legal-rag extract` does so by a model.
        """
        from legal_rag.extraction.schemas import RULES, ExtractionSettings
        from legal_rag.indexer.build import IncrementalIndexer
        from legal_rag.indexer.entities import complete_documents

        IncrementalIndexer(self.library).add_document(source)
        index = self._reopen()
        if self.library.entity_store is not None and (added := index.last_id()):
            complete_documents(self.library, [added], ExtractionSettings(model_id=RULES))
        return index

    def remove_document(self, doc_id: str) -> CorpusIndex:
        """Remove a document; LookupError if it is not there."""
        from legal_rag.indexer.build import IncrementalIndexer

        IncrementalIndexer(self.library).remove_document(doc_id)
        return self._reopen()

    def save_index(self, path: str | Path | None = None) -> Path:
        """Return the Library's folder, which every change was written to at once; or copy it to `path` first.

        FileExistsError if there is something at `path`.
        """
        if path is None:
            return self.library.path
        target = Path(path).expanduser()
        if target.exists():
            raise FileExistsError(f"will not overwrite {target} (expected a path where nothing is)")
        unfinished = target.with_name(f"{target.name}.copying")
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(self.library.path, unfinished)
        os.replace(unfinished, target)
        return target

    def _reopen(self) -> CorpusIndex:
        self._library = self.library.reload()
        return CorpusIndex.open(self._library)

    def _build_root_and_sub(self) -> "tuple[dspy.BaseLM, dspy.BaseLM] | None":
        """Return root model and sub-model; None if no endpoint is configured."""
        (root, sub), endpoint = self._models, self._endpoint
        if isinstance(root, str | None) and not has_endpoint(*endpoint, root):
            return None
        named = (root, sub or root)
        first, second = (llm.build_language_model(lm, *endpoint) if isinstance(lm, str | None) else lm for lm in named)
        return first, second

    def _require_models(self) -> "tuple[dspy.BaseLM, dspy.BaseLM]":
        if (models := self._build_root_and_sub()) is None:
            raise ValueError("no model can be asked (expected GENERATOR_API_BASE or GENERATOR_API_KEY, or a dspy.LM)")
        return models


def _library_of_texts(source: Path, save_path: str | Path | None) -> Library:
    """Build a Library for lexical search: nothing is encoded."""
    from legal_rag.indexer.build import build_index
    from legal_rag.indexer.config import IndexConfig

    if not source.exists():
        raise FileNotFoundError(f"no corpus at {source} (expected a Library, a folder of texts, or a file of rows)")
    beside = source.with_name(source.name + INDEX_SUFFIX)
    target = beside if save_path is None else Path(save_path).expanduser()
    build_index(IndexConfig(source=source, n_bits=0, index_folder=str(target.parent), index_name=target.name))
    return Library(target)
