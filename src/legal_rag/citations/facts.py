"""Checkable facts of a sentence: dates, quantities with their units, ordinals, articles, case numbers, names."""

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from legal_rag.base.text import find_exact, fold_text
from legal_rag.citations.plain import legible
from legal_rag.citations.wording import TABLES, is_grammar, stem_of
from legal_rag.law import (
    MONTHS,
    Identifier,
    LegalDate,
    article_value,
    find_amounts,
    find_article_citations,
    find_dates,
    find_identifiers,
    find_texts,
)
from legal_rag.law.articles import SHORT_CODE, code_named
from legal_rag.law.scanning import spaced
from legal_rag.law.values import FIGURES, NUMBER_IN_WORDS, figures_value, ordinal_value, words_value
from legal_rag.law.words import FULL_MONTHS, ORDINALS, TITLES, TITLES_OF_MEN, TITLES_OF_WOMEN

FactKind = Literal["date", "month", "quantity", "ordinal", "article", "case", "name", "figure"]

FIGURE = re.compile(rf"(?<![\w.,/-])(?:{FIGURES})(?!\d|[-/]\d)")
ENUMERATOR = re.compile(
    r"^[^\S\n]*(?:#{1,6}[^\S\n]+)?(?:\|[^\S\n]*)?(?:[-*•–][^\S\n]+)?\(?(?:\d{1,3}|[IVX]{1,4}|[a-h])\s?[.)°|/-]{1,2}(?=\s|[A-ZÀ-Ý«“])",
    re.MULTILINE,
)
# Pointers into a source, as answers write them, and the answer's own steps, notes and tables.
POINTER = re.compile(
    r"\((?:pp?\.|pages?|cons\.|§§?|pts?\.?|points?|consid(?:érants?|\.)|n(?:ote|\.)|al\.?|paragraphes?|voir|cf\.?)\s?\d{1,4}(?:\s?(?:[-–,]|et|à)\s?\d{1,4}){0,3}(?:,? (?:al\.|alinéa) \d)?\)"
    r"|(?<!\w)(?:pp?\.|pages?|§§?|pts?\.|considérants?|paragraphes?|étapes?|tableaux?|figures?|notes?|questions?|points?)\s?(?:n[°o]\s?)?\d{1,4}(?:\s?(?:[-–]|et|à)\s?\d{1,4})?(?!\w|[.,]\d)"
    r"|\[\^?\d{1,3}\]:?",
    re.IGNORECASE,
)
_SIGN = re.compile(r"(?:^|[\s(«“:])(?:−[ ]?|[–-])\Z")
_BEFORE = re.compile(
    r"(?:(?P<unit>US\$|[$€£¥]|\b(?:USD|EUR|GBP|CHF|FRF|JPY|CAD|FF))|(?P<word>[^\W\d_]+[’']?))[ ]{0,2}\Z"
)
_FIGURES = r"(?:\d{1,3}(?:[ .'’]\d{3}(?!\d)){1,4}|\d{1,12})(?:[.,]\d{1,3}(?!\d))?"
_NUMBER = re.compile(
    rf"(?<![\w.,/])(?<!\d[ ])(?<![\d\w]-)(?P<figures>{_FIGURES})(?![\d/]|-\d)|(?:(?<=\bd['’])|(?<![\w’'-]))(?P<words>{NUMBER_IN_WORDS})(?![\w’'-])",
    re.IGNORECASE,
)
_SCALE = re.compile(
    r"[ ]?(?:(?P<letter>k|K|M|Md|Mds|Mrd|Mrds|G)(?=[ ]?(?:€|\$|£|¥|euros?\b|EUR|USD|F\b|FF\b|francs?\b))|(?P<word>milliers?|millions?|milliards?)(?!\w)(?:[ ](?:de[ ]|d[’']))?)"
)
_SCALES = {"k": 10**3, "m": 10**6, "md": 10**9, "mds": 10**9, "mrd": 10**9, "mrds": 10**9, "g": 10**9,
           "millier": 10**3, "million": 10**6, "milliard": 10**9}  # fmt: skip
