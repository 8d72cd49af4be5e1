"""Self-contained HTML pages of documents with their entities highlighted, and the index page over them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from legal_rag.base.html import (
    frame_of_page,
    french_number,
    own_script,
    own_style,
    page_template,
    plain_json,
    safe_json,
)
from legal_rag.corpus.documents import Document
from legal_rag.extraction.entities import (
    ARTICLE_CITE,
    CLASSES,
    JURISPRUDENCE,
    LABELS,
    LEGAL_REFERENCE,
    TEXTE_VISE,
    Entity,
    ExtractedDocument,
)
from legal_rag.extraction.outcomes import outcome_of
from legal_rag.law.courts import court_of

PACKAGE = "legal_rag.extraction"
HEADING = "Entités extraites"
PALETTE = 24  # colours in `page.css`
PAGE_DOCUMENTS = 500
PAGE_CHARACTERS = 8_000_000  # of text per page, unless a single document is longer
LISTED_DOCUMENTS = 50_000  # above that, the index page lists only the first and last document of each page
ALIGNMENT_LABELS = {
    "exact": "mot pour mot",
    "folded": "retrouvée malgré la graphie",
    "rules": "trouvée par règle",
}


class Facets(NamedTuple):
    """Filter values of a document; empty if unknown."""

    court: str  # as cited: "Cass.", "CA Lyon"
    date: str  # ISO 8601
    outcome: str


class PageLink(NamedTuple):
    """A link to another page."""

    address: str
    label: str


class IndexRow(NamedTuple):
    """A row of the index page: one page of documents."""

    address: str  # relative to the index page
    number: int  # from 1
    documents: int
    entities: int
    first: str  # title or id of its first and last document
    last: str
    listed: list[tuple[str, str, int]]  # id, title and number of entities per document; may be empty


def page_parts(items: Iterable[ExtractedDocument], links: Iterable[PageLink] = (), note: str = "") -> Iterator[str]:
    """Stream a page of documents as text, with a note on top; `links` is read after the last document."""
    named: dict[str, Mapping[str, Any]] = {"labels": LABELS, "colours": colours(), "alignments": ALIGNMENT_LABELS}
    lists = {name: list(of.items()) for name, of in named.items()}
    settings = safe_json({**lists, "palette": PALETTE, "articles": [ARTICLE_CITE, TEXTE_VISE, LEGAL_REFERENCE]})
    values = {"note": note, "documents": map(_document_values, items), "links": links, "settings": settings}
    yield from page_template(PACKAGE, "page.html.j2").generate(**_page_values("page.js"), **values)


def index_parts(rows: Sequence[IndexRow]) -> Iterator[str]:
    """Stream the index page as text."""
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
    yield from page_template(PACKAGE, "index.html.j2").generate(
        **_page_values("index.js"), summary=summary, pages=pages
    )


def colours() -> dict[str, int]:
    """Return the palette number of each known class, distinct within a schema."""
    numbers: dict[str, int] = {}
    for names in (JURISPRUDENCE, *CLASSES.values()):  # `jurisprudence` takes the first colours
        taken = {numbers[name] for name in names if name in numbers}
        free = (number for number in range(len(names) + len(taken)) if number not in taken)
        numbers.update({name: next(free) for name in names if name not in numbers})
    return numbers


def write_pages(folder: Path, items: Iterable[ExtractedDocument], index_address: str) -> list[IndexRow]:
    """Write any number of documents as browser-sized pages, holding one document in memory.

    A single page has no links and can be moved. `folder` must be empty; `index_address` is the index page's address
    relative to the pages.

    Returns:
        One row per page, at least one; addresses are file names.
    """
    rows: list[IndexRow] = []
    ahead = _Ahead(items)
    while not rows or ahead.next is not None:
        number = len(rows) + 1
        listed: list[tuple[str, str, int]] = []
        write_parts(
            folder / _page_name(number),
            page_parts(_documents_of_page(ahead, listed), _navigation_links(number, ahead, index_address)),
        )
        rows.append(_index_row(number, listed))
        if ahead.taken > LISTED_DOCUMENTS:
            rows = [row._replace(listed=[]) for row in rows]
    return rows


def write_parts(path: Path, parts: Iterable[str]) -> None:
    """Write a text given in pieces; what UTF-8 cannot encode becomes a question mark."""
    with path.open("w", encoding="utf-8", errors="replace", newline="\n") as out:
        out.writelines(parts)


class _Ahead:
    """A stream with one item read ahead."""

    def __init__(self, items: Iterable[ExtractedDocument]) -> None:
        self._items = iter(items)
        self.next = next(self._items, None)
        self.taken = 0

    def step(self) -> None:
        self.next = None  # never two documents in memory
        self.next = next(self._items, None)
        self.taken += 1


def _documents_of_page(ahead: _Ahead, listed: list[tuple[str, str, int]]) -> Iterator[ExtractedDocument]:
    """Yield the documents of one page, appending each to `listed`."""
    characters = 0
    while ahead.next is not None and len(listed) < PAGE_DOCUMENTS:
        item = ahead.next
        characters += len(item.content)
        if listed and characters > PAGE_CHARACTERS:
            return
        listed.append((item.doc_id, _title_of(item), len(item.entities)))
        yield item
        ahead.step()


def _navigation_links(number: int, ahead: _Ahead, index_address: str) -> Iterator[PageLink]:
    """Yield the links of a page; read after its documents, when it is known whether another page follows."""
    has_more = ahead.next is not None
    if number > 1 or has_more:
        yield PageLink(index_address, "Toutes les pages")
    if number > 1:
        yield PageLink(_page_name(number - 1), "Page précédente")
    if has_more:
        yield PageLink(_page_name(number + 1), "Page suivante")


def _index_row(number: int, listed: list[tuple[str, str, int]]) -> IndexRow:
    first, last = [title or doc_id for doc_id, title, _ in listed[:1] + listed[-1:]] or ["", ""]
    return IndexRow(_page_name(number), number, len(listed), sum(count for *_, count in listed), first, last, listed)


def _page_name(number: int) -> str:
    return f"{number:04}.html"


def _document_values(item: ExtractedDocument) -> dict[str, Any]:
    counts = Counter(entity["extraction_class"] for entity in item.entities)
    entities = sorted(item.entities, key=lambda span: (span["char_start"], -span["char_end"], span["extraction_class"]))
    data = safe_json({"text": item.content, "entities": [_entity_values(entity) for entity in entities]})
    named = {"id": item.doc_id, "title": _title_of(item), "facets": plain_json(_facets_of(item))}
    return {**named, "counts": plain_json(list(counts.items())), "data": data}


def _title_of(item: ExtractedDocument) -> str:
    cited = item.document.citation if item.document else None
    return cited.with_name if cited and cited.court else item.title


def _facets_of(item: ExtractedDocument) -> Facets:
    document = item.document or Document(id=item.doc_id, content=item.content, title=item.title)
    cited = document.citation
    court = court_of(document.juridiction, document.formation, document.title)
    outcome = outcome_of(document.solution, court, document.content, item.entities).words
    return Facets(cited.court, cited.date, outcome[:1].upper() + outcome[1:])


def _entity_values(entity: Entity) -> tuple[str, int, int, list[tuple[str, str]], str]:
    given: dict[str, Any] = {**(entity["attributes"] or {})}  # a file may hold lists
    attributes = [
        (name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)) for name, value in given.items()
    ]
    return entity["extraction_class"], entity["char_start"], entity["char_end"], attributes, entity.get("alignment", "")


@cache
def _page_values(script_name: str) -> dict[str, Any]:
    script, style = own_script(PACKAGE, "folding.js", script_name), own_style(PACKAGE, "page.css")
    return frame_of_page(HEADING, script, style)
