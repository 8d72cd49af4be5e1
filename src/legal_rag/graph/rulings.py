"""What decisions do to others: one quashes, reverses, upholds, corrects another, or reports that a court did."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from legal_rag.base.text import Span, without_accents
from legal_rag.corpus.documents import Document
from legal_rag.extraction.entities import outcome_of
from legal_rag.graph.names import COURT, LOWER, Named, court_node, identifier_node
from legal_rag.law import find_courts, find_dates, find_identifiers
from legal_rag.law.citation import legal_date
from legal_rag.law.courts import APPEAL, SUPREME, find_short_courts, level_of, words_of_value
from legal_rag.law.keys import canonical_key
from legal_rag.law.outcomes import ANNULATION, CASSATION, CONFIRMATION, INFIRMATION, REJET, appeal_ruling
from legal_rag.law.scanning import Around

OVERRULES, UPHOLDS, RECTIFIES, INTERPRETS = "overrules", "upholds", "rectifies", "interprets"
FOLLOWS = "follows"  # a decision on remand, the one that quashed the first
ON_REMAND = "sur renvoi"  # its detail
CONSTITUTIONAL = "constitutionnel"
ADMINISTRATIVE = frozenset(("caa", "conseiletat"))  # words of courts that rule on others
CAPTION_CHARS = 2000  # in which its caption names it
HEAD_CHARS = 6000  # in which a decision says what was appealed
DESCRIPTION_CHARS = 260  # from the noun, "arrêt", to the court and the day
MOST_BETWEEN = 130  # characters between court and day
MOST_AFTER = 40  # characters behind both in which a number may follow
MOST_BEFORE = 220  # characters of a sentence before its verb that are read
MOST_QUOTED = 3000  # characters of a quotation
DETAIL_CHARS = 200  # of the words of a ruling
MOST_STATED = 500  # characters of a statement that is given as what says so
CACHED_COURTS = 5000  # spellings of courts whose key is remembered
_RANKS = {"first": 0, "appeal": 1, "supreme": 2}
_REVERSED, _MAINTAINED = frozenset((CASSATION, ANNULATION, INFIRMATION)), frozenset((REJET, CONFIRMATION))
_NOUN = r"(?:arr[êe]ts?|jugements?|ordonnances?|d[ée]cisions?)"
_ANY_NOUN = re.compile(rf"\b{_NOUN}\b", re.IGNORECASE)
_ATTACKED = Around(
    r"(?:pourvois?|recours|appels?|requ[êe]tes?)\b[^;\n]{0,80}?\bcontre\s+(?:l['’]|le\s+|un\s+|la\s+|une\s+)"
    r"\s?(?:arr[êe]t|jugement|ordonnance|d[ée]cision)\b",
    ["contre"],
    100,
    60,
)
# In the head of a decision of a court of appeal.
_DEFERRED = re.compile(
    r"\bd[ée]cisions?\s+(?:d[ée]f[ée]r[ée]es?|attaqu[ée]es?|entreprises?|dont\s+appel)\b[^:;\n]{0,30}:"
    rf"|\bappel(?:ante?s?)?\s+(?:d['’]une?|du|de\s+la|de\s+l['’])\s{{0,3}}{_NOUN}\b",
    re.IGNORECASE,
)
# In that of the Cour de cassation, where the parties stand between.
_SEIZED = re.compile(
    r"\bstatuant\s+sur\s+les?\s+pourvois?\s+[^;]{0,1500}?\b(?P<below>contre\s+(?:l['’]|le\s+|la\s+)"
    r"\s?(?:arr[êe]t|jugement|ordonnance|d[ée]cision))\b",
    re.IGNORECASE,
)
# In that of an administrative court: "Par un arrêt n° …, la cour administrative d'appel de … a …", and the request.
_GIVEN = re.compile(r"\bPar\s(?:un|une)\s(?P<noun>arrêt|jugement|ordonnance|décision)\s")
_REQUESTED = re.compile(
    r"\bd['’]annuler\s(?:cette\s|cet\s|ce\s|la\s|le\s|l['’])(?P<noun>arrêt|jugement|ordonnance|décision)\b"
)
# The Cour de cassation's own narration: "selon l'arrêt attaqué (Lyon, 12 mars 2020)", a town for its court of appeal.
_REVIEWED = re.compile(
    r"\b(?P<noun>arr[êe]t|jugement|ordonnance|d[ée]cision)\b[^();.\n]{0,40}\sattaqu[ée]e?\s?,?\s?\((?P<below>[^()\n]{5,160})\)"
)
_TOWN = re.compile(r"\s*(?P<town>[A-ZÀ-Ý][\w'’-]+(?:[ -][A-Za-zÀ-ÿ'’-]+){0,4}?)\s?,")
_APPEALED = re.compile(
    rf"\bappels?\b[^;.\n]{{0,80}}\b(?:ce|cette|cet|du|dudit|ladite|le|la)\s{_NOUN}|\b(?:en|y)\s(?:a|ont)\s[^;.\n]{{0,30}}\bappel\b",
    re.IGNORECASE,
)
_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_JUDGMENT = re.compile(r"\b(?:jugement|ordonnance|d[ée]cision)s?\b", re.IGNORECASE)
_DAY_BEHIND = re.compile(r"(?:\s[^\d;.()«»]{0,70}?)?\s(?:du|le|en\sdate\sdu)\s", re.IGNORECASE)
_JUST_BETWEEN = re.compile(
    r"[\s,(]+(?:\([^()]{1,40}\)\s)?(?:(?:en\s|au\sfond\s)?(?:date\s)?(?:du|le)\s)?\d[^\n]{4,25}\Z"
)
_CAPTION = re.compile(
    r"(?<![Pp]ar\sjugement\sdu\s)(?P<court>(?i:T\.?[ ]?G\.?[ ]?I\b\.?|T\.[ ]?I\b\.?"
    r"|Tribunal\sd(?:e\s|['’])(?:Grande\s)?Instance"
    r"|Tribunal\s(?:de\sCommerce|de\sPolice|Correctionnel|Judiciaire))\s?(?i:d['’]|de\s|du\s)?"
    r"[A-ZÀ-Ý][\w'’-]+(?:[ -](?:[A-ZÀ-Ý][\w'’-]+|en|de|sur|les|la|le)){0,5})\s*(?:\([^()]{1,20}\)\s*)?"
    r"(?:au\sfond\s)?(?:en\sdate\s)?(?:du\s)?(?P<day>\d{1,2}(?:er)?[\s/.-][^\n]{0,12}?[\s/.-]\d{2}(?:\d\d)?(?!\d))"
)
# "sur renvoi après cassation (Soc., 3 mai 2018, pourvoi n° 16-12.345)", said of the decision under review.
_ON_REMAND = re.compile(
    r"\bsur\srenvoi\sapr[èe]s\scassation\s?\((?P<by>[^()]{8,120}(?:\([^()]*\))?[^()]{0,60})\)", re.IGNORECASE
)
# What a court to which a case was remitted says of itself, and how it names the quashing.
_IS_REMANDED = re.compile(
    r"\b(?:(?:sur|apr[èe]s)\srenvoi\b[^.;]{0,30}\bcassation|(?:vidant\sle|arr[êe]t\sde)\srenvoi"
    r"|renvoi\s(?:de|apr[èe]s)\scassation|(?:cour|juridiction)\sde\srenvoi|(?:saisine|saisie)\ssur\srenvoi"
    r"|d[ée]claration\sde\ssaisine|devant\sla\scour\sd['’]appel\b[^.;]{1,40}\bautrement\scompos[ée]e)\b",
    re.IGNORECASE,
)
_QUASHING = re.compile(r"\bcass(?:[ée]e?s?|e|ant|ent)\b|\bcassation\s(?:partielle|du|de\sl['’]arr[êe]t)", re.IGNORECASE)
_OF_CASSATION = re.compile(r"\bcour\sde\scassation\b", re.IGNORECASE)
_DAY_OF_COURT = re.compile(
    r"(?:[\s,]+\(?(?:\w+\s){0,2}chambre(?:\s\w+)?\)?)?[\s,]*(?:a,?\s)?(?:(?:par|selon|suivant)\s(?:(?:un|son)\s)?arr[êe]t\s)?"
    r"(?:rendu\s)?(?:en\sdate\s)?(?:du|le)\s",
    re.IGNORECASE,
)
_DAY_BEFORE = re.compile(
    r"\barr[êe]t\s(?:rendu\s)?(?:en\sdate\s)?(?:du|le)\s(?P<day>\d[^;.]{5,30}?)[\s,]+(?:de\s)?la\s"
    r"(?:(?:[\wè]+\s){1,3}de\sla\s)?\Z",
    re.IGNORECASE,
)
_NUMBER_OF_POURVOI = re.compile(r"\s?\(?,?\s?(?:pourvoi\s)?n\s?[°ºo]\s?(?:[A-Z]\s)?(\d\d-\d\d[.]?\d{3})", re.IGNORECASE)
_REFERS = re.compile(r"\brenvoi(?:e|ent)\b[^;]{0,160}?\b(?:devant|[àa])\s(?=l[ae']|l’|le\s|un|cette|ce)", re.IGNORECASE)
_THE_SAME = re.compile(
    r"(?:la|le)\s(?:même\s(?:cour|juridiction|tribunal)|(?:cour|juridiction)\sautrement)\b", re.IGNORECASE
)
# Statements of an operative part.
_OPENING = re.compile(r"[\s,:]*(?:(?:la\scour|le\stribunal|le\sconseil)\b[\s,:]*)?", re.IGNORECASE)
_REVERSES = re.compile(
    r"(?P<done>(?:casse|annule|infirme|r[ée]forme|[ée]mende)(?:nt)?)\b"
    rf"|[^;]{{0,120}}?\b{_NOUN}\b[^;]{{0,200}}?\b(?:est|sont)\s(?P<suffered>(?:annul|r[ée]form|infirm)\w+)",
    re.IGNORECASE,
)
_DATED = re.compile(rf"\b{_NOUN}\s(?:rendue?s?\s)?(?:du|le|en\sdate\sdu)\s(?=\d|1er)", re.IGNORECASE)
_CONFIRMS = re.compile(r"(?P<done>confirme(?:nt)?)\b", re.IGNORECASE)
_REJECTS = re.compile(r"(?P<done>rejette(?:nt)?)\b", re.IGNORECASE)
_WITHDRAWS = re.compile(r"rabat(?:tent)?\b", re.IGNORECASE)
_CORRECTS = re.compile(
    r"(?:rectifie(?:nt)?|ordonne\s(?:la|une)\srectification)\b"
    rf"|[^;]{{0,80}}\b{_NOUN}\b.{{0,160}}\b(?:est|sont|sera|seront)\s(?:ainsi\s)?rectifi",
    re.IGNORECASE,
)
_INTERPRETS = re.compile(
    rf"interpr[èe]te(?:nt)?\b|dit\sque\b[^;]{{0,20}}\b{_NOUN}\b[^;]{{0,160}}\b(?:doi(?:t|vent)\sêtre\s|s['’])interpr",
    re.IGNORECASE,
)
_IN_PART = re.compile(
    r"\b(?:seulement|sauf|partiel\w*|(?:en|pour)\spartie|surplus|autres\sdispositions|seule?s?\s(?:dispositions?|chefs?))\b"
    r"|\ben\s(?:ce|tant)\squ['’e]|[àa]\sl['’]exception\b"
    rf"|\barticles?\s[^;]{{1,40}}\b(?:d[ue]|de\sl['’])\s?{_NOUN}\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\bn\s?[°ºo]s?\s?(\d{5,8}|\d\d[A-Z]{2}\d{5})(?!\w)")
_CHANGES = re.compile(
    r"\b(?:rectifi|remplac|supprim|ins[ée]r|ajout|compl[ée]t|modifi|substitu)(?!cation)|\bnon\savenu", re.IGNORECASE
)
_VOID = re.compile(r"d[ée]clar\w+\snon\savenue?", re.IGNORECASE)
# What a text reports: "la Cour de cassation a cassé l'arrêt …", "l'arrêt …, cassé par …".
_DOING = ["cass", "annul", "infirm", "réform", "reform", "confirm", "rejet"]
_HAS_DONE = Around(
    r"\ba\s(?:partiellement\s)?(?:(?P<done>cass|annul|infirm|r[ée]form|confirm)[ée](?:\set\sannul[ée])?\b[^.;«»]{0,200}?"
    rf"|(?P<refused>rejet)[ée]\s(?:le|l['’]|les)\s?(?:pourvoi|appel)s?\b[^.;«»]{{0,120}}?\bcontre\s)"
    rf"\b(?P<of>(?:l['’]|le\s|la\s){_NOUN})\b",
    _DOING,
    20,
    270,
)
_DONE_BY = Around(
    r"\b(?P<done>cass|annul|infirm|r[ée]form|confirm)[ée]e?(?:\set\sannul[ée]e?)?(?:\spartiellement|\sen\spartie)?\spar\b",
    _DOING[:-1],
    0,
    60,
)
_SUBJECT = re.compile(
    r"[\s,]*(?:\([^()]{0,60}\))?[\s,]*(?:(?:qui\s)?(?:a|avait|fut)\s(?:[ée]t[ée]\s)?)?(?:partiellement\s)?"
)
_SENTENCE_END = re.compile(r"[;«»]|\n\n|(?<!\bM)(?<!\bMM)(?<!\bn)[.!?]\s+(?=[A-ZÀ-Þ])")
_KINDS = {"cass": CASSATION, "annul": ANNULATION, "infirm": INFIRMATION, "reform": INFIRMATION, "confirm": CONFIRMATION}


class Ruling(NamedTuple):
    """What a decision does to another, with the span of the text that says so."""

    source: Named
    target: Named
    type: str  # OVERRULES, UPHOLDS, RECTIFIES, INTERPRETS or FOLLOWS
    start: int
    end: int
    detail: str  # the outcome's words; of a ruling in part, those that limit it


class _Described(NamedTuple):
    """A decision as a text describes it, by court and day."""

    court: Named
    day: str  # ISO 8601
    number: str  # empty if the text gives none
    rank: int  # of its court, in `_RANKS`; -1 if unknown
    start: int
    end: int
    written: str = ""  # its number as the text has it: "14/00321" for 14/321

    @property
    def event(self) -> tuple[str, str]:
        """Its court and its day."""
        return self.court.key, self.day

    def named(self, within: str) -> Named:
        """Build its node; without a number it is known within the document only."""
        key = f"{described_key(self.court.key, self.day)}{self.number or f'@{within}'}"
        number = f", n° {self.written or self.number}" if self.number else ""
        return Named(key, "decision", f"{self.court.name}, {legal_date(self.day)}{number}")


# A key that `described_key` begins: with the number, or the id of the document that gives none.
DESCRIBED = re.compile(
    rf"{LOWER}(?P<court>{COURT}[^@]+?) (?P<day>\d{{4}}-\d\d-\d\d) (?:@(?P<doc_id>.+)|(?P<number>[^@].*))"
)


def _figures(number: str) -> str:
    """Return a case's number without what is before it: "14/00321" of "RG n° F 14/00321"."""
    return number.rpartition(" ")[2].rpartition("\xa0")[2].rpartition("°")[2]


