"""Ask a model: budgets, stored replies, retries, and a throttle that parallel requests share."""

import contextlib
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Literal, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception
from tenacity.wait import wait_random_exponential

from legal_rag.base import deadline
from legal_rag.base.html import displayed
from legal_rag.base.text import storable
from legal_rag.llm.models import (
    HOPELESS,
    TRANSIENT,
    Completion,
    Endpoint,
    Message,
    ModelError,
    Usage,
    is_reasoning,
    price_of,
    tokens_in,
)
from legal_rag.llm.replies import ReplyStore, request_key, without_thoughts
from legal_rag.llm.server import SHORTEST_REPLY, complete, served, window_of

FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0  # seconds before trying again; doubled from time to time, at random below that
LOADING_WAIT, LOADING_SECONDS = 1.5, 120.0  # between two attempts while a server loads the model, and in all
FIRST_ATTEMPTS = 4  # of a request, while the server has never replied

store = ReplyStore()
_thinkers: set[tuple[str, str]] = set()  # models that wrote thoughts, by address and id
T = TypeVar("T")
Limit = Literal["steps", "model_calls", "tokens", "seconds", "cost"]


@displayed
@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits of one answer, checked before each request: the last reply may exceed tokens and cost.

    At a limit the agent answers with what it has found so far, and says so.
    """

    steps: int = 10  # of the agent's loop: one thought and one tool call each
    model_calls: int = 30  # requests sent, for repairs and the answer as well; stored replies do not count
    tokens: int = 400_000  # read and written, over all calls
    seconds: float = 600.0
    cost: float | None = None  # in dollars; None is no limit

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not value > 0:
                raise ValueError(f"a budget's {field.name} must be above 0, got {value}")

    def reduced(self, share: float, calls: int) -> "Budget":
        """Return this budget less a share of each limit and at least some calls; one call always remains."""
        left = 1 - share
        return replace(
            self,
            model_calls=max(1, min(int(self.model_calls * left), self.model_calls - calls)),
            tokens=max(1, int(self.tokens * left)),
            seconds=self.seconds * left,
            cost=None if self.cost is None else self.cost * left,
        )

    def reached(self, usage: Usage, seconds: float = 0.0) -> Limit | None:
        """Return the limit that has been reached, other than steps; None if there is room."""
        if seconds >= self.seconds:
            return "seconds"
        if usage.calls >= self.model_calls:
            return "model_calls"
        if usage.tokens >= self.tokens:
            return "tokens"
        if self.cost is not None and (usage.cost is None or usage.cost >= self.cost):
            return "cost"
        return None

    def exceeded(self, usage: Usage) -> Limit | None:
        """Return the limit that the last reply went beyond; None if it went beyond none."""
        if usage.tokens > self.tokens:
            return "tokens"
        return "cost" if self.cost is not None and usage.cost is not None and usage.cost > self.cost else None

    def in_french(self) -> str:
        """Say what it allows at most: « 30 appels au modèle, 400 000 jetons lus et écrits, 600 secondes »."""
        limits: tuple[Limit, ...] = ("model_calls", "tokens", "seconds", "cost")
        return ", ".join(_in_french(limit, value) for limit in limits if (value := getattr(self, limit)) is not None)


UNLIMITED = Budget(model_calls=10**9, tokens=10**15, seconds=math.inf)


class BudgetExceededError(Exception):
    """A limit of the budget has been reached."""

    def __init__(self, limit: Limit, budget: Budget, usage: Usage | None = None) -> None:
        """`usage` is what was used: the notice says by how much the last reply went beyond the limit."""
        self.limit = limit
        self.notice = f"Budget épuisé : {_reached_in_french(limit, budget, usage or Usage())}"  # a French sentence
        super().__init__(self.notice)


class UsageTracker:
    """Usage of one answer and its budget; thread-safe. Time counts from construction."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.usage = Usage()  # sum over all calls so far
        self.steps = 0  # taken so far, also by runs within the run
        self._under_way = 0  # calls
        self._lock, self._started = threading.Lock(), time.monotonic()

    @property
    def seconds_left(self) -> float:
        """Seconds until the budget's limit, or the deadline around this work; negative past it."""
        return min(self.budget.seconds - self._seconds_used, deadline.seconds_left())

    @property
    def _seconds_used(self) -> float:
        return time.monotonic() - self._started

    def add(self, usage: Usage) -> None:
        """Count the usage of a call."""
        with self._lock:
            self.usage = self.usage.plus(usage)

    def take_step(self) -> bool:
        """Count a step; False, without counting, if the budget has none left."""
        with self._lock:
            has_left = self.steps < self.budget.steps
            self.steps += has_left
        return has_left

    def check_seconds(self) -> None:
        """Raise BudgetExceededError if no time is left, DeadlineError if it is that of the work around this one."""
        deadline.check()
        if self.seconds_left <= 0:
            raise BudgetExceededError("seconds", self.budget)

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Run the block, in which loops check `deadline`, until the budget's time is over: BudgetExceededError then."""
        self.check_seconds()
        try:
            with deadline.within(self.seconds_left):
                yield
        except deadline.DeadlineError:
            raise BudgetExceededError("seconds", self.budget) from None

    @contextlib.contextmanager
    def call(self, within: Budget | None = None) -> Iterator[None]:
        """Let the block make one request; those under way count as calls, so that threads do not exceed their number.

        BudgetExceededError if the budget, or a tighter one (`within`), has no room for another call.
        """
        self.check_seconds()
        with self._lock:
            counted = self.usage.plus(Usage(self._under_way))
            if limit := (within or self.budget).reached(counted, self._seconds_used):
                raise BudgetExceededError(limit, self.budget, self.usage)
            self._under_way += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1


