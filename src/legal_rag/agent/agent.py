"""The answering agent: a ReAct loop, checked citations, and evidence mode as its fallback."""

import logging
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from legal_rag.agent.event_log import Agent, EventLog, Steps
from legal_rag.agent.evidence import EvidenceAgent, StructuredEvidenceAgent, abstention
from legal_rag.agent.instructions import instructions_of
from legal_rag.agent.outlines import reasoner_of
from legal_rag.agent.prediction import (
    NOT_FRENCH,
    PARAPHRASE,
    UNCITED,
    Prediction,
    Status,
    bug_in_french,
    notice_of,
)
from legal_rag.agent.replies import ANSWER_FORM, BY_FIELDS, TagSettings, clean_answer, take_tags, without_tags
from legal_rag.agent.tools import SEARCH_K, build_tools
from legal_rag.base.text import fold_text
from legal_rag.citations.enricher import CitationEnricher, EnrichedResponse
from legal_rag.corpus.chunking import READ_CHARS
from legal_rag.corpus.files import is_french_answer
from legal_rag.encoder.encoder import Encoder
from legal_rag.graph.answers import add_answer
from legal_rag.graph.types import AnswerFacts, ExtractionResult
from legal_rag.library.filters import Filters
from legal_rag.library.library import Library
from legal_rag.llm import Budget, BudgetExceededError, Completion, ModelError, UsageTracker, is_asked
from legal_rag.retriever.retriever import EncodedQuery, Retriever, build_retriever
from legal_rag.retriever.search_box import NO_FILTERS
from legal_rag.retriever.structured import StructuredProvider

if TYPE_CHECKING:
    import dspy

    from legal_rag.agent.react import Draft, LegalReAct, Work
    from legal_rag.llm import ModelCalls

logger = logging.getLogger(__name__)

# Makes a tool for one answer from retriever, model, log and tracker (None: for its description); None if unavailable.
ToolFactory = Callable[[Retriever, "dspy.BaseLM", EventLog, UsageTracker | None], Callable[..., str] | None]

