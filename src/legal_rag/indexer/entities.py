"""Extract the entities of a Library into its `entities.sqlite`, and export them."""

import logging
import math
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from legal_rag.base.files import progress
from legal_rag.base.futures import results_of
from legal_rag.base.html import displayed
from legal_rag.base.sqlite import connect_to_read
from legal_rag.corpus.documents import Document
from legal_rag.extraction.engine import Extractor
from legal_rag.extraction.entities import ENTITIES, Entity, ExtractedDocument, ExtractionResult
from legal_rag.extraction.lookup import terms_of_all
from legal_rag.extraction.outputs import OUTPUTS, write_outputs
from legal_rag.extraction.rules import classes_found
from legal_rag.extraction.schemas import AUTO, RULES, SCHEMA_NAMES, ExtractionSettings, get_schema
from legal_rag.extraction.store import ExtractionStore
from legal_rag.graph.fates import store_fallen
from legal_rag.graph.store import GRAPH, MAKE_COMMAND, fill_documents, fill_graph
from legal_rag.indexer.commit import library_locked, recording
from legal_rag.indexer.config import IndexConfig, IndexReport, open_documents
from legal_rag.library.library import STORE, Library
from legal_rag.library.manifest import record_checksums
from legal_rag.library.parts import LibraryPart, StoredDocument

logger = logging.getLogger(__name__)

AHEAD = 4  # documents in progress per worker, before the first of them is stored
RULES_BATCH = 200  # documents extracted by rules that are stored together
DELETE_BATCH = 500  # documents

Keep = Literal["none", "models", "all"]


class EntityWriter:
    """Writes the entities of a Library; close it at the end.

    The schema `AUTO` is the one that was named for the Library's last extraction, if one was. `keep` is what is not
    extracted again with other settings: nothing, what a model gave, or all.
    """

    def __init__(self, library: Library, settings: ExtractionSettings, *, keep: Keep = "none") -> None:
        self.store = ExtractionStore(library.path / ENTITIES)
        self.library, self.settings, self._keep = library, _with_schema_of(self.store, settings), keep
        settings = self.settings
        self._gaps: dict[str, list[Entity]] = {}  # of incompletely read documents, which are not stored
        self._extractor = Extractor(settings, None if settings.model_id == RULES else self.store)

    def close(self) -> None:
        """Close the store, and record its checksum."""
        self.store.close()
        record_checksums(self.library.path, ENTITIES)

    def extract_missing(self, documents: Iterable[Document], report: "ExtractReport") -> None:
        """Extract and store the entities of documents that have none yet."""

        def missing() -> Iterator[Document]:
            for document in documents:
                if self._holds(document):
                    report.unchanged += 1
                else:
                    yield document

        results = extracted(missing(), self._extractor.extract, self.settings)
        size = RULES_BATCH if self.settings.model_id == RULES else 1
        while batch := list(islice(results, size)):
            for _, result in batch:
                report.note(result)
            self._gaps.update({result.doc_name: result.extractions for _, result in batch if not result.complete})
            rows = [_make_row(self._extractor, document, result) for document, result in batch if result.complete]
            self.store.hold_many(rows)

    def delete_others(self) -> None:
        """Delete the entities of documents that are no longer in the Library."""
        gone = [doc_id for doc_id in self.store.held_ids() if doc_id not in self.library]
        for start in range(0, len(gone), DELETE_BATCH):
            self.store.drop(gone[start : start + DELETE_BATCH])

    def entities_of(self, document: Document) -> list[Entity]:
        """Return the entities of a document."""
        held = self.store.entities_of(document.id, document.content_hash)
        return self._gaps.get(document.id, []) if held is None else held

    def _holds(self, document: Document) -> bool:
        """Tell whether a document needs no extraction: it has one by the same recipe, or one to keep."""
        held = self.store.held_recipe(document.id, document.content_hash)
        if held is None:
            return False
        by_model = not held.model_id.startswith(RULES)
        if self._keep == "all" or (self._keep == "models" and by_model):
            return True
        return held.key == self._extractor.recipe_for(document.content).key


def _with_schema_of(store: ExtractionStore, settings: ExtractionSettings) -> ExtractionSettings:
    made_by = store.made_by if settings.schema_name == AUTO else None
    if made_by is None or (settings.model_id == RULES and not _rules_find(made_by[0])):
        return settings
    return replace(settings, schema_name=made_by[0])


def _rules_find(schema_name: str) -> bool:
    return schema_name in SCHEMA_NAMES and bool(classes_found(get_schema(schema_name)))


