"""Build the corpus index, in several processes, resumable."""

import multiprocessing
import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import closing, contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import TypeVar

from legal_rag.base.files import beside, locked, progress, sync
from legal_rag.base.sqlite import connect_to_read, connect_to_write, transaction
from legal_rag.corpus_index.clusters import fit_centres
from legal_rag.corpus_index.describing import copy_model_texts, describe, put_model_keywords, write_model_records
from legal_rag.corpus_index.index import CorpusIndex, has_corpus_index
from legal_rag.corpus_index.keywords import TermCounter, TermStatistics, is_sampled
from legal_rag.corpus_index.sections import DocumentIndex, sections_to_json
from legal_rag.corpus_index.tables import (
    COUNTED,
    FORMAT_VERSION,
    Row,
    assign_all,
    keyword_vectors,
    open_to_write,
    put_rows,
    read_meta,
    read_statistics,
    write_centres,
    write_meta,
    write_statistics,
)
from legal_rag.corpus_index.terms import read_terms
from legal_rag.library.checksums import record_checksums
from legal_rag.library.library import CORPUS_INDEX, STORE, Library
from legal_rag.library.store import DOCUMENT_COLUMNS, document_of_stored, present_at
from legal_rag.llm import TextModel

BATCH = 100  # documents per task
COLUMNS = ", ".join(DOCUMENT_COLUMNS)