DEFAULT_BUDGET = Budget()
DEFAULT_TAGS = TagSettings()
LARGE_WINDOW = 16_000  # tokens of a context from which on all tools are told of, and tags asked for
READ_SHARE, CHARS_PER_TOKEN = 0.2, 3.3  # of a smaller context, read at once; of French
SHORTENED = "Le contexte du modèle est trop petit pour tout ce qui a été trouvé : des passages ont été abrégés"
CUT_OFF = "La réponse du modèle a été coupée avant la fin"
WRITE_AGAIN = f"Votre réponse était vide. Écrivez la réponse à la question : {ANSWER_FORM}."
ANSWER_IT = f"Votre réponse répète la question. Répondez-y, avec les mots d'un passage : {ANSWER_FORM}."
PROVE_IT = (
    "Votre réponse n'est pas prouvée par les passages qu'elle indique. Recopiez dans answer, mot pour mot, la phrase"
    f" d'un passage qui répond à la question : {ANSWER_FORM}."
)
QUOTE_IT = (
    "Votre réponse n'emploie pas les mots des passages qu'elle indique. Récrivez-la en y citant, mot pour mot entre"
    f" « », ceux qui la prouvent : {ANSWER_FORM}."
)
WRITE_IN_FRENCH = f"Votre réponse n'était pas en français. Récrivez-la entièrement en français : {ANSWER_FORM}."


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
    tools: Sequence[str] | None = None,
    filters: Filters = NO_FILTERS,
    infer_filters: bool = True,
    structured: bool = False,
    single_pass_extraction_enabled: bool | None = DEFAULT_TAGS.single_pass_extraction_enabled,
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
        search_k: Passages that a search gives, unless the model asks for another number.
        tools: Names of the tools that the model has beside searching and reading; None is all of them for a context of
            `LARGE_WINDOW` tokens or one of unknown size, and none for a smaller one.
        filters: Restrict all searches to documents that pass them.
        structured: Begin with `StructuredProvider`: rules, sections that the model names in outlines, passages.
        infer_filters: Read a court with a time in a question as filters too: "la chambre sociale en 2018".

    Raises:
        ValueError: If a model is named, here or by GENERATOR_MODEL_ID, and there is no endpoint to ask it at, the
            threshold is not from 0 to 1, or there is no tool of a name.
    """
    tags = TagSettings(
        single_pass_extraction_enabled=single_pass_extraction_enabled,
        extraction_confidence_threshold=extraction_confidence_threshold,
    )
    retriever = build_retriever(corpus, encoder, trust_remote_code=trust_remote_code)
    evidence_agent = StructuredEvidenceAgent if structured else EvidenceAgent
    evidence = evidence_agent(retriever, match_words=match_words, filters=filters, infer_filters=infer_filters)
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
        tools=tools,
        tags=tags,
        structured=structured,
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
        tools: Sequence[str] | None = None,
        tags: TagSettings = DEFAULT_TAGS,
        structured: bool = False,
    ) -> None:
        """Configure an agent over a retriever; `evidence` is the fallback, the rest as for `build_agent`."""
        super().__init__(retriever)
        self.lm, self._instructions, self._budget, self._match_words = lm, instructions, budget, match_words
        self._extra_tools, self._search_k, self._tags = tuple(extra_tools), search_k, tags
        self._is_structured = structured
        self.evidence = evidence or EvidenceAgent(retriever, match_words=match_words)
        self._loops: dict[bool, LegalReAct] = {}  # by whether the context has room for all tools
        self._tool_names: Sequence[str] | None = None  # all of them
        known = [tool.__name__ for tool in self._build_tools(EventLog(), is_roomy=True)]
        if unknown := sorted(set(tools or ()) - set(known)):
            raise ValueError(f"no tool named {', '.join(map(repr, unknown))} (there are: {', '.join(known)})")
        self._tool_names = tools

    @property
    def react(self) -> "LegalReAct":
        """The loop for the context that the model's server has; it is asked at the first answer."""
        window = self._window
        is_roomy = window is None or window >= LARGE_WINDOW
        return self._loops.get(is_roomy) or self._loops.setdefault(is_roomy, self._make_loop(is_roomy=is_roomy))

    def _make_loop(self, *, is_roomy: bool) -> "LegalReAct":
        from legal_rag.agent.react import LegalReAct

        make_tools = partial(self._build_tools, is_roomy=is_roomy)
        asked = self._tags.single_pass_extraction_enabled
        # Only the descriptions of these tools are used: each answer has tools of its own, which write to its log.
        return LegalReAct(
            self._instructions,
            make_tools(EventLog()),
            self._budget.steps,
            asks_for_tags=is_roomy if asked is None else asked,
            with_options=is_roomy,
            make_tools=make_tools,
        )

    @property
    def _window(self) -> int | None:
        from legal_rag.llm import model_of, window_of

        return window_of(model_of(self.lm))

    def steps(self, query: EncodedQuery, log: EventLog) -> Steps[Prediction]:
        """Answer a question: by the model, or by the passages if it fails."""
        from legal_rag.llm import ModelCalls

        calls = ModelCalls(self.lm, self._budget)
        react = self.react
        searched = self._query_in_context(query, log)
        filters = self.evidence.filters_for(searched, log)
        provider = StructuredProvider(self._retriever, reasoner_of(calls)) if self._is_structured else None
        tools = self._build_tools(log, calls.tracker, filters, provider, is_roomy=react.with_options)
        failure: Status
        try:
            work = yield from react.steps(query.text, calls, log, tools, searched=searched.text)
            written = self._write(query.text, react, work, calls, log)
            prediction = yield from self._finish(query, log, calls, work, written)
            return self._record_tags(prediction, written.extraction, log.sources)
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
            yield from self.evidence.steps(
                query, log, mode="fallback", failure=failure, notice=f"{reason}.", usage=calls.tracker.usage
            )
        )

    def _build_tools(
        self,
        log: EventLog,
        tracker: UsageTracker | None = None,
        filters: Filters = NO_FILTERS,
        structured: StructuredProvider | None = None,
        *,
        is_roomy: bool,
    ) -> list[Callable[..., str]]:
        """Return an answer's tools, which write to its log: searching, reading, others by name or where there is room.

        Extra ones are charged to its tracker.
        """
        read_chars = READ_CHARS if is_roomy else int((self._window or LARGE_WINDOW) * READ_SHARE * CHARS_PER_TOKEN)
        extra = (make(self._retriever, self.lm, log, tracker) for make in self._extra_tools)
        how: Any = {"infer_filters": self.evidence.infers_filters, "structured": structured}
        retriever = self._retriever
        own = build_tools(retriever.corpus, retriever, log, self._search_k, read_chars, filters, **how)
        tools = [*own, *filter(None, extra)]
        if self._tool_names is None and is_roomy:
            return tools
        return [tool for tool in tools if tool.__name__ in (*BY_FIELDS, *(self._tool_names or ()))]

    def _write(
        self, question: str, react: "LegalReAct", work: "Work", calls: "ModelCalls", log: EventLog
    ) -> "_Written":
        """Have the answer written and checked, and rewritten once for each kind of problem; the best one counts."""
        written = self._checked(react.draft(question, work, calls, log.pieces), react, log)
        requests: list[str] = []
        while (request := _request_for(written, question)) and request not in requests:
            requests.append(request)
            try:
                again = self._checked(react.draft(question, work, calls, log.pieces, request), react, log)
            except (BudgetExceededError, ModelError):
                if request == QUOTE_IT:  # it was asked for more than it needs
                    return written
                raise
            usage = written.draft.usage.plus(again.draft.usage)
            seconds = written.draft.seconds + again.draft.seconds
            if request == QUOTE_IT and not again.answer.holds:
                return written._replace(draft=written.draft._replace(usage=usage, seconds=seconds))
            written = again._replace(draft=again.draft._replace(usage=usage, seconds=seconds))
        if request == WRITE_AGAIN and work.last_thought:
            from legal_rag.agent.react import Draft

            written = self._checked(Draft(written.draft._replace(text=work.last_thought)), react, log)
            request = _request_for(written, question)
        if request == WRITE_AGAIN:
            raise ModelError("empty")
        if request == WRITE_IN_FRENCH:
            raise ModelError("unreadable", reason=NOT_FRENCH)
        return written

    def _checked(self, draft: "Draft", react: "LegalReAct", log: EventLog) -> "_Written":
        completion, extraction = _strip_tags(draft.completion) if react.asks_for_tags else (draft.completion, None)
        text, started = log.pieces.cite(completion.text, draft.evidence), time.perf_counter()
        enricher = CitationEnricher(self._retriever.corpus)
        seen = frozenset(log.sources)
        answer = enricher.enrich(text, read=log.sources, seen=seen, pointed=log.pieces.quoted)
        return _Written(completion, answer, extraction or ExtractionResult(), time.perf_counter() - started)

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

    def _finish(
        self, query: EncodedQuery, log: EventLog, calls: "ModelCalls", work: "Work", written: "_Written"
    ) -> Steps[Prediction]:
        """Accept the answer if one of its citations stands, or if it abstains within the steps."""
        draft, answer = written.draft, written.answer
        log.checked(answer, written.check_seconds)
        yield
        budget, usage = self._budget, calls.tracker.usage
        exhausted = BudgetExceededError("steps", budget) if work.out_of_steps else None
        beyond = budget.exceeded(usage)
        stopped = exhausted or (BudgetExceededError(beyond, budget, usage) if beyond else None)
        stands = answer.stands and not answer.abstained
        if not stands and exhausted:
            raise exhausted
        if not stands and not answer.abstained:
            raise ModelError("unreadable", reason=UNCITED)
        shortened = SHORTENED if work.trajectory.is_shortened else ""
        paraphrase = PARAPHRASE if stands and not answer.holds else ""
        cut_off = CUT_OFF if draft.cut_off else ""
        notice = notice_of(answer, stopped.notice if stopped else "", cut_off, shortened, paraphrase)
        if not stands:  # what the model adds to its abstention cites nothing: it is not shown
            answer = abstention(answer.removed)
        log.answered("react", query.text, answer, draft.seconds, draft.usage)
        yield
        return log.prediction(
            query.text,
            answer,
            self._retriever.corpus,
            mode="agent",
            status="exhausted" if exhausted else "answered" if stands else "abstained",
            notice=notice,
            usage=calls.tracker.usage,
            query=query,
            encoder=self._retriever.encoder if self._match_words else None,
        )


class _Written(NamedTuple):
    """An answer of the model's, and its check."""

    draft: Completion  # without tags
    answer: EnrichedResponse
    extraction: ExtractionResult  # of its tags
    check_seconds: float


def _strip_tags(draft: Completion) -> tuple[Completion, ExtractionResult]:
    extraction, text = take_tags(draft.text)
    text = text if text == draft.text else clean_answer(text)  # a fence, closed before the tags
    return draft._replace(text=text), extraction


def _request_for(written: _Written, question: str) -> str:
    """Return what is to be asked of a model whose answer cannot be used; empty for one that can."""
    text, answer = written.draft.text, written.answer
    if not text.strip():
        return WRITE_AGAIN
    if not is_french_answer(without_tags(text)):
        return WRITE_IN_FRENCH
    if fold_text(question).strip(" ?") in fold_text(text) and text.rstrip().endswith("?"):
        return ANSWER_IT
    if answer.abstained or answer.holds:
        return ""
    return QUOTE_IT if answer.stands else PROVE_IT
