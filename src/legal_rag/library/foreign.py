"""Bare fast-plaid indexes, with their document mapping and dataset: read from others, written for PyLate."""

import dataclasses
import io
import itertools
import json
import pickle  # noqa: TID251 - written for PyLate, which reads nothing else
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from legal_rag.base.extras import require
from legal_rag.base.files import made_once
from legal_rag.base.sqlite import connect_to_read
from legal_rag.corpus.chunking import chunk_id, parse_chunk_id
from legal_rag.corpus.cleaning import clean_text
from legal_rag.corpus.documents import (
    DEFAULT_CONFIG,
    DEFAULT_DATASET,
    DEFAULT_SPLIT,
    ID_COLUMN,
    TEXT_COLUMN,
    Document,
    document_of_row,
    nearest_among,
)
from legal_rag.encoder.encoder import Encoder, EncoderConfig, EncoderIdentity, build_encoder
from legal_rag.library.corpus import Corpus, StoredChunk
from legal_rag.library.filters import Filters, UnsupportedFilterError
from legal_rag.library.library import MAPPING, STORE, Library, is_library
from legal_rag.library.plaid.files import METADATA, PLAID_FOLDER, open_files, plaid_folder_of
from legal_rag.library.store import Place

PYLATE_IDS = "plaid_ids_to_documents_ids"  # PyLate's map from position to id, next to `fast_plaid_index`
DOCUMENTS_KEPT = 128  # read and cleaned, held in memory


class _Mapping(NamedTuple):
    """A `doc_mapping.json` or PyLate's id map, or the defaults where there is neither."""

    file: Path
    dataset: str = ""
    config: str = ""
    split: str = DEFAULT_SPLIT
    entries: Mapping[str, Any] | None = None  # None: positions are row numbers


def is_foreign(path: Path) -> bool:
    """Tell a bare fast-plaid index from a Library, complete or not."""
    return not is_library(path) and not (path / STORE).exists() and (plaid_folder_of(path) / METADATA).is_file()


