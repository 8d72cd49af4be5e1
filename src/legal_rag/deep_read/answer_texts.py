"""The answer of a program as text: what FINAL was given, a text, a number, a list, a table, written for a reader.

In: a plain value. Out: French Markdown. A text stays as it is.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

NOTHING = "(rien)"
DEEPEST = 4  # lists within lists; what lies deeper is written as JSON


def answer_text(value: Any) -> str:
    """Write a value that JSON can hold as text: nested lists become nested bullets, `**key** : value`."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, Mapping | list | tuple):
        return "\n".join(_lines(value, 0)) or NOTHING
    return _scalar(value)


def _lines(value: Any, depth: int) -> list[str]:
    pairs = value.items() if isinstance(value, Mapping) else ((None, one) for one in value)
    lines: list[str] = []
    for key, one in pairs:
        name = "" if key is None else f"**{_in_line(str(key))}** : "
        if not _is_group(one) or depth + 1 == DEEPEST:
            lines.append(f"{'  ' * depth}- {name}{_in_line(_scalar(one))}")
        elif _is_row(one):
            lines.append(f"{'  ' * depth}- {name}{', '.join(_in_line(_scalar(part)) for part in one)}")
        else:
            lines += [f"{'  ' * depth}- {name}".rstrip(), *_lines(one, depth + 1)]
    return lines


def _is_group(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple) and len(value) > 0


def _is_row(value: Any) -> bool:
    """Tell whether a list is short and flat, such as (year, count)."""
    return isinstance(value, Sequence) and len(value) <= 3 and not any(map(_is_group, value))


def _scalar(value: Any) -> str:
    if value is None or (isinstance(value, Mapping | list | tuple) and not value):
        return NOTHING
    if isinstance(value, bool):
        return "oui" if value else "non"
    if isinstance(value, float):
        return f"{value:.10g}".replace(".", ",") if math.isfinite(value) else NOTHING
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _in_line(text: str) -> str:
    return " ".join(text.split())
