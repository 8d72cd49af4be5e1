"""What scripted models do: a sound one, and ones that misbehave at one point and are sound otherwise."""

import re
from collections.abc import Callable

from support.scripted_server import Reply, Script, answer, step

QUESTION = "Dans quel délai le candidat doit-il déposer son compte de campagne ?"
SEARCHED = "compte de campagne dépôt délai"
OBSERVED = re.compile(r"Décision (\S+) : [^\n]*\n\[(P\d+)\] (?:\([^)]*\) )?([^\n]{80})")
ANSWERING = ("Écrivez maintenant la réponse", "Votre réponse n'", "Votre réponse était vide", "Votre réponse répète")
STEPPED = "J'appelle "  # in a step of the model's
FIRST = re.compile(r"\nQuestion : [^\n]*\Z")  # ends the prompt for the first step

Answering = str | Reply | Callable[[str], Reply]  # the same whatever the prompt, or by the prompt


def first_passage(prompt: str) -> tuple[str, str, str]:
    """Take the first passage that a tool showed: its document's id, its name, and how it begins."""
    doc_id, name, text = OBSERVED.search(prompt).groups()
    return doc_id, name, text.rsplit(" ", 1)[0]


def quotation(prompt: str) -> str:
    """Answer with the beginning of the first passage found, and where it stands."""
    _, name, text = first_passage(prompt)
    return f"Le texte dit : « {text} » [{name}]."


def wants_step(prompt: str) -> bool:
    """Tell whether a step is asked for, not the answer alone."""
    return not any(request in prompt for request in ANSWERING)


def sound(prompt: str, attempt: int = 0) -> Reply:
    """Search once, finish, and quote what was found."""
    if not wants_step(prompt):
        return answer(quotation(prompt))
    return step("finish") if STEPPED in prompt else step("search_legal_docs", query=SEARCHED, k=3)


def diligent(prompt: str, attempt: int) -> Reply:
    """Search, read, finish, and quote what was read."""
    if not wants_step(prompt):
        return answer(quotation(prompt))
    steps = prompt.count(STEPPED)
    if not steps:
        return step("search_legal_docs", query=SEARCHED, k=3)
    return step("lookup_legal_doc", id=first_passage(prompt)[0]) if steps == 1 else step("finish")


def always(reply: Answering) -> Script:
    """Reply so to everything."""
    return lambda prompt, attempt: _reply(reply, prompt)


def at_first(reply: Answering) -> Script:
    """Reply so to the first question for a step, and be sound from then on."""

    def script(prompt: str, attempt: int) -> Reply:
        return _reply(reply, prompt) if FIRST.search(prompt) else sound(prompt)

    return script


def in_steps(reply: Answering) -> Script:
    """Reply so whenever a step is asked for; write a sound answer."""
    return lambda prompt, attempt: _reply(reply, prompt) if wants_step(prompt) else sound(prompt)


def after_searching(reply: Answering) -> Script:
    """Search soundly; reply so to all that comes after."""
    return lambda prompt, attempt: _reply(reply, prompt) if STEPPED in prompt else sound(prompt)


def in_writing(reply: Answering) -> Script:
    """Work soundly; reply so when the answer is to be written."""
    return lambda prompt, attempt: sound(prompt) if wants_step(prompt) else _reply(reply, prompt)


def _reply(reply: Answering, prompt: str) -> Reply:
    if isinstance(reply, str):
        return Reply(reply)
    return reply if isinstance(reply, Reply) else reply(prompt)
