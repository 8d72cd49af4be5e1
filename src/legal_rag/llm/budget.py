"""Budgets of an answer, and usage: steps, calls, tokens, seconds, dollars."""

import contextlib
import dataclasses
import math
import operator
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Literal, NamedTuple

from legal_rag.base import deadline

Limit = Literal["steps", "model_calls", "tokens", "seconds", "cost"]


class Usage(NamedTuple):
    """Sum over model calls."""

    calls: int = 0  # requests sent
    cached: int = 0  # stored replies, which cost nothing
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0  # in dollars; None once a price is unknown

    @property
    def tokens(self) -> int:
        """All tokens, read and written."""
        return self.prompt_tokens + self.completion_tokens

    def plus(self, other: "Usage") -> "Usage":
        """Return the sum of two."""
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Usage(*map(operator.add, self[:4], other[:4]))._replace(cost=cost)

    def minus(self, earlier: "Usage") -> "Usage":
        """Return the usage since an earlier state of the same tracker."""
        cost = None if self.cost is None or earlier.cost is None else max(0.0, self.cost - earlier.cost)
        return Usage(*map(operator.sub, self[:4], earlier[:4]))._replace(cost=cost)


class Completion(NamedTuple):
    """A model's text: the reply to one request, or an answer."""

    text: str = ""
    usage: Usage = Usage()
    seconds: float = 0.0
    cut_off: bool = False  # it ended at the model's token limit


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
        return dataclasses.replace(
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
        """Run the block until the budget's time is over; loops and waits within it check `deadline`.

        Raises:
            BudgetExceededError: If no time is left, or the deadline interrupted the block.
        """
        self.check_seconds()
        try:
            with deadline.within(self.seconds_left):
                yield
        except deadline.DeadlineError:
            raise BudgetExceededError("seconds", self.budget) from None

    @contextlib.contextmanager
    def call(self, within: Budget | None = None) -> Iterator[None]:
        """Let the block make one request; those under way count as calls, so that threads do not exceed their number.

        Raises:
            BudgetExceededError: If the budget, or a tighter one (`within`), has no room for another call.
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
