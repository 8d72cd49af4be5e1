"""The plan without code: each document is asked in turn, its quotations are checked, one answer is written of them.

It is for models too weak to drive a REPL: they read one text at a time and answer in JSON. The main names are imported
when used.
"""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

_HOMES = {
    "Finding": "findings",
    "FindingsJournal": "journal",
    "PlanResult": "findings",
    "PlanSettings": "settings",
    "run_plan": "run",
}
__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from legal_rag.deep_read.plan.findings import Finding as Finding
    from legal_rag.deep_read.plan.findings import PlanResult as PlanResult
    from legal_rag.deep_read.plan.journal import FindingsJournal as FindingsJournal
    from legal_rag.deep_read.plan.run import run_plan as run_plan
    from legal_rag.deep_read.plan.settings import PlanSettings as PlanSettings
else:
    __getattr__ = lazy_exports(__name__, _HOMES)
