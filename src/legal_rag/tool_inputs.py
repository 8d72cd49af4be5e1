"""What a model sends to the tools, read as it is meant: numbers, questions, filters, classes.

In: any value, as a model's JSON holds it. Out: what the tool takes, or ValueError with a French sentence.
"""

import re
from collections.abc import Mapping
from typing import Any

from legal_rag.filters import Filters
from legal_rag.legal_patterns.numbers import NUMBER_IN_WORDS, words_value

SHOWN_CHARS = 100  # of what was not understood; a model may send a page
_DAYS = "« 1993 », « 1993-05-12 », « 12 mai 1993 »"
EXAMPLES = {
    "date_from": _DAYS,
    "date_to": _DAYS,
    "article": "« L. 1152-1 du code du travail »",
    "entites": "« partie=Société Lever »",
}
MOST_SENT = 2000  # characters read of what is sent in place of a name or number
NOTHING = frozenset({"", "none", "null", "aucun", "aucune", "n/a"})  # how models write that they give no value
# "40 000" is one number; so is "40000.0".
_FIGURES = re.compile(r"-?(?:\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?!\d)|\d+)")
_WORDS = re.compile(rf"(?<!\w){NUMBER_IN_WORDS}", re.IGNORECASE)


def whole_number(name: str, value: object, least: int, most: int, default: int) -> int:
    """Read a number, cut to `most`; nothing at all is the default.

    Raises:
        ValueError: If it is no number, or below `least`.
    """
    value = only_one(value)
    if value is None or (isinstance(value, str) and value.strip().casefold() in NOTHING):
        return default
    number = _number(value)
    if number is None or number < least:
        raise ValueError(f"{name} doit être un nombre entier de {least} à {most}, reçu : « {shown(str(value)[:20])} »")
    return min(number, most)


def question_of(query: object) -> str:
    """Read a question.

    Raises:
        ValueError: If it is empty, or no text.
    """
    text = text_of(query, " ")
    if not text or not isinstance(only_one(query), str | list | tuple):
        raise ValueError("la question est vide")
    return text


def filters_of(asked: Mapping[str, str]) -> Filters:
    """Read filters, each by itself, so that the one which is not understood can be named.

    Raises:
        ValueError: If there is one.
    """
    read: dict[str, Any] = {}
    for name, value in asked.items():
        one = {"entity": parts_of(value, ";")} if name == "entites" else {name: value}
        try:
            Filters(**one)
        except ValueError as error:
            expected = f" (attendu par exemple : {EXAMPLES[name]})" if name in EXAMPLES else ""
            raise ValueError(f"{name} n'est pas compris : « {shown(value[:SHOWN_CHARS])} »{expected}") from error
        read |= one
    return Filters(**read)


def text_of(value: object, sign: str = " ; ") -> str:
    """Read a text: of several in a list, all, with a sign between them; nothing where a model says that it has none."""
    value = only_one(value)
    if isinstance(value, list | tuple):
        return sign.join(filter(None, (text_of(one, sign) for one in value[:50])))
    # Halves of characters, which no tokenizer and no store takes, are left out.
    text = str(value).encode(errors="ignore").decode().strip() if value else ""
    return "" if text.casefold() in NOTHING else text


def parts_of(text: str, sign: str) -> list[str]:
    """Take a list apart that was written as one text."""
    return [part for one in text.split(sign) if (part := one.strip())]


def only_one(value: object) -> object:
    """Take the value out of a list or an object that holds no other."""
    for _ in range(3):  # as deep as any model wraps it
        if isinstance(value, list | tuple | dict) and len(value) == 1:
            (value,) = value.values() if isinstance(value, dict) else value
    return value


def shown(text: str) -> str:
    """Return a text as it can be shown in a sentence."""
    return "".join(letter for letter in text if letter.isprintable())


def _number(value: object) -> int | None:
    if isinstance(value, str):
        return _number_in(value[:MOST_SENT])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return int(value)
    except (ValueError, OverflowError):  # not a number, or infinite
        return None


def _number_in(text: str) -> int | None:
    """Return the first number of a text: '5', '5.0', '40 000 caractères', 'cinq passages'."""
    if figures := _FIGURES.search(text):
        return int(re.sub(r"[^\d-]", "", figures.group())[:18])  # longer ones are cut to the most there is anyway
    words = _WORDS.search(text)
    value = words_value(words.group()) if words else None
    return None if value is None else int(value)
