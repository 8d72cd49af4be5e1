"""The trace of a run: what its models wrote and what its programs printed, line by line as it happens, in rlms' form.

In: rlms' turns, the models' replies. Out: a JSONL file that only its owner may read, and that a run can be taken up
from after a limit, an error or a kill. What its lines hold, and where they say more than rlms' own: `trace_lines`.
"""

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlm.core.types import RLMIteration, RLMMetadata
from rlm.logger import RLMLogger

from legal_rag.budget import Usage
from legal_rag.cleaning import json_safe
from legal_rag.deep_read.models import ModelReply
from legal_rag.deep_read.replay import Replay, fingerprint, require_same_run
from legal_rag.deep_read.trace_lines import (
    Reply,
    call_fields,
    iteration_entry,
    line_of_entry,
    messages_of,
    metadata_entry,
    reply_fields,
)
from legal_rag.deep_read.trace_reading import EXTENSION, read_trace, unfinished_file
from legal_rag.deep_read.trace_values import Block, Iteration, Message, SubCall, Trace

__all__ = ["Block", "Iteration", "Replay", "Trace", "TraceLogger", "open_trace", "read_trace"]

PRIVATE = 0o600
NOT_RLMS = frozenset({"type", "timestamp", EXTENSION})  # fields of a metadata line that rlms' metadata have not
BEGINNING = b'{"type": "metadata"'  # of every trace


def open_trace(path: Path | None, run: Mapping[str, Any]) -> "tuple[TraceLogger | None, Replay | None]":
    """Begin a trace, or go on with one.

    Args:
        path: Of the file; None keeps no trace.
        run: What two attempts at this run have in common, as JSON can hold it: question, documents, corpus…

    Returns:
        What takes the run down, and what was replied before, if the file holds an earlier attempt.

    Raises:
        ValueError: If the file is no trace, or one of another run.
        OSError: If it cannot be written.
    """
    if path is None:
        return None, None
    if _holds_no_line(path):
        return TraceLogger(path, run), None
    trace = read_trace(path)
    return TraceLogger(path, run, trace), Replay(trace, json_safe(run))


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
            require_same_run(earlier, json_safe(run))
        elif not _holds_no_line(self.path):
            raise ValueError(f"there is something in {self.path} already (name another file, or go on with that run)")
        self._conversation: tuple[Message, ...] = ()  # before the reply of the last turn, as the file has it
        self._reply: Reply | None = None  # what the root model's replies in the turn under way came to
        self._lock = threading.Lock()
        self._run_metadata: dict[str, Any] | None = None
        self.log_file_path = str(self.path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._cut(earlier.whole_bytes if earlier else 0)

    def log_metadata(self, metadata: RLMMetadata) -> None:
        """Take down a run's settings, without what may be a key or a password."""
        if self._run_metadata is not None:
            return
        entry = metadata_entry(metadata.to_dict(), self._run)
        self._run_metadata = {name: value for name, value in entry.items() if name not in NOT_RLMS}
        if self._earlier is None or dict(self._earlier.metadata) != self._run_metadata:
            _append(self.path, line_of_entry(entry))

    def replied(self, messages: Sequence[Mapping[str, str]], reply: ModelReply) -> None:
        """Keep the root model's reply to a turn until the turn's line is written; not one that was given again."""
        so_far = self._reply or Reply(Usage(), 0.0)  # of the turn: its programs may have started runs of their own
        self._reply = Reply(so_far.usage.plus(reply.usage), so_far.seconds + reply.seconds)
        said = {"conversation": fingerprint(messages_of(messages)), "response": json_safe(reply.text)}
        self._keep({**said, **reply_fields(Reply(reply.usage, reply.seconds))})

    def called(self, call: SubCall) -> None:
        """Keep a call of the sub-model until its turn's line is written; not one that was given again."""
        self._keep(call_fields(call))

    def log(self, iteration: RLMIteration) -> None:
        """Take down a turn."""
        self._iteration_count += 1
        messages = messages_of(iteration.prompt)
        entry = iteration_entry(iteration, self._iteration_count, messages, self._conversation, self._reply)
        self._reply = None
        self._iterations.append(entry)
        recorded = self._recorded()
        if recorded is not None and _is_told_by(recorded, entry, messages):
            self._conversation = recorded.messages
            return
        self._conversation = messages
        _append(self.path, line_of_entry(entry))
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
            line = line_of_entry({"iteration": self._iteration_count + 1, **told})
            _append(unfinished_file(self.path), line)

    def _cut(self, length: int) -> None:
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
    return same and fingerprint(messages) == fingerprint(recorded.messages)
