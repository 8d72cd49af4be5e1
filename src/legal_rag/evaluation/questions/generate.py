"""Generate a dataset of questions: workers, checkpoints, report, estimate of the cost."""

import contextlib
import contextvars
import functools
import logging
import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from legal_rag.base.extras import require
from legal_rag.base.files import locked, progress
from legal_rag.base.html import displayed
from legal_rag.corpus.files import is_french
from legal_rag.evaluation.questions.checks import WORKERS, QuestionSettings, tidy
from legal_rag.evaluation.questions.dataset import (
    MODEL_NAME,
    Checkpoint,
    CheckpointRecord,
    Documents,
    QuestionReport,
    RecordMaker,
    SourceDocuments,
    draw,
    make_row,
    usage_columns,
    write_card,
    write_dataset,
)
from legal_rag.law import find_identifiers
from legal_rag.law.sentences import split_sentences, without_blanks
from legal_rag.library.bm25 import lexical_words
from legal_rag.library.library import Library
from legal_rag.llm import ModelError, Price, Throttle, Usage, price_of, tokens_in

if TYPE_CHECKING:
    import dspy

    from legal_rag.evaluation.questions.near_misses import Search
    from legal_rag.retriever.retriever import Retriever, SearchHit

CHECKPOINT: Final = "progress.jsonl"
NAMES_LISTED = 20  # files of a folder, in a message
DSPY_LOGGERS: Final = ("dspy.clients.lm", "dspy.utils.parallelizer")  # warn of cut-off replies and of interruptions
SAMPLED = 100  # documents read for the estimate
REPLY_TOKENS = 250  # assumed of a reply, whose fields are limited in length
ADVICE_TOKENS = 5500  # of `dspy.Refine`'s own request beyond those of a first one: code, trajectory (mean of 13 seen)

QUERY_CHARS = 300  # of a summary: its first sentences, as far as they fit
ANSWER_CHARS = 400
MIN_WORDS = 3  # content words, for a query to say anything


def generate_questions(
    library: Documents | str | Path,
    lm: "dspy.LM | None",
    *,
    limit: int | None = None,
    doc_ids: Collection[str] = (),
    seed: int = 0,
    workers: int = WORKERS,
    output: str | Path,
    requests_per_minute: float | None = None,
    retriever: "Retriever | None" = None,
    trust_remote_code: bool = False,
    **settings: Any,
) -> QuestionReport:
    """Make one question and answer of each document, and save those that pass every check.

    Args:
        library: An open Library, or its folder; or `SourceDocuments` of a source that has no index.
        lm: A language model; None makes questions of official summaries.
        limit: How many documents, drawn at random among `doc_ids` if there are any; None takes all.
        doc_ids: See `limit`.
        seed: See `QuestionSettings`, as for further `settings`.
        workers: Requests to the model under way at once.
        output: The dataset's folder; one begun before is resumed.
        requests_per_minute: To the model, at most.
        retriever: For `unanswerable`; None opens the Library's.
        trust_remote_code: See `legal_rag.retriever.build_retriever`.
        settings: Further ones.

    Raises:
        ValueError: If a setting is out of range or needs an index or a model, or the folder was begun with others or
            holds something else.
        LookupError: If there is no document of one of `doc_ids`.
        ConnectionError: If the model is not reached, refuses, or fails on too many documents in a row. What is finished
            is kept: the same call resumes.
    """
    library = Library(Path(library).expanduser()) if isinstance(library, str | Path) else library
    config = QuestionSettings(seed=seed, **settings)
    if workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    throttle = Throttle(per_minute=requests_per_minute)
    require("pyarrow")
    drawn, identity = draw(library.content_hashes(), limit, seed, doc_ids), _run_identity(library, lm, config)
    folder = Path(output).expanduser()
    with locked(folder):
        _refuse_other_files(folder)
        folder.mkdir(exist_ok=True)
        with contextlib.closing(Checkpoint(folder / CHECKPOINT, identity)) as checkpoint:
            todo = [doc_id for doc_id, content_hash in drawn if not checkpoint.is_finished(doc_id, content_hash)]
            with progress("Generating questions", unit=" documents", total=len(todo)) as bar:
                totals, lock = _Totals(), threading.Lock()

                def keep(record: CheckpointRecord) -> None:
                    with lock:
                        checkpoint.add(record)
                        totals.add(record)
                        bar.set_postfix(totals.shown(), refresh=False)
                        bar.update()

                make: RecordMaker = functools.partial(_summary_record, library)
                if lm is not None:
                    from legal_rag.evaluation.questions.writer import ModelQuestions

                    make = ModelQuestions(library, lm, config, throttle)
                if isinstance(library, Library) and lm is not None and config.unanswerable:
                    from legal_rag.evaluation.questions.near_misses import with_near_misses

                    search = _search_in(library, retriever, trust_remote_code)
                    make = with_near_misses(make, library, lm, search, config, throttle)
                _ask_in_threads(todo, make, keep, throttle, workers if lm is not None else 1)
            records = [checkpoint.record(doc_id) for doc_id, _ in drawn]
            return _save_questions(folder, records, config, model_name(lm), _source_name(library))


