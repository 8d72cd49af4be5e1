"""Courts and their chambers: found, abbreviated or in full, compared and ranked; `courts.toml` has a row for each."""

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple

from legal_rag.base.text import Span, normalized, without_accents
from legal_rag.law.scanning import BLANK, DASH, NO_BREAK, NUMBER_SIGN, Around, Led, Scan, read_table, short_form, spaced
from legal_rag.law.words import FRENCH_MONTHS, ORDINALS

Level = Literal["supreme", "appeal", "first", ""]
SUPREME: Level = "supreme"
APPEAL: Level = "appeal"


class Court(NamedTuple):
    """A court, or a chamber of the Cour de cassation, as its row in the table has it."""

    names: tuple[str, ...]
    cite: str  # citation form, with no-break spaces; may be empty
    short: tuple[str, ...]  # abbreviations, the citation form included
    words: frozenset[str]  # that stand for it in `words_of_value`
    has_town: bool
    ecli: str  # of a chamber: its first letters in an ECLI


def _read_courts(rows: Iterable[dict[str, Any]]) -> list[Court]:
    return [
        Court(
            tuple(row["names"]),
            row.get("cite", ""),
            tuple(filter(None, [row.get("cite"), *row.get("short", ())])),
            frozenset(row["key"].split()),
            row.get("town", False),
            row.get("ecli", ""),
        )
        for row in rows
    ]


_TABLES = read_table("courts.toml")
COURTS, CHAMBERS = _read_courts(_TABLES["courts"]), _read_courts(_TABLES["chambers"])
_SINGLE_COURTS, _LOCAL_COURTS = ([court for court in COURTS if court.has_town == town] for town in (False, True))


# A town: a capital letter; hyphens, or the small words that join names, and those towns whose names have several words.
_CAP = r"(?-i:[A-ZÀ-ÖØ-Þ])"
_WORD = rf"{_CAP}[\w'’]*(?:[-‐‑][\w'’]+)*"
_FIRST_OF_SEVERAL = (
    "(?:aix|saint|sainte|st|ste|boulogne|chalons?|châlons?|fort|basse|pointe|clermont|mont|bourg|villefranche|salon|"
    "charleville|thonon|lons|brive|nogent|le|la|les|l['’]|saintes?|bar|la[ ]roche|romans|montreuil|aulnay|asnières|"
    "levallois|mantes|evry|vitry|sables|nouméa|mamoudzou|cayenne|château|chateau|tour|roche|neuilly|ivry|juvisy|lagny|"
    "palais|pont|port|verdun|villeneuve|alès|mende|cagnes|bonneville|digne|grasse|tarascon|carpentras|bourgoin|corbeil)"
)
_JOINED = (
    rf"(?:{BLANK}(?:(?:en|sur|sous|les|lès|le|la|de{BLANK}la|des|du|et|d['’]|de|l['’]|à){BLANK}?)?{_CAP}[\w'’]*"
    rf"(?:[-‐‑][\w'’]+)*)"
)
_SMALL = rf"(?:{BLANK}(?:de{BLANK}la|de{BLANK}l['’]|sur|en|lès|les){BLANK}?{_CAP}[\w'’]*(?:[-‐‑][\w'’]+)*)"
_TOWN = (
    rf"(?:{_FIRST_OF_SEVERAL}(?:[-‐‑][\w'’]+)*{_JOINED}{{1,2}}(?!['’\w])|{_WORD}(?:{_SMALL}(?={BLANK}?[,;.:)\n(]|"
    rf"{BLANK}(?:du|en|le|qui|a|et|dans)\b))?)"
)
_OF_TOWN = (
    "(?: (?:spécial|départemental|militaire|maritime))? (?:(?:de|du|des|de la|de l['’]) |d['’]_|de l['’]_)"
    f"(?:(?:la|le|les) (?={_CAP}))?{_TOWN}"
)


def _alternatives(patterns: Iterable[str]) -> str:
    """Make a pattern of alternatives, the longer ones first."""
    return "|".join(sorted(set(patterns), key=len, reverse=True))