def _reached_in_french(limit: Limit, budget: Budget, usage: Usage) -> str:
    if limit == "cost" and usage.cost is None:
        return "le prix de ce modèle est inconnu, le coût ne peut donc pas être limité"
    used = {"tokens": usage.tokens, "cost": usage.cost or 0.0}.get(limit, 0)
    beyond = f" ({_number_in_french(used)} avec la dernière réponse)" if used > getattr(budget, limit) else ""
    return _in_french(limit, getattr(budget, limit)) + beyond


def _in_french(limit: Limit, value: float) -> str:
    many = abs(value) >= 2
    unit = {
        "steps": "étapes" if many else "étape",
        "model_calls": "appels au modèle" if many else "appel au modèle",
        "tokens": "jetons lus et écrits" if many else "jeton",
        "seconds": "secondes" if many else "seconde",
        "cost": "dollars" if many else "dollar",
    }[limit]
    return f"{_number_in_french(value)} {unit}"


def _number_in_french(value: float) -> str:
    return f"{value:,.6f}".rstrip("0").rstrip(".").replace(",", "\u202f").replace(".", ",")


def ask(
    model: Endpoint,
    messages: Sequence[Message],
    *,
    tracker: UsageTracker | None = None,
    within: Budget | None = None,
    throttle: "Throttle | None" = None,
    attempt: int = 0,
    known_as: Sequence[Message] | None = None,
    keeps: Callable[[str], bool] = bool,
    reply_tokens: int | None = None,
) -> Completion:
    """Return the reply to a conversation, without thoughts: a stored one, which costs nothing, or the model's.

    The `tracker` counts usage, and refuses requests beyond its budget or the tighter one `within`. Parallel requests
    share a `throttle`, whose attempts are used instead of the model's. A deliberate repetition has its own `attempt`.
    The reply is stored by the conversation `known_as`, where parts of it do not matter, if `keeps` is true of its text.
    It has at most `reply_tokens` where the model's own limit is not lower; a model that thinks has its own limit alone,
    from its first thought on: a reply that was cut off with thoughts in it is asked for again.

    Raises:
        BudgetExceededError: If the budget has no room for a request.
        ModelError: If the model fails, also when asked again.
        DeadlineError: If the time of the work around the call is over.
    """
    started, tracker = time.perf_counter(), tracker or UsageTracker(UNLIMITED)
    messages, place = _merged(messages), (model.api_base, model.model)
    sent = _capped(model, reply_tokens)
    key = request_key(sent, known_as or messages, attempt) if model.cache else ""
    if key and (stored := store.get(key)):
        tracker.add(stored.usage)
        return stored
    with deadline.within(tracker.seconds_left):
        window = window_of(model)
    read, price, spent = tokens_in(messages), price_of(model.model), Usage()
    if window is not None and read + SHORTEST_REPLY > window:
        raise ModelError("context", f"about {read} tokens, of {window}", window=window)
    if (within or tracker.budget).cost is not None and price is None:
        raise BudgetExceededError("cost", tracker.budget, Usage(cost=None))

    def attempted() -> Completion:
        nonlocal spent
        turn = throttle.turn() if throttle else contextlib.nullcontext()
        with _slot(model, tracker), turn, tracker.call(within):
            used = Usage(calls=1)
            try:
                with deadline.within(tracker.seconds_left):
                    reply = (model.sender or complete)(sent, messages)
                tokens = reply.usage.prompt_tokens, reply.usage.completion_tokens
                used = reply.usage._replace(cost=price.of(*tokens) if price else None)
                text = without_thoughts(reply.text)
                return reply._replace(text=text, thinks=reply.thinks or text != reply.text)
            except ModelError as error:
                used = Usage() if error.kind == "loading" else used
                raise
            finally:
                spent = spent.plus(used)
                tracker.add(used)

    sent = model if place in _thinkers else sent
    try:
        reply = _retrying(model, tracker, throttle)(attempted)
        if reply.thinks:
            _thinkers.add(place)
        if reply.cut_off and reply.thinks and sent.max_tokens != model.max_tokens:
            sent = model
            reply = _retrying(model, tracker, throttle)(attempted)
    except ModelError as error:
        if throttle:
            throttle.count(error)
        tracker.check_seconds()  # then the failure was the shortened timeout
        raise
    if throttle:
        throttle.count(None)
    if key and keeps(reply.text):
        store.put(key, reply)
    return reply._replace(usage=spent, seconds=time.perf_counter() - started)


