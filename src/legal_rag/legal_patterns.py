"""What names a legal text in French prose: case numbers, ECLI, articles, dates; found and brought to one form.

In: text. Out: `Identifier`s and `LegalDate`s with character offsets. Everything is a table of patterns, so that what is
known of French usage stands in one place. Sources of the forms: the Cour de cassation's and the Conseil
constitutionnel's own published numbering; ECLI, Council conclusions 2011/C 127/01.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from typing import NamedTuple


class Identifier(NamedTuple):
    """The name of a decision or an article, as one text writes it."""

    kind: str  # 'ecli', 'pourvoi', 'rg', 'article', a series of the Conseil constitutionnel ('qpc'), or 'number'
    value: str  # in one form: '16-86735', '15/452', '2016-561', 'L1152-1', 'ECLI:FR:CCASS:2023:SO02020'
    start: int  # characters
    end: int
    code: str = ""  # of an article: 'code du travail', where it is named


class LegalDate(NamedTuple):
    """A day, as one text writes it."""

    value: date
    start: int  # characters
    end: int


DASH = "[-\u2010-\u2014]"
BLANK = r"[ \t\u00a0\u202f]"
GAP, SPACE = f"{BLANK}{{0,4}}", f"{BLANK}{{1,4}}"  # bounded: a page of blanks is no reason to search it again and again
NOT_INSIDE = r"(?<![\w/.-])"  # a longer number or word
NO_MORE = rf"(?![\w/]|{DASH}\d|\.\d)"

SERIES = ("qpc", "dc", "an", "sen", "lp", "fnr", "elec", "orga", "pdr", "lom", "rip")  # of constitutional decisions
_SERIES = "|".join(r"\.?".join(name) + r"\.?" for name in SERIES)
_CONSTITUTIONAL = rf"(?:19|20)?\d\d{DASH}\d{{1,4}}(?:/\d{{1,4}})*"
_OF_SOMETHING_ELSE = re.compile(
    r"(?:lois?|ordonnances?|d[ée]crets?|arr[êe]t[ée]s?|circulaires?|directives?|r[èe]glements?|avis|"
    r"d[ée]lib[ée]rations?)"
    rf"(?:{BLANK}(?:organiques?|minist[ée]riels?|royal))?{GAP}(?:(?:n{BLANK}?[°os.]*|num[ée]ros?){GAP})?"
    rf"(?:[\d/-]+{GAP}(?:,|et){GAP})*$",
    re.IGNORECASE,
)
_LOOK_BACK = 60  # characters in which it would be said that a number is a statute's

# What stands for a chamber in the pourvoi's number: "n° X 22-18.784"; its letter is a check character.
CASE_PATTERNS: tuple[tuple[str, str], ...] = (
    ("ecli", rf"{NOT_INSIDE}ECLI:[A-Z]{{2}}:[A-Z0-9]{{1,7}}:\d{{4}}:[A-Z0-9.]{{1,25}}"),
    ("pourvoi", rf"{NOT_INSIDE}\d\d{DASH}\d\d[. \u00a0\u202f]?\d{{3}}{NO_MORE}"),
    ("series", rf"{NOT_INSIDE}(?P<number>{_CONSTITUTIONAL}){BLANK}?(?P<after>{_SERIES}){NO_MORE}"),
    (
        "series",
        rf"{NOT_INSIDE}(?P<before>{_SERIES})[, \u00a0]*(?:n{BLANK}?[°o.]{GAP}|num[ée]ro{SPACE})?"
        rf"(?P<told>{_CONSTITUTIONAL}){NO_MORE}",
    ),
    (
        "rg",
        rf"{NOT_INSIDE}(?:R\.?{BLANK}?G\.?|r[ôo]le(?:{BLANK}g[ée]n[ée]ral)?){GAP}(?:n\w?|num[ée]ro)?{BLANK}?[°.]?"
        rf"{GAP}:?{GAP}(?:n{BLANK}?[°o.]?{GAP})?(?:[A-Z]{BLANK})?(?P<role>(?:19|20)?\d\d/\d{{1,6}}){NO_MORE}",
    ),
    ("rg", rf"(?<!\w)n(?:um[ée]ros?|{BLANK}?[°o]s?\.?){GAP}(?P<told>\d\d/\d{{1,6}}){NO_MORE}"),
    ("rg", rf"{NOT_INSIDE}(?P<bare>\d\d/\d{{5}}){NO_MORE}"),
    ("request", rf"(?<!\w)(?:n(?:um[ée]ros?|{BLANK}?[°o]s?\.?)|requ[êe]te|affaire){GAP}(?P<told>\d{{6}}){NO_MORE}"),
    # Of a cour administrative d'appel, 20LY01234; of other bodies, PS-2022-047.
    ("request", rf"{NOT_INSIDE}(?P<bare>\d\d[A-Z]{{2}}\d{{5}}|[A-Z]{{1,5}}-(?:19|20)\d\d-\d{{1,4}}){NO_MORE}"),
    ("number", rf"{NOT_INSIDE}{_CONSTITUTIONAL}{NO_MORE}"),
)
_NUMBER = re.compile(_CONSTITUTIONAL)
_ROLE = re.compile(r"\s*\d\d/\d{1,6}\s*$")
_CASES = [(kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in CASE_PATTERNS]

_PREFIX = rf"(?:L\.?{BLANK}?O|[LRDAC])\.?{BLANK}?\*?{BLANK}?"
_ARTICLE_NUMBER = (
    rf"(?:{_PREFIX}\d+|\d+)(?:{DASH}\d+)*(?:er\b|{BLANK}(?:bis|ter|quater|quinquies|(?-i:[A-Z])(?![\w'’.-])))?"
)
# "articles L. 1152-1, L. 1152-2 et 1240 du code civil": one match, its numbers found in it.
# The noun that names a code; "le code précité" or "le code prévoit" names none.
_CODE_WORD = (
    "(?:action|artisanat|assurances?|aviation|cinéma|civil|collectivités|commande|commerce|communes|consommation|"
    "construction|déontologie|domaine|douanes|défense|éducation|électoral|énergie|entrée|environnement|expropriation|"
    "famille|fonction|forestier|impositions|impôts|instruments|juridictions|justice|marchés|minier|monétaire|mutualité|"
    "nationalité|navigation|organisation|patrimoine|pêche|pensions|pénal|ports|postes|procédures?|propriété|recherche|"
    "relations|route|rural|santé|sécurité|service|sport|tourisme|transports|travail|urbanisme|voirie)(?!\\w)"
)
_CODE = (
    rf"(?:code|livre des proc[ée]dures){SPACE}(?:g[ée]n[ée]ral{SPACE})?"
    rf"(?:(?:de{SPACE}la|de{SPACE}l['’]|des|du|de|d['’]){GAP})?{_CODE_WORD}"
    rf"(?:{SPACE}(?:(?:et|ou){SPACE})?(?:(?:de{SPACE}la|de{SPACE}l['’]|des|du|de|d['’]|à{SPACE}l['’]){GAP})?"
    rf"(?:{{words}})(?!\w))*"
)
# Words that go on a code's name; any other word after its first noun is the sentence's.
_CODE_WORDS = (
    "administrati(?:f|ve|on|ons)|aériennes?|aide|aménagement|artistes|asile|assurances|civiles?|civils|collectivités|"
    "communications|commande|commerce|construction|consommation|culture|définitive|douanes|droit|électroniques|"
    "étrangers|exécution|familles?|finances|financier|fiscales|forêts?|générale|guerre|habitation|impôts|"
    "industrielle|intellectuelle|invalidité|judiciaire|juridictions|justice|locale|maritime|militaire|mines|mobile|"
    "monétaire|organisation|pêche|pénale|pensions|personnes|politique|postes|privée|procédures?|propriété|public|"
    "publique|publiques|rurale?|santé|séjour|sécurité|sociale?|sociales|solidarité|territoires|territoriales|"
    "utilité|victimes|voirie|routière"
)
_CODE_PATTERN = _CODE.replace("{words}", _CODE_WORDS)
_AND = rf"(?:{GAP},{GAP}(?:et{SPACE}|ou{SPACE})?|{SPACE}(?:et|ou|à){SPACE})"
_LIST = rf"{_ARTICLE_NUMBER}(?:{_AND}{_ARTICLE_NUMBER})*"
_PARAGRAPH = rf"(?:{GAP},?{GAP}(?:alin[ée]as?|al\.){SPACE}\d+(?:er)?)?"
_OF_CODE = rf"(?:{_PARAGRAPH}{GAP},?{GAP}(?:du|dudit|de{SPACE}ce|au){SPACE}(?P<code>{_CODE_PATTERN}))?"
_ARTICLES = re.compile(rf"\b(?:articles?|art\.){SPACE}(?P<list>{_LIST}){_OF_CODE}", re.IGNORECASE)
_BARE_ARTICLE = re.compile(
    rf"{NOT_INSIDE}(?P<list>(?:{_PREFIX}\d+(?:{DASH}\d+)+|[lrd]\.?{BLANK}?\d{{3,}}(?:{DASH}\d+)+|(?:L\.?O|[LRD])\.{BLANK}?\d+))"
    rf"(?![\w/]|{DASH}\d){_OF_CODE}"
)
_OF_NAMED_CODE = re.compile(rf"{NOT_INSIDE}(?P<list>\d+(?:{DASH}\d+)*){SPACE}du{SPACE}(?P<code>{_CODE_PATTERN})", re.I)
# "Code du travail, article L1237-11", as titles have it; "article 5 de la loi" after a code's name is not the code's.
_AFTER_CODE = re.compile(
    rf"(?<!\w)(?P<code>{_CODE_PATTERN}){GAP}[,:]?{GAP}(?:{DASH}{GAP})?"
    rf"(?:(?:articles?|art\.){SPACE}|(?=(?-i:{_PREFIX})\d))(?P<list>(?>{_LIST}))"
    rf"(?!{_PARAGRAPH}\s{{0,4}},?\s{{0,4}}(?:(?:du|dudit|des|de)(?!\w)|d['’]))",
    re.IGNORECASE,
)
_NUMBER_IN_LIST = re.compile(_ARTICLE_NUMBER, re.IGNORECASE)

MONTHS = (
    "janvier", "février", "mars", "avril", "mai", "juin",
    "juillet", "août", "septembre", "octobre", "novembre", "décembre",
)  # fmt: skip
_MONTH_FORMS = {month: number for number, month in enumerate(MONTHS, start=1)} | {
    "fevrier": 2, "aout": 8, "decembre": 12, "janv": 1, "févr": 2, "fév": 2, "avr": 4, "juil": 7, "sept": 9,
    "oct": 10, "nov": 11, "déc": 12,
}  # fmt: skip
_MONTH = "|".join(sorted(_MONTH_FORMS, key=len, reverse=True))
_UNITS = ("un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "onze", "douze", "treize",
          "quatorze", "quinze", "seize", "dix sept", "dix huit", "dix neuf")  # fmt: skip
_TENS = {20: "vingt", 30: "trente", 40: "quarante", 50: "cinquante", 60: "soixante", 80: "quatre vingt"}


def _below_hundred(number: int) -> str:
    """Write a number from 1 to 99 in French words, without hyphens."""
    if number < 20:
        return _UNITS[number - 1]
    base = max(ten for ten in _TENS if ten <= number)
    rest = number - base
    if not rest:
        return _TENS[base]
    joined = " et " if rest in (1, 11) and base != 80 else " "
    return f"{_TENS[base]}{joined}{_UNITS[rest - 1]}"


_DAYS = {"premier": 1} | {_below_hundred(day): day for day in range(1, 32)}
_CENTURIES = {"mille neuf cent": 1900, "mil neuf cent": 1900, "deux mille": 2000, "deux mil": 2000}
_RESTS = {_below_hundred(rest): rest for rest in range(1, 100)}
_YEARS = _CENTURIES | {
    f"{century} {rest}": start + number for century, start in _CENTURIES.items() for rest, number in _RESTS.items()
}
_BETWEEN = rf"(?:s?{SPACE}|s?{DASH})"  # number words: blanks or hyphens, with or without the plural's s


def _any_of(words: Iterable[str]) -> str:
    """Make a pattern for number words, the plural's last s left out."""
    return "|".join(word.replace(" ", _BETWEEN) for word in sorted(words, key=len, reverse=True))


