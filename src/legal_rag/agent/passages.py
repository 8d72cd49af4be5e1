"""The passages that answer a question, who speaks in those cited, and which of their words match which of the question.

Reasoning that the court quashes is never shown without a warning.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import groupby, islice, zip_longest
from typing import NamedTuple

import numpy as np

from legal_rag.agent.prediction import Passage, TokenMatch
from legal_rag.base.text import Span
from legal_rag.citations.checks import Citation
from legal_rag.citations.markers import format_marker
from legal_rag.corpus.documents import Document
from legal_rag.encoder.encoder import Encoder, TokenVectors
from legal_rag.law.parts import cues, is_formula, read_paragraphs
from legal_rag.law.sentences import cut_at_blanks, split_sentences, without_blanks
from legal_rag.law.tree import Paragraph, PartKind, Speaker, section_titles
from legal_rag.library.bm25 import LexicalIndex, lexical_words
from legal_rag.library.library import Library
from legal_rag.library.outlines import Outline, whole_outline_of
from legal_rag.retriever.ranking import WORD
from legal_rag.retriever.retriever import EncodedQuery, Retriever, SearchHit

SURROUNDINGS = 200  # characters shown on either side of a passage or citation
BEST_MATCHED = 3  # passages whose words are matched with the question's
WINDOW_CHARS = 1500  # about 400 tokens: read at once of a passage that is longer than the encoder reads
MAX_WINDOWS = 4  # of one passage: in an imported index, one may be a whole decision
THREADS = 2  # an encoder reads one text at a time, on one core
ANSWER_CHARS = 400  # of the court's answer to reasoning that it quashes
RUN_CHARS, PASSAGE_CHARS = 600, 900  # of a run of sentences; of a sentence or a paragraph that is not cut
JOINED_CHARS = 1200  # of neighbouring passages quoted as one
BETWEEN_CHARS = 5  # blank lines, at most, between neighbours
LEAST_CHARS = 60  # of a passage: shorter ones are headings
# How much lower than the first's a further passage's weight may be: at most; beside one that is quoted; of the first
# one's document, if its score is `AHEAD` of all others; else. The share of the question's words that it holds adds to
# the last three. Chosen on passages of the client's questions in view, as a reader marked them.
MARGIN = 2.0
ADJOINING, FROM_FIRST, ELSEWHERE = 1.5, 1.0, -1.5
AHEAD, OF_WORDS = 0.6, 12.0
_ENDS = ".;:!?»)…"  # of a sentence or an item of a list
_HOLDS_THAT = re.compile(rf"\b{cues('holds_that')}\b", re.IGNORECASE)
_RULE = re.compile(cues("states_rule"), re.IGNORECASE)

# Weights of a passage's features, in standard deviations of its nearness to the question: a logistic regression of
# whether a passage overlaps the expected answer, fitted by benchmarks/passages.py.
NEARNESS = 1.0
OF_SPEAKER: dict[Speaker | None, float] = {"court": 1.0, "party": -0.65, "lower_court": -0.3, "text": 0.2, None: -0.3}
OF_PART: dict[PartKind | None, float] = {
    "header": 0.0, "statement": -0.3, "claims": 0.0, "reasons": 0.6, "ruling": -0.15, "annex": -0.15, None: 0.0,
}  # fmt: skip
STATES_RULE, LATE_IN_REASONS = 0.65, 0.35
LAST = -100.0  # not fitted: quashed reasoning, formulas and headings are quoted only where there is nothing else


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

    A document is its text, and its token vectors with offsets in it: passages without any come last. `zones` are those
    of `read_paragraphs`. Weights are comparable across documents.
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
    weighed: Sequence[Sequence[WeighedPassage]],
    scores: Sequence[float],
    most: int,
    chars: int,
    coverage: Callable[[int, WeighedPassage], float] | None = None,
) -> list[tuple[int, WeighedPassage]]:
    """Choose the passages to quote: the one with the highest weight, then those that are as surely on the question.

    A passage's weight is lowered by the gap between its document's score and the best one. The first is quoted with the
    neighbouring paragraph of the court's that is worth most, such as the rule that it applies. What answers nothing is
    not chosen, unless there is nothing else.

    Args:
        weighed: The passages of each document, best first.
        scores: Of the documents for the question, in standard deviations, as hybrid search gives them.
        most: Passages.
        chars: Of all passages together; the first is chosen in any case.
        coverage: What share of the question's words a passage of a document holds, 0 to 1. Without it, all passages
            that answer something may be chosen, and none but the first is joined with its neighbours.

    Returns:
        Passages with the numbers of their documents, from 0; those of one document do not overlap.
    """
    best = max(scores, default=0.0)
    ranked = [(passage.weight - best + scores[n], n, passage) for n, group in enumerate(weighed) for passage in group]
    ranked.sort(key=lambda other: (-other[0], other[1], other[2].start))
    if not ranked:
        return []
    _, first, passage = ranked[0]
    joined = _with_neighbour(passage, weighed[first])
    chosen = [(first, joined if joined.end - joined.start <= chars else passage)]
    is_ahead = all(scores[first] - score >= AHEAD for n, score in enumerate(scores) if n != first)
    for lag, share, n, other in _further(ranked, coverage):
        is_apart = all(n != m or other.end <= c.start or c.end <= other.start for m, c in chosen)
        if not is_apart or sum(c.end - c.start for _, c in chosen) + other.end - other.start > chars:
            continue
        beside = [at for at, (m, c) in enumerate(chosen) if n == m and _are_neighbours(c, other, JOINED_CHARS)]
        usual = ADJOINING if beside else FROM_FIRST if n == first and is_ahead else ELSEWHERE
        if coverage and lag > usual + OF_WORDS * share:
            continue
        if coverage and beside:
            chosen[beside[0]] = n, _joined(chosen[beside[0]][1], other)
        elif len(chosen) < most:
            chosen.append((n, other))
    return chosen


def _further(
    ranked: Sequence[tuple[float, int, WeighedPassage]], coverage: Callable[[int, WeighedPassage], float] | None
) -> list[tuple[float, float, int, WeighedPassage]]:
    """Return how far each passage is behind the first and what share of the question's words it holds, best first."""
    lags = [(ranked[0][0] - worth, n, other) for worth, n, other in ranked[1:] if worth > LAST / 2]
    if coverage is None:
        return [(lag, 0.0, n, other) for lag, n, other in lags]
    held = [(lag, coverage(n, other), n, other) for lag, n, other in lags if lag <= MARGIN]
    return sorted(held, key=lambda entry: entry[0] - entry[1])


