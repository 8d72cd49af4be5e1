"""Extract the entities of a Library."""

import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from legal_rag.corpus.documents import Document
from legal_rag.extraction.engine import Extractor
from legal_rag.extraction.entities import ENTITIES, Entity, ExtractedDocument, ExtractionResult
from legal_rag.extraction.schemas import RULES, ExtractionSettings
from legal_rag.extraction.store import ExtractionStore
from legal_rag.extraction.terms import terms_of_all
from legal_rag.files import progress
from legal_rag.indexer.config import IndexConfig, IndexReport, open_documents
from legal_rag.library.library import Library

FORGET_AT_ONCE = 500  # documents


Keep = Literal["none", "models", "all"]


class LibraryFiller:
    """The entities of one Library, open for writing; close it in the end.

    Args:
        library: Its folder is written to.
        settings: How documents are extracted.
        keep: What is left as it is, though it was extracted otherwise: nothing, what a model gave, or all.
    """

    def __init__(self, library: Library, settings: ExtractionSettings, *, keep: Keep = "none") -> None:
        self.library, self.settings = library, settings
        self._keep = keep
        self._stores: list[ExtractionStore] = []  # those of folders that were moved away are in use till the end
        self._gaps: dict[str, list[Entity]] = {}  # of documents that were not read whole, which no store holds
        self._open()

    def _open(self) -> None:
        path = self.library.path / ENTITIES
        self.store = ExtractionStore(path)
        self._stores.append(self.store)
        self._inode = path.stat().st_ino
        self._extractor = Extractor(self.settings, None if self.settings.model_id == RULES else self.store)

    def close(self) -> None:
        """Close what was opened."""
        for store in self._stores:
            store.close()

    def holds(self, document: Document) -> bool:
        """Tell whether a document needs no extraction: it has one of the same recipe, or one that is to be kept."""
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
        except sqlite3.OperationalError:  # its store was moved away before it was told
            if not self._was_moved():
                raise
            return Extractor(self.settings, None).extract(text, doc_name)

    def keep(self, batch: Sequence[tuple[Document, ExtractionResult]]) -> None:
        """Write down what was extracted of documents; of those that were not read whole it lasts as long as this."""
        self._gaps.update({result.doc_name: result.extractions for _, result in batch if not result.complete})
        rows = [self._row(document, result) for document, result in batch if result.complete]
        try:
            self.store.hold_many(rows)
        except sqlite3.OperationalError:  # how SQLite may say that the file is no longer where it was
            if not self._was_moved():
                raise
        if self._was_moved():
            self._open()
            self.store.hold_many(rows)

    def _row(self, document: Document, result: ExtractionResult) -> tuple:
        terms = terms_of_all(result.extractions, document.decision_date)
        recipe = self._extractor.recipe_for(document.content)
        return document.id, document.content_hash, document.content, recipe, result, terms

    def _was_moved(self) -> bool:
        path = self.library.path / ENTITIES
        return not path.is_file() or path.stat().st_ino != self._inode

    def follow(self) -> bool:
        """Turn to the Library as it is now; tell whether it has changed since it was opened."""
        newest = self.library.reload()
        if self._was_moved():
            self._open()
        changed = newest.manifest["lineage"] != self.library.manifest["lineage"] or newest.commit != self.library.commit
        self.library = newest
        return changed

    def forget_others(self) -> None:
        """Drop what is held of documents that are no longer in the Library, and what belongs to no document."""
        gone = [doc_id for doc_id in self.store.held_ids() if doc_id not in self.library]
        for start in range(0, len(gone), FORGET_AT_ONCE):
            self.store.drop(gone[start : start + FORGET_AT_ONCE])

    def entities_of(self, document: Document) -> list[Entity]:
        """Return what was extracted of a document, which may be nothing."""
        held = self.store.entities_of(document.id, document.content_hash)
        return self._gaps.get(document.id, []) if held is None else held


AHEAD = 4  # documents for each worker that are under way or done before the first of them is taken
RULES_BATCH = 200  # documents extracted by rules that are written together


@dataclass
class ExtractReport:
    """What a run did."""

    model: str = ""
    schema: str = ""
    documents: int = 0
    extracted: int = 0  # documents, in this run
    unchanged: int = 0  # documents that were held already
    entities: int = 0  # of all documents, those with gaps too
    with_gaps: list[str] = field(default_factory=list)  # ids of documents that were not read whole: run it again
    failed: dict[str, str] = field(default_factory=dict)  # why, by id
    bad_records: int = 0  # of a source, that hold no document
    files: list[str] = field(default_factory=list)  # written for people and for LangExtract
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
    """Extract the documents of a source, without any Library, and write the files.

    Args:
        cfg: Which documents: its source, options, limit and ids file.
        settings: How.
        output: The folder for the files.
        cache: Where a model's results are kept; None is the user's cache folder. Those of the rules are not.

    Raises:
        FileNotFoundError: If there is no such source.
        ValueError: If there is no document, a column is unknown, or the model cannot be asked.
    """
    from legal_rag.extraction.engine import Extractor
    from legal_rag.extraction.outputs import write_outputs
    from legal_rag.extraction.store import ExtractionStore

    started, read = time.perf_counter(), IndexReport()
    documents, _ = open_documents(cfg, read)
    report = ExtractReport(settings.model_id, settings.schema)
    store = None if settings.model_id == RULES else ExtractionStore(cache)
    extractor = Extractor(settings, store)

    def items() -> Iterator[ExtractedDocument]:
        for document, result in extracted(_counted(documents, cfg.limit, report), extractor.extract, settings):
            report.note(result)
            report.entities += len(result.extractions)
            yield ExtractedDocument(document.id, document.title, document.content, result.extractions)

    try:
        report.files = [str(path) for path in write_outputs(Path(output).expanduser(), items())]
    finally:
        if store is not None:
            store.close()
    report.bad_records, report.seconds = len(read.bad), time.perf_counter() - started
    return report


