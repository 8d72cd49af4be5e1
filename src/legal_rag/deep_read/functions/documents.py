"""Functions over one document: read, grep, outline, entities."""

import copy
from collections.abc import Sequence
from typing import Any

from cachetools import LRUCache

from legal_rag.agent.failures import search_errors
from legal_rag.agent.tool_arguments import question_of, text_of
from legal_rag.agent.tools import entities_of
from legal_rag.corpus_index.sections import DocumentIndex, Outline, outline_of
from legal_rag.deep_read.functions.base import (
    MOST_IDS_TOLD,
    FunctionBase,
    at_most,
    context_of,
    filters_from,
    near_names,
    nearest,
    number_of,
    pattern_of,
    texts_of,
    yes_or_no,
)
from legal_rag.deep_read.grep import Grepped, GrepQuery, Match, grep_text
from legal_rag.extraction.entities import KNOWN_CLASSES, Entity
from legal_rag.extraction.terms import class_named
from legal_rag.library.filters import Filters
from legal_rag.retriever.retriever import SearchHit

MOST_HITS = 1000  # that one search gives
NO_SEARCH = "recherche impossible dans ce corpus avec ces filtres"
TOO_LONG = "recherche impossible : raccourcissez la question"
KEPT_INDEXES, KEPT_OUTLINES = 50, 500  # of single documents, the last ones used