def model_name(lm: "dspy.LM | None") -> str:
    """Return the name that rows give for a model."""
    return MODEL_NAME if lm is None else str(lm.model)


@displayed
class Estimate(NamedTuple):
    """The least and the most that a run would take."""

    documents: int
    requests: tuple[int, int]
    prompt_tokens: tuple[int, int]
    completion_tokens: tuple[int, int]
    dollars: tuple[float, float] | None  # None where the price is not known


def estimate(
    library: Documents,
    lm: Any,
    *,
    limit: int | None = None,
    doc_ids: Collection[str] = (),
    settings: QuestionSettings | None = None,
    price: Price | None = None,
) -> Estimate:
    """Estimate a run over what `generate_questions` draws; `price` is the model's, where LiteLLM does not know it."""
    from legal_rag.evaluation.questions import near_misses
    from legal_rag.evaluation.questions.writer import FullQAExtraction, prompt_of, requests_at_most, shown_of

    settings = settings or QuestionSettings()
    drawn = draw(library.content_hashes(), limit, settings.seed, doc_ids)
    n, tokens = len(drawn), []
    for doc_id, _ in draw(drawn, SAMPLED, settings.seed):
        document = library.document(doc_id)
        shown = document.content[slice(*shown_of(document, settings))]
        tokens.append(tokens_in(prompt_of(FullQAExtraction, shown)))
    mean = sum(tokens) / (len(tokens) or 1)
    asks, advice = requests_at_most(settings)
    near = settings.unanswerable * sum(near_misses.requests_at_most(settings))  # each shows a window at most
    requests = (n, round(n * (asks + advice + near)))
    prompt = (round(n * mean), round(n * advice * ADVICE_TOKENS + requests[1] * mean))
    completion = (n * REPLY_TOKENS, requests[1] * REPLY_TOKENS)
    price = price or price_of(str(lm.model))
    dollars = None
    if price is not None:
        least, most = ((p * price.prompt + c * price.completion) / 1e6 for p, c in zip(prompt, completion, strict=True))
        dollars = (least, most)
    return Estimate(n, requests, prompt, completion, dollars)


class _Totals:
    def __init__(self) -> None:
        self.statuses: Counter[str] = Counter()
        self.reasons: dict[str, Counter[str]] = {"rejected": Counter(), "failed": Counter()}
        self.near_reasons: Counter[str] = Counter()
        self.usage = Usage()
        self.seconds = self.scores = 0.0

    def add(self, record: CheckpointRecord) -> None:
        self.statuses[record.status] += 1
        if record.status != "accepted":
            self.reasons[record.status][record.reason] += 1
        elif record.near_reason:
            self.near_reasons[record.near_reason] += 1
        self.usage = self.usage.plus(record.usage)
        self.seconds += record.seconds
        self.scores += record.row["score"] or 0.0 if record.row else 0.0

    def shown(self) -> dict[str, Any]:
        shown: dict[str, Any] = {name: self.statuses[name] for name in ("accepted", "rejected")}
        if self.statuses["failed"]:
            shown["failed"] = self.statuses["failed"]
        cost = "unknown" if self.usage.cost is None else f"${self.usage.cost:.2f}"
        return {**shown, "tokens": self.usage.tokens, "cost": cost}


def _refuse_other_files(folder: Path) -> None:
    """Refuse a folder with other files where a dataset's files would replace them."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file (expected a folder, or nothing yet)")
    taken = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    if taken and CHECKPOINT not in taken:
        listed = ", ".join(taken[:NAMES_LISTED])
        raise ValueError(f"{folder} holds other things: {listed} (expected none, or questions begun before)")


def _source_name(documents: Documents) -> str:
    return documents.name if isinstance(documents, SourceDocuments) else documents.manifest["source"]["name"]


def _run_identity(library: Documents, lm: "dspy.LM | None", settings: QuestionSettings) -> dict[str, Any]:
    """Return what must be equal for a run to resume another's records."""
    identity = {"model": model_name(lm), **asdict(settings)}
    if settings.unanswerable:
        if isinstance(library, SourceDocuments):
            raise ValueError("unanswerable searches an index, and a source has none")
        identity["lineage"] = library.manifest["lineage"]
    if lm is None:
        if settings.unanswerable:
            raise ValueError("questions without an answer are written by a model (expected one, or unanswerable 0)")
        return identity
    from legal_rag.evaluation.questions.near_misses import CanAnswer, NearMiss
    from legal_rag.evaluation.questions.writer import FullQAExtraction, prompt_hash

    near = (NearMiss, CanAnswer) if settings.unanswerable else ()
    return {**identity, "prompt_hash": prompt_hash(FullQAExtraction, *near)}


