"""Statutes (laws, ordinances, decrees, European texts) by number, date and usual name, and articles cited of them."""

import re
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from legal_rag.base.html import displayed
from legal_rag.base.text import key_of
from legal_rag.law.articles import ARTICLE_NUMBER, ArticleNumber, LegalText, find_article_citations, find_texts
from legal_rag.law.scanning import DASH, Led, read_table, spaced
from legal_rag.law.values import LegalDate


@displayed
class Statute(NamedTuple):
    """A statute that a text names."""

    nature: str  # 'loi', 'ordonnance', 'décret', 'arrêté', 'circulaire', 'directive', 'règlement'
    number: str  # '85-677', '2016/679'; empty if neither the text nor the table of usual names has one
    date: date | None
    start: int  # characters
    end: int

    @property
    def key(self) -> str:
        """The name that all ways to write it share: 'loi n° 85-677', or by date alone 'loi du 1985-07-05'."""
        return f"{self.nature} n° {self.number}" if self.number else f"{self.nature} du {self.date}"


_STATUTE_KEY = re.compile(r"[\w-]+ (?:n° |du \d)")


def is_statute(code: str) -> bool:
    """Is the text that an article is of a statute, by its `Statute.key`, rather than a code or a treaty by its name?"""
    return _STATUTE_KEY.match(code) is not None


_LAWS = read_table("laws.toml")["laws"]
_BY_KEY: dict[str, list[tuple[str, date]]] = {}  # numbers and dates by nature and name, and by number
for _row in _LAWS:
    for _key in (f"{_row.get('nature', 'loi')} {key_of(_row['name'])}", _row["number"]):
        _law = (_row["number"], _row["date"])
        if _law not in _BY_KEY.setdefault(_key, []):
            _BY_KEY[_key].append(_law)
_ACCENTED = str.maketrans({"é": "[ée]", "É": "[ÉE]", "è": "[èe]", "â": "[âa]", "'": "['’]", "-": DASH})
_NAMES = "|".join(sorted({row["name"].translate(_ACCENTED) for row in _LAWS}, key=len, reverse=True))
_BY_NAME = Led(
    rf"(?<![\w-])(?P<nature>loi|ordonnance)s? (?:dites? )?[«\"“]?_(?P<name>{_NAMES})(?![\w-])(?:_[»\"”])?",
    ["loi", "ordonnance"],
)
_OF_DAY = re.compile(spaced(" (?:du |[(](?:du )?)"))  # from a law's name to its day
_NATURE = re.compile(rf"\w+(?:{DASH}lois?)?")
_NUMBER = re.compile(
    rf"(?<![\w-])(?:\d{{2,4}}(?:{DASH}|/)\d{{1,5}}(?:{DASH}\d{{1,3}})?|(?<=[°º] )\d{{1,4}}|(?<=[°º])\d{{1,4}})"
)


def find_statutes(text: str, dates: Sequence[LegalDate], texts: Sequence[LegalText] | None = None) -> list[Statute]:
    """Find the statutes that a text names, in text order: by number, by date, or by usual name ("loi Badinter").

    A name of several laws ("loi Lang") gives one `Statute` for each of the day stated, if any is, with the same span.
    `dates` and `texts` are the text's `find_dates` and `find_texts`.
    """
    texts = find_texts(text, dates) if texts is None else texts
    statutes = [_read_statute(text, named, dates) for named in texts if named.kind == "statute"]
    taken, days = {statute.start for statute in statutes}, {day.start: day for day in dates}
    for match in _BY_NAME.finditer(text):
        if match.start() not in taken:
            nature = match["nature"].lower()
            laws = _BY_KEY.get(f"{nature} {key_of(match['name'])}", [])
            behind = _OF_DAY.match(text, match.end())
            if stated := days.get(behind.end()) if behind else None:  # "la loi Badinter du 5 juillet 1985"
                same = [law for law in laws if law[1] == stated.value]
                laws = [(number, stated.value) for number, _ in same or laws]
            end = stated.end if stated else match.end()
            statutes += (Statute(nature, number, day, match.start(), end) for number, day in laws)
    return sorted(statutes, key=lambda statute: statute.start)


def _read_statute(text: str, named: LegalText, dates: Sequence[LegalDate]) -> Statute:
    day = next((one for one in dates if named.start <= one.start < named.end), None)
    nature = _NATURE.match(text, named.start, named.end)
    number = _NUMBER.search(text, named.start, day.start if day else named.end)
    value = re.sub(DASH, "-", number.group()) if number else ""
    known = _BY_KEY.get(value, [])
    signed = day.value if day else known[0][1] if known else None
    singular = nature.group().lower().removesuffix("s") if nature else ""
    return Statute(singular, value, signed, named.start, named.end)


# "Décret n° 2019-111 du 3 mars 2019, article 1er", as titles write it.
_ARTICLE_AFTER = re.compile(spaced(rf"_[,:]?_(?:{DASH}_)?(?:articles?|art\.)_(?=[\dLRDA])"), re.IGNORECASE)


_ARTICLE = re.compile(rf"(?<!\w)(?:{ARTICLE_NUMBER}|premier|préliminaire)", re.IGNORECASE)
_IN_LIST = re.compile(r"[\s,]*(?:et|ou|à)?\s*")


def find_statute_articles(text: str, dates: Sequence[LegalDate]) -> list[ArticleNumber]:
    """Find the articles cited of statutes, in text order; `code` is the statute's `key`: 'décret n° 2019-111'."""
    texts = find_texts(text, dates)
    statutes = {statute.start: statute for statute in find_statutes(text, dates, texts)}
    by_name = [LegalText("statute", one.start, one.end) for one in statutes.values()]
    after = {match.end(): one for one in statutes.values() if (match := _ARTICLE_AFTER.match(text, one.end))}
    articles: list[ArticleNumber] = []
    following: tuple[int, Statute | None] = 0, None  # where the next article begins, and its statute
    for cited in reversed(find_article_citations(text, [*texts, *by_name])):
        number = _ARTICLE.search(text, cited.start, cited.end)
        if number is None:
            continue
        statute = statutes.get(cited.text_start) if cited.text_end > cited.text_start else after.get(number.start())
        if statute is None and cited.text_end == cited.text_start and _IN_LIST.fullmatch(text, cited.end, following[0]):
            statute = following[1]  # "articles 3 et 4 de la loi"
        if statute:
            value = "1" if cited.value == "PREMIER" else cited.value
            articles.append(ArticleNumber(value, *number.span(), statute.key))
        following = cited.start, statute
    return articles[::-1]
