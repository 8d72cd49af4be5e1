"""Thirty questions over the shared decisions that no first ten passages can answer, each with its exact answer.

In: nothing. Out: `QUESTIONS`: what is asked, the programs that a root model would write for it, and an oracle that
computes the answer from the rows of the corpus without the toolkit.
"""

from deep_read_questions import courts, elections, links, sanctions
from deep_read_questions.form import Question

QUESTIONS: tuple[Question, ...] = (
    *elections.QUESTIONS, *sanctions.QUESTIONS, *courts.QUESTIONS, *links.QUESTIONS,
)  # fmt: skip
