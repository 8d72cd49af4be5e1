"""The plan without code: each document is asked in turn, its quotations are checked, one answer is written of them.

It is for models too weak to drive a REPL: they read one text at a time and answer in JSON. The main names are imported
when used.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "Finding": "findings",
    "FindingsJournal": "journal",
    "PlanResult": "findings",
    "PlanSettings": "settings",
    "run_plan": "run",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
