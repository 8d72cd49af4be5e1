"""Model calls within a budget: usage, retries, timeouts; replies parsed leniently."""

import contextlib
import copy
import json
import math
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import dspy
import httpx
from dspy.utils.exceptions import AdapterParseError, is_retryable_lm_error
from tenacity import RetryCallState, Retrying, retry_if_exception

from legal_rag.agent.budget import Budget, BudgetExceededError, Usage
from legal_rag.agent.failures import ModelFailureError
from legal_rag.agent.repaired_json import repaired_json
from legal_rag.corpus.cleaning import storable

CONNECT_SECONDS = 10.0  # at most, to reach a server
SHORTEST_CALL = 0.05  # seconds
GRID = 1.25  # timeouts are rounded up to powers of it: DSPy keeps a connection pool for each different one
LONGEST_WAIT = 60.0  # seconds between two attempts, unless the server names a time
FIELD_MARK = re.compile(r"\[\[ ## \w+ ## \]\]")
MAX_CHARS = 200_000  # read of a reply; a runaway model may send millions
_THOUGHT_TAG = re.compile(r"(</?think(?:ing)?>|\[/?THINK\])", re.IGNORECASE)


class UsageTracker:
    """Usage of one answer and its budget; thread-safe. Time counts from construction."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.usage = Usage()  # sum over all calls so far
        self.calls_under_way = 0
        self._lock, self._started = threading.Lock(), time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since construction."""
        return time.monotonic() - self._started

    @property
    def seconds_left(self) -> float:
        """Seconds until the budget's limit; negative past it."""
        return self.budget.seconds - self.seconds

    def add(self, usage: Usage) -> None:
        """Count the usage of a call."""
        with self._lock:
            self.usage = self.usage.plus(usage)

    def check_seconds(self) -> None:
        """Raise BudgetExceededError if no time is left."""
        if self.seconds_left <= 0:
            raise BudgetExceededError("seconds", self.budget)

    def check(self, within: Budget | None = None, others: int | None = None) -> None:
        """Raise BudgetExceededError unless the budget, or a tighter one (`within`), has room for another call.

        `others` are other calls under way; None counts all, so that threads do not spend the last one twice.
        """
        pending = Usage(calls=self.calls_under_way if others is None else others)
        if limit := (within or self.budget).reached(self.usage.plus(pending), self.seconds):
            raise BudgetExceededError(limit, self.budget, self.usage)

    @contextlib.contextmanager
    def call(self, within: Budget | None = None) -> Iterator[None]:
        """Reserve room for one call with all its attempts; raises as `check` does."""
        with self._lock:
            self.check(within)
            self.calls_under_way += 1
        try:
            yield
        finally:
            with self._lock:
                self.calls_under_way -= 1


class Completion(NamedTuple):
    """A model's text: the reply to one call, or an answer."""

    text: str = ""
    cut_off: bool = False  # it ended at the model's token limit
    usage: Usage = Usage()
    seconds: float = 0.0


