"""Unicode text: normal form, folding with a map back to offsets, and what stores, JSON and terminals can hold."""

import datetime
import math
import re
import tomllib
import unicodedata
from array import array
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, partial
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import regex

Span = tuple[int, int]  # characters: start, end

APOSTROPHES = "’‘ʼ′`´"
DASHES = "‐‑‒–—―−"
QUOTATION_MARKS = "«»“”„"
INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
LETTERS = {"œ": "oe", "Œ": "oe", "æ": "ae", "Æ": "ae", "ﬁ": "fi", "ﬂ": "fl", "…": "..."}

# What folding changes besides case; each match becomes what `_fold_match` returns.
_BREAK = "<[bB][rR]\\s?/?>"  # a line-break tag is a blank
_BLANKS = rf"(?:[\s{INVISIBLE}]|{_BREAK})"
# Characters that only change case, unless a combining accent follows: most of a text, skipped at once.
_ORDINARY = r"""[A-Za-z0-9,.;:()'?!/"\-À-ÅÇ-åç-ÿ](?![\u0300-\u036f])"""
_SPECIAL = re.compile(
    rf"(?!{_ORDINARY})(?:(?P<quote>«{_BLANKS}*|{_BLANKS}*»|[{QUOTATION_MARKS}])"
    rf"|(?P<blank>[^\S ]{_BLANKS}*| {_BLANKS}+|[{INVISIBLE}]+\s{_BLANKS}*|{_BREAK}{_BLANKS}*)"
    rf"|(?P<apostrophe>[{APOSTROPHES}])|(?P<dash>[{DASHES}])|(?P<invisible>[{INVISIBLE}]+)"
    rf"|(?P<letter>[{''.join(LETTERS)}])"
    r"|(?P<accented>[^\W\d_][\u0300-\u036f]+))"
)
_SIGNS = {"quote": '"', "blank": " ", "apostrophe": "'", "dash": "-", "invisible": ""}
# A number with its groups of three and its decimals.
_NUMBER = re.compile(r"\d{1,3}(?:[ \u00a0\u202f.]\d{3})+(?:,\d+)?(?!\d)|\d+(?:[.,]\d+)*")
_LONGEST_NUMBER = 20  # characters


class Folded(NamedTuple):
    """A folded text with the origin of each character."""

    text: str
    starts: "array[int]"  # original offset of each folded character, ascending; then the original's length

    def original_span(self, start: int, end: int) -> Span:
        """Map a span of the folded text to the original; ValueError if it is empty or outside."""
        if not 0 <= start < end < len(self.starts):
            raise ValueError(f"not a span of the folded text: {start}-{end} (expected within 0-{len(self.text)})")
        # The two letters of a folded "œ" have one origin: it ends where the next character begins.
        return self.starts[start], self.starts[bisect_right(self.starts, self.starts[end - 1])]


def fold(text: str) -> Folded:
    """Fold a text of any length, in linear time."""
    pieces: list[str] = []
    starts = array("q")
    done = 0
    for match in _SPECIAL.finditer(text):
        _lower(text, done, match.start(), pieces, starts)
        folded = _fold_match(match)
        pieces.append(folded)
        starts.extend([match.start()] * len(folded))
        done = match.end()
    _lower(text, done, len(text), pieces, starts)
    starts.append(len(text))
    return Folded("".join(pieces), starts)


def fold_text(text: str) -> str:
    """Fold a text without the map back."""
    return _SPECIAL.sub(_fold_match, text).casefold()


_ACCENTS = re.compile("[\u0300-\u036f]+")


def without_accents(text: str) -> str:
    """Return a text without accents, its compatibility characters decomposed."""
    return text if text.isascii() else _ACCENTS.sub("", normalized(text, "NFKD"))


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without accents, ligatures and signs."""
    return re.findall(r"[^\W_]+", without_accents(fold_text(text)))


def key_of(text: str) -> str:
    """Return the words of a text with blanks between them: equal for two spellings of one name."""
    return " ".join(words_of(text))


# Letters without their accents, plain apostrophes, dashes and blanks; a character each, so that offsets stay.
PLAIN_CHARS = {ord(char): "'" for char in APOSTROPHES} | {ord(char): "-" for char in DASHES}
PLAIN_CHARS |= {
    code: base for code in range(0xC0, 0x250) if (base := unicodedata.normalize("NFD", chr(code))[0]).isascii()
}
PLAIN_CHARS |= dict.fromkeys(map(ord, "\u00a0\u202f\u2009\n\t\r"), " ")


def find_folded(passage: str, text: str | Folded) -> list[Span]:
    """Find the spans of `text`, folded already or not, equal to `passage` up to folding, in order; they may overlap.

    Blanks around the passage are ignored; a blank one has no match.
    """
    folded = text if isinstance(text, Folded) else fold(text)
    return [folded.original_span(*span) for span in find_exact(fold_text(passage).strip(), folded.text)]


def find_exact(passage: str, text: str) -> list[Span]:
    """Find the spans of `text` equal to `passage`, in order; they may overlap."""
    spans: list[Span] = []
    at = text.find(passage) if passage else -1
    while at >= 0:
        spans.append((at, at + len(passage)))
        at = text.find(passage, at + 1)
    return spans


def _lower(text: str, start: int, end: int, pieces: list[str], starts: "array[int]") -> None:
    piece = text[start:end]
    lower = piece.casefold()
    if len(lower) == len(piece):
        pieces.append(lower)
        starts.extend(range(start, end))
        return
    for at, letter in enumerate(piece, start):  # a letter that folds to two, such as "ß"
        pieces.append(letter.casefold())
        starts.extend([at] * len(pieces[-1]))


def _fold_match(match: re.Match[str]) -> str:
    kind = match.lastgroup or ""
    if kind in _SIGNS:
        return _SIGNS[kind]
    if kind == "letter":
        return LETTERS[match.group()]
    return normalized(match.group()).casefold()


def is_whole(text: str, span: Span) -> bool:
    """Does a span begin and end at borders of words and numbers?"""
    return not any(_is_within_word(text, at) for at in span) and not cuts_number(text, span)


def widened(text: str, span: Span) -> Span:
    """Widen a span to whole words."""
    start, end = span
    while _is_within_word(text, start):
        start -= 1
    while _is_within_word(text, end):
        end += 1
    return start, end


def cuts_number(text: str, span: Span) -> bool:
    """Does a span begin or end inside a number, as '000 euros' in '1 000 euros'?"""
    return any(
        match.start() < end < match.end()
        for end in span
        for match in _NUMBER.finditer(text, max(0, end - _LONGEST_NUMBER), end + _LONGEST_NUMBER)
    )


def _is_within_word(text: str, at: int) -> bool:
    """Are both neighbours of an offset part of one word, combining accents included?"""
    return 0 < at < len(text) and all(char.isalnum() or unicodedata.combining(char) for char in text[at - 1 : at + 1])


def read_toml(package: str, name: str) -> dict[str, Any]:
    """Read a TOML file in a package's folder."""
    return tomllib.loads((files(package) / name).read_text("utf-8"))


