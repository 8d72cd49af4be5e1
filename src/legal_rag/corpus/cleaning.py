"""Text cleaning (HTML, character references, Unicode NFC), and values that JSON and text stores can hold."""

import datetime
import html
import math
import re
import tomllib
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, partial
from html.entities import html5
from importlib.resources import files
from itertools import groupby
from typing import Any, Literal

import regex


@cache
def read_words(package: str, name: str = "words.toml") -> dict[str, tuple[str, ...]]:
    """Read the lists of a package's file: a text is split at blanks, an array keeps its items.

    Args:
        package: The package whose folder has the file, e.g. 'legal_rag.corpus_index'.
        name: The file's name.
    """
    lists = tomllib.loads((files(package) / name).read_text("utf-8"))
    return {name: tuple(words.split() if isinstance(words, str) else words) for name, words in lists.items()}


_LISTS = read_words("legal_rag.corpus")
BLOCK_TAGS, INLINE_TAGS = frozenset(_LISTS["block_tags"]), frozenset(_LISTS["inline_tags"])
MAX_PASSES = 10  # text escaped or nested more often is adversarial

_TAG_NAMES = "|".join(sorted(BLOCK_TAGS | INLINE_TAGS, key=len, reverse=True))
# Up to the ">" that closes a tag, not one inside a quoted value. Possessive: linear time.
_REST_OF_TAG = r"""(?:=\s*"[^"<]*"|=\s*'[^'<]*'|[^<>])*+>"""
# A closed comment, or a closed element that is not rendered; none contains its own opening, so that a page of openings
# takes linear time.
_COMMENT = r"<!--(?:(?!<!--).)*?-->"
UNRENDERED = re.compile(
    rf"{_COMMENT}|<(script|style|title)(?=[\s/>]){_REST_OF_TAG}(?:(?!<\1[\s/>]).)*?</\1\s*>", re.IGNORECASE | re.DOTALL
)
# "<" opens a tag only before a known tag name, so that "a < b" and "<X...>" stay text.
TAG = re.compile(
    rf"</?({_TAG_NAMES})(?=[\s/>]){_REST_OF_TAG}|{_COMMENT}|<!doctype[^<>]*>|<\?xml[^<>]*>", re.IGNORECASE | re.DOTALL
)
REFERENCE = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
# Characters that no text store accepts: NUL, and halves of surrogate pairs from broken JSON.
_MANY_MARKS = regex.compile(r"\P{Canonical_Combining_Class=0}{31,}")  # in a row; no language has so many
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean_text(text: str, *, is_html: bool = False) -> str:
    """Remove HTML tags, decode character references, and normalise to NFC; idempotent.

    Only known tags count, and only references that end in ";". Text escaped twice is decoded twice; what is still
    markup after `MAX_PASSES` loses its "<" and "&" to U+FFFD.

    Args:
        text: A record's text.
        is_html: Treat blank lines as in HTML even without a tag.
    """
    for _ in range(MAX_PASSES):
        cleaned = _clean_once(text, is_html=is_html)
        if cleaned == text:
            return cleaned
        text, is_html = cleaned, False
    return re.sub("[<&]", "\ufffd", text)


def normalized(text: str, form: Literal["NFC", "NFD", "NFKC", "NFKD"] = "NFC") -> str:
    """Return a text in a Unicode normal form, in linear time, except n log n in the length of a run of marks."""
    if not text.isascii():
        text = _MANY_MARKS.sub(_in_order, text)
    return unicodedata.normalize(form, text)


def _in_order(marks: "regex.Match[str]") -> str:
    decomposed = (character for mark in marks.group() for character in unicodedata.normalize("NFD", mark))
    runs = groupby(decomposed, key=lambda character: unicodedata.combining(character) > 0)
    return "".join(character for _, run in runs for character in sorted(run, key=unicodedata.combining))


def storable(text: str) -> str:
    """Replace characters that UTF-8 or a text store cannot hold with U+FFFD."""
    return UNSTORABLE.sub("\ufffd", text)


def plain_text(value: Any) -> str:
    """Format a source's value as text: a datetime as its date, None and NaN as ''."""
    if isinstance(value, datetime.datetime):
        value = value.date()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return storable(str(value))


def json_safe(value: Any, *, text_of: Callable[[Any], str] = str, keep_nan: bool = False) -> Any:
    """Convert a value to JSON types and storable text; named tuples and dataclasses become objects.

    Args:
        value: Any value without cycles (RecursionError if nested too deeply).
        text_of: Formats what JSON has no type for.
        keep_nan: Write non-finite numbers as text, not as null.
    """
    within = partial(json_safe, text_of=text_of, keep_nan=keep_nan)
    if isinstance(value, str):
        return storable(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value) if keep_nan else None
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    elif is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {storable(str(name)): within(item) for name, item in value.items()}
    if isinstance(value, set | frozenset):
        value = sorted(value, key=str)
    return [within(item) for item in value] if isinstance(value, list | tuple) else storable(text_of(value))


def _clean_once(text: str, *, is_html: bool) -> str:
    if is_html or TAG.search(text):
        text = _text_of_html(text)
    return normalized(storable(REFERENCE.sub(_decode_reference, text)))


def _decode_reference(match: re.Match[str]) -> str:
    name = match.group()[1:]
    # html.unescape would read "&notit;" as "¬it;".
    return html.unescape(match.group()) if name.startswith("#") else html5.get(name, match.group())


def _text_of_html(text: str) -> str:
    """Render an HTML fragment: one line a block, `<br>` as a line break, no script, style or title."""
    text = TAG.sub(_blank_of_tag, UNRENDERED.sub("", text))
    lines = (line.strip(" \t\r") for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def _blank_of_tag(match: re.Match[str]) -> str:
    name = (match.group(1) or "").lower()
    if name == "br" or name in BLOCK_TAGS:
        return "\n"
    return " " if name in ("td", "th") and not match.group().startswith("</") else ""
