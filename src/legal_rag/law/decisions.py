"""Identifiers of decisions (pourvoi, RG, ECLI, Conseil constitutionnel) and citations of decisions."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from legal_rag.base.html import displayed
from legal_rag.base.text import Span
from legal_rag.law.articles import find_article_numbers
from legal_rag.law.courts import CASE_LAW_COURT, SINGLE_COURT, TOWNS_OF_APPEAL, find_short_courts
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


@displayed
class Identifier(NamedTuple):
    """The identifier of a decision or an article, as a text writes it."""

    kind: str  # 'ecli', 'pourvoi', 'rg', 'conflits', 'article', a series of constitutional decisions ('qpc'), 'number'
    value: str  # normalised: '16-86735', '15/452', '2016-561', 'L1152-1', 'ECLI:FR:CCASS:2023:SO02020'
    start: int  # characters
    end: int
    code: str = ""  # of an article: 'code du travail', if it is named


_NAMED_SERIES = ("qpc", "dc", "an", "sen", "lp", "fnr", "elec", "orga", "pdr", "lom", "rip")
SERIES = (*_NAMED_SERIES, "ref", "l", "d", "i")  # of constitutional decisions
_SERIES = "|".join(r"\.?".join(name) + r"\.?" for name in _NAMED_SERIES)
_CONSTITUTIONAL = rf"(?:19|20)?\d\d{DASH}\d{{1,4}}(?:R\d?)?(?:/\d{{1,4}})*"
# "93-1213R AN" rectifies "93-1213 AN"; the numbers of the first years had "bis" and "i" (for "instruction") too.
_RANK = rf"\d{{1,4}}(?:{BLANK}?R\d?(?![\w.])|bis|ter|i|A)?"
_IN_SERIES = rf"(?:19|20)?\d\d{DASH}{_RANK}(?:/{_RANK}(?!\d|{DASH}))*"
_OF_STATUTE = Scan(
    "(?:lois?|ordonnances?|d[ée]crets?|arr[êe]t[ée]s?|circulaires?|directives?|r[èe]glements?|avis|"
    rf"d[ée]lib[ée]rations?)(?:{BLANK}(?:organiques?|minist[ée]riels?|royal))?_(?:\((?:CEE?|UE)\)_)?(?:"
    rf"(?:n{BLANK}?[°ºos.]*|num[ée]ros?)_)?(?:[\d/-]+_(?:,|et)_)*$"
)
# What has numbers of its own: exhibits, invoices, telephones.
_OF_A_THING = Scan(
    r"(?<!\w)(?:pi[èe]ces?|annexes?|p\.?j\.?|productions?|prod\.|factures?|ch[èe]ques?|devis|bons? de commande|"
    r"commandes?|contrats?|polices?|comptes?|lots?|quittances?|(?:[nv](?:/|os? ))?r[ée]f(?:érence)?s?\.? client|"
    r"[nv](?:/|os? )r[ée]f(?:érence)?s?\.?|t[ée]l(?:[ée]phone|\.)?|fax|portable|mobile|iban|sire[nt]|rcs|"
    r"proc[èe]s-verba(?:l|ux)|pv|march[ée]s?|brevets?|matricules?|parcelles?|sinistres?|clients?|pages?|"
    r"immatriculée?s?|marques?)(?: (?:adverses?|communiquées?|produites?|jointes?|clients?|"
    r"verbales?|figuratives?|françaises?|européennes?|internationales?|«[^«»]{1,30}»|de [A-Z]\w+|sous|le)){0,4}_:?_"
    rf"(?:{NUMBER_SIGN}_)?(?:[\d./-]+_(?:,|et|à)_)*$"
)
_LOOK_BACK = 60  # characters before a number or date in which its statute or court is named

_ROLE = (
    rf"(?:R\.?{BLANK}?G\.?(?:{BLANK}Cour)?|(?:r[ôo]le|r[ée]pertoire)(?:{BLANK}g[ée]n[ée]ral)?)_(?:sous le )?"
    rf"(?:n\w?|num[ée]ro)?{BLANK}?[°º.]?_:?_(?:n{BLANK}?[°ºo.]?_)?(?:[A-Z]{BLANK})?"
)
_ROLE_NUMBER = rf"(?:19|20)?\d\d{BLANK}?/{BLANK}?\d{{1,6}}"
_CONFLICTS = r"(?:T(?:rib)?\.? ?(?:des )?confl(?:its)?\.?|(?-i:TC|TdC|T\.C\.)|tribunal des conflits)(?!\w)"

# The kinds of case numbers, the surest first. The letter before a pourvoi's number ("n° X 22-18.784") is a check
# character.
CASE_PATTERNS: tuple[tuple[str, Scan], ...] = (
    ("ecli", Around(rf"{NOT_INSIDE}ECLI:[A-Z]{{2}}:[A-Z0-9]{{1,7}}:\d{{4}}:[A-Z0-9.]{{1,25}}", ["ecli:"], 1, 60)),
    (
        "rg",
        Around(
            rf"{NOT_INSIDE}{_ROLE}(?P<role>{_ROLE_NUMBER})(?:(?={DASH}20\d\d{BLANK}?/)|{NO_MORE})",
            ["/"],
            70,
            40,
        ),
    ),
    # Of the Tribunal des conflits: C4987, before 2001 4987, of the 19th century 00087.
    (
        "conflicts",
        Around(
            rf"(?<!\w){_CONFLICTS}(?:[^;\n]|\n(?!\s)){{0,100}}?"
            rf"(?:{NUMBER_SIGN}_|,_(?=(?-i:C)|0|(?!19|20)\d{{4}}(?!\d)))"
            rf"(?P<conflicts>(?-i:C[ .-]?)?\d{{4,5}}){NO_MORE}",
            ["confl", "TC", "TdC", "T.C."],
            20,
            160,
        ),
    ),
    (
        "pourvoi",
        FiguresLed(rf"{NOT_INSIDE}\d\d{DASH}(?:\d\d[. \u00a0\u202f]?|\s?\d\d\.)\d{{3}}{NO_MORE}"),
    ),
    (
        "series",
        FiguresLed(
            rf"{NOT_INSIDE}(?P<number>{_IN_SERIES}){BLANK}?(?P<after>{_SERIES}|(?-i:REF|[LDI])(?![\w'’.])){NO_MORE}"
        ),
    ),
    (
        "series",
        FiguresLed(
            rf"{NOT_INSIDE}(?P<before>{_SERIES})[, \u00a0]{{0,4}}(?:n{BLANK}?[°ºo.]_|num[ée]ro )?"
            f"(?P<signed>{_IN_SERIES}){NO_MORE}",
            before=24,
        ),
    ),
    ("rg", Around(rf"(?<!\w){NUMBER_SIGN}_(?:[A-Z]{BLANK})?(?P<signed>\d\d/\d{{1,6}}){NO_MORE}", ["/"], 20, 12)),
    ("rg", Around(rf"{NOT_INSIDE}(?P<bare>\d\d/\d{{5}}){NO_MORE}", ["/"], 3, 12)),
    # Of the Conseil d'État, 498765; of a tribunal administratif, 2217919; a pourvoi without a dash.
    (
        "common",
        FiguresLed(
            rf"{NOT_INSIDE}(?:(?P<request>\d{{7}}(?=/\d)|(?:\d{{6,7}}|\d{{3}}[ .\u00a0\u202f]\d{{3}}){NO_MORE})"
            rf"|(?P<role>(?:19|20)\d{{8}}){NO_MORE}"
            rf"|(?P<pourvoi>\d\d[. \u00a0\u202f]\d\d[. \u00a0\u202f]?\d{{3}}){NO_MORE})"
            rf"(?!{BLANK}(?:\d|[€$%F]|euros?|francs?))"
        ),
    ),
    (
        "request",
        FiguresLed(
            rf"{NOT_INSIDE}(?P<bare>\d\d(?:[A-Z]{{2}}|[ .]?(?-i:BX|DA|DO|LY|MA|NC|NT|PA|TL|VE)[ .]?)\d{{5}}){NO_MORE}"
        ),
    ),
    ("request", Around(rf"{NOT_INSIDE}(?P<bare>[A-Z]{{1,5}}-(?:19|20)\d\d-\d{{1,4}}){NO_MORE}", ["-19", "-20"], 6, 16)),
    ("number", FiguresLed(rf"{NOT_INSIDE}{_CONSTITUTIONAL}{NO_MORE}")),
)
_NUMBER = re.compile(_IN_SERIES, re.IGNORECASE)
_DIGIT = re.compile(r"\d")
_OF_EACH = re.compile(r"(?<=\d)\s?(R\d?)\s*$")
_SLASHED = re.compile(r"\s*\d\d/\d{1,6}\s*$")
_OF_CONFLICTS = re.compile(r"\s*(?:C ?\d{4,5}|0\d{4})\s*$")


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
        start, end = match.span("conflicts" if kind == "conflicts" else 0)
        if any(taken[start:end]):
            continue
        before = text[max(start - _LOOK_BACK, 0) : start]
        if kind != "ecli" and _OF_A_THING.pattern.search(before):
            continue
        with_dash = _WITH_DASH.fullmatch(match.group())
        unmistakable = kind == "pourvoi" and not with_dash
        if kind in ("number", "pourvoi", "rg") and not unmistakable and _OF_STATUTE.pattern.search(before):
            continue
        if kind in ("number", "rg") and _is_range_of_years(re.sub(r".*?(?=\d)", "", match.group(), count=1)):
            continue
        if with_dash:
            if _ROLE_BEFORE.pattern.search(before):
                kind = "rg"
            elif _SIGN_BEFORE.pattern.search(before) or _YEAR_BEFORE.search(before):
                kind = {"judicial": "rg", "administrative": "request"}.get(_last_court(text, start), kind)
        elif kind == "common":
            kind = str(match.lastgroup)
            if not _is_case(kind, text, start, before):
                continue
        taken[start:end] = b"\1" * (end - start)
        cases += [Identifier(name, value, start, end) for name, value in _READERS[kind](match)]
    return cases


_WITH_DASH = re.compile(rf"\d\d{DASH}\d{{1,5}}")
# The court named last before a number tells what it numbers: "TJ Rennes, 6 juin 2026, n° 26-00038".
_COURT_BEFORE = Scan(
    r"(?<!\w)(?:(?P<judicial>(?-i:CA|TJ|TGI|TI|CPH|TASS|JEX|JAF)(?!\w)|cours? d['’]_app(?:el|\.)|C\. app\.|"
    r"tribuna(?:l|ux) (?:judiciaires?|de (?:grande instance|commerce|proximité)|d['’]_instance)|"
    r"conseils? (?:de|des) prud['’]hommes|cons\. prud['’]?h?\.|"
    rf"T(?:rib)?\. (?:com|jud|inst|gr)|(?<!\w[ ])(?-i:{'|'.join(TOWNS_OF_APPEAL)})(?=_,_\d))|"
    r"(?P<administrative>(?-i:TA)(?!\w)|tribuna(?:l|ux) administratifs?)|"
    r"(?P<cassation>pourvois?|cass(?:\.|ation|(?!\w))|cour de cass|(?-i:Soc|Civ|Com|Crim)(?=[., \u00a0]{1,4}\d)|"
    r"[1-3](?:re|e|[eè]re|[eè]me) civ|ass\. plén|ch\. mixte)|(?P<other>(?-i:CE|CAA)(?!\w)|"
    r"conseil d['’]_[ée]tat|cours? administratives?|cons\. const|conseil constitutionnel|QPC))"
)
_ROLE_BEFORE = Scan(rf"(?<!\w){_ROLE}\Z")
_SIGN_BEFORE = Scan(
    rf"(?<!\w)(?:{NUMBER_SIGN}|requ[êe]te|req\.|affaire)_(?:[A-Z]{BLANK}?)?(?:[\d .]{{6,9}}_(?:,|et|à)_){{0,9}}\Z"
)
_YEAR_BEFORE = re.compile(r"\d{4}, ?\Z")
_CONTEXT = 160  # characters before a number in which its court is named


def _is_case(kind: str, text: str, start: int, before: str) -> bool:
    """Is a number of a common form one of a case: is it signed, or after a date, and its court named?"""
    if kind == "role" and _ROLE_BEFORE.pattern.search(before):
        return True
    if _SIGN_BEFORE.pattern.search(before):
        needed = {"pourvoi": "cassation", "role": "judicial"}.get(kind)
        return needed is None or _last_court(text, start) == needed
    return bool(_YEAR_BEFORE.search(before)) and _last_court(text, start) in ("administrative", "other")


def _last_court(text: str, start: int) -> str:
    """Return what kind of court is named last before a number, in its sentence; empty if none is."""
    before = text[max(start - _CONTEXT, 0) : start].rpartition(";")[2].rpartition("\n\n")[2]
    return next(
        (match.lastgroup for match in reversed([*_COURT_BEFORE.pattern.finditer(before)]) if match.lastgroup), ""
    )


def decision_identifiers(number: str, nature: str, juridiction: str = "") -> list[Identifier]:
    """Parse the column with a decision's own number or numbers, and the court's series in `nature`.

    A number of unknown form is kept unchanged, with kind 'number'; `juridiction` tells whose "4987" is.
    """
    series = nature.replace(".", "").lower()
    if series in SERIES:
        rectifies = _OF_EACH.search(number)  # "2017-5126/2017-5364 R": a rectification of each
        return [
            Identifier(series, value if not rectifies or "R" in value else f"{value}{rectifies[1]}", *match.span())
            for match in _NUMBER.finditer(number)
            for value in _split_joined_numbers(_constitutional(match.group()))
        ]
    if _OF_CONFLICTS.match(number) or (number.strip().isdecimal() and "conflits" in juridiction.lower()):
        number = f"Tribunal des conflits, n° {number.strip()}"
    elif _SLASHED.match(number):
        number = f"RG {number}"
    cases = [case for case in find_identifiers(number) if case.kind != "article"]
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
    return f"{year}-{''.join(rest.split()).upper()}"


def _split_joined_numbers(value: str) -> list[str]:
    """Return the numbers of joined cases: '2007-3742/3947' and each of the two; a rectification is of each."""
    year, _, rest = value.partition("-")
    numbers = rest.split("/")
    rectifies = _RECTIFIES.search(value)
    suffix = rectifies.group() if rectifies else ""
    each = (number if number.endswith(suffix) else number + suffix for number in numbers)
    return [value, *(f"{year}-{number}" for number in each)] if len(numbers) > 1 else [value]


_RECTIFIES = re.compile(r"R\d?$")


def _read_series(match: re.Match[str]) -> Iterator[tuple[str, str]]:
    groups = match.groupdict()
    series = (groups.get("after") or groups.get("before") or "").replace(".", "").lower()
    for value in _split_joined_numbers(_constitutional(groups.get("number") or groups.get("signed") or "")):
        yield series, value


def _read_role(match: re.Match[str]) -> Iterator[tuple[str, str]]:
    year, number = re.split(f"/|{DASH}", match[match.lastgroup or 0])
    yield "rg", f"{year.strip()[-2:]}/{int(number)}"


def _read_request(match: re.Match[str]) -> Iterator[tuple[str, str]]:
    yield "number", re.sub(rf"[\s.]|(?<=^\d\d){DASH}", "", match[match.lastgroup or 0]).upper()


def _read_pourvoi(match: re.Match[str]) -> Iterator[tuple[str, str]]:
    digits = re.sub(r"\D", "", match[match.lastgroup or 0])
    yield "pourvoi", f"{digits[:2]}-{digits[2:]}"


_READERS: dict[str, Callable[[re.Match[str]], Iterator[tuple[str, str]]]] = {
    "ecli": lambda match: iter([("ecli", match.group().upper().rstrip("."))]),
    "pourvoi": _read_pourvoi,
    "conflicts": lambda match: iter([("conflits", match[match.lastgroup or 0].lstrip("C .-0"))]),
    "series": _read_series,
    "rg": _read_role,
    "request": _read_request,
    "role": _read_request,
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
