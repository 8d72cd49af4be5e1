"""Codes, statutes, directives and treaties that a text names, and articles of them, alone or in lists and ranges."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from legal_rag.base.html import displayed
from legal_rag.base.text import Span, key_of, read_words, words_of
from legal_rag.law.scanning import (
    BLANK,
    DASH,
    NOT_INSIDE,
    NUMBER_SIGN,
    Around,
    Led,
    Scan,
    read_table,
    short_form,
    spaced,
)
from legal_rag.law.values import LegalDate
from legal_rag.law.words import FRENCH_MONTHS

_LISTS = read_words("legal_rag.law")
_OF_THE = "(?:de la|de l['’]|des|du|de|d['’])_"
_TABLES = read_table("codes.toml")
_CODES, _TEXTS = _TABLES["codes"], _TABLES["texts"]
_ACCENTED = str.maketrans({"é": "[ée]", "è": "[èe]", "ê": "[êe]", "É": "[ÉE]", "'": "['’]"})
_NOUNS, _WORDS = ("|".join(_LISTS[name]).translate(_ACCENTED) for name in ("code_nouns", "code_words"))
_ANY_CODE = (
    rf"(?:code|livre[ ]des[ ]proc[ée]dures) (?:g[ée]n[ée]ral )?(?:{_OF_THE})?(?:{_NOUNS})(?!\w)"
    rf"(?: (?:entre le |et l['’]_|(?:et|ou) )?(?:{_OF_THE}|à l['’]_)?(?:{_WORDS})(?!\w))*"
)


_WHOLE_NAMES = sorted(
    (name for row in _CODES if row.get("whole") for name in (row["name"], *row.get("also", ()))), key=len, reverse=True
)
_WHOLE = "|".join(name.removeprefix("code ").translate(_ACCENTED) for name in _WHOLE_NAMES)
CODE_NAME = rf"(?:code (?:{_WHOLE})(?!\w)|{_ANY_CODE})"
CODE_FORMS: dict[str, str] = {row["name"]: row["cite"] for row in _CODES}  # citation forms, with no-break spaces
_SHORT_FORMS = {form: row["name"] for row in _CODES for form in (row["cite"], *row.get("short", ()))}
_FORMS_OF_TEXTS = {form: row["name"] for row in _TEXTS for form in row["short"]}
_CODE_OF_LETTERS = {"".join(words_of(form)): name for form, name in (_SHORT_FORMS | _FORMS_OF_TEXTS).items()}
_CODE_OF_WORDS = {key_of(name): row["name"] for row in _CODES for name in (row["name"], *row.get("also", ()))}
_LONG_FIRST = sorted(_SHORT_FORMS | _FORMS_OF_TEXTS, key=len, reverse=True)
_IN_LETTERS = [form for form in _LONG_FIRST if form.isupper() and form.isalpha()]
_ABBREVIATED = [form for form in _LONG_FIRST if form not in _IN_LETTERS]


def _abbreviation(form: str) -> str:
    pattern = short_form(form)
    return rf"c(?:ode |\.?_){pattern.removeprefix('c' + chr(92) + '.?_')}" if form.startswith("C.") else pattern


SHORT_CODE = f"(?P<code>{'|'.join(map(_abbreviation, _ABBREVIATED))}|{'|'.join(map(short_form, _IN_LETTERS))})(?!\\w)"
_SHORT_CODE_STARTS = sorted(
    {"C. ", "c. ", "C.", "c.", "C ", "code ", "C.\u00a0", "c.\u00a0"}
    | {form[:3].lower() for form in _SHORT_FORMS if form in _ABBREVIATED and not form.startswith("C.")}
    | set(_FORMS_OF_TEXTS)
    | {spelt for form in _IN_LETTERS for spelt in (form, f"{form[0]}.")}
)


def code_named(short: str) -> str:
    """Return the name of a code by its abbreviation: 'code du travail' for "C. trav."."""
    words = words_of(short)
    return _CODE_OF_LETTERS["".join(["c", *words[1:]] if words[0] == "code" else words)]


@lru_cache(maxsize=1024)
def code_in_full(written: str) -> str:
    """Return the name of a code as the table has it, whatever its case, accents and apostrophes."""
    return _CODE_OF_WORDS.get(key_of(written)) or " ".join(written.replace("’", "'").lower().split())


TextKind = Literal["code", "statute", "treaty", "constitution"]


@displayed
class LegalText(NamedTuple):
    """A legal text that a document names."""

    kind: TextKind
    start: int  # characters
    end: int


_STATUTE_NUMBER = rf"(?:(?:19|20)?\d\d{DASH}\d{{1,5}}(?:{DASH}\d{{1,3}})?|\d{{1,4}})(?![\w/])"
_QUALIFIED = "(?:_,?_(?:modifiée?|précitée?|susvisée?|susmentionnée?|susdite?|complétée?))?"
_STATUTE = Led(
    rf"(?<![\w-])(?P<kind>lois?|ordonnances?|décrets?{DASH}lois?|décrets?|arrêtés?|circulaires?)(?!\w)(?: "
    "(?:organique|constitutionnelle|royal|impérial|(?:inter)?ministériel|préfectoral|municipal))?(?: "
    f"(?P<number>{NUMBER_SIGN}_{_STATUTE_NUMBER}|{_STATUTE_NUMBER}))?(?P<qualified>{_QUALIFIED})(?P<of>_,? "
    "(?:en date )?(?:du|des|de)? |_,? )?",
    ["loi", "ordonnance", "décret", "decret", "arrêté", "circulaire"],
)
_UNION = "(?:CEE?|UE|Euratom)"
_BY_UNION = "du (?:Conseil|Parlement européen(?: et du Conseil)?)"
# What may be between the word and the number of a directive or a regulation.
AFTER_EUROPEAN_ACT = rf"(?: (?:d['’]exécution|déléguée?s?))?(?: {_BY_UNION})? (?:(?:\({_UNION}\)|{_UNION}(?!\w))_)?"
_EUROPEAN = Led(
    rf"(?<!\w)(?:directives?|règlements?){AFTER_EUROPEAN_ACT}(?:{NUMBER_SIGN}_)?"
    rf"(?:\d{{2,4}}/\d{{1,4}}(?:/{_UNION})?)(?: (?:\((?:CEE?|UE)\)))?(?!\w)(?P<by>(?: {_BY_UNION})?_,? du )?",
    ["directive", "règlement"],
)
_RIGHTS = "(?:de sauvegarde )?(?:des droits de l['’]homme(?: et des libertés fondamentales)?)"
# Treaties, declarations and rules of procedure, by name.
TREATIES: tuple[str, ...] = (
    f"convention européenne {_RIGHTS}",
    "convention de sauvegarde des droits de l['’]homme(?: et des libertés fondamentales)?",
    r"(?:premier )?protocole (?:n_[°o]_\d{1,2} )?(?:additionnel (?:n_[°o]_\d{1,2} )?)?à (?:la|cette) "
    f"convention(?: européenne)? {_RIGHTS}",
    "convention internationale (?:relative aux|des) droits de l['’]enfant",
    f"pacte international (?:de New{DASH}York )?relatif aux droits (?:civils et politiques|économiques,? "
    "sociaux et culturels)",
    "charte (?:des droits fondamentaux(?: de l['’]Union européenne)?|sociale européenne|de l['’]environnement)",
    "déclaration (?:des droits de l['’]homme et du citoyen)(?: (?:de 1789|du 26 août 1789))?",
    "déclaration de 1789",
    "traité (?:de Rome|de Maastricht|d['’]Amsterdam|de Nice|de Lisbonne|instituant la Communauté "
    "(?:économique )?européenne|CEE?|sur (?:le fonctionnement de )?l['’]Union européenne)",
    "règlement applicable à la procédure suivie devant le Conseil constitutionnel pour le contentieux de "
    "l['’]élection des députés et des sénateurs",
    "préambule de la constitution (?:de 1946|du 27 octobre 1946)",
)
_TREATY = Led(
    rf"(?<![\w-])(?:{'|'.join(TREATIES)})(?!\w)",
    ["convention", "premier", "protocole", "pacte", "charte", "déclaration", "traité", "règlement", "préambule"],
)
# "Convention de New-York du 26 janvier 1990": a treaty where a date ends it; a collective agreement names no town.
_TREATY_OF = Led(
    rf"(?<!\w)[Cc]onvention(?: (?:franco{DASH}\w+|internationale|européenne|bilatérale))? (?:de|d['’])_"
    r"(?P<town>[A-ZÉ][\w-]+(?: [A-Z][\w-]+)?) (?P<of>du )",
    ["convention"],
    0,
)
_CONSTITUTION = Led(r"(?<=\bla[ \u00a0])Constitution(?!\w)(?! de (?!1958))(?P<of> du )?", ["constitution"], 0)
_NAMED_CODE = Led(
    rf"(?<![\w-])(?:(?:nouveau|ancien) )?{CODE_NAME}",
    ["nouveau", "ancien", "code", "livre des proc", "livre  des", "livre\u00a0des"],
)


_ARTICLE_OF = re.compile(r"articles?\s[^.;:]{1,40}de l['’]$", re.IGNORECASE)
_LOOK_BACK = 60  # characters before an ordinance in which its article is named
_LAST_FAMOUS_YEAR = 1990  # ordinances named by date alone (1945, 1958, 1967, 1986) are older


def find_texts(text: str, dates: Sequence[LegalDate]) -> list[LegalText]:
    """Find legal texts by name, in text order; of overlapping ones the longest counts.

    `dates` are the text's `find_dates`: a statute is named by number, date or both.
    """
    ends = {day.start: day.end for day in dates}
    names = [
        *_find_statutes(text, dates),
        *_with_date("treaty", _TREATY_OF, text, ends, needed=True),
        *_with_date("constitution", _CONSTITUTION, text, ends),
        *_with_date("statute", _EUROPEAN, text, ends, group="by"),
        *(LegalText("treaty", *match.span()) for match in _TREATY.finditer(text)),
        *(LegalText("code", *match.span()) for match in _NAMED_CODE.finditer(text)),
    ]
    names.sort(key=lambda name: (name.start, -name.end))
    return [name for i, name in enumerate(names) if not any(name.start < near.end for near in names[max(i - 3, 0) : i])]


def _find_statutes(text: str, dates: Sequence[LegalDate]) -> list[LegalText]:
    days = {day.start: day for day in dates}
    statutes, only_dated = [], []
    numbered = set()  # dates of ordinances that the text also names by number
    for match in _STATUTE.finditer(text):
        day, number = days.get(match.end()) if match["of"] else None, match["number"]
        if number and not re.search(r"n|-", number, re.IGNORECASE) and day is None:
            continue  # "loi 12" may be anything
        if day is not None:
            statute = LegalText("statute", match.start(), day.end)
            if match["kind"].lower().startswith("ordonnance") and not number:
                only_dated.append((statute, day.value, bool(match["qualified"])))
                continue
            numbered.add(day.value)
            statutes.append(statute)
        elif number:
            statutes.append(LegalText("statute", match.start(), match.end("number")))
    for statute, day_value, qualified in only_dated:  # a judge's orders are named by date too
        cited = _ARTICLE_OF.search(text[max(statute.start - _LOOK_BACK, 0) : statute.start])
        if qualified or cited or day_value in numbered or day_value.year < _LAST_FAMOUS_YEAR:
            statutes.append(statute)
    return statutes


def _with_date(
    kind: TextKind, pattern: Led, text: str, ends: Mapping[int, int], *, needed: bool = False, group: str = "of"
) -> list[LegalText]:
    """Extend a pattern's matches to the date after `group`; without a date, end there, or drop them if `needed`."""
    texts = []
    for match in pattern.finditer(text):
        end = ends.get(match.end()) if match[group] else None
        if end is None and not needed:
            end = match.start(group) if match[group] else match.end()
        if end is not None:
            texts.append(LegalText(kind, match.start(), end))
    return texts


