"""Evidence mode: verbatim passages, or abstention when none is relevant."""

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import cached_property
from typing import NamedTuple

from legal_rag.agent.doubt import Background, Signs, background_of, is_relevant, signs_of
from legal_rag.agent.event_log import Agent, EventLog, Steps
from legal_rag.agent.passages import (
    WeighedPassage,
    choose_passages,
    deviations,
    is_cut,
    weigh_documents,
    word_coverage,
)
from legal_rag.agent.prediction import Grade, Mode, Prediction, Status
from legal_rag.agent.tool_outputs import hit_text
from legal_rag.base.html import displayed
from legal_rag.base.text import Span, within_sentence
from legal_rag.citations.checks import Citation
from legal_rag.citations.enricher import EnrichedResponse
from legal_rag.citations.markers import format_marker
from legal_rag.corpus.chunking import chunk_id
from legal_rag.corpus.documents import Document
from legal_rag.encoder.encoder import TokenVectors
from legal_rag.graph.fates import graph_of, standing_of
from legal_rag.graph.graph import KnowledgeGraph
from legal_rag.law.citation import legal_citation
from legal_rag.library.bm25 import LexicalIndex
from legal_rag.library.filters import Filters
from legal_rag.library.library import today
from legal_rag.library.query_language import EVERYTHING
from legal_rag.llm import Usage
from legal_rag.retriever.retriever import EncodedQuery, Retriever, SearchHit
from legal_rag.retriever.search_box import (
    NO_FILTERS,
    NOTHING_LEFT,
    ArticlesAmiss,
    Inferred,
    Required,
    absent_decisions,
    among,
    articles_amiss,
    dated,
    day_not_taken,
    inferred_filters,
    is_reference_alone,
    named_documents,
    outcome_in_words,
    require_references,
    unmet_filter,
    without_spans,
)
from legal_rag.retriever.structured import StructuredProvider, StructuredResult

NO_PASSAGE = "Aucun passage pertinent n'a été trouvé dans le corpus pour cette question."
WAY_ON = (
    "Les passages les plus proches restent visibles, sans garantie, par une recherche (legal-rag search) ; la question"
    " peut aussi être posée autrement."
)
INSTEAD = "Voici, à la place, les passages les plus proches, cités mot pour mot."
INTRODUCTIONS: dict[Grade, str] = {
    "answers": "Passages qui semblent répondre à la question, cités mot pour mot :",
    "close": "Passages proches de la question, cités mot pour mot ; ils n'y répondent peut-être pas :",
    "unsure": "Sans réponse sûre. Passages les plus proches, cités mot pour mot :",
}
NOT_IN_FORCE = (
    "L'article demandé n'est pas en vigueur au jour demandé. Voici, cité mot pour mot, le texte que l'index en a :"
)
ABSENT = "Ce corpus n'a pas la décision demandée"
COMPARES = (
    "Sans modèle de langage, rien n'est comparé : voici un passage de chaque décision, de la plus ancienne à la plus"
    " récente."
)
_LAW_THAT_MOVES = r"(?:jurisprudence|droit|position|règles?|solutions?|décisions?|arrêts?)"
_COMPARISON = re.compile(
    r"\b(?:compar(?:er|ez|ons|aisons?)|différences? entre|revirements?"
    rf"|{_LAW_THAT_MOVES}\b[^.?!]{{0,80}}\bévolu\w+|évolu\w+[^.?!]{{0,30}}\b{_LAW_THAT_MOVES})\b",
    re.IGNORECASE,
)
SEE_ALSO, CUT = "Voir aussi :", "[…]"
PASSAGES_QUOTED, QUOTED_CHARS = 4, 1500  # at most, together
DOCUMENTS_WEIGHED = 5
MOST_NAMED = 5  # documents that a question names, each quoted
SURE_RULE = 0.75  # score of an entity's sentence that answers by itself, if passages are near to the question
NEARLY_AS_SURE = 0.8  # share of the best one's score from which a further one is quoted


