"""What a model writes: steps (a tool's arguments, or the answer), their forms, and tags for the knowledge graph.

A step is one JSON object whose fields say what it is: `{"query": "…"}` searches, `{"id": "…"}` reads a decision,
`{"evidence": ["P3"], "answer": "…"}` answers. Small models choose wrongly between names of tools, not between fields;
only the further tools are named (`{"tool": "get_outline", "id": "…"}`). Other usual forms are read as well.
"""

import difflib
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import starmap
from typing import Any, NamedTuple

from legal_rag.agent.tool_arguments import FILTERS
from legal_rag.base.text import normalized
from legal_rag.graph.tags import parse_extraction_tags
from legal_rag.graph.types import EDGE_TYPES, EPISODE_STATUSES, NODE_TYPES, ExtractionResult
from legal_rag.llm import json_in, unfenced

FINISH = "finish"
UNNAMED = ""  # name of a positional argument
MAX_ANSWER_CHARS = 50_000  # far above any answer; a runaway model may write millions
MAX_ARGUMENT_CHARS = 20_000  # a model may send a whole decision where an id is expected
MAX_SHOWN_CHARS = 100  # of a model's text, quoted back to it
MAX_IDS = 50  # of documents, in a schema: the last ones seen
MAX_EVIDENCE = 2  # pieces beside an answer
BY_FIELDS = ("search_legal_docs", "lookup_legal_doc")  # tools whose steps are known by their fields
ANSWER_FORM = '{"evidence": […], "answer": "…"}'
ANSWERING = "les numéros des passages qui répondent, puis la réponse, en une ou deux phrases complètes."
ANSWERING_OPTIONS = (
    "Citez-y les passages mot pour mot entre « », chaque citation suivie de son numéro, [P1] ; une phrase d'analyse"
    " commence par [Analyse] ; si rien ne répond, evidence est vide et answer est « Aucun passage pertinent »."
)
_STRING = {"type": "string"}
# By the annotation of an optional parameter; all others are texts.
_TYPES: dict[Any, dict[str, Any]] = {int | None: {"type": "integer"}, dict[str, Any] | None: {"type": "object"}}
PIECE_NAME = r"P\s?\d{1,4}"  # however it is written
CLOSE = 0.75  # difflib ratio from which a name matches another

Tool = Callable[..., str]

# Other names of a step's fields, by preference; and what wraps such a step.
FIELDS = {
    "thought": "thought next_thought reasoning pensee raisonnement",
    "tool": "tool next_tool_name tool_name action name function outil",
    "arguments": "arguments next_tool_args tool_args args action_input parameters input tool_input",
    "answer": "answer final_answer reponse reponse_finale response",
    "evidence": "evidence preuves preuve sources passages",
}
WRAPPERS = "tool_calls steps actions function action tool"
FINISHING = "fin terminer termine end done stop final final_answer answer repondre reponse reponse_finale conclure"
_MARKER = re.compile(r"\[\s*(?:Sources?\b|P\s?\d)", re.IGNORECASE)
_FIELD_MARK = re.compile(r"\[\[ ?## ?(\w+) ?## ?\]\]")
# Calls as some families of models write them, whatever they are asked for.
_NAMED_CALL = re.compile(
    r"<function=(?P<name>[\w.-]{1,80})>|\[TOOL_CALLS\]\s*(?P<mistral>[\w.-]{1,80})\s*(?:\[CALL_ID\]\s*[\w-]{1,80}\s*)?\[ARGS\]"
)
_CALL_MARK = re.compile(r"</?tool_call>|\[TOOL_CALLS\]|<\|?tool_call\|?>|<\|python_tag\|>")
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
    evidence: tuple[str, ...] = ()  # names of the pieces that the answer rests on
    problem: str = ""  # in French, for the model: why no tool can be called
    remark: str = ""  # in French: parameters left out of the call


def read_step(text: str, tools: Mapping[str, Tool]) -> Step:
    """Parse a step from a reply, in the form asked for or in another usual one."""
    fields, rest = _step_fields(_object_in(text))
    thought, name = str(fields["thought"] or ""), str(fields["tool"] or "")
    arguments = read_arguments(fields["arguments"]) or rest
    tool = match_tool(name, tools) if name else _tool_taking(arguments, tools)
    answer = _answer_in(arguments) or _answer_in(fields)
    if tool == FINISH or (answer and not tool):
        evidence = piece_names(fields["evidence"] or arguments.get("evidence"))
        return Step(thought, FINISH, arguments, clean_answer(answer), evidence)
    if not tool:
        answer = clean_answer(text, only_clear=True)
        problem = f"Aucun outil ne s'appelle « {name[:MAX_SHOWN_CHARS]} ». " if name else ""
        return Step(thought, "", arguments, answer, problem=problem + expected_form(tools))
    return _fitted(thought, tool, arguments, tools[tool])


