"""Check and complete the citations of an answer."""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from legal_rag.base.html import displayed
from legal_rag.base.text import Span, fold_text, one_line
from legal_rag.citations.checks import MOST_ANCHORS, Citation, CitationChecker, count_by_status
from legal_rag.citations.claims import AnswerText, Claim, Quotation, blanked
from legal_rag.citations.facts import Fact
from legal_rag.citations.markers import (
    NO_SUCH_SOURCE,
    DocumentNames,
    MarkedReference,
    MarkedText,
    check_receipts,
    format_marker,
    n_receipts,
    take_out_markers,
    without_receipts,
)
from legal_rag.citations.plain import read_plain
from legal_rag.citations.sources import SourceTexts, texts_of
from legal_rag.citations.wording import content_stems

_ABSTENTION = re.compile(
    r"\baucune? (?:passage|décision|élément|information|document|texte|résultat|réponse|jurisprudence)\b"
    r"[^.]{0,60}?\b(?:pertinent|ne (?:permet|répond|traite|correspond|porte|concerne|contient)|n'(?:a été |est |a pu )"
    r"|trouvé|disponible|répond)"
    r"|\baucun passage pertinent\b|\bne (?:me )?permet(?:tent)?(?: donc)? pas de (?:vous )?(?:répondre|conclure)"
    r"|\bne contien(?:t|nent) (?:pas|aucun)|\bje (?:n'ai (?:pas |rien )|ne (?:peux|puis|suis)[^.]{0,20} pas[^.]{0,20} )"
    r"(?:pu |de |en mesure de )?(?:trouv|répond|identifi)|\bimpossible de (?:vous )?répondre"
)
_BLANK_BEFORE_STOP = re.compile(r"(?<![ \u00a0\u202f])[ \u00a0\u202f]+(?=[.,)])")


# Facts that make a sentence one that should be cited.
_TELLING = frozenset({"date", "month", "article", "case", "quantity", "figure"})


# supported: a citation that covers it is verified, relocated or supported; warned: the same, each with a warning;
# reworded: see `Citation.reworded`; unsupported: its sentence is among the ungrounded claims; unchecked: it states nothing
# that is checked.
PartState = Literal["unchecked", "unsupported", "reworded", "warned", "supported"]


@displayed
class AnswerPart(NamedTuple):
    """Consecutive words of an answer, and whether its citations support them."""

    text: str  # plain, without markers
    state: PartState


@displayed
class EnrichedResponse(NamedTuple):
    """An answer after its citations were checked, corrected and completed."""

    text: str
    citations: list[Citation]  # in the order of the text
    ungrounded_claims: list[str]  # sentences that state facts, cite nothing that holds and are no confirmed calculation
    removed: list[str]  # markers of unknown documents, as they were written; `NO_SUCH_SOURCE` stands in their places
    grounding_rate: float | None  # share of the other sentences stating facts that cite what holds; None: there is none
    abstained: bool  # whether the answer says that nothing was found
    cut: bool = False  # whether the answer was longer than `MOST_CHARS`, and its end left out
    parts: Sequence[AnswerPart] = ()  # all of its plain text, in order

    @property
    def counts(self) -> dict[str, int]:
        """Number of citations by status, without zeros."""
        return count_by_status(self.citations)

    @property
    def holds(self) -> bool:
        """Whether a citation holds."""
        return any(citation.holds for citation in self.citations)

    @property
    def stands(self) -> bool:
        """Whether a citation stands: see `Citation.stands`."""
        return any(citation.stands for citation in self.citations)


def is_abstention(text: str) -> bool:
    """Does an answer say that it found nothing?"""
    return _ABSTENTION.search(fold_text(text)) is not None


class _Placed(NamedTuple):
    """A citation, and the place in the plain text after which its marker is written."""

    offset: int
    citation: Citation
    added: bool = False  # by us: the answer had no marker there


class _PlacedMarker(NamedTuple):
    offset: int  # of the plain text
    written: int  # of the text without markers
    references: list[MarkedReference]