@displayed
class ArticleNumber(NamedTuple):
    """An article's number in a text."""

    value: str  # normalised: 'L1152-1'
    start: int  # characters
    end: int
    code: str  # 'code du travail', or empty


PREFIX = rf"(?:L\.?{BLANK}?O|[LRDAC])(?:\.?{BLANK}?\*?{BLANK}?|{DASH}(?=\d{{3}}))"
_RANKED = "bis|ter|quater|quinquies|sexies|septies|octies|nonies|decies|undecies|duodecies|terdecies|quaterdecies"
_SUFFIX = rf"(?:{BLANK}(?:{_RANKED}|(?!C [a-z])(?-i:[A-Z])(?![\w'’.-])))"  # "L. 311-3 bis A", "1649 quater B quinquies"
ARTICLE_NUMBER = rf"(?:{PREFIX}\d++|\d++(?!{BLANK}?°))(?:{DASH}\d+)*(?:er\b|{_SUFFIX}{{1,3}})?"
_ORDINAL = r"(?:premier|second|deuxième|dernier|\d{1,2}(?:er|ère|e|ème|nd)?)"
# The part of an article that is cited: ", alinéa 3", " § 1", ", 5°", " II", ", premier alinéa".
_ONE_PART = (
    rf"(?:alin[ée]as?|al\.?|paragraphes?|§_§?|in fine)(?:_{_ORDINAL}(?: et {_ORDINAL})?)?|"
    rf"{_ORDINAL} (?:alin[ée]a|paragraphe|tiret)|\d{{1,2}}{BLANK}?°(?:_(?:,|et|ou|à)_\d{{1,2}}{BLANK}?°){{0,9}}|"
    rf"(?-i:[IVX]{{1,4}}|[a-h]\)?)(?![\w'’])|\d{{1,2}}(?=_,_\d{{1,2}}{BLANK}?°)"
)
_PART = rf"(?:_,?_(?:{_ONE_PART}))"
_OLD_OR_NEW = r"(?:anc(?:ien|\.)|nouv(?:eau|\.))"
_BECOME = rf"(?:devenue?|anciennement|aujourd['’]hui|ex|{_OLD_OR_NEW})"
_OTHER = rf"{_BECOME}_(?:l['’]_)?(?:art(?:icle|\.)_)?(?:{ARTICLE_NUMBER})"
_MORE = rf"{_ONE_PART}|et s(?:uiv(?:ants?|\.)|\.)|{_OLD_OR_NEW}(?!\w)|\((?:{_OLD_OR_NEW}|_{_OTHER}_)\)"
_PARTS = rf"(?:(?!_d[eu]{BLANK})_,?_(?:{_MORE})){{0,4}}+"  # most articles are followed by "du" or "de"
# "articles L. 1152-1, L. 1152-2 et 1240 du code civil": one match, its numbers found in it.
_AND = "(?:_,_(?:et |ou )?| (?:et|ou|à|et/ou|ainsi que) )"
_LIST = rf"{ARTICLE_NUMBER}(?:{_PARTS}{_AND}{ARTICLE_NUMBER})*"
# Behind an article's number; atomic, since the numbers of a long list could be cut in many ways.
REST_OF_LIST = rf"(?>(?:{_PARTS}{_AND}{ARTICLE_NUMBER}){{0,20}}{_PARTS})"
_CODE = rf"(?:(?:nouveau|ancien) )?(?:(?P<code>{CODE_NAME})|(?P<same>(?:m[êe]me )?code)(?!\w))"
_OF_CODE = rf"(?:{_PARTS}_,?_(?:(?:du|dudit|audit|de ce|au) |de l['’]_(?=ancien)){_CODE})?"
# "annexe 1-2 du code de l'action sociale et des familles"
_ANNEX = rf"(?P<annex>annexes?_(?:article )?(?:{ARTICLE_NUMBER}|(?-i:[IVX]{{1,6}}|[A-Z])(?:{DASH}\d+)*)(?!\w))"
_ARTICLES = Led(
    rf"\b(?:(?:articles?|art\.)_(?P<list>{_LIST})|{_ANNEX}(?= (?:du|au) )){_OF_CODE}",
    ["article", "art.", "annexe"],
)
_BARE_ARTICLE = Scan(
    rf"{NOT_INSIDE}(?P<list>(?:{PREFIX}\d+(?:{DASH}\d+)+|[lrd]\.?{BLANK}?\d{{3,}}(?:{DASH}\d+)+|(?:L\.?O|[LRD])\."
    rf"{BLANK}?\d+)(?:{BLANK}(?:{_RANKED})(?:{BLANK}(?-i:[A-Z])(?![\w'’.-]))?(?!\w))?"
    rf"(?:{_AND}(?:{PREFIX}\d+(?:{DASH}\d+)+)){{0,20}})(?:(?i:(?=du code))|(?![\w/]|{DASH}\d))"
    rf"(?i:{_OF_CODE})(?P<annex>)",
    0,
)
_BARE_STARTS = re.compile(rf"[LRDAClrd](?<![\w/.-].)(?=[.\dO*]|{BLANK})")  # a cheap filter
_OF_NAMED_CODE = Led(rf"du {_CODE}", ["du code", "du livre", "du  ", "du\u00a0"])
# "alinéa 3 du code", "livre 2 du code": parts of it, no articles.
_NO_ARTICLE = re.compile(
    r"\b(?:alin[ée]as?|al\.|paragraphes?|phrases?|livres?|titres?|chapitres?|sections?|parties?|tomes?|points?|annexes?|et)"
    r"\s*\Z|§\s*\Z",
    re.IGNORECASE,
)
_BEFORE_NAMED_CODE = re.compile(spaced(rf"{NOT_INSIDE}\d+(?:{DASH}\d+)* \Z"))
# "Code du travail, article L1237-11", as titles write it; "article 5 de la loi" after a code's name is not the code's.
_AFTER_CODE = Led(
    rf"(?<!\w)(?P<code>{CODE_NAME})_[,:]?_(?:{DASH}_)?(?:(?:articles?|art\.) |(?=(?-i:{PREFIX})\d|annexe))"
    rf"(?:{_ANNEX}|(?P<list>(?>{_LIST}))(?!{_PARTS}\s{{0,4}},?\s{{0,4}}(?:(?:du|dudit|des|de)(?!\w)|d['’])))(?P<same>)",
    ["code", "livre des proc"],
)
_NUMBER_IN_LIST = re.compile(ARTICLE_NUMBER, re.IGNORECASE)
_IN_LIST = Scan(f"{_PARTS}{_AND}")


