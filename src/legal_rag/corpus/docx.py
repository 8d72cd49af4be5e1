"""Word documents as papers, and given back with comments: insertions, content controls, text boxes, notes, headers."""

import copy
import io
import re
import zipfile
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from legal_rag.base.files import write_whole
from legal_rag.corpus.papers import (
    PAGE_NUMBER,
    SYMBOLS,
    UNITS,
    Paper,
    PaperWriter,
    PlaceMark,
    RefusedError,
    displayed,
    is_unfinished,
    join,
    needs_more,
)

if TYPE_CHECKING:
    from lxml.etree import _Element

UNPACKED_BYTES = 200_000_000  # of all parts of a DOCX, as it declares them: images, mostly
XML_BYTES = 50_000_000  # of its XML parts, which take many times that when parsed
DEEPER = 200  # twentieths of a point, by which a quotation stands deeper than the text before
MARGIN = 100  # characters or pieces around a line's end that say whether a phrase goes over it
FEWEST_NUMBERED = 3  # paragraphs with numbers of their own, before these name the paragraphs
PENDING = "Des révisions sont en attente dans ce document : les insertions sont lues, les suppressions ne le sont pas."
EMBEDDED = "Un document incorporé dans ce fichier n'a pas été lu."
UNCALLED = "sans appel"  # the name of a note that the body does not call

_PARTS = re.compile(r"word/[a-z]+\d*\.xml")
_INSERTED, _DELETED = frozenset({"ins", "moveTo"}), frozenset({"del", "moveFrom"})
_SKIPPED = frozenset("pPr rPr sdtPr sdtEndPr sectPr tblPr trPr tcPr instrText delText delInstrText rt".split())
_SIGNS = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_ORNAMENTS = re.compile(r"symbol|(?:wing|web)dings", re.IGNORECASE)  # fonts whose letters are signs
_QUOTING = re.compile(r"(?:intense ?)?quot|block ?text|citations?(?! (?:juri|source))", re.IGNORECASE)
_TYPED_NUMBER = re.compile(r"(\d{1,3})\s?[.)°–—-]\s")
_ROMANS = ((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))


class _Atom(NamedTuple):
    """A piece of the text and where comments on it go."""

    start: int
    end: int
    run: "_Element | None"  # None: in no run of the body
    child: "_Element | None" = None  # what holds it in the run; None: the run stands for it, as a note's call does
    skipped: int | None = None  # characters of the child's text before it; None: its characters are not the child's


class _Piece(NamedTuple):
    """A part of a paragraph, before its place in the text is known."""

    text: str
    run: "_Element"
    child: "_Element"
    skipped: int | None = None
    is_raised: bool = False
    call: str = ""  # the number of the note called here


def read_docx(file: Path) -> Paper:
    """Read a DOCX: the body with its text boxes, then its notes, then headers and footers.

    RefusedError if it is no Word document or too large when unpacked.
    """
    with zipfile.ZipFile(file) as parts:
        names = parts.namelist()
        if "word/document.xml" not in names:
            raise RefusedError("a ZIP archive, no Word document (expected DOCX)")
        if (unpacked := sum(part.file_size for part in parts.infolist())) > UNPACKED_BYTES:
            raise RefusedError(f"{unpacked:,} bytes when unpacked (at most {UNPACKED_BYTES:,})")
        xml = sum(part.file_size for part in parts.infolist() if part.filename.endswith((".xml", ".rels")))
        if xml > XML_BYTES:
            raise RefusedError(f"{xml:,} bytes of XML when unpacked (at most {XML_BYTES:,})")
        roots = {name: _parse(parts.read(name)) for name in names if _PARTS.fullmatch(name)}
    return _Reader(roots).paper()


