"""The corpus index, built from a Library: terms are counted, documents described, clusters found.

In: a Library. Out: `corpus_index.sqlite` in its folder, put in place when it is complete. A build that was killed is
taken up where it stopped, and gives the same index; so does one on several cores.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import lru_cache, partial
from pathlib import Path

from legal_rag.corpus import Document
from legal_rag.corpus_index.clusters import fit_centres
from legal_rag.corpus_index.describing import describe
from legal_rag.corpus_index.frequencies import TermCounter, TermStatistics, is_counted
from legal_rag.corpus_index.frozen import is_counted_already, read_statistics, write_centres, write_statistics
from legal_rag.corpus_index.in_processes import Workers
from legal_rag.corpus_index.level_two import make_sections, sections_to_json
from legal_rag.corpus_index.model_summaries import take_over_replies, write_model_summaries
from legal_rag.corpus_index.reading import CorpusIndex
from legal_rag.corpus_index.records import DocumentIndex
from legal_rag.corpus_index.rows import Row, assign_all, posted, put_rows
from legal_rag.corpus_index.section_summaries import SubModel
from legal_rag.corpus_index.tables import FORMAT_VERSION, open_to_write, read_meta, write_meta
from legal_rag.corpus_index.terms import read_terms
from legal_rag.folders import beside, locked, sync
from legal_rag.library import CORPUS_INDEX, STORE, Library
from legal_rag.progress import progress
from legal_rag.sqlite import connect_to_read, connect_to_write, transaction
from legal_rag.store import DOCUMENT_COLUMNS, document_of_stored, present_at

BATCH = 100  # documents described at once
COLUMNS = ", ".join(DOCUMENT_COLUMNS)
KeyRange = tuple[int, int]  # the first key, and the one behind the last


class CorpusIndexer:
    """Builds the two levels of a Library's index.

    Args:
        library: The Library.
        sub_llm: Writes summaries where there is no official one; without it they are made of sentences of the text.
    """

    def __init__(self, library: Library, sub_llm: SubModel | None = None) -> None:
        self.library, self._sub_llm = library, sub_llm

    def build_corpus_index(self, parallel: bool = False, batch_size: int = BATCH) -> CorpusIndex:
        """Build level 1, and put it in the place of the one before it.

        Args:
            parallel: On all cores.
            batch_size: Documents described at once.

        Raises:
            ValueError: If another process is writing to the Library, or it was built anew since it was opened.
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
                earlier=_of_same_build(library),
            )
        return CorpusIndex(library)

    def build_document_index(self, doc_id: str) -> DocumentIndex:
        """Build level 2 of one document, and keep it.

        Raises:
            LookupError: If there is no such document.
        """
        index = CorpusIndex(self.library)
        made = make_sections(index, doc_id, self._sub_llm)
        with locked(self.library.path), closing(connect_to_write(index.path)) as connection:
            put = "INSERT OR REPLACE INTO sections SELECT document_key, ?, ? FROM documents"
            values = (getattr(self._sub_llm, "name", ""), sections_to_json(made), doc_id)
            connection.execute(f"{put} WHERE id = ? AND removed IS NULL", values)
        return made


def fill_index(
    folder: Path,
    lineage: str,
    commit: int,
    *,
    sub_llm: SubModel | None = None,
    workers: int = 1,
    batch_size: int = BATCH,
    earlier: Path | None = None,
) -> None:
    """Build the index of a folder that holds a store, and put it in place; the caller keeps other writers out.

    Args:
        folder: Of a Library, or of one that is being built.
        lineage: Of its manifest.
        commit: Documents present at it are described.
        sub_llm: See `CorpusIndexer`.
        workers: Processes.
        batch_size: Documents described at once.
        earlier: An index of the same documents, by the same keys, of which is taken over what a model wrote.
    """
    target, unfinished = folder / CORPUS_INDEX, beside(folder / CORPUS_INDEX, "building")
    key = {"lineage": lineage, "commit": commit, "summaries": getattr(sub_llm, "name", "")}
    with closing(_begun(unfinished, key)) as connection:
        work = _Filling(connection, folder / STORE, unfinished, commit, batch_size)
        with Workers(workers) as work.workers:
            statistics = work.counted()
            work.described(statistics)
        if earlier is not None and earlier.is_file():
            take_over_replies(connection, earlier)
        if sub_llm is not None:
            write_model_summaries(connection, folder / STORE, sub_llm)
        work.clustered(statistics)
        work.finished(key)
    sync(unfinished)
    os.replace(unfinished, target)
    sync(folder)


def _of_same_build(library: Library) -> Path | None:
    """Return the file of a Library's index, if there is one and it holds for it."""
    try:
        return CorpusIndex(library).path
    except (FileNotFoundError, ValueError):
        return None


def _begun(path: Path, key: dict[str, object]) -> sqlite3.Connection:
    """Open what an earlier attempt left, if it was the same; else begin anew."""
    if path.is_file():
        with closing(connect_to_write(path)) as connection:
            same = _meta_or_nothing(connection).get("building") == key
        if not same:
            for leftover in (path, *(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))):
                leftover.unlink(missing_ok=True)
    connection = open_to_write(path)
    # With a journal of its own, what was written outlives a kill, and the processes that describe can read it.
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    write_meta(connection, {"building": key})
    return connection