def _make_row(extractor: Extractor, document: Document, result: ExtractionResult) -> tuple:
    terms = terms_of_all(result.extractions, document.decision_date)
    recipe = extractor.recipe_for(document.content)
    return document.id, document.content_hash, document.content, recipe, result, terms


@contextmanager
def entity_part(folder: Path, settings: ExtractionSettings) -> Iterator[LibraryPart]:
    """Open the entities that rules find in the documents of the Library being built in `folder`."""
    extractor = Extractor(settings)
    with closing(connect_to_read(folder / STORE)) as connection, ExtractionStore(folder / ENTITIES) as entities:
        keys = [key for (key,) in connection.execute("SELECT document_key FROM documents ORDER BY document_key")]
        entities.remember(settings.schema_name, settings.model_id)
        yield LibraryPart(keys, partial(_extract_stored, extractor), entities.hold_many)


def _extract_stored(extractor: Extractor, stored: StoredDocument) -> tuple:
    document = stored.document
    return _make_row(extractor, document, extractor.extract(document.content, document.id, reading=document.reading))


@displayed
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


def extract_source(cfg: IndexConfig, settings: ExtractionSettings, output: str | Path) -> ExtractReport:
    """Extract the documents of a source, without a Library, and export them into the folder `output`.

    `cfg` gives the source, its options, the limit and the ids file. A model's results are stored in the user's cache
    folder.

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

    with nullcontext() if settings.model_id == RULES else ExtractionStore() as store:
        paths = write_outputs(Path(output).expanduser(), items(Extractor(settings, store)))
    report.files, report.documents = [str(path) for path in paths], report.extracted
    report.missing_ids = read.missing_ids
    report.bad_records, report.seconds = len(read.bad), time.perf_counter() - started
    return report


def extract_library(
    library: Library, settings: ExtractionSettings, output: str | Path | None = None, *, keep_models: bool = False
) -> ExtractReport:
    """Extract the documents of a Library that are not yet extracted, and export all to a folder, by default its own.

    With `keep_models`, what a model extracted is not extracted again. Other writers are kept out.

    Raises:
        ValueError: If the model cannot be asked, or another process is writing to the Library.
    """
    started, path = time.perf_counter(), library.path
    with library_locked(path):
        library = library.reload()
        with closing(EntityWriter(library, settings, keep="models" if keep_models else "none")) as writer:
            report = ExtractReport(settings.model_id, writer.settings.schema)
            writer.store.remember(writer.settings.schema_name, settings.model_id)
            documents, report.documents = library.documents(), library.n_documents
            bar = progress("Extracting", iterable=documents, total=report.documents, unit=" documents")
            writer.extract_missing(bar, report)
            writer.delete_others()
            if (path / GRAPH).is_file():
                fill_graph(path, path / STORE)
                with recording(path):
                    store_fallen(path)
            report.files = [str(file) for file in _write_files(writer, report, output)]
    report.seconds = time.perf_counter() - started
    return report


def complete_documents(library: Library, doc_ids: Iterable[str], settings: ExtractionSettings) -> ExtractReport:
    """Extract some documents of a Library, unless they are already; export nothing.

    LookupError if there is no such document; ValueError if the model cannot be asked.
    """
    started = time.perf_counter()
    ids = list(dict.fromkeys(doc_ids))
    with closing(EntityWriter(library, settings, keep="all")) as writer:
        report = ExtractReport(settings.model_id, writer.settings.schema)
        writer.extract_missing(map(library.document, ids), report)
        report.entities = sum(len(writer.entities_of(library.document(doc_id))) for doc_id in ids)
    if report.extracted and (library.path / GRAPH).is_file():
        try:
            with library_locked(library.path):
                fill_documents(library.path, library.path / STORE, ids)
        except ValueError as error:  # an answer need not wait for another writer
            logger.warning("the graph lacks the new entities (%s): %s", error, MAKE_COMMAND)
    report.documents, report.seconds = len(ids), time.perf_counter() - started
    return report


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

    def attempted(document: Document) -> tuple[Document, ExtractionResult]:
        try:
            return document, extract(document.content, document.id)
        except (ValueError, OSError, sqlite3.Error):  # a failure of all documents: no access, no model
            raise
        # One document may fail in as many ways as there are providers: the others continue.
        except Exception as error:
            return document, ExtractionResult(doc_name=document.id, error=str(error) or type(error).__name__)

    pool = ThreadPoolExecutor(settings.max_workers, thread_name_prefix="extract")
    try:
        yield from results_of(
            (pool.submit(attempted, document) for document in documents), settings.max_workers * AHEAD
        )
    finally:
        pool.shutdown(cancel_futures=True)


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
