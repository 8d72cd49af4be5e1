"""Generating a dataset of questions: documents in, finished ones kept at once, the dataset written at the end.

In: a Library, and a language model or none. Out: a folder with the dataset, and a report. Killed and called again, it
goes on where it was: no model is asked again about a document that is finished.
"""

import contextlib
import heapq
import io
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from legal_rag.folders import locked
from legal_rag.languages import is_french
from legal_rag.library import Library
from legal_rag.progress import progress
from legal_rag.question_settings import QuestionSettings
from legal_rag.questions import summaries
from legal_rag.questions.card import write_card
from legal_rag.questions.checkpoint import Checkpoint, Record
from legal_rag.questions.dataset import write_dataset
from legal_rag.questions.report import QuestionReport, Totals

if TYPE_CHECKING:
    import dspy

    from legal_rag.retriever import Retriever

CHECKPOINT: Final = "progress.jsonl"
WORKERS: Final = 8  # requests under way at once
THREADS_EACH: Final = 2  # threads for each request under way: some wait, to try again or for the disk, meanwhile

logger = logging.getLogger(__name__)


def generate_questions(
    library: Library | str | Path,
    lm: "dspy.LM | None",
    *,
    limit: int | None = None,
    seed: int = 0,
    workers: int = WORKERS,
    output: str | Path,
    requests_per_minute: float | None = None,
    retriever: "Retriever | None" = None,
    **settings: Any,
) -> QuestionReport:
    """Make questions and answers of a Library's documents, one of each, and save those that pass every check.

    Args:
        library: An open Library, or its folder.
        lm: A language model; None makes questions of official summaries and titles.
        limit: How many documents, drawn at random; None takes all.
        seed: See `QuestionSettings`.
        workers: Requests to the model under way at once.
        output: The dataset's folder; one begun before is gone on with.
        requests_per_minute: To the model, at most.
        retriever: For `must_retrieve` and `hard_negatives`; None opens the Library's.
        settings: Further ones of `QuestionSettings`.

    Raises:
        ValueError: If a setting is out of range, the folder was begun with others, or another process works on it.
        ConnectionError: If the model refuses every request, or fails on too many documents in a row. What is finished
            is kept: the same call goes on with the rest.
    """
    library = library if isinstance(library, Library) else Library(Path(library).expanduser())
    chosen = QuestionSettings(seed=seed, **settings)
    for name, value in (("limit", limit), ("workers", workers)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    folder = Path(output).expanduser()
    with locked(folder):
        folder.mkdir(exist_ok=True)
        with contextlib.closing(Checkpoint(folder / CHECKPOINT, _identity(library, lm, chosen))) as checkpoint:
            unfinished = [doc_id not in checkpoint for doc_id in chosen_ids(library, limit, seed)].count(True)
            todo = (doc_id for doc_id in chosen_ids(library, limit, seed) if doc_id not in checkpoint)
            with progress("Generating questions", unit=" documents", total=unfinished) as bar:
                run = _Run(todo, checkpoint, bar)
                if lm is None:
                    run.make_all(_with_round_trip(summaries.Summaries(library), library, retriever, chosen))
                else:
                    _ask_model(run, library, lm, chosen, workers, requests_per_minute, retriever)
            return _finish(folder, checkpoint, chosen_ids(library, limit, seed), chosen, model_name(lm))


def chosen_ids(library: Library, limit: int | None, seed: int) -> Iterator[str]:
    """Return the ids of the documents drawn, in the Library's order; a lower limit draws some of the same."""
    if limit is None or limit >= len(library):
        return iter(library)
    drawn = heapq.nsmallest(limit, ((sha256(f"{seed}:{doc_id}".encode()).digest(), doc_id) for doc_id in library))
    ids = {doc_id for _, doc_id in drawn}
    return (doc_id for doc_id in library if doc_id in ids)


def model_name(lm: "dspy.LM | None") -> str:
    """Return the name that rows give for a model."""
    return summaries.MODEL_NAME if lm is None else str(lm.model)


class _Run:
    """Documents still to be done, and where their records go; threads may share it."""

    def __init__(self, todo: Iterator[str], checkpoint: Checkpoint, bar: Any) -> None:
        self._todo, self._checkpoint, self._bar = todo, checkpoint, bar
        self._lock, self._totals = threading.Lock(), Totals()

    def make_all(self, make: Callable[[str], Record], stopped: Callable[[], bool] = lambda: False) -> None:
        """Make and keep records until no document is left, or all is stopped."""
        while not stopped():
            with self._lock:
                doc_id = next(self._todo, None)
            if doc_id is None:
                return
            record = make(doc_id)
            if stopped() and record.status != "accepted":
                return  # it may have been stopped in the midst: it is not finished
            self._checkpoint.add(record)
            with self._lock:
                self._totals.add(record)
                self._bar.set_postfix(self._totals.shown(), refresh=False)
                self._bar.update()


def _identity(library: Library, lm: "dspy.LM | None", settings: QuestionSettings) -> dict[str, Any]:
    """Return what must be the same for a run to go on with another's records."""
    identity = {"model": model_name(lm), "lineage": library.manifest["lineage"], **asdict(settings)}
    if lm is None:
        return identity
    from legal_rag.questions.writer import prompt_hash

    return {**identity, "prompt_hash": prompt_hash()}


def _ask_model(
    run: _Run,
    library: Library,
    lm: "dspy.LM",
    settings: QuestionSettings,
    workers: int,
    requests_per_minute: float | None,
    retriever: "Retriever | None",
) -> None:
    from legal_rag.questions.making import ModelQuestions
    from legal_rag.questions.pacing import Pace

    pace = Pace(workers, requests_per_minute)
    make = _with_round_trip(ModelQuestions(library, lm, settings, pace), library, retriever, settings)

    def work() -> None:
        try:
            run.make_all(make, lambda: pace.stopped)
        # Whatever it is, it stops the other threads too, and is raised where this was called from.
        except Exception as error:
            pace.stop(error)

    threading.Thread(target=_load_ahead, daemon=True).start()
    try:
        _in_parallel(work, THREADS_EACH * workers)
    finally:
        pace.stop()  # for threads that an interruption leaves behind
    if pace.error is not None:
        raise _told(pace.error)


def _with_round_trip(
    make: Callable[[str], Record], library: Library, retriever: "Retriever | None", settings: QuestionSettings
) -> Callable[[str], Record]:
    if not settings.must_retrieve and not settings.hard_negatives:
        return make
    from legal_rag.questions.making import with_round_trip
    from legal_rag.retriever import build_retriever

    return with_round_trip(make, retriever or build_retriever(library), settings)


def _in_parallel(work: Callable[[], None], n_threads: int) -> None:
    """Run a worker in several threads, in DSPy's own way, which hands its settings on to them."""
    import dspy

    from legal_rag.questions.pacing import tuned_for_waiting

    # No document is given out twice: the executor's own second start of what takes long is off.
    parallel = dspy.Parallel(num_threads=n_threads, max_errors=1, disable_progress_bar=True, timeout=0)
    # Refine and BestOfN print each reply that they could not read.
    with contextlib.redirect_stdout(_LogOut()), tuned_for_waiting():
        parallel([(work, {})] * n_threads)


class _LogOut(io.TextIOBase):
    """What is written to it goes to the log, for whoever looks there."""

    def write(self, text: str) -> int:
        logger.debug("%s", text)
        return len(text)


def _load_ahead() -> None:
    """Load, while the first requests are under way, what judging replies and writing the dataset will take."""
    is_french("")  # first: every reply waits for it
    import datasets  # noqa: F401
    import datasketch  # noqa: F401


def _told(error: Exception) -> Exception:
    """Say what stopped a run; an error of ours, not of the model's, is raised as it is."""
    import dspy

    if not isinstance(error, dspy.LMError):
        return error
    kind = type(error).__name__.removeprefix("LM").removesuffix("Error")
    text = " ".join(str(error).split())[:200]
    return ConnectionError(f"the model does not answer ({kind}: {text}); what is done is kept, run it again to go on")


def _finish(
    folder: Path, checkpoint: Checkpoint, doc_ids: Iterable[str], settings: QuestionSettings, model: str
) -> QuestionReport:
    """Write dataset and card from the records of all documents."""
    totals = Totals()

    def added() -> Iterator[Record]:
        for doc_id in doc_ids:
            record = checkpoint.record(doc_id)
            totals.add(record)
            yield record

    written = write_dataset(folder, added(), settings.seed, hard_negatives=bool(settings.hard_negatives))
    passed = totals.statuses["accepted"]
    report = QuestionReport(
        folder=folder,
        model=model,
        settings=settings,
        documents=totals.statuses.total(),
        accepted=sum(written.rows.values()),
        duplicates=written.duplicates,
        rejected=dict(totals.reasons["rejected"].most_common()),
        failed=dict(totals.reasons["failed"].most_common()),
        splits=written.rows,
        replies=totals.replies,
        prompt_tokens=totals.prompt_tokens,
        completion_tokens=totals.completion_tokens,
        cost=totals.cost,
        mean_score=round(totals.scores / passed, 4) if passed else None,
        seconds=round(totals.seconds, 1),
    )
    write_card(report)
    return report