def _with_neighbour(passage: WeighedPassage, others: Iterable[WeighedPassage]) -> WeighedPassage:
    """Join a passage with the one next to it that is worth most and nearly as much: a rule with its application."""
    near = [
        other
        for other in others
        if other.weight >= passage.weight - MARGIN and _are_neighbours(passage, other, PASSAGE_CHARS)
    ]
    return _joined(passage, max(near, key=lambda other: other.weight)) if near else passage


def _joined(passage: WeighedPassage, other: WeighedPassage) -> WeighedPassage:
    first, last = sorted((passage, other))
    longest = max(first, last, key=lambda part: part.end - part.start).paragraph
    around = longest._replace(start=first.paragraph.start, end=last.paragraph.end)
    return WeighedPassage(first.start, last.end, around, passage.weight)


def _are_neighbours(passage: WeighedPassage, other: WeighedPassage, chars: int) -> bool:
    """Could two passages be quoted as one of so many characters at most?"""
    first, last = sorted((passage, other))
    is_next = 0 <= last.start - first.end <= BETWEEN_CHARS and last.end - first.start <= chars
    is_one_part = passage.paragraph.part == other.paragraph.part
    return is_next and is_one_part and all(each.paragraph.speaker in ("court", "text") for each in (passage, other))


def word_coverage(question: str, lexical: LexicalIndex) -> Callable[[str], float]:
    """Return what share of a question's words a text holds, 0 to 1, by stems and inverse document frequency."""
    words = [(set(lexical_words(word)), lexical.rarity(word)) for word in WORD.findall(question)]
    total = sum(rarity for _, rarity in words) or 1.0

    def share(text: str) -> float:
        stems = set(lexical_words(text))
        return sum(rarity for forms, rarity in words if forms & stems) / total

    return share


