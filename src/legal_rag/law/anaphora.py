"""Articles that a text names without their code: the code follows from what else the text names."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from legal_rag.law.articles import WITHOUT_L, code_in_full, find_texts
from legal_rag.law.decisions import Identifier
from legal_rag.law.scanning import BLANK, DASH, spaced

_LETTERED = re.compile(r"(?:LO?|[RD])(?P<first>\d{1,4})(?:-\d{1,3})*(?: [A-Z]+)*")
_LONG = re.compile(r"\d{3,4}(?:-\d{1,3})*|\d{2}-\d{1,3}")  # too long for an article of a contract
# "L. 124. 3", "L. 242 -6": of a number that a typo splits, only the first part was read.
_SPLIT = re.compile(rf"{BLANK}?{DASH}{BLANK}?[\dIVX]")
_SPLIT_FIRST = re.compile(rf"{_SPLIT.pattern}|\.?{BLANK}?\d")
_IN_LIST = re.compile(r"(?:\barticles?|\bart\.|\d,?\s{1,4}(?:et|ou|à)|\d,)\s{0,4}\Z", re.IGNORECASE)
_CODE_BEFORE = 40  # characters before "(article L. 113-2)" in which its code may be named
# "l'article 700 du présent accord", "L. 16 de la loi": of a text that is not a code.
_OF_ANOTHER_TEXT = re.compile(
    spaced(
        r"[^.;:«»\n]{0,40}? (?:(?:du|de la|de l['’]|des|de cet?(?:te)?|dudit|de ladite|d['’]une?)_)"
        r"(?:même |présente? )?(?:lois?|ordonnances?|décrets?|arrêtés?|conventions?|accords?|avenants?|"
        r"règlements?|directives?|chartes?|"
        r"constitution|traités?|statuts|contrats?|protocoles?|déclaration|préambule|bail)(?!\w)"
    ),
    re.IGNORECASE,
)
Codes = Mapping[Hashable, set[str]]


def with_codes(text: str, names: Sequence[Identifier]) -> list[Identifier]:
    """Give the articles that a text names without a code the one that the rest of it leaves no doubt of.

    That is, in this order, the only code with which the same number is named elsewhere; and for a number in L., R. or
    D. the only code with such numbers that begin alike ("L. 2314-32" where "L. 2314-30 du code du travail" is named),
    the only one with such numbers of that length, or the only code named that has articles in L. All others stay
    without a code.
    """
    coded = [name for name in names if name.kind == "article" and name.code]
    by_value, by_start, by_length = (_codes_by(coded, part) for part in (lambda value: value, _start, _length))
    lettered = {_plain(name.code) for name in coded if _LETTERED.fullmatch(name.value)}
    named = [
        (end, code_in_full(_plain(text[start:end]))) for kind, start, end in find_texts(text, []) if kind == "code"
    ]
    only_named = {*(code for _, code in named), *(_plain(name.code) for name in coded)} - WITHOUT_L

    def code_of(name: Identifier) -> str:
        is_lettered = _LETTERED.fullmatch(name.value)
        if not (is_lettered or _LONG.fullmatch(name.value)) or not _is_whole(text, name):
            return ""
        known = by_value.get(name.value) or (
            is_lettered
            and (
                by_start.get(_start(name.value))
                or (lettered if lettered == by_length.get(_length(name.value)) else only_named)
            )
        )
        code = _only(known or ())
        return "" if _names_another(text, name.start, code, named) else code

    return [name._replace(code=code_of(name)) if name.kind == "article" and not name.code else name for name in names]


def _is_whole(text: str, name: Identifier) -> bool:
    """Tell whether a number was read whole, and is that of an article of a code, as far as the words around tell."""
    if "-" not in name.value and not _IN_LIST.search(text, max(name.start - 12, 0), name.start):
        return False  # a road, a page, a case: "R. 156", "D. 2"
    split = _SPLIT if "-" in name.value else _SPLIT_FIRST
    return not split.match(text, name.end) and not _OF_ANOTHER_TEXT.match(text, name.end)


def _names_another(text: str, start: int, code: str, named: Sequence[tuple[int, str]]) -> bool:
    """Tell whether another code is named right before an article: "du code de la consommation (article L. 113-2)"."""
    end, before = named[max(bisect_right(named, (start,)) - 1, 0)] if named else (start + 1, "")
    is_near = start - _CODE_BEFORE < end <= start and ";" not in text[end:start]
    return is_near and before != code and before not in WITHOUT_L


def _start(value: str) -> Hashable:
    form = _LETTERED.fullmatch(value)
    return (len(form["first"]), form["first"][:2]) if form else value


def _length(value: str) -> Hashable:
    form = _LETTERED.fullmatch(value)
    return len(form["first"]) if form else 0


def _codes_by(names: Iterable[Identifier], part: Callable[[str], Hashable]) -> Codes:
    codes: dict[Hashable, set[str]] = defaultdict(set)
    for name in names:
        codes[part(name.value)].add(_plain(name.code))
    return codes


def _plain(code: str) -> str:
    """Return a code's name without "nouveau" or "ancien"."""
    return re.sub(r"\A(?:nouveau|ancien)\s+", "", code, flags=re.IGNORECASE)


def _only(codes: Iterable[str]) -> str:
    known = set(codes)
    return known.pop() if len(known) == 1 else ""