_DAY = rf"\d{{1,2}}|1{BLANK}?er|(?:{_any_of(_DAYS)})s?"
# Not one alternative for each year: four hundred of them take half a second to compile.
_YEAR_IN_WORDS = rf"(?:{_any_of(_CENTURIES)})(?:{_BETWEEN}(?:{_any_of(_RESTS)}))?s?"
_DATES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("iso", re.compile(rf"{NOT_INSIDE}(?P<y>\d{{4}})-(?P<m>\d\d)-(?P<d>\d\d)(?![\w/-])")),
    (
        "figures",
        re.compile(rf"{NOT_INSIDE}(?P<d>\d{{1,2}})(?P<s>[/.-])(?P<m>\d{{1,2}})(?P=s)(?P<y>\d{{4}}|\d\d)(?![\w/-])"),
    ),
    (
        "month",
        re.compile(rf"(?<!\w)(?P<d>\d{{1,2}}|1{BLANK}?er){SPACE}(?P<m>{_MONTH})\.?{SPACE}(?P<y>\d{{4}})(?!\w)", re.I),
    ),
    (
        "words",
        re.compile(
            rf"(?<!\w)(?P<d>{_DAY}){SPACE}(?P<m>{_MONTH}){SPACE}(?P<y>\d{{4}}|{_YEAR_IN_WORDS})(?!\w)",
            re.I,
        ),
    ),
    (
        "words",
        re.compile(
            rf"(?<!\w)an{SPACE}(?P<y>{_YEAR_IN_WORDS}){GAP},?{SPACE}(?:et{SPACE})?le{SPACE}(?P<d>{_DAY}){SPACE}"
            rf"(?P<m>{_MONTH})(?!\w)",
            re.I,
        ),
    ),
)


