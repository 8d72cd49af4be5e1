"""Statutes, decrees, directives and treaties named in a text."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from legal_rag.corpus.patterns.dates import LegalDate
from legal_rag.corpus.patterns.scanning import DASH, GAP, SPACE, Led

# The noun that names a code; "le code précité" or "le code prévoit" names none.
_CODE_WORD = (
    "(?:action|artisanat|assurances?|aviation|cinéma|civil|collectivités|commande|commerce|communes|consommation|"
    "construction|déontologie|domaine|douanes|défense|éducation|électoral|énergie|entrée|environnement|expropriation|"
    "famille|fonction|forestier|impositions|impôts|instruments|juridictions|justice|marchés|minier|monétaire|mutualité|"
    "nationalité|navigation|organisation|patrimoine|pêche|pensions|pénal|ports|postes|procédures?|propriété|recherche|"
    "relations|route|rural|santé|sécurité|service|sport|tourisme|transports|travail|urbanisme|voirie)(?!\\w)"
)
_CODE = (
    rf"(?:code|livre des proc[ée]dures){SPACE}(?:g[ée]n[ée]ral{SPACE})?"
    rf"(?:(?:de{SPACE}la|de{SPACE}l['’]|des|du|de|d['’]){GAP})?{_CODE_WORD}"
    rf"(?:{SPACE}(?:(?:et|ou){SPACE})?(?:(?:de{SPACE}la|de{SPACE}l['’]|des|du|de|d['’]|à{SPACE}l['’]){GAP})?"
    rf"(?:{{words}})(?!\w))*"
)
# Words that continue a code's name; any other word after its first noun belongs to the sentence.
_CODE_WORDS = (
    "administrati(?:f|ve|on|ons)|aériennes?|aide|aménagement|artistes|asile|assurances|civiles?|civils|collectivités|"
    "communications|commande|commerce|construction|consommation|culture|définitive|douanes|droit|électroniques|"
    "étrangers|exécution|familles?|finances|financier|fiscales|forêts?|générale|guerre|habitation|impôts|"
    "industrielle|intellectuelle|invalidité|judiciaire|juridictions|justice|locale|maritime|militaire|mines|mobile|"
    "monétaire|organisation|pêche|pénale|pensions|personnes|politique|postes|privée|procédures?|propriété|public|"
    "publique|publiques|rurale?|santé|séjour|sécurité|sociale?|sociales|solidarité|territoires|territoriales|"
    "utilité|victimes|voirie|routière"
)
CODE_NAME = _CODE.replace("{words}", _CODE_WORDS)

TextKind = Literal["code", "statute", "treaty", "constitution"]


class LegalText(NamedTuple):
    """A legal text that a document names."""

    kind: TextKind
    start: int  # characters
    end: int


_NUMBER_SIGN = rf"(?:n{GAP}?[°ºo]s?\.?|num[ée]ro){GAP}"
_STATUTE_NUMBER = rf"(?:(?:19|20)?\d\d{DASH}\d{{1,5}}(?:{DASH}\d{{1,3}})?|\d{{1,4}})(?![\w/])"
_QUALIFIED = rf"(?:{GAP},?{GAP}(?:modifiée?|précitée?|susvisée?|susmentionnée?|susdite?|complétée?))?"
_STATUTE = Led(
    rf"(?<![\w-])(?P<kind>lois?|ordonnances?|décrets?{DASH}lois?|décrets?|arrêtés?|circulaires?)(?!\w)"
    rf"(?:{SPACE}(?:organique|constitutionnelle|royal|impérial|(?:inter)?ministériel|préfectoral|municipal))?"
    rf"(?:{SPACE}(?P<number>{_NUMBER_SIGN}{_STATUTE_NUMBER}|{_STATUTE_NUMBER}))?"
    rf"(?P<qualified>{_QUALIFIED})(?P<of>{GAP},?{SPACE}(?:en{SPACE}date{SPACE})?(?:du|des|de)?{SPACE}|{GAP},?{SPACE})?",
    ["loi", "ordonnance", "décret", "decret", "arrêté", "circulaire"],
)
_EUROPEAN = Led(
    rf"(?<!\w)(?:directives?|règlements?){SPACE}(?:\((?:CEE?|UE|Euratom)\){GAP})?(?:{_NUMBER_SIGN})?"
    rf"(?:\d{{2,4}}/\d{{1,4}}(?:/(?:CEE?|UE|Euratom))?)(?:{SPACE}(?:\((?:CEE?|UE)\)))?(?!\w)"
    rf"(?P<by>(?:{SPACE}du{SPACE}(?:Conseil|Parlement{SPACE}européen(?:{SPACE}et{SPACE}du{SPACE}Conseil)?))?{GAP},?"
    rf"{SPACE}du{SPACE})?",
    ["directive", "règlement"],
)
_S = rf"{SPACE}"
_RIGHTS = (
    rf"(?:de{_S}sauvegarde{_S})?(?:des{_S}droits{_S}de{_S}l['’]homme(?:{_S}et{_S}des{_S}libertés{_S}fondamentales)?)"
)
# Treaties, declarations and rules of procedure, by name.
TREATIES: tuple[str, ...] = (
    rf"convention{_S}européenne{_S}{_RIGHTS}",
    rf"convention{_S}de{_S}sauvegarde{_S}des{_S}droits{_S}de{_S}l['’]homme(?:{_S}et{_S}des{_S}libertés"
    rf"{_S}fondamentales)?",
    rf"(?:premier{_S})?protocole{_S}(?:n{GAP}[°o]{GAP}\d{{1,2}}{_S})?(?:additionnel{_S}(?:n{GAP}[°o]{GAP}\d{{1,2}}"
    rf"{_S})?)?à{_S}(?:la|cette)"
    rf"{_S}convention(?:{_S}européenne)?{_S}{_RIGHTS}",
    rf"convention{_S}internationale{_S}(?:relative{_S}aux|des){_S}droits{_S}de{_S}l['’]enfant",
    rf"pacte{_S}international{_S}(?:de{_S}New{DASH}York{_S})?relatif{_S}aux{_S}droits{_S}(?:civils{_S}et"
    rf"{_S}politiques|économiques,?"
    rf"{_S}sociaux{_S}et{_S}culturels)",
    rf"charte{_S}(?:des{_S}droits{_S}fondamentaux(?:{_S}de{_S}l['’]Union{_S}européenne)?|sociale{_S}européenne|de"
    rf"{_S}l['’]environnement)",
    rf"déclaration{_S}(?:des{_S}droits{_S}de{_S}l['’]homme{_S}et{_S}du{_S}citoyen)(?:{_S}(?:de{_S}1789|du{_S}26"
    rf"{_S}août{_S}1789))?",
    rf"déclaration{_S}de{_S}1789",
    rf"traité{_S}(?:de{_S}Rome|de{_S}Maastricht|d['’]Amsterdam|de{_S}Nice|de{_S}Lisbonne|instituant{_S}la"
    rf"{_S}Communauté{_S}"
    rf"(?:économique{_S})?européenne|CEE?|sur{_S}(?:le{_S}fonctionnement{_S}de{_S})?l['’]Union{_S}européenne)",
    rf"règlement{_S}applicable{_S}à{_S}la{_S}procédure{_S}suivie{_S}devant{_S}le{_S}Conseil{_S}constitutionnel"
    rf"{_S}pour{_S}le"
    rf"{_S}contentieux{_S}de{_S}l['’]élection{_S}des{_S}députés{_S}et{_S}des{_S}sénateurs",
    rf"préambule{_S}de{_S}la{_S}constitution{_S}(?:de{_S}1946|du{_S}27{_S}octobre{_S}1946)",
)
_TREATY = Led(
    rf"(?<![\w-])(?:{'|'.join(TREATIES)})(?!\w)",
    ["convention", "premier", "protocole", "pacte", "charte", "déclaration", "traité", "règlement", "préambule"],
)
# "Convention de New-York du 26 janvier 1990": a treaty where a date ends it; a collective agreement names no town.
_TREATY_OF = Led(
    rf"(?<!\w)[Cc]onvention(?:{_S}(?:franco{DASH}\w+|internationale|européenne|bilatérale))?{_S}(?:de|d['’]){GAP}"
    rf"(?P<town>[A-ZÉ][\w-]+(?:{_S}[A-Z][\w-]+)?){_S}(?P<of>du{_S})",
    ["convention"],
    0,
)
_CONSTITUTION = Led(
    rf"(?<=\bla[ \u00a0])Constitution(?!\w)(?!{_S}de{_S}(?!1958))(?P<of>{_S}du{_S})?", ["constitution"], 0
)
_NAMED_CODE = Led(
    rf"(?<![\w-])(?:(?:nouveau|ancien){_S})?{CODE_NAME}",
    ["nouveau", "ancien", "code", "livre des proc", "livre  des", "livre\u00a0des"],
)


_ARTICLE_OF = re.compile(r"articles?\s[^.;:]{1,40}de l['’]$", re.IGNORECASE)
_LOOK_BACK = 60  # characters in which an article of an ordinance would stand before it
_LAST_FAMOUS_YEAR = 1990  # ordinances named by date alone (1945, 1958, 1967, 1986) are older


def find_texts(text: str, dates: Sequence[LegalDate]) -> list[LegalText]:
    """Find legal texts by name, in text order; of overlapping ones the longest counts.

    Args:
        text: The document.
        dates: Its `find_dates`: a statute is named by number, date or both.
    """
    ends = {one.start: one.end for one in dates}
    found = [
        *_statutes(text, dates),
        *_with_date("treaty", _TREATY_OF, text, ends, needed=True),
        *_with_date("constitution", _CONSTITUTION, text, ends),
        *_with_date("statute", _EUROPEAN, text, ends, group="by"),
        *(LegalText("treaty", *match.span()) for match in _TREATY.finditer(text)),
        *(LegalText("code", *match.span()) for match in _NAMED_CODE.finditer(text)),
    ]
    found.sort(key=lambda one: (one.start, -one.end))
    return [one for i, one in enumerate(found) if not any(one.start < other.end for other in found[max(i - 3, 0) : i])]


def _statutes(text: str, dates: Sequence[LegalDate]) -> list[LegalText]:
    days = {one.start: one for one in dates}
    found, only_dated = [], []
    numbered = set()  # dates of ordinances that the text also names by number
    for match in _STATUTE.finditer(text):
        day, number = days.get(match.end()) if match["of"] else None, match["number"]
        if number and not re.search(r"n|-", number, re.IGNORECASE) and day is None:
            continue  # "loi 12" may be anything
        if day is not None:
            one = LegalText("statute", match.start(), day.end)
            if match["kind"].lower().startswith("ordonnance") and not number:
                only_dated.append((one, day.value, bool(match["qualified"])))
                continue
            numbered.add(day.value)
            found.append(one)
        elif number:
            found.append(LegalText("statute", match.start(), match.end("number")))
    for one, day_value, qualified in only_dated:  # a judge's orders are named by date too
        cited = _ARTICLE_OF.search(text[max(one.start - _LOOK_BACK, 0) : one.start])
        if qualified or cited or day_value in numbered or day_value.year < _LAST_FAMOUS_YEAR:
            found.append(one)
    return found


def _with_date(
    kind: TextKind, pattern: Led, text: str, ends: Mapping[int, int], *, needed: bool = False, group: str = "of"
) -> list[LegalText]:
    """Extend a pattern's matches to the date after `group`; without one they end there, or are dropped if `needed`."""
    found = []
    for match in pattern.finditer(text):
        end = ends.get(match.end()) if match[group] else None
        if end is None and not needed:
            end = match.start(group) if match[group] else match.end()
        if end is not None:
            found.append(LegalText(kind, match.start(), end))
    return found
