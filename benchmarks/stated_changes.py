"""One stated thing of a French clause changed or respelt: date, sum, rate, count, article, name, court, negation, direction.

In: a clause of a decision. Out: `Change`s, the clause with one thing changed, and what must then stand in no decision
read for the change to be false. `FALSE` holds a rule a kind, `RESPELT` the honest spellings of the same things.
"""

# ruff: noqa: E501 - a wording a row is easier to read than one broken over lines

import random
import re
from collections.abc import Callable
from typing import NamedTuple

from answer_material import MONTHS

UNITS = "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize".split()
TENS = {20: "vingt", 30: "trente", 40: "quarante", 50: "cinquante", 60: "soixante", 80: "quatre-vingt"}
ORDINALS = "premier deuxième troisième quatrième cinquième sixième septième huitième neuvième dixième".split()
ENGLISH = "January February March April May June July August September October November December".split()
ABBREVIATED = "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.".split()
ROMAN = "I II III IV V VI VII VIII IX X XI XII".split()
FULL_WIDTH = str.maketrans("0123456789", "０１２３４５６７８９")
ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
BOLD_DIGITS = str.maketrans("0123456789", "𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗")
NAMES = "Durandeau Lemercier Vasseur Pontignac Archambault Quillerou".split()
TOWNS = "Lille Brest Nantes Bordeaux Strasbourg Rouen Dijon Limoges Clermont-Ferrand Amiens Perpignan Cayenne".split()

