"""An answer with its sources, evidence and steps as one HTML page."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cache
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup, escape

from legal_rag.agent.prediction import CitedDocument, Event, Passage, Prediction, require_valid
from legal_rag.agent.spoken import CourtAnswer, answer_to_quashed
from legal_rag.citations.checks import Citation
from legal_rag.citations.markers import format_marker
from legal_rag.corpus.cleaning import storable
from legal_rag.corpus.documents import Document
from legal_rag.corpus.folding import Span
from legal_rag.corpus.patterns.dates import MONTHS
from legal_rag.corpus.sentences import split_sentences
from legal_rag.html import (
    NotebookFrame,
    frame_of_page,
    french_decimal,
    french_number,
    own_script,
    page_template,
    plain_json,
)
from legal_rag.library.corpus import Corpus
from legal_rag.library.outlines import Outline, whole_outline_of
from legal_rag.report.lines import STATUS_WORDS
from legal_rag.report.outline import (
    VOICES_IN_FRENCH,
    CitedPlace,
    DocumentView,
    Voice,
    outline_style,
    view_document,
    voice_of,
)

if TYPE_CHECKING:
    from markdown_it.token import Token

PACKAGE = "legal_rag.report"
TITLE = "Réponse et sources"
# Items shown of each list; a page that omits some says so.
MAX_SHOWN: Mapping[str, int] = {
    "citations": 500,
    "evidence": 100,
    "events": 1000,
    "documents": 500,
    "ungrounded_claims": 500,
}
MAX_TEXTS = 20  # documents shown whole, beside their outlines
MAX_TEXTS_CHARS = 1_500_000  # of them together
MAX_VALUE = 400  # characters of one value in the table of steps

SIGNS: Mapping[str, str] = {"verified": "✓", "supported": "≈", "relocated": "↷", "unverified": "?"}
# Noncharacters of Unicode as internal marks: those in the answer itself are replaced.
MARK, BREAK = "\ufdd0", "\ufdd1"
REPLACED = str.maketrans({MARK: "\ufffd", BREAK: "\ufffd"})
PLACEHOLDER = re.compile(rf"\[{MARK}(\d+){MARK}\]")  # placeholder of a marker, in brackets as in Markdown
BUTTON = Markup(
    '<button type="button" class="cite {status}" popovertarget="passage-{number}" aria-haspopup="dialog"'
    ' aria-label="Source {number}, {words}" title="{title} — {words}">'
    '{number}<span aria-hidden="true">{sign}</span></button>{censured}'
)

CENSURED = Markup('<span class="speaker censured">décision censurée</span>')

ANALYSIS = re.compile(r"\[\s*Analys(?:e|is)\s*\]", re.IGNORECASE)
GUILLEMETS = re.compile("[«»]")
LINE_BREAKS = re.compile(r"[^\S\n]*\n\s*")
# A passage as `legal_rag.agent.evidence` writes it: number and title, then the quotation.
QUOTED_PASSAGE = re.compile(r"(\d{1,4}\. [^\n]+)\n((?:\[…\] )?«.*)", re.DOTALL)
TAGS = frozenset("p h1 h2 h3 h4 h5 h6 ul ol li blockquote table thead tbody tr th td strong em".split())
RULES = ("heading", "list", "blockquote", "hr", "table", "emphasis", "newline", "escape")
MAX_MARKDOWN = 50_000  # characters; longer texts are no model's answer, and shown as they are

CONTEXT = 200  # characters shown on either side of what is cited
MAX_TEXT = 6000  # characters of one passage shown: an index that came from elsewhere may find whole decisions
MAX_MATCHES = 300  # of one passage
HEATS = 5  # steps of intensity


class Note(NamedTuple):
    """A passage cited, under the number of its buttons."""

    number: int  # from 1
    citation: Citation
    title: str


class CitedPassage(NamedTuple):
    """A passage cited, with the text around it."""

    note: Note
    date: str
    before: str
    after: str
    in_context: bool  # the evidence shows its surroundings


class TextPiece(NamedTuple):
    """A piece of a text, highlighted if it belongs to matches."""

    text: str
    words: str  # numbers of its matches, blank-separated
    heat: int  # 1 to 5, rising with similarity; 0 without a match
    title: str  # of the highlight: what matches what, in French


class EvidenceRow(NamedTuple):
    """A passage of the evidence and the question, cut into pieces at their matches."""

    rank: int  # from 1
    passage: Passage
    notes: list[Note]  # that cite it
    question: list[TextPiece]
    text: list[TextPiece]
    cut: bool  # the text is longer than what is shown
    voices: list[Voice]  # who speaks in it, in order
    answer: CourtAnswer | None  # to what is quashed in it


class Source(NamedTuple):
    """A document of the corpus."""

    document: Document
    outline: Outline


def render_answer(prediction: Prediction, corpus: Corpus | None = None) -> str:
    """Render an answer as a French HTML page that loads nothing from elsewhere.

    Args:
        prediction: The answer.
        corpus: The index that it was answered from; with it the page shows the documents beside their outlines, and who
            speaks in each passage found.

    Raises:
        ValueError: If a field of the prediction has a wrong type, as a saved answer's may.
    """
    require_valid(prediction)
    script, style = own_script(PACKAGE, "report.js", "outline.js", "print.js"), outline_style()
    heading = f"{prediction.question[:100]} — {TITLE}"
    frame = frame_of_page(heading, script, style)
    return storable(page_template(PACKAGE, "report.html.j2").render(**frame, **_values(prediction, corpus)))


def show_answer(prediction: Prediction, height: int = 720, *, corpus: Corpus | None = None) -> Any:
    """Render an answer for a notebook, in a sandboxed frame `height` pixels high; see `render_answer`."""
    return NotebookFrame(render_answer(prediction, corpus), TITLE, height)


def _values(prediction: Prediction, corpus: Corpus | None) -> dict[str, Any]:
    known: list[Passage | CitedDocument] = [*prediction.evidence, *prediction.documents]
    citations = prediction.citations[: MAX_SHOWN["citations"]]
    evidence = prediction.evidence[: MAX_SHOWN["evidence"]]
    notes = notes_of(citations, {one.doc_id: one.title for one in known})
    cited = {one.doc_id for one in citations}
    named = (citations, prediction.documents[: MAX_SHOWN["documents"]], evidence)
    doc_ids = dict.fromkeys(one.doc_id for some in named for one in some) if corpus else {}
    source_of = cache(lambda doc_id: _source(doc_id, corpus))
    texts = _texts(doc_ids, source_of, notes)
    return {
        "prediction": prediction,
        "answer": answer_html(prediction.answer, citations, notes, markdown=prediction.mode == "agent"),
        "cited": cited_passages(notes, evidence, {one.doc_id: french_date(one.decision_date) for one in known}),
        "rows": evidence_rows(prediction.question, evidence, notes, source_of),
        "answers": {note.number: _answer_to(note.citation, source_of(note.citation.doc_id)) for note in notes},
        "texts": texts,
        "text_of_document": {view.document.id: view.prefix for view in texts},
        "places": {anchor for view in texts for anchor in view.anchors},
        "texts_left_out": len(doc_ids) - len(texts),
        "speakers": VOICES_IN_FRENCH,
        "others": [one for one in prediction.documents[: MAX_SHOWN["documents"]] if one.doc_id not in cited],
        "most": MAX_SHOWN,
        "signs": SIGNS,
        "words": STATUS_WORDS,
        "button": marker_button,
        "value": _value,
        "inputs_of": _inputs_of,
        "date": french_date,
        "number": french_number,
        "decimal": french_decimal,
    }


def notes_of(citations: Iterable[Citation], titles: Mapping[str, str]) -> list[Note]:
    """Number the passages cited in the order of the text, equal ones once; `titles` are the documents', by id."""
    different = dict.fromkeys(citations)
    return [Note(number, one, titles.get(one.doc_id) or one.doc_id) for number, one in enumerate(different, start=1)]