class BudgetedLM(dspy.BaseLM):
    """Wraps a language model: tracks its usage, enforces a budget, retries failed calls.

    Replies from DSPy's cache cost nothing. A call's timeout is cut to the seconds left. The delegate is never
    changed: calls are made on copies, which keep no history.
    """

    def __init__(self, lm: "dspy.BaseLM", tracker: UsageTracker, within: Budget | None = None) -> None:
        """Wrap a language model, whose `num_retries` apply here; `within` is a tighter budget than the tracker's."""
        settings = {"model_type": getattr(lm, "model_type", "chat"), "cache": getattr(lm, "cache", True)}
        super().__init__(str(getattr(lm, "model", "model")), num_retries=0, **settings)
        self.tracker, self.last = tracker, Completion()  # of this instance's last call
        self._within, self._attempts = within, getattr(lm, "num_retries", 0) + 1
        self._delegate_to(lm.copy(num_retries=0))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the model with a prompt or messages; `last` is the reply as text.

        Raises:
            BudgetExceededError: If the budget has no room for a call.
            dspy.LMError: If all attempts fail.
            ModelFailureError: If its client fails with an error that is not DSPy's.
        """
        listener, started = _Listener(self.tracker), time.perf_counter()
        with self.tracker.call(self._within):
            try:
                outputs = self._retrying()(self._attempt, listener, *args, **kwargs)
            except dspy.LMError:
                self.tracker.check_seconds()  # then the failure was the shortened timeout
                raise
        self.last = Completion(listener.text, listener.cut_off, listener.usage, time.perf_counter() - started)
        return outputs

    def complete(self, messages: list[dict[str, str]]) -> Completion:
        """Return the reply to a conversation; raises as calling the model does."""
        self(messages=messages)
        return self.last

    def copy(self, **kwargs: Any) -> "BudgetedLM":
        """Return a copy with other request settings and the same tracker."""
        copied = copy.copy(self)
        copied._delegate_to(self._lm.copy(**kwargs))
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> "BudgetedLM":
        return self  # DSPy deep-copies modules with their models; the tracker stays shared

    supports_function_calling = property(lambda self: self._lm.supports_function_calling)
    supports_reasoning = property(lambda self: self._lm.supports_reasoning)
    supports_response_schema = property(lambda self: self._lm.supports_response_schema)
    supported_params = property(lambda self: self._lm.supported_params)

    def _delegate_to(self, lm: "dspy.BaseLM") -> None:
        self._lm, self.kwargs = lm, lm.kwargs

    def _retrying(self) -> Retrying:
        return Retrying(
            retry=retry_if_exception(lambda error: isinstance(error, dspy.LMError) and is_retryable_lm_error(error)),
            stop=lambda state: (
                state.attempt_number >= self._attempts or state.upcoming_sleep >= self.tracker.seconds_left
            ),
            wait=_seconds_before_retry,
            reraise=True,
        )

    def _attempt(self, listener: "_Listener", *args: Any, **kwargs: Any) -> Any:
        self.tracker.check(others=self.tracker.calls_under_way - 1)
        lm: Any = self._lm.copy()
        lm.update_history = listener.take_entry  # histories would hold every prompt in memory
        try:
            return listener.listen(lambda: self._send(lm, *args, **kwargs, **self._timeout()))
        except (dspy.LMError, BudgetExceededError):
            raise
        # Models that are not DSPy's raise errors of any class: from here on they are the model's failures, not bugs.
        except Exception as error:
            raise ModelFailureError(str(error)) from error

    def _send(self, lm: Any, *args: Any, **kwargs: Any) -> Any:
        return lm(*args, **kwargs)

    def _timeout(self) -> dict[str, Any]:
        own, left = self.kwargs.get("timeout"), self.tracker.seconds_left
        if not isinstance(getattr(self._lm, "_engine_spec", None), str) or not isinstance(own, int | float | None):
            return {}  # custom engines take none; separate limits for the parts of a call stay
        return {} if math.isinf(left) else {"timeout": CallTimeout.cut(own, left)}


class Reply(NamedTuple):
    """Reply to a predictor's call."""

    fields: dict[str, str] | None  # of the signature; None where they could not be parsed
    text: str  # as it came
    cut_off: bool  # it ended at the model's token limit
    usage: Usage  # of the call, and of failed ones since the last reply
    seconds: float  # likewise


class ModelCalls:
    """Calls of predictors for one answer, within a budget."""

    def __init__(self, lm: "dspy.BaseLM", budget: Budget, *, keeps_trace: bool = False) -> None:
        """Start the budget's clock; `keeps_trace` leaves DSPy's trace to the caller, for optimisers."""
        self.tracker = UsageTracker(budget)
        self.seconds = 0.0  # of all calls, failed ones included
        self._replied = (Usage(), 0.0)  # usage and seconds at the last reply
        self._lm = BudgetedLM(lm, self.tracker)
        # A trace per call is dropped with it: DSPy's would hold every prompt.
        self._settings: dict[str, Any] = {} if keeps_trace else {"trace": []}

    def ask(self, predictor: "dspy.Module", **inputs: Any) -> Reply:
        """Call a predictor; raises as `BudgetedLM` does."""
        started = time.perf_counter()
        fields: dict[str, str] | None = None
        try:
            with dspy.context(lm=self._lm, adapter=LenientAdapter(), warn_on_type_mismatch=False, **self._settings):
                prediction = predictor(lm=self._lm, **inputs)
                fields = {name: storable(str(value or "")) for name, value in prediction.items()}
        except AdapterParseError:
            pass  # the caller reads the text
        finally:
            self.seconds += time.perf_counter() - started
        (usage, seconds), self._replied = self._replied, (self.tracker.usage, self.seconds)
        last = self._lm.last
        return Reply(fields, last.text, last.cut_off, self.tracker.usage.minus(usage), self.seconds - seconds)


