"""One text with places of a file of any format: references are read on it, and found again by page or note."""

from bisect import bisect_right
from typing import Literal, NamedTuple

from legal_rag.base.text import Span

PlaceKind = Literal["page", "paragraph", "note"]


class PlaceMark(NamedTuple):
    """Where a page, a paragraph or a note begins in the text."""

    start: int  # characters
    kind: PlaceKind
    name: str  # its number as the file has it: "3", "12"


class Paper(NamedTuple):
    """The text of a file as its reader reads it: lines joined, without headers, line numbers, marks of reply."""

    text: str
    places: tuple[PlaceMark, ...] = ()  # in text order
    quoted: tuple[Span, ...] = ()  # set off as quotations without quotation marks: block quotations, quoting styles
    notices: tuple[str, ...] = ()  # French sentences: what a reader should know of how it was read
    unread: tuple[str, ...] = ()  # French sentences: parts that could not be read

    def place_of(self, offset: int) -> str:
        """Say in French where a character is: "note 12", "page 3, paragraphe 14", or "ligne 40"."""
        before = self.places[: bisect_right(self.places, offset, key=lambda mark: mark.start)]
        last = {mark.kind: mark.name for mark in before}
        if before and before[-1].kind == "note":
            return f"note {before[-1].name}"
        words = {"page": "page", "paragraph": "paragraphe"}
        named = [f"{word} {last[kind]}" for kind, word in words.items() if kind in last]
        return ", ".join(named) or f"ligne {self.text.count(chr(10), 0, offset) + 1}"
