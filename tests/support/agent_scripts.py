"""What scripted models do: a sound one, and ones that misbehave at one point and are sound otherwise."""

import re
from collections.abc import Callable

from support.scripted_server import Reply, Script, fields, step

QUESTION = "Dans quel délai le candidat doit-il déposer son compte de campagne ?"
SEARCHED = "compte de campagne dépôt délai"
OBSERVED = re.compile(r"\[Source: ([^,\]]+), chars (\d+)-(\d+)\]\n« (.{80})", re.DOTALL)

Answering = str | Reply | Callable[[str], Reply]  # the same whatever the prompt, or by the prompt


def first_passage(prompt: str) -> tuple[str, int, int, str]:
    """Take the first passage that a tool showed: its id, offsets, and how it begins."""
    doc_id, start, end, text = OBSERVED.search(prompt).groups()
    return doc_id, int(start), int(end), text.rsplit(" ", 1)[0]


def quotation(prompt: str) -> str:
    """Answer with the beginning of the first passage found, and where it stands."""
    doc_id, start, end, text = first_passage(prompt)
    return f"Le texte dit : « {text} » [Source: {doc_id}, chars {start}-{end}]."


def wants_step(prompt: str) -> bool:
    """Tell whether a step is asked for, not the answer."""
    return "[[ ## next_tool_name ## ]]" in prompt


def sound(prompt: str, attempt: int = 0) -> Reply:
    """Search until something is found, finish, and quote it."""
    if not wants_step(prompt):
        return fields(reasoning="Lu.", answer=quotation(prompt))
    return step("finish") if OBSERVED.search(prompt) else step("search_legal_docs", query=SEARCHED, k=3)


def diligent(prompt: str, attempt: int) -> Reply:
    """Search, read, finish, and quote what was read."""
    if not wants_step(prompt):
        return fields(reasoning="Lu.", answer=quotation(prompt))
    if "observation_0" not in prompt:
        return step("search_legal_docs", query=SEARCHED, k=3)
    if "observation_1" not in prompt:
        return step("lookup_chunk", chunk_id=f"{first_passage(prompt)[0]}-0", context_chunks=1)
    return step("finish")


def always(reply: Answering) -> Script:
    """Reply so to everything."""
    return lambda prompt, attempt: _reply(reply, prompt)


def at_first(reply: Answering) -> Script:
    """Reply so to the first question for a step, and be sound from then on."""

    def script(prompt: str, attempt: int) -> Reply:
        is_first = wants_step(prompt) and "[[ ## observation_0 ## ]]" not in prompt
        return _reply(reply, prompt) if is_first else sound(prompt)

    return script


def in_steps(reply: Answering) -> Script:
    """Reply so whenever a step is asked for; write a sound answer."""
    return lambda prompt, attempt: _reply(reply, prompt) if wants_step(prompt) else sound(prompt)


def after_searching(reply: Answering) -> Script:
    """Search soundly; reply so to all that comes after."""
    return lambda prompt, attempt: _reply(reply, prompt) if OBSERVED.search(prompt) else sound(prompt)


def in_writing(reply: Answering) -> Script:
    """Work soundly; reply so when the answer is to be written."""
    return lambda prompt, attempt: sound(prompt) if wants_step(prompt) else _reply(reply, prompt)


def _reply(reply: Answering, prompt: str) -> Reply:
    if isinstance(reply, str):
        return Reply(reply)
    return reply if isinstance(reply, Reply) else reply(prompt)
