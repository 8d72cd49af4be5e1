"""The answer as a value: status, citations, evidence, events; its JSON form."""

import reprlib
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from legal_rag.agent.budget import Usage
from legal_rag.citations.checks import Citation, count_by_status
from legal_rag.corpus.cleaning import json_safe

if TYPE_CHECKING:
    from pydantic import TypeAdapter


Mode = Literal["evidence", "agent", "fallback", "deep_read"]
Status = Literal["answered", "abstained", "exhausted", "model_failed", "internal_error"]
EventType = Literal["search", "read", "think", "cite", "answer"]


class CitedDocument(NamedTuple):
    """A document that the agent found or read."""

    doc_id: str
    title: str
    decision_date: str


class TokenMatch(NamedTuple):
    """A word of the question and what it matches best in a passage: one term of MaxSim."""

    query_start: int  # characters of the question
    query_end: int
    char_start: int  # characters of the document's content, within the passage
    char_end: int
    similarity: float  # cosine, -1 to 1


class Passage(NamedTuple):
    """A passage found or cited, with its text, its surroundings, and its score."""

    doc_id: str
    chunk_id: str  # empty of a passage that was cited but not searched for
    char_start: int
    char_end: int
    text: str  # content[char_start:char_end]
    score: float | None  # of the search that found it; higher is closer; None of one that was cited only
    title: str
    decision_date: str
    before: str = ""  # the content just before char_start, for the reader
    after: str = ""  # the content from char_end on
    matches: tuple[TokenMatch, ...] = ()  # of the question's words, in their order; none where they were not computed


class Event(NamedTuple):
    """One thing that happened in a run, written down by whoever did it."""

    type: EventType
    tool: str
    input: dict[str, Any]
    output_ids: list[str]  # chunk or document ids, in the order returned
    seconds: float
    usage: Usage | None = None  # of the model calls made for it


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
    ungrounded_claims: list[str] = field(default_factory=list)  # sentences that state facts and cite nothing that holds
    grounding_rate: float | None = None  # share of the sentences stating facts that cite what holds; None: no such one
    evidence: list[Passage] = field(default_factory=list)  # best first
    events: list[Event] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)  # of the whole run
    seconds: float = 0.0  # of the whole run

    @property
    def citation_counts(self) -> dict[str, int]:
        """How many citations have each status, of those that some have."""
        return count_by_status(self.citations)

    def to_json(self) -> dict[str, Any]:
        """Return the form that `legal-rag ask --json` prints: all but the evidence."""
        record = self.to_record()
        del record["evidence"]
        return record

    def to_record(self) -> dict[str, Any]:
        """Return everything as plain values that JSON can hold; `from_record` reads them."""
        return {**json_safe(self), "citation_counts": self.citation_counts}

    @classmethod
    def from_record(cls, record: Any) -> "Prediction":
        """Return the prediction that `to_record` wrote.

        Raises:
            ValueError: If it is not of that form.
        """
        try:
            return _adapter().validate_python([record], strict=False)[0]
        except ValueError as error:
            raise ValueError(f"not a saved answer: {_first_problem(error)}") from error


def require_valid(prediction: Prediction) -> None:
    """Check that all that a prediction holds is of its type, and its numbers finite.

    Raises:
        ValueError: If something is not; the message names the first such value.
    """
    try:
        _adapter().validate_python([prediction])
    except ValueError as error:
        raise ValueError(_first_problem(error)) from error


@cache
def _adapter() -> "TypeAdapter[list[Prediction]]":
    from pydantic import ConfigDict, TypeAdapter

    # Numbers are no text, none is infinite, and an object that exists already is checked too. Of a list, because
    # pydantic gives a dataclass's own settings to no named tuple that it holds in two places.
    return TypeAdapter(
        list[Prediction], config=ConfigDict(strict=True, allow_inf_nan=False, revalidate_instances="always")
    )


def _first_problem(error: Any) -> str:
    """Write the first problem of pydantic's, which has one line or more for each, in one line."""
    problem = error.errors(include_url=False)[0]
    place = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in problem["loc"][1:]).lstrip(".")
    message = problem["msg"].removeprefix("Input ").replace("Field required", "is missing")
    return f"{place or 'it'} {message}, got {reprlib.repr(problem['input'])}"
