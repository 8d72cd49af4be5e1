"""Which walls this system puts around a program, and which must stand before one is run.

In: what a child told of itself before it ran anything. Out: a small value, and a sentence that says what is missing.
"""

import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True)
class Walls:
    """The walls that stood around a child when it was ready."""

    system: str  # such as "Linux 6.1 (x86_64)"
    seccomp: bool = False  # only the system calls that are named
    landlock: int = 0  # version; no files but the scratch folder's; 0 if there is none
    root: bool = False  # the scratch folder is the root of all paths
    namespaces: tuple[str, ...] = ()  # what is not shared with the host
    quota: bool = False  # what is written is counted; without it nothing can be written
    limits: bool = False  # memory, file size, descriptors

    @property
    def missing(self) -> tuple[str, ...]:
        """What must be there and is not, in French; empty where programs may run."""
        files = self.landlock or self.root
        return tuple(
            name
            for name, stands in (
                ("seccomp (libseccomp.so.2)", self.seccomp),
                ("Landlock ou espaces de noms d'utilisateur", files),
                ("limites de ressources", self.limits),
            )
            if not stands
        )

    def refusal(self) -> str | None:
        """Return why no program is run here and how to run one all the same, in French; None where one may be."""
        if not self.missing:
            return None
        return (
            f"refusé : sur ce système ({self.system}), le bac à sable n'a pas tous ses murs ; il manque : "
            f"{' ; '.join(self.missing)}. Un programme écrit par un modèle pourrait lire vos fichiers ou joindre le "
            "réseau. Pour l'accepter : accept_no_walls=True ; sinon, --plan map lit sans programme."
        )


def walls_of(told: Mapping[str, Any]) -> Walls:
    """Return the walls that a child told of."""
    return Walls(
        system_name(),
        told.get("seccomp") is True,
        int(told.get("landlock") or 0),
        told.get("root") is True,
        tuple(told.get("namespaces") or ()),
        told.get("quota") is True,
        told.get("limits") is True,
    )


def walls() -> Walls:
    """Return the walls of this system, tried out by a child process that runs no program."""
    from legal_rag.deep_read.sandbox_process import StartError

    if sys.platform == "win32":
        return Walls(system_name())
    try:
        return _tried_out()
    except (StartError, OSError):
        return Walls(system_name())


@cache
def _tried_out() -> Walls:
    from legal_rag.deep_read.sandbox_process import Child

    child = Child()
    try:
        return walls_of(child.begin({"functions": {}, "values": {}, "output_chars": 0, "memory": 1 << 28}, 0))
    finally:
        child.end()


def system_name() -> str:
    """Return the system's name, version and architecture."""
    return f"{platform.system()} {platform.release()} ({platform.machine()})"
