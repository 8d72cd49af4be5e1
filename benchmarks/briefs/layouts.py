"""Twelve formats and layouts in which lawyers have briefs: passages in, a file out."""

# ruff: noqa: E501 - markup and lists of words are easier to read unbroken

import html
import random
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

from references import CALL, Passage

SUBJECTS = [
    "La demanderesse",
    "La partie adverse",
    "Le rapport d'expertise",
    "La défense",
    "Le procès-verbal de constat",
    "Cette correspondance",
    "L'attestation produite",
    "La note versée en délibéré",
    "Le tableau de synthèse",
    "L'échange de courriels",
]
VERBS = [
    "établit sans contestation possible",
    "confirme point par point",
    "passe entièrement sous silence",
    "ne permet pas d'écarter",
    "éclaire utilement",
    "laisse intacte",
    "rappelle à juste titre",
    "tient pour acquise",
]
OBJECTS = [
    "la réalité du préjudice",
    "la chronologie des échanges",
    "l'absence de réponse aux demandes amiables",
    "la portée des engagements souscrits",
    "l'étendue des manquements invoqués",
    "l'insuffisance des explications données",
    "la bonne foi de la concluante",
    "l'ampleur des retards de livraison",
]
TAILS = [
    "",
    ", ce que nul ne discute",
    ", quoi qu'il en soit par ailleurs soutenu",
    ", ainsi que le montrent les pièces produites",
    ", et la demande sera accueillie en son entier",
    ", sauf à dénaturer les écritures",
    ", à la lecture des circonstances de l'espèce",
]
RUNNING_HEADER = "Conclusions récapitulatives n° 2 - Société Valdor"
UNSEEN = "Cass. soc., 31 févr. 2019, n° 99-99.999"  # struck out, or hidden: not part of what a reader reads


class Layout(NamedTuple):
    """A way of writing a brief down."""

    name: str
    suffix: str
    write: Callable[[Sequence[Passage], Path, random.Random], None]
    encoding: str = "utf-8"  # the characters that it can hold
    hides: bool = False  # it holds UNSEEN where no reader sees it


def filler(rng: random.Random, least: int = 1, most: int = 3) -> str:
    """Return a paragraph that refers to nothing."""
    parts = (SUBJECTS, VERBS, OBJECTS, TAILS)
    sentences = ["{} {} {}{}.".format(*map(rng.choice, parts)) for _ in range(rng.randint(least, most))]
    return " ".join(sentences)


def inlined(passage: Passage) -> str:
    """Return a passage's text with its footnote in brackets."""
    return passage.text.replace(CALL, f" ({passage.note.rstrip('.')})" if passage.note else "")


def parts(passage: Passage) -> list[str]:
    """Return the runs of text that a passage's mentions stand in."""
    return [text for text in (passage.text, passage.note, passage.block, " ".join(passage.cells)) if text]


# Text


def _plain(
    passages: Sequence[Passage], rng: random.Random, cells: Callable[[Passage], str], indent: str = "    "
) -> Iterable[str]:
    yield "CONCLUSIONS\n\nPlaise au tribunal"
    for passage in passages:
        yield filler(rng)
        if passage.cells:
            yield cells(passage)
        else:
            yield inlined(passage)
        if passage.block:
            yield textwrap.indent(textwrap.fill(passage.block, 50), indent)


def _wrapped(paragraphs: Iterable[str], width: int, rng: random.Random, form_feed: bool) -> str:
    """Break lines, within words with a hyphen at times, and pages, anywhere."""
    lines: list[str] = []
    for paragraph in paragraphs:
        fits = all(len(line) <= width for line in paragraph.split("\n")) and "\n" in paragraph
        lines += [*(paragraph.split("\n") if fits else textwrap.wrap(paragraph, width, break_long_words=False)), ""]
    text, page = "", 1
    for number, line in enumerate(lines, 1):
        text += line + "\n"
        if number % 38 == 0:
            page += 1
            text += f"{chr(12)}" * form_feed + f"\n{' ' * (width // 2 - 3)}- {page} -\n\n"
    return text


def text_72(passages: Sequence[Passage], path: Path, rng: random.Random) -> None:
    path.write_text(_wrapped(_plain(passages, rng, lambda passage: "  ".join(passage.cells)), 72, rng, True), "utf-8")


