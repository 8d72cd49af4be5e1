"""Build the corpus index, keep it up to date with each commit, and check it; in several processes, resumable."""

import json
import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import lru_cache, partial
from pathlib import Path

from legal_rag.base.files import beside, locked, progress, sync
from legal_rag.base.sqlite import connect_to_read, connect_to_write, transaction
from legal_rag.corpus.documents import Document
from legal_rag.corpus.sources import is_text_file
from legal_rag.corpus_index.clusters import fit_centres
from legal_rag.corpus_index.index import CorpusIndex, has_corpus_index
from legal_rag.corpus_index.keywords import (
    N_KEYWORDS,
    Keyword,
    TermCounter,
    TermStatistics,
    index_terms,
    is_sampled,
    keywords_of,
)
from legal_rag.corpus_index.sections import DocumentIndex, sections_to_json
from legal_rag.corpus_index.summaries import CENTROID, extractive_summary, model_record
from legal_rag.corpus_index.tables import (
    COUNTED,
    FORMAT_VERSION,
    Described,
    Row,
    assign_all,
    checked_meta,
    delete_after,
    keyword_vectors,
    open_to_write,
    put_rows,
    read_centres,
    read_meta,
    read_statistics,
    write_centres,
    write_meta,
    write_statistics,
)
from legal_rag.corpus_index.terms import TextTerms, query_terms, read_terms
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
ASKED_TO = "asked_to"  # in `meta` of an unfinished build: the last document_key sent to the model
AT_ONCE = 8  # documents sent to the model at a time
REBUILD = "'legal-rag corpus-index' rebuilds it"


class CorpusIndexer:
    """Builds the two levels of a Library's corpus index.

    Args:
        library: The Library.
        sub_llm: Describes documents that have no official summary, one call for each 20,000 characters: summary and
            keywords, title, date and author where the source has none. By default both are extractive.
    """

    def __init__(self, library: Library, sub_llm: TextModel | None = None) -> None:
        self.library, self._sub_llm = library, sub_llm

    def build_corpus_index(self, parallel: bool = False, batch_size: int = BATCH) -> CorpusIndex:
        """Build level 1 and replace the index before it.

        Args:
            parallel: On all cores.
            batch_size: Documents per task.

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
        """Build level 2 of one document, and store it.

        Raises:
            LookupError: If there is no such document.
        """
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
    """Build the index of a folder that holds a store; the caller keeps other writers out.

    Args:
        folder: A Library's, possibly one being built.
        lineage: Of its manifest.
        commit: The index describes the documents present at it.
        sub_llm: See `CorpusIndexer`.
        workers: Processes.
        batch_size: Documents a task.
        earlier: An index of the same documents and keys, whose summaries by a model are reused.
        others: Further parts to bring up to date while the documents are read.
    """
    store, target, unfinished = folder / STORE, folder / CORPUS_INDEX, beside(folder / CORPUS_INDEX, "building")
    key = {"lineage": lineage, "commit": commit, "summaries": getattr(sub_llm, "name", "")}
    with closing(_resume_or_begin(unfinished, key)) as connection:
        n_documents = sum(1 for _ in _present_documents(store, commit))
        with process_pool(workers, -(-n_documents // batch_size)) as pool:
            counter = TermCounter()
            sampled = [key for key, doc_id in _present_documents(store, commit) if is_sampled(doc_id, n_documents)]
            counting = LibraryPart([] if _is_counted(connection) else sampled, _read_forms, counter.add_all)
            bring_up_to_date(store, [*others, counting], pool=pool, batch=batch_size)
            if not _is_counted(connection):
                write_statistics(connection, counter.freeze())
            statistics = read_statistics(connection)
            # Other processes read the statistics from the file: they are too large to be sent with every task.
            last = _last_described(connection)
            describing = LibraryPart(
                [key for key, _ in _present_documents(store, commit) if key > last],
                partial(_describe_stored, unfinished if pool else statistics),
                partial(_put_described, connection),
            )
            bring_up_to_date(store, [describing], "Describing", pool=pool, batch=batch_size)
        if earlier is not None and earlier.is_file():
            copy_model_texts(connection, earlier)
        if sub_llm is not None:
            write_model_records(connection, store, sub_llm)
        with transaction(connection):
            put_model_keywords(connection)
        _find_clusters(connection, statistics, n_documents)
        _finish_index(connection, key)
    sync(unfinished)
    os.replace(unfinished, target)
    sync(folder)
    record_checksums(folder, CORPUS_INDEX)


def _present_documents(store: Path, commit: int) -> Iterator[tuple[int, str]]:
    """Yield key and id of the documents present at a commit, in the order of keys."""
    with closing(connect_to_read(store)) as documents:
        query = f"SELECT document_key, id FROM documents WHERE {present_at(commit)} ORDER BY document_key"  # noqa: S608
        yield from documents.execute(query)


def _resume_or_begin(path: Path, key: dict[str, object]) -> sqlite3.Connection:
    """Open the unfinished file of a build with the same key; discard another's."""
    if path.is_file():
        try:
            with closing(connect_to_write(path)) as connection:
                same = read_meta(connection).get("building") == key
        except (sqlite3.DatabaseError, ValueError):  # damaged, or without tables
            same = False
        if not same:
            for leftover in (path, *(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))):
                leftover.unlink(missing_ok=True)
    connection = open_to_write(path)
    # A write-ahead log survives a kill, and lets the other processes read meanwhile.
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    write_meta(connection, {"building": key})
    return connection


