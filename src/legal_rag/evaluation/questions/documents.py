"""The documents that questions are made of, and the questions that their official summaries give without a model."""

import heapq
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Any, TypeVar

from legal_rag.corpus.documents import Document, SourceOptions, read_documents
from legal_rag.corpus.files import is_french
from legal_rag.evaluation.questions.checkpoint import CheckpointRecord
from legal_rag.evaluation.questions.checks import tidy
from legal_rag.evaluation.questions.dataset import MODEL_NAME, make_row
from legal_rag.indexer.config import IndexConfig, source_label
from legal_rag.law import find_identifiers
from legal_rag.law.sentences import split_sentences, without_blanks
from legal_rag.library.bm25 import lexical_words
from legal_rag.library.library import Library

T = TypeVar("T")


class SourceDocuments:
    """Documents drawn from a source while it is read, held in memory: as many as `limit` allows.

    The same documents as `draw` takes of a Library that holds the same source.
    """

    def __init__(
        self,
        source: Any,
        options: SourceOptions | None = None,
        *,
        limit: int | None = None,
        seed: int = 0,
        doc_ids: Collection[str] = (),
    ) -> None:
        """Read a source once, as `legal_rag.corpus.read_documents` does, and draw of it; see `draw`."""
        self.name = source_label(IndexConfig(source=source))
        documents = ((document.id, document) for document in read_documents(source, options))
        self._documents = dict(draw(documents, limit, seed, doc_ids))

    def __len__(self) -> int:
        return len(self._documents)

    def content_hashes(self) -> Iterator[tuple[str, str]]:
        """Return ids and content hashes, in the source's order."""
        return ((doc_id, document.content_hash) for doc_id, document in self._documents.items())

    def document(self, doc_id: str) -> Document:
        """Return a document by its id; KeyError if it was not drawn."""
        return self._documents[doc_id]


Documents = Library | SourceDocuments


def draw(
    pairs: Iterable[tuple[str, T]], limit: int | None, seed: int, doc_ids: Collection[str] = ()
) -> list[tuple[str, T]]:
    """Draw `limit` pairs (None: all) of a document's id and anything, in their order, among `doc_ids` if there are any.

    A lower limit draws some of the same. No more than `limit` pairs are held at a time.

    Raises:
        LookupError: If there is no pair of one of `doc_ids`.
        ValueError: If `limit` is below 1.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit}")
    if doc_ids:
        pairs = [pair for pair in pairs if pair[0] in doc_ids]
        if missing := sorted(set(doc_ids) - {doc_id for doc_id, _ in pairs}):
            raise LookupError(f"no document {missing[0]!r} ({len(missing)} of {len(set(doc_ids))} ids are unknown)")
    if limit is None:
        return list(pairs)
    lots = ((sha256(f"{seed}:{pair[0]}".encode()).digest(), number, pair) for number, pair in enumerate(pairs))
    return [pair for _, _, pair in sorted(heapq.nsmallest(limit, lots), key=lambda lot: lot[1])]


QUERY_CHARS = 300  # of a summary: its first sentences, as far as they fit
ANSWER_CHARS = 400
MIN_WORDS = 3  # content words, for a query to say anything


def record_of(documents: Documents, doc_id: str) -> CheckpointRecord:
    """Make a document's row of its official summary.

    What would make the question circular is left out: titles, sentences that name a case, and a summary that its
    document repeats word for word.
    """
    document = documents.document(doc_id)
    query = _make_query(document.summary, QUERY_CHARS)
    words = set(lexical_words(query))
    rejected = CheckpointRecord(doc_id=document.id, content_hash=document.content_hash, status="rejected")
    if not query:
        return replace(rejected, reason="no_summary")
    if query in tidy(document.content):
        return replace(rejected, reason="copied")
    if len(words) < MIN_WORDS:
        return replace(rejected, reason="names_no_matter")
    if not is_french(query):
        return replace(rejected, reason="not_french")
    start, end = max(_find_sentences(document.content), key=lambda span: _count_shared(document.content, span, words))
    score = _count_shared(document.content, (start, end), words) / len(words)
    if not score:
        return replace(rejected, reason="ungrounded")
    row = make_row(
        document,
        query,
        (start, end),
        main_topic=tidy(document.title),
        summary=document.summary,
        score=round(score, 4),
        model=MODEL_NAME,
        prompt_hash="",
    )
    return replace(rejected, status="accepted", row=row)


def _make_query(summary: str, most: int) -> str:
    """Return a summary's first sentences that name no case, as many as fit, or the beginning of the first."""
    whole = tidy(summary)
    sentences = (whole[start:end].strip() for start, end in split_sentences(whole))
    text = " ".join(part for part in sentences if all(match.kind == "article" for match in find_identifiers(part)))
    ends = [end for _, end in split_sentences(text) if end <= most]
    return text[: ends[-1]].strip() if ends else text[:most].rpartition(" ")[0] or text[:most]


def _find_sentences(content: str) -> list[tuple[int, int]]:
    return without_blanks(content, ((start, min(end, start + ANSWER_CHARS)) for start, end in split_sentences(content)))


def _count_shared(content: str, span: tuple[int, int], words: set[str]) -> int:
    return len(words & set(lexical_words(content[slice(*span)])))
