"""Write a shard in fast-plaid's format."""

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from legal_rag.library.plaid.codec import BLOCK_TOKENS, Buckets, compress, count_centroids, fit_buckets, train_centroids
from legal_rag.library.plaid.files import METADATA, PlaidFiles, open_files
from legal_rag.library.plaid.search import default_device

__all__ = ["copy_shard_without", "count_centroids", "merge_shards", "write_shard"]

PART_TOKENS = 2**20  # tokens in a part of the shard
CODEC_FILES = ("centroids", "bucket_cutoffs", "bucket_weights", "avg_residual", "cluster_threshold")


def write_shard(folder: Path, vectors: np.ndarray, passage_tokens: Sequence[int], *, n_bits: int, seed: int) -> None:
    """Write a shard's files into `folder`, which is created.

    Args:
        folder: A new folder.
        vectors: Shape (n_tokens, dim), unit rows, float16 or float32. If mapped from a file (mode 'r'), memory holds
            only blocks of it, a sample, and 12 bytes per token.
        passage_tokens: Tokens of each passage, in order; their sum is n_tokens.
        n_bits: Bits a dimension: 1, 2 or 4.
        seed: Of the samples and of k-means.

    Raises:
        ValueError: If there is no token, a passage has none, or the lengths do not add up.
    """
    if not len(vectors) or sum(passage_tokens) != len(vectors):
        raise ValueError(f"passages of {sum(passage_tokens)} tokens do not fit {len(vectors)} token vectors")
    if min(passage_tokens) < 1:
        raise ValueError(f"passage {list(passage_tokens).index(min(passage_tokens))} has no token")
    folder.mkdir(parents=True)
    if default_device() == "cuda":
        _write_with_fast_plaid(folder, vectors, passage_tokens, n_bits, seed)
        return
    generator = np.random.default_rng(seed)
    centroids = train_centroids(vectors, generator)
    buckets = fit_buckets(vectors, centroids, n_bits, generator)
    _write_codec(folder, centroids, buckets)
    parts = list(_split_into_parts(passage_tokens))
    width = vectors.shape[1] * n_bits // 8
    codes, at = [], 0
    for part, lengths in enumerate(parts):
        rows = vectors[at : at + sum(lengths)]
        codes.append(_write_part(folder, part, at, lengths, width, compress(rows, centroids, buckets, n_bits)))
        at += sum(lengths)
    _write_rest(folder, np.concatenate(codes), passage_tokens, n_bits, len(centroids), len(parts))


def copy_shard_without(source: Path, target: Path, dropped: np.ndarray) -> None:
    """Copy a shard without some of its passages; see `merge_shards`."""
    merge_shards([(source, dropped)], target)


def merge_shards(sources: Sequence[tuple[Path, np.ndarray]], target: Path) -> None:
    """Copy shards into one, without some of their passages; the others' codes and residuals stay as they are.

    Each passage keeps the centroids of its shard, so that the codebooks add up. The bucket weights, of which there is
    one set, become the mean: scores change by what the shards' weights differ, which is little in one corpus.

    Args:
        sources: Each shard's folder, and the rising positions of the passages left out; later ones move up.
        target: A new folder.

    Raises:
        FileNotFoundError: If a source holds no complete index.
        ValueError: If one is damaged, or would lose all its passages or one that it does not have.
    """
    shards = [(source, open_files(source)) for source, _ in sources]
    kept = [_kept(files, dropped, source) for (source, files), (_, dropped) in zip(shards, sources, strict=True)]
    target.mkdir(parents=True)
    _copy_codecs([source for source, _ in shards], target)
    codes: list[np.ndarray] = []
    n_tokens = n_centroids = 0
    for (source, files), positions in zip(shards, kept, strict=True):
        codes += _copy_parts(files, target, positions, source, len(codes), n_tokens, n_centroids)
        n_tokens += int(files.passage_tokens[positions].sum())
        n_centroids += len(files.centroids)
    lengths = np.concatenate([files.passage_tokens[some] for (_, files), some in zip(shards, kept, strict=True)])
    _write_rest(target, np.concatenate(codes), lengths.tolist(), shards[0][1].n_bits, n_centroids, len(codes))


def _copy_codecs(sources: Sequence[Path], target: Path) -> None:
    """Copy a shard's codebook and bucket weights, or write those of several as one."""
    for name in (f"{name}.npy" for name in CODEC_FILES if (sources[0] / f"{name}.npy").is_file()):
        if len(sources) == 1:
            shutil.copyfile(sources[0] / name, target / name)
            continue
        arrays = [np.asarray(np.lib.format.open_memmap(source / name, mode="r")) for source in sources]
        mean = np.mean(arrays, axis=0, dtype=np.float32) if name != "centroids.npy" else np.concatenate(arrays)
        np.save(target / name, mean.astype(arrays[0].dtype))


