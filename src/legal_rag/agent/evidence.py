"""Evidence mode: verbatim passages, or abstention when none is relevant."""

import hashlib
import json
import logging
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from legal_rag.agent.event_log import Agent, EventLog, Steps
from legal_rag.agent.passages import WeighedPassage, choose_passages, deviations, is_cut, weigh_documents
from legal_rag.agent.prediction import Mode, Prediction, Status
from legal_rag.agent.tool_outputs import hit_text
from legal_rag.base.files import cache_folder, write_whole
from legal_rag.base.text import read_words
from legal_rag.citations.checks import Citation
from legal_rag.citations.enricher import EnrichedResponse
from legal_rag.citations.markers import format_marker
from legal_rag.corpus.chunking import chunk_id
from legal_rag.corpus.documents import Document
from legal_rag.encoder.encoder import TokenVectors
from legal_rag.extraction.entities import outcome_of
from legal_rag.graph.graph import KnowledgeGraph
from legal_rag.graph.names import DOCUMENT
from legal_rag.graph.page import name_of
from legal_rag.graph.rulings import OVERRULES
from legal_rag.law.citation import legal_citation
from legal_rag.law.courts import level_of
from legal_rag.library.filters import Filters
from legal_rag.llm import Usage
from legal_rag.retriever.retriever import EncodedQuery, Retriever, SearchHit

logger = logging.getLogger(__name__)

OFF_TOPIC = read_words("legal_rag.agent", "abstention.toml")["off_topic"]
# Deviations above the background. Chosen by benchmarks/abstention.py over several Libraries and encoders; the share of
# a question's words that the passages hold, plain or weighed by rarity, did not tell more.
THRESHOLD = 1.15


NO_PASSAGE = "Aucun passage pertinent n'a été trouvé dans le corpus pour cette question."
WAY_ON = (
    "Les passages les plus proches restent visibles, sans garantie, par une recherche (legal-rag search) ; la question"
    " peut aussi être posée autrement."
)
INSTEAD = "Voici, à la place, les passages les plus proches, cités mot pour mot."
INTRODUCTION = "Passages les plus proches de la question, cités mot pour mot :"
SEE_ALSO, CUT = "Voir aussi :", "[…]"
PASSAGES_QUOTED, QUOTED_CHARS = 4, 1500  # at most, together
DOCUMENTS_WEIGHED = 5


class Background(NamedTuple):
    """Mean MaxSim of questions that the corpus cannot answer with their best passages, by the corpus's own encoder."""

    mean: float
    deviation: float

    def nearness(self, mean_maxsim: float) -> float:
        """Return how far a question's mean MaxSim lies above, in standard deviations."""
        return (mean_maxsim - self.mean) / self.deviation


class Findings(NamedTuple):
    """Hits of a question, with the score that decides on abstention."""

    hits: list[SearchHit]  # each of another document
    read: list[TokenVectors]  # of each hit's document: see `Retriever.document_tokens`
    mean_maxsim: float  # see `mean_maxsim`


