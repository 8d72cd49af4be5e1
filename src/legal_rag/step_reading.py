"""One step of an agent, read from a model's reply: what it thought, which tool it calls with what, or its answer.

In: a reply, its fields or its bare text. Out: a `Step`. Weak models misspell tools, write arguments in a dozen forms,
put the whole step into one JSON object, or write their answer where a step is expected: what is clear is taken.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from legal_rag.cleaning import json_safe, storable
from legal_rag.lenient_adapter import MOST_BRACES, without_thoughts
from legal_rag.tool_calls import FENCE, FINISH, Tool, fit_arguments, match_tool, read_arguments

MOST_ANSWER_CHARS = 50_000  # far more than any answer; a model that ran wild may write millions
MOST_SHOWN_CHARS = 100  # of what a model wrote, in what it is told about it

THOUGHTS = ("next_thought", "thought", "reasoning", "pensee", "raisonnement")
NAMES = ("next_tool_name", "tool_name", "tool", "action", "name", "function", "outil", "fonction", "recipient_name")
ARGUMENTS = ("next_tool_args", "tool_args", "args", "arguments", "action_input", "parameters", "input", "tool_input")
ANSWERS = ("answer", "final_answer", "reponse", "réponse", "reponse_finale", "response", "result", "output", "text")
LISTS = ("tool_calls", "tool_uses", "steps", "actions")  # a step is the first of them

_LABELS = (*THOUGHTS, *NAMES, *ARGUMENTS, *ANSWERS, "completed", "observation")
_LABEL = re.compile(
    rf"^[ \t\[#*`>_-]{{0,12}}(?P<name>{'|'.join(_LABELS).replace('_', '[_ ]')}"
    r")(?:_\d{1,3})?[ \t\]#*`_]{0,12}(?::|\]|$)[ \t\]#*:]{0,12}",
    re.IGNORECASE | re.MULTILINE,
)
_CALL = re.compile(r"\b(\w+)\s*\(([^()]*)\)")
_MARKER = re.compile(r"\[\s*Sources?\b", re.IGNORECASE)
_FIELD_MARK = re.compile(r"\[\[ ?## ?\w+ ?## ?\]\]")
_LEAD_IN = re.compile(r"^\W*(?:r[ée]ponse(?: finale)?|answer|final answer)[*_\s]*:[*_\s]*", re.IGNORECASE)


class Step(NamedTuple):
    """What a model does next: calls a tool, finishes, answers; or what it is told because none of these is clear."""

    thought: str
    tool: str  # one of the tools, or `FINISH`; empty where none can be made out
    arguments: dict[str, Any]
    answer: str = ""  # written in place of a step, or beside `FINISH`
    problem: str = ""  # in French, for the model: why no tool can be called
    remark: str = ""  # in French: what was left out of the call


def read_step(fields: Mapping[str, str] | None, text: str, tools: Mapping[str, Tool]) -> Step:
    """Read a reply to the question of what to do next.

    Args:
        fields: Of DSPy's signature; None where the reply could not be read as such.
        text: The reply as it came.
        tools: By name.
    """
    found = dict(fields) if fields else _loose_fields(without_thoughts(text), tools)
    thought = str(found.get("next_thought") or "").strip()
    name, written = str(found.get("next_tool_name") or ""), found.get("next_tool_args")
    tool = match_tool(name, tools)
    arguments = read_arguments(written)
    if not tool and (inner := _step_in(arguments)):  # the whole step stands where the arguments should
        tool, arguments = match_tool(str(inner["next_tool_name"]), tools), read_arguments(inner.get("next_tool_args"))
    elif "(" in name and not arguments:
        arguments = read_arguments(name[name.index("(") + 1 :].rpartition(")")[0])
    arguments = json_safe(arguments, keep_nan=True)
    if tool == FINISH:
        return Step(thought, FINISH, arguments, _answer_among(arguments) or _answer_among(found))
    if not tool:
        answer = _answer_among(found) or clean_answer(text if fields is None else "", only_clear=True)
        problem = _no_tool(name, tools)
        return Step(thought or text[:MOST_SHOWN_CHARS] * (not answer), "", arguments, answer, problem)
    return _fitted(thought, tool, arguments, tools[tool])


def clean_answer(text: str, *, only_clear: bool = False) -> str:
    """Return an answer without what models write around it: thoughts, field marks, fences, « Réponse : », JSON.

    Args:
        text: The answer as it was written.
        only_clear: Return nothing for a text that neither cites nor says that nothing was found.
    """
    text = storable(without_thoughts(text[:MOST_ANSWER_CHARS])).strip()
    fenced = FENCE.match(text)
    text = fenced.group(1).strip() if fenced else text
    if text.startswith("{") and isinstance(value := _json_object(text), dict):
        text = _first(value, ANSWERS) or text
    text = _LEAD_IN.sub("", _FIELD_MARK.sub("", text)).strip()
    return text if not only_clear or _is_clearly_answer(text) else ""


def expected_form(tools: Mapping[str, Tool], *, cut_off: bool = False) -> str:
    """Tell a model, in French, what a step looks like."""
    cut = "Votre réponse a été coupée avant la fin : soyez plus bref. " if cut_off else ""
    return (
        f"{cut}Cette étape est illisible. Écrivez exactement trois champs : [[ ## next_thought ## ]] suivi de votre "
        f"raisonnement, [[ ## next_tool_name ## ]] suivi d'un nom parmi {_names(tools)}, puis "
        '[[ ## next_tool_args ## ]] suivi d\'un objet JSON, par exemple {"query": "délai de recours"}.'
    )


def _fitted(thought: str, tool: str, arguments: Mapping[str, Any], function: Tool) -> Step:
    values, unknown, missing = fit_arguments(arguments, function)
    problem = remark = ""
    if missing:
        example = json.dumps(dict.fromkeys(missing, "…"), ensure_ascii=False)
        problem = f"Appel incomplet : {tool} a besoin de {', '.join(missing)}. Forme attendue : {example}."
    if unknown:
        shown = ", ".join(name[:MOST_SHOWN_CHARS] or "(sans nom)" for name in unknown[:5])
        remark = f"(Paramètres inconnus de {tool}, ignorés : {shown}.)\n"
    return Step(thought, tool, values, problem=problem, remark=remark)


def _no_tool(name: str, tools: Mapping[str, Tool]) -> str:
    if not name.strip():
        return expected_form(tools)
    return f"Aucun outil ne s'appelle « {name.strip()[:MOST_SHOWN_CHARS]} ». Outils : {_names(tools)}."


def _names(tools: Mapping[str, Tool]) -> str:
    return ", ".join((*tools, FINISH))


def _loose_fields(text: str, tools: Mapping[str, Tool]) -> dict[str, Any]:
    """Read a step from a JSON object, from labelled lines, or from a call as one writes it in Python."""
    if (value := _json_object(text)) and (found := _step_in(value) or _answer_in(value)):
        return found
    labelled = _labelled(text)
    if found := _step_in(labelled) or _answer_in(labelled):
        return found
    for match in _CALL.finditer(text[:MOST_ANSWER_CHARS]):
        if match[1] in (*tools, FINISH):
            return {"next_thought": text[: match.start()], "next_tool_name": match[1], "next_tool_args": match[2]}
    return {}


def _step_in(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """Find a step under the names that models give its parts; of a list of calls, the first counts."""
    folded = {str(name).casefold(): one for name, one in value.items()}
    for name in LISTS:
        if isinstance(calls := folded.get(name), list) and calls and isinstance(calls[0], dict):
            return _step_in(calls[0])
    if isinstance(inner := folded.get("function") or folded.get("action") or folded.get("tool"), dict):
        return _step_in(inner if "arguments" not in folded else {"arguments": folded["arguments"], **inner})
    name = _first(folded, NAMES)
    if not name:
        return None
    arguments = next((folded[one] for one in ARGUMENTS if one in folded), None)
    return {"next_thought": _first(folded, THOUGHTS), "next_tool_name": name, "next_tool_args": arguments}


def _answer_in(value: Mapping[str, Any]) -> dict[str, Any] | None:
    answer = _first({str(name).casefold(): one for name, one in value.items()}, ANSWERS)
    return {"answer": answer} if answer else None


def _labelled(text: str) -> dict[str, str]:
    """Read lines that begin with a part's name, however it is set off; the first of each name counts."""
    found_labels = _LABEL.finditer(text[:MOST_ANSWER_CHARS])
    labels = [match for match in found_labels if any(sign in match.group() for sign in "#*[]:")]
    ends = [*(match.start() for match in labels), len(text)][1:]
    found: dict[str, str] = {}
    for match, end in zip(labels, ends, strict=True):
        found.setdefault(match["name"].casefold().replace(" ", "_"), text[match.end() : end].strip())
    return found


def _json_object(text: str) -> dict[str, Any] | None:
    """Return the first JSON object of a text, mended where that is possible."""
    start = text.find("{")
    if start < 0 or text.count("{") > MOST_BRACES:
        return None
    value = read_arguments(text[start:])
    return value if value and "" not in value else None


def _answer_among(values: Mapping[str, Any]) -> str:
    """Return the answer that stands under one of its usual names, or without any, if it clearly is one."""
    folded = {str(name).casefold(): one for name, one in values.items()}
    return clean_answer(_first(folded, (*ANSWERS, "")), only_clear=True)


def _is_clearly_answer(text: str) -> bool:
    from legal_rag.citations import is_abstention

    return bool(_MARKER.search(text)) or (len(text) < 300 and is_abstention(text))


def _first(values: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((one.strip() for name in names if isinstance(one := values.get(name), str) and one.strip()), "")
