"""Decisions and articles that briefs are made from, and what is known of them: who speaks, points."""

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple, TypeVar

from false_answers import clauses_of, clear_outcome, half_of, squash

from legal_rag.corpus import Document

T = TypeVar("T")
Speaker = Literal["court", "party", "quashed", ""]  # "quashed": the judgment that the decision quashes; "": not known
FAMILIES = {"Cour de cassation": "Cass", "Conseil constitutionnel": "CC", "Cour d'appel": "CA", "Conseil d'État": "CE"}
POURVOI = r"\d\d-\d\d[. ]?\d{3}"
LAW = re.compile(r"\bloi n[°o] ?(\d{2,4}-\d+) du (\d{1,2}(?:er)? [a-zéû]+ \d{4})\b")
PROPER = r"[A-ZÉ][\w'’&-]+"
PARTY_SECTION = re.compile(r"(?mi)^\W{0,3}[EÉ]noncé d(?:u|es) moyens?\b|MOYENS? ANNEX|^\W{0,3}Moyens? produits? ")
COURT_SECTION = re.compile(r"(?m)^\W{0,3}Réponse de la Cour\b")
CLOSING_SECTION = re.compile(r"(?m)^\W{0,3}(?:PAR CES MOTIFS|Portée et conséquences|Examen d)")
# A paragraph that holds none of these is the court's; one that does may be, and is not used where the speaker counts.
OTHERS = re.compile(
    r"arrêt|jugement|ordonnance|cour d['’]appel|tribunal|premier juge|souti|fai(?:t|re) valoir|alléguer?|allègue|"
    r"selon l|grief|moyen|pourvoi|prétend|expos|requérant|requête|demand|invoqu|plain|« |"
    r"\b(?:ils?|elles?) (?:\w+ )?(?:ajout|retien|relèv|énonc|constat|précis|observ|dédui|conclu)",
    re.IGNORECASE,
)
QUASHED = re.compile(
    r"(?:l['’]arrêt|le jugement)(?: attaqué)? (?:retient|énonce|relève)"
    r"(?: encore| ensuite| d'abord)?,? (?:[^,;]{0,60}, )?que "
)
PLEADED = re.compile(r"(?:soutien(?:t|nent)|fai(?:t|re|sant) valoir) que ")


ORDINALS = {"première": "1", "deuxième": "2", "troisième": "3", "quatrième": "4", "cinquième": "5", "sixième": "6"}
CHAMBER_IN_HEAD = re.compile(
    rf"\b({'|'.join(ORDINALS)}|\d{{1,2}} ?(?:e|è|ème)) chambre\b( civile| sociale| commerciale)?", re.IGNORECASE
)
SHORT = {
    "chambres": "ch.", "sous-sections": "ss-sect.", "réunies": "réun.", "civile": "civ.", "sociale": "soc.",
    "commerciale": "com.",
}  # fmt: skip


class Words(NamedTuple):
    """Words of a decision that a brief may quote."""

    text: str
    start: int
    speaker: Speaker


