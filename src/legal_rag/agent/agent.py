"""The answering agent: a ReAct loop, checked citations, and evidence mode as its fallback."""

import logging
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from legal_rag.agent.event_log import Agent, EventLog, Steps
from legal_rag.agent.evidence import EvidenceAgent, abstention
from legal_rag.agent.instructions import instructions_of
from legal_rag.agent.prediction import (
    NOT_FRENCH,
    ONLY_SUPPORTED,
    UNCITED,
    Prediction,
    Status,
    bug_in_french,
    notice_of,
)
from legal_rag.agent.replies import TagSettings, take_tags
from legal_rag.agent.tools import SEARCH_K, build_tools
from legal_rag.citations.enricher import CitationEnricher
from legal_rag.corpus.files import is_french_answer
from legal_rag.encoder.encoder import Encoder
from legal_rag.graph.answers import add_answer
from legal_rag.graph.types import AnswerFacts, ExtractionResult
from legal_rag.library.library import Library
from legal_rag.llm import Budget, BudgetExceededError, Completion, ModelError, UsageTracker, is_asked
from legal_rag.retriever.retriever import EncodedQuery, Retriever, build_retriever

if TYPE_CHECKING:
    import dspy

    from legal_rag.agent.react import Work
    from legal_rag.llm import ModelCalls

logger = logging.getLogger(__name__)

# Makes a tool for one answer from retriever, model, log and tracker (None: for its description); None if unavailable.
ToolFactory = Callable[[Retriever, "dspy.BaseLM", EventLog, UsageTracker | None], Callable[..., str] | None]

DEFAULT_BUDGET = Budget()
DEFAULT_TAGS = TagSettings()
CUT_OFF = "La réponse du modèle a été coupée avant la fin"
WRITE_AGAIN = "Votre réponse était vide. Écrivez la réponse à la question, avec ses citations."
WRITE_IN_FRENCH = (
    "Votre réponse n'était pas en français. Récrivez-la entièrement en français, avec les mêmes citations."
)


def build_agent(
    corpus: Library | str | Path,
    *,
    model: str | None = None,
    api_key: str | None = None,
    api_base: str | None = None,
    instructions: str | None = None,
    encoder: Encoder | None = None,
    lm: "dspy.BaseLM | None" = None,
    budget: Budget = DEFAULT_BUDGET,
    match_words: bool = True,
    trust_remote_code: bool = False,
    extra_tools: Sequence[ToolFactory] = (),
    search_k: int = SEARCH_K,
    single_pass_extraction_enabled: bool = DEFAULT_TAGS.single_pass_extraction_enabled,
    extraction_confidence_threshold: float = DEFAULT_TAGS.extraction_confidence_threshold,
    **lm_settings: Any,
) -> "LegalReActAgent | EvidenceAgent":
    """Build an agent over one corpus: a ReAct agent if there is an endpoint, else an evidence agent.

    Model, key, address and further settings are as for `build_language_model`, `trust_remote_code` as for
    `legal_rag.retriever.build_retriever`, tags as in `TagSettings`.

    Args:
        corpus: An open Library, or its folder.
        instructions: For the model, in French; None takes `instructions.md` in the index's folder, else the default.
        encoder: The index's, if already loaded.
        lm: A configured model, instead of model, api_key and api_base.
        budget: Limits of each answer of the ReAct agent.
        match_words: Fill in the passages' `matches` for reports: up to two seconds more on two cores.
        extra_tools: Factories of further tools for the ReAct agent, e.g. `legal_rag.deep_read.deep_read_tool`.
        search_k: Passages that a search of the model gives, unless it asks for another number.

    Raises:
        ValueError: If a model is named, here or by GENERATOR_MODEL_ID, and there is no endpoint to ask it at, or the
            threshold is not from 0 to 1.
    """
    tags = TagSettings(
        single_pass_extraction_enabled=single_pass_extraction_enabled,
        extraction_confidence_threshold=extraction_confidence_threshold,
    )
    retriever = build_retriever(corpus, encoder, trust_remote_code=trust_remote_code)
    evidence = EvidenceAgent(retriever, match_words=match_words)
    if lm is None and is_asked(api_key, api_base, model):
        from legal_rag.llm import build_language_model

        lm = build_language_model(model, api_key, api_base, **lm_settings)
    if lm is None:
        return evidence
    prompt = instructions or instructions_of(retriever.corpus)
    return LegalReActAgent(
        retriever,
        lm,
        prompt,
        evidence=evidence,
        budget=budget,
        match_words=match_words,
        extra_tools=extra_tools,
        search_k=search_k,
        tags=tags,
    )