def find_identifiers(text: str) -> list[Identifier]:
    """Find the names of decisions and articles, in the order of the text; where two overlap the longer one counts.

    A number of the Conseil constitutionnel's form that names no series has kind 'number'; the numbers of statutes and
    decrees, which have that form too, are left out.
    """
    cases = list(_cases(text))
    # "n° R 16-86.735": the letter before a pourvoi's number checks it, and is no article's.
    articles = [
        one for one in _articles(text) if not any(_overlap(one, case) for case in cases if case.kind != "number")
    ]
    found = sorted([*cases, *articles], key=lambda one: (one.start, -one.end, not one.code))
    kept: list[Identifier] = []
    for one in found:
        last = kept[-1] if kept else None
        # Joined cases are several names in one place; an article found with its code and without is one.
        if last is None or one.start >= last.end or (one[2:4] == last[2:4] and one[:2] not in (o[:2] for o in kept)):
            kept.append(one)
    return kept


def _overlap(one: Identifier, other: Identifier) -> bool:
    return one.start < other.end and other.start < one.end


def find_dates(text: str) -> list[LegalDate]:
    """Find full dates, in figures (08/11/2023, 2023-11-08, 8 novembre 2023) and in words, in the order of the text.

    Years of two figures are of the years 1930 to 2029. Days that are not in the calendar are left out.
    """
    found = []
    for form, pattern in _DATES:
        for match in pattern.finditer(text):
            if (value := _date(form, match)) is not None:
                found.append(LegalDate(value, match.start(), match.end()))
    found.sort(key=lambda one: (one.start, -one.end))
    return [one for i, one in enumerate(found) if not i or one.start >= found[i - 1].end]


