"""Values as a notebook shows them: one short line, a small table, rows of a data frame."""

import html
import reprlib
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from legal_rag.base.extras import require
from legal_rag.base.text import fields_of, one_line

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

LINE_CHARS = 200  # of a value in one line
CELL_CHARS = 300  # of a value in a table
SHOWN_ROWS = 20  # of a list in a table

_brief = reprlib.Repr()
_brief.maxstring = _brief.maxother = 60
_brief.maxlist = _brief.maxtuple = _brief.maxdict = 2
_brief.maxlevel = 2


def row_of(value: Any) -> Mapping[Any, Any]:
    """Return the fields of a mapping, a named tuple or a dataclass; any other value has one, called 'value'."""
    named = fields_of(value)
    return {"value": value} if named is None else named


def short_repr(value: Any) -> str:
    """Write a named tuple or a dataclass in one line of at most `LINE_CHARS`: its fields but the empty ones, cut."""
    shown = [
        f"{name}={_brief.repr(item)}" for name, item in row_of(value).items() if item not in (None, "", (), [], {})
    ]
    return f"{type(value).__name__}({_cut(', '.join(shown), LINE_CHARS)})"


def table_of(value: Any) -> str:
    """Write a named tuple or a dataclass as an HTML table of its fields, for `_repr_html_`."""
    return _table((), ([name, item] for name, item in row_of(value).items()))


def displayed(cls: type[T]) -> type[T]:
    """Let notebooks show a named tuple or a dataclass in one line, and as a table where it has no form of its own."""
    cls.__repr__ = short_repr  # type: ignore[method-assign]
    if not hasattr(cls, "_repr_html_"):
        cls._repr_html_ = table_of  # type: ignore[attr-defined]
    return cls


class Rows(list[T]):
    """A list of rows: named tuples, dataclasses or mappings with the same fields."""

    def to_pandas(self) -> "pd.DataFrame":
        """Return a data frame with a column for each field.

        Raises:
            MissingExtraError: If pandas is not installed.
        """
        require("pandas")
        import pandas as pd

        return pd.DataFrame([row_of(row) for row in self])

    def __repr__(self) -> str:
        kind = type(self[0]).__name__ if self else "rows"
        first = f"\n[0] {_cut(one_line(repr(self[0])), LINE_CHARS)}" if self else ""
        return f"{len(self)} {kind}{first}"

    def _repr_html_(self) -> str:
        rows = [row_of(row) for row in islice(self, SHOWN_ROWS)]
        columns = list(dict.fromkeys(name for row in rows for name in row))
        more = len(self) - len(rows)
        note = f"<p>… et {more} de plus</p>" if more > 0 else ""
        return _table(columns, ([row.get(name, "") for name in columns] for row in rows)) + note


def _table(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(item)}</td>' for item in row)}</tr>" for row in rows)
    return f"<table>{f'<tr>{head}</tr>' if head else ''}{body}</table>"


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else f"{value:.4g}" if isinstance(value, float) else _brief.repr(value)
    return html.escape(_cut(one_line(text), CELL_CHARS))


def _cut(text: str, n_chars: int) -> str:
    return text if len(text) <= n_chars else f"{text[: n_chars - 1]}…"
