"""HTML pages as papers: what a browser shows of them, with block quotations and footnotes."""

import re
from itertools import islice
from typing import TYPE_CHECKING

from legal_rag.base.text import Span, read_words
from legal_rag.corpus.papers import UNITS, Line, Paper, PaperWriter, displayed

if TYPE_CHECKING:
    from lxml.html import HtmlElement

TAIL = 3  # characters that say whether a raised number is a unit's: "km²"
DATA_CELL = 300  # characters; a table with longer cells only lays out a text
CALL_ELEMENTS = 10  # within a note's call or the way back, at most; and levels from a link up to what holds the call
_BLOCKS = frozenset(read_words("legal_rag.corpus")["block_tags"]) | {"td", "th", "body", "caption"}
_UNSHOWN = frozenset("script style template noscript head title iframe object svg select datalist".split())
_HIDING = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.IGNORECASE)
_NUMBER = re.compile(r"([\[(]?) ?(\d{1,4}|[a-z*†]|[ivx]{1,5}) ?[\])]?")
_BACK = re.compile(r"[\s\[(]*(?:\d{1,4}|[↩↑⏎^\ufe0e\ufe0f]+)[\])\s.]*")


def paper_of_html(page: str, *, is_mail: bool = False) -> Paper:
    """Read an HTML page; block quotations of an e-mail are what it answers, no quotations."""
    from lxml import etree, html

    parser = html.HTMLParser(huge_tree=True, remove_comments=True, remove_pis=True)
    root = html.document_fromstring(re.sub(r"^\s*<\?xml[^>]*>", "", displayed(page)), parser=parser)
    reader = _Reader(root, is_mail=is_mail)
    context = etree.iterwalk(root, events=("start", "end"))
    for event, element in context:
        if event == "end":
            reader.end(element)
            reader.add(element.tail or "")
        elif reader.start(element):
            reader.add(element.text or "")
        else:
            context.skip_subtree()
    reader.flush()
    writer = PaperWriter()
    writer.write_lines(reader.lines)
    for name, lines in reader.notes.items():
        writer.mark("note", name)
        number = re.match(rf"[\[(]?{re.escape(name)}[\]).]*\s+", lines[0].text)
        first = lines[0]._replace(text=lines[0].text[number.end() :] if number else lines[0].text, calls=())
        writer.write_lines([first, *lines[1:]])
    return writer.paper()