class Enrichment:
    """Checks one answer; offsets are of its plain text, without markers and Markdown."""

    def __init__(
        self,
        marked: MarkedText,
        sources: SourceTexts,
        searched: Sequence[str],
        seen: Container[str] | None,
        pointed: Mapping[MarkedReference, str],
    ) -> None:
        """Take an answer without its markers; documents; ids `searched` for quotations without a correct marker.

        `seen` are the ids of documents whose citations may hold, None all; `pointed` is as for `enrich`.
        """
        self._seen, self._pointed = seen, pointed
        self._marked, self._plain = marked, read_plain(marked.plain)
        self._text = AnswerText(self._plain.text)
        self._markers = [_PlacedMarker(self._plain.place(at), at, references) for at, references in marked.markers]
        self._checker = CitationChecker(sources, searched)
        self._placed: list[_Placed] = []
        self._claims: list[tuple[Claim, bool]] = []  # checked ones, in order, and whether a citation of theirs holds
        self._standing: list[Span] = []  # of the claims of which a citation stands, in order
        self._states: list[tuple[Claim, PartState]] = []  # of the claims that stand
        self._ungrounded: list[Span] = []  # of sentences

    def response(self) -> EnrichedResponse:
        """Check the markers, cite the rest, and put the answer together."""
        self._check_markers()
        self._cite_unmarked()
        self._placed.sort(key=lambda placed: placed.offset)
        citations = [placed.citation for placed in self._placed]
        claims, ungrounded = self._count_ungrounded()
        return EnrichedResponse(
            text=self._write_markers(),
            citations=citations,
            ungrounded_claims=ungrounded,
            removed=self._marked.removed,
            grounding_rate=1 - len(ungrounded) / claims if claims else None,
            # "Le bail ne contient aucune clause": what a passage says is no abstention.
            abstained=not any(citation.holds for citation in citations)
            and is_abstention(blanked(self._text.plain, self._standing)),
            parts=self._parts(),
        )

    def _parts(self) -> list[AnswerPart]:
        states: list[PartState] = ["unchecked"] * len(self._text.plain)  # of its characters
        for start, end in self._ungrounded:
            states[start:end] = ["unsupported"] * (end - start)
        for claim, state in self._states:
            states[claim.start : claim.end] = [state] * (claim.end - claim.start)
        letters = groupby(zip(states, self._text.plain, strict=True), key=lambda pair: pair[0])
        return [AnswerPart("".join(letter for _, letter in run), state) for state, run in letters]

    def _check_markers(self) -> None:
        done = 0
        groups = list(self._group_markers())
        for number, group in enumerate(groups):
            following = groups[number + 1][0].offset if number + 1 < len(groups) else len(self._text.plain)
            claim = self._claim_of_group(group, done, following)
            places: dict[MarkedReference, int] = {}
            for marker in group:
                for reference in marker.references:
                    places.setdefault(reference, marker.written)
            references = list(places)
            written = {one_line(self._pointed[reference]) for reference in references if reference in self._pointed}
            quoted = (one_line(quotation.text) for quotation in claim.quotations)
            claim = claim._replace(is_pointed=not written.isdisjoint(quoted))
            citations = [self._check_seen(citation) for citation in self._checker.check(claim, references)]
            # Fewer citations than references: all of them were wrong, and one document supports the claim.
            placed = [
                _Placed(places[reference], cited) for reference, cited in zip(references, citations, strict=False)
            ]
            self._placed += dict.fromkeys(placed)  # each once
            self._claims.append((claim, any(citation.holds for citation in citations)))
            if standing := [citation for citation in citations if citation.stands]:
                self._standing.append((claim.start, claim.end))
                self._states.append((claim, _state_of(standing)))
            done = max(group[-1].offset, claim.end)

    def _check_seen(self, citation: Citation) -> Citation:
        if self._seen is None or citation.doc_id in self._seen:
            return citation
        return citation._replace(status="unverified", reason=UNSEEN)

    def _group_markers(self) -> Iterator[list["_PlacedMarker"]]:
        """Group consecutive markers with no content between them: they cite the same words."""
        group: list[_PlacedMarker] = []
        for marker in self._markers:
            if group and self._text.says_something(group[-1].offset, marker.offset):
                yield group
                group = []
            group.append(marker)
        if group:
            yield group

    def _claim_of_group(self, group: Sequence["_PlacedMarker"], done: int, following: int) -> Claim:
        """Return what a group cites: its sentence since the last group, and up to the next one if it has one."""
        at, last = group[0].offset, group[-1].offset
        start, end = self._text.sentences[self._text.sentence_at(at)] if self._text.sentences else (0, 0)
        if self._text.begins_line(at) or not self._text.says_something(max(start, done), at):
            start, end = next((span for span in self._text.sentences if span[0] <= last < span[1]), (at, last))
            return self._text.claim(at, last if following < end else end)
        claim = self._text.claim(max(start, done) if done <= at else at, at if following < end else max(at, end))
        before = self._claims[-1][0] if self._claims else None
        if before and start < before.end and not content_stems(claim.masked):
            return claim._replace(lead=before.own_words.text)
        return claim

    def _cite_unmarked(self) -> None:
        """Cite the quotations that no marker covers, where exactly one document has them."""
        covered = self._cover(claim for claim, _ in self._claims)
        uncovered = (span for span in self._text.sentences if not any(covered[slice(*span)]))
        for claim in (self._text.claim(*span) for span in uncovered):
            if not claim.quotes or len(claim.quotations) > MOST_ANCHORS:
                continue
            citations = self._checker.sources_of(claim)
            if len(citations) == 1 and self._check_seen(citations[0]).holds:
                at = self._skip_closing_marks(self._plain.written(claim.quotations[-1].end))
                self._placed.append(_Placed(at, citations[0], added=True))
                self._claims.append((claim, True))
                self._states.append((claim, _state_of(citations)))

    def _cover(self, claims: Iterable[Claim]) -> bytearray:
        """Mark the characters of the text that claims cover."""
        covered = bytearray(len(self._text.plain))
        for claim in claims:
            covered[claim.start : claim.end] = b"\1" * (claim.end - claim.start)
        return covered

    def _skip_closing_marks(self, offset: int) -> int:
        """Skip marks that close emphasis or code: a marker within would be part of it."""
        while self._marked.plain.startswith(("*", "_", "`"), offset):
            offset += 1
        return offset

    def _count_ungrounded(self) -> tuple[int, list[str]]:
        """Return the number of sentences that quote or state facts, and those that cite nothing that holds."""
        held, failed = (
            self._cover(claim for claim, holds in self._claims if holds is state) for state in (True, False)
        )
        # A removed marker of an unknown document leaves its sentence without one.
        places = [self._plain.place(at) for at in self._marked.removed_at if at and self._text.sentences]
        removed = {self._text.sentence_at(at) for at in places}
        claims, ungrounded = 0, []
        for number, (start, end) in enumerate(self._text.sentences):
            claim = self._text.claim(start, end)
            facts = [] if self._text.is_analysis(start) else [fact for fact in claim.facts if fact.kind in _TELLING]
            anchors: list[Quotation | Fact] = [*claim.quotations, *facts]
            is_held, has_failed = any(held[start:end]), any(failed[start:end])
            lost = number in removed and not is_held
            claims += bool(anchors or lost or is_held or has_failed)
            if lost or has_failed or not all(held[anchor.start] and held[anchor.end - 1] for anchor in anchors):
                ungrounded.append(_BLANK_BEFORE_STOP.sub("", claim.text).strip())
                self._ungrounded.append((start, end))
        return claims, ungrounded

    def _write_markers(self) -> str:
        text, done = "", 0
        removed = ((at, None) for at in dict.fromkeys(self._marked.removed_at))
        marked = [*((placed.offset, placed) for placed in self._placed), *removed]
        for offset, placed in sorted(marked, key=lambda pair: pair[0]):
            piece = self._marked.plain[done:offset]
            text += piece
            if placed:
                doc_id, start, end, _, status, *_ = placed.citation
                marker = format_marker(doc_id, start, end, verified=status != "unverified")
            else:
                marker = NO_SUCH_SOURCE
            is_blank = placed.added or (not piece and done) if placed else text and not text[-1].isspace()
            text, done = f"{text}{' ' if is_blank else ''}{marker}", offset
        return text + self._marked.plain[done:]