def _is_counted(connection: sqlite3.Connection) -> bool:
    return COUNTED in read_meta(connection)


def _read_forms(stored: StoredDocument) -> dict[str, str]:
    return read_terms(stored.document.content).shown


def _last_described(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT COALESCE(MAX(document_key), 0) FROM documents").fetchone()[0])


def _put_described(connection: sqlite3.Connection, rows: Iterable[Row]) -> None:
    with transaction(connection):
        put_rows(connection, rows)


def _describe_stored(statistics: TermStatistics | Path, stored: StoredDocument) -> Row:
    known = _statistics_in(statistics) if isinstance(statistics, Path) else statistics
    return Row(stored.key, stored.document.id, stored.added, describe(stored.document, known))


@lru_cache(1)
def _statistics_in(index: Path) -> TermStatistics:
    """Read the statistics of an index, once in each process of a pool."""
    with closing(connect_to_read(index)) as connection:
        return read_statistics(connection)


def _find_clusters(connection: sqlite3.Connection, statistics: TermStatistics, n_documents: int) -> None:
    """Fit clusters to a sample of the documents, label them, and assign every document."""
    vectors = keyword_vectors(connection)
    centres = fit_centres(weights for _, doc_id, weights in vectors if is_sampled(doc_id, n_documents))
    with transaction(connection):
        write_centres(connection, centres, centres.labels(statistics.shown))
        assign_all(connection, centres)


def _finish_index(connection: sqlite3.Connection, key: dict[str, object]) -> None:
    """Mark the index as complete, and leave one file without a log."""
    with transaction(connection):
        total = "INSERT OR REPLACE INTO totals SELECT ?, COUNT(*), COALESCE(SUM(char_count), 0) FROM documents"
        connection.execute(total, (key["commit"],))
        connection.execute("DELETE FROM meta WHERE name = 'building'")
        write_meta(connection, {"format_version": FORMAT_VERSION, **key})
    connection.execute("PRAGMA journal_mode=DELETE")


def describe(document: Document, statistics: TermStatistics, terms: TextTerms | None = None) -> Described:
    """Describe a document; `statistics` need only cover the document's own terms."""
    terms = terms or read_terms(document.content)
    weighed = keywords_of(terms, statistics, CENTROID)
    keywords = weighed[:N_KEYWORDS]
    official = " ".join(document.summary.split())
    summary = official or extractive_summary(document.reading, statistics, terms=terms, keywords=weighed)
    return Described(
        document.content_hash,
        len(document.content),
        len(document.content.encode()),
        doc_type_of(document),
        OFFICIAL if official else EXTRACTIVE,
        summary,
        [(keyword.term, keyword.shown, keyword.weight) for keyword in keywords],
        index_terms(keywords),
    )


def doc_type_of(document: Document) -> str:
    """Return a document's kind: its `nature` in the source, a decision if it names a court, else by a file's text."""
    if named := str(document.extra.get("nature") or "").strip():
        return named
    if document.juridiction:
        return DECISION
    return KINDS[choose_schema(document.content) if is_text_file(document.id) else "general"]


def write_model_records(connection: sqlite3.Connection, store: Path, sub_llm: TextModel) -> None:
    """Replace extractive summaries by a model's, with its title, date, author and keywords; keep them where it fails.

    A resumed build continues after the last document sent.
    """
    last = int(read_meta(connection).get(ASKED_TO, 0))
    pending = "FROM documents WHERE summary_source = ? AND document_key > ?"
    (total,) = connection.execute(f"SELECT COUNT(*) {pending}", (EXTRACTIVE, last)).fetchone()
    next_keys = f"SELECT document_key {pending} ORDER BY document_key LIMIT {AT_ONCE}"
    failed = 0
    name = str(getattr(sub_llm, "name", "model"))
    with (
        closing(connect_to_read(store)) as documents,
        ThreadPoolExecutor(AT_ONCE) as pool,
        progress("Summarizing", total=total, unit=" docs") as bar,
    ):
        while keys := [key for (key,) in connection.execute(next_keys, (EXTRACTIVE, last))]:
            last = keys[-1]
            texts = [documents.execute("SELECT content FROM documents WHERE document_key = ?", (key,)) for key in keys]
            replies = pool.map(lambda text: model_record(sub_llm, text), [row.fetchone()[0] for row in texts])
            kept = [(key, reply) for key, reply in zip(keys, replies, strict=True) if reply.summary]
            failed += len(keys) - len(kept)
            connection.execute("BEGIN IMMEDIATE")
            rows = [(reply.summary, name, key) for key, reply in kept]
            connection.executemany("UPDATE documents SET summary = ?, summary_source = ? WHERE document_key = ?", rows)
            records = [(key, reply.title, reply.date, reply.author, json.dumps(reply.keywords)) for key, reply in kept]
            connection.executemany("INSERT OR REPLACE INTO model_records VALUES (?, ?, ?, ?, ?)", records)
            write_meta(connection, {ASKED_TO: last})
            connection.execute("COMMIT")
            bar.update(len(keys))
    connection.execute("DELETE FROM meta WHERE name = ?", (ASKED_TO,))
    if failed:
        logger.warning("the model gave no usable summary of %d of %d documents: theirs stay extractive", failed, total)


def put_model_keywords(connection: sqlite3.Connection) -> None:
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
        rows = [(key, place, *keyword) for place, keyword in enumerate(keywords)]
        connection.executemany("INSERT INTO keywords VALUES (?, ?, ?, ?, ?)", rows)
        postings = [(term, key, weight) for term, weight in index_terms(keywords).items()]
        connection.executemany("INSERT OR REPLACE INTO postings VALUES (?, ?, ?)", postings)


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
    if connection.execute("SELECT 1 FROM earlier.sqlite_master WHERE name = 'model_records'").fetchone():
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


def update_corpus_index(folder: Path, lineage: str, commit: int) -> None:
    """Apply the next commit of a Library, whose rows are in the store already, to its corpus index, if it has one.

    Rows of an incomplete commit are deleted first. A damaged or stale index is left unchanged, with a warning.

    Args:
        folder: The Library's, locked by the caller.
        lineage: Of its manifest.
        commit: The new commit.
    """
    path = folder / CORPUS_INDEX
    if not path.is_file():
        return
    try:
        with closing(open_to_write(path)) as connection:
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
    delete_after(connection, _last_before(connection, commit))
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
        with transaction(connection):
            for key, added, document in rows:
                terms = read_terms(document.content)
                described = describe(document, read_statistics(connection, terms.counts), terms)
                put_rows(connection, [Row(key, document.id, added, described, centres.assign(described.weights))])

    bring_up_to_date(store, [LibraryPart(lacking, lambda stored: stored, put)], "Describing")


def _write_totals(connection: sqlite3.Connection, commit: int) -> None:
    """Write the commit's totals: the previous totals plus the changes."""
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
            yield from _document_problems(connection, library.commit)
            yield from _total_problems(connection, library.commit)
    except (sqlite3.DatabaseError, ValueError, TypeError, KeyError) as error:  # a damaged file may hold anything
        yield f"{CORPUS_INDEX}: {error} ({REBUILD})"


def _document_problems(connection: sqlite3.Connection, commit: int) -> Iterator[str]:
    """Compare the documents with the store's, and look for rows without a document."""
    indexed = f"SELECT document_key, id FROM main.documents AS i WHERE {present_at(commit, 'i')}"  # noqa: S608
    stored = f"SELECT document_key, id FROM corpus.documents AS d WHERE {present_at(commit, 'd')}"  # noqa: S608
    for what, query in (
        ("is missing", f"{stored} EXCEPT {indexed} LIMIT 1"),
        ("is not in the Library", f"{indexed} EXCEPT {stored} LIMIT 1"),
    ):
        for _, doc_id in connection.execute(query):
            yield f"{CORPUS_INDEX}: document {doc_id!r} {what} ({REBUILD})"
    for table in ("keywords", "postings", "sections"):
        query = f"SELECT 1 FROM {table} WHERE document_key NOT IN (SELECT document_key FROM main.documents) LIMIT 1"  # noqa: S608
        if connection.execute(query).fetchone():
            yield f"{CORPUS_INDEX}: {table} without a document ({REBUILD})"


def _total_problems(connection: sqlite3.Connection, commit: int) -> Iterator[str]:
    recorded = connection.execute("SELECT documents, chars FROM totals WHERE at_commit = ?", (commit,)).fetchone()
    counted = f"SELECT COUNT(*), COALESCE(SUM(char_count), 0) FROM main.documents AS i WHERE {present_at(commit, 'i')}"  # noqa: S608
    actual = connection.execute(counted).fetchone()
    if recorded != actual:
        yield f"{CORPUS_INDEX}: records {recorded} documents and characters, holds {actual} ({REBUILD})"
