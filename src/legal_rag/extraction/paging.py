"""Many documents on many pages: each page as large as a browser opens at once, written while documents stream by."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from legal_rag.extraction.page import IndexRow, Link, OutputItem, page_parts

PAGE_DOCUMENTS = 500
PAGE_CHARACTERS = 8_000_000  # of the texts of a page that has more than one document
LISTED_DOCUMENTS = 50_000  # beyond that, the index page names only the first and the last document of each page


def write_pages(folder: Path, items: Iterable[OutputItem], index_address: str) -> list[IndexRow]:
    """Write the pages of any number of documents, holding one document at a time.

    A page that is the only one has no links, and can be moved anywhere.

    Args:
        folder: An empty one.
        items: The documents.
        index_address: Of the index page, as seen from the pages.

    Returns:
        The pages, one at least; their addresses are the names of their files.
    """
    rows: list[IndexRow] = []
    ahead = _Ahead(items)
    while not rows or ahead.has_more:
        number = len(rows) + 1
        listed: list[tuple[str, str, int]] = []
        parts = page_parts(_page_of(ahead, listed), _links(number, ahead, index_address))
        write_parts(folder / _name(number), parts)
        rows.append(_row(number, listed))
        if ahead.taken > LISTED_DOCUMENTS:
            rows = [row._replace(listed=[]) for row in rows]
    return rows


def write_parts(path: Path, parts: Iterable[str]) -> None:
    """Write a text that comes in pieces; what UTF-8 has no bytes for becomes a question mark."""
    with path.open("w", encoding="utf-8", errors="replace", newline="\n") as out:
        out.writelines(parts)


class _Ahead:
    """A stream that tells whether there is more."""

    def __init__(self, items: Iterable[OutputItem]) -> None:
        self._items = iter(items)
        self.next = next(self._items, None)
        self.taken = 0

    @property
    def has_more(self) -> bool:
        return self.next is not None

    def step(self) -> None:
        self.next = None  # not two documents at a time
        self.next = next(self._items, None)
        self.taken += 1


def _page_of(ahead: _Ahead, listed: list[tuple[str, str, int]]) -> Iterator[OutputItem]:
    """Yield the documents of one page, listing each."""
    characters = 0
    while ahead.next is not None and len(listed) < PAGE_DOCUMENTS:
        item = ahead.next
        characters += len(item.content)
        if listed and characters > PAGE_CHARACTERS:
            return
        listed.append((item.doc_id, item.title, len(item.entities)))
        yield item
        ahead.step()


def _links(number: int, ahead: _Ahead, index_address: str) -> Iterator[Link]:
    """Yield the links of a page; when they are asked for, its documents have been taken."""
    if number > 1 or ahead.has_more:
        yield Link(index_address, "Toutes les pages")
    if number > 1:
        yield Link(_name(number - 1), "Page précédente")
    if ahead.has_more:
        yield Link(_name(number + 1), "Page suivante")


def _row(number: int, listed: list[tuple[str, str, int]]) -> IndexRow:
    first, last = [title or doc_id for doc_id, title, _ in listed[:1] + listed[-1:]] or ["", ""]
    return IndexRow(_name(number), number, len(listed), sum(count for *_, count in listed), first, last, listed)


def _name(number: int) -> str:
    return f"{number:04}.html"