DATE = rf"\b(?P<d>1er|[1-9]|[12]\d|3[01]) (?P<m>{'|'.join(MONTHS)}) (?P<y>1[89]\d\d|20\d\d)\b"
SUM = r"(?<![\d,.])(?<!\d )(?P<n>[1-9]\d{0,2}(?:[ .]\d{3})+|[1-9]\d{2,5})(?P<c>,\d\d)? ?(?P<cur>euros|francs|€|F)(?!\w)"
RATE = r"(?<![\d,.])(?P<r>\d{1,2}(?:,\d{1,2})?) ?%"
COUNTED = (
    "voix suffrages bulletins tracts exemplaires salariés électeurs candidats communes affiches membres personnes "
    "requêtes requérants procurations émargements bureaux enveloppes sièges mois jours ans années semaines heures "
    "logements parts actions témoins véhicules contrats sociétés réunions courriers lettres"
).split()
COUNT = rf"(?<![\d,.])(?<!\d )(?P<n>\d{{1,3}}) (?P<what>{'|'.join(COUNTED)})\b"
COUNT_WORDS = rf"\b(?P<n>{'|'.join(UNITS[2:13])}) (?P<what>{'|'.join(COUNTED)})\b"
MEASURE = r"(?<![\d,.])(?P<n>\d+(?:[ ,]\d+)?) ?(?P<u>mètres|kilomètres|km|hectares|tonnes|m²|m2|kg|heures|minutes)\b"
PLACED = (
    r"(?P<n>\d{1,2})(?P<suffix>ère|er|ème|è|e) (?P<what>circonscription|chambre|section|arrondissement|bureau|canton)\b"
)
ORDINAL = (
    rf"\b(?P<o>{'|'.join(ORDINALS[1:])}) (?P<what>alinéa|phrase|branche|moyen|tour|grief|chambre|circonscription)\b"
)
ARTICLE = r"\barticle (?P<l>(?:L\. ?O|L|R|D)\. ?)?(?P<n>\d+(?:-\d+)*)(?![\d-])"
CODES = (
    "code électoral|code du travail|code civil|code de procédure civile|code pénal|code de commerce|"
    "code de la sécurité sociale|code général des impôts|code de procédure pénale|code de la consommation|"
    "code rural et de la pêche maritime|code des assurances|code de l'environnement"
)
CODED = rf"(?P<a>\barticles? (?:(?:L\. ?O|L|R|D)\. ?)?\d+(?:-\d+)*(?: et (?:(?:L|R)\. ?)?\d+(?:-\d+)*)?) du (?P<code>{CODES})\b"
TEXT_NUMBER = r"\b(?P<what>loi organique|loi|ordonnance|décret|directive) n[°o] ?(?P<n>\d{2,4}-\d+)"
CASE_NUMBER = r"\bn° (?P<n>(?:[A-Z] )?\d\d-\d\d\.\d{3}|\d{2,4}-\d{3,5} AN)\b"
PERSON = r"\b(?P<t>M\.|Mme|Mlle|Monsieur|Madame) (?P<first>[A-ZÉ][a-zéèëïç-]+ )?(?P<last>[A-ZÉ][\w-]{3,})"
COMPANY = r"\bsociété (?P<n>(?:[A-Z][\w-]{2,})(?: [A-Z][\w-]+)*)"
TOWN = r"\b(?P<what>cour d'appel de|tribunal judiciaire de|tribunal de grande instance de|conseil de prud'hommes de|commune de|maire de|tribunal d'instance de|préfecture de) (?P<n>[A-ZÉ][\w'-]+)"
DEPARTMENT = r"\bcirconscription (?P<p>du département |du |de la |de l'|des |d'|de )(?P<n>[A-ZÉ][\w'-]+)"
VERB = (
    r"\b(?P<s>(?!(?:qui|ne|pas|plus|que|dont|et|ou)\b)[\w-]{3,}) "
    r"(?P<v>est|sont|a|ont|peut|peuvent|doit|doivent|était|étaient|avait|avaient|constitue|constituent|résulte|permet|prévoit) (?!(?:pas|plus|ni|que|aucun|point)\b)"
)
NEGATED = r"\b(?P<ne>ne |n['’])(?P<v>\w+) (?P<pas>pas|plus) "
OPPOSITES = {
    "supérieur/inférieur": r"\b(supérieur|inférieur)(?=e?s?\b)", "plus/moins": r"\b(au plus|au moins|plus de|moins de)\b",
    "avant/après": r"\b(avant|après) (?=le |la |l'|les )", "sans/avec": r"\b(sans|avec) (?=qu|\w{4,})",
    "recevable/irrecevable": r"(?<!\w)(irrecevable|recevable)(?=s?\b)", "régulier/irrégulier": r"(?<!\w)(irréguli|réguli)(?=er|ère)",
    "éligible/inéligible": r"(?<!\w)(inéligible|éligible)(?=s?\b)", "rejette/accueille": r"(?<!\w)(rejet|accueill)(?=ée?s?\b)",
    "confirme/infirme": r"(?<!\w)(confirm|infirm)(?=ée?s?\b|e\b|er\b|ant\b)", "accordé/refusé": r"(?<!\w)(accord|refus)(?=ée?s?\b)",
    "favorable/défavorable": r"(?<!\w)(favorable|défavorable)(?=s?\b)", "augmentation/diminution": r"\b(augmentation|diminution)\b",
    "demandeur/défendeur": r"\b(demandeur|défendeur)(?=s?\b)", "gain/perte": r"\b(bénéfice|perte)\b",
    "positif/négatif": r"\b(excédentaire|déficitaire)\b",
    "possible/impossible": r"(?<!\w)(possible|impossible|valable|suffisant|insuffisant)(?=e?s?\b)", "toujours/jamais": r"\b(toujours|jamais)\b",
    "tout/aucun": r"\b([Tt]out|[Aa]ucun) (?=électeur|candidat|salarié|employeur|contrat|citoyen|acte)",
}  # fmt: skip


class Change(NamedTuple):
    """A clause with one thing changed."""

    text: str
    absent: tuple[str, ...] = ()  # words that must stand in no decision read, typography left aside
    pattern: str = ""  # a regular expression that must match in no decision read


Rule = Callable[[random.Random, str], Change | None]
Spelling = Callable[[random.Random, re.Match[str]], str | None] | str


