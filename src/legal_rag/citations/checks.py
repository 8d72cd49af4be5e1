"""Check a claim against the passage it cites."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from legal_rag.base.html import displayed
from legal_rag.base.text import Span
from legal_rag.citations.claims import STOPS, Claim, Quotation, is_evidence
from legal_rag.citations.markers import MarkedReference
from legal_rag.citations.sources import SourceText, SourceTexts
from legal_rag.citations.surroundings import (
    check_surroundings,
    courts_named,
    courts_to_find,
    facts_to_find,
    quotes_a_term,
)
from legal_rag.citations.wording import content_words, says_the_same, telling_stems
from legal_rag.law.tree import Speaker, speaker_in_french

# verified: every quotation of the sentence is word for word in the passage cited, and the sentence states nothing
# else that can be checked and is not there; a sentence that quotes nothing is never verified.
# relocated: the same, at another place of the same decision, or of the only other decision read that holds it.
# supported: quotes nothing; every fact is in one or two neighbouring sentences of the passage, with most of its
# content words, and negation and direction agree there: same facts, same words, not same meaning.
# unverified: none of these.
CitationStatus = Literal["verified", "supported", "relocated", "unverified"]
HOLDING = frozenset({"verified", "relocated"})

MOST_CITED_CHARS = 6000  # two or three chunks; a marker over a whole decision points at nothing
MOST_ANCHORS = 60  # quotations and facts in one sentence: nobody writes more, and nobody could check them
MOST_REFERENCES = 60  # of one sentence
MOST_PLACES = 50  # of a claim's first quotation that are tried
WIDEST_PLACE = 2000  # characters that a recomputed place may span
FOREIGN_WORDS = 4  # content words of a quotation that is looked for in other documents than the one named
LONGEST_SENTENCE = 2500  # characters of one or two sentences that may support a claim
MOST_TRIED = 400  # sentences of a document that a claim without a place is compared with


@displayed
class Citation(NamedTuple):
    """A passage that an answer rests on: `quote` is the document's text at these offsets."""

    doc_id: str
    char_start: int
    char_end: int
    quote: str
    status: CitationStatus
    section: tuple[str, ...] = ()  # titles, the main part's first; empty where they are not known
    speaker: Speaker | None = None  # who speaks in most of it; None: nobody, or not known
    censured: bool = False  # it quotes reasoning that the court then quashes
    warnings: tuple[str, ...] = ()  # French sentences: what a reader should know about the words around the quotation

    @property
    def said_by(self) -> str:
        """Who speaks, in French; '' where nobody does."""
        return speaker_in_french(self.speaker, censured=self.censured)

    @property
    def holds(self) -> bool:
        """Whether the passage holds, word for word, what the answer quotes."""
        return self.status in HOLDING


class CitationChecker:
    """Checks claims against documents."""

    def __init__(self, sources: SourceTexts, searched: Sequence[str]) -> None:
        """Take the documents.

        Args:
            sources: All of them.
            searched: Ids of those searched for a quotation that is not where its marker says.
        """
        self._sources, self._searched = sources, searched

    def check(self, claim: Claim, references: Sequence[MarkedReference]) -> list[Citation]:
        """Return a citation for each different reference; together they must hold all of the claim."""
        passages = [self._locate_reference(reference) for reference in dict.fromkeys(references)]
        if len(passages) > MOST_REFERENCES or len(claim.quotations) + len(claim.facts) > MOST_ANCHORS:
            return [_cite(source, span, "unverified") for source, span in passages]
        if not claim.quotes:
            return [_judge_unquoted(claim, source, span) for source, span in passages]
        return self._verify_quotations(claim, passages) or self._relocate_quotations(claim, passages)

    def sources_of(self, claim: Claim, *, apart_from: Iterable[str] = ()) -> list[Citation]:
        """Cite the searched documents that hold all that a claim quotes; at most two, since two are ambiguous."""
        citations: list[Citation] = []
        for doc_id in dict.fromkeys(self._searched):
            source = self._sources.get(doc_id)
            if source is None or doc_id in apart_from:
                continue
            if place := _narrowest_place(claim, source, 0):
                citations.append(_cite_checked(claim, source, place, "verified"))
            if len(citations) == 2:
                break
        return citations

    def _locate_reference(self, reference: MarkedReference) -> tuple[SourceText, Span | None]:
        source = self._sources.get(reference.doc_id)
        if source is None:
            raise LookupError(f"no document {reference.doc_id!r} (references are resolved before they are checked)")
        if reference.place is None:
            return source, None
        start, end = reference.place
        return source, (start, end) if start < end <= min(len(source.content), start + MOST_CITED_CHARS) else None

    def _verify_quotations(self, claim: Claim, passages: Sequence[tuple[SourceText, Span | None]]) -> list[Citation]:
        """Return the citations of passages that together hold all quotations; empty if one is missing."""
        held = [_quotations_within(claim, source, span) for source, span in passages]
        if not set(claim.quotations) <= {quotation for quotations in held for quotation in quotations}:
            return []
        citations = []
        for (source, span), spans in zip(passages, held, strict=True):
            part = claim.only(spans)
            if not part.quotes or span is None:
                citations.append(_cite(source, span, "unverified"))
                continue
            others = [other for (other, _), spans in zip(passages, held, strict=True) if spans and other is not source]
            citations.append(_cite_checked(claim, source, span, "verified", spans, others))
        return citations

    def _relocate_quotations(self, claim: Claim, passages: Sequence[tuple[SourceText, Span | None]]) -> list[Citation]:
        places = [_narrowest_place(claim, source, span[0] if span else 0) for source, span in passages]
        if any(places):
            return [
                _cite_checked(claim, source, place, "relocated") if place else _cite(source, span, "unverified")
                for (source, span), place in zip(passages, places, strict=True)
            ]
        unverified = [_cite(source, span, "unverified") for source, span in passages]
        quoted = [word for quotation in claim.quotations for word in content_words(quotation.text)]
        if len(quoted) >= FOREIGN_WORDS:
            elsewhere = self.sources_of(claim, apart_from={source.doc_id for source, _ in passages})
            if len(elsewhere) == 1 and elsewhere[0].holds:
                return [elsewhere[0]._replace(status="relocated")]
        return unverified


