"""Check and complete the citations of an answer."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from legal_rag.citations.checks import Citation, CitationChecker, count_by_status
from legal_rag.citations.claims import STOPS, AnswerText, Claim, Quotation, is_evidence
from legal_rag.citations.facts import Fact
from legal_rag.citations.markers import DocumentNames, MarkedText, Marker, format_marker, take_out_markers
from legal_rag.citations.parties import EntityLookUp, NamedParties, entity_look_up
from legal_rag.citations.sources import SourceTexts
from legal_rag.corpus.folding import fold_text

_ABSTENTION = re.compile(
    r"\baucune? (?:passage|décision|élément|information|document|texte|résultat|réponse|jurisprudence)\b"
    r"[^.]{0,60}?\b(?:pertinent|ne (?:permet|répond|traite|correspond|porte|concerne|contient)|n'(?:a été |est |a pu )"
    r"|trouvé|disponible|répond)"
    r"|\baucun passage pertinent\b|\bne (?:me )?permet(?:tent)?(?: donc)? pas de (?:vous )?(?:répondre|conclure)"
    r"|\bne contien(?:t|nent) (?:pas|aucun)|\bje (?:n'ai (?:pas |rien )|ne (?:peux|puis|suis)[^.]{0,20} pas[^.]{0,20} )"
    r"(?:pu |de |en mesure de )?(?:trouv|répond|identifi)|\bimpossible de (?:vous )?répondre"
)
_BLANK_BEFORE_STOP = re.compile(r"(?<![ \u00a0\u202f])[ \u00a0\u202f]+(?=[.,)])")


class EnrichedResponse(NamedTuple):
    """An answer after its citations were checked, mended and completed."""

    text: str
    citations: list[Citation]  # in the order of the text
    ungrounded_claims: list[str]  # sentences that state facts and cite nothing that holds
    removed: list[str]  # markers of unknown documents, as they were written; they are no longer in the text
    grounding_rate: float | None  # share of the sentences stating facts that cite what holds; None: no such sentence
    abstained: bool  # whether the answer says that nothing was found

    @property
    def counts(self) -> dict[str, int]:
        """How many citations have each status, of those that some have."""
        return count_by_status(self.citations)


def is_abstention(text: str) -> bool:
    """Tell whether an answer says that it found nothing."""
    return _ABSTENTION.search(fold_text(text)) is not None


class _Placed(NamedTuple):
    """A citation, and the place in the plain text after which its marker is written."""

    offset: int
    citation: Citation
    added: bool = False  # by us: no marker stood there


class Enrichment:
    """One answer on its way to be checked."""

    def __init__(
        self, marked: MarkedText, sources: SourceTexts, searched: Sequence[str], entities_of: EntityLookUp
    ) -> None:
        """Take an answer.

        Args:
            marked: The answer, its markers taken out.
            sources: The documents.
            searched: Ids of those that quotations without a right marker are searched in.
            entities_of: Tells what was extracted of a document.
        """
        self._marked, self._text = marked, AnswerText(marked.plain)
        self._checker = CitationChecker(sources, searched)
        self._parties = NamedParties(sources, searched, entities_of)
        self._naming: set[int] = set()  # where sentences begin that name a party and cite nothing
        self._placed: list[_Placed] = []
        self._offsets: list[int] = []  # of the placed, once all are in order
        self._claims: list[tuple[Claim, bool]] = []  # checked ones, in order, and whether a citation of theirs holds

    def response(self) -> EnrichedResponse:
        """Check the markers, cite the rest, and put the answer together."""
        self._check_markers()
        self._cite_the_rest()
        self._placed.sort(key=lambda one: one.offset)
        self._offsets = [one.offset for one in self._placed]
        citations = [one.citation for one in self._placed]
        claims, ungrounded = self._grounding()
        return EnrichedResponse(
            text=self._written(),
            citations=citations,
            ungrounded_claims=ungrounded,
            removed=self._marked.removed,
            grounding_rate=1 - len(ungrounded) / claims if claims else None,
            abstained=not any(one.holds for one in citations) and is_abstention(self._text.plain),
        )

    def _check_markers(self) -> None:
        done = 0
        for group in self._groups():
            claim = self._claim_before(group, done)
            references = [one for marker in group for one in marker.references]
            citations = self._checker.check(claim, references)
            offsets = [marker.offset for marker in group for _ in marker.references]
            # Fewer citations than references: all of them were wrong, and one document bears the claim out.
            placed = [_Placed(*one) for one in zip(offsets, citations, strict=False)]
            self._placed += dict.fromkeys(placed)  # each once
            self._claims.append((claim, any(one.holds for one in citations)))
            done = max(group[-1].offset, claim.end)

    def _groups(self) -> Iterator[list[Marker]]:
        """Yield the markers that follow one another with nothing said between: they vouch for the same words."""
        group: list[Marker] = []
        for marker in self._marked.markers:
            if group and self._text.says_something(group[-1].offset, marker.offset):
                yield group
                group = []
            group.append(marker)
        if group:
            yield group

    def _claim_before(self, group: Sequence[Marker], done: int) -> Claim:
        """Return what a group vouches for: the words of its sentence since the last group; if none, those after it."""
        at = group[0].offset
        if self._text.begins_line(at):
            return self._claim_after(group)
        start, _ = self._text.sentences[self._text.sentence_at(at)] if self._text.sentences else (0, 0)
        claim = self._text.claim(max(start, done) if done <= at else at, at)
        if claim.is_checkable or len(claim.text.split()) > 2:
            return claim
        after = self._claim_after(group)
        return after if after.is_checkable else claim

    def _claim_after(self, group: Sequence[Marker]) -> Claim:
        at = group[-1].offset
        following = [marker.offset for marker in self._marked.markers if marker.offset > at][:1]
        ends = [end for start, end in self._text.sentences if start <= at < end]
        end = min([*ends, len(self._text.plain)])
        # Another marker in the same sentence vouches for what stands before it.
        return self._text.claim(at, at if following and following[0] < end else end)

    def _cite_the_rest(self) -> None:
        """Cite what no marker vouches for, where it stands in one document only."""
        checked = iter(sorted((claim.start, claim.end) for claim, _ in self._claims))
        span = next(checked, None)
        for start, end in self._text.sentences:
            while span and span[1] <= start:
                span = next(checked, None)
            at = start
            while span and span[0] < end:
                self._cite(at, min(span[0], end))
                at = max(at, span[1])
                if span[1] >= end:
                    break
                span = next(checked, None)
            self._cite(at, end)

    def _cite(self, start: int, end: int) -> None:
        claim = self._text.claim(start, end) if start < end else None
        if claim is None or (self._text.is_analysis(start) and not claim.quotations):
            return
        if not claim.is_checkable:
            self._cite_party(claim)
            return
        stops = [one.end for one in claim.anchors]
        tries = [max(stops), *(one.end for one in claim.quotations if is_evidence(one))]
        for stop in dict.fromkeys(tries):
            part = self._text.claim(start, stop)
            found = self._checker.sources_of(part) if part.is_checkable else []
            if len(found) == 1:
                ((source, span),) = found
                citation = Citation(source.doc_id, *span, source.content[slice(*span)], "verified")
                self._placed.append(_Placed(self._after_marks(stop), citation, added=True))
                self._claims.append((part, True))
                start = stop
                if stop == tries[0]:
                    return

    def _cite_party(self, claim: Claim) -> None:
        if not self._parties.documents_named(claim.text):
            return
        if (found := self._parties.sentence_for(claim)) is None:
            self._naming.add(claim.start)
            return
        source, span = found
        end = claim.start + len(claim.text.rstrip(STOPS + "\n"))
        self._placed.append(
            _Placed(end, Citation(source.doc_id, *span, source.content[slice(*span)], "supported"), added=True)
        )
        self._claims.append((claim, True))

    def _after_marks(self, offset: int) -> int:
        """Step over what closes emphasis: a marker within it would be emphasised."""
        while self._text.plain.startswith(("*", "_"), offset):
            offset += 1
        return offset

    def _grounding(self) -> tuple[int, list[str]]:
        """Return how many sentences state facts, and those of them that cite nothing that holds."""
        held, failed = (_Ranges(claim for claim, holds in self._claims if holds is wanted) for wanted in (True, False))
        naming = sorted(self._naming)
        # A marker of no document leaves the sentence that it stood in without one.
        removed = [self._text.sentences[self._text.sentence_at(at)][0] for at in self._marked.removed_at if at]
        claims, ungrounded = 0, []
        for start, end in self._text.sentences:
            claim = self._text.claim(start, end)
            facts = [] if self._text.is_analysis(start) else [one for one in claim.facts if one.kind != "number"]
            anchors: list[Quotation | Fact] = [*claim.quotations, *facts]
            names = bisect_left(naming, start) < bisect_left(naming, end)
            lost = bisect_left(removed, start) < bisect_left(removed, end) and not held.meet(start, end)
            if not (anchors or names or lost or held.meet(start, end) or failed.meet(start, end)):
                continue
            claims += 1
            ends = [at for one in anchors for at in (one.start, one.end - 1)]
            missing = names or not all(held.meet(at, at + 1) for at in ends)
            if lost or failed.meet(start, end) or (missing and not self._stands_in_cited(claim)):
                ungrounded.append(_BLANK_BEFORE_STOP.sub("", claim.text).strip())
        return claims, ungrounded

    def _stands_in_cited(self, claim: Claim) -> bool:
        """Tell whether all that a sentence states stands in one of the passages that it cites."""
        offsets = self._offsets
        placed = self._placed[bisect_left(offsets, claim.start) : bisect_right(offsets, claim.end)]
        cited = [one.citation for one in placed if one.citation.holds]
        return any(self._checker.stands(claim, one) for one in cited)

    def _written(self) -> str:
        pieces, done = [], 0
        for offset, citation, added in self._placed:
            doc_id, start, end, _, status, *_ = citation
            piece = self._text.plain[done:offset]
            blank = " " if added or (not piece and done) else ""
            pieces += [piece, blank, format_marker(doc_id, start, end, verified=status != "unverified")]
            done = offset
        return "".join([*pieces, self._text.plain[done:]])


class _Ranges:
    """The parts of an answer that some claims take up, none of them in two."""

    def __init__(self, claims: Iterable[Claim]) -> None:
        spans = sorted((claim.start, claim.end) for claim in claims)
        self._starts, self._ends = [start for start, _ in spans], [end for _, end in spans]

    def meet(self, start: int, end: int) -> bool:
        """Tell whether one of them has a character between two places."""
        number = bisect_left(self._starts, end) - 1
        return number >= 0 and self._ends[number] > start


MOST_SEARCHED = 200  # documents that one answer's quotations are searched in


class CitationEnricher:
    """Checks the citations of answers; it keeps nothing between two answers, so threads may share it."""

    def __init__(self, documents: Any, extractions: Any = None) -> None:
        """Take the documents.

        Args:
            documents: A Library, another corpus, or any mapping from document id to text.
            extractions: What was extracted of them: a mapping from document id to entities, or `ExtractionResult`s;
                None takes what a Library holds.
        """
        self._documents = documents
        self._entities_of = entity_look_up(documents, extractions)

    def enrich(self, text: str, read: Sequence[str] | None = None) -> EnrichedResponse:
        """Check an answer.

        A marker is checked against its document; a quotation without one, or whose marker is wrong, is searched for in
        the documents that were read. What is added is certain: it stands in one of these documents only.

        Args:
            text: The answer, with markers in any usual spelling.
            read: Ids of the documents that the agent read, searched in this order; None takes those that the answer
                cites, or, of a mapping, all.
        """
        sources = SourceTexts(self._documents)
        names = DocumentNames(sources, read or ())
        marked = take_out_markers(text, names.document)
        return Enrichment(marked, sources, self._searched(marked, sources, read), self._entities_of).response()

    def _searched(self, marked: MarkedText, sources: SourceTexts, read: Sequence[str] | None) -> list[str]:
        cited = [one.doc_id for marker in marked.markers for one in marker.references]
        others = sources.all_ids() if read is None else read
        return list(dict.fromkeys([*others, *cited]))[:MOST_SEARCHED]
