"""Build an index; add and remove documents; renew parts that need no encoding."""

import dataclasses
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from legal_rag.corpus.documents import ID_COLUMN, TEXT_COLUMN, Document, document_of_row
from legal_rag.corpus.files import clean_text
from legal_rag.corpus_index.index import has_corpus_index
from legal_rag.encoder.encoder import Encoder, build_encoder, load_encoder
from legal_rag.extraction.entities import ENTITIES
from legal_rag.extraction.schemas import RULES, ExtractionSettings
from legal_rag.graph.store import count_unlinked
from legal_rag.indexer.commit import (
    LibraryUpdate,
    append_bad_records,
    building,
    fill_parts,
    finish_library,
    library_locked,
    recording,
    staging,
    updating,
    write_chunk_vectors,
)
from legal_rag.indexer.config import (
    PLAID_SETTINGS,
    REBUILT_PARTS,
    IndexConfig,
    IndexReport,
    RebuiltPart,
    as_recorded,
    library_path,
    open_documents,
    read_ids,
    source_entry,
    source_label,
)
from legal_rag.indexer.doctor import chunk_vector_problems
from legal_rag.indexer.entities import ExtractReport, entity_part, extract_library, missing_entities
from legal_rag.indexer.erasure import forget_entities
from legal_rag.indexer.pipeline import CODEBOOK, Stopwatch, fill_shards
from legal_rag.library.filters import Filters, UnsupportedFilterError
from legal_rag.library.library import (
    CORPUS_INDEX,
    DEFAULT_FOLDER,
    DEFAULT_NAME,
    STORE,
    Library,
)
from legal_rag.library.manifest import CHUNK_VECTORS, write_manifest
from legal_rag.library.outlines import count_lacking
from legal_rag.library.plaid.files import PLAID_FOLDER
from legal_rag.library.store import StoreWriter

NO_TEXT = "-"  # replaces an empty text: a document must have one


def build_index(
    cfg: IndexConfig, encoder: Encoder | None = None, *, extraction: ExtractionSettings | None = None
) -> IndexReport:
    """Build a Library from a source; it replaces an existing one when it is complete.

    A build that was killed is resumed by the next one with the same settings, and gives the same index. `encoder` is a
    loaded one, instead of the one `cfg` names. Where `extraction` is by rules and the Library that is replaced has no
    entities, they are extracted while documents are read; see also `extract_library`.

    Raises:
        FileNotFoundError: If the source, the ids file or the encoder does not exist.
        ValueError: If no document is left, a column is unknown, or the folder holds something else than a Library.
        OSError: If the disk is full; the previous Library is untouched.
    """
    report = IndexReport()
    watch = Stopwatch(report.seconds)
    with watch.timed("total"):
        with watch.timed("open"):
            documents = open_documents(cfg, report)
            encoder = encoder or build_encoder(cfg.encoder)
        with resumed_build(cfg, encoder) as (scratch, store):
            with watch.timed("shards"):
                fill_shards(scratch, documents, store, encoder, cfg, watch)
            finish_build(scratch, store, encoder, cfg, report, extraction)
    return report


def add_documents(cfg: IndexConfig, encoder: Encoder | None = None) -> IndexReport:
    """Add the documents of a source to a Library, in new shards; existing shards are not rewritten.

    Unchanged documents are skipped; changed ones are replaced. All are chunked and encoded with the Library's settings,
    and `encoder`, if given, is the Library's: `cfg` gives the source and its options, the limit, the ids file, and
    where the Library is.

    Raises:
        FileNotFoundError: If there is no Library, or the source or the encoder does not exist.
        ValueError: If the encoder is not the Library's, or another process is writing to it.
    """
    report = IndexReport()
    watch = Stopwatch(report.seconds)
    with watch.timed("total"):
        with watch.timed("open"):
            documents = open_documents(cfg, report)
        with updating(cfg.index_folder, cfg.index_name) as update:
            apply_changes(update, _changed(documents, update, report), cfg, encoder, report, watch)
            update.forget_in_graph()
    return report


