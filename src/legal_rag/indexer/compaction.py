"""Compact an index: drop removed chunks, merge small shards, requantise."""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from legal_rag.corpus_index.building import fill_index
from legal_rag.encoder.encoder import Encoder, load_encoder
from legal_rag.extraction.entities import ENTITIES
from legal_rag.files import beside, link_or_copy, progress
from legal_rag.graph.store import GRAPH, copy_graph, fill_graph
from legal_rag.indexer.commit import finish_library, library_locked, replacing
from legal_rag.indexer.config import IndexConfig, as_recorded, chunker_of
from legal_rag.indexer.pipeline import (
    BATCH_CHUNKS,
    EncodedBatch,
    FullShard,
    Stopwatch,
    encode_shards,
    prefetched,
    shard_writer,
    write_shards,
)
from legal_rag.indexer.shards import (
    PASSAGE_TOKENS,
    SHARDS,
    TOKEN_VECTORS,
    discard_vectors,
    is_complete,
    shard_home,
)
from legal_rag.library.library import (
    CORPUS_INDEX,
    DEFAULT_FOLDER,
    DEFAULT_NAME,
    MANIFEST,
    MAPPING,
    RUNS,
    STORE,
    Library,
)
from legal_rag.library.outlines import OUTLINES, fill_outlines
from legal_rag.library.plaid.files import PLAID_FOLDER
from legal_rag.library.plaid.writer import copy_shard_without
from legal_rag.library.store import copy_store
from legal_rag.sqlite import connect_to_read

LARGE = 0.5  # of a full shard's chunks: a shard that still has them keeps its files


