"""What a trace holds, as values: the run, its turns, the programs of each, and the calls of the sub-model.

In: what was read from a trace. Out: values that the views and a run taken up again read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

from legal_rag.budget import Usage


class SubCall(NamedTuple):
    """One call of the sub-model."""

    prompt: str
    reply: str
    usage: Usage
    seconds: float
    error: str = ""  # in French, where there is no reply


class Message(NamedTuple):
    """One message of a conversation."""

    role: str
    content: str


@dataclass(frozen=True)
class Block:
    """A program that was run, and what came of it."""

    code: str
    stdout: str
    stderr: str
    seconds: float | None
    calls: tuple[SubCall, ...]
    final_answer: str | None

    def to_json(self) -> dict[str, Any]:
        """Return the block as JSON can hold it."""
        return {
            "code": self.code,
            "stdout": self.stdout,
            "stderr": self.stderr,
            "seconds": self.seconds,
            "calls": [{**call._asdict(), "usage": call.usage._asdict()} for call in self.calls],
            "final_answer": self.final_answer,
        }


@dataclass(frozen=True)
class Iteration:
    """A turn of the root model."""

    number: int  # from 1
    time: str  # when it was written down: ISO 8601
    messages: tuple[Message, ...]  # the whole conversation before the reply
    response: str
    blocks: tuple[Block, ...]
    final_answer: str | None
    seconds: float | None  # in all
    usage: Usage | None  # of the root model's reply; rlms does not write it down
    reply_seconds: float | None  # that the reply took

    @property
    def calls(self) -> tuple[SubCall, ...]:
        """All calls of the sub-model."""
        return tuple(call for block in self.blocks for call in block.calls)

    def to_json(self) -> dict[str, Any]:
        """Return the turn as JSON can hold it, without the conversation before."""
        return {
            "iteration": self.number,
            "time": self.time,
            "response": self.response,
            "blocks": [one.to_json() for one in self.blocks],
            "final_answer": self.final_answer,
            "seconds": self.seconds,
            "usage": self.usage._asdict() if self.usage else None,
        }


@dataclass(frozen=True)
class Unfinished:
    """What is known of a turn that a kill cut short."""

    number: int
    replies: Mapping[str, str] = field(default_factory=dict)  # by the fingerprint of the conversation before each
    calls: tuple[SubCall, ...] = ()
    usage: Usage = field(default_factory=Usage)

    @property
    def response(self) -> str:
        """The first reply, which is the turn's own: others are those of runs that its program started."""
        return next(iter(self.replies.values()), "")


@dataclass(frozen=True)
class Trace:
    """A run, as far as it was written down."""

    path: Path
    metadata: Mapping[str, Any]  # rlms' own: root_model, max_iterations, backend, environment_type…
    run: Mapping[str, Any]  # what two attempts at this run have in common; empty in rlms' own traces
    started: str  # ISO 8601; empty if unknown
    iterations: tuple[Iteration, ...]  # numbered from 1
    superseded: tuple[Iteration, ...]  # whose number came again later, in the order written
    unfinished: tuple[Unfinished, ...]
    whole_bytes: int = field(compare=False)  # of the file, up to the end of its last whole line

    @property
    def final_answer(self) -> str | None:
        """The answer that the run ended with; None if it did not come to one."""
        return self.iterations[-1].final_answer if self.iterations else None

    @property
    def usage(self) -> Usage:
        """What all calls of all models came to, those of superseded turns too, as far as it was written down."""
        turns: tuple[Iteration | Unfinished, ...] = (*self.iterations, *self.superseded, *self.unfinished)
        usages = [usage for turn in turns for usage in (turn.usage, *(call.usage for call in turn.calls)) if usage]
        return reduce(Usage.plus, usages, Usage())

    def to_json(self) -> dict[str, Any]:
        """Return the run as JSON can hold it, without what the models were sent."""
        return {
            "run": dict(self.run),
            "metadata": dict(self.metadata),
            "started": self.started,
            "final_answer": self.final_answer,
            "usage": self.usage._asdict(),
            "iterations": [one.to_json() for one in self.iterations],
            "interrupted": [one.number for one in self.unfinished],
        }
