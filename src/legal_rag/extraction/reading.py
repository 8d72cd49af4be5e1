"""Prompts and replies as LangExtract writes and reads them: the piece of text in a prompt, the entities in a reply.

In: a prompt, or a model's reply. Out: the piece that the prompt asks about; a reply's entities as JSON values.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

ANSWER = "\nA: "  # ends a prompt
_QUESTION = "Q: "
_EXAMPLE_ANSWER = re.compile(r"\nA: (?=\s*[\[{`]|extractions:)")  # JSON, YAML, or a fence: an example's
_FENCE = re.compile(r"```[a-zA-Z]*\s*\n(?P<inside>.*)```", re.DOTALL)
_THOUGHTS = re.compile(r"<think>.*?</think>", re.DOTALL | re.IGNORECASE)
EXTRACTIONS, ATTRIBUTES = "extractions", "_attributes"  # LangExtract's own keys


class UnreadableReplyError(ValueError):
    """A reply is no JSON of the form that LangExtract reads, for example because it was cut off."""


def without_answer(prompt: str) -> str:
    """Return a prompt up to the piece's end; a client may have taken off its last blank."""
    return prompt.removesuffix(" ").removesuffix(ANSWER.rstrip())


def piece_of(prompt: str) -> str:
    """Return the text that a prompt asks about: what stands behind the last example.

    Lines of the text itself that begin with 'Q:' or 'A:' are no examples: behind an example's answer, which is JSON,
    comes an empty line and the next question.

    Raises:
        ValueError: If the prompt is not one of LangExtract's.
    """
    body = "\n" + without_answer(prompt)
    start = body.find(f"\n{_QUESTION}")
    if start < 0:
        raise ValueError(f"not a prompt of LangExtract's: {prompt[-60:]!r} (expected '… Q: <text>\\nA: ')")
    while answer := _EXAMPLE_ANSWER.search(body, start):
        following = body.find(f"\n\n{_QUESTION}", answer.end())
        if following < 0:  # an answer in the text itself
            break
        start = following + 1
    return body[start + 1 + len(_QUESTION) :]


def extractions_of(reply: str) -> list[dict[str, Any]]:
    """Read a reply: each entity as `{class: text, class_attributes: {…}}`; what has another form is left out.

    Raises:
        UnreadableReplyError: If the reply is no JSON, or holds no list of entities.
    """
    value = _json_in(reply)
    if isinstance(value, dict):
        value = value.get(EXTRACTIONS)
    if not isinstance(value, list):
        raise UnreadableReplyError(f"no list of {EXTRACTIONS!r} in the reply")
    return [one for item in value if isinstance(item, dict) for one in _entities(item)]


def _json_in(reply: str) -> Any:
    """Read what a reply holds, as it is, without a model's thoughts before it, or between fences."""
    without_thoughts = _THOUGHTS.sub("", reply)
    fenced = _FENCE.search(without_thoughts)
    failure: Exception = ValueError("empty")
    for form in (reply, without_thoughts, fenced["inside"] if fenced else ""):
        try:
            return json.loads(form)
        except (ValueError, RecursionError) as error:  # a number may be too long, brackets too deep
            failure = error if form is reply else failure
    raise UnreadableReplyError(f"not JSON: {failure}")


def reply_of(extractions: list[dict[str, Any]]) -> str:
    """Write entities as a reply that LangExtract reads."""
    return json.dumps({EXTRACTIONS: extractions}, ensure_ascii=False)


def _entities(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if isinstance(item.get("extraction_class"), str):  # LangExtract's own names, which models take for the form
        name, attributes = item["extraction_class"], item.get("attributes")
        item = {name: item.get("extraction_text"), f"{name}{ATTRIBUTES}": attributes}
    for name, text in item.items():
        if name and not name.endswith(ATTRIBUTES) and isinstance(text, str | int | float) and str(text).strip():
            yield {name: str(text), f"{name}{ATTRIBUTES}": _plain(item.get(f"{name}{ATTRIBUTES}"))}


def _plain(attributes: Any) -> dict[str, str]:
    """Make attributes plain text: a list is joined, what is empty left out."""
    if not isinstance(attributes, dict):
        return {}
    texts = {
        str(name): ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        for name, value in attributes.items()
        if value not in (None, "", [], {})
    }
    return {name: text for name, text in texts.items() if text}
