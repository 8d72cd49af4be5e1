"""Structured retrieval: entities, sections that a model names in outlines, and chunks, merged on one scale."""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from legal_rag.base.html import displayed
from legal_rag.base.text import Span
from legal_rag.corpus.documents import Document
from legal_rag.extraction.lookup import FoundEntity
from legal_rag.law.sentences import split_sentences
from legal_rag.law.tree import TreeNode, section_titles, walk
from legal_rag.library.filters import Filters
from legal_rag.library.library import STORE, Library
from legal_rag.library.outlines import LEAST_CHARS, count_outlines, outline_of, passages_in
from legal_rag.retriever.ranking import Mode
from legal_rag.retriever.retriever import Retriever, SearchHit

Source = Literal["entity", "tree", "chunk"]

ENTITIES, CHUNKS = 10, 20  # looked at for one question, at least
OUTLINED = 8  # documents whose outlines the model is shown: those of the best chunks, then of the best entities
MAX_NAMED = 50  # chunks of documents that the question names, looked at
RESULT_CHARS = 3000  # of a section; of a longer one its best chunk, else its beginning
OPENING_CHARS = 300  # of a document without an official summary, shown with its outline
UNSAID = ("section", "mechanism")  # attributes that a result's sections and text show
SENTENCE_CHARS = 500  # on either side of an entity, of the sentence it is shown in
# Scores of what each part finds first; below them an entity's follows its likeness, the others their rank.
BEST: dict[Source, float] = {"tree": 0.95, "entity": 0.9, "chunk": 0.8}
NAMED = 1.0  # score of a document that the question names by its number
NEXT_NODE, NEXT_CHUNK = 0.95, 0.85  # a node's or chunk's score, as a share of the one before it
PRECISE = 0.45  # score from which an entity's sentence is shown instead of the chunk around it
SAME = 0.5  # share of the shorter span from which two overlapping spans are one result


@displayed
class DocumentOutline(NamedTuple):
    """A document's outline, as a model is shown it."""

    doc_id: str
    title: str
    tree: TreeNode
    opening: str = ""  # its official summary, or how its text begins
    content: str = ""  # its text, of which sections without a summary are summarised


@displayed
class ChosenNode(NamedTuple):
    """A section that a model names."""

    doc_id: str
    node_id: str
    reason: str = ""


# Names the sections that answer a question, best first; ids that are in no outline are ignored.
Reasoner = Callable[[str, Sequence[DocumentOutline]], Sequence[ChosenNode]]


@displayed
class StructuredResult(NamedTuple):
    """A span of a document that answers a question."""

    doc_id: str
    char_start: int
    char_end: int
    text: str  # content[char_start:char_end]
    score: float  # in [0, 1], comparable across sources within one question
    source: Source  # the part that found this span; others that found it too are named in the reason
    title: str
    sections: tuple[str, ...]  # titles that it lies under, the main part's first
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {**self._asdict(), "sections": list(self.sections)}


