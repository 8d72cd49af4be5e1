"""Root models that write programs written beforehand: scripts for the scripted server, by our protocol or rlms' own.

The n-th program is the reply to the n-th turn, whatever the order of arrival: the turn is read from the conversation,
whose last message ends in `Tour n/m :`, or `Turn n/m:`. Which question it is stands in the conversation too, so that
one server can play the root model of many questions at once. Everything else that is asked is a call of the sub-model,
told by its prompt.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence

from support.scripted_server import Reply, Script

TURN = re.compile(r"^T(?:our|urn) (\d+)/\d+ ?:[^\n]*(?:\n\nNote: [^\n]*)*\s*\Z", re.MULTILINE)
FIRST_TURN = re.compile(r"^T(?:our|urn) 1/\d+ ?:", re.MULTILINE)
QUESTION = re.compile(
    r"^(?:Question :|Answer the following:) (.*?)\n\n(?:Tour 1/|Your context is a )", re.M | re.DOTALL
)
PROTOCOL = "```repl"  # stands in every root model's system prompt
REFUSED = 400  # which no client tries again

Program = str | Reply  # code, or a whole reply that is sent as it is
SubModel = Callable[[str], str | Reply] | Mapping[str, str | Reply]  # of a prompt, or by a piece that it contains


def in_repl(code: str, thought: str = "J'exécute la suite.") -> str:
    """Write a program as a root model does: a thought, then the code in rlms' fence."""
    return f"{thought}\n\n```repl\n{code.strip()}\n```"


def root_model(programs: Sequence[Program], sub: SubModel | None = None, last: Program | None = None) -> Script:
    """Script a root model.

    Args:
        programs: What it replies to the first turn, to the second…
        sub: What the sub-model replies; without one, each of its calls is refused.
        last: What is replied where the turns are used up and an answer in prose is asked for.
    """
    return root_models({"": programs}, sub, last)


def root_models(
    programs: Mapping[str, Sequence[Program]], sub: SubModel | None = None, last: Program | None = None
) -> Script:
    """Script the root model of several questions; see `root_model`.

    Args:
        programs: By question; those of "" are for what is no known question, such as a recursive call.
        sub: Of all of them.
        last: Of all of them.
    """

    def script(prompt: str, attempt: int) -> Reply:
        if not is_root(prompt):
            return _reply_of_sub(prompt, sub)
        turn = turn_of(prompt)
        if turn is None:
            return _refused("no answer in prose was written beforehand") if last is None else _reply(last)
        written = programs.get(question_of(prompt), programs.get("", ()))
        if turn > len(written):
            return _refused(f"turn {turn} of {len(written)} programs written beforehand")
        program = written[turn - 1]
        return Reply(in_repl(program)) if isinstance(program, str) else program

    return script


def is_root(prompt: str) -> bool:
    """Tell whether the root model is asked, not the sub-model."""
    return PROTOCOL in prompt and FIRST_TURN.search(prompt) is not None


def turn_of(prompt: str) -> int | None:
    """Return the turn a root model is asked for, from 1; None if it is asked for no turn."""
    match = TURN.search(prompt)
    return int(match[1]) if match else None


def question_of(prompt: str) -> str:
    """Return the question of a conversation with a root model; "" if it has none, as in a recursive call."""
    match = QUESTION.search(prompt)
    return match[1] if match else ""


def _reply_of_sub(prompt: str, sub: SubModel | None) -> Reply:
    if sub is None:
        return _refused("no sub-model was expected")
    if not isinstance(sub, Mapping):
        return _reply(sub(prompt))
    found = next((reply for piece, reply in sub.items() if piece in prompt), None)
    return _refused(f"unexpected prompt of the sub-model: {prompt[:80]!r}") if found is None else _reply(found)


def _reply(reply: str | Reply) -> Reply:
    return Reply(reply) if isinstance(reply, str) else reply


def _refused(why: str) -> Reply:
    return Reply(status=REFUSED, raw_body=json.dumps({"error": {"message": why, "type": "invalid_request_error"}}))
