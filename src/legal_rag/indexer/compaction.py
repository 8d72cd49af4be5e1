"""Compact an index: drop removed chunks, merge small shards, retrain the codebook."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from legal_rag.base.files import link_or_copy, progress
from legal_rag.base.html import displayed
from legal_rag.extraction.entities import ENTITIES
from legal_rag.graph.store import GRAPH, copy_graph
from legal_rag.indexer.commit import finish_library, library_locked, replacing
from legal_rag.indexer.config import IndexConfig, RebuiltPart, as_recorded
from legal_rag.indexer.doctor import chunk_vector_problems, refuse_damage
from legal_rag.indexer.erasure import forget_removed
from legal_rag.indexer.pipeline import (
    BATCH_CHUNKS,
    CODEBOOK,
    CODEC,
    SAMPLE_BATCHES,
    SHARDS,
    EncodedBatch,
    FullShard,
    Stopwatch,
    prefetched,
    shard_home,
    train_into,
    write_shards,
)
from legal_rag.library.library import (
    CORPUS_INDEX,
    DEFAULT_FOLDER,
    DEFAULT_NAME,
    MAPPING,
    RUNS,
    STORE,
    Library,
)
from legal_rag.library.manifest import CHECKSUMS, CHUNK_VECTORS, MANIFEST
from legal_rag.library.outlines import OUTLINES
from legal_rag.library.plaid.codec import copy_passages, link_shard
from legal_rag.library.plaid.files import PLAID_FOLDER
from legal_rag.library.plaid.search import MappedShard
from legal_rag.library.store import copy_store

REPLACED = ("format_version", "lineage", "shards", CHUNK_VECTORS)  # in the manifest
LARGE = 0.5  # of a full shard's chunks: a shard that still has them keeps its files


@displayed
@dataclass
class CompactionReport:
    """What a compaction did."""

    shards_before: int = 0
    shards: int = 0
    dropped_chunks: int = 0  # of removed documents
    requantised_chunks: int = 0  # quantised with another codebook
    bytes_before: int = 0
    bytes: int = 0
    answers: list[str] = field(default_factory=list)  # deleted, where an update had withdrawn what they rest on
    seconds: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the form that `legal-rag compact --json` prints."""
        return asdict(self)


def compact_index(
    index_folder: str | Path = DEFAULT_FOLDER,
    index_name: str = DEFAULT_NAME,
    *,
    n_bits: int | None = None,
    retrain: bool = False,
    parallel: bool = False,
) -> CompactionReport:
    """Rewrite a Library without removed chunks and small shards; the old one answers until the new one is complete.

    Nothing is encoded. Codes are copied; with another `n_bits`, or with `retrain`, a codebook is trained on the present
    documents, and codes are made from the token vectors that the old codes decode to. `parallel` reads the texts in as
    many processes as there are cores, for which a script's own work must be under `if __name__ == "__main__"`.

    Raises:
        FileNotFoundError: If there is no Library.
        ValueError: If a file is damaged, or nothing would be left.
        OSError: If the disk is full; the Library stays as it was.
    """
    target = Path(index_folder).expanduser() / index_name
    Library(target)  # before the lock, whose file would stay behind without a Library
    with library_locked(target):
        return compact_locked(target, n_bits=n_bits, retrain=retrain, parallel=parallel)


