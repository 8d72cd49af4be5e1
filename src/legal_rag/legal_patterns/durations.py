"""Time limits in French text: 'délai de deux mois', 'dans les trente jours', 'sous huitaine'."""

from typing import NamedTuple

from legal_rag.legal_patterns.numbers import NUMBER_IN_WORDS
from legal_rag.legal_patterns.parts import BLANK, SPACE
from legal_rag.legal_patterns.scanning import Around, Led


class TimeLimit(NamedTuple):
    """A length of time within which something must or may be done."""

    start: int  # characters
    end: int


UNITS = r"(?:jours?(?: francs?| ouvrables?| ouvrés?| calendaires?)?|semaines?|mois|ans?|années?|heures?)(?!\w)"
_NUMBER = (
    rf"(?:\d{{1,3}}(?:{BLANK}?\([^()]{{1,20}}\))?|(?:{NUMBER_IN_WORDS})(?:{BLANK}?\(\d{{1,3}}\))?|quinzaine{BLANK}de)"
)
_DURATION = rf"{_NUMBER}{SPACE}{UNITS}"
_WORD = r"[^\W\d_]+(?:['’-][^\W\d_]+)*"
# What says before a duration that it is a limit; the first two words belong to the limit's name.
_NAMED = rf"délais?{SPACE}(?:d['’]|de{SPACE})"
_LEADS = (
    rf"délais?{SPACE}(?:{_WORD}{SPACE}){{0,5}}(?:d['’]|de{SPACE})",
    rf"dans{SPACE}les{SPACE}(?:{_WORD}{SPACE}){{0,1}}",
    rf"(?:au{SPACE}plus{SPACE}tard|avant{SPACE}l['’]expiration|à{SPACE}l['’]issue|au{SPACE}bout){SPACE}(?:des?|d['’]"
    rf"|de{SPACE}la{SPACE}période{SPACE}de|les){SPACE}?",
    rf"(?:préavis|prescriptions?(?:{SPACE}{_WORD}){{0,2}}|forclusion|sursis){SPACE}(?:d['’]|de{SPACE})",
    rf"sous{SPACE}(?:un{SPACE})?",
    rf"se{SPACE}prescri(?:t|vent)(?:{SPACE}{_WORD}){{0,2}}{SPACE}par{SPACE}",
)
# What says it behind one.
_TAIL = (
    rf"{SPACE}(?:à{SPACE}(?:compter|partir|dater)|(?:qui{SPACE}suiv(?:ent|aient|ront)|suivant|après|avant|au"
    rf"{SPACE}moins{SPACE}avant){SPACE})"
)
_NAMED_LIMIT = Led(rf"(?<!\w){_NAMED}(?:{_DURATION})", ["délai"])
_LED = Led(
    rf"(?<!\w)(?:{'|'.join(_LEADS)})(?P<duration>{_DURATION})",
    [
        "délai",
        "dans",
        "au plus",
        "avant l",
        "à l",
        "au bout",
        "préavis",
        "prescription",
        "forclusion",
        "sursis",
        "sous",
        "se prescri",
    ],
)
_TAILED = Around(
    rf"(?<=\bles ){_DURATION}(?={_TAIL})", [" jour", " semaine", " mois", " an", " heure", "quinzaine"], 60, 90
)


def find_time_limits(text: str) -> list[TimeLimit]:
    """Find the lengths of time that the words around them call limits, with 'délai de' where that stands before."""
    found = {(match.start(), match.end()) for match in _NAMED_LIMIT.finditer(text)}
    ends = {end for _, end in found}
    for pattern, group in ((_LED, "duration"), (_TAILED, 0)):
        spans = (match.span(group) for match in pattern.finditer(text))
        found |= {span for span in spans if span[1] not in ends}
        ends |= {end for _, end in found}
    return [TimeLimit(*span) for span in sorted(found)]
