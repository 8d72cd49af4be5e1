"""Read what lawyers type: articles, decisions and statutes in any form, and courts with the time of their decisions."""

import re
from calendar import monthrange
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from legal_rag.base.html import displayed
from legal_rag.base.text import Span
from legal_rag.law.articles import (
    ARTICLE_NUMBER,
    CODE_NAME,
    SHORT_CODE,
    ArticleNumber,
    article_value,
    code_in_full,
    code_named,
    find_abbreviated_articles,
)
from legal_rag.law.courts import (
    TOWNS_OF_APPEAL,
    TOWNS_OF_TRIBUNALS,
    UNIQUE_COURTS,
    find_chambers,
    find_cited_courts,
    find_named_courts,
    parse_court,
)
from legal_rag.law.decisions import Identifier, find_identifiers
from legal_rag.law.scanning import BLANK, DASH, NO_MORE, Scan, read_table
from legal_rag.law.statutes import Statute, find_statute_articles, find_statutes
from legal_rag.law.values import find_dates
from legal_rag.law.words import FRENCH_MONTHS

_LONGEST = 2000  # characters that are read so; a longer text is no question, and cites in full
_TYPED_CODES = {row["typed"]: row["name"] for row in read_table("codes.toml")["codes"] if "typed" in row}
_ARTICLE = rf"(?:(?:articles?|art\.?)_)?(?P<number>{ARTICLE_NUMBER})"
_AND_MORE = (
    r"(?:_(?:et_)?(?:s\.|suiv(?:ants?|\.)))?(?:_(?:al(?:inéa|\.)?|§)_\d{1,2})?(?:_(?:anc(?:ien|\.)?|nouv(?:eau|\.)?))?"
)
_OF = r"_,?_(?:(?:du|de la|de l['’])_)?(?:(?:anc(?:ien|\.)?|nouveau)_)?"
_CODE = rf"(?:(?P<name>{CODE_NAME})|{SHORT_CODE.replace('(?-i:', '(?:')}|(?P<typed>{'|'.join(_TYPED_CODES)})(?!\w))"
_BEFORE_CODE = Scan(rf"(?<![\w/.-]){_ARTICLE}{_AND_MORE}{_OF}{_CODE}")
_AFTER_CODE = Scan(rf"(?<![\w.]){_CODE}_,?_{_ARTICLE}(?![\w/])")
# "en 2008, code du travail": a year. Two letters stand for many things: "12 CP" is leave, "CC 1988" no article.
_YEAR = re.compile(r"19[5-9]\d|20[0-4]\d")
_YEAR_BEFORE = Scan(rf"\b(?:en|depuis|dès|année|{'|'.join(FRENCH_MONTHS)})\.?\s*\Z")
_SHORTEST_WITH_LETTERS = 3  # digits
_PARAGRAPH_BEFORE = Scan(r"\b(?:al(?:inéa|\.)?|§)_\Z")  # "1384 al. 1er C. civ."
_JOINED_BEFORE = Scan(rf"(?<![\w/.-])(?P<number>{ARTICLE_NUMBER})_(?:et|ou|,)_(?:art(?:icle|\.)?_)?\Z")

# A pourvoi without its dash, "2217919", "22.17.919", "H2217919"; a request of as many figures; a court's own long
# number. Not a sum, nor a part of another number.
_UNIT = rf"(?!{BLANK}?(?:\d|[€$%F]|euros?|francs?))"
_SEPARATOR = r"[-. \u00a0\u202f]?"
_BARE_NUMBER = Scan(
    rf"(?<![\w/.,-])(?:[A-Z]{BLANK}?)?(?:(?P<pourvoi>\d\d{_SEPARATOR}\d\d{_SEPARATOR}\d{{3}})"
    rf"|(?P<request>\d{{6}}|\d{{10}})|(?P<role>\d\d/(?!(?:19|20)\d\d(?!\d))\d{{3,6}})){NO_MORE}{_UNIT}"
)
# Bare figures may count or number anything: "m'a versé 100000", "facture 1234567".
_LED_TO = Scan(r"(?:\bn[°ºo]s?|\b(?:num[ée]ros?|pourvois?|requ[êe]tes?|arr[êe]ts?|d[ée]cisions?|RG))[\s.:]*\Z")
_ARTICLE_ALONE = re.compile(r"\s*(?:art(?:icle|\.)? ?)?(\d{3,4}(?:-\d{1,3})+)\s*", re.IGNORECASE)
_DASHES = re.compile(r"\d{3,4}(?:-\d{1,3})+")
_WITHOUT_LETTERS = {"code civil", "code de procédure civile", "code pénal", "code de procédure pénale"}
_DASHED = re.compile(rf"\d\d{DASH}\d{{4,6}}")