def court_key(court: str, title: str) -> str:
    """Return the key of a document's court, without its chamber; from its title if need be; empty if unknown."""
    return _court_key(court or title[slice(*next(iter(find_courts(title)), (0, 0)))])


@lru_cache(CACHED_COURTS)
def _court_key(court: str) -> str:
    node = court_node(court)
    return node.key if node else ""


def described_key(court: str, day: str) -> str:
    """Return what the keys of the decisions that a court gave on a day begin with."""
    return f"{LOWER}{court} {day} "


def is_in_part(words: str) -> bool:
    """Tell whether the words of a ruling limit it to a part of the decision."""
    return _IN_PART.search(words.replace("partiellement sans renvoi", "")) is not None


def is_in_quotation(text: str, place: int) -> bool:
    """Tell whether a place is within « … »."""
    start = max(0, place - MOST_QUOTED)
    return text.rfind("«", start, place) > text.rfind("»", start, place)


def find_rulings(document: Document, node: Named, document_keys: set[str]) -> list[Ruling]:
    """Find what a decision does to others, and what it reports that courts did; each edge once.

    `document_keys` are the document's own keys, with those of the pourvois that it joins.
    """
    reader = _Reader(document, node, document_keys)
    rulings = (
        [*reader.own(), *reader.corrections(), *reader.reports(), *reader.remands()] if node.type == "decision" else []
    )
    unique: dict[tuple[str, str], Ruling] = {}
    for ruling in rulings:
        unique.setdefault((ruling.source.key, ruling.target.key), ruling)
    return list(unique.values())