def _names_in_full(courts: Iterable[Court]) -> str:
    return _alternatives(_full_name(name) for court in courts for name in court.names)


def _full_name(name: str) -> str:
    return " ".join(map(_plural, name.split()))


def _plural(word: str) -> str:
    """Make a pattern of a word of a name, also in the plural and as scans spoil it: "cour dappel", "conseil d'etat"."""
    if "'" not in word and word not in ("de", "du", "la", "et", "pour") and word[-1] not in "sx":
        word = f"{word[:-2]}(?:al|aux)" if word.endswith("al") else f"{word}s?"
    return word.replace("'", rf"['’]?{BLANK}?").replace("é", "[eé]").replace("è", "[eè]")


SINGLE_COURT = _names_in_full(_SINGLE_COURTS)
# Courts whose case law is cited by their full name and a date: "Cour de cassation, 3 mai 2010".
CASE_LAW_COURT = _names_in_full(court for court in COURTS if court.words & {"cassation", "conseiletat"})
_FIRST_WORDS = sorted({name.split()[0].removesuffix("al") for court in COURTS for name in court.names})
_SINGLE = Led(rf"(?<![\w-])(?:{SINGLE_COURT})(?!\w)", _FIRST_WORDS)
_LOCAL = Led(rf"(?<![\w-])(?:{_names_in_full(_LOCAL_COURTS)}){_OF_TOWN}", _FIRST_WORDS)
_TOWNLESS = Led(rf"(?<![\w-])(?:{_names_in_full(court for court in _LOCAL_COURTS if court.cite)})(?!\w)", _FIRST_WORDS)

_ORDINAL = rf"(?:{_alternatives(ORDINALS)}|[\dl]\d?{BLANK}?(?:[eè]re|re|er|nde|[eè]me|[eè]|o|°))"
_KINDS = (
    "civiles?", "sociale", "commerciale", "criminelle", "correctionnelle", "mixte", "prud['’]homale", "sociales",
    "financière", "économique", "rurale", "départementale", "spécialisée", "administrative", "détachée", "foraine",
)  # fmt: skip
_KIND = "(?:" + "|".join(_KINDS) + ")"
_OBJECT = (
    "(?:d['’]accusation|de l['’]instruction|des requêtes|des appels correctionnels|des mineurs|de la famille|"
    "des urgences|des prud['’]hommes|de la sécurité sociale|de la proximité|des référés|des affaires "
    "familiales|des vacations)"
)
_SECTION = rf"(?:_[,-]?_(?:section|sect\.?) (?:[A-Z]{{1,2}}|\d{{1,2}})(?!\w)|_,_{_ORDINAL} section(?!\w))"
# A day, as in "chambre sociale 4 mars 2008": not a chamber's number.
_A_DAY = rf"(?:[/.]\d|_(?:{_alternatives(FRENCH_MONTHS)})(?!\w))"
_TAIL = (
    f"(?: (?:{_KIND}|{_OBJECT}))?(?:_,_{_KIND})*(?: et {_KIND})?(?: (?-i:(?!(?:DE|DU|LA|LE|EN|ET|"
    rf"AU)\b)[A-Z]{{1,2}}|\d{{1,2}}(?:{DASH}\d{{1,2}})?(?!\d|[.°]|{DASH}\d|{_A_DAY}))"
    rf"(?![\w'’.°]))?(?: \({_ORDINAL} chambre(?: [A-Z](?!\w))?\))?{_SECTION}?"
)
_FORMATIONS = (
    r"pôle \d{1,2}(?:_[,–-]_chambre \d{1,2})?",
    rf"(?:{_ORDINAL}|(?<![\d.,-])\d{{1,2}}) chambre{_TAIL}",
    "pôle social",
    f"chambre (?:{_KIND}|{_OBJECT})(?: {_ORDINAL} section)?" + _TAIL.replace(f"(?: (?:{_KIND}|{_OBJECT}))?", "", 1),
    rf"chambre (?-i:\d{{1,2}}(?:{DASH}\d{{1,2}})?|[A-Z])(?![\w'’.°]){_SECTION}?",
    "assemblée plénière",
    "chambres réunies",
    "chambre mixte",
)
_FORMATION = Around(rf"(?<![\w-])(?:{'|'.join(_FORMATIONS)})(?!\w)", ["chambre", "assemblée", "pôle"], 20, 160)


