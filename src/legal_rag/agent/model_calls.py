"""Model calls within a budget: usage, retries, timeouts; replies parsed leniently."""

import contextlib
import copy
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import dspy
from dspy.utils.exceptions import AdapterParseError, is_retryable_lm_error
from tenacity import RetryCallState, Retrying, retry_if_exception

from legal_rag import deadline
from legal_rag.agent.bounded import bounded_requests, fit, is_bounded, warn_of_unbounded
from legal_rag.agent.budget import FREE, NOTHING, Budget, BudgetExceededError, Need, TokenPrice, Usage
from legal_rag.agent.failures import ModelFailureError
from legal_rag.agent.repaired_json import repaired_json
from legal_rag.corpus.cleaning import storable
from legal_rag.deadline import DeadlineError, within
from legal_rag.exchange import requests_sent, sending_nothing

REPLY_TOKENS = 8_000  # of a reply at most, where the model has no limit
SHORTEST_REPLY = 300  # tokens: a call that the budget leaves fewer for is not made
MESSAGE_TOKENS = 16  # that a message takes beside its text, at most
LEAST_SHARE = 0.1  # of the listed price that a reply can cost: providers ask less for prompts that they keep
LEAST_CHARS, MOST_CHARS = 8, 2  # of a token, on the average: no text has fewer tokens than by the first
LONGEST_WAIT = 60.0  # seconds between two attempts, unless the server names a time
FIELD_MARK = re.compile(r"\[\[ ## \w+ ## \]\]")
MAX_CHARS = 200_000  # read of a reply; a runaway model may send millions
_LETTERS = b" \nabcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_RATE = re.compile(r"(?P<side>input|output)_cost_per_token(?:_above_(?P<above>\d+)k_tokens)?")
_THOUGHT_TAG = re.compile(r"(</?think(?:ing)?>|\[/?THINK\])", re.IGNORECASE)


class UsageTracker:
    """Usage of one answer and its budget; thread-safe. Time counts from construction."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.usage = Usage()  # sum over all calls so far
        self.reserved = Usage()  # what the calls under way may take
        self.steps = 0  # taken so far, also by runs within the run
        self._lock, self._started = threading.Condition(), time.monotonic()

    @property
    def calls_under_way(self) -> int:
        """Calls that have begun and not ended."""
        return self.reserved.calls

    @property
    def seconds(self) -> float:
        """Seconds since construction."""
        return time.monotonic() - self._started

    @property
    def seconds_left(self) -> float:
        """Seconds until the budget's limit, or the deadline around this work; negative past it."""
        return min(self.budget.seconds - self.seconds, deadline.seconds_left())

    def add(self, usage: Usage) -> None:
        """Count the usage of a call."""
        with self._lock:
            self.usage = self.usage.plus(usage)

    def take_step(self) -> bool:
        """Count a step; false, and nothing is counted, where the budget has none left."""
        with self._lock:
            has_left = self.steps < self.budget.steps
            self.steps += has_left
        return has_left

    def check_seconds(self) -> None:
        """Raise BudgetExceededError if no time is left."""
        if self.seconds_left <= 0:
            raise BudgetExceededError("seconds", self.budget)

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Let the block work until the budget's time is over: what loops or waits within it asks `deadline`.

        Raises:
            BudgetExceededError: If no time is left, or the deadline interrupted the block.
        """
        self.check_seconds()
        try:
            with within(self.seconds_left):
                yield
        except DeadlineError:
            raise BudgetExceededError("seconds", self.budget) from None

    def check(self, within: Budget | None = None, others: int | None = None) -> None:
        """Raise BudgetExceededError unless the budget, or a tighter one (`within`), has room for another call.

        `others` are other calls under way; None counts all, so that threads do not spend the last one twice.
        """
        self.check_seconds()
        pending = Usage(calls=self.calls_under_way if others is None else others)
        if limit := (within or self.budget).reached(self.usage.plus(pending), self.seconds):
            raise BudgetExceededError(limit, self.budget, self.usage)

    @contextlib.contextmanager
    def call(self, within: Budget | None = None, need: Need = NOTHING) -> Iterator[int]:
        """Reserve room for one call with all its attempts, and yield how many tokens its reply may have.

        Where only calls under way leave too little room, it waits for them: they seldom take all that is reserved.

        Raises:
            BudgetExceededError: As `check` does, or if what is left is too little for the prompt and a short reply.
        """
        with self._lock:
            while (room := self._room(within, need)) is None:
                self._lock.wait(max(0.0, min(self.seconds_left, LONGEST_WAIT)))
            reserved = need.usage(room)
            self.reserved = self.reserved.plus(reserved)
        try:
            yield room
        finally:
            with self._lock:
                self.reserved = self.reserved.minus(reserved)
                self._lock.notify_all()

    def _room(self, within: Budget | None, need: Need) -> int | None:
        """Return the tokens that a reply may have; None to wait for other calls to end."""
        self.check(within)
        budget, asked = within or self.budget, need.reply_tokens
        if budget.room(self.usage.plus(self.reserved), need)[0] >= asked:
            return asked
        room, limit = budget.room(self.usage, need)
        if room < min(asked, SHORTEST_REPLY):
            usage = self.usage if need.price else self.usage._replace(cost=None)
            raise BudgetExceededError(limit, self.budget, usage)
        return None if self.calls_under_way else min(room, asked)


class Completion(NamedTuple):
    """A model's text: the reply to one call, or an answer."""

    text: str = ""
    cut_off: bool = False  # it ended at the model's token limit
    usage: Usage = Usage()
    seconds: float = 0.0


