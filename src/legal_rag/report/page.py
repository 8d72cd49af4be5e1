"""An answer with its sources, evidence and steps as one HTML page."""

import re
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup, escape

from legal_rag.agent.passages import CourtAnswer, answer_to_quashed
from legal_rag.agent.prediction import CitedDocument, Event, Passage, Prediction
from legal_rag.base.html import (
    NotebookFrame,
    frame_of_page,
    french_decimal,
    french_number,
    own_script,
    page_template,
    plain_json,
)
from legal_rag.base.text import Span
from legal_rag.citations.checks import STATUS_WORDS, Citation
from legal_rag.corpus.chunking import parse_chunk_id
from legal_rag.corpus.documents import Document
from legal_rag.law.citation import LegalCitation, legal_date
from legal_rag.law.european import european_links
from legal_rag.law.sentences import split_sentences
from legal_rag.law.tree import Paragraph, TreeNode
from legal_rag.library.library import Library
from legal_rag.library.outlines import Outline, whole_outline_of
from legal_rag.report.lines import (
    STATES_IN_FRENCH,
    VERBATIM_MODES,
    counted_status,
    marker_of,
    quotation_with_reference,
)
from legal_rag.report.outline import (
    HEATS,
    VOICES_IN_FRENCH,
    DocumentView,
    TextMark,
    Voice,
    outline_style,
    view_document,
    voice_of,
)

if TYPE_CHECKING:
    from markdown_it.token import Token

PACKAGE = "legal_rag.report"
TITLE = "Réponse et sources"
MAX_SHOWN = 500  # of each list; a page that omits some says so
MAX_TEXTS = 20  # documents shown whole; of the others, the passages found
MAX_TEXTS_CHARS = 1_500_000  # of them together, and of each
MAX_PASSAGE = 6000  # characters of one passage: an index that came from elsewhere may find whole decisions
MAX_MATCHES = 300  # of one passage
MAX_VALUE = 400  # characters of one value in the table of steps
CUT = "\n\n[…]\n\n"  # between passages of a document that is not shown whole

SIGNS: Mapping[str, str] = {"verified": "✓", "relocated": "↷", "supported": "≈", "unverified": "?"}
NOT_THE_COURT = frozenset({"party", "lower_court", "censured"})
# Noncharacters of Unicode as internal marks: those in the answer itself are replaced.
MARK, BREAK, OPENED, CLOSED = "\ufdd0", "\ufdd1", "\ufdd2", "\ufdd3"
REPLACED = dict.fromkeys(map(ord, (MARK, BREAK, OPENED, CLOSED)), "\ufffd")
PLACEHOLDER = re.compile(rf"\[{MARK}(\d+){MARK}\]")  # of what is not Markdown, in brackets as a marker is
MENTIONED = re.compile(r"\[Source(?: non vérifiée)?: ([^\n]{1,200}?)(?:, chars \d+-\d+)?\]")
MARKER = Markup(
    '<a class="place cite {status}"{id} href="#{place}" aria-label="{label}" title="{label}">'
    '{number}<span aria-hidden="true">{sign}</span></a>'
)
SPEAKER = Markup('<span class="speaker {}">{}</span>')
EUROPEAN = Markup('<a href="{}" title="{}" target="_blank" rel="noopener noreferrer">{}</a>')
MENTION = Markup('<a class="place" href="#{}">{}</a>')

ANALYSIS = re.compile(r"\[\s*Analys(?:e|is)\s*\]", re.IGNORECASE)
GUILLEMETS = re.compile("[«»]")
LINE_BREAKS = re.compile(r"[^\S\n]*\n\s*")
SPACES = ("\u00a0", "\u202f", " ", "")  # between guillemets and what they hold
# A passage as `legal_rag.agent.evidence` writes it: number and title, then the quotation.
QUOTED_PASSAGE = re.compile(rf"^(\d{{1,4}}\. [^\n]+)\n((?:\[…\] )?\[{MARK}\d+{MARK}\][^\n]*)$", re.MULTILINE)
RULES = ("heading", "list", "blockquote", "hr", "table", "emphasis", "newline", "escape")


NO_OUTLINE = Outline(TreeNode("0000", "", 0, 0, 0, (0, 0), "document"), [])