def marker_button(note: Note) -> Markup:
    """Write the button that opens a passage; its status has a sign and a name, not a colour alone."""
    status = note.citation.status
    censured = CENSURED if note.citation.censured else ""
    named = {"words": STATUS_WORDS[status], "title": note.title, "sign": SIGNS[status], "censured": censured}
    return BUTTON.format(status=status, number=note.number, **named)


def answer_html(text: str, citations: Sequence[Citation], notes: Sequence[Note], *, markdown: bool) -> Markup:
    """Write an answer as HTML, a button for each marker of `citations` (in their order) that `notes` show."""
    placed = with_placeholders(text, citations, notes)
    for quote in dict.fromkeys(one.quote for one in citations if "\n" in one.quote):
        placed = placed.replace(quote, _on_one_line(quote))
    placed = _quotations_on_one_line(placed)
    writer = _Writer({note.number: note for note in notes})
    blocks = writer.blocks(placed) if markdown and len(placed) <= MAX_MARKDOWN else writer.paragraphs(placed)
    return Markup("").join(blocks)


def with_placeholders(text: str, citations: Sequence[Citation], notes: Sequence[Note]) -> str:
    """Replace the markers of citations, in their order, by placeholders for the buttons of the notes shown."""
    numbers = {note.citation: note.number for note in notes}
    waiting: dict[str, list[int]] = {}
    for one in citations:
        written = format_marker(one.doc_id, one.char_start, one.char_end, verified=one.status != "unverified")
        waiting.setdefault(written.translate(REPLACED), []).append(numbers.get(one, 0))

    def placeholder(marker: re.Match[str]) -> str:
        of_marker = waiting[marker.group()]
        number = of_marker.pop(0) if len(of_marker) > 1 else of_marker[0]
        return f"[{MARK}{number}{MARK}]" if number else marker.group()

    text = text.translate(REPLACED)
    markers = "|".join(map(re.escape, sorted(waiting, key=len)))  # an id may hold brackets: the shortest one first
    return re.sub(markers, placeholder, text) if waiting else text


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
                pieces += [text[done:start], _on_one_line(text[start : match.end()])]
                done = match.end()
    return "".join([*pieces, text[done:]])