def find_courts(text: str) -> list[Span]:
    """Find the courts that a text names in full, with their towns, in text order."""
    return sorted(match.span() for pattern in (_SINGLE, _LOCAL) for match in pattern.finditer(text))


def find_formations(text: str) -> list[Span]:
    """Find the chambers and other formations of courts that a text names in full, in text order."""
    return [match.span() for match in _FORMATION.finditer(text)]


_CIVIL = r"civ(?:iles?|\.|(?!\w))"
_OTHER_CHAMBERS = _alternatives(
    form
    for chamber in CHAMBERS
    if "civile" not in chamber.words
    for form in (*chamber.names, *map(short_form, chamber.short))
)
_CIVIL_NUMBER = rf"(?:{_ORDINAL}|[1-3](?!\d))(?!{_A_DAY})"
_CHAMBER = (
    rf"(?:{_ORDINAL}_(?:ch(?:ambre|\.)_)?{_CIVIL}|{_CIVIL}_(?:ch(?:ambre|\.)_)?{_CIVIL_NUMBER}|{_CIVIL}"
    rf"|(?:ch(?:ambre|\.)_)?(?:{_OTHER_CHAMBERS})(?!\w))"
)
# "Soc., 9 janv. 2018", "2e civ. 5 oct. 2023": where a chamber stands for the Cour de cassation.
_DATED = rf"(?=(?:_QPC)?_,?_(?:\d{{1,2}}(?:er)?{_A_DAY}|\d{{1,2}}-\d{{1,2}}-\d|\d{{4}}-\d\d-\d\d))"
_CHAMBERS = Scan(rf"(?<![\w.-]){_CHAMBER}(?!\w)")
_CHAMBER_ALONE = (
    rf"(?:[1-3](?:re|e|ère|ème)_{_CIVIL}|{_CIVIL}_[1-3]{_DATED}|(?=(?-i:[A-Z]))(?:{_CIVIL}_{_CIVIL_NUMBER}|civ(?:\.|{_DATED})"
    rf"|(?:ch\._)?(?:{_OTHER_CHAMBERS})(?:(?<=\.)|{_DATED})))"
)
SHORT_CHAMBER = _alternatives(short_form(form.split()[-1].rstrip(".")) for court in CHAMBERS for form in court.short)
# What follows a court in a citation, unlike "CE" for "ce".
_CITED = rf"(?=(?:_QPC)?(?:_[,(]|_\d)| (?:(?:du|le) |(?:sect|ass|réf|ord|juge|plén)(?:\.|\w)|{NUMBER_SIGN}))"
# "CC, 3 déc. 2009, n° 2009-595 DC": elsewhere the letters stand for other courts, or a code.
_CONSTITUTIONAL_LETTERS = r"(?-i:CC)(?=[^;\n]{0,60}?\d_(?-i:QPC|DC)\b)"
_LETTERS = r"(?-i:C\.?E|T\.?C|C\.?C)"  # letters that stand for a court only where they are cited


def _short_forms(courts: Iterable[Court]) -> list[str]:
    return [form for court in courts for form in court.short]


def _short_pattern(courts: Iterable[Court]) -> str:
    return f"(?:{_alternatives(map(short_form, _short_forms(courts)))})"


def _starts(form: str) -> list[str]:
    """Return the beginnings of an abbreviation by which a text is searched."""
    first = form.lower().replace(NO_BREAK, " ").split()[0]
    if form.isupper():
        return [form, f"{form[0]}.", f"{form[0]} ."]
    return [first.rstrip(".") if len(first) > 2 else first]