def in_words(n: int) -> str:
    """Spell a number from 0 to 999,999."""
    for unit, name in ((1000, "mille"), (100, "cent")):
        if n >= unit:
            head = "" if n < 2 * unit else in_words(n // unit) + " "
            plural = "s" if unit == 100 and n % 100 == 0 and n >= 200 else ""
            return (head + name + plural + (f" {in_words(n % unit)}" if n % unit else "")).strip()
    if n < len(UNITS):
        return UNITS[n]
    ten = max(one for one in [10, *TENS] if one <= n)
    joint = " et " if n % 10 == 1 and n < 80 else "-"
    return f"{TENS.get(ten, 'dix')}" + (f"{joint if n != 81 else '-'}{in_words(n - ten)}" if n > ten else "")


def grouped(n: int, separator: str = " ") -> str:
    """Write a number with its digits in groups of three."""
    return f"{n:,}".replace(",", separator)


def digits_of(text: str) -> int:
    """Read the digits of a text as one number."""
    return int(re.sub(r"\D", "", text))


def rule(pattern: str, *spellings: Spelling, alone: bool = True) -> Rule:
    """Make a rule that replaces one match of a pattern.

    What it wrote must stand nowhere: by itself (`alone`), or with a word on either side.
    """
    compiled = re.compile(pattern)

    def change(rng: random.Random, text: str) -> Change | None:
        matches = list(compiled.finditer(text))
        if not matches:
            return None
        match, spelling = rng.choice(matches), rng.choice(spellings)
        new = match.expand(spelling) if isinstance(spelling, str) else spelling(rng, match)
        if new is None or new == match.group():
            return None
        before = re.search(r"\w*\W*$", text[: match.start()])
        after = re.match(r"\W*\w*", text[match.end() :])
        window = (before.group() if before else "") + new + (after.group() if after else "")
        return Change(
            text[: match.start()] + new + text[match.end() :], (new if alone and re.search(r"\w", new) else window,)
        )

    return change


def dated(spelling: str, *, changed: bool = True, pattern: str = DATE) -> Rule:
    """Make a rule that writes a date of the clause, or another one, in a spelling."""
    compiled = re.compile(pattern)

    def change(rng: random.Random, text: str) -> Change | None:
        matches = list(compiled.finditer(text))
        if not matches:
            return None
        match = rng.choice(matches)
        day, month, year = digits_of(match["d"]), MONTHS.index(match["m"]) + 1, int(match["y"])
        if changed:
            part = rng.randrange(3)
            day = rng.choice([one for one in range(2, 29) if one != day]) if part == 0 else day
            month = rng.choice([one for one in range(1, 13) if one != month]) if part == 1 else month
            year += rng.choice([-10, -3, -2, -1, 1, 2, 3]) if part == 2 else 0
        new = spelt_date(spelling, day, month, year)
        loose = rf"\b0?{day}(?:er|e)?\b[^;\n]{{0,50}}?{MONTHS[month - 1]}[^;\n]{{0,50}}?{year}|0?{day}[/.-]0?{month}[/.-]{year}|{year}-0?{month:02}-0?{day:02}"
        return Change(text[: match.start()] + new + text[match.end() :], (), loose if changed else "")

    return change


def spelt_date(spelling: str, day: int, month: int, year: int) -> str:
    """Write a date in a spelling with fields d, m, y and their variants."""
    name = MONTHS[month - 1]
    return spelling.format(
        d="1er" if day == 1 else day,
        dd=f"{day:02}",
        m=name,
        mm=f"{month:02}",
        y=year,
        yy=f"{year % 100:02}",
        M=name.upper(),
        en=ENGLISH[month - 1],
        abbr=ABBREVIATED[month - 1],
        roman=ROMAN[month - 1],
        dw="premier" if day == 1 else in_words(day),
        yw=in_words(year),
        shy=f"{name[:2]}\u00ad{name[2:]}",
        zw=f"{name[:2]}\u200b{name[2:]}",
        dfull=str(day).translate(FULL_WIDTH),
        yfull=str(year).translate(FULL_WIDTH),
        dar=str(day).translate(ARABIC),
        yar=str(year).translate(ARABIC),
        dbold=str(day).translate(BOLD_DIGITS),
        ybold=str(year).translate(BOLD_DIGITS),
    )


def summed(spelling: str, *, other: bool = False) -> Rule:
    """Make a rule that writes a sum in a spelling with the fields n, s (grouped), cur, w (in words); `other`: another sum."""
    compiled = re.compile(SUM)

    def change(rng: random.Random, text: str) -> Change | None:
        matches = list(compiled.finditer(text))
        if not matches:
            return None
        match = rng.choice(matches)
        old = n = digits_of(match["n"])
        if other:
            n = rng.choice([n + 1000, n + 100, max(2, n // 10), n * 10, n + 10 ** (len(str(n)) - 1)])
        new = spelling.format(
            n=n, s=grouped(n), cur=match["cur"], w=in_words(n % 1_000_000), thin=grouped(n, "\u202f"),
            nb=grouped(n, "\u00a0"), ent=grouped(n, "&nbsp;"), dot=grouped(n, "."), full=grouped(n).translate(FULL_WIDTH),
            ar=grouped(n).translate(ARABIC), zw=f"{n // 10}\u200b{n % 10}", c=match["c"] or "",
            head=str(n)[:1], tail=str(n)[1:], foreign="francs" if match["cur"] in ("euros", "€") else "euros",
        )  # fmt: skip
        loose = r"\W{0,2}".join(str(n)) if other else ""
        changed = text[: match.start()] + new + text[match.end() :]
        return (
            None if other and n == old else Change(changed, () if other else (new,), rf"(?<!\d){loose}(?!\d)" * other)
        )

    return change


def other_number(pattern: str, spelling: str) -> Rule:
    """Make a rule that changes the number `n` of a pattern; {n} stands for the new one, {w} for it in words."""

    def new(rng: random.Random, match: re.Match[str]) -> str | None:
        found = match["n"]
        old = UNITS.index(found) if found in UNITS else digits_of(found)
        n = max(2, old + rng.choice([-3, -2, -1, 1, 2, 3, 4, 10]))
        groups = {key: value or "" for key, value in match.groupdict().items() if key != "n"}
        word = in_words(n) if n < 1000 else ""
        ordinal = ORDINALS[n - 1] if n <= 10 else f"{in_words(n)}ième".replace("eième", "ième")
        return None if n == old else spelling.format(n=n, w=word, o=ordinal, full=str(n).translate(FULL_WIDTH), ar=str(n).translate(ARABIC), **groups)  # fmt: skip

    return rule(pattern, new)


def _last_number(rng: random.Random, match: re.Match[str]) -> str:
    def changed(number: re.Match[str]) -> str:
        old = int(number.group())
        return str(old + rng.choice([step for step in (-2, -1, 1, 2, 10) if old + step > 0]))

    start, end = match.span("n")
    base, text = match.start(), match.group()
    return text[: start - base] + re.sub(r"\d+(?!.*\d)", changed, match["n"]) + text[end - base :]


def _digit(rng: random.Random, match: re.Match[str]) -> str:
    text, at = match.group(), rng.choice([m.start() for m in re.finditer(r"\d", match.group())])
    return text[:at] + str((int(text[at]) + rng.randint(1, 9)) % 10) + text[at + 1 :]


def _negated(rng: random.Random, match: re.Match[str], kind: str = "pas") -> str:
    ne = "n'" if match["v"][0] in "aeéo" else "ne "
    return f"{match['s']} {ne}{match['v']} {kind} "


def _opposite(rng: random.Random, match: re.Match[str]) -> str:
    pairs = (
        "supérieur inférieur|au plus/au moins|plus de/moins de|avant après|sans avec|irrecevable recevable|irréguli réguli|"
        "inéligible éligible|rejet accueill|confirm infirm|accord refus|favorable défavorable|augmentation diminution|"
        "demandeur défendeur|bénéfice perte|excédentaire déficitaire|possible impossible|valable nul|suffisant insuffisant|"
        "toujours jamais|Tout Aucun|tout aucun"
    )
    both = [re.split("/" if "/" in pair else " ", pair) for pair in pairs.split("|")]
    table = dict(both) | {other: one for one, other in both}
    old = match[1]
    return match.group().replace(old, table[old], 1)


def _code(name: str) -> Spelling:
    """Name another code than the article's own, by a full or a short name."""
    own = {"C. trav.": "code du travail", "C. pén.": "code pénal", "CPC": "code de procédure civile",
           "CGI": "code général des impôts", "C. civ.": "code civil", "C. élect.": "code électoral",
           "C. com.": "code de commerce", "CSS": "code de la sécurité sociale", "CPP": "code de procédure pénale"}  # fmt: skip
    same = own.get(name, name)

    def new(rng: random.Random, match: re.Match[str]) -> str | None:
        if match["code"] == same:
            return None
        joint = " " if name in own else " du "
        return f"{match['a']}{joint}{name}"

    return new


def _other_name(rng: random.Random, match: re.Match[str]) -> str:
    return match.group().replace(match["last"], rng.choice(NAMES))


def _in_place(group: str, others: list[str]) -> Spelling:
    def new(rng: random.Random, match: re.Match[str]) -> str:
        start, end = (at - match.start() for at in match.span(group))
        other = rng.choice([one for one in others if one != match[group]])
        return match.group()[:start] + other + match.group()[end:]

    return new


DATE_SPELLINGS = {  # false with another date; the honest ones are those of HONEST_DATES
    "plain": "{d} {m} {y}", "bold": "**{d} {m} {y}**", "bold month": "{d} **{m}** {y}", "bold year": "{d} {m} **{y}**", "italic day": "*{d}* {m} {y}",
    "underscored": "{d} _{m}_ {y}", "code": "`{d} {m} {y}`", "tags": "<b>{d}</b> {m} {y}", "no-break space": "{d}\u00a0{m}\u00a0{y}",
    "thin space": "{d}\u2009{m}\u2009{y}", "narrow space": "{d}\u202f{m}\u202f{y}", "entity": "{d}&nbsp;{m}&nbsp;{y}",
    "numeric entity": "{d}&#160;{m}&#xA0;{y}", "two spaces": "{d}  {m}   {y}", "line break": "{d}\n{m} {y}", "soft hyphen": "{d} {shy} {y}",
    "zero width": "{d} {zw} {y}", "zero-width spaces": "{d}\u200b {m}\u200b {y}", "word joiner": "{d}\u2060 {m} \u2060{y}",
    "byte-order mark": "{d}\ufeff {m} {y}", "parenthesised month": "{d} ({m}) {y}", "parenthesised year": "{d} {m} ({y})",
    "bracketed": "{d} [{m}] {y}", "comma": "{d} {m}, {y}", "Roman month": "{d} {roman} {y}", "Roman month, dots": "{d}.{roman}.{y}",
    "English": "{en} {d}, {y}", "English, day first": "{d} {en} {y}", "jour de": "{d}e jour de {m} {y}",
    "jour du mois": "{d}e jour du mois de {m} {y}", "de l'an": "{d} {m} de l'an {y}", "slashes": "{dd}/{mm}/{y}", "two-digit year": "{dd}/{mm}/{yy}",
    "dots": "{dd}.{mm}.{y}", "dashes": "{dd}-{mm}-{y}", "ISO": "{y}-{mm}-{dd}", "hyphened": "{d}-{m}-{y}", "abbreviated": "{d} {abbr} {y}",
    "capitals": "{d} {M} {y}", "day in words": "{dw} {m} {y}", "in words": "{dw} {m} {yw}", "full-width digits": "{dfull} {m} {yfull}",
    "Arabic digits": "{dar} {m} {yar}", "bold digits": "{dbold} {m} {ybold}",
}  # fmt: skip
HONEST_DATES = (
    "bold", "no-break space", "thin space", "entity", "slashes", "abbreviated", "capitals", "soft hyphen", "bold month",
)  # fmt: skip
SUM_SPELLINGS = {  # the same digits, another thing
    "CHF": "{s}{c} CHF", "USD": "{s}{c} USD", "EUR for francs": "{s}{c} {foreign}", "dollar sign": "${s}{c}", "US$": "US$ {s}",
    "dollar sign after": "{s} $", "pound": "£{s}", "pounds": "{s} livres sterling", "yens": "{s} yens", "yen sign": "¥{s}", "dollars": "{s} dollars",
    "Swiss francs": "{s} francs suisses", "F CFA": "{s} F CFA", "Md€": "{s} Md€", "M€": "{s} M€", "k€": "{s} k€",
    "millions": "{s} millions d'{foreign}", "millions of": "{s} millions de {cur}", "milliards": "{s} milliards de {cur}",
    "thousands": "{s} milliers de {cur}", "centimes": "{s} centimes", "minus": "−{s}{c} {cur}", "hyphen minus": "-{s}{c} {cur}",
    "minus word": "moins {s}{c} {cur}", "per cent": "{s} %", "no currency": "{s} voix", "bitcoins": "{s} bitcoins",
}  # fmt: skip
OTHER_SUMS = {
    "other sum": "{s} {cur}", "other sum, no-break": "{nb} {cur}", "other sum, thin": "{thin} {cur}", "other sum, entity": "{ent} {cur}",
    "other sum, dots": "{dot} {cur}", "other sum, joined": "{n} {cur}", "other sum, bold": "**{s}** {cur}",
    "other sum, bold digit": "**{head}**{tail} {cur}", "other sum, zero width": "{zw} {cur}", "other sum, in words": "{w} {cur}",
    "other sum, full width": "{full} {cur}", "other sum, Arabic": "{ar} {cur}", "other sum, sign before": "€ {s}",
    "other sum, tags": "<i>{s}</i> {cur}",
}  # fmt: skip
CODE_NAMES = [
    "C. trav.", "C. pén.", "CPC", "CGI", "C. civ.", "C. com.", "CSS", "CPP", "code civil", "code civil belge", "code pénal", "code de commerce",
    "Code de procédure pénale", "code du travail", "code électoral", "code de la route",
]  # fmt: skip

FALSE: dict[str, Rule] = {
    **{f"date, {name}": dated(spelling) for name, spelling in DATE_SPELLINGS.items()},
    "month and year": rule(rf"(?<!\d )(?<!er )\b(?P<m>{'|'.join(MONTHS)}) (?P<y>(?:19|20)\d\d)\b", _in_place("m", MONTHS)),
    "year": rule(r"\b(?P<pre>en|année|l'an|années) (?P<n>(?:19|20)\d\d)\b", _last_number),
    "day of an enumeration": rule(rf"\b(?P<n>\d{{1,2}}) et \d{{1,2}} (?:{'|'.join(MONTHS)}) \d{{4}}", _last_number),
    "hour": rule(r"(?P<n>\b\d{1,2}) heures", _last_number), **{f"sum, {name}": summed(spelling) for name, spelling in SUM_SPELLINGS.items()},
    **{f"sum, {name}": summed(spelling, other=True) for name, spelling in OTHER_SUMS.items()}, "rate, other": rule(RATE, _digit),
    "rate, points": rule(RATE, r"\g<r> points", r"\g<r> points de pourcentage", r"\g<r> pts"),
    "rate, per mille": rule(RATE, r"\g<r> ‰", r"\g<r> pour mille", r"\g<r>‰"), "rate, times": rule(RATE, r"\g<r> fois", r"×\g<r>"),
    "rate, euros": rule(RATE, r"\g<r> €", r"\g<r> euros"), "rate, minus": rule(RATE, r"−\g<r> %", r"-\g<r>%"),
    "rate, other, in words": rule(RATE, lambda rng, m: f"{in_words(int(m['r'].split(',')[0]) + 3)} pour cent"),
    "rate, other, p. 100": rule(RATE, lambda rng, m: f"{int(m['r'].split(',')[0]) + 2} p. 100"),
    "rate, decimal shifted": rule(RATE, lambda rng, m: f"0,{m['r'].replace(',', '')} %"), "count": other_number(COUNT, "{n} {what}"),
    "count, in words": other_number(COUNT, "{w} {what}"), "count, full width": other_number(COUNT, "{full} {what}"),
    "count, Arabic": other_number(COUNT, "{ar} {what}"), "count, bold": other_number(COUNT, "**{n}** {what}"),
    "count, thousands": rule(COUNT, r"\g<n> milliers de \g<what>", r"\g<n> millions de \g<what>"),
    "count, per cent": rule(COUNT, r"\g<n> % des \g<what>"),
    "count, what": rule(COUNT, _in_place("what", ["hectares", "tonnes", "kilomètres", "pages", "immeubles"])),
    "count words": other_number(COUNT_WORDS, "{w} {what}"), "count words, in digits": other_number(COUNT_WORDS, "{n} {what}"),
    "count words, what": rule(COUNT_WORDS, _in_place("what", ["hectares", "tonnes", "kilomètres", "pages", "immeubles"])),
    "duration unit": rule(rf"(?P<n>\d+|{'|'.join(UNITS[1:13])}) (?P<u>mois|jours|ans|années|semaines|heures)\b", _in_place("u", ["mois", "jours", "ans", "semaines", "siècles"])),
    "measure, unit": rule(MEASURE, _in_place("u", ["tonnes", "hectares", "litres", "pieds", "milles"])),
    "measure, number": rule(MEASURE, _last_number), "ordinal": other_number(PLACED, "{n}e {what}"),
    "ordinal, n° before": other_number(PLACED, "n° {n}e {what}"), "ordinal, in words": other_number(PLACED, "{o} {what}"),
    "ordinal, superscript": other_number(PLACED, "{n}ᵉ {what}"), "ordinal, tags": other_number(PLACED, "{n}<sup>e</sup> {what}"),
    "ordinal words": rule(ORDINAL, _in_place("o", [*ORDINALS[1:], "dernier"])),
    "ordinal words, in digits": rule(ORDINAL, lambda rng, m: f"{ORDINALS.index(m['o']) + rng.choice([2, 3, 4])}e {m['what']}"),
    "article": rule(ARTICLE, _last_number),
    "article, letter": rule(ARTICLE.replace(")?(?P<n>", ")(?P<n>"), lambda rng, m: f"article {'R' if m['l'][0] == 'L' else 'L'}. {m['n']}"),
    "article, suffix": rule(ARTICLE, r"article \g<l>\g<n>-9"), "article, bis": rule(ARTICLE, r"article \g<l>\g<n> bis", r"article \g<l>\g<n> ter"),
    "article, abbreviated": rule(ARTICLE, lambda rng, m: _last_number(rng, m).replace("article", "art.")),
    "article, joined": rule(ARTICLE, lambda rng, m: _last_number(rng, m).replace(". ", ".")),
    "article, bold": rule(ARTICLE, lambda rng, m: f"**{_last_number(rng, m)}**"),
    "article, full width": rule(ARTICLE, lambda rng, m: _last_number(rng, m).translate(FULL_WIDTH)),
    "article, no letter": rule(ARTICLE.replace(")?(?P<n>", ")(?P<n>"), r"article \g<n>"),
    **{f"code, {name}": rule(CODED, _code(name)) for name in CODE_NAMES}, "law number": rule(TEXT_NUMBER, _last_number),
    "law kind": rule(TEXT_NUMBER, _in_place("what", ["arrêté", "règlement", "circulaire"])), "case number": rule(CASE_NUMBER, _digit),
    "person": rule(PERSON, _other_name), "person, capitals": rule(PERSON, lambda rng, m: _other_name(rng, m).upper().replace("MME", "Mme")),
    "person, bold": rule(PERSON, lambda rng, m: f"**{_other_name(rng, m)}**"),
    "person, title": rule(PERSON, lambda rng, m: m.group().replace(m["t"], "Mme" if m["t"] in ("M.", "Monsieur") else "M.", 1)),
    "person, first name": rule(PERSON.replace("- )?", "- )").replace("ç-]+ )?", "ç-]+ )"), lambda rng, m: m.group().replace(m["first"], rng.choice(["Ursule ", "Isidore ", "Clotaire "]))),
    "company": rule(COMPANY, _in_place("n", NAMES)), "town": rule(TOWN, _in_place("n", TOWNS)),
    "department": rule(DEPARTMENT, _in_place("n", ["Calvados", "Finistère", "Aveyron", "Lozère", "Vaucluse", "Ariège"])),
    "lower court": rule(r"\b(?P<n>tribunal de grande instance|tribunal judiciaire|tribunal d'instance|conseil de prud'hommes|tribunal de commerce)\b", _in_place("n", ["tribunal maritime", "tribunal paritaire des baux ruraux", "tribunal administratif", "conseil de discipline"])),
    "chamber": rule(r"\b(?P<n>chambre (?:sociale|commerciale|criminelle|civile|mixte))\b", _in_place("n", ["chambre sociale", "chambre criminelle", "chambre commerciale"])),
    "negation added": rule(VERB, _negated), "negation added, plus": rule(VERB, lambda rng, m: _negated(rng, m, "plus")),
    "negation added, que": rule(VERB, lambda rng, m: _negated(rng, m, "que")),
    "negation added, jamais": rule(VERB, lambda rng, m: _negated(rng, m, "jamais")),
    "negation added, bold": rule(VERB, lambda rng, m: _negated(rng, m, "**pas**")),
    "negation added, guère": rule(VERB, lambda rng, m: _negated(rng, m, "nullement")), "negation dropped": rule(NEGATED, r"\g<v> ", alone=False),
    "negation dropped, aucun": rule(r"\b(?:ne |n')(?P<v>\w+) aucune? ", r"\g<v> un ", alone=False),
    "negation dropped, que": rule(r"\b(?:ne |n')(?P<v>est|sont|peut|peuvent|a|ont|doit|contenant|dispose|concerne|fait) (?:\w+ )?qu(?=e |')", r"\g<v> ce qu", alone=False),
    "negation dropped, ni": rule(r"\bni (?P<a>[^;.,]{3,60}?),? ni ", r"et \g<a> et ", alone=False),
    "negation dropped, sans": rule(r"\bsans (?=qu'|que |avoir |être |pouvoir )", "et ", alone=False),
    "exception dropped": rule(r"\b(?:sauf|hormis|excepté|à l'exception d(?:e|es|u)) (?P<a>l|les |le |la )", r"y compris \g<a>", alone=False),
    "exception added": rule(r"\b(?P<a>tous les|les électeurs|les candidats|les salariés|l'employeur) ", r"hormis \g<a> ", alone=False),
    "refusal dropped": rule(r"\ba(?:vait)? refusé d", "a accepté d", alone=False),
    "refusal added": rule(r"\b(?P<a>a|ont|avait|avaient) (?P<v>accepté|demandé|obtenu|informé|transmis|adressé|saisi|déposé|produit|signé|versé|payé)\b", r"\g<a> refusé d'avoir \g<v>", r"\g<a> prétendument \g<v>", alone=False),
    "à tort added": rule(r"\b(?P<a>a|ont) (?P<v>jugé|décidé|estimé|considéré|retenu|rejeté|déclaré|constaté)\b", r"\g<a> à tort \g<v>", alone=False),
    "à tort dropped": rule(r"\bà tort (?P<q>que|qu')", r"à bon droit \g<q>", alone=False),
    "rejects, accepts": rule(r"\b(?P<v>rejette|annule|casse|confirme|infirme|condamne|déboute) (?P<a>la |le |l'|les |M\. |Mme )", _in_place("v", ["rejette", "annule", "casse", "confirme", "infirme", "réforme", "homologue"]), alone=False),
    "is rejected": rule(r"\best rejetée?\b", "est accueillie", "est admise", "n'est pas rejetée", alone=False),
    "claims, is": rule(r"\b(?:soutient|prétend|allègue|fait valoir) (?P<q>que |qu')", r"a démontré \g<q>", alone=False),
    **{f"direction, {name}": rule(pattern, _opposite, alone=False) for name, pattern in OPPOSITES.items()},
}  # fmt: skip


RESPELT: dict[str, Rule] = {
    **{f"date, {name}": dated(DATE_SPELLINGS[name], changed=False) for name in HONEST_DATES},
    "sum, no-break": rule(SUM, lambda rng, m: f"{grouped(digits_of(m['n']), chr(160))}{m['c'] or ''} {m['cur']}"),
    "sum, thin": rule(SUM, lambda rng, m: f"{grouped(digits_of(m['n']), chr(8239))}{m['c'] or ''}\u202f{m['cur']}"),
    "sum, joined": rule(SUM, lambda rng, m: f"{digits_of(m['n'])}{m['c'] or ''} {m['cur']}"),
    "sum, sign": rule(SUM, lambda rng, m: f"{m['n']}{m['c'] or ''} {'€' if m['cur'] in ('euros', '€') else 'F'}"),
    "sum, bold": rule(SUM, lambda rng, m: f"**{m.group()}**"), "rate, joined": rule(RATE, r"\g<r>%"),
    "rate, in words": rule(RATE, r"\g<r> pour cent"), "rate, no-break": rule(RATE, "\\g<r>\u00a0%"),
    "count, bold": rule(COUNT, r"**\g<n>** \g<what>"),
    "count, words in digits": rule(COUNT_WORDS, lambda rng, m: f"{UNITS.index(m['n'])} {m['what']}"),
    "ordinal, e": rule(PLACED, lambda rng, m: f"{m['n']}{'re' if m['n'] == '1' else 'e'} {m['what']}"),
    "article, joined": rule(ARTICLE, lambda rng, m: m.group().replace(". ", ".")),
    "article, no dot": rule(ARTICLE, lambda rng, m: re.sub(r"(?<=[LRD])\. ?(?=\d)", "", m.group())),
    "article, abbreviated": rule(ARTICLE, lambda rng, m: m.group().replace("article", "art.")),
    "article, bold": rule(ARTICLE, lambda rng, m: f"**{m.group()}**"),
    "code, capital": rule(CODED, lambda rng, m: m.group().replace("du code", "du Code")),
    "code, short": rule(CODED.replace(CODES, "code du travail|code civil|code de commerce|code électoral|code pénal"), lambda rng, m: f"{m['a']} {({'code du travail': 'C. trav.', 'code civil': 'C. civ.', 'code de commerce': 'C. com.', 'code électoral': 'C. élect.', 'code pénal': 'C. pén.'})[m['code']]}"),
    "law number, no": rule(TEXT_NUMBER, r"\g<what> n°\g<n>"), "person, bold": rule(PERSON, lambda rng, m: f"**{m.group()}**"),
}  # fmt: skip
