"""Decisions that cite the same article and came out the other way."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, NamedTuple

from legal_rag.agent.compared_decisions import (
    ArticleMention,
    Closeness,
    ComparedReading,
    Comparison,
    Pair,
    as_said,
    day_of,
    render_comparison,
)
from legal_rag.agent.prediction import Prediction
from legal_rag.citations.checks import Citation
from legal_rag.corpus.patterns.courts import court_of
from legal_rag.extraction.outcomes import opposites_of
from legal_rag.library.citation_graph import CitationLinks, CitingDecision
from legal_rag.retriever.retriever import Corpus

if TYPE_CHECKING:
    import dspy


__all__ = ["Comparison", "Pair", "contradictions", "render_comparison"]

MOST_ARTICLES = 5  # of a decision that are looked up: those in the passages cited, else the rarest
MOST_CITING = 5000  # documents citing an article whose outcome is looked at; of more, those indexed last
MOST_READ = 20  # documents read for each decision cited
MOST_MENTIONS = 3  # of one article in one decision that are compared
NEAR = 300  # characters on either side of a passage cited in which an article belongs to it
CONTEXT = 800  # characters on either side of an article by which two decisions are about the same thing
LEAST_CLOSE = 0.2  # of two such contexts: less is mostly another subject

NO_TABLES = "Ce corpus n'a pas de table des articles cités : il faut un index construit par legal-rag index."
NOTHING_CITED = "La réponse ne cite aucune décision de ce corpus dont la citation tient."
NO_OUTCOME = "Des décisions citées, aucune n'a à la fois une solution qui en a une contraire et un article d'un code."
NONE_FOUND = "Aucune décision lue sur les mêmes articles n'est assez proche et de solution opposée."


def contradictions(
    prediction: Prediction, corpus: Corpus, lm: "dspy.BaseLM | None" = None, *, most: int = 5
) -> Comparison:
    """Find decisions to compare with those that an answer cites, and ask a model, if there is one, about each pair.

    Of what cites the same article with an opposite outcome, at most `MOST_READ` decisions are read for each one cited:
    those that came later than it first, of these the higher courts', of these the latest. Those whose text around the
    article has most in common with the cited one's are kept, and listed in that same order.

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
        from legal_rag.agent.contradiction_check import check_pairs

        found = check_pairs(found, prediction.citations, corpus, lm, most)
    return replace(found, seconds=time.perf_counter() - started)


class _Match(NamedTuple):
    """A decision to compare with one that the answer cites."""

    other: ComparedReading
    here: ArticleMention  # in the decision cited
    there: ArticleMention
    closeness: float  # of the two places, 0 to 1

    def place(self, cited: ComparedReading) -> tuple[bool, int, int]:
        """Return its place in the order: later than the one cited, of a higher court, later."""
        document = self.other.document
        return _place(cited, document.decision_date, self.other.court.rank)


