"""The functions as a model is told about them: name, arguments, and what their French docstrings say.

In: functions. Out: texts for a prompt.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_args, get_origin

RLMS_OWN = frozenset(
    {"llm_query", "llm_query_batched"}
)  # which rlms itself tells its models of, and lets none describe


def describe_functions(functions: Mapping[str, Callable[..., Any]]) -> str:
    """Return one line about each function, in their order."""
    return "\n".join(f"- {name}{description_of(one)}" for name, one in functions.items())


def description_of(function: Callable[..., Any]) -> str:
    """Return a function's arguments, what it gives, and its docstring, in one line."""
    signature = inspect.signature(function)
    said = " ".join((inspect.getdoc(function) or "").split())
    arguments = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    bare = signature.replace(parameters=arguments, return_annotation=inspect.Signature.empty)
    return f"{bare} -> {_type_text(signature.return_annotation)} : {said}"


def _type_text(annotation: Any) -> str:
    """Write a type as Python's own: what is a dictionary, under whatever name, is a dict."""
    if parts := get_args(annotation):
        return f"{get_origin(annotation).__name__}[{', '.join(map(_type_text, parts))}]"
    if isinstance(annotation, type):
        return "dict" if issubclass(annotation, dict) else annotation.__name__
    return str(annotation).removeprefix("typing.")
