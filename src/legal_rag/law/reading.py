"""One reading of a text: what the rules find in it, each found when first asked for and kept; its letterhead."""

import re
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from legal_rag.base.html import displayed
from legal_rag.base.text import Span
from legal_rag.law.articles import ArticleCitation, find_article_citations, find_texts
from legal_rag.law.courts import find_courts, find_formations
from legal_rag.law.decisions import find_cases, find_identifiers
from legal_rag.law.sentences import split_sentences
from legal_rag.law.tree import Paragraph, TreeNode
from legal_rag.law.values import find_amounts, find_dates, find_durations, find_time_limits
from legal_rag.law.words import WEEKDAYS

if TYPE_CHECKING:
    from legal_rag.law.outcomes import Operative


class Reading:
    """What a text says in the forms of French law; offsets count its characters; `zones`: see `read_paragraphs`."""

    def __init__(self, text: str, zones: object = None) -> None:
        self.text, self._zones = text, zones

    sentences = cached_property(lambda self: split_sentences(self.text))  # cover the text
    dates = cached_property(lambda self: find_dates(self.text))
    durations = cached_property(lambda self: find_durations(self.text))
    time_limits = cached_property(lambda self: find_time_limits(self.text))
    amounts = cached_property(lambda self: find_amounts(self.text))
    cases = cached_property(lambda self: find_cases(self.text))  # strings in the form of a case number
    identifiers = cached_property(lambda self: find_identifiers(self.text, self.cases))  # of decisions and articles
    texts = cached_property(lambda self: find_texts(self.text, self.dates))  # codes, statutes, treaties
    courts = cached_property(lambda self: find_courts(self.text))
    formations = cached_property(lambda self: find_formations(self.text))

    # `outcomes`, `parts` and `outline` compile patterns for hundredths of a second: not at every start.

    @cached_property
    def grounds(self) -> list[Span]:
        """The grounds of appeal, as designated."""
        from legal_rag.law.outcomes import grounds

        return grounds(self.text)

    @cached_property
    def operative(self) -> "Operative | None":
        """The operative part of a decision."""
        from legal_rag.law.outcomes import operative_part

        return operative_part(self.text)

    @cached_property
    def articles(self) -> list[ArticleCitation]:
        """The articles that it cites, with the texts that hold them; a sum of money is none ("1382 et 760 euros")."""
        sums = {amount.start for amount in self.amounts}
        return [cited for cited in find_article_citations(self.text, self.texts) if cited.start not in sums]

    @cached_property
    def paragraphs(self) -> list[Paragraph]:
        """Its paragraphs, with who speaks in each."""
        from legal_rag.law.parts import read_paragraphs

        return read_paragraphs(self, self._zones)

    @cached_property
    def tree(self) -> TreeNode:
        """Its outline."""
        from legal_rag.law.outline import build_tree

        return build_tree(self)

    @cached_property
    def statements(self) -> list[Span]:
        """The statements of the operative part."""
        from legal_rag.law.outcomes import statements

        return statements(self.text, self.operative) if self.operative else []

    @cached_property
    def outcomes(self) -> list[Span]:
        """The words that state a decision's outcome."""
        from legal_rag.law.outcomes import solutions

        return solutions(self.text, self.operative, self.statements)


def read(text: str | Reading, zones: object = None) -> Reading:
    """Return the reading of a text; a reading is returned as it is."""
    return text if isinstance(text, Reading) else Reading(text, zones)


