"""`checksums.sha256`: the SHA-256 of a Library's files as they were last written, for `doctor` to compare.

The file is one that `sha256sum -c` reads, under a first line with the checksum of the others. It holds every file but
those whose checksums are in the manifest (shards and chunk vectors), the manifest, which holds its own, a user's
instructions, and locks. A writer records its file with `record_checksums` once it is closed. After a kill in
between, a file differs from its record until the next run that writes it; for commits, `UNRECORDED` remembers that.
"""

import hashlib
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from legal_rag.base.files import sha256_of, write_whole
from legal_rag.base.sqlite import connect_to_write

CHECKSUMS = "checksums.sha256"
LOCK = f".{CHECKSUMS}.lock"
UNRECORDED = f".{CHECKSUMS}.behind"  # exists while a commit is written, and after one that was killed
DIFFERS = "not what was written (its SHA-256 differs)"  # of all problems, the one of damaged files
LOCK_SECONDS = 60.0  # another process keeps it for moments
TANTIVY_FILES = ".managed.json"
DATABASE = ".sqlite"
OF_A_DATABASE = ("-wal", "-shm", "-journal")  # next to it while it is written
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


def record_all(folder: Path, others: Iterable[str]) -> None:
    """Record all files of a future Library's folder except `others`, by their paths in it."""
    left_out, records = set(others), {}
    for name in _files_in(folder, ""):
        with _hold_still(folder / name) as is_still:
            if is_still and name not in left_out:
                records[name] = sha256_of(folder / name)
    _write_checksums(folder, records)


def record_checksums(folder: Path, *names: str) -> None:
    """Record files of a Library as they are now; of a folder, those that are new, and its JSON files.

    An older Library without checksums gets none: they would certify files that nobody checked.

    Args:
        folder: The Library's; only databases, which are locked, may have other writers.
        names: Paths in it; a file that is gone is no longer recorded.

    Raises:
        OSError: If the record cannot be written.
    """
    if not (folder / CHECKSUMS).is_file():
        return
    for name in names:
        with _hold_still(folder / name) as is_still:
            digests = _checksums_of(folder, name) if is_still else {}
            with _locked(folder):
                records = {path: digest for path, digest in read_checksums(folder).items() if not _lies_in(path, name)}
                _write_checksums(folder, records | digests)


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
        yield CHECKSUMS, "missing"
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


def _checksums_of(folder: Path, name: str) -> dict[str, str]:
    """Return the checksums of a file or of a folder's files; those recorded, where files are written only once."""
    if not (folder / name).is_dir():
        return {name: sha256_of(folder / name)} if (folder / name).is_file() else {}
    known = {path: digest for path, digest in read_checksums(folder).items() if not path.endswith(".json")}
    return {path: known.get(path) or sha256_of(folder / path) for path in _files_in(folder, name)}


def _lies_in(name: str, place: str) -> bool:
    return name == place or name.startswith(f"{place}/")


@contextmanager
def _hold_still(path: Path) -> Iterator[bool]:
    """Lock out writers of a database; yield whether all of it is in one file then, which holds for every other file."""
    if path.suffix != DATABASE or not path.is_file():
        yield True
        return
    with closing(connect_to_write(path, create=False)) as connection:
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:  # another process keeps it
            yield False
            return
        except sqlite3.DatabaseError:  # damaged: nobody can write it either
            pass
        log = path.with_name(f"{path.name}-wal")
        yield not log.is_file() or not log.stat().st_size


def _locked(folder: Path) -> Any:
    from filelock import FileLock

    return FileLock(folder / LOCK, timeout=LOCK_SECONDS)


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
