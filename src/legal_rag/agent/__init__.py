"""The answering agent: ReAct loop, evidence mode, instructions."""

from legal_rag.base.extras import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