class Note(NamedTuple):
    """A passage cited, under the number of its markers."""

    number: int  # from 1
    citation: Citation
    title: str  # of its document
    place: str  # id of its place in the page

    @property
    def label(self) -> str:
        """Accessible name of its marker: number, status, warnings, document."""
        checked = f"Source {self.number}, {self.citation.status_in_french}"
        parts = [checked, self.citation.reason, *self.citation.warnings, self.title]
        return " — ".join(filter(None, parts))


class TextPiece(NamedTuple):
    """A piece of the question, linked to the word that matches it best if there is one."""

    text: str
    place: str  # id of that word in the page; '': nothing matches it
    heat: int  # 1 to 5, rising with similarity; 0 without a match
    title: str  # what matches what, in French


class EvidenceRow(NamedTuple):
    """A passage of the evidence, and the question cut into pieces at the words that match."""

    rank: int  # from 1
    passage: Passage
    place: str  # id of its place in the page
    notes: list[Note]  # that cite it
    question: list[TextPiece]
    voices: list[Voice]  # who speaks in it, in order


class Decision(NamedTuple):
    """A document that was cited, found or read, and what the page shows of its text."""

    prefix: str  # its id in the page, with which those of its places begin
    document: Document
    cited_as: LegalCitation
    about: CitedDocument
    whole: bool  # the text is the corpus's own; else passages of it
    outline: Outline
    text: "ShownText"
    passages: list[tuple[int, Passage]]  # found in it, with their ranks
    citations: list[tuple[int, Citation]]  # of it, with their numbers


def render_answer(prediction: Prediction, corpus: Library | None = None) -> str:
    """Render an answer as a French HTML page that loads nothing from elsewhere.

    With the corpus that it is from, the page shows whole decisions with their outlines, and who speaks in them;
    without, the passages found.
    """
    script, style = own_script(PACKAGE, "outline.js", "report.js", "print.js"), outline_style()
    heading = f"{prediction.question[:100]} — {TITLE}"
    frame = frame_of_page(heading, script, style)
    return page_template(PACKAGE, "report.html.j2").render(**frame, **_template_values(prediction, corpus))


def show_answer(prediction: Prediction, height: int = 720, *, corpus: Library | None = None) -> Any:
    """Render an answer for a notebook, in a sandboxed frame `height` pixels high; see `render_answer`."""
    return NotebookFrame(render_answer(prediction, corpus), TITLE, height)


def _template_values(prediction: Prediction, corpus: Library | None) -> dict[str, Any]:
    citations = prediction.citations[:MAX_SHOWN]
    evidence = prediction.evidence[:MAX_SHOWN]
    numbers = {citation: number for number, citation in enumerate(dict.fromkeys(citations), start=1)}
    decisions = _collect_decisions(prediction, numbers, evidence, corpus)
    heat_of = _heat_scale(evidence)
    views = {doc_id: _view_decision(decision, heat_of) for doc_id, decision in decisions.items()}
    anchors = {anchor for view in views.values() for anchor in view.anchors}
    notes = [_make_note(number, citation, decisions[citation.doc_id], anchors) for citation, number in numbers.items()]
    mentions = {doc_id: MENTION.format(item.prefix, item.cited_as.text) for doc_id, item in decisions.items()}
    writer = _AnswerWriter(prediction.citations, notes, mentions)
    return {
        "prediction": prediction,
        "answer": writer.answer(prediction.answer),
        "notice": writer.sentence(prediction.notice or "", markdown=False),
        "claims": [writer.sentence(claim) for claim in prediction.ungrounded_claims[:MAX_SHOWN]],
        "decisions": decisions,
        "views": views,
        "anchors": anchors,
        "written": writer.written,
        "notes": {note.number: note for note in notes},
        "rows": [
            _evidence_row(rank, prediction.question, passage, decisions[passage.doc_id], notes, heat_of, anchors)
            for rank, passage in enumerate(evidence, start=1)
        ],
        "quotation": quotation_with_reference,
        "answers": {number: _answer_to(citation, decisions[citation.doc_id]) for citation, number in numbers.items()},
        "speakers": VOICES_IN_FRENCH,
        "voices": [voice for voice in VOICES_IN_FRENCH if any(voice in view.voices for view in views.values())],
        "verbatim": prediction.mode in VERBATIM_MODES,
        "most": MAX_SHOWN,
        "signs": SIGNS,
        "words": STATUS_WORDS,
        "states": STATES_IN_FRENCH,
        "counted": counted_status,
        "marker": marker_link,
        "receipts": _receipt_rows(prediction),
        "mentioned": lambda ids: dict.fromkeys(_link_document(item_id, mentions) for item_id in ids),
        "value": _format_value,
        "inputs_of": _step_inputs,
        "date": lambda iso: legal_date(iso) or iso,
        "number": french_number,
        "decimal": french_decimal,
    }


