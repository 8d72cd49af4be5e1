"""Evidence mode: verbatim passages, or abstention when none is relevant."""

import re
import time
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from legal_rag.agent.budget import Usage
from legal_rag.agent.event_log import Agent, EventLog, Steps
from legal_rag.agent.highlighting import EncodingCache, complete_evidence
from legal_rag.agent.passages import WeighedPassage, choose_passages, weigh_documents
from legal_rag.agent.prediction import Mode, Prediction, Status
from legal_rag.agent.tool_outputs import hit_text
from legal_rag.citations.checks import Citation
from legal_rag.citations.enricher import EnrichedResponse
from legal_rag.citations.markers import format_marker
from legal_rag.corpus.chunking import chunk_id
from legal_rag.library.filters import Filters
from legal_rag.retriever.retriever import EncodedQuery, Retriever, SearchHit

CONTENT_WORD = re.compile(r"[a-z0-9]{4,}")
STEM_LETTERS = 6  # words are compared by prefixes: "licenciement" and "licencié" are equal
PASSAGES_READ = 3  # for coverage
QUESTION_WORDS = frozenset(
    "quel quels quelle quelles comment pourquoi combien quand lequel laquelle lesquels lesquelles cette celui celle "
    "ceux avec dans pour sans sous entre chez vers depuis avant apres pendant leur leurs elle elles nous vous sont "
    "etre avoir fait faire peut peuvent doit doivent faut plus moins tout tous toute toutes ainsi comme mais donc "
    "aussi dont".split()
)

NO_PASSAGE = "Aucun passage pertinent n'a été trouvé dans le corpus pour cette question."
INSTEAD = "Voici, à la place, les passages les plus proches, cités mot pour mot."
INTRODUCTION = "Passages les plus proches de la question, cités mot pour mot :"
SEE_ALSO, CUT = "Voir aussi :", "[…]"
CHARS_EACH = 500  # of the passages quoted, on the average
DOCUMENTS_WEIGHED = 3


class AbstentionFeatures(NamedTuple):
    """Features of a question and its hits, from which abstention is decided."""

    mean_maxsim: float  # over the question's tokens: best cosine in the best passage, -1 to 1
    coverage: float  # share of the question's words that the best passages contain, 0 to 1


class Calibration(NamedTuple):
    """A linear rule: relevant where `maxsim_weight * mean_maxsim + coverage_weight * coverage` reaches `threshold`."""

    maxsim_weight: float
    coverage_weight: float
    threshold: float


CALIBRATIONS = {"bundled": Calibration(maxsim_weight=1.0, coverage_weight=0.037, threshold=0.8188)}


class Findings(NamedTuple):
    """The passages found for a question, and the features that decide on abstention."""

    hits: list[SearchHit]  # each of another document
    features: AbstentionFeatures


