"""Deep reading: answers a question over whole decisions or the corpus, by programs or document by document."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from legal_rag.budget import Budget
from legal_rag.cleaning import storable
from legal_rag.corpus_index import CorpusIndex
from legal_rag.deep_read.by_documents import read_by_documents
from legal_rag.deep_read.by_programs import NO_PROGRAM, read_by_programs
from legal_rag.deep_read.models import ChatModel
from legal_rag.deep_read.settings import DeepReadSettings
from legal_rag.deep_read.work import SandboxRefusedError, Work, replies_file
from legal_rag.model_calls import UsageTracker
from legal_rag.prediction import Event, Prediction
from legal_rag.reply_cache import RunReplies
from legal_rag.run_log import RunLog

if TYPE_CHECKING:
    import dspy

    from legal_rag.library import Library
    from legal_rag.retriever import Retriever

DEFAULT_SETTINGS = DeepReadSettings()
CANNOT_RUN = "Ce système ne peut pas exécuter de programme en sûreté"


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
    on_event: Callable[[Event], None] = lambda event: None,
) -> Prediction:
    """Answer a question over whole decisions.

    Args:
        question: In French.
        doc_ids: Of the documents that it is about, or of one; None means the whole corpus.
        library: With a corpus index.
        lm: The root model, which writes the programs.
        sub_lm: The sub-model, which reads parts; None takes the root model.
        budget: How much the run may take; its steps are the root model's turns.
        settings: How it is read.
        retriever: For searches by meaning; None searches by words.
        trace: A file to keep the trace in, in rlms' form. Replies are stored in a file next to it: a call with the same
            question, corpus, models and settings resumes the run, and no reply in them is paid for again.
        unfinished: A folder for both where no trace is to be kept; they are deleted when the run has ended.
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
    tracker = UsageTracker(budget or Budget())
    work = Work(
        question=storable(question.strip()),
        doc_ids=[library.document(doc_id).id for doc_id in dict.fromkeys(doc_ids or ())],
        index=CorpusIndex.open(library),
        root=ChatModel(lm, tracker),
        sub=ChatModel(sub_lm or lm, tracker),
        tracker=tracker,
        settings=settings,
        retriever=retriever,
        log=RunLog(),
        on_event=on_event,
    )
    file = trace or (work.unfinished_file(unfinished) if unfinished else None)
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        work.root.replies = work.sub.replies = RunReplies(replies_file(file))
    prediction = _read(work, file)
    if file and trace is None and prediction.status in ("answered", "abstained"):
        file.unlink(missing_ok=True)
        replies_file(file).unlink(missing_ok=True)
    return prediction


def _read(work: Work, trace: Path | None) -> Prediction:
    plan = work.settings.plan
    if plan == "map":
        return read_by_documents(work)
    try:
        prediction = read_by_programs(work, trace, insist=plan == "rlm")
    except SandboxRefusedError as error:
        if plan == "rlm":
            raise ValueError(str(error)) from error
        return read_by_documents(work, CANNOT_RUN)
    return prediction or read_by_documents(work, NO_PROGRAM)