def marker_link(note: Note, own_id: str = "") -> Markup:
    """Write the link to a passage cited; status and warning have signs and names, not a colour alone."""
    citation = note.citation
    return MARKER.format(
        status=citation.status,
        id=Markup(' id="{}"').format(own_id) if own_id else "",
        place=note.place,
        label=note.label,
        number=note.number,
        sign=SIGNS[citation.status] + "⚠" * bool(citation.warnings),
    )


def answer_html(text: str) -> Markup:
    """Write an answer that cites nothing as HTML, its Markdown rendered."""
    return _AnswerWriter([], [], {}).answer(text)


class _AnswerWriter:
    def __init__(self, citations: Sequence[Citation], notes: Iterable[Note], mentions: Mapping[str, Markup]) -> None:
        """Take the answer's citations, what is shown of them, and links to documents by id."""
        self._notes, self._mentions = {note.citation: note for note in notes}, mentions
        quotes = {citation.quote.translate(REPLACED) for citation in citations if citation.quote}
        self._quotes = sorted(quotes, key=len, reverse=True)
        self._waiting: dict[str, list[Citation]] = {}
        for citation in citations:
            self._waiting.setdefault(marker_of(citation).translate(REPLACED), []).append(citation)
        # An id may hold brackets: the shortest marker first.
        self._markers = re.compile("|".join(map(re.escape, sorted(self._waiting, key=len))) or "(?!)")
        self.written: set[int] = set()  # numbers of the notes whose first marker is in the answer
        self._held: list[Markup] = []  # what placeholders are replaced by

    def answer(self, text: str) -> Markup:
        """Write an answer, a link for each marker; its Markdown is rendered, except in passages cited word for word."""
        marked = self._link_european(self._markers.sub(self._replace_marker, self._hold_quotes(text)))
        placed = _quotations_on_one_line(marked)
        written: list[Markup] = []
        done = 0
        for passage in QUOTED_PASSAGE.finditer(placed):
            title, quote = (self._fill_placeholders(escape(part)) for part in passage.groups())
            written.append(self._render(placed[done : passage.start()]))
            written.append(Markup("<h3>{}</h3>\n<blockquote>{}</blockquote>\n").format(title, quote))
            done = passage.end()
        return Markup("").join([*written, self._render(placed[done:])])

    def sentence(self, text: str, *, markdown: bool = True) -> Markup:
        """Write a sentence that may name documents; a model's, in Markdown, or ours."""
        placed = MENTIONED.sub(self._replace_mention, self._markers.sub(self._replace_marker, self._hold_quotes(text)))
        return self._render(placed, inline=True) if markdown else self._fill_placeholders(escape(placed))

    def _render(self, text: str, *, inline: bool = False) -> Markup:
        parser = _markdown_parser()
        tokens = parser.parseInline(text) if inline else parser.parse(text)
        for token in tokens:
            _mark_analyses(token.children or [])
            if token.tag.startswith("h") and token.tag != "hr":
                token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
            token.attrs = {name: value for name, value in token.attrs.items() if name == "start"}
        # It escapes all text, and no rule that is enabled writes an address.
        return self._fill_placeholders(Markup(parser.renderer.render(tokens, parser.options, {})))  # noqa: S704

    def _hold_quotes(self, text: str) -> str:
        """Put placeholders for passages cited word for word: nothing in them is Markdown or a marker."""
        text = text.translate(REPLACED)
        for quote in self._quotes:
            for space in SPACES:
                quoted = f"«{space}{quote}{space}»"
                if quoted in text:
                    text = text.replace(quoted, self._hold(Markup("<br>\n").join(LINE_BREAKS.split(quoted))))
        return text

    def _link_european(self, text: str) -> str:
        """Put links to EUR-Lex and HUDOC on the European texts and cases that an answer names."""
        pieces, done = [], 0
        for (start, end), link in european_links(text):
            pieces += [text[done:start], self._hold(EUROPEAN.format(link.url, link.name, text[start:end]))]
            done = end
        return "".join([*pieces, text[done:]])

    def _hold(self, html: Markup) -> str:
        self._held.append(html)
        return f"[{MARK}{len(self._held) - 1}{MARK}]"

    def _replace_marker(self, match: re.Match[str]) -> str:
        waiting = self._waiting[match.group()]
        citation = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        note = self._notes.get(citation)
        if note is None:
            return match.group()
        first = note.number not in self.written
        self.written.add(note.number)
        voice = "censured" if citation.censured else citation.speaker
        speaker = SPEAKER.format(voice, citation.said_by) if voice in NOT_THE_COURT else ""
        return self._hold(marker_link(note, f"ref-{note.number}" if first else "") + speaker)

    def _replace_mention(self, match: re.Match[str]) -> str:
        mention = self._mentions.get(match[1])
        return self._hold(mention) if mention else match.group()

    def _fill_placeholders(self, html: Markup) -> Markup:
        written: list[Markup | str] = []
        for place, part in enumerate(PLACEHOLDER.split(html)):
            written.append(self._held[int(part)] if place % 2 else _tag_analyses(part))
        return Markup("").join(map(Markup, written))