def deviations(hits: Sequence[SearchHit], retriever: Retriever) -> list[float]:
    """Return the hits' scores in standard deviations: those of hybrid search are, else each rank counts as one."""
    return [hit.score if retriever.default_mode == "hybrid" else -float(hit.rank) for hit in hits]


def is_cut(content: str, passage: WeighedPassage) -> tuple[bool, bool]:
    """Return whether a passage begins, and whether it ends, within a paragraph or a sentence broken over lines."""
    start, end, paragraph, _ = passage
    before, text = content[:start].rstrip()[-1:], content[start:end]
    begins = start == paragraph.start and not (text[:1].islower() and before not in _ENDS)
    return not begins, end != paragraph.end or text[-1:] not in _ENDS


def _sentence_candidates(content: str, zones: object) -> Iterator[tuple[Span, Paragraph, float]]:
    for _, group in groupby(read_paragraphs(content, zones), key=lambda paragraph: paragraph.part):
        paragraphs = list(_unbroken(content, group))
        for number, paragraph in enumerate(paragraphs):
            for span in sentence_runs(content, paragraph.start, paragraph.end):
                yield span, paragraph, number / len(paragraphs)


def _unbroken(content: str, paragraphs: Iterable[Paragraph]) -> Iterator[Paragraph]:
    """Join the lines of one speaker over which a sentence is broken."""
    last: Paragraph | None = None
    for paragraph in paragraphs:
        if last and last[2:] == paragraph[2:] and _is_broken(content, last.end, paragraph.start):
            last = last._replace(end=paragraph.end)
            continue
        if last:
            yield last
        last = paragraph
    if last:
        yield last


def _is_broken(content: str, end: int, start: int) -> bool:
    return content[start].islower() and content[end - 1] not in _ENDS


def sentence_runs(content: str, start: int, end: int) -> Iterator[Span]:
    """Yield, from each sentence on, the longest run of whole sentences within `RUN_CHARS`.

    What has at most `PASSAGE_CHARS` is whole; a longer sentence is cut before the words in which it states its rule.
    """
    if end - start <= PASSAGE_CHARS:
        yield start, end
        return
    text = content[start:end]
    sentences: list[Span] = []
    for first, last in without_blanks(text, split_sentences(text)):
        is_broken = sentences and _is_broken(text, sentences[-1][1] - start, first)
        before = sentences.pop()[0] if is_broken else start + first
        sentences.append((before, start + last))
    ends = [last for _, last in sentences]
    for number, (first, last) in enumerate(sentences):
        run = bisect_right(ends, first + RUN_CHARS) - 1
        if run >= number:
            yield first, ends[run]
        else:
            yield from _cut_long(content, first, last)
        if run == len(ends) - 1:
            return


def _cut_long(content: str, start: int, end: int) -> Iterator[Span]:
    """Yield a sentence; if it is too long, what follows from where it says what is held, or else its pieces."""
    held = [start, *(match.start() for match in _HOLDS_THAT.finditer(content, start + 1, end))]
    spans = [(first, end) for first in held if end - first <= PASSAGE_CHARS]
    while not spans or spans[-1][1] < end:
        first = spans[-1][1] if spans else start
        spans.append((first, _end_within(content, first, end)))
    yield from without_blanks(content, spans)


def _end_within(content: str, start: int, end: int) -> int:
    """Return the end of a sentence, or of the last clause or word within `PASSAGE_CHARS`."""
    most = start + PASSAGE_CHARS
    if end <= most:
        return end
    return content.rfind(",", start + RUN_CHARS, most) + 1 or content.rfind(" ", start + 1, most) + 1 or most


def _mean_maxsim(question: TokenVectors, read: TokenVectors, spans: Sequence[Span]) -> np.ndarray:
    """Return for each span the mean over the question's tokens of the best cosine in it; NaN without tokens."""
    asked = question.vectors[question.offsets[:, 0] < question.offsets[:, 1]]
    in_text = read.offsets[:, 0] < read.offsets[:, 1]
    offsets, cosines = read.offsets[in_text], read.vectors[in_text] @ asked.T
    bounds = np.searchsorted(offsets[:, 0], np.array(spans, dtype=np.int64).reshape(-1, 2))
    if not len(bounds):
        return np.empty(0)
    none = np.full((1, len(asked)), -np.inf, dtype=cosines.dtype)  # a span may end with the last token
    best = np.maximum.reduceat(np.concatenate([cosines, none]), bounds.ravel(), axis=0)[::2]
    return np.where(bounds[:, 0] < bounds[:, 1], best.mean(axis=1), np.nan)