@dataclass
class CompactionReport:
    """What a compaction did."""

    shards_before: int = 0
    shards: int = 0
    dropped_chunks: int = 0  # of removed documents
    encoded_chunks: int = 0  # of small shards, re-encoded
    bytes_before: int = 0
    bytes: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the form that `legal-rag compact --json` prints."""
        return asdict(self)


def compact_index(
    index_folder: str | Path = DEFAULT_FOLDER,
    index_name: str = DEFAULT_NAME,
    *,
    n_bits: int | None = None,
    encoder: Encoder | None = None,
    trust_remote_code: bool = False,
) -> CompactionReport:
    """Rewrite a Library without removed chunks and small shards; the old one answers until the new one is complete.

    Args:
        index_folder: The folder Libraries lie in.
        index_name: The Library's own folder name.
        n_bits: Requantise all shards with so many bits per dimension, from the token vectors that were kept.
        encoder: The Library's encoder, if it is loaded already.
        trust_remote_code: Run code that comes with the encoder.

    Raises:
        FileNotFoundError: If there is no Library, or its encoder is needed and cannot be found.
        ValueError: If `n_bits` is to change and no token vectors were kept, or nothing would be left.
        OSError: If the disk is full; the Library stays as it was.
    """
    report = CompactionReport()
    target = Path(index_folder).expanduser() / index_name
    Library(target)  # before the lock, whose file would stay where there is none
    with Stopwatch(report.seconds).timed("total"), library_locked(target):
        library = Library(target)
        cfg = _settings(library, n_bits)
        plan = _plan_shards(library, requantise=cfg.n_bits != library.manifest["plaid"]["n_bits"])
        report.shards_before, report.shards = len(library.manifest["shards"]), len(plan)
        report.bytes_before = _size(target)
        report.dropped_chunks = sum(len(positions) for positions in library.removed_positions())
        key = {"lineage": library.manifest["lineage"], "commit": library.commit, "n_bits": cfg.n_bits}

        def load() -> Encoder:
            return load_encoder(library.manifest, target, encoder, trust_remote_code=trust_remote_code, documents=True)

        with replacing(target, "compacting", key) as scratch:
            _move_rows(library, scratch / STORE, plan)
            if cfg.n_bits:  # else a shard has no files
                _write_new_shards(library, scratch, plan, cfg, load, report)
            _carry_over(target, scratch)
            manifest = _finish(library, scratch, cfg, plan)
            if (target / OUTLINES).is_file():
                fill_outlines(scratch, scratch / STORE, earlier=target / OUTLINES)
            if (target / GRAPH).is_file():
                copy_graph(target / GRAPH, scratch / GRAPH)
                fill_graph(scratch, scratch / STORE, target / ENTITIES)
            if (target / CORPUS_INDEX).is_file():  # its document keys are those of the old store
                fill_index(scratch, manifest["lineage"], manifest["commit"], earlier=target / CORPUS_INDEX)
        report.bytes = _size(target)
    return report


class NewShard(NamedTuple):
    """A planned shard, and where its chunks are now."""

    number: int
    places: np.ndarray  # shape (n_chunks, 2): old shard and position, in the order of the new positions
    is_copy: bool  # of one shard, without requantising


def _plan_shards(library: Library, *, requantise: bool = False) -> list[NewShard]:
    """Decide which shards are copied, and which chunks are merged into new ones.

    Raises:
        ValueError: If all documents were removed.
    """
    full = library.manifest["plaid"]["shard_chunks"]
    live = [
        np.setdiff1d(np.arange(shard["chunks"]), removed)
        for shard, removed in zip(library.manifest["shards"], library.removed_positions(), strict=True)
    ]
    small = [number for number, positions in enumerate(live) if len(positions) < LARGE * full]
    if len([number for number in small if len(live[number])]) == 1:  # alone it would only be encoded again
        small = [number for number in small if not len(live[number])]
    copied = [
        np.column_stack([np.full(len(positions), number), positions])
        for number, positions in enumerate(live)
        if number not in small
    ]
    waiting = np.array(library.places_in(small), dtype=np.int64).reshape(-1, 2)  # in document order
    merged = [waiting[start : start + full] for start in range(0, len(waiting), full)]
    groups = [(places, not requantise) for places in copied] + [(places, False) for places in merged]
    if not groups:
        raise ValueError(f"no document is left in {library.path}: there is nothing to compact")
    return [NewShard(number, places, is_copy) for number, (places, is_copy) in enumerate(groups)]


def _settings(library: Library, n_bits: int | None) -> IndexConfig:
    cfg = as_recorded(IndexConfig(), library.manifest)
    wanted = cfg.n_bits if n_bits is None else n_bits
    if not cfg.n_bits and wanted:
        raise ValueError(f"{library.path} was built without a PLAID index (n_bits 0): build it anew with {wanted} bits")
    if cfg.n_bits and wanted not in (1, 2, 4):
        raise ValueError(f"n_bits must be 1, 2 or 4, got {wanted}")
    if wanted != cfg.n_bits and not cfg.keep_embeddings:
        raise ValueError(
            f"{library.path} kept no token vectors to quantise with {wanted} bits: build it with --keep-embeddings"
        )
    return replace(cfg, n_bits=wanted)


def _move_rows(library: Library, store: Path, plan: Sequence[NewShard]) -> None:
    """Write the store of the new Library, unless an earlier attempt did."""
    if store.is_file():
        return
    moves = (
        (int(old_shard), int(old_position), shard.number, position)
        for shard in plan
        for position, (old_shard, old_position) in enumerate(shard.places)
    )
    unfinished = beside(store, "new")
    unfinished.unlink(missing_ok=True)
    copy_store(library.path / STORE, unfinished, library.commit, moves)
    os.replace(unfinished, store)


def _write_new_shards(
    library: Library,
    scratch: Path,
    plan: Sequence[NewShard],
    cfg: IndexConfig,
    load: Callable[[], Encoder],
    report: CompactionReport,
) -> None:
    missing = [one for one in plan if not is_complete(shard_home(scratch, one.number), len(one.places))]
    made = [one for one in missing if not one.is_copy]
    watch = Stopwatch(report.seconds)
    for shard in progress("Copying", iterable=[one for one in missing if one.is_copy], unit=" shards"):
        with watch.timed("copy"):
            _copy_shard(library, scratch, shard, keep_vectors=cfg.keep_embeddings)
    if not made:
        return
    n_chunks = sum(len(shard.places) for shard in made)
    if cfg.keep_embeddings:
        batches = _kept_batches(library, scratch, made)
    else:
        batches = _encoded_batches(scratch, made, load(), cfg, watch)
        report.encoded_chunks = n_chunks
    dim = library.manifest["encoder"]["dim"]
    with progress("Merging", unit=" chunks", total=n_chunks) as bar, prefetched(batches) as ahead:
        for batch in write_shards(scratch, ahead, dim, cfg, watch):
            bar.update(len(batch.matrices))


def _copy_shard(library: Library, scratch: Path, shard: NewShard, *, keep_vectors: bool) -> None:
    """Copy a shard without its removed chunks; unchanged files become hard links."""
    number, positions = int(shard.places[0, 0]), shard.places[:, 1]
    described = library.manifest["shards"][number]
    old, new = shard_home(library.path, number), shard_home(scratch, shard.number)
    dropped = np.setdiff1d(np.arange(described["chunks"]), positions)
    new.mkdir(parents=True, exist_ok=True)
    unfinished = new / f".{PLAID_FOLDER}.building"
    shutil.rmtree(unfinished, ignore_errors=True)
    if keep_vectors:
        for batch in _kept_batches(library, scratch, [shard]):
            shard_writer(scratch, batch.shard, library.manifest["encoder"]["dim"]).append(batch.matrices)
    if len(dropped):
        copy_shard_without(old / PLAID_FOLDER, unfinished, dropped)
    else:
        unfinished.mkdir()
        for name in described["checksums"]:
            link_or_copy(old / PLAID_FOLDER / name, unfinished / name)
    os.replace(unfinished, new / PLAID_FOLDER)


def _kept_batches(library: Library, scratch: Path, shards: Sequence[NewShard]) -> Iterator[EncodedBatch]:
    """Yield the kept token vectors of new shards' chunks, each shard from its beginning."""

    @lru_cache(8)
    def kept(number: int) -> list[np.ndarray]:
        """Map the token vectors of an old shard: for each chunk, shape (n_tokens, dim)."""
        home, dim = shard_home(library.path, number), library.manifest["encoder"]["dim"]
        ends = np.cumsum(np.fromfile(home / PASSAGE_TOKENS, dtype="<i4"), dtype=np.int64)
        rows = np.memmap(home / TOKEN_VECTORS, dtype="<f2", mode="r", shape=(int(ends[-1]), dim))
        return np.split(rows, ends[:-1])

    for shard in shards:
        n_chunks = len(shard.places)
        full = FullShard(shard.number, n_chunks)
        discard_vectors(shard_home(scratch, full.number))
        for start in range(0, n_chunks, BATCH_CHUNKS):
            end = min(start + BATCH_CHUNKS, n_chunks)
            matrices = [np.asarray(kept(old)[position]) for old, position in shard.places[start:end].tolist()]
            yield EncodedBatch(full, matrices, end == n_chunks)


