"""The sandbox's scratch folder: made for a user without rights where that is possible, deleted whatever is in it.

In: nothing but this process's own rights. Out: an empty folder and whose it is; later, no folder.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

NOBODY = 65534
NEEDED = 0b1110_0001  # root's capabilities to chown, kill, setgid and setuid, as bits


class Scratch(NamedTuple):
    """A folder for one child."""

    path: Path
    user: int | None  # whom the child is to become; None: it stays who it is


def make() -> Scratch:
    """Make a folder that no other user can look into.

    Raises:
        OSError: If there is no place for it.
    """
    path = Path(tempfile.mkdtemp(prefix="legal-rag-sandbox-"))
    if not _may_become_others():
        return Scratch(path, None)
    try:
        os.chown(path, NOBODY, NOBODY)
    except OSError:  # a disk of another machine, where root is nobody special
        return Scratch(path, None)
    return Scratch(path, NOBODY)


def _may_become_others() -> bool:
    status = Path("/proc/self/status")
    if os.geteuid() != 0 or not status.exists():
        return False
    held = next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("CapEff:"))
    return int(held, 16) & NEEDED == NEEDED


def delete(folder: Path) -> None:
    """Delete a folder and what is in it, whatever its names and modes; links are not followed."""
    for parent, names, _ in os.walk(folder):
        for name in names:
            inside = Path(parent, name)
            if not inside.is_symlink():
                inside.chmod(0o700)  # before `walk` looks into it
    shutil.rmtree(folder, ignore_errors=True)