def annotate_docx(source: str | Path, target: str | Path, comments: Sequence[tuple[int, int, str]]) -> None:
    """Write a DOCX again with comments; its text and its formatting stay.

    A comment on a note or a text box stands where the body calls or holds it, one on a header at the first words.

    Args:
        source: The document.
        target: Where to write, atomically; may be the source.
        comments: Offsets of the text that `read_docx` reads, start and end, and the comment.
    """
    import docx
    from docx.text.run import Run

    try:
        document = docx.Document(str(source))
    except (KeyError, ValueError) as error:  # a part that the package's own index lacks, or calls by another type
        raise ValueError(f"{source}: cannot be written again with comments ({error})") from error
    roots = {part.partname[1:]: part.blob for part in document.part.package.iter_parts()}
    reader = _Reader(
        {
            name: document.element if name == "word/document.xml" else _parse(blob)
            for name, blob in roots.items()
            if _PARTS.fullmatch(name)
        }
    )
    reader.paper()
    if all(atom.run is None for atom in reader.atoms):  # the text is in headers alone
        paragraph = next(iter(document.paragraphs), None) or document.add_paragraph()
        reader.atoms.insert(0, _Atom(0, 0, paragraph.add_run()._r))
    ends = _runs_of([(start, end) for start, end, _ in comments], reader.atoms)
    for (_, _, text), (first, last) in zip(comments, ends, strict=True):
        document.add_comment([Run(first, document), Run(last, document)], text, author="legal-rag", initials="LR")
    content = io.BytesIO()
    document.save(content)
    write_whole(Path(target), content.getvalue())


def _parse(xml: bytes) -> "_Element":
    from lxml import etree

    return etree.fromstring(xml, etree.XMLParser(resolve_entities=False, no_network=True))


def _runs_of(spans: list[tuple[int, int]], atoms: list[_Atom]) -> "list[tuple[_Element, _Element]]":
    """Return the first and the last run of each span, after cutting runs where spans start and end."""
    starts = [atom.start for atom in atoms]
    first = next((atom.run for atom in atoms if atom.run is not None), None)

    def atom_at(offset: int) -> _Atom:
        return atoms[max(0, bisect_right(starts, offset) - 1)]

    cuts: dict[_Element, set[int]] = defaultdict(set)
    for start, end in spans:
        for at, cut in ((start, start), (max(start, end - 1), end)):
            cuts[first if (run := atom_at(at).run) is None else run].add(cut)
    by_run: dict[_Element, list[_Atom]] = defaultdict(list)
    for atom in atoms:
        if atom.run is not None and atom.child is not None:
            by_run[atom.run].append(atom)
    pieces = {run: _cut_run(run, by_run[run], sorted(offsets)) for run, offsets in cuts.items()}

    def piece_at(offset: int) -> "_Element":
        atom = atom_at(offset)
        parts = pieces[first if atom.run is None else atom.run]
        return parts[0 if atom.child is None else bisect_right([start for start, _ in parts], offset) - 1][1]

    return [(piece_at(start), piece_at(max(start, end - 1))) for start, end in spans]


def _cut_run(run: "_Element", atoms: list[_Atom], cuts: list[int]) -> "list[tuple[int, _Element]]":
    """Cut a run into runs of the same properties; return them with the offsets where they start."""
    if not atoms:
        return [(0, run)]
    pieces = [(atoms[0].start, run)]
    by_child = {atom.child: atom for atom in atoms}
    for child in list(run):
        atom = by_child.get(child)
        if atom and atom.start in cuts and atom.start > pieces[0][0]:
            pieces.append((atom.start, _run_after(pieces[-1][1])))
        if child.getparent() is not pieces[-1][1]:
            pieces[-1][1].append(child)
        if atom and atom.skipped is not None:
            text = child.text or ""
            within = [cut for cut in cuts if atom.start < cut < atom.end]
            for cut, following in pairwise([*within, atom.start + len(text)]):
                pieces.append((cut, _run_after(pieces[-1][1])))
                rest = copy.copy(child)
                _set_text(rest, text[cut - atom.start + atom.skipped : following - atom.start + atom.skipped])
                pieces[-1][1].append(rest)
            if within:
                _set_text(child, text[: within[0] - atom.start + atom.skipped])
    return pieces


def _set_text(element: "_Element", text: str) -> None:
    element.text = text
    element.set("{http://www.w3.org/XML/1998/namespace}space", "preserve")


def _run_after(run: "_Element") -> "_Element":
    """Insert an empty run of the same properties after a run."""
    new = copy.copy(run)
    for child in list(new):
        if _name(child) != "rPr":
            new.remove(child)
    run.addnext(new)
    return new