_AGAIN = re.compile(r"[ ]?\((?:[^\W\d_]+[ -]?){1,6}\)|[ ]?\(\d{1,6}\)")  # "deux (2) mois"
_UNIT = re.compile(
    r"[ ]?(?P<sign>°C|[€$£¥%‰°]|m²|m³|km²)|[ ]?(?P<word>p\.[ ]?100|p\.[ ]?1000|pour[ ]cents?|pour[ ]mille|[^\W\d_]+)"
)
_NEXT_WORD = re.compile(r"[ ]{1,2}(?:de[ ]|d[’']|du[ ]|des[ ])?(?P<word>[^\W\d_]+)")
_UNITS = {form: unit for unit, forms in TABLES["units"].items() for form in forms}
_MEASURES = frozenset(TABLES["units"])
_CURRENCIES = frozenset(TABLES["currencies"])
_OF_COUNTRY = frozenset(TABLES["countries"])
_ORDINAL = re.compile(
    rf"(?<![\w.,/-])(?:(?P<figures>\d{{1,4}})[ ]?(?:er|ère|re|ème|eme|e|è|nd|nde)|(?P<words>{'|'.join(ORDINALS)}|vingt et unième|(?:[^\W\d_]+-){{0,4}}[^\W\d_]{{2,}}ième)s?)(?!\w)",
    re.IGNORECASE,
)
_MONTH = re.compile(
    rf"(?<!\w)(?:(?P<day>\d{{1,2}}|1er|premier)[ ])?(?P<month>{'|'.join(FULL_MONTHS)})(?:[ ](?P<year>\d{{4}}))?(?!\w)",
    re.IGNORECASE,
)
_YEAR = re.compile(
    r"(?:(?<=\ben )|(?<=\bannée )|(?<=\bdepuis )|(?<=\bde )|(?<=\bfin )|(?<=\bdébut )|(?<=\bcourant )|(?<=\bet )|(?<=\bà )|(?<=\()|(?<=, ))(?:1[5-9]|20)\d\d(?![\w%€]|[.,]\d|[ ](?:euros?|francs?|\d{3}))",
    re.IGNORECASE,
)
_NAME = re.compile(r"[A-ZÀ-ÖØ-Þ][\w]*(?:[’'-][A-ZÀ-ÖØ-Þ]\w*|[-]\w+)*\.{0,3}")
_TITLED = re.compile(
    r"(?:\b(?:M|MM|Me)\.|\b(?:Mmes?|Mlles?|Monsieur|Madame|Maître|Me|sieur|dame|sociétés?|SARL|SAS|SCI|SA|SCP))[ ](?:(?:de|du|des|la|le|les|d[’']|civile|anonyme|immobilière)[ ]?){0,3}\Z"
)
_OPENS_SENTENCE = re.compile(r"(?:\A|[.!?:;\n|]|^[-*•–])[\s«“\"(\[–—*•-]*\Z", re.MULTILINE)
_OF_ANSWER = frozenset(TABLES["of_answer"])
_MASCULINE, _FEMININE = (
    re.compile(rf"\b(?:{'|'.join(titles)})\.? (?:[^\W\d_][\w.-]*[ ]){{0,2}}\Z")
    for titles in (TITLES_OF_MEN - {"m"} | {r"mm?\."}, TITLES_OF_WOMEN | {"mmes"})
)
_STATUTE_BEFORE = re.compile(
    r"(?P<noun>loi|ordonnance|décret|arrêté|circulaire|directive|règlement|délibération)s?(?: (?:organique|constitutionnelle|ministériel|préfectoral))? (?:n[°o]s? ?|numéro )?\Z"
)
_COMMON_NAMES = frozenset(TABLES["capitals"]) | TITLES | FULL_MONTHS.keys()
_LEFTOVER = re.compile(r"[^\s()«»\"“”;:!?,°]{0,30}\d[^\s()«»\"“”;:!?,]{0,30}")
_MORE = re.compile(r"[ ](bis|ter|quater|quinquies|sexies|septies)(?!\w)", re.IGNORECASE)
LIST_GAP = 8  # characters between the articles of one list: ", ", " et de l'"
_CODE_AFTER = re.compile(
    spaced(rf"[ ,]{{0,2}}\(?[ ]?(?:du |de la |des )?(?:anc\. |nouv\. )?{SHORT_CODE}"), re.IGNORECASE
)


