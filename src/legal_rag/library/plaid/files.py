"""fast-plaid's on-disk format: names, shapes, checks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from legal_rag.base.files import parse_json
from legal_rag.base.html import displayed

PLAID_FOLDER = "fast_plaid_index"
CENTROIDS = "centroids.npy"
METADATA = "metadata.json"  # written last
PLAN = "plan.json"
LISTS = ("ivf.npy", "ivf_lengths.npy")  # inverted lists, which fast-plaid alone reads
SHARED_FILES = (*LISTS, PLAN, METADATA)  # of all parts
CODEC_FILES = (CENTROIDS, "bucket_cutoffs.npy", "bucket_weights.npy", "avg_residual.npy", "cluster_threshold.npy")
MAX_DIM = 2**16  # that sums of products of 8-bit integers fit 32 bits with


@displayed
class PlaidParts(NamedTuple):
    """Consecutive parts of an index in a folder: those of a shard."""

    folder: Path
    first: int
    end: int

    def __str__(self) -> str:
        return str(self.folder)


PlaidSource = Path | PlaidParts  # a path: all of an index


class PlaidPart(NamedTuple):
    """One part of a shard: the tokens of some consecutive passages."""

    codes: np.ndarray  # (n_tokens,), the centroid of each token
    residuals: np.ndarray  # (n_tokens, dim * bits / 8), uint8


class PlaidFiles(NamedTuple):
    """The files of a shard, large arrays memory-mapped."""

    centroids: np.ndarray  # (n_centroids, dim), half or single precision, unit rows
    bucket_weights: np.ndarray  # (2^bits,), float32
    n_bits: int
    passage_tokens: np.ndarray  # (n_passages,), tokens of each passage
    parts: tuple[PlaidPart, ...]
    part_starts: np.ndarray  # (n_parts + 1,), the first token of each part
    part_passages: np.ndarray  # (n_parts + 1,), the first passage of each part


def plaid_folder_of(root: Path) -> Path:
    """Return the folder with the PLAID files of a bare index: `fast_plaid_index`, or `root` itself."""
    return root / PLAID_FOLDER if (root / PLAID_FOLDER).is_dir() else root


def pack_buckets(buckets: np.ndarray, n_bits: int) -> np.ndarray:
    """Pack bucket numbers, shape (n, dim), into bytes, shape (n, dim * n_bits / 8)."""
    bits = (buckets[..., None] >> np.arange(n_bits, dtype=np.uint8)) & 1
    return np.packbits(bits.reshape(len(buckets), -1).astype(np.uint8), axis=1)


def unpacking_table(bucket_weights: np.ndarray, n_bits: int) -> np.ndarray:
    """Return the residuals that each byte encodes, shape (256, 8 / n_bits), float32."""
    every_byte = np.arange(256, dtype=np.uint8)[:, None]
    bits = np.unpackbits(every_byte, axis=1).reshape(256, 8 // n_bits, n_bits)
    return bucket_weights[bits @ (1 << np.arange(n_bits))].astype(np.float32)


def part_files(part: int) -> tuple[str, str, str, str]:
    """Return the names of a part's files: codes, residuals, lengths, counts."""
    return f"{part}.codes.npy", f"{part}.residuals.npy", f"doclens.{part}.json", f"{part}.metadata.json"


def open_files(source: PlaidSource) -> PlaidFiles:
    """Map the files of an index, or of a shard that is a part of one.

    Only counts, lengths and shapes are checked. Values of `codes` are not read: who uses them checks them.
    FileNotFoundError if the folder holds no complete PLAID index; ValueError if its arrays contradict one another.
    """
    (folder, first, end), n_bits = parts_of(source), read_counts(source)[1]
    names = [part_files(part) for part in range(first, end)]
    parts = tuple(
        PlaidPart(map_array(folder / codes, "i", 1), map_array(folder / residuals, "u", 2))
        for codes, residuals, *_ in names
    )
    lengths = [_read_lengths(folder / name) for *_, name, _ in names]
    files = PlaidFiles(
        centroids=map_array(folder / CENTROIDS, "f", 2),
        bucket_weights=map_array(folder / "bucket_weights.npy", "f", 1),
        n_bits=n_bits,
        passage_tokens=np.concatenate([np.empty(0, dtype=np.int64), *lengths]),
        parts=parts,
        part_starts=_add_up([len(part.codes) for part in parts]),
        part_passages=_add_up([len(part) for part in lengths]),
    )
    _check_arrays(files, lengths, folder)
    return files


