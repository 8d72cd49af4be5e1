"""Plain text, Markdown and e-mails as papers: paragraphs of hard-wrapped lines, pages, block quotations, footnotes."""

import email
import email.policy
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from email.message import Message
from html import unescape
from itertools import pairwise
from typing import NamedTuple

from legal_rag.corpus.html_page import paper_of_html
from legal_rag.corpus.papers import (
    EDGE_NUMBER,
    PAGE_NUMBER,
    Gap,
    Line,
    Paper,
    PaperWriter,
    displayed,
    is_item,
    is_unfinished,
    key_of_margin,
    needs_more,
    vocabulary_of,
)

MIN_WIDTH = 30  # characters: shorter lines were not cut by a page's width
NARROW = 130  # characters; a text with many longer lines has one paragraph a line
MAIL_FIELDS = {"From": "De", "To": "À", "Cc": "Cc", "Date": "Date", "Subject": "Objet"}
ATTACHED = "La pièce jointe « {} » n'a pas été lue."
EDGE_LINES = 2  # at the top and the bottom of a page, that may be repeated on others

# Line ends of Unicode; U+0085 is an ellipsis where Windows-1252 was read as Latin-1.
_LINE_ENDS = str.maketrans({"\x0b": "\n", "\u2028": "\n", "\u2029": "\n\n", "\x85": "…"})
_FIELD = (
    r"[>\s*_]*(?:De|From|À|A|To|Cc|Cci|Bcc|Objet|Sujet|Subject|Date|Envoyé(?: le)?|Sent|Répondre à|Reply-To|"
    r"Pièces? jointes?|Attachments?)[*_]*\s?:[*_]*(?:\s|$)"
)
_MAIL_FIELD = re.compile(_FIELD, re.IGNORECASE)
_SENDER = re.compile(r"[>\s*_]*(?:De|From)[*_]*\s?:", re.IGNORECASE)
_REPLY = re.compile(r"\b(?:a écrit|wrote)\s?:\s*$|^-{2,}\s?(?:Message d'origine|Message transféré|Original Message)")
_TWO_MARKS = re.compile(r"\s*>\s?>")
_MARKS = re.compile(r"\s{0,3}(?:>[ \t]?)+")
_TITLE = re.compile(r"(#{1,6}\s+\S.*?)(?:\s+#+)?")
_UNDERLINED = re.compile(r"(?<![^\n]\n)^(?=[^\W_])([^\n|]{2,80}[^\n|.;,:])\n(?:(=)=+|-{3,})[ \t]*$", re.MULTILINE)
_RULE = re.compile(r"\s*(?:(?:[-*_=]\s*){3,}|(?:```|~~~)\w*)\s*$")
_ROW_RULE = re.compile(r"\s*\|?(?:\s*:?-{3,}:?\s*\|)+(?:\s*:?-{3,}:?)?\s*$")
_DEFINITION = re.compile(r"\[\^([^\]\s]{1,20})\]:\s*")
_CALL = re.compile(
    r"\[\^(?P<name>[^\]\s]{1,20})\]"
    r"|(?<=[\w.,;:)»”\"])(?<!\bm)(?<!\b[ck]m)(?P<raised>[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3})(?![⁰¹²³⁴⁵⁶⁷⁸⁹])"
    r"|(?:(?<=[)»”])|(?<=[)»”][.,;]))(?P<glued>\d{1,3})(?=\s|$)"
)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_PHRASE = r"[^\s*_](?:[^*\n]|\n(?![ \t]{0,99}\n)){0,600}?(?<!\s)"
_EMPHASIS = re.compile(
    rf"(\*{{2,3}}|(?<![\w_])__)(?P<strong>{_PHRASE})\1|(?<![\w*\\])\*(?P<star>{_PHRASE})\*(?![\w*])"
    r"|(?<![\w\\])_(?P<bar>[^\s_](?:[^_\n]{0,600}?[^\s_])?)_(?!\w)"
)
_PAGE_OF_HTML = re.compile(
    r"\s*<(?:!doctype|html|head|body|p|div|h[1-6]|table|ul|ol|article|section)[\s>]", re.IGNORECASE
)
_CHARACTER = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")  # "&nbsp;"
_PARAGRAPHS = frozenset({"p", "div", "hr", "center"})
_TAG = re.compile(
    r"</?(a|abbr|b|br|blockquote|center|cite|code|del|div|em|font|hr|i|ins|mark|p|q|s|small|span|strong|sub|sup|u)"
    r"(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")


