"""A second opinion on an answer: decisions to compare with those it cites.

In: a prediction, a Library, and perhaps a model. Out: pairs of decisions that cite the same article and ended in
opposite ways, which is no contradiction yet. That is said only where a model says so and quotes both decisions rightly.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from legal_rag.article_mentions import ArticleMention
from legal_rag.budget import Usage
from legal_rag.citation_links import CitationLinks, CitingDecision
from legal_rag.citations import Citation, format_marker
from legal_rag.compared_decisions import ComparedDecision, Reading, day_of
from legal_rag.court_ranks import court_of
from legal_rag.outcomes import opposites_of
from legal_rag.prediction import Prediction
from legal_rag.retriever import Corpus

if TYPE_CHECKING:
    import dspy

MOST_ARTICLES = 5  # of a decision that are looked up: those in the passages cited, else the rarest
MOST_CITING = 5000  # documents citing an article whose outcome is looked at; of more, those indexed last
MOST_READ = 20  # documents read for each decision cited
NEAR = 300  # characters on either side of a passage cited in which an article belongs to it

TO_COMPARE, CONTRADICTION = "décisions à comparer", "contradiction"
NO_TABLES = "Ce corpus n'a pas de table des articles cités : il faut un index construit par legal-rag index."
NOTHING_CITED = "La réponse ne cite aucune décision de ce corpus dont la citation tient."
NO_OUTCOME = "Aucune décision citée n'a de solution connue qui s'oppose à une autre, ni n'applique d'article d'un code."
NONE_FOUND = "Aucune décision qui cite les mêmes articles n'a une solution opposée."


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

    pairs: list[Pair] = field(default_factory=list)  # the later one first, then that of the higher court
    n_citing: int = 0  # documents that cite the articles looked up
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


def contradictions(
    prediction: Prediction, corpus: Corpus, lm: "dspy.BaseLM | None" = None, *, most: int = 5
) -> Comparison:
    """Find decisions to compare with those that an answer cites, and ask a model, if there is one, about each pair.

    Args:
        prediction: With its citations; those that do not hold are left aside.
        corpus: That the answer is from.
        lm: Asked once for each pair; None leaves them as decisions to compare.
        most: Pairs, and calls of the model.

    Raises:
        ValueError: If `most` is below 1.
    """
    if most < 1:
        raise ValueError(f"most must be at least 1, got {most}")
    started = time.perf_counter()
    links = corpus.citation_links()
    if links is None:
        return Comparison(notice=NO_TABLES)
    found = _Search(corpus, links, prediction.citations).comparison(most)
    if lm is not None and found.pairs:
        from legal_rag.contradiction_check import check_pairs

        found = check_pairs(found, prediction.citations, corpus, lm, most)
    return replace(found, seconds=time.perf_counter() - started)


class _Search:
    """One answer's decisions to compare."""

    def __init__(self, corpus: Corpus, links: CitationLinks, citations: Sequence[Citation]) -> None:
        self._corpus, self._links, self._citations = corpus, links, citations
        self._n_citing = self._n_looked_at = self._n_read = 0

    def comparison(self, most: int) -> Comparison:
        cited = self._cited()
        if not cited:
            return Comparison(notice=NOTHING_CITED)
        comparable = [reading for reading in cited if reading.outcome.kinds and reading.mentions]
        if not comparable:
            return Comparison(notice=NO_OUTCOME)
        # One of each decision cited, then the second ones, and so on; two that are both cited make one pair.
        rounds = zip_longest(*(list(self._pairs(reading, most)) for reading in comparable))
        pairs: dict[frozenset[str], Pair] = {}
        for pair in filter(None, chain.from_iterable(rounds)):
            pairs.setdefault(frozenset((pair.cited.doc_id, pair.other.doc_id)), pair)
        return Comparison(
            pairs=list(pairs.values())[:most],
            n_citing=self._n_citing,
            n_looked_at=self._n_looked_at,
            n_read=self._n_read,
            notice=None if pairs else NONE_FOUND,
        )

    def _cited(self) -> list[Reading]:
        found = []
        for doc_id in dict.fromkeys(one.doc_id for one in self._citations if one.holds):
            try:
                found.append(Reading.of(self._corpus.document(doc_id), self._corpus))
            except LookupError:  # removed since the answer was written
                continue
        return found

    def _pairs(self, cited: Reading, most: int) -> Iterator[Pair]:
        articles = self._articles(cited)
        rows = self._candidates(cited, list(articles))
        n_found = 0
        for row, terms in rows[:MOST_READ]:
            self._n_read += 1
            other = Reading.of(self._corpus.document(row.doc_id), self._corpus)
            if not cited.outcome.opposes(other.outcome) or cited.is_of_same_case(other):
                continue
            # The last place: what the parties say comes first, what the court says after it.
            last = {one.term: one for one in other.decided_by}
            mention = next((last[term] for term in terms if term in last), None)
            if mention is None:  # it names the article in the grounds annexed to it, or in its summary
                continue
            shown = (cited.shown_at(articles[mention.term]), other.shown_at(mention))
            yield Pair(*shown, mention.name, _reason(cited, other, mention.name))
            n_found += 1
            if n_found == most:
                return

    def _articles(self, cited: Reading) -> dict[str, ArticleMention]:
        """Return the articles to look up, each with one place in the decision cited, the best ones first."""
        spans = [(one.char_start, one.char_end) for one in self._citations if one.doc_id == cited.document.id]
        near = [one for one in cited.mentions if any(s - NEAR < one.end and one.start < e + NEAR for s, e in spans)]
        mentions = {one.term: one for one in near or cited.decided_by}  # the last place of each
        counts = {term: self._links.count_citing(term) for term in mentions}
        rarest = sorted((term for term in mentions if counts[term] > 1), key=lambda term: counts[term])[:MOST_ARTICLES]
        self._n_citing += sum(counts[term] - 1 for term in rarest)
        self._n_looked_at += sum(min(counts[term], MOST_CITING) - 1 for term in rarest)
        return {term: mentions[term] for term in rarest}

    def _candidates(self, cited: Reading, terms: Sequence[str]) -> list[tuple[CitingDecision, list[str]]]:
        """Return what may be compared, each with the articles shared, the best ones first."""
        # Where a source gives no outcome, the text may tell it.
        solutions = ["", *opposites_of(cited.outcome.kinds, self._links.solutions())]
        found: dict[CitingDecision, list[str]] = {}
        for term in terms:
            for row in self._links.citing(term, solutions, MOST_CITING):
                found.setdefault(row, []).append(term)
        court = cited.court
        rows = [
            (row, shared)
            for row, shared in found.items()
            if row.doc_id != cited.document.id
            and court.compares_with(court_of(row.juridiction, row.formation, row.title))
        ]
        return sorted(rows, key=lambda one: _place(cited, *one))


