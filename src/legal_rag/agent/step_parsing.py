"""Parse a model's step (thought, tool, arguments) or answer from the forms that models write."""

import ast
import difflib
import inspect
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from typing import Any, NamedTuple

from legal_rag.base.text import json_safe, normalized, storable
from legal_rag.llm import json_in, without_thoughts

FINISH = "finish"
UNNAMED = ""  # name of a positional argument
MAX_ANSWER_CHARS = 50_000  # far above any answer; a runaway model may write millions
MAX_ARGUMENT_CHARS = 20_000  # a model may send a whole decision where an id is expected
MAX_SHOWN_CHARS = 100  # of a model's text, quoted back to it
CLOSE = 0.75  # difflib ratio from which a name matches another

Tool = Callable[..., str]

SYNONYMS: dict[str, Any] = tomllib.loads((files(__package__) / "synonyms.toml").read_text("utf-8"))

_LABELS = "|".join([*" ".join(SYNONYMS["fields"].values()).split(), "completed", "observation"])
_LABEL = re.compile(
    rf"^[ \t\[#*`>_-]{{0,12}}(?P<name>{_LABELS.replace('_', '[_ ]').replace('reponse', 'r[ée]ponse')}"
    r")(?:_\d{1,3})?[ \t\]#*`_]{0,12}(?::|\]|$)[ \t\]#*:]{0,12}",
    re.IGNORECASE | re.MULTILINE,
)
_FENCE = re.compile(r"^\s*`{3,}[\w-]*\s*\n?(.*?)\n?\s*(?:`{3,}\s*)?$", re.DOTALL)
_FENCE_LINE = re.compile(r"^[ \t]*`{3,}[ \t]*$", re.MULTILINE)
_CALL = re.compile(r"\b(\w+)\s*\(([^()]*)\)")
_MARKER = re.compile(r"\[\s*Sources?\b", re.IGNORECASE)
_FIELD_MARK = re.compile(r"\[\[ ?## ?\w+ ?## ?\]\]")
_LEAD_IN = re.compile(r"^\W*(?:r[ée]ponse(?: finale)?|answer|final answer)[*_\s]*:[*_\s]*", re.IGNORECASE)


class Step(NamedTuple):
    """A tool call, the end of the search, or an answer; else the problem to report to the model."""

    thought: str
    tool: str  # one of the tools, or `FINISH`; empty if none is recognised
    arguments: dict[str, Any]
    answer: str = ""  # instead of a step, or with `FINISH`
    problem: str = ""  # in French, for the model: why no tool can be called
    remark: str = ""  # in French: parameters left out of the call


class FittedArguments(NamedTuple):
    """Arguments under a tool's parameter names."""

    values: dict[str, Any]
    unknown: list[str]  # names that the tool has no parameter for
    missing: list[str]  # required parameters without a value


def read_step(fields: Mapping[str, str] | None, text: str, tools: Mapping[str, Tool]) -> Step:
    """Parse a step from the fields of DSPy's signature or, if these could not be parsed (None), from the raw reply."""
    step_fields = _fields_in(fields) if fields else _fields_of_text(without_thoughts(text), tools)
    thought, name = step_fields.get("next_thought", ""), step_fields.get("next_tool_name", "")
    tool, arguments = match_tool(name, tools), read_arguments(step_fields.get("next_tool_args"))
    if not tool and (inner := _fields_in(arguments)).get("next_tool_name"):  # the step is nested in its arguments
        tool, arguments = match_tool(inner["next_tool_name"], tools), read_arguments(inner.get("next_tool_args"))
    elif "(" in name and not arguments:
        arguments = read_arguments(name.partition("(")[2].rpartition(")")[0])
    try:
        arguments = json_safe(arguments, keep_nan=True)
    except RecursionError:  # lists in lists, which no tool takes
        arguments = {}
    if tool == FINISH:
        return Step(thought, FINISH, arguments, _clear_answer(arguments) or _clear_answer(step_fields))
    if not tool:
        answer = _clear_answer(step_fields) or clean_answer("" if fields else text, only_clear=True)
        problem = f"Aucun outil ne s'appelle « {name[:MAX_SHOWN_CHARS]} ». Outils : {_list_tool_names(tools)}."
        shown = thought or ("" if answer else text[:MAX_SHOWN_CHARS])
        return Step(shown, "", arguments, answer, problem if name else expected_form(tools))
    return _fitted(thought, tool, arguments, tools[tool])


