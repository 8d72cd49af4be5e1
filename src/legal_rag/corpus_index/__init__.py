"""The corpus index: what each document of a Library is and says, and which documents belong together, in two levels.

In: a Library. Out: level 1, one entry a document with inverted indexes, in `corpus_index.sqlite`; level 2, a document's
sections, on demand. The main names are imported when used.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "CorpusIndex": "reading",
    "CorpusIndexer": "building",
    "DocumentIndex": "records",
    "DocumentMeta": "records",
    "IncrementalIndexer": "updating",
    "has_corpus_index": "index_file",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
