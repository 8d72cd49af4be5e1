"""`manifest.json`, which makes a commit, and `checksums.sha256`, with which `doctor` compares the other files.

Both are read as untrusted input. The checksums are a file that `sha256sum -c` reads, under a first line with the
checksum of the others: of every file but shards and chunk vectors, whose checksums the manifest has, a user's
instructions, and locks.
"""

import hashlib
import json
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path, PureWindowsPath
from typing import Any

from legal_rag.base.files import parse_json, sha256_of, write_whole
from legal_rag.base.sqlite import connect_to_write
from legal_rag.corpus.sources import json_problem
from legal_rag.library.plaid.files import CENTROIDS

CHECKSUMS = "checksums.sha256"
LOCK = f".{CHECKSUMS}.lock"
DIFFERS = "not what was written (its SHA-256 differs)"  # of all problems, the one of damaged files
LOCK_SECONDS = 60.0  # another process keeps it while it reads the files that it wrote
TANTIVY_FILES = ".managed.json"
OF_A_DATABASE = ("-wal", "-shm", "-journal")  # next to it while it is written
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


def record_all(folder: Path, others: Iterable[str]) -> None:
    """Record all files of a future Library's folder except `others`, by their paths in it."""
    names = set(_files_in(folder, "")).difference(others)
    _write_checksums(folder, {name: sha256_of(folder / name) for name in names})


def record_checksums(folder: Path, *names: str) -> None:
    """Record files of a Library as they are now; of a folder, those that are new, and its JSON files.

    A file that is gone is no longer recorded. Where there are no checksums, as in a Library under way, none are made:
    they would certify files that nobody checked.
    """
    if not (folder / CHECKSUMS).is_file():
        return
    with _changing_records(folder) as records:
        for name in names:
            known = _forget(records, name)
            records |= _checksums_of(folder, name, known)


def forget_checksums(folder: Path, *names: str) -> None:
    """Forget the checksums of files, or of a folder's JSON files, before they change: a kill may come in between."""
    if not (folder / CHECKSUMS).is_file():
        return
    with _changing_records(folder) as records:
        for name in names:
            known = _forget(records, name)
            records |= _written_once({path: digest for path, digest in known.items() if path != name})


def without_record(folder: Path, names: Iterable[str]) -> list[str]:
    """Return those files of a Library that have no checksum; none where there are no checksums."""
    if not (folder / CHECKSUMS).is_file():
        return []
    records = read_checksums(folder)
    return [name for name in names if name not in records]


@contextmanager
def _changing_records(folder: Path) -> Iterator[dict[str, str]]:
    from filelock import FileLock

    # Read under the lock: of several writers of a database, the last to record has seen what all others wrote.
    with FileLock(folder / LOCK, timeout=LOCK_SECONDS):
        records = read_checksums(folder)
        yield records
        _write_checksums(folder, records)


def _forget(records: dict[str, str], name: str) -> dict[str, str]:
    known = {path: digest for path, digest in records.items() if path == name or path.startswith(f"{name}/")}
    for path in known:
        del records[path]
    return known


def read_checksums(folder: Path) -> dict[str, str]:
    """Return the recorded SHA-256 of a Library's files by path; lines that cannot be read are skipped."""
    text = (folder / CHECKSUMS).read_text(encoding="utf-8", errors="replace")
    matches = (_LINE.fullmatch(line) for line in text.splitlines()[1:])
    return {match[2]: match[1] for match in matches if match and _is_inside_folder(match[2])}


