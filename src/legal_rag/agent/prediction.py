"""The answer as a value: status, citations, evidence, events, its JSON form; why there is none, in French."""

import html
import reprlib
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from legal_rag.base.html import Rows, displayed
from legal_rag.base.text import json_safe, one_line, within_sentence
from legal_rag.citations.checks import Citation, count_by_status
from legal_rag.corpus.documents import Document
from legal_rag.graph.types import AnswerFacts, ExtractionResult
from legal_rag.law.citation import legal_date
from legal_rag.llm import ModelError, Usage

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from legal_rag.citations.enricher import EnrichedResponse


Mode = Literal["evidence", "agent", "fallback", "deep_read"]
# "unverified": a program gave the answer, and not all of it follows from what the corpus functions returned
Status = Literal["answered", "unverified", "abstained", "exhausted", "model_failed", "internal_error"]
# How surely quoted passages answer: see `legal_rag.agent.doubt`
Grade = Literal["answers", "close", "unsure"]
EventType = Literal["search", "read", "think", "cite", "answer"]
UNCITED = "La réponse du modèle ne citait aucun passage vérifiable"
PARAPHRASE = "Le modèle a répondu avec ses propres mots : comparez-les à ceux des passages qu'il indique"
NOT_FRENCH = "La réponse du modèle n'était pas en français"
_UNVERIFIED = ("Une citation n'a pas pu être vérifiée", "{} citations n'ont pas pu être vérifiées")
_REMOVED = ("Une citation a été retirée", "{} citations ont été retirées")


@displayed
class CitedDocument(NamedTuple):
    """A document that the agent found or read."""

    doc_id: str
    title: str
    decision_date: str
    juridiction: str = ""
    formation: str = ""
    solution: str = ""
    applied_laws: tuple[str, ...] = ()
    citation: str = ""  # as lawyers write it: see `legal_rag.law.citation`
    publication: str = ""  # "publié", "inédit"; empty where it is not known
    ecli: str = ""
    link: str = ""  # address of its public page: its source's, or built from its id
    fate: str = ""  # in French, if it was quashed or reversed since: "cassé en partie par Cass. soc., 3 mai 2018"
    version: str = ""  # of an article, when it is in force: "version en vigueur du 1er mai 2008 au 9 août 2016"

    @classmethod
    def of(cls, document: Document) -> "CitedDocument":
        """Take the metadata of a document."""
        columns = {name: getattr(document, name) for name in cls._fields[1 : cls._fields.index("citation")]}
        cited = document.citation
        return cls(
            document.id,
            **columns,
            citation=cited.text,
            publication=cited.publication,
            ecli=one_line(str(document.extra.get("ecli") or "")),
            link=cited.links[0].url if cited.links else "",
            version=document.force.version_in_french if document.force else "",
        )

    @property
    def outcome(self) -> str:
        """How it ended, as it stands within a sentence: "rejet"; empty where it is not known."""
        return within_sentence(self.solution)

    @property
    def ending(self) -> str:
        """How it ended, and what became of it since: "rejet ; rabattu par Cass. soc., 3 mai 2018"."""
        return " ; ".join(filter(None, (self.outcome, self.fate)))

    @property
    def facts(self) -> list[str]:
        """What a reader looks for beside its citation, in French: court, date, outcome, publication, ECLI, version."""
        court = ", ".join(filter(None, (self.juridiction, within_sentence(self.formation))))
        facts = (
            *(court, legal_date(self.decision_date), self.outcome, self.fate),
            *(self.publication, self.ecli, self.version),
        )
        return [fact for fact in facts if fact]


@displayed
class TokenMatch(NamedTuple):
    """A word of the question and what it matches best in a passage: one term of MaxSim."""

    query_start: int  # characters of the question
    query_end: int
    char_start: int  # characters of the document's content, within the passage
    char_end: int
    similarity: float  # cosine, -1 to 1


@displayed
class Passage(NamedTuple):
    """A passage found or cited."""

    doc_id: str
    chunk_id: str  # empty for a passage cited but not found by a search
    char_start: int
    char_end: int
    text: str  # content[char_start:char_end]
    score: float | None  # of the search, higher is better; None for one that was only cited
    title: str
    decision_date: str
    before: str = ""  # content just before char_start, for the reader
    after: str = ""  # content from char_end on
    matches: tuple[TokenMatch, ...] = ()  # of the question's words, in their order; empty if not computed

    def is_cited_by(self, citation: Citation) -> bool:
        """Whether a citation overlaps the passage."""
        overlaps = citation.char_start < self.char_end and self.char_start < citation.char_end
        return overlaps and citation.doc_id == self.doc_id


@displayed
class Event(NamedTuple):
    """A step of the work on an answer."""

    type: EventType
    tool: str
    input: dict[str, Any]
    output_ids: list[str]  # chunk or document ids, in the order returned
    seconds: float
    usage: Usage | None = None  # of its model calls


