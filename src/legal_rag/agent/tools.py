"""The agent's tools over an index: search, read, look up entities, outlines and sections, graph."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from legal_rag.agent.event_log import EventLog
from legal_rag.agent.outlines import outline_text
from legal_rag.agent.passages import choose_passages, deviations, weigh_documents
from legal_rag.agent.pieces import without_names
from legal_rag.agent.tool_arguments import (
    asked_filters,
    bounded,
    edge_type_of,
    filters_of,
    find_chunk,
    find_document,
    find_node,
    find_section,
    parts_of,
    question_of,
    refused,
    resolve_id,
    search_errors,
    text_of,
    whole_number,
)
from legal_rag.agent.tool_outputs import (
    as_data,
    block,
    edges_text,
    entities_text,
    facts_around,
    kind_in_french,
    paragraphs_in,
    shorten_line,
    speaker_told,
    window_text,
)
from legal_rag.base.text import fold_text
from legal_rag.corpus.chunking import READ_CHARS, Window, window_at, window_number, windows_of
from legal_rag.corpus.documents import Document
from legal_rag.extraction.entities import Entity
from legal_rag.graph.graph import KnowledgeGraph
from legal_rag.graph.store import GRAPH
from legal_rag.law.citation import legal_citation
from legal_rag.law.tree import TreeNode
from legal_rag.library.filters import Filters
from legal_rag.library.library import Library
from legal_rag.library.outlines import outline_of, passages_in
from legal_rag.retriever.retriever import EncodedQuery, Retriever, SearchHit
from legal_rag.retriever.search_box import NO_FILTERS, Inferred, dated, inferred_filters
from legal_rag.retriever.structured import (
    DocumentOutline,
    StructuredProvider,
    StructuredResult,
    entity_result,
    has_entity_words,
)

MAX_HITS = 50  # passages that one search shows
SEARCH_K = 5  # passages of a search
PASSAGE_CHARS = 210  # of a passage on the average; the longest has `passages.PASSAGE_CHARS`
HEAD_CHARS = 100  # of a decision's citation above its passages
LEAST_DOCUMENTS = 3  # that a search weighs the passages of: the right one is first among them nearly always
MAX_FOUND = 10  # entities of all documents that one call shows
SECTION_CHARS = 300  # of a line on where a span stands and what it says
NOT_WITH_FILTERS = "Aucun passage ne répond à ces filtres ; voici ce que donne la recherche sans eux."
NO_SUCH_FILTER = "ce corpus n'a pas de quoi appliquer ces filtres"
NO_GRAPH = "Ce corpus n'a pas de graphe : cherchez avec query."
TOO_LONG = "la question est trop longue, reformulez-la en une phrase"


def build_tools(
    corpus: Library,
    retriever: Retriever,
    log: EventLog | None = None,
    search_k: int = SEARCH_K,
    read_chars: int = READ_CHARS,
    filters: Filters = NO_FILTERS,
    *,
    infer_filters: bool = True,
    structured: StructuredProvider | None = None,
) -> list[Callable[..., str]]:
    """Build an agent's tools over one corpus; their French docstrings are prompts. They write to the log, if any.

    A search that does not say how many passages it wants gets `search_k`; at most `read_chars` characters of a document
    are read at once. Searches keep to `filters`, and `infer_filters` reads more from their words; the first one gives
    what `structured` finds. Where there is a knowledge graph, a tool asks it; so it is with entities of all documents.
    """
    log = log if log is not None else EventLog()
    tools = _Tools(corpus, retriever, log, search_k, read_chars, filters, infer_filters, structured)
    has_graph = (corpus.path / GRAPH).is_file()
    return [
        tools.search_legal_docs,
        tools.lookup_legal_doc,
        tools.lookup_entities,
        tools.get_outline,
        tools.read_section,
        *([tools.graph_neighbours] if has_graph else []),
        *([tools.find_entities] if has_entity_words(corpus) else []),
    ]


@dataclass(eq=False)
class _Tools:
    """Tools for one answer: a repeated call goes on where the last one ended."""

    corpus: Library
    retriever: Retriever
    log: EventLog
    search_k: int
    read_chars: int
    filters: Filters
    infers: bool
    structured: StructuredProvider | None
    searched: Counter[str] = field(default_factory=Counter)  # documents given, by words and filters
    next_parts: dict[str, int] = field(default_factory=dict)  # numbers of the parts to read next, by document

    @bounded(refused)
    def search_legal_docs(self, query: str, filters: dict[str, Any] | None = None, k: int | None = None) -> str:
        """d'autres mots à chercher dans le corpus, si les passages ne suffisent pas.

        filters, facultatif : un objet avec juridiction, formation, solution, date_from, date_to, number, article,
        speaker, section, entites, at (jour dont il faut le droit).
        """
        asked = asked_filters(filters)
        k = self.search_k if k is None else k
        with self.log.record("search", "search_legal_docs", query=query, k=k, **asked) as ids:
            try:
                n_passages = whole_number("k", k, self.search_k, 1, MAX_HITS)
                parsed = self._parse(query)
                inferred = self._read_filters(parsed, filters_of(asked, self.filters))
                if self.structured is not None:
                    results = self.structured.retrieve(parsed.text, n_passages, inferred.filters)
                    self.structured = None  # the model's own searches are for other words
                    ids += [result.doc_id for result in results]
                    return as_data("".join(f"{said}\n" for said in inferred.remarks)) + self._show_results(results)
                hits = self._search(parsed, n_passages, inferred.filters)
                given = replace(self.filters, at=inferred.filters.at)
                is_filtered = inferred.filters != given
                without = self._search(parsed, n_passages, given, counts=False) if is_filtered else []
            except ValueError as error:
                return f"Recherche impossible : {error}."
            ids += [hit.chunk_id for hit in hits or without]
            lost = [hit for hit in without if hit.doc_id not in {hit.doc_id for hit in hits}]
            remark = "".join(f"{said}\n" for said in inferred.remarks)
            if not hits and lost:
                remark, hits = f"{NOT_WITH_FILTERS}\n", lost
            elif lost:
                remark += f"Sans ces filtres viendraient aussi : {', '.join(hit.doc_id for hit in lost)}.\n"
            for hit in hits:
                self.log.saw(hit)
            return as_data(remark) + self._show(parsed, hits, n_passages)

    @bounded(refused)
    def lookup_legal_doc(self, id: str, part: int | None = None) -> str:
        """une décision à lire, par son identifiant.

        part, facultatif : quelle partie d'une longue.
        """
        asked = {} if part is None else {"part": part}
        with self.log.record("read", "lookup_legal_doc", id=id, **asked) as ids:
            try:
                document, place = self._place(id)
                windows = windows_of(document.content, self.read_chars)
                default = self.next_parts.get(document.id) or window_number(windows, place)
                number = whole_number("part", part, default, 1, most=len(windows))
            except LookupError as error:
                return as_data(str(error.args[0]))
            except ValueError as error:
                return f"Lecture impossible : {error}."
            ids.append(document.id)
            self.log.read(document)
            self.next_parts[document.id] = number % len(windows) + 1
            where = f"Partie {number} sur {len(windows)}.\n" if len(windows) > 1 else ""
            return where + self._read(document, windows[number - 1])

    @bounded(refused)
    def find_entities(self, query: str) -> str:
        """les règles, durées, sommes, parties, articles de tout le corpus qui répondent à ces mots."""
        with self.log.record("search", "find_entities", query=query) as ids:
            try:
                text = self._parse(query).text
                with search_errors(NO_SUCH_FILTER):
                    found = self.corpus.entities_like(text, MAX_FOUND, self.corpus.dated(self.filters))
            except ValueError as error:
                return f"Recherche impossible : {error}."
            ids += dict.fromkeys(match.doc_id for match in found)
        return self._show_results([entity_result(self.corpus, match) for match in found])

    @bounded(refused)
    def lookup_entities(self, id: str, classes: str = "") -> str:
        """ses parties, avocats, dates, montants, articles, sa solution.

        classes, facultatif, en choisit.
        """
        with self.log.record("read", "lookup_entities", id=id, classes=classes) as ids:
            try:
                document = self._document(id)
            except LookupError as error:
                return as_data(str(error.args[0]))
            ids.append(document.id)
        self.log.read(document)
        return entities_text(document, entities_of(document, self.corpus), parts_of(text_of(classes, ","), ","))

    @bounded(refused)
    def get_outline(self, id: str, section: str = "") -> str:
        """son plan : numéros et titres des sections.

        section, facultatif, n'ouvre que celle-ci.
        """
        asked = {"section": section} if section else {}
        with self.log.record("read", "get_outline", id=id, **asked) as ids:
            try:
                document, node = self._section(id, section)
            except LookupError as error:
                return as_data(str(error.args[0]))
            ids.append(document.id)
        return block(outline_text(DocumentOutline(document.id, document.title, node)))

    @bounded(refused)
    def read_section(self, id: str, section: str) -> str:
        """une section, par numéro ou titre."""
        with self.log.record("read", "read_section", id=id, section=section) as ids:
            try:
                document, node = self._section(id, section)
            except LookupError as error:
                return as_data(str(error.args[0]))
            ids.append(document.id)
        self.log.read(document)
        window = window_at(document.content[: node.char_end], node.char_start, self.read_chars)
        return self._read(document, window)

    @bounded(refused)
    def graph_neighbours(self, name: str, type: str = "") -> str:
        """qui cite ou casse une décision, ce qu'elle applique, qui l'a rendue.

        type, facultatif, en choisit : cites, applies, overrules, upholds, decided_by, party_to.
        """
        with self.log.record("search", "graph_neighbours", name=name, type=type) as ids:
            try:
                node = find_node(name, self._knowledge_graph)
                edges, more = facts_around(node, self._knowledge_graph, edge_type_of(type))
            except FileNotFoundError:
                return NO_GRAPH
            except LookupError as error:
                return as_data(str(error.args[0]))
            except ValueError as error:
                return as_data(f"Recherche impossible : {error}.")
            doc_ids = (part.doc_id for edge in edges for part in (edge, edge.source, edge.target) if part.doc_id)
            ids += dict.fromkeys(doc_ids)
        for doc_id in ids:
            self.log.found(self.corpus.document(doc_id))
        return edges_text(node, edges, more=more)

    @cached_property
    def _knowledge_graph(self) -> KnowledgeGraph:
        return KnowledgeGraph(self.corpus)

    def _section(self, doc_id: str, section: object) -> tuple[Document, TreeNode]:
        document = self._document(doc_id)
        return document, find_section(text_of(section), outline_of(self.corpus, document.id))

    def _read(self, document: Document, window: Window) -> str:
        spoken = passages_in(self.corpus, document.id, window.start, window.end)
        return block(window_text(document, window, self.log.pieces, spoken))

    def _document(self, identifier: object) -> Document:
        return find_document(resolve_id(identifier, self.corpus, self.filters.at), self.corpus)

    def _place(self, identifier: object) -> tuple[Document, int]:
        """Return the document that an id means, and where to read: at the passage it names, or the first one shown."""
        resolved = resolve_id(identifier, self.corpus, self.filters.at)
        document = find_document(resolved, self.corpus)
        if resolved.strip() != document.id:
            return document, find_chunk(resolved, self.corpus).char_start
        piece = self.log.pieces.first_of(document.id)
        return document, piece.char_start if piece else 0

    def _parse(self, query: object) -> EncodedQuery:
        text = question_of(query)
        try:
            return self.retriever.query(text)
        except ValueError as error:  # the encoder's message is not for the model
            raise ValueError(TOO_LONG) from error

    def _search(
        self, query: EncodedQuery, n_passages: int, filters: Filters, *, counts: bool = True
    ) -> list[SearchHit]:
        """Return the best documents, after those that the same search gave before; `counts` this one as given.

        ValueError with a French sentence if the index fails.
        """
        n_documents = max(LEAST_DOCUMENTS, n_passages // 2)
        call = f"{fold_text(query.text)} {filters}"
        before = self.searched[call]
        with search_errors(NO_SUCH_FILTER):
            hits = self.retriever.search(query, before + n_documents, by_document=True, filters=filters)
        self.searched[call] += counts and len(hits) - before
        return hits[before:]

    def _read_filters(self, query: EncodedQuery, filters: Filters) -> Inferred:
        if not self.infers:
            return Inferred(filters)
        with search_errors(NO_SUCH_FILTER):
            dated_filters, said = dated(query, self.corpus, filters)
            inferred = inferred_filters(query.text, self.corpus, dated_filters)
            return inferred._replace(remarks=(*inferred.remarks, *said))

    def _show_results(self, results: Sequence[StructuredResult]) -> str:
        """Write spans in their order, each document's together, under their sections and with what entities say."""
        if not results:
            return "Aucun élément trouvé."
        lines = []
        for doc_id in dict.fromkeys(result.doc_id for result in results):
            document = self.corpus.document(doc_id)
            self.log.read(document)
            lines.append(_head(document))
            for result in (result for result in results if result.doc_id == doc_id):
                lines.append(
                    without_names(shorten_line(f"{' › '.join(result.sections)} ({result.reason})", SECTION_CHARS))
                )
                spans = paragraphs_in(document.content, result.char_start, result.char_end)
                lines += [self.log.pieces.show(document, *span) for span in spans]
        return block("\n".join(lines))

    def _show(self, query: EncodedQuery, hits: Sequence[SearchHit], n_passages: int) -> str:
        """Write documents, each with those of its passages that are among the best of all and were not shown yet."""
        if not hits:
            return "Aucun autre passage trouvé."
        documents = [self.corpus.document(hit.doc_id) for hit in hits]
        read = [self.retriever.document_tokens(hit.doc_id, near=hit.char_start) for hit in hits]
        texts = [(document.content, tokens) for document, tokens in zip(documents, read, strict=True)]
        weighed = weigh_documents(query.tokens, texts, [document.extra.get("zones") for document in documents])
        pieces = self.log.pieces
        new = [
            [passage for passage in passages if not pieces.is_shown(document.id, passage.start, passage.end)]
            for document, passages in zip(documents, weighed, strict=True)
        ]
        scores, chars = deviations(hits, self.retriever), n_passages * PASSAGE_CHARS
        chosen = choose_passages(new, scores, n_passages, chars)
        lines = []
        for number, document in enumerate(documents):
            lines.append(_head(document))
            for _, (start, end, paragraph, _) in sorted(
                (entry for entry in chosen if entry[0] == number), key=lambda entry: entry[1].start
            ):
                lines.append(pieces.show(document, start, end, speaker_told(paragraph)))
        return block("\n".join(lines))


def _head(document: Document) -> str:
    named = without_names(legal_citation(document).plain)
    return f"{kind_in_french(document)} {document.id} : {shorten_line(named, HEAD_CHARS)}"


def entities_of(document: Document, corpus: Library) -> list[Entity]:
    """Return the entities extracted from a document, or else those that the rules find now."""
    if (stored := corpus.entities_of(document.id)) is not None:
        return stored
    from legal_rag.extraction.rules import find_entities  # compiles patterns for 0.3 s

    return find_entities(document.content)
