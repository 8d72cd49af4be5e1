"""Atomic writes, folder swaps, locks and progress bars."""

import errno
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from legal_rag.base.text import printable

if TYPE_CHECKING:
    from tqdm import tqdm


# How a system refuses to make a file or folder.
REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.EEXIST, errno.ENOTDIR)
LINE_SECONDS = 30.0  # between two lines of progress
LINE = "{desc}: {n_fmt} of {total_fmt}{unit}, {rate_fmt}, {remaining} left"


def cache_folder() -> Path:
    """Return the folder for what can be made again: `LEGAL_RAG_CACHE`, or the user's cache folder."""
    import platformdirs

    return Path(os.environ.get("LEGAL_RAG_CACHE") or platformdirs.user_cache_dir("legal_rag"))


def require_space(folder: Path, needed: int) -> None:
    """Refuse to start on what will not fit.

    OSError if the disk that `folder` lies on has fewer than `needed` bytes free.
    """
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OSError(f"not enough space in {folder}: {needed:,} bytes needed, {free:,} free")


@contextmanager
def locked(target: Path) -> Iterator[None]:
    """Lock `target` against other processes that would make it; its folder is created.

    ValueError if another process is making it; OSError if the folder cannot be made or written in.
    """
    from filelock import FileLock, Timeout

    lock = beside(target, "lock")
    with written_in(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(lock, os.O_RDWR | os.O_CREAT, 0o644))  # a lock that cannot be made looks held to filelock
    try:
        with FileLock(lock, timeout=0):
            yield
    except Timeout as error:
        raise ValueError(f"another process is making {target}: wait for it to end") from error


@contextmanager
def written_in(folder: Path) -> Iterator[None]:
    """Name a folder in the error where it cannot be made, or nothing can be written in it.

    OSError of the system's own class.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in REFUSED:
            raise
        reason = "it is a file" if folder.is_file() else error.strerror
        raise type(error)(f"cannot write in {folder}: {reason}") from error


def beside(path: Path, suffix: str) -> Path:
    """Return the hidden path next to `path` for what belongs to it."""
    return path.parent / f".{path.name}.{suffix}"


def put_in_place(new: Path, target: Path) -> None:
    """Move a finished folder to the place of `target`.

    A kill between the two renamings leaves no `target`, and the folder that was there at `beside(target, "previous")`.
    """
    previous = beside(target, "previous")
    if target.exists():  # else `previous` may be all there is, left by such a kill
        shutil.rmtree(previous, ignore_errors=True)
        os.replace(target, previous)
    os.replace(new, target)
    sync(target.parent)
    shutil.rmtree(previous, ignore_errors=True)


@contextmanager
def made_once(target: Path) -> Iterator[Path]:
    """Yield a folder to fill, which on leaving becomes `target`, unless another process has made that.

    After an error or a kill, `target` holds nothing incomplete.
    """
    with written_in(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".converting-", dir=target.parent))
    try:
        yield scratch
        os.replace(scratch, target)
    except OSError:
        if not target.is_dir():  # else another process was faster, and its folder is as good
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def restore(target: Path) -> None:
    """Bring back the folder that a swap cut off left at `beside(target, "previous")`, or delete it once replaced."""
    previous = beside(target, "previous")
    if previous.is_dir() and not target.exists():
        os.replace(previous, target)
        sync(target.parent)
    shutil.rmtree(previous, ignore_errors=True)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file atomically: a reader sees the old content or the new one, also after a power cut."""
    with written_whole(path) as file:
        file.write(content if isinstance(content, bytes) else content.encode())


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write that replaces `path` on leaving; after an error the old content stays."""
    new = beside(path, "new")
    try:
        with written_in(path.parent):
            file = new.open("wb")
        with file:
            yield file
        sync(new)
        os.replace(new, path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    sync(path.parent)


def link_or_copy(source: str | Path, target: str | Path) -> None:
    """Hard-link a file, or copy it where the disk has no hard links."""
    Path(target).unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def parse_json(text: str) -> Any:
    """Parse JSON that anyone may have written.

    ValueError if it is not JSON, nested too deeply, or holds a number of more than 4,300 digits.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def sha256_of(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Make sure that a file or folder is on the disk itself; folders cannot be synced on every system."""
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except PermissionError:  # Windows does not open folders
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _LineStream:
    """A stream for tqdm without a terminal: each state of a bar becomes a line on stderr."""

    def __init__(self) -> None:
        self._count = ""  # of the last line: closing a bar writes its last state again

    def write(self, text: str) -> None:
        line = text.strip()
        if line and (count := line.partition(",")[0]) != self._count:
            self._count = count
            sys.stderr.write(f"{line}\n")

    def flush(self) -> None:
        sys.stderr.flush()


def progress(what: str, **settings: Any) -> "tqdm":
    """Open a progress bar titled `what`; without a terminal or a notebook it is a line every `LINE_SECONDS`.

    `settings` are tqdm's, such as `iterable`, `total` and `unit`.
    """
    from tqdm import tqdm

    what = printable(what)
    in_notebook = type(sys.stderr).__module__.startswith("ipykernel")
    if in_notebook and find_spec("ipywidgets"):
        from tqdm.notebook import tqdm as widgets

        return widgets(desc=what, **settings)
    if sys.stderr.isatty() or in_notebook:
        return tqdm(desc=what, file=getattr(sys.stderr, "raw", sys.stderr), **settings)  # a bar moves the cursor
    lines = type("LineProgress", (tqdm,), {"monitor_interval": 0})  # no thread: later forks would not survive it
    pace = {"delay": LINE_SECONDS, "mininterval": LINE_SECONDS, "miniters": 1}
    bar: tqdm = lines(desc=what, file=_LineStream(), position=0, bar_format=LINE, **pace, **settings)
    return bar


def byte_bar(what: str, total: int | None, done: int = 0) -> "tqdm":
    """Open a progress bar in bytes: `total`, if known, of which `done` were there before."""
    return progress(what, total=total, initial=done, unit="B", unit_scale=True)