def _state_of(standing: Sequence[Citation]) -> PartState:
    supporting = [citation for citation in standing if not citation.reworded]
    if not supporting:
        return "reworded"
    return "warned" if all(citation.warnings for citation in supporting) else "supported"


UNSEEN = "Cette décision n'a été ni trouvée ni lue pour cette réponse."
MOST_CHARS = 100_000  # of an answer
MOST_SEARCHED = 200  # documents that one answer's quotations are searched in


class CitationEnricher:
    """Checks the citations of answers; stateless between answers, so threads may share it."""

    def __init__(self, documents: Any) -> None:
        """Take the documents: a Library, another corpus, a mapping from document id to text, or extraction results.

        Results are a list, as `run_batch_extraction` gives it. Of one without its text only the extractions are known,
        each at its place.
        """
        self._documents = texts_of(documents) if isinstance(documents, list | tuple) else documents

    def enrich(
        self,
        text: str,
        read: Sequence[str] | None = None,
        *,
        seen: Container[str] | None = None,
        pointed: Mapping[MarkedReference, str] = MappingProxyType({}),
        bears_out: Callable[[str, str], str | None] = lambda before, name: None,
    ) -> EnrichedResponse:
        """Check an answer, with markers in any usual spelling.

        A marker is checked against its document; a quotation without one, or whose marker is wrong, is searched for in
        the documents that were read. A marker is added only to a sentence that quotes word for word, where all of its
        quotations stand in one of these documents only.

        Args:
            text: The answer.
            read: Ids of the documents that the agent read, searched in this order; None takes those that the answer
                cites, or, of a mapping, all.
            seen: Ids of the documents of which the model was shown anything: a citation of another one is not verified,
                even if it has the words; None: no such check.
            pointed: Quotations, by place, that were written for the sentences beside them, which the model wrote: they
                must have all words of these, and the same negations.
            bears_out: For markers of receipts, see `check_receipts`; by default none is confirmed.
        """
        checked, cut = _truncate_answer(text)
        sources = SourceTexts(self._documents)
        marked = take_out_markers(checked, DocumentNames(sources, read or ()).document)
        cited = (reference.doc_id for marker in marked.markers for reference in marker.references)
        searched = list(dict.fromkeys([*(sources.all_ids() if read is None else read), *cited]))[:MOST_SEARCHED]
        done = Enrichment(marked, sources, searched, seen, pointed).response()
        # Last, when no removed marker of a source, no tag and no escape can form another one.
        claims = [check_receipts(claim, bears_out) for claim in done.ungrounded_claims]
        ungrounded = [claim for claim in claims if not _is_calculated(claim)]
        return done._replace(
            text=check_receipts(done.text, bears_out),
            ungrounded_claims=ungrounded,
            grounding_rate=_rate_without(done.grounding_rate, len(claims), len(ungrounded)),
            cut=cut,
        )


