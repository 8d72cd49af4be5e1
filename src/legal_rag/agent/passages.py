"""The passages of a decision that answer a question: nearest in meaning, and said by the court itself."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from legal_rag.corpus.folding import Span
from legal_rag.corpus.sentences import split_sentences, without_blanks
from legal_rag.corpus.structure.cues import cues
from legal_rag.corpus.structure.speakers import read_paragraphs
from legal_rag.corpus.structure.tree import Paragraph, PartKind, Speaker
from legal_rag.encoder.encoder import TokenVectors

PASSAGE_CHARS = 600  # of a passage, whole sentences of one paragraph
_RULE = re.compile(cues("states_rule"), re.IGNORECASE)

# What a passage is worth besides its nearness to the question, in standard deviations of that: a logistic regression of
# whether a passage overlaps the expected answer, fitted by benchmarks/passages.py.
NEARNESS = 1.0
OF_SPEAKER: dict[Speaker | None, float] = {"court": 1.0, "party": -0.65, "lower_court": -0.3, "text": 0.2, None: -0.3}
OF_PART: dict[PartKind | None, float] = {
    "header": 0.0, "statement": -0.3, "claims": 0.0, "reasons": 0.6, "ruling": -0.15, "annex": -0.15, None: 0.0,
}  # fmt: skip
STATES_RULE, LATE_IN_REASONS = 0.65, 0.35
CENSURED = -1.0  # not fitted, examples are too few: what the court quashes is no answer


class WeighedPassage(NamedTuple):
    """A passage of a document, with what it is worth as an answer."""

    start: int  # characters of the document
    end: int
    paragraph: Paragraph
    weight: float  # the higher, the better; compares passages of one document


def weigh_passages(question: TokenVectors, content: str, read: TokenVectors) -> list[WeighedPassage]:
    """Weigh every run of whole sentences of a document's paragraphs as the answer to a question, best first.

    Args:
        question: Its token vectors.
        content: The document's text.
        read: The document's token vectors, with offsets in `content`; passages without any come last.
    """
    candidates = list(_candidates(content))
    if not candidates:
        return []
    nearness = _standardised(_mean_maxsim(question, read, [span for span, _, _ in candidates]))
    weighed = [
        WeighedPassage(*span, paragraph, NEARNESS * near + _worth(content[slice(*span)], paragraph, place))
        for (span, paragraph, place), near in zip(candidates, nearness.tolist(), strict=True)
    ]
    return sorted(weighed, key=lambda one: (-one.weight, one.start))


def best_passage(question: TokenVectors, content: str, read: TokenVectors) -> WeighedPassage | None:
    """Return the best passage of a document that is not quashed reasoning, unless it has no other; None if blank."""
    weighed = weigh_passages(question, content, read)
    return next((one for one in weighed if not one.paragraph.censured), weighed[0] if weighed else None)


def best_apart(weighed: Sequence[WeighedPassage], most: int, chars: int) -> list[WeighedPassage]:
    """Return the best passages that do not overlap, at most `most`, and `chars` characters in all."""
    chosen: list[WeighedPassage] = []
    for one in weighed:
        is_apart = all(one.end <= other.start or other.end <= one.start for other in chosen)
        if is_apart and len(chosen) < most and sum(o.end - o.start for o in chosen) + one.end - one.start <= chars:
            chosen.append(one)
    return chosen


def _candidates(content: str) -> Iterator[tuple[Span, Paragraph, float]]:
    """Yield spans with their paragraph and its place in its part, from 0 to 1."""
    for _, group in groupby(read_paragraphs(content), key=lambda one: one.part):
        paragraphs = list(group)
        for number, paragraph in enumerate(paragraphs):
            for span in _sentence_runs(content, paragraph.start, paragraph.end):
                yield span, paragraph, number / len(paragraphs)


def _sentence_runs(content: str, start: int, end: int) -> Iterator[Span]:
    """Yield, from each sentence on, the longest run of whole sentences within `PASSAGE_CHARS`."""
    if end - start <= PASSAGE_CHARS:
        yield start, end
        return
    text = content[start:end]
    sentences = [(start + first, start + last) for first, last in without_blanks(text, split_sentences(text))]
    for number, (first, last) in enumerate(sentences):
        ends = [end for _, end in sentences[number:] if end - first <= PASSAGE_CHARS]
        if ends:
            yield first, ends[-1]
        else:
            yield first, min(last, content.rfind(" ", first, first + PASSAGE_CHARS))
        if ends and ends[-1] == sentences[-1][1]:
            return


def _mean_maxsim(question: TokenVectors, read: TokenVectors, spans: Sequence[Span]) -> np.ndarray:
    """Return for each span the mean over the question's tokens of the best cosine in it; NaN without tokens."""
    asked = question.vectors[question.offsets[:, 0] < question.offsets[:, 1]]
    own = read.offsets[:, 0] < read.offsets[:, 1]
    offsets, cosines = read.offsets[own], asked @ read.vectors[own].T
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
    return worth + (LATE_IN_REASONS * place if paragraph.part == "reasons" else 0.0)
