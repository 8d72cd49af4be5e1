"""Courts and their formations, and the rank of each."""

import re
import tomllib
import unicodedata
from importlib.resources import files
from typing import Literal, NamedTuple

from legal_rag.base.text import Span, normalized
from legal_rag.law.scanning import BLANK, DASH, Around, Led

_TABLES = tomllib.loads((files("legal_rag.law") / "courts.toml").read_text("utf-8"))
# A town: a capital letter; hyphens, or the small words that join names, and those towns whose names have several words.
_CAP = r"(?-i:[A-ZÀ-ÖØ-Þ])"
_WORD = rf"{_CAP}[\w'’]*(?:[-‐‑][\w'’]+)*"
_FIRST_OF_SEVERAL = (
    "(?:aix|saint|sainte|st|ste|boulogne|chalons?|châlons?|fort|basse|pointe|clermont|mont|bourg|villefranche|salon|"
    "charleville|thonon|lons|brive|nogent|le|la|les|l['’]|saintes?|bar|la[ ]roche|romans|montreuil|aulnay|asnières|"
    "levallois|mantes|evry|vitry|sables|nouméa|mamoudzou|cayenne|château|chateau|tour|roche|neuilly|ivry|juvisy|lagny|"
    "palais|pont|port|verdun|villeneuve|alès|mende|cagnes|bonneville|digne|grasse|tarascon|carpentras|bourgoin|corbeil)"
)
_JOINED = (
    rf"(?:{BLANK}(?:(?:en|sur|sous|les|lès|le|la|de{BLANK}la|des|du|et|d['’]|de|l['’]|à){BLANK}?)?{_CAP}[\w'’]*"
    rf"(?:[-‐‑][\w'’]+)*)"
)
_SMALL = rf"(?:{BLANK}(?:de{BLANK}la|de{BLANK}l['’]|sur|en|lès|les){BLANK}?{_CAP}[\w'’]*(?:[-‐‑][\w'’]+)*)"
_TOWN = (
    rf"(?:{_FIRST_OF_SEVERAL}(?:[-‐‑][\w'’]+)*{_JOINED}{{1,2}}(?!['’\w])|{_WORD}(?:{_SMALL}(?={BLANK}?[,;.:)\n(]|"
    rf"{BLANK}(?:du|en|le|qui|a|et|dans)\b))?)"
)
_OF_TOWN = (
    "(?: (?:spécial|départemental|militaire|maritime))? (?:(?:de|du|des|de la|de l['’]) |d['’]_|de l['’]_)"
    f"(?:(?:la|le|les) (?={_CAP}))?{_TOWN}"
)


def _court_alternatives(names: list[str]) -> str:
    """Make a pattern of names; "~" is an apostrophe, which OCR may have dropped."""
    return "|".join(name.replace("~", rf"['’]?{BLANK}?") for name in sorted(names, key=len, reverse=True))


_SINGLE = Led(rf"(?<![\w-])(?:{_court_alternatives(_TABLES['single'])})(?!\w)", ["cour", "conseil", "tribunal"])
_LOCAL = Led(
    rf"(?<![\w-])(?:{_court_alternatives(_TABLES['local'])}){_OF_TOWN}",
    ["cour", "conseil", "tribun", "juridiction", "commission", "chambre"],
)

