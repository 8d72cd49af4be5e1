"""The sandbox's scratch folder: made for a user without rights where that is possible, deleted whatever is in it.

In: nothing but this process's own rights. Out: an empty folder and whose it is; later, no folder.
"""

import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

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
    path = Path(tempfile.mkdtemp(prefix="legal-rag-"))
    if not _may_become_others():
        return Scratch(path, None)
    os.chown(path, NOBODY, NOBODY)
    return Scratch(path, NOBODY)


def _may_become_others() -> bool:
    status = Path("/proc/self/status")
    if os.geteuid() != 0 or not status.exists():
        return False
    held = next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("CapEff:"))
    return int(held, 16) & NEEDED == NEEDED


def delete(folder: Path) -> None:
    """Delete a folder and what is in it, whatever its names and modes; links are not followed."""

    def retry(function: Any, path: str, _: Any) -> None:
        with suppress(OSError):
            for place in (Path(path).parent, Path(path)):
                if stat.S_ISDIR(place.lstat().st_mode):
                    place.chmod(0o700)
            function(path)

    shutil.rmtree(folder, onerror=retry)
    shutil.rmtree(folder, ignore_errors=True)  # what has become readable meanwhile
