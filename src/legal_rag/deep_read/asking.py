"""Asking a model about whole documents: one, or many at once.

In: questions, documents, a model. Out: its answers as text. A long document is read in windows that overlap, and the
answers are made one; nothing is cut. What fails is told in the answer, except that the budget is spent: that ends all.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from legal_rag.budget import BudgetExceededError
from legal_rag.corpus import Document
from legal_rag.deep_read.asking_texts import (
    NO_ANSWER,
    error_text,
    is_no_answer,
    joined,
    merge_prompt,
    unread_text,
    window_prompt,
)
from legal_rag.deep_read.in_parallel import in_parallel
from legal_rag.deep_read.models import SubCallError, SubModel
from legal_rag.reading_window import Window, window_of

WINDOW_CHARS = 40_000  # of a document, in one prompt: some 11,500 tokens
OVERLAP_CHARS = 1000  # at least a piece of a window is read again in the next one
MOST_MERGED = 20  # answers made one by one call
WORKERS = 8  # calls at once


class AnswersCutShortError(BudgetExceededError):
    """The budget was spent while documents were asked; `partial` holds the answers by document that came before."""

    def __init__(self, error: BudgetExceededError, partial: dict[str, str]) -> None:
        Exception.__init__(self, error.notice)
        self.limit, self.notice, self.partial = error.limit, error.notice, partial


class _Part(NamedTuple):
    """What came of asking about one window."""

    window: Window
    answer: str  # empty where the call failed
    error: str = ""  # in French


class Asker:
    """Asks one model about texts; threads may share it."""

    def __init__(self, model: SubModel, *, window_chars: int = WINDOW_CHARS, workers: int = WORKERS) -> None:
        """Prepare.

        Args:
            model: That is asked.
            window_chars: Characters of a document in one prompt.
            workers: Calls at once.

        Raises:
            ValueError: If one of them is below 1.
        """
        for name, value in (("window_chars", window_chars), ("workers", workers)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        self.model, self.workers = model, workers
        self._window_chars = window_chars

    def query(self, prompt: str) -> str:
        """Return the reply to a prompt; "Erreur : …" where the model fails.

        Raises:
            BudgetExceededError: If the budget has no room for the call.
        """
        try:
            return self.model.query(prompt)
        except SubCallError as error:
            return error_text(str(error))

    def query_all(self, prompts: Sequence[str]) -> list[str]:
        """Return the replies to some prompts, in their order; see `query`.

        Raises:
            AnswersCutShortError: If the budget is spent; the partial answers go by the numbers of the prompts, from 0.
        """
        done = in_parallel(self.query, prompts, self.workers)
        if done.error is not None:
            raise _cut_short(done.error, {str(number): reply for number, reply in done.results.items()})
        return list(done.results.values())

    def about(self, question: str, document: Document) -> str:
        """Ask a question about one document, of any length.

        Returns:
            The answer, with markers that cite the document; `NO_ANSWER` where it gives none; "Erreur : …" where the
            model fails. Where it failed for some windows only, their places stand behind the answer of the others.

        Raises:
            AnswersCutShortError: If the budget is spent.
        """
        return self._about(question, document, self.workers)

    def across(self, question: str, doc_ids: Sequence[str], find: Callable[[str], Document]) -> dict[str, str]:
        """Ask the same question about several documents; the answers are as of `about`, in the order of the ids.

        Args:
            question: In French.
            doc_ids: Each is asked once.
            find: Returns the document that an id means, or raises LookupError with a French sentence, which becomes
                its answer.

        Raises:
            AnswersCutShortError: If the budget is spent, after the calls under way have ended.
        """
        asked = list(dict.fromkeys(doc_ids))
        done = in_parallel(lambda doc_id: self._one_of_many(question, doc_id, find), asked, self.workers)
        answers = {asked[number]: answer for number, answer in done.results.items()}
        if done.error is None:
            return answers
        begun = done.error.partial if isinstance(done.error, AnswersCutShortError) else {}
        raise _cut_short(done.error, answers | begun)

    def _one_of_many(self, question: str, doc_id: str, find: Callable[[str], Document]) -> str:
        try:
            document = find(doc_id)
        except LookupError as error:
            return error_text(str(error.args[0]))
        try:
            return self._about(question, document, 1)
        except AnswersCutShortError as error:  # by the id that was asked for
            raise AnswersCutShortError(error, dict.fromkeys([doc_id], "".join(error.partial.values()))) from error

    def _about(self, question: str, document: Document, workers: int) -> str:
        windows = windows_of(document.content, self._window_chars)
        if len(windows) == 1:
            part = self._read(question, document, windows, 0)
            return error_text(part.error) if part.error else part.answer
        done = in_parallel(lambda number: self._read(question, document, windows, number), range(len(windows)), workers)
        parts = list(done.results.values())
        if done.error is not None:
            raise _cut_short(done.error, {document.id: _so_far(parts)} if parts else {})
        return self._made_one(question, document, parts)

    def _read(self, question: str, document: Document, windows: Sequence[Window], number: int) -> _Part:
        try:
            answer = self.model.query(window_prompt(question, document, windows, number))
        except SubCallError as error:
            return _Part(windows[number], "", str(error))
        return _Part(windows[number], NO_ANSWER if is_no_answer(answer) else answer)

    def _made_one(self, question: str, document: Document, parts: Sequence[_Part]) -> str:
        """Make one answer of those to all windows of a document."""
        failed = [one for one in parts if one.error]
        if len(failed) == len(parts):
            return error_text(failed[0].error)
        found = [one.answer for one in parts if one.answer not in ("", NO_ANSWER)]
        try:
            answer = self._merged(question, document, found) if found else NO_ANSWER
        except SubCallError as error:
            answer = joined([f"{error_text(str(error))}. Réponses des parties :", *found])
        except BudgetExceededError as error:
            raise AnswersCutShortError(error, {document.id: _so_far(parts)}) from error
        return joined([answer, *(unread_text(one.window, one.error) for one in failed)])

    def _merged(self, question: str, document: Document, answers: Sequence[str]) -> str:
        while len(answers) > 1:
            groups = _groups(answers, self._window_chars)
            answers = [
                some[0] if len(some) == 1 else self.model.query(merge_prompt(question, document, some))
                for some in groups
            ]
        return answers[0]


def windows_of(content: str, most: int = WINDOW_CHARS, overlap: int = OVERLAP_CHARS) -> list[Window]:
    """Return windows that hold all of a text, each but the first beginning within the end of the one before.

    Args:
        content: The whole text.
        most: Characters of a window; it ends behind a sentence.
        overlap: Characters that a window repeats of the one before, at most; it begins where a piece of that one does.
    """
    windows = [window_of(content, 0, most)]
    while windows[-1].end < len(content):
        following = window_of(content, _next_start(windows[-1], overlap), most)
        if following.end <= windows[-1].end:  # the overlap leaves no room for a whole sentence more
            following = window_of(content, windows[-1].end, most)
        windows.append(following)
    return [one for one in windows if one.pieces] or windows[:1]


def _next_start(window: Window, overlap: int) -> int:
    starts = (start for start, _ in window.pieces if start >= window.end - overlap and start > window.start)
    return next(starts, window.end)


def _groups(answers: Sequence[str], most_chars: int) -> list[list[str]]:
    """Put neighbours together, at least two and at most as many as one prompt holds."""
    groups: list[list[str]] = [[]]
    for answer in answers:
        last = groups[-1]
        is_full = len(last) >= MOST_MERGED or sum(map(len, last)) + len(answer) > most_chars
        if len(last) >= 2 and is_full:
            groups.append([answer])
        else:
            last.append(answer)
    return groups


def _so_far(parts: Sequence[_Part]) -> str:
    """Return what the windows that were read had to say, each with its place."""
    said = [one for one in parts if one.answer]
    return joined([f"Partie chars {one.window.start}-{one.window.end} : {one.answer}" for one in said])


def _cut_short(error: BaseException, partial: dict[str, str]) -> BaseException:
    return AnswersCutShortError(error, partial) if isinstance(error, BudgetExceededError) else error
