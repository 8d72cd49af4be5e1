"""Cleaning: the text of a record as its source gives it, made the text that every offset counts in.

In: text that may hold HTML, character references, or decomposed letters. Out: plain text in NFC.
Cleaning a clean text changes nothing, so a text may pass here any number of times.
"""

import html
import re
import unicodedata

BLOCK_TAGS = (
    "address article aside blockquote center dd div dl dt figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr "
    "li main nav ol p pre section table tbody tfoot thead tr ul"
).split()
INLINE_TAGS = (
    "a abbr b big body br caption cite code col colgroup del em font head html i img ins link mark meta q s script "
    "small span strike strong style sub sup td th title tt u wbr"
).split()
UNREAD_TAGS = ("script", "style", "head", "title")

_TAG_NAMES = "|".join(sorted(BLOCK_TAGS + INLINE_TAGS, key=len, reverse=True))
# "<" opens a tag only before a known tag name, so that "a < b" and "<X...>" stay text.
TAG = re.compile(rf"</?(?:{_TAG_NAMES})(?=[\s/>])[^<>]*>|<!--.*?-->|<!doctype[^<>]*>", re.IGNORECASE | re.DOTALL)
REFERENCE = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
BARE_AMPERSAND = re.compile(rf"&(?!{REFERENCE.pattern[1:]})")
# Characters that no text store carries safely: NUL, and halves of UTF-16 pairs left by broken JSON.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean_text(text: str, *, is_html: bool = False) -> str:
    """Return `text` without tags and character references, in NFC, otherwise character for character.

    Tags are looked for only where a known HTML tag stands, or when `is_html` says that the text is HTML.
    References are decoded only when they end in ";". Text that was escaped twice is decoded twice, because
    a clean text must stay the same when cleaned again.

    Args:
        text: A record's text, of any length.
        is_html: Parse as HTML even when no tag is found.
    """
    cleaned = _clean_once(text, is_html=is_html)
    while cleaned != text:
        text, cleaned = cleaned, _clean_once(cleaned, is_html=False)
    return cleaned


def _clean_once(text: str, *, is_html: bool) -> str:
    if is_html or TAG.search(text):
        text = _text_of_html(text)
    else:
        text = REFERENCE.sub(_decode_reference, text)
    return unicodedata.normalize("NFC", UNSTORABLE.sub("\ufffd", text))


def _decode_reference(match: re.Match[str]) -> str:
    return html.unescape(match.group())


def _text_of_html(text: str) -> str:
    """Give the text of an HTML fragment: one line a block, `<br>` as a line break, no script or style."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(_escape_what_is_text(text), "html.parser")
    for element in soup.find_all(UNREAD_TAGS):
        element.decompose()
    for element in soup.find_all("br"):
        element.replace_with("\n")
    for element in soup.find_all(BLOCK_TAGS):
        element.insert_before("\n")
        element.insert_after("\n")
    for element in soup.find_all(("td", "th")):
        element.insert_after(" ")
    lines = (line.strip(" \t\r") for line in soup.get_text().split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def _escape_what_is_text(text: str) -> str:
    """Escape what an HTML parser would take for markup and we do not: "<X...>", and references without ";"."""
    parts, end = [], 0
    for match in TAG.finditer(text):
        parts.append(text[end : match.start()].replace("<", "&lt;"))
        parts.append(match.group())
        end = match.end()
    parts.append(text[end:].replace("<", "&lt;"))
    return BARE_AMPERSAND.sub("&amp;", "".join(parts))
