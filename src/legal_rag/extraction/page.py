"""The page that shows entities in their texts: one file without network, for any browser.

In: documents and their entities, as a stream. Out: the text of a page of documents, or of an index of such pages.

Documents are hostile. Their texts lie in blocks of JSON, which browsers do not run, and are shown as text, never read
as markup; see `legal_rag.html_pages`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from legal_rag.extraction.entities import Entity
from legal_rag.extraction.labels import ALIGNMENT_LABELS, LABELS, colours
from legal_rag.html_pages import (
    frame_of_page,
    french_number,
    own_script,
    own_style,
    page_template,
    plain_json,
    safe_json,
)

if TYPE_CHECKING:
    from markupsafe import Markup

PACKAGE = "legal_rag.extraction"
HEADING = "Entités extraites"
PALETTE = 24  # colours in `page.css`


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
    yield from page_template(PACKAGE, "page.html.j2").generate(**_own("page.js"), **values)


def index_parts(rows: Sequence[IndexRow]) -> Iterator[str]:
    """Yield the index page piece by piece."""
    counts = (sum(row.documents for row in rows), sum(row.entities for row in rows), len(rows))
    summary = "{} documents, {} entités, {} pages".format(*map(french_number, counts))
    pages = [
        row._asdict()
        | {
            "documents": french_number(row.documents),
            "entities": french_number(row.entities),
            "data": safe_json(row.listed),
        }
        for row in rows
    ]
    yield from page_template(PACKAGE, "index.html.j2").generate(**_own("index.js"), summary=summary, pages=pages)


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


def _own(script_name: str) -> dict[str, Any]:
    """Return what is ours in a page."""
    return frame_of_page(HEADING, _script(script_name), own_style(PACKAGE, "page.css"))


@cache
def _script(name: str) -> "Markup":
    return own_script(PACKAGE, "folding.js", name)
