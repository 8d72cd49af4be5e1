"""Analyse a decision for comparison: its articles, outcome, court and own words; similarity of two passages."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import NamedTuple

from legal_rag.base.text import Span
from legal_rag.citations.wording import content_words
from legal_rag.corpus.documents import Document
from legal_rag.extraction.outcomes import CASSATION, Outcome, outcome_of
from legal_rag.law import Identifier, find_identifiers
from legal_rag.law.citation import legal_citation
from legal_rag.law.courts import CourtRank, court_of
from legal_rag.law.keys import canonical_key, own_keys
from legal_rag.law.ruling import Operative, operative_part
from legal_rag.library.bm25 import LexicalIndex, lexical_words
from legal_rag.library.corpus import Corpus

AROUND = 1200  # characters of a decision shown to a model on either side of a span
DISPOSED = 600  # of its operative part
CUT = "\n[…]\n"

# Cited in cases of any subject: duties of judges, contracts, interest, costs, form of judgments, composition of courts.
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
_PART_OF_ARTICLE = re.compile(r"(?:alin[ée]as?|al\.?|§|paragraphes?)\s?$", re.IGNORECASE)  # before a number
_NUMBERED_PART = re.compile(r"\s?,?\s(?:alin[ée]as?|al\.?|§)\s?(\d+|premier)", re.IGNORECASE)
# Grounds of appeal: from their heading to the court's reply, in the older and the present style; and paragraphs that
# begin with "alors".
_GROUNDS = re.compile(
    r"\n[^\S\n]*[EÉ]nonc[ée]\s(?:du|des|de la)\s(?:[^\s]{1,12}\s)?(?:moyen|grief)s?\b.*?"
    r"(?=\n[^\S\n]*(?:Réponse (?:de la Cour|aux? )|Motivation|Appréciation de la Cour)|\Z)"
    r"|(?<=\n)[^\S\n]*(?:\d{1,2}[°/).\s-]{1,4})*alors\b[^\n]*"
    r"|alors,?\sselon\sle\s(?:\w+\s)?(?:moyen|grief|pourvoi).*?(?=(?:Mais|Et)\sattendu)",
    re.DOTALL | re.IGNORECASE,
)
_VISA = re.compile(r"\s*(?:\d{1,3}\s?[.)]\s*)?(?:Et\s)?Vu\s", re.IGNORECASE)
_LETTERED = re.compile(r"(LO|[LRDAC])(?=\d)")


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
    citation: str  # as lawyers write it: see `legal_rag.law.citation`


class ArticleMention(NamedTuple):
    """One mention of an article of a code in a text."""

    term: str  # the store's: see `legal_rag.law.keys`
    name: str  # as it is written: "L. 1152-1 du code du travail"
    start: int  # characters
    end: int
    part: str  # of the article, '1' for 'alinéa 1er'; empty where none is named
    in_visa: bool  # its paragraph begins with "Vu": what a cassation rests on

    def is_of_other_part(self, other: "ArticleMention") -> bool:
        """Whether two mentions name different parts of an article."""
        return bool(self.part and other.part and self.part != other.part)


@dataclass(frozen=True)
class AnalysedDecision:
    """A decision analysed for comparison: outcome, court, operative part, articles."""

    document: Document
    outcome: Outcome
    court: CourtRank
    part: Operative | None

    @classmethod
    def of(cls, document: Document, corpus: Corpus) -> "AnalysedDecision":
        """Read a document of a corpus."""
        court = court_of(document.juridiction, document.formation, document.title)
        entities = None if document.solution.strip() else corpus.entities_of(document.id)
        outcome = outcome_of(document.solution, court, document.content, entities)
        return cls(document, outcome, court, document.reading.operative)

    @cached_property
    def mentions(self) -> list[ArticleMention]:
        """Its mentions of articles, see `find_mentions`."""
        return find_mentions(self.document.content, self.part)

    @property
    def decided_by(self) -> list[ArticleMention]:
        """The articles that it probably decided by: those in its visa for a cassation, else all mentioned."""
        in_visa = [mention for mention in self.mentions if mention.in_visa] if CASSATION in self.outcome.kinds else []
        return in_visa or self.mentions

    @property
    def day(self) -> date | None:
        """The day of the decision; None where it is not known to the day."""
        return day_of(self.document.decision_date)

    def is_of_same_case(self, other: "AnalysedDecision") -> bool:
        """Whether two documents are one decision: a reference key or the text in common."""
        return self.document.content == other.document.content or not set(own_keys(self.document)).isdisjoint(
            own_keys(other.document)
        )

    def shown_at(self, mention: ArticleMention) -> ComparedDecision:
        """Return the decision's display fields, with the place of a mention."""
        doc, span = self.document, (mention.start, mention.end)
        metadata = (doc.id, doc.title, doc.decision_date, doc.juridiction, doc.formation, self.outcome.words)
        return ComparedDecision(*metadata, *span, doc.content[slice(*span)], legal_citation(doc).text)

    def around(self, mention: ArticleMention, context: int) -> str:
        """Return a mention with `context` characters on either side."""
        return self.document.content[max(mention.start - context, 0) : mention.end + context]

    def says(self, span: Span) -> bool:
        """Whether a span is the court's own words: no ground of appeal, and not after the operative part."""
        start, end = span
        if self.part is not None and end > self.part.end:
            return False
        return not any(first < end and start < last for first, last in find_grounds(self.document.content))

    def excerpt(self, cited: list[Span]) -> str:
        """Return the text around some spans, and the beginning of its operative part."""
        text = self.document.content
        spans = [(max(start - AROUND, 0), min(end, start + AROUND) + AROUND) for start, end in cited]
        if self.part is not None:
            spans.append((self.part.start, min(self.part.end, self.part.start + DISPOSED)))
        return CUT.join(text[start:end].strip() for start, end in _merge_spans(sorted(spans)))


