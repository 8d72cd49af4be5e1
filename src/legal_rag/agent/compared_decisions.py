"""Find decisions comparable to a cited one: same article, similar words, opposite outcome."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any, NamedTuple

from legal_rag.agent.budget import Usage
from legal_rag.citations.checks import Citation
from legal_rag.citations.claims import content_words
from legal_rag.citations.markers import format_marker
from legal_rag.corpus.documents import Document
from legal_rag.corpus.patterns import Identifier, find_identifiers
from legal_rag.corpus.patterns.courts import CourtRank, court_of
from legal_rag.corpus.references import canonical_key, own_keys
from legal_rag.corpus.structure.decision import Operative, operative_part
from legal_rag.extraction.outcomes import CASSATION, Outcome, outcome_of
from legal_rag.library.bm25 import LexicalIndex, lexical_words
from legal_rag.retriever.retriever import Corpus


class Closeness:
    """Compares passages; it remembers the words' rarities, so one serves one thread for one answer."""

    def __init__(self, lexical: LexicalIndex | None) -> None:
        """Take the index; without one every word counts alike."""
        self._lexical = lexical
        self._stems: dict[str, tuple[str, ...]] = {}
        self._rarity: dict[str, float] = {}

    def of(self, one: str, other: str) -> float:
        """Return the share of words in common, each counted by its rarity (Dice's coefficient, weighted)."""
        words, others = self._terms(one), self._terms(other)
        both = self._weight(words) + self._weight(others)
        return 2 * self._weight(words & others) / both if both else 0.0

    def _terms(self, text: str) -> set[str]:
        terms: set[str] = set()
        for word in set(content_words(text)):
            if word not in self._stems:
                self._stems[word] = tuple(lexical_words(word))
                for stem in self._stems[word]:
                    self._rarity.setdefault(stem, self._lexical.rarity(word) if self._lexical else 1.0)
            terms.update(self._stems[word])
        return terms

    def _weight(self, terms: Iterable[str]) -> float:
        return sum(self._rarity[term] for term in terms)


# Cited whatever the case is about: what binds every judge or contract, interest, costs, form of judgments, how a court
# sits.
_OF_EVERY_CASE = {
    "code civil": r"1|2|4|5|1103|1104|1134|1153(?:-1)?|1154|1231-[67]|1315|1343-2|1353",
    "code de procédure civile": (
        r"[4-9]|1[2-6]|45\d|69[5-9]|70\d|62[3-9]|63\d|7[45]\d|76[0-9]|77\d|78\d|79\d|80\d|90\d(?:-\d)?|91\d(?:-\d)?|93\d|94\d(?:-1)?"
        r"|9[67]\d|98\d|10(?:09|1[0-9]|2\d)(?:-\d)?"
    ),
    "code de l'organisation judiciaire": r"[LR](?:411|421|431|432|441)-\d.*",
    "code de procédure pénale": r"375|475-1|48[56]|5(?:67|90|91|92|93)(?:-\d)*|60[0-9](?:-1)?|618-1|800-[12]",
    "code de justice administrative": r"L(?:2|7|9|7[0-9]\d|911)(?:-\d.*)?|[LR](?:6|7)\d\d-\d.*",
}
_ORDINARY = {code: re.compile(pattern) for code, pattern in _OF_EVERY_CASE.items()}
_PART_OF_ARTICLE = re.compile(r"(?:alin[ée]as?|al\.?|§|paragraphes?)\s?$", re.IGNORECASE)  # the number is no article's
_NUMBERED_PART = re.compile(r"\s?,?\s(?:alin[ée]as?|al\.?|§)\s?(\d+|premier)", re.IGNORECASE)
# Grounds of appeal: from their heading to what the court replies, in the older style and in that of today;
# and paragraphs that begin with "alors".
_GROUNDS = re.compile(
    r"\n[^\S\n]*[EÉ]nonc[ée]\s(?:du|des|de la)\s(?:[^\s]{1,12}\s)?(?:moyen|grief)s?\b.*?"
    r"(?=\n[^\S\n]*(?:Réponse (?:de la Cour|aux? )|Motivation|Appréciation de la Cour)|\Z)"
    r"|(?<=\n)[^\S\n]*(?:\d{1,2}[°/).\s-]{1,4})*alors\b[^\n]*"
    r"|alors,?\sselon\sle\s(?:\w+\s)?(?:moyen|grief|pourvoi).*?(?=(?:Mais|Et)\sattendu)",
    re.DOTALL | re.IGNORECASE,
)
_VISA = re.compile(r"\s*(?:\d{1,3}\s?[.)]\s*)?(?:Et\s)?Vu\s", re.IGNORECASE)
_LETTERED = re.compile(r"(LO|[LRDAC])(?=\d)")


