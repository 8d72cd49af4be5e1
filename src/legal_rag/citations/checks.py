"""Check a claim against the passage it cites."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from legal_rag.citations.claims import STOPS, Claim, Quotation, content_words, is_evidence
from legal_rag.citations.facts import WEAK, Fact, stands_in
from legal_rag.citations.markers import Reference
from legal_rag.citations.sources import NEGATION, SourceText, SourceTexts
from legal_rag.corpus.structure.tree import Speaker, speaker_in_french

Span = tuple[int, int]  # characters: start, end
Anchor = Quotation | Fact  # what must stand in the source as it is

# verified: every quotation, number, date and amount of the sentence stands there, and there is one;
# supported: there is none, but at least half of the sentence's content words stand there;
# relocated: the quotation is right, its place was not, and was recomputed; unverified: none of these.
CitationStatus = Literal["verified", "supported", "relocated", "unverified"]
HOLDING = frozenset({"verified", "supported", "relocated"})

MOST_CITED_CHARS = 6000  # two or three chunks; a marker over a whole decision points at nothing
MOST_ANCHORS = 60  # quotations and facts in one sentence: nobody writes more, and nobody could check them
MOST_PLACES = 50  # of a claim's rarest part that are tried
WIDEST_PLACE = 2000  # characters that a recomputed place may span
WIDEST_FACTS = 600  # and one that only facts were looked for in
AROUND_FACTS = 300  # characters either side in which the words beside a fact must stand
SUPPORTING_SHARE = 0.5  # of a sentence's content words that the cited text must hold when nothing is quoted
FOREIGN_WORDS = 4  # content words of a quotation that is looked for in other documents than the one named


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
    warnings: tuple[str, ...] = ()  # French sentences: what a reader should know of the words around the quotation

    @property
    def said_by(self) -> str:
        """Who speaks, in French; '' where nobody does."""
        return speaker_in_french(self.speaker, censured=self.censured)

    @property
    def holds(self) -> bool:
        """Whether the passage bears out what the answer says."""
        return self.status in HOLDING


class CitationChecker:
    """Checks claims against documents."""

    def __init__(self, sources: SourceTexts, searched: Sequence[str]) -> None:
        """Take the documents.

        Args:
            sources: All of them.
            searched: Ids of those in which a quotation that is not where its marker says is looked for.
        """
        self._sources, self._searched = sources, searched

    def check(self, claim: Claim, references: Sequence[Reference]) -> list[Citation]:
        """Return a citation for each reference; together the references answer for all of the claim."""
        passages = [self._passage(one) for one in references]
        if len(claim.anchors) > MOST_ANCHORS:
            return [_citation(source, span, "unverified") for source, span in passages]
        standing = [_standing(claim, source, span) for source, span in passages]
        anchors = set(claim.anchors)
        if anchors and anchors <= set().union(*standing) | self._known(claim, references):
            citations = [
                _citation(source, span, _status(claim, source, span, stands))
                for (source, span), stands in zip(passages, standing, strict=True)
            ]
            if any(one.holds for one in citations):
                return citations
        elif not anchors:
            return [_citation(source, span, _words_status(claim, source, span)) for source, span in passages]
        return self._relocated(claim, passages)

    def place(self, claim: Claim, source: SourceText, near: int = 0, *, loosely: bool = False) -> Span | None:
        """Return the narrowest span of a document in which all of a claim stands, the nearest of several to `near`.

        A claim that quotes nothing needs the words beside its facts as well, and facts that are near one another; not
        so `loosely`.
        """
        anchors = [
            one
            for one in claim.anchors
            if not (isinstance(one, Fact) and (one.kind in WEAK or _is_context(one, claim, source)))
        ]
        if len(claim.anchors) > MOST_ANCHORS:
            return None
        quotes = any(is_evidence(one) for one in claim.quotations)
        spans = []
        for one in sorted(anchors, key=lambda one: isinstance(one, Fact)):
            spans.append(_spans(one, source))
            if not spans[-1]:
                return None
        if not spans:
            return None
        widest = len(source.content) if loosely else WIDEST_PLACE if quotes else WIDEST_FACTS
        places = [
            one for one in _narrowest(spans) if one[1] - one[0] <= widest and self._all_stands(claim, source, one)
        ]
        if not quotes and not loosely:
            places = [one for one in places if _says_the_same(source, _around(one, source), claim)]
        return min(places, key=lambda one: (one[1] - one[0], abs(one[0] - near)), default=None)

    def _all_stands(self, claim: Claim, source: SourceText, span: Span) -> bool:
        return all(
            source.knows(one) or stands_in(one, source.content[slice(*span)]) for one in claim.facts if one.kind in WEAK
        )

    def stands(self, claim: Claim, citation: Citation) -> bool:
        """Tell whether all of a claim stands in a passage cited, or is known of its document."""
        source = self._sources.get(citation.doc_id)
        if source is None:
            return False
        standing = _standing(claim, source, (citation.char_start, citation.char_end))
        return all(
            one in standing or (isinstance(one, Fact) and _is_context(one, claim, source)) for one in claim.anchors
        )

    def sources_of(self, claim: Claim, *, apart_from: Iterable[str] = ()) -> list[tuple[SourceText, Span]]:
        """Return the documents searched in which all of a claim stands, and where; two at most, which is too many.

        What only states facts counts as standing in a document that states them, in whatever words.
        """
        found = []
        for doc_id in dict.fromkeys(self._searched):
            source = self._sources.get(doc_id)
            if source is None or doc_id in apart_from:
                continue
            if place := self.place(claim, source, loosely=not claim.quotations):
                found.append((source, place))
            if len(found) == 2:
                break
        if claim.quotations or len(found) != 1:
            return found
        ((source, _),) = found
        place = self.place(claim, source)
        return [(source, place)] if place else []

    def _passage(self, reference: Reference) -> tuple[SourceText, Span | None]:
        source = self._sources.get(reference.doc_id)
        if source is None:
            raise LookupError(f"no document {reference.doc_id!r} (references are resolved before they are checked)")
        if reference.place is None:
            return source, None
        start, end = reference.place
        return source, (start, end) if start < end <= min(len(source.content), start + MOST_CITED_CHARS) else None

    def _known(self, claim: Claim, references: Sequence[Reference]) -> set[Anchor]:
        sources = [self._sources.get(one.doc_id) for one in references]
        return {fact for fact in claim.facts if any(one and _is_context(fact, claim, one) for one in sources)}

    def _relocated(self, claim: Claim, passages: Sequence[tuple[SourceText, Span | None]]) -> list[Citation]:
        places = [self.place(claim, source, span[0] if span else 0) for source, span in passages]
        if any(places):
            return [
                _citation(source, place, "relocated") if place else _citation(source, span, "unverified")
                for (source, span), place in zip(passages, places, strict=True)
            ]
        first, *others = (_citation(source, span, "unverified") for source, span in passages)
        quoted = [word for one in claim.quotations for word in content_words(one.text)]
        if len(quoted) >= FOREIGN_WORDS:
            found = self.sources_of(claim, apart_from={source.doc_id for source, _ in passages})
            if len(found) == 1:
                return [_citation(*found[0], "relocated")]
        return [first, *others]


def _is_context(fact: Fact, claim: Claim, source: SourceText) -> bool:
    """Tell whether a fact need not stand beside what is cited: the document's own date or number; beside a quotation,
    an article or a decision that the document names elsewhere.
    """
    quotes = any(is_evidence(one) for one in claim.quotations)
    named = quotes and fact.kind in ("article", "case") and bool(source.fact_spans(fact))
    return named or source.knows(fact)


def count_by_status(citations: Sequence[Citation]) -> dict[str, int]:
    """Return how many citations have each status, of those that some have."""
    statuses = [citation.status for citation in citations]
    return {status: statuses.count(status) for status in dict.fromkeys(statuses)}


def supports(source: SourceText, span: Span, claim: Claim) -> bool:
    """Tell whether at least half of a claim's content words stand in a passage; not whether it says the same."""
    words, there = set(content_words(claim.text)), set(content_words(source.content[slice(*span)]))
    return bool(words) and len(words & there) >= SUPPORTING_SHARE * len(words)


