"""One text with places of a file of any format: references are read on it, and found again by page or note."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Set
from functools import cached_property
from itertools import groupby
from typing import Literal, NamedTuple

from legal_rag.base import html
from legal_rag.base.text import INVISIBLE, Span, normalized, read_words, storable
from legal_rag.law.sentences import ABBREVIATIONS

PlaceKind = Literal["page", "paragraph", "note", "margin"]  # margin: headers and footers of pages
Gap = Literal["line", "block", "page"]
# What symbol fonts show for the codes that they use, in Word and in PDFs: a degree sign, else a bullet or an ornament.
SYMBOLS = {0xF000 + code: "°" if code == 0xB0 else "•" for code in range(0x100)}
UNITS = re.compile(r"\b[cdk]?m$")  # a raised number after it is no note: "m²"
PAGE_NUMBER = re.compile(
    r"(?:[-–—]\s*\d{1,4}\s*[-–—]|\[?page\s+\d{1,4}(?:\s*(?:/|sur|de|of)\s*\d{1,4})?\]?)", re.IGNORECASE
)
EDGE_NUMBER = re.compile(r"(?:p\.\s*)?\d{1,4}(?:\s*(?:/|sur)\s*\d{1,4})?", re.IGNORECASE)
# The page's number in a header or footer.
_NUMBER_OF_PAGE = re.compile(
    r"[\s|·–—-]+(?:p\.|page)?\s*\d{1,4}(?:\s*(?:/|sur)\s*\d{1,4})?$|^(?:p\.|page)?\s*\d{1,4}\s*[|·–—-]\s", re.IGNORECASE
)
_ITEM = re.compile(
    r"(?:[-*•·◦▪●○■–—+]|\(?\d{1,3}[.°](?:\s?[-–—])?|\(?\d{1,2}\)|\(?[a-zà-ÿ]{1,4}\)|[A-Z]\)|\(?(?=[IVX])X{0,3}(?:IX|IV|V?I{0,3})[.)]"
    r"|[A-Z]\.?\s?[-–—]|[IVX]+\s?[-–—])\s+(?=\S)"
)


class RefusedError(ValueError):
    """What is wrong with a file, without its name."""


IN_MARGIN = "en-tête ou pied de page"


class PlaceMark(NamedTuple):
    """Where a page, a paragraph, a note or what stands in the margins begins in the text, or where a note is called."""

    start: int  # characters
    kind: PlaceKind
    name: str  # its number as the file has it: "3", "12"


class _PaperFields(NamedTuple):
    text: str
    places: tuple[PlaceMark, ...] = ()  # in text order
    quoted: tuple[Span, ...] = ()  # set off as quotations without quotation marks: block quotations, quoting styles
    notices: tuple[str, ...] = ()  # French sentences: what a reader should know of how it was read
    unread: tuple[str, ...] = ()  # French sentences: parts that could not be read
    calls: tuple[PlaceMark, ...] = ()  # where the body calls its notes, whose numbers are not in the text


@html.displayed
class Paper(_PaperFields):  # a class of its own, for a tuple with names keeps nothing that it has computed
    """The text of a file as its reader reads it: lines joined, without headers, line numbers, marks of reply.

    Paragraphs are two line ends apart, list items and rows one, cells a tab. Notes follow the body; headers and footers
    come last, once each.
    """

    def is_in_margin(self, offset: int) -> bool:
        """Does a character belong to a header or footer of the pages?"""
        return self.place_of(offset) == IN_MARGIN

    def place_of(self, offset: int) -> str:
        """Say in French where a character is: "page 2, note 12", "page 3, paragraphe 14", or "ligne 40"."""
        marks = bisect_right(self.places, offset, key=lambda mark: mark.start)
        return self._names[marks - 1] if marks else f"ligne {bisect_left(self._line_ends, offset) + 1}"

    @cached_property
    def _line_ends(self) -> list[int]:
        return [match.start() for match in re.finditer("\n", self.text)]

    @cached_property
    def _names(self) -> list[str]:
        """What lies behind each mark, in French."""
        words: dict[PlaceKind, str] = {"page": "page", "paragraph": "paragraphe", "note": "note"}
        names: list[str] = []
        last: dict[PlaceKind, PlaceMark] = {}
        for mark in self.places:
            if mark.kind in ("note", "margin"):
                # Those that stand behind the body have a page only if one is marked with them.
                last = {kind: place for kind, place in last.items() if kind == "page" and place.start == mark.start}
            last[mark.kind] = mark
            named = (f"{word} {last[kind].name}" for kind, word in words.items() if kind in last)
            names.append(IN_MARGIN if "margin" in last else ", ".join(named))
        return names


class Line(NamedTuple):
    """A line of a page or a text file, before lines are joined to paragraphs."""

    text: str  # not blank
    gap: Gap = "line"  # what separates it from the line above
    room: float = 0  # characters that would have had place after it
    is_apart: bool = False  # an item, a row: never joined to the line above
    is_title: bool = False  # a paragraph by itself
    is_quoted: bool = False
    page: str = ""
    calls: tuple[tuple[int, str], ...] = ()  # notes called: offset in the line, number
    spans: tuple[Span, ...] = ()  # quotations within the line that have no marks


class PaperWriter:
    """Makes a paper of blocks or lines, in order."""

    def __init__(self, vocabulary: Set[str] = frozenset()) -> None:
        self.length = 0
        self.notices: list[str] = []
        self.unread: list[str] = []
        self._vocabulary = vocabulary  # words of the document, with their hyphens
        self._pieces: list[str] = []
        self._places: list[PlaceMark] = []
        self._quoted: list[Span] = []
        self._calls: list[PlaceMark] = []
        self._awaiting: list[tuple[PlaceKind, str]] = []  # places that begin with the next text

    def mark(self, kind: PlaceKind, name: str) -> None:
        """Let a place begin with what is written next."""
        self._awaiting.append((kind, name))

    def write(self, text: str, separator: str = "") -> int:
        """Append a text after a separator, which a first text does not get; return where the text starts."""
        if not self.length:
            separator = ""
        start = self.length + len(separator)
        self._places += [PlaceMark(start, *place) for place in self._awaiting]
        self._awaiting.clear()
        self._pieces += [separator, text]
        self.length = start + len(text)
        return start

    def call(self, name: str, start: int | None = None) -> None:
        """Remember that a note is called at an offset, by default here."""
        self._calls.append(PlaceMark(self.length if start is None else start, "note", name))

    def quote(self, start: int, end: int | None = None) -> None:
        """Remember a quotation set off from the text, by default up to here."""
        self._quoted.append((start, self.length if end is None else end))

    def write_lines(self, lines: Iterable[Line]) -> None:
        """Append lines as paragraphs, joining those that only the width of a page separates."""
        page = ""
        for is_quoted, group in groupby(lines, key=lambda line: line.is_quoted):
            before: Line | None = None
            start = self.length
            opened = 0  # brackets and quotation marks of the paragraph that are still open
            for line in group:
                if line.page != page:
                    page = line.page
                    self.mark("page", page)
                separator = separator_between(before, line, is_open=opened > 0) if before else "\n\n"
                if separator == "\n\n":
                    opened = 0
                opened += sum(map(line.text.count, "«(")) - sum(map(line.text.count, "»)"))
                cut = 0
                if before and separator == " ":
                    cut, separator = join(before.text, line.text, self._vocabulary)
                self._cut(cut)
                written = self.write(line.text, separator)
                start = start if before else written
                for offset, name in line.calls:
                    self.call(name, written + offset)
                for span_start, span_end in line.spans:
                    self.quote(written + span_start, written + span_end)
                before = line
            if is_quoted:
                self.quote(start)

    def paper(self) -> Paper:
        """Return what was written."""
        said = tuple(self.notices), tuple(self.unread)
        return Paper("".join(self._pieces), tuple(self._places), tuple(sorted(self._quoted)), *said, tuple(self._calls))

    def _cut(self, length: int) -> None:
        if length:
            self._pieces[-1] = self._pieces[-1][:-length]
            self.length -= length


TAIL = 100  # characters of a line that are looked at
# Marks that a sentence cannot end with, and those that it cannot begin with.
_OPEN_END = re.compile(r"[(\[«“/&–—-]\s*$|['’]$")
_OPEN_START = re.compile(r"[,;:)\]»”%]|\.\S|[a-zà-ÿœ](?!\s?[).]\s)")
_ENDED = re.compile(r"[.!?…;:]\s*[»”\")\]]*$")
_LAST_WORD = re.compile(r"[^\s(\[«“\"'’/,;:]+$")
# A number that ends a reference: an upper-case letter after it begins another.
_WHOLE_NUMBER = re.compile(r"(?:\d{2}-\d{2}\.?\d{3}|\d{2}/\d{4,5}|\d{6,})$")
_CUT_NUMBER = re.compile(r"\b[Nn][°ºo]s?\s?(?:(?:\d{1,3} )*\d{1,3}|[A-Z]{1,3})$|\b\d\d-\d\d\.$")
_ITEM_NUMBER = re.compile(r"\d{1,3}[.)°]\s|[IVXLC]+\.\s|[-–—•]\s")
_DASH = re.compile(r"[-–—] [a-zà-ÿ]")
_ARTICLE = re.compile(r"(?:[LRDA]|LO)\.?\s?\*?\d")
_INITIALS = re.compile(r"(?:[A-Z]\.-?)+")  # "L.", "J.-P.", "C.E."
_HYPHEN = re.compile(r"([^\W\d_]+)([-‐\u00ad\u0002])$")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_UNSEEN = str.maketrans(dict.fromkeys(INVISIBLE))
_OTHER_DIGIT = re.compile(r"[^\W\D0-9]")
_LISTS = read_words("legal_rag.corpus")
_FIRST_PARTS = frozenset("vingt trente quarante cinquante soixante quatre dix non vice quasi demi haut haute".split())
_FUNCTION_WORDS, _COMPOUNDS = frozenset(_LISTS["function_words"]), frozenset(_LISTS["compounds"])


def key_of_margin(text: str) -> str:
    """Return a header or footer without the page's number: equal for two pages."""
    return " ".join(_NUMBER_OF_PAGE.sub("", text.strip()).split())


