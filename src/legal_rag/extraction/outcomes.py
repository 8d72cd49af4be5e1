"""Outcome of a decision (rejection, cassation, annulment…), from its metadata, its entities or its ruling."""

from collections.abc import Iterable

from legal_rag.extraction.entities import DISPOSITIF, SOLUTION, Entity
from legal_rag.law.courts import CourtRank
from legal_rag.law.outcomes import Outcome, kinds_of, kinds_of_case, operative_part, solutions, statements


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
    if not words and (part := operative_part(text)):
        words = [text[start:end] for start, end in solutions(text, part, statements(text, part))]
    kinds = kinds_of_case(words, court.level)
    return Outcome(kinds, " et ".join(sorted(kinds)))
