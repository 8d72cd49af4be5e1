"""The folder of a Library's saved runs: who may write there now, and how it stays when the Library is replaced.

In: the Library's folder, and the one that takes its place. Out: the runs in the new one, also those that other
processes save meanwhile: they wait until it is in place, and save there.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from legal_rag.folders import beside, link_or_copy
from legal_rag.library import RUNS

PATIENCE_SECONDS = 10.0  # that a writer waits for another: what is done meanwhile takes moments


@contextmanager
def writing_runs(library: Path) -> Iterator[None]:
    """Keep others from writing into a Library's folder of runs, and from moving it away.

    Args:
        library: The Library's folder. The lock lies beside it, where it stays when the folder is replaced.

    Raises:
        OSError: If another process does not let go of it.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(beside(library, f"{RUNS}.lock"), timeout=PATIENCE_SECONDS)
    try:
        lock.acquire()
    except Timeout as error:
        raise OSError(f"another process has been writing there for {PATIENCE_SECONDS:.0f} seconds") from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def runs_taken_along(old: Path, new: Path) -> Iterator[None]:
    """Give a Library's runs to the folder that takes its place, and keep others from saving until the block ends.

    Args:
        old: The Library's folder, which the block moves away.
        new: The folder that the block puts in its place; runs that lie there already go.
    """
    shutil.rmtree(new / RUNS, ignore_errors=True)
    if not old.is_dir():
        yield
        return
    with writing_runs(old):
        for file in (old / RUNS).glob("*.json"):
            (new / RUNS).mkdir(exist_ok=True)
            link_or_copy(file, new / RUNS / file.name)
        yield