class ForeignIndex(Corpus):
    """A bare fast-plaid index with its dataset; its folder is never written to.

    Such an index has no offsets, so a hit is its whole document (`char_start` 0, `char_end` the text's
    length); `chunk_index` numbers the document's passages, or comes from the chunk id where the mapping has those.
    """

    def __init__(
        self,
        path: str | Path,
        dataset: Any = None,
        *,
        encoder: Encoder | EncoderIdentity | EncoderConfig | str | Path,
    ) -> None:
        """Open a bare fast-plaid index.

        Args:
            path: The folder that holds `fast_plaid_index`.
            dataset: A Hugging Face dataset, or a mapping from id to row, in the dataset's order; None loads the
                dataset that `doc_mapping.json` names.
            encoder: The one the index was made with; a name, folder or config is loaded for its identity.

        Raises:
            FileNotFoundError: If there is no complete index, or the dataset cannot be loaded.
            ValueError: If index, mapping and dataset contradict one another, or the encoder does not fit.
            TypeError: If the dataset is neither of the two.
        """
        self.path = Path(path).expanduser().absolute()
        self._plaid_folder = plaid_folder_of(self.path)
        files = open_files(self._plaid_folder)
        identity = _load_identity(encoder)
        if (dim := int(files.centroids.shape[1])) != identity.dim:
            raise ValueError(
                f"wrong encoder for this index: {identity.name!r} has dim {identity.dim}, {self.path} has {dim}"
            )
        mapping = _read_mapping(self.path)
        self._dataset = _load_dataset(mapping, self.path) if dataset is None else dataset
        self._keys, self._ids = _read_ids(self._dataset)
        self._row_of = {doc_id: row for row, doc_id in enumerate(self._ids)}
        self._sorted_ids = sorted(self._row_of)
        self._rows, self._indices = _locate_passages(mapping, self._ids, self._row_of, len(files.passage_tokens))
        self._order = np.lexsort((self._indices, self._rows))  # positions by document, then in its own order
        self._refuse_duplicates()
        self._read_kept = lru_cache(DOCUMENTS_KEPT)(self._read_row)
        self.manifest: dict[str, Any] = {
            "encoder": dataclasses.asdict(identity),
            "source": {"name": mapping.dataset, "config": mapping.config, "split": mapping.split},
            "counts": {"documents": len(np.unique(self._rows)), "chunks": len(self._rows)},
            "shards": [{"path": str(self._plaid_folder.relative_to(self.path)), "chunks": len(self._rows)}],
        }

    @property
    def shard_folders(self) -> list[Path]:
        """Return the folder of the only shard."""
        return [self._plaid_folder]

    def document(self, doc_id: str) -> Document:
        """Return a document of the dataset by its id; LookupError also if it has no text."""
        if doc_id not in self._row_of:
            near = self.nearest_id(doc_id)
            raise LookupError(
                f"no document {doc_id!r} in {self.path}" + (f" (the nearest id is {near!r})" if near else "")
            )
        return self._read_kept(self._row_of[doc_id])

    def chunks_at(self, places: Sequence[Place]) -> list[StoredChunk]:
        """Return the passages at (shard, position) places, in that order, each with its whole document as text."""
        for shard, position in places:
            if shard != 0 or not 0 <= position < len(self._rows):
                raise LookupError(f"no chunk at shard {shard}, position {position} of {self.path}")
        return [self._read_chunk(position) for _, position in places]

    def chunks_of(self, doc_id: str, first: int = 0, last: int | None = None) -> list[StoredChunk]:
        """Return a document's passages numbered `first` to `last` (both included), in order."""
        positions = self._document_positions(doc_id)
        numbers = self._indices[positions]
        selected = (numbers >= first) & (numbers <= (2**62 if last is None else last))
        return [self._read_chunk(position) for position in positions[selected]]

    def positions(self, filters: Filters) -> list[np.ndarray]:
        """Return, for the only shard, the rising positions of the passages; the only filter supported is `doc_ids`."""
        if dataclasses.replace(filters, doc_ids=None) or filters.doc_ids is None:
            raise UnsupportedFilterError("a bare fast-plaid index is filtered by document ids only (a Library, by all)")
        positions = [self._document_positions(doc_id) for doc_id in dict.fromkeys(filters.doc_ids)]
        return [np.sort(np.concatenate([np.empty(0, dtype=np.int64), *positions]))]

    def nearest_id(self, doc_id: str) -> str | None:
        """Return the id most similar to `doc_id` among its neighbours in sorted order, or None."""
        return nearest_among(self._sorted_ids, doc_id)

    def _document_positions(self, doc_id: str) -> np.ndarray:
        row = self._row_of.get(doc_id, -1)
        first, end = np.searchsorted(self._rows, [row, row + 1], sorter=self._order)
        return self._order[first:end]

    def _read_chunk(self, position: int) -> StoredChunk:
        row = int(self._rows[position])
        document = self._read_kept(row)
        return StoredChunk(
            doc_id=self._ids[row],
            chunk_index=int(self._indices[position]),
            char_start=0,
            char_end=len(document.content),
            text=document.content,
            title=document.title,
            decision_date=document.decision_date,
        )

    def _read_row(self, row: int) -> Document:
        key = self._keys[row]
        return document_of_row({**self._dataset[key], ID_COLUMN: self._ids[row]})

    def _refuse_duplicates(self) -> None:
        rows, indices = self._rows[self._order], self._indices[self._order]
        same = np.flatnonzero((rows[1:] == rows[:-1]) & (indices[1:] == indices[:-1]))
        if len(same):
            double = chunk_id(self._ids[rows[same[0]]], int(indices[same[0]]))
            raise ValueError(f"two passages are called {double!r} in the {MAPPING} of {self.path}")


def _load_identity(encoder: Encoder | EncoderIdentity | EncoderConfig | str | Path) -> EncoderIdentity:
    if isinstance(encoder, EncoderIdentity):
        return encoder
    if isinstance(encoder, str | Path):
        encoder = EncoderConfig(name=str(encoder))
    return (build_encoder(encoder) if isinstance(encoder, EncoderConfig) else encoder).identity


