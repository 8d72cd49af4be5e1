"""DSPy adapter that parses replies with field marks or as a JSON object, without the model's reasoning."""

import re
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError

FIELD_MARK = re.compile(r"\[\[ ## \w+ ## \]\]")
MOST_CHARS = 200_000  # of a reply that are looked at; a model that ran wild may send millions
MOST_BRACES = 500  # of one that is read as JSON: mending thousands that were never closed takes minutes
_THOUGHT_TAG = re.compile(r"(</?think(?:ing)?>|\[/?THINK\])", re.IGNORECASE)


class LenientAdapter(dspy.ChatAdapter):
    """Parse a reply with DSPy's field marks, or as a JSON object, which some models write whatever is asked."""

    def __init__(self) -> None:
        super().__init__(use_json_adapter_fallback=False)  # which would ask once more, for JSON

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        """Return the fields of a reply.

        Raises:
            AdapterParseError: If it has neither form.
        """
        completion = without_thoughts(completion[:MOST_CHARS])
        try:
            return super().parse(signature, completion)
        except AdapterParseError as error:
            if not 0 < completion.count("{") <= MOST_BRACES:
                raise
            try:
                return dspy.JSONAdapter().parse(signature, completion)
            except (RecursionError, ValueError):  # brackets within brackets, deeper than the reader goes
                raise error from None


def without_thoughts(text: str) -> str:
    """Strip what reasoning models write between <think> and </think>.

    Reasoning that was cut off leaves no reply, unless a field had begun within it.
    """
    said, thinking, part = "", False, ""
    for part in _THOUGHT_TAG.split(text):
        if not _THOUGHT_TAG.fullmatch(part):
            said += "" if thinking else part
        elif "/" not in part:
            thinking = True
        else:  # one that was never opened closes all that went before
            said, thinking = said if thinking else "", False
    begun = FIELD_MARK.search(part) if thinking else None
    return said + part[begun.start() :] if begun else said