class Fact(NamedTuple):
    """One fact, as one text writes it."""

    kind: FactKind
    value: Any  # equal for two ways of writing the same; see `is_same`
    start: int  # characters
    end: int


class Quantity(NamedTuple):
    """A number with what it counts."""

    number: Decimal
    unit: str  # a measure or currency; else the stem of the noun counted, or of a word before it; or empty
    also: str = ""  # stem of the next word: of "cinq autres salariés"
    before: str = ""  # stem of the word before


def find_facts(text: str) -> list[Fact]:
    """Return the facts of a text, in order; a number that is part of another fact is not a fact itself."""
    text = legible(text)
    dates, identifiers = find_dates(text), find_identifiers(text)
    facts: list[Fact] = []
    taken = bytearray(len(text))
    for match in (*ENUMERATOR.finditer(text), *POINTER.finditer(text)):
        taken[match.start() : match.end()] = b"\1" * (match.end() - match.start())
    for candidates in (
        [Fact("date", *date) for date in dates],
        _article_facts(text, dates, identifiers),
        [Fact("case", name.value, name.start, name.end) for name in identifiers if name.kind != "article"],
        _month_facts(text),
        _amount_facts(text),
        _ordinal_facts(text),
        _quantity_facts(text),
        _name_facts(text),
        _leftover_facts(text),
    ):
        for fact in candidates:
            if not any(taken[fact.start : fact.end]):
                facts.append(fact)
                taken[fact.start : fact.end] = b"\1" * (fact.end - fact.start)
    return sorted(facts, key=lambda fact: fact.start)


class Stated(NamedTuple):
    """What a text states: its facts, and its folded words."""

    facts: tuple[Fact, ...]
    folded: str

    def holds(self, fact: Fact) -> bool:
        """Does the text state a fact?"""
        if fact.kind == "name":
            return self._states_name(*fact.value)
        if fact.kind == "figure" and " " not in fact.value:
            return re.search(rf"(?<![\w-]){re.escape(fact.value)}(?![\w-])", self.folded) is not None
        if fact.kind == "article":
            return any(other.kind == "article" and self._same_article(fact.value, other.value) for other in self.facts)
        return any(is_same(fact, other) for other in self.facts)

    def _states_name(self, name: str, gender: str) -> bool:
        """Does the text state a name, and not only with the other gender?"""
        genders = {_gender_before(self.folded[max(0, at - 40) : at]) for at in _word_starts(self.folded, name)}
        return bool(genders) and (not gender or genders != {"f" if gender == "m" else "m"})

    def _same_article(self, claimed: tuple[str, str], stated: tuple[str, str]) -> bool:
        """Is it the same article? One stated without a code is of any code that the text names."""
        number, code = claimed
        if number != stated[0]:
            return False
        return not code or code == stated[1] or (not stated[1] and any(True for _ in _word_starts(self.folded, code)))


@lru_cache(2048)
def stated_in(text: str) -> Stated:
    """Return what a short text states."""
    return Stated(tuple(find_facts(text)), fold_text(text))


def needles_of(fact: Fact) -> list[str]:
    """Return substrings, one of which is in any lower-case text that states this date, article or case number."""
    if fact.kind == "date":
        return [str(fact.value.year), "mil neuf cent", "mille neuf cent", "deux mil"]
    if fact.kind == "month":
        _, month, year = fact.value
        return [year] if year else [MONTHS[month - 1][:4]]
    if fact.kind == "article":
        digits = re.search(r"\d[\d-]*", fact.value[0])
        return [digits.group() if digits else fact.value[0].lower()]
    number = re.match(r"\d\d-\d\d(?=\d{3}$)|[^/]{1,12}", str(fact.value))
    return [number.group().lower() if number else str(fact.value).lower()]