def _capitals(form: str) -> tuple[str, str]:
    first = form.replace(NO_BREAK, " ").split()[0].rstrip(".")
    return first.capitalize(), first.upper()


_CASSATION = [court for court in COURTS if "cassation" in court.words]
_SHORT = Led(
    r"(?<![\w/.-])(?=(?-i:[A-Z])|\d|[a-z]+\.|civ[ ][1-3][ ])"
    rf"(?:{_short_pattern(_CASSATION)}(?:_[,(]?_{_CHAMBER})?|{_CHAMBER_ALONE}{_CITED}"
    rf"|(?-i:CE|TC|C\.E\.|T\.C\.){_CITED}|{_CONSTITUTIONAL_LETTERS}|(?!{_LETTERS}\b){_short_pattern(_SINGLE_COURTS)}"
    rf"|{_short_pattern(_LOCAL_COURTS)} (?:de |d['’]|du )?(?:(?:la|le|les) (?={_CAP}))?{_TOWN})(?![\w°])",
    sorted(
        {start for form in _short_forms(COURTS) for start in _starts(form)}
        | {spelt for form in _short_forms(CHAMBERS) for spelt in _capitals(form) if spelt[0].isalpha()}
        | {"Civ", "CIV", "1re", "1ère", "2e", "2ème", "3e", "3ème"}
    ),
)


def find_short_courts(text: str) -> list[Span]:
    """Find the courts that a text names by abbreviations, in text order: "Cass. soc.", "CA Paris", "CE,"."""
    return [match.span() for match in _SHORT.finditer(text)]


def find_chambers(text: str) -> list[Span]:
    """Find what may be a chamber of the Cour de cassation where it is known to be one: "soc", "2e civ."."""
    return [match.span() for match in _CHAMBERS.finditer(text)]


