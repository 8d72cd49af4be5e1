"""Build the corpus index (descriptions and topics of documents), keep it up to date with each commit, and check it."""

import json
import logging
import math
import os
import sqlite3
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from importlib.resources import files
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from legal_rag.base.files import beside, locked, progress, sync
from legal_rag.base.sqlite import connect_to_read, connect_to_write, transaction
from legal_rag.corpus.documents import Document
from legal_rag.corpus.sources import is_text_file
from legal_rag.corpus_index.index import (
    COUNTED,
    FORMAT_VERSION,
    CorpusIndex,
    checked_meta,
    has_corpus_index,
    read_statistics,
)
from legal_rag.corpus_index.keywords import (
    N_KEYWORDS,
    Keyword,
    TermCounter,
    TermStatistics,
    TextTerms,
    index_terms,
    is_sampled,
    keywords_of,
    query_terms,
    read_terms,
)
from legal_rag.corpus_index.sections import DocumentIndex, sections_to_json
from legal_rag.corpus_index.summaries import CENTROID, extractive_summary, model_record
from legal_rag.extraction.schemas import choose_schema
from legal_rag.library.library import CORPUS_INDEX, STORE, Library
from legal_rag.library.manifest import record_checksums
from legal_rag.library.parts import BATCH, LibraryPart, StoredDocument, bring_up_to_date, process_pool
from legal_rag.library.store import present_at
from legal_rag.llm import TextModel

logger = logging.getLogger(__name__)

OFFICIAL, EXTRACTIVE = "official", "extractive"  # sources of a summary; else a model's id
DECISION = "décision"
# Kinds of a text file by the extraction schema chosen for it; the last is any other document's.
KINDS = {
    "jurisprudence": DECISION,
    "contract": "contrat",
    "correspondence": "courrier",
    "corporate": "acte de société",
    "regulation": "texte",
    "general": "document",
}
AT_ONCE = 8  # documents sent to the model at a time
ASSIGNED_AT_ONCE = 1000  # documents
KEYED_TABLES = ("sections", "postings", "keywords", "documents")  # by document_key; referring tables first
SEED = 20240229
MAX_CLUSTERS = 200
MAX_FEATURES = 4096  # key terms that centres are made of, those of most documents
MIN_SHARED = 2  # a key term of a single document links it to none
CLUSTER_BATCH = 1024  # documents per step of k-means
LABEL_TERMS = 4  # of a topic
REBUILD = "'legal-rag corpus-index' rebuilds it"


class Described(NamedTuple):
    """The rows that the index stores of one document; its first ten fields are columns of `documents`."""

    document_key: int
    doc_id: str
    content_hash: str
    added: int  # the commit that added it
    char_count: int
    file_size: int  # bytes in UTF-8
    doc_type: str
    cluster: int | None
    summary_source: str
    summary: str
    keywords: list[Keyword]  # by falling weight
    postings: Mapping[str, float]  # weights by the terms that find it


class CorpusIndexer:
    """Builds the two levels of a Library's corpus index.

    `sub_llm` describes documents that have no official summary, one call for each 20,000 characters: summary and
    keywords, title, date and author where the source has none. By default both are extractive.
    """

    def __init__(self, library: Library, sub_llm: TextModel | None = None) -> None:
        self.library, self._sub_llm = library, sub_llm

    def build_corpus_index(self, parallel: bool = False, batch_size: int = BATCH) -> CorpusIndex:
        """Build level 1 and replace the index before it, `parallel` on all cores, with `batch_size` documents per task.

        Raises:
            ValueError: If another process is writing to the Library, or it was rebuilt since it was opened.
        """
        with locked(self.library.path):
            self.library.check_unchanged()
            library = self.library.reload()
            fill_index(
                library.path,
                library.manifest["lineage"],
                library.commit,
                sub_llm=self._sub_llm,
                workers=os.cpu_count() or 1 if parallel else 1,
                batch_size=batch_size,
                earlier=library.path / CORPUS_INDEX if has_corpus_index(library) else None,
            )
        return CorpusIndex(library)

    def build_document_index(self, doc_id: str) -> DocumentIndex:
        """Build level 2 of one document, and store it; LookupError if there is no such document."""
        index = CorpusIndex(self.library)
        sections = index.make_sections(doc_id, self._sub_llm)
        with locked(self.library.path), closing(connect_to_write(index.path)) as connection:
            put = "INSERT OR REPLACE INTO sections SELECT document_key, ?, ? FROM documents"
            values = (getattr(self._sub_llm, "name", ""), sections_to_json(sections), doc_id)
            connection.execute(f"{put} WHERE id = ? AND removed IS NULL", values)
        record_checksums(index.path.parent, CORPUS_INDEX)
        return sections


