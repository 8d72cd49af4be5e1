"""Persons whose name is left out and whom no title precedes: 'Louis X...', 'que X...', '[N] [M]', 'X... C/ Y...'.

In: text. Out: the places of their names.
"""

import re
from collections.abc import Iterator

from legal_rag.extraction.officials import office_behind
from legal_rag.extraction.person_names import ANONYMOUS, BLANK, CAPITAL, NO_NAME
from legal_rag.legal_patterns.scanning import lowered, places

_NAMES = re.compile(rf"{ANONYMOUS}(?:[ -]{ANONYMOUS}){{0,2}}")
_FIRST_NAMES = re.compile(rf"(?:(?<![\w.-])[{CAPITAL}][a-zà-ÿ]+(?:-[{CAPITAL}][a-zà-ÿ]+)*{BLANK}){{1,3}}$")
_REACH = 50  # characters of first names
# Words within a sentence that persons are named behind; at its beginning, letters with dots may be anything left out.
_WITHIN_SENTENCE = re.compile(
    r"(?:\b(?:à|que|qu['’]|de|d['’]|et|par|contre|pour|dont|si|entre|chez|lequel|avec|ou|envers|donc|où|dame|MM\.|"
    r"époux),? ?|[a-zé]{3,} )$"
)
_OFFICE_BEFORE = re.compile(r"(?:octeurs?|Dr\.?|xperts?|rofesseur|OCTEUR|XPERT) $")
# Captions set the parties against each other by 'C/'.
_AGAINST = re.compile(r"(?<!\w)[Cc] ?/")
_ALONE = re.compile(r"\s{0,4}(?:\n|[Cc] ?/)")


def untitled_names(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of persons whose names are left out, first names with them."""
    for place in places(text, lowered(text) or text, ("...", "…")):
        two = text[max(place - 2, 0) : place]
        start = place - (2 if len(two) == 2 and two.isalpha() and two.isupper() else 1)
        name = _NAMES.match(text, start) if start >= 0 else None
        if name and not (start and (text[start - 1].isalnum() or text[start - 1] in ".[")):
            first = _first_names(text, start)
            if _is_person(text, first, start, name.end()):
                yield first, name.end()
    yield from _bracketed(text)


def _is_person(text: str, first: int, start: int, end: int) -> bool:
    if _OFFICE_BEFORE.search(text, max(0, start - 12), start) or office_behind(text, end):
        return False
    if first < start:
        return True
    if _ALONE.match(text, end) and _AGAINST.search(text, max(0, start - 150), end + 150):
        return True
    goes_on = text[end : end + 2].strip()[:1].isupper()  # a word of which dots took the place of a letter
    return not goes_on and _WITHIN_SENTENCE.search(text, max(0, start - 12), start) is not None


def _first_names(text: str, start: int) -> int:
    """Return where the first names before a name begin; `start` where there are none."""
    found = _FIRST_NAMES.search(text, max(0, start - _REACH), start)
    words = found.group().split() if found else []
    while any(word.lower() in NO_NAME or word in ("Le", "La", "Les") for word in words):
        words.pop(0)
    return start - len(" ".join(words)) - 1 if words else start


def _bracketed(text: str) -> Iterator[tuple[int, int]]:
    at = text.find("] [")
    while at >= 0:
        start = text.rfind("[", 0, at)
        name = _NAMES.match(text, start) if start >= 0 else None
        if name and name.end() > at + 1:
            yield start, name.end()
        at = text.find("] [", at + 3)
