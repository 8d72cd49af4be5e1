"""PLAID on disk: the files of fast-plaid's own format, and the residual codec they hold.

In: a shard's folder. Out: its arrays, memory-mapped; bytes to bucket numbers and back.

Format, as fast-plaid 1.4.6 writes and reads it: `centroids.npy` (n_centroids, dim); `bucket_cutoffs.npy` (2^bits - 1)
and `bucket_weights.npy` (2^bits); for each part `<n>.codes.npy` (n_tokens), `<n>.residuals.npy` (n_tokens,
dim * bits / 8), `doclens.<n>.json`, `<n>.metadata.json`; `ivf.npy`, the passages of each centroid one after the other,
and `ivf_lengths.npy`; `metadata.json`. A residual's bucket number is stored least significant bit first, the bits of
all dimensions in one big-endian stream (Khattab and Zaharia's ColBERT code does the same).
No array here is ever a pickle.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

PLAID_FOLDER = "fast_plaid_index"


class PlaidPart(NamedTuple):
    """One part of a shard: the tokens of some consecutive passages."""

    codes: np.ndarray  # (n_tokens,), the centroid of each token
    residuals: np.ndarray  # (n_tokens, dim * bits / 8), uint8


class PlaidFiles(NamedTuple):
    """A shard as it lies on disk, its large arrays memory-mapped."""

    centroids: np.ndarray  # (n_centroids, dim), float32, unit rows
    bucket_weights: np.ndarray  # (2^bits,), float32
    n_bits: int
    passage_tokens: np.ndarray  # (n_passages,), tokens of each passage
    ivf: np.ndarray  # passages by centroid
    ivf_starts: np.ndarray  # (n_centroids + 1,), where each centroid's passages begin in `ivf`
    parts: tuple[PlaidPart, ...]
    part_starts: np.ndarray  # (n_parts + 1,), the first token of each part


def pack_buckets(buckets: np.ndarray, n_bits: int) -> np.ndarray:
    """Pack bucket numbers, shape (n, dim), into bytes, shape (n, dim * n_bits / 8)."""
    bits = (buckets[..., None] >> np.arange(n_bits, dtype=np.uint8)) & 1
    return np.packbits(bits.reshape(len(buckets), -1).astype(np.uint8), axis=1)


def unpacking_table(bucket_weights: np.ndarray, n_bits: int) -> np.ndarray:
    """Return what each byte value stands for: shape (256, 8 / n_bits), the residuals of that many dimensions."""
    every_byte = np.arange(256, dtype=np.uint8)[:, None]
    bits = np.unpackbits(every_byte, axis=1).reshape(256, 8 // n_bits, n_bits)
    return bucket_weights[bits @ (1 << np.arange(n_bits))].astype(np.float32)


def open_files(folder: Path) -> PlaidFiles:
    """Map a shard's files.

    Raises:
        FileNotFoundError: If the folder holds no complete PLAID index.
        ValueError: If its arrays contradict one another.
    """
    n_parts, n_bits = _read_counts(folder / "metadata.json")
    parts = tuple(
        PlaidPart(_map(folder / f"{part}.codes.npy"), _map(folder / f"{part}.residuals.npy")) for part in range(n_parts)
    )
    passage_tokens = [n for part in range(n_parts) for n in _read_json(folder / f"doclens.{part}.json")]
    files = PlaidFiles(
        centroids=_map(folder / "centroids.npy").astype(np.float32),
        bucket_weights=_map(folder / "bucket_weights.npy").astype(np.float32),
        n_bits=n_bits,
        passage_tokens=np.array(passage_tokens, dtype=np.int64),
        ivf=_map(folder / "ivf.npy"),
        ivf_starts=np.concatenate([[0], np.cumsum(_map(folder / "ivf_lengths.npy"), dtype=np.int64)]),
        parts=parts,
        part_starts=np.concatenate([[0], np.cumsum([len(part.codes) for part in parts], dtype=np.int64)]),
    )
    _check(files, folder)
    return files


def _check(files: PlaidFiles, folder: Path) -> None:
    """Refuse numbers that point outside the arrays: the compiled kernels of a search would follow them there."""
    n_centroids, n_passages = len(files.centroids), len(files.passage_tokens)
    tokens, coded = int(files.passage_tokens.sum()), int(files.part_starts[-1])
    width = files.centroids.shape[-1] * files.n_bits // 8
    conditions = {
        f"{files.n_bits} bits a dimension": files.n_bits in (1, 2, 4),
        f"{tokens} tokens announced, {coded} found": tokens == coded and _within(files.passage_tokens, coded + 1),
        f"residuals not {width} bytes wide": all(
            part.residuals.shape == (len(part.codes), width) and part.residuals.dtype == np.uint8
            for part in files.parts
        ),
        "tokens of unknown centroids": all(_within(part.codes, n_centroids) for part in files.parts),
        "lists of unknown centroids": len(files.ivf_starts) == n_centroids + 1
        and files.ivf_starts[-1] == len(files.ivf),
        "lists of unknown passages": _within(files.ivf, n_passages),
    }
    if broken := [problem for problem, holds in conditions.items() if not holds]:
        raise ValueError(f"damaged PLAID index: {folder} ({broken[0]})")


def _within(numbers: np.ndarray, end: int) -> bool:
    """Tell whether all are integers from 0 to below `end`."""
    if not np.issubdtype(numbers.dtype, np.integer):
        return False
    return not len(numbers) or bool(numbers.min() >= 0 and numbers.max() < end)


def _read_counts(path: Path) -> tuple[int, int]:
    """Return the number of parts and of bits."""
    metadata = _read_json(path)
    try:
        return int(metadata["num_chunks"]), int(metadata["nbits"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"damaged PLAID index: {path} ({type(error).__name__}: {error})") from error


def _map(path: Path) -> np.ndarray:
    if not path.is_file():
        raise FileNotFoundError(f"incomplete PLAID index: no {path.name} in {path.parent}")
    try:
        # Not `np.load`, which would also take a zip, and with it whatever is in it.
        return np.lib.format.open_memmap(path, mode="r")
    except (ValueError, OSError) as error:
        raise ValueError(f"damaged PLAID index: {path} ({error})") from error


def _read_json(path: Path) -> Any:
    if not path.is_file():
        raise FileNotFoundError(f"incomplete PLAID index: no {path.name} in {path.parent}")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"damaged PLAID index: {path} ({error})") from error
