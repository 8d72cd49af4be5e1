"""An answer's text as HTML: paragraphs, lists and bold, each citation a numbered button, analysis marked apart.

In: the answer, and the number of the passage that each marker stands for. Out: markup in which everything that the
answer says is escaped.

What a model writes is read as a small part of Markdown: paragraphs, headings, lists, quotations, tables, bold, italics.
Links, images and HTML stay text. Passages quoted word for word are no Markdown: their asterisks are their own.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from legal_rag.citations import Citation
from legal_rag.report_markers import BREAK, PLACE, Note, marker_button, with_places
from legal_rag.sentences import split_sentences

if TYPE_CHECKING:
    from markdown_it.token import Token

Span = tuple[int, int]  # characters: start, end

ANALYSIS = re.compile(r"\[\s*Analys(?:e|is)\s*\]", re.IGNORECASE)
GUILLEMETS = re.compile("[«»]")
LINE_BREAKS = re.compile(r"[^\S\n]*\n\s*")
# How answers made of passages alone name a passage and quote it; see `legal_rag.evidence`.
QUOTED_PASSAGE = re.compile(r"(\d{1,4}\. [^\n]+)\n(«.*)", re.DOTALL)
TAGS = frozenset("p h1 h2 h3 h4 h5 h6 ul ol li blockquote table thead tbody tr th td strong em".split())
RULES = ("heading", "list", "blockquote", "hr", "table", "emphasis", "newline", "escape")
MOST_MARKDOWN = 50_000  # characters; what is longer is no model's answer, and is shown as it stands


def answer_html(text: str, citations: Sequence[Citation], notes: Sequence[Note], *, markdown: bool) -> Markup:
    """Write an answer as HTML.

    Args:
        text: The answer, with its markers.
        citations: In the order of their markers.
        notes: Their numbers.
        markdown: Whether a model wrote the text, so that its marks are Markdown.
    """
    placed = with_places(text, citations, notes)
    for quote in dict.fromkeys(one.quote for one in citations if "\n" in one.quote):
        placed = placed.replace(quote, _on_one_line(quote))
    placed = _quotations_on_one_line(placed)
    writer = _Writer({note.number: note for note in notes})
    blocks = writer.blocks(placed) if markdown and len(placed) <= MOST_MARKDOWN else writer.paragraphs(placed)
    return Markup("").join(blocks)


def _quotations_on_one_line(text: str) -> str:
    """Keep quotations, the outermost ones, from being cut into paragraphs and lists; one never closed stays."""
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
        """Write a text as it stands, in paragraphs."""
        for block in re.split(r"\n\s*\n", text.strip()):
            if passage := QUOTED_PASSAGE.fullmatch(block):
                yield Markup("<h3>{}</h3>\n<blockquote>{}</blockquote>\n").format(*map(self._text, passage.groups()))
            else:
                yield Markup("<p>{}</p>\n").format(Markup("").join(self._pieces(block, _analyses(block), 0)))

    def blocks(self, text: str) -> Iterator[Markup]:
        """Write a text that is Markdown."""
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
        """Write a piece of a block, given where it starts in the block's text and what of that text is analysis."""
        done = 0
        for first, last in analyses[bisect_right(analyses, start, key=_end_of) :]:
            begin, end = max(first - start, 0), min(last - start, len(text))
            if begin >= end:
                break
            yield self._text(text[done:begin])
            yield Markup('<span class="analysis">{}</span>').format(self._text(text[begin:end]))
            done = end
        yield self._text(text[done:])

    def _text(self, text: str) -> Markup:
        written, done = [], 0
        for match in PLACE.finditer(text):
            written += [_plain(text[done : match.start()]), marker_button(self._notes[int(match[1])])]
            done = match.end()
        return Markup("").join([*written, _plain(text[done:])])


def _plain(text: str) -> Markup:
    tag = Markup('<span class="tag">Analyse</span>')
    text = text.replace(BREAK, "\n")
    parts = [escape(part).replace("\n", Markup("<br>\n")) for part in ANALYSIS.split(text)]
    return tag.join(parts)


def _analyses(text: str) -> list[Span]:
    """Return the spans of the sentences that are marked as analysis: each from its mark to where it ends."""
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


def _end_of(span: Span) -> int:
    return span[1]


def _tag(token: "Token") -> Markup:
    tag = f"h{min(6, int(token.tag[1]) + 2)}" if token.tag[0] == "h" else token.tag
    first = token.attrGet("start") if token.nesting == 1 and tag == "ol" else None
    start = f' start="{int(first)}"' if first is not None else ""
    return Markup("</{}>" if token.nesting < 0 else "<{}{}>").format(tag, Markup(start))  # noqa: S704 - a number


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("zero", {"html": False, "breaks": True}).enable(list(RULES))
