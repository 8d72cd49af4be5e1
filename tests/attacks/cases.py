"""What an attack is to the campaign: something to do in some place, and what honestly came of it."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


class Outcome(NamedTuple):
    """What came of an attack."""

    contained: int  # attempts of the case that were; True is one
    line: str  # the one line that a user reads of it, or of the first that was not contained


@dataclass(frozen=True)
class Place:
    """Where attacks happen."""

    library: Path  # of twenty decisions, with everything that can be built; not to be changed
    folder: Path  # of one case; deleted after it

    def copy(self) -> Path:
        """Return a private copy of the Library, in the folder of the case."""
        return shutil.copytree(self.library, self.folder / "library", dirs_exist_ok=True)


@dataclass(frozen=True)
class Case:
    """One attack, or several that are quicker together; the same for the same seed."""

    name: str  # one in its module
    run: Callable[[Place], Outcome]
    seconds: float  # its stated limit, within which it must come back
    attempts: int = 1
