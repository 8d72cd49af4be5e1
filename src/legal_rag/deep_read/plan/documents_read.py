"""The documents of one run, read in parallel: each is taken up in its turn, and done when all its parts are.

In: ids, and what reads a part. Out: what became of each document, in order; why the reading stopped, if it did.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from legal_rag.budget import BudgetExceededError
from legal_rag.corpus import Document
from legal_rag.deep_read.models import SubCallError
from legal_rag.deep_read.plan.asked import is_lasting
from legal_rag.deep_read.plan.findings import Finding
from legal_rag.deep_read.plan.mapping import PartRead, PartReader, ReadableDocument
from legal_rag.deep_read.plan.prompts import notice_of
from legal_rag.deep_read.plan.settings import PlanSettings

UNKNOWN = "document absent du corpus"
WAITING = 2  # parts under way or waiting, for each worker


class Documents(Protocol):
    """Where documents are looked up; a `Library` is one."""

    def document(self, doc_id: str) -> Document:
        """Return a document by its id, or raise LookupError."""


@dataclass
class DocumentRead:
    """What became of a document so far; its text is not kept."""

    doc_id: str
    n_parts: int = 0
    notice: str = ""  # what the corpus says about it; kept where something was found
    parts: dict[int, PartRead] = field(default_factory=dict)  # that were read, by number
    errors: dict[int, str] = field(default_factory=dict)  # why others could not be, in French
    seconds: float = 0.0  # of all its parts together

    @property
    def is_done(self) -> bool:
        """Whether every part was read, or could not be."""
        return len(self.parts) + len(self.errors) >= self.n_parts

    @property
    def is_whole(self) -> bool:
        """Whether every part was read."""
        return self.is_done and not self.error

    @property
    def error(self) -> str:
        """Why a part of it could not be read, the first one; empty if none."""
        return self.errors[min(self.errors)] if self.errors else ""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What its parts bring, in their order."""
        return tuple(finding for number in sorted(self.parts) for finding in self.parts[number].findings)

    @property
    def dropped(self) -> int:
        """Quotations that did not stand."""
        return sum(part.dropped for part in self.parts.values())


class ReadSoFar(NamedTuple):
    """How far the reading came."""

    documents: list[DocumentRead]  # those that were begun, in order
    not_begun: tuple[str, ...]
    exhausted: BudgetExceededError | None  # the limit that ended it
    failure: str  # the model's lasting failure that ended it, in French


class _Task(NamedTuple):
    read: DocumentRead
    readable: ReadableDocument
    number: int  # of the part


class DocumentsReader:
    """Reads documents, several parts at a time."""

    def __init__(
        self,
        parts: PartReader,
        library: Documents,
        settings: PlanSettings,
        on_done: Callable[[DocumentRead], None],
    ) -> None:
        """Take what reads a part, where documents are, and who is told of each one that is done."""
        self._parts, self._library, self._settings, self._on_done = parts, library, settings, on_done
        self._begun: list[DocumentRead] = []
        self._exhausted: BudgetExceededError | None = None
        self._failure = ""

    def run(self, doc_ids: Sequence[str], workers: int) -> ReadSoFar:
        """Read documents as far as the budget goes; see `ReadSoFar`.

        Args:
            doc_ids: Each once.
            workers: Parts that are read at once.
        """
        tasks = self._tasks(doc_ids)
        running: dict[Future[tuple[PartRead, float]], _Task] = {}
        pool = ThreadPoolExecutor(workers)
        try:
            while True:
                while len(running) < WAITING * workers and not self._is_stopped and (task := next(tasks, None)):
                    running[pool.submit(self._timed, task)] = task
                if not running:
                    break
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    self._take(running.pop(future), future)
                if self._is_stopped:  # what is under way was paid for, and is waited for
                    running = {future: task for future, task in running.items() if not future.cancel()}
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        return ReadSoFar(self._begun, tuple(doc_ids[len(self._begun) :]), self._exhausted, self._failure)

    @property
    def _is_stopped(self) -> bool:
        return self._exhausted is not None or bool(self._failure)

    def _tasks(self, doc_ids: Sequence[str]) -> Iterator[_Task]:
        """Yield the parts of the documents; each is looked up when its turn has come."""
        for doc_id in doc_ids:
            read = DocumentRead(doc_id)
            self._begun.append(read)
            try:
                document = self._library.document(doc_id)
            except LookupError:  # removed since it was chosen
                read.errors[0] = UNKNOWN
                self._on_done(read)
                continue
            readable = ReadableDocument(document, self._settings)
            read.n_parts, read.notice = len(readable.windows), notice_of(document)
            if not readable.windows:
                self._on_done(read)
            for number in range(read.n_parts):
                yield _Task(read, readable, number)

    def _timed(self, task: _Task) -> tuple[PartRead, float]:
        started = time.perf_counter()
        part = self._parts.read(task.readable, task.readable.windows[task.number])
        return part, time.perf_counter() - started

    def _take(self, task: _Task, future: Future[tuple[PartRead, float]]) -> None:
        read = task.read
        try:
            read.parts[task.number], seconds = future.result()
            read.seconds += seconds
        except BudgetExceededError as error:
            self._exhausted = error
            return
        except SubCallError as error:
            read.errors[task.number] = str(error)
            self._failure = self._failure or (str(error) if is_lasting(error) else "")
        if read.is_done:
            read.notice = read.notice if read.findings else ""
            self._on_done(read)