class EvidenceAgent(Agent):
    """Answers with the best passages of a corpus, or abstains."""

    def __init__(self, retriever: Retriever, *, match_words: bool = True, filters: Filters | None = None) -> None:
        """Configure an agent; `match_words` fills in the passages' `matches`, `filters` restrict the search."""
        super().__init__(retriever)
        self._filters, self._match_words = filters, match_words

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
        """Answer a question; events already in the log stay part of the answer.

        With mode 'fallback' a model should have answered: `failure` is the answer's status, `usage` of its calls.
        """
        asked = {"query": query.text, "k": DOCUMENTS_WEIGHED}
        with log.record("search", "search_legal_docs", **asked) as ids:
            findings = self.find(query)
            ids += [hit.chunk_id for hit in findings.hits]
        observation = "\n".join(hit_text(hit, self._retriever.corpus.document(hit.doc_id)) for hit in findings.hits)
        log.trajectory.add("", "search_legal_docs", asked, observation)
        yield
        relevant = bool(findings.hits) and is_relevant(findings.mean_maxsim, self._background)
        started = time.perf_counter()
        answer, quoted = self._quote(query, findings) if relevant else (abstention(), [])
        log.checked(answer, 0.0)  # verbatim by construction
        log.answered("evidence", query.text, answer, time.perf_counter() - started)
        for hit in [*quoted, *findings.hits] if relevant else []:
            log.saw(hit)
        yield
        status: Status = failure if mode == "fallback" else "answered" if relevant else "abstained"
        if mode == "fallback" and relevant:
            notice = f"{notice} {INSTEAD}"
        elif status == "abstained" and findings.hits:
            notice = WAY_ON
        return log.prediction(
            query.text,
            answer,
            self._retriever.corpus,
            mode=mode,
            status=status,
            notice=notice,
            usage=usage,
            query=query,
            encoder=self._retriever.encoder if self._match_words else None,
        )

    def find(self, question: str | EncodedQuery) -> Findings:
        """Search for a question, one passage per document.

        ValueError if the question is empty or longer than the encoder reads.
        """
        query = self._retriever.query(question)
        hits = self._retriever.search(query, DOCUMENTS_WEIGHED, by_document=True, filters=self._filters)
        read = [self._retriever.document_tokens(hit.doc_id, near=hit.char_start) for hit in hits]
        return Findings(hits, read, mean_maxsim(query, hits, read))

    @cached_property
    def _background(self) -> Background:
        return background_of(self._retriever)

    def _quote(self, query: EncodedQuery, findings: Findings) -> tuple[EnrichedResponse, list[SearchHit]]:
        """Quote the best passages of the hits' documents; return the answer, and the chunks that contain them."""
        # Build citations from offsets; re-parsing would trip over passages that contain « or [Source: …].
        hits = findings.hits
        documents = [self._retriever.corpus.document(hit.doc_id) for hit in hits]
        contents, zones = [doc.content for doc in documents], [doc.extra.get("zones") for doc in documents]
        weighed = weigh_documents(query.tokens, list(zip(contents, findings.read, strict=True)), zones)
        chosen = choose_passages(weighed, deviations(hits, self._retriever), PASSAGES_QUOTED, QUOTED_CHARS)
        lines, citations, quoted = [INTRODUCTION], [], []
        for rank, (of, passage) in enumerate(chosen, start=1):
            hit, quote = hits[of], contents[of][passage.start : passage.end]
            lines += [SEE_ALSO] if rank == 2 else []
            lines.append(_format_quotation(rank, documents[of], passage, self._fate(documents[of])))
            citations.append(Citation(hit.doc_id, passage.start, passage.end, quote, "verified"))
            quoted.append(self._hit_around(hit, passage.start))
        return EnrichedResponse("\n\n".join(lines), citations, [], [], 1.0, abstained=False), quoted

    def _fate(self, document: Document) -> str:
        """Return in French how a decision ended and which later ones quashed it: "rejet"; '' where nothing is known."""
        level = level_of(document.juridiction, document.formation, document.title)
        is_decision = bool(document.solution or level)
        ended = outcome_of(document.solution, level, document.content, None).words if is_decision else ""
        fate = [ended if ended[:2].isupper() else ended[:1].lower() + ended[1:]] if ended else []
        if graph := self._graph:
            later = (edge for edge in graph.rulings(DOCUMENT + document.id) if edge.type == OVERRULES)
            fate += [f"{edge.treatment} {name_of(graph, edge.source)}" for edge in later]
        return " ; ".join(fate)

    @cached_property
    def _graph(self) -> KnowledgeGraph | None:
        try:
            return KnowledgeGraph(self._retriever.corpus)
        except FileNotFoundError:
            return None

    def _hit_around(self, hit: SearchHit, start: int) -> SearchHit:
        """Move a hit to the chunk of its document in which a passage begins."""
        chunks = self._retriever.corpus.chunks_of(hit.doc_id)
        chunk = next((chunk for chunk in chunks if chunk.char_start <= start < chunk.char_end), None)
        if chunk is None:
            return hit
        located = hit._replace(chunk_id=chunk_id(chunk.doc_id, chunk.chunk_index), text=chunk.text)
        return located._replace(char_start=chunk.char_start, char_end=chunk.char_end)


