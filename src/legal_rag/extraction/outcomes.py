"""Outcome of a decision (rejection, cassation, annulment…), from its ruling."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from legal_rag.base.text import key_of
from legal_rag.extraction.entities import DISPOSITIF, SOLUTION, Entity
from legal_rag.law.courts import APPEAL, SUPREME, CourtRank
from legal_rag.law.ruling import operative_part, solutions, statements

CASSATION, REJET, ANNULATION, SATISFACTION = "cassation", "rejet", "annulation", "satisfaction"
CONFIRMATION, INFIRMATION = "confirmation", "infirmation"
CONFORME, NON_CONFORME = "conformité", "non-conformité"
INELIGIBLE, ELIGIBLE = "inéligibilité", "non-lieu à inéligibilité"
RENVOI, NON_RENVOI = "renvoi de la QPC", "non-renvoi de la QPC"
CONDAMNATION, RELAXE = "condamnation", "relaxe"
OPPOSITES = frozenset(
    frozenset(pair)
    for pair in (
        (CASSATION, REJET),
        (ANNULATION, REJET),
        (SATISFACTION, REJET),  # of requests, in databases of administrative courts
        (ANNULATION, CONFIRMATION),
        (INFIRMATION, CONFIRMATION),
        (NON_CONFORME, CONFORME),
        (INELIGIBLE, ELIGIBLE),
        (RENVOI, NON_RENVOI),
        (CONDAMNATION, RELAXE),
    )
)
# Patterns consume folded words in this order; None consumes words that would mislead a later pattern.
_PATTERNS: tuple[tuple[str | None, str], ...] = (
    (None, r"approbation(?: apres reformation)?|non lieu a statuer(?: sur la qpc)?|rectification|n y a plus lieu"),
    (ELIGIBLE, r"non lieu a prononcer l ineligibilite|n y a pas lieu de declarer"),
    (INELIGIBLE, r"ineligib\w+"),
    (NON_RENVOI, r"non (?:lieu a )?renvoi|n y avoir lieu (?:de renvoyer|a renvoi)"),
    (RENVOI, r"qpc renvoi|renvoi\w* (?:de la \w+ )?au conseil constitutionnel"),
    (NON_CONFORME, r"non conform\w+|contraires? a la constitution"),
    (CONFORME, r"conform\w+"),
    (CASSATION, r"cass(?:e|ee|ation|ons|ent|ant)\b(?: et annul\w+)?"),
    (ANNULATION, r"annul\w+"),
    (INFIRMATION, r"infirm\w+|reform\w+|emend\w+"),
    (CONFIRMATION, r"confirm\w+"),
    (SATISFACTION, r"satisfaction"),
    (REJET, r"rejet\w*"),
    (RELAXE, r"relax\w+|acquitt\w+"),
    (CONDAMNATION, r"condamn\w+"),
)
_KINDS = [(kind, re.compile(rf"\b(?:{pattern})")) for kind, pattern in _PATTERNS]
# Secondary outcomes: "casse …, rejette le surplus".
_SECONDARY = {CASSATION: {REJET, ANNULATION}, ANNULATION: {REJET}}
# Outcomes of a whole case in the operative part, by court level; others concern single claims.
_OF_THE_CASE = {
    SUPREME: {CASSATION, REJET, ANNULATION, CONFORME, NON_CONFORME, INELIGIBLE, ELIGIBLE, RENVOI, NON_RENVOI},
    APPEAL: {CONFIRMATION, INFIRMATION},
}


class Outcome(NamedTuple):
    """Outcome of a decision."""

    kinds: frozenset[str]  # empty if none was recognised
    words: str  # from the source, else the kinds

    def opposes(self, other: "Outcome") -> bool:
        """Tell whether two outcomes are opposite."""
        if self.kinds & other.kinds:
            return False
        return any(frozenset((kind, other_kind)) in OPPOSITES for kind in self.kinds for other_kind in other.kinds)


def outcome_of(solution: str, court: CourtRank, text: str, entities: Iterable[Entity] | None) -> Outcome:
    """Read a decision's outcome from its metadata, else from its entities, else from its text.

    Args:
        solution: The source's own term; may be empty.
        court: The rank of the court.
        text: The decision.
        entities: Its entities, if they were extracted.
    """
    if solution.strip():
        return Outcome(kinds_of(solution), solution.strip())
    known = entities or ()
    words = [item["extraction_text"] for item in known if item["extraction_class"] == SOLUTION]
    # A statement's first word is its verb; the rest may report another court's ruling.
    words = words or [item["extraction_text"].split()[0] for item in known if item["extraction_class"] == DISPOSITIF]
    kinds = kinds_of(" ; ".join(words or _solutions_in(text))) & _OF_THE_CASE.get(court.level, frozenset())
    return Outcome(kinds, " et ".join(sorted(kinds)))


def kinds_of(words: str) -> frozenset[str]:
    """Return the kinds of outcome in a text: 'cassation' for 'Cassation partielle sans renvoi'."""
    return _kinds_and_rest(words)[0]


def of_its_kinds(wanted: str, solutions: Iterable[str]) -> list[str]:
    """Return the solutions with all kinds of outcome in a text, if it holds nothing else ("rejetées")."""
    kinds, rest = _kinds_and_rest(wanted)
    return [solution for solution in solutions if kinds and not rest and kinds <= kinds_of(solution)]


def _kinds_and_rest(words: str) -> tuple[frozenset[str], str]:
    rest, kinds = key_of(words), set[str]()
    for kind, pattern in _KINDS:
        rest, n = pattern.subn("|", rest)
        kinds |= {kind} if kind and n else set()
    primary = frozenset(kinds.difference(*(_SECONDARY.get(kind, set()) for kind in kinds)))
    return primary, rest.replace("|", " ").strip()


def opposites_of(kinds: frozenset[str], solutions: Iterable[str]) -> list[str]:
    """Return the solutions, as written in the sources, that oppose some kinds of outcome."""
    outcome = Outcome(kinds, "")
    return [solution for solution in solutions if outcome.opposes(Outcome(kinds_of(solution), solution))]


def _solutions_in(text: str) -> list[str]:
    part = operative_part(text)
    return [text[start:end] for start, end in solutions(text, part, statements(text, part))] if part else []
