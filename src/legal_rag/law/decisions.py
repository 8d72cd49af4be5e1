"""Identifiers of decisions (pourvoi, RG, ECLI, Conseil constitutionnel) and citations of decisions."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from legal_rag.base.text import Span
from legal_rag.law.articles import find_article_numbers
from legal_rag.law.courts import CASE_LAW_COURT, SINGLE_COURT, find_short_courts
from legal_rag.law.scanning import (
    BLANK,
    DASH,
    NO_MORE,
    NOT_INSIDE,
    NUMBER_SIGN,
    Around,
    FiguresLed,
    Led,
    Scan,
    spaced,
)
from legal_rag.law.values import LegalDate


class Identifier(NamedTuple):
    """The identifier of a decision or an article, as a text writes it."""

    kind: str  # 'ecli', 'pourvoi', 'rg', 'article', a series of the Conseil constitutionnel ('qpc'), or 'number'
    value: str  # normalised: '16-86735', '15/452', '2016-561', 'L1152-1', 'ECLI:FR:CCASS:2023:SO02020'
    start: int  # characters
    end: int
    code: str = ""  # of an article: 'code du travail', if it is named


SERIES = ("qpc", "dc", "an", "sen", "lp", "fnr", "elec", "orga", "pdr", "lom", "rip")  # of constitutional decisions
_SERIES = "|".join(r"\.?".join(name) + r"\.?" for name in SERIES)
_CONSTITUTIONAL = rf"(?:19|20)?\d\d{DASH}\d{{1,4}}(?:/\d{{1,4}})*"
_OF_SOMETHING_ELSE = re.compile(
    spaced(
        "(?:lois?|ordonnances?|d[ée]crets?|arr[êe]t[ée]s?|circulaires?|directives?|r[èe]glements?|avis|"
        rf"d[ée]lib[ée]rations?)(?:{BLANK}(?:organiques?|minist[ée]riels?|royal))?_(?:\((?:CEE?|UE)\)_)?(?:"
        rf"(?:n{BLANK}?[°os.]*|num[ée]ros?)_)?(?:[\d/-]+_(?:,|et)_)*$"
    ),
    re.IGNORECASE,
)
_LOOK_BACK = 60  # characters before a number or date in which its statute or court is named

_SIGNS = ("no ", "nos ", "no.", "no\u00a0", "n°", "n °", "n o ", "numéro", "numero")
_ROLE_NUMBER = rf"(?:19|20)?\d\d{BLANK}?/{BLANK}?\d{{1,6}}"

# The kinds of case numbers, the surest first. The letter before a pourvoi's number ("n° X 22-18.784") is a check
# character.
CASE_PATTERNS: tuple[tuple[str, Scan], ...] = (
    ("ecli", Around(rf"{NOT_INSIDE}ECLI:[A-Z]{{2}}:[A-Z0-9]{{1,7}}:\d{{4}}:[A-Z0-9.]{{1,25}}", ["ecli:"], 1, 60)),
    ("pourvoi", FiguresLed(rf"{NOT_INSIDE}\d\d{DASH}\d\d[. \u00a0\u202f]?\d{{3}}{NO_MORE}")),
    ("series", FiguresLed(rf"{NOT_INSIDE}(?P<number>{_CONSTITUTIONAL}){BLANK}?(?P<after>{_SERIES}){NO_MORE}")),
    (
        "series",
        FiguresLed(
            rf"{NOT_INSIDE}(?P<before>{_SERIES})[, \u00a0]{{0,4}}(?:n{BLANK}?[°o.]_|num[ée]ro )?"
            f"(?P<signed>{_CONSTITUTIONAL}){NO_MORE}",
            before=24,
        ),
    ),
    (
        "rg",
        Around(
            rf"{NOT_INSIDE}(?:R\.?{BLANK}?G\.?(?:{BLANK}Cour)?|(?:r[ôo]le|r[ée]pertoire)(?:{BLANK}g[ée]n[ée]ral)?)_"
            rf"(?:sous le )?(?:n\w?|num[ée]ro)?{BLANK}?[°.]?_:?_(?:n{BLANK}?[°o.]?_)?(?:[A-Z]{BLANK})?"
            rf"(?P<role>{_ROLE_NUMBER})(?:(?={DASH}20\d\d{BLANK}?/)|{NO_MORE})",
            ["rg", "r.g", "r. g", "r g", "rôle", "role", "répertoire", "repertoire"],
            1,
            100,
        ),
    ),
    ("rg", Around(rf"(?<!\w){NUMBER_SIGN}_(?P<signed>\d\d/\d{{1,6}}){NO_MORE}", ["/"], 20, 12)),
    ("rg", Around(rf"{NOT_INSIDE}(?P<bare>\d\d/\d{{5}}){NO_MORE}", ["/"], 3, 12)),
    (
        "request",
        Around(
            rf"(?<!\w)(?:{NUMBER_SIGN}|requ[êe]te|affaire)_(?P<signed>\d{{6}}){NO_MORE}",
            [*_SIGNS, "requête", "requete", "affaire"],
            1,
            30,
        ),
    ),
    # Of a cour administrative d'appel, 20LY01234; of other bodies, PS-2022-047.
    ("request", FiguresLed(rf"{NOT_INSIDE}(?P<bare>\d\d[A-Z]{{2}}\d{{5}}){NO_MORE}")),
    ("request", Around(rf"{NOT_INSIDE}(?P<bare>[A-Z]{{1,5}}-(?:19|20)\d\d-\d{{1,4}}){NO_MORE}", ["-19", "-20"], 6, 16)),
    ("number", FiguresLed(rf"{NOT_INSIDE}{_CONSTITUTIONAL}{NO_MORE}")),
)
_NUMBER = re.compile(_CONSTITUTIONAL)
_DIGIT = re.compile(r"\d")
_ROLE = re.compile(r"\s*\d\d/\d{1,6}\s*$")


def find_identifiers(text: str, cases: Sequence[Identifier] | None = None) -> list[Identifier]:
    """Find the identifiers of decisions and articles, in text order; of overlapping ones the longest counts.

    A number in the Conseil constitutionnel's form without a series has kind 'number'; numbers of statutes and decrees,
    which have that form too, are skipped. `cases` are the text's `find_cases`, if they are known.
    """
    if not _DIGIT.search(text):
        return []
    cases = find_cases(text) if cases is None else cases
    # "n° R 16-86.735": the letter before a pourvoi's number is a check letter, not an article's.
    certain = bytearray(len(text))  # characters that belong to a case
    for case in cases:
        if case.kind != "number":
            certain[case.start : case.end] = b"\1" * (case.end - case.start)
    articles = [Identifier("article", *number) for number in find_article_numbers(text)]
    articles = [article for article in articles if not any(certain[article.start : article.end])]
    mentions = sorted([*cases, *articles], key=lambda mention: (mention.start, -mention.end, not mention.code))
    kept: list[Identifier] = []
    names = set()
    for mention in mentions:
        last = kept[-1] if kept else None
        # Joined cases give several names for one span; an article matched with and without its code is one.
        if last is None or mention.start >= last.end or (mention[2:4] == last[2:4] and mention[:2] not in names):
            kept.append(mention)
            names.add(mention[:2])
    return kept


def find_cases(text: str) -> list[Identifier]:
    """Find strings with the form of a case number; some of kind 'number' may be parts of articles' numbers."""
    cases: list[Identifier] = []
    taken = bytearray(len(text))  # characters that belong to a name already
    for kind, match in _match_cases(text):
        start, end = match.span()
        if any(taken[start:end]):
            continue
        unmistakable = kind == "pourvoi" and "." in match.group()
        before = text[max(start - _LOOK_BACK, 0) : start]
        if kind in ("number", "pourvoi", "rg") and not unmistakable and _OF_SOMETHING_ELSE.search(before):
            continue  # the number of a statute
        if kind == "number" and _is_range_of_years(match.group()):
            continue
        taken[start:end] = b"\1" * (end - start)
        cases += [Identifier(name, value, start, end) for name, value in _READERS[kind](match)]
    return cases