def _on_one_line(text: str) -> str:
    return LINE_BREAKS.sub(BREAK, text)


class _Writer:
    """Writes blocks of text as HTML."""

    def __init__(self, notes: Mapping[int, Note]) -> None:
        self._notes = notes

    def paragraphs(self, text: str) -> Iterator[Markup]:
        for block in re.split(r"\n\s*\n", text.strip()):
            if passage := QUOTED_PASSAGE.fullmatch(block):
                yield Markup("<h3>{}</h3>\n<blockquote>{}</blockquote>\n").format(*map(self._text, passage.groups()))
            else:
                yield Markup("<p>{}</p>\n").format(Markup("").join(self._pieces(block, _analyses(block), 0)))

    def blocks(self, text: str) -> Iterator[Markup]:
        for token in _parser().parse(text):
            if token.type == "inline":
                yield from self._inline(token.children or [])
            elif token.type == "hr":
                yield Markup("<hr>\n")
            elif token.tag in TAGS and not token.hidden:
                yield _tag(token)

    def _inline(self, tokens: Sequence["Token"]) -> Iterator[Markup]:
        texts = ["\n" if token.type in ("softbreak", "hardbreak") else token.content for token in tokens]
        analyses, at = _analyses("".join(texts)), 0
        for token, text in zip(tokens, texts, strict=True):
            if token.tag in TAGS:
                yield _tag(token)
            yield from self._pieces(text, analyses, at)
            at += len(text)

    def _pieces(self, text: str, analyses: Sequence[Span], start: int) -> Iterator[Markup]:
        """Write a piece of a block that starts at `start`; `analyses` are spans of the block's text."""
        done = 0
        for first, last in analyses[bisect_right(analyses, start, key=itemgetter(1)) :]:
            begin, end = max(first - start, 0), min(last - start, len(text))
            if begin >= end:
                break
            yield self._text(text[done:begin])
            yield Markup('<span class="analysis">{}</span>').format(self._text(text[begin:end]))
            done = end
        yield self._text(text[done:])

    def _text(self, text: str) -> Markup:
        written, done = [], 0
        for match in PLACEHOLDER.finditer(text):
            written += [_plain(text[done : match.start()]), marker_button(self._notes[int(match[1])])]
            done = match.end()
        return Markup("").join([*written, _plain(text[done:])])


