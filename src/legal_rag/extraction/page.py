"""The page that shows entities in their texts: one file without network, for any browser.

In: documents and their entities, as a stream. Out: the text of a page of documents, or of an index of such pages.

Documents are hostile. Their texts lie in blocks of JSON, which browsers do not run, and are shown as text, never read
as markup; the content security policy lets nothing run and nothing load but the page's own script and style.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from legal_rag.extraction.entities import Entity
from legal_rag.extraction.labels import ALIGNMENT_LABELS, LABELS, colours

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

HEADING = "Entités extraites"
PALETTE = 24  # colours in `page.css`
POLICY = "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'"


class OutputItem(NamedTuple):
    """A document and what was extracted of it."""

    doc_id: str
    title: str
    content: str
    entities: Sequence[Entity]


class Link(NamedTuple):
    """A way to another page."""

    address: str
    label: str


class IndexRow(NamedTuple):
    """A page as the index page tells of it."""

    address: str  # as seen from the index page
    number: int  # from 1
    documents: int
    entities: int
    first: str  # what its first and its last document are called
    last: str
    listed: list[tuple[str, str, int]]  # id, title and number of entities of each document; or nothing


def page_parts(items: Iterable[OutputItem], links: Iterable[Link] = (), note: str = "") -> Iterator[str]:
    """Yield a page piece by piece, each document when its turn comes.

    Args:
        items: The documents.
        links: To other pages; read after the last document.
        note: A sentence at the top.
    """
    documents = (_block(item) for item in items)
    named: dict[str, Mapping[str, Any]] = {"labels": LABELS, "colours": colours(), "alignments": ALIGNMENT_LABELS}
    settings = safe_json({**{name: list(of.items()) for name, of in named.items()}, "palette": PALETTE})
    values = {"note": note, "documents": documents, "links": links, "settings": settings}
    yield from _template("page.html.j2").generate(**_own("page.js"), **values)


def index_parts(rows: Sequence[IndexRow]) -> Iterator[str]:
    """Yield the index page piece by piece."""
    counts = (sum(row.documents for row in rows), sum(row.entities for row in rows), len(rows))
    summary = "{} documents, {} entités, {} pages".format(*map(_number, counts))
    pages = [
        row._asdict()
        | {"documents": _number(row.documents), "entities": _number(row.entities), "data": safe_json(row.listed)}
        for row in rows
    ]
    yield from _template("index.html.j2").generate(**_own("index.js"), summary=summary, pages=pages)


def plain_json(value: Any) -> str:
    """Write JSON with its accents, or, where a lone surrogate stands in it, with nothing but ASCII."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def safe_json(value: Any) -> "Markup":
    """Write JSON that can stand in an HTML script block: nothing in it can end the block."""
    from markupsafe import Markup

    return Markup(plain_json(value).replace("<", "\\u003c"))  # noqa: S704 - no other character ends a block


def _block(item: OutputItem) -> dict[str, Any]:
    counts: dict[str, int] = {}
    for one in item.entities:
        counts[one["extraction_class"]] = counts.get(one["extraction_class"], 0) + 1
    entities = sorted(item.entities, key=lambda one: (one["char_start"], -one["char_end"], one["extraction_class"]))
    data = safe_json({"text": item.content, "entities": [_row(one) for one in entities]})
    return {"id": item.doc_id, "title": item.title, "counts": plain_json(list(counts.items())), "data": data}


def _row(one: Entity) -> tuple[str, int, int, list[tuple[str, str]], str]:
    attributes = [(str(name), _value(value)) for name, value in (one["attributes"] or {}).items()]
    return one["extraction_class"], one["char_start"], one["char_end"], attributes, one.get("alignment", "")


def _value(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _number(value: int) -> str:
    return f"{value:,}".replace(",", "\u202f")


def _own(script_name: str) -> dict[str, Any]:
    """Return what is ours in a page: heading, style, script, and the policy that lets these two through."""
    script, style = _script(script_name), _resource("page.css")
    return {
        "heading": HEADING,
        "style": style,
        "script": script,
        "policy": POLICY.format(_source(script), _source(style)),
    }


def _source(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _script(name: str) -> "Markup":
    from markupsafe import Markup

    lines = ['"use strict";', "{", _resource("folding.js"), _resource(name), "}"]
    return Markup("\n".join(lines))  # noqa: S704 - our own script


@cache
def _resource(name: str) -> "Markup":
    from markupsafe import Markup

    text = files("legal_rag.extraction").joinpath("templates", name).read_text("utf-8")
    return Markup(text)  # noqa: S704 - our own script or style


@cache
def _template(name: str) -> "Template":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("legal_rag.extraction", "templates")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(name)