def _ask_in_threads(
    doc_ids: Iterable[str],
    make: RecordMaker,
    keep: Callable[[CheckpointRecord], None],
    throttle: Throttle,
    workers: int,
) -> None:
    """Make and keep all records in threads with this thread's DSPy settings; the first error stops them all.

    Requests under way are waited for, also after an interruption: they are paid for.
    """

    def work(doc_id: str) -> None:
        try:
            record = None if throttle.is_stopped else make(doc_id)
            if record and not (record.status == "failed" and throttle.is_stopped):  # perhaps it ran out of time
                keep(record)
        except Exception as error:  # raised below
            throttle.stop(error)

    is_french("")  # loads the language model before every thread does
    with _quiet_dspy(), ThreadPoolExecutor(workers) as pool:
        try:
            wait([pool.submit(contextvars.copy_context().run, work, doc_id) for doc_id in doc_ids])
        finally:
            throttle.stop()
    if isinstance(throttle.error, ModelError):
        raise ConnectionError(
            f"the model cannot be asked: {throttle.error}; what is done is kept, run it again to go on"
        ) from throttle.error
    if throttle.error is not None:
        raise throttle.error


@contextlib.contextmanager
def _quiet_dspy() -> Iterator[None]:
    """Drop what DSPy logs of cut-off replies, and prints of replies that it could not read."""
    loggers = [logging.getLogger(name) for name in DSPY_LOGGERS]
    levels = [log.level for log in loggers]
    try:
        for log in loggers:
            log.setLevel(logging.ERROR)
        with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
            yield
    finally:
        for log, level in zip(loggers, levels, strict=True):
            log.setLevel(level)


def _search_in(library: Library, retriever: "Retriever | None", trust_remote_code: bool) -> "Search":
    from legal_rag.retriever.retriever import build_retriever

    searcher = retriever or build_retriever(library, trust_remote_code=trust_remote_code)
    lock = threading.Lock()

    def search(question: str, k: int) -> "Sequence[SearchHit] | None":
        try:
            searcher.encoder.check_query(question)
        except ValueError:  # longer than the encoder reads
            return None
        with lock:  # the encoder takes all cores as it is
            return searcher.search(question, k)

    return search


def _save_questions(
    folder: Path, records: Sequence[CheckpointRecord], settings: QuestionSettings, model: str, corpus: str
) -> QuestionReport:
    totals = _Totals()
    for record in records:
        totals.add(record)
    splits, unanswerable, duplicates = write_dataset(folder, records, settings)
    passed = totals.statuses["accepted"]
    totals.near_reasons["duplicate"] = sum(record.near_miss is not None for record in records) - unanswerable
    report = QuestionReport(
        folder=folder,
        model=model,
        corpus=corpus,
        settings=settings,
        documents=totals.statuses.total(),
        accepted=sum(splits.values()) - unanswerable,
        unanswerable=unanswerable,
        duplicates=duplicates,
        rejected=dict(totals.reasons["rejected"].most_common()),
        near_rejected=dict((+totals.near_reasons).most_common()),
        failed=dict(totals.reasons["failed"].most_common()),
        splits=splits,
        **usage_columns(totals.usage),
        mean_score=round(totals.scores / passed, 4) if passed and model != MODEL_NAME else None,
        seconds=round(totals.seconds, 1),
    )
    write_card(report)
    return report


def _summary_record(documents: Documents, doc_id: str) -> CheckpointRecord:
    """Make a document's row of its official summary.

    What would make the question circular is left out: titles, sentences that name a case, and a summary that its
    document repeats word for word.
    """
    document = documents.document(doc_id)
    query = _make_query(document.summary, QUERY_CHARS)
    words = set(lexical_words(query))
    rejected = CheckpointRecord(doc_id=document.id, content_hash=document.content_hash, status="rejected")
    if not query:
        return replace(rejected, reason="no_summary")
    if query in tidy(document.content):
        return replace(rejected, reason="copied")
    if len(words) < MIN_WORDS:
        return replace(rejected, reason="names_no_matter")
    if not is_french(query):
        return replace(rejected, reason="not_french")
    start, end = max(_find_sentences(document.content), key=lambda span: _count_shared(document.content, span, words))
    if not _count_shared(document.content, (start, end), words):
        return replace(rejected, reason="ungrounded")
    of_document = {"main_topic": tidy(document.title), "summary": document.summary}
    # The score of a model's questions is of checks which are not made here.
    row = make_row(document, query, (start, end), **of_document, score=None, model=MODEL_NAME, prompt_hash="")
    return replace(rejected, status="accepted", row=row)


def _make_query(summary: str, most: int) -> str:
    """Return a summary's first sentences that name no case, as many as fit, or the beginning of the first."""
    whole = tidy(summary)
    sentences = (whole[start:end].strip() for start, end in split_sentences(whole))
    text = " ".join(part for part in sentences if all(match.kind == "article" for match in find_identifiers(part)))
    ends = [end for _, end in split_sentences(text) if end <= most]
    return text[: ends[-1]].strip() if ends else text[:most].rpartition(" ")[0] or text[:most]


def _find_sentences(content: str) -> list[tuple[int, int]]:
    return without_blanks(content, ((start, min(end, start + ANSWER_CHARS)) for start, end in split_sentences(content)))


def _count_shared(content: str, span: tuple[int, int], words: set[str]) -> int:
    return len(words & set(lexical_words(content[slice(*span)])))