class _Search:
    """One answer's decisions to compare."""

    def __init__(self, corpus: Corpus, links: CitationLinks, citations: Sequence[Citation]) -> None:
        self._corpus, self._links, self._citations = corpus, links, citations
        self._closeness = Closeness(corpus.lexical_index())
        self._n_citing = self._n_looked_at = self._n_read = 0

    def comparison(self, most: int) -> Comparison:
        cited = self._cited()
        if not cited:
            return Comparison(notice=NOTHING_CITED)
        comparable = [reading for reading in cited if reading.outcome.kinds and reading.mentions]
        if not comparable:
            return Comparison(notice=NO_OUTCOME)
        # One of each decision cited, then the second ones, and so on; two that are both cited make one pair.
        rounds = zip_longest(*(self._pairs(reading, most) for reading in comparable))
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

    def _cited(self) -> list[ComparedReading]:
        found = []
        for doc_id in dict.fromkeys(one.doc_id for one in self._citations if one.holds):
            try:
                found.append(ComparedReading.of(self._corpus.document(doc_id), self._corpus))
            except LookupError:  # removed since the answer was written
                continue
        return found

    def _pairs(self, cited: ComparedReading, most: int) -> list[Pair]:
        """Return the closest ones, in their order."""
        found = sorted(self._matches(cited), key=lambda one: -one.closeness)[:most]
        return [
            Pair(
                cited.shown_at(one.here),
                one.other.shown_at(one.there),
                one.there.name,
                _reason(cited, one.other, one.there.name),
            )
            for one in sorted(found, key=lambda one: one.place(cited))
        ]

    def _matches(self, cited: ComparedReading) -> Iterator[_Match]:
        articles = self._articles(cited)
        for row in self._candidates(cited, list(articles))[:MOST_READ]:
            self._n_read += 1
            other = ComparedReading.of(self._corpus.document(row.doc_id), self._corpus)
            if cited.outcome.opposes(other.outcome) and not cited.is_of_same_case(other):
                closest = max(self._meetings(cited, articles, other), key=lambda one: one.closeness, default=None)
                if closest is not None and closest.closeness >= LEAST_CLOSE:
                    yield closest

    def _meetings(
        self, cited: ComparedReading, articles: dict[str, ArticleMention], other: ComparedReading
    ) -> Iterator[_Match]:
        """Yield the places where a decision cites one of the articles, as far as it decided by it."""
        n_of: dict[str, int] = dict.fromkeys(articles, 0)
        for there in reversed(other.decided_by):  # what the court says comes after what the parties say
            here = articles.get(there.term)
            if here is None or n_of[there.term] == MOST_MENTIONS or here.is_of_other_part(there):
                continue
            n_of[there.term] += 1
            near = self._closeness.of(cited.around(here, CONTEXT), other.around(there, CONTEXT))
            yield _Match(other, here, there, near)

    def _articles(self, cited: ComparedReading) -> dict[str, ArticleMention]:
        """Return the articles to look up, each with one place in the decision cited, the rarest ones first."""
        spans = [(one.char_start, one.char_end) for one in self._citations if one.doc_id == cited.document.id]
        near = [one for one in cited.mentions if any(s - NEAR < one.end and one.start < e + NEAR for s, e in spans)]
        mentions = {one.term: one for one in near or cited.decided_by}  # the last place of each
        counts = {term: self._links.count_citing(term) for term in mentions}
        rarest = sorted((term for term in mentions if counts[term] > 1), key=lambda term: counts[term])[:MOST_ARTICLES]
        self._n_citing += sum(counts[term] - 1 for term in rarest)
        self._n_looked_at += sum(min(counts[term], MOST_CITING) - 1 for term in rarest)
        return {term: mentions[term] for term in rarest}

    def _candidates(self, cited: ComparedReading, terms: Sequence[str]) -> list[CitingDecision]:
        """Return what may be compared, in the order in which it should be read."""
        # Where a source gives no outcome, the text may tell it.
        solutions = ["", *opposites_of(cited.outcome.kinds, self._links.solutions())]
        rows = {row: court_of(row.juridiction, row.formation, row.title) for row in self._citing(terms, solutions)}
        found = [
            row for row, court in rows.items() if row.doc_id != cited.document.id and cited.court.compares_with(court)
        ]
        return sorted(found, key=lambda row: _place(cited, row.decision_date, rows[row].rank))

    def _citing(self, terms: Sequence[str], solutions: Sequence[str]) -> Iterator[CitingDecision]:
        for term in terms:
            yield from self._links.citing(term, solutions, MOST_CITING)


def _place(cited: ComparedReading, written: str, rank: int) -> tuple[bool, int, int]:
    day, own = day_of(written), cited.day
    later = day is not None and own is not None and day > own
    return not later, rank, -(day or date.min).toordinal()


def _reason(cited: ComparedReading, other: ComparedReading, article: str) -> str:
    solutions = f"{as_said(cited.outcome.words)} / {as_said(other.outcome.words)}"
    higher = " ; formation de rang supérieur" if other.court.rank < cited.court.rank else ""
    return f"citent l'article {article} ; solutions opposées : {solutions} ; {_time_between(cited, other)}{higher}"


def _time_between(cited: ComparedReading, other: ComparedReading) -> str:
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
