"""The agent's tools over an index: search, read, look up entities, outlines and sections, graph."""

from collections.abc import Callable, Iterable
from functools import cached_property

from legal_rag.agent.event_log import EventLog
from legal_rag.agent.outlines import outline_text
from legal_rag.agent.passages import spoken_in
from legal_rag.agent.tool_arguments import (
    asked_filters,
    bounded,
    edge_type_of,
    filters_of,
    find_chunks,
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
    hit_text,
    passages_text,
    window_text,
)
from legal_rag.corpus.chunking import READ_CHARS, window_at
from legal_rag.corpus.chunking import chunk_id as format_chunk_id
from legal_rag.corpus.documents import Document
from legal_rag.extraction.entities import Entity
from legal_rag.graph.graph import KnowledgeGraph
from legal_rag.graph.store import GRAPH
from legal_rag.law.tree import TreeNode
from legal_rag.library.library import Library
from legal_rag.library.outlines import outline_of
from legal_rag.retriever.retriever import Retriever, SearchHit
from legal_rag.retriever.structured import DocumentOutline

MAX_HITS, MAX_NEIGHBOURS = 50, 5  # of one call
SEARCH_K = 5  # passages of a search
NO_GRAPH = "Ce corpus n'a pas de graphe : cherchez avec search_legal_docs."
TOO_LONG = "la question est trop longue, reformulez-la en une phrase"


def build_tools(
    corpus: Library, retriever: Retriever, log: EventLog | None = None, search_k: int = SEARCH_K
) -> list[Callable[..., str]]:
    """Build an agent's tools over one corpus; their French docstrings are prompts. They write to the log, if any.

    A search that does not say how many passages it wants gets `search_k`. Where there is a knowledge graph, a tool asks
    it.
    """
    tools = _Tools(corpus, retriever, log if log is not None else EventLog(), search_k)
    has_graph = (corpus.path / GRAPH).is_file()
    return [
        tools.search_legal_docs,
        tools.lookup_legal_doc,
        tools.lookup_chunk,
        tools.lookup_entities,
        tools.get_outline,
        tools.read_section,
        *([tools.graph_neighbours] if has_graph else []),
    ]