def _quotations_on_one_line(text: str) -> str:
    """Keep outermost quotations from being cut into paragraphs and lists; one that is never closed stays."""
    pieces, done, start, depth = [], 0, 0, 0
    for match in GUILLEMETS.finditer(text):
        if match.group() == "«":
            start = match.start() if depth == 0 else start
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                pieces += [text[done:start], LINE_BREAKS.sub(BREAK, text[start : match.end()])]
                done = match.end()
    return "".join([*pieces, text[done:]])


def _tag_analyses(html: str) -> str:
    html = ANALYSIS.sub('<span class="tag">Analyse</span>', html)
    return html.replace(BREAK, "<br>\n").replace(OPENED, '<span class="analysis">').replace(CLOSED, "</span>")


def _mark_analyses(tokens: Sequence["Token"]) -> None:
    """Put marks around what is analysis in the texts of a block, within each text: none crosses a tag."""
    texts = ["\n" if token.type in ("softbreak", "hardbreak") else token.content for token in tokens]
    spans, at = _find_analyses("".join(texts)), 0
    for token, text in zip(tokens, texts, strict=True):
        pieces, done = [], 0
        for start, end in ((max(start - at, 0), min(end - at, len(text))) for start, end in spans):
            if start < end:
                pieces += [text[done:start], OPENED, text[start:end], CLOSED]
                done = end
        if done:
            token.content = "".join([*pieces, text[done:]])
        at += len(text)


def _find_analyses(text: str) -> list[Span]:
    """Find the sentences marked as analysis: spans from the mark to the end of the sentence."""
    marks = list(ANALYSIS.finditer(text))
    ends = [end for _, end in split_sentences(text)] if marks else []
    spans: list[Span] = []
    for mark in marks:
        at = bisect_right(ends, mark.end())
        if at + 1 < len(ends) and not text[mark.end() : ends[at]].strip():
            at += 1  # a mark alone on the line before its sentence
        end = ends[at] if at < len(ends) else len(text)
        end = mark.start() + len(text[mark.start() : end].rstrip())
        if spans and mark.start() < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((mark.start(), end))
    return spans


@cache
def _markdown_parser() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("zero", {"html": False, "breaks": True, "xhtmlOut": False}).enable(list(RULES))


class ShownText:
    """A document's text, or the passages of it that are known, a cut between them."""

    def __init__(self, pieces: Iterable[tuple[int, str]]) -> None:
        """Take pieces with the places where they begin in the document; one that another contradicts is left out."""
        self._starts: list[int] = []
        joined: list[str] = []
        for start, text in sorted(pieces, key=lambda piece: (piece[0], -len(piece[1]))):
            ahead = start - self._starts[-1] if joined else -1
            if joined and ahead <= len(joined[-1]):
                known = joined[-1][ahead : ahead + len(text)]
                joined[-1] += text[len(known) :] if text.startswith(known) else ""
            elif text:
                self._starts.append(start)
                joined.append(text)
        self._places = [0, *accumulate(len(text) + len(CUT) for text in joined)]
        self.text = CUT.join(joined)

    def place(self, start: int, text: str) -> int | None:
        """Return where a passage begins that is at `start` in the document; None if the text differs there."""
        at = bisect_right(self._starts, start) - 1
        if at < 0 or not text:
            return None
        place = self._places[at] + start - self._starts[at]
        return place if self.text.startswith(text, place) else None


