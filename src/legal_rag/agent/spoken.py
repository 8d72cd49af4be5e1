"""Speakers of cited passages and search hits; quashed reasoning is never shown without a warning."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from legal_rag.citations.checks import Citation
from legal_rag.citations.markers import format_marker
from legal_rag.law.tree import Paragraph, section_titles
from legal_rag.library.library import Library
from legal_rag.library.outlines import Outline, passages_in, whole_outline_of
from legal_rag.retriever.retriever import SearchHit

ANSWER_CHARS = 400  # of the court's answer to reasoning that it quashes
STRETCHES = 6  # shown of a passage


def located(citations: Iterable[Citation], corpus: Library) -> list[Citation]:
    """Complete citations with their section and the speaker of most of their characters."""
    outline = cache(lambda doc_id: whole_outline_of(corpus, doc_id))
    return [_located(citation, outline(citation.doc_id)) for citation in citations]


def _located(citation: Citation, outline: Outline) -> Citation:
    start, end = citation.char_start, citation.char_end
    inside = [passage for passage in outline.passages if passage.start < end and start < passage.end]
    if not inside:
        return citation
    most = max(inside, key=lambda passage: min(passage.end, end) - max(passage.start, start))
    sections = section_titles(outline.tree, max(start, most.start))
    censured = any(passage.censured for passage in inside)
    return citation._replace(speaker=most.speaker, censured=censured, section=sections)


def warning_of_censured(citations: Sequence[Citation], corpus: Library) -> str | None:
    """Warn in French of citations that quote quashed reasoning, with the court's answer; None without any."""
    warnings = [_warning(cited, corpus) for cited in dict.fromkeys(citations) if cited.censured and cited.holds]
    return " ".join(warnings) or None


def _warning(citation: Citation, corpus: Library) -> str:
    marker = format_marker(*citation[:3])
    quashed = f"Attention : {marker} cite la décision attaquée, que la juridiction censure sur ce point."
    passages = whole_outline_of(corpus, citation.doc_id).passages
    answer = answer_to_quashed(citation.char_start, corpus.document(citation.doc_id).content, passages)
    if answer is None:
        return quashed
    return f"{quashed} Elle répond : {answer.in_french} {format_marker(citation.doc_id, *answer[:2])}"


def answer_to_quashed(start: int, content: str, passages: Iterable[Paragraph]) -> "CourtAnswer | None":
    """Return the court's first words after the quashed reasoning at `start` in a document; None if there are none."""
    after = (paragraph for paragraph in passages if paragraph.start >= start and not paragraph.censured)
    answer = next((paragraph for paragraph in after if paragraph.speaker == "court"), None)
    if answer is None:
        return None
    end = answer.end
    if end - answer.start > ANSWER_CHARS:
        end = content.rfind(" ", answer.start, answer.start + ANSWER_CHARS)
    return CourtAnswer(answer.start, end, " ".join(content[answer.start : end].split()), end < answer.end)


class CourtAnswer(NamedTuple):
    """The court's answer to reasoning that it quashes."""

    char_start: int
    char_end: int
    quote: str  # on one line
    cut: bool

    @property
    def in_french(self) -> str:
        """The quotation between guillemets, with its cut."""
        return f"« {self.quote} »{' […]' * self.cut}"


def spoken_in(hit: SearchHit, corpus: Library) -> str:
    """Write who speaks where in a search hit, for a model; '' for a text other than a decision."""
    spoken = [part for part in passages_in(corpus, hit.doc_id, hit.char_start, hit.char_end) if part.said.in_french]
    shown = [f"{part.char_start}-{part.char_end} {part.said.in_french}" for part in spoken[:STRETCHES]]
    return f"Qui parle : {' ; '.join(shown)}{' ; …' * (len(spoken) > STRETCHES)}" if shown else ""