def _standardised(values: np.ndarray) -> np.ndarray:
    known = values[~np.isnan(values)]
    if not len(known):
        return np.zeros(len(values))
    return np.nan_to_num((values - known.mean()) / (known.std() + 1e-9), nan=-5.0)


def _worth(text: str, paragraph: Paragraph, place: float) -> float:
    if paragraph.censured or len(text) < LEAST_CHARS or is_formula(text):
        return LAST
    worth = OF_SPEAKER[paragraph.speaker] + OF_PART[paragraph.part] + STATES_RULE * bool(_RULE.search(text))
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


def warning_of_fallen(fates: Mapping[str, str], corpus: Library) -> str | None:
    """Warn in French of decisions that later ones quashed or reversed, by id; None without any."""
    warnings = [
        f"Attention : {corpus.document(doc_id).citation.plain} a été {fate}." for doc_id, fate in fates.items() if fate
    ]
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


class WordVectors(NamedTuple):
    """Token vectors grouped by the words of their text."""

    vectors: np.ndarray  # (n_tokens, dim): the tokens that belong to words
    first: np.ndarray  # (n_words,): the row of each word's first token
    spans: list[Span]  # of each word


def complete_evidence(
    passages: Sequence[Passage],
    citations: Sequence[Citation],
    corpus: Library,
    query: EncodedQuery | None = None,
    encoder: Encoder | None = None,
) -> list[Passage]:
    """Add the surroundings of the passages found, the passages that were only cited, and word matches.

    Encoding a passage takes half a second on one core, so only the passages that readers look at are matched.
    They are the `BEST_MATCHED` ones and those that are cited; without a query and its encoder, none is.

    Returns:
        By score, then the passages that were cited but not found. A passage of a document that is gone or has changed
        is left unchanged; citations of such documents, or of no text, add none.
    """
    shown = sorted(passages, key=lambda passage: (passage.score is None, -(passage.score or 0.0)))
    shown = [_surrounded(passage, corpus) for passage in shown]
    matched = [n for n, passage in enumerate(shown) if n < BEST_MATCHED or any(map(passage.is_cited_by, citations))]
    for citation in citations:
        shown += _passages_of_uncited(citation, shown, corpus)
    if query is None or encoder is None:
        return shown
    matches = match_words(query, [shown[number].text for number in matched], corpus, encoder)
    for number, in_passage in zip(matched, matches, strict=True):
        passage = shown[number]
        shown[number] = passage._replace(matches=tuple(_moved(match, passage.char_start) for match in in_passage))
    return shown


def match_words(query: EncodedQuery, texts: Sequence[str], corpus: Library, encoder: Encoder) -> list[list[TokenMatch]]:
    """Find the most similar word of each text for each word of a question, in the question's order.

    A text longer than the encoder reads is read in windows, up to 6,000 characters. Words that the corpus's lexical
    index does not hold are left out; offsets are those of the text.
    """
    if not texts:
        return []
    lexical = corpus.lexical_index()
    asked = _per_word(query.text, *query.tokens, lambda word: lexical is None or lexical.rarity(word) > 0)
    parts = [(number, *part) for number, text in enumerate(texts) for part in _cut_windows(text, encoder)]
    with ThreadPoolExecutor(THREADS, thread_name_prefix="encode") as threads:
        encoded = list(threads.map(encoder.encode_with_offsets, [text for _, _, text in parts]))
    by_text: list[list[list[TokenMatch]]] = [[] for _ in texts]
    for (number, start, text), tokens in zip(parts, encoded, strict=True):
        by_text[number].append([_moved(match, start) for match in _nearest_words(asked, _per_word(text, *tokens))])
    # The best match of each word of the question over the parts of a text.
    of_words = [zip(*filter(None, of_parts), strict=True) for of_parts in by_text]
    return [[max(matches, key=lambda match: match.similarity) for matches in of_text] for of_text in of_words]