class ArticleMention(NamedTuple):
    """An article of a code, and a place where a text cites it."""

    term: str  # the store's: see `legal_rag.corpus.references`
    name: str  # as it is written: "L. 1152-1 du code du travail"
    start: int  # characters
    end: int
    part: str  # of the article, '1' for 'alinéa 1er'; empty where none is named
    in_visa: bool  # its paragraph begins with "Vu": what a cassation rests on

    def is_of_other_part(self, other: "ArticleMention") -> bool:
        """Tell whether two mentions name different parts of an article."""
        return bool(self.part and other.part and self.part != other.part)


def find_mentions(text: str, part: Operative | None = None) -> list[ArticleMention]:
    """Find where a decision cites articles of codes, in order, up to its operative part.

    Args:
        text: The decision.
        part: Its operative part, if it was found before.
    """
    part = part or operative_part(text)
    body = text[: part.start] if part else text
    grounds = find_grounds(body)
    return [
        _mention(body, one)
        for one in find_identifiers(body)
        if one.kind == "article"
        and one.code
        and not _is_of_every_case(one.value, one.code)
        and not _PART_OF_ARTICLE.search(body[max(one.start - 12, 0) : one.start])
        and not any(start <= one.start < end for start, end in grounds)
    ]


def find_grounds(text: str) -> list[tuple[int, int]]:
    """Return the spans in which a decision tells the grounds of appeal: the parties' words, not the court's."""
    return [match.span() for match in _GROUNDS.finditer(text)]


def _mention(text: str, one: Identifier) -> ArticleMention:
    numbered = _NUMBERED_PART.match(text, one.end)
    part = numbered[1].casefold().replace("premier", "1") if numbered else ""
    in_visa = _VISA.match(text, text.rfind("\n", 0, one.start) + 1, one.start) is not None
    return ArticleMention(canonical_key(one), article_name(one.value, one.code), one.start, one.end, part, in_visa)


def article_name(value: str, code: str) -> str:
    """Write an article as texts do: 'L1152-1' of the 'code du travail' is 'L. 1152-1 du code du travail'."""
    number = _LETTERED.sub(lambda match: f"{'L.O.' if match[1] == 'LO' else match[1] + '.'} ", value, count=1)
    return f"{number} du {code}"


def _is_of_every_case(value: str, code: str) -> bool:
    pattern = _ORDINARY.get(code)
    return pattern is not None and pattern.fullmatch(value) is not None


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
class ComparedReading:
    """A decision that was read in order to be compared."""

    document: Document
    outcome: Outcome
    part: Operative | None

    @classmethod
    def of(cls, document: Document, corpus: Corpus) -> "ComparedReading":
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
    def court(self) -> CourtRank:
        """The court that decided."""
        return court_of(self.document.juridiction, self.document.formation, self.document.title)

    @property
    def day(self) -> date | None:
        """The day of the decision; None where it is not known to the day."""
        return day_of(self.document.decision_date)

    def is_of_same_case(self, other: "ComparedReading") -> bool:
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