def remove_documents(
    doc_ids: Iterable[str], index_folder: str | Path = DEFAULT_FOLDER, index_name: str = DEFAULT_NAME
) -> int:
    """Remove documents from a Library, and return how many; searches no longer find their chunks.

    Their disk space is freed by `legal_rag.indexer.compact_index`.

    Raises:
        FileNotFoundError: If there is no Library.
        LookupError: If one of the documents is not in it; then none is removed.
    """
    ids = list(dict.fromkeys(doc_ids))
    with updating(index_folder, index_name) as update:
        held = update.held(ids)
        if absent := [doc_id for doc_id in ids if doc_id not in held]:
            raise LookupError(f"no document {absent[0]!r} in {update.path}: nothing was removed")
        update.apply(ids)
        update.forget_in_graph()
        forget_entities(update.path, ids)
    return len(ids)


class IncrementalIndexer:
    """Adds and removes single documents of a Library, given open or by its folder, and its corpus index."""

    def __init__(self, library: Library | str | Path) -> None:
        path = (library.path if isinstance(library, Library) else Path(library).expanduser()).absolute()
        self._folder, self._name = str(path.parent), path.name

    def add_document(self, source: str | Path | Document | Mapping[str, Any]) -> IndexReport:
        """Add a document, a row of a dataset, or a file, whose name becomes the id; one with the same id is replaced.

        FileNotFoundError if there is no such file, or no Library; ValueError if it holds no text, or another process is
        writing to the Library.
        """
        row = source.row() if isinstance(source, Document) else source
        rows = [row] if isinstance(row, Mapping) else row
        return add_documents(IndexConfig(source=rows, index_folder=self._folder, index_name=self._name))

    def remove_document(self, doc_id: str) -> None:
        """Remove a document.

        LookupError if there is no such document; ValueError if another process is writing to the Library.
        """
        remove_documents([doc_id], self._folder, self._name)


def open_index(cfg: IndexConfig) -> Library:
    """Open the Library that `build_index` made with `cfg`."""
    return Library.open(cfg.index_folder, cfg.index_name)


def preprocess(sample: Mapping[str, Any], id_column: str = ID_COLUMN) -> dict[str, str]:
    """Clean a dataset row and return `content`, `doc_id`, `title` and `decision_date`, empty where the row has none.

    Raises:
        LookupError: If the row has no id.
    """
    content = sample.get(TEXT_COLUMN)
    content = clean_text(content) if isinstance(content, str) else ""
    row = {**sample, ID_COLUMN: sample.get(id_column), TEXT_COLUMN: content if content.strip() else NO_TEXT}
    document = document_of_row(row)
    return {
        "content": document.content if content.strip() else "",
        "doc_id": document.id,
        "title": document.title,
        "decision_date": document.decision_date,
    }


@contextmanager
def resumed_build(cfg: IndexConfig, encoder: Encoder) -> Iterator[tuple[Path, StoreWriter]]:
    """Open the scratch folder and the store of a build, resuming an attempt with the same outcome."""
    key = {
        **{name: getattr(cfg, name) for name in ("limit", *PLAID_SETTINGS)},
        "source": str(source_label(cfg)),
        "options": cfg.options._asdict(),
        "ids": sorted(read_ids(cfg.ids_file)),
        "chunks": dataclasses.asdict(cfg.chunks),
        "encoder": dataclasses.asdict(encoder.identity),
        "backend": getattr(encoder, "backend", ""),  # whose precision differs
    }
    with (
        building(cfg.index_folder, cfg.index_name, key) as scratch,
        closing(StoreWriter(scratch / STORE, shard_chunks=cfg.shard_chunks)) as store,
    ):
        yield scratch, store


