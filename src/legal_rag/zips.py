"""Zips: a zip from anywhere unpacked into a folder, whole or not at all.

In: a zip that may be cut off, damaged or hostile. Out: a folder that holds exactly its files, each checked by size and
checksum, and nothing outside it. The folder takes its name when all of it is there.
"""

import io
import json
import os
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from legal_rag.folders import beside, locked, put_in_place, require_space
from legal_rag.progress import byte_bar

if TYPE_CHECKING:
    from tqdm import tqdm

RECORD = ".extracted.json"  # in the folder: which zip it holds
BLOCK_BYTES = 2**20
ZIP_START = b"PK"
RATIO_FROM = 2**24  # unpacked bytes up to which no ratio is too high: a short file of zeros harms nobody
DIRECTORY_BYTES_PER_ENTRY = 256  # in the zip's own list of files

# Not a plain name on every system: nothing, `..`, control characters, drive letters, Windows devices.
UNSAFE_PART = re.compile(
    r"|.*[. ]|.*[\x00-\x1f\x7f:].*|(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE | re.DOTALL
)
# bzip2 and LZMA unpack a block in one piece, of any size, before it can be measured.
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass(frozen=True, kw_only=True)
class ZipLimits:
    """What a zip may unpack to."""

    total_bytes: int = 2**38  # 256 GiB, several times a large index
    ratio: int = 100  # unpacked to packed bytes of the whole zip; vectors and texts stay below 10
    entries: int = 100_000


class Entry(NamedTuple):
    """A file in a zip, and where it goes below the target folder."""

    info: zipfile.ZipInfo
    path: PurePosixPath


def extract_zip(zip_path: str | Path, target: str | Path, limits: ZipLimits | None = None) -> Path:
    """Unpack a zip into the folder `target`, which then holds that zip and nothing else.

    A folder that already holds this zip, whole, is left as it is; one that holds another zip is replaced when
    the new one is unpacked. After an error or a kill, `target` is as it was.

    Args:
        zip_path: The zip.
        target: A new or empty folder, or one made by this function.
        limits: What the zip may unpack to.

    Returns:
        The folder.

    Raises:
        FileNotFoundError: If there is no such zip.
        ValueError: If it is not a zip, or damaged, or empty; if an entry would land outside the target, or is a
            link, device or duplicate, or is encrypted; if it unpacks to more than `limits` or than it announces;
            if `target` holds something else, or another process is unpacking into it.
        OSError: If the disk is too full.
    """
    zip_path, target = Path(zip_path).expanduser(), Path(target).expanduser().absolute()
    limits = limits or ZipLimits()
    with _opened(zip_path, limits) as archive:
        entries = _checked_entries(archive, zip_path, limits)
        with locked(target):
            if not _holds(target, zip_path, entries):
                _extract(archive, zip_path, entries, target)
    return target


def require_zip(path: Path, source: str = "") -> None:
    """Make sure that a file is a zip with its end in place.

    Args:
        path: The file.
        source: Where it comes from, for the message; the path if empty.

    Raises:
        ValueError: If it is not a zip; the message says how it begins.
    """
    if zipfile.is_zipfile(path):
        return
    with path.open("rb") as file:
        start = file.read(len(ZIP_START) + 12)
    problem = "a zip that breaks off" if start.startswith(ZIP_START) else "not a zip"
    raise ValueError(f"{problem}: {source or path} ({path.stat().st_size:,} bytes that begin with {start!r})")


@contextmanager
def _opened(zip_path: Path, limits: ZipLimits) -> Iterator[zipfile.ZipFile]:
    """Open a zip, and turn all that Python says of a damaged one into one error."""
    if not zip_path.is_file():
        raise FileNotFoundError(f"no such zip: {zip_path}")
    require_zip(zip_path)
    try:
        with _BoundedReader(zip_path, limits.entries * DIRECTORY_BYTES_PER_ENTRY) as file, zipfile.ZipFile(file) as one:
            yield one
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError, OverflowError) as error:
        raise ValueError(f"damaged zip: {zip_path}, {zip_path.stat().st_size:,} bytes ({error})") from error


class _BoundedReader(io.BufferedReader):
    """A file read from its beginning on, in pieces no longer than a zip's list of files may be.

    `zipfile` reads that list in one piece, and seeks wherever an entry says it begins.
    """

    def __init__(self, path: Path, most: int) -> None:
        super().__init__(io.FileIO(path))
        self._most = max(most, BLOCK_BYTES * 2)

    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size > self._most:
            raise zipfile.BadZipFile(f"its list of files takes {size:,} bytes, the limit is {self._most:,}")
        return super().read(size)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_SET and offset < 0:
            raise zipfile.BadZipFile(f"an entry begins at byte {offset:,}")
        return super().seek(offset, whence)