def find_typed_articles(text: str) -> dict[int, ArticleNumber]:
    """Find articles beside the name of their code, in any form: "700 cpc", "code civil 1240", "L1233-4 c. trav.".

    By where their numbers begin; each has the span of number and code.
    """
    articles = {article.start: article for article in find_abbreviated_articles(text)}
    for pattern in (_AFTER_CODE, _BEFORE_CODE):
        for match in pattern.pattern.finditer(text):
            letters = match["typed"] or match["code"] or ""
            is_short = len(letters) == 2 and sum(map(str.isdecimal, match["number"])) < _SHORTEST_WITH_LETTERS
            is_year = len(letters) == 2 and _YEAR.fullmatch(match["number"]) and "art" not in match.group().lower()
            if not is_short and not is_year and not _YEAR_BEFORE.pattern.search(text, 0, match.start()):
                article = ArticleNumber(article_value(match["number"]), *match.span(), _code_of(match))
                articles[match.start("number")] = article
    for start in [start for start in articles if _PARAGRAPH_BEFORE.pattern.search(text, 0, start)]:
        del articles[start]
    for article in list(articles.values()):  # "1382 et 1383 code civil"
        joined = article
        while before := _JOINED_BEFORE.pattern.search(text, 0, joined.start):
            joined = ArticleNumber(article_value(before["number"]), *before.span("number"), article.code)
            articles.setdefault(joined.start, joined)
    return articles


def _code_of(match: re.Match[str]) -> str:
    if match["typed"]:
        return str(_TYPED_CODES[match["typed"].lower()])
    return code_in_full(match["name"]) if match["name"] else code_named(match["code"])


def find_typed_identifiers(text: str) -> list[Identifier]:
    """Find the decisions and articles that a question or search names, in text order, whatever form they have.

    Numbers of decisions are read without sign or court too, bare figures only if alone or after "n°", "arrêt";
    one that may be of two kinds of courts gives both.
    """
    # "2017-5126/2017-5364": two numbers, each with its year.
    names = find_identifiers(re.sub(r"/(?=(?:19|20)\d\d-)", " ", text))
    if len(text) > _LONGEST:
        return names
    articles = {start: Identifier("article", *article) for start, article in find_typed_articles(text).items()}
    names = [articles.pop(name.start, name) if name.kind == "article" else name for name in names]
    names += articles.values()
    names = _with_statutes(text, names)
    if alone := _ARTICLE_ALONE.fullmatch(text):  # "1233-4" is L. 1233-4, R. 1233-4 or D. 1233-4
        names.append(Identifier("article", alone[1], *alone.span(1), "code"))
    names = [with_letter for name in names for with_letter in _with_letters(name)]
    taken = bytearray(len(text))
    for name in names:
        taken[name.start : name.end] = b"\1" * (name.end - name.start)
        if name.kind == "pourvoi" and _DASHED.fullmatch(text, name.start, name.end):  # "94-17144" of a court of appeal
            names.append(name._replace(kind="rg", value=_role(name.value)))
    for match in _BARE_NUMBER.finditer(text):
        is_read = not match.group().isdecimal() or match.group() == text.strip()
        is_read = is_read or bool(_LED_TO.pattern.search(text, 0, match.start()))
        if is_read and not any(taken[match.start() : match.end()]):
            names += (Identifier(kind, value, *match.span()) for kind, value in _kinds_of(match))
    return sorted(names, key=lambda name: name.start)