def finish_build(
    scratch: Path,
    store: StoreWriter,
    encoder: Encoder,
    cfg: IndexConfig,
    report: IndexReport,
    extraction: ExtractionSettings | None = None,
) -> None:
    """Make a Library from a store and its shards, and report its counts; ValueError if no document held any text."""
    if not store.n_chunks:
        raise ValueError(f"no chunk in {cfg.source!s}: its documents hold no text the encoder can read")
    store.finish()
    shutil.rmtree(scratch / CODEBOOK, ignore_errors=True)
    append_bad_records(scratch, report.bad, 0)
    report.documents, report.chunks = store.n_documents, store.n_chunks
    report.path, report.encoder = str(library_path(cfg)), encoder.identity.name
    manifest: dict[str, Any] = {
        "commit": 1,
        "encoder": dataclasses.asdict(encoder.identity),
        "chunks": dataclasses.asdict(cfg.chunks),
        "plaid": {name: getattr(cfg, name) for name in PLAID_SETTINGS},
        "source": source_entry(cfg),
        "counts": {"documents": report.documents, "chunks": report.chunks, "bad_records": len(report.bad)},
    }
    parts: list[RebuiltPart] = ["trees", "graph"]
    parts += ["corpus-index"] if cfg.corpus_index else []
    earlier = library_path(cfg)
    with Stopwatch(report.seconds).timed("parts"), ExitStack() as opened:
        others = []
        if extraction and extraction.model_id == RULES and not (earlier / ENTITIES).is_file():
            others.append(opened.enter_context(entity_part(scratch, extraction)))
        manifest = finish_library(scratch, manifest, store.n_shards, parts, earlier=earlier, others=others)
    report.tokens = manifest["counts"]["tokens"]


def apply_changes(
    update: LibraryUpdate,
    documents: Iterable[Document],
    cfg: IndexConfig,
    encoder: Encoder | None,
    report: IndexReport,
    watch: Stopwatch,
    withdrawn: Collection[str] = (),
) -> None:
    """Commit new and changed documents and the removal of others, if there are any.

    `withdrawn` need not be complete before the documents were read; nor are the report's bad records.
    """
    manifest, path = update.manifest, update.path
    report.path, report.encoder = str(path), manifest["encoder"]["name"]
    cfg, documents = as_recorded(cfg, manifest), iter(documents)
    first = next(documents, None)
    if first is None:  # and no encoder is needed
        if withdrawn or report.bad:
            _commit_changes(update, None, cfg, report, withdrawn)
        return
    with watch.timed("open"):
        encoder = load_encoder(manifest, path, encoder, trust_remote_code=cfg.encoder.trust_remote_code, documents=True)
    key = {"lineage": manifest["lineage"], "commit": update.commit, "backend": getattr(encoder, "backend", "")}
    with (
        staging(path, "adding", key) as scratch,
        # The shards go to the Library's folder at once: readers ignore them until the manifest names them.
        closing(
            StoreWriter(scratch / STORE, shard_chunks=cfg.shard_chunks, first_shard=len(manifest["shards"]))
        ) as store,
    ):
        with watch.timed("shards"):
            added = chain([first], documents)
            fill_shards(path, added, store, encoder, cfg, watch, codec_folder=path / PLAID_FOLDER)
        store.finish()
        _commit_changes(update, store, cfg, report, withdrawn)


def _changed(documents: Iterable[Document], update: LibraryUpdate, report: IndexReport) -> Iterator[Document]:
    for document in documents:
        if update.state_of(document) == "unchanged":
            report.unchanged += 1
        else:
            yield document


def _commit_changes(
    update: LibraryUpdate, store: StoreWriter | None, cfg: IndexConfig, report: IndexReport, withdrawn: Collection[str]
) -> None:
    append_bad_records(update.path, report.bad, update.manifest["counts"]["bad_records"])
    shards = range(store.first_shard, store.first_shard + store.n_shards) if store else ()
    entry = {"source": source_entry(cfg), "bad_records": len(report.bad)}
    added, removed, report.tokens = update.apply(withdrawn, store.path if store else None, shards, entry)
    report.documents, report.chunks = added.documents, added.chunks
    report.replaced = removed.documents - len(withdrawn)