_ORDINAL = (
    rf"(?:premi[eè]re|deuxi[eè]me|seconde|troisi[eè]me|quatri[eè]me|cinqui[eè]me|sixi[eè]me|septi[eè]me|huiti[eè]me"
    rf"|neuvi[eè]me|"
    rf"dixi[eè]me|onzi[eè]me|douzi[eè]me|[\dl]\d?{BLANK}?(?:[eè]re|re|nde|[eè]me|[eè]|o|°))"
)
_KINDS = (
    "civiles?", "sociale", "commerciale", "criminelle", "correctionnelle", "mixte", "prud['’]homale", "sociales",
    "financière", "économique", "rurale", "départementale", "spécialisée", "administrative", "détachée", "foraine",
)  # fmt: skip
_KIND = "(?:" + "|".join(_KINDS) + ")"
_OBJECT = (
    "(?:d['’]accusation|de l['’]instruction|des requêtes|des appels correctionnels|des mineurs|de la famille|"
    "des urgences|des prud['’]hommes|de la sécurité sociale|de la proximité|des référés|des affaires "
    "familiales|des vacations)"
)
_SECTION = rf"(?:_[,-]?_(?:section|sect\.?) (?:[A-Z]{{1,2}}|\d{{1,2}})(?!\w)|_,_{_ORDINAL} section(?!\w))"
_TAIL = (
    f"(?: (?:{_KIND}|{_OBJECT}))?(?:_,_{_KIND})*(?: et {_KIND})?(?: (?-i:(?!(?:DE|DU|LA|LE|EN|ET|"
    rf"AU)\b)[A-Z]{{1,2}}|\d{{1,2}}(?:{DASH}\d{{1,2}})?(?!\d|[.°]))(?![\w'’.°]))?(?: \({_ORDINAL} chambre(?: "
    rf"[A-Z](?!\w))?\))?{_SECTION}?"
)
FORMATIONS: tuple[str, ...] = (
    r"pôle \d{1,2}(?:_[,–-]_chambre \d{1,2})?",
    rf"(?:{_ORDINAL}|(?<![\d.,-])\d{{1,2}}) chambre{_TAIL}",
    "pôle social",
    f"chambre (?:{_KIND}|{_OBJECT})(?: {_ORDINAL} section)?" + _TAIL.replace(f"(?: (?:{_KIND}|{_OBJECT}))?", "", 1),
    rf"chambre (?-i:\d{{1,2}}(?:{DASH}\d{{1,2}})?|[A-Z])(?![\w'’.°]){_SECTION}?",
    "assemblée plénière",
    "chambres réunies",
    "chambre mixte",
)
_FORMATION = Around(rf"(?<![\w-])(?:{'|'.join(FORMATIONS)})(?!\w)", ["chambre", "assemblée", "pôle"], 20, 160)


def find_courts(text: str) -> list[Span]:
    """Find the courts that a text names, with their towns, in text order."""
    return sorted(match.span() for pattern in (_SINGLE, _LOCAL) for match in pattern.finditer(text))


def find_formations(text: str) -> list[Span]:
    """Find the chambers and other formations of courts that a text names, in text order."""
    return [match.span() for match in _FORMATION.finditer(text)]


_ABBREVIATIONS = [(re.compile(pattern), f" {word} ") for pattern, word in _TABLES["abbreviations"]]
_EMPTY_WORDS = frozenset("chambre chambres ch cour tribunal de d du des la le l les et section en au".split())
_RANK_NUMBER = re.compile(r"\b(\d+)(?:re|ere|er|eme|e|nde)\b")

Level = Literal["supreme", "appeal", "first", ""]
SUPREME: Level = "supreme"
APPEAL: Level = "appeal"


class CourtRank(NamedTuple):
    """A court, or a formation of one, in its hierarchy."""

    order: str  # 'constitutionnel', 'judiciaire', 'administratif' or 'conflits'; empty if unknown
    level: Level
    rank: int  # 0 for the highest, within its order

    def compares_with(self, other: "CourtRank") -> bool:
        """Are outcomes of the two comparable? A pourvoi that is rejected is not a claim rejected on appeal."""
        return (self.order, self.level) == (other.order, other.level) or (self.order == other.order == "administratif")


_RANKS = [(frozenset(words.split()), CourtRank(*rank)) for words, *rank in _TABLES["ranks"]]
UNKNOWN = CourtRank("", "", 5)


def court_of(juridiction: str, formation: str, title: str = "") -> CourtRank:
    """Return the court of a decision, from its title where `juridiction` is blank."""
    words = words_of_value(f"{juridiction} {formation}") if juridiction.strip() else words_of_value(title)
    return next((court for named, court in _RANKS if named <= words), UNKNOWN)


def words_of_value(value: str) -> frozenset[str]:
    """Return the words that distinguish a court, chamber or outcome, abbreviations expanded."""
    prose = re.sub(r"\bà\b", " ", normalized(value.lower()))  # unlike the "A" of "10e chambre A"
    folded = "".join(c for c in normalized(prose, "NFKD") if not unicodedata.combining(c))
    text = " ".join(re.findall(r"[a-z]+|\d+[a-z]*", folded))
    for pattern, word in _ABBREVIATIONS:
        text = pattern.sub(word, text)
    text = _RANK_NUMBER.sub(r"\1", text)
    return frozenset(text.split()) - _EMPTY_WORDS
