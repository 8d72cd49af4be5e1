"""Decisions as they are compared: court, day and outcome of each, and where it cites which articles.

In: a document of a corpus. Out: a `Reading` of it, and what a reader is shown of it.
"""

from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import NamedTuple

from legal_rag.article_mentions import ArticleMention, find_grounds, find_mentions
from legal_rag.corpus import Document
from legal_rag.court_ranks import Court, court_of
from legal_rag.extraction.decision_parts import Operative, operative_part
from legal_rag.names import own_keys
from legal_rag.outcomes import CASSATION, Outcome, outcome_of
from legal_rag.retriever import Corpus

Span = tuple[int, int]  # characters: start, end

AROUND = 1200  # characters of a decision shown to a model on either side of a place
DISPOSED = 600  # of its operative part
CUT = "\n[…]\n"


class ComparedDecision(NamedTuple):
    """One of two decisions to compare, with the place where it cites the article that both cite."""

    doc_id: str
    title: str
    decision_date: str
    juridiction: str
    formation: str
    outcome: str  # as its source says, else as its text does
    char_start: int
    char_end: int
    quote: str  # content[char_start:char_end]


@dataclass(frozen=True)
class Reading:
    """A decision that was read in order to be compared."""

    document: Document
    outcome: Outcome
    part: Operative | None

    @classmethod
    def of(cls, document: Document, corpus: Corpus) -> "Reading":
        """Read a document of a corpus."""
        court = court_of(document.juridiction, document.formation, document.title)
        entities = None if document.solution.strip() else corpus.entities_of(document.id)
        outcome = outcome_of(document.solution, court, document.content, entities)
        return cls(document, outcome, operative_part(document.content))

    @cached_property
    def mentions(self) -> list[ArticleMention]:
        """Where it cites articles that it may have decided by, in order."""
        return find_mentions(self.document.content, self.part)

    @property
    def decided_by(self) -> list[ArticleMention]:
        """Of these, the ones that it decided by as far as one can tell: a cassation rests on those in its visa."""
        in_visa = [one for one in self.mentions if one.in_visa] if CASSATION in self.outcome.kinds else []
        return in_visa or self.mentions

    @property
    def court(self) -> Court:
        """The court that decided."""
        return court_of(self.document.juridiction, self.document.formation, self.document.title)

    @property
    def day(self) -> date | None:
        """The day of the decision; None where it is not known to the day."""
        return day_of(self.document.decision_date)

    def is_of_same_case(self, other: "Reading") -> bool:
        """Tell whether two documents are one decision: they have a name in common, or the same text."""
        return self.document.content == other.document.content or not set(own_keys(self.document)).isdisjoint(
            own_keys(other.document)
        )

    def shown_at(self, mention: ArticleMention) -> ComparedDecision:
        """Return what a reader is shown, with one of its mentions."""
        one, span = self.document, (mention.start, mention.end)
        return ComparedDecision(
            one.id,
            one.title,
            one.decision_date,
            one.juridiction,
            one.formation,
            self.outcome.words,
            *span,
            one.content[slice(*span)],
        )

    def around(self, mention: ArticleMention, context: int) -> str:
        """Return a mention and so many characters on either side of it."""
        return self.document.content[max(mention.start - context, 0) : mention.end + context]

    def says(self, span: Span) -> bool:
        """Tell whether a span of the text is the court's own, as far as one can tell: no ground of appeal."""
        start, end = span
        if self.part is not None and end > self.part.end:
            return False
        return not any(first < end and start < last for first, last in find_grounds(self.document.content))

    def excerpt(self, places: list[Span]) -> str:
        """Return the text around some places, and how its operative part begins."""
        text = self.document.content
        spans = [(max(start - AROUND, 0), min(end, start + AROUND) + AROUND) for start, end in places]
        if self.part is not None:
            spans.append((self.part.start, min(self.part.end, self.part.start + DISPOSED)))
        return CUT.join(text[start:end].strip() for start, end in _joined(sorted(spans)))


def day_of(written: str) -> date | None:
    """Read a day as documents hold it, in ISO 8601; None where it is none."""
    try:
        return date.fromisoformat(written[:10])
    except ValueError:
        return None


def _joined(spans: list[Span]) -> list[Span]:
    joined = spans[:1]
    for start, end in spans[1:]:
        if start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