def checksum_problems(folder: Path, parts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each file of a Library that differs from its record, and its problem.

    `parts` are files and folders which, where they exist, must be recorded.
    """
    file = folder / CHECKSUMS
    if not file.is_file():
        yield CHECKSUMS, "missing: most files cannot be verified"
        return
    records = read_checksums(folder)
    if file.read_bytes() != _format_checksums(records).encode():
        yield CHECKSUMS, "not what was written"
    for name, digest in records.items():
        path = folder / name
        if not path.is_file():
            yield name, "missing"
        elif _digest_or_reason(path) != digest:
            yield name, DIFFERS
    present = {name for part in parts for name in ([part] if (folder / part).is_file() else _files_in(folder, part))}
    for name in sorted(present - records.keys()):
        yield name, "no checksum of it was recorded"


def _files_in(folder: Path, name: str) -> Iterator[str]:
    """Yield the paths of the files below one place of a folder that are recorded; nothing follows a link."""
    for top, folders, files in os.walk(folder / name):
        folders.sort()
        for file in sorted(files):
            path = Path(top, file).relative_to(folder).as_posix()
            if not (_is_left_out(file) or path == CHECKSUMS or Path(top, file).is_symlink()):
                yield path


def _is_left_out(name: str) -> bool:
    """Tell whether a file changes at any time: locks, journals, fast-plaid's merged arrays for a GPU."""
    return (
        (name.startswith(".") and name != TANTIVY_FILES) or name.endswith(OF_A_DATABASE) or name.startswith("merged_")
    )


def _checksums_of(folder: Path, name: str, known: Mapping[str, str]) -> dict[str, str]:
    """Return the checksums of a file or of a folder's files; the `known` ones where files are written only once."""
    path = folder / name
    if path.is_dir():
        kept = _written_once(known)
        return {file: kept.get(file) or sha256_of(folder / file) for file in _files_in(folder, name)}
    if not path.is_file() or (path.suffix == ".sqlite" and not _is_in_one_file(path)):
        return {}
    return {name: sha256_of(path)}


def _written_once(known: Mapping[str, str]) -> dict[str, str]:
    return {file: digest for file, digest in known.items() if "/" in file and not file.endswith(".json")}


def _is_in_one_file(database: Path) -> bool:
    """Move a database's write-ahead log into its file; tell whether that was possible, with other readers."""
    log = database.with_name(f"{database.name}-wal")
    with suppress(sqlite3.Error), closing(connect_to_write(database, 1.0, create=False)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return not log.is_file() or not log.stat().st_size


def _write_checksums(folder: Path, records: Mapping[str, str]) -> None:
    write_whole(folder / CHECKSUMS, _format_checksums(records))


def _format_checksums(records: Mapping[str, str]) -> str:
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(records.items()))
    return f"# {hashlib.sha256(lines.encode()).hexdigest()}\n{lines}"


def _is_inside_folder(name: str) -> bool:
    """Tell whether a path stays in its folder: a record may come from anyone."""
    return not (Path(name).is_absolute() or ".." in Path(name).parts)


def _digest_or_reason(path: Path) -> str:
    try:
        return sha256_of(path)
    except OSError as error:
        return str(error)


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
    "plaid": {"n_bits": int, "shard_chunks?": int},
    "encoder": {"name": str, "revision": str, "dim": int, "query_length": int, "document_length": int},
    "chunks": {"chunk_tokens": int, "header_on": str, "header_columns": [list]},
    "source": {"name": str},
    "chunk_vectors?": {"segments": [{"file": str, "chunks": int, "sha256": str}], "frame": str},
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
    if manifest["plaid"]["n_bits"] and CHUNK_VECTORS not in manifest:
        raise KeyError(CHUNK_VECTORS)
    for shard in shards:
        if not _is_plain_path(shard["path"]):
            raise ValueError(f"it names a shard outside itself: {shard['path']!r:.60}")
    names = [name for shard in shards for name in shard["checksums"]]
    names += [segment["file"] for segment in manifest.get(CHUNK_VECTORS, {"segments": []})["segments"]]
    if wrong := [name for name in names if not _is_plain_path(name) or len(PureWindowsPath(name).parts) != 1]:
        raise ValueError(f"a file outside its folder: {wrong[0]!r:.60}")
    codes = [(shard["path"], name) for shard in shards for name in shard["checksums"] if name.endswith(".codes.npy")]
    if len(set(codes)) < len(codes):
        raise ValueError("two shards of the same codes")
    if len({(shard["path"], shard["checksums"].get(CENTROIDS)) for shard in shards if shard["checksums"]}) > 1:
        raise ValueError("shards of several indexes")
    for what in ("chunks", "tokens"):
        held, counted = sum(shard.get(what, 0) for shard in shards), manifest["counts"].get(what, 0)
        if held < counted:
            raise ValueError(f"{counted:,} {what}, of which its {len(shards)} shards hold {held:,}")


def _is_plain_path(name: str) -> bool:
    """Tell whether a path is a plain one that stays in its folder, on every system."""
    path = PureWindowsPath(name)
    return bool(name) and "\0" not in name and not (path.drive or path.root or ".." in path.parts)