def _surrounded(passage: Passage, corpus: Library) -> Passage:
    document = _document_or_none(passage.doc_id, corpus)
    start, end = passage.char_start, passage.char_end
    if document is None or document.content[start:end] != passage.text:
        return passage
    before, after = _surroundings_of(document.content, start, end)
    return passage._replace(before=before, after=after)


def _passages_of_uncited(citation: Citation, shown: Sequence[Passage], corpus: Library) -> Iterator[Passage]:
    """Yield the passage of a citation, unless one already shows it with its surroundings."""
    document = _document_or_none(citation.doc_id, corpus)
    start, end = citation.char_start, citation.char_end
    if document is None or not 0 <= start < end <= len(document.content):
        return
    content = document.content
    first, last = max(0, start - SURROUNDINGS), min(len(content), end + SURROUNDINGS)
    for passage in shown:
        shows = passage.char_start - len(passage.before) <= first and last <= passage.char_end + len(passage.after)
        if passage.doc_id == citation.doc_id and shows:
            return
    text, around = content[start:end], _surroundings_of(content, start, end)
    yield Passage(document.id, "", start, end, text, None, document.title, document.decision_date, *around)


def _document_or_none(doc_id: str, corpus: Library) -> Document | None:
    try:
        return corpus.document(doc_id)
    except (LookupError, UnicodeError):  # an id may hold half a surrogate pair, which no store takes
        return None


def _surroundings_of(content: str, start: int, end: int) -> tuple[str, str]:
    return content[max(0, start - SURROUNDINGS) : start], content[end : end + SURROUNDINGS]


def _cut_windows(text: str, encoder: Encoder) -> list[tuple[int, str]]:
    """Return the whole text, or its first windows, cut between words, each with its offset."""
    if len(text) <= WINDOW_CHARS or encoder.count_tokens([text])[0] <= encoder.identity.document_length:
        return [(0, text)]
    windows = islice(cut_at_blanks(text, 0, len(text), WINDOW_CHARS), MAX_WINDOWS)
    return [(start, text[start:end]) for start, end in windows]


def _per_word(
    text: str, vectors: np.ndarray, offsets: np.ndarray, counts: Callable[[str], bool] = lambda word: True
) -> WordVectors:
    """Group a text's token vectors (n_tokens, dim) by words, with the tokens' character offsets (n_tokens, 2).

    Tokens outside words are left out: punctuation, special tokens, expansion. `counts` selects the words kept.
    """
    spans = [match.span() for match in WORD.finditer(text) if counts(match.group())]
    bounds = np.array(spans, dtype=np.int64).reshape(-1, 2)
    # The first word that ends after a token begins: its own, if it begins before the token ends.
    word = np.searchsorted(bounds[:, 1], offsets[:, 0], side="right")
    near = np.minimum(word, max(len(spans) - 1, 0))
    inside = (word < len(spans)) & (offsets[:, 0] < offsets[:, 1])
    inside[inside] = bounds[near[inside], 0] < offsets[inside, 1]
    order = np.flatnonzero(inside)[np.argsort(word[inside], kind="stable")]
    present, first = np.unique(word[order], return_index=True)
    return WordVectors(vectors[order], first, [spans[number] for number in present])


def _nearest_words(asked: WordVectors, read: WordVectors) -> list[TokenMatch]:
    """Match each word of the question with the most similar word of the text, by mean over its tokens."""
    if not asked.spans or not read.spans:
        return []
    cosines = asked.vectors @ read.vectors.T
    best_piece = np.maximum.reduceat(cosines, read.first, axis=1)  # (n_query_tokens, n_words)
    pieces = np.diff([*asked.first, len(asked.vectors)])
    means = np.add.reduceat(best_piece, asked.first, axis=0) / pieces[:, None]
    nearest = means.argmax(axis=1)
    best = np.clip(means.max(axis=1), -1.0, 1.0)
    spans = [read.spans[word] for word in nearest]
    return [
        TokenMatch(query_start, query_end, start, end, similarity)
        for (query_start, query_end), (start, end), similarity in zip(asked.spans, spans, best.tolist(), strict=True)
    ]


def _moved(match: TokenMatch, by: int) -> TokenMatch:
    return match._replace(char_start=match.char_start + by, char_end=match.char_end + by)
