"""How the checked citations of made answers compare with the truth about them.

In: answers, and what became of each. Out: a `Judged` for every case of one claim; an `Outcome` for every claim of the
synthetic answers of several, and the scores of all together.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from answer_material import Passage
from false_answers import Case, squash
from synthetic_answers import SyntheticAnswer
from synthetic_claims import Claim

from legal_rag.citations import Citation, EnrichedResponse
from legal_rag.citations.markers import NO_SUCH_SOURCE

Enrich = Callable[[str, Sequence[str]], EnrichedResponse]

MARKER = re.compile(r"\[Source(?: non vérifiée)?\s?: (?P<doc>[^\[\]]+?)(?:, chars (?P<start>\d+)-(?P<end>\d+))?\]")
WIDEST = 3000  # characters: what is cited at greater width points at nothing
CORRECT = ("correct quotation", "correct quotation, cut", "two correct quotations")
QUOTING_NOTHING = ("correct paraphrase", "fact without marker", "fact of several documents", "no facts")
UNTRUE = ("altered quotation", "one correct, one altered", "changed date", "changed amount", "changed article")
PLACE_WANTED = ("shifted offsets", "missing offsets", "quotation without marker", "quotation, date of elsewhere")
COLUMNS = (
    "verified",
    "verified wrongly",
    "relocated",
    "relocated wrongly",
    "supported",
    "unverified",
    "removed",
    "none",
)
VOUCHED = ("verified", "relocated")
FAILURES = (
    "vouched for",
    "given a marker",
    "supported",
    "no warning",
    "not confirmed",
    "verified without quotation",
    "only supported",
    "wrong place",
)


class Judged(NamedTuple):
    """What became of a case."""

    case: Case
    citations: tuple[Citation, ...]  # those of its claim
    failure: str  # "vouched for", "given a marker", "supported", "no warning"…; "" where nothing is to be objected to
    text: str  # the answer as it was checked


def judge(case: Case, enrich: Enrich, texts: Mapping[str, str]) -> Judged:
    """Check a case; tell what a lawyer would object to."""
    response = enrich(case.text, case.read)
    first = len(_letters(MARKER.sub("", case.before)))
    last = len(_letters(MARKER.sub("", case.text))) - len(_letters(MARKER.sub("", case.after)))
    cited = _cited(response) if case.before or case.after else [(last, one) for one in response.citations]
    own = tuple(one for at, one in cited if (not case.before or at > first) and (not case.after or at <= last))
    failure = _false_failure if case.truth in ("false", "blind", "spoken") else _honest_failure
    return Judged(case, own, failure(case, own, texts), response.text)


def _false_failure(case: Case, citations: Sequence[Citation], texts: Mapping[str, str]) -> str:
    vouched = [one for one in citations if one.status in VOUCHED]
    if case.truth == "spoken":
        return "no warning" if any(not getattr(one, "warnings", ()) for one in vouched) else ""
    if vouched:
        return "vouched for"
    if citations and not case.marked:
        return "given a marker"
    return "supported" if any(one.status == "supported" for one in citations) else ""


def _honest_failure(case: Case, citations: Sequence[Citation], texts: Mapping[str, str]) -> str:
    statuses = {one.status for one in citations}
    if not statuses or not statuses <= {*VOUCHED, "supported"}:
        return "not confirmed"
    if case.truth == "stating":
        return "verified without quotation" if statuses & {*VOUCHED} else ""
    if "supported" in statuses:
        return "only supported"
    held = [squash(texts[one.doc_id][one.char_start : one.char_end]) for one in citations]
    return "" if all(any(squash(piece) in one for one in held) for piece in case.words) else "wrong place"


class Outcome(NamedTuple):
    """What became of a claim."""

    claim: Claim
    citations: tuple[Citation, ...]  # those that stand in the claim, in the answer as it was checked
    removed: bool  # whether its marker was taken out
    ungrounded: bool  # whether it is listed among the claims that nothing bears out

    def right(self, citation: Citation) -> bool:
        """Tell whether a citation holds a passage that bears the claim out."""
        cited = Passage(*citation[:3])
        short = cited.char_end - cited.char_start <= WIDEST
        return short and any(cited.holds(passage) for passage in self.claim.passages)

    def places(self, *statuses: str) -> bool:
        """Tell whether every passage of the claim is held by a citation of one of these statuses."""
        cited = [Passage(*one[:3]) for one in self.citations if one.status in statuses and self.right(one)]
        passages = self.claim.passages
        return bool(passages) and all(any(one.holds(passage) for one in cited) for passage in passages)

    def cells(self) -> list[str]:
        """Return the columns that the claim counts in, one for each citation, or for there being none."""
        cells = [
            one.status + " wrongly" * (one.status in ("verified", "relocated") and not self.right(one))
            for one in self.citations
        ]
        return cells or ["removed" if self.removed else "none"]

    def as_it_should_be(self) -> bool:
        """Tell whether a lawyer would find nothing to object to."""
        kind, cells = self.claim.kind, set(self.cells())
        if {"verified wrongly", "relocated wrongly"} & cells:
            return False
        if kind in CORRECT:
            return self.places("verified")
        if kind in PLACE_WANTED:
            return self.places("verified", "relocated")
        if kind in ("swapped documents", "invented id"):
            return self.places("verified", "relocated") or cells <= {"unverified", "removed", "none"}
        if kind in UNTRUE:
            return kind == "one correct, one altered" or cells <= {"unverified", "removed", "none"}
        return cells <= ({"supported", "unverified"} if kind == "correct paraphrase" else {"none"})


class Scores(NamedTuple):
    """The scores of many answers; a share of nothing is NaN."""

    precision: float  # of the citations returned as verified, those that are true
    recall: float  # of the passages of correct claims, those that come back verified
    n_verified: int
    n_correct: int
    altered_verified: int  # citations of altered quotations and changed facts that are verified all the same
    placed: dict[str, float]  # by kind: share of claims given the right place
    relocated_or_unverified: float  # share of the claims with swapped documents
    vouched_without_quotation: (
        int  # citations of claims that quote nothing that are verified or relocated, or were added
    )
    table: dict[str, Counter[str]]  # by kind: how many citations in each of COLUMNS
    changed_texts: int  # answers whose words are not those that were given


def outcomes_of(answers: Iterable[SyntheticAnswer], enrich: Enrich) -> tuple[list[Outcome], int]:
    """Check answers; return what became of each claim, and how many answers lost or gained words."""
    outcomes: list[Outcome] = []
    changed = 0
    for answer in answers:
        response = enrich(answer.text, answer.read)
        outcomes += claim_outcomes(answer, response)
        changed += _letters(MARKER.sub("", response.text)) != _letters(_without_markers(answer.text, answer.claims))
    return outcomes, changed


def claim_outcomes(answer: SyntheticAnswer, response: EnrichedResponse) -> list[Outcome]:
    """Tell which citation stands in which claim, by the letters before each in the answer without its markers."""
    ends = [
        len(_letters(_without_markers(answer.text[: claim.at + len(claim.text)], answer.claims)))
        for claim in answer.claims
    ]
    found: list[list[Citation]] = [[] for _ in ends]
    for at, citation in _cited(response):
        owner = next((number for number, end in enumerate(ends) if at <= end), len(ends) - 1)
        found[owner].append(citation)
    return [_outcome(claim, tuple(some), response) for claim, some in zip(answer.claims, found, strict=True)]


def scores_of(outcomes: Sequence[Outcome], changed_texts: int = 0) -> Scores:
    """Add up what became of all claims."""
    verified = [one.right(citation) for one in outcomes for citation in one.citations if citation.status == "verified"]
    held = [
        one._replace(claim=one.claim._replace(passages=(passage,))).places("verified")
        for one in outcomes
        if one.claim.kind in CORRECT
        for passage in one.claim.passages
    ]
    swapped = [one for one in outcomes if one.claim.kind == "swapped documents"]
    bare = [one for one in outcomes if one.claim.kind in QUOTING_NOTHING]
    return Scores(
        precision=_share(verified),
        recall=_share(held),
        n_verified=len(verified),
        n_correct=len(held),
        altered_verified=sum(one.cells().count("verified wrongly") for one in outcomes if one.claim.kind in UNTRUE),
        placed={
            kind: _share([one.places("verified", "relocated") for one in _of(outcomes, kind)]) for kind in PLACE_WANTED
        },
        relocated_or_unverified=_share([one.as_it_should_be() for one in swapped]),
        vouched_without_quotation=sum(
            citation.status in VOUCHED or not one.claim.markers for one in bare for citation in one.citations
        ),
        table=_table(outcomes),
        changed_texts=changed_texts,
    )


def _outcome(claim: Claim, citations: tuple[Citation, ...], response: EnrichedResponse) -> Outcome:
    said = _letters(_without_markers(claim.text, [claim]))
    ungrounded = any(_letters(one) and _letters(MARKER.sub("", one)) in said for one in response.ungrounded_claims)
    removed = any(one in claim.markers or claim.markers in one for one in response.removed if claim.markers)
    return Outcome(claim, citations, removed, ungrounded)


def _cited(response: EnrichedResponse) -> list[tuple[int, Citation]]:
    """Return the citations with the number of letters before each in the text without markers."""
    left = list(response.citations)
    cited: list[tuple[int, Citation]] = []
    for match in MARKER.finditer(response.text):
        span = (match["doc"], int(match["start"] or 0), int(match["end"] or 0))
        one = next((one for one in left if tuple(one[:3]) == span), None)
        if one is None:  # a citation cited twice stands in the list once, or the marker gives no place
            one = next((one for one in response.citations if tuple(one[:3]) == span), None)
        else:
            left.remove(one)
        before = _letters(MARKER.sub("", response.text[: match.start()]))
        cited.append((len(before), one or Citation(*span, "", "unverified")))
    return cited


def _without_markers(text: str, claims: Iterable[Claim]) -> str:
    for claim in claims:
        if claim.markers:
            text = text.replace(claim.markers, "")
    return text


def _letters(text: str) -> str:
    return re.sub(r"\W+", "", text.replace(NO_SUCH_SOURCE, ""))


def _of(outcomes: Iterable[Outcome], kind: str) -> list[Outcome]:
    return [one for one in outcomes if one.claim.kind == kind]


def _table(outcomes: Iterable[Outcome]) -> dict[str, Counter[str]]:
    table: dict[str, Counter[str]] = {}
    for one in outcomes:
        counts = table.setdefault(one.claim.kind, Counter())
        counts.update(one.cells())
        counts["ungrounded"] += one.ungrounded
        counts["claims"] += 1
    return table


def _share(values: Sequence[bool]) -> float:
    return sum(values) / len(values) if values else float("nan")