def is_same(wanted: Fact, stated: Fact) -> bool:
    """Does a stated fact, not an article, cover the wanted one? A day covers its month and its year."""
    if wanted.kind == "month" and stated.kind in ("date", "month"):
        day = stated.value
        parts = day if stated.kind == "month" else (str(day.day), day.month, str(day.year))
        return all(not part or part == other for part, other in zip(wanted.value, parts, strict=True))
    if wanted.kind != stated.kind:
        return False
    if wanted.kind in ("quantity", "ordinal"):
        return _same_quantity(wanted.value, stated.value)
    return bool(wanted.value == stated.value)


def _same_quantity(claimed: Quantity, stated: Quantity) -> bool:
    if claimed.number != stated.number:
        return False
    if claimed.unit in _MEASURES or stated.unit in _MEASURES:
        return claimed.unit == stated.unit
    counted, others = {claimed.unit, claimed.also} - {""}, {stated.unit, stated.also} - {""}
    if not counted:
        return claimed.before == stated.before or not others
    return bool(counted & others)


def _article_facts(text: str, dates: Sequence[LegalDate], identifiers: Iterable[Identifier]) -> Iterator[Fact]:
    """Yield articles with the code or text that they belong to, where it is stated."""
    cited = find_article_citations(text, find_texts(text, dates))
    taken = bytearray(len(text))
    of, following = "", len(text)
    for article in reversed(cited):
        taken[article.start : article.end] = b"\1" * (article.end - article.start)
        in_list = following - article.end <= LIST_GAP  # "les articles 9 et 14 du code civil": both are of that code
        code, end = _find_code(text, article.text_start, article.text_end, article.end)
        of = code or (of if in_list else "")
        following = article.start
        # "L. 52-12 bis" is another article than "L. 52-12".
        more = _MORE.match(text, article.end) if " " not in article.value else None
        yield Fact("article", (f"{article.value} {more[1].upper()}" if more else article.value, of), article.start, end)
    for other in identifiers:
        if other.kind == "article" and not any(taken[other.start : other.end]):
            code, end = _find_code(text, 0, 0, other.end)
            yield Fact("article", (article_value(other.value), _fold_code(other.code) or code), other.start, end)


def _find_code(text: str, start: int, end: int, behind: int) -> tuple[str, int]:
    """Return the name of an article's code and where it ends: written out, with its country, or abbreviated."""
    if end > start:
        name = _fold_code(text[start:end])
        country, behind = _find_country(text, end)
        return name + country, behind
    match = _CODE_AFTER.match(text, behind)
    return (code_named(match["code"]), match.end()) if match else ("", behind)


def _find_country(text: str, at: int) -> tuple[str, int]:
    """Return the country after a currency or a code, " belge", and where it ends; "" if none is named."""
    match = re.match(r"[ ]([^\W\d_]+)", text[at : at + 30])
    if match and fold_text(match[1]) in _OF_COUNTRY:
        return f" {fold_text(match[1])}", at + match.end()
    return "", at


def _fold_code(name: str) -> str:
    return " ".join(name.lower().replace("’", "'").split())


def _month_facts(text: str) -> Iterator[Fact]:
    """Yield days without a year, months and years: (day, month, year), missing parts as "" or 0."""
    for match in _MONTH.finditer(text):
        number = FULL_MONTHS[match["month"].lower()]
        if match["day"] or match["year"] or match["month"].islower():
            day = re.sub("er|premier", "", (match["day"] or "").lower()).lstrip("0") or ("1" if match["day"] else "")
            yield Fact("month", (day, number, match["year"] or ""), *match.span())
    for match in _YEAR.finditer(text):
        yield Fact("month", ("", 0, match.group()), *match.span())


def _amount_facts(text: str) -> Iterator[Fact]:
    for amount in find_amounts(text):
        country, _ = _find_country(text, amount.end)
        sign = -1 if _SIGN.search(text[max(0, amount.start - 8) : amount.start]) else 1
        yield Fact("quantity", Quantity(sign * amount.value, amount.currency + country), amount.start, amount.end)


