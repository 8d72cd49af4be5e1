r"""Regular expressions as Python writes them, run by RE2 in time linear to the text.

In: a pattern. Out: the spans where it matches UTF-8 text, in characters. Letters with accents are letters, as in
Python: see `legal_rag.deep_read.re2_syntax`.
"""

import importlib
import re
import unicodedata
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from legal_rag.cleaning import storable
from legal_rag.deep_read.char_sets import holds, word_chars
from legal_rag.deep_read.re2_syntax import LOW_LINE, MARK, NO_FLAGS, TOO_LARGE, Way, asks_for_borders, written_for_re2
from legal_rag.deep_read.required_words import Alternatives, required_terms

LONGEST_PATTERN = 2000  # characters
COMPILED = 16  # patterns kept; each may take RE2's 8 MB twice
CACHED_LETTERS, FEW_LETTERS = 4096, 64
ASCII = bytes(range(128))
_MAYBE_LETTER = re.compile(rf"[^\x00-\x7f]|{MARK}")
_parser: Any = importlib.import_module("re._parser")  # Python's own reading of patterns


@dataclass(frozen=True)
class Pattern:
    """A pattern, ready to be looked for.

    `loose` matches wherever `exact` may, and is the same thing where the pattern asks for no word borders (`exact` is
    None then). `required` are the terms that each match brings with it; see `required_terms`.
    """

    loose: Any
    exact: Any
    required: Alternatives | None

    def spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield the spans in characters, start and end, where the pattern matches; none is empty, none overlap.

        Args:
            data: A text in UTF-8.
        """
        if self.exact is None:
            yield from _spans(self.loose, data, 0)
        elif self.loose.search(data) is not None:
            yield from _spans(self.exact, _with_marks(data), 1)


@lru_cache(COMPILED)
def compile_pattern(pattern: str, *, ignore_case: bool = True, fold: bool = False) -> Pattern:
    r"""Make a pattern of Python's syntax ready to be looked for.

    `^` and `$` stand for the borders of lines; `\A` and `\Z` for those of the text.

    Args:
        pattern: What is looked for.
        ignore_case: Take capitals and small letters for the same.
        fold: Take letters with and without accents for the same, and so all apostrophes, all dashes, all blanks.

    Raises:
        ValueError: If RE2 does not know something in it, it is malformed, too long or too large, or it matches an empty
            text; in French.
    """
    try:
        tree = _parsed(unicodedata.normalize("NFC", pattern), ignore_case)
        way = Way(bool(tree.state.flags & re.IGNORECASE), fold, bool(tree.state.flags & re.DOTALL))
        written = written_for_re2(tree, way)
        if tree.getwidth()[0] == 0:
            raise ValueError("motif refusé : il correspond aussi à un texte vide ; précisez ce qu'il doit contenir")
        loose = _compiled(written)
        marked = way._replace(marked=True)
        exact = _compiled(written_for_re2(tree, marked)) if asks_for_borders(tree) else None
        return Pattern(loose, exact, None if fold else required_terms(tree))
    except RecursionError:
        raise ValueError("motif refusé : trop de parenthèses imbriquées") from None


def _parsed(pattern: str, ignore_case: bool) -> Any:
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"motif refusé : {len(pattern)} caractères, {LONGEST_PATTERN} au plus")
    if pattern != storable(pattern):
        raise ValueError("motif mal formé : il contient un demi-caractère")
    try:
        with warnings.catch_warnings():  # of sets within sets, which later Pythons may read otherwise
            warnings.simplefilter("ignore")
            tree = _parser.parse(pattern, re.IGNORECASE if ignore_case else 0)
    except (re.error, OverflowError) as error:
        where = getattr(error, "pos", None)
        at = "" if where is None else f" au caractère {where}"
        raise ValueError(f"motif mal formé{at} : {getattr(error, 'msg', error)}") from error
    if tree.state.flags & (re.ASCII | re.LOCALE):
        raise ValueError(NO_FLAGS)
    return tree


def _compiled(written: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        return re2.compile(written, options)
    except re2.error as error:
        raise ValueError(TOO_LARGE) from error
    finally:
        re2.purge()  # what it would keep by itself may come to a gigabyte


def _with_marks(data: bytes) -> bytes:
    """Put marks around the letters of a text that RE2 takes for none; see the module."""
    beyond = set(data.translate(None, ASCII).decode()) - {LOW_LINE}
    text = data.decode()
    if len(beyond) > FEW_LETTERS:
        return _MAYBE_LETTER.sub(lambda match: _marked(match.group()), text).encode()
    for char in (MARK, *sorted(beyond)):  # the mark itself first; replacing one by one is three times as fast
        text = text.replace(char, _marked(char))
    return text.encode()


@lru_cache(CACHED_LETTERS)
def _marked(char: str) -> str:
    if char == MARK:
        return f"{MARK}{LOW_LINE}{MARK}"
    return f"{MARK}{char}{MARK}" if holds(word_chars(), char) else char


def _spans(compiled: Any, data: bytes, marked: int) -> Iterator[tuple[int, int]]:
    """Yield where a compiled pattern matches, counted in characters of the text without its marks."""
    at_byte = at = 0
    for match in compiled.finditer(data):
        first, last = match.span()
        start = at + _length(data[at_byte:first], marked)
        at_byte, at = last, start + _length(data[first:last], marked)
        yield start, at


def _length(piece: bytes, marked: int) -> int:
    return len(piece.decode()) - marked * piece.count(MARK.encode())
