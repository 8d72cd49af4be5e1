"""Traces of deep reads: one JSON object a line, in rlms' form, written turn by turn and read back."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from rlm.core.types import RLMIteration, RLMMetadata
from rlm.logger import RLMLogger

from legal_rag.corpus.cleaning import json_safe, storable
from legal_rag.deep_read.conclusion import answer_text
from legal_rag.deep_read.models import ModelReply, SubCall, without_turn_limit
from legal_rag.llm import Usage

FORMAT_VERSION = 1  # of this project's extensions
EXTENSION = "legal_rag"
NOT_RLMS = frozenset({"type", "timestamp", EXTENSION})  # fields of a metadata line that rlms' metadata lack
BEGINNING = b'{"type": "metadata"'  # of every trace
PRIVATE = 0o600
EXPECTED = "expected JSON lines as rlms writes them"
LARGEST = 2**53  # beyond it numbers are not exact in JSON's floats
SHOWN_CHARS = 60  # of a value in an error
MAX_PRINTED = 20_000  # characters of what a block printed, and of its error: as many as rlms shows the model
MAX_VALUE = 200  # characters of a variable
MAX_VARIABLES = 100
CUT = " […{} caractères non conservés]"
SECRET = re.compile(r"key$|api.?key|secret|passw|auth|credential|cookie|header|bearer|signature|token(?!s|iz)", re.I)


class TraceMessage(NamedTuple):
    """One message of a conversation."""

    role: str
    content: str


@dataclass(frozen=True)
class Block:
    """A program, and its result."""

    code: str
    stdout: str
    stderr: str
    seconds: float | None
    calls: tuple[SubCall, ...]
    final_answer: str | None


@dataclass(frozen=True)
class Iteration:
    """A turn of the root model."""

    number: int  # from 1
    time: str  # at its end: ISO 8601
    messages: tuple[TraceMessage, ...]  # the whole conversation before the reply
    response: str
    blocks: tuple[Block, ...]
    final_answer: str | None
    seconds: float | None  # in all
    usage: Usage | None  # of the root model's reply; None in rlms' own traces
    reply_seconds: float | None  # of the root model

    @property
    def calls(self) -> tuple[SubCall, ...]:
        """All calls of the sub-model."""
        return tuple(call for block in self.blocks for call in block.calls)

    @property
    def failed(self) -> bool:
        """Whether a program ended with an error."""
        return any(block.stderr.strip() for block in self.blocks)

    def to_json(self) -> dict[str, Any]:
        """Return the turn as JSON can hold it, without the conversation before."""
        values: dict[str, Any] = json_safe(self)
        return {
            "iteration": self.number,
            **{name: values[name] for name in values if name not in ("number", "messages")},
        }


@dataclass(frozen=True)
class Trace:
    """A run, up to the last turn that ended."""

    path: Path
    metadata: Mapping[str, Any]  # rlms' own: root_model, max_iterations, backend, environment_type…
    run: Mapping[str, Any]  # what identifies the run, see `TraceLogger`; empty in rlms' own traces
    started: str  # ISO 8601; empty if unknown
    iterations: tuple[Iteration, ...]  # numbered from 1
    superseded: tuple[Iteration, ...]  # turns that a later attempt replaced, in the order written
    whole_bytes: int = field(compare=False)  # of the file, up to the end of its last whole line

    @property
    def final_answer(self) -> str | None:
        """The answer that the run ended with; None if it did not come to one."""
        return self.iterations[-1].final_answer if self.iterations else None

    @property
    def usage(self) -> Usage:
        """Usage of all models in all turns, superseded ones included; rlms' own traces lack the root model's."""
        turns = (*self.iterations, *self.superseded)
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
        }


def read_trace(path: str | Path) -> Trace:
    """Read a trace; a last line that a kill cut off is skipped.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is not a trace, is damaged, or was written by a later version.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no trace at {path}")
    reading = _Reading()
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            entry = _entry(line)
            if entry is None and line.strip():
                if not line.endswith(b"\n") and reading.n_entries:
                    break
                raise ValueError(f"not a trace: {path}, line {number} is no JSON object ({EXPECTED})")
            reading.whole_bytes += len(line)
            try:
                if entry is not None:
                    reading.take(entry)
            except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:  # any JSON may be there
                found = {KeyError: f"no {error}", ValueError: str(error)}.get(type(error), "a value of another type")
                raise ValueError(f"not a trace: {path}, line {number}: {found} ({EXPECTED})") from error
    if not reading.n_entries:
        raise ValueError(f"not a trace: {path} holds no whole line ({EXPECTED})")
    return reading.trace(path)


