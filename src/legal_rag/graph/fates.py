"""What became of a decision: quashed, upheld, confirmed, reversed, rectified, remitted; its case, step by step."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from legal_rag.base.html import displayed
from legal_rag.corpus.documents import Document
from legal_rag.graph.facts import joined_keys, node_of_document
from legal_rag.graph.rulings import (
    DESCRIBED,
    FOLLOWS,
    INTERPRETS,
    OVERRULES,
    RECTIFIES,
    UPHOLDS,
    Referral,
    Ruling,
    find_rulings,
    is_in_part,
    referred_to,
)
from legal_rag.law.citation import legal_date
from legal_rag.law.courts import SUPREME, level_of
from legal_rag.law.keys import own_keys
from legal_rag.law.outcomes import CASSATION, CONFIRMATION, kinds_of

Kind = Literal[
    "quashed", "quashed_in_part", "reversed", "reversed_in_part", "withdrawn",
    "upheld", "confirmed", "rectified", "interpreted", "after",
]  # fmt: skip
FATES: dict[Kind, str] = {
    "quashed": "cassée",
    "quashed_in_part": "cassée en partie",
    "reversed": "infirmée",
    "reversed_in_part": "infirmée en partie",
    "withdrawn": "rétractée",
    "upheld": "pourvoi rejeté",
    "confirmed": "confirmée",
    "rectified": "rectifiée",
    "interpreted": "interprétée",
    "after": "suivie, sur renvoi,",
}


@displayed
class Effect(NamedTuple):
    """What a decision does to another, as its text says; of `after`, the quashing that it follows on remand."""

    kind: Kind
    court: str  # of the other decision, as written
    day: str  # its day, ISO 8601
    number: str  # empty if the text gives none
    referred_to: str  # the court to which the case is remitted; empty if it is not
    start: int  # characters of the words that say so
    end: int


def kind_of(edge_type: str, detail: str, *, is_supreme: bool) -> Kind | None:
    """Return the kind of fate that a ruling's type and words make, by the level of the court that ruled."""
    if edge_type in (RECTIFIES, INTERPRETS, FOLLOWS):
        names: dict[str, Kind] = {RECTIFIES: "rectified", INTERPRETS: "interpreted", FOLLOWS: "after"}
        return names[edge_type]
    head = detail.partition(" : ")[0]
    kinds = kinds_of(head)
    if edge_type == UPHOLDS:
        return "upheld" if is_supreme and CONFIRMATION not in kinds else "confirmed"
    if edge_type != OVERRULES:
        return None
    if "non avenu" in head.lower() or "rabat" in head.lower():
        return "withdrawn"
    in_part = is_in_part(detail) or CONFIRMATION in kinds
    if is_supreme or CASSATION in kinds:
        return "quashed_in_part" if in_part else "quashed"
    return "reversed_in_part" if in_part else "reversed"


def read_effects(document: Document) -> list[Effect]:
    """Return what a decision's text says it does to others that it names by court and day."""
    node = node_of_document(document)
    rulings = find_rulings(document, node, {*own_keys(document), *joined_keys(document)})
    return [effect for ruling in rulings if ruling.source == node for effect in _effect_of(ruling, document)]


def _effect_of(ruling: Ruling, document: Document) -> Iterator[Effect]:
    is_supreme = level_of(document.juridiction, document.formation, document.title) == SUPREME
    kind = kind_of(ruling.type, ruling.detail, is_supreme=is_supreme)
    described = DESCRIBED.fullmatch(ruling.target.key)
    if kind and described:
        court = court_of(ruling.target.name, described["day"])
        referred = referred_to(document) if kind in ("quashed", "quashed_in_part") else None
        place = ruling.start, ruling.end
        yield Effect(kind, court, described["day"], described["number"] or "", _named(referred, court), *place)


def _named(referred: Referral | None, below: str) -> str:
    """Return the court of a referral by name; the same court, otherwise composed, is the one below."""
    return (referred.court or below) if referred else ""


def court_of(name: str, day: str) -> str:
    """Return the court in the name of a decision that is known by court and day."""
    return name.rpartition(f", {legal_date(day)}")[0] or name
