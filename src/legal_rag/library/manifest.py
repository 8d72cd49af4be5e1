"""`manifest.json`: read as untrusted input."""

import json
from collections.abc import Mapping
from pathlib import Path, PureWindowsPath
from typing import Any

from legal_rag.base.files import parse_json, write_whole
from legal_rag.corpus.sources import json_problem
from legal_rag.library.checksums import record_checksums

MANIFEST = "manifest.json"
CHUNK_VECTORS, FRAME = "chunk_vectors", "frame.npy"  # see `legal_rag.library.chunk_vectors`
FORMAT_VERSION = 3
MOST_BYTES = 100_000_000  # 75,000 shards, or 192 million chunks
MOST_VALUES = 2_000_000
MOST = 2**40  # of anything counted

# What every reader relies on. A class means a value of that type, numbers from 0 to `MOST`; "?" marks what may be
# missing, "*" any name.
_SHARD = {"path": str, "chunks": int, "tokens": int, "checksums": {"*": str}}
_SHAPE = {
    "commit": int,
    "lineage": str,
    "counts": {"documents": int, "chunks": int, "tokens": int, "bad_records": int},
    "updates": [dict],
    "shards": [_SHARD],
    "plaid": {"n_bits": int, "shard_chunks?": int, "keep_embeddings?": bool},
    "encoder": {"name": str, "revision": str, "dim": int, "query_length": int, "document_length": int},
    "chunks": {"chunk_tokens": int, "header_on": str, "header_columns": [list]},
    "source": {"name": str},
    "chunk_vectors?": {"segments": [{"file": str, "chunks": int, "sha256?": str}], "frame?": str},
}


def read_manifest(path: Path) -> dict[str, Any]:
    """Read a manifest, and check what readers rely on.

    Args:
        path: The Library's folder.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is damaged, or of another format.
    """
    file = path / MANIFEST
    try:
        if (size := file.stat().st_size) > MOST_BYTES:
            raise ValueError(f"{size:,} bytes, at most {MOST_BYTES:,}")
        text = file.read_bytes().decode("utf-8")
        if sum(map(text.count, ",[{")) > MOST_VALUES:
            raise ValueError(f"more than {MOST_VALUES:,} values")
        manifest = parse_json(text)
        version = int(manifest["format_version"])
        if version == FORMAT_VERSION:
            manifest.pop("sha256", None)  # of itself, in earlier versions
            _check_shape(manifest, _SHAPE, "")
            _check_shards(manifest)
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else json_problem(error)
        raise ValueError(f"damaged manifest: {file} ({reason}): build it again") from error
    if version != FORMAT_VERSION:
        remedy = "update it" if version > FORMAT_VERSION else "build it again"
        raise ValueError(f"{path} has format {version}, this legal_rag reads {FORMAT_VERSION}: {remedy}")
    return dict(manifest)


def files_in_manifest(manifest: Mapping[str, Any]) -> set[str]:
    """Return the paths of the files whose checksums a manifest holds."""
    shards = {f"{shard['path']}/{name}" for shard in manifest["shards"] for name in shard.get("checksums", ())}
    vectors = manifest.get(CHUNK_VECTORS)
    segments = {f"{CHUNK_VECTORS}/{segment['file']}" for segment in vectors["segments"]} if vectors else set()
    return {*shards, *segments, *([f"{CHUNK_VECTORS}/{FRAME}"] if vectors else [])}


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write a manifest atomically, which is the moment of a commit, and record its checksum."""
    write_whole(folder / MANIFEST, json.dumps(manifest, ensure_ascii=False, indent=2) + "\n")
    record_checksums(folder, MANIFEST)


def _check_shape(value: Any, shape: Any, where: str) -> None:
    """Check types recursively; KeyError of the place that is missing, ValueError for a type or number out of range."""
    kind = shape if isinstance(shape, type) else type(shape)
    value_type: type = type(value)  # bool is not int here
    if value_type is not kind or (kind is int and not 0 <= value <= MOST):
        raise ValueError(f"{where or 'it'} is {value!r:.60} (expected {_name_type(kind)})")
    if isinstance(shape, list):
        for number, item in enumerate(value):
            _check_shape(item, shape[0], f"{where}[{number}]")
    elif isinstance(shape, dict):
        for name, inner in shape.items():
            field = name.removesuffix("?")
            place = f"{where}.{field}" if where else field
            if name == "*":
                for key, item in value.items():
                    _check_shape(item, inner, f"{where}.{key:.40}")
            elif field in value:
                _check_shape(value[field], inner, place)
            elif field == name:
                raise KeyError(place)


def _name_type(kind: type) -> str:
    return f"a whole number from 0 to {MOST:,}" if kind is int else kind.__name__


def _check_shards(manifest: Mapping[str, Any]) -> None:
    """Refuse files outside their folders, two shards in one folder, or fewer chunks or tokens than counted."""
    shards = manifest["shards"]
    for shard in shards:
        if not _is_plain_path(shard["path"]):
            raise ValueError(f"it names a shard outside itself: {shard['path']!r:.60}")
    names = [name for shard in shards for name in shard["checksums"]]
    names += [segment["file"] for segment in manifest.get(CHUNK_VECTORS, {"segments": []})["segments"]]
    if wrong := [name for name in names if not _is_plain_path(name) or len(PureWindowsPath(name).parts) != 1]:
        raise ValueError(f"a file outside its folder: {wrong[0]!r:.60}")
    if len({shard["path"] for shard in shards}) < len(shards):
        raise ValueError("two shards in one folder")
    for what in ("chunks", "tokens"):
        held, counted = sum(shard.get(what, 0) for shard in shards), manifest["counts"].get(what, 0)
        if held < counted:
            raise ValueError(f"{counted:,} {what}, of which its {len(shards)} shards hold {held:,}")


def _is_plain_path(name: str) -> bool:
    """Tell whether a path is a plain one that stays in its folder, on every system."""
    path = PureWindowsPath(name)
    return bool(name) and "\0" not in name and not (path.drive or path.root or ".." in path.parts)