@cache
def read_words(package: str, name: str = "words.toml") -> dict[str, tuple[str, ...]]:
    """Read the lists of a file in a package's folder: a text is split at blanks, an array keeps its items."""
    lists = read_toml(package, name).items()
    return {name: tuple(words.split() if isinstance(words, str) else words) for name, words in lists}


# Characters that no text store accepts: NUL, and halves of surrogate pairs from broken JSON.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
REPLACEMENT = "\ufffd"


@cache
def _many_marks() -> "regex.Pattern[str]":
    """Find more marks than the 30 that a text may have in a row (UAX #15): `unicodedata` takes quadratic time."""
    import regex

    return regex.compile(r"\P{Canonical_Combining_Class=0}{31,}")


def normalized(text: str, form: Literal["NFC", "NFD", "NFKC", "NFKD"] = "NFC") -> str:
    """Return a text in a Unicode normal form, in linear time, except n log n in the length of a run of marks."""
    if not text.isascii():
        text = _many_marks().sub(_in_order, text)
    return unicodedata.normalize(form, text)


def _in_order(marks: "regex.Match[str]") -> str:
    decomposed = (character for mark in marks.group() for character in unicodedata.normalize("NFD", mark))
    runs = groupby(decomposed, key=lambda character: unicodedata.combining(character) > 0)
    return "".join(character for _, run in runs for character in sorted(run, key=unicodedata.combining))


def storable(text: str) -> str:
    """Replace characters that UTF-8 or a text store cannot hold with U+FFFD."""
    return UNSTORABLE.sub(REPLACEMENT, text)


def plain_text(value: Any) -> str:
    """Format a source's value as text: a datetime as its date, None and NaN as ''."""
    if isinstance(value, datetime.datetime):
        value = value.date()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return storable(str(value))


def fields_of(value: Any) -> Mapping[Any, Any] | None:
    """Return what a mapping, a named tuple or a dataclass holds by name; None for any other value."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        named: dict[str, Any] = value._asdict()
        return named
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return None


def json_safe(value: Any, *, text_of: Callable[[Any], str] = str, keep_nan: bool = False) -> Any:
    """Convert a value without cycles to JSON types and storable text; named tuples and dataclasses become objects.

    `text_of` formats what JSON has no type for; non-finite numbers become null, or text with `keep_nan`.
    RecursionError for a value nested too deeply.
    """
    within = partial(json_safe, text_of=text_of, keep_nan=keep_nan)
    if isinstance(value, str):
        return storable(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value) if keep_nan else None
    if (named := fields_of(value)) is not None:
        return {storable(str(name)): within(item) for name, item in named.items()}
    if isinstance(value, set | frozenset):
        value = sorted(value, key=str)
    return [within(item) for item in value] if isinstance(value, list | tuple) else storable(text_of(value))


def printable(text: str) -> str:
    """Replace each unprintable character with U+FFFD; the length stays, and with it every offset."""
    return UNPRINTABLE.sub(REPLACEMENT, text)


def one_line(text: str) -> str:
    """Write a text in one printable line, its blanks and line ends as single blanks."""
    return " ".join(printable(text).split())


def escaped_json(text: str) -> str:
    r"""Write the unprintable characters of a JSON text as `\uXXXX`: they occur only in its strings, whose values stay.

    Those that JSON itself escapes are escaped already.
    """
    return UNPRINTABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


_INITIALS = re.compile(r"[A-Z]|[IVX]+")
_SHORT_WORD = 4  # characters of an abbreviation at most


def within_sentence(text: str) -> str:
    """Write an outcome or a chamber with a small letter, unless an abbreviation begins it: "QPC autres".

    >>> within_sentence("CHAMBRE SOCIALE A")
    'chambre sociale A'
    """
    if text.isupper() and any(len(word) > _SHORT_WORD for word in text.split()):
        return " ".join(word if _INITIALS.fullmatch(word) else word.lower() for word in text.split())
    return text if text[:2].isupper() else text[:1].lower() + text[1:]
