"""Who speaks in what an answer cites and a tool shows; quashed reasoning is never shown without saying so."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from legal_rag.citations.checks import Citation
from legal_rag.citations.markers import format_marker
from legal_rag.corpus.structure.tree import Paragraph, section_titles
from legal_rag.library.corpus import Corpus
from legal_rag.library.outlines import Outline, passages_in, whole_outline_of
from legal_rag.retriever.retriever import SearchHit

ANSWER_CHARS = 400  # of the court's answer to reasoning that it quashes
STRETCHES = 6  # shown of a passage


def located(citations: Iterable[Citation], corpus: Corpus) -> list[Citation]:
    """Complete citations with the section they stand in and who speaks in most of their characters."""
    outline = cache(lambda doc_id: whole_outline_of(corpus, doc_id))
    return [_located(one, outline(one.doc_id)) for one in citations]


def _located(citation: Citation, outline: Outline) -> Citation:
    start, end = citation.char_start, citation.char_end
    inside = [one for one in outline.passages if one.start < end and start < one.end]
    if not inside:
        return citation
    most = max(inside, key=lambda one: min(one.end, end) - max(one.start, start))
    sections = section_titles(outline.tree, max(start, most.start))
    return citation._replace(speaker=most.speaker, censured=any(one.censured for one in inside), section=sections)


def warning_of_censured(citations: Sequence[Citation], corpus: Corpus) -> str | None:
    """Say in French which citations quote reasoning that the court quashes, and what it answers; None for none."""
    told = [_warning(one, corpus) for one in dict.fromkeys(citations) if one.censured and one.holds]
    return " ".join(told) or None


def _warning(citation: Citation, corpus: Corpus) -> str:
    marker = format_marker(*citation[:3])
    quashed = f"Attention : {marker} cite la décision attaquée, que la juridiction censure sur ce point."
    passages = whole_outline_of(corpus, citation.doc_id).passages
    answer = answer_to_quashed(citation.char_start, corpus.document(citation.doc_id).content, passages)
    if answer is None:
        return quashed
    return f"{quashed} Elle répond : {answer.in_french} {format_marker(citation.doc_id, *answer[:2])}"


def answer_to_quashed(start: int, content: str, passages: Iterable[Paragraph]) -> "CourtAnswer | None":
    """Return the court's first words after the quashed reasoning at `start` in a document; None if there are none."""
    after = (one for one in passages if one.start >= start and not one.censured)
    answer = next((one for one in after if one.speaker == "court"), None)
    if answer is None:
        return None
    end = answer.end
    if end - answer.start > ANSWER_CHARS:
        end = content.rfind(" ", answer.start, answer.start + ANSWER_CHARS)
    return CourtAnswer(answer.start, end, " ".join(content[answer.start : end].split()), end < answer.end)


class CourtAnswer(NamedTuple):
    """What the court answers to reasoning that it quashes."""

    char_start: int
    char_end: int
    quote: str  # on one line
    cut: bool

    @property
    def in_french(self) -> str:
        """The quotation between guillemets, with its cut."""
        return f"« {self.quote} »{' […]' * self.cut}"


def spoken_in(hit: SearchHit, corpus: Corpus) -> str:
    """Write who speaks where in a passage found, for a model; '' of a text that is no decision."""
    said = [one for one in passages_in(corpus, hit.doc_id, hit.char_start, hit.char_end) if one.said.in_french]
    shown = [f"{one.char_start}-{one.char_end} {one.said.in_french}" for one in said[:STRETCHES]]
    return f"Qui parle : {' ; '.join(shown)}{' ; …' * (len(said) > STRETCHES)}" if shown else ""