@displayed
@dataclass(frozen=True, kw_only=True)
class Prediction:
    """An answer in French, with the evidence to check it."""

    question: str
    answer: str
    mode: Mode  # who answered: passages alone, the model, or passages because the model failed
    status: Status
    grade: Grade | None = None  # of quoted passages; None of a model's answer, and without any
    notice: str | None = None  # for the reader, in French
    documents: list[CitedDocument] = field(default_factory=list)
    citations: list[Citation] = field(default_factory=list)
    ungrounded_claims: list[str] = field(default_factory=list)  # sentences with facts but without a citation that holds
    grounding_rate: float | None = None  # share of the sentences with facts whose citations hold; None without any
    evidence: list[Passage] = field(default_factory=list)  # best first
    events: list[Event] = field(default_factory=list)
    trajectory: dict[str, Any] = field(default_factory=dict)  # as DSPy's: thought_0, tool_name_0…
    usage: Usage = field(default_factory=Usage)  # in all
    seconds: float = 0.0  # in all
    answer_id: str = ""  # see `new_answer_id`; empty of one that is older than its ids
    extraction: ExtractionResult | None = None  # what its tags said; None without any
    graph: AnswerFacts | None = None  # what the Library's graph took of that, under `answer_id`

    def __post_init__(self) -> None:
        for name in ("documents", "citations", "evidence", "events"):
            object.__setattr__(self, name, Rows(getattr(self, name)))

    def _repr_html_(self) -> str:
        texts = (f"<b>{html.escape(self.question)}</b>", *map(html.escape, (self.answer, self.notice or "")))
        lines = (f"<p>{text}</p>".replace("\n", "<br>") for text in texts if text)
        known = {document.doc_id: document for document in self.documents}
        rows = [
            {
                "décision": known[cited.doc_id].citation if cited.doc_id in known else cited.doc_id,
                "issue": known[cited.doc_id].ending if cited.doc_id in known else "",
                "passage": cited.quote,
                "contrôle": " : ".join(filter(None, (cited.status_in_french, cited.reason))),
            }
            for cited in dict.fromkeys(self.citations)
        ]
        return "".join(lines) + Rows(rows)._repr_html_()

    @property
    def citation_counts(self) -> dict[str, int]:
        """Number of citations by status, without zeros."""
        return count_by_status(self.citations)

    def to_json(self) -> dict[str, Any]:
        """Return what `legal-rag ask --json` prints: all but the evidence and the trajectory."""
        record = self.to_record()
        del record["evidence"], record["trajectory"]
        return record

    def to_record(self) -> dict[str, Any]:
        """Return everything as JSON values, which `from_record` reads."""
        return {**json_safe(self), "citation_counts": self.citation_counts}

    @classmethod
    def from_record(cls, record: Any) -> "Prediction":
        """Rebuild the prediction that `to_record` wrote; ValueError if it is malformed."""
        try:
            return _adapter().validate_python([record], strict=False)[0]
        except ValueError as error:
            raise ValueError(f"not a saved answer: {_first_problem(error)}") from error


def new_answer_id() -> str:
    """Return an answer's id: time in UTC, then eight random digits; ids sort by time."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}-{secrets.token_hex(4)}"


@cache
def _adapter() -> "TypeAdapter[list[Prediction]]":
    from pydantic import ConfigDict, TypeAdapter

    # Strict, and instances are checked again. A list, because pydantic does not pass a dataclass's settings on to a
    # named tuple that it holds in two places.
    return TypeAdapter(
        list[Prediction], config=ConfigDict(strict=True, allow_inf_nan=False, revalidate_instances="always")
    )


def _first_problem(error: Any) -> str:
    problem = error.errors(include_url=False)[0]
    place = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in problem["loc"][1:]).lstrip(".")
    message = problem["msg"].removeprefix("Input ").replace("Field required", "is missing")
    return f"{place or 'it'} {message}, got {reprlib.repr(problem['input'])}"


def reason_in_french(error: Exception) -> str:
    """Describe what ended an answer, without a full stop."""
    kind = f"Le modèle de langage n'a pas pu répondre (erreur {type(error).__name__})"
    return error.reason if isinstance(error, ModelError) else kind


def bug_in_french(error: Exception) -> str:
    """Describe a bug of this package, without a full stop."""
    return f"Une erreur interne de legal_rag ({type(error).__name__}) a interrompu l'agent ; le journal dit où"


def notice_of(answer: "EnrichedResponse", *reasons: str) -> str | None:
    """Join reasons (French, without full stops; empty ones are skipped) and the counts of citations that failed."""
    if answer.cut:
        reasons = (*reasons, "La réponse, trop longue pour être vérifiée, a été coupée")
    counted = ((answer.counts.get("unverified", 0), _UNVERIFIED), (len(answer.removed), _REMOVED))
    cited = [singular if n == 1 else plural.format(n) for n, (singular, plural) in counted if n]
    return ". ".join(filter(None, [*reasons, *cited])) or None