class _Reader:
    """Collects the lines of a page while its elements are walked through."""

    def __init__(self, root: "HtmlElement", *, is_mail: bool) -> None:
        self.lines: list[Line] = []
        self.notes: dict[str, list[Line]] = {}
        self._is_mail = is_mail
        self._call_of: dict[HtmlElement, str] = {}  # links that call notes, and what they stand in
        self._note_of: dict[HtmlElement, str] = {}  # elements that hold notes
        self._find_notes(root)
        self._pieces: list[str] = []  # of the text of the paragraph that is open, without the blanks behind it
        self._length = 0  # of these
        self._blanks = ""  # behind them
        self._calls: list[tuple[int, str]] = []
        self._spans: list[Span] = []
        self._quotes: list[int] = []  # where the open <q> start
        self._depth = 0  # of block quotations
        self._note = ""
        self._is_item = self._is_title = self._is_row = self._was_row = self._is_kept = False
        self._is_broken = False  # was the line above ended by a mere break?
        self._skipped: HtmlElement | None = None

    def start(self, element: "HtmlElement") -> bool:
        """Begin an element; is its content to be read?"""
        if not _is_shown(element) or self._is_call(element):
            self._skipped = element
            return False
        tag = element.tag
        if tag == "br":
            if self._is_row:
                self.add(" ")
            else:
                self.flush(is_break=True)
        elif tag == "q":
            self._quotes.append(self._length + len(self._blanks))
        elif tag in ("td", "th") and self._is_row:
            self._blanks = "\t" if self._length else ""
        elif tag in _BLOCKS and self._is_row:
            self.add(" ")
        elif tag in _BLOCKS:
            self.flush()
            self._is_row = tag == "tr" and _is_data(element)
            self._is_item |= tag in ("li", "dt", "dd")
            self._is_title = tag in ("h1", "h2", "h3", "h4", "h5", "h6")
            self._is_kept |= tag == "pre"
            self._depth += tag == "blockquote"
        if element in self._note_of:
            self.flush()
            self._note = self._note_of[element]
        return True

    def end(self, element: "HtmlElement") -> None:
        """End an element, without the text behind it."""
        if element is self._skipped:
            self._skipped = None
            return
        tag = element.tag
        if tag == "q" and self._quotes:
            self._spans.append((self._quotes.pop(), self._length))
        elif tag == "tr" or (tag in _BLOCKS and not self._is_row):
            self.flush()
            self._is_row = self._is_title = False
            self._is_kept &= tag != "pre"
            self._depth -= tag == "blockquote"
        if element in self._note_of:
            self.flush()
            self._note = ""

    def add(self, text: str) -> None:
        """Add a text to the paragraph, its blanks as one."""
        if self._is_kept and "\n" in text:
            for line in text.split("\n")[:-1]:
                self.add(line)
                self.flush(is_break=True)
            text = text.rpartition("\n")[2]
        text = re.sub(r"[ \t\r\n\f]+", " ", text)
        if self._blanks[-1:] in (" ", "\t") or not (self._pieces or self._blanks):
            text = text.lstrip(" ")
        if solid := text.rstrip():
            self._pieces += [self._blanks, solid]
            self._length += len(self._blanks) + len(solid)
            self._blanks = ""
        self._blanks += text[len(solid) :]

    def flush(self, *, is_break: bool = False) -> None:
        """End the line, and the paragraph if this is no mere break."""
        text = "".join(self._pieces)
        self._spans += [(start, len(text)) for start in self._quotes if start < len(text)]
        if text:
            lines = self.notes.setdefault(self._note, []) if self._note else self.lines
            is_apart = self._is_item or self._is_row
            is_next = is_apart and self._was_row == self._is_row and bool(lines) and lines[-1].is_apart
            line = Line(
                text,
                "line" if self._is_broken or is_next else "block",
                float("inf"),
                is_apart=is_apart,
                is_title=self._is_title,
                is_quoted=self._depth > 0 and not self._is_mail,
                calls=tuple(self._calls),
                spans=tuple(self._spans),
            )
            lines.append(line)
            self._was_row, self._is_item = self._is_row, False
        self._is_broken = is_break and (self._is_broken or bool(text))
        self._quotes = [0] * len(self._quotes)
        self._pieces, self._length, self._blanks = [], 0, ""
        self._calls, self._spans = [], []

    def _is_call(self, element: "HtmlElement") -> bool:
        """Is this the number of a note, that is no part of the text: a call, or the way back from the note?"""
        if element.tag not in ("a", "sup"):
            return False
        if element in self._call_of and not self._note:
            self._calls.append((self._length, self._call_of[element]))
            return True
        content = _short_text(element)
        if self._note and element.tag == "a" and (element.get("href") or "").startswith("#"):
            return bool(_BACK.fullmatch(content))
        before = "".join(piece[-TAIL:] for piece in self._pieces[-2 * TAIL :]) + self._blanks
        if element.tag == "sup" and content in ("o", "os") and before[-1:] in ("n", "N"):
            self.add("°")
            return True
        if element.tag == "sup" and content.isdecimal() and before and not UNITS.search(before):
            self._calls.append((self._length, content))
            return True
        return False

    def _find_notes(self, root: "HtmlElement") -> None:
        """Find the links with a number to something below them, and what they lead to."""
        places = {element: at for at, element in enumerate(root.iter())}
        targets: dict[str, HtmlElement] = {}
        for element in places:
            for name in filter(None, (element.get("id"), element.get("name"))):
                targets.setdefault(name, element)
        for link in root.iter("a"):
            number = _NUMBER.fullmatch(_short_text(link))
            target = targets.get((link.get("href") or "").removeprefix("#"))
            if (
                number is None
                or target is None
                or places[target] < places[link]
                or not _looks_like_call(link, number[1])
            ):
                continue
            while target.tag not in _BLOCKS and (parent := target.getparent()) is not None:
                target = parent
            if target.tag not in ("body", "html") and places[target] > places[link]:  # else the link is in it
                for element in (link, *islice(link.iterancestors(), CALL_ELEMENTS)):
                    self._call_of.setdefault(element, number[2])
                self._note_of.setdefault(target, number[2])


def _short_text(element: "HtmlElement") -> str:
    """Return the text of an element, its blanks as one; none if it holds more than a number does."""
    is_short = sum(1 for _ in islice(element.iter(), CALL_ELEMENTS + 1)) <= CALL_ELEMENTS
    return " ".join("".join(element.itertext()).split()) if is_short else ""


def _looks_like_call(link: "HtmlElement", bracket: str) -> bool:
    parent = link.getparent()
    is_raised = link.find(".//sup") is not None or (parent is not None and parent.tag == "sup")
    return is_raised or bool(bracket) or "note" in f"{link.get('class')} {link.get('role')}".lower()


def _is_shown(element: "HtmlElement") -> bool:
    is_hidden = element.get("hidden") is not None or element.get("aria-hidden") == "true"
    return not (element.tag in _UNSHOWN or is_hidden or _HIDING.search(element.get("style") or ""))


def _is_data(row: "HtmlElement") -> bool:
    """Does a row of a table hold data, side by side, and no page's layout?"""
    cells = [cell for cell in row if cell.tag in ("td", "th")]
    return (
        len(cells) > 1 and row.find(".//table") is None and all(len(cell.text_content()) < DATA_CELL for cell in cells)
    )
