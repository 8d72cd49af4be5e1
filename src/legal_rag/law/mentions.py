"""References that are neither case numbers nor articles: ids, addresses, European cases, pinpoints."""

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from legal_rag.base.html import displayed
from legal_rag.law.scanning import BLANK, DASH, NUMBER_SIGN, Around, Led, Scan, spaced
from legal_rag.law.values import ordinal_value


@displayed
class Mention(NamedTuple):
    """A reference to a document by an id, an address or a number of a system of its own."""

    kind: str  # see `find_mentions`
    value: str
    start: int  # characters
    end: int


_HEX = r"(?<![0-9a-zA-Z])(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{24}(?![0-9a-zA-Z])"
_ID = r"(?<![0-9A-Za-z])(?:JURI|LEGI|CETA|CONS|JORF|KALI|CNIL)(?:TEXT|ARTI|SCTA)\d{12}(?!\d)"
_ADDRESS = Led(r"https?://[^\s<>«»\"”)\]]{4,400}(?<![.,;:!?'’])", ["http"])
_SITE_NUMBERS = (  # of a court's own site: what its addresses number decisions by
    ("number", re.compile(r"conseil-etat\.fr/\S*?/decision/\d{4}-\d\d-\d\d/(?P<number>\d{5,7})(?!\d)")),
    (
        "series",
        re.compile(
            r"conseil-constitutionnel\.fr/\S*?decision/\d{4}/(?P<year>(?:19|20)\d\d(?=\d)|\d\d)(?P<number>\d{1,4}R?\d?)"
            r"(?P<series>[A-Za-z]{1,4})(?![A-Za-z])"
        ),
    ),
)
_CASE_OF_UNION = rf"[CTF]{DASH}\d{{1,4}}/\d\d(?!\d)"
# That were or are bound by the European Convention on Human Rights.
_STATES = (
    "Albanie|Allemagne|Andorre|Arménie|Autriche|Azerbaïdjan|Belgique|Bosnie-Herzégovine|Bulgarie|Chypre|Croatie|Danemark|"
    "Espagne|Estonie|Finlande|France|Géorgie|Grèce|Hongrie|Irlande|Islande|Italie|Lettonie|Liechtenstein|Lituanie|"
    "Luxembourg|Macédoine du Nord|Malte|(?:République de )?Moldova|Monaco|Monténégro|Norvège|Pays-Bas|Pologne|Portugal|"
    "République tchèque|Roumanie|Royaume-Uni|Russie|Saint-Marin|Serbie|Slovaquie|Slovénie|Suède|Suisse|Turquie|Türkiye|"
    "Ukraine"
)
_MENTIONS = (
    ("id", Around(_ID, ["TEXT0", "ARTI0", "SCTA0"], 4, 20, 0)),
    ("id", re.compile(_HEX)),
    (
        "jurisdata",
        Led(rf"juris{DASH}?data_:?_(?:{NUMBER_SIGN}_)?(?P<value>(?:19|20)\d\d{DASH}\d{{6}})(?!\d)", ["juris"]),
    ),
    ("cjue", Around(rf"(?<![\w/.-])(?P<value>(?-i:{_CASE_OF_UNION}))", ["/"], 8, 8)),
    (
        "cjue",
        Led(
            r"(?<!\w)(?-i:CJCE|CJUE)(?!\w)[^;\n]{0,100}?aff(?:aires?|\.)_(?:jtes\._|jointes_)?(?P<value>\d{1,3}/\d\d)(?!\d)",
            ["CJCE", "CJUE"],
        ),
    ),
    # "CJCE, arrêt du 9 mars 1978, Simmenthal, 106/77": the Court's before 1989.
    (
        "cjue",
        Led(
            rf"(?<!\w)(?-i:CJCE)(?!\w)[^;\n]{{0,100}}?,_(?:{NUMBER_SIGN}_)?(?P<value>\d{{1,3}}/[5-8]\d)(?![\d/])",
            ["CJCE"],
        ),
    ),
    # "Dupont et autres c. France [GC], n° 12345/06"
    (
        "cedh",
        Led(
            rf"(?<!\w)c\._(?:la |le |l['’]|les )?(?:{_STATES})(?:_\[GC\])?,_(?:(?:req(?:uêtes?|\.)|aff\.)_)?"
            rf"{NUMBER_SIGN}_(?P<value>\d{{1,5}}/\d\d)(?!\d)",
            ["c."],
        ),
    ),
    (
        "cedh",
        Led(
            r"(?<!\w)(?:(?-i:CEDH|CourEDH|Cour EDH)|Cour européenne des droits de l['’]homme)(?!\w)[^;\n]{0,120}?"
            rf"(?<!\w)(?:{NUMBER_SIGN}|req(?:uêtes?|\.)|aff(?:aires?|\.))_(?P<value>\d{{1,5}}/\d\d)(?!\d)",
            ["CEDH", "Cour EDH", "CourEDH", "cour européenne"],
        ),
    ),
    # "l'arrêt n° 2036 F-B du 21 novembre 2012": its number among the decisions of its chamber, not the pourvoi's.
    (
        "arrêt",
        Led(
            rf"arr[êe]t {NUMBER_SIGN}_(?P<value>\d{{1,4}}"
            rf"(?: (?-i:F[SP]?)(?:_{DASH}_[PBRIDLM](?:_\+_[PBRIDLM]){{0,5}})?)?)"
            r"(?![\w/-]|\.\d)",
            ["arrêt", "arret"],
        ),
    ),
)


