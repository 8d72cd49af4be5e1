"""Decisions that are cited: 'décision n° 71-44 DC du 16 juillet 1971', '2e Civ., 20 décembre 2012, n° 11-26.621'."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from legal_rag.legal_patterns.dates import LegalDate
from legal_rag.legal_patterns.identifiers import Identifier
from legal_rag.legal_patterns.parts import DASH, GAP, SPACE
from legal_rag.legal_patterns.scanning import Led


class CitedDecision(NamedTuple):
    """Another decision, as one text cites it."""

    start: int  # characters
    end: int


_CHAMBERS = (
    rf"(?:Cass\.?{GAP},?{GAP})?(?:(?:\d{GAP}(?:re|ère|er|e|ème){SPACE})?(?:Civ\.?(?:{GAP}\d(?:re|ère|e|ème)?)?|Soc\.?"
    rf"|Com\.?|Crim\.?|civ\.|soc\.|com\.|crim\.)"
    rf"|Ass(?:emblée|\.){GAP}[Pp]l[ée]n(?:ière|\.)|Ch(?:ambre|\.){GAP}mixte|ass\.{GAP}plén\.)"
)
_COURTS = (
    rf"(?:Cass\.|C\.{GAP}E\.|CE|CJCE|CJUE|CEDH|Cons\.{GAP}const\.|Conseil{SPACE}d['’][EÉ]tat|Cour{SPACE}de"
    rf"{SPACE}cassation)"
)
# What stands before a date: "Soc., " or "CE, ass., ".
_ABBREVIATED = re.compile(
    rf"(?<![\w/-])(?:{_CHAMBERS}|{_COURTS})(?!\w)(?:{GAP},?{GAP}[\w°.()]{{1,12}}){{0,3}}?{GAP},?{GAP}"
    rf"(?:(?:du|le|arrêt{SPACE}du){SPACE})?$"
)
_LOOK_BACK = 60  # characters before a date in which its court would stand
_NAMED = Led(
    rf"(?<!\w)(?:(?-i:[Aa]rr[êe]ts?|[Dd]écisions?|[Aa]vis)){SPACE}(?:{GAP}n{GAP}[°o]{GAP}(?P<number>[\w.,-]{{1,14}})"
    rf"{SPACE})?(?:rendue?s?{SPACE}(?:par{SPACE}|en{SPACE}(?=Ass|ass)))?"
    rf"(?:de{SPACE}la{SPACE}|du{SPACE}|la{SPACE}|le{SPACE}|(?=Ass))(?:Assemblée{SPACE}plénière|Cour{SPACE}de"
    rf"{SPACE}cassation|Conseil{SPACE}d['’][EÉ]tat|Cour{SPACE}européenne{SPACE}des{SPACE}droits{SPACE}de"
    rf"{SPACE}l['’]homme|"
    rf"Conseil{SPACE}constitutionnel|Cour{SPACE}de{SPACE}justice(?:{SPACE}de{SPACE}l['’]Union{SPACE}européenne|"
    rf"{SPACE}des{SPACE}[Cc]ommunautés{SPACE}européennes)?)"
    rf"(?:,?{SPACE}[\w’', -]{{1,40}}?)?{SPACE}(?:(?:en{SPACE}date{SPACE})?du|le){SPACE}",
    ["arrêt", "arret", "décision", "avis"],
)
_NUMBERED = Led(
    rf"(?<!\w)(?:décisions?|arrêts?){SPACE}(?:du{SPACE}Conseil{SPACE}constitutionnel{SPACE})?(?:n{GAP}[°os]{{1,2}}\.?"
    rf"|numéros?){GAP}",
    ["décision", "arrêt"],
)
_NUMBER_SIGN = re.compile(
    rf"{GAP},?{SPACE}?(?:(?:pourvois?|requêtes?|req\.|aff\.|affaire|arrêt){SPACE})?(?:n{GAP}[°os]{{1,2}}\.?|numéros?)"
    rf"{GAP}(?:[A-Z]{SPACE})?",
    re.IGNORECASE,
)
_OF_DATE = re.compile(rf"{GAP},?{SPACE}(?:(?:rendue?{SPACE})?(?:le|du|en{SPACE}date{SPACE}du){SPACE})?", re.IGNORECASE)
_AND = re.compile(rf"{GAP}(?:,|et){SPACE}(?:(?:n{GAP}[°o]{GAP})?(?:[A-Z]{SPACE})?)?(?=\d\d{DASH})")


def find_cited_decisions(
    text: str, dates: Sequence[LegalDate], identifiers: Sequence[Identifier]
) -> list[CitedDecision]:
    """Find decisions cited by court and date or number, from the first word that names them to the last of the two.

    Args:
        text: The document.
        dates: What `find_dates` finds in it.
        identifiers: What `find_identifiers` finds in it.
    """
    days = {one.start: one.end for one in dates}
    cases = {one.start: one.end for one in identifiers if one.kind not in ("article", "rg")}
    found = []
    for day in dates:
        before = max(day.start - _LOOK_BACK, 0)
        if match := _ABBREVIATED.search(text[before : day.start]):
            found.append(CitedDecision(before + match.start(), _with_number(text, day.end, cases)))
    for match in _NAMED.finditer(text):
        if (end := days.get(match.end())) is not None:
            found.append(CitedDecision(match.start(), _with_number(text, end, cases)))
    for match in _NUMBERED.finditer(text):
        if (end := cases.get(match.end())) is not None:
            of = _OF_DATE.match(text, end)
            found.append(CitedDecision(match.start(), days.get(of.end(), end) if of else end))
    found.sort(key=lambda one: (one.start, -one.end))
    return [one for i, one in enumerate(found) if not i or one.start >= found[i - 1].end]


def _with_number(text: str, end: int, cases: Mapping[int, int]) -> int:
    """Return where the numbers end that follow a date, or else the date's own end."""
    sign = _NUMBER_SIGN.match(text, end)
    while sign is not None and sign.end() in cases:
        end = cases[sign.end()]
        sign = _AND.match(text, end)
    return end