def parts_of(source: PlaidSource) -> PlaidParts:
    """Return the parts that a source is.

    FileNotFoundError if it is a folder without a complete PLAID index; ValueError if that is damaged.
    """
    return source if isinstance(source, PlaidParts) else PlaidParts(source, 0, read_counts(source)[0])


def lengths_of(parts: PlaidParts) -> np.ndarray:
    """Return the tokens of each passage of some parts, shape (n_passages,), int64."""
    names = (part_files(part)[2] for part in range(parts.first, parts.end))
    return np.concatenate([_read_lengths(parts.folder / name) for name in names])


def count_tokens(source: PlaidSource, positions: Sequence[int]) -> int:
    """Count the token vectors of some passages of a shard.

    FileNotFoundError if the folder holds no complete PLAID index; ValueError if its lengths are damaged, or it has no
    such passage.
    """
    lengths = lengths_of(parts := parts_of(source))
    if len(positions) and not 0 <= min(positions) <= max(positions) < len(lengths):
        raise ValueError(f"damaged index: {parts} has {len(lengths)} passages, none at {max(positions)}")
    return int(lengths[np.asarray(positions, dtype=np.int64)].sum())


def _add_up(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)


def _check_arrays(files: PlaidFiles, lengths: list[np.ndarray], folder: Path) -> None:
    """Refuse numbers that point outside the arrays: the compiled kernels do not check bounds."""
    dim = files.centroids.shape[1]
    tokens, coded = sum(int(part.sum()) for part in lengths), int(files.part_starts[-1])
    width = dim * files.n_bits // 8
    conditions = {
        f"{dim} dimensions": dim <= MAX_DIM,
        f"{files.n_bits} bits a dimension": files.n_bits in (1, 2, 4),
        f"{len(files.bucket_weights)} bucket weights for {files.n_bits} bits a dimension": len(files.bucket_weights)
        == 2**files.n_bits,
        f"{tokens} tokens announced, {coded} found": all(
            # Each value first: a sum may overflow.
            bool((part <= len(data.codes)).all()) and part.sum() == len(data.codes)
            for part, data in zip(lengths, files.parts, strict=True)
        ),
        f"residuals not {width} bytes wide": all(
            part.residuals.shape == (len(part.codes), width) and dim * files.n_bits % 8 == 0 for part in files.parts
        ),
        "no passage": bool(len(files.passage_tokens)),
    }
    if broken := [problem for problem, holds in conditions.items() if not holds]:
        raise ValueError(f"damaged PLAID index: {folder} ({broken[0]})")


def _read_lengths(path: Path) -> np.ndarray:
    """Return the tokens of each passage of a part, int64."""
    lengths = _read_json(path)
    if not isinstance(lengths, list) or not all(type(n) is int and 0 < n < 2**40 for n in lengths):
        raise ValueError(f"damaged PLAID index: {path} (expected a list of positive whole numbers)")
    return np.array(lengths, dtype=np.int64)


def read_counts(source: PlaidSource) -> tuple[int, int]:
    """Return the number of parts of an index, and of bits a dimension."""
    path = (source.folder if isinstance(source, PlaidParts) else source) / METADATA
    metadata = _read_json(path)
    try:
        return int(metadata["num_chunks"]), int(metadata["nbits"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"damaged PLAID index: {path} ({type(error).__name__}: {error})") from error


def map_npy(path: Path) -> np.ndarray:
    """Map an array file to read it.

    OSError if it cannot be read; ValueError if it holds no array.
    """
    try:
        # Not `np.load`, which would also take a zip, and with it whatever is in it.
        return np.asarray(np.lib.format.open_memmap(path, mode="r"))
    except (OSError, ValueError):
        raise
    except Exception as error:  # NumPy parses the head as Python, which fails in more ways than it names
        raise ValueError(f"no array: {type(error).__name__}: {error}") from error


def map_array(path: Path, kinds: str, n_dimensions: int) -> np.ndarray:
    """Map an array whose dtype is of one of numpy's `kinds`, in this processor's byte order."""
    if not path.is_file():
        raise FileNotFoundError(f"incomplete PLAID index: no {path.name} in {path.parent}")
    try:
        array = map_npy(path)
    except (ValueError, OSError) as error:
        raise ValueError(f"damaged PLAID index: {path} ({error})") from error
    if array.dtype.kind not in kinds or array.ndim != n_dimensions or not array.dtype.isnative:
        raise ValueError(f"damaged PLAID index: {path} (an array of {array.dtype}, shape {array.shape})")
    return array


def _read_json(path: Path) -> Any:
    if not path.is_file():
        raise FileNotFoundError(f"incomplete PLAID index: no {path.name} in {path.parent}")
    try:
        return parse_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"damaged PLAID index: {path} ({error})") from error
