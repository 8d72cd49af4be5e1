"""Comparisons: pairs of decisions that a reader should hold against each other, as values, JSON and French text.

In: what `legal_rag.contradictions` found. Out: what is shown of it.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from legal_rag.budget import Usage
from legal_rag.citations import Citation, format_marker
from legal_rag.compared_decisions import ComparedDecision

TO_COMPARE, CONTRADICTION = "décisions à comparer", "contradiction"


class Pair(NamedTuple):
    """Two decisions that a reader should compare."""

    cited: ComparedDecision  # by the answer
    other: ComparedDecision
    article: str  # that both cite: "L. 1152-1 du code du travail"
    reason: str  # in French
    quotations: tuple[Citation, Citation] | None = None  # that contradict each other, by a model, both verified

    @property
    def label(self) -> str:
        """What the two are: 'contradiction' only where a model said so and both quotations stand."""
        return CONTRADICTION if self.quotations else TO_COMPARE

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        quotations = [one._asdict() for one in self.quotations] if self.quotations else None
        decisions = {"cited": self.cited._asdict(), "other": self.other._asdict()}
        return {"label": self.label, **self._asdict(), **decisions, "quotations": quotations}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Decisions to compare with those that an answer cites."""

    pairs: list[Pair] = field(
        default_factory=list
    )  # for each decision cited: later ones first, of those the higher court's
    n_citing: int = 0  # citations, by other documents, of the articles looked up
    n_looked_at: int = 0  # of them, those whose outcome was looked at
    n_read: int = 0  # of them, those that were read
    notice: str | None = None  # a French sentence: why there is none, or what went wrong
    usage: Usage = field(default_factory=Usage)  # of the model
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "pairs": [pair.to_json() for pair in self.pairs],
            "n_citing": self.n_citing,
            "n_looked_at": self.n_looked_at,
            "n_read": self.n_read,
            "notice": self.notice,
            "usage": self.usage._asdict(),
            "seconds": self.seconds,
        }


def render_comparison(comparison: Comparison) -> str:
    """Write a comparison for a reader, in French: each pair with the reason, the two places and any quotations."""
    lines = [f"{n}. {_written(pair)}" for n, pair in enumerate(comparison.pairs, start=1)]
    head = [f"{TO_COMPARE.capitalize()} ({len(lines)})"] if lines else []
    looked_at = [_scope(comparison)] if comparison.n_citing else []
    notice = [comparison.notice] if comparison.notice else []
    return "\n\n".join([*head, *lines, *looked_at, *notice])


def _scope(comparison: Comparison) -> str:
    looked_at, citing = (f"{n:,}".replace(",", "\u202f") for n in (comparison.n_looked_at, comparison.n_citing))
    return (
        f"Solutions examinées : {looked_at} sur {citing} citations des mêmes articles ; décisions lues : "
        f"{comparison.n_read}. Une solution opposée n'est pas une contradiction."
    )


def _written(pair: Pair) -> str:
    parts = [f"{pair.label.capitalize()} : {pair.reason}"]
    for name, one in (("citée", pair.cited), ("autre", pair.other)):
        date_of = f" ({one.decision_date})" if one.decision_date else ""
        marker = format_marker(one.doc_id, one.char_start, one.char_end)
        parts.append(f"   {name} : {one.title or one.doc_id}{date_of}, {as_said(one.outcome)} {marker}")
    for quotation in pair.quotations or ():
        marker = format_marker(quotation.doc_id, quotation.char_start, quotation.char_end)
        parts.append(f"   « {' '.join(quotation.quote.split())} » {marker}")
    return "\n".join(parts)


def as_said(words: str) -> str:
    """Write an outcome within a sentence: 'Cassation' as 'cassation', but 'QPC renvoi' as it is."""
    return words if words[:3].isupper() else words[:1].lower() + words[1:]