def _format_quotation(rank: int, document: Document, passage: WeighedPassage, fate: str) -> str:
    """Format a passage under its document's citation, fate and speaker; "[…]" marks a paragraph that is cut."""
    start, end, paragraph, _ = passage
    content = document.content
    speaker = f", {paragraph.in_french}" if paragraph.in_french else ""
    before, after = (CUT * cut for cut in is_cut(content, passage))
    marker = format_marker(document.id, start, end)
    quote = " ".join(filter(None, [before, f"« {content[start:end]} »", marker, after]))
    return f"{rank}. {legal_citation(document).with_name}{f' ({fate})' if fate else ''}{speaker}\n{quote}"


def abstention(removed: Sequence[str] = ()) -> EnrichedResponse:
    """Return the answer that nothing was found; `removed` are the citations of an answer that it replaces."""
    return EnrichedResponse(NO_PASSAGE, [], [], list(removed), None, abstained=True)


def is_relevant(mean_maxsim: float, background: Background) -> bool:
    """Return whether passages are relevant enough to quote: nearer to the question than to off-topic ones."""
    return background.nearness(mean_maxsim) >= THRESHOLD


def background_of(retriever: Retriever) -> Background:
    """Measure a corpus's background, once for each build of a Library: it is kept in the cache folder."""
    path = _background_file(retriever)
    try:
        return Background(*map(float, json.loads(path.read_text(encoding="utf-8"))))
    except (OSError, ValueError, TypeError):  # none yet, or a damaged one
        background = _measure_background(retriever)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(background))
    except OSError as error:
        logger.warning("%s cannot be written (%s): it is measured again next time", path, error)
    return background


def _background_file(retriever: Retriever) -> Path:
    corpus = retriever.corpus
    key = (corpus.build_id, corpus.commit, retriever.encoder.identity, OFF_TOPIC)
    return cache_folder() / "abstention" / f"{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.json"


def _measure_background(retriever: Retriever) -> Background:
    values, anything = [], None
    for question in OFF_TOPIC:
        try:
            query = retriever.query(question)
        except ValueError:  # longer than the encoder reads
            continue
        if hits := retriever.search(query, 1, mode="bm25") or retriever.search(query, 1):
            read = [retriever.document_tokens(hit.doc_id, near=hit.char_start) for hit in hits]
            values.append(mean_maxsim(query, hits, read))
        else:  # no word in common with any passage
            if anything is None:
                anything = retriever.document_tokens(next(iter(retriever.corpus)))
            values.append(_mean_best_cosine(query, anything.vectors))
    if not values:
        return Background(-1.0, 1.0)  # nothing is known: all is quoted
    return Background(float(np.mean(values)), max(float(np.std(values)), 1e-3))


def mean_maxsim(query: EncodedQuery, hits: Sequence[SearchHit], read: Sequence[TokenVectors]) -> float:
    """Return the mean over a question's tokens of their best cosine in its best passage, -1 to 1; -1 without any.

    The question's own words count, not special tokens and prefixes, which match everything. Of `hits`, best first, and
    of the token vectors of their documents the first is read.
    """
    if not hits:
        return -1.0
    starts = read[0].offsets[:, 0]
    return _mean_best_cosine(query, read[0].vectors[(starts >= hits[0].char_start) & (starts < hits[0].char_end)])


def _mean_best_cosine(query: EncodedQuery, passage: np.ndarray) -> float:
    vectors, offsets = query.tokens
    own_words = vectors[offsets[:, 0] < offsets[:, 1]]
    return float((own_words @ passage.T).max(axis=1).mean()) if len(own_words) and len(passage) else -1.0
