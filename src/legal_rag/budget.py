"""Budgets: how much a run may cost, in steps, model calls, tokens, seconds and dollars, and what it came to.

In: limits, and each model call's usage. Out: the sum, and the limit that was reached, if one was.
"""

from dataclasses import dataclass, fields
from typing import NamedTuple


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