@displayed
class Health(NamedTuple):
    """Which parts a provider has; it works with those that are present."""

    entities: bool  # extracted
    outlines: bool  # stored; without them they are made from the text when asked for
    chunks: bool
    model: bool  # configured, whether or not it answers

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the parts that are missing."""
        return tuple(name for name, is_there in self._asdict().items() if not is_there)


@dataclass
class _Candidate:
    doc_id: str
    span: Span
    source: Source
    score: float
    reasons: list[str]
    also: dict[Source, float] = field(default_factory=dict)  # best score of each other part for this span

    @property
    def merged_score(self) -> float:
        """Score that rises with each part that agrees, and stays in [0, 1]."""
        doubt = 1 - self.score
        for score in self.also.values():
            doubt *= 1 - score
        return 1 - doubt


class StructuredProvider:
    """Retrieval by entities, by reasoning over outlines and by chunks; threads may share it."""

    def __init__(self, retriever: Retriever, reasoner: Reasoner | None = None, mode: Mode | None = None) -> None:
        """Combine the parts of a retriever's corpus.

        `reasoner` asks a model, see `legal_rag.agent.outlines`; None skips the outlines. `mode` ranks the chunks, see
        `Retriever.search`.
        """
        self.retriever, self.reasoner, self._mode = retriever, reasoner, mode

    @property
    def corpus(self) -> Library:
        """The corpus searched."""
        return self.retriever.corpus

    def health_check(self) -> Health:
        """Report which parts are present; nothing is loaded, and no model is called."""
        library = self.corpus
        return Health(
            entities=has_entity_words(library),
            outlines=count_outlines(library.path, library.path / STORE) > 0,
            chunks=bool(library.manifest["shards"]),
            model=self.reasoner is not None,
        )

    def retrieve(self, question: str, top_k: int = 5, filters: Filters | None = None) -> list[StructuredResult]:
        """Return the `top_k` spans at most that answer a question best, by all parts that are present.

        Raises:
            ValueError: As `Retriever.search` does.
        """
        if top_k < 1:
            raise ValueError(f"top_k must be at least 1, got {top_k}")
        filters = self.corpus.dated(filters)
        hits = self.retriever.search(question, max(CHUNKS, top_k), mode=self._mode, filters=filters)
        by_entities = self._by_entities(question, max(ENTITIES, top_k), filters)
        doc_ids = [hit.doc_id for hit in hits] + [candidate.doc_id for candidate in by_entities]
        by_outlines = self._by_outlines(question, list(dict.fromkeys(doc_ids))[:OUTLINED], hits, filters)
        candidates = [*by_outlines, *by_entities, *self._by_chunks(question, hits)]
        best = sorted(_merge_results(candidates), key=lambda candidate: -candidate.merged_score)[:top_k]
        return [self._result(candidate) for candidate in best]

    def _by_chunks(self, question: str, hits: Sequence[SearchHit]) -> list[_Candidate]:
        named = self._documents_named(question)
        return [
            _Candidate(
                hit.doc_id,
                (hit.char_start, hit.char_end),
                "chunk",
                NAMED if hit.doc_id in named else BEST["chunk"] * NEXT_CHUNK**place,
                ["texte nommé par la question" if hit.doc_id in named else f"passage proche, rang {hit.rank}"],
            )
            for place, hit in enumerate(hits)
        ]

    def _documents_named(self, question: str) -> set[str]:
        exact = self.corpus.positions_named(question).exact or []
        places = [(shard, int(position)) for shard, positions in enumerate(exact) for position in positions[:MAX_NAMED]]
        return {chunk.doc_id for chunk in self.corpus.chunks_at(places[:MAX_NAMED])}

    def _by_entities(self, question: str, most: int, filters: Filters | None) -> list[_Candidate]:
        candidates = []
        for match in self.corpus.entities_like(question, most, filters):
            found = entity_result(self.corpus, match)
            span = found.char_start, found.char_end
            if self._passes(match.doc_id, span, filters):
                score = BEST["entity"] * match.score
                candidates.append(_Candidate(match.doc_id, span, "entity", score, [found.reason]))
        return candidates

    def _by_outlines(
        self, question: str, doc_ids: Sequence[str], hits: Sequence[SearchHit], filters: Filters | None
    ) -> list[_Candidate]:
        if self.reasoner is None or not doc_ids:
            return []
        documents = {doc_id: self.corpus.document(doc_id) for doc_id in doc_ids}
        trees = {doc_id: outline_of(self.corpus, doc_id) for doc_id in doc_ids}
        outlines = [
            DocumentOutline(of.id, of.title, trees[of.id], of.summary or of.content[:OPENING_CHARS], of.content)
            for of in documents.values()
        ]
        candidates: list[_Candidate] = []
        for chosen in self.reasoner(question, outlines):
            nodes = walk(trees[chosen.doc_id]) if chosen.doc_id in trees else iter(())
            node = next((node for node in nodes if node.node_id == chosen.node_id), None)
            span = _section_span(node, documents[chosen.doc_id], hits) if node is not None else (0, 0)
            if span[0] < span[1] and self._passes(chosen.doc_id, span, filters):
                score = BEST["tree"] * NEXT_NODE ** len(candidates)
                candidates.append(_Candidate(chosen.doc_id, span, "tree", score, [chosen.reason or "section choisie"]))
        return candidates

    def _passes(self, doc_id: str, span: Span, filters: Filters | None) -> bool:
        """Check the filters on passages; those on documents were checked when the document was found."""
        if filters is None or (filters.speaker is None and filters.section is None):
            return True
        return any(
            filters.speaker in (None, passage.said.speaker)
            and filters.section in (None, passage.said.part)
            and passage.char_end - passage.char_start >= min(LEAST_CHARS, passage.said.end - passage.said.start)
            for passage in passages_in(self.corpus, doc_id, *span)
        )

    def _result(self, candidate: _Candidate) -> StructuredResult:
        document, (start, end) = self.corpus.document(candidate.doc_id), candidate.span
        return StructuredResult(
            doc_id=candidate.doc_id,
            char_start=start,
            char_end=end,
            text=document.content[start:end],
            score=round(candidate.merged_score, 4),
            source=candidate.source,
            title=document.title,
            sections=section_titles(outline_of(self.corpus, candidate.doc_id), start),
            reason=" ; ".join(dict.fromkeys(candidate.reasons)),
        )


def entity_result(library: Library, match: FoundEntity) -> StructuredResult:
    """Return the sentence that an entity stands in, with the entity's class and attributes as its reason."""
    document, entity = library.document(match.doc_id), match.entity
    start, end = _sentence_around(document.content, entity["char_start"], entity["char_end"])
    said = {name: value for name, value in entity["attributes"].items() if name not in UNSAID}
    attributes = ", ".join(f"{name} : {value}" for name, value in said.items())
    return StructuredResult(
        doc_id=match.doc_id,
        char_start=start,
        char_end=end,
        text=document.content[start:end],
        score=match.score,
        source="entity",
        title=document.title,
        sections=section_titles(outline_of(library, match.doc_id), start),
        reason=f"{entity['extraction_class']}{f' ({attributes})' if attributes else ''}",
    )