def _with_statutes(text: str, names: Sequence[Identifier]) -> list[Identifier]:
    """Give articles the law or decree that they are of, and add those that only it shows to be articles."""
    articles = {article.start: article for article in find_statute_articles(text, find_dates(text))}
    statutes = find_typed_statutes(text)
    ends = {0, *(statute.end for statute in statutes)}
    for statute in statutes:  # "22 de la loi 89-462 et 22 de la loi n° 66-879"
        match = _BARE_ARTICLE.pattern.search(text, max(statute.start - 40, 0), statute.start)
        if match and match.start() in ends:
            article = ArticleNumber(article_value(match["number"]), *match.span("number"), statute.key)
            articles.setdefault(article.start, article)
    for match in _LED_ARTICLE.pattern.finditer(text) if statutes else ():
        for statute in statutes:
            is_before = _TO_STATUTE.pattern.fullmatch(text, match.end(), statute.start)
            if is_before or _AFTER_STATUTE.pattern.fullmatch(text, statute.end, match.start()):
                article = ArticleNumber(article_value(match["number"]), *match.span("number"), statute.key)
                articles.setdefault(article.start, article)
    read = list(names)
    for article in articles.values():
        alike = [name for name in names if name.start == article.start and not name.code]  # "10-1" may be a decision's
        if not alike and any(name.start <= article.start < name.end for name in names):
            continue
        at = next((law.start for law in statutes if law.key == article.code), None)
        keys = [law.key for law in statutes if law.start == at] or [article.code]  # of "loi Lang" several
        read = [name for name in read if name not in alike]
        read += (Identifier("article", *article[:3], key) for key in keys)
    return list(dict.fromkeys(read))


# "art 22 loi 65-557", "loi du 10 juillet 1965 art. 22"
_LED_ARTICLE = Scan(
    rf"(?<![\w/.-])(?:articles?|art\.?)_(?P<number>{ARTICLE_NUMBER})(?:{DASH}[IVX]{{1,4}}(?!\w))?{_AND_MORE}"
)
_BARE_ARTICLE = Scan(rf"(?:\A| (?:et|ou) |_,_)(?P<number>{ARTICLE_NUMBER})_(?:de la|de l['’]|du)_\Z")
_TO_STATUTE = Scan(r"_,?_(?:(?:de la|de l['’]|du|des|de)_)?")
_AFTER_STATUTE = Scan(r"_[,:(]?_")


def _with_letters(name: Identifier) -> list[Identifier]:
    """Return an article with the letters left out of it: "1233-4 code du travail"."""
    if name.kind != "article" or not name.code.startswith("code") or name.code in _WITHOUT_LETTERS:
        return [name]
    code = name.code if name.code != "code" else ""
    is_bare = _DASHES.fullmatch(name.value) is not None
    return [name._replace(value=f"{letter}{name.value}", code=code) for letter in "LRD"] if is_bare else [name]


def _role(pourvoi: str) -> str:
    year, _, number = pourvoi.partition("-")
    return f"{year}/{int(number)}"


def _kinds_of(match: re.Match[str]) -> Iterator[tuple[str, str]]:
    if match["role"]:
        yield "rg", _role(match["role"].replace("/", "-"))
        return
    digits = re.sub(r"\D", "", match["pourvoi"] or match["request"])
    if match["pourvoi"]:
        yield "pourvoi", f"{digits[:2]}-{digits[2:]}"
    if digits == (match["pourvoi"] or match["request"]):
        yield "number", digits


