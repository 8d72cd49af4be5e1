"""Articles of codes and statutes, alone or cited in lists and ranges."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from legal_rag.base.text import Span
from legal_rag.law.scanning import BLANK, DASH, NOT_INSIDE, Around, Led, spaced
from legal_rag.law.statutes import CODE_NAME, SHORT_CODE, SHORT_CODE_STARTS, LegalText, code_named


class ArticleNumber(NamedTuple):
    """An article's number in a text."""

    value: str  # normalised: 'L1152-1'
    start: int  # characters
    end: int
    code: str  # 'code du travail', or empty


PREFIX = rf"(?:L\.?{BLANK}?O|[LRDAC])\.?{BLANK}?\*?{BLANK}?"
ARTICLE_NUMBER = (
    rf"(?:{PREFIX}\d+|\d+)(?:{DASH}\d+)*(?:er\b|{BLANK}(?:bis|ter|quater|quinquies|(?-i:[A-Z])(?![\w'’.-])))?"
)
# "articles L. 1152-1, L. 1152-2 et 1240 du code civil": one match, its numbers found in it.
_AND = "(?:_,_(?:et |ou )?| (?:et|ou|à) )"
_LIST = rf"{ARTICLE_NUMBER}(?:{_AND}{ARTICLE_NUMBER})*"
_PARAGRAPH = r"(?:_,?_(?:alin[ée]as?|al\.) \d+(?:er)?)?"
_OF_CODE = f"(?:{_PARAGRAPH}_,?_(?:du|dudit|de ce|au) (?P<code>{CODE_NAME}))?"
_ARTICLES = Led(rf"\b(?:articles?|art\.) (?P<list>{_LIST}){_OF_CODE}", ["article", "art."])
_BARE_ARTICLE = re.compile(
    spaced(
        rf"{NOT_INSIDE}(?P<list>(?:{PREFIX}\d+(?:{DASH}\d+)+|[lrd]\.?{BLANK}?\d{{3,}}(?:{DASH}\d+)+|(?:L\.?O|[LRD])\."
        rf"{BLANK}?\d+))"
        rf"(?![\w/]|{DASH}\d){_OF_CODE}"
    )
)
_BARE_STARTS = re.compile(rf"[LRDAClrd](?<![\w/.-].)(?=[.\dO*]|{BLANK})")  # a cheap filter
_OF_NAMED_CODE = Around(
    rf"{NOT_INSIDE}(?P<list>\d+(?:{DASH}\d+)*) du (?P<code>{CODE_NAME})",
    ["du code", "du livre", "du  ", "du\u00a0"],
    30,
    200,
)
# "Code du travail, article L1237-11", as titles write it; "article 5 de la loi" after a code's name is not the code's.
_AFTER_CODE = Led(
    rf"(?<!\w)(?P<code>{CODE_NAME})_[,:]?_(?:{DASH}_)?(?:(?:articles?|art\.) |(?=(?-i:{PREFIX})\d))"
    rf"(?P<list>(?>{_LIST}))(?!{_PARAGRAPH}\s{{0,4}},?\s{{0,4}}(?:(?:du|dudit|des|de)(?!\w)|d['’]))",
    ["code", "livre des proc"],
)
_NUMBER_IN_LIST = re.compile(ARTICLE_NUMBER, re.IGNORECASE)


_IN_PARTS = re.compile(rf"(?P<prefix>{PREFIX})?(?P<rest>.*)", re.IGNORECASE)


@lru_cache(maxsize=4096)
def article_value(number: str) -> str:
    """Normalise an article's number: 'L. 1152-1' and 'L1152‑1' are 'L1152-1', '1er' is '1'."""
    plain = re.sub(DASH, "-", number)
    plain = re.sub(r"(?<=\d)er\b", "", plain, flags=re.IGNORECASE)
    parts = _IN_PARTS.match(plain)
    assert parts is not None  # noqa: S101 - every part of the pattern is optional
    prefix = re.sub(r"[^A-Z]", "", (parts["prefix"] or "").upper())
    return prefix + " ".join(parts["rest"].split()).upper()


def find_article_numbers(text: str) -> Iterator[ArticleNumber]:
    """Yield each article number of a text; some twice, with their code and without."""
    for finditer in (_ARTICLES.finditer, _bare_articles, _OF_NAMED_CODE.finditer, _AFTER_CODE.finditer):
        for match in finditer(text):
            code = " ".join((match["code"] or "").replace("’", "'").lower().split())
            yield from _numbers_of_list(text, match, code)


