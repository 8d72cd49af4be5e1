"""Ask a model: stored replies, budget, retries, and a throttle that parallel requests share."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception
from tenacity.wait import wait_random_exponential

from legal_rag.base import deadline
from legal_rag.base.text import storable
from legal_rag.llm.budget import UNLIMITED, Budget, BudgetExceededError, Completion, Usage, UsageTracker
from legal_rag.llm.models import HOPELESS, TRANSIENT, Endpoint, Message, ModelError, price_of, tokens_in, window_of
from legal_rag.llm.replies import ReplyStore, request_key, without_thoughts
from legal_rag.llm.server import complete

FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0  # seconds before trying again; doubled from time to time, at random below that
SHORTEST_REPLY = 300  # tokens that a prompt must leave of a model's window
FIRST_ATTEMPTS = 4  # of a request, while the server has never replied

store = ReplyStore()
T = TypeVar("T")


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
) -> Completion:
    """Return the reply to a conversation, without thoughts: a stored one, which costs nothing, or the model's.

    Args:
        model: An `Endpoint`, or what `model_of` gives.
        messages: The conversation.
        tracker: Counts usage, and refuses requests beyond its budget.
        within: A tighter budget than the tracker's.
        throttle: Shared by parallel requests; its attempts are used instead of the model's.
        attempt: Number of a deliberate repetition, which is stored apart.
        known_as: The conversation by which the reply is stored, where parts of it do not matter.
        keeps: Tells which texts are worth storing; by default, those that are not empty.

    Raises:
        BudgetExceededError: If the budget has no room for a request.
        ModelError: If the model fails, also when asked again.
        DeadlineError: If the time of the work around the call is over.
    """
    started, tracker = time.perf_counter(), tracker or UsageTracker(UNLIMITED)
    messages = [{"role": message["role"], "content": storable(message["content"])} for message in messages]
    key = request_key(model, known_as or messages, attempt) if model.cache else ""
    if key and (stored := store.get(key)):
        tracker.add(stored.usage)
        return stored
    read, window, price, spent = tokens_in(messages), window_of(model), price_of(model.model), Usage()
    if window is not None and read + SHORTEST_REPLY > window:
        raise ModelError("context", f"about {read} tokens, of {window}")
    if (within or tracker.budget).cost is not None and price is None:
        raise BudgetExceededError("cost", tracker.budget, Usage(cost=None))

    def attempted() -> Completion:
        nonlocal spent
        with throttle.turn() if throttle else contextlib.nullcontext(), tracker.call(within):
            used = Usage(calls=1)
            try:
                with deadline.within(tracker.seconds_left):
                    reply = (model.sender or complete)(model, messages)
                tokens = reply.usage.prompt_tokens, reply.usage.completion_tokens
                used = reply.usage._replace(cost=price.of(*tokens) if price else None)
                return reply._replace(text=without_thoughts(reply.text))
            finally:
                spent = spent.plus(used)
                tracker.add(used)

    try:
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


@dataclass(frozen=True)
class ChatModel:
    """A model and the tracker of its calls; thread-safe."""

    model: Endpoint
    tracker: UsageTracker
    within: Budget | None = None  # a tighter budget than the tracker's
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
        return ask(self.model, messages, tracker=self.tracker, within=self.within, known_as=known_as)


def _retrying(model: Endpoint, tracker: UsageTracker, throttle: "Throttle | None") -> Retrying:
    def gives_up(state: RetryCallState) -> bool:
        most = throttle.attempts if throttle else model.num_retries + 1
        is_over = state.attempt_number >= most or state.upcoming_sleep >= tracker.seconds_left
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
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, ModelError) and error.retry_after is not None:
        return error.retry_after
    return wait_random_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT, min=FIRST_WAIT / 2)(state)


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