def read_answer(text: str) -> tuple[str, tuple[str, ...]]:
    """Parse a reply to the request for the answer: the answer, and the names of the pieces that it rests on."""
    fields, rest = _step_fields(_object_in(text))
    arguments = read_arguments(fields["arguments"]) or rest
    evidence = piece_names(fields["evidence"] or arguments.get("evidence"))
    unread = "" if _NAMED_CALL.search(text) else text  # the call of a tool is no answer
    return clean_answer(_answer_in(fields) or _answer_in(arguments) or unread), evidence


def clean_answer(text: str, *, only_clear: bool = False) -> str:
    """Strip field marks, fences, « Réponse : » and JSON around an answer.

    With `only_clear`, a text that neither cites nor abstains gives ''.
    """
    text = unfenced(text[:MAX_ANSWER_CHARS].strip())
    if text.startswith("{") and (values := json_object(text)):
        text = _answer_in(_step_fields(values)[0])  # empty in an object that answers nothing, such as a step
    text = _LEAD_IN.sub("", _FIELD_MARK.sub("", text)).strip()
    return text if not only_clear or _is_clearly_answer(text) else ""


def forms_of(tools: Mapping[str, Tool], *, with_options: bool = False) -> str:
    """Return the forms of a step, one a line, each with what it does, in French.

    What the tools say of their optional parameters, from their second paragraph on, is part of it `with_options`.
    """
    lines = [f"- {ANSWER_FORM} : {ANSWERING}{f' {ANSWERING_OPTIONS}' if with_options else ''}"]
    for name, tool in tools.items():
        about = inspect.getdoc(tool) or ""
        about = " ".join((about if with_options else about.partition("\n\n")[0]).split())
        lines.append(f"- {_form_of(name, tool)} : {about}")
    return "\n".join(lines)


def step_schema(tools: Mapping[str, Tool], doc_ids: Sequence[str], pieces: Sequence[str], *, with_options: bool) -> Any:
    """Return the JSON Schema of a step: the ids and the names of pieces seen are the only ones it can hold."""
    ids = {"enum": list(doc_ids)[-MAX_IDS:]} if doc_ids else _STRING
    forms = [answer_schema(pieces, with_options=with_options)]
    for name, tool in tools.items():
        properties: dict[str, Any] = {} if name in BY_FIELDS else {"tool": {"const": name}}
        required = _required_of(tool)
        for parameter in inspect.signature(tool).parameters.values():
            if with_options or parameter.name in required:
                kind = _TYPES.get(parameter.annotation, _STRING)
                properties[parameter.name] = ids if parameter.name == "id" else kind
        forms.append(_object_schema(properties, [*(set(properties) & {"tool"}), *required]))
    return {"type": "object", "anyOf": forms}


def answer_schema(pieces: Sequence[str], *, with_options: bool) -> dict[str, Any]:
    """Return the JSON Schema of an answer that rests on pieces shown, on one at least unless `with_options`."""
    evidence: dict[str, Any] = {"type": "array", "items": {"enum": list(pieces)} if pieces else _STRING}
    if not with_options:
        evidence |= {"minItems": min(1, len(pieces)), "maxItems": MAX_EVIDENCE}
    return _object_schema({"evidence": evidence, "answer": _STRING}, ["evidence", "answer"])


def expected_form(tools: Mapping[str, Tool], *, cut_off: bool = False) -> str:
    """Explain the form of a step to a model, in French."""
    cut = "Votre réponse a été coupée avant la fin : soyez plus bref. " if cut_off else ""
    forms = ", ".join([ANSWER_FORM, *starmap(_form_of, tools.items())])
    return f"{cut}Écrivez un seul objet JSON, sans rien autour, d'une de ces formes : {forms}."


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
    text = unfenced(written[:MAX_ARGUMENT_CHARS]).strip()
    if not text or text.casefold() in ("none", "null", "n/a", "aucun"):
        return {}
    parsed = json_in(text) if text.startswith(("{", "[")) else None
    return {UNNAMED: text} if parsed is None else read_arguments(parsed)


def fit_arguments(arguments: Mapping[str, Any], tool: Tool) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return arguments under a tool's parameter names, the unknown names, and the required parameters that are missing.

    Values become text for parameters of type str; filters of a search may stand beside its query. The first argument of
    an unknown name takes the place of a required parameter that is missing.
    """
    parameters, required = inspect.signature(tool).parameters, _required_of(tool)
    given = {name: value for name, value in arguments.items() if value is not None}
    values = {name: given.pop(name) for name in parameters if name in given}
    for name in list(given):
        free = [parameter for parameter in parameters if parameter not in values]
        if close := difflib.get_close_matches(folded_key(name)[:100], free, n=1, cutoff=CLOSE):
            values[close[0]] = given.pop(name)
    if "filters" in parameters and (filters := {name: given.pop(name) for name in FILTERS if name in given}):
        values["filters"] = {**(values["filters"] if isinstance(values.get("filters"), dict) else {}), **filters}
    for name in required:
        if name not in values and given:
            values[name] = given.pop(next(iter(given)))
    values = {
        name: _join_as_text(value) if parameters[name].annotation is str else value for name, value in values.items()
    }
    return values, list(given), [name for name in required if name not in values]


@dataclass(frozen=True, kw_only=True)
class TagSettings:
    """Settings of an answer's tags: whether they are asked for, and which count."""

    # None is for contexts of `LARGE_WINDOW` tokens; else the prompt does not mention them, the answer is left as is
    single_pass_extraction_enabled: bool | None = None
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
    open_text = _FENCED_BLOCK.sub(_unfence_tags, text)
    result, clean = parse_extraction_tags(open_text)
    return result, text if clean == open_text else clean


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
        problem = f"Il manque {', '.join(missing)}. Écrivez un seul objet JSON : {_form_of(tool, function)}."
    if unknown:
        shown = ", ".join(name[:MAX_SHOWN_CHARS] or "(sans nom)" for name in unknown[:5])
        remark = f"(Paramètres inconnus, ignorés : {shown}.)\n"
    return Step(thought, tool, values, problem=problem, remark=remark)