def _says_the_same(source: SourceText, span: Span, claim: Claim) -> bool:
    """Tell whether a passage has half of a claim's words, and denies something if the claim does, else nothing."""
    denies = bool(NEGATION.search(claim.text.lower()))
    return supports(source, span, claim) and (not denies or bool(NEGATION.search(source.lower, *span)))


def _standing(claim: Claim, source: SourceText, span: Span | None) -> set[Anchor]:
    """Return what of a claim stands in a passage."""
    if span is None:
        return set()
    passage = source.content[slice(*span)]
    quotations = {
        one
        for one in claim.quotations
        if any(_holds(span, place, source) for place in source.quotation_spans(one.text))
    }
    return quotations | {one for one in claim.facts if stands_in(one, passage)}


def _holds(span: Span, place: Span, source: SourceText) -> bool:
    """Tell whether a span holds a place, but for a stop at its end."""
    start, end = place
    return span[0] <= start and start + len(source.content[start:end].rstrip(STOPS)) <= span[1]


def _status(claim: Claim, source: SourceText, span: Span | None, standing: set[Anchor]) -> CitationStatus:
    """Return the status of one passage of those that together hold all of a claim."""
    quotations = [one for one in claim.quotations if is_evidence(one)]
    if any(one in standing for one in quotations):
        return "verified"
    facts = {one.kind for one in claim.facts if one in standing}
    if not quotations and facts - WEAK:
        return "verified"
    supported = _words_status(claim, source, span)
    return "verified" if supported == "supported" and facts and not quotations else supported


def _words_status(claim: Claim, source: SourceText, span: Span | None) -> CitationStatus:
    return "supported" if span and supports(source, span, claim) else "unverified"


def _around(span: Span, source: SourceText) -> Span:
    return max(0, span[0] - AROUND_FACTS), min(len(source.content), span[1] + AROUND_FACTS)


def _spans(anchor: Anchor, source: SourceText) -> list[Span]:
    return source.fact_spans(anchor) if isinstance(anchor, Fact) else source.quotation_spans(anchor.text)


def _narrowest(spans: Sequence[Sequence[Span]]) -> list[Span]:
    """Return, for each span of the first anchor, the span from it to the nearest ones of all the others."""
    places = []
    for start, end in spans[0][:MOST_PLACES]:
        for others in spans[1:]:
            near = min((max(one[0] - end, start - one[1]), one) for one in others)[1]
            start, end = min(start, near[0]), max(end, near[1])
        places.append((start, end))
    return places


def _citation(source: SourceText, span: Span | None, status: CitationStatus) -> Citation:
    start, end = span or (0, 0)
    return Citation(source.doc_id, start, end, source.content[start:end], status)