class TraceLogger(RLMLogger):
    """Appends a run's turns to a file as they end; one process at a time writes to it."""

    def __init__(self, path: str | Path, run: Mapping[str, Any]) -> None:
        """Begin a trace, or resume one: turns that come out as they did before are not written again.

        Args:
            path: Of the file; its folder is made.
            run: What identifies the run, as JSON can hold it: question, documents, corpus, models…

        Raises:
            ValueError: If the file is not a trace, or one of another run.
            OSError: If it cannot be written.
        """
        super().__init__()
        self.path, self._run = Path(path), run
        self._earlier = None if _holds_no_line(self.path) else read_trace(self.path)
        if self._earlier is not None:
            _require_same_run(self._earlier, json_safe(run))
        self._conversation: tuple[TraceMessage, ...] = ()  # before the last turn's reply, as the file has it
        self._usage: Usage | None = None  # of the root model's replies in the current turn, nested runs included
        self._seconds = 0.0  # likewise
        self._run_metadata: dict[str, Any] | None = None
        self.log_file_path = str(self.path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._keep_whole_lines()

    def log_metadata(self, metadata: RLMMetadata) -> None:
        """Write a run's settings, without what may be a key or a password."""
        if self._run_metadata is not None:
            return
        settings = json_safe({name: _without_secrets(value) for name, value in metadata.to_dict().items()})
        own = {"format_version": FORMAT_VERSION, "run": json_safe(self._run)}
        self._run_metadata = {name: value for name, value in settings.items() if name not in NOT_RLMS}
        if self._earlier is None or dict(self._earlier.metadata) != self._run_metadata:
            self._append({"type": "metadata", "timestamp": _now(), **settings, EXTENSION: own})

    def replied(self, reply: ModelReply) -> None:
        """Count a reply of the root model towards the current turn; a stored one costs nothing."""
        if reply.usage.calls:
            self._usage = (self._usage or Usage()).plus(reply.usage)
            self._seconds += reply.seconds

    def log(self, iteration: RLMIteration) -> None:
        """Write a turn."""
        self._iteration_count += 1
        messages = _messages(iteration.prompt)
        known = _length_in_common(messages, self._conversation)
        entry = {
            "type": "iteration",
            "iteration": self._iteration_count,
            "timestamp": _now(),
            "prompt": [message._asdict() for message in messages[known:]],
            "prompt_from": known,
            "response": storable(iteration.response),
            "code_blocks": [_block_entry(block.to_dict()) for block in iteration.code_blocks],
            "final_answer": _answer_entry(iteration.final_answer),
            "iteration_time": json_safe(iteration.iteration_time),
        }
        if self._usage:
            entry |= json_safe({"usage": self._usage, "reply_seconds": self._seconds})
        self._usage, self._seconds = None, 0.0
        self._iterations.append(entry)
        written = self._earlier.iterations if self._earlier else ()
        if self._iteration_count <= len(written):
            earlier = written[self._iteration_count - 1]
            if _comparable(_iteration(entry, messages)) == _comparable(earlier):
                self._conversation = earlier.messages
                return
        self._conversation = messages
        self._append(entry)
        self._earlier = None  # the file continues from here

    def clear_iterations(self) -> None:
        """Begin with the first turn."""
        super().clear_iterations()
        self._conversation, self._usage, self._seconds = (), None, 0.0

    def _append(self, entry: Mapping[str, Any]) -> None:
        """Write a line in one piece."""
        with self.path.open("ab", buffering=0) as file:
            file.write(json.dumps(entry, ensure_ascii=False, allow_nan=False).encode() + b"\n")

    def _keep_whole_lines(self) -> None:
        """Cut off what follows the last whole line, and make the file its owner's alone."""
        length = self._earlier.whole_bytes if self._earlier else 0
        os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT, PRIVATE))
        self.path.chmod(PRIVATE)
        with self.path.open("r+b") as file:
            file.truncate(length)
            file.seek(max(0, length - 1))
            if file.read(1) not in (b"", b"\n"):
                file.write(b"\n")


class _Reading:
    """A trace while it is read."""

    def __init__(self) -> None:
        self._metadata: dict[str, Any] = {}
        self._started = ""
        self._kept: list[Iteration] = []
        self._superseded: list[Iteration] = []
        self.whole_bytes = self.n_entries = 0

    def take(self, entry: dict[str, Any]) -> None:
        kind = entry.get("type", "iteration")
        if kind == "metadata":
            self._started = self._started or _text(entry.get("timestamp"))
            self._metadata = _checked_metadata(entry)
        elif kind == "iteration":
            self._take_iteration(entry)
        else:
            raise ValueError(f"its type is {kind!r:.40}, not 'metadata' or 'iteration'")
        self.n_entries += 1

    def trace(self, path: Path) -> Trace:
        own = self._metadata.get(EXTENSION) or {}
        of_rlms = {name: value for name, value in self._metadata.items() if name not in NOT_RLMS}
        kept, superseded = tuple(self._kept), tuple(self._superseded)
        return Trace(path, of_rlms, own.get("run") or {}, self._started, kept, superseded, self.whole_bytes)

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


def _iteration(entry: Mapping[str, Any], messages: tuple[TraceMessage, ...]) -> Iteration:
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