def _checked_entries(archive: zipfile.ZipFile, zip_path: Path, limits: ZipLimits) -> list[Entry]:
    """Return the files of a zip, once every entry is known to be harmless."""
    infos = archive.infolist()
    if len(infos) > limits.entries:
        raise ValueError(f"too many entries in {zip_path}: {len(infos):,}, the limit is {limits.entries:,}")
    every_entry = [Entry(info, _safe_path(info, zip_path)) for info in infos]
    # A folder made by `extract_zip` and zipped again brings its old record along.
    entries = [one for one in every_entry if not _is_folder(one.info) and str(one.path) != RECORD]
    if not entries:
        raise ValueError(f"empty zip: {zip_path} holds no file")
    _refuse_duplicates(entries, zip_path)
    total, packed = sum(entry.info.file_size for entry in entries), zip_path.stat().st_size
    if total > limits.total_bytes:
        raise ValueError(f"{zip_path} unpacks to {total:,} bytes, the limit is {limits.total_bytes:,}")
    if total > max(limits.ratio * packed, RATIO_FROM):
        raise ValueError(
            f"{zip_path} looks like a zip bomb: {packed:,} bytes unpack to {total:,} (the limit is {limits.ratio}-fold)"
        )
    return entries


def _is_folder(info: zipfile.ZipInfo) -> bool:
    return info.orig_filename.endswith(("/", "\\"))


def _safe_path(info: zipfile.ZipInfo, zip_path: Path) -> PurePosixPath:
    """Return an entry's path; a backslash separates folders too, as some Windows programs write it."""
    name = info.orig_filename.replace("\\", "/")  # as it stands in the zip: `filename` ends at the first NUL
    parts = [part for part in name.removesuffix("/").split("/") if part != "."]
    kind = stat.S_IFMT(info.external_attr >> 16)
    if any(map(UNSAFE_PART.fullmatch, parts)) or not (parts or _is_folder(info)):
        problem = "a path that would leave the folder, or is no plain path"
    elif kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        problem = "a link" if kind == stat.S_IFLNK else "a device"
    elif info.flag_bits & 0x1:
        problem = "encrypted"
    elif info.compress_type not in METHODS:
        problem = f"packed by method {info.compress_type} (expected stored or deflated)"
    else:
        return PurePosixPath(*parts)
    raise ValueError(f"refused {zip_path}: its entry {info.orig_filename!r} is {problem}")


def _refuse_duplicates(entries: Sequence[Entry], zip_path: Path) -> None:
    files: set[str] = set()
    for entry in entries:
        folded = str(entry.path).casefold()  # on many systems "A" and "a" are one file
        if folded in files:
            raise ValueError(f"refused {zip_path}: it holds {str(entry.path)!r} more than once")
        files.add(folded)
    folders = {str(parent) for entry in entries for parent in entry.path.parents}
    if both := [folder for folder in folders if folder.casefold() in files]:
        raise ValueError(f"refused {zip_path}: it holds {both[0]!r} both as a file and as a folder")


def _holds(target: Path, zip_path: Path, entries: Iterable[Entry]) -> bool:
    """Tell whether a folder holds this very zip, whole."""
    try:
        record = json.loads((target / RECORD).read_text("utf-8"))
        sizes_agree = all((target / path).stat().st_size == info.file_size for info, path in entries)
    except (OSError, ValueError):
        return False
    return sizes_agree and record == _record_of(zip_path)


def _record_of(zip_path: Path) -> dict[str, object]:
    status = zip_path.stat()
    return {"zip": zip_path.name, "bytes": status.st_size, "changed_ns": status.st_mtime_ns}


def _extract(archive: zipfile.ZipFile, zip_path: Path, entries: Sequence[Entry], target: Path) -> None:
    if target.exists() and not (target / RECORD).is_file() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"will not overwrite {target}: it does not come from a zip (expected no or an empty folder)")
    total = sum(entry.info.file_size for entry in entries)
    require_space(target.parent, total)
    scratch = beside(target, "extracting")
    shutil.rmtree(scratch, ignore_errors=True)  # what a killed extraction left
    try:
        scratch.mkdir()
        with byte_bar(f"Unpacking {zip_path.name}", total) as bar:
            for entry in entries:
                _write(archive, entry, scratch / entry.path, bar)
        (scratch / RECORD).write_text(json.dumps(_record_of(zip_path)), encoding="utf-8")
        put_in_place(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _write(archive: zipfile.ZipFile, entry: Entry, path: Path, bar: "tqdm") -> None:
    """Unpack one file; `zipfile` checks its CRC when the last byte is read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with archive.open(entry.info) as packed, path.open("xb") as file:
        while written <= entry.info.file_size and (block := packed.read(BLOCK_BYTES)):
            written += file.write(block)
            bar.update(len(block))
        file.flush()
        os.fsync(file.fileno())
    if written != entry.info.file_size:
        raise zipfile.BadZipFile(f"{entry.path} announces {entry.info.file_size:,} bytes, {written:,} were unpacked")
