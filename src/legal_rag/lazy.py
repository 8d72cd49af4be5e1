"""Lazy exports: a package names its public objects without importing the heavy modules that define them."""

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_exports(package: str, file: str) -> tuple[list[str], Callable[[str], Any]]:
    """Make a package's `__all__` and `__getattr__` (PEP 562) of what it imports for type checkers.

    The imports under `if TYPE_CHECKING` are parsed, not run: a module is imported when a name of it is first used.

    Args:
        package: The package's `__name__`.
        file: Its `__file__`.
    """
    body = ast.parse(Path(file).read_bytes()).body
    imports = next(node.body for node in body if isinstance(node, ast.If))
    homes = {alias.name: node.module for node in imports if isinstance(node, ast.ImportFrom) for alias in node.names}

    def __getattr__(name: str) -> Any:  # noqa: N807
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(str(homes[name])), name)

    return sorted(homes), __getattr__
