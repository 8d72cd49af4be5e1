"""Courts and their formations, and the rank of each."""

import re
import unicodedata
from typing import Literal, NamedTuple

from legal_rag.corpus.folding import Span
from legal_rag.corpus.patterns.scanning import BLANK, DASH, GAP, SPACE, Around, Led

# Courts of which there is one.
SINGLE_COURTS: tuple[str, ...] = (
    "cour de cassation",
    "conseil constitutionnel",
    "conseil d~[eé]tat",
    "cour européenne des droits de l['’]homme",
    "cour de justice(?: de l['’]union européenne| des communautés européennes)?",
    "tribunal de l['’]union européenne",
    "tribunal de première instance des communautés européennes",
    "tribunal des conflits",
    "cour des comptes",
    "cour de justice de la république",
    "cour de discipline budgétaire et financière",
    "cour nationale de l['’]incapacité et de la tarification de l['’]assurance des accidents du travail",
    "cour supérieure d['’]arbitrage",
)
# Courts of a town.
LOCAL_COURTS: tuple[str, ...] = (
    "cours? d~appel",
    "cours? administratives? d~appel",
    "cours? d~assises",
    "tribun(?:al|aux) de grande instance",
    "tribun(?:al|aux) de première instance",
    "tribun(?:al|aux) d~instance",
    "tribun(?:al|aux) de commerce",
    "tribun(?:al|aux) mixtes? de commerce",
    "tribun(?:al|aux) administratifs?",
    "tribun(?:al|aux) judiciaires?",
    "tribun(?:al|aux) correctionnels?",
    "tribun(?:al|aux) civils?",
    "tribun(?:al|aux) supérieurs? d~appel",
    "tribun(?:al|aux) paritaires? des baux ruraux",
    "tribun(?:al|aux) des affaires de s[eé]curit[eé] sociale",
    "tribun(?:al|aux) du contentieux de l~incapacité",
    "tribun(?:al|aux) (?:de police|pour enfants|de proximité|maritime(?: commercial)?|du travail"
    "|d['’]application des peines)",
    "conseils? de prud~hommes",
    "juridictions? de proximité",
    "commissions? d['’]indemnisation des victimes d['’]infractions",
    "conseils? de discipline",
    "cours? régionales? des pensions",
    "chambres? régionales? des comptes",
)
# A town: a capital letter; hyphens, or the small words that join names, and those towns whose names have several words.
_CAP = r"(?-i:[A-ZÀ-ÖØ-Þ])"
_WORD = rf"{_CAP}[\w'’]*(?:[-‐‑][\w'’]+)*"
_FIRST_OF_SEVERAL = (
    "(?:aix|saint|sainte|st|ste|boulogne|chalons?|châlons?|fort|basse|pointe|clermont|mont|bourg|villefranche|salon|"
    "charleville|thonon|lons|brive|nogent|le|la|les|l['’]|saintes?|bar|la roche|romans|montreuil|aulnay|asnières|"
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
    rf"(?:{SPACE}(?:spécial|départemental|militaire|maritime))?{SPACE}(?:(?:de|du|des|de{SPACE}la|de{SPACE}l['’])"
    rf"{SPACE}|d['’]{GAP}|de{SPACE}l['’]{GAP})(?:(?:la|le|les){SPACE}(?={_CAP}))?{_TOWN}"
)


def _spaced(names: tuple[str, ...]) -> str:
    """Make a pattern of names; "~" is an apostrophe, which scanned texts may have lost."""
    patterns = (
        name.replace(" ", SPACE).replace("~", rf"['’]?{BLANK}?") for name in sorted(names, key=len, reverse=True)
    )
    return "|".join(patterns)