def day_of(written: str) -> date | None:
    """Parse an ISO 8601 day; None if it is not one."""
    try:
        return date.fromisoformat(written[:10])
    except ValueError:
        return None


def find_mentions(text: str, part: Operative | None = None) -> list[ArticleMention]:
    """Find where a decision cites articles of codes, in order, up to its operative part (`part`, if known).

    Left out are articles cited in every case, and those that only the parties cite.
    """
    part = part or operative_part(text)
    body = text[: part.start] if part else text
    grounds = find_grounds(body)
    return [
        _build_mention(body, identifier)
        for identifier in find_identifiers(body)
        if identifier.kind == "article"
        and identifier.code
        and not re.fullmatch(_OF_EVERY_CASE.get(identifier.code, "$^"), identifier.value)
        and not _PART_OF_ARTICLE.search(body[max(identifier.start - 12, 0) : identifier.start])
        and not any(start <= identifier.start < end for start, end in grounds)
    ]


def find_grounds(text: str) -> list[Span]:
    """Find the spans that report the grounds of appeal: the parties' words, not the court's."""
    return [match.span() for match in _GROUNDS.finditer(text)]


def article_name(value: str, code: str) -> str:
    """Write an article as texts do: 'L1152-1' of the 'code du travail' is 'L. 1152-1 du code du travail'."""
    number = _LETTERED.sub(lambda match: f"{'L.O.' if match[1] == 'LO' else match[1] + '.'} ", value, count=1)
    return f"{number} du {code}"


class PassageSimilarity:
    """IDF-weighted Dice coefficient of passages; caches stems and weights, so one object serves one thread."""

    def __init__(self, lexical: LexicalIndex | None) -> None:
        """Take the index of the IDF weights; without one every word weighs 1."""
        self._lexical = lexical
        self._stems: dict[str, tuple[str, ...]] = {}
        self._idf: dict[str, float] = {}

    def __call__(self, one: str, other: str) -> float:
        """Return the weighted share of words in common, 0 to 1."""
        words, others = self._stem_terms(one), self._stem_terms(other)
        both = self._sum_idf(words) + self._sum_idf(others)
        return 2 * self._sum_idf(words & others) / both if both else 0.0

    def _stem_terms(self, text: str) -> set[str]:
        terms: set[str] = set()
        for word in set(content_words(text)):
            if word not in self._stems:
                self._stems[word] = tuple(lexical_words(word))
                for stem in self._stems[word]:
                    self._idf.setdefault(stem, self._lexical.rarity(word) if self._lexical else 1.0)
            terms.update(self._stems[word])
        return terms

    def _sum_idf(self, terms: Iterable[str]) -> float:
        return sum(self._idf[term] for term in terms)


def _build_mention(text: str, ref: Identifier) -> ArticleMention:
    numbered = _NUMBERED_PART.match(text, ref.end)
    part = numbered[1].casefold().replace("premier", "1") if numbered else ""
    in_visa = _VISA.match(text, text.rfind("\n", 0, ref.start) + 1, ref.start) is not None
    return ArticleMention(canonical_key(ref), article_name(ref.value, ref.code), ref.start, ref.end, part, in_visa)


def _merge_spans(spans: list[Span]) -> list[Span]:
    joined = spans[:1]
    for start, end in spans[1:]:
        if start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
