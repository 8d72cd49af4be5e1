"""Traces of deep reads: their values, read back from JSON Lines."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

from legal_rag.agent.budget import Usage
from legal_rag.corpus.cleaning import storable
from legal_rag.files import beside

FORMAT_VERSION = 1  # of this project's extensions
EXTENSION = "legal_rag"
LARGEST = 2**53  # beyond it numbers are not exact in JSON's floats
EXPECTED = "expected JSON lines as rlms writes them"


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
    response: str = ""  # the first reply; later ones are those of runs that its program started
    calls: tuple[SubCall, ...] = ()
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class Trace:
    """A run, as far as it was written down."""

    path: Path
    metadata: Mapping[str, Any]  # rlms' own: root_model, max_iterations, backend, environment_type…
    run: Mapping[str, Any]  # what identifies the run, see `open_trace`; empty in rlms' own traces
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


def read_trace(path: str | Path) -> Trace:
    """Read a trace.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is no trace, is damaged, or was written by a later version.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no trace at {path}")
    reading = _Reading(path)
    for number, entry in reading.entries():
        try:
            reading.take(entry)
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:  # whatever a file may hold
            found = str(error) if type(error) is ValueError else type(error).__name__
            raise ValueError(f"not a trace: {path}, line {number}: {found} ({EXPECTED})") from error
    if not reading.kinds:
        raise ValueError(f"not a trace: {path} holds no whole line ({EXPECTED})")
    return reading.trace()


def unfinished_file(path: Path) -> Path:
    """Return where the turn under way is kept until its line is written."""
    return beside(path, "turn")


class _Reading:
    """A trace while it is read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._metadata: dict[str, Any] = {}
        self._started = ""
        self._kept: list[Iteration] = []
        self._superseded: list[Iteration] = []
        self._whole = 0
        self.kinds = 0  # of lines that were understood

    def entries(self) -> Iterator[tuple[int, Any]]:
        with self._path.open("rb") as file:
            for number, line in enumerate(file, 1):
                entry = _entry(line)
                if entry is None and line.strip():
                    if not line.endswith(b"\n") and self.kinds:  # cut off by a kill
                        return
                    raise ValueError(f"not a trace: {self._path}, line {number} is no JSON object ({EXPECTED})")
                self._whole += len(line)
                if entry is not None:
                    yield number, entry

    def take(self, entry: dict[str, Any]) -> None:
        kind = entry.get("type", "iteration")
        if kind == "metadata":
            self._started = self._started or _text(entry.get("timestamp"))
            self._metadata = _checked_metadata(entry)
        elif kind == "iteration":
            self._take_iteration(entry)
        else:
            raise ValueError(f"its type is {kind!r:.40}, not 'metadata' or 'iteration'")
        self.kinds += 1

    def trace(self) -> Trace:
        own = self._metadata.get(EXTENSION) or {}
        told = {name: value for name, value in self._metadata.items() if name not in ("type", "timestamp", EXTENSION)}
        return Trace(
            self._path,
            told,
            own.get("run") or {},
            self._started,
            tuple(self._kept),
            tuple(self._superseded),
            _read_unfinished(unfinished_file(self._path)),
            self._whole,
        )

    def _take_iteration(self, entry: dict[str, Any]) -> None:
        number = entry["iteration"]
        if not isinstance(number, int) or not 1 <= number <= len(self._kept) + 1:
            raise ValueError(f"it is iteration {number!r:.20} after {len(self._kept)}")
        earlier = self._kept[number - 2].messages if number > 1 else ()
        known = int(entry.get("prompt_from") or 0)
        if not 0 <= known <= len(earlier):
            raise ValueError(f"its prompt goes on from message {known} of {len(earlier)}")
        messages = earlier[:known] + _messages(entry["prompt"])
        self._superseded += self._kept[number - 1 :]
        self._kept[number - 1 :] = [_iteration(entry, messages)]


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _checked_metadata(entry: dict[str, Any]) -> dict[str, Any]:
    own = entry.get(EXTENSION) or {}
    version = own.get("format_version", FORMAT_VERSION)
    if version != FORMAT_VERSION:
        raise ValueError(f"its format is {version!r:.20}, this version reads {FORMAT_VERSION}")
    if not isinstance(own.get("run") or {}, dict):
        raise ValueError("its run is no JSON object")
    return entry


def _iteration(entry: dict[str, Any], messages: tuple[Message, ...]) -> Iteration:
    return Iteration(
        entry["iteration"],
        _text(entry.get("timestamp")),
        messages,
        _text(entry["response"]),
        tuple(_block(one) for one in entry["code_blocks"]),
        _answer(entry.get("final_answer")),
        _number(entry.get("iteration_time")),
        _usage(entry["usage"]) if "usage" in entry else None,
        _number(entry.get("reply_seconds")),
    )


def _messages(prompt: Any) -> tuple[Message, ...]:
    if isinstance(prompt, list):
        return tuple(Message(_text(one.get("role")), _text(one.get("content"))) for one in prompt)
    return (Message("user", _text(prompt)),)


def _block(block: dict[str, Any]) -> Block:
    result = block["result"]
    return Block(
        _text(block["code"]),
        _text(result.get("stdout")),
        _text(result.get("stderr")),
        _number(result.get("execution_time")),
        tuple(_call(one) for one in result.get("rlm_calls") or ()),
        _answer(result.get("final_answer")),
    )


def _call(call: dict[str, Any]) -> SubCall:
    models = (call.get("usage_summary") or {}).get("model_usage_summaries") or {}
    usage = Usage()
    for one in models.values():
        usage = usage.plus(_usage(one))
    seconds = _number(call.get("execution_time")) or 0.0
    return SubCall(_text(call["prompt"]), _text(call["response"]), usage, seconds, _text(call.get("error")))


def _usage(told: Mapping[str, Any]) -> Usage:
    """Read a usage in this project's own words, or in rlms'."""
    sent, cached, read, written = (
        int(_number(told.get(own)) or _number(told.get(of_rlms)) or 0)
        for own, of_rlms in (
            ("calls", "total_calls"),
            ("cached", ""),
            ("prompt_tokens", "total_input_tokens"),
            ("completion_tokens", "total_output_tokens"),
        )
    )
    cost = _number(told.get("cost", told.get("total_cost")))
    return Usage(sent, cached, read, written, 0.0 if cost is None and not sent else cost)  # None: sent, price unknown


def _read_unfinished(file: Path) -> tuple[Unfinished, ...]:
    """Read what a kill left of turns; whatever in it cannot be read is lost with the kill."""
    turns: dict[int, Unfinished] = {}
    for line in file.read_bytes().split(b"\n") if file.is_file() else ():
        entry = _entry(line)
        try:
            if entry:
                number = int(entry["iteration"])
                turns[number] = _with(turns.get(number, Unfinished(number)), entry)
        except (KeyError, TypeError, AttributeError, ValueError):
            continue
    return tuple(turns[number] for number in sorted(turns))


def _with(turn: Unfinished, entry: dict[str, Any]) -> Unfinished:
    if call := entry.get("call"):
        told = SubCall(
            call["prompt"], call["reply"], _usage(call["usage"]), _number(call["seconds"]) or 0.0, call["error"]
        )
        return replace(turn, calls=(*turn.calls, told))
    response = turn.response or _text(entry["response"])
    return replace(turn, response=response, usage=turn.usage.plus(_usage(entry["usage"])))


def _answer(value: Any) -> str | None:
    return None if value is None else _text(value)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return storable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _number(value: Any) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return value if known and 0 <= value <= LARGEST else None  # NaN is not either
