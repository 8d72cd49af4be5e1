"""A language model that extracts what a test tells it to, behind a real OpenAI-compatible server on 127.0.0.1.

It reads the piece out of LangExtract's prompt and finds given words in it, the same way after a kill.
"""

import json
from collections.abc import Callable, Sequence

from support.scripted_server import Reply

Found = Sequence[tuple[str, str]]  # class and text


def piece_of(prompt: str) -> str:
    """Return the piece that a prompt of LangExtract's asks about, after its last 'Q: '."""
    return prompt.rpartition("\nQ: ")[2].removesuffix(" ").removesuffix("\nA:")


def reply_with(found: Found, **attributes: str) -> Reply:
    """Reply with entities, in the form that LangExtract asks for."""
    items = [{name: text, f"{name}_attributes": attributes} for name, text in found]
    return Reply(json.dumps({"extractions": items}, ensure_ascii=False))


def finding(words: Found) -> Callable[[str, int], Reply]:
    """Script a model that finds those of some words that stand in the piece, as often as they do, in its order."""

    def script(prompt: str, attempt: int) -> Reply:
        piece = piece_of(prompt)
        places = sorted(
            (at, name, word) for name, word in words for at in range(len(piece)) if piece.startswith(word, at)
        )
        return reply_with([(name, word) for _, name, word in places])

    return script