def extract_library(
    library: Library, settings: ExtractionSettings, output: str | Path | None = None, *, keep_models: bool = False
) -> ExtractReport:
    """Extract the documents of a Library that are not yet, into its `entities.sqlite`, and write the files.

    Where the Library is built anew or changed meanwhile, the run goes on with its new documents.

    Args:
        library: Its folder is written to.
        settings: How.
        output: The folder for the files; None is the Library's own.
        keep_models: Leave what a model extracted of a document as it is.

    Raises:
        ValueError: If the model cannot be asked.
    """
    started = time.perf_counter()
    report = ExtractReport(settings.model_id, settings.schema)
    with closing(LibraryFiller(library, settings, keep="models" if keep_models else "none")) as filler:
        while True:
            _fill(filler, report)
            if not filler.follow():
                break
        filler.forget_others()
        report.files = [str(path) for path in _write_files(filler, report, output)]
    report.seconds = time.perf_counter() - started
    return report


def complete_documents(library: Library, doc_ids: Iterable[str], settings: ExtractionSettings) -> ExtractReport:
    """Extract those of some documents of a Library that are not yet; the files are left as they are.

    Raises:
        LookupError: If there is no such document.
        ValueError: If the model cannot be asked.
    """
    started = time.perf_counter()
    report = ExtractReport(settings.model_id, settings.schema)
    documents = [library.document(doc_id) for doc_id in dict.fromkeys(doc_ids)]
    with closing(LibraryFiller(library, settings, keep="all")) as filler:
        _fill_with(filler, documents, report)
        report.entities = sum(len(filler.entities_of(document)) for document in documents)
    report.documents, report.seconds = len(documents), time.perf_counter() - started
    return report


def extracted(
    documents: Iterable[Document], extract: Callable[[str, str], ExtractionResult], settings: ExtractionSettings
) -> Iterator[tuple[Document, ExtractionResult]]:
    """Extract documents, several at once where a model is asked, and yield them in their order."""
    if settings.model_id == RULES:
        yield from ((document, extract(document.content, document.id)) for document in documents)
        return

    def attempted(document: Document) -> ExtractionResult:
        try:
            return extract(document.content, document.id)
        except (ValueError, OSError, sqlite3.Error):  # the model refuses, or is not there, for any document
            raise
        # Of one document a model's client fails in as many ways as there are providers: the others go on.
        except Exception as error:
            return ExtractionResult(doc_name=document.id, error=str(error) or type(error).__name__)

    under_way: deque[tuple[Document, Future[ExtractionResult]]] = deque()
    pool = ThreadPoolExecutor(settings.max_workers, thread_name_prefix="extract")
    try:
        for document in documents:
            under_way.append((document, pool.submit(attempted, document)))
            if len(under_way) >= settings.max_workers * AHEAD:
                first, future = under_way.popleft()
                yield first, future.result()
        for first, future in under_way:
            yield first, future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _fill(filler: LibraryFiller, report: ExtractReport) -> None:
    report.documents, report.unchanged = filler.library.n_documents, 0
    documents = progress("Extracting", iterable=filler.library.documents(), total=report.documents, unit=" documents")
    _fill_with(filler, documents, report)


def _fill_with(filler: LibraryFiller, documents: Iterable[Document], report: ExtractReport) -> None:
    def missing() -> Iterator[Document]:
        for document in documents:
            if filler.holds(document):
                report.unchanged += 1
            else:
                yield document

    results = extracted(missing(), filler.extract, filler.settings)
    size = RULES_BATCH if filler.settings.model_id == RULES else 1
    while batch := list(islice(results, size)):
        for _, result in batch:
            report.note(result)
        filler.keep(batch)


def _write_files(filler: LibraryFiller, report: ExtractReport, output: str | Path | None) -> list[Path]:
    from legal_rag.extraction.outputs import write_outputs

    def items() -> Iterator[ExtractedDocument]:
        report.entities = 0
        for document in filler.library.documents():
            entities = filler.entities_of(document)
            report.entities += len(entities)
            yield ExtractedDocument(document.id, document.title, document.content, entities)

    return write_outputs(Path(output).expanduser() if output else filler.library.path, items())


def _counted(documents: Iterable[Document], limit: int | None, report: ExtractReport) -> Iterator[Document]:
    for document in progress("Extracting", iterable=documents, total=limit, unit=" documents"):
        report.documents += 1
        yield document
