"""JSON as models write it: valid, or repaired where that does not take long."""

import json
from typing import Any

MAX_WORK = 1_000_000  # characters times brackets left open: json_repair may take a second or two for so much


def repaired_json(text: str) -> dict[str, Any] | list[Any] | None:
    """Return the object or list that a text holds from its first bracket on; None if there is none.

    What is no JSON is repaired (json_repair), unless that would take seconds: brackets left open cost the rest of the
    text each.
    """
    import json_repair

    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    if start < 0:
        return None
    text = text[start:]
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        if len(text) * (text.count("{") + text.count("[")) > MAX_WORK:
            return None
        try:
            value = json_repair.loads(text)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict | list) and value else None