_NATURES = {"l": "loi", "d": "décret", "décr": "décret", "ord": "ordonnance"}
_BY_NUMBER = Scan(
    rf"(?<![\w.-])(?P<nature>(?:l|d|décr|ord)\.)_n{BLANK}?[°º]_(?P<number>(?:19|20)?\d\d{DASH}\d{{1,5}})(?![\w-])"
    r"(?: du )?"
)
_NO_OF = Scan(
    r"\b(?P<nature>lois?|ordonnances?|décrets?|(?:ord|décr)\.) "
    rf"(?=\d{{1,2}}(?:er)?(?: (?:{'|'.join(FRENCH_MONTHS)})\b|/))"
)


def find_typed_statutes(text: str) -> list[Statute]:
    """Find the statutes that a question or search names: see `find_statutes`; "loi 6 juillet 1989" too."""
    if len(text) > _LONGEST:
        return []
    statutes = find_statutes(text, dates := find_dates(text))
    for match in _BY_NUMBER.finditer(text):  # "L. n° 65-557 du 10 juill. 1965"
        day = next((day for day in dates if day.start == match.end()), None)
        nature, number = _NATURES[match["nature"].lower().rstrip(".")], re.sub(DASH, "-", match["number"])
        end = day.end if day else match.end("number")
        statutes.append(Statute(nature, number, day.value if day else None, match.start(), end))
    for match in _NO_OF.finditer(text):
        day = next((day for day in dates if day.start == match.end()), None)
        if day and not any(statute.start <= match.start() < statute.end for statute in statutes):
            nature = match["nature"].lower()
            nature = _NATURES.get(nature.rstrip("."), nature.removesuffix("s"))
            statutes.append(Statute(nature, "", day.value, match.start(), day.end))
    return statutes


Day = tuple[date, date, int]  # the day twice, and where it ends in the text
Time = tuple[date | None, date | None, int]  # first and last day, and where it ends or begins in the text


@displayed
class DecisionsOf(NamedTuple):
    """A court with the time of its decisions, as a text designates them: "chambre sociale en 2018"."""

    court: str  # as written; empty for "arrêt du 25 novembre 2020"
    first: date | None  # day, included; None for no bound
    last: date | None  # day, included
    start: int  # characters of the text
    end: int


_MONTH = rf"(?:{'|'.join(sorted(FRENCH_MONTHS, key=len, reverse=True))})(?!\w)\.?"


def _month_of_year(number: int) -> str:
    return rf"(?:l['’]année |(?P<month{number}>{_MONTH}) )?(?P<year{number}>(?:19|20)\d\d)(?!\d)"