def _encoded_batches(
    scratch: Path, shards: Sequence[NewShard], encoder: Encoder, cfg: IndexConfig, watch: Stopwatch
) -> Iterator[EncodedBatch]:
    full = [FullShard(shard.number, len(shard.places)) for shard in shards]
    with closing(connect_to_read(scratch / STORE)) as connection:
        yield from encode_shards(scratch, connection, full, chunker_of(cfg, encoder), encoder, watch)


def _carry_over(target: Path, scratch: Path) -> None:
    """Link the other files of the Library's folder: bad records, entity pages, instructions."""
    replaced = {MANIFEST, MAPPING, PLAID_FOLDER, SHARDS, TOKEN_VECTORS, PASSAGE_TOKENS, RUNS}
    for path in target.iterdir():
        if path.name in replaced or path.name.startswith((".", STORE, ENTITIES, CORPUS_INDEX, OUTLINES, GRAPH)):
            continue
        if path.is_dir():
            shutil.copytree(path, scratch / path.name, copy_function=link_or_copy, dirs_exist_ok=True)
        else:
            link_or_copy(path, scratch / path.name)


def _finish(library: Library, scratch: Path, cfg: IndexConfig, plan: Sequence[NewShard]) -> dict[str, Any]:
    old = library.manifest
    manifest = {name: value for name, value in old.items() if name not in ("format_version", "lineage", "shards")}
    manifest |= {
        "commit": library.commit + 1,
        "plaid": old["plaid"] | {"n_bits": cfg.n_bits},
        "counts": old["counts"] | {"chunks": sum(len(shard.places) for shard in plan)},
        "updates": [*old["updates"], {"commit": library.commit + 1, "compacted": True}],
    }
    return finish_library(scratch, manifest, len(plan))


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
