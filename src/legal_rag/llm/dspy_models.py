"""Models for DSPy: `dspy.LM`s whose requests go through `ask`, predictors called within a budget."""

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import dspy
from dspy import lm15
from dspy.utils.exceptions import AdapterParseError

from legal_rag.base import deadline
from legal_rag.base.html import displayed
from legal_rag.llm.asking import Budget, BudgetExceededError, UsageTracker, ask
from legal_rag.llm.models import (
    DEFAULT_MODEL,
    Completion,
    Endpoint,
    Message,
    ModelError,
    Usage,
    endpoint_of,
    is_reasoning,
    tokens_in,
)
from legal_rag.llm.replies import json_in, unfenced
from legal_rag.llm.server import keys_of_environment, sanitized

MAX_TOKENS, TEMPERATURE = 8000, 0.2  # of a reply; a reasoning model of OpenAI has its own
SMALLEST_LIMIT = 16_000  # tokens of a reply, that a reasoning model takes
CHECK_TOKENS = 100  # of the reply that is asked for to check a model
OURS = frozenset(("model", "messages", "stream"))  # members of a request that are not for a user to set
# What DSPy's engines raise for our kinds; its own errors have the same names after "LM".
ERRORS = {
    "context": "ContextLengthError",
    "timeout": "TimeoutError",
    "auth": "AuthError",
    "billing": "BillingError",
    "rate limit": "RateLimitError",
    "unknown model": "UnsupportedModelError",
    "request": "InvalidRequestError",
    "loading": "ServerError",  # ahead of "server", which DSPy's own clients mean by it
    "server": "ServerError",
    "transport": "TransportError",
    "configuration": "ConfigurationError",
    "unreadable": "ProviderError",
}
KINDS_OF = {f"LM{name}": kind for kind, name in ERRORS.items()} | {"ContextWindowExceededError": "context"}

Asking = Callable[[Endpoint, Sequence[Message]], Completion]