def _plain(text: str) -> Markup:
    tag = Markup('<span class="tag">Analyse</span>')
    text = text.replace(BREAK, "\n")
    parts = [escape(part).replace("\n", Markup("<br>\n")) for part in ANALYSIS.split(text)]
    return tag.join(parts)


def _analyses(text: str) -> list[Span]:
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


def _tag(token: "Token") -> Markup:
    tag = f"h{min(6, int(token.tag[1]) + 2)}" if token.tag[0] == "h" else token.tag
    first = token.attrGet("start") if token.nesting == 1 and tag == "ol" else None
    start = f' start="{int(first)}"' if first is not None else ""
    return Markup("</{}>" if token.nesting < 0 else "<{}{}>").format(tag, Markup(start))  # noqa: S704 - a number


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("zero", {"html": False, "breaks": True}).enable(list(RULES))


def cited_passages(notes: Iterable[Note], evidence: Iterable[Passage], dates: Mapping[str, str]) -> list[CitedPassage]:
    """Add to each passage cited what surrounds it in the evidence; `dates` are the documents', by id."""
    of_document: dict[str, list[Passage]] = {}
    for one in evidence:
        widened = one._replace(char_start=one.char_start - len(one.before), text=one.before + one.text + one.after)
        of_document.setdefault(one.doc_id, []).append(widened)
    shown = []
    for note in notes:
        doc_id = note.citation.doc_id
        found = [around for one in of_document.get(doc_id, []) if (around := _around(note.citation, one))]
        before, after = max(found, key=lambda around: len(around[0]) + len(around[1]), default=("", ""))
        shown.append(CitedPassage(note, dates.get(doc_id, ""), before, after, bool(found)))
    return shown


def evidence_rows(
    question: str, evidence: Sequence[Passage], notes: Sequence[Note], source_of: Callable[[str], Source | None]
) -> list[EvidenceRow]:
    """Cut the question and each passage at the words that match; `source_of` knows who speaks in a document."""
    similarities = [match.similarity for passage in evidence for match in passage.matches[:MAX_MATCHES]]
    low, high = min(similarities, default=0.0), max(similarities, default=0.0)

    def heat(similarity: float) -> int:  # from the page's lowest to its highest: encoders differ in both
        return 1 + min(HEATS - 1, int(HEATS * (similarity - low) / (high - low))) if high > low else HEATS

    return [
        _row(rank, question, passage, notes, heat, source_of(passage.doc_id))
        for rank, passage in enumerate(evidence, start=1)
    ]


def _source(doc_id: str, corpus: Corpus | None) -> Source | None:
    """Return a document and its outline; None if there is none, as of an answer saved before it was removed."""
    if corpus is None:
        return None
    try:
        return Source(corpus.document(doc_id), whole_outline_of(corpus, doc_id))
    except LookupError:
        return None


def _texts(
    doc_ids: Iterable[str], source_of: Callable[[str], Source | None], notes: Sequence[Note]
) -> list[DocumentView]:
    """Return the documents to show whole, the passages cited marked in them: as many as a page can bear."""
    views: list[DocumentView] = []
    chars = MAX_TEXTS_CHARS
    for doc_id in doc_ids:
        if len(views) == MAX_TEXTS:
            break
        if (source := source_of(doc_id)) is None:
            continue
        document, outline = source
        if views and len(document.content) > chars:
            break
        cited = [
            CitedPlace(f"place-{note.number}", note.citation.char_start, note.citation.char_end)
            for note in notes
            if note.citation.doc_id == doc_id and _still_stands(note.citation, document)
        ]
        views.append(view_document(document, outline, f"d{len(views) + 1}", cited))
        chars -= len(document.content)
    return views


def _still_stands(citation: Citation, document: Document) -> bool:
    """Whether a document's present text is what was quoted."""
    quote = document.content[citation.char_start : citation.char_end]
    return bool(quote) and citation.char_start >= 0 and quote == citation.quote