def text_60(passages: Sequence[Passage], path: Path, rng: random.Random) -> None:
    text = _wrapped(_plain(passages, rng, lambda passage: " - ".join(passage.cells)), 60, rng, False)
    path.write_bytes(text.replace("\n", "\r\n").encode("cp1252"))


def tabular(passages: Sequence[Passage], path: Path, rng: random.Random) -> None:
    """Write cells between tabs, one under the other, or with month and year on two lines."""

    def cells(passage: Passage) -> str:
        court, date, number, outcome = passage.cells
        rows = [
            f"{court}\t{date}\t{number}\t{outcome}",
            f"{court}\n{date}\n{number}\n{outcome}",
            f"{court}, {date[:-5]}\n{date[-4:]}\t{number}\t{outcome}",
        ]
        return rng.choice(rows)

    path.write_text("\n\n".join(_plain(passages, rng, cells)), "utf-8")


def e_mail(passages: Sequence[Passage], path: Path, rng: random.Random) -> None:
    """Write an answer above the message that it answers."""
    paragraphs = list(_plain(passages, rng, lambda passage: " | ".join(passage.cells)))
    half = len(paragraphs) // 2
    answered = "\n".join("> " + line if line else ">" for line in _filled(paragraphs[half:], 68))
    head = (
        "De : Maître Hélène Aubry <h.aubry@example.org>\nÀ : cabinet@example.org\nObjet : RE: projet de conclusions\n"
    )
    path.write_text(
        f"{head}\n"
        + "\n".join(_filled(paragraphs[:half], 72))
        + f"\n\nLe 3 mars 2025 à 10:42, cabinet@example.org a écrit :\n{answered}\n",
        "utf-8",
    )


def _filled(paragraphs: Iterable[str], width: int) -> list[str]:
    return [
        line
        for paragraph in paragraphs
        for line in [
            *(
                paragraph.split("\n")
                if paragraph.startswith(" ")
                else textwrap.wrap(paragraph, width, break_long_words=False)
            ),
            "",
        ]
    ]


def markdown(passages: Sequence[Passage], path: Path, rng: random.Random) -> None:
    """Write emphasis, quotations, notes and tables."""
    lines, notes = ["# Conclusions", "## Discussion"], []
    for passage in passages:
        lines.append(filler(rng))
        if passage.cells:
            lines.append(
                "| Juridiction | Date | Numéro | Solution |\n|---|---|---|---|\n| " + " | ".join(passage.cells) + " |"
            )
            continue
        text = passage.text
        mention = rng.choice(passage.mentions)
        if "decision" in mention.sorts and rng.random() < 0.5:
            head, comma, tail = mention.text.rpartition(", ")
            mark = rng.choice(["*", "**", "_"])
            text = text.replace(
                mention.text, f"{mark}{head}{mark}{comma}{tail}" if comma and "\n" not in head else mention.text, 1
            )
        call = ""
        if passage.note:
            call = f"[^{len(notes) + 1}]"
            notes.append(f"{call}: {passage.note}")
        lines.append(text.replace(CALL, call))
        if passage.block:
            lines.append("> " + "\n> ".join(textwrap.wrap(passage.block, 80)))
    path.write_text("\n\n".join([*lines, *notes]) + "\n", "utf-8")


def html_page(passages: Sequence[Passage], path: Path, rng: random.Random) -> None:
    """Write q, blockquote, tables, notes as superscripts, and text that no browser shows."""
    body, notes = [f'<p style="display:none">{UNSEEN}</p><script>var c = "{UNSEEN}";</script>'], []
    for passage in passages:
        body.append(f"<p>{html.escape(filler(rng))}</p>")
        if passage.cells:
            body.append(
                "<table><tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in passage.cells) + "</tr></table>"
            )
            continue
        text = html.escape(passage.text, quote=False).replace("\n", "<br>")
        if rng.random() < 0.5:
            text = re.sub(r"«\s?([^«»]+?)\s?»", r"<q>\1</q>", text)
        call = ""
        if passage.note:
            notes.append(f"<li>{html.escape(passage.note)}</li>")
            call = f"<sup>{len(notes)}</sup>"
        body.append(f"<p>{text.replace(CALL, call)}</p>")
        if passage.block:
            body.append(f"<blockquote>{html.escape(passage.block)}</blockquote>")
    page = f"<!doctype html><html lang='fr'><head><meta charset='utf-8'><title>Conclusions</title></head><body><h1>Conclusions</h1>{''.join(body)}<ol>{''.join(notes)}</ol></body></html>"
    path.write_text(page, "utf-8")


