"""A document's outline with its text and speakers: as a page, in a notebook, as lines of text."""

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

from legal_rag.base.html import (
    NotebookFrame,
    frame_of_page,
    french_number,
    in_notebook,
    own_resource,
    own_script,
    own_style,
    page_template,
)
from legal_rag.base.text import Span
from legal_rag.corpus.documents import Document
from legal_rag.law.citation import legal_citation
from legal_rag.law.tree import (
    CENSURED_IN_FRENCH,
    PART_TITLES,
    SPEAKERS,
    SPEAKERS_IN_FRENCH,
    Paragraph,
    Speaker,
    TreeNode,
    walk,
)
from legal_rag.library.library import Library
from legal_rag.library.outlines import Outline, whole_outline_of
from legal_rag.report.lines import in_one_line

PACKAGE = "legal_rag.report"
TITLE = "Plan et texte"
# What is shown of one document; a page that omits some says so.
MAX_SECTIONS = 3000
MAX_CHARS = 1_000_000
MAX_LEVELS = 8  # nested; deeper sections are listed in the eighth
OPEN_SECTIONS = 80  # of an outline that is shown unfolded
CONTEXT = 200  # characters on either side of a passage cited that are printed with it
HEATS = 5  # steps of intensity

Voice = Speaker | Literal["censured"]
VOICES: tuple[Voice, ...] = (*SPEAKERS[:3], "censured", *SPEAKERS[3:])
VOICES_IN_FRENCH: Mapping[Voice, str] = {
    voice: CENSURED_IN_FRENCH if voice == "censured" else SPEAKERS_IN_FRENCH[voice] for voice in VOICES
}


@dataclass(slots=True)
class Section:
    """A line of an outline, with those below it."""

    number: int  # from 1, in reading order
    node: TreeNode
    spoken: dict[Voice, int]  # characters, most first
    sections: list["Section"] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The title of a main part, 'Motifs', or else the section's own."""
        return PART_TITLES.get(self.node.kind, self.node.title) or "…"

    @property
    def voice(self) -> Voice | None:
        """Who speaks in most of it; None: nobody."""
        return next(iter(self.spoken), None)

    def to_json(self) -> dict[str, Any]:
        """Return plain values that JSON can hold, without the sections below."""
        node = self.node
        named = {"node_id": node.node_id, "level": node.level, "kind": node.kind, "title": node.title}
        return {**named, "char_start": node.char_start, "char_end": node.char_end, "spoken": self.spoken}


class TextMark(NamedTuple):
    """A span of a text that can be linked to, by an id of its own in the page."""

    anchor: str
    char_start: int
    char_end: int
    cited: int = 0  # number of the passage cited; 0: none is
    heat: int = 0  # of a word that matches one of the question: 1 to 5, rising with similarity


class Run(NamedTuple):
    """A piece of a text in one style."""

    text: str
    marks: tuple[TextMark, ...]  # that begin with it
    heading: bool
    cited: bool
    near: bool  # to a passage cited, or part of it
    heat: int  # of the best match that it belongs to; 0: of none


class Stretch(NamedTuple):
    """A piece of a text by one speaker."""

    char_start: int
    voice: Voice | None
    runs: list[Run]
    answered: int | None  # where the court's answer to what it quashes begins


class DocumentView(NamedTuple):
    """A document's outline and text, cut where a page shows no more of them."""

    document: Document
    prefix: str  # of the ids of its places in the page
    outline: Outline
    sections: list[Section]  # the uppermost
    stretches: list[Stretch]
    voices: list[Voice]  # that speak in it
    unfolded: bool
    sections_left_out: int
    chars_left_out: int

    @property
    def anchors(self) -> set[str]:
        """Ids of the places of its text that can be linked to."""
        return {mark.anchor for stretch in self.stretches for run in stretch.runs for mark in run.marks}


def render_outline(corpus: Library, doc_id: str) -> str:
    """Render a document with its outline as a French HTML page that loads nothing from elsewhere.

    Raises:
        LookupError: If there is no such document.
    """
    document = corpus.document(doc_id)
    view = view_document(document, whole_outline_of(corpus, doc_id), "d1")
    named = legal_citation(document).with_name
    heading = f"{named[:100]} — {TITLE}"
    frame = frame_of_page(heading, own_script(PACKAGE, "outline.js", "print.js"), outline_style())
    values = {"view": view, "named": named, "words": VOICES_IN_FRENCH, "number": french_number}
    return page_template(PACKAGE, "outline.html.j2").render(**frame, **values)


