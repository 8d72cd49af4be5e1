"""Deep reading: questions over whole decisions and whole corpora, answered by programs that a model writes.

In: a question and a Library. Out: a `Prediction`. The main names are imported when used.
"""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

_HOMES = {
    "CachedCorpusREPL": "cached",
    "Limits": "sandbox",
    "MultiDocREPL": "functions",
    "MultiDocRLM": "reader",
    "Sandbox": "sandbox",
    "SandboxResult": "sandbox",
    "create_multi_doc_env": "functions",
    "deep_read": "reading",
    "deep_read_tool": "agent_tool",
}
__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from legal_rag.deep_read.agent_tool import deep_read_tool as deep_read_tool
    from legal_rag.deep_read.cached import CachedCorpusREPL as CachedCorpusREPL
    from legal_rag.deep_read.functions import MultiDocREPL as MultiDocREPL
    from legal_rag.deep_read.functions import create_multi_doc_env as create_multi_doc_env
    from legal_rag.deep_read.reader import MultiDocRLM as MultiDocRLM
    from legal_rag.deep_read.reading import deep_read as deep_read
    from legal_rag.deep_read.sandbox import Limits as Limits
    from legal_rag.deep_read.sandbox import Sandbox as Sandbox
    from legal_rag.deep_read.sandbox import SandboxResult as SandboxResult
else:
    __getattr__ = lazy_exports(__name__, _HOMES)