def _numbers_of_list(text: str, match: re.Match[str], code: str) -> Iterator[ArticleNumber]:
    for number in _NUMBER_IN_LIST.finditer(text, *match.span("list")):
        yield ArticleNumber(article_value(number.group()), number.start(), number.end(), code)


# Bounded: what a list lacks is its code, so that a longer one would be tried again from each of its numbers.
_SHORT_LIST = rf"(?>{ARTICLE_NUMBER}(?:{_AND}{ARTICLE_NUMBER}){{0,20}})"
_SHORT_CODE_ARTICLES = (
    Led(rf"(?<![\w.]){SHORT_CODE}_,?_(?:articles?|art\.)_(?P<list>{_SHORT_LIST})", SHORT_CODE_STARTS),
    Led(
        rf"(?<![\w-])(?:articles?|art\.)_(?P<list>{_SHORT_LIST})(?:_,_al(?:inéa|\.)_\d+)?_,?_(?:du_)?{SHORT_CODE}",
        ["article", "art."],
    ),
    Led(
        rf"(?<![\w./-])(?P<list>(?-i:[LRD])\.?{BLANK}?\*?{BLANK}?\d+(?:{DASH}\d+)*)_,?_(?:du_)?{SHORT_CODE}",
        [f"{letter}{sign}" for letter in "lrd" for sign in ". 123456789"],
    ),
)


def find_abbreviated_articles(text: str) -> Iterator[ArticleNumber]:
    """Yield each article cited with an abbreviated code; some twice."""
    for pattern in _SHORT_CODE_ARTICLES:
        for match in pattern.finditer(text):
            yield from _numbers_of_list(text, match, code_named(match["code"]))


def _bare_articles(text: str) -> Iterator[re.Match[str]]:
    done = 0
    for start in _BARE_STARTS.finditer(text):
        if start.start() >= done and (match := _BARE_ARTICLE.match(text, start.start())):
            done = match.end()
            yield match


class ArticleCitation(NamedTuple):
    """A citation of an article."""

    value: str  # its number, normalised: 'L1152-1', '1', 'PREMIER'
    start: int  # characters: of 'article', or of the number for further items of a list
    end: int  # where the name of its text ends, or its number
    text_start: int  # of the statute's name; equal to text_end if none is named
    text_end: int


_ORDINAL = r"(?:premier|second|deuxième|dernier|\d{1,2}(?:er|ère|e|ème|nd)?)"
# The part of an article that is cited: ", alinéa 3", " § 1", ", 5°", " II", ", premier alinéa".
_PART = (
    rf"(?:_,?_(?:alin[ée]as?|al\.?|paragraphes?|§_§?|in fine)(?:_{_ORDINAL}(?: et {_ORDINAL})?)?|"
    rf"_,?_{_ORDINAL} (?:alin[ée]a|paragraphe|tiret)|_,?_\d{{1,2}}{BLANK}?°|_,?_(?:(?-i:[IVX]{{1,4}})|"
    r"(?-i:[a-h])\)?)(?![\w'’]))"
)
_OF = (
    r"(?: (?:modifié|précité|susvisé|susmentionné|ancien|nouveau))?_,?\s{0,4}(?:(?:du|de la|de l['’]|des|"
    r"d['’]|de)_(?:(?:dit|présent) )?|dudit |(?-i:C\.)_|(?=_(?:nouveau )?code))"
)
_LIST_AND = "(?:_,_(?:et |ou )?| (?:et|ou|à) (?:(?:suivants?) )?)"
_LEAD = Led(r"(?<![\w-])(?:articles?|art\.)_(?=[\dLRDACP])", ["article", "art."])
# Typos put a blank next to the dash: "L 412- 10", "R 414-4 -1".
_CARELESS = rf"(?:{PREFIX}\d+(?:{BLANK}?{DASH}{BLANK}?\d+)+)"
_NUMBER = re.compile(rf"(?:{_CARELESS}|{ARTICLE_NUMBER}|premier|préliminaire)(?![\w/]|{DASH}\d|\.\d)", re.IGNORECASE)
# Articles not of a law: of agreements, contracts, a company's statutes.
_OF_NO_LAW = re.compile(
    spaced(
        "_,? (?:du|de la|de l['’]|des|de cette?|dudit|de ladite|de cet)_(?:même |présente? )?(?:accord|avenant|"
        "contrat|convention collective|statuts|bail|police|règlement intérieur|protocole d['’]accord|"
        r"cahier)(?!\w)"
    ),
    re.IGNORECASE,
)
_PARTS = re.compile(spaced(rf"(?:{_PART}){{1,4}}"), re.IGNORECASE)
_CONNECTOR = re.compile(spaced(_OF), re.IGNORECASE)
_NEXT = re.compile(spaced(rf"{_LIST_AND}(?={PREFIX}\d|\d)"), re.IGNORECASE)
# "Article 2 :", "Article premier.-": the decision's own, in its operative part.
_OWN = Around(
    r"(?:\A|\n)[ \t\u00a0]*ARTICLE[ \u00a0]+(?:\d{1,2}(?:er)?|premier)[ \t\u00a0]*(?:[:.\n–—-]|\Z)", ["article"], 12, 40
)
_BARE = Led(
    rf"(?<![\w/.-])(?:L\.?{BLANK}?O|[LRD])\.{BLANK}?\*?{BLANK}?\d+(?:{DASH}\d+)+", ["L.", "L O", "LO", "R.", "D."], 0
)
# "article 3 de l'ordonnance n° 58-1067 du 7 novembre 1958 et 58-1097 du 15 novembre 1958": the last is a statute's.
# "l'article L. 1152-1 et 3 mois": so many months.
_OF_ELSE = re.compile(
    spaced(rf" du \d{{1,2}}(?:er)? [a-zéû]{{3}}|{BLANK}(?:mois|ans?|années?|semaines?|jours?|heures?|fois)\b")
)


