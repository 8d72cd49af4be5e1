"""Lines of a trace: a run's settings and turns as JSON that any reader can take, bounded and without secrets.

In: what rlms logs. Out: values that JSON can hold, and each as one line of UTF-8.

A trace has rlms' own form, which its visualiser reads, and these extensions, all of them further fields:

- metadata: `legal_rag`: the `format_version` of these extensions, and `run`, what two attempts at a run share;
- iteration: `prompt` holds only the messages that are new; before them come the first `prompt_from` messages of the
  iteration before. rlms writes the whole conversation every time, which grows with the square of the turns;
- iteration: `usage` and `reply_seconds`, what the root model's reply came to.

Replies, and prompts of the sub-model, are kept whole: a run is taken up again from them. What a program printed, its
errors and its variables are cut; of a recursive call its own trajectory is left out.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from rlm.core.types import RLMIteration

from legal_rag.budget import Usage
from legal_rag.cleaning import json_safe, storable
from legal_rag.deep_read.answer_texts import answer_text
from legal_rag.deep_read.trace_reading import EXTENSION, FORMAT_VERSION
from legal_rag.deep_read.trace_values import Message, SubCall

MOST_PRINTED = 20_000  # characters of what a block printed, and of its error: as many as rlms shows the model
MOST_VALUE = 200  # of a variable
MOST_VARIABLES = 100
CUT = " […{} caractères non conservés]"
SECRET = re.compile(r"key$|api.?key|secret|passw|auth|credential|cookie|header|bearer|signature|token(?!s|iz)", re.I)


class Reply(NamedTuple):
    """What a root model's reply came to."""

    usage: Usage
    seconds: float


def metadata_entry(metadata: Mapping[str, Any], run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line that tells of a run's settings.

    Args:
        metadata: As rlms gives them.
        run: What two attempts at the run have in common.
    """
    told = {name: without_secrets(value) for name, value in metadata.items()}
    return {
        "type": "metadata",
        "timestamp": _now(),
        **json_safe(told),
        EXTENSION: {"format_version": FORMAT_VERSION, "run": json_safe(run)},
    }


def iteration_entry(
    iteration: RLMIteration, number: int, messages: Sequence[Message], earlier: Sequence[Message], reply: Reply | None
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
    return entry if reply is None else {**entry, **reply_fields(reply)}


def reply_fields(reply: Reply) -> dict[str, Any]:
    """Return the fields that tell what a reply came to."""
    return {"usage": json_safe(reply.usage._asdict()), "reply_seconds": json_safe(reply.seconds)}


def call_fields(call: SubCall) -> dict[str, Any]:
    """Return the fields that tell of a call of the sub-model before its turn's line is written."""
    return {"call": json_safe({**call._asdict(), "usage": call.usage._asdict()})}


def messages_of(prompt: Any) -> tuple[Message, ...]:
    """Return a conversation as a trace holds it; rlms also knows prompts that are one text."""
    if not isinstance(prompt, list | tuple):
        return (Message("user", _text(prompt)),)
    return tuple(Message(_text(one.get("role")), _text(one.get("content"))) for one in prompt)


def line_of_entry(entry: Mapping[str, Any]) -> bytes:
    """Write an entry as a line."""
    return json.dumps(entry, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def without_secrets(value: Any) -> Any:
    """Return settings without what may be a key or a password, by name, and without those in addresses."""
    if isinstance(value, Mapping):
        return {name: without_secrets(one) for name, one in value.items() if not SECRET.search(str(name))}
    if isinstance(value, list | tuple):
        return [without_secrets(one) for one in value]
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
