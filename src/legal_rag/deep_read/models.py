"""The models of a deep read: root model and sub-model share one budget."""

import copy
import re
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from legal_rag.llm import (
    Budget,
    Completion,
    ModelError,
    Usage,
    UsageTracker,
    ask,
    model_of,
    without_thoughts,
)

if TYPE_CHECKING:
    import dspy

ANSWER_SHARE, ANSWER_CALLS = 0.1, 2  # headroom left for writing the answer: of each limit; an answer and one retry
TURN = re.compile(r"^(Turn \d+)/\d+:", re.MULTILINE)  # as rlms numbers turns; a resumed run may have more of them

Message = dict[str, str]  # "role" and "content", as OpenAI's API has them
ModelReply = Completion


class SubCallError(Exception):
    """A call of the model for part of the work failed; the message says why, in French, without a full stop."""

    def __init__(self, reason: str, kind: str = "") -> None:
        """`kind` is that of the model's failure, see `legal_rag.llm.ModelError`."""
        super().__init__(reason)
        self.kind = kind


class SubModel(Protocol):
    """Answers questions about single texts."""

    def query(self, prompt: str) -> str:
        """Return the reply to a prompt.

        Raises:
            SubCallError: If the model fails.
            BudgetExceededError: If the run's budget has no room for a call.
        """


class SubCall(NamedTuple):
    """One call of the sub-model."""

    prompt: str
    reply: str
    usage: Usage
    seconds: float
    error: str = ""  # in French, where there is no reply


class ChatModel:
    """Language model of a run, counted by the run's tracker; thread-safe."""

    def __init__(self, lm: "dspy.BaseLM", tracker: UsageTracker) -> None:
        self.tracker, self._model = tracker, model_of(lm)
        self._within: Budget | None = None
        self._calls: list[SubCall] | None = None
        self._calls_lock = threading.Lock()

    @property
    def name(self) -> str:
        """The model's id."""
        return self._model.model

    @property
    def sampling(self) -> dict[str, Any]:
        """Settings that make replies to one prompt differ, those that are set."""
        return self._model.sampling

    def with_headroom(self) -> "ChatModel":
        """Return the same model, refused a little before the budget's limits, so that the answer can be written."""
        copied = copy.copy(self)
        copied._within = self.tracker.budget.reduced(ANSWER_SHARE, ANSWER_CALLS)
        return copied

    def recorded(self) -> "ChatModel":
        """Return the same model, whose calls of `query` are kept for `take_calls`."""
        copied = copy.copy(self)
        copied._calls, copied._calls_lock = [], threading.Lock()
        return copied

    def take_calls(self) -> list[SubCall]:
        """Return the calls of `query` since the last time, in the order they ended."""
        with self._calls_lock:
            calls, self._calls = self._calls or [], []
        return calls

    def query(self, prompt: str) -> str:
        """Return the reply to a prompt; see `SubModel.query`."""
        started, reply = time.perf_counter(), Completion()
        try:
            reply = self.chat([{"role": "user", "content": prompt}])
            failure = None if reply.text.strip() else ModelError("empty")
        except ModelError as error:
            failure, reply = error, Completion(seconds=time.perf_counter() - started)
        reason = failure.reason if failure else ""
        with self._calls_lock:
            if self._calls is not None:
                self._calls.append(SubCall(prompt, reply.text, reply.usage, reply.seconds, reason))
        if failure:
            raise SubCallError(reason, failure.kind) from failure
        return reply.text

    def chat(self, messages: Sequence[Message]) -> Completion:
        """Return the reply to a conversation, without a model's thoughts; raises as `legal_rag.llm.ask` does."""
        known_as = [{**one, "content": without_turn_limit(one["content"])} for one in messages]
        reply = ask(self._model, messages, tracker=self.tracker, within=self._within, known_as=known_as)
        return reply._replace(text=without_thoughts(reply.text))


def without_turn_limit(content: str) -> str:
    """Return a message without the number of turns that the run may have."""
    return TURN.sub(r"\1:", content)