def find_article_citations(text: str, texts: Sequence[LegalText]) -> list[ArticleCitation]:
    """Find the articles that a text cites, in text order, given its `find_texts`; lists give one citation per item."""
    ends = {statute.start: statute.end for statute in texts}
    own_articles, taken = bytearray(len(text)), bytearray(len(text))  # masks of the text's characters
    for match in _OWN.finditer(text):
        own_articles[match.start() : match.end()] = b"\1" * len(match.group())
    citations: list[ArticleCitation] = []
    for match in _LEAD.finditer(text):
        if (citations and match.start() < citations[-1].end) or own_articles[match.start()]:
            continue
        citations += _read_article_list(text, match.start(), match.end(), ends)
    for citation in citations:
        taken[citation.start : citation.end] = b"\1" * (citation.end - citation.start)
    for match in _BARE.finditer(text):
        bare = next(_read_article_list(text, match.start(), match.start(), ends), None)
        if bare is not None and bare.text_end > bare.text_start and not taken[bare.start]:
            citations.append(bare)
    return sorted(citations, key=lambda citation: citation.start)


def _read_article_list(text: str, start: int, at: int, ends: Mapping[int, int]) -> Iterator[ArticleCitation]:
    """Yield the citations in a list of numbers from `at`; the first citation begins at `start`."""
    while number := _NUMBER.match(text, at):
        parts = _PARTS.match(text, number.end())
        after = parts.end() if parts else number.end()
        end = number.end()
        if _goes_on(text, number) or _OF_NO_LAW.match(text, after) or _OF_ELSE.match(text, end):
            return
        text_start, text_end = _text_after(text, (after, number.end()), ends)
        end = text_end or number.end()
        value = article_value(re.sub(rf"{BLANK}?({DASH}){BLANK}?", r"\1", number.group()))
        yield ArticleCitation(value, start, end, text_start or end, end)
        following = _NEXT.match(text, text_end or after)
        if following is None:
            return
        start = at = following.end()


def _goes_on(text: str, number: re.Match[str]) -> bool:
    """Did a typo split the number, as in 'L. 52 12' or 'L. 0. 180'? Its first part would be another article."""
    rest = _REST if number.group()[0].isalpha() else _GLUED
    return rest.match(text, number.end()) is not None


_SUM = rf"{BLANK}?(?:francs?|euros?|€|F\b)"
_REST = re.compile(rf"{BLANK}\d{{1,4}}(?!\d|{BLANK}?°|er\b|{_SUM})|\.{BLANK}?\d|(?<=[LRDO]0)|(?<=\.{BLANK}0)")
_GLUED = re.compile(rf"{BLANK}\d+[^\W\d_]")


def _text_after(text: str, tries: Sequence[int], ends: Mapping[int, int]) -> Span:
    """Return the span of the statute's name after the first of `tries` that has one, else zeros."""
    for at in tries:
        connector = _CONNECTOR.match(text, at)
        if connector and connector.end() in ends:
            return connector.end(), ends[connector.end()]
    return 0, 0