class Point(NamedTuple):
    """A numbered paragraph of a decision."""

    number: int
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class Decision:
    """A decision with what a brief can say of it."""

    document: Document

    @property
    def id(self) -> str:
        return self.document.id

    @property
    def date(self) -> str:
        return self.document.decision_date or ""

    @property
    def content(self) -> str:
        return self.document.content

    @property
    def formation(self) -> str:
        return self.document.formation or ""

    @property
    def town(self) -> str:
        """Seat of a court of appeal, with its preposition: "de Nîmes", "d'Agen"."""
        return self.document.juridiction.removeprefix("Cour d'appel ")

    @cached_property
    def family(self) -> str:
        return next((short for name, short in FAMILIES.items() if self.document.juridiction.startswith(name)), "")

    @cached_property
    def numbers(self) -> list[str]:
        """Numbers of the case as they are cited, those of joined cases after the first."""
        return joined(str(self.document.extra.get("number") or ""), self.family, self.content)

    @property
    def ecli(self) -> str:
        return str(self.document.extra.get("ecli") or "")

    @cached_property
    def outcome(self) -> str:
        """Outcome, or nothing where the operative part has two, or quashes in part."""
        outcome = clear_outcome(self.document) or ""
        if "partiel" in outcome:
            return ""
        return next(
            (name for name in ("Rejet", "Cassation", "Annulation", "Inéligibilité") if outcome.startswith(name)), ""
        )

    @cached_property
    def words(self) -> list[Words]:
        """Clauses fit to be quoted, with who speaks where that is sure."""
        words = [
            words
            for clause in clauses_of(self.document)
            for words in self._spoken(clause.place.char_start, clause.text)
        ]
        whole = squash(self.content)
        return [
            quotable
            for quotable in words
            if len(re.findall(r"\w{4,}", quotable.text)) >= 8
            and quotable.text.isprintable()
            and whole.count(squash(quotable.text)) == 1
        ]

    @cached_property
    def points(self) -> list[Point]:
        """Paragraphs numbered from 1 without a gap; none where there are fewer than five."""
        ends = re.search(r"PAR CES MOTIFS|(?m:^\s*D ?[EÉ] ?C ?I ?D ?E)|MOYENS? ANNEX", self.content)
        body = self.content[: ends.start()] if ends else self.content
        marks: list[re.Match[str]] = []
        for mark in re.finditer(r"(?m)^ *(\d{1,3})\. ?(?=\D)", body):
            if int(mark[1]) == len(marks) + 1:
                marks.append(mark)
        stops = [*(mark.start() for mark in marks[1:]), len(body)]
        points = (
            [Point(int(mark[1]), mark.end(), stop) for mark, stop in zip(marks, stops, strict=True)] if marks else []
        )
        return points if len(points) >= 5 else []

    @cached_property
    def short_number(self) -> str:
        """Number of the judgment with its formation: "1153 FS-P+B"; not the number of the case."""
        head = re.search(r"Arrêt n° (\d+ F[SP]?(?:-[A-Z](?:\+[A-Z])*)?)\b", self.content[:2500])
        return head[1] if head else ""

    @cached_property
    def chamber(self) -> str:
        """Chamber in short, of the Conseil d'État or as a court of appeal's decision has it in its head; or empty."""
        if self.family == "CE":
            return shortened(re.sub(r"èmes?", "e", self.formation).replace(" - ", " et "))
        head = CHAMBER_IN_HEAD.search(self.content[:400]) if self.family == "CA" else None
        if not head:
            return ""
        number = ORDINALS.get(head[1].lower()) or re.sub(r"\D", "", head[1])
        return f"{number}{'re' if number == '1' else 'e'} ch.{shortened((head[2] or '').lower())}"

    @cached_property
    def party(self) -> str:
        """A company that the head names."""
        names = re.findall(rf"société ({PROPER}(?: (?:(?:de|du|des|la|et) )?{PROPER}){{0,3}})", self.content[:3000])
        return names[0] if names else ""

    def _spoken(self, start: int, text: str) -> Iterator[Words]:
        """Say who speaks in a clause; of one that reports, leave out the part that says who is reported."""
        paragraph = self.content[
            self.content.rfind("\n", 0, start) + 1 : (self.content.find("\n", start) + 1 or len(self.content))
        ]
        section = self._section(start)
        quashed, pleaded = QUASHED.search(text), PLEADED.search(text)
        if section == "court" and quashed and self.outcome == "Cassation":
            yield Words(text[quashed.end() :], start + quashed.end(), "quashed")
        elif section == "court" and pleaded and self.family in ("CC", "CE"):
            yield Words(text[pleaded.end() :], start + pleaded.end(), "party")
        else:
            yield Words(text, start, section if section == "party" or not OTHERS.search(paragraph) else "")

    def _section(self, offset: int) -> Speaker:
        if self.family == "Cass":
            marks = [(mark.start(), "party") for mark in PARTY_SECTION.finditer(self.content)]
            marks += [(mark.start(), "court") for mark in COURT_SECTION.finditer(self.content)]
            marks += [(mark.start(), "") for mark in CLOSING_SECTION.finditer(self.content)]
            return max((mark for mark in marks if mark[0] <= offset), default=(0, ""))[1]  # type: ignore[return-value]
        if self.family in ("CC", "CE"):
            reasons = re.search(r"(?i)considérant (?:que|ce qui|qu')|^\s*1\. ", self.content)
            return "court" if reasons and reasons.start() <= offset else ""
        return ""


