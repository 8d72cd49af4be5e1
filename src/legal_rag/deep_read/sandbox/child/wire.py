"""The wire format: what the parent sends is trusted; what comes from the child is checked before it is decoded."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from itertools import accumulate, count
from operator import sub
from typing import Any

MOST_BYTES = 64_000_000  # of a message to the child
# Kinds of messages from the child, by their number, with the most bytes that the body of one may have. A call of a
# function that takes long texts may have more, as the parent says.
KINDS = {"ready": 64_000, "printed": 64_000, "call": 2_000_000, "done": 64_000}
MOST_PRINTED = KINDS["printed"] // 4  # characters
MOST_ITEMS = 200_000  # of lists and dicts in one message from the child, all told
DEEPEST = 64  # lists in lists
MOST_BITS = 63  # of a whole number from the child, its sign apart
MOST_DIGITS = 32  # of any number from the child, with sign, point and exponent
LONG = 1_000  # characters; JSON takes eight times as long as UTF-8 alone
HEADER = 4  # bytes of a length
FRAME = 6  # bytes before a message from the child: kind, length of the function's name, length of the body
# Exit codes of a child that has not even the memory to tell, and of one that a program has changed.
OUT_OF_MEMORY, BROKEN = 99, 98
_TUPLE, _DICT, _ATTRIBUTES, _TEXT = "\0tuple", "\0dict", "\0attributes", "\0text"
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))
_HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")  # an escaped surrogate, which our own encoder never writes
_LONG_NUMBER = re.compile(rb"[-+.0-9eE]{%d}" % (MOST_DIGITS + 1))
# Opening brackets become 2 and closing ones 0, so that their running sum less their number is the depth.
_STEPS = bytes.maketrans(b"[{]}", b"\2\2\0\0")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))


class WireError(ValueError):
    """A message is not one, or a value cannot go into one; the message says why, in French."""


class AttributedDict(dict[Any, Any]):
    """A dict that carries attributes, such as how much of the corpus a search has read."""


def message(content: Mapping[str, Any]) -> bytes:
    """Return a message to the child, its length before it.

    Raises:
        WireError: If a value is not plain, is nested deeper than `DEEPEST`, or the whole is over `MOST_BYTES`.
    """
    packing = _Packing()
    text = _ENCODER.encode({name: packing.packed(value, 0) for name, value in content.items()})
    head = text.encode("utf-8", "replace")  # half a surrogate pair becomes "?"
    length = HEADER + len(head) + sum(map(len, packing.texts))
    if length > MOST_BYTES:
        raise WireError(f"{length:,} octets, au plus {MOST_BYTES:,} sont admis")
    return b"".join([_length(length), _length(len(head)), head, *packing.texts])


def read(data: bytes) -> dict[str, Any]:
    """Return the content of a message of `message`, which can be trusted."""
    length = HEADER + int.from_bytes(data[:HEADER], "big")
    unpacking = _Unpacking(data[length:])
    return {name: unpacking.unpacked(value, 0) for name, value in json.loads(data[HEADER:length]).items()}


def frame(kind: str, body: bytes, name: str = "") -> bytes:
    """Return a message to the parent; its first bytes tell what bounds hold for the rest."""
    called = name.encode()
    return bytes((list(KINDS).index(kind), len(called))) + _length(len(body)) + called + body


def body(content: Mapping[str, Any], most: int) -> bytes:
    """Return the content of a message to the parent, as JSON that `checked` will take.

    Raises:
        WireError: If a value is not plain, or there is more of it than may be.
    """
    data = _ENCODER.encode(_as_json(content, 0)).encode("utf-8", "replace")
    if len(data) > most:
        raise WireError(f"{len(data):,} octets, au plus {most:,} sont admis")
    _check(data)
    return data


def checked(data: bytes) -> dict[str, Any]:
    """Return the content of a message that cannot be trusted; its length has been bounded.

    Raises:
        WireError: If it is not what `body` could have made.
    """
    _check(data)
    try:
        content = _DECODER.decode(data.decode())
    except WireError:
        raise
    except ValueError as error:
        raise WireError(f"ce n'est pas du JSON : {error}") from error
    if not isinstance(content, dict):
        raise WireError("ce n'est pas un objet JSON")
    return content


def _check(data: bytes) -> None:
    """Bound what decoding a text as JSON can make, in a few linear passes of C, before it is decoded.

    Raises:
        WireError: If it has more items, levels or digits than may be, or half a character.
    """
    unescaped = data.replace(rb"\\", b"")
    if _HALF_CHARACTER.search(unescaped):
        raise WireError("une moitié de caractère y est")
    unescaped = unescaped.replace(rb"\"", b"")
    if unescaped.count(b'"') > 4 * MOST_ITEMS:  # two for a key, two for its text
        raise WireError(f"plus de {MOST_ITEMS:,} éléments")
    bare = b"".join(unescaped.split(b'"')[::2])  # without what is quoted
    opening = bare.count(b"[") + bare.count(b"{")
    if opening + bare.count(b",") > MOST_ITEMS:  # each item comes with at least one of them
        raise WireError(f"plus de {MOST_ITEMS:,} éléments")
    if opening != bare.count(b"]") + bare.count(b"}"):
        raise WireError("ce n'est pas du JSON : des crochets ne sont pas fermés")
    depths = map(sub, accumulate(bare.translate(_STEPS, _NO_BRACKETS)), count(1))
    if max(depths, default=0) > DEEPEST:
        raise WireError(f"plus de {DEEPEST} niveaux")
    if _LONG_NUMBER.search(bare):
        raise WireError(f"un nombre de plus de {MOST_DIGITS} chiffres")


def _as_json(value: Any, depth: int) -> Any:
    """Return a value of a program as JSON has it: tuples and sets as lists, whole numbers among the keys as texts."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return _in_bits(value)
    if isinstance(value, float):
        return _finite(value)
    if depth >= DEEPEST:
        raise WireError(f"plus de {DEEPEST} niveaux")
    if isinstance(value, Mapping):
        return _with_text_keys(value, depth)
    if isinstance(value, set | frozenset):
        value = _in_order(value)
    if isinstance(value, list | tuple | range | type({}.keys()) | type({}.values())):
        return [_as_json(one, depth + 1) for one in value]
    raise WireError(f"une valeur de type {type(value).__name__} n'est pas une valeur JSON")