def decision_identifiers(number: str, nature: str) -> list[Identifier]:
    """Read the column that holds a decision's own number or numbers, with the court's series in `nature`.

    What has no known form keeps its own, under kind 'number'.
    """
    series = nature.replace(".", "").lower()
    if series in SERIES:
        named = [(kind, match) for kind, match in _matches(number) if kind in ("number", "series")]
        return [
            Identifier(series, value, match.start(), match.end())
            for _, match in named
            for value in _joined(_constitutional(_NUMBER.search(match.group()).group()))  # type: ignore[union-attr]
        ]
    found = [
        one for one in find_identifiers(f"RG {number}" if _ROLE.match(number) else number) if one.kind != "article"
    ]
    if found or not (rest := number.strip()):
        return found
    parts = [" ".join(part.split()).upper() for part in re.split("[,;]", rest)]
    return [Identifier("number", part, 0, len(number)) for part in parts if part]


def article_value(number: str) -> str:
    """Bring an article's number to one form: 'L. 1152-1' and 'L1152‑1' are 'L1152-1', '1er' is '1'."""
    plain = re.sub(rf"{DASH}", "-", number)
    plain = re.sub(r"(?<=\d)er\b", "", plain, flags=re.IGNORECASE)
    parts = re.match(rf"(?P<prefix>{_PREFIX})?(?P<rest>.*)", plain, re.IGNORECASE)
    assert parts is not None  # noqa: S101 - every part of the pattern is optional
    prefix = re.sub(r"[^A-Z]", "", (parts["prefix"] or "").upper())
    return prefix + " ".join(parts["rest"].split()).upper()