class BudgetedLM(dspy.BaseLM):
    """Wraps a language model: tracks its usage, enforces a budget, retries failed calls.

    Replies from DSPy's cache cost nothing. Others are whole within the model's timeout and the seconds left, and
    bounded (see `legal_rag.exchange`), where DSPy has the connection. What a call may take is reserved before it is
    made; near the budget's end replies may be shorter than the model's own limit. The delegate is never changed:
    calls are made on copies, which keep no history.
    """

    def __init__(self, lm: "dspy.BaseLM", tracker: UsageTracker, within: Budget | None = None, **changes: Any) -> None:
        """Wrap a language model, whose `num_retries` apply here, with changed settings.

        `within` is a tighter budget than the tracker's.
        """
        settings = {"model_type": getattr(lm, "model_type", "chat"), "cache": getattr(lm, "cache", True)} | changes
        super().__init__(str(getattr(lm, "model", "model")), num_retries=0, **settings)
        self.tracker, self.last = tracker, Completion()  # of this instance's last call
        self._within, self._attempts = within, getattr(lm, "num_retries", 0) + 1
        copied = lm.copy(num_retries=0, **changes)
        fit(copied, lm)
        self._delegate_to(copied)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the model with a prompt or messages; `last` is the reply as text.

        Raises:
            BudgetExceededError: If the budget has no room for a call.
            dspy.LMError: If all attempts fail.
            ModelFailureError: If its client fails with an error that is not DSPy's.
        """
        started, need = time.perf_counter(), self._need(*args, **kwargs)
        listener = _Listener(self.tracker, need)
        outputs = self._from_cache(listener, need, *args, **kwargs)
        if outputs is None:
            with self.tracker.call(self._within, need) as room:
                if room < need.reply_tokens:
                    kwargs[self._limit_name] = room
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

    @property
    def _limit_name(self) -> str:
        return "max_completion_tokens" if "max_completion_tokens" in self.kwargs else "max_tokens"

    def _need(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Need:
        asked = self.kwargs | kwargs
        read = [prompt, messages, asked.get("tools"), asked.get("response_format")]
        texts = [text for one in read for text in _texts_in(one)]
        replies = asked["n"] if isinstance(asked.get("n"), int) else 1
        return Need(
            sum(map(most_tokens, texts)) + MESSAGE_TOKENS * (len(texts) + 1),
            sum(map(least_tokens, texts)),
            (asked.get(self._limit_name) or REPLY_TOKENS) * replies,
            price_of(self.model, sum(map(most_tokens, texts))) if is_bounded(self._lm) else FREE,
        )

    def _from_cache(self, listener: "_Listener", need: Need, *args: Any, **kwargs: Any) -> Any:
        """Return a reply that is kept, where the budget has too little room to ask for another as it is; else None."""
        budget = self._within or self.tracker.budget
        has_room = budget.room(self.tracker.usage.plus(self.tracker.reserved), need)[0] >= need.reply_tokens
        if has_room or not self.cache or not is_bounded(self._lm):
            return None
        self.tracker.check(self._within)
        with sending_nothing(), contextlib.suppress(dspy.LMError, ModelFailureError):
            return self._ask(listener, *args, **kwargs)
        return None

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
        try:
            return self._ask(listener, *args, **kwargs)
        except BaseException:
            listener.count_failure()
            raise

    def _ask(self, listener: "_Listener", *args: Any, **kwargs: Any) -> Any:
        lm: Any = self._lm.copy()
        lm.update_history = listener.take_entry  # histories would hold every prompt in memory
        before = requests_sent()
        try:
            with deadline.within(self.tracker.seconds_left), bounded_requests(lm):
                outputs = listener.listen(lambda: self._send(lm, *args, **kwargs))
        except (dspy.LMError, BudgetExceededError):
            raise
        # Models that are not DSPy's raise errors of any class: from here on they are the model's failures, not bugs.
        except Exception as error:
            raise ModelFailureError(str(error)) from error
        if listener.was_sent and requests_sent() == before:
            warn_of_unbounded(lm)
        return outputs

    def _send(self, lm: Any, *args: Any, **kwargs: Any) -> Any:
        return lm(*args, **kwargs)


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


def _texts_in(value: Any) -> Iterator[str]:
    """Find what a model reads of a request."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts_in(list(value.values()))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts_in(one)
    elif value is not None:
        yield str(value)