_TIMES = (
    Scan(
        rf"(?:entre |de |d['’]|en )?(?:(?P<month1>{_MONTH})(?: (?P<year1>(?:19|20)\d\d))?|(?P<year>(?:19|20)\d\d))"
        rf"(?:_(?:,|/|{DASH})_| (?:et|ou|à) (?:en )?){_month_of_year(2)}(?!-\d)"
    ),
    Scan(rf"(?P<since>depuis|à partir de|à compter de|dès) {_month_of_year(1)}"),
    Scan(rf"(?P<after>après) {_month_of_year(1)}"),
    Scan(rf"(?P<before>avant) {_month_of_year(1)}"),
    Scan(rf"(?P<until>jusqu['’]en|jusqu['’]à) {_month_of_year(1)}"),
    Scan(rf"(?:en |au cours de |de |d['’]|courant )?{_month_of_year(1)}(?![-/.]\d)"),
)
_DECIDED = Scan(r"\b(?:arr[êe]ts?|d[ée]cisions?|jugements?) (?:rendue?s? )?(?:du|le) ")
_BETWEEN = Scan(r"[\s,(:]*(?:(?:rendue?s? |datée?s? |en date )?(?:du|le|en date du|entre le)\s+)?")
_TO_DAY = Scan(
    r"(?:(?P<since>depuis|à partir du|à compter du|dès)|(?P<after>après)|(?P<before>avant)|(?P<until>jusqu['’]au))"
    r"_(?:le )?"
)
_UNTIL = Scan(r"_(?:au|à|et|-)_(?:le )?")
_TIME_FIRST = Scan(r"[\s,):]*(?:(?:de la|de l['’]|du|la|le|par la|par le)\s+)?")
_DECISIONS = r"(?:arr[êe]ts?|d[ée]cisions?|jugements?|ordonnances?|avis)"
# In prose a court has such a noun or an article before it, and may be what a party went to: "saisi le conseil de
# prud'hommes en 2018".
_ARTICLE_BEFORE = Scan(
    r"(?:^|[\s,;:('’])(?:la|le|les|l['’]|du|des|de|d['’]|au|aux|par|une?|cette|ce|dite"
    rf"|{_DECISIONS})\s*\Z"
)
# What asks for decisions: "que disent les arrêts rendus par la", "la jurisprudence de la", "qu'a jugé la", "selon la";
# not "un arrêt de la", which may be the asker's.
_THE = r"(?:\s+(?:la|le|l['’]))?"
_OF_THE = rf"(?:\s+[\w’'-]+){{0,3}}?\s+(?:par|de|du|devant|d['’]){_THE}"
_VERB = (
    r"\b(?:jug(?!ement)|dit\b|dis(?:ent|ait)|d[ée]cid|admet|admis|retien|retenu|consid[èe]r|estim|statu|pens|r[ée]pond"
    r"|affirm|exig|tranch)\w*"
)
_DESIGNATES = Scan(
    rf"(?:\b(?:jurisprudences?|positions?|solutions?){_OF_THE}"
    rf"|(?:{_VERB}|\bquel(?:le)?s?(?: est| sont)?|\b(?:selon|d['’]apr[èe]s)(?= les )"
    r"|\b(?:cite|donne|liste|trouve|cherche|montre|résume)[rsz]?(?:-(?:moi|nous))?)"
    r"(?:\s+(?:la|les|des|ces|principa\w+|derni[èe]re?s))*\s+(?:l['’])?"
    rf"{_DECISIONS}(?:{_OF_THE})?"
    rf"|{_VERB}{_THE}|\b(?:selon|d['’]apr[èe]s|pour|que fait){_THE})\s*\Z"
)
# "L'arrêt de la chambre sociale du 25 novembre 2020", by its day; not one that was against who asks.
_THE_DECISION = Scan(rf"\b(?:l['’]|(?:la|les|cette|cet|ces)\s+){_DECISIONS}{_OF_THE}\s*\Z")
_AGAINST_ME = Scan(r",?\s+(?:qui\s+)?(?:ne\s+)?(?:m['’]|(?:me|nous)\b)")
_NOT_THEIRS = Scan(r"\b(?:cass[ée]e?s?|annul[ée]e?s?|infirm[ée]e?s?|cit[ée]e?s?|vis[ée]e?s?|attaqu[ée]e?s?)\s+par\b")


def find_decisions_of(text: str, *, in_prose: bool = True) -> list[DecisionsOf]:
    """Find the courts that a text names beside a time, where both designate decisions to look for.

    In prose a court with an article counts only after words that designate decisions: "qu'a jugé la chambre sociale en
    2018", "l'arrêt de la chambre sociale du 8 novembre 2018", not "il a saisi le conseil de prud'hommes en 2018". A day
    counts as a time too. A court typed alone has none.
    """
    if len(text) > _LONGEST:
        return []
    days: dict[int, Day] = {day.start: (day.value, day.value, day.end) for day in find_dates(text)}
    courts = _whole_courts(text) if in_prose else _typed_courts(text)
    designated: list[DecisionsOf] = []
    if not in_prose:
        decided = {match.end(): match.start() for match in _DECIDED.pattern.finditer(text)}
        alone = [span for span in courts if not (text[: span[0]] + text[span[1] :]).strip(" ,;:.()")]
        designated += (DecisionsOf(text[start:end], None, None, start, end) for start, end in alone)
        designated += (
            DecisionsOf("", *days[end][:2], start, days[end][2]) for end, start in decided.items() if end in days
        )
    for start, end in courts:
        between = _BETWEEN.pattern.match(text, end)
        time = _time_at(text, between.end() if between else end, days) or _time_at(text, end + _blanks(text, end), days)
        if in_prose and not _designates(text, start) and not (time and _is_the_decision(text, start, time)):
            continue
        if time:
            designated.append(DecisionsOf(text[start:end], time[0], time[1], start, time[2]))
        elif before := _time_before(text, start, days, in_prose=in_prose):
            designated.append(DecisionsOf(text[start:end], *before[:2], before[2], end))
    if not in_prose and not designated and len(courts) == 1 and (time := _year_apart(text, days)):
        designated.append(DecisionsOf(text[slice(*courts[0])], *time[:2], *courts[0]))
    return designated