_IN_PARTS = re.compile(rf"(?P<prefix>{PREFIX})?(?P<rest>.*)", re.IGNORECASE)


@lru_cache(maxsize=4096)
def article_value(number: str) -> str:
    """Normalise an article's number: 'L. 1152-1' and 'L1152‑1' are 'L1152-1', '1er' is '1'."""
    plain = re.sub(DASH, "-", number)
    plain = re.sub(r"(?<=\d)er\b", "", plain, flags=re.IGNORECASE)
    plain = re.sub(r"^(\w{1,2})-", r"\1", plain.strip()) if plain[:1].isalpha() else plain
    parts = _IN_PARTS.match(plain)
    assert parts is not None  # noqa: S101 - every part of the pattern is optional
    prefix = re.sub(r"[^A-Z]", "", (parts["prefix"] or "").upper())
    return prefix + " ".join(parts["rest"].split()).upper()


def find_article_numbers(text: str) -> Iterator[ArticleNumber]:
    """Yield each article number of a text; some twice, with their code and without."""
    for finditer in (_ARTICLES.finditer, _bare_articles, _AFTER_CODE.finditer):
        for match in finditer(text):
            code = _code_of(text, match)
            if match["list"]:
                yield from _numbers_of_list(text, match, code)
            elif code:
                value = " ".join(match["annex"].upper().replace("ANNEXES", "ANNEXE").split())
                yield ArticleNumber(value, *match.span("annex"), code)
    for match in _OF_NAMED_CODE.finditer(text):
        before = _BEFORE_NAMED_CODE.search(text, max(match.start() - _LONGEST_NUMBER, 0), match.start())
        if before and _NO_ARTICLE.search(text, max(before.start() - 20, 0), before.start()):
            continue
        if before and (code := _code_of(text, match)):
            number = before.group().rstrip()
            yield ArticleNumber(article_value(number), before.start(), before.start() + len(number), code)


