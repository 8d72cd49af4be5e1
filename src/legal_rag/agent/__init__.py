"""The answering agent: ReAct loop, evidence mode, instructions."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

if TYPE_CHECKING:
    from legal_rag.agent.agent import LegalReActAgent, build_agent
    from legal_rag.agent.evidence import EvidenceAgent
    from legal_rag.agent.instructions import default_instructions, instructions_of
    from legal_rag.agent.prediction import Prediction
    from legal_rag.agent.tools import build_tools
    from legal_rag.agent.tree_reasoning import tree_reasoner
    from legal_rag.llm import Budget, Usage, build_language_model, check_model, has_endpoint, is_asked
else:
    __all__, __getattr__ = lazy_exports(__name__, __file__)
