"""What an agent did so far, as its model reads it: thoughts, calls and observations, in DSPy's form.

In: each step. Out: a text in which nothing that was retrieved can pass for anything but data.
"""

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from legal_rag.cleaning import storable

MOST_THOUGHT_CHARS = 3000  # of a thought that the model is reminded of
MOST_ARGUMENT_CHARS = 1000
LINE_CHARS = 160  # of an observation that had to be shortened
# What a model, or the template of its chat, could take for structure: DSPy's field marks and chat templates' own.
_STRUCTURE = re.compile(r"\[(?=\s*\[\s*#)|<(?=\|)|\[(?=/?INST\])", re.IGNORECASE)
_LOOK_ALIKES = {"[": "⟦", "<": "‹"}


def without_marks(text: str) -> str:
    """Return a text, as long as before, that cannot be taken for a part of the prompt's structure.

    Halves of characters, which no request may hold, are replaced.
    """
    return _STRUCTURE.sub(lambda match: _LOOK_ALIKES[match.group()], storable(text))


@dataclass(frozen=True)
class Turn:
    """One step: what the model thought and called, and what came of it."""

    thought: str
    tool: str
    arguments: dict[str, Any]
    observation: str
    is_short: bool = False

    def shortened(self) -> "Turn":
        """Return the step with what was observed cut to a line."""
        line = " ".join(self.observation.split())[:LINE_CHARS]
        return replace(self, observation=f"{line} […] (observation abrégée)", is_short=True)


class Trajectory:
    """The steps of one run, oldest first."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []

    def add(self, thought: str, tool: str, arguments: dict[str, Any], observation: str) -> None:
        """Write down a step."""
        said = json.dumps(arguments, ensure_ascii=False, default=str)
        shown = arguments if len(said) <= MOST_ARGUMENT_CHARS else {"…": said[:MOST_ARGUMENT_CHARS]}
        self.turns.append(Turn(thought[:MOST_THOUGHT_CHARS], tool, shown, observation))

    def shorten(self) -> bool:
        """Cut the older half of the observations that are still whole to a line each; tell whether there was one."""
        whole = [index for index, turn in enumerate(self.turns) if not turn.is_short]
        for index in whole[: (len(whole) + 1) // 2]:
            self.turns[index] = self.turns[index].shortened()
        return bool(whole)

    def as_fields(self) -> dict[str, Any]:
        """Return the steps under the names that `dspy.ReAct` gives them."""
        fields: dict[str, Any] = {}
        for index, turn in enumerate(self.turns):
            fields[f"thought_{index}"] = turn.thought
            fields[f"tool_name_{index}"] = turn.tool
            fields[f"tool_args_{index}"] = turn.arguments
            fields[f"observation_{index}"] = turn.observation
        return fields

    def __str__(self) -> str:
        lines = []
        for name, value in self.as_fields().items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            lines.append(f"[[ ## {name} ## ]]\n{without_marks(text)}")
        return "\n\n".join(lines)