def is_item(text: str) -> bool:
    """Does a line begin an item of a list: "- ", "1. ", "a) ", "II. "?"""
    return bool(_ITEM.match(text))


def displayed(text: str) -> str:
    """Normalise a text as it is displayed: composed, without invisible characters, its digits from 0 to 9."""
    text = normalized(storable(text)).translate(_UNSEEN)
    return _OTHER_DIGIT.sub(lambda digit: str(unicodedata.digit(digit.group(), digit.group())), text)


def vocabulary_of(text: str) -> frozenset[str]:
    """Return the words of a text in lower case, compounds with their hyphens: how to read a hyphen at a line's end."""
    return frozenset(word.lower() for word in _WORD.findall(text))


def is_unfinished(before: str, after: str) -> bool:
    """Must a line or page that ends so go on with this one, judging by their words?"""
    before, after = before[-TAIL:], after[:TAIL]
    if needs_more(before) or _HYPHEN.search(before):
        return True
    if before[-1] in ";:":
        return False
    if _CUT_NUMBER.search(before) and re.match(r"\d{3,}(?!\d)", after):
        return True
    if _OPEN_START.match(after):
        return True
    if _ENDED.search(before):
        return False
    if before[-1] == ",":
        return not after[0].isupper() or bool(_ARTICLE.match(after))
    # "3 juin | 2021", "le moyen | (Cass. soc.": but a numbered item is one.
    return after[0] == "(" or (after[0].isdigit() and before[-1].islower() and not _ITEM_NUMBER.match(after))


