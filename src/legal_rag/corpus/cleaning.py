"""Text cleaning: HTML, entities and Unicode normalisation."""

import html
import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from html.entities import html5
from typing import Any

BLOCK_TAGS = frozenset(
    "address article aside blockquote center dd details dialog div dl dt fieldset figcaption figure footer form "
    "h1 h2 h3 h4 h5 h6 header hr legend li main nav ol p pre section summary table tbody tfoot thead tr ul".split()
)
INLINE_TAGS = frozenset(
    "a abbr acronym area audio b base bdi bdo big body br button canvas caption cite code col colgroup data datalist "
    "del dfn em embed font head html i iframe img input ins kbd label link map mark meta meter nobr noscript o:p "
    "object optgroup option output param path picture progress q rp rt ruby s samp script select small source span "
    "strike strong style sub sup svg td template textarea th time title track tt u var video wbr".split()
)
MAX_PASSES = 10  # text escaped or nested more often than this was made to keep a cleaner busy

_TAG_NAMES = "|".join(sorted(BLOCK_TAGS | INLINE_TAGS, key=len, reverse=True))
# Up to the ">" that closes a tag: one inside a quoted value does not. Possessive, so that it takes linear time.
_REST_OF_TAG = r"""(?:=\s*"[^"<]*"|=\s*'[^'<]*'|[^<>])*+>"""
# A comment, or an element that is not for reading, as far as its end; one that never ends is no such thing.
# None holds a second beginning of itself, so that a page of beginnings takes linear time.
_COMMENT = r"<!--(?:(?!<!--).)*?-->"
UNREAD = re.compile(
    rf"{_COMMENT}|<(script|style|title)(?=[\s/>]){_REST_OF_TAG}(?:(?!<\1[\s/>]).)*?</\1\s*>", re.IGNORECASE | re.DOTALL
)
# "<" opens a tag only before a known tag name, so that "a < b" and "<X...>" stay text.
TAG = re.compile(
    rf"</?({_TAG_NAMES})(?=[\s/>]){_REST_OF_TAG}|{_COMMENT}|<!doctype[^<>]*>|<\?xml[^<>]*>", re.IGNORECASE | re.DOTALL
)
REFERENCE = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
# Characters that no text store carries safely: NUL, and halves of UTF-16 pairs left by broken JSON.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean_text(text: str, *, is_html: bool = False) -> str:
    """Return `text` without tags and character references, in NFC, otherwise character for character.

    Tags are looked for only where a known HTML tag stands. References are decoded only when they end in ";".
    Text that was escaped twice is decoded twice, because a clean text must stay the same when cleaned again.
    A text that is still markup after `MAX_PASSES` loses its "<" and "&" to U+FFFD.

    Args:
        text: A record's text, of any length.
        is_html: Trim and join blank lines as for HTML even when no tag is found.
    """
    for _ in range(MAX_PASSES):
        cleaned = _clean_once(text, is_html=is_html)
        if cleaned == text:
            return cleaned
        text, is_html = cleaned, False
    return re.sub("[<&]", "\ufffd", text)


def storable(text: str) -> str:
    """Return `text` with each character that cannot be written as UTF-8 or into a text store made U+FFFD."""
    return UNSTORABLE.sub("\ufffd", text)


def json_safe(value: Any, *, text_of: Callable[[Any], str] = str, keep_nan: bool = False) -> Any:
    """Return a value as JSON in UTF-8 and every text store can hold it.

    Tuples and sets become lists; named tuples and dataclasses become objects, by their fields.

    Args:
        value: Any value, nested in any way but not in itself.
        text_of: Writes what JSON has no form for.
        keep_nan: Write numbers that are not finite as text; else they become null.

    Raises:
        RecursionError: If it is nested too deeply.
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
        return {storable(str(name)): within(one) for name, one in value.items()}
    if isinstance(value, set | frozenset):
        value = sorted(value, key=str)
    return [within(one) for one in value] if isinstance(value, list | tuple) else storable(text_of(value))


def _clean_once(text: str, *, is_html: bool) -> str:
    if is_html or TAG.search(text):
        text = _text_of_html(text)
    return unicodedata.normalize("NFC", storable(REFERENCE.sub(_decode_reference, text)))


def _decode_reference(match: re.Match[str]) -> str:
    name = match.group()[1:]
    # html.unescape would read "&notit;" as "¬it;".
    return html.unescape(match.group()) if name.startswith("#") else html5.get(name, match.group())


def _text_of_html(text: str) -> str:
    """Give the text of an HTML fragment: one line a block, `<br>` as a line break, no script, style or title."""
    text = TAG.sub(_blank_of_tag, UNREAD.sub("", text))
    lines = (line.strip(" \t\r") for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def _blank_of_tag(match: re.Match[str]) -> str:
    name = (match.group(1) or "").lower()
    if name == "br" or name in BLOCK_TAGS:
        return "\n"
    return " " if name in ("td", "th") and not match.group().startswith("</") else ""
