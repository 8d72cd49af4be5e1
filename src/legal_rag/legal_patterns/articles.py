"""Articles of codes and other texts: their numbers, brought to one form, with the code where it is named."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from legal_rag.legal_patterns.codes import CODE_NAME
from legal_rag.legal_patterns.parts import BLANK, DASH, GAP, NOT_INSIDE, SPACE
from legal_rag.legal_patterns.scanning import Around, Led


class ArticleNumber(NamedTuple):
    """An article's number, as one text writes it."""

    value: str  # in one form: 'L1152-1'
    start: int  # characters
    end: int
    code: str  # 'code du travail', where it is named; else empty


PREFIX = rf"(?:L\.?{BLANK}?O|[LRDAC])\.?{BLANK}?\*?{BLANK}?"
ARTICLE_NUMBER = (
    rf"(?:{PREFIX}\d+|\d+)(?:{DASH}\d+)*(?:er\b|{BLANK}(?:bis|ter|quater|quinquies|(?-i:[A-Z])(?![\w'’.-])))?"
)
# "articles L. 1152-1, L. 1152-2 et 1240 du code civil": one match, its numbers found in it.
_AND = rf"(?:{GAP},{GAP}(?:et{SPACE}|ou{SPACE})?|{SPACE}(?:et|ou|à){SPACE})"
_LIST = rf"{ARTICLE_NUMBER}(?:{_AND}{ARTICLE_NUMBER})*"
_PARAGRAPH = rf"(?:{GAP},?{GAP}(?:alin[ée]as?|al\.){SPACE}\d+(?:er)?)?"
_OF_CODE = rf"(?:{_PARAGRAPH}{GAP},?{GAP}(?:du|dudit|de{SPACE}ce|au){SPACE}(?P<code>{CODE_NAME}))?"
_ARTICLES = Led(rf"\b(?:articles?|art\.){SPACE}(?P<list>{_LIST}){_OF_CODE}", ["article", "art."])
_BARE_ARTICLE = re.compile(
    rf"{NOT_INSIDE}(?P<list>(?:{PREFIX}\d+(?:{DASH}\d+)+|[lrd]\.?{BLANK}?\d{{3,}}(?:{DASH}\d+)+|(?:L\.?O|[LRD])\."
    rf"{BLANK}?\d+))"
    rf"(?![\w/]|{DASH}\d){_OF_CODE}"
)
_OF_NAMED_CODE = Around(
    rf"{NOT_INSIDE}(?P<list>\d+(?:{DASH}\d+)*){SPACE}du{SPACE}(?P<code>{CODE_NAME})",
    ["du code", "du livre", "du  ", "du\u00a0"],
    30,
    200,
)
# "Code du travail, article L1237-11", as titles have it; "article 5 de la loi" after a code's name is not the code's.
_AFTER_CODE = Led(
    rf"(?<!\w)(?P<code>{CODE_NAME}){GAP}[,:]?{GAP}(?:{DASH}{GAP})?"
    rf"(?:(?:articles?|art\.){SPACE}|(?=(?-i:{PREFIX})\d))(?P<list>(?>{_LIST}))"
    rf"(?!{_PARAGRAPH}\s{{0,4}},?\s{{0,4}}(?:(?:du|dudit|des|de)(?!\w)|d['’]))",
    ["code", "livre des proc"],
)
_NUMBER_IN_LIST = re.compile(ARTICLE_NUMBER, re.IGNORECASE)


_IN_PARTS = re.compile(rf"(?P<prefix>{PREFIX})?(?P<rest>.*)", re.IGNORECASE)


@lru_cache(maxsize=4096)
def article_value(number: str) -> str:
    """Bring an article's number to one form: 'L. 1152-1' and 'L1152‑1' are 'L1152-1', '1er' is '1'."""
    plain = re.sub(DASH, "-", number)
    plain = re.sub(r"(?<=\d)er\b", "", plain, flags=re.IGNORECASE)
    parts = _IN_PARTS.match(plain)
    assert parts is not None  # noqa: S101 - every part of the pattern is optional
    prefix = re.sub(r"[^A-Z]", "", (parts["prefix"] or "").upper())
    return prefix + " ".join(parts["rest"].split()).upper()


def find_article_numbers(text: str) -> Iterator[ArticleNumber]:
    """Find articles by their numbers, those of a list one by one; some more than once, with their code and without."""
    for pattern in (_ARTICLES, _BARE_ARTICLE, _OF_NAMED_CODE, _AFTER_CODE):
        for match in pattern.finditer(text):
            code = " ".join((match["code"] or "").replace("’", "'").lower().split())
            for number in _NUMBER_IN_LIST.finditer(text, match.start("list"), match.end("list")):
                yield ArticleNumber(article_value(number.group()), number.start(), number.end(), code)