_LONGEST_NUMBER = 30  # characters of an article's number


def _code_of(text: str, match: re.Match[str]) -> str:
    if match["code"]:
        return code_in_full(match["code"])
    is_again = match["same"] and (_OF_SAME.search(match.group()) or _SAID_BEFORE.match(text, match.end()))
    return _code_before(text, match) if is_again else ""


def _code_before(text: str, match: re.Match[str]) -> str:
    """Return the code that "du même code" means: the last one named before, outside a quotation that has ended.

    Codes without articles in "L." are not that of an article in "L."; one named further off counts if it is the only
    one.
    """
    places, codes = _named_codes(text)
    end, is_in_l = match.start(), (match.groupdict().get("list") or "")[:1].upper() == "L"
    until = bisect_left(places, end)
    named = [n for n in range(max(until - _MOST_CODES, 0), until) if not (is_in_l and codes[n] in WITHOUT_L)]
    near = [n for n in named if places[n] > end - _SAME_CODE]
    if not near:
        return codes[named[-1]] if len({codes[n] for n in named}) == 1 else ""
    return codes[next((n for n in reversed(near) if not _is_in_ended_quotation(text, places[n], end)), near[-1])]


@lru_cache(maxsize=8)
def _named_codes(text: str) -> tuple[list[int], list[str]]:
    """Return where a text names codes, and which."""
    named = [*_NAMED_CODE.finditer(text)]
    return [match.start() for match in named], [code_in_full(_NOT_NEW.sub("", match.group())) for match in named]