def _messages(prompt: Any) -> tuple[TraceMessage, ...]:
    """Read a conversation; rlms also knows prompts that are one text."""
    if isinstance(prompt, list | tuple):
        return tuple(TraceMessage(_text(one.get("role")), _text(one.get("content"))) for one in prompt)
    return (TraceMessage("user", _text(prompt)),)


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
    usage = reduce(Usage.plus, map(_usage, models.values()), Usage())
    seconds = _number(call.get("execution_time")) or 0.0
    return SubCall(_text(call["prompt"]), _text(call["response"]), usage, seconds, _text(call.get("error")))


def _usage(usage: Mapping[str, Any]) -> Usage:
    """Read a usage, by this project's names or by rlms'."""
    sent, cached, read, written = (
        int(_number(usage.get(own)) or _number(usage.get(of_rlms)) or 0)
        for own, of_rlms in (
            ("calls", "total_calls"),
            ("cached", ""),
            ("prompt_tokens", "total_input_tokens"),
            ("completion_tokens", "total_output_tokens"),
        )
    )
    cost = _number(usage.get("cost", usage.get("total_cost")))
    return Usage(sent, cached, read, written, 0.0 if cost is None and not sent else cost)  # None: sent, price unknown


def _answer(value: Any) -> str | None:
    return None if value is None else _text(value)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return storable(value if isinstance(value, str) else json.dumps(json_safe(value), ensure_ascii=False))


def _number(value: Any) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return value if known and 0 <= value <= LARGEST else None  # NaN is not either


def _holds_no_line(path: Path) -> bool:
    """Tell whether there is nothing to resume: no file, an empty one, or one whose first line a kill cut off."""
    if not path.exists():
        return True
    with path.open("rb") as file:
        line = file.readline()
    return not line or (not line.endswith(b"\n") and (line.startswith(BEGINNING) or BEGINNING.startswith(line)))


def _comparable(turn: Iteration) -> tuple[Any, ...]:
    """Return what a turn came to, times and usage apart, to compare it with an earlier attempt's."""
    blocks = [(one.code, one.stdout, one.stderr, one.final_answer, len(one.calls)) for one in turn.blocks]
    messages = [(role, without_turn_limit(content)) for role, content in turn.messages]
    return turn.response, turn.final_answer, blocks, messages


def _require_same_run(trace: Trace, run: Mapping[str, Any]) -> None:
    """Raise ValueError with the first difference if a trace is of another run."""
    if not trace.run:
        raise ValueError(f"not the same run: {trace.path} does not say which question and corpus it is of")
    for name in (*run, *trace.run):
        found, expected = trace.run.get(name), run.get(name)
        if found != expected:
            difference = f"{name} was {_shown(found)} and is now {_shown(expected)}"
            raise ValueError(f"not the same run: in {trace.path} {difference} (name another file)")


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"


def _without_secrets(value: Any) -> Any:
    """Drop settings that may be a key or a password, by name, and the secrets in URLs."""
    if isinstance(value, Mapping):
        return {name: _without_secrets(one) for name, one in value.items() if not SECRET.search(str(name))}
    if isinstance(value, list | tuple):
        return [_without_secrets(one) for one in value]
    return _bare_url(value) if isinstance(value, str) and "://" in value else value


def _bare_url(text: str) -> str:
    try:
        parts = urlsplit(text)
    except ValueError:  # of what only looks like a URL nothing is kept
        return ""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _length_in_common(messages: Sequence[TraceMessage], earlier: Sequence[TraceMessage]) -> int:
    pairs = zip(messages, earlier, strict=False)
    return next((n for n, (one, other) in enumerate(pairs) if one != other), min(len(messages), len(earlier)))


def _block_entry(block: dict[str, Any]) -> dict[str, Any]:
    result = block["result"]
    variables = list(result["locals"].items())[:MAX_VARIABLES]
    entry = {
        "stdout": _cut(result["stdout"] or "", MAX_PRINTED),
        "stderr": _cut(result["stderr"] or "", MAX_PRINTED),
        "locals": {storable(str(name)): _variable(value) for name, value in variables},
        "execution_time": json_safe(result["execution_time"]),
        "rlm_calls": [
            json_safe({name: call[name] for name in call if name != "metadata"}) for call in result["rlm_calls"]
        ],
        "final_answer": _answer_entry(result["final_answer"]),
    }
    return {"code": storable(block["code"]), "result": entry}


def _answer_entry(value: Any) -> str | None:
    return None if value is None else storable(answer_text(value))


def _variable(value: Any) -> str:
    try:
        return _cut(_text(value), MAX_VALUE)
    except (ValueError, RecursionError):  # a number of thousands of digits, lists without end
        return f"({type(value).__name__})"


def _cut(text: str, most: int) -> str:
    text = storable(text)
    return text if len(text) <= most else text[:most] + CUT.format(len(text) - most)


def _now() -> str:
    return datetime.now().astimezone().isoformat()
