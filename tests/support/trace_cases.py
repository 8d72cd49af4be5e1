"""Traces for tests, written by rlms' logger, and runs of rlms' own loop."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlm import RLM
from rlm.core.types import CodeBlock, ModelUsageSummary, REPLResult, RLMChatCompletion, RLMIteration, RLMMetadata
from rlm.core.types import UsageSummary as Summary
from rlm.logger import RLMLogger

from support.scripted_server import ScriptedServer

QUESTION = "Combien de décisions annulent une élection ?"
CONTEXT = "Un contexte bref."


def metadata(**changed: Any) -> RLMMetadata:
    """Return a run's settings as rlms has them."""
    values = {
        "root_model": "racine",
        "max_depth": 1,
        "max_iterations": 10,
        "backend": "openai",
        "backend_kwargs": {"model_name": "racine"},
        "environment_type": "monty",
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


def written(path: Path, *turns: RLMIteration, question: str = QUESTION, **settings: Any) -> Path:
    """Write a trace of turns as rlms' loop would, each with the conversation before it."""
    logger = RLMLogger(str(path.parent))
    logger.log_file_path = str(path)
    logger.log_metadata(metadata(**settings))
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
        logger.log(one)
        messages.append({"role": "assistant", "content": one.response})
        messages.append({"role": "user", "content": "".join(each.result.stdout for each in one.code_blocks)})
    return path


def run_rlm(server: ScriptedServer, logger: Any, *, turns: int = 6, **kw: Any) -> str:
    """Let rlms answer the question with its own loop and its own environment."""
    own = {"model_name": "racine", "api_key": "sk-SECRET", "base_url": server.api_base, **kw}
    loop = RLM(backend="openai", backend_kwargs=own, max_iterations=turns, logger=logger)
    return loop.completion(CONTEXT, root_prompt=QUESTION).response