def _merged(messages: Sequence[Message]) -> Sequence[Message]:
    """Join neighbours of one role, and make later system texts the user's: templates of Mistral's and Gemma refuse."""
    merged: list[dict[str, str]] = []
    for message in messages:
        role, content = message["role"], storable(message["content"])
        if role == "system" and any(earlier["role"] != "system" for earlier in merged):
            role = "user"
        if merged and merged[-1]["role"] == role:
            merged[-1]["content"] += f"\n\n{content}"
        else:
            merged.append({"role": role, "content": content})
    return merged


def _capped(model: Endpoint, reply_tokens: int | None) -> Endpoint:
    """Limit a model's replies; thoughts of OpenAI's reasoning models count as part of them, and have no limit."""
    if reply_tokens is None or is_reasoning(model.model):
        return model
    return replace(model, max_tokens=min(reply_tokens, model.max_tokens or reply_tokens))


@contextlib.contextmanager
def _slot(model: Endpoint, tracker: UsageTracker) -> Iterator[None]:
    """Let the block ask while its server is free: the time that a request waits there would count as the reply's."""
    with deadline.within(tracker.seconds_left):
        limits = [limit for limit in (model.workers, served(model).slots) if limit]
    if not limits:
        yield
        return
    slots = _slots_of(os.getpid(), model.api_base, min(limits))
    while not slots.acquire(timeout=max(0.0, min(tracker.seconds_left, threading.TIMEOUT_MAX))):
        tracker.check_seconds()
    try:
        yield
    finally:
        slots.release()


@cache
def _slots_of(_process: int, api_base: str, at_once: int) -> threading.Semaphore:
    return threading.Semaphore(at_once)


@displayed
@dataclass(frozen=True)
class ChatModel:
    """A model and the tracker of its calls; thread-safe."""

    model: Endpoint
    tracker: UsageTracker
    within: Budget | None = None  # a tighter budget than the tracker's
    reply_tokens: int | None = None  # of a reply at most, see `ask`
    on_call: Callable[[str, Completion, str], None] = lambda prompt, reply, error: None  # called after each `query`

    @property
    def name(self) -> str:
        """The model's id."""
        return self.model.model

    def query(self, prompt: str) -> str:
        """Return the reply to a prompt; raises as `ask` does, also where it is empty."""
        try:
            reply = self.chat([{"role": "user", "content": prompt}])
            if not reply.text.strip():
                raise ModelError("empty")
        except ModelError as error:
            self.on_call(prompt, Completion(), error.reason)
            raise
        self.on_call(prompt, reply, "")
        return reply.text

    def chat(self, messages: Sequence[Message], known_as: Sequence[Message] | None = None) -> Completion:
        """Return the reply to a conversation; see `ask`."""
        limits: dict[str, Any] = {"within": self.within, "reply_tokens": self.reply_tokens}
        return ask(self.model, messages, tracker=self.tracker, known_as=known_as, **limits)

    def forget(self, conversations: Iterable[Sequence[Message]]) -> None:
        """Delete the stored replies to conversations, by what they are `known_as`."""
        sent = _capped(self.model, self.reply_tokens)
        if keys := [request_key(sent, messages) for messages in conversations]:
            store.forget(keys)


