"""Question–answer datasets generated from documents, each answer a verbatim span of its document."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

if TYPE_CHECKING:
    from legal_rag.evaluation.questions.checks import (
        QAPair,
        QuestionSettings,
        find_span,
        qa_reward,
        span_grounding_reward,
    )
    from legal_rag.evaluation.questions.dataset import QuestionReport
    from legal_rag.evaluation.questions.documents import SourceDocuments
    from legal_rag.evaluation.questions.generate import estimate, generate_questions
    from legal_rag.evaluation.questions.writer import FullQAExtraction
else:
    __all__, __getattr__ = lazy_exports(__name__, __file__)
