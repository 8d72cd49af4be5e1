"""Functions that programs may call to list, search, read and question documents, with their caches."""

import copy
import difflib
import hashlib
import inspect
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin

from cachetools import LRUCache, cached
from cachetools.keys import hashkey

from legal_rag.agent.event_log import EventLog
from legal_rag.agent.prediction import EventType
from legal_rag.agent.tool_arguments import (
    BOUNDS,
    FILTERS,
    LARGEST,
    NAME,
    SHOWN_CHARS,
    TEXT,
    as_sent,
    asked_filters,
    bounded,
    document_id,
    document_ids,
    filters_of,
    find_section,
    items_of,
    printed,
    question_of,
    search_errors,
    text_of,
    whole_number,
    within_bound,
)
from legal_rag.agent.tools import entities_of
from legal_rag.base.text import fold_text, storable
from legal_rag.corpus.documents import Document, holds
from legal_rag.corpus_index.index import DocumentMeta
from legal_rag.corpus_index.sections import DocumentIndex, contents_of
from legal_rag.deep_read.grep import MAX_CONTEXT, SECONDS, CorpusGrep, GrepQuery, GrepResult, Match, grep_text
from legal_rag.deep_read.map_reduce import answer_each, map_in_threads
from legal_rag.deep_read.prompts import SAMPLES, error_text
from legal_rag.deep_read.receipts import Receipts
from legal_rag.deep_read.settings import WORKERS
from legal_rag.extraction.engine import schema_of_classes
from legal_rag.extraction.entities import KNOWN_CLASSES, Entity
from legal_rag.extraction.lookup import class_named
from legal_rag.extraction.schemas import ExtractionSettings
from legal_rag.graph.fates import graph_of, standing_of
from legal_rag.library.filters import Filters, naming_condition
from legal_rag.library.outlines import outline_of
from legal_rag.llm import ModelError, TextModel
from legal_rag.retriever.retriever import Retriever, SearchHit

if TYPE_CHECKING:
    from legal_rag.corpus_index.index import CorpusIndex
    from legal_rag.graph.graph import KnowledgeGraph

T = TypeVar("T")
Class = TypeVar("Class")

MAX_LISTED = 100_000  # ids or summaries returned by one call
MAX_HITS = 1000  # returned by one search
MAX_EVENTS = 200  # logged in one run: a loop may call a function for each document
MAX_READ = 1000  # documents logged as read in one run
MAX_LOGGED_IDS = 50  # of one result
MAX_SEEN, MAX_PASSAGES = 20, 2000  # passages logged for one search, the best ones, and in one run
NOT_FOUND = "recherche impossible dans ce corpus avec ces filtres"
TOO_LONG = "recherche impossible : raccourcissez la question"
NO_ENTITIES = "recherche impossible : aucune entité n'a été extraite de ce corpus"
NO_SUCH_ENTITIES = (
    f"aucune entité de cette classe n'a été extraite de ce corpus ; les classes usuelles : {', '.join(KNOWN_CLASSES)}"
)
# What programs may call, and nothing else; prompts list them in this order.
FUNCTION_NAMES = tuple(
    """
    list_documents get_doc_meta get_doc_metas get_doc_summary get_all_summaries find_documents search_by_keyword
    search_by_keywords search_by_entity grep_corpus search_status rank_documents search_passages get_topics
    documents_in_topic get_links documents_citing
    read_document read_document_chunk grep_document get_entities get_doc_toc get_doc_sections get_section_details
    read_doc_section
    llm_query llm_query_batched ask_about_document ask_across_documents on_demand_extract parallel_document_search
    """.split()
)
UNTOLD = frozenset({"get_doc_summary", "parallel_document_search"})  # others give the same
MAX_IDS = 10_000  # in a sandbox's list of all ids; programs over a larger corpus call `list_documents`
DOCUMENTS, SEARCHES, REPLIES = 50, 100, 200  # cached, least recently used dropped
MAX_IDS_KEPT, MAX_MATCHES_KEPT = 10_000, 5_000  # of one search; larger results are not cached

UNKNOWN = error_text("aucun document de ce nom")


def _with_bounds(functions: type[Class]) -> type[Class]:
    """Check the arguments of a class's functions, see `bounded`."""
    for name in FUNCTION_NAMES:
        function = getattr(functions, name)
        if not hasattr(function, "__wrapped__"):  # by bounds of its own
            setattr(functions, name, bounded()(function))
    return functions


