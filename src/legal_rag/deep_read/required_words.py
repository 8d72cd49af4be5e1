r"""The words without which a regular expression cannot match, as the index of words counts them.

In: a pattern as Python parses it. Out: sets of terms: whatever the pattern matches brings all the terms of one of them
into its document. `\bannulation des? élections?\b` gives four such sets; `annul\w+` none, since its word goes on.

A pattern stands for variants: texts in which a blank is anything that ends a word, and `ANY` anything at all.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import regex

from legal_rag.deep_read.char_sets import holds, word_chars
from legal_rag.lexical import words_of

Alternatives = tuple[frozenset[str], ...]  # sets of terms, as `legal_rag.lexical.words_of` gives them

ANY = "\uffff"  # no character; stands for any text, also an empty one
END = " "  # stands for anything that is no part of a word, and for the border of a text
MOST_VARIANTS = 64
MOST_CHARS = 8  # of a class that is taken apart
LONGEST_TERM = 30  # bytes; of longer words the index may know nothing
_LETTERS = r"\p{Alphabetic}\p{L}\p{M}\p{N}"  # at least what the index takes for parts of words
_WHOLE_WORD = regex.compile(rf"(?<![{_LETTERS}{ANY}])[{_LETTERS}]+(?![{_LETTERS}{ANY}])")
_NO_PART = {"CATEGORY_SPACE", "CATEGORY_NOT_WORD"}
_BORDERS = {"AT_BEGINNING", "AT_BEGINNING_STRING", "AT_END", "AT_END_STRING", "AT_BOUNDARY"}

Variants = frozenset[str]
UNKNOWN: Variants = frozenset({ANY})


def required_terms(tree: Iterable[Any]) -> Alternatives | None:
    """Return sets of terms of which each match holds one; None if it may hold none.

    Args:
        tree: A pattern as `re._parser` gives it.
    """
    found = {frozenset(_terms(ANY + variant + ANY)) for variant in _sequence(tree)}
    return tuple(sorted(found, key=sorted)) if all(found) else None


def _terms(variant: str) -> Iterable[str]:
    for word in _WHOLE_WORD.findall(variant):
        if len(word.encode()) <= LONGEST_TERM:
            yield from words_of(word)


def _sequence(items: Iterable[Any]) -> Variants:
    found: Variants = frozenset({""})
    for op, value in items:
        parts = _item(op.name, value)
        if len(found) * len(parts) > MOST_VARIANTS:
            parts = UNKNOWN
        found = frozenset(before + part for before in found for part in parts)
    return found


def _item(name: str, value: Any) -> Variants:
    if name == "LITERAL":
        return frozenset({_shown(chr(value))})
    if name == "IN":
        return _class(value)
    if name == "AT":
        return frozenset({END if value.name in _BORDERS else ""})
    if name == "SUBPATTERN":
        return _sequence(value[3])
    if name == "BRANCH":
        found = frozenset[str]().union(*map(_sequence, value[1]))
        return found if len(found) <= MOST_VARIANTS else UNKNOWN
    if name in ("MAX_REPEAT", "MIN_REPEAT"):
        return _repeated(*value)
    return UNKNOWN


def _repeated(least: int, most: Any, inner: Any) -> Variants:
    once = _sequence(inner)
    none: Variants = frozenset() if least else frozenset({""})
    if most == 1 or once == {END}:  # any number of ends is one
        return once | none
    return frozenset(variant + ANY for variant in once) if least else UNKNOWN


def _class(members: Sequence[Any]) -> Variants:
    if all(_ends_a_word(op.name, value) for op, value in members):
        return frozenset({END})
    if len(members) > MOST_CHARS or any(op.name != "LITERAL" for op, _ in members):
        return UNKNOWN
    return frozenset(_shown(chr(value)) for _, value in members)


def _ends_a_word(name: str, value: Any) -> bool:
    """Tell whether a member of a class is no part of a word."""
    if name == "CATEGORY":
        return value.name in _NO_PART
    return name == "LITERAL" and not holds(word_chars(), chr(value))


def _shown(char: str) -> str:
    return char if char == ANY or holds(word_chars(), char) else END
