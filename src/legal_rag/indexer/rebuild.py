"""Add or renew the parts of a Library that are made of its texts and token codes, without encoding again."""

import shutil
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from legal_rag.corpus_index.index import has_corpus_index
from legal_rag.extraction.schemas import RULES, ExtractionSettings
from legal_rag.graph.store import count_unlinked
from legal_rag.indexer.commit import fill_parts, library_locked, write_chunk_vectors
from legal_rag.indexer.config import REBUILT_PARTS, RebuiltPart
from legal_rag.indexer.doctor import chunk_vector_problems
from legal_rag.indexer.entities import ExtractReport, extract_library, missing_entities
from legal_rag.library.library import CORPUS_INDEX, STORE, Library
from legal_rag.library.manifest import CHUNK_VECTORS, write_manifest
from legal_rag.library.outlines import count_lacking


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

    Raises:
        ValueError: If there is no such part.
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
        with library_locked(library.path):
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
        without_words = library.entity_store.count_lacking_words() if library.entity_store else 0
        return PartPlan(part, max(len(ids), without_words), requests, characters * settings.passes)
    if part in ("trees", "graph"):
        count = count_lacking if part == "trees" else count_unlinked
        lacking = library.n_documents if force else count(library.path, library.path / STORE)
        return PartPlan(part, lacking, 0, 0)
    if part == "vectors" and not library.manifest["plaid"]["n_bits"]:  # it can have none
        return PartPlan(part, 0, 0, 0)
    whole = {"corpus-index": has_corpus_index, "words": _has_lexical_index, "vectors": _has_vectors}
    is_whole = whole[part](library)
    return PartPlan(part, 0 if is_whole and not force else library.n_documents, 0, 0)


def _has_lexical_index(library: Library) -> bool:
    try:
        return library.lexical_index().n_chunks == sum(shard["chunks"] for shard in library.manifest["shards"])
    except (OSError, ValueError):
        return False


def _has_vectors(library: Library) -> bool:
    return CHUNK_VECTORS in library.manifest and not any(chunk_vector_problems(library))


def _write_vectors(path: Path) -> None:
    with library_locked(path):
        library = Library(path)
        _ = library.shard_folders  # inside the Library, or refused
        if any(chunk_vector_problems(library)):  # damaged vectors are not extended
            shutil.rmtree(path / CHUNK_VECTORS, ignore_errors=True)
        write_manifest(path, library.manifest | write_chunk_vectors(path, library.manifest["shards"]))