_SINGLE = Led(rf"(?<![\w-])(?:{_spaced(SINGLE_COURTS)})(?!\w)", ["cour", "conseil", "tribunal"])
_LOCAL = Led(
    rf"(?<![\w-])(?:{_spaced(LOCAL_COURTS)}){_OF_TOWN}",
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
    rf"(?:d['’]accusation|de{SPACE}l['’]instruction|des{SPACE}requêtes|des{SPACE}appels{SPACE}correctionnels|des"
    rf"{SPACE}mineurs|"
    rf"de{SPACE}la{SPACE}famille|des{SPACE}urgences|des{SPACE}prud['’]hommes|de{SPACE}la{SPACE}sécurité{SPACE}sociale|"
    rf"de{SPACE}la{SPACE}proximité|des{SPACE}référés|des{SPACE}affaires{SPACE}familiales|des{SPACE}vacations)"
)
_SECTION = (
    rf"(?:{GAP}[,-]?{GAP}(?:section|sect\.?){SPACE}(?:[A-Z]{{1,2}}|\d{{1,2}})(?!\w)|{GAP},{GAP}{_ORDINAL}"
    rf"{SPACE}section(?!\w))"
)
_TAIL = (
    rf"(?:{SPACE}(?:{_KIND}|{_OBJECT}))?(?:{GAP},{GAP}{_KIND})*(?:{SPACE}et{SPACE}{_KIND})?"
    rf"(?:{SPACE}(?-i:(?!(?:DE|DU|LA|LE|EN|ET|AU)\b)[A-Z]{{1,2}}|\d{{1,2}}(?:{DASH}\d{{1,2}})?(?!\d|[.°]))"
    rf"(?![\w'’.°]))?"
    rf"(?:{SPACE}\({_ORDINAL}{SPACE}chambre(?:{SPACE}[A-Z](?!\w))?\))?{_SECTION}?"
)
FORMATIONS: tuple[str, ...] = (
    rf"pôle{SPACE}\d{{1,2}}(?:{GAP}[,–-]{GAP}chambre{SPACE}\d{{1,2}})?",
    rf"(?:{_ORDINAL}|(?<![\d.,-])\d{{1,2}}){SPACE}chambre{_TAIL}",
    rf"pôle{SPACE}social",
    rf"chambre{SPACE}(?:{_KIND}|{_OBJECT})(?:{SPACE}{_ORDINAL}{SPACE}section)?"
    + _TAIL.replace(rf"(?:{SPACE}(?:{_KIND}|{_OBJECT}))?", "", 1),
    rf"chambre{SPACE}(?-i:\d{{1,2}}(?:{DASH}\d{{1,2}})?|[A-Z])(?![\w'’.°]){_SECTION}?",
    rf"assemblée{SPACE}plénière",
    rf"chambres{SPACE}réunies",
    rf"chambre{SPACE}mixte",
)
_FORMATION = Around(rf"(?<![\w-])(?:{'|'.join(FORMATIONS)})(?!\w)", ["chambre", "assemblée", "pôle"], 20, 160)


def find_courts(text: str) -> list[Span]:
    """Find the courts that a text names, with their towns, in text order."""
    return sorted(match.span() for pattern in (_SINGLE, _LOCAL) for match in pattern.finditer(text))


def find_formations(text: str) -> list[Span]:
    """Find the chambers and other formations of courts that a text names, in text order."""
    return [match.span() for match in _FORMATION.finditer(text)]


# How courts and chambers are abbreviated, after folding; the longer ones first.
_ABBREVIATIONS = tuple(
    (re.compile(pattern), f" {word} ")
    for pattern, word in (
        (r"cour administrative d appel|caa", "caa"),
        (r"\bc ?cass\b|\bcass\b|\bcour de cassation\b", "cassation"),
        (r"\bconseil constitutionnel\b|\bcons const\b|\bconseil const\b", "constitutionnel"),
        (r"\bconseil d etat\b|\bc ?e\b", "conseiletat etat"),  # its own word: "état civil" is not a court
        (r"\bc ?a\b|\bcour d appel\b", "appel"),
        (r"\btribunal administratif\b|\bt ?a\b", "administratif"),
        (r"\btribunal judiciaire\b|\bt ?j\b", "judiciaire"),
        (r"\btribunal de grande instance\b|\bt ?g ?i\b", "tgi"),
        (r"\btribunal de commerce\b|\bt ?com\b|\btcom\b", "commerce"),
        (r"\bconseil de prud ?hommes\b|\bc ?p ?h\b|\bprud ?hommes\b", "prudhommes"),
        (r"\bsoc\b", "sociale"),
        (r"\bcrim\b", "criminelle"),
        (r"\bcomm?\b", "commerciale"),
        (r"\bciv\b|\bcivile?s?\b", "civile"),
        (r"\bass\b|\bassemblee\b", "assemblee"),
        (r"\bplen\b|\bpleniere\b", "pleniere"),
        (r"\bpremiere\b", "1"),
        (r"\b(?:deuxieme|seconde)\b", "2"),
        (r"\btroisieme\b", "3"),
        (r"\bquatrieme\b", "4"),
        (r"\bcinquieme\b", "5"),
        (r"\bsixieme\b", "6"),
    )
)
_EMPTY_WORDS = frozenset("chambre chambres ch cour tribunal de d du des la le l les et section en au".split())
_RANK_NUMBER = re.compile(r"\b(\d+)(?:re|ere|er|eme|e|nde)\b")

