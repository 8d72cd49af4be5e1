"""What a text states of the decisions, articles, laws and quotations that it refers to."""

from datetime import date
from typing import NamedTuple

from legal_rag.base.text import Span
from legal_rag.law import Identifier, LegalDate
from legal_rag.law.outcomes import SaidFate
from legal_rag.law.wordings import StatedEnding, StatedWording


class StatedOutcome(NamedTuple):
    """An outcome that a text states."""

    kind: str  # see `legal_rag.law.outcomes`
    start: int  # characters
    end: int
    court: str  # named last before it in its sentence; may be empty
    is_relative: bool  # said by a relative clause, of what is named just before it


class StatedDecision(NamedTuple):
    """A decision that a text names, and what it says of it."""

    start: int  # characters: with court and date, or of the number alone where there are several
    end: int
    names: tuple[Identifier, ...]  # of one number: joined cases have several; none: named by court and date
    court: str  # as written; empty if none is stated
    date: LegalDate | None
    outcomes: tuple[StatedOutcome, ...]
    citation: Span  # with court, date and its other numbers
    supports: Span = (0, 0)  # what the text says that it is cited for: its sentence, or the one before
    ruling: str = ""  # the arrêt's own number, which is not the case's: of "l'arrêt n° 1153 FS-P+B du 25 novembre 2020"
    party: str = ""  # by whose name alone it is called: of "l'arrêt Derichebourg"
    is_reviewed: bool = False  # another decision is said to review it: "contre l'arrêt de la cour d'appel de Douai"
    point: int = 0  # numbered paragraph that is meant: of "§ 12"; 0: none is stated
    fates: tuple[SaidFate, ...] = ()  # what is said to have become of it, there or further on: "cet arrêt a été cassé"


class StatedArticle(NamedTuple):
    """An article of a code that a text names."""

    start: int  # characters, of the number
    end: int
    value: str  # normalised: 'L1152-1'
    code: str  # 'code du travail'
    former: bool  # its sentence speaks of an earlier version, perhaps of it
    wording: StatedWording | None = None  # the version meant, if that is said
    is_guess: bool = False  # its code is not named with it, but before
    ending: StatedEnding | None = None  # that it is still in force, or repealed, if that is said
    day: date | None = None  # in its sentence, and read as that of nothing, where no version is stated
    is_since: bool = False  # the day is that since which something is in force: perhaps the article

    @property
    def dated(self) -> StatedWording | None:
        """The version meant, where the text states its days or its act."""
        return self.wording if self.wording and self.wording.first else None


Source = StatedDecision | StatedArticle


class StatedQuotation(NamedTuple):
    """A quotation, and what the text gives as its source, the likeliest first."""

    start: int  # characters, marks included
    end: int
    words: str
    sources: tuple[Source, ...]
    introduced: bool  # by "que", a colon, or followed by its source in parentheses
    of_a_text: bool  # named last before it: a statute, an article, a contract, not a decision
    speaker: str  # the court named last before it in its sentence; may be empty
    sentence: Span  # that it stands in, with a source in parentheses after it


class StatedLaw(NamedTuple):
    """A law, an ordinance or a decree that a text names by its number, its date or its usual name."""

    start: int  # characters
    end: int
    keys: tuple[str, ...]  # of the statutes that it may be: 'loi n° 85-677'; several laws share a usual name
    date: LegalDate | None  # that the text gives


class UnreadReference(NamedTuple):
    """Words that look like a reference to a decision and could not be read as one."""

    start: int  # characters
    end: int


class References(NamedTuple):
    """What a text refers to, each in text order."""

    decisions: list[StatedDecision]
    articles: list[StatedArticle]
    laws: list[StatedLaw]
    quotations: list[StatedQuotation]
    unread: list[UnreadReference]