def _is_in_ended_quotation(text: str, place: int, end: int) -> bool:
    closed = text.find("»", place, end)
    return closed >= 0 and text.find("«", place, closed) < 0


_SAME_CODE = 1000  # characters before "du même code" in which one of several codes is named
_MOST_CODES = 100  # named before it that are looked at
_OF_SAME = re.compile(r"\b(?:m[êe]me|[da]udit|ce)\s+code\Z", re.IGNORECASE)
_SAID_BEFORE = re.compile(spaced(r" (?:précité|susvisé|susmentionné|susdit)(?!\w)"), re.IGNORECASE)
_NOT_NEW = re.compile(r"\A(?:nouveau|ancien)\s+", re.IGNORECASE)
# Codes whose articles are not numbered in "L.".
WITHOUT_L = frozenset(row["name"] for row in _CODES if row.get("without_l"))


def _numbers_of_list(text: str, match: re.Match[str], code: str) -> Iterator[ArticleNumber]:
    at, end = match.span("list")
    while number := _NUMBER_IN_LIST.match(text, at, end):
        yield ArticleNumber(article_value(number.group()), number.start(), number.end(), code)
        following = _IN_LIST.pattern.match(text, number.end(), end) if number.end() < end else None
        if following is None:
            break
        at = following.end()
    if code and match.end() - end > _LEAST_RENUMBERED and (other := _RENUMBERED.pattern.search(text, end, match.end())):
        yield ArticleNumber(article_value(other["number"]), *other.span("number"), code)