def show_outline(library: Library | str | Path, doc_id: str, height: int = 720) -> Any:
    """Show a document with its outline in a notebook, `height` pixels high; elsewhere its outline is printed.

    Raises:
        LookupError: If there is no such document.
        FileNotFoundError: If there is no Library in that folder.
    """
    corpus = library if isinstance(library, Library) else Library(library)
    if in_notebook():
        return NotebookFrame(render_outline(corpus, doc_id), TITLE, height)
    print(format_outline(corpus, doc_id))
    return None


def format_outline(corpus: Library, doc_id: str) -> str:
    """Write an outline as indented lines: id, title, characters, who speaks in what share of each section.

    LookupError if there is no such document.
    """
    document = corpus.document(doc_id)
    named = legal_citation(document).with_name
    lines = [in_one_line(doc_id if named == doc_id else f"{doc_id} : {named}")]
    for section in list_sections(whole_outline_of(corpus, doc_id)):
        node = section.node
        place = f"{french_number(node.char_start)}-{french_number(node.char_end)}"
        spoken = f"  [{shares_in_french(section.spoken)}]" if section.spoken else ""
        indent = "  " * min(node.level - 1, MAX_LEVELS)
        lines.append(f"{node.node_id}  {indent}{in_one_line(section.title)}  {place}{spoken}")
    return "\n".join(lines)


def shares_in_french(spoken: Mapping[Voice, int]) -> str:
    """Write each speaker's share of the characters that have a speaker: « la juridiction 80 % · … »."""
    total = sum(spoken.values())
    return " · ".join(f"{VOICES_IN_FRENCH[voice]} {max(1, round(100 * n / total))} %" for voice, n in spoken.items())


def list_sections(outline: Outline) -> Iterator[Section]:
    """Yield the sections of an outline in reading order, the document itself left out, each with who speaks in it."""
    for number, node in enumerate(islice(walk(outline.tree), 1, None), start=1):
        yield Section(number, node, _characters_by_voice(outline.passages, node.char_start, node.char_end))


def view_document(document: Document, outline: Outline, prefix: str, marks: Sequence[TextMark] = ()) -> DocumentView:
    """Cut a document where its sections, speakers and marks begin and end; linear in its length.

    `prefix` begins the ids of its places, another for each document of a page; `marks` are what is cited and matched.
    """
    text = document.content[:MAX_CHARS]
    listed = [section for section in list_sections(outline) if section.node.char_start < max(1, len(text))]
    shown = listed[:MAX_SECTIONS]
    stretches = list(_cut_stretches(text, outline.passages, prefix, shown, marks))
    return DocumentView(
        document,
        prefix,
        outline,
        _nest_sections(shown),
        stretches,
        [voice for voice in VOICES if any(stretch.voice == voice for stretch in stretches)],
        len(shown) <= OPEN_SECTIONS,
        len(listed) - len(shown),
        len(document.content) - len(text),
    )


def outline_style() -> Any:
    """Return the style of pages that show an outline."""
    return own_style(PACKAGE, "report.css") + own_resource(PACKAGE, "outline.css")


def voice_of(passage: Paragraph) -> Voice | None:
    """Return who speaks, with a voice of its own for quashed reasoning."""
    return "censured" if passage.censured else passage.speaker


def _characters_by_voice(passages: Sequence[Paragraph], start: int, end: int) -> dict[Voice, int]:
    """Count the characters of each speaker in a span, most first; the passages stand in reading order."""
    counts = Counter[Voice]()
    for passage in islice(passages, bisect_right(passages, start, key=lambda each: each.end), None):
        if passage.start >= end:
            break
        if voice := voice_of(passage):
            counts[voice] += min(passage.end, end) - max(passage.start, start)
    return dict(counts.most_common())


def _nest_sections(sections: Iterable[Section]) -> list[Section]:
    """Nest sections that come in reading order, at most `MAX_LEVELS` deep; return the uppermost."""
    upper: list[Section] = []
    inside: list[tuple[int, list[Section]]] = [(0, upper)]
    for section in sections:
        level = min(max(1, section.node.level), MAX_LEVELS)
        while inside[-1][0] >= level:
            inside.pop()
        inside[-1][1].append(section)
        inside.append((level, section.sections))
    return upper


