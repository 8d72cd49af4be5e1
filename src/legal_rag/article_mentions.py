"""Article mentions: where a decision cites the articles of codes that it decides by, and what each is called.

In: a decision's text. Out: places of that text. What stands behind the operative part, such as the parties' grounds
annexed to an arrêt, is left out, and so are the articles on costs and on how judgments are drawn up.
"""

import re
from typing import NamedTuple

from legal_rag.extraction.decision_parts import Operative, operative_part
from legal_rag.legal_patterns import find_identifiers
from legal_rag.names import term_of

# Cited whatever the case is about: what binds every judge, costs, form and reasons of judgments, how the court sits.
_OF_EVERY_CASE = {
    "code de procédure civile": (
        r"[4-9]|1[2-6]|45\d|69[5-9]|70\d|62[3-9]|63\d|7[45]\d|76[0-9]|77\d|78\d|79\d|80\d|90\d(?:-\d)?|91\d(?:-\d)?|93\d|94\d(?:-1)?"
        r"|9[67]\d|98\d|10(?:09|1[0-9]|2\d)(?:-\d)?"
    ),
    "code de l'organisation judiciaire": r"[LR](?:411|421|431|432|441)-\d.*",
    "code de procédure pénale": r"375|475-1|48[56]|5(?:67|90|91|92|93)(?:-\d)*|60[0-9](?:-1)?|618-1|800-[12]",
    "code de justice administrative": r"L(?:2|7|9|7[0-9]\d|911)(?:-\d.*)?|[LR](?:6|7)\d\d-\d.*",
}
_ORDINARY = {code: re.compile(pattern) for code, pattern in _OF_EVERY_CASE.items()}
_PART_OF_ARTICLE = re.compile(r"(?:alin[ée]as?|al\.?|§|paragraphes?)\s?$", re.IGNORECASE)  # the number is no article's
_VISA = re.compile(r"\s*(?:\d{1,3}\s?[.)]\s*)?(?:Et\s)?Vu\s", re.IGNORECASE)
_LETTERED = re.compile(r"(LO|[LRDAC])(?=\d)")


class ArticleMention(NamedTuple):
    """An article of a code, and a place where a text cites it."""

    term: str  # the store's: see `legal_rag.names`
    name: str  # as it is written: "L. 1152-1 du code du travail"
    start: int  # characters
    end: int
    in_visa: bool  # its paragraph begins with "Vu": what a cassation rests on


def find_mentions(text: str, part: Operative | None = None) -> list[ArticleMention]:
    """Find where a decision cites articles of codes, in order, up to the end of its operative part.

    Args:
        text: The decision.
        part: Its operative part, if it was found before.
    """
    part = part or operative_part(text)
    body = text[: part.end] if part else text
    return [
        ArticleMention(term_of(one), article_name(one.value, one.code), one.start, one.end, _in_visa(body, one.start))
        for one in find_identifiers(body)
        if one.kind == "article"
        and one.code
        and not _is_of_every_case(one.value, one.code)
        and not _PART_OF_ARTICLE.search(body[max(one.start - 12, 0) : one.start])
    ]


def article_name(value: str, code: str) -> str:
    """Write an article as texts do: 'L1152-1' of the 'code du travail' is 'L. 1152-1 du code du travail'."""
    number = _LETTERED.sub(lambda match: f"{'L.O.' if match[1] == 'LO' else match[1] + '.'} ", value, count=1)
    return f"{number} du {code}"


def _is_of_every_case(value: str, code: str) -> bool:
    pattern = _ORDINARY.get(code)
    return pattern is not None and pattern.fullmatch(value) is not None


def _in_visa(text: str, place: int) -> bool:
    return _VISA.match(text, text.rfind("\n", 0, place) + 1, place) is not None
