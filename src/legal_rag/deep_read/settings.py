"""How a deep read works, as a value: by programs or by the plan without code, where programs run, how many at once."""

from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from legal_rag.deep_read.sandbox import Limits

PlanName = Literal["auto", "rlm", "map"]
SANDBOX: Final = "sandbox"
EnvironmentName = Literal["sandbox", "docker", "modal", "prime", "daytona", "e2b"]


@dataclass(frozen=True, kw_only=True)
class DeepReadSettings:
    """Everything that decides how a question is read for, its budget apart."""

    plan: PlanName = "auto"  # rlm: programs; map: each document answers, without code; auto: map where no program came
    environment: EnvironmentName = SANDBOX  # where programs run; the others are rlms' own, and give no functions
    limits: Limits = field(default_factory=Limits)  # of each program
    accept_no_walls: bool = False  # run programs where the system cannot contain them
    instructions: str = ""  # a user's own, in French
    workers: int = 8  # questions to the sub-model at once
    max_depth: int = 1  # of deep reads that programs start themselves; 1 allows none
    map_documents: int = 20  # read by the plan without code where none are named: those ranked first

    def __post_init__(self) -> None:
        for name, allowed in (("plan", get_args(PlanName)), ("environment", get_args(EnvironmentName))):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}")
        for name in ("workers", "max_depth", "map_documents"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