# "article 1382 ancien (devenu 1240) du code civil"
_RENUMBERED = Scan(rf"\(_{_OTHER}_\)".replace(f"(?:{ARTICLE_NUMBER})", f"(?P<number>{ARTICLE_NUMBER})"))
_LEAST_RENUMBERED = 12  # characters


_SHORT_CODES = Led(rf"(?<![\w.]){SHORT_CODE}", _SHORT_CODE_STARTS)
# Bounded: what a list lacks is its code, so that a longer one would be tried again from each of its numbers.
_SHORT_LIST = rf"(?>{ARTICLE_NUMBER}(?:{_PARTS}{_AND}{ARTICLE_NUMBER}){{0,20}})"
_AFTER_SHORT_CODE = Scan(
    rf"_[,:]?_(?:(?:{_OLD_OR_NEW}_)?(?:articles?|art\.?)_|(?=(?-i:{PREFIX})\d))(?P<list>{_SHORT_LIST})"
)
_UNTIL_SHORT_CODE = rf"{_PARTS}_,?_(?:(?:du|de la|de l['’]_(?=anc))_(?:{_OLD_OR_NEW}_)?)?\Z"
_LETTERED = rf"(?-i:L\.?{BLANK}?O|[LRDA])\.?{BLANK}?\*?{BLANK}?\d+(?:{DASH}\d+)*{_SUFFIX}{{0,2}}"
_BEFORE_SHORT_CODE = tuple(
    Scan(rf"(?<![\w./-]){pattern}")
    for pattern in (
        rf"(?:articles?_|art\.?_)(?P<list>{_SHORT_LIST}){_UNTIL_SHORT_CODE}",
        rf"(?P<list>{_LETTERED}(?:{_PARTS}{_AND}{_LETTERED}){{0,20}}){_UNTIL_SHORT_CODE}",
        rf"(?P<list>\d+(?:{DASH}\d+)*{_SUFFIX}{{0,2}}(?: (?:et|ou|à) \d+(?:{DASH}\d+)*)?){_PARTS} (?:du_)?\Z",
    )
)
NAMES_OF_TEXTS = frozenset(_FORMS_OF_TEXTS.values())
_LONGEST_LIST = 300  # characters before an abbreviated code
# "12 mai 2010 CGI", "p. 39 CGI": a number, not an article's.
_OTHER_NUMBER = Scan(rf"(?:\b(?:{'|'.join(FRENCH_MONTHS)})\.?|\b(?:en|depuis|pages?|p\.)|n{BLANK}?[°º]|§)\s*\Z")