class LegalReActAgent(Agent):
    """A thread-safe ReAct agent that searches, reads and cites."""

    def __init__(
        self,
        retriever: Retriever,
        lm: "dspy.BaseLM",
        instructions: str,
        *,
        evidence: EvidenceAgent | None = None,
        budget: Budget = DEFAULT_BUDGET,
        match_words: bool = True,
        extra_tools: Sequence[ToolFactory] = (),
        search_k: int = SEARCH_K,
        tags: TagSettings = DEFAULT_TAGS,
    ) -> None:
        """Configure an agent over a retriever; `evidence` is the fallback, the rest as for `build_agent`."""
        from legal_rag.agent.react import LegalReAct

        super().__init__(retriever)
        self.lm, self._budget, self._match_words = lm, budget, match_words
        self._extra_tools, self._search_k, self._tags = tuple(extra_tools), search_k, tags
        self._evidence = evidence or EvidenceAgent(retriever, match_words=match_words)
        # Only their descriptions are used: each answer has tools of its own, which write to its log.
        tools, asks_for_tags = self._build_tools(EventLog()), tags.single_pass_extraction_enabled
        self.react = LegalReAct(instructions, tools, budget.steps, asks_for_tags=asks_for_tags)

    def steps(self, query: EncodedQuery, log: EventLog) -> Steps[Prediction]:
        """Answer a question: by the model, or by the passages if it fails."""
        from legal_rag.llm import ModelCalls

        calls = ModelCalls(self.lm, self._budget)
        tools = self._build_tools(log, calls.tracker)
        failure: Status
        try:
            work = yield from self.react.steps(query.text, calls, log, tools)
            draft, extraction = self._write_draft(query.text, work, calls)
            prediction = yield from self._check_citations(query, log, calls, work, draft)
            return self._record_tags(prediction, extraction, log.sources)
        except BudgetExceededError as error:
            failure, reason = "exhausted", error.notice
        except ModelError as error:
            logger.debug("the model failed", exc_info=True)
            failure, reason = "model_failed", error.reason
        # A bug of ours: the reader still gets passages, and learns that the model is not to blame.
        except Exception as error:
            logger.exception("the agent failed")
            failure, reason = "internal_error", bug_in_french(error)
        log.failed(reason, calls.tracker.usage, calls.seconds)
        yield
        return (
            yield from self._evidence.steps(
                query, log, mode="fallback", failure=failure, notice=f"{reason}.", usage=calls.tracker.usage
            )
        )

    def _build_tools(self, log: EventLog, tracker: UsageTracker | None = None) -> list[Callable[..., str]]:
        """Return the tools for one answer: they write to its log, and extra ones are charged to its tracker."""
        extra = (make(self._retriever, self.lm, log, tracker) for make in self._extra_tools)
        return [*build_tools(self._retriever.corpus, self._retriever, log, self._search_k), *filter(None, extra)]

    def _write_draft(self, question: str, work: "Work", calls: "ModelCalls") -> tuple[Completion, ExtractionResult]:
        """Have the answer written, and rewritten once for each kind of problem; return it with its parsed tags."""
        written = Completion(work.answer) if work.answer else self.react.write(question, work.trajectory, calls)
        draft, extraction = self._strip_tags(written)
        requests: list[str] = []
        while (request := _request_for(draft.text)) and request not in requests:
            requests.append(request)
            again = self.react.write(question, work.trajectory, calls, request)
            usage, seconds = draft.usage.plus(again.usage), draft.seconds + again.seconds
            draft, extraction = self._strip_tags(again._replace(usage=usage, seconds=seconds))
        if request == WRITE_AGAIN and work.last_thought:
            draft, extraction = self._strip_tags(draft._replace(text=work.last_thought))
            request = _request_for(draft.text) and request
        if request:
            raise ModelError("empty") if request == WRITE_AGAIN else ModelError("unreadable", reason=NOT_FRENCH)
        return draft, extraction

    def _strip_tags(self, draft: Completion) -> tuple[Completion, ExtractionResult]:
        if not self._tags.single_pass_extraction_enabled:
            return draft, ExtractionResult()
        from legal_rag.agent.replies import clean_answer

        extraction, text = take_tags(draft.text)
        text = text if text == draft.text else clean_answer(text)  # a fence, closed before the tags
        return draft._replace(text=text), extraction

    def _record_tags(self, prediction: Prediction, extraction: ExtractionResult, read: Sequence[str]) -> Prediction:
        """Save an answer's confident tags in the graph, unless it abstains; return the answer with both."""
        extraction = extraction.confident(self._tags.extraction_confidence_threshold)
        if not extraction or prediction.status == "abstained":
            return prediction
        return replace(prediction, extraction=extraction, graph=self._save_tags(prediction.answer_id, extraction, read))

    def _save_tags(self, answer_id: str, extraction: ExtractionResult, read: Sequence[str]) -> AnswerFacts | None:
        try:
            return add_answer(self._retriever.corpus, answer_id, extraction, read)
        # A read-only disk, a lock or a replaced index must not cost the reader the answer.
        except Exception as error:
            is_expected = isinstance(error, OSError | sqlite3.Error | ValueError | LookupError)
            logger.warning("the graph took nothing from this answer: %s", error, exc_info=not is_expected)
            return None

    def _check_citations(
        self, query: EncodedQuery, log: EventLog, calls: "ModelCalls", work: "Work", draft: Completion
    ) -> Steps[Prediction]:
        """Check the draft's citations; accept it if one of them holds, or if it abstains within the steps."""
        started = time.perf_counter()
        corpus = self._retriever.corpus
        answer = CitationEnricher(corpus).enrich(draft.text, read=log.sources, seen=frozenset(log.sources))
        log.checked(answer, time.perf_counter() - started)
        yield
        budget, usage = self._budget, calls.tracker.usage
        exhausted = BudgetExceededError("steps", budget) if work.out_of_steps else None
        beyond = budget.exceeded(usage)
        stopped = exhausted or (BudgetExceededError(beyond, budget, usage) if beyond else None)
        holds = any(citation.holds for citation in answer.citations)
        if not holds and exhausted:
            raise exhausted
        if not holds and not answer.abstained:
            raise ModelError("unreadable", reason=ONLY_SUPPORTED if "supported" in answer.counts else UNCITED)
        notice = notice_of(answer, stopped.notice if stopped else "", CUT_OFF if draft.cut_off else "")
        if not holds:  # what the model adds to its abstention cites nothing: it is not shown
            answer = abstention(answer.removed)
        log.answered("react", query.text, answer, draft.seconds, draft.usage)
        yield
        return log.prediction(
            query.text,
            answer,
            corpus,
            mode="agent",
            status="exhausted" if exhausted else "answered" if holds else "abstained",
            notice=notice,
            usage=calls.tracker.usage,
            query=query,
            encoder=self._retriever.encoder if self._match_words else None,
        )


def _request_for(answer: str) -> str:
    if not answer.strip():
        return WRITE_AGAIN
    return "" if is_french_answer(answer) else WRITE_IN_FRENCH
