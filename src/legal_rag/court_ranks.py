"""Courts: which order each belongs to, and which stands above which.

In: a decision's court and chamber, as its source writes them. Out: a `Court`, whose rank compares within its order.
"""

from typing import Literal, NamedTuple

from legal_rag.filters import words_of_value

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
        ("etat assemblee", "administratif", SUPREME, 0),
        ("etat", "administratif", SUPREME, 2),
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
