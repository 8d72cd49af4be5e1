"""Write the trace of a deep read as JSON Lines while it runs."""

import json
import os
import re
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from rlm.core.types import RLMIteration, RLMMetadata
from rlm.logger import RLMLogger

from legal_rag.agent.budget import Usage
from legal_rag.corpus.cleaning import json_safe, storable
from legal_rag.deep_read.conclusion import answer_text
from legal_rag.deep_read.models import ModelReply, without_turn_limit
from legal_rag.deep_read.trace import (
    EXTENSION,
    FORMAT_VERSION,
    Iteration,
    Message,
    SubCall,
    Trace,
    read_trace,
    unfinished_file,
)

PRIVATE = 0o600
NOT_RLMS = frozenset({"type", "timestamp", EXTENSION})  # fields of a metadata line that rlms' metadata have not
BEGINNING = b'{"type": "metadata"'  # of every trace
SHOWN_CHARS = 60  # of a value in an error
MOST_PRINTED = 20_000  # characters of what a block printed, and of its error: as many as rlms shows the model
MOST_VALUE = 200  # of a variable
MOST_VARIABLES = 100
CUT = " […{} caractères non conservés]"
SECRET = re.compile(r"key$|api.?key|secret|passw|auth|credential|cookie|header|bearer|signature|token(?!s|iz)", re.I)


class TracedReply(NamedTuple):
    """What a root model's reply came to."""

    usage: Usage
    seconds: float


def open_trace(path: Path | None, run: Mapping[str, Any]) -> "TraceLogger | None":
    """Begin a trace, or go on with one.

    Args:
        path: Of the file; None keeps no trace.
        run: What identifies the run, as JSON can hold it: question, documents, corpus, models…

    Raises:
        ValueError: If the file is no trace, or one of another run.
        OSError: If it cannot be written.
    """
    if path is None:
        return None
    return TraceLogger(path, run, None if _holds_no_line(path) else read_trace(path))


