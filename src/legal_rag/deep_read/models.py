"""The models of one deep read, asked with plain text, from several threads, within one budget.

In: DSPy language models and a budget. Out: replies as text; what all calls came to. Calls under way count, so that
threads do not spend the last one together.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from legal_rag.budget import Budget, BudgetExceededError, Usage
from legal_rag.failures import EmptyAnswerError, reason_in_french
from legal_rag.model_account import Account, accounted

if TYPE_CHECKING:
    import dspy

SAMPLING = ("seed", "temperature", "top_p", "max_tokens", "max_completion_tokens")
Message = dict[str, str]  # "role" and "content", as OpenAI's API has them


class SubCallError(Exception):
    """A call of the model for part of the work failed; the message says why, in French, without a full stop."""


class SubModel(Protocol):
    """What answers questions about single texts."""

    def query(self, prompt: str) -> str:
        """Return the reply to a prompt.

        Raises:
            SubCallError: If the model fails.
            BudgetExceededError: If the run's budget has no room for a call.
        """


class ModelReply(NamedTuple):
    """What a model replied, and what it took."""

    text: str
    usage: Usage
    seconds: float
    cut_off: bool  # it ended where the model ran out of tokens


class Meter:
    """What all calls of a run came to, whichever thread made them; it runs from when it is made."""

    def __init__(self, budget: Budget, usage: Usage | None = None) -> None:
        """Begin a run.

        Args:
            budget: Of the run.
            usage: What it came to before, if it is taken up again.
        """
        self.budget = budget
        self._usage, self._under_way = usage or Usage(), 0
        self._lock, self._started = threading.Lock(), time.monotonic()

    @property
    def usage(self) -> Usage:
        """What the calls came to so far."""
        return self._usage

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self._started

    @property
    def seconds_left(self) -> float:
        """Seconds until the budget's limit; below 0 behind it."""
        return self.budget.seconds - self.seconds

    def add(self, usage: Usage) -> None:
        """Count what a call came to."""
        with self._lock:
            self._usage = self._usage.plus(usage)

    def check_seconds(self) -> None:
        """Refuse whatever takes time, once there is none left.

        Raises:
            BudgetExceededError: If there is none.
        """
        if self.seconds_left <= 0:
            raise BudgetExceededError("seconds", self.budget)

    def check(self, others: int | None = None) -> None:
        """Refuse another call that the budget has no room for.

        Args:
            others: Calls under way beside it; None counts all that are.

        Raises:
            BudgetExceededError: If there is no room.
        """
        waiting = Usage(calls=self._under_way if others is None else others)
        if limit := self.budget.reached(self._usage.plus(waiting), self.seconds):
            raise BudgetExceededError(limit, self.budget, self._usage)

    @contextmanager
    def call(self) -> Iterator[Account]:
        """Give an account for one call.

        Raises:
            BudgetExceededError: If there is no room for it.
        """
        with self._lock:
            self.check()
            self._under_way += 1
        try:
            yield _SharedAccount(self)
        finally:
            with self._lock:
                self._under_way -= 1

    def check_retry(self) -> None:
        """Refuse a further attempt at a call under way; see `check`."""
        self.check(self._under_way - 1)


class MeteredModel:
    """A language model whose calls are counted by a run's meter; threads may share it."""

    def __init__(self, lm: "dspy.BaseLM", meter: Meter) -> None:
        self.meter = meter
        self._lm = lm

    @property
    def name(self) -> str:
        """The model's id."""
        return str(getattr(self._lm, "model", "model"))

    @property
    def sampling(self) -> dict[str, Any]:
        """The settings that make the model's replies to one prompt differ, those that are set."""
        settings: dict[str, Any] = getattr(self._lm, "kwargs", {})
        return {name: settings[name] for name in SAMPLING if settings.get(name) is not None}

    def query(self, prompt: str) -> str:
        """Return the reply to a prompt; see `SubModel.query`."""
        try:
            reply = self.chat([{"role": "user", "content": prompt}])
        except BudgetExceededError:
            raise
        except Exception as error:  # providers' clients raise errors of their own kinds; a run outlives any of them
            raise SubCallError(reason_in_french(error)) from error
        if not reply.text.strip():
            raise SubCallError(reason_in_french(EmptyAnswerError()))
        return reply.text

    def chat(self, messages: Sequence[Message]) -> ModelReply:
        """Return the reply to a conversation.

        Raises:
            BudgetExceededError: If the budget has no room for a call.
            dspy.LMError: If the model fails, after its own number of further attempts.
        """
        import dspy

        from legal_rag.lenient_adapter import without_thoughts

        started = time.perf_counter()
        with self.meter.call() as account, dspy.context(trace=[]):
            accounted(self._lm, account)(messages=list(messages))
        return ModelReply(
            without_thoughts(account.last_text), account.usage, time.perf_counter() - started, account.last_cut_off
        )


class _SharedAccount(Account):
    """The account of one call, of which the run's meter hears at once."""

    def __init__(self, meter: Meter) -> None:
        self._meter, self._own = meter, Usage()
        super().__init__(meter.budget)

    @property
    def usage(self) -> Usage:
        """What the call came to so far."""
        return self._own

    @usage.setter
    def usage(self, usage: Usage) -> None:
        self._meter.add(usage.minus(self._own))
        self._own = usage

    @property
    def seconds_left(self) -> float:
        """Seconds until the run's limit."""
        return self._meter.seconds_left

    def check(self) -> None:
        """Refuse an attempt that the run's budget has no room for."""
        self._meter.check_retry()
