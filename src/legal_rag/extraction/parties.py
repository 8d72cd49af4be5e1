"""The parties of a French decision: persons, companies and other bodies, at each mention by name.

In: a document's text and its counsel. Out: entities of class `partie`, with `role` where the text tells it. A
document's own text is the evidence: a name in a party's place (a caption, 'a formé le pourvoi') is one's at every
mention; those who sit in court, plead or report there are none.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from legal_rag.extraction.body_names import CAPITAL_BEGINNINGS, LEAD, NOUN_STEMS, body_names
from legal_rag.extraction.classes import PARTIE
from legal_rag.extraction.entities import Entity, rule_entity
from legal_rag.extraction.officials import bench, has_office, has_plural_office, office_behind
from legal_rag.extraction.party_places import learned_names
from legal_rag.extraction.party_roles import with_roles
from legal_rag.extraction.person_names import BLANK, CAPITAL, first_name_behind, person_name, titles
from legal_rag.extraction.untitled_names import untitled_names
from legal_rag.legal_patterns.scanning import lowered, places


class Mention(NamedTuple):
    """A name that may be a party's."""

    start: int  # characters
    end: int
    key: str  # what the mentions of one person share; empty where that is nothing certain
    official: bool  # its own place makes it a judge's, an expert's or the like


_SEVERAL = frozenset("mm. mmes messieurs mesdames sieurs époux consorts mlles".split())
_AND = re.compile(
    rf"{BLANK}?(?:,{BLANK}?(?:et{BLANK})?|{BLANK}(?:et|ET|ou){BLANK})(?!M\.|M[lm])(?:d['’]|de{BLANK})?(?=[{CAPITAL}\[])"
)


_FORM_ALONE = re.compile(r"soci[ée]t[ée]\s(?:anonyme|civile|compagnie)", re.IGNORECASE)  # a form, no name


def find_parties(text: str, counsel: Sequence[Entity]) -> list[Entity]:
    """Find the mentions of parties by name; `counsel` are the document's, who are none."""
    taken = [(one["char_start"], one["char_end"]) for one in counsel]
    members = bench(text)
    persons = _with_colleagues(text, list(_persons(text, members)))
    lawyers = {one["extraction_text"].split()[-1].lower() for one in counsel if one["extraction_text"].startswith("M")}
    officials = {one.key for one in persons if one.official and one.key} | lawyers
    kept = [(one.start, one.end) for one in persons if not one.official and one.key not in officials]
    kept += _bodies(text)
    kept += untitled_names(text)
    kept += _known(text, learned_names(text))
    kept = [one for one in kept if not _within(one, members) and not _FORM_ALONE.fullmatch(text, *one)]
    kept = _outermost(kept, taken)
    return with_roles(text, [rule_entity(PARTIE, text, *one) for one in kept])


def _persons(text: str, members: list[tuple[int, int]]) -> Iterator[Mention]:
    """Yield the persons that have a title before their name, those of a list one by one."""
    done = 0
    for start, at in titles(text):
        if start < done:
            continue
        title = text[start:at].strip().lower()
        group = list(_listed(text, start, at, title in _SEVERAL))
        if not group:
            continue
        done = group[-1][1]
        if len(group) > 9 and _LEGISLATORS.match(text, done):
            continue
        told = _within((start, done), members) or _has_office(text, title, start, done)
        for begin, end, key in group:
            yield Mention(begin, end, key, told or (end < done and office_behind(text, end)))


def _with_colleagues(text: str, persons: list[Mention]) -> list[Mention]:
    """Give those named right before a name that has an office of several persons that office, too."""
    for i in range(len(persons) - 1, 0, -1):
        one, before = persons[i], persons[i - 1]
        together = one.start - before.end < 8 and _NEXT.fullmatch(text, before.end, one.start)
        if together and one.official and not before.official and has_plural_office(text, one.end):
            persons[i - 1] = before._replace(official=True)
    return persons


_NEXT = re.compile(r"\s*,?\s*(?:et )?")
_LEGISLATORS = re.compile(r",? (?:députés|sénateurs)\b")
_ESTATE = re.compile(
    r"(?i:liquidat|mandataire|administrat(?:eur|rice)|curateur|syndic\b|représentant des créanciers|commissaire à l)"
)


def _has_office(text: str, title: str, start: int, end: int) -> bool:
    """Tell whether a name is no party's; a Maître is one's only who stands in for a debtor, as liquidators do."""
    if title in ("me", "maître", "maitre"):
        stands_in = _ESTATE.search(text, end, end + 70) or _ESTATE.search(text, max(0, start - 90), start)
        return stands_in is None or has_office(text, start, end)
    return has_office(text, start, end)


_WIDOW = re.compile(rf"{BLANK}(?:veuve|Veuve|VEUVE|épouse)(?!\w)")


def _listed(text: str, start: int, at: int, several: bool) -> Iterator[tuple[int, int, str]]:
    while True:
        at += text[at : at + 1] == "\n"
        if (widow := _WIDOW.match(text, at)) is not None:
            at = widow.end()
        name = person_name(text, at)
        if name is None:
            return
        end = first_name_behind(text, name.end)
        yield start, end, "" if name.anonymous else name.surname
        joint = _AND.match(text, end) if several else None
        if joint is None:
            return
        start = at = joint.end()


def _bodies(text: str) -> Iterator[tuple[int, int]]:
    """Yield the bodies whose name has a legal form, a noun such as 'société', or is generally known."""
    done = 0
    for lead in _leads(text):
        if lead.start() >= done:
            for span in body_names(text, lead):
                done = span[1]
                if (text[span[0] - 1 : span[0]], text[done : done + 1]) != ("(", ")"):
                    yield span


_CAPITALS = re.compile(r"[A-Z][A-Z.]+")  # where the letters of a legal form may stand


def _leads(text: str) -> Iterator[re.Match[str]]:
    at = {match.start() for match in _CAPITALS.finditer(text) if match.group()[:2] in CAPITAL_BEGINNINGS}
    at.update(places(text, lowered(text) or text, NOUN_STEMS))
    before = (place for place in sorted(at) if not (place and (text[place - 1].isalnum() or text[place - 1] == "-")))
    return (lead for place in before if (lead := LEAD.match(text, place)))


def _known(text: str, names: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield all places of the names that a party's place has taught."""
    for name in names:
        at = text.find(name)
        while at >= 0:
            end = at + len(name)
            before, after = text[at - 1 : at], text[end : end + 1]
            if not before.isalnum() and before != "-" and not after.isalnum() and (before, after) != ("(", ")"):
                yield at, end
            at = text.find(name, end)


def _within(one: tuple[int, int], passages: list[tuple[int, int]]) -> bool:
    """Tell whether a span begins in one of some passages, which rise and do not overlap."""
    at = bisect_right(passages, one[0], key=lambda passage: passage[0]) - 1
    return at >= 0 and one[0] < passages[at][1]


def _outermost(spans: Iterable[tuple[int, int]], taken: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans that no longer one overlaps, nor one that is taken."""
    kept: list[tuple[int, int]] = []
    marks = sorted([(start, -end, 0) for start, end in taken] + [(start, -end, 1) for start, end in set(spans)])
    last = -1
    for start, end, ours in marks:
        if start >= last:
            last = -end
            if ours:
                kept.append((start, -end))
    return kept
