"""Word lists of the package, kept in TOML files next to the modules that use them."""

import tomllib
from functools import cache
from importlib.resources import files


@cache
def read_words(package: str, name: str = "words.toml") -> dict[str, tuple[str, ...]]:
    """Read the lists of a package's file: a text is split at blanks, an array keeps its items.

    Args:
        package: Whose folder has the file, e.g. 'legal_rag.corpus_index'.
        name: Of the file.
    """
    lists = tomllib.loads((files(package) / name).read_text("utf-8"))
    return {name: tuple(words.split() if isinstance(words, str) else words) for name, words in lists.items()}