def referred_to(document: Document, below: str) -> str:
    """Return the court to which a decision remits a case; of "la même cour, autrement composée" that is `below`."""
    text, part = document.content, document.reading.operative
    for match in _REFERS.finditer(text, part.start, part.end) if part else ():
        if is_in_quotation(text, match.start()):
            continue
        start, end = match.end(), min(match.end() + MOST_BETWEEN, part.end if part else 0)
        if _THE_SAME.match(text, start, end):
            return below
        courts = find_courts(text[start:end])[:1]
        if courts and not re.search(r"[;.]", text[start : start + courts[0][0]]):
            first, last = courts[0]
            return " ".join(text[start + first : start + last].split())
    return ""


class _Reader:
    def __init__(self, document: Document, node: Named, document_keys: set[str]) -> None:
        self._document, self._node, self._keys = document, node, document_keys
        self._text = document.content
        self._level = level_of(document.juridiction, document.formation, document.title)
        self._rank = _RANKS.get(self._level, -1)
        self._statements = document.reading.statements or self._whole_operative()

    def _whole_operative(self) -> list[Span]:
        """Return the operative part as one statement: "PAR CES MOTIFS, la cour confirme le jugement"."""
        part = self._document.reading.operative
        opening = _OPENING.match(self._text, part.start, part.end) if part else None
        return [(opening.end(), part.end)] if part and opening else []

    def own(self) -> Iterator[Ruling]:
        """Yield what the decision does to those below it, as far as its text names them by court and day."""
        if CONSTITUTIONAL in words_of_value(self._document.juridiction):  # it rules on elections, not on judgments
            return
        attacked, days = self._attacked()
        stated = list(self._stated())
        if not attacked and not stated:
            attacked = self._of_columns() or self._narrated()
            days = {day for _, day in attacked}
        for below, *_ in stated:
            known, span = attacked.get(below.event, (below, (below.start, below.end)))
            attacked[below.event] = (known if known.number else below), span
        days |= {below.day for below, *_ in stated} | self._stated_days()
        if len(attacked) == len(days) == 1:
            ((below, span),) = attacked.values()
            ruling = self._by_outcome()
            stated_kinds = {kind for _, kind, *_ in stated} or {UPHOLDS}
            if ruling and (ruling[0] == OVERRULES or UPHOLDS in stated_kinds):
                kind, detail, place = ruling
                yield Ruling(self._node, below.named(self._document.id), kind, *(place or span), detail=detail)
                return
            if not ruling and self._document.solution.strip():
                return
        # Several decisions were attacked, or the source's term for the outcome is wrong: its own words say what it did.
        for below, kind, detail in sorted(stated, key=lambda ruling: ruling[1] != OVERRULES):
            yield Ruling(self._node, below.named(self._document.id), kind, below.start, below.end, detail)

    def _by_outcome(self) -> tuple[str, str, Span | None] | None:
        """Return what the decision does to the only one below it, and in which words."""
        part = self._document.reading.operative
        if self._is_of_appeal and part and (said := appeal_ruling(self._text, part)):
            words = self._words(said.start, said.end)[:DETAIL_CHARS]
            detail = f"{said.kind} partielle : {words}" if said.in_part else said.kind
            spoken = said.start, min(said.end, said.start + MOST_STATED)
            return (UPHOLDS if said.kind == CONFIRMATION else OVERRULES), detail, spoken
        outcome = outcome_of(self._document.solution, self._level, self._text, None)
        statements = [(span, self._words(*span)) for span in self._statements]
        rulings = [(span, words) for span, words in statements if _REVERSES.match(words) or _CONFIRMS.match(words)]
        if outcome.kinds == {CASSATION}:
            rulings = rulings[:1]  # the others annul acts, not judgments
        limits = next(((span, words) for span, words in rulings if is_in_part(words)), None)
        limited = limits[1] if limits else ""
        place = limits[0] if limits else next((span for span, _ in rulings), None)
        detail = " : ".join(filter(None, (outcome.words, limited[:DETAIL_CHARS])))
        if outcome.kinds and (outcome.kinds <= _REVERSED or outcome.kinds == {CONFIRMATION, INFIRMATION}):
            return OVERRULES, detail, place
        refused = next((span for span, words in statements if _REJECTS.match(words)), None)
        return (UPHOLDS, detail, place or refused) if outcome.kinds and outcome.kinds <= _MAINTAINED else None

    @property
    def _is_of_appeal(self) -> bool:
        return self._level == APPEAL and ADMINISTRATIVE.isdisjoint(words_of_value(self._document.juridiction))

    def _of_columns(self) -> dict[tuple[str, str], tuple[_Described, Span]]:
        """Return the decision below that the columns name."""
        columns = (self._document.extra.get(f"lower_{name}") for name in ("court", "date", "number"))
        written, day, number = (str(value or "") for value in columns)
        court = court_node(written, within=self._document.id)
        if court is None or not _ISO_DAY.fullmatch(day):
            return {}
        rank = _RANKS.get(level_of(court.name, ""), -1)
        numbers = [ref.value for ref in find_identifiers(number)]
        below = _Described(court, day, numbers[0] if numbers else number, rank, -1, -1, _figures(number))
        return {below.event: (below, (-1, -1))} if rank < self._rank else {}

    def _narrated(self) -> dict[tuple[str, str], tuple[_Described, Span]]:
        """Return the only decision that a text says elsewhere was attacked, if it is certain which."""
        if self._level == SUPREME:
            reviewed = {
                below.event: below for match in _REVIEWED.finditer(self._text) if (below := self._reviewed(match))
            }
        else:
            reviewed = self._appealed() if self._is_of_appeal else {}
        return {event: (below, (below.start, below.end)) for event, below in reviewed.items()}

    def _reviewed(self, match: re.Match[str]) -> _Described | None:
        """Read "(Lyon, 12 mars 2020)" behind "l'arrêt attaqué", or a court with its town behind any other decision."""
        start, end = match.span("below")
        if is_in_quotation(self._text, start):
            return None
        if known := self._describe(start, end):
            return known if known.rank < self._rank else None
        town, dates = _TOWN.match(self._text, start, end), find_dates(self._text[start:end])
        if not (town and len(dates) == 1 and match["noun"].lower().startswith("arr")):
            return None
        of = "d'" if without_accents(town["town"][0]) in "AEIOU" else "de "
        court = court_node(f"cour d'appel {of}{town['town']}", within=self._document.id)
        number, written = self._number(self._text[start:end], end - start)
        day = dates[0].value.isoformat()
        return _Described(court, day, number, _RANKS[APPEAL], start, end, written) if court else None

    def _appealed(self) -> dict[tuple[str, str], _Described]:
        """Return the judgment that a court of appeal names in its caption or reports before its operative part.

        Of several the latest, where the text goes on to say that it was appealed.
        """
        days, day = self._stated_days(), self._document.decision_date
        captions = {below.event: below for below in self._in_caption()}
        reported = self._reported()
        for known in [captions] if len(captions) == 1 else [captions | reported, self._reported(orders=True)]:
            found = [below for below in known.values() if below.day < day and (not days or below.day in days)]
            last = max(found, key=lambda below: below.day, default=None)
            last = last and reported.get(last.event, last)
            if last and (len(found) == 1 or self._is_appealed(last)):
                return {last.event: last}
        return {}

    def _reported(self, *, orders: bool = False) -> dict[tuple[str, str], _Described]:
        """Return the judgments, or the orders, of courts of first instance that the text before its ruling reports."""
        part = self._document.reading.operative
        judgments: dict[tuple[str, str], _Described] = {}
        for noun in _JUDGMENT.finditer(self._text, 0, part.start if part else len(self._text)):
            if noun[0].lower().startswith("ord") == orders and not is_in_quotation(self._text, noun.start()):
                below = self._described_at(noun)
                if below and below.rank == _RANKS["first"]:
                    judgments.setdefault(below.event, below)
        return judgments

    def _in_caption(self) -> Iterator[_Described]:
        """Yield the judgments of a head that are named by court and day alone: "TGI AVIGNON du 16/10/00"."""
        for match in _CAPTION.finditer(self._text, 0, CAPTION_CHARS):
            dates = find_dates(match["day"])
            court = court_node(match["court"], within=self._document.id)
            if dates and court and _RANKS.get(level_of(court.name, ""), -1) == _RANKS["first"]:
                yield _Described(court, dates[0].value.isoformat(), "", _RANKS["first"], *match.span())

    def _described_at(self, noun: re.Match[str]) -> _Described | None:
        """Read a judgment whose day stands just behind the noun, its court in the same sentence on either side."""
        known = self._describe(noun.start(), noun.start() + DESCRIPTION_CHARS)
        dated = _DAY_BEHIND.match(self._text, noun.end())
        dates = find_dates(self._text[dated.end() : dated.end() + MOST_AFTER])[:1] if dated else []
        if not dated or not dates or dates[0].start:
            return known if known and _JUST_BETWEEN.search(self._text, known.start, known.end) else None
        end = dated.end() + dates[0].end
        behind = _SENTENCE_END.split(self._text[end : end + MOST_BETWEEN], maxsplit=1)[0]
        start = self._sentence_start(noun.start())
        after = [(end + first, end + last) for first, last in find_courts(behind)[:1]]
        before = [(start + first, start + last) for first, last in find_courts(self._text[start : noun.start()])[-1:]]
        places = after if after and not _ANY_NOUN.search(self._text, end, after[0][0]) else before
        court = court_node(self._text[slice(*places[0])], within=self._document.id) if places else None
        if court is None:
            return None
        rank = _RANKS.get(level_of(court.name, ""), -1)
        day, span = dates[0].value.isoformat(), (min(noun.start(), places[0][0]), max(end, places[0][1]))
        same = known if known and known.event == (court.key, day) else None
        return _Described(court, day, same.number if same else "", rank, *span, same.written if same else "")

    def _is_appealed(self, below: _Described) -> bool:
        """Tell whether a text says just before or after a decision that it was appealed."""
        before = self._text[max(0, below.start - MOST_AFTER) : below.start].lower()
        return "appel" in before or _APPEALED.search(self._text, below.end, below.end + HEAD_CHARS // 2) is not None

    def _attacked(self) -> tuple[dict[tuple[str, str], tuple[_Described, Span]], set[str]]:
        """Return the decisions that were attacked, by court and day, and all days that may be theirs."""
        attacked: dict[tuple[str, str], tuple[_Described, Span]] = {}
        days: set[str] = set()
        for start, end in self._attacks():
            days |= {day.value.isoformat() for day in find_dates(self._text[end : end + DESCRIPTION_CHARS])[:1]}
            below = self._describe(end, end + DESCRIPTION_CHARS)
            if below and below.rank < self._rank:
                attacked.setdefault(below.event, (below, (start, end)))
        return attacked, days

    def _attacks(self) -> list[Span]:
        """Return where the text names the appeal before it: with its own number, else in its head, else anywhere."""
        with_number: list[Span] = []
        without: list[Span] = []
        for match in _ATTACKED.finditer(self._text):
            keys = {canonical_key(number) for number in find_identifiers(match.group()) if number.kind == "pourvoi"}
            if keys <= self._keys and not is_in_quotation(self._text, match.start()):
                (with_number if keys else without).append(match.span())
        return with_number or self._in_head() or without

    def _in_head(self) -> list[Span]:
        head = self._text[:HEAD_CHARS]
        if not ADMINISTRATIVE.isdisjoint(words_of_value(self._document.juridiction)):
            given = list(_GIVEN.finditer(head))
            requested = {match["noun"] for match in _REQUESTED.finditer(head, given[-1].end())} if given else set()
            return [match.span() for match in given if match["noun"] in requested]
        if self._level == APPEAL:
            return [match.span() for match in _DEFERRED.finditer(head)][:1]
        return [match.span("below") for match in _SEIZED.finditer(head)][:1]

    def _stated(self) -> Iterator[tuple[_Described, str, str]]:
        """Yield the decisions that statements of the operative part reverse or maintain, and in which words."""
        for start, end in self._statements:
            words = self._words(start, end)
            reverses = _REVERSES.match(words)
            match = reverses or _CONFIRMS.match(words) or _REJECTS.match(words)
            if match and (below := self._ruled_on(start, end, self._rank)):
                detail = words[:DETAIL_CHARS] if is_in_part(words) else match[match.lastgroup or 0]
                yield below, OVERRULES if reverses else UPHOLDS, detail

    def _stated_days(self) -> set[str]:
        """Return the days of the decisions that the operative part rules on: "confirme le jugement du 3 mai 2010"."""
        days = set()
        for start, end in self._statements:
            words = self._words(start, end)
            dated = _DATED.search(words) if _REVERSES.match(words) or _CONFIRMS.match(words) else None
            days |= {day.value.isoformat() for day in find_dates(words[dated.end() :])[:1]} if dated else set()
        return days

    def _words(self, start: int, end: int) -> str:
        return " ".join(self._text[start:end].split())

    def _ruled_on(self, start: int, end: int, rank: int) -> _Described | None:
        """Return the decision that a statement is about: the only one of the highest court below `rank` it names."""
        passage = self._text[start:end]
        ranks = [_RANKS.get(level_of(passage[slice(*span)], ""), -1) for span in find_courts(passage)]
        highest = max((known for known in ranks if known < rank), default=-1)
        places = [match.start() for match in _ANY_NOUN.finditer(self._text, start, end)]
        described = [self._describe(place, min(place + DESCRIPTION_CHARS, end)) for place in places]
        below = {known.event: known for known in described if known and known.rank == highest < rank}
        return next(iter(below.values())) if len(below) == 1 else None

    def _describe(self, start: int, end: int) -> _Described | None:
        """Read the court, the day and perhaps the number by which a passage describes a decision."""
        window = self._text[start:end].partition(";")[0]
        courts, dates = find_courts(window) or find_short_courts(window), find_dates(window)
        if not courts or not dates:
            return None
        (first, last), day = courts[0], dates[0]
        court = court_node(window[first:last], within=self._document.id)
        between = window[min(last, day.end) : max(first, day.start)]
        if court is None or len(between) > MOST_BETWEEN or _ANY_NOUN.search(between):
            return None
        after = max(last, day.end)
        number, written = self._number(self._text[start : start + after + 2 * MOST_AFTER], after)
        rank = _RANKS.get(level_of(court.name, ""), -1)
        span = start + min(first, day.start), start + after
        return _Described(court, day.value.isoformat(), number, rank, *span, written)

    def _number(self, passage: str, after: int) -> tuple[str, str]:
        """Return the number of the decision described, normalised and as written; behind `after` only an "RG"."""
        refs = [ref for ref in find_identifiers(passage) if ref.start < after + MOST_AFTER]
        numbers = [ref for ref in refs if ref.kind == "rg" or (ref.kind == "number" and ref.start < after)]
        if numbers and canonical_key(numbers[0]) in self._keys:
            return "", ""
        if numbers:
            return numbers[0].value, _figures(passage[numbers[0].start : numbers[0].end])
        match = _NUMBER.search(passage, 0, after)
        return (match[1], match[1]) if match else ("", "")

    def corrections(self) -> Iterator[Ruling]:
        """Yield the decisions of the same court that this one rectifies, interprets, withdraws or declares void."""
        court = court_node(self._document.juridiction)
        about = self._document.solution or f"{self._document.title} {self._text[:HEAD_CHARS]}"
        is_correction = "rectification" in about.lower()
        for start, end in self._statements if court else ():
            words = self._words(start, end)
            if withdrawn := _WITHDRAWS.match(words) or (is_correction and _VOID.search(words)):
                kind, detail = OVERRULES, withdrawn[0]
            elif _CORRECTS.match(words) or (is_correction and _CHANGES.search(words)):
                kind, detail = RECTIFIES, self._document.solution
            elif _INTERPRETS.match(words):
                kind, detail = INTERPRETS, ""
            else:
                continue
            for day, number, span in self._corrected(start, end):
                if court and day < self._document.decision_date:
                    below = _Described(court, day, number, self._rank, *span).named(self._document.id)
                    yield Ruling(self._node, below, kind, *span, detail=detail)

    def _corrected(self, start: int, end: int) -> Iterator[tuple[str, str, Span]]:
        """Yield the day, the number and the place of each decision that a statement names, by number or by day."""
        refs = [ref for ref in self._document.reading.identifiers if ref.kind != "article"]
        cited = {(ref.start, ref.end): ref.value for ref in reversed(refs)}  # of joined numbers the first, with all
        days = {value: day for (_, last), value in cited.items() if (day := self._day_after(last))}
        places = [span for span in sorted(cited) if start <= span[0] < end and not is_in_quotation(self._text, span[0])]
        dated = [(days[cited[span]], cited[span], span) for span in places if cited[span] in days]
        yield from dated
        for known in [] if dated else find_dates(self._text[start:end])[:1]:
            day = known.value.isoformat()
            numbers = {cited[span] for span in places} or {number for number, other in days.items() if other == day}
            if _ANY_NOUN.search(self._text, start, start + known.start) and len(numbers) <= 1:
                yield day, "".join(numbers), (start + known.start, start + known.end)

    def _day_after(self, place: int) -> str:
        """Return the day behind a number: "n° 93-1321 rendue par le Conseil constitutionnel le 24 novembre 1993"."""
        window = _SENTENCE_END.split(self._text[place : place + MOST_BETWEEN], maxsplit=1)[0]
        dates = find_dates(window)
        before = window[: dates[0].start] if dates else ""
        return dates[0].value.isoformat() if dates and not find_identifiers(before) else ""

    def reports(self) -> Iterator[Ruling]:
        """Yield what the text says that another court did to the decision of a lower one."""
        for match in _HAS_DONE.finditer(self._text):
            start = self._sentence_start(match.start())
            by = self._author(self._text[start : match.start()], nearest=-1)
            end = self._sentence_end(match.start("of"))
            yield from self._report(match, by, by and self._ruled_on(match.start("of"), end, by[2]))
        for match in _DONE_BY.finditer(self._text):
            start = self._sentence_start(match.start())
            places = [noun.start() for noun in _ANY_NOUN.finditer(self._text, start, match.start())]
            of = self._describe(places[-1], match.start()) if places else None
            if of and _SUBJECT.fullmatch(self._text, of.end, match.start()):
                passage = self._text[match.end() : self._sentence_end(match.end())]
                yield from self._report(match, self._author(passage, nearest=0), of)

    def _sentence_start(self, place: int) -> int:
        ends = [match.end() for match in _SENTENCE_END.finditer(self._text, max(0, place - MOST_BEFORE), place)]
        return ends[-1] if ends else max(0, place - MOST_BEFORE)

    def _sentence_end(self, place: int) -> int:
        end = _SENTENCE_END.search(self._text, place, place + DESCRIPTION_CHARS)
        return end.start() if end else min(place + DESCRIPTION_CHARS, len(self._text))

    def _author(self, passage: str, nearest: int) -> tuple[Named, str, int] | None:
        """Read the decision that did it, its day and its court's rank, of a passage that names one day only."""
        days = {day.value.isoformat() for day in find_dates(passage)}
        courts = find_courts(passage)
        numbers = [ref for ref in find_identifiers(passage) if ref.kind == "pourvoi"]
        if len(days) != 1 or not (courts or numbers):
            return None
        (day,) = days
        if len(numbers) == 1:
            return identifier_node(numbers[0]), day, _RANKS["supreme"]
        court = court_node(passage[slice(*courts[nearest])], within=self._document.id) if courts else None
        rank = _RANKS.get(level_of(court.name, ""), -1) if court else -1
        return (_Described(court, day, "", rank, 0, 0).named(self._document.id), day, rank) if court else None

    def _report(
        self, match: re.Match[str], by: tuple[Named, str, int] | None, of: _Described | None
    ) -> Iterator[Ruling]:
        if by is None or of is None or is_in_quotation(self._text, match.start()):
            return
        author, day, rank = by
        if of.rank < rank and of.day < day:
            done = match["done"]
            kind = _KINDS[without_accents(done.lower())] if done else REJET
            sentence = self._text[match.start() : self._sentence_end(match.end())]
            words = f"{kind} partielle" if is_in_part(sentence) else kind
            made = UPHOLDS if kind in _MAINTAINED else OVERRULES
            yield Ruling(author, of.named(self._document.id), made, of.start, of.end, detail=words)

    def remands(self) -> Iterator[Ruling]:
        """Yield which decision quashed the first one, of a decision given on remand: this one or the one it reviews."""
        if self._level == SUPREME:
            reviewed = [ruling.target for ruling in self.own()]
            for match in _ON_REMAND.finditer(self._text) if len(reviewed) == 1 else ():
                by = self._author(match["by"], nearest=-1)
                if by and not is_in_quotation(self._text, match.start()):
                    yield Ruling(reviewed[0], by[0], FOLLOWS, *match.span("by"), detail=ON_REMAND)
                    return
        elif self._is_of_appeal and _IS_REMANDED.search(self._text):
            quashings = {by.day: by for by in self._quashings()}
            if quashings:
                last = quashings[max(quashings)]
                named = last.named(self._document.id)
                yield Ruling(self._node, named, FOLLOWS, last.start, last.end, detail=ON_REMAND)

    def _quashings(self) -> Iterator[_Described]:
        """Yield the decisions of the Cour de cassation that quashed something, as far as their day is named."""
        for court in _OF_CASSATION.finditer(self._text):
            start, end = self._sentence_start(court.start()), self._sentence_end(court.end())
            says_so = _QUASHING.search(self._text, start, end) or _IS_REMANDED.search(self._text, start, end)
            if not says_so or "rejet" in self._text[start:end]:
                continue
            behind = _DAY_OF_COURT.match(self._text, court.end())
            before = _DAY_BEFORE.search(self._text, start, court.start())
            place = behind.end() if behind else before.start("day") if before else -1
            dates = find_dates(self._text[place : place + MOST_AFTER])[:1] if place >= 0 else []
            if dates and not dates[0].start and dates[0].value.isoformat() < self._document.decision_date:
                node = court_node("Cour de cassation")
                first, last = min(place, court.start()), max(place + dates[0].end, court.end())
                number = _NUMBER_OF_POURVOI.match(self._text, place + dates[0].end)
                day = dates[0].value.isoformat()
                if node and not is_in_quotation(self._text, place):
                    yield _Described(node, day, number[1] if number else "", _RANKS[SUPREME], first, last)
