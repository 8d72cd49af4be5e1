"""The models of a deep read: root model and sub-model share one budget and the stored replies of the run."""

import copy
import hashlib
import json
import re
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import dspy

from legal_rag.agent.budget import Budget, BudgetExceededError, Usage
from legal_rag.agent.failures import EmptyAnswerError, reason_in_french
from legal_rag.agent.model_calls import BudgetedLM, UsageTracker, without_thoughts

if TYPE_CHECKING:
    from legal_rag.agent.llm import ReplyJournal


SAMPLING = ("seed", "temperature", "top_p", "max_tokens", "max_completion_tokens")
ANSWER_SHARE, ANSWER_CALLS = 0.1, 2  # headroom left for writing the answer: of each limit; an answer and one retry
TURN = re.compile(r"^(Turn \d+)/\d+:", re.MULTILINE)  # as rlms numbers turns; a resumed run may have more of them

Message = dict[str, str]  # "role" and "content", as OpenAI's API has them


class SubCallError(Exception):
    """A call of the model for part of the work failed; the message says why, in French, without a full stop."""


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


class ModelReply(NamedTuple):
    """Reply to one conversation."""

    text: str
    usage: Usage
    seconds: float
    cut_off: bool  # it ended at the model's token limit


class ChatModel:
    """Language model of a run: counted by the run's tracker, answered from the run's stored replies; thread-safe."""

    def __init__(self, lm: "dspy.BaseLM", tracker: UsageTracker) -> None:
        self.tracker = tracker
        self.replies: ReplyJournal | None = None  # of earlier attempts at the run, and of this one
        self._lm = lm
        self._within: Budget | None = None
        self._calls: list[SubCall] | None = None
        self._calls_lock = threading.Lock()

    @property
    def name(self) -> str:
        """The model's id."""
        return str(getattr(self._lm, "model", "model"))

    @property
    def sampling(self) -> dict[str, Any]:
        """Settings that make replies to one prompt differ, those that are set."""
        settings: dict[str, Any] = getattr(self._lm, "kwargs", {})
        return {name: settings[name] for name in SAMPLING if settings.get(name) is not None}

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
        started = time.perf_counter()
        try:
            reply = self.chat([{"role": "user", "content": prompt}])
        except BudgetExceededError:
            raise
        except Exception as error:  # providers' clients raise errors of their own kinds; a run outlives any of them
            reason = reason_in_french(error)
            self._record(SubCall(prompt, "", Usage(), time.perf_counter() - started, reason))
            raise SubCallError(reason) from error
        reason = "" if reply.text.strip() else reason_in_french(EmptyAnswerError())
        self._record(SubCall(prompt, reply.text, reply.usage, reply.seconds, reason))
        if reason:
            raise SubCallError(reason)
        return reply.text

    def chat(self, messages: Sequence[Message]) -> ModelReply:
        """Return the reply to a conversation; one that was stored for the run costs nothing.

        Raises:
            BudgetExceededError: If the budget has no room for a call.
            dspy.LMError: If the model fails, also after its own number of further attempts.
        """
        key = request_key(self.name, self.sampling, messages)
        if self.replies and (stored := self.replies.take(key)):
            usage = Usage(cached=1)
            self.tracker.add(usage)
            return ModelReply(stored["text"], usage, 0.0, stored["cut_off"])
        with dspy.context(trace=[]):
            done = BudgetedLM(self._lm, self.tracker, self._within).complete(messages=list(messages))
        reply = ModelReply(without_thoughts(done.text), done.usage, done.seconds, done.cut_off)
        if self.replies:
            self.replies.keep(key, {"text": reply.text, "cut_off": reply.cut_off})
        return reply

    def _record(self, call: SubCall) -> None:
        with self._calls_lock:
            if self._calls is not None:
                self._calls.append(call)


def request_key(model: str, sampling: dict[str, Any], messages: Sequence[Message]) -> str:
    """Return a hash of a request: model, settings and conversation, without the number of turns allowed."""
    said = [(one["role"], without_turn_limit(one["content"])) for one in messages]
    return hashlib.sha256(json.dumps([model, sampling, said], sort_keys=True).encode()).hexdigest()


def without_turn_limit(content: str) -> str:
    """Return a message without the number of turns that the run may have."""
    return TURN.sub(r"\1:", content)
