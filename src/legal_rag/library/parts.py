"""Bring parts of a Library up to date: one pass over its documents, each read once for all the parts that lack it."""

import json
import multiprocessing
import os
import threading
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from legal_rag.base.files import progress
from legal_rag.base.futures import results_of
from legal_rag.base.sqlite import connect_to_read
from legal_rag.corpus.documents import Document
from legal_rag.library.store import SELECT_DOCUMENTS, document_of_stored

BATCH = 100  # documents of a task, whose rows are stored in one transaction

Item = TypeVar("Item")
Result = TypeVar("Result")


class StoredDocument(NamedTuple):
    """A document with its place in the store."""

    key: int
    added: int  # the commit that added it
    document: Document


class LibraryPart(NamedTuple):
    """What a Library keeps of each document, made of the document alone."""

    lacking: Sequence[int]  # keys of the documents without a current row, ascending
    make: Callable[[StoredDocument], Any]  # a document's row, perhaps in another process
    put: Callable[[Sequence[Any]], None]  # stores rows in the order of keys, all or none


def bring_up_to_date(
    store: Path,
    parts: Sequence[LibraryPart],
    label: str = "Reading",
    *,
    pool: ProcessPoolExecutor | None = None,
    batch: int | None = None,
) -> int:
    """Make and store what parts lack, and return how many documents were read; a kill costs a batch.

    The caller keeps other writers out.

    Args:
        store: The documents.
        parts: What is made of them.
        label: Of the progress bar.
        pool: Of other processes that make the rows.
        batch: Documents of a task.
    """
    lacking = [array("q", part.lacking) for part in parts]
    keys = array("q", sorted(set().union(*lacking)))
    make = partial(_make_rows, store, [part.make for part in parts])
    with progress(label, total=len(keys), unit=" documents") as bar:
        for n_documents, made in parallel_map(pool, make, _tasks(keys, lacking, batch or BATCH)):
            for part, rows in zip(parts, made, strict=True):
                if rows:
                    part.put(rows)
            bar.update(n_documents)
    return len(keys)


def _tasks(keys: Sequence[int], lacking: Sequence["array[int]"], batch: int) -> Iterator[list[list[int]]]:
    """Yield the keys that each part lacks among those of a batch."""
    for start in range(0, len(keys), batch):
        first, last = keys[start], keys[min(start + batch, len(keys)) - 1]
        yield [held[bisect_left(held, first) : bisect_right(held, last)].tolist() for held in lacking]


def _make_rows(
    store: Path, makers: Sequence[Callable[[StoredDocument], Any]], task: Sequence[Sequence[int]]
) -> tuple[int, list[list[Any]]]:
    """Return how many documents a task has, and each part's rows; one document is held at a time."""
    made: list[list[Any]] = [[] for _ in makers]
    lacking = [frozenset(keys) for keys in task]
    keys = sorted(frozenset().union(*lacking))
    select = SELECT_DOCUMENTS.replace("SELECT ", "SELECT document_key, added, ", 1)
    query = f"{select} WHERE document_key IN (SELECT value FROM json_each(?)) ORDER BY document_key"  # noqa: S608
    with closing(connect_to_read(store)) as connection:
        for key, added, *row in connection.execute(query, (json.dumps(keys),)):
            stored = StoredDocument(key, added, document_of_stored(row))
            for make, rows, held in zip(makers, made, lacking, strict=True):
                if key in held:
                    rows.append(make(stored))
    return len(keys), made


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
    pool: ProcessPoolExecutor | None, function: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[Result]:
    """Map like `pool.map`, but submit few items ahead, so that results do not pile up in memory."""
    if pool is None:
        yield from map(function, items)
        return
    yield from results_of((pool.submit(function, item) for item in items), 2 * (os.cpu_count() or 1))


def _exit_with_parent() -> None:
    """End this process with its parent, even if that is killed and cannot signal it."""

    def wait() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
