"""Datasets of questions: grounded French question–answer pairs made from an index, by a model or without one.

In: a Library. Out: a folder that `datasets` and `legal-rag evaluate` read, each answer the very text of its document.
"""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports
from legal_rag.question_settings import QuestionSettings
from legal_rag.questions.checks import QAPair, find_span, qa_reward, span_grounding_reward
from legal_rag.questions.dataset import QuestionReport
from legal_rag.questions.generate import generate_questions

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

if TYPE_CHECKING:
    from legal_rag.questions.writer import FullQAExtraction as FullQAExtraction
else:  # importing DSPy takes a second
    __getattr__ = lazy_exports(__name__, {"FullQAExtraction": "writer"})
