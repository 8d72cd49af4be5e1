"""Question–answer datasets generated from an index, each answer a verbatim span of its document."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

_HOMES = {
    "FullQAExtraction": "writer",
    "QAPair": "checks",
    "QuestionReport": "dataset",
    "QuestionSettings": "checks",
    "estimate": "generate",
    "find_span": "checks",
    "generate_questions": "generate",
    "qa_reward": "checks",
    "span_grounding_reward": "checks",
}
__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from legal_rag.evaluation.questions.checks import QAPair as QAPair
    from legal_rag.evaluation.questions.checks import QuestionSettings as QuestionSettings
    from legal_rag.evaluation.questions.checks import find_span as find_span
    from legal_rag.evaluation.questions.checks import qa_reward as qa_reward
    from legal_rag.evaluation.questions.checks import span_grounding_reward as span_grounding_reward
    from legal_rag.evaluation.questions.dataset import QuestionReport as QuestionReport
    from legal_rag.evaluation.questions.generate import estimate as estimate
    from legal_rag.evaluation.questions.generate import generate_questions as generate_questions
    from legal_rag.evaluation.questions.writer import FullQAExtraction as FullQAExtraction
else:
    __getattr__ = lazy_exports(__name__, _HOMES)
