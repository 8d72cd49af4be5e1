from .brief import answer_bibtex as answer_bibtex
from .brief import answer_docx as answer_docx
from .lines import event_line as event_line
from .outline import render_outline as render_outline
from .outline import show_outline as show_outline
from .page import render_answer as render_answer
from .page import show_answer as show_answer
from .saved_answers import SavedAnswers as SavedAnswers