def compact_locked(
    target: Path, *, n_bits: int | None = None, retrain: bool = False, parallel: bool = False
) -> CompactionReport:
    """Do what `compact_index` does, to the Library of a folder that is locked."""
    report = CompactionReport()
    with Stopwatch(report.seconds).timed("total"):
        report.answers = forget_removed(target)
        library = Library(target)
        refuse_damage(library)  # carried-over files get new checksums, which would hide damage
        cfg = _compacted_settings(library, n_bits)
        requantised = bool(cfg.n_bits) and (retrain or cfg.n_bits != library.manifest["plaid"]["n_bits"])
        plan = _plan_shards(library)
        report.shards_before, report.shards = len(library.manifest["shards"]), len(plan)
        report.bytes_before = _count_bytes(target)
        report.dropped_chunks = sum(len(positions) for positions in library.removed_positions())
        report.requantised_chunks = sum(len(shard.places) for shard in plan) if requantised else 0
        with replacing(target, "compacting") as scratch:
            _move_rows(library, scratch / STORE, plan)
            if requantised:
                _requantise(library, scratch, plan, cfg, Stopwatch(report.seconds))
            elif cfg.n_bits:  # else a shard has no files
                _copy_shards(library, scratch, plan, cfg, Stopwatch(report.seconds))
            shutil.rmtree(scratch / CODEBOOK, ignore_errors=True)
            _carry_over(target, scratch)
            if (target / GRAPH).is_file():
                copy_graph(target / GRAPH, scratch / GRAPH)
            files: dict[RebuiltPart, str] = {"trees": OUTLINES, "graph": GRAPH, "corpus-index": CORPUS_INDEX}
            names = {name for name, file in files.items() if (target / file).is_file()}
            manifest = _compacted_manifest(library, cfg, plan)
            vectors = None if requantised else _copy_chunk_vectors(library, scratch, plan)
            # The document keys of the corpus index are those of the old store.
            summaries = target / CORPUS_INDEX
            finish_library(
                scratch,
                manifest,
                len(plan),
                names,
                vectors=vectors,
                earlier=target,
                summaries=summaries,
                parallel=parallel,
            )
        report.bytes = _count_bytes(target)
    return report


class NewShard(NamedTuple):
    """A planned shard, and where its chunks are now."""

    number: int
    places: np.ndarray  # shape (n_chunks, 2): old shard and position, in the order of the new positions


def _plan_shards(library: Library) -> list[NewShard]:
    """Decide which shards stay, and which chunks are merged into new ones; ValueError if all documents were removed."""
    full = library.manifest["plaid"]["shard_chunks"]
    live = [
        np.setdiff1d(np.arange(shard["chunks"]), removed)
        for shard, removed in zip(library.manifest["shards"], library.removed_positions(), strict=True)
    ]
    small = [number for number, positions in enumerate(live) if len(positions) < LARGE * full]
    staying = [
        np.column_stack([np.full(len(positions), number), positions])
        for number, positions in enumerate(live)
        if number not in small
    ]
    waiting = np.array(library.places_in(small), dtype=np.int64).reshape(-1, 2)  # in document order
    groups = [*staying, *(waiting[start : start + full] for start in range(0, len(waiting), full))]
    if not groups:
        raise ValueError(f"no document is left in {library.path}: there is nothing to compact")
    return [NewShard(number, places) for number, places in enumerate(groups)]


def _compacted_settings(library: Library, n_bits: int | None) -> IndexConfig:
    cfg = as_recorded(IndexConfig(), library.manifest)
    bits = cfg.n_bits if n_bits is None else n_bits
    if not cfg.n_bits and bits:
        raise ValueError(f"{library.path} was built without a PLAID index (n_bits 0): build it anew with {bits} bits")
    if cfg.n_bits and bits not in (1, 2, 4):
        raise ValueError(f"n_bits must be 1, 2 or 4, got {bits}")
    return replace(cfg, n_bits=bits)


def _move_rows(library: Library, store: Path, plan: Sequence[NewShard]) -> None:
    """Write the store of the new Library."""
    moves = (
        (int(old_shard), int(old_position), shard.number, position)
        for shard in plan
        for position, (old_shard, old_position) in enumerate(shard.places)
    )
    copy_store(library.path / STORE, store, library.commit, moves)


def _copy_shards(library: Library, scratch: Path, plan: Sequence[NewShard], cfg: IndexConfig, watch: Stopwatch) -> None:
    """Copy the codes of the chunks of each new shard."""
    places, shards = library.shards, library.manifest["shards"]
    for shard in progress("Copying", iterable=plan, unit=" shards"):
        sources = np.unique(shard.places[:, 0]).tolist()
        target = shard_home(scratch, shard.number) / PLAID_FOLDER
        target.parent.mkdir(parents=True, exist_ok=True)
        with watch.timed("copy"):
            if len(sources) == 1 and np.array_equal(shard.places[:, 1], np.arange(shards[sources[0]]["chunks"])):
                link_shard(places[sources[0]], target)
            else:
                copy_passages(places, shard.places, target)


