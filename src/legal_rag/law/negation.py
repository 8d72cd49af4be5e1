"""How French denies and excepts: one list of words, from `negation.toml`."""

import tomllib
from importlib.resources import files
from typing import Literal, NamedTuple


class Negation(NamedTuple):
    """A row of `negation.toml`, which says what each field means."""

    word: str
    example: str
    kind: Literal["not", "except"] = "not"
    verb: bool = False
    after: bool = False


NEGATIONS = tuple(
    Negation(**row) for row in tomllib.loads((files("legal_rag.law") / "negation.toml").read_text("utf-8"))["negation"]
)


def negations(**fields: object) -> str:
    """Return a pattern of the words whose rows have these values, in lower case."""
    rows = (row for row in NEGATIONS if all(getattr(row, name) == value for name, value in fields.items()))
    return rf"\b(?:{'|'.join(row.word for row in rows)})(?:(?<=['’])|\b)"  # no border follows "n'" before a cut