# DOCX

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def docx_clean(passages: Sequence[Passage], path: Path, rng: random.Random) -> None:
    from docx import Document as Word

    word = Word()
    word.add_heading("Conclusions")
    for passage in passages:
        word.add_paragraph(filler(rng))
        word.add_paragraph(" – ".join(passage.cells) or inlined(passage))
        if passage.block:
            word.add_paragraph(f"« {passage.block} »")
    word.save(str(path))


def docx_revised(passages: Sequence[Passage], path: Path, rng: random.Random) -> None:
    """Write footnotes, endnotes, and tracked changes: insertions are read, deletions are not."""
    from docx import Document as Word

    word = Word()
    notes: dict[str, list[str]] = {"footnote": [], "endnote": []}
    for number, passage in enumerate(passages):
        word.add_paragraph(filler(rng))
        paragraph = word.add_paragraph()
        text = " – ".join(passage.cells) or passage.text
        kind = "footnote" if number % 3 else "endnote"
        before, call, after = text.partition(CALL)
        if number % 4 == 1 and " " in before:  # a part is inserted, another one was struck out
            cut = before.index(" ", len(before) // 3) if " " in before[len(before) // 3 :] else len(before)
            _run(paragraph, before[:cut])
            _tracked(paragraph, "del", f" (et {UNSEEN})")
            _tracked(paragraph, "ins", before[cut:])
        else:
            _run(paragraph, before)
        if call and passage.note:
            notes[kind].append(passage.note)
            paragraph._p.append(
                _xml(
                    f'<w:r {W}><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:{kind}Reference w:id="{len(notes[kind])}"/></w:r>'
                )
            )
        _run(paragraph, after)
        if passage.block:
            word.add_paragraph(passage.block, style="Quote")
    for kind, texts in notes.items():
        _add_notes(word, kind, texts)
    word.save(str(path))


def docx_boxes(passages: Sequence[Passage], path: Path, rng: random.Random) -> None:
    """Write tables, text boxes, content controls, quoting styles, a header on each page."""
    from docx import Document as Word

    word = Word()
    word.sections[0].header.paragraphs[0].text = RUNNING_HEADER
    for number, passage in enumerate(passages):
        word.add_paragraph(filler(rng))
        if passage.cells:
            table = word.add_table(rows=1, cols=4)
            for cell, text in zip(table.rows[0].cells, passage.cells, strict=True):
                cell.text = text
        elif number % 4 == 1:
            _text_box(word.add_paragraph(), inlined(passage))
        elif number % 4 == 2:
            paragraph = word.add_paragraph(inlined(passage))
            control = _xml(f"<w:sdt {W}><w:sdtPr/><w:sdtContent/></w:sdt>")
            paragraph._p.addprevious(control)
            control[-1].append(paragraph._p)
        else:
            word.add_paragraph(inlined(passage))
        if passage.block:
            word.add_paragraph(passage.block, style=rng.choice(["Quote", "Intense Quote"]))
    word.save(str(path))


def _xml(text: str) -> Any:
    from docx.oxml import parse_xml

    return parse_xml(text)


def _run(paragraph: Any, text: str) -> None:
    """Split a run in two at times, as Word does."""
    middle = len(text) // 2
    for part in (text[:middle], text[middle:]):
        paragraph.add_run(part)


def _tracked(paragraph: Any, tag: str, text: str) -> None:
    name = "delText" if tag == "del" else "t"
    run = f'<w:r><w:{name} xml:space="preserve">{escape(text)}</w:{name}></w:r>'
    paragraph._p.append(_xml(f'<w:{tag} {W} w:id="7" w:author="A" w:date="2025-03-03T10:00:00Z">{run}</w:{tag}>'))


def _add_notes(word: Any, kind: str, texts: Sequence[str]) -> None:
    from docx.opc.packuri import PackURI
    from docx.opc.part import Part

    notes = "".join(
        f'<w:{kind} w:id="{number}"><w:p><w:r><w:{kind}Ref/></w:r><w:r><w:t xml:space="preserve"> {escape(text)}</w:t></w:r></w:p></w:{kind}>'
        for number, text in enumerate(texts, 1)
    )
    blob = f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?><w:{kind}s {W}>{notes}</w:{kind}s>'.encode()
    office = "officedocument"
    part = Part(
        PackURI(f"/word/{kind}s.xml"),
        f"application/vnd.openxmlformats-{office}.wordprocessingml.{kind}s+xml",
        blob,
        word.part.package,
    )
    word.part.relate_to(part, f"http://schemas.openxmlformats.org/officeDocument/2006/relationships/{kind}s")


def _text_box(paragraph: Any, text: str) -> None:
    """Write a text box as Word does: once for new programs, once for old ones."""
    content = f'<w:txbxContent><w:p><w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p></w:txbxContent>'
    paragraph._p.append(
        _xml(
            f'<w:r {W} xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" xmlns:v="urn:schemas-microsoft-com:vml" '
            'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
            'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wp:inline><a:graphic><a:graphicData '
            f'uri="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"><wps:wsp><wps:txbx>{content}</wps:txbx></wps:wsp></a:graphicData></a:graphic></wp:inline></w:drawing></mc:Choice>'
            f"<mc:Fallback><w:pict><v:shape><v:textbox>{content}</v:textbox></v:shape></w:pict></mc:Fallback></mc:AlternateContent></w:r>"
        )
    )


# PDF

PAGE_WIDTH, PAGE_HEIGHT, MARGIN = 595, 842, 70  # points: A4
FONT = "Times-Roman"


class _Sheet:
    """Pages on which lines are put one under the other, in one or two columns, with notes at their foot."""

    def __init__(
        self, path: Path, *, columns: int = 1, numbered: bool = False, header: bool = True, size: float = 11
    ) -> None:
        from reportlab.pdfgen.canvas import Canvas

        self.canvas = Canvas(str(path), pagesize=(PAGE_WIDTH, PAGE_HEIGHT))
        self.columns, self.numbered, self.header, self.size = columns, numbered, header, size
        self.width = (PAGE_WIDTH - 2 * MARGIN - 20 * (columns - 1)) / columns
        self.page, self.n_notes = 0, 0
        self.new_page()

    def new_page(self) -> None:
        if self.page:
            self.finish_page()
            self.canvas.showPage()
        self.page, self.column, self.line = self.page + 1, 0, 0
        self.y, self.floor = PAGE_HEIGHT - MARGIN, float(MARGIN)
        self.notes: list[tuple[int, str]] = []
        if self.header:
            self.canvas.setFont(FONT, 9)
            self.canvas.drawString(MARGIN, PAGE_HEIGHT - 40, RUNNING_HEADER)

    def finish_page(self) -> None:
        y = self.floor - 4
        for number, text in self.notes:
            for at, (line, _) in enumerate(self.lines(text, 8)):
                self.canvas.setFont(FONT, 8)
                self.canvas.drawString(MARGIN, y, f"{number} {line}" if not at else line)
                y -= 10
        self.canvas.setFont(FONT, 9)
        self.canvas.drawCentredString(PAGE_WIDTH / 2, 35, f"- {self.page} -" if self.page % 2 else f"Page {self.page}")

    def save(self) -> None:
        self.finish_page()
        self.canvas.save()

    def paragraph(self, text: str, note: str = "", indent: float = 0) -> None:
        """Put a paragraph's lines, justified; a note's call stands raised, with nothing before it."""
        for block in text.split("\n"):
            for line, is_last in self.lines(block, self.size, indent):
                self._put(line, is_last, note if CALL in line else "", indent)
        self.y -= 6

    def cells(self, cells: Sequence[str]) -> None:
        """Put a row of a table."""
        self._room(0)
        self.canvas.setFont(FONT, min(self.size, 9))
        for at, cell in enumerate(cells):
            self.canvas.drawString(self._left() + at * self.width / 4, self.y, cell)
        self.y -= self.size + 10

    def lines(self, text: str, size: float, indent: float = 0) -> list[tuple[str, bool]]:
        """Break a text into lines, with hyphens in long words; with each whether it is the last."""
        words, lines, line = text.split(" "), [], ""
        while words:
            word = words.pop(0)
            if self._fits(f"{line} {word}".strip(), size, indent):
                line = f"{line} {word}".strip()
                continue
            head, tail = self._hyphenated(line, word, size, indent)
            if head:
                line, word = f"{line} {head}".strip(), tail
            lines.append(line)
            line = ""
            words.insert(0, word)
        return [(line, False) for line in lines if line] + [(line, True)]

    def _hyphenated(self, line: str, word: str, size: float, indent: float) -> tuple[str, str]:
        places = [at.end() for at in re.finditer(r"-", word)] + [
            at
            for at in range(len(word) - 3, 2, -1)
            if re.fullmatch(r"[a-zà-ÿ]{8,}[,.;]?", word) and word[at - 1] not in "aeiouyéèà" and word[at] in "aeiouéè"
        ]
        for at in places:
            head = word[:at].rstrip("-") + "-"
            if at < len(word) and self._fits(f"{line} {head}".strip(), size, indent):
                return head, word[at:]
        return ("", word) if line else (word, "")

    def _fits(self, line: str, size: float, indent: float) -> bool:
        from reportlab.pdfbase.pdfmetrics import stringWidth

        return bool(stringWidth(line.replace(CALL, "12"), FONT, size) <= self.width - indent)

    def _left(self) -> float:
        return MARGIN + self.column * (self.width + 20)

    def _room(self, needed: float) -> None:
        if self.y - needed < self.floor + self.size:
            if self.column + 1 < self.columns:
                self.column, self.y = self.column + 1, PAGE_HEIGHT - MARGIN
            else:
                self.new_page()

    def _put(self, line: str, last: bool, note: str, indent: float) -> None:
        from reportlab.pdfbase.pdfmetrics import stringWidth

        n_lines = len(self.lines(note, 8)) if note else 0
        self._room(10 * n_lines + (4 if n_lines else 0))
        if note:
            self.n_notes += 1
            self.notes.append((self.n_notes, note))
            self.floor += 10 * n_lines
        self.line += 1
        if self.numbered:
            self.canvas.setFont(FONT, 8)
            self.canvas.drawString(MARGIN - 25, self.y, str(self.line))
        before, call, after = line.partition(CALL)
        blanks = line.count(" ")
        slack = self.width - indent - stringWidth(line.replace(CALL, ""), FONT, self.size)
        pen = self.canvas.beginText(self._left() + indent, self.y)
        pen.setFont(FONT, self.size)
        pen.setWordSpace(slack / blanks if blanks and not last and not call else 0)
        pen.textOut(before)
        if call and note:
            pen.setRise(4)
            pen.setFont(FONT, 7)
            pen.textOut(str(self.n_notes))
            pen.setRise(0)
            pen.setFont(FONT, self.size)
        pen.textOut(after)
        self.canvas.drawText(pen)
        self.y -= self.size + 3


def _pdf(passages: Sequence[Passage], sheet: _Sheet, rng: random.Random, notes: bool = False) -> None:
    sheet.paragraph("CONCLUSIONS")
    for passage in passages:
        sheet.paragraph(filler(rng))
        if passage.cells and sheet.columns == 1:
            sheet.cells(passage.cells)
        else:
            text = " – ".join(passage.cells) or (passage.text if notes else inlined(passage))
            sheet.paragraph(text, passage.note)
        if passage.block:
            sheet.paragraph(f"« {passage.block} »", indent=20)
    sheet.save()


def pdf_justified(passages: Sequence[Passage], path: Path, rng: random.Random) -> None:
    _pdf(passages, _Sheet(path), rng)


def pdf_columns(passages: Sequence[Passage], path: Path, rng: random.Random) -> None:
    _pdf(passages, _Sheet(path, columns=2, size=9.5), rng)


def pdf_numbered(passages: Sequence[Passage], path: Path, rng: random.Random) -> None:
    _pdf(passages, _Sheet(path, numbered=True, header=False), rng, notes=True)


LAYOUTS = [
    Layout("DOCX", "docx", docx_clean),
    Layout("DOCX, notes and revisions", "docx", docx_revised, hides=True),
    Layout("DOCX, tables, boxes, controls", "docx", docx_boxes),
    Layout("PDF, justified", "pdf", pdf_justified, "cp1252"),
    Layout("PDF, two columns", "pdf", pdf_columns, "cp1252"),
    Layout("PDF, line numbers and footnotes", "pdf", pdf_numbered, "cp1252"),
    Layout("HTML", "html", html_page, hides=True),
    Layout("Markdown", "md", markdown),
    Layout("text, 72 wide", "txt", text_72),
    Layout("text, 60 wide, Windows-1252", "txt", text_60, "cp1252"),
    Layout("e-mail", "txt", e_mail),
    Layout("text with tabs and cells", "txt", tabular),
]
