"""The corpus index, open for reading: what each document is, which of them share a keyword, an entity, a day, a topic.

In: a Library whose index was built. Out: values and read-only mappings, each look-up a query: opening it is instant,
whatever it holds. It shows the Library's commit; any number of threads may share it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from legal_rag.corpus_index.entity_names import EntityNames
from legal_rag.corpus_index.entries import SELECT_ENTRIES, Entry, meta_of
from legal_rag.corpus_index.index_file import PAGE, IndexFile
from legal_rag.corpus_index.mappings import LookUp
from legal_rag.corpus_index.records import DocumentIndex, DocumentMeta
from legal_rag.corpus_index.words import asked_terms
from legal_rag.filters import Filters
from legal_rag.library import Library
from legal_rag.sqlite import parameter
from legal_rag.store import present_at

MOST_WORDS = 50  # asked for at once: no document has as many keywords

One = TypeVar("One")


class CorpusIndex(IndexFile):
    """The index of one Library at one commit.

    Args:
        library: The Library.

    Raises:
        FileNotFoundError: If no index was built in it.
        ValueError: If the index is of another build of the Library, or of another form.
    """

    def __init__(self, library: Library) -> None:
        super().__init__(library)
        self._names = EntityNames(library, self._column, self._pages, self._present)

    @classmethod
    def open(cls, library: Library | str | Path) -> "CorpusIndex":
        """Open the index of a Library, or of one in a folder; see the class."""
        return cls(library if isinstance(library, Library) else Library(Path(library).expanduser()))

    def __repr__(self) -> str:
        return f"<CorpusIndex of {self.library.path}: {self.total_docs} documents>"

    def reload(self) -> "CorpusIndex":
        """Open the index at the Library's last commit; this one stays as it is."""
        return CorpusIndex(self.library.reload())

    @property
    def corpus_path(self) -> str:
        """The Library's folder."""
        return str(self.library.path)

    @property
    def total_docs(self) -> int:
        """How many documents there are."""
        return self.library.n_documents

    @property
    def total_chars(self) -> int:
        """The characters of all their texts."""
        return int(self._one("SELECT chars FROM totals WHERE at_commit = ?", self.library.commit)[0])

    @property
    def documents(self) -> Mapping[str, DocumentMeta]:
        """Each document by its id, in the order they were indexed."""
        return LookUp("document", self._meta, self._ids, lambda: self.total_docs, self._nearest)

    @property
    def keyword_index(self) -> Mapping[str, list[str]]:
        """The ids of the documents by each keyword, as it is written most often; see `keyword`."""
        there = f"""
            EXISTS (SELECT 1 FROM keywords AS k CROSS JOIN main.documents AS i USING (document_key)
                    WHERE k.shown = one.shown AND {self._present})
        """  # noqa: S608
        keys = f"SELECT DISTINCT shown FROM keywords AS one WHERE shown > ? AND {there} ORDER BY shown LIMIT ?"  # noqa: S608
        count = f"SELECT COUNT(*) FROM (SELECT DISTINCT shown FROM keywords) AS one WHERE {there}"  # noqa: S608
        return LookUp(
            "keyword",
            lambda text: self.keyword(text) or None,
            lambda: (shown for (shown,) in self._pages(keys, "")),
            lambda: int(self._one(count)[0]),
        )

    @property
    def entity_index(self) -> Mapping[str, list[str]]:
        """The ids of the documents by what was extracted of them, as terms: `partie:lever`, `date:1993-05-12`.

        Looked up are names and values as people write them, too; see `entity`.
        """
        names = self._names
        return LookUp("entity", lambda text: names.find(text) or None, names.terms, names.count)

    @property
    def date_index(self) -> Mapping[str, list[str]]:
        """The ids of the documents by their date, as the source writes it, rising."""
        there = present_at(self.library.commit, "d")
        of = f"FROM corpus.documents AS d WHERE {there}"
        keys = f"SELECT DISTINCT decision_date {of} AND decision_date > ? ORDER BY decision_date LIMIT ?"
        count = f"SELECT COUNT(DISTINCT decision_date) {of} AND decision_date <> ''"
        found = f"SELECT id {of} AND decision_date = ? AND decision_date <> '' ORDER BY document_key"
        return LookUp(
            "date",
            lambda date: self._column(found, str(date)) or None,
            lambda: (date for (date,) in self._pages(keys, "")),
            lambda: int(self._one(count)[0]),
        )

    @property
    def clusters(self) -> Mapping[int, list[str]]:
        """The ids of the documents by the cluster that they are nearest to."""
        return LookUp(
            "cluster",
            self._in_cluster,
            lambda: iter(self._column("SELECT cluster FROM clusters ORDER BY cluster")),
            lambda: int(self._one("SELECT COUNT(*) FROM clusters")[0]),
        )

    @property
    def topics(self) -> Mapping[str, list[str]]:
        """The ids of the documents by topic, which is a cluster named by its weightiest terms."""
        return LookUp(
            "topic",
            self._in_topic,
            lambda: iter(self._column("SELECT topic FROM clusters ORDER BY cluster")),
            lambda: int(self._one("SELECT COUNT(*) FROM clusters")[0]),
        )

    @property
    def links(self) -> Mapping[str, list[str]]:
        """For each document the ids of the others of the corpus that it cites."""
        return LookUp("document", self._cited, self._ids, lambda: self.total_docs, self._nearest)

    def document_ids(self, limit: int | None = None, offset: int = 0) -> list[str]:
        """Return ids in the order they were indexed, from a place on."""
        query = f"SELECT id FROM main.documents AS i WHERE {self._present} ORDER BY document_key LIMIT ? OFFSET ?"  # noqa: S608
        return self._column(query, -1 if limit is None else limit, offset)

    def last_id(self) -> str | None:
        """Return the id of the document indexed last; None if there is none."""
        query = f"SELECT id FROM main.documents AS i WHERE {self._present} ORDER BY document_key DESC LIMIT 1"  # noqa: S608
        return next(iter(self._column(query)), None)

    def metas(self, doc_ids: Iterable[str] | None = None, *, entities: bool = False) -> Iterator[DocumentMeta]:
        """Stream what is known of documents, hundreds with each query.

        Args:
            doc_ids: In this order, unknown ones left out; None takes all, in the order they were indexed.
            entities: With their entities, each of which is a look-up of its own.
        """
        if doc_ids is not None:
            for some in _in_batches(dict.fromkeys(doc_ids)):
                found = {meta.doc_id: meta for meta in self._metas_of(some, entities)}
                yield from (found[doc_id] for doc_id in some if doc_id in found)
            return
        query = f"{SELECT_ENTRIES} WHERE {self._present} AND i.document_key > ? ORDER BY i.document_key LIMIT ?"
        for rows in _in_batches(self._pages(query, -1)):
            yield from self._as_metas(rows, entities)

    def summaries(self, doc_ids: Iterable[str] | None = None, limit: int | None = None) -> Iterator[tuple[str, str]]:
        """Stream ids with their summaries, in the order they were indexed; unknown ids are left out."""
        select = f"SELECT document_key, id, summary FROM main.documents AS i WHERE {self._present}"  # noqa: S608
        if doc_ids is None:
            rows = self._pages(f"{select} AND document_key > ? ORDER BY document_key LIMIT ?", -1)
        else:  # at once: each page would look up every id
            named = f"{select} AND id IN (SELECT value FROM json_each(?)) ORDER BY document_key"  # noqa: S608
            rows = iter(self._rows(named, json.dumps(list(doc_ids))))
        for _, doc_id, summary in islice(rows, limit):
            yield doc_id, summary

    def summary_sources(self) -> dict[str, int]:
        """Return of how many documents the summary is official, of sentences, or a model's, by its id."""
        query = f"""
            SELECT summary_source, COUNT(*) FROM main.documents AS i WHERE {self._present}
            GROUP BY summary_source ORDER BY summary_source
        """  # noqa: S608
        return dict(self._rows(query))

    def keyword(self, text: str) -> list[str]:
        """Return the ids of the documents that have a keyword, in the order they were indexed.

        Number, gender, case and accents are passed over: "Élections" finds "élection". Of several words a document has
        all, be it as one expression.
        """
        words = asked_terms(text)
        if not 0 < len(words) <= MOST_WORDS:
            return []
        of_word = "SELECT document_key FROM postings WHERE term IN (SELECT value FROM json_each(?))"
        query = f"""
            SELECT id FROM main.documents AS i
            WHERE document_key IN ({" INTERSECT ".join([of_word] * len(words))}) AND {self._present}
            ORDER BY document_key
        """  # noqa: S608
        return self._column(query, *map(json.dumps, words))

    def entity(self, text: str) -> list[str]:
        """Return the ids of the documents of which an entity was extracted, in order.

        Args:
            text: A name in any case ("société Lever"), a day, a sum, an article, a number; or a term.

        Raises:
            ValueError: If nothing was extracted of this corpus.
        """
        return self._names.find(text)

    def find(self, filters: Filters) -> list[str]:
        """Return the ids of the documents that pass filters; see `Library.ids`."""
        return self.library.ids(filters)

    def citing(self, name: str) -> list[str]:
        """Return the ids of the documents that cite an article or a decision; see `Library.ids_citing`."""
        return self.library.ids_citing(name)

    def cited_by(self, doc_id: str) -> list[str]:
        """Return the ids of the documents of the corpus that cite one.

        Raises:
            KeyError: If there is no such document.
        """
        key = self._key(doc_id)
        terms = "SELECT term FROM corpus.names WHERE document_key = ? AND own"
        query = f"SELECT DISTINCT document_key FROM corpus.names WHERE own = 0 AND term IN ({terms})"  # noqa: S608
        citing = self._column(query, key)
        links = self.library.citation_links().links_from(citing)
        return self._ids_of(sorted({link.citing for link in links if link.cited == key}))

    def document_index(self, doc_id: str) -> DocumentIndex:
        """Return the sections of a document: what was kept of them, else made now.

        Raises:
            KeyError: If there is no such document.
        """
        from legal_rag.corpus_index.level_two import kept_or_made

        return kept_or_made(self, self._key(doc_id), doc_id)

    def kept_sections(self, document_key: int) -> str | None:
        """Return what was kept of a document's sections, as JSON."""
        row = self._one("SELECT value FROM sections WHERE document_key = ?", document_key)
        return None if row is None else str(row[0])

    def frequencies(self, terms: Iterable[str]) -> tuple[dict[str, int], dict[str, str]]:
        """Return, of some terms, in how many documents each stood at the full build, and how it is written."""
        query = "SELECT term, frequency, shown FROM terms WHERE term IN (SELECT value FROM json_each(?))"
        rows = self._rows(query, json.dumps(list(terms)))
        return {term: n for term, n, _ in rows}, {term: shown for term, _, shown in rows}

    def _meta(self, doc_id: Any) -> DocumentMeta | None:
        return next(iter(self._metas_of([str(doc_id)], entities=True)), None)

    def _metas_of(self, doc_ids: Sequence[str], entities: bool) -> Iterator[DocumentMeta]:
        condition = f"i.id IN (SELECT value FROM json_each(?)) AND {self._present}"  # noqa: S608
        return self._as_metas(self._rows(f"{SELECT_ENTRIES} WHERE {condition}", json.dumps(list(doc_ids))), entities)

    def _as_metas(self, rows: Sequence[tuple[Any, ...]], entities: bool) -> Iterator[DocumentMeta]:
        keywords: dict[int, list[str]] = {}
        query = """
            SELECT document_key, shown FROM keywords WHERE document_key IN (SELECT value FROM json_each(?))
            ORDER BY document_key, place
        """
        for key, shown in self._rows(query, json.dumps([row[0] for row in rows])):
            keywords.setdefault(key, []).append(shown)
        for entry in map(Entry._make, rows):
            names = self._names.shown_of(entry.doc_id) if entities else ()
            yield meta_of(entry, tuple(keywords.get(entry.document_key, ())), names, self.path)

    def _in_cluster(self, cluster: Any) -> list[str] | None:
        if not isinstance(cluster, int) or self._one("SELECT 1 FROM clusters WHERE cluster = ?", cluster) is None:
            return None
        query = f"SELECT id FROM main.documents AS i WHERE cluster = ? AND {self._present} ORDER BY document_key"  # noqa: S608
        return self._column(query, cluster)

    def _in_topic(self, topic: Any) -> list[str] | None:
        row = self._one("SELECT cluster FROM clusters WHERE topic = ?", str(topic))
        return None if row is None else self._in_cluster(row[0])

    def _cited(self, doc_id: Any) -> list[str] | None:
        row = self._one(f"SELECT document_key FROM main.documents AS i WHERE id = ? AND {self._present}", str(doc_id))  # noqa: S608
        if row is None:
            return None
        return self._ids_of(link.cited for link in self.library.citation_links().links_from([row[0]]))

    def _ids_of(self, keys: Iterable[int]) -> list[str]:
        query = f"""
            SELECT id FROM main.documents AS i
            WHERE document_key IN (SELECT value FROM json_each(?)) AND {self._present} ORDER BY document_key
        """  # noqa: S608
        return self._column(query, json.dumps(list(keys)))

    def _key(self, doc_id: str) -> int:
        row = self._one(f"SELECT document_key FROM main.documents AS i WHERE id = ? AND {self._present}", doc_id)  # noqa: S608
        if row is None:
            raise KeyError(f"no document {doc_id!r} (the nearest is {self._nearest(doc_id)!r})")
        return int(row[0])

    def _nearest(self, doc_id: Any) -> str | None:
        return self.library.nearest_id(str(parameter(doc_id)))

    def _ids(self) -> Iterator[str]:
        query = f"""
            SELECT document_key, id FROM main.documents AS i WHERE {self._present} AND document_key > ?
            ORDER BY document_key LIMIT ?
        """  # noqa: S608
        return (doc_id for _, doc_id in self._pages(query, -1))


def _in_batches(things: Iterable[One]) -> Iterator[list[One]]:
    rest = iter(things)
    while some := list(islice(rest, PAGE)):
        yield some