def _ordinal_facts(text: str) -> Iterator[Fact]:
    """Yield ordinals with what they number; "la première décision" is the answer's own order."""
    for match in _ORDINAL.finditer(text):
        number = int(match["figures"]) if match["figures"] else ordinal_value(match["words"].lower())
        follows = _NEXT_WORD.match(text, match.end())
        if number is None or (follows and not match["figures"] and fold_text(follows["word"]) in _OF_ANSWER):
            continue
        unit, also = _counted_nouns(text, match.end())
        yield Fact("ordinal", Quantity(Decimal(number), unit, also, _stem_before(text, match.start())), *match.span())


def _quantity_facts(text: str) -> Iterator[Fact]:
    for match in _NUMBER.finditer(text):
        value = figures_value(match["figures"]) if match["figures"] else words_value(match["words"])
        if value is None:
            continue
        end = match.end()
        scale = _SCALE.match(text, end)
        if scale:
            value *= _SCALES[(scale["letter"] or scale["word"].rstrip("s")).lower()]
            end = scale.end()
        again = _AGAIN.match(text, end)
        end = again.end() if again else end
        unit, also, end = _find_unit(text, end)
        if match["words"] and match["words"].lower() in ("un", "une") and unit not in _MEASURES:
            continue  # an article
        before = text[max(0, match.start() - 25) : match.start()]
        led = _BEFORE.search(before)
        if led and led["unit"] and unit not in _CURRENCIES:
            unit, also = _UNITS.get(led["unit"].lower()) or str(led["unit"]), ""
            end = scale.end() if scale else match.end()
        if _SIGN.search(before[-8:]):
            value = -value
        yield Fact("quantity", Quantity(value, unit, also, _stem_before(text, match.start())), match.start(), end)


def _find_unit(text: str, at: int) -> tuple[str, str, int]:
    """Return what a number counts: a measure, or the stems of the next two nouns; and where that ends."""
    match = _UNIT.match(text, at)
    if match is None:
        return "", "", at
    written = (match["sign"] or match["word"]).replace(" ", "").lower()
    if known := _UNITS.get(written) or _UNITS.get(written.rstrip("s")):
        end = match.end()
        country, end = _find_country(text, end) if known in _CURRENCIES else ("", end)
        return known + country, "", end
    unit, also = _counted_nouns(text, at)
    return unit, also, at


def _counted_nouns(text: str, at: int) -> tuple[str, str]:
    stems: list[str] = []
    while len(stems) < 2 and (match := _NEXT_WORD.match(text, at)):
        word = fold_text(match["word"])
        at = match.end()
        if len(word) > 2 and not is_grammar(word):
            stems.append(stem_of(word))
        elif len(word) > 3 or stems:
            break
    return (stems[0] if stems else "", stems[1] if len(stems) > 1 else "")


def _stem_before(text: str, at: int) -> str:
    led = _BEFORE.search(text[max(0, at - 25) : at])
    return stem_of(fold_text(led["word"])) if led and led["word"] else ""


def _name_facts(text: str) -> Iterator[Fact]:
    """Yield names: words with a capital that do not open a sentence, and what follows "M.", "société"…"""
    for match in _NAME.finditer(text):
        before = text[max(0, match.start() - 40) : match.start()]
        word = fold_text(match.group().rstrip("."))
        if word in _COMMON_NAMES or len(word) < 2:
            continue
        if before[-1:].isalnum() or (_OPENS_SENTENCE.search(before) and not _TITLED.search(before)):
            continue
        yield Fact("name", (word, _gender_before(fold_text(before))), match.start(), match.end())


def _leftover_facts(text: str) -> Iterator[Fact]:
    """Yield other words with a digit, to be matched as written."""
    for match in _LEFTOVER.finditer(text):
        written = fold_text(match.group().strip(".,'’-–—[]|*"))
        statute = _STATUTE_BEFORE.search(fold_text(text[max(0, match.start() - 50) : match.start()]))
        yield Fact("figure", f"{statute['noun']} {written}" if statute else written, *match.span())


def _gender_before(before: str) -> str:
    return "f" if _FEMININE.search(before) else "m" if _MASCULINE.search(before) else ""


def _word_starts(folded: str, words: str) -> Iterator[int]:
    spans = find_exact(words, folded)
    return (
        at for at, end in spans if not folded[max(at - 1, 0) : at].isalnum() and not folded[end : end + 1].isalnum()
    )