def _form_of(name: str, tool: Tool) -> str:
    required = [f'"{parameter}": "…"' for parameter in _required_of(tool)]
    named = [] if name in BY_FIELDS else [f'"tool": "{name}"']
    return f"{{{', '.join([*named, *required])}}}"


def _object_schema(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _tool_taking(arguments: Mapping[str, Any], tools: Mapping[str, Tool]) -> str:
    """Return the first tool whose required parameters are all given; empty if there is none."""
    return next((name for name, tool in tools.items() if all(map(arguments.__contains__, _required_of(tool)))), "")


def _required_of(tool: Tool) -> list[str]:
    parameters = inspect.signature(tool).parameters.values()
    return [parameter.name for parameter in parameters if parameter.default is parameter.empty]


def _object_in(text: str) -> dict[str, Any]:
    """Return a reply as one object: fields between DSPy's marks, a call as models' templates write it, or JSON."""
    if marks := list(_FIELD_MARK.finditer(text)):
        ends = [*(mark.start() for mark in marks[1:]), len(text)]
        fields = [(mark[1], text[mark.end() : end].strip()) for mark, end in zip(marks, ends, strict=True)]
        return dict(reversed(fields))  # the first of a name counts
    if call := _NAMED_CALL.search(text):
        rest = text[call.end() :]
        named = (part.partition(">") for part in rest.split("<parameter=")[1:])
        parameters = {name: value.partition("</parameter>")[0].strip() for name, _, value in named}
        return {"tool": call["name"] or call["mistral"], "arguments": parameters or json_object(rest)}
    return json_object(_CALL_MARK.sub("", text))


def _step_fields(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a step's fields under our names (None where missing), unwrapped, and the rest; of several, the first."""
    folded = {folded_key(str(name)): value for name, value in values.items()}
    for name in WRAPPERS.split():
        inner = folded.get(name)
        inner = inner[0] if isinstance(inner, list) and inner else inner
        if isinstance(inner, dict):
            return _step_fields({key: value for key, value in folded.items() if key != name} | inner)
    fields: dict[str, Any] = {}
    used = set[str]()
    for field, names in FIELDS.items():
        given = ((name, folded[name]) for name in names.split() if name in folded)
        texts = ((name, value.strip() if isinstance(value, str) else value) for name, value in given)
        name, fields[field] = next((pair for pair in texts if pair[1] not in ("", None)), ("", None))
        used.add(name)
    return fields, {str(name): value for name, value in values.items() if folded_key(str(name)) not in used}


def json_object(text: str) -> dict[str, Any]:
    """Return the first JSON object of a text, of a list of objects the first; empty without any."""
    value = json_in(text[text.find("{") :]) if "{" in text else None
    return value if isinstance(value, dict) else {}


def _answer_in(values: Mapping[str, Any]) -> str:
    answer = values.get("answer") or values.get(UNNAMED)
    return answer if isinstance(answer, str) else ""


def piece_names(value: Any) -> tuple[str, ...]:
    """Return the names of pieces in a text, or a list of texts, each once: « P1 et p 2 » is P1, P2."""
    names = re.findall(PIECE_NAME, str(value or ""), re.IGNORECASE)
    return tuple(dict.fromkeys("".join(name.upper().split()) for name in names))


def _is_clearly_answer(text: str) -> bool:
    from legal_rag.citations.enricher import is_abstention

    return bool(_MARKER.search(text)) or (len(text) < 300 and is_abstention(text))


def _join_as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False, default=str)


def folded_key(name: str) -> str:
    """Return a name in snake_case without accents."""
    plain = normalized(name, "NFKD").encode("ascii", "ignore").decode().casefold()
    return re.sub(r"[^a-z0-9]+", "_", plain).strip("_")


def _unfence_tags(block: re.Match[str]) -> str:
    """Drop the fence around a block that contains tags, closed or cut off, as many models write them."""
    return block[0] if parse_extraction_tags(block["code"])[1] == block["code"] else block["code"]
