"""Messages between the sandbox and its child: JSON behind its length, the same on both sides.

In: plain values. Out: bytes, and the values again: tuples stay tuples, dicts keep keys that are no strings, and the
attributes that a subclass of dict may carry. What the child sends is read by `checked`, which trusts nothing.
"""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

MOST_BYTES = 64_000_000  # of a message to the child
MOST_BYTES_BACK = 16_000_000  # of a message from the child
MOST_ITEMS = 1_000_000  # of lists and dicts in a message from the child, all told
DEEPEST = 64  # lists in lists
HEADER = 4  # bytes of a message's length
_TUPLE, _DICT, _ATTRIBUTES = "\0tuple", "\0dict", "\0attributes"
_SIGNS = (b",", b"[", b"{")  # each item of a list or dict comes with at least one


class WireError(ValueError):
    """A message is not one, or a value cannot go into one; the message says why."""


class AttributedDict(dict[Any, Any]):
    """A dict that carries attributes, such as how much of the corpus a search has read."""


def message(content: Mapping[str, Any], most: int) -> bytes:
    """Return a message, its length before it.

    Raises:
        WireError: If a value is not plain, is nested deeper than `DEEPEST`, or the whole is over `most` bytes.
    """
    text = json.dumps({name: packed(value) for name, value in content.items()}, ensure_ascii=False, allow_nan=False)
    data = text.encode("utf-8", "replace")  # half a surrogate pair becomes "?"
    if len(data) > most:
        raise WireError(f"{len(data):,} octets, au plus {most:,} sont admis")
    return len(data).to_bytes(HEADER, "big") + data


def read(data: bytes) -> dict[str, Any]:
    """Return the content of a message that can be trusted."""
    return {name: unpacked(value, attributes=True) for name, value in json.loads(data).items()}


def checked(data: bytes) -> dict[str, Any]:
    """Return the content of a message that cannot be trusted.

    Raises:
        WireError: If it is not what `message` could have made.
    """
    if sum(data.count(sign) for sign in _SIGNS) > MOST_ITEMS:
        raise WireError("trop d'éléments")
    try:
        content = json.loads(data.decode("utf-8"), object_pairs_hook=_without_doubles, parse_constant=_refuse)
        if not isinstance(content, dict):
            raise WireError("ce n'est pas un objet JSON")
        return {_without_halves(name): unpacked(value) for name, value in content.items()}
    except WireError:
        raise
    except RecursionError as error:
        raise WireError("trop de niveaux") from error
    except ValueError as error:
        raise WireError(f"ce n'est pas du JSON : {error}") from error


def packed(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON holds it.

    Raises:
        WireError: If it is not plain: None, bool, int, float, str, and lists, tuples, sets and dicts of such.
    """
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise WireError(f"{value} n'est pas une valeur JSON")
        return value
    if depth >= DEEPEST:
        raise WireError(f"plus de {DEEPEST} niveaux")
    if isinstance(value, dict):
        return _packed_dict(value, depth + 1)
    if isinstance(value, tuple):
        return {_TUPLE: [packed(one, depth + 1) for one in value]}
    if isinstance(value, set | frozenset):
        return [packed(one, depth + 1) for one in _in_order(value)]
    if isinstance(value, list | type({}.keys()) | type({}.values()) | range):
        return [packed(one, depth + 1) for one in value]
    raise WireError(f"une valeur de type {type(value).__name__} n'est pas une valeur JSON")


def _packed_dict(value: dict[Any, Any], depth: int) -> Any:
    attributes = vars(value) if hasattr(value, "__dict__") else {}
    if not attributes and all(type(key) is str and key[:1] != "\0" for key in value):
        return {key: packed(one, depth) for key, one in value.items()}
    pairs = [[packed(key, depth), packed(one, depth)] for key, one in value.items()]
    return {_DICT: pairs, _ATTRIBUTES: {name: packed(one, depth) for name, one in attributes.items()}}


def _in_order(values: Iterable[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        return list(values)


def unpacked(value: Any, depth: int = 0, *, attributes: bool = False) -> Any:
    """Return the value that `packed` has put into JSON.

    Args:
        value: As JSON holds it.
        depth: Lists and dicts around it.
        attributes: Give dicts the attributes that came with them; else these are left out.

    Raises:
        WireError: If it is nested deeper than `DEEPEST`, or is nothing that `packed` makes.
    """
    if isinstance(value, str):
        return value if value.isascii() else _without_halves(value)
    if not isinstance(value, dict | list):
        return value
    if depth > DEEPEST:
        raise WireError(f"plus de {DEEPEST} niveaux")
    if isinstance(value, list):
        return [unpacked(one, depth + 1, attributes=attributes) for one in value]
    if _TUPLE in value:
        return tuple(unpacked(_list(value[_TUPLE]), depth, attributes=attributes))
    if _DICT not in value:
        return {_without_halves(key): unpacked(one, depth + 1, attributes=attributes) for key, one in value.items()}
    result = _of_pairs(unpacked(_list(value[_DICT]), depth, attributes=attributes))
    if not attributes or not value.get(_ATTRIBUTES):
        return result
    carrying = AttributedDict(result)
    vars(carrying).update(unpacked(value[_ATTRIBUTES], depth + 1, attributes=attributes))
    return carrying


def _of_pairs(pairs: list[Any]) -> dict[Any, Any]:
    try:
        return dict(pairs)
    except (TypeError, ValueError) as error:
        raise WireError("un dictionnaire n'en est pas un") from error


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise WireError("une liste n'en est pas une")
    return value


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise WireError("un nom y est deux fois")
    return result


def _refuse(constant: str) -> Any:
    raise WireError(f"{constant} n'est pas une valeur JSON")


def _without_halves(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
