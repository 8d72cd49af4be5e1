"""Deep reading: questions over whole decisions and whole corpora, answered by programs that a model writes.

In: a question and a Library. Out: a `Prediction`. The main names are imported when used.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "CachedCorpusREPL": "cached",
    "Limits": "sandbox",
    "MultiDocREPL": "functions",
    "MultiDocRLM": "reader",
    "Sandbox": "sandbox",
    "SandboxResult": "sandbox",
    "create_multi_doc_env": "functions",
    "deep_read": "reading",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
