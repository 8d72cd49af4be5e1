"""Deep reading: questions over many decisions, answered by sandboxed programs or by map-reduce."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

_HOMES = {
    "CachedCorpusREPL": "environment",
    "Limits": "sandbox.sandbox",
    "MultiDocREPL": "functions",
    "MultiDocRLM": "multi_doc_rlm",
    "Sandbox": "sandbox.sandbox",
    "SandboxResult": "sandbox.sandbox",
    "create_multi_doc_env": "environment",
    "deep_read": "reading",
    "deep_read_tool": "agent_tool",
    "read_trace": "trace",
    "show_trace": "trace_view",
}
__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from legal_rag.deep_read.agent_tool import deep_read_tool as deep_read_tool
    from legal_rag.deep_read.environment import CachedCorpusREPL as CachedCorpusREPL
    from legal_rag.deep_read.environment import create_multi_doc_env as create_multi_doc_env
    from legal_rag.deep_read.functions import MultiDocREPL as MultiDocREPL
    from legal_rag.deep_read.multi_doc_rlm import MultiDocRLM as MultiDocRLM
    from legal_rag.deep_read.reading import deep_read as deep_read
    from legal_rag.deep_read.sandbox.sandbox import Limits as Limits
    from legal_rag.deep_read.sandbox.sandbox import Sandbox as Sandbox
    from legal_rag.deep_read.sandbox.sandbox import SandboxResult as SandboxResult
    from legal_rag.deep_read.trace import read_trace as read_trace
    from legal_rag.deep_read.trace_view import show_trace as show_trace
else:
    __getattr__ = lazy_exports(__name__, _HOMES)
