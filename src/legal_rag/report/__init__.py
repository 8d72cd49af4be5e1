"""An answer as a self-contained page, as lines of text, or kept on disk."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

_HOMES = {
    "SavedAnswers": "saved_answers",
    "event_line": "lines",
    "render_answer": "page",
    "show_answer": "page",
}
__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from legal_rag.report.lines import event_line as event_line
    from legal_rag.report.page import render_answer as render_answer
    from legal_rag.report.page import show_answer as show_answer
    from legal_rag.report.saved_answers import SavedAnswers as SavedAnswers
else:
    __getattr__ = lazy_exports(__name__, _HOMES)
