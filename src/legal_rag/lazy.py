"""Lazy exports: a package names its public objects without importing the heavy modules that define them."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_exports(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Make a package's module-level `__getattr__` (PEP 562), which imports a public name when it is first asked for.

    Type checkers do not follow it: the package imports the same names under `TYPE_CHECKING`.

    Args:
        package: The package's `__name__`.
        homes: For each public name the module that defines it, relative to the package ("rules.parties"), or absolute
            if it lies in another room ("legal_rag.library.filters").
    """

    def __getattr__(name: str) -> Any:  # noqa: N807
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        return getattr(import_module(home if home.startswith("legal_rag.") else f"{package}.{home}"), name)

    return __getattr__
