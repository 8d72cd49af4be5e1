"""`checksums.sha256`: the SHA-256 of a Library's files as they were last written, for `doctor` to compare.

The file is one that `sha256sum -c` reads, under a first line with the checksum of the others. It holds every file but
those whose checksums are in the manifest (shards and chunk vectors), a user's instructions, and locks. A writer records
its file with `record_checksums` once it is closed; after a kill in between, the next run that writes the file does.
"""

import hashlib
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path

from legal_rag.base.files import sha256_of, write_whole
from legal_rag.base.sqlite import connect_to_write

CHECKSUMS = "checksums.sha256"
LOCK = f".{CHECKSUMS}.lock"
DIFFERS = "not what was written (its SHA-256 differs)"  # of all problems, the one of damaged files
LOCK_SECONDS = 60.0  # another process keeps it while it reads the files that it wrote
TANTIVY_FILES = ".managed.json"
OF_A_DATABASE = ("-wal", "-shm", "-journal")  # next to it while it is written
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


def record_all(folder: Path, others: Iterable[str]) -> None:
    """Record all files of a future Library's folder except `others`, by their paths in it."""
    left_out = set(others)
    names = (name for name in _files_in(folder, "") if name not in left_out)
    _write_checksums(folder, {name: sha256_of(folder / name) for name in names})


def record_checksums(folder: Path, *names: str) -> None:
    """Record files of a Library as they are now; of a folder, those that are new, and its JSON files.

    An older Library without checksums gets none: they would certify files that nobody checked.

    Args:
        folder: The Library's.
        names: Paths in it; a file that is gone is no longer recorded.

    Raises:
        OSError: If the record cannot be written.
    """
    if not (folder / CHECKSUMS).is_file():
        return
    from filelock import FileLock

    # Read under the lock: of several writers of a database, the last to record has seen what all others wrote.
    with FileLock(folder / LOCK, timeout=LOCK_SECONDS):
        records = read_checksums(folder)
        for name in names:
            known = {path: digest for path, digest in records.items() if path == name or path.startswith(f"{name}/")}
            records = {path: digest for path, digest in records.items() if path not in known}
            records |= _checksums_of(folder, name, known)
        _write_checksums(folder, records)


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
        kept = {file: digest for file, digest in known.items() if not file.endswith(".json")}
        return {file: kept.get(file) or sha256_of(folder / file) for file in _files_in(folder, name)}
    if not path.is_file() or (path.suffix == ".sqlite" and not _is_in_one_file(path)):
        return {}
    return {name: sha256_of(path)}


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
