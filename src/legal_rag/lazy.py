"""Lazy exports and optional packages: what is heavy is imported when it is used, what is missing is named."""

import ast
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# The extra that brings a package which the core does without, by the package's top module.
EXTRAS = {
    "Stemmer": "eval",
    "bm25s": "eval",
    "datasets": "datasets",
    "dspy": "agent",
    "fast_plaid": "colbert",
    "langextract": "langextract",
    "litellm": "agent",
    "matplotlib": "eval",
    "pyarrow": "datasets",
    "pylate": "colbert",
    "ray": "ray",
    "rlm": "agent",
    "torch": "colbert",
    "transformers": "colbert",
}


def install_command(extra: str) -> str:
    """Return how to install an extra."""
    return f"pip install 'legal-rag[{extra}]', or in a clone pip install '.[{extra}]'"


class MissingExtraError(ModuleNotFoundError):
    """A package of an extra is not installed; the message says how to install it."""

    def __init__(self, module: str, advice: str = "") -> None:
        top = module.partition(".")[0]
        more = f" ({advice})" if advice else ""
        super().__init__(f"{top} is not installed: {install_command(EXTRAS[top])}{more}", name=module)


def require(module: str, advice: str = "") -> None:
    """Check that an optional package is installed, before work that needs it; `advice` says what goes without it.

    Raises:
        MissingExtraError: If it is not installed.
    """
    if find_spec(module) is None:
        raise MissingExtraError(module, advice)


def missing_extra(error: ModuleNotFoundError) -> MissingExtraError | None:
    """Return the error that names the extra to install; None if the module that is missing belongs to none."""
    if isinstance(error, MissingExtraError):
        return error
    top = (error.name or "").partition(".")[0]
    return MissingExtraError(top) if top in EXTRAS else None


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
        try:
            return getattr(import_module(str(homes[name])), name)
        except ModuleNotFoundError as error:
            raise missing_extra(error) or error from None

    return sorted(homes), __getattr__