def _matches(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    for kind, pattern in _CASES:
        for match in pattern.finditer(text):
            yield kind, match


def _cases(text: str) -> Iterator[Identifier]:
    taken = bytearray(len(text))  # characters that belong to a name already
    for kind, match in _matches(text):
        start, end = match.span()
        if any(taken[start:end]):
            continue
        unmistakable = kind == "pourvoi" and "." in match.group()
        if (
            kind in ("number", "pourvoi")
            and not unmistakable
            and _OF_SOMETHING_ELSE.search(text[max(start - _LOOK_BACK, 0) : start])
        ):
            continue
        if kind == "number" and _is_no_case(match.group()):
            continue
        taken[start:end] = b"\1" * (end - start)
        for name, value in _READERS[kind](match):
            yield Identifier(name, value, start, end)


def _is_no_case(number: str) -> bool:
    """Tell a range of years ('2019-2020') from a number."""
    first, _, last = re.sub(DASH, "-", number).partition("-")
    return len(first) == 4 and len(last) == 4 and 0 < int(last) - int(first) < 100 if last.isdecimal() else False


def _constitutional(number: str) -> str:
    year, _, rest = re.sub(DASH, "-", number).partition("-")
    if len(year) == 2:
        year = ("19" if year >= "58" else "20") + year  # the Conseil's first decisions are of 1958
    return f"{year}-{rest}"


def _joined(value: str) -> list[str]:
    """Return the numbers of joined cases: '2007-3742/3947' stands for itself and for each of the two."""
    year, _, rest = value.partition("-")
    numbers = rest.split("/")
    return [value, *(f"{year}-{number}" for number in numbers)] if len(numbers) > 1 else [value]


def _read_series(match: re.Match[str]) -> Iterator[tuple[str, str]]:
    groups = match.groupdict()
    series = (groups.get("after") or groups.get("before") or "").replace(".", "").lower()
    for value in _joined(_constitutional(groups.get("number") or groups.get("told") or "")):
        yield series, value


def _read_role(match: re.Match[str]) -> Iterator[tuple[str, str]]:
    groups = match.groupdict()
    year, _, number = next(filter(None, groups.values())).partition("/")
    yield "rg", f"{year[-2:]}/{int(number)}"


_READERS: dict[str, Callable[[re.Match[str]], Iterator[tuple[str, str]]]] = {
    "ecli": lambda match: iter([("ecli", match.group().upper().rstrip("."))]),
    "pourvoi": lambda match: iter([("pourvoi", re.sub(DASH, "-", re.sub(r"[.\s]", "", match.group())))]),
    "series": _read_series,
    "rg": _read_role,
    "request": lambda match: (("number", value.upper()) for value in match.groups() if value),
    "number": lambda match: (("number", value) for value in _joined(_constitutional(match.group()))),
}


def _articles(text: str) -> Iterator[Identifier]:
    for pattern in (_ARTICLES, _BARE_ARTICLE, _OF_NAMED_CODE, _AFTER_CODE):
        for match in pattern.finditer(text):
            code = " ".join((match["code"] or "").replace("’", "'").lower().split())
            for number in _NUMBER_IN_LIST.finditer(text, match.start("list"), match.end("list")):
                yield Identifier("article", article_value(number.group()), number.start(), number.end(), code)


def _date(form: str, match: re.Match[str]) -> date | None:
    day, month, year = match["d"].lower(), match["m"].lower(), match["y"].lower()
    try:
        return date(_year(year), _MONTH_FORMS.get(month) or int(month), _day(day))
    except (ValueError, KeyError):  # the 31st of a shorter month, a number that is no date, a word spelt otherwise
        return None


def _day(text: str) -> int:
    figures = re.match(r"\d+", text)
    return int(figures.group()) if figures else _DAYS[_plain_words(text, _DAYS)]


def _year(text: str) -> int:
    if not text.isdecimal():
        return _YEARS[_plain_words(text, _YEARS)]
    return int(text) if len(text) == 4 else (1900 if text >= "30" else 2000) + int(text)


def _plain_words(text: str, known: dict[str, int]) -> str:
    """Write number words as the tables do: 'quatre-vingts' as 'quatre vingt', 'trois' as it is."""
    words = re.sub(rf"{SPACE}|{DASH}", " ", text).split()
    singular = [word[:-1] if word in ("vingts", "cents") else word for word in words]
    plain = " ".join(singular)
    return plain if plain in known else plain.removesuffix("s")