def find_mentions(text: str) -> list[Mention]:
    """Find references by ids, addresses and numbers that are not case numbers, in text order; none overlaps another.

    Kinds and values: 'id' of Légifrance or Judilibre ('JURITEXT000048176166', also from an address), 'number' or a
    series ('qpc', '2021-952') from an address of the Conseil d'État or the Conseil constitutionnel, 'address' of any
    other page, 'jurisdata' ('2019-003456'), 'cjue' ('C-18/18'), 'cedh' ('12345/16'), 'arrêt' ('2036 F-B').
    """
    mentions = [_read_address(match) for match in _ADDRESS.finditer(text)]
    taken = bytearray(len(text))  # characters of addresses
    for mention in mentions:
        taken[mention.start : mention.end] = b"\1" * (mention.end - mention.start)
    mentions += (mention for mention in _numbers_in(text, _MENTIONS) if not taken[mention.start])
    return sorted(dict.fromkeys(mentions), key=lambda mention: mention.start)


def find_european_cases(text: str) -> list[Mention]:
    """Find the cases of the Court of Justice, the Union's tribunals ('cjue') and the European Court of Human Rights."""
    cases = _numbers_in(text, [row for row in _MENTIONS if row[0] in EUROPEAN])
    return sorted(dict.fromkeys(cases), key=lambda mention: mention.start)


EUROPEAN = ("cjue", "cedh")  # kinds of mentions


def _numbers_in(text: str, patterns: Iterable[tuple[str, Scan | re.Pattern[str]]]) -> Iterator[Mention]:
    for kind, pattern in patterns:
        for match in pattern.finditer(text):
            group = "value" if match.groupdict() else 0
            value = " ".join(re.sub(rf"\s*{DASH}\s*", "-", match[group]).split())
            yield Mention(kind, value, *match.span(group))


_ANY_ID = re.compile(f"{_ID}|{_HEX}")


def _read_address(match: re.Match[str]) -> Mention:
    address, span = match.group(), match.span()
    if named := _ANY_ID.search(address):
        return Mention("id", named.group(), *span)
    for kind, pattern in _SITE_NUMBERS:
        if numbered := pattern.search(address):
            if kind == "number":
                return Mention(kind, numbered["number"], *span)
            year = numbered["year"]
            if len(year) == 2:
                year = ("19" if year >= "58" else "20") + year
            return Mention(numbered["series"].lower(), f"{year}-{numbered['number'].upper()}", *span)
    return Mention("address", address, *span)


