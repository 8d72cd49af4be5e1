"""Text cleaning: HTML, character references, Unicode NFC."""

import html
import re
from html.entities import html5

from legal_rag.base.text import normalized, read_words, storable

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
