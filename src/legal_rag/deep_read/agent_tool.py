"""Deep reading as a tool of the agent."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from legal_rag.agent.event_log import EventLog
from legal_rag.agent.prediction import Event, Prediction
from legal_rag.agent.tool_arguments import bounded, document_ids, question_of, refused, text_of
from legal_rag.agent.tool_outputs import as_data, block
from legal_rag.corpus_index.index import has_corpus_index
from legal_rag.deep_read.settings import DEEP_READ_BUDGET
from legal_rag.llm import Budget
from legal_rag.retriever.retriever import Retriever

if TYPE_CHECKING:
    import dspy

    from legal_rag.llm import UsageTracker


CALLS_KEPT, STEPS_KEPT = 3, 1  # of the agent's budget, for its own last steps and its answer
SECONDS_KEPT = 30.0
SHARE_KEPT = 0.25  # of its tokens, and of the seconds of a short budget
NO_ROOM = "Lecture approfondie impossible : le budget restant n'y suffit pas. Répondez avec ce que vous avez lu."


def deep_read_tool(
    retriever: Retriever, lm: "dspy.BaseLM", log: EventLog, tracker: "UsageTracker | None" = None
) -> Callable[..., str] | None:
    """Make the tool for one run of the agent, for `legal_rag.agent.build_agent(extra_tools=[deep_read_tool])`.

    Returns:
        The tool; None where the corpus lacks the index that deep reading needs.

    Args:
        retriever: The agent's.
        lm: Its model.
        log: Of its run, to which the findings are added.
        tracker: Of its run, charged for the reading; None gives it a separate budget.
    """
    library = retriever.corpus
    if not has_corpus_index(library):
        return None

    from legal_rag.deep_read.reading import PROGRAM  # with DSPy and rlms, which an agent has
    from legal_rag.deep_read.reading import deep_read as read_deeply

    @bounded(refused)
    def deep_read(question: str, doc_ids: str = "") -> str:
        """Lit en profondeur beaucoup de décisions, ou des décisions entières, et répond avec des citations.

        À appeler quand la question demande toutes les décisions d'un genre, un nombre, un classement, une comparaison
        de plusieurs décisions ou un croisement : quelques passages n'y suffisent pas. question est complète et en
        français ; doc_ids, facultatif, nomme les décisions à lire, séparées par des virgules ; sans lui, tout le
        corpus est lu. Chaque décision lue coûte au moins un appel au modèle, pris sur le budget de la réponse.
        """
        with log.record("read", "deep_read", question=question, doc_ids=doc_ids) as ids:
            try:
                asked = question_of(question)
                selected_ids = document_ids(doc_ids, library, log.titles) if text_of(doc_ids) else None
            except LookupError as error:
                return as_data(str(error.args[0]))
            except ValueError as error:
                return f"Lecture impossible : {error}."
            budget = _remaining_budget(tracker) if tracker else DEEP_READ_BUDGET
            if budget is None:
                return NO_ROOM
            prediction = read_deeply(
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

    return deep_read


def _remaining_budget(tracker: "UsageTracker") -> Budget | None:
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