def _collect_decisions(
    prediction: Prediction, numbers: Mapping[Citation, int], evidence: Sequence[Passage], corpus: Library | None
) -> dict[str, Decision]:
    """Return the documents that were cited, found and read, in this order, by id; as many whole as fit a page."""
    known: dict[str, CitedDocument | Passage] = {passage.doc_id: passage for passage in evidence}
    known |= {document.doc_id: document for document in prediction.documents[:MAX_SHOWN]}
    decisions: dict[str, Decision] = {}
    texts, chars = MAX_TEXTS, MAX_TEXTS_CHARS
    for doc_id in dict.fromkeys([*(citation.doc_id for citation in numbers), *known]):
        document = _load_document(doc_id, known.get(doc_id), corpus)
        passages = [(rank, passage) for rank, passage in enumerate(evidence, start=1) if passage.doc_id == doc_id]
        cited = [(number, citation) for citation, number in numbers.items() if citation.doc_id == doc_id]
        length = len(document.content)
        if whole := 0 < length <= chars and texts > 0:
            pieces = [(0, document.content)]
            texts, chars = texts - 1, chars - length
        else:
            pieces = [(citation.char_start, citation.quote[:MAX_PASSAGE]) for _, citation in cited]
            pieces += [_with_surroundings(passage) for _, passage in passages]
        outline = whole_outline_of(corpus, doc_id) if corpus and whole else NO_OUTLINE
        prefix, text = f"d{len(decisions) + 1}", ShownText(pieces)
        about, listed = CitedDocument.of(document), known.get(doc_id)
        if isinstance(listed, CitedDocument):
            about = about._replace(version=about.version or listed.version, fate=listed.fate)
        decisions[doc_id] = Decision(prefix, document, document.citation, about, whole, outline, text, passages, cited)
    return decisions


def _load_document(doc_id: str, known: CitedDocument | Passage | None, corpus: Library | None) -> Document:
    cited = known if isinstance(known, CitedDocument) else None
    if corpus is not None:
        with suppress(LookupError):  # of an answer saved before the document was removed
            document = corpus.document(doc_id)
            return replace(document, solution=document.solution or cited.solution) if cited else document
    if known is None:
        return Document(id=doc_id, content="")
    names = CitedDocument._fields[1 : CitedDocument._fields.index("citation")] if cited else ("title", "decision_date")
    more = {"publication": cited.publication, "ecli": cited.ecli, "source_url": cited.link} if cited else {}
    return Document(id=doc_id, content="", **{name: getattr(known, name) for name in names}, extra=more)


def _with_surroundings(passage: Passage) -> tuple[int, str]:
    if len(passage.text) > MAX_PASSAGE:
        return passage.char_start, passage.text[:MAX_PASSAGE]
    return passage.char_start - len(passage.before), passage.before + passage.text + passage.after


def _view_decision(decision: Decision, heat_of: Callable[[float], int]) -> DocumentView:
    marks: list[TextMark] = []
    for number, citation in decision.citations:
        quote = citation.quote[:MAX_PASSAGE]
        if (place := decision.text.place(citation.char_start, quote)) is not None:
            marks.append(TextMark(f"place-{number}", place, place + len(quote), cited=number))
    for rank, passage in decision.passages:
        if (place := decision.text.place(passage.char_start, passage.text[:MAX_PASSAGE])) is not None:
            marks.append(TextMark(f"passage-{rank}", place, place))
            for n, _, (start, end), similarity in _shown_matches(passage):
                heat = heat_of(similarity)
                marks.append(TextMark(f"word-{rank}-{n}", place + start, place + end, heat=heat))
    return view_document(
        replace(decision.document, content=decision.text.text), decision.outline, decision.prefix, marks
    )


def _make_note(number: int, citation: Citation, decision: Decision, anchors: Container[str]) -> Note:
    place = f"place-{number}"
    return Note(number, citation, decision.cited_as.text, place if place in anchors else f"note-{number}")