def clean_answer(text: str, *, only_clear: bool = False) -> str:
    """Strip thoughts, field marks, fences, « Réponse : » and JSON around an answer.

    With `only_clear`, a text that neither cites nor abstains gives ''.
    """
    text = _unfenced(storable(without_thoughts(text[:MAX_ANSWER_CHARS])).strip())
    if text.startswith("{"):
        text = _fields_in(_json_object(text)).get("answer") or text
    text = _LEAD_IN.sub("", _FIELD_MARK.sub("", text)).strip()
    return text if not only_clear or _is_clearly_answer(text) else ""


def expected_form(tools: Mapping[str, Tool], *, cut_off: bool = False) -> str:
    """Explain the form of a step to a model, in French."""
    cut = "Votre réponse a été coupée avant la fin : soyez plus bref. " if cut_off else ""
    return (
        f"{cut}Cette étape est illisible. Écrivez exactement trois champs : [[ ## next_thought ## ]] suivi de votre "
        f"raisonnement, [[ ## next_tool_name ## ]] suivi d'un nom parmi {_list_tool_names(tools)}, puis "
        '[[ ## next_tool_args ## ]] suivi d\'un objet JSON, par exemple {"query": "délai de recours"}.'
    )


def match_tool(name: str, tools: Iterable[str]) -> str:
    """Return the tool, or `FINISH`, that a name means up to case, accents, synonyms and typing errors; else empty."""
    key = _fold_tool_key(name.split("(")[0][:200])
    known = {_fold_tool_key(tool): tool for tool in (*tools, FINISH)}
    if key in known:
        return known[key]
    for tool, words in SYNONYMS["tools"].items():
        if tool in known and key in words.split():
            return tool
    if close := difflib.get_close_matches(key, known, n=1, cutoff=CLOSE):
        return known[close[0]]
    within = [tool_key for tool_key in known if tool_key in key and tool_key != FINISH]
    return known[max(within, key=len)] if within else ""


def read_arguments(written: object) -> dict[str, Any]:
    """Parse arguments from an object, JSON (repaired if need be), a Python literal or call, or plain text.

    They are returned by name; one without a name under `UNNAMED`.
    """
    if isinstance(written, dict):
        return {str(name): value for name, value in written.items()}
    if isinstance(written, list):
        if dicts := [item for item in written if isinstance(item, dict)]:
            return read_arguments(dicts[0])
        return {UNNAMED: _join_as_text(written)} if written else {}
    if not isinstance(written, str):
        return {} if written is None else {UNNAMED: written}
    text = _unfenced(written[:MAX_ARGUMENT_CHARS]).strip()
    if not text or text.casefold() in ("none", "null", "{}", "n/a", "aucun"):
        return {}
    parsed = _parse_any_form(text)
    return {UNNAMED: text} if parsed is None or parsed == written else read_arguments(parsed)


def fit_arguments(arguments: Mapping[str, Any], tool: Tool) -> FittedArguments:
    """Rename arguments to a tool's parameters, and convert values to text for parameters of type str."""
    parameters = inspect.signature(tool).parameters
    values: dict[str, Any] = {}
    unknown: list[str] = []
    for name, value in arguments.items():
        free = [key for key in parameters if key not in values and (key == name or key not in arguments)]
        fitting = _match_parameter(name, free)
        if fitting is None:
            unknown.append(name)
        elif value is not None:
            values[fitting] = _join_as_text(value) if parameters[fitting].annotation is str else value
    required = (name for name, parameter in parameters.items() if parameter.default is inspect.Parameter.empty)
    return FittedArguments(values, unknown, [name for name in required if name not in values])


def describe_tool(tool: Tool) -> str:
    """Return a tool's name, parameters and French docstring, for a model to read."""
    parameters = ", ".join(map(str, inspect.signature(tool).parameters.values()))
    return f"{tool.__name__}({parameters}) : {inspect.getdoc(tool) or ''}"


def _fitted(thought: str, tool: str, arguments: Mapping[str, Any], function: Tool) -> Step:
    values, unknown, missing = fit_arguments(arguments, function)
    problem = remark = ""
    if missing:
        example = json.dumps(dict.fromkeys(missing, "…"), ensure_ascii=False)
        problem = f"Appel incomplet : {tool} a besoin de {', '.join(missing)}. Forme attendue : {example}."
    if unknown:
        shown = ", ".join(name[:MAX_SHOWN_CHARS] or "(sans nom)" for name in unknown[:5])
        remark = f"(Paramètres inconnus de {tool}, ignorés : {shown}.)\n"
    return Step(thought, tool, values, problem=problem, remark=remark)


def _list_tool_names(tools: Mapping[str, Tool]) -> str:
    return ", ".join((*tools, FINISH))