@_with_bounds
class MultiDocREPL:
    """The functions over one corpus, called one at a time; those that ask the model call it from several threads.

    Three caches answer what was asked before: `doc_content_cache`, `search_result_cache`, `llm_response_cache`.
    """

    def __init__(
        self,
        corpus_index: "CorpusIndex",
        sub_llm: TextModel | None = None,
        retriever: Retriever | None = None,
        *,
        log: EventLog | None = None,
        workers: int = WORKERS,
    ) -> None:
        """Open the functions over the index of a Library.

        `sub_llm` answers questions about single texts; without one, the functions that ask it raise ValueError. Without
        a `retriever`, passages are searched by words. `log` records searches, what they found, and documents read;
        `workers` calls of the model are made at once.
        """
        self.llm_response_cache = _cached(sub_llm.query if sub_llm else str, LRUCache(REPLIES), key=_hash_repr)
        self.sub_llm: TextModel | None = sub_llm and SimpleNamespace(query=self.llm_response_cache)
        self.doc_content_cache = _cached(lambda doc_id: self.library.document(doc_id), LRUCache(DOCUMENTS))
        searches = LRUCache[bytes, Any](SEARCHES, _cache_size)
        self.search_result_cache = _cached(lambda key, find: find(), searches, key=lambda key, find: _hash_repr(key))
        self.retriever = retriever
        self.log = log if log is not None else EventLog()
        self.last_search = GrepResult(0)
        self._workers = workers
        self.corpus, self.library = corpus_index, corpus_index.library
        self._grep = CorpusGrep(self.library, SECONDS)
        self._words = Retriever(self.library)  # for BM25 alone: no encoder is loaded

    def list_documents(self, limit: int | None = None, offset: int = 0) -> list[str]:
        """Identifiants des documents, dans l'ordre du corpus ; limit et offset en donnent une partie."""
        most, first = _at_most("limit", limit), whole_number("offset", offset, 0)
        left = max(0, self.corpus.total_docs - first)
        if min(left, most or left) > MAX_LISTED:
            raise ValueError(f"{left} documents : demandez-en {MAX_LISTED} au plus à la fois, par limit et offset")
        return self.corpus.document_ids(most, first)

    def get_doc_meta(self, doc_id: str) -> dict[str, Any]:
        """Fiche d'un document : doc_id, title, date, juridiction, formation, solution, number, summary, keywords,
        entities, doc_type, author, char_count, cluster, fate (« cassé par … » si une décision postérieure du corpus
        l'a cassée ou infirmée, même en partie : dites-le en la citant).
        """
        meta = _without_place(self.corpus.document_meta(self._id(doc_id)).to_json())
        return {**meta, "fate": self._fate(meta["doc_id"])}

    def get_doc_metas(self, doc_ids: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
        """Fiches de plusieurs documents d'un coup, par identifiant, comme get_doc_meta mais sans entities ; sans
        doc_ids, de tous.
        """
        if doc_ids is None and (total := self.corpus.total_docs) > MAX_LISTED:
            raise ValueError(f"{total} documents : nommez-en {MAX_LISTED} au plus à la fois dans doc_ids")
        metas = self.corpus.metas(None if doc_ids is None else self._ids(doc_ids))
        return {meta.doc_id: {**_without_entities(meta), "fate": self._fate(meta.doc_id)} for meta in metas}

    def get_doc_summary(self, doc_id: str) -> str:
        """Résumé d'un document : le sommaire officiel s'il existe, sinon deux ou trois phrases de son texte."""
        return self.corpus.document_meta(self._id(doc_id)).summary

    def get_all_summaries(self, limit: int | None = None, offset: int = 0) -> dict[str, str]:
        """Résumés par identifiant, de tous les documents ou de limit d'entre eux à partir de offset."""
        most, first = _at_most("limit", limit) or MAX_LISTED, whole_number("offset", offset, 0)
        ids = self.corpus.document_ids(min(most, MAX_LISTED), first)
        return dict(self.corpus.summaries(ids))

    def find_documents(
        self,
        juridiction: str = "",
        formation: str = "",
        solution: str = "",
        date_from: str = "",
        date_to: str = "",
        number: str = "",
        article: str = "",
        entites: str = "",
        doc_ids: Sequence[str] | None = None,
    ) -> list[str]:
        """Identifiants de TOUS les documents qui remplissent les conditions données, dans l'ordre du corpus :
        juridiction (abrégée ou entière), formation, solution, date_from et date_to (AAAA ou AAAA-MM-JJ), number (numéro
        ou ECLI), article (cité, avec son code), entites (classe=valeur).
        """
        asked = asked_filters(locals())
        filters = self._filters(asked, doc_ids)
        with self._event("search", "find_documents", **asked) as ids:
            with search_errors(self._search_refusal(filters)):
                matching_ids = self._once(("filters", filters), lambda: self.library.ids(filters))
            ids += matching_ids
        return matching_ids

    def search_by_keyword(self, keyword: str) -> list[str]:
        """Identifiants des documents dont un mot-clé est celui-ci (accents, pluriel et majuscules indifférents).
        Les mots-clés sont les termes marquants d'un document ; pour un mot quelconque du texte : grep_corpus.
        """
        with self._event("search", "search_by_keyword", keyword=keyword) as ids:
            matching_ids = self._having_keyword(question_of(keyword))
            ids += matching_ids
        return matching_ids

    def search_by_keywords(self, keywords: list[str], mode: str = "any") -> list[str]:
        """Identifiants des documents ayant l'un des mots-clés (mode "any", ceux qui en ont le plus d'abord) ou tous
        (mode "all").
        """
        terms = _texts_of(keywords)
        if mode not in ("any", "all"):
            raise ValueError('mode doit être "any" (l\'un des mots) ou "all" (tous)')
        with self._event("search", "search_by_keywords", keywords=terms, mode=mode) as ids:
            counts: dict[str, int] = {}
            for keyword in terms:
                for doc_id in self._having_keyword(keyword):
                    counts[doc_id] = counts.get(doc_id, 0) + 1
            least = len(terms) if mode == "all" else 1
            ranked = sorted((doc_id for doc_id, n in counts.items() if n >= least), key=lambda doc_id: -counts[doc_id])
            ids += ranked
        return ranked

    def search_by_entity(self, entity: str) -> list[str]:
        """Identifiants des documents qui nomment une partie, une date, un montant, un avocat, un article, un numéro."""
        with self._event("search", "search_by_entity", entity=entity) as ids:
            named = question_of(entity)
            with search_errors("aucune entité n'a été extraite de ce corpus : cherchez par grep_corpus"):
                matching_ids = self._once(("entity", named), lambda: self.corpus.entity(named))
            ids += matching_ids
        return matching_ids

    def grep_corpus(
        self,
        pattern: str,
        max_docs: int | None = 100,
        doc_ids: Sequence[str] | None = None,
        ignore_case: bool = True,
        max_matches_per_doc: int | None = 50,
        context: int = 0,
        fold: bool = False,
    ) -> dict[str, list[Match]]:
        """Expression régulière (celles de Python ; ^ et $ par ligne) dans tous les textes ou doc_ids. Donne {doc_id:
        [{"start", "end", "text"}]} ; search_status() dit si la recherche est complète. max_docs=None : tous les
        documents ; context : caractères autour ; fold=True : accents, apostrophes, tirets indifférents.
        """
        asked = _pattern_of(pattern)
        with self._event("search", "grep_corpus", pattern=asked) as ids:
            query = GrepQuery(
                asked,
                max_docs=_at_most("max_docs", max_docs),
                doc_ids=None if doc_ids is None else tuple(self._ids(doc_ids)),
                ignore_case=bool(ignore_case),
                fold=bool(fold),
                max_matches_per_doc=_at_most("max_matches_per_doc", max_matches_per_doc),
                context=whole_number("context", context, 0, most=MAX_CONTEXT),
            )
            self.last_search = self._once(("grep", query), lambda: self._grep.search(query))
            ids += self.last_search.matches
        return self.last_search.matches

    def search_status(self) -> dict[str, Any]:
        """Étendue du dernier grep_corpus : {"total", "scanned" (textes lus), "complete" (faux si max_docs ou le temps
        l'ont arrêté), "shortened" (documents ayant plus d'occurrences)}.
        """
        return self.last_search.state()

    def rank_documents(self, query: str, top_k: int = 10) -> list[tuple[str, float, str]]:
        """Documents les plus proches d'une question par leurs mots (BM25) : liste de (doc_id, score, résumé)."""
        with self._event("search", "rank_documents", query=query, top_k=top_k) as ids:
            hits = self._by_words(question_of(query), whole_number("top_k", top_k, 10, 1, MAX_HITS))
            ids += [hit.doc_id for hit in hits]
        self._log_hits(hits)
        summaries = dict(self.corpus.summaries([hit.doc_id for hit in hits]))
        return [(hit.doc_id, round(hit.score, 4), summaries[hit.doc_id]) for hit in hits]

    def search_passages(
        self,
        query: str,
        k: int = 10,
        juridiction: str = "",
        formation: str = "",
        solution: str = "",
        date_from: str = "",
        date_to: str = "",
        number: str = "",
        article: str = "",
        entites: str = "",
        doc_ids: Sequence[str] | None = None,
    ) -> list[dict[str, Any]]:
        """Passages les plus proches d'une question, le meilleur d'abord, avec les filtres de find_documents : liste de
        {"doc_id", "chunk_id", "char_start", "char_end", "text", "score", "title", "date", "fate"}.
        """
        asked = asked_filters(locals())
        filters = self._filters(asked, doc_ids)
        with self._event("search", "search_passages", query=query, k=k, **asked) as ids:
            hits = self._passages(question_of(query), whole_number("k", k, 10, 1, MAX_HITS), filters)
            ids += [hit.chunk_id for hit in hits]
        self._log_hits(hits)
        return [{**_format_passage(hit), "fate": self._fate(hit.doc_id)} for hit in hits]

    def get_topics(self) -> dict[str, int]:
        """Thèmes du corpus, chacun avec le nombre de ses documents, les plus fréquents d'abord."""
        sizes = {topic: len(ids) for topic, ids in self.corpus.topics.items()}
        return dict(sorted(sizes.items(), key=lambda item: (-item[1], item[0])))

    def documents_in_topic(self, topic: str) -> list[str]:
        """Identifiants des documents d'un thème, nommé comme get_topics le donne."""
        topics = self.corpus.topics
        return topics[_name_among(text_of(topic), list(topics), "aucun thème")]

    def get_links(self, doc_id: str) -> dict[str, list[str]]:
        """Liens d'un document : cites (documents du corpus qu'il cite) et cited_by (ceux qui le citent)."""
        meant = self._id(doc_id)
        return {"cites": self.corpus.cites(meant), "cited_by": self.corpus.cited_by(meant)}

    def documents_citing(self, text: str) -> list[str]:
        """Identifiants des documents qui citent un article ou une décision : « L. 1152-1 du code du travail »,
        « 90-41.231 », « 93-1328 AN ».
        """
        with self._event("search", "documents_citing", text=text) as ids:
            named = question_of(text)
            refusal = f"« {printed(named[:SHOWN_CHARS])} » n'est ni un article ni une décision"
            try:
                naming_condition(named)
            except ValueError as error:
                raise ValueError(refusal) from error
            with search_errors(refusal):
                matching_ids = self._once(("citing", named), lambda: self.corpus.citing(named))
            ids += matching_ids
        return matching_ids

    def read_document(self, doc_id: str) -> str:
        """Texte entier d'un document."""
        return self._document(doc_id).content

    def read_document_chunk(self, doc_id: str, start: int = 0, end: int | None = None) -> str:
        """Texte d'un document du caractère start au caractère end non compris ; sans end, jusqu'à la fin."""
        content = self._document(doc_id).content
        first = whole_number("start", start, 0)
        last = whole_number("end", end, max(first, len(content)))
        if last < first:
            raise ValueError(f"end ({last}) est avant start ({first})")
        return content[first:last]

    def grep_document(
        self, doc_id: str, pattern: str, ignore_case: bool = True, context: int = 0, fold: bool = False
    ) -> list[Match]:
        """Toutes les occurrences d'une expression régulière dans un document : liste de {"start", "end", "text"}."""
        return grep_text(
            self._document(doc_id).content,
            _pattern_of(pattern),
            ignore_case=bool(ignore_case),
            fold=bool(fold),
            context=whole_number("context", context, 0, most=MAX_CONTEXT),
        )

    def get_entities(self, doc_id: str, classes: list[str] | None = None) -> list[Entity]:
        """Éléments repérés dans un document (parties, avocats, dates, montants, articles cités, solution…) : liste de
        {"extraction_class", "extraction_text", "char_start", "char_end", "attributes"}. classes n'en garde que
        certaines : ["partie", "montant"].
        """
        document = self._document(doc_id)
        entities = entities_of(document, self.library)
        selected = {class_named(name) for name in _texts_of(classes)} if classes else set()
        present = {entity["extraction_class"] for entity in entities}
        if unknown := sorted(selected.difference(present, KNOWN_CLASSES)):
            raise ValueError(
                f"aucune classe « {as_sent(unknown[0])} » ; dans ce document : {', '.join(sorted(present)) or 'aucune'}"
            )
        return [entity for entity in entities if not selected or entity["extraction_class"] in selected]

    def get_doc_toc(self, doc_id: str) -> dict[str, Any]:
        """Plan d'un document : {"sections": [{"title", "start", "end", "level", "children"}]}."""
        return self._contents_of(doc_id).toc

    def get_doc_sections(self, doc_id: str) -> list[str]:
        """Noms des sections d'un document, à donner à read_doc_section."""
        return list(self._contents_of(doc_id).section_map)

    def get_section_details(self, doc_id: str) -> dict[str, dict[str, Any]]:
        """Sections d'un document, par nom : {"start", "end", "summary", "keywords", "entities"}."""
        index = self.corpus.document_index(self._id(doc_id))
        return {
            name: {
                "start": start,
                "end": end,
                "summary": index.section_summaries[name],
                "keywords": list(index.keywords_by_section[name]),
                "entities": list(index.entities_by_section[name]),
            }
            for name, (start, end) in index.section_map.items()
        }

    def read_doc_section(self, doc_id: str, section_name: str) -> str:
        """Texte d'une section d'un document, par son nom ou par son identifiant dans le plan (« 0003 »)."""
        document = self._document(doc_id)
        sections = self._contents_of(document.id).section_map
        if (named := text_of(section_name)).isdecimal() and named not in sections:
            node = find_section(named, outline_of(self.library, document.id))
            return document.content[node.char_start : node.char_end]
        start, end = sections[_name_among(named, list(sections), "aucune section")]
        return document.content[start:end]

    def llm_query(self, prompt: str, model: str | None = None) -> str:
        """Réponse du modèle à une demande ; « Erreur : … » s'il échoue. model est accepté et sans effet."""
        return self.llm_query_batched([prompt])[0]

    def llm_query_batched(self, prompts: Sequence[str], model: str | None = None) -> list[str]:
        """Réponses du modèle à plusieurs demandes, posées en même temps, dans leur ordre."""
        sub = self._model

        def query(prompt: str) -> str:
            try:
                return sub.query(prompt)
            except ModelError as error:
                return error_text(error.reason)

        asked = [_prompt_of(prompt) for prompt in (prompts if isinstance(prompts, list | tuple) else [prompts])]
        return list(map_in_threads(query, asked, self._workers))

    def ask_about_document(self, question: str, doc_id: str) -> str:
        """Réponse du modèle à une question sur un document, lu en entier, suivie de ses citations vérifiées, sous la
        forme : réponse : « citation » [Source: …] ; « None » si le document n'en donne pas.
        """
        sub, asked, named = self._model, question_of(question), self._id(doc_id)
        with self._event("read", "ask_about_document", question=asked) as ids:
            return self._ask(sub, asked, [named], ids)[named]

    def ask_across_documents(self, question: str, doc_ids: Sequence[str]) -> dict[str, str]:
        """La même question posée à plusieurs documents en même temps : {doc_id: réponse}, dans l'ordre de doc_ids, avec
        leurs citations. Une réponse peut être « None » ou « Erreur : … ».
        """
        sub, asked, names = self._model, question_of(question), self._ids(doc_ids, keep_unknown=True)
        known = self.library.contents().known(names)
        with self._event("read", "ask_across_documents", question=asked, documents=len(names)) as ids:
            answers = self._ask(sub, asked, [name for name in names if name in known], ids)
        return {name: answers.get(name, UNKNOWN) for name in names}

    @bounded(text=TEXT)
    def on_demand_extract(self, text: str, prompt_description: str, extraction_classes: Sequence[str]) -> list[Entity]:
        """Éléments que le modèle repère dans text : un texte à vous, un passage de search_passages, ou un document, par
        son identifiant. Liste de {"extraction_class", "extraction_text", "char_start", "char_end", "attributes"},
        positions dans ce texte. Exemple : on_demand_extract(text, "Les plafonds de responsabilité", ["plafond"]).
        """
        classes = _texts_of(extraction_classes)
        if not classes:
            raise ValueError('aucune classe à extraire (par exemple : ["plafond d\'indemnité"])')
        content, doc_ids = self._text_of(text)
        with self._event("read", "on_demand_extract", document="".join(doc_ids), classes=classes) as ids:
            ids += doc_ids
            description = text_of(prompt_description) or f"Repérez dans le texte : {', '.join(classes)}."
            return _llm_extract(content, classes, description, self._model, self._workers)

    def parallel_document_search(self, doc_ids: Sequence[str], question: str) -> dict[str, str]:
        """Comme ask_across_documents, les documents d'abord."""
        return self.ask_across_documents(question, doc_ids)

    @property
    def cache_info(self) -> dict[str, Any]:
        """Statistics of each cache, as `functools.lru_cache` gives them."""
        caches = {"documents": self.doc_content_cache, "searches": self.search_result_cache}
        return {name: cache.cache_info() for name, cache in (caches | {"replies": self.llm_response_cache}).items()}

    def _fate(self, doc_id: str) -> str:
        """Say in French by what a decision has fallen, even in part; '' of one of which nothing is known."""
        return standing_of(self._graph, doc_id)

    @cached_property
    def _graph(self) -> "KnowledgeGraph | None":
        return graph_of(self.library)

    def _once(self, key: Hashable, find: Callable[[], T]) -> T:
        """Run a search, or take its result from the cache."""
        return copy.deepcopy(self.search_result_cache(key, find))

    @property
    def _model(self) -> TextModel:
        if self.sub_llm is None:
            raise ValueError("aucun modèle n'est branché : cette fonction en demande un")
        return self.sub_llm

    def resolve(self, name: str, value: Any) -> Any:
        """Normalise an argument as the functions do (ids, texts, patterns); return others unchanged."""
        value = within_bound(name, value, BOUNDS.get(name, NAME))
        if value is None:
            return None
        if isinstance(value, Mapping) and name not in ("doc_id", "doc_ids", "keywords"):
            raise ValueError(f"{name} n'est pas compris : un dictionnaire au lieu d'un texte")
        if name in ("query", "keyword", "entity", "text"):
            return text_of(value, " ")
        readers: dict[str, Callable[[Any], Any]] = dict.fromkeys((*FILTERS, "topic", "mode"), text_of)
        readers |= {"doc_id": self._id, "doc_ids": self._ids, "pattern": _pattern_of, "keywords": _texts_of}
        return readers[name](value) if name in readers else value

    def _id(self, sent: object) -> str:
        return document_id(sent, self.library)

    def _ids(self, sent: object, *, keep_unknown: bool = False) -> list[str]:
        return document_ids(sent, self.library, keep_unknown=keep_unknown)

    def _having_keyword(self, keyword: str) -> list[str]:
        return self._once(("keyword", fold_text(keyword).strip()), lambda: self.corpus.keyword(keyword))

    def _by_words(self, query: str, k: int) -> list[SearchHit]:
        with search_errors(NOT_FOUND):
            return self._once(("ranked", query, k), lambda: self._words.search(query, k, mode="bm25", by_document=True))

    def _passages(self, query: str, k: int, filters: Filters) -> list[SearchHit]:
        try:
            if self.retriever is not None:
                self.retriever.encoder.check_query(query)
        except ValueError as error:
            raise ValueError(TOO_LONG) from error

        def search() -> list[SearchHit]:
            if self.retriever is None:
                return self._words.search(query, k, mode="bm25", filters=filters or None)
            return self.retriever.search(query, k, filters=filters or None)

        with search_errors(self._search_refusal(filters)):
            return self._once(("passages", query, k, filters), search)

    def _filters(self, asked: Mapping[str, str], doc_ids: object) -> Filters:
        """Parse filters, restricted to `doc_ids` if given; the ValueError names the invalid one."""
        read = filters_of(asked)
        return read if doc_ids is None else replace(read, doc_ids=tuple(self._ids(doc_ids)))

    def _search_refusal(self, filters: Filters) -> str:
        if not filters.entity:
            return NOT_FOUND
        return NO_ENTITIES if self.library.entity_store is None else NO_SUCH_ENTITIES

    def _contents_of(self, sent: object) -> DocumentIndex:
        return contents_of(outline_of(self.library, self._id(sent)))

    def _document(self, sent: object) -> Document:
        document = self.doc_content_cache(self._id(sent))
        self._note_read(document)
        return document

    def _text_of(self, sent: object) -> tuple[str, list[str]]:
        """Return a passage's or program's text, or a document's with its id; a single word is taken for an id."""
        if isinstance(sent, Mapping) and isinstance(sent.get("text"), str):
            return storable(sent["text"]), []
        if isinstance(sent, str) and len(sent.split()) > 1 and not holds(self.library, sent):
            return storable(sent), []
        document = self._document(sent)
        return document.content, [document.id]

    def _note_read(self, document: Document) -> None:
        if len(self.log.documents) < MAX_READ:
            self.log.read(document)

    def _ask(self, sub: TextModel, question: str, doc_ids: Sequence[str], ids: list[str]) -> dict[str, str]:
        """Ask known documents; log those read and add them to `ids`, even if the budget runs out."""
        done = answer_each(question, doc_ids, library=self.library, model=sub, workers=self._workers)
        for doc_id in done.read[:MAX_READ]:
            self._note_read(self.doc_content_cache(doc_id))
        ids += done.read[:MAX_LOGGED_IDS]
        if done.exhausted is not None:
            raise done.exhausted
        return done.answers

    @contextmanager
    def _event(self, kind: EventType, function: str, **arguments: Any) -> Iterator[list[str]]:
        """Log one call, up to `MAX_EVENTS`, with the ids that the block puts in the list."""
        if len(self.log.events) >= MAX_EVENTS:
            yield []
            return
        given = {name: value for name, value in arguments.items() if value not in (None, "", [], ())}
        with self.log.record(kind, function, **given) as ids:
            yield ids
            del ids[MAX_LOGGED_IDS:]

    def _log_hits(self, hits: Sequence[SearchHit]) -> None:
        for hit in hits[: min(MAX_SEEN, MAX_PASSAGES - len(self.log.passages))]:
            self.log.saw(hit)


def _at_most(name: str, sent: object) -> int | None:
    """Parse a limit; None means none."""
    return None if sent is None else whole_number(name, sent, LARGEST, 1)


def _pattern_of(sent: object) -> str:
    """Parse a regular expression; a list matches any of its items."""
    if isinstance(sent, list | tuple) and sent and all(isinstance(pattern, str) for pattern in sent):
        return "|".join(f"(?:{pattern})" for pattern in sent)
    if not isinstance(sent, str) or not sent:
        raise ValueError("le motif doit être une expression régulière, écrite comme un texte")
    return sent


def _prompt_of(sent: object) -> str:
    text = storable(sent) if isinstance(sent, str) else text_of(sent, "\n")
    if not text.strip():
        raise ValueError("la demande est vide")
    return text


def _texts_of(sent: object) -> list[str]:
    return [text for item in items_of(sent) if (text := text_of(item))]


def _name_among(name: str, known: Sequence[str], missing: str) -> str:
    """Return a name that is known; the LookupError quotes the closest ones."""
    if name in known:
        return name
    near = ", ".join(f"« {printed(label[:SHOWN_CHARS])} »" for label in difflib.get_close_matches(name, known, 3, 0.0))
    raise LookupError(f"{missing} « {as_sent(name)} » ; les plus proches : {near}")


def _without_entities(meta: DocumentMeta) -> dict[str, Any]:
    # Not by `to_json`, which takes five times as long: thousands of these are asked for at once.
    values = {name: value for name, value in vars(meta).items() if name != "entities"}
    return _without_place({**values, "keywords": list(meta.keywords)})


def _without_place(values: dict[str, Any]) -> dict[str, Any]:
    """Strip the folder of the index file, which must not leak into a program's answer."""
    return {**values, "detailed_index_path": Path(values["detailed_index_path"]).name}


def _format_passage(hit: SearchHit) -> dict[str, Any]:
    values = hit._asdict()
    return {"date": values.pop("decision_date"), **{name: values[name] for name in values if name != "rank"}}


def _llm_extract(text: str, classes: Sequence[str], description: str, sub: TextModel, workers: int) -> list[Entity]:
    """Extract entities with the sub-model; windows without a usable reply yield none."""
    from legal_rag.extraction.langextract import LostPieceError, extract_with_langextract

    def asked(prompt: str, attempt: int) -> str:
        try:
            return sub.query(prompt)
        except ModelError as error:
            raise LostPieceError from error

    settings = ExtractionSettings(model_id="sub-model", extraction_passes=1, max_workers=workers)
    schema = schema_of_classes(description, classes)
    result = extract_with_langextract(text, "document", schema, lambda number: asked, settings)
    return [entity for entity in result.extractions if entity["extraction_class"] in classes]


class _ExtractionIndex(Mapping[str, list[Entity]]):
    def __init__(self, repl: "MultiDocREPL") -> None:
        self._repl = repl

    def __getitem__(self, doc_id: str) -> list[Entity]:
        if doc_id not in self._repl.library:
            raise KeyError(doc_id)
        return self._repl.get_entities(doc_id)

    def __iter__(self) -> Iterator[str]:
        return iter(self._repl.corpus.document_ids())

    def __len__(self) -> int:
        return self._repl.corpus.total_docs


CachedCorpusREPL = MultiDocREPL


class MultiDocEnv:
    """Names available to a program, or by hand: `env["grep_corpus"]`.

    A program is given `functions`, and `values`, which JSON can hold; `doc_ids` is not among them in a corpus of more
    than `MAX_IDS` documents. `extraction_index` maps documents to their entities: a program has those it was given.
    `descriptions` document for a model each function that is no other's equal; `receipts` cover all calls.
    """

    def __init__(self, repl: MultiDocREPL) -> None:
        corpus = repl.corpus
        self.repl, self.receipts = repl, Receipts(corpus, repl.resolve, lambda: repl.last_search)
        watched = {name: self.receipts.watch(name, getattr(repl, name)) for name in FUNCTION_NAMES}
        self.functions: dict[str, Callable[..., Any]] = watched | self.receipts.functions
        self.descriptions = {name: description_of(func) for name, func in self.functions.items() if name not in UNTOLD}
        self.values: dict[str, Any] = {
            "corpus_path": corpus.corpus_path,
            "total_docs": corpus.total_docs,
            "total_chars": corpus.total_chars,
            "doc_summaries": dict(corpus.summaries(limit=SAMPLES)),
        }
        doc_ids = corpus.document_ids()
        if len(doc_ids) <= MAX_IDS:
            self.values["doc_ids"] = doc_ids
            self.receipts.given("documents du corpus", doc_ids)
        self._names = {**self.values, "doc_ids": doc_ids, "extraction_index": _ExtractionIndex(repl), **self.functions}

    def __getitem__(self, name: str) -> Any:
        return self._names[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def keys(self) -> Sequence[str]:
        """Return all names."""
        return list(self._names)

    def __repr__(self) -> str:
        return f"<MultiDocEnv: {', '.join(self)}>"


def create_multi_doc_env(
    corpus_index: "CorpusIndex", sub_llm: TextModel | None = None, retriever: Retriever | None = None, **settings: Any
) -> MultiDocEnv:
    """Return the environment of a program over a corpus; see `MultiDocREPL`."""
    return MultiDocEnv(MultiDocREPL(corpus_index, sub_llm, retriever, **settings))


def description_of(function: Callable[..., Any]) -> str:
    """Format a function's arguments, return type and docstring as one line."""
    signature = inspect.signature(function)
    doc = " ".join((inspect.getdoc(function) or "").split())
    arguments = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    bare = signature.replace(parameters=arguments, return_annotation=inspect.Signature.empty)
    return f"{bare} -> {_type_text(signature.return_annotation)} : {doc}"


def _type_text(annotation: Any) -> str:
    """Format a type with built-in names: a subclass of dict is a dict."""
    if parts := get_args(annotation):
        return f"{get_origin(annotation).__name__}[{', '.join(map(_type_text, parts))}]"
    if isinstance(annotation, type):
        return "dict" if issubclass(annotation, dict) else annotation.__name__
    return str(annotation).removeprefix("typing.")


def _cached(function: Callable[..., Any], cache: Any, key: Callable[..., Hashable] = hashkey) -> Any:
    """Cache a function's results across threads, without blocking on another thread's call."""
    return cached(cache, key, threading.Lock(), info=True)(function)


def _hash_repr(value: Any) -> bytes:
    """Return a hash of plain values: a key may name all documents of a corpus, a prompt hold a million characters."""
    return hashlib.sha256(repr(value).encode(errors="surrogatepass")).digest()


def _cache_size(result: Any) -> int:
    """Return a result's weight in the cache: 1, or more than its capacity if it must not be cached.

    A search that ran out of time may get further next time.
    """
    if isinstance(result, GrepResult):
        is_kept = not result.out_of_time and sum(map(len, result.matches.values())) <= MAX_MATCHES_KEPT
    else:
        is_kept = len(result) <= MAX_IDS_KEPT
    return 1 if is_kept else SEARCHES + 1