HEAD_CHARS, TAIL_CHARS = 3000, 2000  # read of a text: its header and parties, its signatures
TITLE_CHARS = 800  # where a decision gives its own date; later dates are cited ones
AUTHOR_CHARS = 120
EMAIL = "courriel"  # the `nature` of a text file with an e-mail header
_AUTHOR_FIELDS = {"de", "from", "expéditeur", "auteur", "author", "rédacteur"}
_DATE_FIELDS = {"date", "date d'envoi", "envoyé", "envoyé le", "sent"}
_TO_FIELDS, _SUBJECT_FIELDS = {"à", "to", "destinataire"}, {"objet", "subject"}
_NAMES = "|".join(sorted(_AUTHOR_FIELDS | _DATE_FIELDS | _TO_FIELDS | _SUBJECT_FIELDS, key=len, reverse=True))
_FIELD = re.compile(rf"^[ \t>*_]*(?P<name>{_NAMES})[ *_]*:[ *_]*(?P<value>\S[^\n]*)$", re.IGNORECASE | re.MULTILINE)
_ADDRESS = re.compile(r"\s*(?:<[^>\n]*>|\[[^\]\n]*\])")
# The first party to a contract: a contract's author, up to its legal form, its address or the like.
_PARTY = re.compile(
    r"\bentre les (?:parties )?soussignée?(?:\(e\))?s?\b[\s:,*–-]*(?:(?:d['’]une part|\d[.)°])[\s:,*–-]*)?"
    rf"(?P<party>\w[^,;(\n]{{1,{AUTHOR_CHARS}}})",
    re.IGNORECASE,
)
_DAY = f"(?:(?:{'|'.join(WEEKDAYS)}) )?"
# What precedes a text's date in its line, most reliable first: signature, delivery, writing, decision.
_SIGNED = re.compile(rf"\W{{0,9}}(?:fait|signé|établi)\b.{{0,120}}\ble {_DAY}", re.IGNORECASE)
_DELIVERED = re.compile(
    r".{0,400}\b(?:dans s(?:a|es) séances?|en son audience publique|rendue? publi(?:c|que)"
    rf"|prononcée? (?:à l['’]audience publique|par mise à disposition au greffe)) (?:du|le)(?: ?:)? {_DAY}",
    re.IGNORECASE,
)
_WRITTEN = re.compile(rf"\W{{0,9}}(?:[^\W\d][\w' ’-]{{1,60}}, )?(?:(?:publié )?le )?{_DAY}", re.IGNORECASE)
_DECIDED = re.compile(
    r"\W{0,9}(?:(?:audience publique|arrêt|jugement|ordonnance|décision)\b.{0,40} du|prononcée? le) ", re.IGNORECASE
)


@displayed
class Letterhead(NamedTuple):
    """A text's own metadata; empty where it gives none."""

    date: str = ""  # ISO 8601
    author: str = ""
    is_email: bool = False


def read_letterhead(text: str) -> Letterhead:
    """Read who wrote a text and when: fields such as "De :" and "Date :", "Fait à Lyon, le …", "Paris, le …"."""
    head = text[:HEAD_CHARS]
    fields: dict[str, str] = {}
    for field in _FIELD.finditer(head):
        fields.setdefault(field["name"].lower(), field["value"].strip())
    author, sent, to, subject = (
        next((value for name, value in fields.items() if name in names), "")
        for names in (_AUTHOR_FIELDS, _DATE_FIELDS, _TO_FIELDS, _SUBJECT_FIELDS)
    )
    party = _PARTY.search(head)
    return Letterhead(
        _date_of_field(sent) or _date_in_lines(f"{head}\n{text[HEAD_CHARS:][-TAIL_CHARS:]}"),
        _name_of(author) or (party["party"].strip() if party else ""),
        bool(author and to and (subject or sent)),
    )


def _date_of_field(value: str) -> str:
    if dates := find_dates(value):
        return dates[0].value.isoformat()
    try:
        return parsedate_to_datetime(value).date().isoformat()  # "Tue, 4 Feb 2025 09:14:00 +0100"
    except (ValueError, TypeError, IndexError):
        return ""


def _date_in_lines(text: str) -> str:
    dates_by_rank: dict[int, str] = {}
    for day in find_dates(text):
        line = text.rfind("\n", 0, day.start) + 1
        end = text.find("\n", day.end)
        alone = not text[day.end : end if end >= 0 else len(text)].strip(" .,;:")
        lead = text[line : day.start]
        if _SIGNED.fullmatch(lead):
            dates_by_rank[0] = day.value.isoformat()  # the last signature counts
        elif _DELIVERED.fullmatch(lead):
            dates_by_rank[1] = day.value.isoformat()  # it may be read in public after the session
        elif alone and _WRITTEN.fullmatch(lead):
            dates_by_rank.setdefault(2, day.value.isoformat())
        elif line < TITLE_CHARS and _DECIDED.fullmatch(lead):
            dates_by_rank.setdefault(3, day.value.isoformat())
    return dates_by_rank[min(dates_by_rank)] if dates_by_rank else ""


def _name_of(value: str) -> str:
    name = _ADDRESS.sub("", value).strip(" \t\"'«»*_")
    return (name or value.strip(" <>[]"))[:AUTHOR_CHARS]
