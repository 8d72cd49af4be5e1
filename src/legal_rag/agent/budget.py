"""Budgets for an answer, and usage: steps, calls, tokens, seconds, dollars."""

import dataclasses
import math
import operator
from dataclasses import dataclass, fields
from typing import Literal, NamedTuple

Limit = Literal["steps", "model_calls", "tokens", "seconds", "cost"]


class Usage(NamedTuple):
    """Sum over model calls."""

    calls: int = 0  # requests sent
    cached: int = 0  # replies from the cache, which cost nothing
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


class TokenPrice(NamedTuple):
    """Dollars for one token."""

    prompt: float
    reply: float

    def of(self, prompt_tokens: int, reply_tokens: int) -> float:
        """Return what they cost."""
        return prompt_tokens * self.prompt + reply_tokens * self.reply


FREE = TokenPrice(0.0, 0.0)


class Need(NamedTuple):
    """What a call may take."""

    prompt_tokens: int = 0  # at the most
    least_prompt_tokens: int = 0
    reply_tokens: int = 0  # at the most
    price: TokenPrice | None = FREE  # None if it is unknown

    def usage(self, reply_tokens: int) -> Usage:
        """Return the most that it takes with a reply of so many tokens."""
        cost = self.price.of(self.prompt_tokens, reply_tokens) if self.price else 0.0
        return Usage(1, 0, self.prompt_tokens, reply_tokens, cost)


NOTHING = Need()


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits of one answer; at a limit the agent answers with what it has found so far, and says so."""

    steps: int = 10  # of the agent's loop: one thought and one tool call each
    model_calls: int = 30  # requests sent, for repairs and the answer as well; cached replies do not count
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

    def reached(self, usage: Usage, seconds: float) -> Limit | None:
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
        """Return the limit that finished calls went beyond: a server may count more tokens than were reserved."""
        if usage.tokens > self.tokens:
            return "tokens"
        return "cost" if self.cost is not None and usage.cost is not None and usage.cost > self.cost else None

    def room(self, usage: Usage, need: Need) -> tuple[int, Limit]:
        """Return how many tokens the reply to a call may have after some usage, and the limit that says so."""
        tokens = self.tokens - usage.tokens - need.prompt_tokens
        if self.cost is None or need.price == FREE:
            return tokens, "tokens"
        if need.price is None:
            return 0, "cost"
        left = self.cost - (usage.cost or 0.0) - need.price.of(need.prompt_tokens, 0)
        asked = need.reply_tokens
        affordable = math.floor(min(left / need.price.reply, asked)) if need.price.reply else asked * (left >= 0)
        return (tokens, "tokens") if tokens <= affordable else (affordable, "cost")

    def in_french(self) -> str:
        """Say what it allows at most: « 30 appels au modèle, 400 000 jetons lus et écrits, 600 secondes »."""
        limits: tuple[Limit, ...] = ("model_calls", "tokens", "seconds", "cost")
        return ", ".join(_limit_in_french(one, self, Usage()) for one in limits if getattr(self, one) is not None)


UNLIMITED = Budget(model_calls=10**9, tokens=10**15, seconds=math.inf)


class BudgetExceededError(Exception):
    """A limit of the budget has been reached."""

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