Level = Literal["supreme", "appeal", "first", ""]
SUPREME: Level = "supreme"
APPEAL: Level = "appeal"
FIRST: Level = "first"


class CourtRank(NamedTuple):
    """A court, or a formation of one, in its hierarchy."""

    order: str  # 'constitutionnel', 'judiciaire', 'administratif' or 'conflits'; empty if unknown
    level: Level
    rank: int  # 0 for the highest, within its order

    def compares_with(self, other: "CourtRank") -> bool:
        """Are outcomes of the two comparable? A pourvoi that is rejected is not a claim rejected on appeal."""
        return (self.order, self.level) == (other.order, other.level) or (self.order == other.order == "administratif")


# All words must be in the name, as `words_of_value` gives them; the first line that matches counts.
COURTS: tuple[tuple[frozenset[str], CourtRank], ...] = tuple(
    (frozenset(words.split()), CourtRank(order, level, rank))
    for words, order, level, rank in (
        ("constitutionnel", "constitutionnel", SUPREME, 0),
        ("conflits", "conflits", SUPREME, 0),
        ("cassation pleniere", "judiciaire", SUPREME, 0),
        ("cassation mixte", "judiciaire", SUPREME, 1),
        ("cassation reunies", "judiciaire", SUPREME, 0),
        ("cassation", "judiciaire", SUPREME, 2),
        ("conseiletat assemblee", "administratif", SUPREME, 0),
        ("conseiletat", "administratif", SUPREME, 2),
        ("caa", "administratif", APPEAL, 3),
        ("appel", "judiciaire", APPEAL, 3),
        ("administratif", "administratif", FIRST, 4),
        ("judiciaire", "judiciaire", FIRST, 4),
        ("tgi", "judiciaire", FIRST, 4),
        ("instance", "judiciaire", FIRST, 4),
        ("proximite", "judiciaire", FIRST, 4),
        ("correctionnel", "judiciaire", FIRST, 4),
        ("commerce", "judiciaire", FIRST, 4),
        ("prudhommes", "judiciaire", FIRST, 4),
    )
)
UNKNOWN = CourtRank("", "", 5)


def court_of(juridiction: str, formation: str, title: str = "") -> CourtRank:
    """Return the court of a decision, from its title where `juridiction` is blank."""
    words = words_of_value(f"{juridiction} {formation}") if juridiction.strip() else words_of_value(title)
    return next((court for named, court in COURTS if named <= words), UNKNOWN)


def words_of_value(value: str) -> frozenset[str]:
    """Return the words that distinguish a court, chamber or outcome, abbreviations expanded."""
    prose = re.sub(r"\bà\b", " ", unicodedata.normalize("NFC", value.lower()))  # unlike the "A" of "10e chambre A"
    folded = "".join(c for c in unicodedata.normalize("NFKD", prose) if not unicodedata.combining(c))
    text = " ".join(re.findall(r"[a-z]+|\d+[a-z]*", folded))
    for pattern, word in _ABBREVIATIONS:
        text = pattern.sub(word, text)
    text = _RANK_NUMBER.sub(r"\1", text)
    return frozenset(text.split()) - _EMPTY_WORDS
