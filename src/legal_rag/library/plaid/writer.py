"""Write a shard in fast-plaid's format."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from legal_rag.base.files import link_or_copy
from legal_rag.library.plaid.codec import (
    CODEC_FILES,
    Codec,
    Packer,
    code_type,
    map_blocks,
    read_blocks,
    write_codec,
)
from legal_rag.library.plaid.files import METADATA, PlaidFiles, open_files

__all__ = ["copy_passages", "write_shard"]

PART_TOKENS = 2**20  # tokens in a part of the shard


def write_shard(
    folder: Path,
    vectors: np.ndarray,
    passage_tokens: Sequence[int],
    codec: Codec,
    *,
    codec_from: Path | None = None,
) -> None:
    """Write a shard's files into `folder`, which is created.

    Args:
        folder: A new folder.
        vectors: Shape (n_tokens, dim), unit rows, float16 or float32. If mapped from a file (mode 'r'), memory holds
            only blocks of it and 24 bytes per token.
        passage_tokens: Tokens of each passage, in order; their sum is n_tokens.
        codec: The codebook.
        codec_from: A shard's folder that holds the files of this same codebook, to be linked instead of written.

    Raises:
        ValueError: If there is no token, a passage has none, the lengths do not add up, the codebook is of another
            dim, or a vector is not finite.
    """
    if not len(vectors) or sum(passage_tokens) != len(vectors):
        raise ValueError(f"passages of {sum(passage_tokens)} tokens do not fit {len(vectors)} token vectors")
    if min(passage_tokens) < 1:
        raise ValueError(f"passage {list(passage_tokens).index(min(passage_tokens))} has no token")
    n_centroids, dim = codec.centroids.shape
    if vectors.shape[1] != dim:
        raise ValueError(f"token vectors of shape {vectors.shape} do not fit a codebook of dim {dim}")
    folder.mkdir(parents=True)
    if codec_from is None:
        write_codec(folder, codec)
    else:
        _link_codec(codec_from, folder)
    parts, packer = list(_split_into_parts(passage_tokens)), Packer(codec)
    codes, at = [], 0
    for part, lengths in enumerate(parts):
        blocks = map_blocks(packer, read_blocks(vectors[at : at + sum(lengths)]))
        codes.append(_write_part(folder, part, at, lengths, dim * codec.n_bits // 8, blocks))
        at += sum(lengths)
    _write_rest(folder, np.concatenate(codes), passage_tokens, codec.n_bits, n_centroids, len(parts))


def _link_codec(source: Path, folder: Path) -> None:
    for name in CODEC_FILES:
        link_or_copy(source / name, folder / name)


def copy_passages(folders: Sequence[Path], places: np.ndarray, target: Path) -> None:
    """Write a shard of passages from shards with one codebook; codes and residuals stay as they are.

    Args:
        folders: Of the shards.
        places: Shape (n_passages, 2): the number in `folders` and the position of each passage, in the new order.
        target: A new folder.

    Raises:
        FileNotFoundError: If a shard is not complete.
        ValueError: If one is damaged, or has no such passage.
    """
    sources = {number: open_files(folders[number]) for number in np.unique(places[:, 0]).tolist()}
    for number, files in sources.items():
        positions = places[places[:, 0] == number, 1]
        if positions.min() < 0 or positions.max() >= len(files.passage_tokens):
            raise ValueError(f"damaged PLAID index: {folders[number]} has only {len(files.passage_tokens)} passages")
    first = next(iter(sources))
    target.mkdir(parents=True)
    _link_codec(folders[first], target)
    starts = {number: np.cumsum([0, *files.passage_tokens]) for number, files in sources.items()}
    lengths = [int(sources[number].passage_tokens[position]) for number, position in places.tolist()]
    width, n_centroids = sources[first].parts[0].residuals.shape[1], len(sources[first].centroids)
    codes, at, row = [], 0, 0
    for part, own_lengths in enumerate(_split_into_parts(lengths)):
        rows = places[row : row + len(own_lengths)].tolist()
        blocks = (
            _slice_passage(sources[number], starts[number], position, folders[number]) for number, position in rows
        )
        codes.append(_write_part(target, part, at, own_lengths, width, blocks))
        at, row = at + sum(own_lengths), row + len(own_lengths)
    _write_rest(target, np.concatenate(codes), lengths, sources[first].n_bits, n_centroids, len(codes))


def _slice_passage(files: PlaidFiles, starts: np.ndarray, position: int, source: Path) -> tuple[np.ndarray, np.ndarray]:
    part = int(np.searchsorted(files.part_passages, position, side="right")) - 1
    rows = slice(starts[position] - files.part_starts[part], starts[position + 1] - files.part_starts[part])
    codes = _checked_codes(files.parts[part].codes[rows], files, source)
    return codes.astype(code_type(len(files.centroids))), files.parts[part].residuals[rows]


def _checked_codes(codes: np.ndarray, files: PlaidFiles, source: Path) -> np.ndarray:
    """Return codes that name the centroids there are, int64."""
    codes = codes.astype(np.int64)
    if len(codes) and (codes.min() < 0 or codes.max() >= len(files.centroids)):
        raise ValueError(f"damaged PLAID index: {source} (tokens of unknown centroids)")
    return codes


def _write_part(
    folder: Path,
    part: int,
    first_token: int,
    lengths: Sequence[int],
    width: int,
    blocks: Iterable[tuple[np.ndarray, np.ndarray]],
) -> np.ndarray:
    n_tokens = sum(lengths)
    header = {"descr": "|u1", "fortran_order": False, "shape": (n_tokens, width)}
    codes = []
    # Not a mapped file: on a full disk, writing to a mapping kills the process (SIGBUS).
    with (folder / f"{part}.residuals.npy").open("wb") as residuals:
        np.lib.format.write_array_header_1_0(residuals, header)
        for nearest, packed in blocks:
            codes.append(nearest)
            residuals.write(packed.data)
    all_codes = np.concatenate(codes)
    np.save(folder / f"{part}.codes.npy", all_codes)
    _write_json(folder / f"doclens.{part}.json", list(lengths))
    _write_json(
        folder / f"{part}.metadata.json",
        {"embedding_offset": first_token, "num_documents": len(lengths), "num_embeddings": n_tokens},
    )
    return all_codes


def _split_into_parts(passage_tokens: Sequence[int]) -> Iterator[list[int]]:
    part: list[int] = []
    n_tokens = 0
    for length in passage_tokens:
        if part and n_tokens + length > PART_TOKENS:
            yield part
            part, n_tokens = [], 0
        part.append(int(length))
        n_tokens += int(length)
    yield part


def _write_rest(
    folder: Path, codes: np.ndarray, passage_tokens: Sequence[int], n_bits: int, n_centroids: int, n_parts: int
) -> None:
    """Write the inverted lists and, last, the metadata, which marks the shard as complete."""
    _write_ivf(folder, codes, passage_tokens, n_centroids)
    _write_json(folder / "plan.json", {"nbits": n_bits, "num_chunks": n_parts})
    _write_json(
        folder / METADATA,
        {
            "avg_doclen": float(np.mean(passage_tokens)),
            "compress_only": False,
            "nbits": n_bits,
            "num_chunks": n_parts,
            "num_documents": len(passage_tokens),
            "num_embeddings": int(sum(passage_tokens)),
            "num_partitions": n_centroids,
        },
    )


def _write_ivf(folder: Path, codes: np.ndarray, passage_tokens: Sequence[int], n_centroids: int) -> None:
    """Write the inverted lists: for each centroid, the passages that have a token there, once each."""
    order = np.argsort(codes, kind="stable")
    passages = np.repeat(np.arange(len(passage_tokens), dtype=np.int32), np.asarray(passage_tokens))[order]
    codes = codes[order]
    first = np.concatenate([[True], (codes[1:] != codes[:-1]) | (passages[1:] != passages[:-1])])
    np.save(folder / "ivf.npy", passages[first])
    lengths = np.bincount(codes[first], minlength=n_centroids)
    np.save(folder / "ivf_lengths.npy", lengths.astype(np.int32))


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")
