"""What this process has going: the processes that it started, its open files. A sandbox must leave none of either."""

import contextlib
import gc
from pathlib import Path


def children() -> set[int]:
    """Return the processes that this one has started and not buried, stopped and dead ones too."""
    found: set[int] = set()
    for task in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended meanwhile
            found |= {int(pid) for pid in task.read_text().split()}
    return found


def is_running(pid: int | str) -> bool:
    """Tell whether a process is there and has not ended, buried or not."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def open_files() -> set[int]:
    """Return the descriptors that are open once garbage has let go of its own; others' threads may close some more."""
    gc.collect()
    listed = list(Path("/proc/self/fd").iterdir())  # with that of the listing, which is closed by now
    return {int(one.name) for one in listed if one.is_symlink()}
