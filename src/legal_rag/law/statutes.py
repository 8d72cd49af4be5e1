"""Statutes, decrees, directives and treaties named in a text."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from legal_rag.base.text import read_words, words_of
from legal_rag.law.dates import LegalDate
from legal_rag.law.scanning import DASH, NUMBER_SIGN, Led, read_table, short_form

_LISTS = read_words("legal_rag.law")
_OF = "(?:de la|de l['’]|des|du|de|d['’])_"
CODE_NAME = (
    rf"(?:code|livre[ ]des[ ]proc[ée]dures) (?:g[ée]n[ée]ral )?(?:{_OF})?(?:{'|'.join(_LISTS['code_nouns'])})(?!\w)"
    rf"(?: (?:entre le |et l['’]_|(?:et|ou) )?(?:{_OF}|à l['’]_)?(?:{'|'.join(_LISTS['code_words'])})(?!\w))*"
)

_CODES = read_table("codes.toml")["codes"]
CODE_FORMS: dict[str, str] = {row["name"]: row["cite"] for row in _CODES}  # citation forms, with no-break spaces
_CODE_OF_LETTERS = {
    "".join(words_of(form)): row["name"] for row in _CODES for form in (row["cite"], *row.get("short", ()))
}
_SHORT_FORMS = sorted((form for row in _CODES for form in (row["cite"], *row.get("short", ()))), key=len, reverse=True)
SHORT_CODE = f"(?P<code>{'|'.join(map(short_form, _SHORT_FORMS))})(?!\\w)"
SHORT_CODE_STARTS = sorted({form[:2].lower() for form in _SHORT_FORMS})


def code_named(short: str) -> str:
    """Return the name of a code by its abbreviation: 'code du travail' for "C. trav."."""
    return _CODE_OF_LETTERS["".join(words_of(short))]


TextKind = Literal["code", "statute", "treaty", "constitution"]


class LegalText(NamedTuple):
    """A legal text that a document names."""

    kind: TextKind
    start: int  # characters
    end: int


_STATUTE_NUMBER = rf"(?:(?:19|20)?\d\d{DASH}\d{{1,5}}(?:{DASH}\d{{1,3}})?|\d{{1,4}})(?![\w/])"
_QUALIFIED = "(?:_,?_(?:modifiée?|précitée?|susvisée?|susmentionnée?|susdite?|complétée?))?"
_STATUTE = Led(
    rf"(?<![\w-])(?P<kind>lois?|ordonnances?|décrets?{DASH}lois?|décrets?|arrêtés?|circulaires?)(?!\w)(?: "
    "(?:organique|constitutionnelle|royal|impérial|(?:inter)?ministériel|préfectoral|municipal))?(?: "
    f"(?P<number>{NUMBER_SIGN}_{_STATUTE_NUMBER}|{_STATUTE_NUMBER}))?(?P<qualified>{_QUALIFIED})(?P<of>_,? "
    "(?:en date )?(?:du|des|de)? |_,? )?",
    ["loi", "ordonnance", "décret", "decret", "arrêté", "circulaire"],
)
_EUROPEAN = Led(
    rf"(?<!\w)(?:directives?|règlements?) (?:\((?:CEE?|UE|Euratom)\)_)?(?:{NUMBER_SIGN}_)?"
    r"(?:\d{2,4}/\d{1,4}(?:/(?:CEE?|UE|Euratom))?)(?: (?:\((?:CEE?|UE)\)))?(?!\w)(?P<by>(?: du (?:Conseil|"
    "Parlement européen(?: et du Conseil)?))?_,? du )?",
    ["directive", "règlement"],
)
_RIGHTS = "(?:de sauvegarde )?(?:des droits de l['’]homme(?: et des libertés fondamentales)?)"
# Treaties, declarations and rules of procedure, by name.
TREATIES: tuple[str, ...] = (
    f"convention européenne {_RIGHTS}",
    "convention de sauvegarde des droits de l['’]homme(?: et des libertés fondamentales)?",
    r"(?:premier )?protocole (?:n_[°o]_\d{1,2} )?(?:additionnel (?:n_[°o]_\d{1,2} )?)?à (?:la|cette) "
    f"convention(?: européenne)? {_RIGHTS}",
    "convention internationale (?:relative aux|des) droits de l['’]enfant",
    f"pacte international (?:de New{DASH}York )?relatif aux droits (?:civils et politiques|économiques,? "
    "sociaux et culturels)",
    "charte (?:des droits fondamentaux(?: de l['’]Union européenne)?|sociale européenne|de l['’]environnement)",
    "déclaration (?:des droits de l['’]homme et du citoyen)(?: (?:de 1789|du 26 août 1789))?",
    "déclaration de 1789",
    "traité (?:de Rome|de Maastricht|d['’]Amsterdam|de Nice|de Lisbonne|instituant la Communauté "
    "(?:économique )?européenne|CEE?|sur (?:le fonctionnement de )?l['’]Union européenne)",
    "règlement applicable à la procédure suivie devant le Conseil constitutionnel pour le contentieux de "
    "l['’]élection des députés et des sénateurs",
    "préambule de la constitution (?:de 1946|du 27 octobre 1946)",
)
_TREATY = Led(
    rf"(?<![\w-])(?:{'|'.join(TREATIES)})(?!\w)",
    ["convention", "premier", "protocole", "pacte", "charte", "déclaration", "traité", "règlement", "préambule"],
)
# "Convention de New-York du 26 janvier 1990": a treaty where a date ends it; a collective agreement names no town.
_TREATY_OF = Led(
    rf"(?<!\w)[Cc]onvention(?: (?:franco{DASH}\w+|internationale|européenne|bilatérale))? (?:de|d['’])_"
    r"(?P<town>[A-ZÉ][\w-]+(?: [A-Z][\w-]+)?) (?P<of>du )",
    ["convention"],
    0,
)
_CONSTITUTION = Led(r"(?<=\bla[ \u00a0])Constitution(?!\w)(?! de (?!1958))(?P<of> du )?", ["constitution"], 0)
_NAMED_CODE = Led(
    rf"(?<![\w-])(?:(?:nouveau|ancien) )?{CODE_NAME}",
    ["nouveau", "ancien", "code", "livre des proc", "livre  des", "livre\u00a0des"],
)


_ARTICLE_OF = re.compile(r"articles?\s[^.;:]{1,40}de l['’]$", re.IGNORECASE)
_LOOK_BACK = 60  # characters before an ordinance in which its article is named
_LAST_FAMOUS_YEAR = 1990  # ordinances named by date alone (1945, 1958, 1967, 1986) are older


def find_texts(text: str, dates: Sequence[LegalDate]) -> list[LegalText]:
    """Find legal texts by name, in text order; of overlapping ones the longest counts.

    `dates` are the text's `find_dates`: a statute is named by number, date or both.
    """
    ends = {day.start: day.end for day in dates}
    names = [
        *_find_statutes(text, dates),
        *_with_date("treaty", _TREATY_OF, text, ends, needed=True),
        *_with_date("constitution", _CONSTITUTION, text, ends),
        *_with_date("statute", _EUROPEAN, text, ends, group="by"),
        *(LegalText("treaty", *match.span()) for match in _TREATY.finditer(text)),
        *(LegalText("code", *match.span()) for match in _NAMED_CODE.finditer(text)),
    ]
    names.sort(key=lambda name: (name.start, -name.end))
    return [name for i, name in enumerate(names) if not any(name.start < near.end for near in names[max(i - 3, 0) : i])]


def _find_statutes(text: str, dates: Sequence[LegalDate]) -> list[LegalText]:
    days = {day.start: day for day in dates}
    statutes, only_dated = [], []
    numbered = set()  # dates of ordinances that the text also names by number
    for match in _STATUTE.finditer(text):
        day, number = days.get(match.end()) if match["of"] else None, match["number"]
        if number and not re.search(r"n|-", number, re.IGNORECASE) and day is None:
            continue  # "loi 12" may be anything
        if day is not None:
            statute = LegalText("statute", match.start(), day.end)
            if match["kind"].lower().startswith("ordonnance") and not number:
                only_dated.append((statute, day.value, bool(match["qualified"])))
                continue
            numbered.add(day.value)
            statutes.append(statute)
        elif number:
            statutes.append(LegalText("statute", match.start(), match.end("number")))
    for statute, day_value, qualified in only_dated:  # a judge's orders are named by date too
        cited = _ARTICLE_OF.search(text[max(statute.start - _LOOK_BACK, 0) : statute.start])
        if qualified or cited or day_value in numbered or day_value.year < _LAST_FAMOUS_YEAR:
            statutes.append(statute)
    return statutes


def _with_date(
    kind: TextKind, pattern: Led, text: str, ends: Mapping[int, int], *, needed: bool = False, group: str = "of"
) -> list[LegalText]:
    """Extend a pattern's matches to the date after `group`; without a date, end there, or drop them if `needed`."""
    texts = []
    for match in pattern.finditer(text):
        end = ends.get(match.end()) if match[group] else None
        if end is None and not needed:
            end = match.start(group) if match[group] else match.end()
        if end is not None:
            texts.append(LegalText(kind, match.start(), end))
    return texts