class EvidenceAgent(Agent):
    """Answers with the best passages of a corpus, or abstains."""

    def __init__(
        self,
        retriever: Retriever,
        *,
        n_passages: int = 3,
        match_words: bool = True,
        filters: Filters | None = None,
    ) -> None:
        """Configure an agent.

        Args:
            retriever: Over the corpus to answer from.
            n_passages: Quoted at most; at least 1, else ValueError.
            match_words: Fill in the passages' `matches`.
            filters: Restrict the search.
        """
        if n_passages < 1:
            raise ValueError(f"n_passages must be at least 1, got {n_passages}")
        super().__init__(retriever)
        self._filters, self._n_passages, self._match_words = filters, n_passages, match_words

    def steps(
        self,
        query: EncodedQuery,
        log: EventLog,
        *,
        mode: Mode = "evidence",
        failure: Status = "model_failed",
        notice: str | None = None,
        usage: Usage | None = None,
    ) -> Steps[Prediction]:
        """Answer a question; what the log has already recorded stays part of the answer.

        With mode 'fallback' a model should have answered: `failure` is the answer's status, `usage` of its calls.
        """
        encoded = EncodingCache(self._retriever.encoder, query=query)
        asked = {"query": query.text, "k": DOCUMENTS_WEIGHED}
        with log.record("search", "search_legal_docs", **asked) as ids:
            findings = self.find(query, encoded)
            ids += [hit.chunk_id for hit in findings.hits]
        found = "\n".join(hit_text(hit) for hit in findings.hits)
        log.trajectory.add("", "search_legal_docs", asked, found)
        yield
        relevant = is_relevant(findings.features, self._retriever.encoder.identity.name)
        started = time.perf_counter()
        answer, quoted = self._quote(query, findings.hits) if relevant else (abstention(), [])
        log.checked(answer, 0.0)  # verbatim by construction
        log.answered("evidence", query.text, answer, time.perf_counter() - started)
        for hit in [*quoted, *findings.hits] if relevant else []:
            log.saw(hit)
        yield
        status: Status = failure if mode == "fallback" else "answered" if relevant else "abstained"
        if mode == "fallback" and relevant:
            notice = f"{notice} {INSTEAD}"
        evidence = complete_evidence(
            query.text,
            list(log.passages.values()),
            answer.citations,
            self._retriever.corpus,
            encoded if self._match_words else None,
        )
        corpus = self._retriever.corpus
        return log.prediction(
            query.text, answer, evidence, corpus, mode=mode, status=status, notice=notice, usage=usage
        )

    def find(self, question: str | EncodedQuery, encoded: EncodingCache | None = None) -> Findings:
        """Search for a question, one passage per document; `encoded` keeps the vectors of the best.

        ValueError if the question is empty or longer than the encoder reads.
        """
        query = self._retriever.query(question)
        encoded = encoded or EncodingCache(self._retriever.encoder)
        hits = self._retriever.search(query, DOCUMENTS_WEIGHED, by_document=True, filters=self._filters)
        vectors, offsets = query.tokens
        own_words = vectors[offsets[:, 0] < offsets[:, 1]]
        read = encoded.passages([hit.text for hit in hits[:1]])
        best = (own_words @ read[0].vectors.T).max(axis=1) if read else np.empty(0)
        return Findings(hits, abstention_features(query.text, [hit.text for hit in hits], best))

    def _quote(self, query: EncodedQuery, hits: Sequence[SearchHit]) -> tuple[EnrichedResponse, list[SearchHit]]:
        """Quote the passages of the hits' documents that answer best; return the answer, and the chunks around them."""
        # Build citations from offsets; re-parsing would trip over passages that contain « or [Source: …].
        contents = [self._retriever.corpus.document(hit.doc_id).content for hit in hits]
        read = [self._retriever.document_tokens(hit.doc_id, near=hit.char_start) for hit in hits]
        weighed = weigh_documents(query.tokens, list(zip(contents, read, strict=True)))
        most = self._n_passages
        lines, citations, quoted = [INTRODUCTION], [], []
        for rank, (of, one) in enumerate(choose_passages(weighed, most, most * CHARS_EACH), start=1):
            hit, content = hits[of], contents[of]
            lines += [SEE_ALSO] if rank == 2 else []
            lines.append(_quotation(rank, hit, content, one))
            citations.append(Citation(hit.doc_id, one.start, one.end, content[one.start : one.end], "verified"))
            quoted.append(self._around(hit, one.start))
        return EnrichedResponse("\n\n".join(lines), citations, [], [], 1.0, abstained=False), quoted

    def _around(self, hit: SearchHit, start: int) -> SearchHit:
        """Return the hit as the chunk of its document in which a passage begins."""
        chunks = self._retriever.corpus.chunks_of(hit.doc_id)
        chunk = next((one for one in chunks if one.char_start <= start < one.char_end), None)
        if chunk is None:
            return hit
        found = hit._replace(chunk_id=chunk_id(chunk.doc_id, chunk.chunk_index), text=chunk.text)
        return found._replace(char_start=chunk.char_start, char_end=chunk.char_end)


def _quotation(rank: int, hit: SearchHit, content: str, passage: WeighedPassage) -> str:
    """Write a passage under its document's title, with who speaks; marks outside it say where a paragraph is cut."""
    start, end, paragraph, _ = passage
    date = f" ({hit.decision_date})" if hit.decision_date else ""
    said = f", {paragraph.in_french}" if paragraph.in_french else ""
    before, after = CUT * (start > paragraph.start), CUT * (end < paragraph.end)
    marker = format_marker(hit.doc_id, start, end)
    quote = " ".join(filter(None, [before, f"« {content[start:end]} »", marker, after]))
    return f"{rank}. {hit.title or hit.doc_id}{date}{said}\n{quote}"


def abstention(removed: Sequence[str] = ()) -> EnrichedResponse:
    """Return the answer that nothing was found; `removed` are the citations of an answer that it replaces."""
    return EnrichedResponse(NO_PASSAGE, [], [], list(removed), None, abstained=True)


def is_relevant(features: AbstentionFeatures, encoder_name: str, rule: Calibration | None = None) -> bool:
    """Tell whether passages are relevant enough to quote, by `rule` or the encoder's calibration.

    Without either, only passages that share no word with the question are refused.
    """
    rule = rule or CALIBRATIONS.get(encoder_name)
    if rule is None:
        return features.coverage > 0
    return rule.maxsim_weight * features.mean_maxsim + rule.coverage_weight * features.coverage >= rule.threshold


def abstention_features(question: str, passages: Sequence[str], best_similarities: np.ndarray) -> AbstentionFeatures:
    """Compute the features of a question and the texts of the passages found for it, best first.

    Without passages both are minimal. `best_similarities` has shape (n_query_tokens,): each token's best cosine in the
    best passage, without special tokens and prefixes, which match everything.
    """
    if not passages or not len(best_similarities):
        return AbstentionFeatures(-1.0, 0.0)
    asked = _stems(question)
    found = set().union(*(_stems(passage) for passage in passages[:PASSAGES_READ]))
    return AbstentionFeatures(float(best_similarities.mean()), len(asked & found) / len(asked) if asked else 0.0)


def _stems(text: str) -> set[str]:
    letters = unicodedata.normalize("NFD", text.replace("œ", "oe").replace("Œ", "oe").lower())
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return {word[:STEM_LETTERS] for word in CONTENT_WORD.findall(plain) if word not in QUESTION_WORDS}
