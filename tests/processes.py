"""Which processes this one has started: those of a sandbox must be gone when it is."""

from pathlib import Path


def children() -> set[int]:
    """Return the processes that this one has started and not buried, stopped and dead ones too."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(pid) for task in tasks for pid in task.read_text().split()}
