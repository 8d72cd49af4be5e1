"""Extract the entities of a Library into its `entities.sqlite`, and export them."""

import logging
import math
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from legal_rag.base.files import progress
from legal_rag.corpus.documents import Document
from legal_rag.extraction.engine import Extractor
from legal_rag.extraction.entities import ENTITIES, Entity, ExtractedDocument, ExtractionResult
from legal_rag.extraction.lookup import terms_of_all
from legal_rag.extraction.outputs import OUTPUTS, write_outputs
from legal_rag.extraction.schemas import RULES, ExtractionSettings
from legal_rag.extraction.store import ExtractionStore
from legal_rag.graph.store import GRAPH, MAKE_COMMAND, fill_documents, fill_graph
from legal_rag.indexer.commit import library_locked
from legal_rag.indexer.config import IndexConfig, IndexReport, open_documents
from legal_rag.library.checksums import record_checksums
from legal_rag.library.library import STORE, Library

logger = logging.getLogger(__name__)

AHEAD = 4  # documents in progress per worker, before the first of them is stored
RULES_BATCH = 200  # documents extracted by rules that are stored together
DELETE_BATCH = 500  # documents

Keep = Literal["none", "models", "all"]


class EntityWriter:
    """Writes the entities of a Library, even while the Library is being replaced; close it at the end.

    `keep` is what is not extracted again with other settings: nothing, what a model gave, or all.
    """

    def __init__(self, library: Library, settings: ExtractionSettings, *, keep: Keep = "none") -> None:
        self.library, self.settings = library, settings
        self._keep = keep
        self._stores: list[ExtractionStore] = []  # those of replaced folders too: threads may still use them
        self._gaps: dict[str, list[Entity]] = {}  # of incompletely read documents, which are not stored
        self._open_store()

    def _open_store(self) -> None:
        path = self.library.path / ENTITIES
        self.store = ExtractionStore(path)
        self._stores.append(self.store)
        self._inode = path.stat().st_ino
        self._extractor = Extractor(self.settings, None if self.settings.model_id == RULES else self.store)

    def close(self) -> None:
        """Close the stores, and record the checksum of the Library's."""
        for store in self._stores:
            store.close()
        record_checksums(self.library.path, ENTITIES)

    def holds(self, document: Document) -> bool:
        """Tell whether a document needs no extraction: it has one by the same recipe, or one to keep."""
        held = self.store.held_recipe(document.id, document.content_hash)
        if held is None:
            return False
        by_model = not held.model_id.startswith(RULES)
        if self._keep == "all" or (self._keep == "models" and by_model):
            return True
        return held.key == self._extractor.recipe_for(document.content).key

    def extract(self, text: str, doc_name: str) -> ExtractionResult:
        """Extract one document; safe for threads."""
        try:
            return self._extractor.extract(text, doc_name)
        except sqlite3.OperationalError:  # its store was replaced
            if not self._was_replaced():
                raise
            return Extractor(self.settings, None).extract(text, doc_name)

    def keep(self, batch: Sequence[tuple[Document, ExtractionResult]]) -> None:
        """Store the entities of documents; those of incompletely read ones only in memory."""
        self._gaps.update({result.doc_name: result.extractions for _, result in batch if not result.complete})
        rows = [self._make_row(document, result) for document, result in batch if result.complete]
        try:
            self.store.hold_many(rows)
        except sqlite3.OperationalError:  # raised also where the file was moved
            if not self._was_replaced():
                raise
        if self._was_replaced():
            self._open_store()
            self.store.hold_many(rows)

    def _make_row(self, document: Document, result: ExtractionResult) -> tuple:
        terms = terms_of_all(result.extractions, document.decision_date)
        recipe = self._extractor.recipe_for(document.content)
        return document.id, document.content_hash, document.content, recipe, result, terms

    def _was_replaced(self) -> bool:
        path = self.library.path / ENTITIES
        return not path.is_file() or path.stat().st_ino != self._inode

    def follow(self) -> bool:
        """Reload the Library; tell whether it has changed."""
        newest = self.library.reload()
        if self._was_replaced():
            self._open_store()
        changed = (newest.build_id, newest.commit) != (self.library.build_id, self.library.commit)
        self.library = newest
        return changed

    def delete_others(self) -> None:
        """Delete the entities of documents that are no longer in the Library."""
        gone = [doc_id for doc_id in self.store.held_ids() if doc_id not in self.library]
        for start in range(0, len(gone), DELETE_BATCH):
            self.store.drop(gone[start : start + DELETE_BATCH])

    def entities_of(self, document: Document) -> list[Entity]:
        """Return the entities of a document."""
        held = self.store.entities_of(document.id, document.content_hash)
        return self._gaps.get(document.id, []) if held is None else held