def has_entity_words(library: Library) -> bool:
    """Whether a Library's entities can be found by words."""
    try:
        return library.entity_store is not None
    except (sqlite3.DatabaseError, ValueError):  # damaged, or a later version's
        return False


def _merge_results(candidates: Iterable[_Candidate]) -> list[_Candidate]:
    """Merge overlapping spans into the one with the highest score."""
    kept: dict[str, list[_Candidate]] = {}
    for candidate in sorted(candidates, key=lambda candidate: -candidate.score):
        others = kept.setdefault(candidate.doc_id, [])
        same = next((other for other in others if _is_same(other.span, candidate.span)), None)
        if same is None:
            others.append(candidate)
        elif candidate.source != same.source:
            if (same.source, candidate.source) == ("chunk", "entity") and candidate.score >= PRECISE:
                others.remove(same)
                others.append(candidate)
                same, candidate = candidate, same
            same.also[candidate.source] = max(candidate.score, same.also.get(candidate.source, 0.0))
            same.reasons += candidate.reasons
    return [candidate for group in kept.values() for candidate in group]


def _is_same(span: Span, other: Span) -> bool:
    shared = min(span[1], other[1]) - max(span[0], other[0])
    return shared > 0 and shared >= SAME * min(span[1] - span[0], other[1] - other[0])


def _sentence_around(content: str, start: int, end: int) -> Span:
    """Return the stripped sentence around a span; the span itself if it crosses sentences."""
    first = max(0, start - SENTENCE_CHARS)
    window = content[first : end + SENTENCE_CHARS]
    for begun, ended in split_sentences(window):
        if first + begun <= start and end <= first + ended:
            return _trim_span(content, first + begun, first + ended)
    return start, end


def _section_span(node: TreeNode, document: Document, hits: Sequence[SearchHit]) -> Span:
    """Return a section's span; for a long section, its best chunk or else its beginning."""
    start, end = _trim_span(document.content, node.char_start, node.char_end)
    if end - start <= RESULT_CHARS:
        return start, end
    inside = (hit for hit in hits if hit.doc_id == document.id and start <= hit.char_start and hit.char_end <= end)
    best = next(inside, None)
    if best is not None:
        return best.char_start, best.char_end
    blank = document.content.rfind(" ", start, start + RESULT_CHARS)
    return start, blank if blank > start else start + RESULT_CHARS


def _trim_span(content: str, start: int, end: int) -> Span:
    text = content[start:end]
    return end - len(text.lstrip()), start + len(text.rstrip())
