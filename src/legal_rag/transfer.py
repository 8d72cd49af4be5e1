"""What fetching and unpacking share: a progress bar, a look at the free space, a lock."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tqdm import tqdm


def byte_bar(what: str, total: int | None, done: int = 0) -> "tqdm":
    """Open a bar that counts bytes, on stderr: shown in a terminal and in a notebook, not in a log.

    Args:
        what: What is going on, e.g. `Downloading index.zip`.
        total: Bytes in all, if known.
        done: Bytes that were there before.
    """
    from tqdm import tqdm

    watched = sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel")
    return tqdm(desc=what, total=total, initial=done, unit="B", unit_scale=True, file=sys.stderr, disable=not watched)


def require_space(folder: Path, needed: int) -> None:
    """Refuse to start on what will not fit.

    Raises:
        OSError: If the disk that `folder` lies on has fewer than `needed` bytes free.
    """
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OSError(f"not enough space in {folder}: {needed:,} bytes needed, {free:,} free")


@contextmanager
def locked(target: Path) -> Iterator[None]:
    """Keep other processes from making `target` meanwhile; its folder is created.

    Raises:
        ValueError: If another process is making it.
    """
    from filelock import FileLock, Timeout

    target.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(beside(target, "lock"), timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise ValueError(f"another process is making {target}: wait for it to end") from error
    try:
        yield
    finally:
        lock.release()


def beside(path: Path, suffix: str) -> Path:
    """Return the hidden place beside `path` for what belongs to it."""
    return path.parent / f".{path.name}.{suffix}"
