"""What a model writes: steps (thought, tool, arguments), answers, and tags in them for the knowledge graph."""

import difflib
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple

from legal_rag.base.text import normalized
from legal_rag.graph.tags import parse_extraction_tags
from legal_rag.graph.types import EDGE_TYPES, EPISODE_STATUSES, NODE_TYPES, ExtractionResult
from legal_rag.llm import json_in

FINISH = "finish"
UNNAMED = ""  # name of a positional argument
MAX_ANSWER_CHARS = 50_000  # far above any answer; a runaway model may write millions
MAX_ARGUMENT_CHARS = 20_000  # a model may send a whole decision where an id is expected
MAX_SHOWN_CHARS = 100  # of a model's text, quoted back to it
CLOSE = 0.75  # difflib ratio from which a name matches another

Tool = Callable[..., str]

# Other names that steps written as JSON have for DSPy's fields, by preference; and what wraps such a step.
FIELDS = {
    "next_thought": "next_thought thought reasoning pensee raisonnement",
    "next_tool_name": "next_tool_name tool_name tool action name function outil",
    "next_tool_args": "next_tool_args tool_args args arguments action_input parameters input tool_input",
    "answer": "answer final_answer reponse reponse_finale response",
}
WRAPPERS = "tool_calls steps actions function action tool"
FINISHING = "fin terminer termine end done stop final final_answer answer repondre reponse reponse_finale conclure"
_FENCE = re.compile(r"^\s*`{3,}[\w-]*\s*\n?(.*?)\n?\s*(?:`{3,}\s*)?$", re.DOTALL)
_FENCE_LINE = re.compile(r"^[ \t]*`{3,}[ \t]*$", re.MULTILINE)
_MARKER = re.compile(r"\[\s*Sources?\b", re.IGNORECASE)
_FIELD_MARK = re.compile(r"\[\[ ?## ?\w+ ?## ?\]\]")
_FENCED_BLOCK = re.compile(
    r"^[ \t]*(?P<mark>`{3,}+|~{3,}+)[^\n]*\n(?P<code>(?:(?![ \t]*(?:```|~~~))[^\n]*\n)*+"
    r"(?:(?![ \t]*(?:```|~~~))[^\n]++\Z)?)(?:[ \t]*(?P=mark)[ \t]*$|\Z)",
    re.MULTILINE,
)
_LEAD_IN = re.compile(r"^\W*(?:r[ée]ponse(?: finale)?|answer|final answer)[*_\s]*:[*_\s]*", re.IGNORECASE)


class Step(NamedTuple):
    """A tool call, the end of the search, or an answer; else the problem to report to the model."""

    thought: str
    tool: str  # one of the tools, or `FINISH`; empty if none is recognised
    arguments: dict[str, Any]
    answer: str = ""  # instead of a step, or with `FINISH`
    problem: str = ""  # in French, for the model: why no tool can be called
    remark: str = ""  # in French: parameters left out of the call


def read_step(fields: Mapping[str, str] | None, text: str, tools: Mapping[str, Tool]) -> Step:
    """Parse a step from the fields of DSPy's signature or, if these could not be parsed (None), from the raw reply."""
    step_fields = _fields_in(fields or _json_object(text))
    thought, name = step_fields.get("next_thought", ""), step_fields.get("next_tool_name", "")
    tool, arguments = match_tool(name, tools), read_arguments(step_fields.get("next_tool_args"))
    if tool == FINISH:
        return Step(thought, FINISH, arguments, _clear_answer(arguments) or _clear_answer(step_fields))
    if not tool:
        answer = _clear_answer(step_fields) or clean_answer("" if fields else text, only_clear=True)
        problem = f"Aucun outil ne s'appelle « {name[:MAX_SHOWN_CHARS]} ». Outils : {_list_tool_names(tools)}."
        shown = thought or ("" if answer else text[:MAX_SHOWN_CHARS])
        return Step(shown, "", arguments, answer, problem if name else expected_form(tools))
    return _fitted(thought, tool, arguments, tools[tool])


def clean_answer(text: str, *, only_clear: bool = False) -> str:
    """Strip field marks, fences, « Réponse : » and JSON around an answer.

    With `only_clear`, a text that neither cites nor abstains gives ''.
    """
    text = _unfenced(text[:MAX_ANSWER_CHARS].strip())
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
    """Return the tool, or `FINISH`, that a name means, up to case, typing errors and missing parts; else empty."""
    key = folded_key(name.split("(")[0][:200])
    known = {folded_key(tool): tool for tool in (*tools, FINISH)}
    if key in known:
        return known[key]
    if key in FINISHING.split():
        return FINISH
    if close := difflib.get_close_matches(key, known, n=1, cutoff=CLOSE):
        return known[close[0]]
    within = [name for name in known if name != FINISH and key and (name in key or key in name)]
    return known[max(within, key=len)] if within else ""


