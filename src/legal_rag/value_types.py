"""Values against their types: what a file says of a run is looked at before anything relies on it.

In: a value that came from outside, and the type it ought to be of. Out: nothing, or an error that says what is wrong.
"""

from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

LARGEST = 2**53  # beyond it numbers are not exact in JSON's floats, nor offsets of anything


def require_type(value: Any, expected: Any, name: str) -> None:
    """Check a value, and all that it holds, against a type as annotations write it.

    Args:
        value: The value.
        expected: `str`, `int`, `float`, `None`, `Any`, a `Literal`, a union, a `list`, `tuple[…, ...]` or `dict` of
            such, or a NamedTuple or dataclass, whose fields are checked in turn.
        name: What the value is called, for the error.

    Raises:
        ValueError: If it is of another type, or a number that is not finite or beyond 2**53.
    """
    origin, arguments = get_origin(expected), get_args(expected)
    if expected is Any:
        return
    if origin in (Union, UnionType):
        _require_one_of(value, arguments, name)
    elif origin is Literal:
        _require(isinstance(value, str) and value in arguments, value, expected, name)
    elif origin in (list, tuple):
        _require(isinstance(value, origin), value, expected, name)
        for number, item in enumerate(value):
            require_type(item, arguments[0], f"{name}[{number}]")
    elif origin is dict:
        _require(isinstance(value, dict), value, expected, name)
        for key, item in value.items():
            require_type(key, arguments[0], f"a key of {name}")
            require_type(item, arguments[1], f"{name}[{key!r:.40}]")
    elif expected in (int, float):
        _require(_is_number(value, expected), value, expected, name)
    else:
        _require(isinstance(value, NoneType if expected is None else expected), value, expected, name)
        hints = {} if expected in (None, NoneType, str, bool) else get_type_hints(expected)
        for field, hint in hints.items():
            require_type(getattr(value, field), hint, f"{name}.{field}")


def _require_one_of(value: Any, types: tuple[Any, ...], name: str) -> None:
    if value is None and NoneType in types:
        return
    (expected,) = (one for one in types if one is not NoneType)
    require_type(value, expected, name)


def _is_number(value: Any, expected: Any) -> bool:
    is_number = isinstance(value, int if expected is int else (int, float)) and not isinstance(value, bool)
    return is_number and -LARGEST <= value <= LARGEST  # which NaN is not either


def _require(holds: bool, value: Any, expected: Any, name: str) -> None:
    if not holds:
        wanted = expected.__name__ if isinstance(expected, type) and not get_args(expected) else str(expected)
        raise ValueError(f"{name} must be of type {wanted}, got {_shown(value)}")


def _shown(value: Any) -> str:
    """Show a value that may be of any size."""
    if isinstance(value, str):
        return repr(value[:40])
    if isinstance(value, float):
        return repr(value)
    return f"a {type(value).__name__}" + (" that is too large" if isinstance(value, int) else "")
