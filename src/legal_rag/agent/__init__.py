"""The answering agent: language model, ReAct loop, evidence mode, budgets, instructions."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

_HOMES = {
    "Budget": "budget",
    "EvidenceAgent": "evidence",
    "LegalReActAgent": "agent",
    "Prediction": "prediction",
    "Usage": "budget",
    "build_agent": "agent",
    "build_language_model": "llm",
    "build_tools": "tools",
    "default_instructions": "instructions",
    "has_endpoint": "llm",
    "instructions_of": "instructions",
    "use_reply_cache": "llm",
}
__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from legal_rag.agent.agent import LegalReActAgent as LegalReActAgent
    from legal_rag.agent.agent import build_agent as build_agent
    from legal_rag.agent.budget import Budget as Budget
    from legal_rag.agent.budget import Usage as Usage
    from legal_rag.agent.evidence import EvidenceAgent as EvidenceAgent
    from legal_rag.agent.instructions import default_instructions as default_instructions
    from legal_rag.agent.instructions import instructions_of as instructions_of
    from legal_rag.agent.llm import build_language_model as build_language_model
    from legal_rag.agent.llm import has_endpoint as has_endpoint
    from legal_rag.agent.llm import use_reply_cache as use_reply_cache
    from legal_rag.agent.prediction import Prediction as Prediction
    from legal_rag.agent.tools import build_tools as build_tools
else:
    __getattr__ = lazy_exports(__name__, _HOMES)
