"""Reading by programs: the root model is told of the corpus, and its programs are run until one gives the answer.

In: the work. Out: the `Prediction`, or None where the model wrote no program that runs.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from legal_rag.agent_tools import entities_of
from legal_rag.budget import BudgetExceededError
from legal_rag.deep_read.conclusion import conclude
from legal_rag.deep_read.functions import create_multi_doc_env
from legal_rag.deep_read.nearest import search_nearest
from legal_rag.deep_read.prompts import (
    CONTEXT_OF_CORPUS,
    MOST_CONTEXT_CHARS,
    SAMPLES,
    context_of_documents,
    context_of_list,
    corpus_description,
    system_prompt,
)
from legal_rag.deep_read.provenance import is_computed
from legal_rag.deep_read.work import Work
from legal_rag.failures import reason_in_french
from legal_rag.prediction import Event, Prediction

if TYPE_CHECKING:
    from legal_rag.deep_read.rlm_run import Outcome, RunSetup, Turn

SHOWN_CHARS = 2000  # of a thought or a program, in an event
NO_PROGRAM = "Le modèle n'a écrit aucun programme qui fonctionne"


def read_by_programs(work: Work, trace: Path | None, *, insist: bool = True) -> Prediction | None:
    """Answer by programs.

    Args:
        work: What is asked, and with what.
        trace: The file of the trace.
        insist: Give what there is where the model wrote no program that runs, rather than None.

    Raises:
        SandboxRefusedError: If the system cannot contain programs.
        ValueError: If the trace is of another run.
    """
    from legal_rag.deep_read.rlm_run import run_rlm

    description = corpus_description(
        work.library.path.name, work.index.total_docs, work.index.total_chars, work.index.summaries(limit=SAMPLES)
    )
    context, said = _context(work, description)
    outcome = run_rlm(work.question, context, _setup(work, trace, description, said))
    work.tell()
    wrote_none = not outcome.codes and not outcome.is_final and (outcome.gave_up or outcome.out_of_turns)
    return None if wrote_none and not insist else _concluded(work, outcome)


def _setup(work: Work, trace: Path | None, description: str, context: str) -> "RunSetup":
    from rlm.utils.prompts import RLM_SYSTEM_PROMPT

    from legal_rag.deep_read.rlm_run import RunSetup
    from legal_rag.deep_read.trace import open_trace

    settings = work.settings
    logger = open_trace(trace, work.key())
    sub = work.sub.recorded(on_call=logger.called) if logger else work.sub.recorded()
    env = create_multi_doc_env(work.index, sub, work.retriever, log=work.log, workers=settings.workers)
    return RunSetup(
        root=work.root.recorded(on_reply=logger.replied) if logger else work.root,
        sub=sub,
        tracker=work.tracker,
        functions=env.functions,
        values=env.values,
        descriptions=env.descriptions,
        prompt=system_prompt(description, context, settings.instructions, settings.limits, RLM_SYSTEM_PROMPT),
        logger=logger,
        limits=settings.limits,
        accept_no_walls=settings.accept_no_walls,
        max_depth=settings.max_depth,
        on_turn=lambda turn: _tell_turn(work, turn),
    )


def _context(work: Work, description: str) -> tuple[str, str]:
    """Return what programs find as `context`, and what it is, said to the model."""
    if not work.doc_ids:
        return description, CONTEXT_OF_CORPUS
    metas = list(work.index.metas(work.doc_ids))
    if sum(meta.char_count for meta in metas) > MOST_CONTEXT_CHARS:
        return context_of_list(metas)
    documents = [work.library.document(doc_id) for doc_id in work.doc_ids]
    for document in documents:
        work.log.read(document)
    return context_of_documents(documents, {one.id: entities_of(one, work.library) for one in documents})


def _tell_turn(work: Work, turn: "Turn") -> None:
    said = {"thought": turn.thought[:SHOWN_CHARS], "code": turn.code[:SHOWN_CHARS]}
    work.write_down(Event("think", "programme", said, [], turn.seconds, turn.usage))


def _concluded(work: Work, outcome: "Outcome") -> Prediction:
    stopped, failed = _why_stopped(work, outcome)
    return conclude(
        work.question,
        outcome.value,
        work.log,
        work.library,
        usage=work.tracker.usage,
        stopped=stopped,
        failed=failed,
        computed=not outcome.is_prose and is_computed(outcome.value, outcome.codes, outcome.replies),
        nearest=lambda: search_nearest(work),
        on_event=work.on_event,
    )


def _why_stopped(work: Work, outcome: "Outcome") -> tuple[str, bool]:
    """Return why a run ended before its end, in French, and whether a model's failure was the reason."""
    if isinstance(outcome.error, BudgetExceededError):
        return outcome.error.notice, False
    if outcome.error is not None:
        return NO_PROGRAM if outcome.gave_up else reason_in_french(outcome.error), True
    if outcome.out_of_turns:
        return BudgetExceededError("steps", work.tracker.budget).notice, False
    return "", False
