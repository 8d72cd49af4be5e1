"""Functions over the corpus: find, search, list, rank."""

from collections.abc import Mapping, Sequence
from typing import Any

from legal_rag.agent.failures import search_errors
from legal_rag.agent.tool_arguments import SHOWN_CHARS, question_of, shown, text_of
from legal_rag.corpus.folding import fold_text
from legal_rag.corpus_index.index import DocumentMeta
from legal_rag.deep_read.functions.base import (
    MOST_IDS_TOLD,
    FunctionBase,
    at_most,
    filters_from,
    near_names,
    nearest,
    number_of,
    texts_of,
)
from legal_rag.library.filters import Filters, naming_condition

MOST_LISTED = 100_000  # ids or summaries that one call gives
NOT_FOUND = "recherche impossible dans ce corpus avec ces filtres"
ALL_WORDS = frozenset({"all", "tous", "toutes", "tout", "et", "and"})
ANY_WORDS = frozenset({"any", "un", "une", "au moins un", "ou", "or", ""})


class Summaries(dict[str, str]):
    """Summaries by document: the corpus has `total`, and `complete` says whether all are here."""

    def __init__(self, found: Mapping[str, str], total: int) -> None:
        super().__init__(found)
        self.total, self.complete = total, len(found) == total


class CorpusFunctions(FunctionBase):
    """Functions over the corpus index."""

    def list_documents(self, limit: int | None = None, offset: int = 0) -> list[str]:
        """Identifiants des documents, dans l'ordre du corpus ; limit et offset en donnent une partie."""
        most, first = at_most("limit", limit), number_of("offset", offset, 0)
        left = max(0, self.corpus.total_docs - first)
        if min(left, most or left) > MOST_LISTED:
            raise ValueError(f"{left} documents : demandez-en {MOST_LISTED} au plus à la fois, par limit et offset")
        return self.corpus.document_ids(most, first)

    def get_doc_meta(self, doc_id: str) -> dict[str, Any]:
        """Fiche d'un document : doc_id, title, date, juridiction, formation, solution, number, summary, keywords,
        entities, doc_type, author, char_count, cluster.
        """
        return self.corpus.documents[self._id(doc_id)].to_json()

    def get_doc_metas(self, doc_ids: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
        """Fiches de plusieurs documents d'un coup, par identifiant, comme get_doc_meta mais sans entities ; sans
        doc_ids, de tous.
        """
        if doc_ids is None:
            self._check_size()
        metas = self.corpus.metas(None if doc_ids is None else self._ids(doc_ids))
        return {one.doc_id: _without_entities(one) for one in metas}

    def get_doc_summary(self, doc_id: str) -> str:
        """Résumé d'un document : le sommaire officiel s'il existe, sinon deux ou trois phrases de son texte."""
        return self.corpus.documents[self._id(doc_id)].summary

    def get_all_summaries(self, limit: int | None = None, offset: int = 0) -> dict[str, str]:
        """Résumés par identifiant, de tous les documents ou de limit d'entre eux à partir de offset.
        Le résultat a deux attributs : total (documents du corpus) et complete (vrai si tous y sont).
        """
        most, first = at_most("limit", limit) or MOST_LISTED, number_of("offset", offset, 0)
        ids = self.corpus.document_ids(min(most, MOST_LISTED), first)
        return Summaries(dict(self.corpus.summaries(ids)), self.corpus.total_docs)

    def search_by_keyword(self, keyword: str) -> list[str]:
        """Identifiants des documents dont un mot-clé est celui-ci (accents, pluriel et majuscules indifférents).
        Les mots-clés sont les termes marquants d'un document ; pour un mot quelconque du texte : grep_corpus.
        """
        with self._event("search", "search_by_keyword", keyword=keyword) as ids:
            found = self._having_keyword(question_of(keyword))
            ids += found[:MOST_IDS_TOLD]
        return found

    def search_by_keywords(self, keywords: list[str], mode: str = "any") -> list[str]:
        """Identifiants des documents ayant l'un des mots-clés (mode "any", ceux qui en ont le plus d'abord) ou tous
        (mode "all").
        """
        wanted, how = texts_of(keywords), fold_text(text_of(mode))
        if how not in ALL_WORDS | ANY_WORDS:
            raise ValueError('mode doit être "any" (l\'un des mots) ou "all" (tous)')
        with self._event("search", "search_by_keywords", keywords=wanted, mode=mode) as ids:
            counts: dict[str, int] = {}
            for keyword in wanted:
                for doc_id in self._having_keyword(keyword):
                    counts[doc_id] = counts.get(doc_id, 0) + 1
            least = len(wanted) if how in ALL_WORDS else 1
            found = sorted((one for one, n in counts.items() if n >= least), key=lambda one: -counts[one])
            ids += found[:MOST_IDS_TOLD]
        return found

    def search_by_entity(self, entity: str) -> list[str]:
        """Identifiants des documents qui nomment une partie, une date, un montant, un avocat, un article, un numéro :
        « Société Lever », « 12 mai 1993 », « 1 000 francs ».
        """
        with self._event("search", "search_by_entity", entity=entity) as ids:
            found = self._having_entity(question_of(entity))
            ids += found[:MOST_IDS_TOLD]
        return found

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
        juridiction (« Cass. soc. »), formation, solution (« rejet »), date_from et date_to (« 1993 », « 1993-05-12 »),
        number (numéro ou ECLI), article cité (« L. 1152-1 du code du travail »), entites (« partie=Société Lever »).
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
        with self._event("search", "find_documents", **asked) as ids:
            found = self._found(filters)
            ids += found[:MOST_IDS_TOLD]
        return found

    def get_topics(self) -> dict[str, int]:
        """Thèmes du corpus, chacun avec le nombre de ses documents, les plus fréquents d'abord."""
        sizes = {topic: len(ids) for topic, ids in self.corpus.topics.items()}
        return dict(sorted(sizes.items(), key=lambda one: (-one[1], one[0])))

    def documents_in_topic(self, topic: str) -> list[str]:
        """Identifiants des documents d'un thème, nommé comme get_topics le donne."""
        name, topics = text_of(topic), list(self.corpus.topics)
        meant = nearest(name, topics)
        if meant is None:
            raise LookupError(f"aucun thème « {name} » ; les plus proches : {near_names(name, topics)}")
        return list(self.corpus.topics[meant])

    def get_links(self, doc_id: str) -> dict[str, list[str]]:
        """Liens d'un document : cites (documents du corpus qu'il cite) et cited_by (ceux qui le citent)."""
        meant = self._id(doc_id)
        return {"cites": list(self.corpus.links[meant]), "cited_by": self.corpus.cited_by(meant)}

    def documents_citing(self, text: str) -> list[str]:
        """Identifiants des documents qui citent un article ou une décision : « L. 1152-1 du code du travail »,
        « 90-41.231 », « 93-1328 AN ».
        """
        with self._event("search", "documents_citing", text=text) as ids:
            found = self._citing(question_of(text))
            ids += found[:MOST_IDS_TOLD]
        return found

    def _having_keyword(self, keyword: str) -> list[str]:
        return self.corpus.keyword(keyword)

    def _having_entity(self, entity: str) -> list[str]:
        with search_errors("aucune entité n'a été extraite de ce corpus : cherchez par grep_corpus"):
            return self.corpus.entity(entity)

    def _found(self, filters: Filters) -> list[str]:
        with search_errors(self._why_not(filters) or NOT_FOUND):
            return self.corpus.find(filters)

    def _citing(self, text: str) -> list[str]:
        reason = f"« {shown(text[:SHOWN_CHARS])} » n'est ni un article ni une décision"
        try:
            naming_condition(text)
        except ValueError as error:
            raise ValueError(reason) from error
        with search_errors(reason):
            return self.corpus.citing(text)

    def _check_size(self) -> None:
        if self.corpus.total_docs > MOST_LISTED:
            raise ValueError(
                f"{self.corpus.total_docs} documents : nommez-en {MOST_LISTED} au plus à la fois dans doc_ids"
            )


def _without_entities(meta: DocumentMeta) -> dict[str, Any]:
    # Not by `to_json`, which takes five times as long: thousands of these are asked for at once.
    values = {name: value for name, value in vars(meta).items() if name != "entities"}
    return {**values, "keywords": list(meta.keywords)}
