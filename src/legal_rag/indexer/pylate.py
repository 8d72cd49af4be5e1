"""Indexes of PyLate and fast-plaid, both ways: imported with their texts into a Library, and written from one."""

import io
import itertools
import json
import pickle  # noqa: TID251 - PyLate reads and writes nothing else
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from legal_rag.base.files import made_once
from legal_rag.base.html import displayed
from legal_rag.base.sqlite import connect_to_read
from legal_rag.corpus.chunking import Chunk, chunk_id, parse_chunk_id
from legal_rag.corpus.sources import BadRecord
from legal_rag.encoder.encoder import Encoder, build_encoder
from legal_rag.indexer.build import finish_build
from legal_rag.indexer.commit import building, write_mapping_of
from legal_rag.indexer.config import IndexConfig, IndexReport, open_documents
from legal_rag.indexer.pipeline import Stopwatch, shard_home
from legal_rag.library.library import MAPPING, STORE, Library
from legal_rag.library.plaid.codec import copy_passages, read_codec
from legal_rag.library.plaid.files import (
    CODEC_FILES,
    PLAID_FOLDER,
    PlaidSource,
    open_files,
    parts_of,
    plaid_folder_of,
)
from legal_rag.library.store import StoreWriter

PYLATE_IDS = "plaid_ids_to_documents_ids"  # PyLate's map from position to id, next to `fast_plaid_index`
PYLATE_POSITIONS = "documents_ids_to_plaid_ids"  # PyLate's other map, from id to position
PROBES = 8  # centroids that PyLate tries for each token of a question by default


def import_pylate(folder: str | Path, cfg: IndexConfig, encoder: Encoder | None = None) -> IndexReport:
    """Make a Library of an index that PyLate or fast-plaid made, with its texts; nothing is encoded.

    Such an index has no offsets, so each of its passages becomes a chunk that spans its whole document. Documents of
    the source without a passage are left out. The folder is only read, and no class or function in its pickles is.

    Args:
        folder: It holds `fast_plaid_index`, or is that folder.
        cfg: The source of the texts (None: the dataset that `doc_mapping.json` names), the encoder that the index was
            made with, and where the Library goes.
        encoder: A loaded one, instead of the one `cfg` names.

    Raises:
        FileNotFoundError: If there is no complete index, or the source or the encoder does not exist.
        ValueError: If index, ids and source contradict one another, or the encoder does not fit.
        OSError: If the disk is full.
    """
    report = IndexReport()
    with Stopwatch(report.seconds).timed("total"):
        plaid = plaid_folder_of(Path(folder).expanduser().absolute())
        files, mapping = open_files(plaid), _read_mapping(plaid)
        cfg = replace(_with_source(cfg, mapping), n_bits=files.n_bits, limit=None)
        encoder = encoder or build_encoder(cfg.encoder)
        identity, dim = encoder.identity, int(files.centroids.shape[1])
        if dim != identity.dim:
            raise ValueError(
                f"wrong encoder for this index: {identity.name!r} has dim {identity.dim}, {plaid} has {dim}"
            )
        # Read twice: texts may not fit in memory, and which passages are a document's is known only from all ids.
        first_read = IndexReport()
        ids = [document.id for document in open_documents(cfg, first_read)]
        passages = _passages_of_documents(mapping, ids, first_read.bad, len(files.passage_tokens))
        with (
            building(cfg.index_folder, cfg.index_name, None) as scratch,
            closing(StoreWriter(scratch / STORE, shard_chunks=cfg.shard_chunks)) as store,
        ):
            positions = _store_documents(cfg, passages, store, report)
            _write_shards(scratch, plaid, positions, cfg.shard_chunks)
            finish_build(scratch, store, encoder, cfg, report)
    return report


def _with_source(cfg: IndexConfig, mapping: "_Mapping") -> IndexConfig:
    if cfg.source is not None:
        return cfg
    named = mapping.names
    if not named.get("dataset"):
        raise ValueError(f"{mapping.file} names no dataset (expected a source to be given)")
    options = cfg.options._replace(config=named.get("config") or None, split=named.get("split") or cfg.options.split)
    return replace(cfg, source=str(named["dataset"]), options=options)


