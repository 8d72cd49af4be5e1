"""Courts: which order each belongs to, and which stands above which.

In: a decision's court and chamber, as its source writes them. Out: a `Court`, whose rank compares within its order.
"""

import re
import unicodedata
from typing import Literal, NamedTuple

# How courts and chambers are abbreviated, after folding; the longer ones first.
ABBREVIATIONS: tuple[tuple[str, str], ...] = (
    (r"cour administrative d appel|caa", "caa"),
    (r"\bc ?cass\b|\bcass\b|\bcour de cassation\b", "cassation"),
    (r"\bconseil constitutionnel\b|\bcons const\b|\bconseil const\b", "constitutionnel"),
    (r"\bconseil d etat\b|\bc ?e\b", "conseiletat etat"),  # with a word of its own: "état civil" is no court
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
_ABBREVIATIONS = [(re.compile(pattern), f" {word} ") for pattern, word in ABBREVIATIONS]
EMPTY_WORDS = frozenset("chambre chambres ch cour tribunal de d du des la le l les et section en au".split())
ORDINAL = re.compile(r"\b(\d+)(?:re|ere|er|eme|e|nde)\b")

Level = Literal["supreme", "appeal", "first", ""]
SUPREME: Level = "supreme"
APPEAL: Level = "appeal"
FIRST: Level = "first"


class Court(NamedTuple):
    """A court, or a formation of one."""

    order: str  # 'constitutionnel', 'judiciaire', 'administratif' or 'conflits'; empty if it is not known
    level: Level
    rank: int  # 0 for the highest, within its order

    def compares_with(self, other: "Court") -> bool:
        """Tell whether outcomes of two courts mean the same: a pourvoi rejected is no claim rejected on appeal."""
        return (self.order, self.level) == (other.order, other.level) or (self.order == other.order == "administratif")


# The words that all must stand in the name, as `words_of_value` gives them; the first line that fits counts.
COURTS: tuple[tuple[frozenset[str], Court], ...] = tuple(
    (frozenset(words.split()), Court(order, level, rank))
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
UNKNOWN = Court("", "", 5)


def court_of(juridiction: str, formation: str, title: str = "") -> Court:
    """Return the court of a decision, by its title where its source names no court."""
    words = words_of_value(f"{juridiction} {formation}") if juridiction.strip() else words_of_value(title)
    return next((court for named, court in COURTS if named <= words), UNKNOWN)


def words_of_value(value: str) -> frozenset[str]:
    """Return the words that tell a court, chamber or outcome from others, abbreviations written out."""
    prose = re.sub(r"\bà\b", " ", unicodedata.normalize("NFC", value.lower()))  # unlike the "A" of "10e chambre A"
    folded = "".join(c for c in unicodedata.normalize("NFKD", prose) if not unicodedata.combining(c))
    text = " ".join(re.findall(r"[a-z]+|\d+[a-z]*", folded))
    for pattern, word in _ABBREVIATIONS:
        text = pattern.sub(word, text)
    text = ORDINAL.sub(r"\1", text)
    return frozenset(text.split()) - EMPTY_WORDS