def decision_identifiers(number: str, nature: str) -> list[Identifier]:
    """Parse the column with a decision's own number or numbers, and the court's series in `nature`.

    A number of unknown form is kept unchanged, with kind 'number'.
    """
    series = nature.replace(".", "").lower()
    if series in SERIES:
        named = [(kind, match) for kind, match in _match_cases(number) if kind in ("number", "series")]
        return [
            Identifier(series, value, match.start(), match.end())
            for _, match in named
            for value in _split_joined_numbers(_constitutional(_NUMBER.search(match.group()).group()))  # type: ignore[union-attr]
        ]
    cases = [
        case for case in find_identifiers(f"RG {number}" if _ROLE.match(number) else number) if case.kind != "article"
    ]
    if cases or not (rest := number.strip()):
        return cases
    parts = [" ".join(part.split()).upper() for part in re.split("[,;]", rest)]
    return [Identifier("number", part, 0, len(number)) for part in parts if part]


def _match_cases(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    for kind, pattern in CASE_PATTERNS:
        for match in pattern.finditer(text):
            yield kind, match


def _is_range_of_years(number: str) -> bool:
    first, _, last = re.sub(DASH, "-", number).partition("-")
    return len(first) == 4 and len(last) == 4 and 0 < int(last) - int(first) < 100 if last.isdecimal() else False


def _constitutional(number: str) -> str:
    year, _, rest = re.sub(DASH, "-", number).partition("-")
    if len(year) == 2:
        year = ("19" if year >= "58" else "20") + year  # the Conseil's first decisions are of 1958
    return f"{year}-{rest}"


def _split_joined_numbers(value: str) -> list[str]:
    """Return the numbers of joined cases: '2007-3742/3947' and each of the two."""
    year, _, rest = value.partition("-")
    numbers = rest.split("/")
    return [value, *(f"{year}-{number}" for number in numbers)] if len(numbers) > 1 else [value]


def _read_series(match: re.Match[str]) -> Iterator[tuple[str, str]]:
    groups = match.groupdict()
    series = (groups.get("after") or groups.get("before") or "").replace(".", "").lower()
    for value in _split_joined_numbers(_constitutional(groups.get("number") or groups.get("signed") or "")):
        yield series, value


def _read_role(match: re.Match[str]) -> Iterator[tuple[str, str]]:
    groups = match.groupdict()
    year, _, number = next(filter(None, groups.values())).partition("/")
    yield "rg", f"{year.strip()[-2:]}/{int(number)}"


_READERS: dict[str, Callable[[re.Match[str]], Iterator[tuple[str, str]]]] = {
    "ecli": lambda match: iter([("ecli", match.group().upper().rstrip("."))]),
    "pourvoi": lambda match: iter([("pourvoi", re.sub(DASH, "-", re.sub(r"[.\s]", "", match.group())))]),
    "series": _read_series,
    "rg": _read_role,
    "request": lambda match: (("number", value.upper()) for value in match.groups() if value),
    "number": lambda match: (("number", value) for value in _split_joined_numbers(_constitutional(match.group()))),
}


_IN_FULL = Led(rf"(?<![\w/-])(?=(?-i:C[a-z]))(?:{CASE_LAW_COURT})(?!\w)", ["cour", "conseil"])
# What may be between a court and a date: "CE, ass., 3 mai 2010".
_UNTIL_DATE = re.compile(spaced(r"(?:_,?_[\w°.()]{1,12}){0,3}?_,?_(?:(?:du|le|arrêt du) )?"))
_NAMED = Led(
    r"(?<!\w)(?:(?-i:[Aa]rr[êe]ts?|[Dd]écisions?|[Aa]vis)) (?:_n_[°o]_(?P<number>[\w.,-]{1,14}) )?"
    "(?:rendue?s? (?:par |en (?=Ass|ass)))?(?:de la |du |la |le |(?=Ass))(?:Assemblée plénière|"
    rf"{SINGLE_COURT})(?:,? [\w’', -]{{1,40}}?)? (?:(?:en date )?du|le) ",
    ["arrêt", "arret", "décision", "avis"],
)
_NUMBERED = Led(
    rf"(?<!\w)(?:décisions?|arrêts?) (?:du Conseil constitutionnel )?{NUMBER_SIGN}_",
    ["décision", "arrêt"],
)
_CITED_NUMBER_SIGN = re.compile(
    spaced(rf"_,? ?(?:(?:pourvois?|requêtes?|req\.|aff\.|affaire|arrêt) )?{NUMBER_SIGN}_(?:[A-Z] )?"),
    re.IGNORECASE,
)
_OF_DATE = re.compile(spaced("_,? (?:(?:rendue? )?(?:le|du|en date du) )?"), re.IGNORECASE)
_AND = re.compile(spaced(rf"_(?:,|et) (?:(?:n_[°o]_)?(?:[A-Z] )?)?(?=\d\d{DASH})"))


def find_cited_decisions(text: str, dates: Sequence[LegalDate], identifiers: Sequence[Identifier]) -> list[Span]:
    """Find decisions cited by court and date or number, given the text's `find_dates` and `find_identifiers`."""
    days = {day.start: day.end for day in dates}
    cases = {case.start: case.end for case in identifiers if case.kind not in ("article", "rg")}
    spans = []
    courts = sorted((*find_short_courts(text), *(match.span() for match in _IN_FULL.finditer(text))))
    for day in dates:
        near = courts[bisect_left(courts, (day.start - _LOOK_BACK, 0)) : bisect_left(courts, (day.start, 0))]
        starts = [start for start, end in near if _UNTIL_DATE.fullmatch(text, end, day.start)]
        if starts:
            spans.append((starts[0], _with_number(text, day.end, cases)))
    for match in _NAMED.finditer(text):
        if (end := days.get(match.end())) is not None:
            spans.append((match.start(), _with_number(text, end, cases)))
    for match in _NUMBERED.finditer(text):
        if (end := cases.get(match.end())) is not None:
            of = _OF_DATE.match(text, end)
            spans.append((match.start(), days.get(of.end(), end) if of else end))
    spans.sort(key=lambda span: (span[0], -span[1]))
    return [span for i, span in enumerate(spans) if not i or span[0] >= spans[i - 1][1]]


def _with_number(text: str, end: int, cases: Mapping[int, int]) -> int:
    """Return the end of the numbers that follow a date, or of the date itself."""
    sign = _CITED_NUMBER_SIGN.match(text, end)
    while sign is not None and sign.end() in cases:
        end = cases[sign.end()]
        sign = _AND.match(text, end)
    return end