def _kept(files: PlaidFiles, dropped: np.ndarray, source: Path) -> np.ndarray:
    """Return the positions of the passages that are not dropped."""
    n_passages = len(files.passage_tokens)
    dropped = np.asarray(dropped, dtype=np.int64)
    if len(dropped) and (dropped.min() < 0 or dropped.max() >= n_passages):
        raise ValueError(f"cannot drop passages {dropped} (expected positions from 0 to {n_passages - 1})")
    kept = np.setdiff1d(np.arange(n_passages), dropped)
    if not len(kept):
        raise ValueError(f"cannot drop all {n_passages} passages of {source} (expected one to remain)")
    return kept


def _copy_parts(
    files: PlaidFiles,
    target: Path,
    kept: np.ndarray,
    source: Path,
    first_part: int,
    first_token: int,
    first_centroid: int,
) -> list[np.ndarray]:
    """Copy the kept passages of each part that has any; return the codes of each, numbered from `first_centroid`."""
    codes: list[np.ndarray] = []
    at = first_token
    for part, first in enumerate(files.part_passages[:-1]):
        of_part = kept[(kept >= first) & (kept < files.part_passages[part + 1])]
        if not len(of_part):
            continue
        lengths = files.passage_tokens[of_part].tolist()
        blocks = ((found + first_centroid, packed) for found, packed in _read_passages(files, part, of_part))
        number, width = first_part + len(codes), files.parts[part].residuals.shape[1]
        codes.append(_write_part(target, number, at, lengths, width, blocks))
        if codes[-1].min() < first_centroid or codes[-1].max() >= first_centroid + len(files.centroids):
            raise ValueError(f"damaged PLAID index: {source} (tokens of unknown centroids)")
        at += sum(lengths)
    return codes


def _read_passages(files: PlaidFiles, part: int, kept: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield codes and residuals of some passages of a part, by runs of BLOCK_TOKENS at most."""
    lengths = files.passage_tokens[files.part_passages[part] : files.part_passages[part + 1]]
    wanted = np.zeros(len(lengths), dtype=bool)
    wanted[kept - files.part_passages[part]] = True
    tokens = np.repeat(wanted, lengths)
    for start in range(0, len(tokens), BLOCK_TOKENS):
        chosen = tokens[start : start + BLOCK_TOKENS]
        codes = files.parts[part].codes[start : start + BLOCK_TOKENS][chosen]
        yield codes.astype(np.int32), files.parts[part].residuals[start : start + BLOCK_TOKENS][chosen]


def _write_with_fast_plaid(
    folder: Path, vectors: np.ndarray, passage_tokens: Sequence[int], n_bits: int, seed: int
) -> None:
    import torch
    from fast_plaid.search import FastPlaid

    passages = torch.split(torch.from_numpy(np.asarray(vectors)), list(passage_tokens))
    with FastPlaid(str(folder)) as index:
        # start_from_scratch=0: otherwise a small index also gets `embeddings.npy`, which is a pickle.
        index.create(list(passages), nbits=n_bits, seed=seed, start_from_scratch=0)


def _write_codec(folder: Path, centroids: np.ndarray, buckets: Buckets) -> None:
    np.save(folder / "centroids.npy", centroids)
    np.save(folder / "bucket_cutoffs.npy", buckets.cutoffs)
    np.save(folder / "bucket_weights.npy", buckets.weights)
    np.save(folder / "avg_residual.npy", buckets.mean_residual)
    # Read by fast-plaid's `update` alone; a copy of the index may meet it.
    np.save(folder / "cluster_threshold.npy", buckets.threshold)


def _write_part(
    folder: Path,
    part: int,
    first_token: int,
    lengths: Sequence[int],
    width: int,
    blocks: Iterable[tuple[np.ndarray, np.ndarray]],
) -> np.ndarray:
    """Write one part from blocks of codes and residuals, `width` bytes a token; return its codes."""
    n_tokens = sum(lengths)
    header = {"descr": "|u1", "fortran_order": False, "shape": (n_tokens, width)}
    codes = [np.empty(0, dtype=np.int32)]
    # Not a mapped file: on a full disk, writing to a mapping kills the process (SIGBUS).
    with (folder / f"{part}.residuals.npy").open("wb") as residuals:
        np.lib.format.write_array_header_1_0(residuals, header)
        for nearest, packed in blocks:
            codes.append(nearest)
            residuals.write(packed.tobytes())
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
    passages = np.repeat(np.arange(len(passage_tokens), dtype=np.int64), np.asarray(passage_tokens))
    pairs = np.unique(codes.astype(np.int64) * len(passage_tokens) + passages)
    np.save(folder / "ivf.npy", (pairs % len(passage_tokens)).astype(np.int32))
    lengths = np.bincount(pairs // len(passage_tokens), minlength=n_centroids)
    np.save(folder / "ivf_lengths.npy", lengths.astype(np.int32))


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")