def _store_documents(
    cfg: IndexConfig, passages: Mapping[str, Mapping[int, int]], store: StoreWriter, report: IndexReport
) -> list[int]:
    """Store the documents that have passages; return the passages' positions in the index, in the order stored."""
    positions: list[int] = []
    for document in open_documents(cfg, report):
        numbered = sorted(passages.get(document.id, {}).items())
        if numbered:
            end = len(document.content)
            store.add(document, [Chunk(document.id, number, 0, end, document.content) for number, _ in numbered])
            positions += [position for _, position in numbered]
    return positions


def _write_shards(scratch: Path, plaid: Path, positions: Sequence[int], shard_chunks: int) -> None:
    for number, start in enumerate(range(0, len(positions), shard_chunks)):
        places = np.array([(0, position) for position in positions[start : start + shard_chunks]])
        _copy_unlinked([plaid], places, shard_home(scratch, number) / PLAID_FOLDER)


def _copy_unlinked(shards: Sequence[PlaidSource], places: np.ndarray, target: Path) -> None:
    """Write a shard of passages, without links to files of others, who may write them."""
    read_codec(parts_of(shards[int(places[0, 0])]).folder)  # a damaged file would be copied as it is
    copy_passages(shards, places, target)
    for name in CODEC_FILES:
        content = (target / name).read_bytes()
        (target / name).unlink()
        (target / name).write_bytes(content)


class _Mapping(NamedTuple):
    """Which document each passage belongs to, and where the documents are from."""

    file: Path
    names: Mapping[str, Any]  # of the dataset, its config, its split; may be empty
    entries: Mapping[str, Any] | None  # None: positions are row numbers


def _read_mapping(plaid: Path) -> _Mapping:
    """Read a `doc_mapping.json`; where there is none, or one without entries, take them from PyLate's id maps."""
    folders = (plaid.parent, plaid, plaid.parent.parent)
    file = next((folder / MAPPING for folder in folders if (folder / MAPPING).is_file()), None)
    names = _read_doc_mapping(file) if file else {}
    if names.get("entries") is not None:
        return _Mapping(file or plaid, names, names["entries"])
    maps = (folder / f"{PYLATE_IDS}{ending}" for folder in folders for ending in (".pkl", ".sqlite"))
    ids = next((path for path in maps if path.is_file()), None)
    return _Mapping(ids or file or plaid.parent / MAPPING, names, _read_pylate_ids(ids) if ids else None)