def _with_text_keys(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    result = {}
    for key, one in value.items():
        if isinstance(key, bool) or not isinstance(key, str | int):
            raise WireError(
                f"une clé de type {type(key).__name__} ; les clés d'un dictionnaire sont des textes ou des entiers"
            )
        name = key if isinstance(key, str) else str(_in_bits(key))
        if name in result:
            raise WireError(f"deux clés d'un dictionnaire donnent le même texte : {name!r:.50}")
        result[name] = _as_json(one, depth + 1)
    return result


class _Packing:
    """Makes JSON of values for the child, and puts long texts aside."""

    def __init__(self) -> None:
        self.texts: list[bytes] = []

    def packed(self, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, str):
            return value if len(value) < LONG else self._aside(value)
        if isinstance(value, float):
            return _finite(value)
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
        pairs = [[self.packed(key, depth), self.packed(one, depth)] for key, one in dict.items(value)]
        return {_DICT: pairs, _ATTRIBUTES: {name: self.packed(one, depth) for name, one in attributes.items()}}


class _Unpacking:
    """Makes values of the parent's JSON and of the texts put aside, each of which is there once, in order."""

    def __init__(self, texts: bytes) -> None:
        self._texts, self._next = texts, 0

    def unpacked(self, value: Any, depth: int) -> Any:
        if isinstance(value, list):
            return [self.unpacked(one, depth + 1) for one in value]
        if not isinstance(value, dict):
            return value
        if _TEXT in value:
            return self._text(value[_TEXT])
        if _TUPLE in value:
            return tuple(self.unpacked(value[_TUPLE], depth))
        if _DICT in value:
            return self._dict(value, depth)
        return {key: self.unpacked(one, depth + 1) for key, one in value.items()}

    def _text(self, length: int) -> str:
        self._next += length
        return self._texts[self._next - length : self._next].decode()

    def _dict(self, value: dict[str, Any], depth: int) -> dict[Any, Any]:
        result = dict(self.unpacked(value[_DICT], depth))
        if attributes := value[_ATTRIBUTES]:
            result = AttributedDict(result)
            vars(result).update(self.unpacked(attributes, depth + 1))
        return result


def _in_bits(number: int) -> int:
    """Return a whole number of at most 64 bits: larger ones could be chosen to have all the same hash."""
    if number.bit_length() > MOST_BITS:
        raise WireError(f"un nombre entier de plus de {MOST_BITS + 1} bits")
    return number


def _finite(number: float) -> float:
    return number if math.isfinite(number) else _refuse(str(number))


def _length(length: int) -> bytes:
    return length.to_bytes(HEADER, "big")


def _in_order(values: Iterable[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        return list(values)


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Hashes of texts are keyed anew in each process, so that nobody can choose texts that have the same.
    result = dict(pairs)
    if len(result) != len(pairs):
        raise WireError("un nom y est deux fois")
    return result


def _refuse(constant: str) -> Any:
    raise WireError(f"{constant} n'est pas une valeur JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_without_doubles,
    parse_constant=_refuse,
    parse_int=lambda digits: _in_bits(int(digits)),
    parse_float=lambda digits: _finite(float(digits)),  # 1e999 is read as infinite
)
