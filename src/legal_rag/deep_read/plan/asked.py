"""Ask a model for a reply of a certain form, and once more if the reply is unusable."""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from legal_rag.deep_read.models import SubCallError, SubModel
from legal_rag.deep_read.plan.prompts import again
from legal_rag.failures import FAILURES, EmptyAnswerError, UnreadableReplyError, reason_in_french

T = TypeVar("T")

UNREADABLE = reason_in_french(UnreadableReplyError())
_NOTHING = reason_in_french(EmptyAnswerError())
_TOO_LONG = FAILURES["ContextWindowExceededError"]
# What the next question would be refused for as well.
_LASTING = ("LMAuthError", "LMBillingError", "LMUnsupportedModelError", "LMConfigurationError")


class Judged(NamedTuple, Generic[T]):
    """What a reply is worth."""

    value: T | None  # what was read from it; None if it is of no use
    problem: str = ""  # in French, for the model: why it is asked once more
    reason: str = UNREADABLE  # in French: why there is no value


class AskedModel:
    """A model that is asked for useful replies; threads may share it."""

    def __init__(self, model: SubModel) -> None:
        self._model = model

    def ask(self, prompt: str, judge: Callable[[str], Judged[T]]) -> T:
        """Return what was read from the reply to a prompt, or from a second one if the first has a problem.

        Raises:
            SubCallError: If the model fails, or neither reply is of use.
            BudgetExceededError: If the budget has no room for a call.
        """
        reply = self._query(prompt)
        judged = judge(reply)
        if judged.problem:
            reply, judged = self._once_more(prompt, reply, judged, judge)
        if judged.value is None:
            raise SubCallError(judged.reason if reply.strip() else _NOTHING)
        return judged.value

    def _once_more(
        self, prompt: str, reply: str, judged: Judged[T], judge: Callable[[str], Judged[T]]
    ) -> tuple[str, Judged[T]]:
        """Return a second reply, or the first one where that is the better one."""
        try:
            second = self._query(again(prompt, reply, judged.problem))
        except SubCallError:
            if judged.value is None:
                raise
            return reply, judged
        second_judged = judge(second)
        if second_judged.value is None and judged.value is not None:
            return reply, judged
        return second, second_judged

    def _query(self, prompt: str) -> str:
        try:
            return self._model.query(prompt)
        except SubCallError as error:
            if str(error) == _NOTHING:  # worth a second try, with another prompt
                return ""
            raise


def is_too_long(error: SubCallError) -> bool:
    """Tell whether a model failed because the prompt was longer than it reads."""
    return _TOO_LONG in str(error)


def is_lasting(error: SubCallError) -> bool:
    """Tell whether a model fails for a reason that will not pass: a refused key, an unknown model."""
    return any(FAILURES[name] in str(error) for name in _LASTING)
