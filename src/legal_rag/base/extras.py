"""Lazy exports and optional packages: what is heavy is imported when it is used, what is missing is named."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import lazy_loader

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
    "mcp": "mcp",
    "pandas": "datasets",
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

    MissingExtraError if it is not installed.
    """
    if find_spec(module) is None:
        raise MissingExtraError(module, advice)


def missing_extra(error: ModuleNotFoundError) -> MissingExtraError | None:
    """Return the error that names the extra to install; None if the module that is missing belongs to none."""
    if isinstance(error, MissingExtraError):
        return error
    top = (error.name or "").partition(".")[0]
    return MissingExtraError(top) if top in EXTRAS else None


def exports(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make a package's `__getattr__`, `__dir__` and `__all__` (PEP 562) of its `__name__` and `__file__`.

    They export the names in its `__init__.pyi`; a module is imported when a name of it is first used.
    """
    attribute, names, exported = lazy_loader.attach_stub(package, file)

    def __getattr__(name: str) -> Any:  # noqa: N807
        try:
            return attribute(name)
        except ModuleNotFoundError as error:
            raise missing_extra(error) or error from None

    return __getattr__, names, exported
