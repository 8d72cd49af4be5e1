"""The account of one run: each call of its language model is counted, and held to the run's budget.

In: a DSPy language model and a budget. Out: a copy of the model, private to the run, whose calls are refused once a
limit is reached, are cut short by the seconds left, and are added up. The model itself stays as it was.
"""

import contextlib
import functools
import math
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import dspy
import pydantic
from dspy.utils.exceptions import AdapterParseError, is_retryable_lm_error

from legal_rag.budget import Budget, BudgetExceededError, Usage
from legal_rag.cleaning import storable
from legal_rag.lenient_adapter import MOST_CHARS, LenientAdapter

CONNECT_SECONDS = 10.0  # to reach a server, at most
SHORTEST_CALL = 0.05  # seconds
GRID = 1.25  # limits are rounded up to powers of this: DSPy keeps open connections for each that it has seen
LONGEST_WAIT = 60.0  # seconds between two attempts, where the server names no time


class Reply(NamedTuple):
    """What a model replied to one call."""

    fields: dict[str, str] | None  # of the signature; None where they could not be read
    text: str  # as it came
    cut_off: bool  # it ended where the model ran out of tokens
    usage: Usage  # of the call, and of those since the last reply that failed
    seconds: float  # likewise


class Account:
    """What a run's calls came to, and whether there may be another."""

    def __init__(self, budget: Budget) -> None:
        self.budget, self.usage = budget, Usage()
        self.last_text, self.last_cut_off = "", False
        self._started = time.monotonic()
        self._was_sent = False

    @property
    def seconds_left(self) -> float:
        """Seconds until the budget's limit, counted from the account's opening."""
        return self.budget.seconds - (time.monotonic() - self._started)

    def check(self) -> None:
        """Refuse a call that the budget has no room for.

        Raises:
            BudgetExceededError: If there is none.
        """
        if limit := self.budget.reached(self.usage, self.budget.seconds - self.seconds_left):
            raise BudgetExceededError(limit, self.budget, self.usage)

    def check_seconds(self) -> None:
        """Refuse to go on after the last second.

        Raises:
            BudgetExceededError: If it has passed.
        """
        if self.seconds_left <= 0:
            raise BudgetExceededError("seconds", self.budget)

    @contextlib.contextmanager
    def open_call(self) -> Iterator[None]:
        """Count what happens in the block as one attempt: as a call unless DSPy's cache answered it."""
        self._was_sent = False
        outer = dspy.settings.usage_tracker
        try:
            with dspy.context(usage_tracker=_Tracker(self, outer), disable_history=False):
                yield
        # An attempt that failed was sent too, whatever it failed of.
        except BaseException:
            self.usage = self.usage.plus(Usage(calls=1))
            raise

    def add_tokens(self, usage: dict[str, Any]) -> None:
        """Count the tokens of a reply that a server sent: DSPy reports them of such replies only."""
        self._was_sent = True
        tokens = (usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0)
        self.usage = self.usage.plus(Usage(0, 0, *tokens))

    def add_reply(self, entry: dict[str, Any]) -> None:
        """Count a reply, as DSPy describes it in a history, and remember its text."""
        self.usage = self.usage.plus(Usage(calls=1, cost=entry.get("cost")) if self._was_sent else Usage(cached=1))
        first, *_ = entry.get("outputs") or [""]
        text = first.get("text") if isinstance(first, dict) else first
        self.last_text, self.last_cut_off = storable(str(text or "")[:MOST_CHARS]), is_cut_off(entry)


class ModelCalls:
    """The language model as one run calls it: by a predictor and its inputs."""

    def __init__(self, lm: "dspy.BaseLM", budget: Budget, *, keeps_trace: bool = False) -> None:
        """Open an account.

        Args:
            lm: The model; it is copied.
            budget: Of the run, which begins now.
            keeps_trace: Leave DSPy's trace to those who called, for optimisers.
        """
        self.account = Account(budget)
        self.seconds = 0.0  # that all calls took, those that failed among them
        self._replied = (Usage(), 0.0)  # what they had come to at the last reply
        self._lm = accounted(lm, self.account)
        # A trace of one's own goes when the call is done: DSPy's would hold every text that was shown.
        self._settings: dict[str, Any] = {} if keeps_trace else {"trace": []}

    def ask(self, predictor: "dspy.Module", **inputs: Any) -> Reply:
        """Call a predictor.

        Raises:
            BudgetExceededError: If the budget has no room for a call.
            dspy.LMError: If the model fails, after the model's own number of further attempts.
        """
        started = time.perf_counter()
        fields: dict[str, str] | None = None
        try:
            with dspy.context(lm=self._lm, adapter=LenientAdapter(), warn_on_type_mismatch=False, **self._settings):
                prediction = predictor(lm=self._lm, **inputs)
                fields = {name: storable(str(value or "")) for name, value in prediction.items()}
        except AdapterParseError:
            pass  # the text is what there is
        finally:
            self.seconds += time.perf_counter() - started
        account, (usage, seconds) = self.account, self._replied
        self._replied = (account.usage, self.seconds)
        return Reply(
            fields, account.last_text, account.last_cut_off, account.usage.minus(usage), self.seconds - seconds
        )