def _read_doc_mapping(file: Path) -> dict[str, Any]:
    try:
        value = json.loads(file.read_text("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"damaged mapping: {file} ({error})") from error
    if not isinstance(value, dict) or not isinstance(value.get("entries"), dict | None):
        raise ValueError(f"damaged mapping: {file} (expected an object, whose 'entries' is an object too)")
    return value


def _read_pylate_ids(file: Path) -> dict[str, Any]:
    """Read the ids of passages as PyLate keeps them: a pickled dictionary, or pickled ids in SQLite (before 1.4)."""
    try:
        if file.suffix == ".pkl":
            pairs = list(_PlainUnpickler(io.BytesIO(file.read_bytes())).load().items())
        else:
            with closing(connect_to_read(file)) as connection:
                rows = connection.execute("SELECT key, value FROM unnamed").fetchall()
            pairs = [(key, _PlainUnpickler(io.BytesIO(value)).load()) for key, value in rows]
    except Exception as error:  # other bytes may raise anything
        raise ValueError(f"damaged mapping: {file} ({error or type(error).__name__})") from error
    return {str(position): value for position, value in pairs}


class _PlainUnpickler(pickle.Unpickler):
    """Reads text, numbers and plain containers: a pickle that names a class or a function is refused, unread."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it names {module}.{name}, expected text and numbers")


def _passages_of_documents(
    mapping: _Mapping, ids: Sequence[str], bad: Sequence[BadRecord], n_passages: int
) -> dict[str, dict[int, int]]:
    """Return for each document the positions of its passages by their numbers."""
    owners = _parse_entries(_order_entries(mapping, ids, n_passages), ids, bad, mapping.file)
    passages: dict[str, dict[int, int]] = defaultdict(dict)
    counters: dict[str, Iterator[int]] = defaultdict(itertools.count)
    for position, (doc_id, number) in enumerate(owners):
        number = next(counters[doc_id]) if number is None else number
        if number in passages[doc_id]:
            raise ValueError(f"two passages are called {chunk_id(doc_id, number)!r} in {mapping.file}")
        passages[doc_id][number] = position
    return passages


def _order_entries(mapping: _Mapping, ids: Sequence[str], n_passages: int) -> list[Any]:
    """Return what the passages are mapped to, in the order of positions, of which each must have an entry."""
    if mapping.entries is None:
        if n_passages != len(ids):
            raise ValueError(
                f"nothing says which documents the passages belong to: no entries in {mapping.file}, and "
                f"{n_passages:,} passages cannot be the source's {len(ids):,} documents"
            )
        return list(range(n_passages))
    positions = [str(position) for position in range(n_passages)]
    if mapping.entries.keys() != set(positions):
        n_entries = f"{len(mapping.entries):,} passages, the index holds {n_passages:,}, numbered from 0"
        raise ValueError(f"{mapping.file} maps {n_entries}")
    return [mapping.entries[position] for position in positions]


def _parse_entries(
    values: Sequence[Any], ids: Sequence[str], bad: Sequence[BadRecord], file: Path
) -> list[tuple[str, int | None]]:
    """Return each passage's document and number; values are ids of documents or chunks, or all are row numbers."""
    known = set(ids)
    is_row = all(type(value) is int or (isinstance(value, str) and value.isdecimal()) for value in values)
    if is_row and known.isdisjoint(values):
        if bad:
            raise ValueError(f"{file} counts the source's rows, of which {bad[0].where} was left out: {bad[0].problem}")
        rows = [int(value) for value in values]
        if wrong := [row for row in rows if not 0 <= row < len(ids)]:
            raise ValueError(f"{file} names row {wrong[0]} of a source of {len(ids):,} documents")
        return [(ids[row], None) for row in rows]
    owners = [_parse_id(value, known) for value in values]
    if None in owners:
        position = owners.index(None)
        expected = "ids of the source's documents or of their chunks, or only row numbers"
        raise ValueError(f"{file} maps position {position} to {values[position]!r:.200} (expected {expected})")
    return [owner for owner in owners if owner]


def _parse_id(value: Any, known: Container[str]) -> tuple[str, int | None] | None:
    if isinstance(value, str) and value in known:
        return value, None
    try:
        doc_id, number = parse_chunk_id(str(value))
    except ValueError:
        return None
    return (doc_id, number) if doc_id in known and number < 2**31 else None


@displayed
class PylateIndex(NamedTuple):
    """An exported index: the arguments of `pylate.indexes.PLAID` that open it, and its size."""

    index_folder: str
    index_name: str
    n_ivf_probe: int  # for as thorough a search as one shard gets by default
    chunks: int


def export_pylate(library: Library, folder: str | Path) -> PylateIndex:
    """Write a Library as one PLAID index in PyLate's format, with chunk ids and a `doc_mapping.json` at its root.

    Scores there are the same.

    Args:
        library: An open Library; what was removed from it is left out.
        folder: A new folder: it gets `<name of the Library>/fast_plaid_index`.

    Raises:
        ValueError: If the folder exists, or the Library has no PLAID index.
    """
    target, name = Path(folder).expanduser(), library.path.name
    if target.exists():
        raise ValueError(f"will not overwrite {target} (expected a new folder)")
    if not library.manifest["plaid"]["n_bits"]:
        raise ValueError(f"{library.path} has no PLAID index to export (it was built with --n-bits 0)")
    ids, places = list(library.chunk_ids()), library.places_in(range(len(library.shards)))
    with made_once(target) as scratch:
        _copy_unlinked(library.shards, np.array(sorted(places)), scratch / name / PLAID_FOLDER)
        names = dict(enumerate(chunk_id(*chunk) for chunk in ids))
        positions = {key: position for position, key in names.items()}
        for file, value in ((PYLATE_IDS, names), (PYLATE_POSITIONS, positions)):
            (scratch / name / f"{file}.pkl").write_bytes(pickle.dumps(value))
        write_mapping_of((doc_id for doc_id, _ in ids), scratch / MAPPING, library.manifest["source"])
    return PylateIndex(str(target), name, PROBES, len(ids))