class _Reader:
    """Walks the parts of a document; `atoms` says which runs hold its text."""

    def __init__(self, roots: "dict[str, _Element]") -> None:
        self.atoms: list[_Atom] = []
        self._roots = roots
        self._writer = PaperWriter()
        styles = roots.get("word/styles.xml")
        self._styles = {
            _value(style, "styleId"): style for style in (_nearest(styles, "style") if styles is not None else ())
        }
        self._numbering = _Numbering(roots.get("word/numbering.xml"))
        self._formats = {kind: self._format_of(kind) for kind in ("footnote", "endnote")}
        self._calls: dict[tuple[str, str], tuple[str, _Element]] = {}  # notes called: number, run of the call
        self._called = Counter[str]()
        self._is_body = True
        self._anchor: _Element | None = None  # outside the body's paragraphs: the run that comments go to
        self._codes: list[bool] = []  # the fields that are open: are we in their code?
        self._mark: _Element | None = None  # the run that shows a note's mark of its own
        self._paragraphs: list[tuple[int, int | None]] = []  # of the body: start, number
        self._quotation: tuple[int, int] | None = None  # paragraphs set off as quotations that we are in
        self._margin = 0.0  # indentation of the last paragraph that is no quotation
        self._before = ""  # the paragraph above
        self._is_deeper = False  # was it by its indentation that the paragraph above was quoted?
        self._is_list = self._runs_on = self._is_pending = False

    def paper(self) -> Paper:
        """Read the whole document."""
        self._read_story(self._roots["word/document.xml"])
        self._is_body = False
        self._read_notes()
        self._read_margins()
        if self._is_pending:
            self._writer.notices.append(PENDING)
        paper = self._writer.paper()
        return paper._replace(places=tuple(sorted([*self._paragraph_marks(), *paper.places])))

    def _read_notes(self) -> None:
        """Read the notes in the order of their calls; then those that nothing calls, but for calls deleted."""
        notes = {
            (kind, _value(note, "id")): note
            for kind in self._formats
            for note in _nearest(self._roots.get(f"word/{kind}s.xml"), kind)
            if "eparator" not in _value(note, "type") and _value(note, "type") != "continuationNotice"
        }
        deleted = {
            (_name(call).removesuffix("Reference"), _value(call, "id"))
            for element in self._roots["word/document.xml"].iter()
            if _name(element) in _DELETED
            for call in element.iter()
            if _name(call).endswith("noteReference")
        }
        for key in [*self._calls, *(key for key in notes if key not in self._calls and key not in deleted)]:
            if key in notes:
                name, self._anchor = self._calls.get(key, (UNCALLED, None))
                self._writer.mark("note", name)
                self._read_story(notes[key])

    def _read_margins(self) -> None:
        texts = set()
        self._anchor = None
        for name in sorted(self._roots):
            if re.match(r"word/(?:head|foot)er\d", name):
                text = " ".join("".join(_texts(self._roots[name])).split())
                if text and text not in texts and not PAGE_NUMBER.fullmatch(text):
                    texts.add(text)
                    self._writer.mark("margin", "")
                    self._read_story(self._roots[name])

    def _read_story(self, holder: "_Element") -> None:
        """Read the body, a note, a text box or a header."""
        self._before, self._is_list, self._runs_on, self._codes = "", False, False, []
        self._read_blocks(holder)
        self._close_quotation()
        self._before, self._is_list, self._runs_on = "", False, False

    def _read_blocks(self, holder: "_Element") -> None:
        for block in holder:
            name = _name(block)
            if name == "p":
                self._read_paragraph(block)
            elif name == "tbl":
                self._read_table(block)
            elif name == "altChunk":
                self._writer.unread.append(EMBEDDED)
            elif name in _DELETED:
                self._is_pending = True
            elif name not in _SKIPPED:
                self._is_pending |= name in _INSERTED and len(block) > 0
                self._read_blocks(block)

    def _read_table(self, table: "_Element") -> None:
        self._before = ""
        separator = "\n\n"
        for row in _nearest(table, "tr"):
            if _has(row, "trPr", "del"):
                self._is_pending = True
                continue
            self._is_pending |= _has(row, "trPr", "ins")
            cells = list(_nearest(row, "tc"))
            if len(cells) == 1:  # a table that only lays out a text
                self._read_blocks(cells[0])
                continue
            for cell in cells:
                has_text = False
                for paragraph in _nearest(cell, "p"):
                    has_text |= self._read_paragraph(paragraph, "\n" if has_text else separator)
                separator = "\t" if has_text else separator
            separator = "\n"
        self._before, self._is_list = "", False

    def _read_paragraph(self, paragraph: "_Element", separator: str = "") -> bool:
        """Write a paragraph after a separator, by default the one that it needs; is there a text in it?"""
        properties = _child(paragraph, "pPr")
        boxes: list[_Element] = []
        pieces = _trimmed(_composed(list(self._pieces(paragraph, None, boxes))))
        self._codes = [False] * len(self._codes)  # a field's code ends with its paragraph
        text = "".join(piece.text for piece in pieces)
        is_cell = bool(separator)
        if text:
            is_list = self._property(properties, "numPr") is not None
            start = self._write(pieces, separator or self._separator(text, is_list=is_list))
            if not is_cell:
                self._follow_quotation(properties, start, is_list=is_list)
                if self._is_body and self._anchor is None:
                    typed = _TYPED_NUMBER.match(text)
                    number = self._numbering.count(self._property(properties, "numPr"))
                    self._paragraphs.append((start, int(typed[1]) if typed else number))
            self._before, self._is_list = text, is_list
        marks = _child(properties, "rPr") if properties is not None else None
        self._runs_on = marks is not None and any(_child(marks, name) is not None for name in _DELETED)
        self._is_pending |= self._runs_on or (
            marks is not None and any(_child(marks, name) is not None for name in _INSERTED)
        )
        for box in boxes:
            self._read_box(box)
        return bool(text)

    def _read_box(self, box: "_Element") -> None:
        before, is_list, anchor = self._before, self._is_list, self._anchor
        if self._anchor is None and self._is_body:
            self._anchor = next(parent for parent in box.iterancestors() if _name(parent) == "r")
        self._read_story(box)
        self._before, self._is_list, self._anchor = before, is_list, anchor

    def _write(self, pieces: list[_Piece], separator: str) -> int:
        at = start = self._writer.write("".join(piece.text for piece in pieces), separator)
        for piece in pieces:
            if piece.call:
                self._writer.call(piece.call, at)
            if piece.text:
                is_direct = self._is_body and self._anchor is None
                place = (piece.run, piece.child, piece.skipped) if is_direct else (self._anchor, None, None)
                self.atoms.append(_Atom(at, at + len(piece.text), *place))
            at += len(piece.text)
        return start

    def _separator(self, text: str, *, is_list: bool) -> str:
        if not self._before:
            return "\n\n"
        if self._runs_on:
            return ""
        if is_list:
            return "\n" if self._is_list else "\n\n"
        if needs_more(self._before) and (text[0].islower() or text[0].isdigit()):  # a page made of lines
            return join(self._before, text, frozenset())[1]
        return "\n\n"

    def _follow_quotation(self, properties: "_Element | None", start: int, *, is_list: bool) -> None:
        """Begin, go on with or end a quotation set off by its style, or by its indentation after ":"."""
        indentation = self._property(properties, "ind")
        left = 0.0
        if indentation is not None:
            with suppress(ValueError):
                left = float(_value(indentation, "left") or _value(indentation, "start") or 0)
        is_deeper = left > self._margin + DEEPER and not is_list
        is_quoting = any(
            _QUOTING.match(name)
            for style in self._style_chain(properties)
            for name in (_value(style, "styleId"), _value(_child(style, "name"), "val"))
        )
        self._is_deeper = is_deeper and not is_quoting and (self._is_deeper or self._before.endswith(":"))
        if is_quoting or self._is_deeper:
            self._quotation = (self._quotation[0] if self._quotation else start, self._writer.length)
        else:
            self._close_quotation()
            self._margin = left

    def _close_quotation(self) -> None:
        if self._quotation:
            self._writer.quote(*self._quotation)
        self._quotation = None

    def _property(self, properties: "_Element | None", name: str) -> "_Element | None":
        """Return a property of a paragraph, its own or its style's."""
        for holder in (properties, *(_child(style, "pPr") for style in self._style_chain(properties))):
            if (found := _child(holder, name)) is not None:
                return found
        return None

    def _style_chain(self, properties: "_Element | None") -> "list[_Element]":
        chain: list[_Element] = []
        style = self._styles.get(_value(_child(properties, "pStyle"), "val"))
        while style is not None and style not in chain:
            chain.append(style)
            style = self._styles.get(_value(_child(style, "basedOn"), "val"))
        return chain

    def _pieces(self, holder: "_Element", run: "_Element | None", boxes: "list[_Element]") -> Iterator[_Piece]:
        """Yield what a paragraph, or a run of it, holds."""
        for child in holder:
            name = _name(child)
            if name in _SKIPPED or (name == "r" and _is_hidden(child)):
                continue
            if name in _DELETED:
                self._is_pending = True
            elif name == "fldChar":
                self._follow_field(_value(child, "fldCharType"))
            elif name == "txbxContent":
                boxes.append(child)
            elif name == "AlternateContent":
                versions = [version for version in child if _name(version) in ("Choice", "Fallback")]
                yield from self._pieces(next((v for v in versions if "".join(_texts(v)).strip()), child), run, boxes)
            elif run is None or name not in (
                "t",
                "sym",
                "softHyphen",
                *_SIGNS,
                "footnoteReference",
                "endnoteReference",
            ):
                self._is_pending |= name in _INSERTED
                yield from self._pieces(child, child if name == "r" else run, boxes)
            elif any(self._codes) or (name == "t" and run is self._mark):
                continue
            elif name == "t":
                text = displayed(child.text or "").translate(SYMBOLS).replace("\n", " ")
                yield _Piece(text, run, child, 0 if len(text) == len(child.text or "") else None, _is_raised(run))
            elif name.endswith("noteReference"):
                yield _Piece("", run, child, call=self._number_of_call(child, run))
            elif name != "softHyphen":
                yield _Piece(_SIGNS.get(name) or _symbol(child), run, child)

    def _follow_field(self, kind: str) -> None:
        if kind == "begin":
            self._codes.append(True)
        elif self._codes and kind == "separate":
            self._codes[-1] = False
        elif self._codes and kind == "end":
            self._codes.pop()

    def _number_of_call(self, call: "_Element", run: "_Element") -> str:
        kind = _name(call).removesuffix("Reference")
        key = (kind, _value(call, "id"))
        if key not in self._calls:
            if _value(call, "customMarkFollows") in ("1", "true", "on"):
                self._mark = run
                number = "".join(_texts(run)).strip()
            else:
                self._called[kind] += 1
                number = _formatted(self._called[kind], self._formats[kind])
            self._calls[key] = (number, run if self._anchor is None else self._anchor)
        return self._calls[key][0]

    def _format_of(self, kind: str) -> str:
        """Return how notes are numbered: Word's default for endnotes is i, ii, iii."""
        for name in ("word/document.xml", "word/settings.xml"):
            for element in self._roots[name].iter() if name in self._roots else ():
                if _name(element) == f"{kind}Pr" and (value := _child(element, "numFmt")) is not None:
                    return _value(value, "val")
        return "decimal" if kind == "footnote" else "lowerRoman"

    def _paragraph_marks(self) -> list[PlaceMark]:
        """Name the paragraphs of the body by their numbers if these ascend, else by counting them."""
        numbered = [(start, number) for start, number in self._paragraphs if number is not None]
        ascends = all(first < second for (_, first), (_, second) in pairwise(numbered))
        if len(numbered) < max(FEWEST_NUMBERED, len(self._paragraphs) / 3) or not ascends:
            numbered = [(start, at) for at, (start, _) in enumerate(self._paragraphs, start=1)]
        return [PlaceMark(start, "paragraph", str(number)) for start, number in numbered]


