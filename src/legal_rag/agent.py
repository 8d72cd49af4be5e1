"""The agent: a DSPy ReAct loop over the search and reading tools, and what happens when its model fails.

In: a question. Out: a `Prediction` whose citations were checked. Without an endpoint, and whenever the model does
not answer or cites nothing that holds, the evidence agent answers instead, and the notice says so.
"""

import dataclasses
import logging
import os
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from legal_rag.citations import CheckedAnswer, check_citations
from legal_rag.cleaning import storable
from legal_rag.encoder import Encoder, build_encoder
from legal_rag.evidence import NO_PASSAGE, EvidenceAgent
from legal_rag.library import INSTRUCTIONS
from legal_rag.prediction import Prediction
from legal_rag.retriever import Corpus, Retriever, build_retriever
from legal_rag.run_log import RunLog
from legal_rag.tools import build_tools, parse_chunk_id

if TYPE_CHECKING:
    import dspy

__all__ = [
    "DEFAULT_MODEL",
    "LegalReActAgent",
    "build_agent",
    "build_encoder",
    "build_language_model",
    "default_instructions",
    "parse_chunk_id",
]

DEFAULT_MODEL = "mistralai/Magistral-Small-2509"
PROVIDERS = ("anthropic/", "gemini/", "mistral/", "ollama_chat/")  # LiteLLM finds their keys and addresses itself
ABSTENTION = "aucun passage pertinent"  # what the instructions ask a model to write when it finds nothing

logger = logging.getLogger(__name__)


def build_language_model(
    student_model: str | None = None,
    api_key: str | None = None,
    api_base: str | None = None,
    max_tokens: int = 8000,
    temperature: float = 0.2,
    *,
    timeout: float = 120.0,
    num_retries: int = 2,
    cache: bool = False,
) -> "dspy.LM":
    """Describe a language model to DSPy; nothing is asked of it yet.

    Args:
        student_model: A model id; with a provider before it (`openai/…`, `huggingface/…`) it is taken as LiteLLM's.
            None reads GENERATOR_MODEL_ID, else takes the default model.
        api_key: None reads GENERATOR_API_KEY, then HF_TOKEN for the Hugging Face router.
        api_base: Address of an OpenAI-compatible server; None reads GENERATOR_API_BASE, and without one the
            Hugging Face router is asked.
        max_tokens: Of each reply.
        temperature: 0 to 2.
        timeout: Seconds that a request may take.
        num_retries: Further attempts after a failed request.
        cache: Let DSPy answer a request it has seen from its cache, which tells models apart by name, not by address.
    """
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else litellm fetches a price list at import
    import dspy

    model = student_model or os.environ.get("GENERATOR_MODEL_ID") or DEFAULT_MODEL
    api_base = api_base or os.environ.get("GENERATOR_API_BASE") or None
    api_key = api_key or os.environ.get("GENERATOR_API_KEY") or None
    if api_base:
        model = model if model.startswith("openai/") else f"openai/{model}"
        api_key = api_key or "none"  # servers of one's own mostly ask for no key, but the client wants one
    elif not model.startswith(("huggingface/", "openai/", *PROVIDERS)):
        model = f"huggingface/{model}"
        api_key = api_key or os.environ.get("HF_TOKEN") or None
    return dspy.LM(
        model,
        api_key=api_key,
        api_base=api_base,
        max_tokens=max_tokens,
        temperature=temperature,
        timeout=timeout,
        num_retries=num_retries,
        cache=cache,
    )


def build_agent(
    corpus: Corpus | str | Path,
    *,
    model: str | None = None,
    api_key: str | None = None,
    api_base: str | None = None,
    instructions: str | None = None,
    encoder: Encoder | None = None,
    lm: "dspy.LM | None" = None,
    trust_remote_code: bool = False,
    **lm_settings: Any,
) -> "LegalReActAgent | EvidenceAgent":
    """Wire an agent over one corpus: a ReAct agent where there is an endpoint, else the evidence agent.

    Args:
        corpus: An open Library, or a Library's folder.
        model: See `build_language_model`; a model alone, without key or address, is no endpoint.
        api_key: See `build_language_model`.
        api_base: See `build_language_model`.
        instructions: For the model, in French; None takes `instructions.md` in the index's folder, else the default.
        encoder: One already loaded.
        lm: A model already described, in place of the first three.
        trust_remote_code: See `legal_rag.retriever.build_retriever`.
        lm_settings: Further settings of `build_language_model`.
    """
    retriever = build_retriever(corpus, encoder, trust_remote_code=trust_remote_code)
    evidence = EvidenceAgent(retriever)
    if lm is None and has_endpoint(api_key, api_base, model):
        lm = build_language_model(model, api_key, api_base, **lm_settings)
    if lm is None:
        return evidence
    return LegalReActAgent(retriever, lm, instructions or instructions_of(retriever.corpus), evidence=evidence)


def has_endpoint(api_key: str | None = None, api_base: str | None = None, model: str | None = None) -> bool:
    """Tell whether a model can be asked: by a key, an address, or a provider that LiteLLM knows how to reach."""
    if (model or os.environ.get("GENERATOR_MODEL_ID") or "").startswith(PROVIDERS):
        return True
    names = ("GENERATOR_API_BASE", "GENERATOR_API_KEY", "HF_TOKEN")
    return bool(api_key or api_base or any(os.environ.get(name) for name in names))


