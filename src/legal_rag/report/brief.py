"""An answer as a lawyer pastes it into a brief: a Word document, and BibTeX entries of what it cites."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from itertools import count
from typing import Any

from legal_rag.agent.prediction import CitedDocument, Prediction
from legal_rag.base.html import french_number
from legal_rag.base.text import normalized
from legal_rag.citations.checks import Citation
from legal_rag.law.citation import LegalCitation, Link
from legal_rag.law.scanning import NO_BREAK
from legal_rag.library.library import Library
from legal_rag.report.lines import in_one_line, marker_of, printable_lines

QUOTE_CHARS = 600  # of a passage in a footnote
MAX_LISTED = 25  # decisions in the list of sources, at most two lines of 9 points each: a page
LISTED_CHARS = 220  # of a decision there
KEY_CHARS = 60  # of a BibTeX key, without its number
QUOTED = ("verified", "relocated")  # the decision has the text: the sentence needs no remark
NOTE_STYLE = "Footnote Text"
FOOTNOTES = "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml"
CAUTION = (
    "Le contrôle porte sur le texte des citations : il dit si les mots cités figurent dans la décision, non si "
    "l'analyse est juste ni si la jurisprudence est à jour."
)
RULES = ("heading", "list", "blockquote", "emphasis", "newline", "backticks")  # of Markdown, in an answer
# Delimits the number of a source in Markdown; an answer's own such characters are removed.
_MARK = re.compile("\ue000(\\d+)\ue001")


@dataclass(frozen=True)
class _NumberedSource:
    number: int
    citation: Citation
    cited: LegalCitation
    facts: tuple[str, ...] = ()  # version, outcome and ECLI of its document

    @property
    def checked(self) -> str:
        """The result of its check, in French, with the speaker and the warnings."""
        place = f"caractères {french_number(self.citation.char_start)} à {french_number(self.citation.char_end)}"
        details = (self.citation.reason, self.citation.said_by, place, *self.citation.warnings)
        return " ; ".join(filter(None, (self.citation.status_in_french, *details)))


def answer_docx(prediction: Prediction, corpus: Library | None = None) -> bytes:
    """Write an answer as a Word document: a footnote in place of each marker, then a list of the decisions cited.

    Without the corpus that it is from, decisions are named as the answer names them.
    """
    import docx
    from docx.opc.constants import RELATIONSHIP_TYPE

    sources = _number_sources(prediction, corpus)
    document = docx.Document()
    # What python-docx's template says of itself, and its picture.
    document.core_properties.author, document.core_properties.comments = "legal_rag", ""
    of_package = document.part.package.rels
    for name in [name for name, rel in of_package.items() if rel.reltype == RELATIONSHIP_TYPE.THUMBNAIL]:
        del of_package[name]
    document.core_properties.title = printable_lines(prediction.question)[:200]
    document.add_heading(printable_lines(prediction.question), 1)
    if prediction.notice:
        document.add_paragraph().add_run(printable_lines(prediction.notice)).italic = True
    writer = _BodyWriter(document, sources)
    writer.write(_replace_markers(prediction.answer, sources))
    if prediction.ungrounded_claims:
        document.add_heading("Affirmations qu'aucune citation n'appuie", 2)
        for claim in prediction.ungrounded_claims:
            document.add_paragraph(printable_lines(claim), "List Bullet")
    if sources:
        document.add_heading("Sources", 2)
        _list_decisions(document, sources.values())
        document.add_paragraph().add_run(CAUTION).italic = True
    written = BytesIO()
    document.save(written)
    return written.getvalue()


def answer_bibtex(prediction: Prediction, corpus: Library | None = None) -> str:
    """Write one BibTeX entry per decision cited, with the results of its citation checks as a note."""
    by_document: dict[str, list[_NumberedSource]] = {}
    for source in _number_sources(prediction, corpus).values():
        by_document.setdefault(source.citation.doc_id, []).append(source)
    keys: set[str] = set()
    entries = [_bibtex_entry(_new_key(sources[0].cited.text, keys), sources) for sources in by_document.values()]
    return "\n".join(entries)


def _number_sources(prediction: Prediction, corpus: Library | None) -> dict[str, _NumberedSource]:
    known = {document.doc_id: document for document in prediction.documents}
    cited: dict[str, LegalCitation] = {}
    sources: dict[str, _NumberedSource] = {}
    for citation in prediction.citations:
        doc_id, document = citation.doc_id, known.get(citation.doc_id)
        if doc_id not in cited:
            cited[doc_id] = _cite_document(doc_id, document, corpus)
        facts = (document.version, document.ending, document.ecli) if document else ()
        source = _NumberedSource(len(sources) + 1, citation, cited[doc_id], tuple(filter(None, facts)))
        sources.setdefault(marker_of(citation), source)
    return sources


def _cite_document(doc_id: str, known: CitedDocument | None, corpus: Library | None) -> LegalCitation:
    if corpus is not None:
        with suppress(LookupError):  # removed since the answer was saved
            return corpus.document(doc_id).citation
    if known is None:
        return LegalCitation(text=doc_id)
    links = (Link("", known.link),) if known.link else ()
    return LegalCitation(text=known.citation or known.title or doc_id, links=links, publication=known.publication)


def _replace_markers(answer: str, sources: Mapping[str, _NumberedSource]) -> str:
    answer = answer.replace("\ue000", "").replace("\ue001", "")
    if not sources:
        return answer
    markers = "|".join(map(re.escape, sorted(sources, key=len)))  # an id may hold brackets: the shortest one first
    return re.sub(rf"[ \u00a0]?({markers})", lambda match: f"\ue000{sources[match[1]].number}\ue001", answer)


class _BodyWriter:
    def __init__(self, document: Any, sources: Mapping[str, _NumberedSource]) -> None:
        self._document = document
        self._sources = {source.number: source for source in sources.values()}
        self._notes = _Footnotes(document) if sources else None

    def write(self, text: str) -> None:
        from markdown_it import MarkdownIt

        style, lists, item = "", list[Iterator[str]](), ""
        for token in MarkdownIt("zero", {"html": False, "breaks": True}).enable(list(RULES)).parse(text):
            if token.type == "heading_open":
                style = f"Heading {min(int(token.tag[1]) + 1, 4)}"
            elif token.type == "blockquote_open":
                style = "Quote"
            elif token.type in ("heading_close", "blockquote_close"):
                style = ""
            elif token.type in ("bullet_list_open", "ordered_list_open"):
                lists.append(_list_labels(token))
            elif token.type in ("bullet_list_close", "ordered_list_close"):
                lists.pop()
            elif token.type == "list_item_open":
                item = next(lists[-1])
            elif token.type == "inline":
                self._add_paragraph(token.children or [], style, item, len(lists))
                item = ""

    def _add_paragraph(self, children: Iterable[Any], style: str, item: str, depth: int) -> None:
        from docx.shared import Cm

        paragraph = self._document.add_paragraph(item, style or None)
        if depth:
            paragraph.paragraph_format.left_indent = Cm(0.8 * min(depth, 8))
        bold = italic = 0
        for child in children:
            bold += {"strong_open": 1, "strong_close": -1}.get(child.type, 0)
            italic += {"em_open": 1, "em_close": -1}.get(child.type, 0)
            if child.type in ("softbreak", "hardbreak"):
                paragraph.add_run().add_break()
            for place, part in enumerate(_MARK.split(child.content)):
                if place % 2:
                    self._add_reference(paragraph, self._sources[int(part)])
                elif part:
                    run = paragraph.add_run(printable_lines(part))
                    run.bold, run.italic = bold > 0 or None, italic > 0 or None

    def _add_reference(self, paragraph: Any, source: _NumberedSource) -> None:
        """Add a footnote; a citation that is not confirmed says so in the sentence too."""
        if source.citation.status not in QUOTED:
            paragraph.add_run(f" [{source.citation.status_in_french}]").bold = True
        if self._notes:
            self._notes.add(paragraph, source)


class _Footnotes:
    """The footnotes of a Word document, which python-docx does not write; see ECMA-376, 17.11."""

    def __init__(self, document: Any) -> None:
        from docx.enum.style import WD_STYLE_TYPE
        from docx.opc.constants import RELATIONSHIP_TYPE
        from docx.opc.packuri import PackURI
        from docx.opc.part import XmlPart
        from docx.oxml import parse_xml
        from docx.oxml.ns import nsdecls
        from docx.shared import Pt

        rules = "".join(
            f'<w:footnote w:type="{kind}" w:id="{number}"><w:p><w:r><w:{kind}/></w:r></w:p></w:footnote>'
            for number, kind in enumerate(("separator", "continuationSeparator"), start=-1)
        )
        root = parse_xml(f"<w:footnotes {nsdecls('w', 'r')}>{rules}</w:footnotes>")
        self.part = XmlPart(PackURI("/word/footnotes.xml"), FOOTNOTES, root, document.part.package)
        document.part.relate_to(self.part, RELATIONSHIP_TYPE.FOOTNOTES)
        document.styles.add_style(NOTE_STYLE, WD_STYLE_TYPE.PARAGRAPH).font.size = Pt(9)
        self._numbers: dict[int, int] = {}  # of the first note on a source, by the source's number
        self._n = 0

    def add(self, paragraph: Any, source: _NumberedSource) -> None:
        """Add a footnote to a paragraph: the decision, the passage and its check; later ones refer to the first."""
        from docx.oxml import OxmlElement
        from docx.oxml.ns import qn
        from docx.text.paragraph import Paragraph

        self._n += 1
        first = self._numbers.setdefault(source.number, self._n)
        called = OxmlElement("w:footnoteReference", {qn("w:id"): str(self._n)})
        note, body = OxmlElement("w:footnote", {qn("w:id"): str(self._n)}), OxmlElement("w:p")
        self.part.element.append(note)
        note.append(body)
        body.style = NOTE_STYLE.replace(" ", "")
        written = Paragraph(body, self)
        for place, sign in ((paragraph, called), (written, OxmlElement("w:footnoteRef"))):
            run = place.add_run()
            run.font.superscript = True
            run._r.append(sign)
        written.add_run(" ")
        _add_cited(written, source.cited)
        if first != self._n:
            written.add_run(f", préc. note {first}.")
            return
        quote = in_one_line(source.citation.quote, QUOTE_CHARS)
        quoted = f" : «{NO_BREAK}{quote}{NO_BREAK}»" if quote else ""
        name = f", {source.cited.name}" if source.cited.name else ""
        written.add_run(printable_lines(f"{name}{quoted} ({source.checked})."))


def _list_labels(token: Any) -> Iterator[str]:
    if token.type == "ordered_list_open":
        return (f"{number}.{NO_BREAK}" for number in count(int(token.attrGet("start") or 1)))
    return iter(lambda: f"•{NO_BREAK}", "")


def _add_cited(paragraph: Any, cited: LegalCitation) -> None:
    """Add a citation, as a link to the first public page of the decision."""
    from docx.opc.constants import RELATIONSHIP_TYPE
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn

    run = paragraph.add_run(printable_lines(cited.text))
    if cited.links:
        link = OxmlElement("w:hyperlink")
        link.set(
            qn("r:id"), paragraph.part.relate_to(cited.links[0].url, RELATIONSHIP_TYPE.HYPERLINK, is_external=True)
        )
        run._r.addprevious(link)
        link.append(run._r)
        run.underline = True


def _list_decisions(document: Any, sources: Iterable[_NumberedSource]) -> None:
    cited = list({source.citation.doc_id: source for source in sources}.values())
    for source in cited[:MAX_LISTED]:
        paragraph = document.add_paragraph(f"•{NO_BREAK}", NOTE_STYLE)
        _add_cited(paragraph, source.cited)
        facts = ", ".join(["", *filter(None, (source.cited.name, *source.facts))])
        paragraph.add_run(in_one_line(facts, LISTED_CHARS))
    if len(cited) > MAX_LISTED:
        document.add_paragraph(f"… et {len(cited) - MAX_LISTED} autres, que nomment les notes.", NOTE_STYLE)


def _bibtex_entry(key: str, sources: list[_NumberedSource]) -> str:
    cited = sources[0].cited
    checks = dict.fromkeys(source.citation.status_in_french for source in sources)
    fields = {
        "title": f"{{{_escape_latex(cited.with_name)}}}",
        "date": cited.date,
        "year": cited.date[:4],
        "number": _escape_latex(cited.number),
        "url": cited.links[0].url if cited.links else "",
        "note": _escape_latex(f"{sources[0].citation.doc_id} ; {', '.join(checks)}"),
    }
    lines = [f"  {name} = {{{value}}}" for name, value in fields.items() if value]
    return f"@misc{{{key},\n" + ",\n".join(lines) + "\n}\n"


def _new_key(text: str, taken: set[str]) -> str:
    """Return a key of letters, figures and hyphens that no entry has yet."""
    plain = normalized(text, "NFKD").encode("ascii", "ignore").decode().lower()
    key = re.sub(r"[^a-z0-9]+", "-", plain)[:KEY_CHARS].strip("-") or "document"
    free = next(name for name in (key, *(f"{key}-{n}" for n in range(2, len(taken) + 3))) if name not in taken)
    taken.add(free)
    return free


_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", NO_BREAK: "~"}


def _escape_latex(text: str) -> str:
    line = " ".join(printable_lines(text).split(" ")).replace("\n", " ")
    return "".join(_SPECIAL.get(char, f"\\{char}" if char in "{}$&#%_" else char) for char in line)
