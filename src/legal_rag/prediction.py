"""What every agent returns: an answer, what it rests on, and how it came about."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, NamedTuple

from legal_rag.budget import Usage
from legal_rag.citations import Citation, count_by_status

Mode = Literal["evidence", "agent", "fallback", "deep_read"]
Status = Literal["answered", "abstained", "exhausted", "model_failed"]
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
        lists = ("documents", "citations", "events")
        values = {name: value for name, value in asdict(self).items() if name not in (*lists, "evidence")}
        rows = {name: [item._asdict() for item in getattr(self, name)] for name in lists}
        for row in rows["events"]:
            row["usage"] = row["usage"]._asdict() if row["usage"] else None
        return {
            **values,
            "usage": self.usage._asdict(),
            "citation_counts": self.citation_counts,
            **rows,
        }

    def to_record(self) -> dict[str, Any]:
        """Return everything as plain values that JSON can hold; `from_record` reads them."""
        evidence = [one._asdict() | {"matches": [match._asdict() for match in one.matches]} for one in self.evidence]
        return {**self.to_json(), "evidence": evidence}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "Prediction":
        """Return the prediction that `to_record` wrote.

        Raises:
            ValueError: If it is not of that form.
        """
        try:
            known = {one.name: record[one.name] for one in fields(cls)}
            evidence = [
                Passage(**one | {"matches": tuple(TokenMatch(**match) for match in one["matches"])})
                for one in known["evidence"]
            ]
            events = [
                Event(**one | {"usage": Usage(**one["usage"]) if one["usage"] else None}) for one in known["events"]
            ]
            return cls(
                **known
                | {
                    "documents": [CitedDocument(**one) for one in known["documents"]],
                    "citations": [Citation(**one) for one in known["citations"]],
                    "evidence": evidence,
                    "events": events,
                    "usage": Usage(**known["usage"]),
                }
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a saved run: {type(error).__name__}: {error}") from error