def _answer_to(citation: Citation, source: Source | None) -> CourtAnswer | None:
    """Return what the court answers to the quashed reasoning that a citation quotes."""
    if source is None or not citation.censured or not _still_stands(citation, source.document):
        return None
    return answer_to_quashed(citation.char_start, source.document.content, source.outline.passages)


def _voices(passage: Passage, source: Source | None) -> tuple[list[Voice], CourtAnswer | None]:
    """Return who speaks in a passage found, in order, and the court's answer to what it quashes there."""
    start, end = passage.char_start, passage.char_end
    if source is None or source.document.content[max(0, start) : end] != passage.text:
        return [], None
    said = [one for one in source.outline.passages if one.start < end and start < one.end]
    voices = dict.fromkeys(voice for one in said if (voice := voice_of(one)))
    quashed = next((one for one in said if one.censured), None)
    answer = quashed and answer_to_quashed(quashed.start, source.document.content, source.outline.passages)
    return list(voices), answer


def _around(one: Citation, passage: Passage) -> tuple[str, str] | None:
    """Return the text before and after a citation, if a passage shows it."""
    text, start = passage.text, one.char_start - passage.char_start
    end = start + len(one.quote)
    if not one.quote or start < 0 or text[start:end] != one.quote:
        return None
    return text[max(0, start - CONTEXT) : start], text[end : end + CONTEXT]


def _row(
    rank: int,
    question: str,
    passage: Passage,
    notes: Sequence[Note],
    heat: Callable[[float], int],
    source: Source | None,
) -> EvidenceRow:
    text, start = passage.text[:MAX_TEXT], passage.char_start
    marks: list[tuple[Span, Span, int, str]] = []  # in the question, in the text, heat, title
    for one in passage.matches[:MAX_MATCHES]:
        asked, found = (one.query_start, one.query_end), (one.char_start - start, one.char_end - start)
        if 0 <= asked[0] < asked[1] <= len(question) and 0 <= found[0] < found[1] <= len(text):
            words = f"« {question[slice(*asked)][:80]} » → « {text[slice(*found)][:80]} »"
            marks.append((asked, found, heat(one.similarity), f"{words} : {french_decimal(one.similarity)}"))
    return EvidenceRow(
        rank,
        passage,
        [note for note in notes if passage.is_cited_by(note.citation)],
        _pieces(question, [(asked, degree, title) for asked, _, degree, title in marks]),
        _pieces(text, [(found, degree, title) for _, found, degree, title in marks]),
        len(text) < len(passage.text),
        *_voices(passage, source),
    )


def _pieces(text: str, marks: Sequence[tuple[Span, int, str]]) -> list[TextPiece]:
    """Cut a text where marks, each a span with its heat and title, begin and end."""
    places = sorted({0, len(text), *(place for span, _, _ in marks for place in span)})
    pieces = []
    for begin, end in pairwise(places):
        over = [number for number, ((first, last), _, _) in enumerate(marks) if first <= begin and end <= last]
        heat = max((marks[number][1] for number in over), default=0)
        title = " ; ".join(marks[number][2] for number in over)
        pieces.append(TextPiece(text[begin:end], " ".join(map(str, over)), heat, title))
    return pieces


def french_date(iso: str) -> str:
    """Write an ISO date in French, '2018-08-02' as '2 août 2018'; other texts stay as they are."""
    try:
        day = date.fromisoformat(iso)
    except ValueError:
        return iso
    return f"{'1er' if day.day == 1 else day.day} {MONTHS[day.month - 1]} {day.year}"


def _inputs_of(step: Event) -> list[tuple[str, Any]]:
    """Return what a step was asked, by name; a tool's arguments count among it."""
    chosen = step.input.get("arguments")
    flat = {**step.input, **chosen} if isinstance(chosen, Mapping) else step.input
    return [(str(name), one) for name, one in list(flat.items())[:20] if name != "thought" and one is not chosen]


def _value(value: Any) -> str:
    """Write a value of the table of steps, cut."""
    try:
        text = value if isinstance(value, str) else plain_json(value)
    except (TypeError, ValueError, RecursionError):  # a live event may hold any value, a saved one any depth
        text = f"({type(value).__name__})"
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}…"
