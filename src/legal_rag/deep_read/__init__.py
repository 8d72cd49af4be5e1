"""Deep reading: questions over many decisions, answered by sandboxed programs or by map-reduce."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

if TYPE_CHECKING:
    from legal_rag.deep_read.agent_tool import deep_read_tool
    from legal_rag.deep_read.functions import CachedCorpusREPL, MultiDocREPL, create_multi_doc_env
    from legal_rag.deep_read.multi_doc_rlm import MultiDocRLM
    from legal_rag.deep_read.reading import deep_read
    from legal_rag.deep_read.sandbox import Sandbox, SandboxResult
    from legal_rag.deep_read.settings import DEEP_READ_BUDGET, Limits
    from legal_rag.deep_read.trace import read_trace, show_trace
else:
    __all__, __getattr__ = lazy_exports(__name__, __file__)