def _is_calculated(claim: str) -> bool:
    """Does a sentence quote nothing and state no more facts than it has receipts? Its other words are not checked."""
    text = AnswerText(without_receipts(claim))
    facts = [fact for span in text.sentences for fact in text.claim(*span).facts if fact.kind in _TELLING]
    quoted = any(text.claim(*span).quotes for span in text.sentences)
    return len(facts) <= n_receipts(claim) > 0 and not quoted


def _rate_without(rate: float | None, n_ungrounded: int, n_left: int) -> float | None:
    """Return a grounding rate when of the ungrounded sentences only some count; None if no sentence is left."""
    if rate is None or n_left == n_ungrounded:
        return rate
    n_sentences = round(n_ungrounded / (1 - rate)) - (n_ungrounded - n_left)
    return 1 - n_left / n_sentences if n_sentences else None


def _truncate_answer(text: str) -> tuple[str, bool]:
    """Cut an answer to `MOST_CHARS` characters, after a line or a word; also return whether it was longer."""
    if len(text) <= MOST_CHARS:
        return text, False
    end = max(text.rfind("\n", MOST_CHARS // 2, MOST_CHARS), text.rfind(" ", MOST_CHARS - 2000, MOST_CHARS))
    return text[: end if end > 0 else MOST_CHARS], True