def fill_index(
    folder: Path,
    lineage: str,
    commit: int,
    *,
    sub_llm: TextModel | None = None,
    workers: int = 1,
    batch_size: int = BATCH,
    earlier: Path | None = None,
    others: Sequence[LibraryPart] = (),
) -> None:
    """Build the index of a folder that holds a store, for the documents present at a commit.

    The caller keeps other writers out. An `earlier` index of the same documents and keys gives the texts that a model
    wrote; `others` are further parts to bring up to date while the documents are read.
    """
    store, unfinished = folder / STORE, beside(folder / CORPUS_INDEX, "building")
    for leftover in (unfinished, *(unfinished.with_name(unfinished.name + suffix) for suffix in ("-wal", "-shm"))):
        leftover.unlink(missing_ok=True)
    keys, sampled = _keys_and_sample(store, commit)
    with closing(_open_to_write(unfinished)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")  # lets the other processes read meanwhile
        connection.execute("PRAGMA synchronous=OFF")
        with process_pool(workers, -(-len(keys) // batch_size)) as pool:
            counter = TermCounter()
            counting = LibraryPart(sampled, _read_forms, counter.add_all)
            bring_up_to_date(store, [*others, counting], pool=pool, batch=batch_size)
            statistics = counter.freeze()
            _write_statistics(connection, statistics)
            # Other processes read the statistics from the file: they are too large to be sent with every task.
            known = unfinished if pool else statistics
            describing = LibraryPart(keys, partial(_describe_stored, known), partial(_put_rows, connection))
            bring_up_to_date(store, [describing], "Describing", pool=pool, batch=batch_size)
        if earlier is not None and earlier.is_file():
            copy_model_texts(connection, earlier)
        if sub_llm is not None:
            _ask_for_records(connection, store, sub_llm)
        with transaction(connection):
            _put_model_keywords(connection)
            _find_clusters(connection, statistics, set(sampled))
            total = "INSERT INTO totals SELECT ?, COUNT(*), COALESCE(SUM(char_count), 0) FROM documents"
            connection.execute(total, (commit,))
            name = getattr(sub_llm, "name", "")
            made_of = {"format_version": FORMAT_VERSION, "lineage": lineage, "commit": commit, "summaries": name}
            _write_meta(connection, made_of)
        connection.execute("PRAGMA journal_mode=DELETE")
    sync(unfinished)
    os.replace(unfinished, folder / CORPUS_INDEX)
    sync(folder)
    record_checksums(folder, CORPUS_INDEX)


def _keys_and_sample(store: Path, commit: int) -> tuple[list[int], list[int]]:
    """Return the keys of the documents present at a commit, ascending, and of those in the sample."""
    present = f"FROM documents WHERE {present_at(commit)}"
    with closing(connect_to_read(store)) as connection:
        keys = [key for (key,) in connection.execute(f"SELECT document_key {present} ORDER BY 1")]
        ids = connection.execute(f"SELECT document_key, id {present} ORDER BY 1")
        return keys, [key for key, doc_id in ids if is_sampled(doc_id, len(keys))]


def _open_to_write(path: Path) -> sqlite3.Connection:
    connection = connect_to_write(path)
    if not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        schema = (files("legal_rag.corpus_index") / "schema.sql").read_text("utf-8")
        connection.executescript(f"BEGIN; {schema} COMMIT;")
    return connection


def _write_meta(connection: sqlite3.Connection, values: Mapping[str, object]) -> None:
    rows = [(name, json.dumps(value, ensure_ascii=False)) for name, value in values.items()]
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)


def _write_statistics(connection: sqlite3.Connection, statistics: TermStatistics) -> None:
    with transaction(connection):
        rows = ((term, statistics.shown[term], n) for term, n in sorted(statistics.frequencies.items()))
        connection.executemany("INSERT INTO terms VALUES (?, ?, ?)", rows)
        _write_meta(connection, {COUNTED: statistics.n_documents})


def _read_forms(stored: StoredDocument) -> dict[str, str]:
    return read_terms(stored.document.content).shown


def _describe_stored(statistics: TermStatistics | Path, stored: StoredDocument) -> Described:
    return describe(stored, _statistics_in(statistics) if isinstance(statistics, Path) else statistics)


@lru_cache(1)
def _statistics_in(index: Path) -> TermStatistics:
    """Read the statistics of an index, once in each process of a pool."""
    with closing(connect_to_read(index)) as connection:
        return read_statistics(connection)


def describe(stored: StoredDocument, statistics: TermStatistics, terms: TextTerms | None = None) -> Described:
    """Describe a document; `statistics` need only cover the document's own terms."""
    document = stored.document
    terms = terms or read_terms(document.content)
    weighed = keywords_of(terms, statistics, CENTROID)
    keywords = weighed[:N_KEYWORDS]
    official = " ".join(document.summary.split())
    return Described(
        stored.key,
        document.id,
        document.content_hash,
        stored.added,
        len(document.content),
        len(document.content.encode()),
        doc_type_of(document),
        None,
        OFFICIAL if official else EXTRACTIVE,
        official or extractive_summary(document.reading, statistics, terms=terms, keywords=weighed),
        keywords,
        index_terms(keywords),
    )


def _put_rows(connection: sqlite3.Connection, rows: Iterable[Described]) -> None:
    with transaction(connection):
        for row in rows:
            connection.execute("INSERT INTO documents VALUES (?, ?, ?, ?, NULL, ?, ?, ?, ?, ?, ?)", row[:10])
            _put_keywords(connection, row.document_key, row.keywords, row.postings)


def _put_keywords(
    connection: sqlite3.Connection, key: int, keywords: Iterable[Keyword], postings: Mapping[str, float]
) -> None:
    rows = [(key, place, *keyword) for place, keyword in enumerate(keywords)]
    connection.executemany("INSERT INTO keywords VALUES (?, ?, ?, ?, ?)", rows)
    weights = [(term, key, weight) for term, weight in postings.items()]
    connection.executemany("INSERT OR REPLACE INTO postings VALUES (?, ?, ?)", weights)


def _find_clusters(connection: sqlite3.Connection, statistics: TermStatistics, sampled: Container[int]) -> None:
    """Fit clusters to a sample of the documents, label them, and assign every document, in the caller's transaction."""
    centres = fit_centres(weights for key, weights in _keyword_vectors(connection) if key in sampled)
    labels = centres.labels(statistics.shown)
    connection.executemany("INSERT INTO features VALUES (?, ?)", enumerate(centres.terms))
    rows = ((number, label, centres.matrix[number].astype("<f4").tobytes()) for number, label in enumerate(labels))
    connection.executemany("INSERT INTO clusters VALUES (?, ?, ?)", rows)
    vectors = _keyword_vectors(connection)
    while batch := list(islice(vectors, ASSIGNED_AT_ONCE)):
        assigned = [(centres.assign(weights), key) for key, weights in batch]
        connection.executemany("UPDATE documents SET cluster = ? WHERE document_key = ?", assigned)


def _keyword_vectors(connection: sqlite3.Connection) -> Iterator[tuple[int, dict[str, float]]]:
    query = """
        SELECT document_key, term, weight FROM documents LEFT JOIN keywords USING (document_key)
        ORDER BY document_key, term
    """
    for key, rows in groupby(connection.execute(query), key=itemgetter(0)):
        yield key, {term: weight for _, term, weight in rows if term is not None}


def doc_type_of(document: Document) -> str:
    """Return a document's kind: its `nature` in the source, a decision if it names a court, else by a file's text."""
    if named := str(document.extra.get("nature") or "").strip():
        return named
    if document.juridiction:
        return DECISION
    return KINDS[choose_schema(document.content) if is_text_file(document.id) else "general"]


def _ask_for_records(connection: sqlite3.Connection, store: Path, sub_llm: TextModel) -> None:
    """Replace extractive summaries by a model's, with its title, date, author and keywords; keep them where it fails.

    After a kill, the model's client answers again from its store.
    """
    lacking = "SELECT document_key FROM documents WHERE summary_source = ? ORDER BY document_key"
    keys = [key for (key,) in connection.execute(lacking, (EXTRACTIVE,))]
    name, n_failed = str(getattr(sub_llm, "name", "model")), 0
    with (
        closing(connect_to_read(store)) as documents,
        ThreadPoolExecutor(AT_ONCE) as pool,
        progress("Summarizing", total=len(keys), unit=" docs") as bar,
    ):
        for start in range(0, len(keys), AT_ONCE):
            batch = keys[start : start + AT_ONCE]
            texts = [documents.execute("SELECT content FROM documents WHERE document_key = ?", (key,)) for key in batch]
            replies = pool.map(lambda text: model_record(sub_llm, text), [row.fetchone()[0] for row in texts])
            kept = [(key, reply) for key, reply in zip(batch, replies, strict=True) if reply.summary]
            n_failed += len(batch) - len(kept)
            with transaction(connection):
                rows = [(reply.summary, name, key) for key, reply in kept]
                update = "UPDATE documents SET summary = ?, summary_source = ? WHERE document_key = ?"
                connection.executemany(update, rows)
                records = [(key, made.title, made.date, made.author, json.dumps(made.keywords)) for key, made in kept]
                connection.executemany("INSERT OR REPLACE INTO model_records VALUES (?, ?, ?, ?, ?)", records)
            bar.update(len(batch))
    if n_failed:
        message = "the model gave no usable summary of %d of %d documents: theirs stay extractive"
        logger.warning(message, n_failed, len(keys))


def _put_model_keywords(connection: sqlite3.Connection) -> None:
    """Insert a model's keywords before a document's own; the caller has begun a transaction."""
    query = "SELECT document_key, keywords FROM model_records WHERE keywords <> '[]' ORDER BY document_key"
    keyword_query = "SELECT term, shown, weight FROM keywords WHERE document_key = ? ORDER BY place"
    for key, given in connection.execute(query).fetchall():
        own_keywords = [Keyword(*row) for row in connection.execute(keyword_query, (key,))]
        weight = max((keyword.weight for keyword in own_keywords), default=1.0)
        terms = ((" ".join(stems[0] for stems in query_terms(shown)), shown) for shown in json.loads(given))
        first = {term: Keyword(term, shown, weight) for term, shown in terms if term}
        keywords = [*first.values(), *(keyword for keyword in own_keywords if keyword.term not in first)]
        connection.execute("DELETE FROM keywords WHERE document_key = ?", (key,))
        _put_keywords(connection, key, keywords, index_terms(keywords))


def copy_model_texts(connection: sqlite3.Connection, earlier: Path) -> None:
    """Copy what a model wrote, records and sections, from an earlier index of the same documents and keys."""
    connection.execute("ATTACH ? AS earlier", (str(earlier),))
    try:
        _copy_from_earlier(connection)
    except sqlite3.DatabaseError as error:  # a damaged index is rebuilt anyway
        logger.warning("cannot reuse the model's summaries in %s: %s", earlier, error)
    connection.execute("DETACH earlier")


def _copy_from_earlier(connection: sqlite3.Connection) -> None:
    connection.execute(
        "UPDATE main.documents AS i SET summary = e.summary, summary_source = e.summary_source"
        " FROM earlier.documents AS e WHERE e.document_key = i.document_key AND e.id = i.id"
        " AND i.summary_source = ? AND e.summary_source NOT IN (?, ?)",
        (EXTRACTIVE, EXTRACTIVE, OFFICIAL),
    )
    connection.execute(
        "INSERT OR REPLACE INTO main.model_records SELECT r.* FROM earlier.model_records AS r"
        " JOIN main.documents AS i USING (document_key) JOIN earlier.documents AS e USING (document_key)"
        " WHERE e.id = i.id AND i.summary_source NOT IN (?, ?)",
        (EXTRACTIVE, OFFICIAL),
    )
    connection.execute(
        "INSERT OR REPLACE INTO main.sections SELECT s.* FROM earlier.sections AS s"
        " JOIN earlier.documents AS e USING (document_key) JOIN main.documents AS i USING (document_key)"
        " WHERE e.id = i.id AND s.made_by <> ''"
    )


@dataclass(frozen=True)
class Centres:
    """Cluster centres, the largest cluster first; each row is a unit vector."""

    terms: tuple[str, ...]  # the key terms of the columns
    matrix: np.ndarray  # float32, shape (n_clusters, n_terms)

    @classmethod
    def from_bytes(cls, terms: Sequence[str], data: bytes) -> "Centres":
        """Read the rows of the matrix, little-endian; ValueError if the bytes are not a whole number of rows."""
        width = 4 * len(terms)
        if len(data) % max(width, 1):
            raise ValueError(f"not centres: {len(data)} bytes for {len(terms)} terms (expected a multiple of {width})")
        rows = len(data) // width if width else 0
        return cls(tuple(terms), np.frombuffer(data, dtype="<f4").astype(np.float32).reshape(rows, len(terms)))

    def assign(self, weights: Mapping[str, float]) -> int | None:
        """Return the cluster nearest to a document's weighted key terms; None if it shares no term with any."""
        weighted = sorted((self._features[term], weight) for term, weight in weights.items() if term in self._features)
        if not weighted:
            return None
        columns = [column for column, _ in weighted]
        # Summed in one order and without BLAS, so that a document gets the same cluster alone and in a batch.
        scores = (self._by_term[columns] * np.array([[weight] for _, weight in weighted])).sum(axis=0)
        best = int(scores.argmax())
        return best if scores[best] > 0 else None

    def labels(self, shown: Mapping[str, str]) -> list[str]:
        """Return each cluster's topic, all different: the terms, as shown, that tell it best from the others."""
        labels: list[str] = []
        for cluster in range(len(self.matrix)):
            terms = (shown.get(term, term) for term in self._distinctive(cluster))
            labels.append(_distinct_label(terms, set(labels), cluster))
        return labels

    @cached_property
    def _features(self) -> dict[str, int]:
        return {term: column for column, term in enumerate(self.terms)}

    @cached_property
    def _by_term(self) -> np.ndarray:
        return np.ascontiguousarray(self.matrix.T, dtype=np.float64)

    def _distinctive(self, cluster: int) -> Iterator[str]:
        """Yield a centre's terms by how far they exceed the mean of all centres, skipping those without a new word."""
        row = self.matrix[cluster]
        above = row - self.matrix.mean(axis=0) if len(self.matrix) > 1 else row
        yielded: set[str] = set()
        best = sorted(np.flatnonzero(row > 0), key=lambda column: (-above[column], -row[column], self.terms[column]))
        for column in best:
            words = set(self.terms[column].split())
            if not words <= yielded:
                yielded |= words
                yield self.terms[column]


def n_clusters(n_documents: int) -> int:
    """Return the number of clusters, 1 to 200: the root of half the documents (Mardia, 1979)."""
    return max(1, min(MAX_CLUSTERS, round(math.sqrt(n_documents / 2))))


def fit_centres(documents: Iterable[Mapping[str, float]], n: int | None = None) -> Centres:
    """Cluster documents, weights above 0 by key term, into at most `n` clusters; equal input gives equal centres.

    All are held in memory: of a large corpus, pass a sample (`is_sampled`).
    """
    vectors = list(documents)
    terms, rows = _sparse_unit_rows(vectors)
    if not terms:
        return Centres((), np.empty((0, 0), dtype=np.float32))
    return Centres(terms, _k_means(rows, min(n or n_clusters(len(vectors)), rows.shape[0])))


def _sparse_unit_rows(vectors: Sequence[Mapping[str, float]]) -> tuple[tuple[str, ...], Any]:
    """Return the most frequent terms, and the documents that hold any as a sparse matrix of unit rows."""
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.preprocessing import normalize

    if not any(vectors):
        return (), None
    vectorizer = DictVectorizer()
    matrix = vectorizer.fit_transform(vectors)
    counts = matrix.getnnz(axis=0)
    kept = np.argsort(-counts, kind="stable")[:MAX_FEATURES]  # equal counts in alphabetical order
    kept = kept[counts[kept] >= MIN_SHARED]
    if not kept.size:
        return (), None
    rows = matrix[:, kept].sorted_indices()
    rows = normalize(rows[rows.getnnz(axis=1) > 0]).astype(np.float32)
    return tuple(vectorizer.get_feature_names_out()[kept]), rows


def _k_means(rows: Any, n: int) -> np.ndarray:
    """Return at most `n` unit centres of the rows of a sparse matrix, those of most rows first."""
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # sums in one order, on however many cores
        model = MiniBatchKMeans(n, random_state=SEED, batch_size=CLUSTER_BATCH, n_init=3).fit(rows)
    sizes = np.bincount(model.labels_, minlength=n)
    order = [cluster for cluster in np.argsort(-sizes, kind="stable") if sizes[cluster]]
    centres = model.cluster_centers_[order]
    unit: np.ndarray = centres / np.linalg.norm(centres, axis=1, keepdims=True)
    return unit


def _distinct_label(terms: Iterable[str], taken: set[str], cluster: int) -> str:
    label: list[str] = []
    for term in terms:
        label.append(term)
        if len(label) >= LABEL_TERMS and ", ".join(label) not in taken:
            return ", ".join(label)
    return ", ".join(label) if ", ".join(label) not in taken else ", ".join([*label, str(cluster)])


def read_centres(connection: sqlite3.Connection) -> Centres:
    """Read the cluster centres; ValueError if the file is damaged."""
    terms = [term for (term,) in connection.execute("SELECT term FROM features ORDER BY place")]
    data = b"".join(centre for (centre,) in connection.execute("SELECT centre FROM clusters ORDER BY cluster"))
    return Centres.from_bytes(terms, data)


def update_corpus_index(folder: Path, lineage: str, commit: int) -> None:
    """Apply the next commit of a Library, whose rows are in the store already, to its corpus index, if it has one.

    The caller locks the Library. Rows of an incomplete commit are deleted first. A damaged or stale index is left
    unchanged, with a warning.
    """
    path = folder / CORPUS_INDEX
    if not path.is_file():
        return
    try:
        with closing(_open_to_write(path)) as connection:
            checked_meta(connection, path, lineage, commit - 1)
            connection.execute("ATTACH ? AS corpus", (str(folder / STORE),))
            with transaction(connection):
                _delete_uncommitted_rows(connection, commit)
                _mark_removed_rows(connection, commit)
            _add_documents(connection, folder / STORE, commit)
            with transaction(connection):
                _write_totals(connection, commit)
    except (sqlite3.DatabaseError, ValueError) as error:
        if _is_transient(error):
            raise
        # Readers reject an index that lacks the commit; the Library's own commit must not fail because of it.
        logger.warning("the corpus index is left as it is: %s", error)
    else:
        record_checksums(folder, CORPUS_INDEX)


def _is_transient(error: Exception) -> bool:
    """Is an error a full disk or a locked file, not damage such as a missing table?"""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)  # invalid UTF-8 has none
    return isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR


def _delete_uncommitted_rows(connection: sqlite3.Connection, commit: int) -> None:
    last = _last_before(connection, commit)
    for table in KEYED_TABLES:
        connection.execute(f"DELETE FROM {table} WHERE document_key > ?", (last,))  # noqa: S608
    connection.execute("UPDATE main.documents SET removed = NULL WHERE removed >= ?", (commit,))
    connection.execute("DELETE FROM totals WHERE at_commit >= ?", (commit,))


def _last_before(connection: sqlite3.Connection, commit: int) -> int:
    """Return the key of the last document of the earlier commits: keys rise from commit to commit."""
    query = "SELECT document_key FROM main.documents WHERE added < ? ORDER BY document_key DESC LIMIT 1"
    row = connection.execute(query, (commit,)).fetchone()
    return int(row[0]) if row else 0


def _mark_removed_rows(connection: sqlite3.Connection, commit: int) -> None:
    gone = "SELECT document_key FROM corpus.documents WHERE removed = ?"
    connection.execute(f"UPDATE main.documents SET removed = ? WHERE document_key IN ({gone})", (commit, commit))  # noqa: S608


def _add_documents(connection: sqlite3.Connection, store: Path, commit: int) -> None:
    """Describe a commit's documents by the frequencies and clusters that there are."""
    query = "SELECT document_key FROM corpus.documents WHERE document_key > ? AND added = ? ORDER BY document_key"
    lacking = [key for (key,) in connection.execute(query, (_last_before(connection, commit), commit))]

    def put(rows: Iterable[StoredDocument]) -> None:
        centres = read_centres(connection)
        described = []
        for stored in rows:
            terms = read_terms(stored.document.content)
            row = describe(stored, read_statistics(connection, terms.counts), terms)
            weights = {keyword.term: keyword.weight for keyword in row.keywords}
            described.append(row._replace(cluster=centres.assign(weights)))
        _put_rows(connection, described)

    bring_up_to_date(store, [LibraryPart(lacking, lambda stored: stored, put)], "Describing")


def _write_totals(connection: sqlite3.Connection, commit: int) -> None:
    before = "SELECT documents, chars FROM totals WHERE at_commit = ?"
    changed = "SELECT COUNT(*), COALESCE(SUM(char_count), 0) FROM main.documents"
    documents, chars = connection.execute(before, (commit - 1,)).fetchone()
    added = connection.execute(f"{changed} WHERE document_key > ?", (_last_before(connection, commit),)).fetchone()
    gone = connection.execute(f"{changed} WHERE removed = ?", (commit,)).fetchone()
    totals = (commit, documents + added[0] - gone[0], chars + added[1] - gone[1])
    connection.execute("INSERT INTO totals VALUES (?, ?, ?)", totals)


def index_problems(library: Library) -> Iterator[str]:
    """Yield the problems of a Library's corpus index, if it has one: damage, another build, wrong documents."""
    path = library.path / CORPUS_INDEX
    if not path.is_file():
        return
    try:
        with closing(connect_to_read(path, corpus=library.path / STORE)) as connection:
            (verdict,) = connection.execute("PRAGMA main.quick_check(1)").fetchone()
            if verdict != "ok":
                yield f"{CORPUS_INDEX}: {verdict} ({REBUILD})"
            try:
                checked_meta(connection, path, library.manifest["lineage"], library.commit)
            except ValueError as error:
                yield str(error)
                return
            read_centres(connection)
            yield from (
                f"{CORPUS_INDEX}: {problem} ({REBUILD})" for problem in _row_problems(connection, library.commit)
            )
    except (sqlite3.DatabaseError, ValueError, TypeError, KeyError) as error:  # a damaged file may hold anything
        yield f"{CORPUS_INDEX}: {error} ({REBUILD})"


def _row_problems(connection: sqlite3.Connection, commit: int) -> Iterator[str]:
    """Compare the documents with the store's, the totals with the documents, and look for rows without a document."""
    indexed, stored = (
        f"SELECT document_key, id FROM {file}.documents WHERE {present_at(commit)}"  # noqa: S608
        for file in ("main", "corpus")
    )
    for _, doc_id in connection.execute(f"{stored} EXCEPT {indexed} LIMIT 1"):
        yield f"document {doc_id!r} is missing"
    for _, doc_id in connection.execute(f"{indexed} EXCEPT {stored} LIMIT 1"):
        yield f"document {doc_id!r} is not in the Library"
    for table in ("keywords", "postings", "sections"):
        query = f"SELECT 1 FROM {table} WHERE document_key NOT IN (SELECT document_key FROM main.documents) LIMIT 1"  # noqa: S608
        if connection.execute(query).fetchone():
            yield f"{table} without a document"
    recorded = connection.execute("SELECT documents, chars FROM totals WHERE at_commit = ?", (commit,)).fetchone()
    counted = f"SELECT COUNT(*), COALESCE(SUM(char_count), 0) FROM main.documents WHERE {present_at(commit)}"  # noqa: S608
    actual = connection.execute(counted).fetchone()
    if recorded != actual:
        yield f"records {recorded} documents and characters, holds {actual}"