# "Conseil constitutionnel élections législatives 1993"; not "l'accident de 1993", "loi n° 83-520 de 1983".
_OF_ANOTHER = Scan(r"(?:\b(?:de|des|du|d['’]|depuis|n[°ºo]|lois?|articles?|art\.)|[\d'’(/.-])\s*\Z")


def _year_apart(text: str, days: dict[int, Day]) -> Time | None:
    """Return the only time in a text, unless it is one of something that is named: then it is no decision's."""
    names: list[Identifier | Statute] = [*find_typed_identifiers(text), *find_typed_statutes(text)]
    times: list[Time] = []
    for word in _WORD_START.finditer(text):
        at, done = word.start(), times[-1][2] if times else 0
        if at < done or any(name.start <= at < name.end for name in names) or not (time := _time_at(text, at, days)):
            continue
        if _OF_ANOTHER.pattern.search(text, 0, at) or text.lower().startswith(("de ", "d'", "d’"), at):
            return None
        times.append(time)
    return times[0] if len(times) == 1 else None


_AS_TYPED = str.maketrans({pair[0]: f"[{pair}]" for pair in ("- ", "'’", *"ée ÉE èe êe îi ôo çc".split())})
_TOWNS = "|".join(town.translate(_AS_TYPED) for town in (*TOWNS_OF_APPEAL, "Aix"))
_SEATS = "|".join(town.translate(_AS_TYPED) for town in TOWNS_OF_TRIBUNALS)
_SMALL_LETTERS = Scan(rf"(?<![\w-])(?:(?P<town>{_TOWNS})|ca(?= (?:d['’]|de )?(?:{_TOWNS}))|cass(?=[. ]))(?!\w)")


def _with_capitals(text: str) -> str:
    """Return a text with the capitals that lawyers leave out where they search: "ca aix", "cass soc"."""

    def capital(match: re.Match[str]) -> str:
        if match["town"]:
            return match["town"].capitalize()
        return "CA" if match.group().lower() == "ca" else "Cass"

    return _SMALL_LETTERS.pattern.sub(capital, text)


_WORD_START = re.compile(r"\b\w")
# The seats of courts of appeal and of tribunals are known; others need "de": "tribunal de commerce Procédure 2009".
_SEAT = Scan(rf" (?:(?:de la|de|du) |d['’]_)?(?:{_TOWNS})(?!\w)")
_NO_TIME = rf"(?!{_MONTH}|(?:en|de|depuis|avant|après|dès|jusqu|entre)(?!\w))"
_ITS_TOWN = Scan(
    rf" (?:(?:(?:de la|de|du) |d['’]_)?(?:{_TOWNS}|{_SEATS})|(?:de |d['’]_){_NO_TIME}[^\W\d_]+(?:-\w+)*)(?!\w)"
)


_ADJECTIVES = ("sociale", "civile", "commerciale", "criminelle")  # no chambers after a noun: "sécurité sociale 2019"


def _typed_courts(text: str) -> list[Span]:
    text = _with_capitals(text)
    names = [(span, parse_court(text[slice(*span)])) for span in find_named_courts(text)]
    townless = [(span, name.types) for span, name in names if name.types - UNIQUE_COURTS and not name.town]
    towns = (
        (start, (_SEAT if "appel" in types else _ITS_TOWN).pattern.match(text, end)) for (start, end), types in townless
    )
    with_towns = [(start, town.end()) for start, town in towns if town]
    chambers = [
        (start, end)
        for start, end in find_chambers(text)
        if text[start:end].lower() not in _ADJECTIVES or not text[:start].rstrip()[-1:].isalnum()
    ]
    return _whole_courts(text, [*chambers, *with_towns])