def _load_dataset(mapping: _Mapping, path: Path) -> Any:
    require("datasets")
    from datasets import DatasetDict, load_dataset, load_from_disk
    from datasets.exceptions import DatasetNotFoundError

    if not mapping.dataset:
        raise ValueError(f"{path} does not name its dataset (expected one, or 'dataset' in its {MAPPING})")
    saved = any((Path(mapping.dataset) / name).is_file() for name in ("dataset_info.json", "dataset_dict.json"))
    try:
        if not saved:
            return load_dataset(mapping.dataset, mapping.config or None, split=mapping.split)
        loaded = load_from_disk(mapping.dataset)
        return loaded[mapping.split] if isinstance(loaded, DatasetDict) else loaded
    except (OSError, DatasetNotFoundError, ValueError, KeyError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        what = f"{mapping.dataset!r}, config {mapping.config!r}, split {mapping.split!r}"
        raise FileNotFoundError(f"cannot load the dataset that {mapping.file} names: {what} ({reason})") from error


def _read_ids(dataset: Any) -> tuple[Sequence[Any], list[str]]:
    columns = getattr(dataset, "column_names", None)
    if isinstance(dataset, Mapping) and columns is None:
        keys = list(dataset)
        return keys, [_clean_id(key) for key in keys]
    if not isinstance(columns, list) or not (hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")):
        splits = f" with splits {', '.join(map(repr, dataset))}" if isinstance(dataset, Mapping) else ""
        described = type(dataset).__name__ + splits
        raise TypeError(f"not a dataset: {described} (expected a Hugging Face Dataset, or a mapping from id to row)")
    for column in (ID_COLUMN, TEXT_COLUMN):
        if column not in columns:
            raise ValueError(f"no column {column!r} in the dataset (its columns: {', '.join(columns)})")
    return range(len(dataset)), [_clean_id(doc_id) for doc_id in dataset[ID_COLUMN][:]]


def _clean_id(value: Any) -> str:
    return clean_text(str(value).strip())


def write_mapping(file: Path, source: Mapping[str, Any], doc_ids: Iterable[str]) -> int:
    """Stream a `doc_mapping.json`, ids in the order of positions; `source` is a manifest's. Return how many."""
    config = source["config"] or (DEFAULT_CONFIG if source["name"] == DEFAULT_DATASET else "")
    head = json.dumps({"dataset": source["name"], "split": source["split"], "config": config}, ensure_ascii=False)
    position = -1
    with file.open("w", encoding="utf-8") as out:
        out.write(head[:-1] + ', "entries": {')
        for position, doc_id in enumerate(doc_ids):
            comma = "," if position else ""
            out.write(f"{comma}\n{json.dumps(str(position))}: {json.dumps(doc_id, ensure_ascii=False)}")
        out.write("\n}}\n")
    return position + 1


def _read_mapping(path: Path) -> _Mapping:
    """Read a `doc_mapping.json`; where there is none, or one without entries, take them from PyLate's id maps."""
    folders = (path, path / PLAID_FOLDER, path.parent)
    files = (folder / MAPPING for folder in folders)
    mapping = _read_doc_mapping(next((file for file in files if file.is_file()), path / MAPPING))
    if mapping.entries is not None:
        return mapping
    names = (f"{PYLATE_IDS}.pkl", f"{PYLATE_IDS}.sqlite")
    file = next((folder / name for folder in folders for name in names if (folder / name).is_file()), None)
    return mapping._replace(file=file, entries=_pylate_entries(file)) if file else mapping


def _pylate_entries(file: Path) -> dict[str, Any]:
    """Read the ids of passages as PyLate keeps them: a pickled dictionary, or pickled ids in SQLite (before 1.4)."""
    try:
        if file.suffix == ".pkl":
            with file.open("rb") as stream:
                pairs = _PlainUnpickler(stream).load().items()
        else:
            with closing(connect_to_read(file)) as connection:
                rows = connection.execute("SELECT key, value FROM unnamed").fetchall()
            pairs = [(key, _PlainUnpickler(io.BytesIO(value)).load()) for key, value in rows]
        entries = {str(position): value for position, value in pairs}
    except Exception as error:  # other bytes may raise anything
        raise ValueError(f"damaged mapping: {file} ({error or type(error).__name__})") from error
    if wrong := next((value for value in entries.values() if type(value) not in (str, int)), None):
        raise ValueError(f"damaged mapping: {file} (expected ids, found {wrong!r})")
    return entries


class _PlainUnpickler(pickle.Unpickler):
    """Reads text, numbers and plain containers: a pickle that names a class or a function is refused, unread."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it names {module}.{name}, expected text and numbers")


def _read_doc_mapping(file: Path) -> _Mapping:
    if not file.is_file():
        return _Mapping(file)
    try:
        value = json.loads(file.read_text("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"damaged mapping: {file} ({error})") from error
    entries = value.get("entries") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(entries, dict | None):
        raise ValueError(f"damaged mapping: {file} (expected an object, whose 'entries' is an object too)")
    dataset, config, split = (str(value.get(name) or "") for name in ("dataset", "config", "split"))
    return _Mapping(file, dataset, config, split or DEFAULT_SPLIT, entries)


def _locate_passages(
    mapping: _Mapping, ids: Sequence[str], row_of: Mapping[str, int], n_passages: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return each passage's row in the dataset and its number in its document, both of shape (n_passages,), int64."""
    rows: Sequence[int] = range(n_passages)
    numbers: Sequence[int] | None = None
    if mapping.entries is not None:
        values = _order_entries(mapping.entries, mapping.file, n_passages)
        rows, numbers = _parse_entries(values, row_of, mapping.file)
    elif n_passages != len(ids):
        raise ValueError(
            f"nothing says which documents the passages belong to: no entries in {mapping.file}, and "
            f"{n_passages:,} passages cannot be the dataset's {len(ids):,} rows"
        )
    if wrong := [row for row in rows if not 0 <= row < len(ids)]:
        raise ValueError(f"{mapping.file} names row {wrong[0]} of a dataset of {len(ids):,} rows")
    rows = [row_of[ids[row]] for row in rows]  # an id that occurs twice in the dataset is one document
    if numbers is None:
        counters: dict[int, Iterator[int]] = defaultdict(itertools.count)
        numbers = [next(counters[row]) for row in rows]
    return np.array(rows, dtype=np.int64), np.array(numbers, dtype=np.int64)


def _order_entries(entries: Mapping[str, Any], file: Path, n_passages: int) -> list[Any]:
    """Check that each position has an entry; return the values in the order of positions."""
    if other := [key for key in entries if not _is_number(key)]:
        raise ValueError(f"{file} maps {other[0]!r} (expected positions: '0', '1', …)")
    by_position = {int(key): value for key, value in entries.items()}
    if len(entries) != n_passages or by_position.keys() != set(range(n_passages)):
        raise ValueError(f"{file} maps {len(entries):,} passages, the index holds {n_passages:,}, numbered from 0")
    return [by_position[position] for position in range(n_passages)]


def _parse_entries(values: Sequence[Any], row_of: Mapping[str, int], file: Path) -> tuple[list[int], list[int] | None]:
    """Interpret all values alike: return rows, and passage numbers where the values are chunk ids."""
    if all(type(value) is int for value in values):
        return list(values), None
    is_id = [isinstance(value, str) and value in row_of for value in values]
    if all(is_id):
        return [row_of[value] for value in values], None
    if not any(is_id) and all(_is_number(value) for value in values):
        return [int(value) for value in values], None
    chunks = [_parse_chunk(value, row_of) for value in values]
    if None not in chunks:
        return [chunk[0] for chunk in chunks if chunk], [chunk[1] for chunk in chunks if chunk]
    no_chunks = [position for position, chunk in enumerate(chunks) if chunk is None]
    position = next((n for n in no_chunks if not is_id[n]), no_chunks[0])
    raise ValueError(
        f"{file} maps position {position} to {values[position]!r} "
        "(expected only ids of the dataset's documents, only ids of their chunks, or only row numbers)"
    )


def _parse_chunk(value: Any, row_of: Mapping[str, int]) -> tuple[int, int] | None:
    try:
        doc_id, index = parse_chunk_id(str(value))
    except ValueError:
        return None
    return (row_of[doc_id], index) if doc_id in row_of and index < 2**31 else None


def _is_number(text: Any) -> bool:
    return isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) < 19


PYLATE_POSITIONS = "documents_ids_to_plaid_ids"  # PyLate's other map, from id to position
PROBES = 8  # centroids that PyLate tries for each token of a question by default


class PylateIndex(NamedTuple):
    """An exported index: the arguments of `pylate.indexes.PLAID` that open it, and its size."""

    index_folder: str
    index_name: str
    n_ivf_probe: int  # for as thorough a search as one shard gets by default
    chunks: int


def export_pylate(library: Library, folder: str | Path) -> PylateIndex:
    """Write a Library as one PLAID index in PyLate's format, with chunk ids and a `doc_mapping.json` at its root.

    A Library with one codebook gives the same scores there; with several, which are merged, nearly the same.

    Args:
        library: An open Library; what was removed from it is left out.
        folder: A new folder: it gets `<name of the Library>/fast_plaid_index`.

    Raises:
        ValueError: If the folder exists, or the Library has no PLAID index.
    """
    from legal_rag.library.plaid.writer import merge_shards

    target, name = Path(folder).expanduser(), library.path.name
    if target.exists():
        raise ValueError(f"will not overwrite {target} (expected a new folder)")
    if not library.manifest["plaid"]["n_bits"]:
        raise ValueError(f"{library.path} has no PLAID index to export (it was built with --n-bits 0)")
    counts = [shard["chunks"] for shard in library.manifest["shards"]]
    shards = list(zip(library.shard_folders, library.removed_positions(), strict=True))
    shards = [shard for shard, n_chunks in zip(shards, counts, strict=True) if len(shard[1]) < n_chunks]
    ids = list(library.chunk_ids())
    with made_once(target) as scratch:
        n_codebooks = merge_shards(shards, scratch / name / PLAID_FOLDER)
        names = dict(enumerate(chunk_id(*chunk) for chunk in ids))
        positions = {key: position for position, key in names.items()}
        for file, value in ((PYLATE_IDS, names), (PYLATE_POSITIONS, positions)):
            (scratch / name / f"{file}.pkl").write_bytes(pickle.dumps(value))
        write_mapping(scratch / MAPPING, library.manifest["source"], (doc_id for doc_id, _ in ids))
    return PylateIndex(str(target), name, PROBES * n_codebooks, len(ids))