@displayed
class Findings(NamedTuple):
    """Hits of a question, with what tells how well the first answers."""

    hits: list[SearchHit]  # each of another document
    read: list[TokenVectors]  # of each hit's document: see `Retriever.document_tokens`
    signs: Signs
    named: tuple[str, ...] = ()  # ids of those that the question names
    absent: tuple[str, ...] = ()  # decisions that it names and no document is, in French
    lacks: bool = False  # whether no document is or cites what it names
    filters: Filters = NO_FILTERS  # given and inferred
    rules: tuple[StructuredResult, ...] = ()  # that answer by themselves; see `StructuredEvidenceAgent`
    amiss: ArticlesAmiss = ArticlesAmiss((), ())  # that it names; nearest versions of those not in force are `named`
    names_alone: bool = False  # whether the question is nothing but references

    @property
    def are_not_in_force(self) -> bool:
        """Whether all that the question names are articles that are not in force."""
        lacking = self.amiss.lacking
        return bool(lacking) and not set(self.named).difference(*(one.doc_ids for one in lacking))

    @property
    def is_amiss(self) -> bool:
        """Whether an article that the question names is not in force, or is not in the corpus."""
        return any(self.amiss)


class EvidenceAgent(Agent):
    """Answers with the best passages of a corpus, or abstains."""

    def __init__(
        self,
        retriever: Retriever,
        *,
        match_words: bool = True,
        filters: Filters = NO_FILTERS,
        infer_filters: bool = True,
    ) -> None:
        """Configure an agent; `match_words` fills in the passages' `matches`, `filters` restrict the search.

        `infer_filters` reads a court with a time in a question as filters too, which the notice says.
        """
        super().__init__(retriever)
        self._filters, self._match_words = filters, match_words
        self.infers_filters = infer_filters

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
        searched = self._query_in_context(query, log)
        asked = {"query": searched.text, "k": DOCUMENTS_WEIGHED}
        with log.record("search", "search_legal_docs", **asked) as ids:
            findings = self.find(searched, log)
            ids += [hit.chunk_id for hit in findings.hits]
        observation = "\n".join(hit_text(hit, self._retriever.corpus.document(hit.doc_id)) for hit in findings.hits)
        log.trajectory.add("", "search_legal_docs", asked, observation)
        yield
        near = bool(findings.hits) and is_relevant(findings.signs, self._background)
        relevant = near or bool(findings.named)
        started = time.perf_counter()
        grade = self._grade(findings) if relevant else None
        answer, quoted = self._quote(searched, findings) if relevant else (abstention(), [])
        if grade:
            log.remarks |= {COMPARES: None} if asks_to_compare(query.text) else {}
            introduction = NOT_IN_FORCE if findings.are_not_in_force else INTRODUCTIONS[grade]
            answer = answer._replace(text=f"{introduction}\n\n{answer.text}")
        elif mode != "fallback" and findings.hits:
            answer = answer._replace(text=f"{answer.text}\n\n{WAY_ON}")
        if findings.absent:
            answer = answer._replace(text=f"{ABSENT} : {' ; '.join(findings.absent)}.\n\n{answer.text}")
        log.checked(answer, 0.0)  # verbatim by construction
        log.answered("evidence", query.text, answer, time.perf_counter() - started)
        for hit in [*quoted, *findings.hits] if relevant else []:
            log.saw(hit)
        yield
        status: Status = failure if mode == "fallback" else "answered" if relevant else "abstained"
        if mode == "fallback" and relevant:
            notice = f"{notice} {INSTEAD}"
        elif status == "abstained" and not findings.hits:
            notice = " ".join(unmet_filter(self._retriever.corpus, self._filters))
        return log.prediction(
            query.text,
            answer,
            self._retriever.corpus,
            mode=mode,
            status=status,
            grade=grade,
            notice=notice,
            usage=usage,
            query=query,
            encoder=self._retriever.encoder if self._match_words else None,
        )

    def find(self, question: str | EncodedQuery, log: EventLog | None = None) -> Findings:
        """Search for a question, one passage per document; the documents that it names come first.

        ValueError if the question is empty or longer than the encoder reads.
        """
        query = self._retriever.query(question)
        given, said = dated(query, self._retriever.corpus, self._filters, infers=self.infers_filters)
        inferred = self._read_filters(query, given)
        amiss = articles_amiss(query, self._retriever.corpus, given.at or today())
        lacking = amiss.lacking
        if log is not None:
            log.remarks |= dict.fromkeys((*said, *amiss.said, *inferred.remarks))
        wanted = [*named_documents(query, self._retriever.corpus, given.at)[0], *inferred.named]
        wanted += (doc_id for one in lacking for doc_id in one.doc_ids)
        hits: list[SearchHit] = []
        if wanted := list(dict.fromkeys(wanted))[:MOST_NAMED]:
            of_those = replace(among(self._filters, wanted), at=None)  # some are shown though they are not in force
            hits = self._retriever.search(query, len(wanted), by_document=True, filters=of_those, condition=EVERYTHING)
        if lacking:
            hits = sorted(hits, key=lambda hit: wanted.index(hit.doc_id))
        named = tuple(hit.doc_id for hit in hits)
        how = Required(None, inferred.filters)
        if len(hits) < DOCUMENTS_WEIGHED:
            if self.infers_filters and not set(named).difference(*(one.doc_ids for one in lacking)):
                how = require_references(self._retriever, query, None, inferred.filters)
                if log is not None:
                    log.remarks |= dict.fromkeys(how.remarks)
            near: list[SearchHit] = []
            if not (lacking and how.found_none):
                near = self._retriever.search(
                    query, DOCUMENTS_WEIGHED, by_document=True, filters=how.filters, condition=how.condition
                )
            if not near and not lacking and (how.filters, how.condition) != (given, None):
                how = how._replace(condition=None, filters=given)
                near = self._retriever.search(query, DOCUMENTS_WEIGHED, by_document=True, filters=how.filters)
                if log is not None:
                    log.remarks = dict.fromkeys((*said, *amiss.said, NOTHING_LEFT))
            others = {*named, *amiss.misleading(near, self._retriever.corpus)}
            rest = [hit for hit in near if hit.doc_id not in others]
            hits += rest[: DOCUMENTS_WEIGHED - len(hits)]
        hits = [hit._replace(rank=rank) for rank, hit in enumerate(hits, start=1)]
        if log is not None:
            ids = (hit.doc_id for hit in hits)
            log.remarks |= dict.fromkeys(day_not_taken(query, self._retriever.corpus, given, ids))
        read = [self._retriever.document_tokens(hit.doc_id, near=hit.char_start) for hit in hits]
        kept = len(named) or len(hits)
        signs = signs_of(self._retriever, self._without(query, inferred.spans), hits[:kept], read[:kept])
        if named or (how.filters, how.condition) != (NO_FILTERS, None):  # scores compare in a search of all documents
            signs = signs._replace(score=self._background.mean.score)
        absent = (*absent_decisions(query, self._retriever.corpus), *inferred.absent)
        lacks = (how.found_none or bool(absent or amiss.absent)) and not named
        return Findings(hits, read, signs, named, absent, lacks, how.filters, (), amiss, is_reference_alone(query))

    def surety(self, findings: Findings) -> float:
        """Return how surely findings answer: `Background.surety`, at most 0 where what the question names is absent."""
        surety = self._background.surety(findings.signs)
        return min(surety, 0.0) if findings.lacks else surety

    def _without(self, query: EncodedQuery, spans: Sequence[Span]) -> EncodedQuery:
        """Return a question without a court and its time, which are near to decisions whatever is asked."""
        words = without_spans(query.text, spans).strip()
        return self._retriever.query(words) if spans and words else query

    def filters_for(self, query: EncodedQuery, log: EventLog) -> Filters:
        """Return the filters of a question, given and inferred; the log gets what is said of them."""
        corpus = self._retriever.corpus
        given, said = dated(query, corpus, self._filters, infers=self.infers_filters)
        inferred, unmet = self._read_filters(query, given), unmet_filter(corpus, self._filters)
        said += articles_amiss(query, corpus, given.at or today()).said
        said += day_not_taken(query, corpus, given, named_documents(query, corpus, given.at)[0])
        log.remarks |= dict.fromkeys((*said, *inferred.remarks, *unmet))
        return inferred.filters

    def _read_filters(self, query: EncodedQuery, given: Filters) -> Inferred:
        return inferred_filters(query.text, self._retriever.corpus, given) if self.infers_filters else Inferred(given)

    def _grade(self, findings: Findings) -> Grade:
        grade = self._background.grade(findings.signs)
        if findings.lacks:
            return "unsure"
        if not findings.named:
            return grade
        is_partial = bool(findings.absent) or findings.is_amiss
        if findings.names_alone and not is_partial:
            return "answers"
        return "close" if is_partial or grade == "unsure" else grade

    @cached_property
    def _background(self) -> Background:
        return background_of(self._retriever)

    def _quote(self, query: EncodedQuery, findings: Findings) -> tuple[EnrichedResponse, list[SearchHit]]:
        """Quote the best passages of the hits' documents; return the answer, and the chunks that contain them."""
        # Build citations from offsets; re-parsing would trip over passages that contain « or [Source: …].
        hits, day = findings.hits, findings.filters.at or today()
        documents = [self._retriever.corpus.document(hit.doc_id) for hit in hits]
        contents, zones = [doc.content for doc in documents], [doc.extra.get("zones") for doc in documents]
        weighed = weigh_documents(query.tokens, list(zip(contents, findings.read, strict=True)), zones)
        share = word_coverage(query.text, self._lexical)
        chosen = choose_passages(
            weighed,
            deviations(hits, self._retriever),
            PASSAGES_QUOTED,
            QUOTED_CHARS,
            lambda of, passage: share(contents[of][passage.start : passage.end]),
        )
        words = [contents[of][passage.start : passage.end] for of, passage in chosen]
        # Decisions given together have words in common.
        chosen = [entry for at, entry in enumerate(chosen) if words[at] not in words[:at]]
        named = [hit.doc_id in findings.named for hit in hits]
        chosen = _with_named(chosen, weighed, named)
        if asks_to_compare(query.text):
            compared = _with_named([], weighed, named if sum(named) > 1 else [True] * len(hits))
            chosen = sorted(compared, key=lambda entry: documents[entry[0]].decision_date)
        lines, citations, quoted = [], [], []
        for rank, (of, passage) in enumerate(chosen, start=1):
            hit, quote = hits[of], contents[of][passage.start : passage.end]
            lines += [SEE_ALSO] if rank == 2 else []
            lines.append(_format_quotation(rank, documents[of], passage, self._fate(documents[of], day)))
            citations.append(Citation(hit.doc_id, passage.start, passage.end, quote, "verified"))
            quoted.append(self._hit_around(hit, passage.start))
        return EnrichedResponse("\n\n".join(lines), citations, [], [], 1.0, abstained=False), quoted

    def _fate(self, document: Document, day: date) -> str:
        """Return in French how a decision ended, and which later ones quashed it, or when an article is in force.

        '' where nothing is known.
        """
        ended = outcome_in_words(document)
        fate = [within_sentence(ended)] if ended else []
        fate += [document.force.on(day)] if document.force else []
        fate += filter(None, [standing_of(self._graph, document.id)])
        return " ; ".join(fate)

    @cached_property
    def _lexical(self) -> LexicalIndex:
        return self._retriever.corpus.lexical_index()

    @cached_property
    def _graph(self) -> KnowledgeGraph | None:
        return graph_of(self._retriever.corpus)

    def _hit_around(self, hit: SearchHit, start: int) -> SearchHit:
        """Move a hit to the chunk of its document in which a passage begins."""
        chunks = self._retriever.corpus.chunks_of(hit.doc_id)
        chunk = next((chunk for chunk in chunks if chunk.char_start <= start < chunk.char_end), None)
        if chunk is None:
            return hit
        located = hit._replace(chunk_id=chunk_id(chunk.doc_id, chunk.chunk_index), text=chunk.text)
        return located._replace(char_start=chunk.char_start, char_end=chunk.char_end)


