"""Evidence mode: an answer made only of verbatim passages, with no language model.

In: a question. Out: a `Prediction` whose answer quotes the closest passages with their exact offsets, or says that
there is none. It never writes a sentence of its own about the law.
"""

from collections.abc import Sequence

import numpy as np

from legal_rag.citations import CheckedAnswer, Citation, format_marker
from legal_rag.prediction import Mode, Prediction
from legal_rag.relevance import is_relevant, measure_signs
from legal_rag.retriever import Retriever, SearchHit
from legal_rag.run_log import RunLog
from legal_rag.sentences import split_sentences

QUOTE_CHARS = 500  # of a passage quoted in the answer, about three sentences
NO_PASSAGE = "Aucun passage pertinent n'a été trouvé dans le corpus pour cette question."
INTRODUCTION = "Passages les plus proches de la question, cités mot pour mot :"


class EvidenceAgent:
    """Answers with the best passages of a corpus, or abstains."""

    def __init__(self, retriever: Retriever, *, n_passages: int = 3) -> None:
        if n_passages < 1:
            raise ValueError(f"n_passages must be at least 1, got {n_passages}")
        self._retriever, self._n_passages = retriever, n_passages

    def __call__(self, question: str) -> Prediction:
        """Answer a question.

        Raises:
            ValueError: If the question is empty or longer than the encoder reads.
        """
        return self.answer(question, RunLog(), mode="evidence", notice=None)

    def answer(self, question: str, log: RunLog, *, mode: Mode, notice: str | None) -> Prediction:
        """Answer within a run that has already begun: its events and documents are kept."""
        with log.record("search", "search_legal_docs", query=question, k=self._n_passages) as ids:
            vectors = self._retriever.encode(question)
            hits = self._retriever.search_vectors(vectors, self._n_passages, by_document=True)
            ids += [hit.chunk_id for hit in hits]
        signs = measure_signs(question, hits, len(vectors))
        relevant = is_relevant(signs, self._retriever.encoder.identity.name)
        for hit in hits if relevant else []:
            log.saw(hit)
        with log.record("answer", "evidence") as ids:
            checked = self._quote(vectors, hits) if relevant else CheckedAnswer(NO_PASSAGE, [], [])
            ids += [citation.doc_id for citation in checked.citations]
        return log.prediction(
            question,
            checked,
            mode=mode,
            status="model_failed" if mode == "fallback" else "answered" if relevant else "abstained",
            notice=notice,
        )

    def _quote(self, query: np.ndarray, hits: Sequence[SearchHit]) -> CheckedAnswer:
        # Quoted from offsets, nothing is left to be searched for: a quotation that itself holds « or [Source: …] stays.
        lines, citations = [INTRODUCTION], []
        for hit, (start, end) in zip(hits, self._best_parts(query, hits), strict=True):
            span = (hit.char_start + start, hit.char_start + end)
            quote = self._retriever.corpus.document(hit.doc_id).content[slice(*span)]
            date = f" ({hit.decision_date})" if hit.decision_date else ""
            marker = format_marker(hit.doc_id, *span)
            lines.append(f"{hit.rank}. {hit.title or hit.doc_id}{date}\n« {quote} » {marker}")
            citations.append(Citation(hit.doc_id, *span, quote, "verified"))
        return CheckedAnswer("\n\n".join(lines), citations, [])

    def _best_parts(self, query: np.ndarray, hits: Sequence[SearchHit]) -> list[tuple[int, int]]:
        """Choose in each hit's text the run of sentences closest to the question: its offsets in that text."""
        parts = []
        for hit in hits:
            vectors, offsets = self._retriever.encoder.encode_with_offsets(hit.text)
            similarities = query @ vectors.T
            parts.append(max(_sentence_runs(hit.text), key=lambda run: _closeness(similarities, offsets, *run)))
        return parts


def _closeness(similarities: np.ndarray, offsets: np.ndarray, start: int, end: int) -> float:
    """Score the tokens that lie in a span: MaxSim, from (n_query_tokens, n_tokens) similarities."""
    inside = (offsets[:, 0] >= start) & (offsets[:, 1] <= end) & (offsets[:, 0] < offsets[:, 1])
    return float(similarities[:, inside].max(axis=1).sum()) if inside.any() else -np.inf


def _sentence_runs(text: str) -> list[tuple[int, int]]:
    """Return the longest runs of whole sentences within `QUOTE_CHARS`, one from each sentence on, without blanks.

    A sentence longer than that is cut at a word.
    """
    spans = split_sentences(text)
    runs = []
    for first, (start, _) in enumerate(spans):
        ends = [end for _, end in spans[first:] if end - start <= QUOTE_CHARS]
        end = ends[-1] if ends else _cut_at_word(text, start)
        runs.append(_narrow(text, start, end))
        if ends and ends[-1] == len(text):
            break  # the runs after this one are parts of it
    return [run for run in runs if run[0] < run[1]]


def _cut_at_word(text: str, start: int) -> int:
    limit = start + QUOTE_CHARS
    cut = max(text.rfind(" ", start, limit), text.rfind("\n", start, limit))
    return cut if cut > start else min(limit, len(text))


def _narrow(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())