def joined(number: str, family: str, content: str) -> list[str]:
    """Spell out a case's number and those joined to it: 93-1213/1214, or a head's list after "Pourvois n°"."""
    if family == "CC":
        stem, _, suffix = number.removesuffix(" et autres").partition(" ")
        first, *rest = stem.split("/")
        year = first.split("-")[0]
        parts = [first, *(part if "-" in part else f"{year}-{part}" for part in rest)]
        return [f"{part} {suffix or 'AN'}" for part in parts if part]
    if family == "Cass":
        number = dotted(number)
        head = re.search(rf"Pourvois n(?:°|os)\s*((?:(?:[A-Z] )?{POURVOI}(?:\s*(?:,|et|à)?\s*))+)", content[:2500])
        listed = (
            []
            if not head or re.search(r"\d\s*à\s", head[1])
            else [dotted(part) for part in re.findall(POURVOI, head[1])]
        )
        return (
            [number, *(part for part in listed if part != number)] if re.fullmatch(r"\d\d-\d\d\.\d{3}", number) else []
        )
    return [number] if re.fullmatch(r"\d\d/\d{4,5}|\d{6}", number) else []


def shortened(chamber: str) -> str:
    """Abbreviate a chamber's name."""
    return re.sub("|".join(SHORT), lambda word: SHORT[word.group()], chamber)


def dotted(number: str) -> str:
    """Write a pourvoi's number as the Court does: 22-17.919."""
    return re.sub(r"^(\d\d-\d\d)[. ]?(\d{3})$", r"\1.\2", number)