class StructuredEvidenceAgent(EvidenceAgent):
    """Answers with the rules that `StructuredProvider` finds, or as evidence mode does where it finds none."""

    def find(self, question: str | EncodedQuery, log: EventLog | None = None) -> Findings:
        """Search as evidence mode does; a document with a rule that answers counts as one that the question names."""
        findings = super().find(question, log)
        if findings.is_amiss:
            return findings  # a rule of another article would answer in its place
        rules = self._rules(self._retriever.query(question), findings.filters)
        hits = [hit for hit in findings.hits if hit.doc_id in {rule.doc_id for rule in rules}]
        return findings._replace(named=(*findings.named, *(hit.doc_id for hit in hits)), rules=rules)

    def _rules(self, query: EncodedQuery, filters: Filters) -> tuple[StructuredResult, ...]:
        results = StructuredProvider(self._retriever).retrieve(query.text, PASSAGES_QUOTED, filters)
        if not results or results[0].source != "entity" or results[0].score < SURE_RULE:
            return ()
        least = NEARLY_AS_SURE * results[0].score
        return tuple(result for result in results if result.source == "entity" and result.score >= least)

    def _grade(self, findings: Findings) -> Grade:
        if not findings.rules:
            return super()._grade(findings)
        if findings.lacks or not is_relevant(findings.signs, self._background):
            return "unsure"  # a sentence may share the one telling word of a question on something else
        return "close" if findings.absent else "answers"

    def _quote(self, query: EncodedQuery, findings: Findings) -> tuple[EnrichedResponse, list[SearchHit]]:
        rules = findings.rules
        if not rules:
            return super()._quote(query, findings)
        corpus = self._retriever.corpus
        named = replace(findings.filters, doc_ids=tuple({rule.doc_id for rule in rules}))
        hits = {hit.doc_id: hit for hit in self._retriever.search(query, len(rules), by_document=True, filters=named)}
        lines, citations = [], []
        for rank, rule in enumerate(rules, start=1):
            lines += [SEE_ALSO] if rank == 2 else []
            where = " › ".join([legal_citation(corpus.document(rule.doc_id)).with_name, *rule.sections])
            marker = format_marker(rule.doc_id, rule.char_start, rule.char_end)
            lines.append(f"{rank}. {where}\n« {rule.text} » {marker}")
            citations.append(Citation(rule.doc_id, rule.char_start, rule.char_end, rule.text, "verified"))
        quoted = [self._hit_around(hits[rule.doc_id], rule.char_start) for rule in rules if rule.doc_id in hits]
        return EnrichedResponse("\n\n".join(lines), citations, [], [], 1.0, abstained=False), quoted


def asks_to_compare(question: str) -> bool:
    """Does a question ask to compare decisions, or how they changed?"""
    return _COMPARISON.search(question) is not None


def _with_named(
    chosen: list[tuple[int, WeighedPassage]], weighed: Sequence[Sequence[WeighedPassage]], named: Sequence[bool]
) -> list[tuple[int, WeighedPassage]]:
    """Put the best passage of each document that the question names first, whatever its weight."""
    first = [
        (number, choose_passages([weighed[number]], [0.0], 1, QUOTED_CHARS)[0][1])
        for number, is_named in enumerate(named)
        if is_named and weighed[number]
    ]
    most = max(PASSAGES_QUOTED, len(first))
    rest = [entry for entry in chosen if all(entry[0] != number for number, _ in first)]
    return [*first, *rest][:most] if first else chosen


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
