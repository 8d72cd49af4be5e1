"""The version of an article that a text says it means: "dans sa rédaction issue de la loi du 8 août 2016"."""

import re
from datetime import date, timedelta
from typing import NamedTuple

from legal_rag.base.html import displayed
from legal_rag.law.scanning import DASH, spaced
from legal_rag.law.values import find_dates

_WORDING_CHARS = 320  # after an article, in which a text says which version it means
_LIST_OR_CODE = r"(?:[^;:«»\n]{0,160}?[,(]? )?(?P<whose>dans (?:s|l)(?:a|eur)s? (?:rédaction|version)s?)(?!\w)"
_WHICH = re.compile(spaced(_LIST_OR_CODE), re.IGNORECASE)
_OTHER_ARTICLE = re.compile(rf"\b(?:articles?|[LRD]\.)\s?\d|\d{DASH}\d", re.IGNORECASE)
_OTHER_ARTICLES = re.compile(r"\barticles?\b", re.IGNORECASE)  # of another list: "leur" is said of the last one
_BEFORE_ACT = re.compile(spaced(r"[^;:«»\n]{0,60}?\bantérieure?s? (?:à|au)(?!\w)"), re.IGNORECASE)
_OF_ACT = re.compile(
    spaced(r"[^;:«»\n]{0,30}?\b(?:issues?|résultant|modifiées?|donnée|créée?s?) (?:de|du|des|par)(?!\w)"), re.IGNORECASE
)
_IN_FORCE = re.compile(
    spaced(r"[^;:«»\n]{0,30}?\b(?:applicables?|en vigueur)[^;:«»\n]{0,40}? (?:du|le|au|à compter du|depuis le)(?!\w)"),
    re.IGNORECASE,
)
_UNTIL_DAY = 90  # characters between these words and the day


@displayed
class StatedWording(NamedTuple):
    """Which version of an article a text says it means."""

    day: date | None  # on which it was in force, or of the act that made it; None: no day is given
    of_act: bool  # the day is that of the act: the version began then or later
    start: int  # characters
    end: int


def stated_wording(text: str, end: int) -> StatedWording | None:
    """Read which version a text means of the article whose number ends at `end`; None if it says nothing.

    >>> stated_wording("l'article 1240 du code civil, dans sa rédaction antérieure à la loi du 5 mai 2016", 14).day
    datetime.date(2016, 5, 4)
    """
    last = min(len(text), end + _WORDING_CHARS)
    which = _WHICH.match(text, end, last)
    if which is None:
        return None
    others = _OTHER_ARTICLES if "leur" in which["whose"].lower() else _OTHER_ARTICLE
    if others.search(text, end, which.start("whose")):
        return None  # of the articles behind it
    start, after = which.span("whose")
    for pattern in (_BEFORE_ACT, _OF_ACT, _IN_FORCE):
        if said := pattern.match(text, after, last):
            days = find_dates(text[said.end() : said.end() + _UNTIL_DAY])
            if days:
                day = days[0].value - timedelta(days=pattern is _BEFORE_ACT)
                return StatedWording(day, pattern is _OF_ACT, start, said.end() + days[0].end)
    return StatedWording(None, False, start, after)