Place = Literal["point", "page", "alinéa"]


@displayed
class Pinpoint(NamedTuple):
    """A place within a decision or an article, as a citation names it."""

    kind: Place  # a point is a numbered paragraph: "§ 12", "cons. 5"
    first: int
    last: int  # equal to `first`, except in a range: "points 3 à 5"
    start: int  # characters
    end: int


_WORDS_OF_PLACES: tuple[tuple[Place, str, list[str]], ...] = (
    (
        "point",
        r"§_§?|points?|pts?\.?|considérants?|consid\.|cons\.|paragraphes?|paragr\.|par\.|attendus?",
        ["§", "point", "pt", "consid", "cons.", "paragr", "par.", "attendu"],
    ),
    ("page", r"pages?|pp?\.", ["page", "p.", "pp."]),
    ("alinéa", r"alinéas?|al\.", ["alinéa", "al."]),
)
_NUMBER = r"\d{1,4}(?:er|e|ème)?"
_NO_MEASURE = (
    rf"(?![\w%€/]|[.,]\d|{BLANK}?[°%€]|{BLANK}\d{{3}}"
    rf"|{BLANK}(?:euros?|francs?|ans?|mois|jours?|heures?)(?!\w))"
)
_NUMBERS = rf"{_NUMBER}{_NO_MEASURE}(?:_(?:{DASH}|,|et|ou|à)_{_NUMBER}{_NO_MEASURE}){{0,20}}"
_PLACES = [
    (kind, Led(rf"(?<![\w§])(?:{words})_(?:{NUMBER_SIGN}_)?(?P<numbers>{_NUMBERS})", starts))
    for kind, words, starts in _WORDS_OF_PLACES
]
_RANKED = Around(
    r"(?<!\w)(?P<rank>\d{1,3}(?:er|re|e|ème|ère)|"
    r"(?:(?:vingt|trente|quarante|cinquante|soixante)[-\s](?:et[-\s])?)?[^\W\d_]{3,20}(?:ier|ème|nde?|ière))"
    r" (?P<word>considérant|point|paragraphe|alinéa)(?!\w)",
    ["considérant", "point", "paragraphe", "alinéa"],
    36,
    14,
)
_ONE_NUMBER = re.compile(spaced(rf"(?P<range>(?:{DASH}|à)_)?(?P<number>\d{{1,4}})"))


def find_pinpoints(text: str) -> list[Pinpoint]:
    """Find the points, pages and alinéas that a text names by number, in text order; lists give one for each item.

    >>> [(place.kind, place.first, place.last) for place in find_pinpoints("cons. 5 à 7 et 9, p. 4, 3e alinéa")]
    [('point', 5, 7), ('point', 9, 9), ('page', 4, 4), ('alinéa', 3, 3)]
    """
    places = [place for of, pattern in _PLACES for match in pattern.finditer(text) for place in _read(of, match)]
    for match in _RANKED.finditer(text):
        digits = re.match(r"\d+", match["rank"])
        number = int(digits.group()) if digits else ordinal_value(match["rank"].lower())
        if number:
            kind: Place = "alinéa" if match["word"].lower() == "alinéa" else "point"
            places.append(Pinpoint(kind, number, number, *match.span()))
    return sorted(places, key=lambda place: place.start)


def _read(kind: Place, match: re.Match[str]) -> Iterator[Pinpoint]:
    start = match.start()
    found: list[Pinpoint] = []
    for one in _ONE_NUMBER.finditer(match.string, *match.span("numbers")):
        number = int(one["number"])
        if one["range"] and found and number > found[-1].last:
            found[-1] = found[-1]._replace(last=number, end=one.end())
        else:
            found.append(Pinpoint(kind, number, number, start if not found else one.start("number"), one.end()))
    yield from found