def needs_more(before: str) -> bool:
    """Does a line end in the midst of a phrase: with an open bracket, an article, "n°", an abbreviation?"""
    before = before[-TAIL:]
    if _OPEN_END.search(before):
        return True
    match = _LAST_WORD.search(before)
    if not match:
        return False
    word = match.group()
    bare = word.rstrip(".").lower()
    if word.endswith("."):
        return bare in ABBREVIATIONS or bool(_INITIALS.fullmatch(word))
    return bare in _FUNCTION_WORDS or word.endswith("°")


def separator_between(before: Line, line: Line, *, is_open: bool) -> str:
    """Say what stands between two lines: a blank if they are joined, else one or two line ends.

    Args:
        before: The line above.
        line: The line.
        is_open: Has the paragraph opened a bracket or a quotation that it has not closed?
    """
    if before.is_title or line.is_title or line.gap == "block":
        return "\n\n"
    text = before.text[-TAIL:]
    if "\t" in before.text and not line.is_apart:  # what stands below a table
        return "\n\n"
    is_within = is_open or is_unfinished(text, line.text)
    is_full = before.room < len(line.text.split(maxsplit=1)[0]) + 1
    is_number = line.text[0].isdigit() and (needs_more(text) or bool(_CUT_NUMBER.search(text)))
    is_dash = is_full and bool(_DASH.match(line.text)) and not _ENDED.search(text)  # of a sentence, no item's
    if line.is_apart and not (is_number or is_dash):
        return "\n" if line.gap == "line" else "\n\n"
    if line.gap == "page":
        return " " if is_within or (is_full and not _ENDED.search(text)) else "\n\n"
    is_next = bool(_WHOLE_NUMBER.search(text)) and line.text[0].isupper()
    return " " if is_within or (is_full and not is_next) else "\n"


def join(before: str, after: str, vocabulary: Set[str]) -> tuple[int, str]:
    """Join two lines: how many characters the first loses (a hyphen), and what stands between them (a blank or not).

    A hyphen stays between digits, before a capital, and in a compound of the document or of French legal texts.
    """
    before, after = before[-TAIL:], after[:TAIL]
    hyphen = _HYPHEN.search(before)
    following = _WORD.match(after)
    if hyphen and following:
        left, right = hyphen[1].lower(), following.group().lower()
        compound = f"{left}-{right}"
        # "Hauts- | de-Seine", "quarante- | huit", "non- | respect" have parts, no syllables.
        is_compound = "-" in right or left in _FIRST_PARTS or compound in vocabulary or compound in _COMPOUNDS
        return int(left + right in vocabulary or (after[0].islower() and not is_compound)), ""
    is_cut = re.search(r"\w[-‐/\u00ad\u0002]$|\b\d\d-\d\d\.$|://\S*[/.=?&_-]$", before) and after[0].isalnum()
    return 0, "" if is_cut else " "