def _retrying(model: Endpoint, tracker: UsageTracker, throttle: "Throttle | None") -> Retrying:
    def gives_up(state: RetryCallState) -> bool:
        most = throttle.attempts if throttle else model.num_retries + 1
        is_last = state.attempt_number >= most
        if _failure_of(state).kind == "loading":
            is_last = (state.seconds_since_start or 0.0) >= LOADING_SECONDS
        is_over = is_last or state.upcoming_sleep >= tracker.seconds_left
        return is_over or (throttle is not None and throttle.is_stopped)

    return Retrying(
        retry=retry_if_exception(lambda error: isinstance(error, ModelError) and error.kind in TRANSIENT),
        stop=gives_up,
        wait=_wait,
        sleep=throttle.wait if throttle else time.sleep,
        reraise=True,
    )


def _wait(state: RetryCallState) -> float:
    """Wait as long as the server asks, else at random up to a limit that doubles (full jitter)."""
    failure = _failure_of(state)
    if failure.retry_after is not None:
        return failure.retry_after
    if failure.kind == "loading":
        return LOADING_WAIT
    return wait_random_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT, min=FIRST_WAIT / 2)(state)


def _failure_of(state: RetryCallState) -> ModelError:
    """Return the failure of an attempt after which another one may follow."""
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, ModelError)  # noqa: S101  (no other is tried again)
    return error


class Throttle:
    """Rate, number at once, and stop signal of the requests of one run, which its threads share.

    It stops all of them at an error that every request will meet, after some failures in a row, and where the address
    was never reached.
    """

    def __init__(
        self, *, at_once: int = 1000, per_minute: float | None = None, most_failures: int = 20, attempts: int = 8
    ) -> None:
        """Set the limits; `attempts` are of one request, from the server's first reply on."""
        if per_minute is not None and per_minute <= 0:
            raise ValueError(f"requests_per_minute must be above 0, got {per_minute}")
        self.error: Exception | None = None  # why all was stopped
        self._slots, self._stop, self._lock = threading.Semaphore(at_once), threading.Event(), threading.Lock()
        self._interval, self._next_turn = 60 / per_minute if per_minute else 0.0, time.monotonic()
        self._most_failures, self._attempts = most_failures, attempts
        self._failures, self._was_reached = 0, False

    @property
    def attempts(self) -> int:
        """Attempts that a request has: fewer where the server has never replied."""
        return self._attempts if self._was_reached else min(FIRST_ATTEMPTS, self._attempts)

    @property
    def is_stopped(self) -> bool:
        """Whether no further request will be made."""
        return self._stop.is_set()

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Let the block make one request in its turn; raises the error that stopped all."""
        with self._slots:
            if self._interval:
                with self._lock:
                    turn = max(self._next_turn, time.monotonic())
                    self._next_turn = turn + self._interval
                self.wait(turn - time.monotonic())
            if self.is_stopped:
                raise self.error or ModelError("transport", "stopped")
            yield

    def call(self, work: Callable[[], T]) -> T:
        """Run a request that does not go through `ask` in its turn, and count its outcome."""
        with self.turn():
            try:
                done = work()
            except Exception as error:  # of any client
                self.count(error)
                raise
        self.count(None)
        return done

    def wait(self, seconds: float) -> None:
        """Wait, unless all is stopped."""
        self._stop.wait(max(0.0, min(seconds, deadline.seconds_left())))

    def count(self, failure: Exception | None) -> None:
        """Count a request's outcome; `failure` has the kind of a `ModelError`, or none."""
        kind = getattr(failure, "kind", "")
        with self._lock:
            self._failures = self._failures + 1 if failure else 0
            self._was_reached = self._was_reached or failure is None
            is_lost = kind == "transport" and not self._was_reached
            is_over = kind in HOPELESS or is_lost or self._failures >= self._most_failures
        if is_over:
            self.stop(failure)

    def stop(self, error: Exception | None = None) -> None:
        """Make no further request; the first error given is kept."""
        with self._lock:
            self.error = self.error or error
        self._stop.set()