def _place(cited: Reading, row: CitingDecision, shared: list[str]) -> tuple[bool, int, int, int]:
    day, own = day_of(row.decision_date), cited.day
    later = day is not None and own is not None and day > own
    rank = court_of(row.juridiction, row.formation, row.title).rank
    return not later, rank, -len(shared), -(day or date.min).toordinal()


def _reason(cited: Reading, other: Reading, article: str) -> str:
    solutions = f"{_as_said(cited.outcome.words)} / {_as_said(other.outcome.words)}"
    higher = " ; formation de rang supérieur" if other.court.rank < cited.court.rank else ""
    return f"citent l'article {article} ; solutions opposées : {solutions} ; {_time_between(cited, other)}{higher}"


def _as_said(words: str) -> str:
    return words if words[:3].isupper() else words[:1].lower() + words[1:]


def _time_between(cited: Reading, other: Reading) -> str:
    if cited.day is None or other.day is None:
        return "dates non comparables"
    days = (other.day - cited.day).days
    if days == 0:
        return "du même jour"
    years, months = abs(days) // 365, abs(days) // 30
    many = f"{years} an{'s' if years > 1 else ''}" if years else f"{months} mois" if months else _days(abs(days))
    return f"{'postérieure' if days > 0 else 'antérieure'} de {many}"


def _days(number: int) -> str:
    return f"{number} jour{'s' if number > 1 else ''}"


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
        parts.append(f"   {name} : {one.title or one.doc_id}{date_of}, {_as_said(one.outcome)} {marker}")
    for quotation in pair.quotations or ():
        marker = format_marker(quotation.doc_id, quotation.char_start, quotation.char_end)
        parts.append(f"   « {' '.join(quotation.quote.split())} » {marker}")
    return "\n".join(parts)
