"""Settings of a deep read; nothing heavy is imported for them."""

from dataclasses import dataclass, field
from typing import Literal, get_args

from legal_rag.base.html import displayed
from legal_rag.llm import Budget

PlanName = Literal["auto", "rlm", "map"]
WORKERS = 8  # calls of the sub-model at once
REPLY_TOKENS, WINDOW_TOKENS = 2000, 800  # of a model's reply at most: a program or an answer; what one window answers
# Default of one read: a hundred decisions questioned and the programs around them. A hundred drawn from 4,097
# take 100 calls of 530,000 characters in all (median), the hundred longest in 129 of 3.6 million.
DEEP_READ_BUDGET = Budget(model_calls=400, tokens=2_000_000, seconds=1800.0)


@displayed
@dataclass(frozen=True, kw_only=True)
class Limits:
    """Resource limits of programs; what functions use is not counted."""

    seconds: float = 10.0  # computing, each program
    memory_mb: int = 128  # a session's variables; what is passed to a function may take as much of this process
    output_chars: int = 20_000  # printed, each program; what is beyond is counted, not kept
    calls: int = 50_000  # of functions, each session

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < float("inf"):
                raise ValueError(f"a sandbox's {name} must be above 0 and finite, got {value}")


@dataclass(frozen=True, kw_only=True)
class DeepReadSettings:
    """Everything that decides how a question is answered, except its budget."""

    plan: PlanName = "auto"  # rlm: programs; map: map-reduce; auto: map if no program was written
    limits: Limits = field(default_factory=Limits)  # of each program
    instructions: str = ""  # a user's own, in French
    workers: int = WORKERS
    map_documents: int = 20  # read by map-reduce where none are named: those ranked first

    def __post_init__(self) -> None:
        if self.plan not in get_args(PlanName):
            raise ValueError(f"plan must be one of {', '.join(get_args(PlanName))}, got {self.plan!r}")
        for name in ("workers", "map_documents"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
