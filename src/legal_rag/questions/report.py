"""What a run came to: plain values that the card and the command line show."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from legal_rag.question_settings import QuestionSettings
from legal_rag.questions.checkpoint import Record


class Totals:
    """Records added up."""

    def __init__(self) -> None:
        self.statuses: Counter[str] = Counter()
        self.reasons: dict[str, Counter[str]] = {"rejected": Counter(), "failed": Counter()}
        self.replies = self.prompt_tokens = self.completion_tokens = 0
        self.seconds = self.scores = 0.0
        self.cost: float | None = 0.0

    def add(self, record: Record) -> None:
        """Add a document's record."""
        self.statuses[record.status] += 1
        if record.status != "accepted":
            self.reasons[record.status][record.reason] += 1
        self.replies += record.replies
        self.prompt_tokens += record.prompt_tokens
        self.completion_tokens += record.completion_tokens
        self.seconds += record.seconds
        self.scores += record.row["score"] if record.row else 0.0
        self.cost = None if self.cost is None or record.cost is None else self.cost + record.cost

    def shown(self) -> dict[str, Any]:
        """Return what a progress bar tells."""
        shown: dict[str, Any] = {name: self.statuses[name] for name in ("accepted", "rejected")}
        if self.statuses["failed"]:
            shown["failed"] = self.statuses["failed"]
        shown["tokens"] = self.prompt_tokens + self.completion_tokens
        return {**shown, "cost": "unknown" if self.cost is None else f"${self.cost:.2f}"}


@dataclass(frozen=True, kw_only=True)
class QuestionReport:
    """What a dataset came to, all runs in its folder together."""

    folder: Path
    model: str
    corpus: str  # the source that the index names
    settings: QuestionSettings
    documents: int  # accepted, duplicates, rejected and failed add up to it
    accepted: int  # rows
    duplicates: int  # passed every check, but their question nearly repeats one before
    rejected: dict[str, int]  # by reason
    failed: dict[str, int]  # documents that the model failed on, by the kind of error; the next run tries them again
    splits: dict[str, int]  # rows
    replies: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None  # in dollars; None where a price is not known
    mean_score: float | None  # of what passed; None if nothing did
    seconds: float  # that documents took, added up: less than that has passed where several were under way