class _Numbering:
    """Counts the paragraphs that Word numbers 1, 2, 3 … on the first level."""

    def __init__(self, root: "_Element | None") -> None:
        lists = {
            _value(each, "abstractNumId"): each for each in (_nearest(root, "abstractNum") if root is not None else ())
        }
        self._list_of = {
            _value(number, "numId"): _value(_child(number, "abstractNumId"), "val") for number in _nearest(root, "num")
        }
        self._starts = {
            key: int(_value(_child(level, "start"), "val") or 1)
            for key, each in lists.items()
            for level in _nearest(each, "lvl")
            if _value(level, "ilvl") == "0" and _value(_child(level, "numFmt"), "val") == "decimal"
        }
        self._counts = Counter[str]()

    def count(self, properties: "_Element | None") -> int | None:
        """Return the number of a paragraph with these numbering properties, if it has one on the first level."""
        key = self._list_of.get(_value(_child(properties, "numId"), "val"), "")
        if key not in self._starts or _value(_child(properties, "ilvl"), "val") not in ("", "0"):
            return None
        self._counts[key] += 1
        return self._starts[key] + self._counts[key] - 1


def _composed(pieces: list[_Piece]) -> list[_Piece]:
    """Take raised digits for calls of notes, "n" with a raised "o" for "n°", and join lines that a phrase goes over."""
    composed: list[_Piece] = []
    text = ""
    for at, piece in enumerate(pieces):
        changed = piece
        raised = piece.text.strip() if piece.is_raised else ""
        if raised.isdecimal() and text.strip() and not UNITS.search(text[-3:]):
            changed = piece._replace(text="", call=raised)
        elif raised in ("o", "os") and text[-1:] in ("n", "N"):
            changed = piece._replace(text="°", skipped=None)
        elif piece.text == "\n":
            before = text[-MARGIN:].rpartition("\n")[2].strip()
            following = takewhile(lambda piece: piece.text != "\n", pieces[at + 1 : at + MARGIN])
            after = "".join(piece.text for piece in following).strip()
            if before and after and is_unfinished(before, after):
                changed = piece._replace(text=join(before, after, frozenset())[1])
        composed.append(changed)
        text += changed.text
    return composed