class _Tools:
    def __init__(self, corpus: Library, retriever: Retriever, log: EventLog, search_k: int) -> None:
        self._corpus, self._retriever, self._log, self._search_k = corpus, retriever, log, search_k

    @bounded(refused)
    def search_legal_docs(
        self,
        query: str,
        k: int | None = None,
        juridiction: str = "",
        formation: str = "",
        solution: str = "",
        date_from: str = "",
        date_to: str = "",
        number: str = "",
        article: str = "",
        entites: str = "",
    ) -> str:
        """Cherche dans le corpus les passages les plus proches d'une question en français.

        Donne au plus k passages (1 à 50 ; sans k, le nombre habituel), du plus proche au moins proche : identifiant du
        passage, score, décision, position dans la décision, extrait. Reformulez la question avec les mots du droit si
        rien ne convient.
        Filtres facultatifs : juridiction (« Cass. soc. », « CA Lyon »), formation (« chambre sociale »), solution
        (« rejet »), date_from et date_to (« 2023 », « 8 novembre 2023 »), number (numéro ou ECLI de la décision),
        article (« L. 1152-1 du code du travail »), entites (ce que le texte doit contenir, séparé par « ; » :
        « partie=Société Lever ; date=12 mai 1993 ; montant=1 000 francs »).
        """
        asked = asked_filters(locals())
        k = self._search_k if k is None else k
        with self._log.record("search", "search_legal_docs", query=query, k=k, **asked) as ids:
            try:
                hits = self._search_corpus(query, k, asked)
            except ValueError as error:
                return f"{error}."
            ids += [hit.chunk_id for hit in hits]
        for hit in hits:
            self._log.saw(hit)
        nothing = "Aucun passage trouvé avec ces filtres." if asked else "Aucun passage trouvé."
        texts = (hit_text(hit, self._corpus.document(hit.doc_id), spoken_in(hit, self._corpus)) for hit in hits)
        return _join_blocks(texts) or nothing

    @bounded(refused)
    def lookup_legal_doc(self, chunk_id: str, start: int = 0) -> str:
        """Lit une décision en entier, ou, si elle est longue, une partie à partir du caractère start.

        chunk_id est l'identifiant d'un passage ou d'une décision, par exemple JURITEXT000007022836-0. La réponse dit où
        se trouve la partie lue et quel start donne la suite. Chaque morceau suit sa position : « [chars 800-1420] » se
        cite [Source: JURITEXT000007022836, chars 800-1420].
        """
        asked = {"start": start} if start else {}
        with self._log.record("read", "lookup_legal_doc", chunk_id=chunk_id, **asked) as ids:
            try:
                document = self._document(chunk_id)
                first = whole_number("start", start, 0, most=len(document.content))
            except LookupError as error:
                return as_data(str(error.args[0]))
            except ValueError as error:
                return f"Lecture impossible : {error}."
            if first >= len(document.content):
                return f"Rien à lire : la décision {document.id} a {len(document.content)} caractères."
            ids.append(document.id)
        self._log.read(document)
        return window_text(document, window_at(document.content, first))

    @bounded(refused)
    def lookup_chunk(self, chunk_id: str, context_chunks: int = 1) -> str:
        """Donne un passage avec ceux qui l'entourent, et la position exacte de chacun pour le citer.

        chunk_id est l'identifiant d'un passage ; context_chunks, le nombre de voisins de chaque côté (0 à 5).
        """
        with self._log.record("read", "lookup_chunk", chunk_id=chunk_id, context_chunks=context_chunks) as ids:
            try:
                around = whole_number("context_chunks", context_chunks, 1, most=MAX_NEIGHBOURS)
                asked, chunks = find_chunks(resolve_id(chunk_id, self._corpus), around, self._corpus)
            except LookupError as error:
                return as_data(str(error.args[0]))
            except ValueError as error:
                return f"Lecture impossible : {error}."
            ids += [format_chunk_id(chunk.doc_id, chunk.chunk_index) for chunk in chunks]
        document = self._corpus.document(asked.doc_id)
        self._log.read(document)
        if len(chunks[0].text) > READ_CHARS:  # in an imported index, a passage may be the whole document
            return window_text(document, window_at(document.content))
        return _join_blocks(passages_text(document, chunks, asked))

    @bounded(refused)
    def lookup_entities(self, doc_id_or_chunk_id: str, classes: str = "") -> str:
        """Donne les éléments repérés dans une décision, chacun avec sa position exacte pour le citer.

        Parties, avocats, juridiction, dates, numéros, montants, délais, articles cités, solution, etc.
        doc_id_or_chunk_id est l'identifiant d'une décision ou d'un passage ; classes, facultatif, n'en garde que
        certaines, séparées par des virgules : « partie, montant ».
        """
        with self._log.record("read", "lookup_entities", doc_id_or_chunk_id=doc_id_or_chunk_id, classes=classes) as ids:
            try:
                document = self._document(doc_id_or_chunk_id)
            except LookupError as error:
                return as_data(str(error.args[0]))
            ids.append(document.id)
        self._log.read(document)
        return entities_text(document, entities_of(document, self._corpus), parts_of(text_of(classes, ","), ","))

    @bounded(refused)
    def get_outline(self, doc_id: str, section: str = "") -> str:
        """Donne le plan d'une décision ou d'un texte : ses sections, chacune avec son identifiant et son titre.

        doc_id est l'identifiant d'une décision ou d'un passage ; section, facultatif, n'ouvre que cette section. Le
        signe (+12) dit que douze sections ne sont pas montrées : redemandez le plan de la section qui le porte.
        """
        asked = {"section": section} if section else {}
        with self._log.record("read", "get_outline", doc_id=doc_id, **asked) as ids:
            try:
                document, node = self._section(doc_id, section)
            except LookupError as error:
                return as_data(str(error.args[0]))
            ids.append(document.id)
        return block(outline_text(DocumentOutline(document.id, document.title, node)))

    @bounded(refused)
    def read_section(self, doc_id: str, section: str) -> str:
        """Lit une section d'une décision ou d'un texte, ou, si elle est longue, son début.

        doc_id est l'identifiant d'une décision ou d'un passage ; section, l'identifiant (« 0003 ») ou le titre d'une
        section que get_outline a donnée. Chaque morceau suit sa position : « [chars 800-1420] » se cite [Source:
        JURITEXT000007022836, chars 800-1420]. lookup_legal_doc lit la suite à partir du start indiqué.
        """
        with self._log.record("read", "read_section", doc_id=doc_id, section=section) as ids:
            try:
                document, node = self._section(doc_id, section)
            except LookupError as error:
                return as_data(str(error.args[0]))
            ids.append(document.id)
        self._log.read(document)
        return window_text(document, window_at(document.content[: node.char_end], node.char_start))

    @bounded(refused)
    def graph_neighbours(self, name: str, type: str = "") -> str:
        """Donne les liens connus autour d'une décision, d'un article, d'une juridiction ou d'une partie.

        Qui cite ou casse une décision, ce qu'elle applique, qui l'a rendue, qui y est partie : un lien par ligne, avec
        la place du texte qui le montre. name est un identifiant, un numéro, un article (« article 1240 du code
        civil ») ou un nom ; type, facultatif, ne garde qu'un genre : cites, applies, overrules, upholds, decided_by,
        party_to.
        """
        with self._log.record("search", "graph_neighbours", name=name, type=type) as ids:
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
            self._log.found(self._corpus.document(doc_id))
        return edges_text(node, edges, more=more)

    @cached_property
    def _knowledge_graph(self) -> KnowledgeGraph:
        return KnowledgeGraph(self._corpus)

    def _section(self, doc_id: str, section: object) -> tuple[Document, TreeNode]:
        document = self._document(doc_id)
        return document, find_section(text_of(section), outline_of(self._corpus, document.id))

    def _document(self, identifier: object) -> Document:
        return find_document(resolve_id(identifier, self._corpus), self._corpus)

    def _search_corpus(self, query: object, k: object, asked: dict[str, str]) -> list[SearchHit]:
        """Search with a model's arguments; ValueError with a French sentence if they are invalid or the index fails."""
        try:
            text, filters = question_of(query), filters_of(asked)
            n_hits = whole_number("k", k, self._search_k, 1, MAX_HITS)
        except ValueError as error:
            raise ValueError(f"Recherche impossible : {error}") from error
        try:
            parsed = self._retriever.query(text)
        except ValueError as error:  # the encoder's message is not for the model
            raise ValueError(f"Recherche impossible : {TOO_LONG}") from error
        with search_errors("Recherche impossible dans ce corpus avec ces filtres"):
            return self._retriever.search(parsed, n_hits, filters=filters)


def _join_blocks(texts: Iterable[str]) -> str:
    return "\n".join(map(block, texts))


def entities_of(document: Document, corpus: Library) -> list[Entity]:
    """Return the entities extracted from a document, or else those that the rules find now."""
    if (stored := corpus.entities_of(document.id)) is not None:
        return stored
    from legal_rag.extraction.rules import find_entities  # compiles patterns for 0.3 s

    return find_entities(document.content)
