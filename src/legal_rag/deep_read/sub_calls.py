"""The models as one deep read asks them: each call is written down, and answered from the record of an earlier attempt.

In: a model, and what it replied to the same before the run was interrupted. Out: replies, and the calls made.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from legal_rag.budget import BudgetExceededError, Usage
from legal_rag.deep_read.models import Message, MeteredModel, ModelReply, SubCallError
from legal_rag.deep_read.trace_values import SubCall
from legal_rag.failures import EmptyAnswerError, reason_in_french


class RecordedReplies(Protocol):
    """What an earlier attempt heard."""

    def next_reply(self, messages: Sequence[Message]) -> str | None:
        """Return what the root model replied to a conversation; None where the record ends."""

    def sub_reply(self, prompt: str) -> str | None:
        """Return what was replied to a prompt, each reply once; None if nothing was."""


class RecordedRoot:
    """A root model that first says again what it said before."""

    def __init__(
        self,
        model: MeteredModel,
        recorded: RecordedReplies | None = None,
        on_reply: Callable[[Sequence[Message], ModelReply], None] = lambda messages, reply: None,
    ) -> None:
        self._model, self._recorded, self._on_reply = model, recorded, on_reply

    @property
    def name(self) -> str:
        """The model's id."""
        return self._model.name

    def chat(self, messages: Sequence[Message]) -> ModelReply:
        """Return the reply to a conversation; see `MeteredModel.chat`."""
        known = self._recorded.next_reply(messages) if self._recorded else None
        if known is not None:
            return ModelReply(known, Usage(cached=1), 0.0, False)
        reply = self._model.chat(messages)
        self._on_reply(messages, reply)
        return reply


class RecordingModel:
    """A sub-model whose calls are kept until they are taken; threads may share it."""

    def __init__(
        self,
        model: MeteredModel,
        recorded: RecordedReplies | None = None,
        on_call: Callable[[SubCall], None] = lambda call: None,
    ) -> None:
        self._model, self._recorded, self._on_call = model, recorded, on_call
        self._calls: list[SubCall] = []
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The model's id."""
        return self._model.name

    def query(self, prompt: str) -> str:
        """Return the reply to a prompt; see `legal_rag.deep_read.models.SubModel`."""
        with self._lock:
            known = self._recorded.sub_reply(prompt) if self._recorded else None
        if known is not None:
            self._keep(SubCall(prompt, known, Usage(cached=1), 0.0), told=True)
            return known
        started = time.perf_counter()
        try:
            reply = self._model.chat([{"role": "user", "content": prompt}])
        except BudgetExceededError:
            raise
        except Exception as error:  # providers' clients raise errors of their own kinds; a run outlives any of them
            reason = reason_in_french(error)
            self._keep(SubCall(prompt, "", Usage(), time.perf_counter() - started, reason))
            raise SubCallError(reason) from error
        reason = "" if reply.text.strip() else reason_in_french(EmptyAnswerError())
        self._keep(SubCall(prompt, reply.text, reply.usage, reply.seconds, reason))
        if reason:
            raise SubCallError(reason)
        return reply.text

    def take(self) -> list[SubCall]:
        """Return the calls since the last time, in the order they ended."""
        with self._lock:
            calls, self._calls = self._calls, []
        return calls

    def _keep(self, call: SubCall, *, told: bool = False) -> None:
        with self._lock:
            self._calls.append(call)
        if not told:
            self._on_call(call)