@dataclass
class ExtractReport:
    """What an extraction did."""

    model: str = ""
    schema: str = ""
    documents: int = 0
    extracted: int = 0  # documents, this time
    unchanged: int = 0  # documents extracted before
    entities: int = 0  # of all documents, also incompletely read ones
    with_gaps: list[str] = field(default_factory=list)  # ids of incompletely read documents: extract again
    failed: dict[str, str] = field(default_factory=dict)  # error by id
    bad_records: int = 0  # of a source
    missing_ids: list[str] = field(default_factory=list)  # of the ids file, absent or not readable
    files: list[str] = field(default_factory=list)  # exported
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the form that `legal-rag extract --json` prints."""
        return asdict(self)

    def note(self, result: ExtractionResult) -> None:
        """Count one document's result."""
        self.extracted += 1
        if result.error is not None:
            self.failed[result.doc_name] = result.error
        elif not result.complete:
            self.with_gaps.append(result.doc_name)


def extract_source(
    cfg: IndexConfig, settings: ExtractionSettings, output: str | Path, *, cache: Path | None = None
) -> ExtractReport:
    """Extract the documents of a source, without a Library, and export them.

    Args:
        cfg: Which documents: its source, options, limit and ids file.
        settings: How.
        output: The folder for the files.
        cache: The store of a model's results; None is in the user's cache folder. Results of rules are not stored.

    Raises:
        FileNotFoundError: If there is no such source.
        ValueError: If there is no document, a column is unknown, or the model cannot be asked.
    """
    started, read = time.perf_counter(), IndexReport()
    documents = progress("Extracting", iterable=open_documents(cfg, read), total=cfg.limit, unit=" documents")
    report = ExtractReport(settings.model_id, settings.schema)

    def items(extractor: Extractor) -> Iterator[ExtractedDocument]:
        for document, result in extracted(documents, extractor.extract, settings):
            report.note(result)
            report.entities += len(result.extractions)
            yield ExtractedDocument.of(document, result.extractions)

    with nullcontext() if settings.model_id == RULES else ExtractionStore(cache) as store:
        paths = write_outputs(Path(output).expanduser(), items(Extractor(settings, store)))
    report.files, report.documents = [str(path) for path in paths], report.extracted
    report.missing_ids = read.missing_ids
    report.bad_records, report.seconds = len(read.bad), time.perf_counter() - started
    return report


def extract_library(
    library: Library, settings: ExtractionSettings, output: str | Path | None = None, *, keep_models: bool = False
) -> ExtractReport:
    """Extract the documents of a Library that are not yet extracted, and export all.

    If the Library changes or is replaced during extraction, its new documents are extracted too.

    Args:
        library: Its folder is written to.
        settings: How.
        output: The folder for the files; None is the Library's own.
        keep_models: Do not extract again what a model extracted.

    Raises:
        ValueError: If the model cannot be asked.
    """
    started = time.perf_counter()
    report = ExtractReport(settings.model_id, settings.schema)
    with closing(EntityWriter(library, settings, keep="models" if keep_models else "none")) as writer:
        writer.store.index_words()
        while True:
            documents, n = writer.library.documents(), writer.library.n_documents
            report.documents, report.unchanged = n, 0
            _extract_documents(writer, progress("Extracting", iterable=documents, total=n, unit=" documents"), report)
            if not writer.follow():
                break
        writer.delete_others()
        renew_graph(writer.library.path)
        report.files = [str(path) for path in _write_files(writer, report, output)]
    report.seconds = time.perf_counter() - started
    return report