def _copy_chunk_vectors(library: Library, scratch: Path, plan: Sequence[NewShard]) -> dict[str, Any] | None:
    """Copy the vectors of the chunks that stay, and return the manifest's entry; None if they are to be made anew."""
    vectors = None if any(chunk_vector_problems(library)) else library.chunk_vectors()
    if vectors is None:
        return None
    return {CHUNK_VECTORS: vectors.copy_into(scratch / CHUNK_VECTORS, [shard.places for shard in plan])}


def _requantise(library: Library, scratch: Path, plan: Sequence[NewShard], cfg: IndexConfig, watch: Stopwatch) -> None:
    """Requantise all shards with a codec trained on token vectors sampled from all of them."""
    codec_folder = scratch / CODEBOOK / CODEC
    places = np.concatenate([shard.places for shard in plan])
    chosen = np.unique(np.linspace(0, len(places) - 1, SAMPLE_BATCHES * BATCH_CHUNKS).astype(int))
    vectors = _vectors_at(library)
    sample = np.concatenate([vectors(*place).astype(np.float16) for place in places[chosen].tolist()])
    train_into(codec_folder, sample, cfg, watch)
    batches = _vector_batches(library, plan)
    dim = library.manifest["encoder"]["dim"]
    with progress("Quantising", unit=" chunks", total=len(places)) as bar, prefetched(batches) as ahead:
        for batch in write_shards(scratch, ahead, dim, codec_folder, watch):
            bar.update(len(batch.matrices))


def _vector_batches(library: Library, shards: Sequence[NewShard]) -> Iterator[EncodedBatch]:
    """Yield the token vectors of new shards' chunks."""
    vectors = _vectors_at(library)
    for shard in shards:
        n_chunks = len(shard.places)
        full = FullShard(shard.number, n_chunks)
        for start in range(0, n_chunks, BATCH_CHUNKS):
            end = min(start + BATCH_CHUNKS, n_chunks)
            matrices = [vectors(*place) for place in shard.places[start:end].tolist()]
            yield EncodedBatch(full, matrices, end == n_chunks)


def _vectors_at(library: Library) -> Callable[[int, int], np.ndarray]:
    """Return what decompresses the token vectors at a shard and position, (n_tokens, dim)."""
    places = library.shards

    @lru_cache(8)
    def opened(number: int) -> MappedShard:
        return MappedShard(places[number])

    return lambda shard, position: opened(shard).token_vectors(np.array([position]))


def _carry_over(target: Path, scratch: Path) -> None:
    """Link the other files of the Library's folder: bad records, entity pages, instructions."""
    replaced = {MANIFEST, MAPPING, PLAID_FOLDER, SHARDS, CHUNK_VECTORS, CHECKSUMS, RUNS}
    for path in target.iterdir():
        if path.name in replaced or path.name.startswith((".", STORE, ENTITIES, CORPUS_INDEX, OUTLINES, GRAPH)):
            continue
        if path.is_dir():
            shutil.copytree(path, scratch / path.name, copy_function=link_or_copy, dirs_exist_ok=True)
        else:
            link_or_copy(path, scratch / path.name)


def _compacted_manifest(library: Library, cfg: IndexConfig, plan: Sequence[NewShard]) -> dict[str, Any]:
    old = library.manifest
    return {name: value for name, value in old.items() if name not in REPLACED} | {
        "commit": library.commit + 1,
        "plaid": old["plaid"] | {"n_bits": cfg.n_bits},
        "counts": old["counts"] | {"chunks": sum(len(shard.places) for shard in plan)},
        "updates": [*old["updates"], {"commit": library.commit + 1, "compacted": True}],
    }


def _count_bytes(folder: Path) -> int:
    files = (path.stat() for path in folder.rglob("*") if path.is_file())
    return sum({(stat.st_dev, stat.st_ino): stat.st_size for stat in files}.values())  # a codebook has many names