def most_tokens(text: str) -> int:
    """Estimate the tokens of a text, rather too many: figures and signs one each, of letters one for two."""
    data = text.encode("utf-8", "replace")
    signs = len(data.translate(None, _LETTERS))
    return signs + -(-(len(data) - signs) // MOST_CHARS)


def least_tokens(text: str) -> int:
    """Return a number of tokens that no text of this length has fewer of."""
    return len(text) // LEAST_CHARS


@lru_cache
def price_of(model: str, prompt_tokens: int = 0) -> TokenPrice | None:
    """Return what a model costs for such a prompt by LiteLLM's list; None if it is not on it."""
    from dspy.clients.model_metadata import model_info, rate

    from legal_rag.agent.llm import use_local_prices

    use_local_prices()
    provider, slash, name = model.partition("/")
    entry = model_info(provider, name) if slash else model_info("openai", model)

    def dearest(side: str) -> float | None:
        found = [(one, rate(entry, key)) for key in entry if (one := _RATE.fullmatch(key)) and one["side"] == side]
        fitting = [cost for one, cost in found if cost is not None and 1000 * int(one["above"] or 0) <= prompt_tokens]
        return max(fitting, default=None)

    prompt, reply = dearest("input"), dearest("output")
    return None if prompt is None or reply is None else TokenPrice(prompt, reply)


class _Listener:
    """Collects one call's usage and reply from DSPy, over all attempts.

    DSPy reports usage only for replies that are not from its cache, and all else in a history entry. What a server
    says it read and wrote is not believed below what the texts come to at the least; where it says nothing, they are
    taken to come to the most.
    """

    def __init__(self, tracker: UsageTracker, need: Need) -> None:
        self._tracker, self._need = tracker, need
        self._sent: dict[str, Any] | None = None  # usage of the attempt, as the server counts it
        self._outer: Any = None  # DSPy's tracker around the call
        self.usage, self.text, self.cut_off = Usage(), "", False

    @property
    def was_sent(self) -> bool:
        """Whether a server sent the last attempt's reply."""
        return self._sent is not None

    def listen(self, send: Callable[[], Any]) -> Any:
        """Make an attempt."""
        self._sent, self._outer = None, dspy.settings.usage_tracker
        with dspy.context(usage_tracker=self, disable_history=False):
            return send()

    def count_failure(self) -> None:
        """Count an attempt that gave no usable reply."""
        self._add(Usage(calls=1) if self._sent is None else self._counted(self._sent, [], None))

    def add_usage(self, model: str, usage: dict[str, Any]) -> None:
        """Keep the tokens of a reply that a server sent."""
        self._sent = usage
        if self._outer is not None:
            self._outer.add_usage(model, usage)

    def take_entry(self, entry: dict[str, Any]) -> None:
        """Count a reply."""
        texts = list(_texts_in(entry.get("outputs")))
        self._add(Usage(cached=1) if self._sent is None else self._counted(self._sent, texts, entry.get("cost")))
        first, *_ = entry.get("outputs") or [""]
        text = first.get("text") if isinstance(first, dict) else first
        self.text, self.cut_off = storable(str(text or "")[:MAX_CHARS]), _is_cut_off(entry)

    def _counted(self, usage: dict[str, Any], texts: list[str], cost: float | None) -> Usage:
        said, need = (usage.get("prompt_tokens"), usage.get("completion_tokens")), self._need
        read = _count(said[0], need.least_prompt_tokens, need.prompt_tokens)
        wrote = _count(said[1], sum(map(least_tokens, texts)), sum(map(most_tokens, texts)))
        if need.price and need.price != FREE:
            own = need.price.of(read, wrote)
            is_believed = cost is not None and (read, wrote) == said
            cost = max(cost or 0.0, LEAST_SHARE * own) if is_believed else own
        return Usage(1, 0, read, wrote, cost)

    def _add(self, usage: Usage) -> None:
        self.usage = self.usage.plus(usage)
        self._tracker.add(usage)


def _count(said: Any, least: int, most: int) -> int:
    return max(said, least) if isinstance(said, int) and not isinstance(said, bool) and said >= 0 else most


def _is_cut_off(entry: dict[str, Any]) -> bool:
    response = entry.get("response")  # in DSPy's own form, several of them, or in the form of OpenAI's API
    several = response if isinstance(response, list | tuple) else getattr(response, "choices", None) or [response]
    return any(getattr(one, "finish_reason", None) == "length" for one in several)


def _seconds_before_retry(state: RetryCallState) -> float:
    """Return the server's own `Retry-After`, else an exponentially growing wait."""
    asked = getattr(state.outcome.exception() if state.outcome else None, "retry_after", None)
    return float(asked) if asked is not None else min(2.0 ** (state.attempt_number - 1), LONGEST_WAIT)