def _trimmed(pieces: list[_Piece]) -> list[_Piece]:
    """Take the blanks at the ends of a paragraph away."""
    trimmed: list[_Piece] = []
    is_start = True
    for piece in pieces:
        if is_start:
            text = piece.text.lstrip()
            skipped = None if piece.skipped is None else len(piece.text) - len(text)
            trimmed.append(piece._replace(text=text, skipped=skipped))
            is_start = not text
        else:
            trimmed.append(piece)
    for at in range(len(trimmed) - 1, -1, -1):
        trimmed[at] = trimmed[at]._replace(text=trimmed[at].text.rstrip())
        if trimmed[at].text:
            break
    return trimmed


def _name(element: "_Element") -> str:
    return str(element.tag).rpartition("}")[2]


def _value(element: "_Element | None", name: str) -> str:
    """Return an attribute, whatever its namespace: strict documents have another; "" if there is none."""
    if element is None:
        return ""
    return next((value for key, value in element.items() if key.rpartition("}")[2] == name), "")


def _child(element: "_Element | None", name: str) -> "_Element | None":
    return None if element is None else next((child for child in element if _name(child) == name), None)


def _has(element: "_Element", *names: str) -> bool:
    found: _Element | None = element
    for name in names:
        found = _child(found, name)
    return found is not None


