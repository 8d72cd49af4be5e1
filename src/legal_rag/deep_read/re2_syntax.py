r"""A regular expression of Python's written for RE2, in which classes are written out: RE2's own know ASCII alone.

In: a pattern as Python parses it. Out: a pattern for RE2, for texts as they are, or for texts with marks: there each
letter beyond ASCII stands between low lines (`_é_`), which RE2 takes for letters, so that its `\b` is right.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from legal_rag.deep_read.char_sets import (
    CharSet,
    char_class,
    char_set,
    complement,
    digit_chars,
    holds,
    in_any_case,
    minus,
    of_chars,
    space_chars,
    union,
    word_chars,
)
from legal_rag.folding import APOSTROPHES, DASHES, INVISIBLE

MARK = "_"  # stands around each letter beyond ASCII
LOW_LINE = "\ufdd0"  # in place of a low line between two others: no character, and so in no text
MOST_REPEATS = 1000  # of all counted repetitions, one within the other; each may cost RE2 50 ns a byte
TOO_LARGE = f"motif refusé : trop de répétitions comptées ({MOST_REPEATS} au plus, l'une dans l'autre comprises)"
NO_FLAGS = "motif refusé : les options (?a) et (?L) ne sont pas prises en charge"
REFUSED = {
    "ASSERT": "les assertions (?=…) et (?<=…)",
    "ASSERT_NOT": "les assertions (?!…) et (?<!…)",
    "FAILURE": "les assertions (?!…)",
    "GROUPREF": "les références arrière (\\1, (?P=nom))",
    "GROUPREF_EXISTS": "les conditions (?(1)…)",
    "ATOMIC_GROUP": "les groupes atomiques (?>…)",
    "POSSESSIVE_REPEAT": "les répétitions possessives (a++)",
}
PLACES = {"AT_BEGINNING": "(?m:^)", "AT_END": "(?m:$)", "AT_BEGINNING_STRING": r"\A", "AT_END_STRING": r"\z"}
BORDERS = {"AT_BOUNDARY": r"\b", "AT_NON_BOUNDARY": r"\B"}
ENDLESS = 2**32 - 2  # what Python's own parser calls MAXREPEAT is at least that


class Way(NamedTuple):
    """How a pattern is to be taken, and for which text it is written."""

    ignore_case: bool
    fold: bool  # letters with and without accents are the same, and so are apostrophes, dashes, runs of blanks
    any_char: bool = False  # a full stop matches line breaks too
    marked: bool = False  # for a text with marks; in one for a text without, word borders are left out


def written_for_re2(tree: Iterable[Any], way: Way) -> str:
    """Write a pattern for RE2.

    Args:
        tree: As `re._parser` gives it.
        way: How it is to be taken.

    Raises:
        ValueError: If RE2 does not know something in it, or it is too large; in French.
    """
    if _states(tree) > MOST_REPEATS:
        raise ValueError(TOO_LARGE)
    return _sequence(tree, way)


def asks_for_borders(tree: Iterable[Any]) -> bool:
    r"""Tell whether a pattern has `\b` or `\B` in it."""
    return any(
        value.name in BORDERS if op.name == "AT" else any(map(asks_for_borders, _inner(op.name, value)))
        for op, value in tree
    )


def _inner(name: str, value: Any) -> list[Any]:
    """Return the patterns within an item."""
    if name == "SUBPATTERN":
        return [value[3]]
    if name == "BRANCH":
        return list(value[1])
    return [value[2]] if name.endswith("_REPEAT") else []


def _states(tree: Iterable[Any]) -> int:
    """Count what counted repetitions come to when they are written out."""
    total = 0
    for op, value in tree:
        within = sum(map(_states, _inner(op.name, value)))
        if op.name.endswith("_REPEAT"):
            least, most, inner = value
            times = least if most >= ENDLESS else most
            within = times * max(within, sum(1 for _ in inner)) if times > 1 else within
        total += within
    return total


def _sequence(items: Any, way: Way) -> str:
    return "".join(_item(op.name, value, way) for op, value in items)


def _item(name: str, value: Any, way: Way) -> str:
    if name in REFUSED:
        raise ValueError(f"motif refusé : {REFUSED[name]} ne sont pas prises en charge (moteur RE2, à temps linéaire)")
    if name == "AT":
        return _place(value.name, way)
    if name == "SUBPATTERN":
        return _group(value, way)
    if name == "BRANCH":
        return f"(?:{'|'.join(_sequence(one, way) for one in value[1])})"
    if name in ("MAX_REPEAT", "MIN_REPEAT"):
        return _repeated(*value, lazy=name == "MIN_REPEAT", way=way)
    if way.fold and name == "LITERAL" and chr(value).isspace():
        return _one_of(_blanks(), way) + "+"
    return _one_of(_chars(name, value, way), way)


def _group(value: Any, way: Way) -> str:
    _, added, removed, inner = value
    return f"(?:{_sequence(inner, _with_flags(way, added, removed))})"


def _with_flags(way: Way, added: int, removed: int) -> Way:
    if (added | removed) & (re.ASCII | re.LOCALE):
        raise ValueError(NO_FLAGS)
    ignore_case = (way.ignore_case or bool(added & re.IGNORECASE)) and not removed & re.IGNORECASE
    any_char = (way.any_char or bool(added & re.DOTALL)) and not removed & re.DOTALL
    return way._replace(ignore_case=ignore_case, any_char=any_char)


def _repeated(least: int, most: int, inner: Any, *, lazy: bool, way: Way) -> str:
    times = f"{{{least},{'' if most >= ENDLESS else most}}}"
    return f"(?:{_sequence(inner, way)}){times}{'?' if lazy else ''}"


def _place(name: str, way: Way) -> str:
    return PLACES[name] if name in PLACES else BORDERS[name] if way.marked else ""


def _chars(name: str, value: Any, way: Way) -> CharSet:
    """Return the set of the characters that an item matches."""
    if name == "ANY":
        return complement(()) if way.any_char else complement(of_chars("\n"))
    if name == "LITERAL":
        return _even(of_chars(chr(value)), way)
    if name == "NOT_LITERAL":
        return complement(_even(of_chars(chr(value)), way))
    negated = value[0][0].name == "NEGATE"
    found = _even(union(*(_member(one.name, what) for one, what in value[negated:])), way)
    return complement(found) if negated else found


def _member(name: str, value: Any) -> CharSet:
    if name == "LITERAL":
        return of_chars(chr(value))
    if name == "RANGE":
        return char_set([value])
    kind = value.name.removeprefix("CATEGORY_")
    some = {"WORD": word_chars, "SPACE": space_chars, "DIGIT": digit_chars}[kind.removeprefix("NOT_")]()
    return complement(some) if kind.startswith("NOT_") else some


def _even(some: CharSet, way: Way) -> CharSet:
    """Return a set with all that is to be taken for the same as what is in it."""
    if way.fold:
        some = union(some, *(one for one in _same() if minus(one, some) != one))
    return in_any_case(some) if way.ignore_case else some


@cache
def _same() -> Sequence[CharSet]:
    """Return the sets of characters that folding takes for one: a letter's accented forms, apostrophes, dashes."""
    forms: dict[str, set[str]] = {}
    for letter in map(chr, range(0xC0, 0x250)):
        forms.setdefault(unicodedata.normalize("NFD", letter)[0], set()).add(letter)
    letters = [of_chars({base, *some}) for base, some in forms.items() if base.isascii()]
    return [*letters, of_chars("'" + APOSTROPHES), of_chars("-" + DASHES)]


def _blanks() -> CharSet:
    return union(space_chars(), of_chars(INVISIBLE))


def _one_of(some: CharSet, way: Way) -> str:
    """Write a set as a class; for a marked text, its letters beyond ASCII as they stand there."""
    if not way.marked:
        return char_class(some)
    beyond = _beyond_ascii()
    bare, letters = minus(some, beyond), minus(some, complement(beyond))
    if holds(letters, MARK):
        letters = union(minus(letters, of_chars(MARK)), of_chars(LOW_LINE))
    marked = f"{MARK}{char_class(letters)}{MARK}"
    return f"(?:{char_class(minus(bare, of_chars(LOW_LINE)))}|{marked})" if letters else char_class(bare)


@cache
def _beyond_ascii() -> CharSet:
    """Return the letters that RE2 takes for none, and the low line, which marks them."""
    return union(minus(word_chars(), ((0, 127),)), of_chars(MARK))