class LenientAdapter(dspy.ChatAdapter):
    """Parses replies with DSPy's field marks, or as a JSON object, which some models always write."""

    def __init__(self) -> None:
        super().__init__(use_json_adapter_fallback=False)  # it would call the model again, for JSON

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        """Return the fields of a reply; AdapterParseError if it has neither form."""
        completion = without_thoughts(completion[:MAX_CHARS])
        try:
            return super().parse(signature, completion)
        except AdapterParseError as error:
            if not isinstance(found := repaired_json(completion[completion.find("{") :]), dict):
                raise
            try:
                return dspy.JSONAdapter().parse(signature, json.dumps(found))
            except (RecursionError, ValueError):  # nested too deeply
                raise error from None


def without_thoughts(text: str) -> str:
    """Strip reasoning between <think> and </think>; if it is never closed, a field begun within it is the reply."""
    said, thinking, part = "", False, ""
    for part in _THOUGHT_TAG.split(text):
        if not _THOUGHT_TAG.fullmatch(part):
            said += "" if thinking else part
        elif "/" not in part:
            thinking = True
        else:  # one that was never opened ends all before it
            said, thinking = said if thinking else "", False
    begun = FIELD_MARK.search(part) if thinking else None
    return said + part[begun.start() :] if begun else said


class CallTimeout(httpx.Timeout):
    """Timeout of one call, of which DSPy's cache keys see only the model's own setting.

    Both of DSPy's engines take an `httpx.Timeout`; of a value that is no JSON, its keys hold the name of a callable.
    """

    def __init__(self, own: float | None, seconds: float) -> None:
        """Limit a call to some seconds; `own` is the model's setting, None without one."""
        super().__init__(seconds, connect=min(seconds, CONNECT_SECONDS))
        self.__name__ = f"timeout of {own}"

    def __call__(self) -> float | None:
        """Return the seconds to wait for the next bytes."""
        return self.read

    @classmethod
    def cut(cls, own: float | None, left: float) -> "CallTimeout":
        """Return the shorter of a model's setting and the seconds left, rounded up (see `GRID`)."""
        rounded = GRID ** math.ceil(math.log(max(left, SHORTEST_CALL), GRID))
        return cls(own, rounded if own is None else min(float(own), rounded))


class _Listener:
    """Collects one call's usage and reply from DSPy, over all attempts.

    DSPy reports usage only for replies that are not from its cache, and all else in a history entry.
    """

    def __init__(self, tracker: UsageTracker) -> None:
        self._tracker = tracker
        self._was_sent = False
        self._outer: Any = None  # DSPy's tracker around the call
        self.usage, self.text, self.cut_off = Usage(), "", False

    def listen(self, send: Callable[[], Any]) -> Any:
        """Make an attempt; one that failed counts as sent."""
        self._was_sent, self._outer = False, dspy.settings.usage_tracker
        try:
            with dspy.context(usage_tracker=self, disable_history=False):
                return send()
        except BaseException:
            self._add(Usage(calls=1))
            raise

    def add_usage(self, model: str, usage: dict[str, Any]) -> None:
        """Count the tokens of a reply that a server sent."""
        self._was_sent = True
        self._add(Usage(0, 0, usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0))
        if self._outer is not None:
            self._outer.add_usage(model, usage)

    def take_entry(self, entry: dict[str, Any]) -> None:
        """Count a reply."""
        self._add(Usage(calls=1, cost=entry.get("cost")) if self._was_sent else Usage(cached=1))
        first, *_ = entry.get("outputs") or [""]
        text = first.get("text") if isinstance(first, dict) else first
        self.text, self.cut_off = storable(str(text or "")[:MAX_CHARS]), _is_cut_off(entry)

    def _add(self, usage: Usage) -> None:
        self.usage = self.usage.plus(usage)
        self._tracker.add(usage)


def _is_cut_off(entry: dict[str, Any]) -> bool:
    response = entry.get("response")  # in DSPy's own form, several of them, or in the form of OpenAI's API
    several = response if isinstance(response, list | tuple) else getattr(response, "choices", None) or [response]
    return any(getattr(one, "finish_reason", None) == "length" for one in several)


def _seconds_before_retry(state: RetryCallState) -> float:
    """Return the server's own `Retry-After`, else an exponentially growing wait."""
    asked = getattr(state.outcome.exception() if state.outcome else None, "retry_after", None)
    return float(asked) if asked is not None else min(2.0 ** (state.attempt_number - 1), LONGEST_WAIT)