def _cut_stretches(
    text: str, passages: Sequence[Paragraph], prefix: str, sections: Sequence[Section], marks: Sequence[TextMark]
) -> Iterator[Stretch]:
    """Cut a text where speakers change, and each stretch at headings and marks."""
    spoken = list(_spoken_spans(text, passages))
    answers = _answer_starts(spoken)
    places = [
        TextMark(f"{prefix}-{section.number}", section.node.char_start, section.node.char_start) for section in sections
    ]
    looks = _Looks(text, [section.node.heading for section in sections], marks)
    waiting = deque(sorted([*places, *marks], key=lambda mark: mark.char_start))
    for number, ((start, end), voice) in enumerate(spoken):
        until = end if number + 1 < len(spoken) else len(text) + 1
        here: dict[int, tuple[TextMark, ...]] = {}
        while waiting and waiting[0].char_start < until:
            begun = min(max(waiting[0].char_start, start), end - 1)
            here[begun] = (*here.get(begun, ()), waiting.popleft())
        yield Stretch(start, voice, list(_cut_runs(text, (start, end), here, looks)), answers[number])


def _spoken_spans(text: str, passages: Iterable[Paragraph]) -> Iterator[tuple[Span, Voice | None]]:
    """Yield a text's spans with who speaks; blank lines between them are left out, other gaps have no speaker."""
    done = 0
    for passage in passages:
        start, end = max(passage.start, done), min(passage.end, len(text))
        if start >= end:
            continue
        if text[done:start].strip():
            yield (done, start), None
        yield (start, end), voice_of(passage)
        done = end
    if text[done:].strip() or (text and not done):
        yield (done, len(text)), None


def _answer_starts(spoken: Sequence[tuple[Span, Voice | None]]) -> list[int | None]:
    """Return, for each quashed stretch, where the court speaks next; None for others."""
    answers: list[int | None] = []
    following: int | None = None
    for (start, _), voice in reversed(spoken):
        answers.append(following if voice == "censured" else None)
        following = start if voice == "court" else following
    return answers[::-1]


class _Looks:
    """The style of any character: whether in a heading, cited, near a passage cited, and in a match."""

    def __init__(self, text: str, headings: Iterable[Span], marks: Iterable[TextMark]) -> None:
        kinds: list[list[Span]] = [list(headings), *([] for _ in range(2 + HEATS))]
        for _, start, end, cited, heat in marks:
            if cited:
                kinds[1].append((start, end))
                kinds[2].append(_widen_to_context(text, start, end))
            elif heat:
                kinds[2 + heat].append((start, end))
        changes: dict[int, list[int]] = {0: [0] * len(kinds)}
        for kind, spans in enumerate(kinds):
            for start, end in spans:
                if start < end:
                    changes.setdefault(start, [0] * len(kinds))[kind] += 1
                    changes.setdefault(end, [0] * len(kinds))[kind] -= 1
        self.places = sorted(changes)
        of_each = zip(*(changes[place] for place in self.places), strict=True)
        self._open = list(zip(*map(accumulate, of_each), strict=True))

    def between(self, start: int, end: int) -> list[int]:
        """Return the places within a span where the style changes."""
        return self.places[bisect_right(self.places, start) : bisect_right(self.places, end - 1)]

    def at(self, place: int) -> tuple[bool, bool, bool, int]:
        """Return whether a character is in a heading, cited, near a passage cited, and the heat of its match."""
        heading, cited, near, *heats = self._open[bisect_right(self.places, place) - 1]
        return heading > 0, cited > 0, near > 0, max((heat for heat, n in enumerate(heats, start=1) if n), default=0)


def _widen_to_context(text: str, start: int, end: int) -> Span:
    """Widen a span by `CONTEXT` characters on either side, and on to the end of a word."""
    first, last = start - CONTEXT, end + CONTEXT
    begin = text.find(" ", first, start) + 1 or start if first > 0 else 0
    stop = text.rfind(" ", end, last) if last < len(text) else len(text)
    return begin, max(stop, end)


def _cut_runs(text: str, span: Span, marks: Mapping[int, tuple[TextMark, ...]], looks: _Looks) -> Iterator[Run]:
    cuts = sorted({*span, *marks, *looks.between(*span)})
    for begin, end in pairwise(cuts):
        yield Run(text[begin:end], marks.get(begin, ()), *looks.at(begin))
