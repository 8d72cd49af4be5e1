"""Article mentions: where a decision cites the articles of codes that it decides by, and what each is called.

In: a decision's text. Out: places of that text. What the parties say is left out as far as one can tell: grounds of
appeal, told or annexed to an arrêt; and so are the articles on costs and on how judgments are drawn up.
"""

import re
from typing import NamedTuple

from legal_rag.extraction.decision_parts import Operative, operative_part
from legal_rag.legal_patterns import Identifier, find_identifiers
from legal_rag.names import canonical_key

# Cited whatever the case is about: what binds every judge or contract, interest, costs, form of judgments, how a court
# sits.
_OF_EVERY_CASE = {
    "code civil": r"1|2|4|5|1103|1104|1134|1153(?:-1)?|1154|1231-[67]|1315|1343-2|1353",
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
_NUMBERED_PART = re.compile(r"\s?,?\s(?:alin[ée]as?|al\.?|§)\s?(\d+|premier)", re.IGNORECASE)
# Grounds of appeal: from their heading to what the court replies, in the older style and in that of today;
# and paragraphs that begin with "alors".
_GROUNDS = re.compile(
    r"\n[^\S\n]*[EÉ]nonc[ée]\s(?:du|des|de la)\s(?:[^\s]{1,12}\s)?(?:moyen|grief)s?\b.*?"
    r"(?=\n[^\S\n]*(?:Réponse (?:de la Cour|aux? )|Motivation|Appréciation de la Cour)|\Z)"
    r"|(?<=\n)[^\S\n]*(?:\d{1,2}[°/).\s-]{1,4})*alors\b[^\n]*"
    r"|alors,?\sselon\sle\s(?:\w+\s)?(?:moyen|grief|pourvoi).*?(?=(?:Mais|Et)\sattendu)",
    re.DOTALL | re.IGNORECASE,
)
_VISA = re.compile(r"\s*(?:\d{1,3}\s?[.)]\s*)?(?:Et\s)?Vu\s", re.IGNORECASE)
_LETTERED = re.compile(r"(LO|[LRDAC])(?=\d)")


class ArticleMention(NamedTuple):
    """An article of a code, and a place where a text cites it."""

    term: str  # the store's: see `legal_rag.names`
    name: str  # as it is written: "L. 1152-1 du code du travail"
    start: int  # characters
    end: int
    part: str  # of the article, '1' for 'alinéa 1er'; empty where none is named
    in_visa: bool  # its paragraph begins with "Vu": what a cassation rests on

    def is_of_other_part(self, other: "ArticleMention") -> bool:
        """Tell whether two mentions name different parts of an article."""
        return bool(self.part and other.part and self.part != other.part)


def find_mentions(text: str, part: Operative | None = None) -> list[ArticleMention]:
    """Find where a decision cites articles of codes, in order, up to its operative part.

    Args:
        text: The decision.
        part: Its operative part, if it was found before.
    """
    part = part or operative_part(text)
    body = text[: part.start] if part else text
    grounds = find_grounds(body)
    return [
        _mention(body, one)
        for one in find_identifiers(body)
        if one.kind == "article"
        and one.code
        and not _is_of_every_case(one.value, one.code)
        and not _PART_OF_ARTICLE.search(body[max(one.start - 12, 0) : one.start])
        and not any(start <= one.start < end for start, end in grounds)
    ]


def find_grounds(text: str) -> list[tuple[int, int]]:
    """Return the spans in which a decision tells the grounds of appeal: the parties' words, not the court's."""
    return [match.span() for match in _GROUNDS.finditer(text)]


def _mention(text: str, one: Identifier) -> ArticleMention:
    numbered = _NUMBERED_PART.match(text, one.end)
    part = numbered[1].casefold().replace("premier", "1") if numbered else ""
    in_visa = _VISA.match(text, text.rfind("\n", 0, one.start) + 1, one.start) is not None
    return ArticleMention(canonical_key(one), article_name(one.value, one.code), one.start, one.end, part, in_visa)


def article_name(value: str, code: str) -> str:
    """Write an article as texts do: 'L1152-1' of the 'code du travail' is 'L. 1152-1 du code du travail'."""
    number = _LETTERED.sub(lambda match: f"{'L.O.' if match[1] == 'LO' else match[1] + '.'} ", value, count=1)
    return f"{number} du {code}"


def _is_of_every_case(value: str, code: str) -> bool:
    pattern = _ORDINARY.get(code)
    return pattern is not None and pattern.fullmatch(value) is not None