def find_abbreviated_articles(text: str) -> Iterator[ArticleNumber]:
    """Yield each article cited with an abbreviated code: "art. 1240 C. civ.", "CPC, art. 700", "1240 c. civ."."""
    done = 0
    for short in _SHORT_CODES.finditer(text):
        cited = _list_before(text, max(short.start() - _LONGEST_LIST, done), short) or _AFTER_SHORT_CODE.pattern.match(
            text, short.end()
        )
        if cited:
            yield from _numbers_of_list(text, cited, code_named(short["code"]))
        done = max(short.end(), cited.end() if cited else 0)


def _list_before(text: str, start: int, short: re.Match[str]) -> re.Match[str] | None:
    """Return the articles that end where an abbreviated code begins."""
    with_word, lettered, alone = (pattern.pattern.search(text, start, short.start()) for pattern in _BEFORE_SHORT_CODE)
    if with_word or lettered:
        return with_word or lettered
    # Some letters stand for other things too: "CP" and "CEDH" are texts only with an article's word or letter.
    if (
        alone is None
        or len(short["code"]) == 2
        or code_named(short["code"]) in NAMES_OF_TEXTS
        or _OTHER_NUMBER.pattern.search(text, max(alone.start() - 20, 0), alone.start())
    ):
        return None
    return alone


def _bare_articles(text: str) -> Iterator[re.Match[str]]:
    done = 0
    for start in _BARE_STARTS.finditer(text):
        if start.start() >= done and (match := _BARE_ARTICLE.pattern.match(text, start.start())):
            done = match.end()
            yield match


