"""An answer as a page, a Word document or lines of text; a document with its outline; saved answers."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

if TYPE_CHECKING:
    from legal_rag.report.brief import answer_bibtex, answer_docx
    from legal_rag.report.lines import event_line
    from legal_rag.report.outline import render_outline, show_outline
    from legal_rag.report.page import render_answer, show_answer
    from legal_rag.report.saved_answers import SavedAnswers
else:
    __all__, __getattr__ = lazy_exports(__name__, __file__)
