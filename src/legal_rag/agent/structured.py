"""Evidence mode on rules: the sentences of the entities that answer, verbatim, before passages."""

from dataclasses import replace

from legal_rag.agent.event_log import EventLog
from legal_rag.agent.evidence import PASSAGES_QUOTED, SEE_ALSO, EvidenceAgent, Findings
from legal_rag.agent.prediction import Grade
from legal_rag.citations.checks import Citation
from legal_rag.citations.enricher import EnrichedResponse
from legal_rag.citations.markers import format_marker
from legal_rag.law.citation import legal_citation
from legal_rag.library.filters import Filters
from legal_rag.retriever.retriever import EncodedQuery, SearchHit
from legal_rag.retriever.structured import StructuredProvider, StructuredResult

SURE = 0.75  # score of an entity's sentence that answers by itself, however near the passages are
NEARLY = 0.8  # share of the best one's score from which a further one is quoted


class StructuredEvidenceAgent(EvidenceAgent):
    """Answers with the rules that `StructuredProvider` finds, or as evidence mode does where it finds none."""

    def find(self, question: str | EncodedQuery, log: EventLog | None = None) -> Findings:
        """Search as evidence mode does; a document with a rule that answers counts as one that the question names."""
        findings = super().find(question, log)
        rules = self._rules(self._retriever.query(question), findings.filters)
        hits = [hit for hit in findings.hits if hit.doc_id in {rule.doc_id for rule in rules}]
        return findings._replace(named=(*findings.named, *(hit.doc_id for hit in hits)), rules=rules)

    def _rules(self, query: EncodedQuery, filters: Filters) -> tuple[StructuredResult, ...]:
        results = StructuredProvider(self._retriever).retrieve(query.text, PASSAGES_QUOTED, filters)
        if not results or results[0].source != "entity" or results[0].score < SURE:
            return ()
        least = NEARLY * results[0].score
        return tuple(result for result in results if result.source == "entity" and result.score >= least)

    def _grade(self, findings: Findings) -> Grade:
        return "answers" if findings.rules else super()._grade(findings)

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