@displayed
class ArticleCitation(NamedTuple):
    """A citation of an article."""

    value: str  # its number, normalised: 'L1152-1', '1', 'PREMIER'
    start: int  # characters: of 'article', or of the number for further items of a list
    end: int  # where the name of its text ends, or its number
    text_start: int  # of the statute's name; equal to text_end if none is named
    text_end: int


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
_OF_THAT = "(?:du|de la|de l['’]|des|de cet?(?:te)?|de (?:leur|son|sa)|dudit|de ladite|desdits)_(?:même |présente?s? )?"
_NO_LAW = (
    r"(?P<text>accord|avenant|contrat|(?:convention|conv\.) (?:collective|coll\.)|CCN|ANI|statuts|bail|police|cahier"
    r"|règlement intérieur|protocole d['’]accord|charte(?! (?:des|sociale|de l['’]environnement))|plan"
    r"|pacte(?! internat)|convention(?=_(?:[,;.):]|\Z)))(?!\w)"
)
_NO_LAW_BEHIND = Scan(
    rf"{REST_OF_LIST}(?:_,? {_OF_THAT}{_NO_LAW}|_,?_[(]?_(?=conv|CCN){_NO_LAW.replace('?P<text>', '?P<short>')})"
)
_B = BLANK.replace(" ", "\\x20")  # one blank, in a lookbehind
# "en l'absence de plan, art. L. 1255-1" names no plan.
_DEFINITE = rf"(?<!\w)(?<!\bde{_B})(?<!\bd['’])(?<!\bsans{_B})(?<!\bun{_B})(?<!\baucun{_B})"
_NO_LAW_BEFORE = Scan(
    rf"(?:{_DEFINITE}{_NO_LAW}_,_|(?<!\w){_NO_LAW.replace('?P<text>', '?P<own>')}[^.;:«»\n]{{0,60}}?_,?_(?:en|à|dans) "
    r"(?:son|ses|leurs?) )(?:(?:articles?|art\.)_)?\Z"
)
# "L. 12 de la note de service": of another text, whatever it is, than a code named before.
_OF_ANOTHER = Scan(rf"{REST_OF_LIST} {_OF_THAT}(?!(?:(?:m[êe]me|présent|nouveau|ancien|dit) )?code|livre|\d)\w")
# With its proper name: "convention collective Syntec", "loi Machin".
_NAMED_TEXT = Scan(
    rf"{REST_OF_LIST}_,?_(?:{_OF_THAT})?"
    rf"(?P<named>(?:{_NO_LAW.replace('?P<text>', '?:')}|convention|loi|ordonnance|décret|arrêté)(?!\w)"
    r"(?: [\w'’-]+){1,8})"
)
_PARTS_CITED = Scan(rf"(?:{_PART}){{1,4}}")
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
        parts = _PARTS_CITED.pattern.match(text, number.end())
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


def named_no_law(text: str, start: int, end: int) -> str:
    """Return what an article is said to be of, if that is no law: "convention collective", "statuts"; else ''.

    >>> named_no_law("l'article L. 12 des statuts", 10, 15)
    'statuts'
    """
    behind, before = _NO_LAW_BEHIND.pattern, _NO_LAW_BEFORE.pattern
    match = behind.match(text, end) or before.search(text, max(start - 120, 0), start)
    named = next(filter(None, match.groups())) if match else ""
    return named if named.isupper() else named.lower()


def named_text(text: str, end: int) -> str:
    """Return the text, by its proper name, of which an article that ends there is said to be; '' if it has none.

    >>> named_text("l'article 34 de la convention collective nationale Syntec sur le préavis", 12)
    'convention collective nationale Syntec'
    """
    match = _NAMED_TEXT.pattern.match(text, end)
    words = match["named"].split() if match else []
    last = max((number for number, word in enumerate(words) if word[0].isupper()), default=0)
    return " ".join(words[: last + 1]) if last else ""


def is_of_another_text(text: str, end: int) -> bool:
    """Tell whether an article that ends there is said to be of something that is not called a code."""
    return _OF_ANOTHER.pattern.match(text, end) is not None


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
