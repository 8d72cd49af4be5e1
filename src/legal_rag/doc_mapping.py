"""`doc_mapping.json`: which passage of an index of the old form belongs to which document.

In: the file, and the ids of the dataset in its order. Out: for each position a row of the dataset and a number.

The file lies beside `fast_plaid_index`, in it, or one folder above. It is found in three forms: `entries` maps
positions to document ids (or to chunk ids, `<doc_id>-<index>`); `entries` maps positions to row numbers of the dataset;
there is no such file, and positions are row numbers.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from legal_rag.chunking import parse_chunk_id
from legal_rag.corpus import DEFAULT_SPLIT
from legal_rag.library import MAPPING
from legal_rag.plaid_format import PLAID_FOLDER


class DocMapping(NamedTuple):
    """What a `doc_mapping.json` says, or what its absence means."""

    file: Path
    dataset: str = ""
    config: str = ""
    split: str = DEFAULT_SPLIT
    entries: Mapping[str, Any] | None = None  # None: positions are row numbers


class Places(NamedTuple):
    """Where the passages come from, by position."""

    rows: np.ndarray  # (n_passages,), int64, the row of each one's document in the dataset
    numbers: np.ndarray  # (n_passages,), int64, each one's number in its document


def read_mapping(path: Path) -> DocMapping:
    """Read the mapping of the index in a folder, if it has one.

    Raises:
        ValueError: If the file is not JSON, or has another shape.
    """
    places = (path, path / PLAID_FOLDER, path.parent)
    file = next((folder / MAPPING for folder in places if (folder / MAPPING).is_file()), path / MAPPING)
    if not file.is_file():
        return DocMapping(file)
    try:
        value = json.loads(file.read_text("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"damaged mapping: {file} ({error})") from error
    entries = value.get("entries") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(entries, dict | None):
        raise ValueError(f"damaged mapping: {file} (expected an object, whose 'entries' is an object too)")
    dataset, config, split = (str(value.get(name) or "") for name in ("dataset", "config", "split"))
    return DocMapping(file, dataset, config, split or DEFAULT_SPLIT, entries)


def places_of(mapping: DocMapping, ids: Sequence[str], row_of: Mapping[str, int], n_passages: int) -> Places:
    """Find each passage's document.

    Args:
        mapping: The file.
        ids: The dataset's ids, in its order.
        row_of: The row of each id.
        n_passages: How many the index holds.

    Raises:
        ValueError: If the mapping leaves passages out, or names what is not in the dataset.
    """
    rows: Sequence[int] = range(n_passages)
    indices: Sequence[int] | None = None
    if mapping.entries is not None:
        rows, indices = _rows_of_values(_values(mapping.entries, mapping.file, n_passages), row_of, mapping.file)
    elif n_passages != len(ids):
        raise ValueError(
            f"nothing says which documents the passages belong to: no entries in {mapping.file}, and "
            f"{n_passages:,} passages cannot be the dataset's {len(ids):,} rows"
        )
    if wrong := [row for row in rows if not 0 <= row < len(ids)]:
        raise ValueError(f"{mapping.file} names row {wrong[0]} of a dataset of {len(ids):,} rows")
    # An id that occurs twice in the dataset is one document.
    known_rows = np.array([row_of[ids[row]] for row in rows], dtype=np.int64)
    numbers = _running_numbers(known_rows) if indices is None else np.array(indices, dtype=np.int64)
    return Places(known_rows, numbers)


def _values(entries: Mapping[str, Any], file: Path, n_passages: int) -> list[Any]:
    """Return the entries' values in the order of positions, once each position is known to have one."""
    if other := [key for key in entries if not _is_number(key)]:
        raise ValueError(f"{file} maps {other[0]!r} (expected positions: '0', '1', …)")
    by_position = {int(key): value for key, value in entries.items()}
    if len(entries) != n_passages or by_position.keys() != set(range(n_passages)):
        raise ValueError(f"{file} maps {len(entries):,} passages, the index holds {n_passages:,}, numbered from 0")
    return [by_position[position] for position in range(n_passages)]


def _rows_of_values(
    values: Sequence[Any], row_of: Mapping[str, int], file: Path
) -> tuple[Sequence[int], Sequence[int] | None]:
    """Read all values in one way, as row numbers, document ids, or chunk ids: rows, and numbers if they are given."""
    if all(type(value) is int for value in values):
        return values, None
    if all(isinstance(value, str) for value in values):
        if all(value in row_of for value in values):
            return [row_of[value] for value in values], None
        if all(_is_number(value) and value not in row_of for value in values):
            return [int(value) for value in values], None
        chunks = [_chunk_of(value, row_of) for value in values]
        known = [chunk for chunk in chunks if chunk is not None]
        if len(known) == len(values):
            return [row for row, _ in known], [index for _, index in known]
    no_chunks = [position for position, value in enumerate(values) if _chunk_of(value, row_of) is None]
    position = next((n for n in no_chunks if not isinstance(values[n], str) or values[n] not in row_of), no_chunks[0])
    raise ValueError(
        f"{file} maps position {position} to {values[position]!r} "
        "(expected only ids of the dataset's documents, only ids of their chunks, or only row numbers)"
    )


def _chunk_of(value: Any, row_of: Mapping[str, int]) -> tuple[int, int] | None:
    """Take a chunk id apart into a row and a number, or return None."""
    try:
        doc_id, index = parse_chunk_id(str(value))
    except ValueError:
        return None
    return (row_of[doc_id], index) if doc_id in row_of and index < 2**31 else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 19


def _running_numbers(rows: np.ndarray) -> np.ndarray:
    """Number the passages of each document from 0: `[5, 7, 5]` gives `[0, 0, 1]`."""
    order = np.argsort(rows, kind="stable")
    _, starts, counts = np.unique(rows[order], return_index=True, return_counts=True)
    numbers = np.empty(len(rows), dtype=np.int64)
    numbers[order] = np.arange(len(rows)) - np.repeat(starts, counts)
    return numbers