def _answer_to(citation: Citation, decision: Decision) -> CourtAnswer | None:
    is_shown = decision.text.place(citation.char_start, citation.quote[:MAX_PASSAGE]) is not None
    if not (citation.censured and decision.whole and is_shown):
        return None
    return answer_to_quashed(citation.char_start, decision.document.content, decision.outline.passages)


def _heat_scale(evidence: Iterable[Passage]) -> Callable[[float], int]:
    """Return what gives a similarity's degree, 1 to `HEATS`, between the page's lowest and highest: encoders differ."""
    similarities = [match.similarity for passage in evidence for match in passage.matches[:MAX_MATCHES]]
    low = min(similarities, default=0.0)
    spread = max(similarities, default=0.0) - low
    return lambda value: 1 + min(HEATS - 1, int(HEATS * (value - low) / spread)) if spread > 0 else HEATS


def _shown_matches(passage: Passage) -> Iterator[tuple[int, Span, Span, float]]:
    for n, match in enumerate(passage.matches[:MAX_MATCHES]):
        asked = (match.query_start, match.query_end)
        span = (match.char_start - passage.char_start, match.char_end - passage.char_start)
        if span[1] <= MAX_PASSAGE:
            yield n, asked, span, match.similarity


def _evidence_row(
    rank: int,
    question: str,
    passage: Passage,
    decision: Decision,
    notes: Iterable[Note],
    heat_of: Callable[[float], int],
    anchors: Container[str],
) -> EvidenceRow:
    words: list[tuple[Span, TextPiece]] = []
    for n, asked, span, similarity in _shown_matches(passage):
        pair = f"« {question[slice(*asked)][:80]} » → « {passage.text[slice(*span)][:80]} »"
        place, title = f"word-{rank}-{n}", f"{pair} : {french_decimal(similarity)}"
        words.append((asked, TextPiece("", place if place in anchors else "", heat_of(similarity), title)))
    place = f"passage-{rank}"
    paragraphs: list[Paragraph] = []
    if decision.whole and place in anchors:
        paragraphs = [
            paragraph
            for paragraph in decision.outline.passages
            if paragraph.start < passage.char_end and passage.char_start < paragraph.end
        ]
    return EvidenceRow(
        rank,
        passage,
        place if place in anchors else "",
        [note for note in notes if passage.is_cited_by(note.citation)],
        _cut_question(question, words),
        list(dict.fromkeys(voice for paragraph in paragraphs if (voice := voice_of(paragraph)))),
    )


def _cut_question(question: str, words: Sequence[tuple[Span, TextPiece]]) -> list[TextPiece]:
    """Cut a question where matched spans begin and end; a piece in several links to the best match."""
    places = sorted({0, len(question), *(place for span, _ in words for place in span)})
    pieces = []
    for begin, end in pairwise(places):
        over = [word for (first, last), word in words if first <= begin and end <= last]
        best = max(over, key=lambda word: word.heat, default=TextPiece("", "", 0, ""))
        pieces.append(best._replace(text=question[begin:end], title=" ; ".join(word.title for word in over)))
    return pieces


def _link_document(an_id: str, mentions: Mapping[str, Markup]) -> Markup:
    doc_id = an_id
    if an_id not in mentions:
        with suppress(ValueError):
            doc_id = parse_chunk_id(an_id)[0]
    return mentions.get(doc_id) or Markup('<bdi class="id">{}</bdi>').format(an_id[:200])


def _receipt_rows(prediction: Prediction) -> list[dict[str, Any]]:
    """Return the receipts of a deep read's computed values, if a saved answer has any."""
    kept = prediction.events[-1].input.get("receipts") if prediction.events else None
    names = ("id", "asked", "value", "n")
    return [
        {
            **{name: "" if receipt.get(name) is None else str(receipt[name]) for name in names},
            "first": [str(each) for each in list(receipt.get("first", ()))[:3]],
        }
        for receipt in (kept if isinstance(kept, list) else [])
        if isinstance(receipt, dict)
    ]


def _step_inputs(step: Event) -> list[tuple[str, Any]]:
    chosen = step.input.get("arguments")
    flat = {**step.input, **chosen} if isinstance(chosen, Mapping) else step.input
    return [
        (str(name), value)
        for name, value in list(flat.items())[:20]
        if name not in ("thought", "receipts") and value is not chosen and value not in (None, "", [], {})
    ]


def _format_value(value: Any) -> str:
    text = value if isinstance(value, str) else plain_json(value)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}…"