class DocumentFunctions(FunctionBase):
    """Functions over texts."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        """See `FunctionBase`."""
        super().__init__(*arguments, **settings)
        self.loaded_doc_indexes: LRUCache[str, DocumentIndex] = LRUCache(KEPT_INDEXES)
        self._outlines: LRUCache[str, Outline] = LRUCache(KEPT_OUTLINES)

    def reload(self) -> None:
        """See `FunctionBase.reload`; the documents' own indexes are built anew."""
        super().reload()
        self.loaded_doc_indexes.clear()
        self._outlines.clear()

    def grep_corpus(
        self,
        pattern: str,
        max_docs: int | None = 100,
        doc_ids: Sequence[str] | None = None,
        ignore_case: bool = True,
        max_matches_per_doc: int | None = 50,
        context: int = 0,
        fold: bool = False,
    ) -> Grepped:
        """Expression régulière (syntaxe RE2, sans (?=…) ni \\1 ; ^ et $ par ligne) dans tous les textes ou doc_ids.
        Donne {doc_id: [{"start", "end", "text"}]} avec des attributs : total, scanned (textes lus), complete (faux si
        max_docs ou le temps ont arrêté la recherche), shortened (documents ayant plus d'occurrences). max_docs=None :
        tous les documents ; context : caractères autour ; fold=True : accents, apostrophes, tirets indifférents.
        """
        asked = pattern_of(pattern)
        with self._event("search", "grep_corpus", pattern=asked) as ids:
            found = self._grepped(
                GrepQuery(
                    asked,
                    max_docs=at_most("max_docs", max_docs),
                    doc_ids=None if doc_ids is None else tuple(self._ids(doc_ids)),
                    ignore_case=yes_or_no("ignore_case", ignore_case),
                    fold=yes_or_no("fold", fold),
                    max_matches_per_doc=at_most("max_matches_per_doc", max_matches_per_doc),
                    context=context_of(context),
                )
            )
            ids += list(found)[:MOST_IDS_TOLD]
        return found

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
        {"doc_id", "chunk_id", "char_start", "char_end", "text", "score", "title", "date"}.
        """
        asked = {
            "juridiction": juridiction,
            "formation": formation,
            "solution": solution,
            "date_from": date_from,
            "date_to": date_to,
            "number": number,
            "article": article,
            "entites": entites,
        }
        filters = filters_from(asked, None if doc_ids is None else self._ids(doc_ids))
        with self._event("search", "search_passages", query=query, k=k, **asked) as ids:
            hits = self._passages(question_of(query), _how_many("k", k, 10), filters)
            ids += [hit.chunk_id for hit in hits[:MOST_IDS_TOLD]]
        self._saw(hits)
        return [_passage(hit) for hit in hits]

    def rank_documents(self, query: str, top_k: int = 10) -> list[tuple[str, float, str]]:
        """Documents les plus proches d'une question par leurs mots (BM25) : liste de (doc_id, score, résumé)."""
        with self._event("search", "rank_documents", query=query, top_k=top_k) as ids:
            hits = self._ranked(question_of(query), _how_many("top_k", top_k, 10))
            ids += [hit.doc_id for hit in hits[:MOST_IDS_TOLD]]
        self._saw(hits)
        summaries = dict(self.corpus.summaries([hit.doc_id for hit in hits]))
        return [(hit.doc_id, round(hit.score, 4), summaries[hit.doc_id]) for hit in hits]

    def read_document(self, doc_id: str) -> str:
        """Texte entier d'un document."""
        return self._document(doc_id).content

    def read_document_chunk(self, doc_id: str, start: int = 0, end: int | None = None) -> str:
        """Texte d'un document du caractère start au caractère end non compris ; sans end, jusqu'à la fin."""
        content = self._document(doc_id).content
        first = number_of("start", start, 0)
        last = number_of("end", end, max(first, len(content)))
        if last < first:
            raise ValueError(f"end ({last}) est avant start ({first})")
        return content[first:last]

    def grep_document(
        self, doc_id: str, pattern: str, ignore_case: bool = True, context: int = 0, fold: bool = False
    ) -> list[Match]:
        """Toutes les occurrences d'une expression régulière dans un document : liste de {"start", "end", "text"}."""
        return grep_text(
            self._document(doc_id).content,
            pattern_of(pattern),
            ignore_case=yes_or_no("ignore_case", ignore_case),
            fold=yes_or_no("fold", fold),
            context=context_of(context),
        )

    def get_entities(self, doc_id: str, classes: list[str] | None = None) -> list[Entity]:
        """Éléments repérés dans un document (parties, avocats, dates, montants, articles cités, solution…) : liste de
        {"extraction_class", "extraction_text", "char_start", "char_end", "attributes"}. classes n'en garde que
        certaines : ["partie", "montant"].
        """
        document = self._document(doc_id)
        found = entities_of(document, self.library)
        wanted = {class_named(one) for one in texts_of(classes)} if classes else set()
        present = {one["extraction_class"] for one in found}
        if unknown := sorted(wanted.difference(present, KNOWN_CLASSES)):
            raise ValueError(
                f"aucune classe « {unknown[0]} » ; dans ce document : {', '.join(sorted(present)) or 'aucune'}"
            )
        return [one for one in found if not wanted or one["extraction_class"] in wanted]

    def get_doc_toc(self, doc_id: str) -> dict[str, Any]:
        """Plan d'un document : {"sections": [{"title", "start", "end", "level", "children"}]}."""
        return copy.deepcopy(self._outline_of(self._id(doc_id)).toc)

    def get_doc_sections(self, doc_id: str) -> list[str]:
        """Noms des sections d'un document, à donner à read_doc_section."""
        return list(self._outline_of(self._id(doc_id)).section_map)

    def get_section_details(self, doc_id: str) -> dict[str, dict[str, Any]]:
        """Sections d'un document, par nom : {"start", "end", "summary", "keywords", "entities"}."""
        index = self._index_of(self._id(doc_id))
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
        """Texte d'une section d'un document."""
        document = self._document(doc_id)
        sections = self._outline_of(document.id).section_map
        name = text_of(section_name)
        meant = nearest(name, list(sections))
        if meant is None:
            raise LookupError(f"aucune section « {name} » ; les plus proches : {near_names(name, sections)}")
        start, end = sections[meant]
        return document.content[start:end]

    def _passages(self, query: str, k: int, filters: Filters) -> list[SearchHit]:
        encoder = getattr(self.retriever, "encoder", None)
        try:
            if encoder is not None:
                encoder.check_query(query)
        except ValueError as error:
            raise ValueError(TOO_LONG) from error
        with search_errors(self._why_not(filters) or NO_SEARCH):
            if self.retriever is None:
                return self._words.search(query, k, mode="bm25", filters=filters or None)
            return self.retriever.search(query, k, filters=filters or None)

    def _grepped(self, query: GrepQuery) -> Grepped:
        return self._grep.search(query)

    def _ranked(self, query: str, k: int) -> list[SearchHit]:
        with search_errors(NO_SEARCH):
            return self._words.search(query, k, mode="bm25", by_document=True)

    def _index_of(self, doc_id: str) -> DocumentIndex:
        """Return a document's index, level 2, built where it is not there yet."""
        if doc_id not in self.loaded_doc_indexes:
            self.loaded_doc_indexes[doc_id] = self.corpus.document_index(doc_id)
        return self.loaded_doc_indexes[doc_id]

    def _outline_of(self, doc_id: str) -> Outline:
        if doc_id not in self._outlines:
            self._outlines[doc_id] = outline_of(self._load(doc_id).content)
        return self._outlines[doc_id]


def _how_many(name: str, sent: object, default: int) -> int:
    return number_of(name, sent, default, 1, MOST_HITS)


def _passage(hit: SearchHit) -> dict[str, Any]:
    values = hit._asdict()
    return {"date": values.pop("decision_date"), **{name: values[name] for name in values if name != "rank"}}
