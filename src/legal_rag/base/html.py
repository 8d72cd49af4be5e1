"""Self-contained HTML pages: content security policy, inlined styles, escaped text without control characters."""

import base64
import hashlib
import json
import sys
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from legal_rag.base.text import printable

if TYPE_CHECKING:
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