class _Raw(NamedTuple):
    """A line of the file."""

    text: str
    page: int
    gap: Gap


def paper_of_text(text: str) -> Paper:
    """Read Markdown, plain text or an e-mail, without its line ends, marks of reply and page numbers."""
    if _PAGE_OF_HTML.match(text):
        return paper_of_html(text)
    text = re.sub(r"\xad[ \t]*\n[ \t]*", "", text.replace("\r\n", "\n").replace("\r", "\n"))
    if _TAG.search(text):
        text = _without_tags(text)
    text = _CHARACTER.sub(lambda match: unescape(match.group()), text)
    text = displayed(text.translate(_LINE_ENDS))
    text = _ESCAPE.sub(r"\1", _EMPHASIS.sub(lambda match: match["strong"] or match["star"] or match["bar"], text))
    is_mail = _is_mail(text.split("\n"))
    text = _UNDERLINED.sub(lambda match: f"{'#' if match[2] else '##'} {match[1]}", text)
    raw, margins = _without_margins(text)
    writer = PaperWriter(vocabulary_of(text))
    notes: dict[str, list[Line]] = {}
    writer.write_lines(_lines(raw, is_mail=is_mail, notes=notes, has_pages="\f" in text.strip("\f")))
    for name, lines in notes.items():
        writer.mark("note", name)
        writer.write_lines(lines)
    for line in margins:
        writer.mark("margin", "")
        writer.write(line, "\n\n")
    return writer.paper()