def accounted(lm: "dspy.BaseLM", account: Account) -> "dspy.BaseLM":
    """Return a copy of a language model whose calls are counted in an account and held to its budget."""
    copied = lm.copy(num_retries=0)
    lm_class: Any = type(lm)
    copied.__class__ = _accounted_class(lm_class)
    copied.account, copied.attempts = account, getattr(lm, "num_retries", 0) + 1
    return copied


def is_cut_off(entry: dict[str, Any]) -> bool:
    """Tell whether a reply, as DSPy describes it in a history, ended where the model ran out of tokens."""
    response = entry.get("response")  # in DSPy's own form, several of them, or in the form of OpenAI's API
    several = response if isinstance(response, list | tuple) else getattr(response, "choices", None) or [response]
    return any(getattr(one, "finish_reason", None) == "length" for one in several)


class CallTimeout(pydantic.BaseModel):
    """How long one call may take. To DSPy's cache it is the model's own limit, whatever is left of a run's seconds."""

    own: float | None  # the model's setting, in seconds; None where it has none
    _seconds: float = pydantic.PrivateAttr(default=0.0)

    @classmethod
    def cut(cls, own: float | None, left: float) -> "CallTimeout":
        """Return the shorter one of a model's own limit and the seconds left, which are rounded up (see `GRID`)."""
        timeout = cls(own=own)
        rounded = GRID ** math.ceil(math.log(max(left, SHORTEST_CALL), GRID))
        timeout._seconds = rounded if own is None else min(float(own), rounded)
        return timeout

    def __float__(self) -> float:
        """Return the seconds, which is how LiteLLM reads it; DSPy's own engine reads the four properties."""
        return self._seconds

    @property
    def connect(self) -> float:
        """Seconds to reach the server."""
        return min(self._seconds, CONNECT_SECONDS)

    @property
    def read(self) -> float:
        """Seconds to wait for the next bytes."""
        return self._seconds

    write = pool = read


class _Tracker:
    """Stands where DSPy reports the usage of replies that did not come from its cache."""

    def __init__(self, account: Account, outer: Any) -> None:
        self._account, self._outer = account, outer

    def add_usage(self, model: str, usage: dict[str, Any]) -> None:
        self._account.add_tokens(usage)
        if self._outer is not None:
            self._outer.add_usage(model, usage)


class _Accounted:
    """What `accounted` puts before a language model's own class, so that DSPy still meets that class."""

    account: Account
    attempts: int
    kwargs: dict[str, Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for attempt in range(self.attempts):
            self.account.check()
            try:
                with self.account.open_call():
                    return super().__call__(*args, **kwargs, **self._limits())  # type: ignore[misc]
            except dspy.LMError as error:
                wait = error.retry_after if error.retry_after is not None else min(2.0**attempt, LONGEST_WAIT)
                last = attempt + 1 == self.attempts
                if last or not is_retryable_lm_error(error) or wait >= self.account.seconds_left:
                    self.account.check_seconds()  # then the time that the call had was cut short
                    raise
                time.sleep(wait)
        raise AssertionError("a call is made at least once")

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Accounted":
        return self  # DSPy copies modules with all that they hold; an account is there once

    def _limits(self) -> dict[str, Any]:
        own = self.kwargs.get("timeout")
        if not isinstance(getattr(self, "_engine_spec", None), str) or not isinstance(own, int | float | None):
            return {}  # an engine of somebody's own takes none, and limits for each part of a call are left as they are
        return {"timeout": CallTimeout.cut(own, self.account.seconds_left)}

    def update_history(self, entry: dict[str, Any]) -> None:
        """Count the reply, and keep nothing of it: a history of every prompt would fill the memory."""
        self.account.add_reply(entry)


@functools.cache
def _accounted_class(lm_class: type) -> type:
    return type(f"Accounted{lm_class.__name__}", (_Accounted, lm_class), {})