def complete_documents(library: Library, doc_ids: Iterable[str], settings: ExtractionSettings) -> ExtractReport:
    """Extract some documents of a Library, unless they are already; export nothing.

    Raises:
        LookupError: If there is no such document.
        ValueError: If the model cannot be asked.
    """
    started = time.perf_counter()
    report = ExtractReport(settings.model_id, settings.schema)
    ids = list(dict.fromkeys(doc_ids))
    with closing(EntityWriter(library, settings, keep="all")) as writer:
        _extract_documents(writer, map(library.document, ids), report)
        report.entities = sum(len(writer.entities_of(library.document(doc_id))) for doc_id in ids)
    if report.extracted:
        renew_graph(library.path, ids)
    report.documents, report.seconds = len(ids), time.perf_counter() - started
    return report


def renew_graph(library: Path, doc_ids: Collection[str] | None = None) -> None:
    """Add what new entities give to a Library's graph, if it has one; it stays as it is while another writes.

    `doc_ids` are the documents looked at; None looks at all.
    """
    if not (library / GRAPH).is_file():
        return
    try:
        with library_locked(library):
            if doc_ids is None:
                fill_graph(library, library / STORE)
            else:
                fill_documents(library, library / STORE, doc_ids)
    except ValueError as error:
        logger.warning("the graph lacks the new entities (%s): %s", error, MAKE_COMMAND)


def missing_entities(
    library: Library, doc_ids: Iterable[str] | None, settings: ExtractionSettings
) -> tuple[list[str], int]:
    """Find the documents, among those named or all, that were never extracted or have changed since.

    Returns:
        Their ids, and about how many requests a model needs for them; the rules need none.

    Raises:
        LookupError: If there is no such document.
    """
    store, ids, chunks = library.entity_store, [], 0
    for document in library.documents() if doc_ids is None else map(library.document, dict.fromkeys(doc_ids)):
        if store is None or store.held_recipe(document.id, document.content_hash) is None:
            ids.append(document.id)
            chunks += math.ceil(len(document.content) / settings.max_char_buffer)
    return ids, 0 if settings.model_id == RULES else chunks * settings.passes


def extracted(
    documents: Iterable[Document], extract: Callable[[str, str], ExtractionResult], settings: ExtractionSettings
) -> Iterator[tuple[Document, ExtractionResult]]:
    """Extract documents, in parallel where a model does it, and yield them in order."""
    if settings.model_id == RULES:
        yield from ((document, extract(document.content, document.id)) for document in documents)
        return

    def attempted(document: Document) -> ExtractionResult:
        try:
            return extract(document.content, document.id)
        except (ValueError, OSError, sqlite3.Error):  # a failure of all documents: no access, no model
            raise
        # One document may fail in as many ways as there are providers: the others continue.
        except Exception as error:
            return ExtractionResult(doc_name=document.id, error=str(error) or type(error).__name__)

    pending: deque[tuple[Document, Future[ExtractionResult]]] = deque()
    pool = ThreadPoolExecutor(settings.max_workers, thread_name_prefix="extract")
    try:
        for document in documents:
            pending.append((document, pool.submit(attempted, document)))
            if len(pending) >= settings.max_workers * AHEAD:
                first, future = pending.popleft()
                yield first, future.result()
        for first, future in pending:
            yield first, future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _extract_documents(writer: EntityWriter, documents: Iterable[Document], report: ExtractReport) -> None:
    def missing() -> Iterator[Document]:
        for document in documents:
            if writer.holds(document):
                report.unchanged += 1
            else:
                yield document

    results = extracted(missing(), writer.extract, writer.settings)
    size = RULES_BATCH if writer.settings.model_id == RULES else 1
    while batch := list(islice(results, size)):
        for _, result in batch:
            report.note(result)
        writer.keep(batch)


def _write_files(writer: EntityWriter, report: ExtractReport, output: str | Path | None) -> list[Path]:
    def items() -> Iterator[ExtractedDocument]:
        report.entities = 0
        for document in writer.library.documents():
            entities = writer.entities_of(document)
            report.entities += len(entities)
            yield ExtractedDocument.of(document, entities)

    paths = write_outputs(Path(output).expanduser() if output else writer.library.path, items())
    if not output:
        record_checksums(writer.library.path, *OUTPUTS)
    return paths