@dataclass
class Material:
    """What briefs of one half are made from, and what all of the corpus holds, against which inventions are checked."""

    everything: Sequence[Document]
    half: str  # "dev", "held"; empty: all
    rng: random.Random
    articles: dict[str, str] = field(default_factory=dict)  # number in the Code du travail, text
    article_ids: dict[str, str] = field(default_factory=dict)  # number, id

    @cached_property
    def all(self) -> list[Decision]:
        return [Decision(document) for document in self.everything if document.juridiction]

    @cached_property
    def usable(self) -> list[Decision]:
        """The half's decisions that have a number, a date and a known court, and that no other shares them with."""
        times = Counter(
            (decision.family, number, decision.date) for decision in self.all for number in decision.numbers[:1]
        )
        return [
            decision
            for decision in self.all
            if decision.date
            and decision.numbers
            and times[decision.family, decision.numbers[0], decision.date] == 1
            and (decision.family != "Cass" or decision.formation in CHAMBERS)
            and decision.document.juridiction != "Cour d'appel"
            and self.in_half(decision.id)
        ]

    @cached_property
    def by_family(self) -> dict[str, list[Decision]]:
        families: dict[str, list[Decision]] = {}
        for decision in self.usable:
            families.setdefault(decision.family, []).append(decision)
        return families

    @cached_property
    def half_articles(self) -> list[str]:
        return [
            number
            for number in self.articles
            if re.fullmatch(r"[LRD]\d{4}-\d+(?:-\d+)?", number) and self.in_half(number)
        ]

    @cached_property
    def heads(self) -> frozenset[str]:
        """All decisions' numbers, and all that stands where a head has them, squashed."""
        numbers: set[str] = set()
        for decision in self.all:
            heads = re.findall(POURVOI + r"|\d\d ?/ ?\d{4,5}", decision.content[:3000])
            listed = [str(decision.document.extra.get("number") or ""), *decision.numbers]
            numbers.update(map(squash, [*heads, *listed, *(number.split(" ")[0] for number in decision.numbers)]))
        return frozenset(numbers)

    @cached_property
    def whole(self) -> str:
        """All decisions and articles, squashed."""
        return "".join(squash(document.content) for document in self.everything) + "".join(
            map(squash, self.articles.values())
        )

    @cached_property
    def days(self) -> dict[str, tuple[str, str]]:
        """Court and day of each decision, by its id."""
        return {decision.id: (decision.document.juridiction, decision.date) for decision in self.all}

    @cached_property
    def dates(self) -> dict[tuple[str, str], set[str]]:
        """Days of the decisions that have a number, by sort of court and number."""
        dates: dict[tuple[str, str], set[str]] = {}
        for decision in self.all:
            for number in decision.numbers:
                dates.setdefault((decision.family, number), set()).add(decision.date)
        return dates

    @cached_property
    def same_day(self) -> Counter[tuple[str, str, str]]:
        """How many decisions a court, a chamber and a day have."""
        return Counter(
            (decision.document.juridiction, decision.formation if decision.family == "Cass" else "", decision.date)
            for decision in self.all
        )

    @cached_property
    def cited_only(self) -> list[str]:
        """Numbers of pourvois that the half's decisions cite, and that are no decision's of the corpus."""
        cites = re.compile(rf"(?:Soc|Civ|Com|Crim|Bull)\.[^;\n]{{0,60}}n° ?({POURVOI})")
        numbers = {dotted(number) for decision in self.usable for number in cites.findall(decision.content[2500:])}
        return sorted(number for number in numbers if squash(number) not in self.heads)

    @cached_property
    def laws(self) -> dict[str, str]:
        """Laws that at least three decisions cite, nearly all with one date: number, date in French."""
        dates: dict[str, Counter[str]] = {}
        for decision in self.all:
            for number, date in set(LAW.findall(decision.content)):
                dates.setdefault(number, Counter())[date] += 1
        common = {number: (*days.most_common(1)[0], days.total()) for number, days in dates.items()}
        return {number: day for number, (day, times, total) in common.items() if total >= 3 and times >= 0.8 * total}

    @cached_property
    def called_by_party(self) -> list[Decision]:
        """The half's decisions that a company's name is enough to tell: it stands in no other."""
        named = [decision for decision in self.usable if decision.family == "Cass" and len(decision.party) > 4]
        texts = [squashed_content(decision) for decision in self.all]
        return [decision for decision in named if sum(squash(decision.party) in text for text in texts) == 1]

    def in_half(self, name: str) -> bool:
        return half_of(name).startswith(self.half)

    def pick(self, choices: Sequence[T]) -> T:
        """Draw any of them."""
        return self.rng.choice(choices)

    def decision(self, *families: str) -> Decision:
        """Draw a decision, of each sort of courts as often as of the others."""
        family = self.rng.choice([name for name in families or self.by_family if self.by_family.get(name)])
        return self.rng.choice(self.by_family[family])

    def how_many(self, decision: Decision, date: str = "") -> int:
        """Count the decisions of a decision's court and chamber on a day."""
        return self.same_day[
            decision.document.juridiction,
            decision.formation if decision.family == "Cass" else "",
            date or decision.date,
        ]

    def stands_nowhere(self, words: str) -> bool:
        return squash(words) not in self.whole


CHAMBERS = {
    "Chambre sociale": ["soc."],
    "Première chambre civile": ["1re civ.", "civ. 1re"],
    "Deuxième chambre civile": ["2e civ.", "civ. 2e"],
    "Troisième chambre civile": ["3e civ.", "civ. 3e"],
    "Chambre commerciale": ["com."],
    "Chambre criminelle": ["crim."],
    "Assemblée plénière": ["ass. plén."],
}


@lru_cache(maxsize=8000)
def squashed_content(decision: Decision) -> str:
    """Return a decision's text, squashed."""
    return squash(decision.content)
