"""Keys of model servers, masked in whatever a server sends back."""

import os
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import lru_cache

MASK = "[clé masquée]"
SHORTEST_KEY = 8  # characters: shorter values are placeholders, and stand in ordinary text
LONGEST_WORD = 20  # characters: letters alone, and fewer, are a placeholder too
FEWEST_SIGNS = 4  # different ones: "********" and "00000000" are placeholders, and stand in tables and numbers
KEY_VARIABLES = ("_API_KEY", "_TOKEN", "_SECRET", "_SECRET_KEY", "_ACCESS_KEY", "_PASSWORD")  # ends of their names
# Between two characters of a key that is spread out: spaces, marks of no width, line ends as JSON and URLs write them.
_GAP = r"(?:[\s\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]|\\{1,16}+[nrt]|%20|%0[9ad])*+"

_ESCAPE = re.compile(rb"%[0-9a-f]{2}|\\u00|&#|\\[nrt]")


def keys_of_environment() -> frozenset[str]:
    """Return the values of the process's variables that hold keys."""
    return frozenset(value for name, value in os.environ.items() if name.upper().endswith(KEY_VARIABLES))


def mask_keys(text: str, keys: Iterable[str]) -> str:
    """Replace keys in a text by `MASK`.

    A key is found as it is; URL-encoded, as HTML or JSON escapes (nested ones too), with spaces or marks of no width
    between its characters; backwards; in base64 and in hexadecimal, also within a longer text so encoded. Keys of
    fewer than 8 characters, of fewer than 4 different ones ("********"), or of fewer than 20 letters and nothing else
    ("placeholder"), are not masked.
    """
    if len(text) < SHORTEST_KEY:
        return text
    secrets = frozenset(key for key in keys if _is_secret(key))
    return _pattern(secrets).sub(MASK, text) if secrets and _may_hold(text, secrets) else text


def _is_secret(key: str) -> bool:
    return len(key) >= (LONGEST_WORD if key.isalpha() else SHORTEST_KEY) and len(set(key)) >= FEWEST_SIGNS


def _may_hold(text: str, keys: frozenset[str]) -> bool:
    """Tell quickly that a text holds none of the keys, as most do."""
    plain = text.encode("ascii", "ignore").translate(None, b" \t\r\n\v\f").lower()
    return bool(_ESCAPE.search(plain)) or any(form in plain for form in _plain_forms(keys))


@lru_cache(maxsize=32)
def _plain_forms(keys: frozenset[str]) -> tuple[bytes, ...]:
    return tuple(form.encode("ascii", "ignore").lower() for key in keys for form in _forms(key))


@lru_cache(maxsize=32)
def _pattern(keys: frozenset[str]) -> re.Pattern[str]:
    forms = (form for key in sorted(keys, key=len, reverse=True) for form in _forms(key))
    return re.compile("|".join(map(_spread, forms)))


def _forms(key: str) -> Iterator[str]:
    data = key.encode()
    yield from (key, key[::-1], data.hex(), data.hex().upper())
    for before in range(3):  # base64 of a longer text holds a key in three ways: less the signs it shares with others
        first, last = -(-8 * before // 6), (8 * (before + len(data))) // 6
        core = b64encode(bytes(before) + data + bytes(2)).decode()[first:last]
        yield from {core, core.translate(str.maketrans("+/", "-_"))}


def _spread(text: str) -> str:
    return _GAP.join(map(_sign, text))


def _sign(sign: str) -> str:
    coded = "".join(f"%{byte:02x}" for byte in sign.encode())
    escapes = (
        rf"(?<!\\)\\{{1,16}}+u00{ord(sign):02x}|{coded}|&#0{{0,5}}+{ord(sign)};|&#x0{{0,5}}+{ord(sign):x};"
        if sign.isascii()
        else coded
    )
    return f"(?:{re.escape(sign)}|(?i:{escapes}))"
