"""Datasets of questions: grounded French question–answer pairs made from an index, by a model or without one.

In: a Library. Out: a folder that `datasets` and `legal-rag evaluate` read, each answer the very text of its document.
"""

from typing import Any

from legal_rag.question_settings import QuestionSettings
from legal_rag.questions.checks import QAPair, find_span, qa_reward, span_grounding_reward
from legal_rag.questions.generate import generate_questions
from legal_rag.questions.report import QuestionReport

__all__ = [
    "FullQAExtraction",
    "QAPair",
    "QuestionReport",
    "QuestionSettings",
    "find_span",
    "generate_questions",
    "qa_reward",
    "span_grounding_reward",
]


def __getattr__(name: str) -> Any:
    if name == "FullQAExtraction":  # only when asked for: importing DSPy takes a second
        from legal_rag.questions.writer import FullQAExtraction

        return FullQAExtraction
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
