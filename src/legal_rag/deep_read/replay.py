"""A run taken up again: what its models replied before it was interrupted, given again in place of asking them.

In: a trace. Out: replies, as long as the conversation is the recorded one; programs run again, models are not asked
again.
"""

import hashlib
import json
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from legal_rag.budget import Usage
from legal_rag.cleaning import storable
from legal_rag.deep_read.trace_values import Message, SubCall, Trace

# A run may be taken up with more turns than it had: of how many this is one does not matter.
TURN = re.compile(r"^(Turn \d+)/\d+:", re.MULTILINE)
FIRST_MESSAGES = ("the system prompt", "the question or the size of its context", "the first turn's message")
SHOWN_CHARS = 60  # of a value in an error


class OtherRunError(ValueError):
    """A record is of another run than the one that is to go on with it."""


class Replay:
    """The replies of an earlier attempt at a run, each given once."""

    def __init__(self, trace: Trace, run: Mapping[str, Any] | None = None) -> None:
        """Begin again.

        Args:
            trace: Of the earlier attempt.
            run: What both attempts must have in common; None asks for nothing but the same conversation.

        Raises:
            ValueError: If they have not.
        """
        if run is not None:
            require_same_run(trace, run)
        self.trace = trace
        self._turns = 0
        self._goes_on = True
        self._replies = _replies_of(trace)

    @property
    def turns(self) -> int:
        """How many of the root model's replies were given so far."""
        return self._turns

    @property
    def usage(self) -> Usage:
        """What the earlier attempts came to, as far as it was written down."""
        return self.trace.usage

    def next_reply(self, messages: Sequence[Mapping[str, str]]) -> str | None:
        """Return what the root model replied to a conversation; None, from then on, where the record ends.

        The record also ends where a program now printed something else than it did then. Runs that programs started
        are recorded only until their turn's line is written.

        Args:
            messages: The whole conversation.

        Raises:
            OtherRunError: If it begins otherwise than the recorded one: it is not the same run.
        """
        said = tuple(Message(storable(one["role"]), storable(one["content"])) for one in messages)
        if self._turns and not self._is_root(said):
            return self._left(said)
        reply = self._recorded(said) if self._goes_on else None
        self._goes_on = reply is not None
        self._turns += self._goes_on
        return reply

    def sub_reply(self, prompt: str) -> str | None:
        """Return what the sub-model replied to a prompt, each reply once; None if nothing is left."""
        replies = self._replies.get(storable(prompt))
        return replies.popleft() if replies else None

    def _recorded(self, said: Sequence[Message]) -> str | None:
        turn, written = self._turns + 1, self.trace.iterations
        if turn <= len(written):
            known = written[turn - 1]
            if _comparable(known.messages) == _comparable(said):
                return known.response
            if turn == 1:
                raise OtherRunError(f"not the same run: {_difference(known.messages, said)} in {self.trace.path}")
        return self._left(said)

    def _left(self, said: Sequence[Message]) -> str | None:
        """Return the reply to a conversation that a kill left without its turn's line."""
        of_this = fingerprint(said)
        return next((one.replies[of_this] for one in self.trace.unfinished if of_this in one.replies), None)

    def _is_root(self, said: Sequence[Message]) -> bool:
        """Tell whether it is the run's own conversation, not that of a run which one of its programs started."""
        known = self.trace.iterations[0].messages if self.trace.iterations else said
        return known[:2] == tuple(said[:2])


def require_same_run(trace: Trace, run: Mapping[str, Any]) -> None:
    """Make sure that a trace is of a run.

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


def fingerprint(messages: Iterable[Message]) -> str:
    """Return what tells a conversation from others, whatever the number of turns it may have."""
    return hashlib.sha256(json.dumps(_comparable(messages)).encode()).hexdigest()


def _comparable(messages: Iterable[Message]) -> list[tuple[str, str]]:
    return [(role, TURN.sub(r"\1:", content) if role == "user" else content) for role, content in messages]


def _difference(known: Sequence[Message], said: Sequence[Message]) -> str:
    pairs = zip(_comparable(known), _comparable(said), strict=False)
    first = next((number for number, (one, other) in enumerate(pairs) if one != other), len(FIRST_MESSAGES))
    name = FIRST_MESSAGES[first] if first < len(FIRST_MESSAGES) else "the conversation"
    return f"{name} was another one"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"


def _replies_of(trace: Trace) -> dict[str, deque[str]]:
    """Return what the sub-model replied to each prompt, in order.

    A turn that was done anew heard the replies of the time before again: of its attempts the longest list counts.
    """
    replies: dict[str, deque[str]] = {}
    attempts: dict[int, list[Sequence[SubCall]]] = {}
    for iteration in (*trace.superseded, *trace.iterations):
        attempts.setdefault(iteration.number, []).append(iteration.calls)
    unfinished = {one.number: one.calls for one in trace.unfinished}
    for number in sorted({*attempts, *unfinished}):
        for prompt, heard in _longest(attempts.get(number, ())).items():
            replies.setdefault(prompt, deque()).extend(heard)
        for prompt, heard in _by_prompt(unfinished.get(number, ())).items():
            replies.setdefault(prompt, deque()).extend(heard)
    return replies


def _longest(attempts: Iterable[Sequence[SubCall]]) -> dict[str, list[str]]:
    longest: dict[str, list[str]] = {}
    for calls in attempts:
        for prompt, heard in _by_prompt(calls).items():
            if len(heard) > len(longest.get(prompt, ())):
                longest[prompt] = heard
    return longest


def _by_prompt(calls: Iterable[SubCall]) -> dict[str, list[str]]:
    replies: dict[str, list[str]] = {}
    for call in calls:
        if not call.error:  # what failed is asked again
            replies.setdefault(call.prompt, []).append(call.reply)
    return replies