def default_instructions(name: str = "jurisprudence") -> str:
    """Return the package's own instructions for a model: 'jurisprudence' or 'constitutionnel'.

    Raises:
        LookupError: If there are none of that name.
    """
    folder = files("legal_rag") / "instructions"
    file = folder / f"{name}.md"
    if not file.is_file():
        names = ", ".join(sorted(path.name.removesuffix(".md") for path in folder.iterdir()))
        raise LookupError(f"no instructions named {name!r} (there are: {names})")
    return file.read_text(encoding="utf-8").strip()


def instructions_of(corpus: Corpus) -> str:
    """Return the instructions that lie in an index's folder, or the default ones."""
    own = corpus.path / INSTRUCTIONS
    return own.read_text(encoding="utf-8").strip() if own.is_file() else default_instructions()


class EmptyAnswerError(Exception):
    """The model ended its run without an answer."""


class LegalReActAgent:
    """A ReAct agent that searches, reads and cites; every call is a run of its own, so threads may share it."""

    def __init__(
        self,
        retriever: Retriever,
        lm: "dspy.LM",
        instructions: str,
        *,
        evidence: EvidenceAgent | None = None,
        max_steps: int = 10,
    ) -> None:
        if max_steps < 1:
            raise ValueError(f"max_steps must be at least 1, got {max_steps}")
        self._retriever, self._lm, self._instructions = retriever, lm, instructions
        self._evidence = evidence or EvidenceAgent(retriever)
        self._max_steps = max_steps

    def __call__(self, question: str) -> Prediction:
        """Answer a question in French, with checked citations.

        Raises:
            ValueError: If the question is empty or longer than the encoder reads.
        """
        self._retriever.encoder.check_query(question)  # before the model is asked: the evidence agent may be needed
        log = RunLog()
        try:
            answer = self._ask_model(question, log)
        # A model fails in as many ways as there are providers: time-outs, 500s, malformed replies, refused keys.
        except Exception as error:
            logger.debug("the model failed", exc_info=True)
            return self._fall_back(question, log, f"Le modèle de langage n'a pas pu répondre ({_reason(error)})")
        checked = check_citations(answer, lambda doc_id: self._retriever.corpus.document(doc_id).content)
        if ABSTENTION in answer.casefold() and not checked.citations:
            # The model's own words beside its abstention cite nothing: they are not shown.
            abstention = CheckedAnswer(NO_PASSAGE, [], checked.dropped)
            return log.prediction(question, abstention, mode="agent", status="abstained", notice=_notice(checked))
        if not checked.citations:
            return self._fall_back(question, log, "La réponse du modèle ne citait aucun passage vérifiable")
        return log.prediction(question, checked, mode="agent", status="answered", notice=_notice(checked))

    def _ask_model(self, question: str, log: RunLog) -> str:
        import dspy

        signature = dspy.Signature("question: str -> answer: str", self._instructions)
        tools = build_tools(self._retriever.corpus, self._retriever, log)
        with dspy.context(lm=self._lm), log.record("answer", "react", question=question) as ids:
            prediction = dspy.ReAct(signature, tools=tools, max_iters=self._max_steps)(question=question)
            ids += list(log.documents)
        answer = prediction.answer
        if not isinstance(answer, str) or not answer.strip():
            raise EmptyAnswerError
        return storable(answer).strip()

    def _fall_back(self, question: str, log: RunLog, reason: str) -> Prediction:
        prediction = self._evidence.answer(question, log, mode="fallback", notice=f"{reason}.")
        if not prediction.citations:
            return prediction
        instead = f"{reason} : voici, à la place, les passages les plus proches, cités mot pour mot."
        return dataclasses.replace(prediction, notice=instead)


def _notice(checked: CheckedAnswer) -> str | None:
    if not checked.dropped:
        return None
    n = len(checked.dropped)
    return "Une citation a été retirée" if n == 1 else f"{n} citations ont été retirées"


def _reason(error: Exception) -> str:
    """Say in French what kind of failure it was; the provider's own words are for the debug log."""
    if "timed out" in str(error).casefold() or "timeout" in str(error).casefold():  # also reported as lost connections
        return FAILURES["LMTimeoutError"]
    for kind in type(error).__mro__:
        if kind.__name__ in FAILURES:
            return FAILURES[kind.__name__]
    return f"erreur {type(error).__name__}"


# The names of DSPy's errors (and of ours), and what they mean to the reader.
FAILURES = {
    "LMTimeoutError": "délai dépassé",
    "LMAuthError": "clé refusée",
    "LMBillingError": "crédit épuisé",
    "LMRateLimitError": "trop de demandes",
    "ContextWindowExceededError": "texte trop long pour lui",
    "LMUnsupportedModelError": "modèle inconnu du serveur",
    "LMInvalidRequestError": "demande refusée par le serveur",
    "LMServerError": "erreur du serveur",
    "LMProviderError": "erreur du serveur",
    "LMTransportError": "serveur injoignable",
    "AdapterParseError": "réponse illisible",
    "LMUnexpectedError": "réponse illisible",
    "EmptyAnswerError": "réponse vide",
}
