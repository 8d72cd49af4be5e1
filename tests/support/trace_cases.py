"""Traces for tests: written by the project's logger, and runs of rlms' own loop whose model a record answers first."""

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import rlm.core.rlm
from rlm import RLM
from rlm.clients import get_client
from rlm.core.types import CodeBlock, ModelUsageSummary, REPLResult, RLMChatCompletion, RLMIteration, RLMMetadata
from rlm.core.types import UsageSummary as Summary

from legal_rag.budget import Usage
from legal_rag.deep_read.models import ModelReply
from legal_rag.deep_read.replay import Replay
from legal_rag.deep_read.trace import TraceLogger
from legal_rag.deep_read.trace_values import SubCall
from support.scripted_server import ScriptedServer

QUESTION = "Combien de décisions annulent une élection ?"
RUN = {"question": QUESTION, "doc_ids": ["D1", "D2"], "lineage": "abc", "commit": 3}
CONTEXT = "Un contexte bref."


def metadata(**changed: Any) -> RLMMetadata:
    """Return a run's settings as rlms has them."""
    values = {
        "root_model": "racine",
        "max_depth": 1,
        "max_iterations": 10,
        "backend": "openai",
        "backend_kwargs": {"model_name": "racine"},
        "environment_type": "sandbox",
        "environment_kwargs": {},
    }
    return RLMMetadata(**{**values, **changed})


def call(prompt: str = "Résume D1.", reply: str = "Court.", **changed: Any) -> RLMChatCompletion:
    """Return a call of the sub-model."""
    usage = Summary({"sous": ModelUsageSummary(1, 40, 2, 0.001)})
    values = {"root_model": "sous", "prompt": prompt, "response": reply, "usage_summary": usage, "execution_time": 0.5}
    return RLMChatCompletion(**{**values, **changed})


def block(
    code: str = "print(2)",
    stdout: str = "2\n",
    stderr: str = "",
    calls: Sequence[RLMChatCompletion] = (),
    final: Any = None,
    variables: Any = None,
) -> CodeBlock:
    """Return a program that was run."""
    return CodeBlock(code, REPLResult(stdout, stderr, variables or {}, 0.25, list(calls), final))


def turn(*blocks: CodeBlock, thought: str = "Je compte.", seconds: float = 1.5) -> RLMIteration:
    """Return a turn; the last block's final answer is its own."""
    fences = [f"```repl\n{one.code}\n```" for one in blocks]
    final = blocks[-1].result.final_answer if blocks else None
    return RLMIteration([], "\n\n".join([thought, *fences]), list(blocks), final, seconds)


def write_turns(
    logger: TraceLogger, turns: Iterable[RLMIteration], question: str = QUESTION, *, asked: bool = True
) -> None:
    """Write turns as rlms' loop would, each with the conversation before it.

    Args:
        logger: Of the run.
        turns: In order.
        question: Of the run.
        asked: Whether the model was asked for its replies, not the record.
    """
    messages = [
        {"role": "system", "content": "Vous écrivez des programmes."},
        {
            "role": "user",
            "content": f"Answer the following: {question}\n\nYour context is a str of 17 total characters.",
        },
    ]
    for number, one in enumerate(turns, 1):
        messages.append({"role": "user", "content": f"Turn {number}/10:"})
        one.prompt = list(messages)
        if asked:
            logger.replied(messages, ModelReply(one.response, Usage(1, 0, 100, 10, 0.002), 0.75, cut_off=False))
        logger.log(one)
        messages.append({"role": "assistant", "content": one.response})
        messages.append({"role": "user", "content": "".join(each.result.stdout for each in one.code_blocks)})


def written(path: Path, *turns: RLMIteration, run: Any = RUN) -> Path:
    """Write a whole trace."""
    logger = TraceLogger(path, run)
    logger.log_metadata(metadata())
    write_turns(logger, turns)
    return path


class Recorded:
    """rlms' client, which answers from a record first, and tells the logger of what it asked anew."""

    def __init__(self, logger: TraceLogger, replay: Replay | None) -> None:
        self._logger, self._replay = logger, replay

    def __call__(self, backend: str, backend_kwargs: Any) -> Any:
        client = _client(backend_kwargs["base_url"])
        ask = type(client).completion.__get__(client)
        client.completion = lambda prompt: self._completion(ask, prompt)  # type: ignore[method-assign]
        client.acompletion = self._acompletion(client)  # type: ignore[method-assign]
        client.get_last_usage = lambda: ModelUsageSummary(0, 0, 0)  # rlms' own asks for what a call left
        return client

    def _completion(self, ask: Any, prompt: Any) -> str:
        is_root = isinstance(prompt, list)
        if self._replay:
            known = self._replay.next_reply(prompt) if is_root else self._replay.sub_reply(prompt)
            if known is not None:
                return known
        reply = ask(prompt)
        if is_root:
            self._logger.replied(prompt, ModelReply(reply, Usage(1, 0, 1, 1), 0.1, cut_off=False))
        else:
            self._logger.called(SubCall(prompt, reply, Usage(1, 0, 1, 1), 0.1))
        return reply

    def _acompletion(self, client: Any) -> Any:
        async def acompletion(prompt: Any) -> str:
            return client.completion(prompt)

        return acompletion


@cache
def _client(address: str) -> Any:
    """Make a client once: that takes half a second."""
    return get_client("openai", {"model_name": "racine", "api_key": "sk-SECRET", "base_url": address})


def run_rlm(
    server: ScriptedServer, logger: Any, replay: Any = None, *, turns: int = 6, patch: Any = None, **kw: Any
) -> str:
    """Let rlms answer the question with its own loop and its own environment."""
    if patch:
        patch.setattr(rlm.core.rlm, "get_client", Recorded(logger, replay))
    own = {"model_name": "racine", "api_key": "sk-SECRET", "base_url": server.api_base, **kw}
    loop = RLM(backend="openai", backend_kwargs=own, max_iterations=turns, logger=logger)
    return loop.completion(CONTEXT, root_prompt=QUESTION).response
