"""Where programs run other than in the sandbox: rlms' own environments, and the models as rlms calls them.

In: an environment's name, models. Out: what runs code there. Programs there have the context and the models, not the
functions of the corpus. It is apart because importing rlms takes a quarter of a second.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from rlm.clients.base_lm import BaseLM
from rlm.core.lm_handler import LMHandler
from rlm.core.types import ModelUsageSummary, REPLResult, UsageSummary
from rlm.environments import get_environment

from legal_rag.deep_read.environment import usage_of
from legal_rag.deep_read.models import Message, Meter, ModelReply
from legal_rag.deep_read.sub_calls import RecordingModel
from legal_rag.deep_read.work import SandboxRefusedError

logger = logging.getLogger(__name__)


class ChatModel(Protocol):
    """What is asked for each turn."""

    @property
    def name(self) -> str:
        """The model's id."""

    def chat(self, messages: Sequence[Message]) -> ModelReply:
        """Return the reply to a conversation, or raise what the model's client raises, or BudgetExceededError."""


@contextmanager
def elsewhere(name: str, root: "ModelClient", sub: RecordingModel, meter: Meter, context: Any) -> Iterator["Place"]:
    """Give one of rlms' own environments, which reaches the models through rlms' handler.

    Raises:
        SandboxRefusedError: If it does not start.
    """
    handler = LMHandler(root, other_backend_client=ModelClient(sub, meter))
    handler.start()
    try:
        place = Place(_started(name, handler, context), meter)
        try:
            yield place
        finally:
            place.cleanup()
    finally:
        handler.stop()


class Place:
    """One of rlms' own environments; whatever goes wrong in it is told to the model."""

    def __init__(self, environment: Any, meter: Meter) -> None:
        self._environment, self._meter = environment, meter

    def execute_code(self, code: str) -> REPLResult:
        """Run a block of code.

        Raises:
            BudgetExceededError: If the run has no time left.
        """
        self._meter.check_seconds()  # what a model wrote with its last call is run
        try:
            result: REPLResult = self._environment.execute_code(code)
        except Exception as error:  # each environment fails in its provider's own ways
            logger.debug("the environment failed", exc_info=True)
            return REPLResult("", f"L'environnement a échoué ({type(error).__name__})", {}, 0.0)
        return result

    def cleanup(self) -> None:
        """End the environment."""
        if hasattr(self._environment, "cleanup"):
            self._environment.cleanup()


class ModelClient(BaseLM):
    """A metered model as rlms calls one."""

    def __init__(self, model: ChatModel | RecordingModel, meter: Meter) -> None:
        super().__init__(model_name=model.name)
        self._model, self._meter = model, meter

    def completion(self, prompt: Any) -> str:
        """Return the reply to a prompt or a conversation."""
        if isinstance(self._model, RecordingModel):
            return self._model.query(prompt if isinstance(prompt, str) else str(prompt))
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        return self._model.chat(messages).text

    async def acompletion(self, prompt: Any) -> str:
        """Return the reply to a prompt or a conversation."""
        return await asyncio.to_thread(self.completion, prompt)

    def get_usage_summary(self) -> UsageSummary:
        """Return what the run's calls came to."""
        return usage_of(self._meter.usage, self.model_name)

    def get_last_usage(self) -> ModelUsageSummary:
        """Return the same: calls are not told apart here."""
        return self.get_usage_summary().model_usage_summaries[self.model_name]


def _started(name: str, handler: LMHandler, context: Any) -> Any:
    try:
        return get_environment(
            name,  # one of the settings' names
            {"lm_handler_address": (handler.host, handler.port), "context_payload": context, "depth": 1},
        )
    except (Exception, SystemExit) as error:  # no daemon, no package, no account: each in its provider's own ways
        said = " ".join(str(error).split())[:200]
        raise SandboxRefusedError(f"l'environnement « {name} » n'a pas pu démarrer : {said}") from error
