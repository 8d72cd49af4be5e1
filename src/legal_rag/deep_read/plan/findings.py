"""What the plan without code finds, as values: what each part of a document says, and what became of the whole run."""

from dataclasses import dataclass, field
from typing import NamedTuple

from legal_rag.budget import BudgetExceededError
from legal_rag.citation_checks import Citation

Span = tuple[int, int]  # characters: start, end
MOST_NAMED = 5  # documents that a notice names


class Finding(NamedTuple):
    """What a model says that a part of a document brings to the question, and the quotations that bear it out."""

    doc_id: str
    window: Span  # of the document, that the model was shown
    answer: str  # the model's words, which nobody has checked
    citations: tuple[Citation, ...]  # quotations that stand in the document; without one, the finding is no fact

    @property
    def is_verified(self) -> bool:
        """Whether a quotation bears it out."""
        return bool(self.citations)


@dataclass(frozen=True, kw_only=True)
class PlanResult:
    """What a run came to; all lists are in the order in which the documents were given."""

    text: str  # the answer in French, with markers; empty where there is nothing to say, see `is_abstention`
    findings: tuple[Finding, ...] = ()  # of what was said to be pertinent; those that are not verified are no facts
    read: tuple[str, ...] = ()  # documents that were read whole
    unread: tuple[str, ...] = ()  # documents that were not, because the budget came to its end
    failed: dict[str, str] = field(default_factory=dict)  # documents that a part of could not be read, and why
    dropped_quotes: int = 0  # that stand in no document, or prove nothing
    exhausted: BudgetExceededError | None = None  # the limit that ended the run
    failure: str = ""  # why the answer is not the root model's, in French without a full stop
    quoted: tuple[Citation, ...] = ()  # of a text that no model wrote: it is these quotations, in this order
    remarks: tuple[str, ...] = ()  # for the reader, in French without a full stop

    @property
    def verified(self) -> tuple[Finding, ...]:
        """The findings that quotations bear out."""
        return tuple(one for one in self.findings if one.is_verified)

    @property
    def is_quoted(self) -> bool:
        """Whether the text is a list of quotations; cut out of documents, there is nothing in it to check."""
        return bool(self.quoted)

    @property
    def notice(self) -> str:
        """What a reader must know of the run, in French without a last full stop; empty if it went to its end."""
        said = [
            self.exhausted.notice if self.exhausted else "",
            self.failure,
            _counted("non lue jusqu'au bout", "non lues jusqu'au bout", self.unread),
            _counted("n'a pas pu être lue", "n'ont pas pu être lues", tuple(self.failed)),
            *self.remarks,
        ]
        return ". ".join(filter(None, said))


def _counted(one: str, several: str, doc_ids: tuple[str, ...]) -> str:
    if not doc_ids:
        return ""
    named = ", ".join(doc_ids[:MOST_NAMED]) + (", …" if len(doc_ids) > MOST_NAMED else "")
    return f"1 décision {one} ({named})" if len(doc_ids) == 1 else f"{len(doc_ids)} décisions {several} ({named})"
