"""The wire format between parent and child: typed JSON messages."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

MOST_BYTES = 64_000_000  # of a message to the child
MOST_BYTES_BACK = 16_000_000  # of a message from the child
MOST_ITEMS = 1_000_000  # of lists and dicts in a message from the child, all told
DEEPEST = 64  # lists in lists
MOST_BITS = 63  # of a whole number from the child, its sign apart
LONG = 1_000  # characters; JSON takes eight times as long as UTF-8 alone
HEADER = 4  # bytes of a length
# Exit codes of a child that has not even the memory to tell, and of one that a program has changed.
OUT_OF_MEMORY, BROKEN = 99, 98
_TUPLE, _DICT, _ATTRIBUTES, _TEXT = "\0tuple", "\0dict", "\0attributes", "\0text"
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))


class WireError(ValueError):
    """A message is not one, or a value cannot go into one; the message says why, in French."""


class AttributedDict(dict[Any, Any]):
    """A dict that carries attributes, such as how much of the corpus a search has read."""


def message(content: Mapping[str, Any], most: int = MOST_BYTES) -> bytes:
    """Return a message, its length before it.

    Raises:
        WireError: If a value is not plain, is nested deeper than `DEEPEST`, or the whole is over `most` bytes.
    """
    packing = _Packing(strict=most == MOST_BYTES_BACK)
    text = _ENCODER.encode({name: packing.packed(value, 0) for name, value in content.items()})
    head = text.encode("utf-8", "replace")  # half a surrogate pair becomes "?"
    length = HEADER + len(head) + sum(map(len, packing.texts))
    if length > most:
        raise WireError(f"{length:,} octets, au plus {most:,} sont admis")
    return b"".join([_length(length), _length(len(head)), head, *packing.texts])


def message_back(content: Mapping[str, Any]) -> bytes:
    """Return a message that `checked` will take.

    Raises:
        WireError: If a value is not plain, is nested deeper than `DEEPEST`, or there is too much of it.
    """
    data = message(content, MOST_BYTES_BACK)
    _parts(data[HEADER:])
    return data


def read(data: bytes) -> dict[str, Any]:
    """Return the content of a message that can be trusted."""
    length = HEADER + int.from_bytes(data[:HEADER], "big")
    unpacking = _Unpacking(data[length:], AttributedDict)
    return {name: unpacking.unpacked(value, 0) for name, value in json.loads(data[HEADER:length]).items()}


def checked(data: bytes) -> dict[str, Any]:
    """Return the content of a message that cannot be trusted; dicts come without attributes.

    Raises:
        WireError: If it is not what `message_back` could have made.
    """
    head, rest = _parts(data)
    try:
        content = _DECODER.decode(head.decode())
        if not isinstance(content, dict):
            raise WireError("ce n'est pas un objet JSON")
        unpacking = _Unpacking(rest, None)
        return {_whole(name): unpacking.unpacked(value, 0) for name, value in content.items()}
    except WireError:
        raise
    except RecursionError as error:
        raise WireError("trop de niveaux") from error
    except ValueError as error:
        raise WireError(f"ce n'est pas du JSON : {error}") from error


class _Packing:
    """Makes JSON of values, and puts long texts aside."""

    def __init__(self, *, strict: bool) -> None:
        """Begin.

        Args:
            strict: Refuse what the other side will, because it must not trust this one.
        """
        self.texts: list[bytes] = []
        self._strict = strict

    def packed(self, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return _in_bits(value) if self._strict else value
        if isinstance(value, str):
            return value if len(value) < LONG else self._aside(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else _refuse(str(value))
        if depth >= DEEPEST:
            raise WireError(f"plus de {DEEPEST} niveaux")
        if isinstance(value, dict):
            return self._packed_dict(value, depth + 1)
        if isinstance(value, tuple):
            return {_TUPLE: [self.packed(one, depth + 1) for one in value]}
        if isinstance(value, set | frozenset):
            return [self.packed(one, depth + 1) for one in _in_order(value)]
        if isinstance(value, list | range | type({}.keys()) | type({}.values())):
            return [self.packed(one, depth + 1) for one in value]
        raise WireError(f"une valeur de type {type(value).__name__} n'est pas une valeur JSON")

    def _aside(self, text: str) -> Any:
        data = text.encode("utf-8", "replace")
        self.texts.append(data)
        return {_TEXT: len(data)}

    def _packed_dict(self, value: dict[Any, Any], depth: int) -> Any:
        attributes = vars(value) if hasattr(value, "__dict__") else {}
        if not attributes and all(type(key) is str and len(key) < LONG and key[:1] != "\0" for key in value):
            return {key: self.packed(one, depth) for key, one in value.items()}
        if self._strict:
            _check_keys(value)
        pairs = [[self.packed(key, depth), self.packed(one, depth)] for key, one in dict.items(value)]
        return {_DICT: pairs, _ATTRIBUTES: {name: self.packed(one, depth) for name, one in attributes.items()}}


class _Unpacking:
    """Makes values of JSON and of the texts put aside, each of which is there once, in order."""

    def __init__(self, texts: bytes, carrier: Callable[[dict[Any, Any]], AttributedDict] | None) -> None:
        """Begin.

        Args:
            texts: One after the other.
            carrier: Makes a dict that can carry attributes; None where the other side is not to be trusted.
        """
        self._texts, self._next, self._carrier = texts, 0, carrier

    def unpacked(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return value if self._carrier else _whole(value)
        if isinstance(value, float) and not math.isfinite(value):  # 1e999 is read as infinite
            return _refuse(str(value))
        if not isinstance(value, dict | list):
            return _in_bits(value) if type(value) is int and not self._carrier else value
        if depth > DEEPEST:
            raise WireError(f"plus de {DEEPEST} niveaux")
        if isinstance(value, list):
            return [self.unpacked(one, depth + 1) for one in value]
        if _TEXT in value:
            return self._text(value[_TEXT])
        if _TUPLE in value:
            return tuple(self.unpacked(_list(value[_TUPLE]), depth))
        if _DICT in value:
            return self._dict(value, depth)
        return {_whole(key): self.unpacked(one, depth + 1) for key, one in value.items()}

    def _text(self, length: Any) -> str:
        if type(length) is not int or not 0 <= length <= len(self._texts) - self._next:
            raise WireError("un texte n'y est pas")
        self._next += length
        return self._texts[self._next - length : self._next].decode()

    def _dict(self, value: dict[str, Any], depth: int) -> dict[Any, Any]:
        pairs = self.unpacked(_list(value[_DICT]), depth)
        try:
            result = dict(pairs)
        except (TypeError, ValueError) as error:
            raise WireError("un dictionnaire n'en est pas un") from error
        if not self._carrier:
            _check_keys(result)
        if self._carrier and value.get(_ATTRIBUTES):
            result = self._carrier(result)
            vars(result).update(self.unpacked(value[_ATTRIBUTES], depth + 1))
        return result


def _parts(data: bytes) -> tuple[bytes, bytes]:
    """Return a message's JSON and its texts.

    Raises:
        WireError: If it has no such parts, or the JSON may hold more than `MOST_ITEMS`.
    """
    length = HEADER + int.from_bytes(data[:HEADER], "big")
    if len(data) < length:
        raise WireError("il est plus court qu'il ne dit")
    head = data[HEADER:length]
    if sum(head.count(sign) for sign in (b",", b"[", b"{")) > MOST_ITEMS:  # each item comes with at least one of them
        raise WireError(f"plus de {MOST_ITEMS:,} éléments")
    return head, data[length:]


def _in_bits(number: int) -> int:
    """Return a whole number of at most 64 bits: larger ones could be chosen to have all the same hash."""
    if number.bit_length() > MOST_BITS:
        raise WireError(f"un nombre entier de plus de {MOST_BITS + 1} bits")
    return number


def _check_keys(value: dict[Any, Any]) -> None:
    """Refuse keys whose hashes a program could choose to be alike, which would take a dict for ever."""
    for key in value:
        if not isinstance(key, str | int | None):
            raise WireError(f"une clé de type {type(key).__name__}")


def _length(length: int) -> bytes:
    return length.to_bytes(HEADER, "big")


def _in_order(values: Iterable[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        return list(values)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise WireError("une liste n'en est pas une")
    return value


def _whole(text: str) -> str:
    """Return a text that can be encoded: half a surrogate pair becomes a question mark."""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode()


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise WireError("un nom y est deux fois")
    return result


def _refuse(constant: str) -> Any:
    raise WireError(f"{constant} n'est pas une valeur JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_without_doubles, parse_constant=_refuse)
