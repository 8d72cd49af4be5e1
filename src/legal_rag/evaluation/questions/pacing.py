"""Rate limiter and retry policy that parallel requests to one model share."""

import threading
import time
from dataclasses import dataclass
from typing import Any

import dspy
from dspy.utils.exceptions import (
    LMAuthError,
    LMBillingError,
    LMConfigurationError,
    LMInvalidRequestError,
    LMRateLimitError,
    LMTransportError,
    LMUnsupportedModelError,
)
from tenacity import RetryCallState, Retrying, retry_if_exception
from tenacity.nap import sleep_using_event
from tenacity.wait import wait_random_exponential

from legal_rag import deadline
from legal_rag.agent.budget import UNLIMITED
from legal_rag.agent.model_calls import BudgetedLM, UsageTracker

ATTEMPTS = 4  # of one request, while others succeed; twice as many where the server asks to wait
FIRST_WAIT, LONGEST_WAIT = 0.25, 60.0  # seconds before trying again; doubled from time to time, at random below that
PATIENCE = 900.0  # seconds that a server which nobody reaches any more is waited for
GRACE = 20.0  # seconds that one which gives nobody a good answer is, and as many attempts at least
MAX_FAILURES = 20  # documents in a row that the model failed on, before all is stopped

HOPELESS = (LMAuthError, LMBillingError, LMUnsupportedModelError, LMConfigurationError)  # for every document alike
BUSY = {502, 503, 504}  # HTTP: the server behind the address is away, not at odds with what it was asked


class CutOffError(Exception):
    """A reply ended at the model's token limit: it may be incomplete."""


class Pace:
    """Rate limit, retry policy and stop signal of all requests of one run; thread-safe."""

    def __init__(
        self, requests_per_minute: float | None = None, *, attempts: int = ATTEMPTS, patience: float = PATIENCE
    ) -> None:
        """Set the limits; see `ATTEMPTS` and `PATIENCE`."""
        if requests_per_minute is not None and requests_per_minute <= 0:
            raise ValueError(f"requests_per_minute must be above 0, got {requests_per_minute}")
        self.error: Exception | None = None  # why all was stopped
        self.sends_seed = True  # until the server refuses one
        self._stop = threading.Event()
        self._interval = 60 / requests_per_minute if requests_per_minute else 0.0
        self._attempts, self._patience = attempts, patience
        self._lock = threading.Lock()
        self._next_turn = self._started = self.last_success = time.monotonic()
        self._failures = 0  # documents in a row

    @property
    def stopped(self) -> bool:
        """Tell whether no further request will be made."""
        return self._stop.is_set()

    def stop(self, error: Exception | None = None) -> None:
        """Make no further request; the first error given is kept."""
        with self._lock:
            self.error = self.error or error
        self._stop.set()

    def was_never_reached(self, error: BaseException | None) -> bool:
        """Tell whether a failure to connect says that the address is wrong: no request of the run has succeeded."""
        return isinstance(error, LMTransportError) and self.last_success == self._started

    def wait_for_turn(self) -> None:
        """Wait for the rate limit; LMTransportError if the run was stopped."""
        if self._interval:
            with self._lock:
                turn = max(self._next_turn, time.monotonic())
                self._next_turn = turn + self._interval
            self._stop.wait(max(0.0, turn - time.monotonic()))
        if self.stopped:
            raise LMTransportError("stopped")

    def retrying(self) -> Retrying:
        """Return the retry policy of one request."""
        return Retrying(
            retry=retry_if_exception(_may_pass),
            stop=self._gives_up,
            wait=_wait,
            sleep=sleep_using_event(self._stop),
            reraise=True,
        )

    def count(self, failure: Exception | None) -> None:
        """Count how a document ended; stop the run after `MAX_FAILURES` in a row."""
        with self._lock:
            self._failures = self._failures + 1 if failure is not None else 0
            too_many = self._failures >= MAX_FAILURES
        if too_many:
            self.stop(failure)

    def _gives_up(self, state: RetryCallState) -> bool:
        if self.stopped or state.upcoming_sleep >= max(0.0, deadline.seconds_left()):
            return True
        error = state.outcome.exception() if state.outcome else None
        if self.was_never_reached(error):
            return state.attempt_number >= self._attempts
        waited = state.seconds_since_start or 0.0
        # Out of reach, or asking to wait, independently of the request.
        away = isinstance(error, LMTransportError | LMRateLimitError) or getattr(error, "status", None) in BUSY
        enough = state.attempt_number >= (2 * self._attempts if away else self._attempts)
        if self.last_success >= state.start_time:  # others succeed: it is this request's own fault
            return enough
        return enough and waited >= (self._patience if away else min(GRACE, self._patience))


@dataclass
class DocumentCalls:
    """State that all copies of one document's model share."""

    replies: int = 0
    failure: Exception | None = None  # after which the document's further requests fail at once


class PacedLM(BudgetedLM):
    """Language model for one document that keeps a pace; DSPy's own cache is off."""

    def __init__(self, lm: "dspy.BaseLM", pace: Pace, seed: int | None = None) -> None:
        """Wrap a language model; `seed` is of its sampling: sent along, one higher for each reply."""
        super().__init__(lm, UsageTracker(UNLIMITED), cache=False)
        self.pace, self.seed, self.document = pace, seed, DocumentCalls()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the model; raises the document's first failure, or CutOffError for a reply that is incomplete."""
        if self.document.failure is not None:
            raise self.document.failure
        try:
            outputs = super().__call__(*args, **kwargs)
        except Exception as error:
            self.document.failure = error
            if isinstance(error, HOPELESS) or self.pace.was_never_reached(error):
                self.pace.stop(error)
            raise
        self.document.replies += 1
        self.pace.last_success = time.monotonic()
        if self.last.cut_off:
            raise CutOffError
        return outputs

    def _retrying(self) -> Retrying:
        return self.pace.retrying()

    def _send(self, lm: Any, *args: Any, **kwargs: Any) -> Any:
        self.pace.wait_for_turn()
        if self.seed is None or not self.pace.sends_seed:
            return lm(*args, **kwargs)
        try:
            return lm(*args, seed=self.seed + self.document.replies, **kwargs)
        except LMInvalidRequestError as error:
            if "seed" not in str(error):
                raise
            self.pace.sends_seed = False  # some servers reject unknown parameters
            return lm(*args, **kwargs)


def _may_pass(error: BaseException) -> bool:
    """Tell whether the same request may succeed later: what was wrong with the request itself stays wrong."""
    return isinstance(error, dspy.LMError) and not isinstance(error, (*HOPELESS, LMInvalidRequestError))


_exponential = wait_random_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT, min=FIRST_WAIT / 2)


def _wait(state: RetryCallState) -> float:
    """Wait as long as the server asks, else at random up to a limit that doubles (full jitter)."""
    asked = getattr(state.outcome.exception() if state.outcome else None, "retry_after", None)
    return min(float(asked), PATIENCE) if asked is not None else _exponential(state)
