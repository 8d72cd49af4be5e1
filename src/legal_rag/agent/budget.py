"""Budgets of a run: steps, calls, tokens, seconds, dollars."""

import dataclasses
import math
from dataclasses import dataclass, fields
from typing import Literal, NamedTuple

Limit = Literal["steps", "model_calls", "tokens", "seconds", "cost"]


class Usage(NamedTuple):
    """What model calls came to."""

    calls: int = 0  # requests that were sent
    cached: int = 0  # answered from the cache, which costs nothing
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0  # in dollars; None once the price of one of them is not known

    @property
    def tokens(self) -> int:
        """All tokens, read and written."""
        return self.prompt_tokens + self.completion_tokens

    def plus(self, other: "Usage") -> "Usage":
        """Return the sum of two."""
        return Usage(
            self.calls + other.calls,
            self.cached + other.cached,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            None if self.cost is None or other.cost is None else self.cost + other.cost,
        )

    def minus(self, earlier: "Usage") -> "Usage":
        """Return what came to it since an earlier state of the same account."""
        return Usage(
            self.calls - earlier.calls,
            self.cached - earlier.cached,
            self.prompt_tokens - earlier.prompt_tokens,
            self.completion_tokens - earlier.completion_tokens,
            None if self.cost is None or earlier.cost is None else max(0.0, self.cost - earlier.cost),
        )


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much one run may take; a run that reaches a limit ends with what it found so far, and says so."""

    steps: int = 10  # of the agent's loop: one thought and one tool call each
    model_calls: int = 30  # sent; repairs and the writing of the answer count, replies from the cache do not
    tokens: int = 400_000  # read and written, over all calls
    seconds: float = 600.0
    cost: float | None = None  # in dollars; None sets no limit

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not value > 0:
                raise ValueError(f"a budget's {field.name} must be above 0, got {value}")

    def reduced(self, share: float, calls: int) -> "Budget":
        """Return this budget less a share of each limit, and at least some calls; one call is always left."""
        left = 1 - share
        return dataclasses.replace(
            self,
            model_calls=max(1, min(int(self.model_calls * left), self.model_calls - calls)),
            tokens=max(1, int(self.tokens * left)),
            seconds=self.seconds * left,
            cost=None if self.cost is None else self.cost * left,
        )

    def reached(self, usage: Usage, seconds: float) -> Limit | None:
        """Return the limit that a run's calls have come to, steps apart; None if it may go on."""
        if seconds >= self.seconds:
            return "seconds"
        if usage.calls >= self.model_calls:
            return "model_calls"
        if usage.tokens >= self.tokens:
            return "tokens"
        if self.cost is not None and (usage.cost is None or usage.cost >= self.cost):
            return "cost"
        return None


UNLIMITED = Budget(model_calls=10**9, tokens=10**15, seconds=math.inf)


class BudgetExceededError(Exception):
    """A run has come to one of its limits."""

    def __init__(self, limit: Limit, budget: Budget, usage: Usage | None = None) -> None:
        self.limit = limit
        self.notice = f"Budget épuisé : {_limit_in_french(limit, budget, usage or Usage())}"  # a French sentence
        super().__init__(self.notice)


def _limit_in_french(limit: Limit, budget: Budget, usage: Usage) -> str:
    if limit == "cost" and usage.cost is None:
        return "le prix de ce modèle est inconnu, le coût ne peut donc pas être limité"
    value = getattr(budget, limit)
    number = f"{value:,.6f}".rstrip("0").rstrip(".").replace(",", "\u202f").replace(".", ",")
    many = abs(value) >= 2
    unit = {
        "steps": "étapes" if many else "étape",
        "model_calls": "appels au modèle" if many else "appel au modèle",
        "tokens": "jetons lus et écrits" if many else "jeton",
        "seconds": "secondes" if many else "seconde",
        "cost": "dollars" if many else "dollar",
    }[limit]
    return f"{number} {unit}"
