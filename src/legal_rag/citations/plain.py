"""Read an answer's Markdown and HTML as plain text, with a map back to what was written."""

import html
import re
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

_BLANKS = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_HIDDEN = "\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
_MARKS = dict(zip("„‟〝〞‛＂〈〉《》≪≫「」『』ºᵉʳᵃ", '“““”‘"‹›«»«»“”“”°era', strict=True)) | {"№": "n°"}
_HIDDEN_CHARACTER = re.compile(f"[{_HIDDEN}]")
_SPECIAL = re.compile(rf"[{_BLANKS}{_HIDDEN}{''.join(_MARKS)}\uff01-\uff5e]|[^\x00-\x7f\W\D]")
# Letters of other alphabets that look like Latin ones: they can hide a negation, or a marker's first word.
_LOOKALIKES = {ord(chr(code)): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)} | str.maketrans(
    "аеорсухіѕјһԁԛԝЅАВЕКМНОРСТХІЈαοενικρυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxisjhdqwSABEKMHOPCTXIJaoevikpuxABEZHIKMNOPTYX",
)
_TAG = re.compile(
    r"</?(?P<name>b|i|em|strong|u|s|sup|sub|span|mark|small|q|p|div|br|blockquote|code|pre|li|ul|ol)\b[^<>\n]{0,100}>",
    re.IGNORECASE,
)
_OPENS_QUOTATION = {"q", "blockquote", "code", "pre"}
_BREAKS_LINE = {"p", "div", "br", "li", "ul", "ol"}
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
_ESCAPE = re.compile(r"\\([\\\[\](){}*_`>#~\"'«»“”!.+-])")
_EMPHASIS = re.compile(r"(?<=[^\s*])\*{1,3}|\*{1,3}(?![\s*])|~~|(?<!\w)_{1,3}(?=[^\s_])|(?<=[^\s_])_{1,3}(?!\w)")
_CODE = re.compile(r"(?P<ticks>`{1,2})(?P<code>[^`\n]{1,2000})(?P=ticks)")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n`]*$", re.MULTILINE)
_QUOTED_LINE = re.compile(r"^[ \t]{0,3}(?:>[ \t]?)+", re.MULTILINE)
_QUOTED_LINES = re.compile(rf"(?:{_QUOTED_LINE.pattern}[^\n]*(?:\n|\Z))+", re.MULTILINE)
_GUILLEMETS = re.compile(r"<<|>>|(?<!`)``(?!`)|(?<!\S)''(?=\S)|(?<=\S)''(?!\w)")
_DOUBLED = {"<<": "«", ">>": "»", "``": "“"}
_REVERSED = re.compile(r"(?<!\S)»(?=\S)(?P<quoted>[^«»\n]{3,1000})(?<=\S)«(?!\w)")
_LOW_SINGLE = re.compile(r"‚(?P<quoted>[^‚‘\n]{3,1000})‘(?!\w)")
_INDENTED = re.compile(r"(?:\A|(?<=\n\n))(?:(?: {4}|\t)\S[^\n]*(?:\n|\Z))+")
_SOFT_BREAK = re.compile(r"(?<=[\w,’'(-])[ ]?\n[ ]?(?=[a-zà-ÿ0-9(«“])(?!\d{1,3}[.)]\s)(?![a-z]\))")
_OWN_MARKS = re.compile(r"[«»“”„\"<>＂]")
_GOES_ON = re.compile(r"\n[ ]{0,3}(?!\d{1,3}[.)]\s)[a-zà-ÿ0-9][^\n]*")
_CREDIT = re.compile(
    r"\s*(?:[—–]|-{1,2}(?=\s)|\(\s*(?:Cass|CE\b|CA\b|Cons))"
)  # "— Cass. soc., 9 janv. 2018": the attribution


class PlainText(NamedTuple):
    """A text as its reader sees it."""

    text: str
    starts: "array[int]"  # offset in the written text of each character; then the length of the written text

    def place(self, offset: int) -> int:
        """Map an offset of the written text to this one."""
        return bisect_left(self.starts, offset)

    def written(self, offset: int) -> int:
        """Map an offset of this text to the written one: right after the character before it."""
        return self.starts[offset - 1] + 1 if offset else 0


class _Edit(NamedTuple):
    start: int
    end: int
    text: str


def read_plain(written: str) -> PlainText:
    """Resolve emphasis, tags, entities, escapes, blanks, digits and hidden characters; linear in the text.

    Block quotations, code and `<q>` become quotations in “ ”, unless they hold quotation marks of their own.
    """
    edits = sorted(
        {*_block_edits(written), *_inline_edits(written)},
        key=lambda edit: (edit.start, edit.end != edit.start, edit.end - edit.start),
    )
    pieces: list[str] = []
    starts = array("q")
    done = 0
    for start, end, text in edits:
        if start < done:
            continue
        pieces += [written[done:start], text]
        starts.extend(range(done, start))
        # An inserted closing mark belongs to the character before it, so that a marker after both stays after both.
        starts.extend([max(start - 1, done, 0) if start == end and text == "”" else start] * len(text))
        done = end
    pieces.append(written[done:])
    starts.extend(range(done, len(written) + 1))
    return PlainText("".join(pieces), starts)


def without_hidden(text: str) -> str:
    """Remove invisible characters: soft hyphens, zero-width blanks, marks of direction."""
    return text if text.isascii() else _HIDDEN_CHARACTER.sub("", text)


def legible(text: str) -> str:
    """Return a text of the same length in which look-alike letters of other alphabets are Latin."""
    return text if text.isascii() else text.translate(_LOOKALIKES)


@lru_cache(2048)
def plain_words(text: str) -> str:
    """Return a piece of a document with its blanks, digits, entities and hidden characters resolved."""
    text = _ENTITY.sub(lambda match: html.unescape(match.group()), text)
    return text if text.isascii() else _SPECIAL.sub(_resolve_character, text)


def _resolve_character(match: re.Match[str]) -> str:
    character = match.group()
    if character in _MARKS:
        return _MARKS[character]
    if unicodedata.category(character) == "Nd":
        return str(unicodedata.decimal(character))
    if "\uff01" <= character <= "\uff5e":
        return chr(ord(character) - 0xFEE0)
    return " " if unicodedata.category(character) == "Zs" else ""


def _inline_edits(written: str) -> Iterator[_Edit]:
    for match in _SPECIAL.finditer(written):
        yield _Edit(*match.span(), _resolve_character(match))
    for match in _ENTITY.finditer(written):
        yield _Edit(*match.span(), plain_words(match.group()))
    for match in _ESCAPE.finditer(written):
        yield _Edit(*match.span(), match[1])
    for match in _TAG.finditer(written):
        name, mark = match["name"].lower(), "”" if match.group().startswith("</") else "“"
        yield _Edit(*match.span(), mark if name in _OPENS_QUOTATION else "\n" if name in _BREAKS_LINE else "")
    for match in _EMPHASIS.finditer(written):
        yield _Edit(*match.span(), "")
    for match in _CODE.finditer(written):
        quotes = " " in match["code"].strip() and not _OWN_MARKS.search(match["code"])
        yield _Edit(*match.span("ticks"), "“" if quotes else "")
        yield _Edit(match.end("code"), match.end(), "”" if quotes else "")
    for match in _GUILLEMETS.finditer(written):
        opens = not written[match.start() - 1 : match.start()].strip() if match.start() else True
        yield _Edit(*match.span(), _DOUBLED.get(match.group()) or ("“" if opens else "”"))
    for match in _SOFT_BREAK.finditer(written):
        yield _Edit(*match.span(), " ")
    for pattern, marks in ((_REVERSED, "«»"), (_LOW_SINGLE, "“”")):
        for match in pattern.finditer(written):
            yield _Edit(match.start(), match.start() + 1, marks[0])
            yield _Edit(match.end() - 1, match.end(), marks[1])


def _block_edits(written: str) -> Iterator[_Edit]:
    """Yield the edits that make a quotation of each block of quoted lines without its attribution, and of each fenced block."""
    fences = list(_FENCE.finditer(written))
    for opening, closing in zip(fences[::2], fences[1::2], strict=False):
        yield _Edit(*opening.span(), "")
        yield _Edit(*closing.span(), "")
        yield from _quote_edits(written, opening.end(), closing.start())
    for match in _INDENTED.finditer(written):
        yield from _quote_edits(written, *match.span())
    for block in _QUOTED_LINES.finditer(written):
        marks = list(_QUOTED_LINE.finditer(written, *block.span()))
        yield from (_Edit(*mark.span(), "") for mark in marks)
        quoted = [mark.end() for mark in marks if not _CREDIT.match(written, mark.end(), line_end(written, mark.end()))]
        if not quoted:
            continue
        end = line_end(written, quoted[-1])
        # A next line that begins in lower case or with a digit continues the block, as in Markdown.
        while quoted[-1] == marks[-1].end() and (following := _GOES_ON.match(written, end)):
            end = following.end()
        yield from _quote_edits(written, quoted[0], end)


def _quote_edits(written: str, start: int, end: int) -> Iterator[_Edit]:
    text = _QUOTED_LINE.sub("", written[start:end])
    if text.strip() and not _OWN_MARKS.search(text):
        end = start + len(written[start:end].rstrip())
        yield _Edit(start, start, "“")
        yield _Edit(end, end, "”")


def line_end(text: str, start: int) -> int:
    """Return where the line of an offset ends."""
    end = text.find("\n", start)
    return len(text) if end < 0 else end