# Chambers of a court named just before: what follows a comma there is abbreviated in many ways.
_RANK = rf"(?:{_ORDINAL}|\d{{1,2}})"
_RANKS = rf"{_RANK}(?:_(?:,|et|[-–/])_{_RANK})?"
_CH = r"ch(?:ambres?(?!\w)|amb?\.|bre\.?(?!\w)|\.|(?=[ \u00a0]))"
_LETTER_OR_NUMBER = (
    rf"(?:(?-i:[A-Z]{{1,2}})(?![\w'’.])|\d{{1,2}}(?:{DASH}\d{{1,2}})?(?:_(?-i:[A-Z])(?![\w'’.]))?"
    rf"(?![\w/]|{DASH}\d|{_A_DAY}))"
)
_MATTER = (
    r"(?:civ(?:iles?|\.)?|soc(?:iales?|\.)?|comm?(?:erciale|\.)?|crim(?:inelle|\.)?|corr?(?:ectionnelle|\.)|pénale|pén\."
    r"|prud['’]?h?(?:omale|\.)|mixte|réun(?:ies|\.)|rurale|solennelle|économique|éco\.|financière|spécialisée|spéc\."
    r"|de la famille|fam(?:ille|\.)|de l['’]instruction|instr?\.|d['’]accusation|acc\.|des référés|réf\.|des? urgences"
    r"|urg\.|des mineurs|spéc\. mineurs|des appels corr(?:ectionnels|\.)|app?\. corr\.|des? expropriations?|exprop?r?\."
    r"|de la sécurité sociale|séc\. soc\.|de la protection sociale|prot\. soc\.|des? baux ruraux|proc\. coll\."
    r"|de proximité|départementale|détachée|presse|administrative|adm\.)(?!\w)"
)
_OF_PRUDHOMMES = "encadrement|industrie|commerce|activités diverses|agriculture"
_SECT = rf"(?:(?:section|sect?\.)_(?:{_LETTER_OR_NUMBER}|(?:{_OF_PRUDHOMMES})(?!\w))|{_RANK}_(?:section|sect?\.)(?!\w))"
_AFTER_COURT = "|".join(
    (
        rf"p(?:ôle|ole|\.)_\d{{1,2}}(?!\d)(?:_[,–—-]?_(?:{_CH}_\d{{1,2}}(?:_(?-i:[A-Z])(?!\w))?|{_RANK}_{_CH})"
        rf"|{DASH}\d{{1,2}}(?!\d))?",
        rf"{_RANKS}_{_CH}(?:_{_MATTER}){{0,3}}(?:_{_LETTER_OR_NUMBER})?",
        rf"{_RANKS}_{_MATTER}(?:_{_LETTER_OR_NUMBER})?",
        rf"{_CH}_(?:{_MATTER}(?:_(?:,|et)?_{_MATTER}){{0,3}}(?:_(?:{_LETTER_OR_NUMBER}|{_RANK}(?!{_A_DAY})(?=_,)))?"
        rf"|{_LETTER_OR_NUMBER})",
        _SECT,
        rf"{_RANKS}_(?:s(?:ous|s)?[-.]?[ ]?sect(?:ions?|\.)|SSR?\b)(?:_réun(?:ies|\.))?",
        r"(?:form(?:ation|\.) )?(?:plén(?:ière|\.)|rest(?:reinte|r?\.))(?:_ch\.)?",
        rf"(?:civile|criminelle)_,_{_CH}_{_MATTER}(?:_[1-3](?!\d|{_A_DAY}))?",  # titles of Légifrance
        r"ass(?:emblée|\.)(?:_(?:plén(?:ière|\.)|(?:du )?cont(?:entieux|\.)))?",
        r"sect(?:ion|\.)?(?:_(?:du )?cont(?:entieux|\.))?(?!\w)",
        rf"(?:civ|soc|com|corr)\.(?:_{_LETTER_OR_NUMBER})?|gr?(?:an)?de?[. ]?_{_CH}|gr\._{_CH}",
        r"(?:ord(?:onnance|\.)_(?:de )?)?(?:juge des référés|réf(?:érés?|\.))|ord\.|1er prés\.|JEX|JAF|JLD|JCP",
    )
)
_CHAMBERS_AFTER = Scan(rf"(?:_[,(–-]?_(?:{_AFTER_COURT})(?!\w))+")
# "la 4e ch. soc. de la CA Toulouse"
_CHAMBER_BEFORE = Scan(rf"(?<![\w/.-])(?:{_RANK}_{_CH}|{_CH})_(?:{_MATTER}_)?(?:(?:de la|du|de l['’])_)?\Z")
_JOINS_COURT = re.compile(spaced(r"_[,(]?_(?:(?:de la|de l['’]|de|du|d['’])_)?"), re.IGNORECASE)
# "Paris, 4 mars 2020, n° 17/08123": in reviews the town stands for its court of appeal.
TOWNS_OF_APPEAL, TOWNS_OF_TRIBUNALS = _TABLES["towns_of_appeal"].split(), _TABLES["towns_of_tribunals"].split()
_TOWN_ALONE = Led(
    rf"(?<![\w’'-])(?-i:{'|'.join(TOWNS_OF_APPEAL)})(?=(?:_,_[^,;\n]{{1,25}})?_,_\d{{1,2}}(?:er)?{_A_DAY}[^,;\n]{{0,20}},_"
    rf"(?:RG_)?(?:{NUMBER_SIGN}_)?(?:RG_)?\d\d[/-]\d{{3,6}}(?!\d))",
    TOWNS_OF_APPEAL,
)
_LONGEST_CHAMBER = 40  # characters of a chamber before its court