KeyRange = tuple[int, int]  # document keys, end exclusive
Item = TypeVar("Item")
Result = TypeVar("Result")


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
    """
    target, unfinished = folder / CORPUS_INDEX, beside(folder / CORPUS_INDEX, "building")
    key = {"lineage": lineage, "commit": commit, "summaries": getattr(sub_llm, "name", "")}
    with closing(_resume_or_begin(unfinished, key)) as connection:
        build = _Build(connection, folder / STORE, unfinished, commit, batch_size)
        with process_pool(workers, len(build.ranges_after(0))) as pool:
            statistics = build.count_terms(pool)
            build.describe_documents(pool, statistics)
        if earlier is not None and earlier.is_file():
            copy_model_texts(connection, earlier)
        if sub_llm is not None:
            write_model_records(connection, folder / STORE, sub_llm)
        with transaction(connection):
            put_model_keywords(connection)
        build.find_clusters(statistics)
        build.finish(key)
    sync(unfinished)
    os.replace(unfinished, target)
    sync(folder)
    record_checksums(folder, CORPUS_INDEX)


@contextmanager
def process_pool(workers: int, n_tasks: int) -> Iterator[ProcessPoolExecutor | None]:
    """Open a pool whose processes end with this one, even if it is killed; None if one process suffices."""
    n = min(workers, n_tasks)
    if n < 2:
        yield None
        return
    context = multiprocessing.get_context("spawn")  # forking is unsafe with the threads of torch
    pool = ProcessPoolExecutor(n, mp_context=context, initializer=_exit_with_parent)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def parallel_map(
    pool: ProcessPoolExecutor | None, function: Callable[[Item], Result], items: Sequence[Item]
) -> Iterator[Result]:
    """Map like `pool.map`, but submit few items ahead, so that results do not pile up in memory."""
    if pool is None:
        yield from map(function, items)
        return
    ahead = 2 * (os.cpu_count() or 1)
    futures: deque[Future[Result]] = deque()
    for item in items:  # `pool.map(buffersize=ahead)` does this from Python 3.14 on
        futures.append(pool.submit(function, item))
        if len(futures) > ahead:
            yield futures.popleft().result()
    while futures:
        yield futures.popleft().result()


def _exit_with_parent() -> None:
    """End this process with its parent, even if that is killed and cannot signal it."""

    def wait() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


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


class _Build:
    """One build; its progress is stored in the file, so that it can resume."""

    def __init__(self, connection: sqlite3.Connection, store: Path, path: Path, commit: int, batch_size: int) -> None:
        self._connection, self._store, self._path, self._commit = connection, store, path, commit
        self._batch_size = batch_size
        with closing(connect_to_read(store)) as documents:
            query = f"SELECT COUNT(*), COALESCE(MAX(document_key), 0) FROM documents WHERE {present_at(commit)}"  # noqa: S608
            self._n_documents, self._last_key = documents.execute(query).fetchone()

    def ranges_after(self, key: int) -> list[KeyRange]:
        """Return the tasks for the documents after a key."""
        size = self._batch_size
        return [(start, start + size) for start in range(key + 1, self._last_key + 1, size)]

    def count_terms(self, pool: ProcessPoolExecutor | None) -> TermStatistics:
        """Count document frequencies, unless an earlier attempt did."""
        if COUNTED not in read_meta(self._connection):
            counter = TermCounter()
            count = partial(_count_range, self._store, self._commit, self._n_documents)
            with progress("Counting", total=self._n_documents, unit=" docs") as bar:
                for n_documents, counted in parallel_map(pool, count, self.ranges_after(0)):
                    counter.merge(counted)
                    bar.update(n_documents)
            write_statistics(self._connection, counter.freeze())
        return read_statistics(self._connection)

    def describe_documents(self, pool: ProcessPoolExecutor | None, statistics: TermStatistics) -> None:
        """Describe the documents that no earlier attempt did."""
        (last,) = self._connection.execute("SELECT COALESCE(MAX(document_key), 0) FROM documents").fetchone()
        # Other processes read the statistics from the file: they are too large to be sent with every task.
        known = self._path if pool else statistics
        describe_range = partial(_describe_range, self._store, self._commit, known)
        with progress("Describing", total=self._n_documents, unit=" docs") as bar:
            for rows in parallel_map(pool, describe_range, self.ranges_after(last)):
                with transaction(self._connection):
                    put_rows(self._connection, rows)
                bar.update(len(rows))

    def find_clusters(self, statistics: TermStatistics) -> None:
        """Fit clusters to a sample of the documents, label them, and assign every document."""
        vectors = keyword_vectors(self._connection)
        centres = fit_centres(weights for _, doc_id, weights in vectors if is_sampled(doc_id, self._n_documents))
        with transaction(self._connection):
            write_centres(self._connection, centres, centres.labels(statistics.shown))
            assign_all(self._connection, centres)

    def finish(self, key: dict[str, object]) -> None:
        """Mark the index as complete, and leave one file without a log."""
        with transaction(self._connection):
            total = "INSERT OR REPLACE INTO totals SELECT ?, COUNT(*), COALESCE(SUM(char_count), 0) FROM documents"
            self._connection.execute(total, (self._commit,))
            self._connection.execute("DELETE FROM meta WHERE name = 'building'")
            write_meta(self._connection, {"format_version": FORMAT_VERSION, **key})
        self._connection.execute("PRAGMA journal_mode=DELETE")


def _count_range(store: Path, commit: int, n_documents: int, keys: KeyRange) -> tuple[int, TermCounter]:
    """Return how many documents a range holds, and the terms of those in the sample."""
    counter, n_in_range = TermCounter(), 0
    query = (
        f"SELECT document_key, id FROM documents WHERE document_key >= ? AND document_key < ? AND {present_at(commit)}"  # noqa: S608
    )
    with closing(connect_to_read(store)) as documents:
        for key, doc_id in documents.execute(query, keys):
            n_in_range += 1
            if is_sampled(doc_id, n_documents):
                text = documents.execute("SELECT content FROM documents WHERE document_key = ?", (key,))
                counter.add(read_terms(text.fetchone()[0]))
    return n_in_range, counter


@lru_cache(1)
def _statistics_in(index: Path) -> TermStatistics:
    """Read the statistics of an index, once in each process of a pool."""
    with closing(connect_to_read(index)) as connection:
        return read_statistics(connection)


def _describe_range(store: Path, commit: int, statistics: TermStatistics | Path, keys: KeyRange) -> list[Row]:
    known = _statistics_in(statistics) if isinstance(statistics, Path) else statistics
    query = f"""
        SELECT document_key, added, {COLUMNS} FROM documents
        WHERE document_key >= ? AND document_key < ? AND {present_at(commit)} ORDER BY document_key
    """  # noqa: S608
    rows = []
    with closing(connect_to_read(store)) as documents:
        for key, added, *values in documents.execute(query, keys):
            document = document_of_stored(values)
            rows.append(Row(key, document.id, added, describe(document, known)))
    return rows