def _nearest(holder: "_Element | None", name: str) -> "Iterator[_Element]":
    """Yield the nearest descendants of a name, but for those deleted."""
    for child in [] if holder is None else list(holder):
        if _name(child) == name:
            yield child
        elif _name(child) not in _DELETED:
            yield from _nearest(child, name)


def _texts(element: "_Element") -> Iterator[str]:
    return (child.text or "" for child in element.iter() if _name(child) == "t")


def _is_hidden(run: "_Element") -> bool:
    vanish = _child(_child(run, "rPr"), "vanish")
    return vanish is not None and _value(vanish, "val") not in ("0", "false", "off")


def _is_raised(run: "_Element") -> bool:
    return _value(_child(_child(run, "rPr"), "vertAlign"), "val") == "superscript"


def _symbol(element: "_Element") -> str:
    code = int(_value(element, "char") or "20", 16)
    is_ornament = _ORNAMENTS.match(_value(element, "font"))
    return chr(code | 0xF000 if is_ornament and code < 0x100 else code).translate(SYMBOLS)


def _formatted(number: int, number_format: str) -> str:
    if number_format.endswith("Roman"):
        roman = ""
        for value, letters in _ROMANS:
            roman += letters * (number // value)
            number %= value
        return roman.upper() if number_format.startswith("upper") else roman
    if number_format.endswith("Letter"):
        letter = chr(ord("a") + (number - 1) % 26)
        return letter.upper() if number_format.startswith("upper") else letter
    return str(number)
