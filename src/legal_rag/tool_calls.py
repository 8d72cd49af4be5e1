"""Tool calls as models write them: names misspelt or translated, arguments in any form; what was meant, if it is clear.

In: a name and arguments, as they came. Out: one of the tools, and arguments that it takes.
"""

import ast
import difflib
import inspect
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

FINISH = "finish"
UNNAMED = ""  # the name of an argument that came without one
MOST_ARGUMENT_CHARS = 20_000  # a model may send a whole decision where an id is expected
MOST_BRACKETS = 200  # of arguments that are mended: readers of JSON take minutes over thousands left open
CLOSE = 0.75  # of difflib's ratio, from which on one name is taken for another
FENCE = re.compile(r"^\s*`{3,}[\w-]*\s*\n?(.*?)\n?\s*(?:`{3,}\s*)?$", re.DOTALL)

Tool = Callable[..., str]

# What models write in place of the tools' names, and of their parameters', folded by `_key`.
TOOL_WORDS = {
    FINISH: "fini fin terminer termine terminate end done stop final final_answer answer give_answer repondre reponse "
    "reponse_finale conclure conclusion complete completed submit submit_answer return",
    "search_legal_docs": "search chercher cherche recherche rechercher retrieve query trouver find web_search google",
    "lookup_chunk": "chunk passage lire lire_passage read contexte context get_chunk read_chunk",
    "lookup_legal_doc": "document doc decision arret lire_decision lire_document lookup ouvrir open fetch consulter",
    "lookup_entities": "entities entites elements extraire extract extraction",
}
_IDS = "id doc_id document_id chunk_id passage_id decision_id doc document decision chunk passage identifiant"
PARAMETER_WORDS = {
    "query": "question q text texte requete recherche search search_query keywords mots mots_cles input",
    "k": "n top_k topk limit max_results num_results nombre size",
    "chunk_id": _IDS,
    "doc_id": _IDS,
    "doc_id_or_chunk_id": _IDS,
    "context_chunks": "context contexte voisins neighbours neighbors window",
    "juridiction": "jurisdiction court tribunal cour",
    "formation": "chamber chambre",
    "date_from": "from start start_date since depuis apres after date_debut",
    "date_to": "to end end_date until avant before date_fin",
    "number": "numero ecli pourvoi",
    "article": "articles law loi texte_cite",
    "entites": "entities entite",
    "classes": "classe class types type",
}


class FittedArguments(NamedTuple):
    """Arguments under the names that a tool gives them, and what did not fit."""

    values: dict[str, Any]
    unknown: list[str]  # names that the tool has no parameter for
    missing: list[str]  # parameters that it must be given


def match_tool(name: str, tools: Iterable[str]) -> str:
    """Return the tool that a name means, `FINISH` included; nothing if that is not clear.

    Case, hyphens, accents and what surrounds the name do not matter, nor do slips of the pen.
    """
    key = _key(name.split("(")[0][:200])
    known = {_key(tool): tool for tool in (*tools, FINISH)}
    if key in known:
        return known[key]
    for tool, words in TOOL_WORDS.items():
        if tool in known and key in words.split():
            return tool
    if close := difflib.get_close_matches(key, known, n=1, cutoff=CLOSE):
        return known[close[0]]
    within = [one for one in known if one in key and one != FINISH]
    return known[max(within, key=len)] if within else ""


def read_arguments(written: object) -> dict[str, Any]:
    """Read arguments in whatever form they came: an object, JSON, a Python literal, JSON with mistakes, a call, a text.

    Returns:
        The arguments by name; a value without a name under `UNNAMED`.
    """
    if isinstance(written, dict):
        return {str(name): value for name, value in written.items()}
    if isinstance(written, list):
        dicts = [one for one in written if isinstance(one, dict)]
        if dicts:
            return read_arguments(dicts[0])
        return {UNNAMED: _joined(written)} if written else {}
    if not isinstance(written, str):
        return {} if written is None else {UNNAMED: written}
    text = _unfenced(written[:MOST_ARGUMENT_CHARS]).strip()
    if not text or text.casefold() in ("none", "null", "{}", "n/a", "aucun"):
        return {}
    found = _parsed(text)
    return {UNNAMED: text} if found is None or found == written else read_arguments(found)


def fit_arguments(arguments: Mapping[str, Any], tool: Tool) -> FittedArguments:
    """Give arguments the names of a tool's parameters, and lists and numbers the form of text where text is taken."""
    parameters = inspect.signature(tool).parameters
    values: dict[str, Any] = {}
    unknown: list[str] = []
    for name, value in arguments.items():
        free = [one for one in parameters if one not in values and (one == name or one not in arguments)]
        fitting = _parameter(name, free)
        if fitting is None:
            unknown.append(name)
        elif value is not None:
            values[fitting] = _joined(value) if parameters[fitting].annotation is str else value
    missing = [
        name for name, one in parameters.items() if one.default is inspect.Parameter.empty and name not in values
    ]
    return FittedArguments(values, unknown, missing)


def describe_tool(tool: Tool) -> str:
    """Return a tool's name, parameters and French docstring, for a model to read."""
    parameters = ", ".join(str(one) for one in inspect.signature(tool).parameters.values())
    return f"{tool.__name__}({parameters}) : {inspect.getdoc(tool) or ''}"


def _parameter(name: str, free: list[str]) -> str | None:
    if name == UNNAMED:
        return free[0] if free else None
    key = _key(name)
    if exact := [one for one in free if _key(one) == key]:
        return exact[0]
    for one in free:
        if key in PARAMETER_WORDS.get(one, "").split():
            return one
    close = difflib.get_close_matches(key[:100], free, n=1, cutoff=CLOSE)
    return close[0] if close else None


def _parsed(text: str) -> Any:
    """Return the value that a text writes down, or None if it is only a text."""
    for read in (json.loads, ast.literal_eval, _keywords, _mended):
        try:
            value = read(text)
        # Not of that form; or brackets within brackets, deeper than these readers go.
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
        if value is not None:
            return value
    return None


def _keywords(text: str) -> dict[str, Any] | None:
    """Read `query="bail", k=3`, with or without the call around it."""
    inside = (
        text[text.index("(") : text.rindex(")") + 1] if re.match(r"\w+\s*\(.*\)$", text, re.DOTALL) else f"({text})"
    )
    call = ast.parse(f"f{inside}", mode="eval").body
    if not isinstance(call, ast.Call) or not (call.keywords or call.args):
        return None
    named = {one.arg or UNNAMED: ast.literal_eval(one.value) for one in call.keywords}
    return ({UNNAMED: ast.literal_eval(call.args[0])} if call.args else {}) | named


def _mended(text: str) -> Any:
    import json_repair

    if "{" not in text or text.count("{") + text.count("[") > MOST_BRACKETS:
        return None
    value = json_repair.loads(text[text.index("{") :])
    return value if isinstance(value, dict) and value else None


def _joined(value: Any) -> str:
    """Return a value as a text: a list's items one after the other."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return " ".join(str(one) for one in value)
    return json.dumps(value, ensure_ascii=False, default=str)


def _unfenced(text: str) -> str:
    fenced = FENCE.match(text)
    return fenced.group(1) if fenced else text


def _key(name: str) -> str:
    """Fold a name to what models leave of it: small letters without accents, one underscore between words."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().casefold()
    key = re.sub(r"[^a-z0-9]+", "_", plain).strip("_")
    return re.sub(r"^(?:functions?|tools?|default_api|outil)_", "", key)