class PartPlan(NamedTuple):
    """What a part of a Library lacks."""

    part: RebuiltPart
    documents: int  # to be read; 0: nothing is to be done
    requests: int  # to a model, about
    characters: int  # that the model reads


def plan_rebuild(
    library: Library, parts: Collection[RebuiltPart], settings: ExtractionSettings, *, force: bool = False
) -> list[PartPlan]:
    """Return what each part lacks, in the order of `REBUILT_PARTS`; with `force`, all of it but the entities.

    ValueError if there is no such part.
    """
    if unknown := sorted(set(parts) - set(REBUILT_PARTS)):
        raise ValueError(f"no part {unknown[0]!r} to rebuild (expected {', '.join(REBUILT_PARTS)})")
    return [_plan_part(library, part, settings, force=force) for part in REBUILT_PARTS if part in parts]


def rebuild(
    library: Library, plan: Collection[PartPlan], settings: ExtractionSettings, *, force: bool = False
) -> ExtractReport | None:
    """Carry out a plan, made with the same `force`; what an interrupted run has done is kept.

    Returns:
        What the extraction did, if there was one.

    Raises:
        ValueError: If another process is writing to the Library, or the model cannot be asked.
        OSError: If the disk is full.
    """
    lacking = {part: documents for part, documents, *_ in plan if documents}
    if "vectors" in lacking:
        _write_vectors(library.path)
    report = extract_library(library.reload(), settings, keep_models=True) if "entities" in lacking else None
    if names := lacking.keys() & {"words", "corpus-index", "trees", "graph"}:
        with library_locked(library.path), recording(library.path):
            library = Library(library.path)
            anew = {part for part in names if force or lacking[part] == library.n_documents}
            before = library.path / CORPUS_INDEX if has_corpus_index(library) else None
            fill_parts(library.path, library.manifest, names, summaries=before, anew=anew, parallel=True)
    return report


def _plan_part(library: Library, part: RebuiltPart, settings: ExtractionSettings, *, force: bool) -> PartPlan:
    if part == "entities":
        ids, requests = missing_entities(library, None, settings)
        by_model = settings.model_id != RULES
        characters = sum(len(library.document(doc_id).content) for doc_id in ids) if by_model else 0
        return PartPlan(part, len(ids), requests, characters * settings.passes)
    if part in ("trees", "graph"):
        count = count_lacking if part == "trees" else count_unlinked
        lacking = library.n_documents if force else count(library.path, library.path / STORE)
        if part == "graph" and not _answers_filter(library, Filters(standing=True)):
            lacking = max(lacking, 1)
        return PartPlan(part, lacking, 0, 0)
    if part == "vectors":  # there can be none without token vectors
        lacks = library.manifest["plaid"]["n_bits"] and (force or any(chunk_vector_problems(library)))
    else:
        is_whole = has_corpus_index if part == "corpus-index" else _has_lexical_index
        lacks = force or not is_whole(library)
    return PartPlan(part, library.n_documents if lacks else 0, 0, 0)


def _has_lexical_index(library: Library) -> bool:
    try:
        is_whole = library.lexical_index().n_chunks == sum(shard["chunks"] for shard in library.manifest["shards"])
    except (OSError, ValueError):
        return False
    return is_whole and _answers_filter(library, Filters(published=True))


def _answers_filter(library: Library, filters: Filters) -> bool:
    try:
        library.has_any(filters)
    except UnsupportedFilterError:
        return False
    return True


def _write_vectors(path: Path) -> None:
    with library_locked(path):
        library = Library(path)
        _ = library.shards  # inside the Library, or refused
        if any(chunk_vector_problems(library)):  # damaged vectors are not extended
            shutil.rmtree(path / CHUNK_VECTORS, ignore_errors=True)
        write_manifest(path, library.manifest | write_chunk_vectors(path, library.manifest["shards"]))