def _whole_courts(text: str, chambers: Sequence[Span] = ()) -> list[Span]:
    """Return the courts of a text, with their chambers, that do not overlap."""
    courts: list[Span] = []
    found = {*find_cited_courts(text), *find_named_courts(text), *chambers}
    for start, end in sorted(found, key=lambda span: (span[0], -span[1])):
        if not courts or start >= courts[-1][1]:
            courts.append((start, end))
    return courts


def _designates(text: str, start: int) -> bool:
    if not _ARTICLE_BEFORE.pattern.search(text, 0, start):
        return True
    return bool(_DESIGNATES.pattern.search(text, 0, start)) and not _NOT_THEIRS.pattern.search(
        text, max(start - 20, 0), start
    )


def _blanks(text: str, at: int) -> int:
    return len(text[at:]) - len(text[at:].lstrip(" ,:("))


def _is_the_decision(text: str, start: int, time: Time) -> bool:
    """Is a court with a day that of one decision, which did not go against who asks?"""
    first, last, end = time
    is_day = first is not None and first == last
    return is_day and bool(_THE_DECISION.pattern.search(text, 0, start)) and not _AGAINST_ME.pattern.match(text, end)


def _time_at(text: str, at: int, days: dict[int, Day]) -> Time | None:
    if at in days:
        first, _, end = days[at]
        until = _UNTIL.pattern.match(text, end)
        last = days.get(until.end()) if until else None
        return (min(first, last[0]), max(first, last[0]), last[2]) if last else days[at]
    if (led := _TO_DAY.pattern.match(text, at)) and led.end() in days:
        first, _, end = days[led.end()]
        return (*_opened(led, first, first), end)
    for time in _TIMES:
        if match := time.pattern.match(text, at):
            return (*_bounds(match), match.end())
    return None


def _time_before(text: str, start: int, days: dict[int, Day], *, in_prose: bool) -> Time | None:
    """Return the time that ends where a court begins, and where the time begins."""
    for at in range(max(start - 60, 0), start):
        if at and text[at - 1].isalnum():
            continue
        time = _time_at(text, at, days)
        if time and time[2] <= start and _TIME_FIRST.pattern.fullmatch(text, time[2], start) and not in_prose:
            return (*time[:2], at)
    return None


def _bounds(match: re.Match[str]) -> tuple[date | None, date | None]:
    groups = match.groupdict()
    month1, month2 = (FRENCH_MONTHS.get((groups.get(name) or "").lower().rstrip(".")) for name in ("month1", "month2"))
    year2 = groups.get("year2")
    year1 = int(groups.get("year1") or groups.get("year") or year2 or 0)
    if year2:
        if not (groups.get("year1") or groups.get("year")) and (month1 or 0) > (month2 or 0):
            year1 -= 1  # "de novembre à janvier 2008"
        (year1, month1), (to_year, month2) = sorted(
            ((year1, month1), (int(year2), month2)), key=lambda of: (of[0], of[1] or 0)
        )
        return date(year1, month1 or 1, 1), _last_day(to_year, month2)
    return _opened(match, date(year1, month1 or 1, 1), _last_day(year1, month1))


def _opened(match: re.Match[str], first: date, last: date) -> tuple[date | None, date | None]:
    """Return the bounds of a time after "depuis", "après", "avant" or "jusqu'à", or of that time itself."""
    groups = match.groupdict()
    if groups.get("since") or groups.get("after"):
        return (first if groups.get("since") else last + timedelta(days=1)), None
    if groups.get("before") or groups.get("until"):
        return None, first - timedelta(days=1) if groups.get("before") else last
    return first, last


def _last_day(year: int, month: int | None) -> date:
    return date(year, month, monthrange(year, month)[1]) if month else date(year, 12, 31)
