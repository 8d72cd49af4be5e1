"""Language models where notebooks look for them: the names of `legal_rag.llm` that an agent takes."""

from typing import Any

from legal_rag import llm


def __getattr__(name: str) -> Any:
    return getattr(llm, name)  # only now: some need DSPy, which the core does without