def build_language_model(
    student_model: str | None = None,
    api_key: str | None = None,
    api_base: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    *,
    timeout: float = 120.0,
    num_retries: int = 2,
    cache: bool = True,
    seed: int | None = None,
    window: int | None = None,
    workers: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> "dspy.LM":
    """Configure a language model for DSPy; no request is sent.

    Args:
        student_model: A model id; with a provider of LiteLLM before it (`openai/…`, `openrouter/…`, `azure/…`) it is
            that provider's, whose key and address are found; so is a bare name that begins as one of a provider's do
            (`gpt-5`). None reads GENERATOR_MODEL_ID, else takes the default model.
        api_key: None reads GENERATOR_API_KEY, then HF_TOKEN for the Hugging Face router, or the provider's own
            variable (OPENAI_API_KEY).
        api_base: Address of an OpenAI-compatible server; None reads GENERATOR_API_BASE, and without one the
            Hugging Face router is asked.
        max_tokens: Of each reply; None is 8,000, or a reasoning model's own.
        temperature: 0 to 2; None is 0.2, or a reasoning model's own.
        timeout: Seconds that a whole reply may take.
        num_retries: Further attempts after a failed request.
        cache: Answer a request that was answered before from the stored replies.
        seed: Distinguishes requests in the store; also sent to the server, which may make its replies repeatable.
        window: Tokens that the model takes at most; None is what its server says, or LiteLLM lists.
        workers: Requests at once; None is as many as its server has slots, if it says so (llama.cpp's does).
        options: Further members of each request: `{"chat_template_kwargs": {"enable_thinking": False}}`.

    Raises:
        ValueError: If the address is not a URL, the model does not take the limit or temperature, or an option is not
            for a user to set.
    """
    if refused := OURS & (options or {}).keys():
        raise ValueError(f"a model's options cannot set {', '.join(sorted(refused))}")
    model = student_model or os.environ.get("GENERATOR_MODEL_ID") or DEFAULT_MODEL
    api_base = api_base or os.environ.get("GENERATOR_API_BASE") or None
    api_key = api_key or os.environ.get("GENERATOR_API_KEY") or None
    settings: dict[str, Any] = {"timeout": timeout, "num_retries": num_retries, "cache": cache, "seed": seed}
    how = {"window": window, "workers": workers, "extra": options or {}}
    endpoint = endpoint_of(model, api_key, api_base, **how, **settings)
    model = endpoint.model if endpoint else model
    if not is_reasoning(model):
        max_tokens = MAX_TOKENS if max_tokens is None else max_tokens
        temperature = TEMPERATURE if temperature is None else temperature
    elif temperature not in (None, 1.0) or (max_tokens or SMALLEST_LIMIT) < SMALLEST_LIMIT:
        sampling = f"temperature {temperature}, max_tokens {max_tokens}"
        raise ValueError(f"{model} does not take {sampling} (expected temperature 1, 16000 tokens, or none)")
    if endpoint is not None:
        return lm_of(endpoint, max_tokens=max_tokens, temperature=temperature)
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it would fetch its list when it is imported
    given = {**settings, "api_key": api_key, **(options or {})}
    given = {name: value for name, value in given.items() if value is not None}
    return dspy.LM(model, max_tokens=max_tokens, temperature=temperature, **given)


def lm_of(endpoint: Endpoint, asking: Asking | None = None, **sampling: Any) -> "dspy.LM":
    """Return a `dspy.LM` whose requests `asking` makes, by default `ask`."""
    engine = _Engine(endpoint, asking or _asked_by_a_program)
    both = {"engine": engine, "async_engine": _AsyncEngine(engine)}
    return dspy.LM(endpoint.model, **both, cache=False, num_retries=0, **sampling)


def _asked_by_a_program(endpoint: Endpoint, messages: Sequence[Message]) -> Completion:
    # DSPy's rollouts have this temperature, and want another reply each time.
    is_rollout = endpoint.temperature == 1.0
    return ask(replace(endpoint, cache=endpoint.cache and not is_rollout), messages)


def model_of(lm: "dspy.BaseLM", **settings: Any) -> Endpoint:
    """Return the `Endpoint` of a language model of DSPy's; `settings` replace its own.

    A model that another client calls (the user's own, or of a provider that only LiteLLM knows) is waited for until the
    deadline at most; the size of its replies is up to that client.
    """
    kwargs: dict[str, Any] = getattr(lm, "kwargs", None) or {}
    engine = getattr(lm, "engine", None)
    limit = kwargs.get("max_completion_tokens") or kwargs.get("max_tokens")
    fields: dict[str, Any] = {"max_tokens": limit, "temperature": kwargs.get("temperature"), **settings}
    if isinstance(engine, _Engine):
        return replace(engine.endpoint, **fields)
    # A model of the user's own may reply differently each time.
    is_known = isinstance(lm, dspy.LM) and isinstance(engine, str)
    fields = {"num_retries": getattr(lm, "num_retries", 0), "cache": is_known and lm.cache, **fields}
    fields |= {"seed": kwargs.get("seed"), "sender": partial(_sent, lm)}
    base, key, name = kwargs.get("api_base"), kwargs.get("api_key"), str(getattr(lm, "model", "model"))
    return Endpoint(model=name, name=name, api_base=str(base or ""), api_key=str(key or ""), **fields)


def check_model(lm: "dspy.BaseLM", seconds: float = 60.0) -> str | None:
    """Send a model a short request; return None if it replies, else a French sentence: what failed, how to fix it."""
    model, prompt = model_of(lm, cache=False, num_retries=0), "Répondez par un seul mot : prêt."
    try:
        with deadline.within(seconds):
            ask(model, [{"role": "user", "content": prompt}], reply_tokens=CHECK_TOKENS)
    except deadline.DeadlineError:
        return f"Le modèle de langage n'a pas répondu en {seconds:.0f} secondes."
    except ModelError as error:
        return error.advice
    return None


class _Engine:
    """DSPy's engine: passes each request of a `dspy.LM` to a function."""

    def __init__(self, endpoint: Endpoint, asking: Asking) -> None:
        self.endpoint, self._asking = endpoint, asking

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Engine":
        return self  # DSPy deep-copies modules with their models

    def complete(self, request: lm15.Request) -> lm15.Response:
        texts = [("system", request.system), *((message.role, message.text) for message in request.messages)]
        messages = [{"role": role, "content": text} for role, text in texts if isinstance(text, str)]
        config = request.config
        if request.tools or len(messages) < len(request.messages):
            raise lm15.UnsupportedFeatureError("only text is sent to this model, no tools or files")
        named = {name: getattr(config, name) for name in ("max_tokens", "temperature", "seed")}
        extra = {"top_p": config.top_p, "stop": list(config.stop) or None, **(config.extensions or {})}
        if form := config.response_format:  # OpenAI's chat API nests what lm15 keeps flat
            named_form = {name: value for name, value in form.items() if name != "type"}
            extra["response_format"] = {"type": form["type"], **({form["type"]: named_form} if named_form else {})}
        named, extra = ({name: value for name, value in part.items() if value is not None} for part in (named, extra))
        try:
            done = self._asking(replace(self.endpoint, **named, extra={**self.endpoint.extra, **extra}), messages)
        except ModelError as error:
            kind = getattr(lm15, ERRORS.get(error.kind, "ProviderError"))
            raise kind(str(error), retry_after=error.retry_after) from error
        usage, is_new = done.usage, not done.usage.cached
        counts = {"input_tokens": usage.prompt_tokens, "output_tokens": usage.completion_tokens} if is_new else {}
        return lm15.Response(
            id=None,
            model=request.model,
            message=lm15.Message.assistant([lm15.TextPart(done.text)]),
            finish_reason="length" if done.cut_off else "stop",
            usage=lm15.Usage(**counts),
        )

    def stream(self, request: lm15.Request) -> Iterator[Any]:
        """Make a request, and return its whole reply as events."""
        return iter(lm15.response_to_events(self.complete(request)))


class _AsyncEngine:
    def __init__(self, engine: _Engine) -> None:
        self._engine = engine

    def __deepcopy__(self, memo: dict[int, Any]) -> "_AsyncEngine":
        return self

    async def complete(self, request: lm15.Request) -> lm15.Response:
        return await asyncio.to_thread(self._engine.complete, request)


def _sent(lm: Any, endpoint: Endpoint, messages: Sequence[Message]) -> Completion:
    """Call a model that DSPy connects to, or the user's own."""
    changed = {name: value for name, value in endpoint.sampling.items() if lm.kwargs.get(name) != value}
    copied, entries = lm.copy(num_retries=0, cache=False, **changed), list[dict[str, Any]]()
    copied.update_history = entries.append  # a history would hold every prompt in memory

    def asked() -> Any:
        with dspy.context(usage_tracker=None, disable_history=False, trace=[]):
            return copied(messages=list(messages))

    keys = keys_of_environment() | {endpoint.api_key}
    try:
        outputs = _run_until_deadline(asked)
    except ModelError:
        raise
    # Models that are not DSPy's raise errors of any class: from here on they are the model's failures, not bugs.
    except Exception as error:
        kind = next((KINDS_OF[base.__name__] for base in type(error).__mro__ if base.__name__ in KINDS_OF), "client")
        detail = sanitized(f"{type(error).__name__}: {error}", keys)
        raise ModelError(kind, detail, retry_after=getattr(error, "retry_after", None)) from error
    first = next(iter(outputs or [""]))
    text = sanitized(str((first.get("text") if isinstance(first, dict) else first) or ""), keys)
    entry = entries[-1] if entries else {}
    usage, response = entry.get("usage") or {}, entry.get("response")  # which is DSPy's own, or OpenAI's, or several
    ends = response if isinstance(response, list | tuple) else getattr(response, "choices", None) or [response]
    read, written = usage.get("prompt_tokens") or tokens_in(messages), usage.get("completion_tokens") or tokens_in(text)
    cut_off = any(getattr(choice, "finish_reason", None) == "length" for choice in ends)
    return Completion(text, Usage(1, 0, read, written), cut_off=cut_off)


def _run_until_deadline(work: Callable[[], Any]) -> Any:
    """Run a function in a thread, which is abandoned at the deadline; return its result."""
    left, done = deadline.seconds_left(), Future[Any]()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # raised by the caller
            done.set_exception(error)

    threading.Thread(target=copy_context().run, args=(run,), daemon=True).start()
    wait([done], left if left < threading.TIMEOUT_MAX else None)
    if not done.done():
        raise ModelError("timeout")
    return done.result()


@displayed
class Reply(NamedTuple):
    """Reply to a predictor's call."""

    fields: dict[str, str] | None  # of the signature; None where they could not be parsed
    text: str  # without thoughts
    cut_off: bool  # it ended at the model's token limit
    usage: Usage  # of the call, and of failed ones since the last reply
    seconds: float  # likewise


class ModelCalls:
    """Calls of predictors for one answer, within a budget."""

    def __init__(self, lm: "dspy.BaseLM", budget: Budget, *, keeps_trace: bool = False) -> None:
        """Start the budget's clock; `keeps_trace` leaves DSPy's trace to the caller, for optimisers."""
        # A trace per call is dropped with it: DSPy's would hold every prompt.
        self._settings: dict[str, Any] = {} if keeps_trace else {"trace": []}
        self.tracker = UsageTracker(budget)
        self.seconds = 0.0  # of all calls, failed ones included
        self._replied = (Usage(), 0.0)  # usage and seconds at the last reply
        self._last = Completion()
        self._model = model_of(lm)
        self._lm = lm_of(self._model, self._ask_and_keep)

    def ask(self, predictor: "dspy.Module", adapter: "dspy.Adapter | None" = None, **inputs: Any) -> Reply:
        """Call a predictor, whose `max_tokens` are its `reply_tokens`, with prompts as an adapter writes them.

        Raises as `legal_rag.llm.ask` does.
        """
        started = time.perf_counter()
        fields: dict[str, str] | None = None
        try:
            adapter = adapter or LenientAdapter()
            with dspy.context(lm=self._lm, adapter=adapter, warn_on_type_mismatch=False, **self._settings):
                prediction = predictor(lm=self._lm, **inputs)
                fields = {name: str(value or "") for name, value in prediction.items()}
        except AdapterParseError:
            pass  # the caller reads the text
        except dspy.LMError as error:
            raise _cause(error) from None
        finally:
            self.seconds += time.perf_counter() - started
        (usage, seconds), self._replied = self._replied, (self.tracker.usage, self.seconds)
        last = self._last
        return Reply(fields, last.text, last.cut_off, self.tracker.usage.minus(usage), self.seconds - seconds)

    def _ask_and_keep(self, endpoint: Endpoint, messages: Sequence[Message]) -> Completion:
        model = replace(endpoint, max_tokens=self._model.max_tokens)
        self._last = ask(model, messages, tracker=self.tracker, reply_tokens=endpoint.max_tokens)
        return self._last


def _cause(error: BaseException) -> BaseException:
    cause: BaseException | None = error
    while cause and not isinstance(cause, ModelError | BudgetExceededError | deadline.DeadlineError):
        cause = cause.__cause__
    return cause or error


class LenientAdapter(dspy.ChatAdapter):
    """Parses replies with DSPy's field marks, or as a JSON object, which some models always write."""

    def __init__(self) -> None:
        super().__init__(use_json_adapter_fallback=False)  # it would call the model again, for JSON

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        """Return the fields of a reply; AdapterParseError if it has neither form."""
        completion = unfenced(completion)
        try:
            return super().parse(signature, completion)
        except AdapterParseError as error:
            if not isinstance(value := json_in(completion[completion.find("{") :]), dict):
                raise
            try:
                return dspy.JSONAdapter().parse(signature, json.dumps(value))
            except (RecursionError, ValueError):  # nested too deeply
                raise error from None