def _without_tags(text: str) -> str:
    """Write the HTML that Markdown may hold as Markdown: block quotations, raised numbers, lines; drop other tags."""
    text = re.sub(r"<!--(?:(?!<!--).)*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"<br\s*/?>", "\n", text, flags=re.IGNORECASE)
    text = re.sub(r"<q(?:\s[^<>]*)?>\s*([^<>]*?)\s*</q>", "«\u00a0\\1\u00a0»", text, flags=re.IGNORECASE)
    text = re.sub(r"(?<=n)<sup>os?</sup>", "°", text, flags=re.IGNORECASE)
    text = re.sub(r"<sup>\s*(\d{1,3})\s*</sup>", r"[^\1]", text, flags=re.IGNORECASE)
    block = re.compile(r"<blockquote(?:\s[^<>]*)?>((?:(?!<blockquote).)*?)</blockquote>", re.IGNORECASE | re.DOTALL)
    text = block.sub(lambda match: "\n\n> " + match[1].strip().replace("\n", "\n> ") + "\n\n", text)
    return _TAG.sub(lambda match: "\n\n" if match[1].lower() in _PARAGRAPHS else "", text)


def _is_mail(lines: list[str]) -> bool:
    """Are there fields of an e-mail, two at the start or three, with a sender, or "a écrit :" before a mark?"""
    fields = senders = 0  # in a row
    is_start = True
    reply = False
    for line in filter(str.strip, lines):
        if (reply and line.lstrip().startswith(">")) or _TWO_MARKS.match(line):
            return True
        reply = bool(_REPLY.search(line))
        if _MAIL_FIELD.match(line):
            fields += 1
            senders += bool(_SENDER.match(line))
            if senders and fields >= (2 if is_start else 3):
                return True
        else:
            is_start = is_start and not fields
            fields = senders = 0
    return False


def _without_margins(text: str) -> tuple[list[_Raw], list[str]]:
    """Take page numbers, and what is repeated at the edges of pages, out of the lines; the latter is returned once."""
    parts: list[list[_Raw]] = [[]]  # pages, as far as form feeds and page numbers show them
    for number, content in enumerate(text.split("\f"), start=1):
        parts.append([])
        for line in content.split("\n"):
            if PAGE_NUMBER.fullmatch(line.strip()):
                parts.append([])
            else:
                parts[-1].append(_Raw(line, number, "line"))
    pages = [part for part in map(_stripped, parts) if part]
    width = _width(line.text for page in pages for line in page)
    margins: dict[str, str] = {}
    if len(pages) > 1:
        pages = _without_edges(pages, margins, width, has_feeds="\f" in text)
    raw = [line._replace(gap="page") if at == 0 else line for page in pages for at, line in enumerate(page)]
    if width < NARROW:
        raw = _without_repeated(raw, margins, width)
    return raw, list(margins.values())


def _without_edges(
    pages: list[list[_Raw]], margins: dict[str, str], width: float, *, has_feeds: bool
) -> list[list[_Raw]]:
    """Take headers and footers out of pages: bare numbers, what several pages have, and what cuts a sentence."""
    counts: Counter[str] = Counter()
    for page in pages:
        counts.update({key_of_margin(page[at].text) for at in _edges(page, width)})
    kept: list[list[_Raw]] = []
    for page in pages:
        dropped = {at for at in (0, len(page) - 1) if has_feeds and _is_page_number(page, at)}
        for at in set(_edges(page, width)) - dropped:
            key = key_of_margin(page[at].text)
            if key and counts[key] > 1:
                margins.setdefault(key, page[at].text.strip())
                dropped.add(at)
        kept.append(_stripped([line for at, line in enumerate(page) if at not in dropped]))
    kept = [page for page in kept if page]
    for above, below in pairwise(kept):
        for page, at, inner in ((below, 0, 1), (above, len(above) - 1, len(above) - 2)):
            if len(page) < 3 or page[inner].text.strip():
                continue
            before, after = (above[-1], _stripped(page[1:])[0]) if at == 0 else (_stripped(page[:-1])[-1], below[0])
            if _may_run(before.text, page[at].text, after.text):
                margins.setdefault(key_of_margin(page[at].text), page[at].text.strip())
                page[:] = _stripped(page[:at] + page[at + 1 :])
    return kept


def _is_page_number(page: list[_Raw], at: int) -> bool:
    """Is a bare number the page's: is it that, or set off by a blank line?"""
    words = page[at].text.strip()
    is_apart = len(page) > 1 and not page[1 if at == 0 else at - 1].text.strip()
    return bool(EDGE_NUMBER.fullmatch(words)) and (is_apart or words == str(page[at].page))


def _without_repeated(raw: list[_Raw], margins: dict[str, str], width: float) -> list[_Raw]:
    """Take out lines repeated within sentences: headers of pages whose ends nothing else shows."""
    full = [at for at, line in enumerate(raw) if line.text.strip()]
    counts = Counter(key_of_margin(raw[at].text) for at in full)
    running = {
        key_of_margin(raw[at].text)
        for before, at, after in zip(full, full[1:], full[2:], strict=False)
        if counts[key_of_margin(raw[at].text)] > 1
        and _has_room(raw[at].text, raw[after].text, width)
        and _may_run(raw[before].text, raw[at].text, raw[after].text)
    }
    kept: list[_Raw] = []
    is_cut = False
    for line in raw:
        if line.text.strip() and key_of_margin(line.text) in running:
            margins.setdefault(key_of_margin(line.text), line.text.strip())
            is_cut = True
        elif line.text.strip() or not is_cut:
            kept.append(line._replace(gap="page") if is_cut else line)
            is_cut = False
    return kept


def _has_room(line: str, after: str, width: float) -> bool:
    """Would the next word have had place on a line: does it end by itself, not at the width of the page?"""
    return len(line.rstrip()) + 1 + len(after.split(maxsplit=1)[0]) <= width


def _may_run(before: str, line: str, after: str) -> bool:
    """May a line be a header: it cuts a sentence, begins and ends a phrase, and holds no number of a decision?"""
    before, line, after = before.strip(), line.strip(), after.strip()
    is_phrase = line[0].isupper() and not needs_more(line) and not re.search(r"\d[-/.]\d|[()«»]", line)
    is_cut = needs_more(before) or before[-1] == "," or not re.search(r"[.!?…;:»”)]$", before)
    return is_phrase and is_cut and after[0].islower() | after[0].isdigit() and not is_item(after)


def _edges(page: list[_Raw], width: float) -> list[int]:
    """Return the lines that may be headers or footers: few before or after a blank line, else a short one."""
    blank = [at for at, line in enumerate(page) if not line.text.strip()]
    top = range(blank[0]) if blank and blank[0] <= EDGE_LINES else range(len(page[0].text.strip()) < 0.8 * width)
    last = len(page) - 1
    bottom = range(len(page[last].text.strip()) < 0.8 * width)
    if blank and last - blank[-1] <= EDGE_LINES:
        bottom = range(last - blank[-1])
    return sorted({*top, *(last - at for at in bottom)})


def _stripped(lines: list[_Raw]) -> list[_Raw]:
    full = [at for at, line in enumerate(lines) if line.text.strip()]
    return lines[full[0] : full[-1] + 1] if full else []


def _lines(raw: list[_Raw], *, is_mail: bool, notes: dict[str, list[Line]], has_pages: bool) -> Iterator[Line]:
    """Yield the lines of the body; those of footnotes go to `notes`, by their numbers."""
    width = _width(line.text for line in raw)
    indented = set() if is_mail else _indented_quotations(raw)
    gap: Gap = "line"
    before = note = ""
    depth = 0
    for at, (line, page, own_gap) in enumerate(raw):
        marks = _MARKS.match(line)
        text = line[marks.end() :] if marks else line
        deeper = marks.group().count(">") if marks else 0
        gap = own_gap if own_gap == "page" else gap
        if not text.strip() or _RULE.match(text):
            gap = gap if gap == "page" else "block"
            note = note if not text.strip() else ""
            continue
        if _ROW_RULE.match(text):
            continue
        is_indented = text[0] in " \t"
        text = text.strip()
        if definition := _DEFINITION.match(text):
            note, gap = definition[1], "line"
            text = text[definition.end() :]
        elif note and gap != "line" and not is_indented:
            note = ""
        is_cut = bool(before) and before[-1] not in ".!?;:" and is_unfinished(before, text)
        if deeper != depth and gap == "line" and not is_cut:  # a mail program may cut a line without its mark
            gap = "block"
        title = _TITLE.fullmatch(text)
        is_row = len(text) > 1 and text[0] == text[-1] == "|"
        is_field = is_mail and bool(_MAIL_FIELD.match(text))
        text = title[1] if title else text  # its sign stays: outlines are made of it
        if is_row:
            text = "\t".join(cell.strip() for cell in text[1:-1].split("|"))
        text, calls = _without_calls(re.sub(r" {2,}", " ", text))
        if text:
            parsed = Line(
                text,
                gap,
                room=width - len(line.rstrip()),
                is_apart=is_row or is_field or is_item(text),
                is_title=bool(title),
                is_quoted=at in indented or (deeper > 0 and not is_mail),
                page=str(page) if has_pages else "",
                calls=calls,
            )
            if note:
                notes.setdefault(note, []).append(parsed._replace(page=""))
            else:
                yield parsed
            before, gap, depth = text, "line", deeper


def _width(lines: Iterable[str]) -> float:
    """Return the width at which lines were cut; infinite if each is a paragraph."""
    lengths = sorted(len(line.rstrip()) for line in lines if line.strip())
    if not lengths or sum(length > NARROW for length in lengths) > len(lengths) / 20:
        return float("inf")
    width = lengths[int(0.9 * (len(lengths) - 1))]
    return width if width >= MIN_WIDTH else float("inf")


def _indented_quotations(raw: list[_Raw]) -> set[int]:
    """Return the lines of paragraphs that stand deeper than the one before, which ends with ":"."""
    quoted: set[int] = set()
    margin = 0  # of the last paragraph that is no quotation
    is_announced = False
    paragraph: list[int] = []
    for at, line in enumerate([*raw, _Raw("", 0, "line")]):
        if line.text.strip():
            paragraph.append(at)
            continue
        if not paragraph:
            continue
        first = _indent(raw[paragraph[0]].text)
        start = len(paragraph)
        for last in range(len(paragraph) - 1, 0, -1):  # it may follow its announcement without a blank line
            if not _is_deeper(raw, paragraph[last : last + 1], first):
                break
            start = last if raw[paragraph[last - 1]].text.rstrip().endswith(":") else start
        quoted.update(paragraph[start:])
        if is_announced and _is_deeper(raw, paragraph, margin):
            quoted.update(paragraph)
        elif paragraph[-1] not in quoted:
            is_announced = raw[paragraph[-1]].text.rstrip().endswith(":")
            margin = _indent(raw[paragraph[0]].text)
        paragraph = []
    return quoted


def _is_deeper(raw: list[_Raw], lines: list[int], margin: int) -> bool:
    return all(_indent(raw[at].text) > margin + 1 and not is_item(raw[at].text.strip()) for at in lines)


def _indent(line: str) -> int:
    line = line.expandtabs(4)
    return len(line) - len(line.lstrip())


def _without_calls(text: str) -> tuple[str, tuple[tuple[int, str], ...]]:
    """Take the numbers of footnotes out of a line: "[^3]", "³", and a digit glued to a closing bracket or mark."""
    pieces: list[str] = []
    calls: list[tuple[int, str]] = []
    done = length = 0
    for match in _CALL.finditer(text):
        pieces.append(text[done : match.start()])
        length += len(pieces[-1])
        calls.append((length, (match["name"] or match["glued"] or match["raised"]).translate(_SUPERSCRIPTS)))
        done = match.end()
    return "".join([*pieces, text[done:]]).rstrip(), tuple(calls)


def paper_of_mail(data: bytes) -> Paper:
    """Read an e-mail; its attachments are named as unread."""
    message = email.message_from_bytes(data, policy=email.policy.default)
    fields = "\n".join(f"{label} : {message[name]}" for name, label in MAIL_FIELDS.items() if message[name])
    body = message.get_body(("plain", "html"))
    content = _content_of(body) if body is not None else ""
    if body is not None and body.get_content_subtype() == "html":
        head, paper = paper_of_text(f"{fields}\n\n"), paper_of_html(content, is_mail=True)
        shift = len(head.text) + 2
        paper = Paper(
            f"{head.text}\n\n{paper.text}",
            tuple(mark._replace(start=mark.start + shift) for mark in paper.places),
            tuple((start + shift, end + shift) for start, end in paper.quoted),
            calls=tuple(mark._replace(start=mark.start + shift) for mark in paper.calls),
        )
    else:
        paper = paper_of_text(f"{fields}\n\n{content}")
    attachments = [part.get_filename() or part.get_content_type() for part in message.iter_attachments()]
    return paper._replace(unread=(*paper.unread, *map(ATTACHED.format, attachments)))


def _content_of(part: Message) -> str:
    """Decode a part of an e-mail, in its encoding or in that of Windows."""
    data = part.get_payload(decode=True)
    content = data if isinstance(data, bytes) else b""
    try:
        return content.decode(part.get_content_charset("utf-8"))
    except (LookupError, UnicodeDecodeError):
        return content.decode("cp1252", "replace")