def _fields_in(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a step's fields under DSPy's names, unwrapped; of a list of steps, the first."""
    folded = {folded_key(str(name)): value for name, value in values.items()}
    for name in SYNONYMS["wrappers"].split():
        inner = folded.get(name)
        inner = inner[0] if isinstance(inner, list) and inner else inner
        if isinstance(inner, dict):
            return _fields_in({key: value for key, value in folded.items() if key != name} | inner)
    fields: dict[str, Any] = {}
    for field, synonyms in SYNONYMS["fields"].items():
        given = (folded.get(name) for name in synonyms.split())
        if field == "next_tool_args":
            fields[field] = next((value for value in given if value is not None), None)
        elif texts := [text.strip() for text in given if isinstance(text, str) and text.strip()]:
            fields[field] = texts[0]
    return fields


def _fields_of_text(text: str, tools: Mapping[str, Tool]) -> dict[str, Any]:
    """Parse a step from a JSON object, labelled lines, or a call in Python's syntax."""
    for fields in (_fields_in(_json_object(text)), _fields_in(_labelled(text))):
        if "next_tool_name" in fields or "answer" in fields:
            return fields
    for match in _CALL.finditer(text[:MAX_ANSWER_CHARS]):
        if match[1] in (*tools, FINISH):
            thought = text[: match.start()].strip()
            return {"next_thought": thought, "next_tool_name": match[1], "next_tool_args": match[2]}
    return {}


def _labelled(text: str) -> dict[str, str]:
    """Split a text at lines that begin with a field's name; the first of each name counts."""
    text = text[:MAX_ANSWER_CHARS]
    labels = [match for match in _LABEL.finditer(text) if any(sign in match.group() for sign in "#*[]:")]
    ends = [*(match.start() for match in labels), len(text)][1:]
    fields: dict[str, str] = {}
    for match, end in zip(labels, ends, strict=True):
        fields.setdefault(folded_key(match["name"]), text[match.end() : end].strip())
    return fields


def _json_object(text: str) -> dict[str, Any]:
    """Parse the first JSON object of a text, repaired if need be; empty without one."""
    start = text.find("{")
    if start < 0:
        return {}
    value = read_arguments(text[start:])
    return {} if UNNAMED in value else value


def _clear_answer(values: Mapping[str, Any]) -> str:
    """Return the answer among some values if it clearly is one, see `clean_answer`."""
    return clean_answer(str(_fields_in(values).get("answer") or values.get(UNNAMED) or ""), only_clear=True)


def _is_clearly_answer(text: str) -> bool:
    from legal_rag.citations.enricher import is_abstention

    return bool(_MARKER.search(text)) or (len(text) < 300 and is_abstention(text))


def _match_parameter(name: str, free: list[str]) -> str | None:
    if name == UNNAMED:
        return free[0] if free else None
    key = _fold_tool_key(name)
    for parameter in free:
        if key == _fold_tool_key(parameter):
            return parameter
    for parameter in free:
        if key in SYNONYMS["parameters"].get(parameter, "").split():
            return parameter
    return next(iter(difflib.get_close_matches(key[:100], free, n=1, cutoff=CLOSE)), None)


def _parse_any_form(text: str) -> Any:
    for read in (json.loads, _python_arguments, _repaired):
        try:
            value = read(text)
        # Another form, or nested too deeply for the parser.
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
        if value is not None:
            return value
    return None


def _python_arguments(text: str) -> Any:
    """Parse a Python literal, or `query="bail", k=3` with or without the call around it."""
    inside = text[text.index("(") :] if re.match(r"\w+\s*\(.*\)$", text, re.DOTALL) else f"({text})"
    call = ast.parse(f"f{inside}", mode="eval").body
    if not isinstance(call, ast.Call) or not (call.keywords or call.args):
        return None
    named = {keyword.arg or UNNAMED: ast.literal_eval(keyword.value) for keyword in call.keywords}
    if not call.args:
        return named
    first = ast.literal_eval(call.args[0])
    return {UNNAMED: first} | named if named or not isinstance(first, dict | list) else first


def _repaired(text: str) -> Any:
    value = json_in(text[text.index("{") :])
    return value if isinstance(value, dict) else None


def _join_as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False, default=str)


def _unfenced(text: str) -> str:
    """Strip the fence around a text; one that is closed before its end is part of it."""
    fenced = _FENCE.match(text)
    return fenced.group(1).strip() if fenced and not _FENCE_LINE.search(fenced.group(1)) else text


def folded_key(name: str) -> str:
    """Return a name in snake_case without accents."""
    plain = normalized(name, "NFKD").encode("ascii", "ignore").decode().casefold()
    return re.sub(r"[^a-z0-9]+", "_", plain).strip("_")


def _fold_tool_key(name: str) -> str:
    """Fold a name without the namespaces that models prefix."""
    return re.sub(r"^(?:functions?|tools?|default_api|outil)_", "", folded_key(name))
