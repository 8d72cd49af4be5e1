"""The passages of a decision that answer a question, and who speaks in those that are cited or found.

Reasoning that the court quashes is never shown without a warning.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby, zip_longest
from typing import NamedTuple

import numpy as np

from legal_rag.base.text import Span
from legal_rag.citations.checks import Citation
from legal_rag.citations.markers import format_marker
from legal_rag.encoder.encoder import TokenVectors
from legal_rag.law.parts import cues, read_paragraphs
from legal_rag.law.sentences import cut_at_blanks, split_sentences, without_blanks
from legal_rag.law.tree import Paragraph, PartKind, Speaker, section_titles
from legal_rag.library.library import Library
from legal_rag.library.outlines import Outline, passages_in, whole_outline_of
from legal_rag.retriever.retriever import SearchHit

ANSWER_CHARS = 400  # of the court's answer to reasoning that it quashes
STRETCHES = 6  # shown of a passage
PASSAGE_CHARS = 600  # of a passage, whole sentences of one paragraph
LEAST_CHARS = 60  # of a passage after the first: shorter ones are headings
# A further passage is quoted if its weight is at most this much lower than the first's; by benchmarks/answers.py.
MARGIN = 1.0
_ENDS = ".;:!?»)…"  # of a sentence or an item of a list
_RULE = re.compile(cues("states_rule"), re.IGNORECASE)

# Weights of a passage's features, in standard deviations of its nearness to the question: a logistic regression of
# whether a passage overlaps the expected answer, fitted by benchmarks/passages.py.
NEARNESS = 1.0
OF_SPEAKER: dict[Speaker | None, float] = {"court": 1.0, "party": -0.65, "lower_court": -0.3, "text": 0.2, None: -0.3}
OF_PART: dict[PartKind | None, float] = {
    "header": 0.0, "statement": -0.3, "claims": 0.0, "reasons": 0.6, "ruling": -0.15, "annex": -0.15, None: 0.0,
}  # fmt: skip
STATES_RULE, LATE_IN_REASONS = 0.65, 0.35
CENSURED, FORMULA = -1.0, -1.0  # not fitted: quashed reasoning and formulas answer nothing
_FORMULA = re.compile(  # "En statuant ainsi, la cour d'appel a violé le texte susvisé", without a reason
    r"\W*(?:\d+\s?\.\s)?(?:(?:Qu['’])?en (?:statuant|se déterminant) ainsi(?!.{0,40}(?:alors|sans))|casse et annule)",
    re.IGNORECASE,
)


class WeighedPassage(NamedTuple):
    """A passage of a document with its weight as an answer."""

    start: int  # characters of the document
    end: int
    paragraph: Paragraph
    weight: float  # the higher, the better; compares passages weighed together


def weigh_documents(
    question: TokenVectors, documents: Sequence[tuple[str, TokenVectors]], zones: Sequence[object] = ()
) -> list[list[WeighedPassage]]:
    """Weigh every run of whole sentences of documents' paragraphs as the answer to a question, best first.

    Args:
        question: Its token vectors.
        documents: Each one's text, and its token vectors with offsets in it; passages without any come last.
        zones: Of each document, see `read_paragraphs`; none by default.

    Returns:
        For each document, its passages; weights are comparable across documents.
    """
    candidates = [list(_sentence_candidates(content, of)) for (content, _), of in zip_longest(documents, zones)]
    near = [
        _mean_maxsim(question, read, [span for span, _, _ in rows])
        for (_, read), rows in zip(documents, candidates, strict=True)
    ]
    nearness = iter(_standardised(np.concatenate([np.empty(0), *near])).tolist())
    weighed = [
        [
            WeighedPassage(
                *span, paragraph, NEARNESS * next(nearness) + _worth(content[slice(*span)], paragraph, place)
            )
            for span, paragraph, place in rows
        ]
        for (content, _), rows in zip(documents, candidates, strict=True)
    ]
    return [sorted(passages, key=lambda passage: (-passage.weight, passage.start)) for passages in weighed]


def choose_passages(
    weighed: Sequence[Sequence[WeighedPassage]], scores: Sequence[float], most: int, chars: int
) -> list[tuple[int, WeighedPassage]]:
    """Choose the passages to quote: the one with the highest weight, then those within `MARGIN` of it.

    A passage's weight is lowered by the gap between its document's score and the best one. Reasoning that the court
    quashes is not chosen, unless there is nothing else.

    Args:
        weighed: The passages of each document, best first.
        scores: Of the documents for the question, in standard deviations, as hybrid search gives them.
        most: Passages.
        chars: Of all passages together; the first is chosen in any case.

    Returns:
        Passages with the numbers of their documents, from 0; those of one document do not overlap.
    """
    best = max(scores, default=0.0)
    ranked = [(passage.weight - best + scores[n], n, passage) for n, group in enumerate(weighed) for passage in group]
    ranked.sort(key=lambda other: (-other[0], other[1], other[2].start))
    eligible = [entry for entry in ranked if not entry[2].paragraph.censured] or ranked
    chosen: list[tuple[int, WeighedPassage]] = []
    for worth, n, passage in eligible:
        is_worth = worth >= eligible[0][0] - MARGIN and passage.end - passage.start >= LEAST_CHARS
        has_room = len(chosen) < most and sum(c.end - c.start for _, c in chosen) + passage.end - passage.start <= chars
        is_apart = all(n != m or passage.end <= c.start or c.end <= passage.start for m, c in chosen)
        if not chosen or (is_worth and has_room and is_apart):
            chosen.append((n, passage))
    return chosen


def is_cut(content: str, passage: WeighedPassage) -> tuple[bool, bool]:
    """Return whether a passage begins, and whether it ends, within a paragraph or a sentence broken over lines."""
    start, end, paragraph, _ = passage
    before, text = content[:start].rstrip()[-1:], content[start:end]
    begins = start == paragraph.start and not (text[:1].islower() and before not in _ENDS)
    return not begins, end != paragraph.end or text[-1:] not in _ENDS


def _sentence_candidates(content: str, zones: object) -> Iterator[tuple[Span, Paragraph, float]]:
    """Yield spans with their paragraph and its place in its part, from 0 to 1."""
    for _, group in groupby(read_paragraphs(content, zones), key=lambda paragraph: paragraph.part):
        paragraphs = list(group)
        for number, paragraph in enumerate(paragraphs):
            for span in sentence_runs(content, paragraph.start, paragraph.end):
                yield span, paragraph, number / len(paragraphs)


def sentence_runs(content: str, start: int, end: int) -> Iterator[Span]:
    """Yield, from each sentence on, the longest run of whole sentences within `PASSAGE_CHARS`, or its pieces."""
    if end - start <= PASSAGE_CHARS:
        yield start, end
        return
    text = content[start:end]
    sentences = [(start + first, start + last) for first, last in without_blanks(text, split_sentences(text))]
    ends = [last for _, last in sentences]
    for number, (first, last) in enumerate(sentences):
        run = bisect_right(ends, first + PASSAGE_CHARS) - 1
        if run >= number:
            yield first, ends[run]
        else:
            yield from without_blanks(content, cut_at_blanks(content, first, last, PASSAGE_CHARS))
        if run == len(ends) - 1:
            return


def _mean_maxsim(question: TokenVectors, read: TokenVectors, spans: Sequence[Span]) -> np.ndarray:
    """Return for each span the mean over the question's tokens of the best cosine in it; NaN without tokens."""
    asked = question.vectors[question.offsets[:, 0] < question.offsets[:, 1]]
    in_text = read.offsets[:, 0] < read.offsets[:, 1]
    offsets, cosines = read.offsets[in_text], asked @ read.vectors[in_text].T
    first = np.searchsorted(offsets[:, 0], [start for start, _ in spans])
    last = np.searchsorted(offsets[:, 0], [end for _, end in spans])
    return np.array([cosines[:, a:b].max(axis=1).mean() if a < b else np.nan for a, b in zip(first, last, strict=True)])


def _standardised(values: np.ndarray) -> np.ndarray:
    known = values[~np.isnan(values)]
    if not len(known):
        return np.zeros(len(values))
    return np.nan_to_num((values - known.mean()) / (known.std() + 1e-9), nan=-5.0)


def _worth(text: str, paragraph: Paragraph, place: float) -> float:
    worth = OF_SPEAKER[paragraph.speaker] + OF_PART[paragraph.part]
    worth += CENSURED * paragraph.censured + STATES_RULE * bool(_RULE.search(text))
    worth += FORMULA * bool(_FORMULA.match(text))
    return worth + (LATE_IN_REASONS * place if paragraph.part == "reasons" else 0.0)


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
