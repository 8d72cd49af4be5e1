"""A question over many decisions: what a researcher asks, a root model's programs for it, and the exact answer.

In: the rows of the corpus as they stand in their file. Out: a plain value. The oracles read the rows by expressions of
their own and share no code with the toolkit, so that they check it.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from textwrap import dedent
from typing import Any, NamedTuple

Row = dict[str, Any]
Oracle = Callable[[Sequence[Row]], Any]

COUNCIL, CASSATION = "Conseil constitutionnel", "Cour de cassation"
MONTHS = (
    "janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre", "octobre", "novembre",
    "décembre",
)  # fmt: skip


class Question(NamedTuple):
    """One question with its programs and its oracle."""

    id: str
    text: str  # in French
    programs: tuple[str, ...]  # turn by turn; the last one gives the answer to FINAL
    oracle: Oracle


def question(listed: list[Question], text: str, *programs: str) -> Callable[[Oracle], Oracle]:
    """Put a question in a list, with its oracle, whose name becomes its id.

    Args:
        listed: Where it is put.
        text: What is asked; line breaks are blanks.
        programs: What the root model writes, turn by turn.
    """

    def put(oracle: Oracle) -> Oracle:
        written = tuple(dedent(program).strip() for program in programs)
        listed.append(Question(oracle.__name__, " ".join(text.split()), written, oracle))
        return oracle

    return put


def year(row: Row) -> str:
    return row["decision_date"][:4]


def council(rows: Iterable[Row], *years: str, solution: str = "") -> list[Row]:
    """Return the Conseil constitutionnel's decisions of some years (none: all) whose solution has a piece of text."""
    return [
        row
        for row in rows
        if row["juridiction"] == COUNCIL
        and (not years or year(row) in years)
        and solution in (row["solution"] or "").lower()
    ]


def chamber(rows: Iterable[Row], formation: str = "Chambre sociale") -> list[Row]:
    """Return the decisions of a chamber of the Cour de cassation."""
    return [row for row in rows if row["juridiction"] == CASSATION and row["formation"] == formation]


def plain(text: str) -> str:
    """Return a text with one kind of apostrophe and of blank; offsets stay as they are."""
    return text.replace("’", "'").replace("\u00a0", " ").replace("\u202f", " ")


def after(pattern: str, text: str) -> str:
    """Return what stands behind the last match of a pattern; nothing where there is none."""
    found = list(re.finditer(pattern, text))
    return text[found[-1].end() :] if found else ""