def find_cited_courts(text: str) -> list[Span]:
    """Find courts with their chambers, in text order: 'CA Paris, pôle 6, ch. 3', 'CE, 5e et 6e ch. réun.'.

    A chamber that a text names in full, "la chambre sociale", is found alone too.
    """
    named = {*find_courts(text), *find_short_courts(text)}
    ends = {end for _, end in named}  # of courts with their towns
    named |= {match.span() for match in _TOWN_ALONE.finditer(text) if match.end() not in ends}
    courts: list[Span] = []
    for start, end in sorted([*named, *find_formations(text)], key=lambda span: (span[0], -span[1])):
        if courts and start < courts[-1][1]:
            continue
        joined = courts and start > courts[-1][1] and _JOINS_COURT.fullmatch(text, courts[-1][1], start)
        if joined and not (
            "(" in joined.group() and (start, end) in named
        ):  # "la cour d'appel de Paris (Soc., 3 avril"
            courts[-1] = (courts[-1][0], end)
        else:
            courts.append((start, end))
        if (start, end) in named:
            courts[-1] = _with_chambers(text, courts[-1], courts[-2][1] if len(courts) > 1 else 0)
    return courts


def _with_chambers(text: str, court: Span, done: int) -> Span:
    start, end = court
    before = _CHAMBER_BEFORE.pattern.search(text, max(start - _LONGEST_CHAMBER, done), start)
    after = _CHAMBERS_AFTER.pattern.match(text, end)
    if after and "(" in after.group() and ")" not in text[after.start() : after.end() + 1]:
        after = None  # "la cour d'appel de Paris (Soc., 3 avril 2024, n° …)": of another decision
    return before.start() if before else start, after.end() if after else end


def find_named_courts(text: str) -> list[Span]:
    """Find all courts and formations that a text names, also without their towns; spans may overlap."""
    townless = (match.span() for match in _TOWNLESS.finditer(text))
    return sorted({*find_courts(text), *find_formations(text), *find_short_courts(text), *townless})


@cache
def _patterns_at_start() -> list[tuple[Court, re.Pattern[str]]]:
    forms = (_alternatives([*map(_full_name, court.names), *map(short_form, court.short)]) for court in COURTS)
    patterns = (re.compile(spaced(rf"(?:{form})(?!\w)"), re.IGNORECASE) for form in forms)
    return list(zip(COURTS, patterns, strict=True))


def court_at_start(text: str) -> tuple[Court, int] | None:
    """Return the court that a text begins with, and where its name ends, before its town."""
    return next(
        ((court, match.end()) for court, pattern in _patterns_at_start() if (match := pattern.match(text))), None
    )


# Patterns of names and abbreviations in a text of words without accents and signs.


def _folded_name(name: str) -> str:
    plain = without_accents(name).replace("prud'h", "prudh")
    return " ".join(word.replace("'", " ") if "'" in word else _plural(word) for word in plain.split())


@cache
def _folded_patterns() -> list[tuple[re.Pattern[str], str]]:
    """Return the pattern of each court's names and abbreviations in folded text, and its words."""
    patterns = []
    with_town = {form for court in _LOCAL_COURTS for form in court.short}
    for court in COURTS:
        short = (  # "TC Paris" is not the Tribunal des conflits
            " ?".join(form.lower() if form.isupper() else re.findall("[a-z]+", without_accents(form.lower())))
            + ("(?! [a-z])" if form in with_town and not court.has_town else "")
            for form in court.short
        )
        forms = _alternatives([*map(_folded_name, court.names), *short])
        patterns.append((re.compile(rf"\b(?:{forms})\b"), f" {' '.join(court.words)} "))
    return patterns


# What words of chambers stand for, abbreviated ("soc") or counted ("deuxieme").
_WORDS = {word: str(number) for word, number in ORDINALS.items() if word not in ("premier", "second")} | {
    short.rstrip("."): word
    for chamber in CHAMBERS
    for form in chamber.short
    for short, word in zip(
        without_accents(form).split()[::-1], without_accents(chamber.names[0]).split()[::-1], strict=False
    )
}
_EMPTY_WORDS = frozenset("chambre chambres ch cour tribunal de d du des la le l les et section en au".split())
_RANK_NUMBER = re.compile(r"\b(\d+)(?:re|ere|er|eme|e|nde)\b")