class TraceLogger(RLMLogger):
    """Writes a run's trace; one process at a time writes to a file, any number of its threads."""

    def __init__(self, path: str | Path, run: Mapping[str, Any], earlier: Trace | None = None) -> None:
        """Open the file; what it holds stays, but for a last line that a kill cut off.

        Args:
            path: Of the file; its folder is made.
            run: See `open_trace`.
            earlier: What the file holds; turns that come out as they did there are not written again.

        Raises:
            ValueError: If the file holds another run, or anything while `earlier` is None.
            OSError: If it cannot be written.
        """
        super().__init__()
        self.path, self._run, self._earlier = Path(path), run, earlier
        if earlier is not None:
            _require_same_run(earlier, json_safe(run))
        elif not _holds_no_line(self.path):
            raise ValueError(f"there is something in {self.path} already (name another file, or go on with that run)")
        self._conversation: tuple[Message, ...] = ()  # before the reply of the last turn, as the file has it
        self._reply: TracedReply | None = None  # what the root model's replies in the turn under way came to
        self._lock = threading.Lock()
        self._run_metadata: dict[str, Any] | None = None
        self.log_file_path = str(self.path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._cut_file(earlier.whole_bytes if earlier else 0)

    def log_metadata(self, metadata: RLMMetadata) -> None:
        """Take down a run's settings, without what may be a key or a password."""
        if self._run_metadata is not None:
            return
        entry = _metadata_entry(metadata.to_dict(), self._run)
        self._run_metadata = {name: value for name, value in entry.items() if name not in NOT_RLMS}
        if self._earlier is None or dict(self._earlier.metadata) != self._run_metadata:
            _append(self.path, _line(entry))

    def replied(self, messages: Sequence[Mapping[str, str]], reply: ModelReply) -> None:
        """Keep the root model's reply to a turn until the turn's line is written; not one that was given again."""
        so_far = self._reply or TracedReply(
            Usage(), 0.0
        )  # of the turn: its programs may have started runs of their own
        self._reply = TracedReply(so_far.usage.plus(reply.usage), so_far.seconds + reply.seconds)
        self._keep({"response": json_safe(reply.text), **_reply_fields(TracedReply(reply.usage, reply.seconds))})

    def called(self, call: SubCall) -> None:
        """Keep a call of the sub-model until its turn's line is written; not one that was given again."""
        self._keep(_call_fields(call))

    def log(self, iteration: RLMIteration) -> None:
        """Take down a turn."""
        self._iteration_count += 1
        messages = _messages_of(iteration.prompt)
        entry = _iteration_entry(iteration, self._iteration_count, messages, self._conversation, self._reply)
        self._reply = None
        self._iterations.append(entry)
        recorded = self._recorded()
        if recorded is not None and _is_told_by(recorded, entry, messages):
            self._conversation = recorded.messages
            return
        self._conversation = messages
        _append(self.path, _line(entry))
        self._earlier = None  # the file goes on from here
        unfinished_file(self.path).unlink(missing_ok=True)

    def clear_iterations(self) -> None:
        """Begin with the first turn."""
        super().clear_iterations()
        self._conversation, self._reply = (), None

    def _recorded(self) -> Iteration | None:
        written = self._earlier.iterations if self._earlier else ()
        return written[self._iteration_count - 1] if self._iteration_count <= len(written) else None

    def _keep(self, told: Mapping[str, Any]) -> None:
        with self._lock:
            line = _line({"iteration": self._iteration_count + 1, **told})
            _append(unfinished_file(self.path), line)

    def _cut_file(self, length: int) -> None:
        """Leave only whole lines in the file, and make it its owner's alone."""
        _append(self.path, b"")
        self.path.chmod(PRIVATE)
        os.truncate(self.path, length)
        if not length:
            unfinished_file(self.path).unlink(missing_ok=True)
        with self.path.open("rb") as file:
            file.seek(max(0, length - 1))
            if file.read(1) not in (b"", b"\n"):
                _append(self.path, b"\n")


def _append(path: Path, line: bytes) -> None:
    """Write a line in one piece; a file that is new is its owner's alone."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE)
    with os.fdopen(descriptor, "ab", buffering=0) as file:
        file.write(line)


def _holds_no_line(path: Path) -> bool:
    """Tell whether there is nothing to go on with: no file, an empty one, or one whose first line a kill cut off."""
    if not path.exists():
        return True
    with path.open("rb") as file:
        line = file.readline()
    return not line or (not line.endswith(b"\n") and (line.startswith(BEGINNING) or BEGINNING.startswith(line)))


def _is_told_by(recorded: Iteration, entry: Mapping[str, Any], messages: Sequence[Message]) -> bool:
    """Tell whether a turn came out as it did before, durations apart."""
    blocks = [
        (block["code"], result["stdout"], result["stderr"], result["final_answer"], len(result["rlm_calls"]))
        for block in entry["code_blocks"]
        for result in (block["result"],)
    ]
    before = [(one.code, one.stdout, one.stderr, one.final_answer, len(one.calls)) for one in recorded.blocks]
    now = (entry["response"], entry["final_answer"], blocks)
    same = now == (recorded.response, recorded.final_answer, before)
    return same and _comparable(messages) == _comparable(recorded.messages)


def _comparable(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(role, without_turn_limit(content)) for role, content in messages]


def _require_same_run(trace: Trace, run: Mapping[str, Any]) -> None:
    """Check that a trace is of a run.

    Raises:
        ValueError: If it is not; the message names the first difference.
    """
    if not trace.run:
        raise ValueError(f"not the same run: {trace.path} does not say which question and corpus it is of")
    for name in (*run, *trace.run):
        found, expected = trace.run.get(name), run.get(name)
        if found != expected:
            said = f"{name} was {_shown(found)} and is now {_shown(expected)}"
            raise ValueError(f"not the same run: in {trace.path} {said} (name another file)")


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"


def _metadata_entry(metadata: Mapping[str, Any], run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line that tells of a run's settings.

    Args:
        metadata: As rlms gives them.
        run: What two attempts at the run have in common.
    """
    told = {name: _without_secrets(value) for name, value in metadata.items()}
    return {
        "type": "metadata",
        "timestamp": _now(),
        **json_safe(told),
        EXTENSION: {"format_version": FORMAT_VERSION, "run": json_safe(run)},
    }


def _iteration_entry(
    iteration: RLMIteration,
    number: int,
    messages: Sequence[Message],
    earlier: Sequence[Message],
    reply: TracedReply | None,
) -> dict[str, Any]:
    """Return the line that tells of a turn.

    Args:
        iteration: As rlms gives it.
        number: From 1.
        messages: The conversation before the reply.
        earlier: That before the turn before, as the trace has it.
        reply: What the root model's reply came to, if that is known.
    """
    known = _length_in_common(messages, earlier)
    entry = {
        "type": "iteration",
        "iteration": number,
        "timestamp": _now(),
        "prompt": [message._asdict() for message in messages[known:]],
        "prompt_from": known,
        "response": storable(iteration.response),
        "code_blocks": [_block(block.to_dict()) for block in iteration.code_blocks],
        "final_answer": _answer(iteration.final_answer),
        "iteration_time": json_safe(iteration.iteration_time),
    }
    return entry if reply is None else {**entry, **_reply_fields(reply)}


def _reply_fields(reply: TracedReply) -> dict[str, Any]:
    """Return the fields that tell what a reply came to."""
    return {"usage": json_safe(reply.usage._asdict()), "reply_seconds": json_safe(reply.seconds)}


def _call_fields(call: SubCall) -> dict[str, Any]:
    """Return the fields that tell of a call of the sub-model before its turn's line is written."""
    return {"call": json_safe({**call._asdict(), "usage": call.usage._asdict()})}


def _messages_of(prompt: Any) -> tuple[Message, ...]:
    """Return a conversation as a trace holds it; rlms also knows prompts that are one text."""
    if not isinstance(prompt, list | tuple):
        return (Message("user", _text(prompt)),)
    return tuple(Message(_text(one.get("role")), _text(one.get("content"))) for one in prompt)


def _line(entry: Mapping[str, Any]) -> bytes:
    """Write an entry as a line."""
    return json.dumps(entry, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _without_secrets(value: Any) -> Any:
    """Return settings without what may be a key or a password, by name, and without those in addresses."""
    if isinstance(value, Mapping):
        return {name: _without_secrets(one) for name, one in value.items() if not SECRET.search(str(name))}
    if isinstance(value, list | tuple):
        return [_without_secrets(one) for one in value]
    return _address(value) if isinstance(value, str) and "://" in value else value


def _address(text: str) -> str:
    try:
        parts = urlsplit(text)
    except ValueError:  # of what only looks like an address nothing is kept
        return ""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _length_in_common(messages: Sequence[Message], earlier: Sequence[Message]) -> int:
    pairs = zip(messages, earlier, strict=False)
    return next((n for n, (one, other) in enumerate(pairs) if one != other), min(len(messages), len(earlier)))


def _block(block: dict[str, Any]) -> dict[str, Any]:
    result = block["result"]
    shown = list(result["locals"].items())[:MOST_VARIABLES]
    told = {
        "stdout": _cut(result["stdout"] or "", MOST_PRINTED),
        "stderr": _cut(result["stderr"] or "", MOST_PRINTED),
        "locals": {storable(str(name)): _variable(value) for name, value in shown},
        "execution_time": json_safe(result["execution_time"]),
        "rlm_calls": [_call(call) for call in result["rlm_calls"]],
        "final_answer": _answer(result["final_answer"]),
    }
    return {"code": storable(block["code"]), "result": told}


def _call(call: dict[str, Any]) -> dict[str, Any]:
    return {name: json_safe(value) for name, value in call.items() if name != "metadata"}


def _answer(value: Any) -> str | None:
    return None if value is None else storable(answer_text(value))


def _variable(value: Any) -> str:
    try:
        return _cut(_text(value), MOST_VALUE)
    except (ValueError, RecursionError):  # a number of thousands of digits, lists without end
        return f"({type(value).__name__})"


def _text(value: Any) -> str:
    return storable(value) if isinstance(value, str) else json.dumps(json_safe(value), ensure_ascii=False)


def _cut(text: str, most: int) -> str:
    text = storable(text)
    return text if len(text) <= most else text[:most] + CUT.format(len(text) - most)


def _now() -> str:
    return datetime.now().astimezone().isoformat()
