"""What every agent returns: an answer, what it rests on, and how it came about."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

from legal_rag.citations import Citation

Mode = Literal["evidence", "agent", "fallback"]
Status = Literal["answered", "abstained", "model_failed"]


class CitedDocument(NamedTuple):
    """A document that the agent found or read."""

    doc_id: str
    title: str
    decision_date: str


class Passage(NamedTuple):
    """A passage found, with its text and its score (MaxSim; higher is closer)."""

    doc_id: str
    chunk_id: str
    char_start: int
    char_end: int
    text: str
    score: float
    title: str
    decision_date: str


class Event(NamedTuple):
    """One step of a run, written down by the tool that took it."""

    type: str  # 'search', 'read' or 'answer'
    tool: str
    input: dict[str, Any]
    output_ids: list[str]  # chunk or document ids, in the order returned
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """An answer in French, and everything needed to check it."""

    question: str
    answer: str
    mode: Mode  # who answered: passages alone, the model, or passages because the model failed
    status: Status
    notice: str | None = None  # a French sentence about the run, for the reader
    documents: list[CitedDocument] = field(default_factory=list)
    citations: list[Citation] = field(default_factory=list)
    evidence: list[Passage] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the form that `legal-rag ask --json` prints."""
        values = {name: value for name, value in asdict(self).items() if not isinstance(value, list)}
        lists = {
            name: [item._asdict() for item in getattr(self, name)] for name in ("documents", "citations", "events")
        }
        return {**values, **lists}