@lru_cache(maxsize=4096)
def words_of_value(value: str) -> frozenset[str]:
    """Return the words that distinguish a court, chamber or outcome, abbreviations expanded."""
    prose = re.sub(r"\bà\b", " ", normalized(value.lower()))  # unlike the "A" of "10e chambre A"
    text = " ".join(re.findall(r"[a-z]+|\d+[a-z]*", without_accents(prose)))
    text = re.sub(r"\bst(e?)\b", r"saint\1", text.replace("prud hommes", "prudhommes"))
    for pattern, words in _folded_patterns():
        text = pattern.sub(words, text)
    text = re.sub(r"\bcivile?s?\b", "civile", _RANK_NUMBER.sub(r"\1", text))
    return frozenset(_WORDS.get(word, word) for word in text.split()) - _EMPTY_WORDS


UNIQUE_COURTS = frozenset().union(*(court.words for court in _SINGLE_COURTS))
COURT_WORDS = frozenset().union(*(court.words for court in COURTS))
CHAMBER_WORDS = frozenset(word for chamber in CHAMBERS for word in chamber.words if word.isalpha()) - {"assemblee"}
COURT_ACRONYMS = frozenset(form.lower() for court in COURTS for form in court.short if form.isupper())
_NO_TOWN = frozenset(_TABLES["no_town"].split())


class CourtName(NamedTuple):
    """Words of a court's name: its type, chamber and town, where stated."""

    types: frozenset[str]
    chambers: frozenset[str]  # with the number of a civil one
    town: frozenset[str]

    def contradicts(self, other: "CourtName") -> bool:
        """Can the two names not be of one court?"""
        if self.types and other.types and not self.types & other.types:
            return True
        # Of a court of appeal only the town is known for sure: its chambers are called in many ways.
        of_cassation = "cassation" in self.types | other.types or not (self.types and other.types)
        return bool(
            (of_cassation and _conflict(self.chambers, other.chambers))
            or (self.types and _conflict(self.town, other.town))
        )

    def agrees_with(self, other: "CourtName") -> bool:
        """Is the court named certainly this one, by its type, and its town if it has one?"""
        known = (self.types or self.chambers) and other.types and self.town <= other.town
        return bool(known) and not self.contradicts(other)


def _conflict(names: frozenset[str], others: frozenset[str]) -> bool:
    return bool(names and others and not names <= others and not others <= names)


_RANKED = "(?:[123](?:er?|re|de?|nde|eme|ere|o|°)?)"
# "2e civ.", "Soc.": abbreviated and without a court, a chamber is of the Cour de cassation; "chambre sociale" is not.
_OF_CASSATION = re.compile(rf"\s*(?:{_RANKED}\s*civ|civ\.?\s*{_RANKED}|civ|soc|comm?|crim)\.?\s*")


def parse_court(name: str) -> CourtName:
    """Return the type, the chamber and the town of a court, as far as its name states them."""
    words = words_of_value(name)
    types, chambers = words & COURT_WORDS, words & CHAMBER_WORDS
    of_one_court = {"pleniere", "mixte", "criminelle"} | ({"reunies"} if not any(map(str.isdecimal, words)) else set())
    if name.split(",")[0].strip() in TOWNS_OF_APPEAL:
        return parse_court(f"CA {name}")
    alone = _OF_CASSATION.fullmatch(without_accents(normalized(name.lower())))
    if not types and (chambers & of_one_court or alone):
        types = frozenset({"cassation"})
    town = (word for word in words - types - CHAMBER_WORDS - _NO_TOWN if word.isalpha() and len(word) > 2)
    return CourtName(
        types,
        chambers | (words & frozenset("123") if "civile" in chambers else frozenset()),
        frozenset(town) if types - UNIQUE_COURTS else frozenset(),
    )


_LEVELS = [(court.words, row["level"]) for court, row in zip(COURTS, _TABLES["courts"], strict=True) if "level" in row]


def level_of(juridiction: str, formation: str, title: str = "") -> Level:
    """Return the level of a decision's court, empty if unknown; from its title where `juridiction` is blank."""
    words = words_of_value(f"{juridiction} {formation}") if juridiction.strip() else words_of_value(title)
    return next((level for court, level in _LEVELS if court <= words), "")