def count_by_status(citations: Sequence[Citation]) -> dict[str, int]:
    """Count citations by status, without zeros."""
    statuses = [citation.status for citation in citations]
    return {status: statuses.count(status) for status in dict.fromkeys(statuses)}


def _cite_checked(
    claim: Claim,
    source: SourceText,
    cited: Span,
    status: CitationStatus,
    places: dict[Quotation, Span] | None = None,
    others: Sequence[SourceText] = (),
) -> Citation:
    if places is None:
        spans = {quotation: source.quotation_spans(quotation.text) for quotation in claim.quotations}
        places = {quote: min(hits, key=lambda span: abs(span[0] - cited[0])) for quote, hits in spans.items() if hits}
    part = claim.only(places)
    judged = check_surroundings(part, source, [places[quotation] for quotation in part.quotations], cited, others)
    if judged.contradicted or (quotes_a_term(part) and not _is_supported(part, source, cited)):
        return _cite(source, cited, "unverified")
    return _cite(source, cited, status)._replace(warnings=judged.warnings)


def _quotations_within(claim: Claim, source: SourceText, span: Span | None) -> dict[Quotation, Span]:
    if span is None:
        return {}
    places = {}
    for quotation in claim.quotations:
        place = next((hit for hit in source.quotation_spans(quotation.text) if _span_holds(span, hit, source)), None)
        if place:
            places[quotation] = place
    return places


def _span_holds(span: Span, place: Span, source: SourceText) -> bool:
    """Does a span hold a place, except for a stop at its end?"""
    start, end = place
    return span[0] <= start and start + len(source.content[start:end].rstrip(STOPS)) <= span[1]


def _narrowest_place(claim: Claim, source: SourceText, near: int) -> Span | None:
    """Return the narrowest span of a document with all quotations of a claim, the nearest to `near`."""
    quotations = sorted(claim.quotations, key=lambda quotation: -is_evidence(quotation))
    spans = []
    for quotation in quotations:
        spans.append(source.quotation_spans(quotation.text))
        if not spans[-1]:
            return None
    places = [span for span in _narrowest_spans(spans) if span[1] - span[0] <= WIDEST_PLACE]
    return min(places, key=lambda span: (span[1] - span[0], abs(span[0] - near)), default=None)


def _narrowest_spans(spans: Sequence[Sequence[Span]]) -> Iterator[Span]:
    """Yield, for each span of the first quotation, the span from it to the nearest ones of all the others."""
    for start, end in spans[0][:MOST_PLACES]:
        for others in spans[1:]:
            near = min((max(span[0] - end, start - span[1]), span) for span in others)[1]
            start, end = min(start, near[0]), max(end, near[1])
        yield start, end


def _judge_unquoted(claim: Claim, source: SourceText, span: Span | None) -> Citation:
    """Cite a claim that quotes nothing: supported where one or two sentences state it."""
    if len(claim.text.split()) < 2 and not claim.facts:
        return _cite(source, span, "unverified")
    if span is not None:
        return _cite(source, span, "supported" if _is_supported(claim, source, span) else "unverified")
    sentences = source.sentences_in(0, len(source.content))[:MOST_TRIED]
    place = next(_supporting_spans(claim, source, sentences), None)
    return _cite(source, place, "supported" if place else "unverified")


def _is_supported(claim: Claim, source: SourceText, span: Span) -> bool:
    return next(_supporting_spans(claim, source, source.sentences_in(*span)), None) is not None


def _sentences_and_pairs(sentences: Sequence[Span]) -> Iterator[Span]:
    yield from sentences
    for (start, _), (_, end) in pairwise(sentences):
        if end - start <= LONGEST_SENTENCE:
            yield start, end


def _supporting_spans(claim: Claim, source: SourceText, sentences: Sequence[Span]) -> Iterator[Span]:
    """Yield the sentences, and pairs of neighbours, that state all the facts of a claim and say the same."""
    stems, facts, courts = telling_stems(claim.text), facts_to_find(claim, source), courts_to_find(claim, source)
    known = telling_stems(source.own.court)
    if not (stems or facts):
        return
    for span in _sentences_and_pairs(sentences):
        text = source.content[slice(*span)]
        if len(stems & telling_stems(text)) * 2 < len(stems):  # most are not worth reading for facts
            continue
        if not all(map(source.stated(*span).holds, facts)):
            continue
        if any(
            not any(_span_holds(span, at, source) for at in source.quotation_spans(quotation.text))
            for quotation in claim.quotations
        ):
            continue
        named = courts_named(text) if courts else []
        if all(any(court <= name for name in named) for court in courts) and says_the_same(
            claim.text, text, known=known
        ):
            yield span


def _cite(source: SourceText, span: Span | None, status: CitationStatus) -> Citation:
    start, end = span or (0, 0)
    return Citation(source.doc_id, start, end, source.content[start:end], status)
