"""Self-contained HTML pages; values as a notebook shows them: one line, a table, rows of a data frame."""

import base64
import hashlib
import html
import json
import reprlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from legal_rag.base.extras import require
from legal_rag.base.text import fields_of, one_line, printable

if TYPE_CHECKING:
    import pandas as pd
    from jinja2 import Template
    from markupsafe import Markup


SHARED = "legal_rag"  # the package whose `templates` hold what all pages share
POLICY = "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'"
FRAME = '<div><iframe srcdoc="{}" sandbox="allow-scripts" title="{}" style="{}"></iframe></div>'
FRAME_STYLE = "width: 100%; height: {}px; border: 1px solid #8888; border-radius: 6px"


def page_template(package: str, name: str) -> "Template":
    """Return a template of a package's folder `templates`; what it is given is escaped, what it lacks is an error."""
    return _environment(package).get_template(name)


@cache
def own_resource(package: str, name: str) -> "Markup":
    """Return a script or a style of a package's folder `templates`, to insert into a page as it is."""
    from markupsafe import Markup

    return Markup(files(package).joinpath("templates", name).read_text("utf-8"))  # noqa: S704 - our own


def own_style(package: str, name: str) -> "Markup":
    """Return a package's style behind the colours and letters that all pages share."""
    return own_resource(SHARED, "common.css") + own_resource(package, name)


def own_script(package: str, *names: str) -> "Markup":
    """Return scripts of a package as one, strict, and with names that no other script sees."""
    from markupsafe import Markup

    lines = ['"use strict";', "{", *(own_resource(package, name) for name in names), "}"]
    return Markup("\n".join(lines))  # noqa: S704 - our own


def frame_of_page(heading: str, script: "Markup", style: "Markup") -> dict[str, Any]:
    """Return what every template asks for: heading, script, style, and the policy that lets these two through."""
    policy = POLICY.format(_policy_source(script), _policy_source(style))
    return {"heading": heading, "style": style, "script": script, "policy": policy}


def plain_json(value: Any) -> str:
    """Write JSON with its accents, or, where it holds a lone surrogate, as ASCII."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def safe_json(value: Any) -> "Markup":
    """Write JSON for an HTML script block: nothing in it can end the block."""
    from markupsafe import Markup

    text = printable(json.dumps(value, ensure_ascii=False))
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 - no other character ends a block


def in_notebook() -> bool:
    """Tell whether this runs in a notebook's kernel."""
    ipython = sys.modules.get("IPython")
    return hasattr(ipython.get_ipython(), "kernel") if ipython else False


class NotebookFrame:
    """A page that a notebook displays in a frame, which can reach neither the notebook nor the network."""

    def __init__(self, page: str, title: str, height: int = 720) -> None:
        """Frame `page`, `height` pixels high; its title is for those who do not see it."""
        self._page, self._title, self._height = page, title, height

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_brief.repr(self._title)})"

    def _repr_html_(self) -> str:  # what IPython displays, see its "rich display"
        from markupsafe import escape

        return FRAME.format(escape(self._page), escape(self._title), FRAME_STYLE.format(self._height))


def french_number(value: int) -> str:
    """Write a whole number as the French do, with narrow spaces between its thousands."""
    return f"{value:,}".replace(",", "\u202f")


def french_decimal(value: float, digits: int = 2) -> str:
    """Write a number with a decimal comma."""
    return f"{value:.{digits}f}".replace(".", ",")


def _policy_source(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _environment(package: str) -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined, Template

    class PrintablePage(Template):
        def render(self, *arguments: Any, **values: Any) -> str:
            return printable(super().render(*arguments, **values))

        def generate(self, *arguments: Any, **values: Any) -> Iterator[str]:
            return map(printable, super().generate(*arguments, **values))

    loader = PackageLoader(package, "templates")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.template_class = PrintablePage
    return environment


T = TypeVar("T")

LINE_CHARS = 200  # of a value's repr
CELL_CHARS = 300  # of a value in a table
SHOWN_ROWS = 20  # of a list in a table

_brief = reprlib.Repr()
_brief.maxstring = _brief.maxother = 60
_brief.maxlist = _brief.maxtuple = _brief.maxdict = 2
_brief.maxlevel = 2


def row_of(value: Any) -> Mapping[Any, Any]:
    """Return the fields of a record, without those that its dataclass keeps out of its repr, such as keys.

    A record is a mapping, a named tuple, a dataclass or a pydantic model; any other value has one, called 'value'.
    """
    named = dict(value) if hasattr(value, "model_fields_set") else fields_of(value)
    hidden = {name for name, field in getattr(value, "__dataclass_fields__", {}).items() if not field.repr}
    return {"value": value} if named is None else {name: named[name] for name in named if name not in hidden}


def short_repr(value: Any) -> str:
    """Write a record in one line of at most `LINE_CHARS`: its fields but the empty ones, cut."""
    shown = [f"{name}={one_line(_brief.repr(item))}" for name, item in row_of(value).items() if not _is_empty(item)]
    return _cut(f"{type(value).__name__}({', '.join(shown)}", LINE_CHARS - 1) + ")"


def table_of(value: Any) -> str:
    """Write a record as an HTML table of its fields, for `_repr_html_`."""
    return _table((), ([name, item] for name, item in row_of(value).items()))


def displayed(cls: type[T]) -> type[T]:
    """Let notebooks show a record in one line, and as a table where its class has no form of its own."""
    cls.__repr__ = short_repr  # type: ignore[method-assign]
    if not hasattr(cls, "_repr_html_"):
        cls._repr_html_ = table_of  # type: ignore[attr-defined]
    return cls


class Rows(list[T]):
    """A list of rows: named tuples, dataclasses or mappings with the same fields.

    Attributes:
        remarks: What is to be said of them all, in French, a sentence each.
    """

    remarks: Sequence[str] = ()

    def to_pandas(self) -> "pd.DataFrame":
        """Return a data frame with a column for each field; MissingExtraError if pandas is not installed."""
        require("pandas")
        import pandas as pd

        return pd.DataFrame([row_of(row) for row in self])

    def __repr__(self) -> str:
        kind = type(self[0]).__name__ if self else "rows"
        first = [f"[0] {one_line(repr(self[0]))}"] if self else []
        return _cut("\n".join([f"{len(self)} {kind}", *self.remarks, *first]), LINE_CHARS)

    def _repr_html_(self) -> str:
        rows = [row_of(row) for row in islice(self, SHOWN_ROWS)]
        columns = list(dict.fromkeys(name for row in rows for name in row))
        more = len(self) - len(rows)
        remarks = "".join(f"<p>{html.escape(remark)}</p>" for remark in self.remarks)
        note = f"<p>… et {more} de plus</p>" if more > 0 else ""
        return remarks + _table(columns, ([row.get(name, "") for name in columns] for row in rows)) + note


def _table(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(item)}</td>' for item in row)}</tr>" for row in rows)
    return f"<table>{f'<tr>{head}</tr>' if head else ''}{body}</table>"


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else f"{value:.4g}" if isinstance(value, float) else _brief.repr(value)
    return html.escape(_cut(one_line(text), CELL_CHARS))


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, Sized) and len(value) == 0)


def _cut(text: str, n_chars: int) -> str:
    return text if len(text) <= n_chars else f"{text[: n_chars - 1]}…"
