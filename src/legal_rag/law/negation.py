"""How French denies and excepts: one list of words, from `negation.toml`."""

from typing import Literal, NamedTuple

from legal_rag.law.scanning import read_table


class Negation(NamedTuple):
    """A row of `negation.toml`, which says what each field means."""

    word: str
    example: str
    kind: Literal["not", "except"] = "not"
    verb: bool = False
    after: bool = False


NEGATIONS = tuple(Negation(**row) for row in read_table("negation.toml")["negation"])


def negations(**fields: object) -> str:
    """Return a pattern of the words whose rows have these values, in lower case."""
    rows = (row for row in NEGATIONS if all(getattr(row, name) == value for name, value in fields.items()))
    return rf"\b(?:{'|'.join(row.word for row in rows)})(?:(?<=['’])|\b)"  # no border follows "n'" before a cut