def _meta_or_nothing(connection: sqlite3.Connection) -> dict[str, object]:
    try:
        return read_meta(connection)
    except (sqlite3.DatabaseError, ValueError):  # damaged, or not even begun
        return {}


class _Filling:
    """One build: what is done of it is in the file."""

    def __init__(self, connection: sqlite3.Connection, store: Path, path: Path, commit: int, batch_size: int) -> None:
        self._connection, self._store, self._path, self._commit = connection, store, path, commit
        self._batch_size = batch_size
        self.workers = Workers(1)
        with closing(connect_to_read(store)) as documents:
            query = f"SELECT COUNT(*), COALESCE(MAX(document_key), 0) FROM documents WHERE {present_at(commit)}"  # noqa: S608
            self.n_documents, self.last_key = documents.execute(query).fetchone()

    def counted(self) -> TermStatistics:
        """Count the terms of the corpus, unless that was done."""
        if not is_counted_already(self._connection):
            counter = TermCounter()
            count = partial(_count_range, self._store, self._commit, self.n_documents)
            with progress("Counting", total=self.n_documents, unit=" docs") as bar:
                for n_documents, counted in self.workers.map(count, self._ranges(0)):
                    counter.merge(counted)
                    bar.update(n_documents)
            write_statistics(self._connection, counter.freeze())
        return read_statistics(self._connection)

    def described(self, statistics: TermStatistics) -> None:
        """Describe the documents that are not yet."""
        (last,) = self._connection.execute("SELECT COALESCE(MAX(document_key), 0) FROM documents").fetchone()
        ranges = self._ranges(last)
        # Other processes read the statistics for themselves: they are too many to be sent with every range.
        known = self._path if self.workers.are_others_for(ranges) else statistics
        describe_range = partial(_describe_range, self._store, self._commit, known)
        with progress("Describing", total=self.n_documents, unit=" docs") as bar:
            for rows in self.workers.map(describe_range, ranges):
                with transaction(self._connection):
                    put_rows(self._connection, rows)
                bar.update(len(rows))

    def _ranges(self, last: int) -> list[KeyRange]:
        """Divide the keys behind one."""
        size = self._batch_size
        return [(start, start + size) for start in range(last + 1, self.last_key + 1, size)]

    def clustered(self, statistics: TermStatistics) -> None:
        """Find clusters and topics; each document goes into its nearest one."""
        drawn = (weights for _, doc_id, weights in posted(self._connection) if is_counted(doc_id, self.n_documents))
        centres = fit_centres(drawn)
        with transaction(self._connection):
            write_centres(self._connection, centres, centres.labels(statistics.shown))
            assign_all(self._connection, centres)

    def finished(self, key: dict[str, object]) -> None:
        """Say that the index is whole, and leave one file that needs no journal."""
        with transaction(self._connection):
            total = "INSERT OR REPLACE INTO totals SELECT ?, COUNT(*), COALESCE(SUM(char_count), 0) FROM documents"
            self._connection.execute(total, (self._commit,))
            self._connection.execute("DELETE FROM meta WHERE name = 'building'")
            write_meta(self._connection, {"format_version": FORMAT_VERSION, **key})
        self._connection.execute("PRAGMA journal_mode=DELETE")


def _count_range(store: Path, commit: int, n_documents: int, keys: KeyRange) -> tuple[int, TermCounter]:
    """Return how many documents there are in a range, and the terms of those that are counted."""
    counter, found = TermCounter(), 0
    query = (
        f"SELECT document_key, id FROM documents WHERE document_key >= ? AND document_key < ? AND {present_at(commit)}"  # noqa: S608
    )
    with closing(connect_to_read(store)) as documents:
        for key, doc_id in documents.execute(query, keys):
            found += 1
            if is_counted(doc_id, n_documents):
                text = documents.execute("SELECT content FROM documents WHERE document_key = ?", (key,))
                counter.add(read_terms(text.fetchone()[0]))
    return found, counter


@lru_cache(1)
def _statistics_in(index: Path) -> TermStatistics:
    """Read the statistics of an index, once in each process that works for this one."""
    with closing(connect_to_read(index)) as connection:
        return read_statistics(connection)


def _describe_range(store: Path, commit: int, statistics: TermStatistics | Path, keys: KeyRange) -> list[Row]:
    known = _statistics_in(statistics) if isinstance(statistics, Path) else statistics
    with closing(connect_to_read(store)) as documents:
        return [
            Row(key, one.id, added, describe(one, known)) for key, added, one in _documents(documents, commit, keys)
        ]


def _documents(connection: sqlite3.Connection, commit: int, keys: KeyRange) -> Iterator[tuple[int, int, Document]]:
    query = f"""
        SELECT document_key, added, {COLUMNS} FROM documents
        WHERE document_key >= ? AND document_key < ? AND {present_at(commit)} ORDER BY document_key
    """  # noqa: S608
    for key, added, *values in connection.execute(query, keys):
        yield key, added, document_of_stored(values)