def read_arguments(written: object) -> dict[str, Any]:
    """Parse arguments from an object, JSON (repaired if need be), or plain text.

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
    if not text or text.casefold() in ("none", "null", "n/a", "aucun"):
        return {}
    parsed = json_in(text) if text.startswith(("{", "[")) else None
    return {UNNAMED: text} if parsed is None else read_arguments(parsed)


def fit_arguments(arguments: Mapping[str, Any], tool: Tool) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return arguments under a tool's parameter names, the unknown names, and the required parameters that are missing.

    Values become text for parameters of type str. The first argument of an unknown name takes the place of a required
    parameter that is missing.
    """
    parameters = inspect.signature(tool).parameters
    required = [name for name, parameter in parameters.items() if parameter.default is inspect.Parameter.empty]
    given = {name: value for name, value in arguments.items() if value is not None}
    values = {name: given.pop(name) for name in parameters if name in given}
    for name in list(given):
        free = [parameter for parameter in parameters if parameter not in values]
        if close := difflib.get_close_matches(folded_key(name)[:100], free, n=1, cutoff=CLOSE):
            values[close[0]] = given.pop(name)
    for name in required:
        if name not in values and given:
            values[name] = given.pop(next(iter(given)))
    values = {
        name: _join_as_text(value) if parameters[name].annotation is str else value for name, value in values.items()
    }
    return values, list(given), [name for name in required if name not in values]


def describe_tool(tool: Tool) -> str:
    """Return a tool's name, parameters and French docstring, for a model to read."""
    parameters = ", ".join(map(str, inspect.signature(tool).parameters.values()))
    return f"{tool.__name__}({parameters}) : {inspect.getdoc(tool) or ''}"


@dataclass(frozen=True, kw_only=True)
class TagSettings:
    """Settings of an answer's tags: whether they are asked for, and which count."""

    single_pass_extraction_enabled: bool = True  # else the prompt does not mention them, and the answer is left as is
    extraction_confidence_threshold: float = 0.7  # 0 to 1; entities and relationships below it are dropped

    def __post_init__(self) -> None:
        if not 0 <= self.extraction_confidence_threshold <= 1:
            threshold = self.extraction_confidence_threshold
            raise ValueError(f"extraction_confidence_threshold must be from 0 to 1, got {threshold}")


def tag_instructions() -> str:
    """Return the part of a model's instructions about tags, in French."""
    names = {"node_types": NODE_TYPES, "edge_types": EDGE_TYPES, "statuses": EPISODE_STATUSES}
    text = (files("legal_rag.agent") / "tags_prompt.md").read_text("utf-8").strip()
    return text.format(**{name: ", ".join(values) for name, values in names.items()})


def take_tags(text: str) -> tuple[ExtractionResult, str]:
    """Take the tags out of a model's text; return their extraction, and the text without them."""
    unfenced = _FENCED_BLOCK.sub(_unfence_tags, text)
    result, clean = parse_extraction_tags(unfenced)
    return result, text if clean == unfenced else clean


def without_tags(value: Any) -> Any:
    """Return a text without tags; of lists and dictionaries, those in their texts."""
    if isinstance(value, dict):
        return {name: without_tags(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_tags(item) for item in value]
    return parse_extraction_tags(value)[1] if isinstance(value, str) else value


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
    for name in WRAPPERS.split():
        inner = folded.get(name)
        inner = inner[0] if isinstance(inner, list) and inner else inner
        if isinstance(inner, dict):
            return _fields_in({key: value for key, value in folded.items() if key != name} | inner)
    fields: dict[str, Any] = {}
    for field, names in FIELDS.items():
        given = (folded.get(name) for name in names.split())
        if field == "next_tool_args":
            fields[field] = next((value for value in given if value is not None), None)
        elif texts := [text.strip() for text in given if isinstance(text, str) and text.strip()]:
            fields[field] = texts[0]
    return fields


def _json_object(text: str) -> dict[str, Any]:
    value = json_in(text[text.find("{") :]) if "{" in text else None
    return value if isinstance(value, dict) else {}


def _clear_answer(values: Mapping[str, Any]) -> str:
    return clean_answer(str(_fields_in(values).get("answer") or values.get(UNNAMED) or ""), only_clear=True)


def _is_clearly_answer(text: str) -> bool:
    from legal_rag.citations.enricher import is_abstention

    return bool(_MARKER.search(text)) or (len(text) < 300 and is_abstention(text))


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


def _unfence_tags(block: re.Match[str]) -> str:
    """Drop the fence around a block that contains tags, closed or cut off, as many models write them."""
    return block[0] if parse_extraction_tags(block["code"])[1] == block["code"] else block["code"]
