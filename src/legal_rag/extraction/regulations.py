"""Rules of a company's regulations: their types, what they set and under which conditions; what a question asks."""

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from typing import Literal, NamedTuple

from legal_rag.base.text import Span, key_of, read_toml
from legal_rag.extraction.entities import Entity, rule_entity
from legal_rag.law import LegalAmount, LegalDuration, Reading, read
from legal_rag.law.sentences import without_blanks
from legal_rag.law.tree import TreeNode, walk
from legal_rag.law.words import FULL_MONTHS

Measure = Literal["days", "hours", "duration", "amount", "clock", "weekday", "date", "notice"]

SENTENCE_CHARS = 1000  # of a rule; a longer sentence is a list without its punctuation
HEADING_CHARS = 120
RATE_CHARS = 60  # behind a duration or a sum: "12 jours de congé par an"
CACHED = 20_000  # texts whose topics are kept

_tables = cache(partial(read_toml, "legal_rag.extraction", "regulations.toml"))
_MEASURES: dict[str, Measure] = {
    "jour": "days",
    "semaine": "days",
    "heure": "hours",
    "mois": "duration",
    "an": "duration",
}
# What states a measure too.
_ALSO: dict[Measure, tuple[Measure, ...]] = {
    "duration": ("days", "hours"),
    "notice": ("duration", "days", "hours"),
    "date": ("notice", "duration", "days"),
}
_CLOCK = r"(?:[01]?\d|2[0-4])[ \u00a0]?(?:h(?:eures?)?|:)(?:[ \u00a0]?[0-5]\d)?(?!\w)"
# A time of day has minutes, or follows a preposition; "8 h 30 par jour" is a duration.
_TIMES = re.compile(
    rf"(?<![\w,.])(?:{_CLOCK}[ \u00a0]?(?:à|-|–|et|/)[ \u00a0]?{_CLOCK}|(?:à|dès|avant|après|vers)[ ]{_CLOCK}"
    r"|(?:[01]?\d|2[0-4])[ \u00a0]?[h:][ \u00a0]?[0-5]\d(?!\w))(?![ \u00a0](?:par|de[ ]travail|supplémentaires?)\b)"
)
_TIME = re.compile(_CLOCK)
_LATE = re.compile(r"(?:au-delà de|après|passé)[ \u00a0]$")
_DAY = "(?:lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)s?"
_WEEKDAYS = re.compile(rf"(?<!\w)(?:du[ ])?{_DAY}(?:(?:[ ](?:au|à|et)|,)[ ]{_DAY})*(?!\w)", re.IGNORECASE)
_RATE = re.compile(
    r"(?:[ ](?:de|d['’]|du|des)?[ ]?[^\W\d_]+){0,4}?(?:[ ](?:par|chaque)[ ]|/[ ]?)"
    r"(?P<each>jour|semaine|mois|année|an)(?!\w)"
)
_TENURE = re.compile(
    r"[ ](?:effectifs?[ ])?(?:de[ ]|d['’]|dans[ ]l['’])"
    r"(?:travail|présence|ancienneté|services?|contrat|activité|entreprise|maison|emploi)(?!\w)"
)
_LEAST = r"(?:(?:au |du )?(?:moins|plus)(?:[ ]de|[ ]d['’])?[ ])?(?:les[ ])?"
_CONDITION_LEAD = re.compile(
    r"(?:(?<!\w)(?:après|depuis|tous les|chaque|au bout de|à partir d(?:e|['’])|au-delà d(?:e|['’])|dès|ayant|comptant"
    rf"|travaillant|justifi(?:e|ant|ent)[ ]d(?:e|['’])|compte(?:nt)?|totalis(?:e|ant)|dépass(?:e|ant|ent))[ ]?{_LEAST}"
    rf"|ancienneté[^.;:,]{{0,30}}[ ]|(?<!\w)(?:moins|plus)[ ]d(?:e|['’])[ ]?)$",
    re.IGNORECASE,
)
_NOTICE_TAIL = re.compile(r"[ ](?:à l['’]avance|avant|au moins avant|plus tôt)(?!\w)")
_OF_PAY = re.compile(r"[ ]de[ ](?:salaire|rémunération|traitement)(?!\w)")
_SHARE = re.compile(r"\d{1,3}(?:,\d{1,2})?[ \u00a0]?%")
_PAY_STATUS = re.compile(
    r"(?:non[ ])?rémunérée?s?|(?<!congés[ ])(?<!congé[ ])(?:non[ ])?payée?s?|sans solde"
    r"|(?:avec[ ])?maintien[^,;.()]{0,20}[ ]salaire|sans (?:perte|réduction|retenue) de (?:salaire|rémunération)",
    re.IGNORECASE,
)
_YEARLY = re.compile(
    rf"(?<!\w)(?:1er|\d{{1,2}})[ \u00a0](?:{'|'.join(FULL_MONTHS)})(?!\w)(?![ ]\d{{4}})", re.IGNORECASE
)
_PRORATED = re.compile(r"(?:calculée?s?[ ])?(?:au prorata|proportionn\w+|en proportion)[^,;.]*", re.IGNORECASE)
# What a sentence without a figure must say to be a rule: what is due, allowed, counted or forbidden.
_RULES = re.compile(
    r"(?<!\w)(?:(?:ne )?(?:peu(?:t|vent)|doi(?:t|vent))|(?:sont|est) (?:\w+ )?(?:compte|pris|acqui|credite|porte|paye"
    r"|rembourse|maintenu|majore|renouvel|prolong|interdit|autoris|accorde|repris|report|recuper|retenu|supporte|tenu"
    r"|reserve|ouvert)\w*"
    r"|entre(?:nt)? dans (?:le calcul|la duree)|acquier(?:t|ent)|acqui(?:s|ses?|erir)|compte(?:nt)? (?:pour|comme|dans)"
    r"|prorata|beneficie\w*|(?:a|ont) droit|ouvre(?:nt)? droit|droit a|prend\w* en charge|rembours\w+|perd(?:u|us|ent)?"
    r"|donne\w*|pou(?:vez|rrez)|devez|aucun\w*|il n est pas|n est pas|ne sont pas|sont perdu\w*)(?!\w)"
    r"|^(?:\d+ )*\w{2,}ez(?!\w)"
)
_NOT_SAID = ("rule_type", "section", "mechanism", "value", "unit", "currency")  # attributes that repeat, or name
# Figures of an example set nothing.
_EXAMPLE = re.compile(r"[\W_]*(?:(?:par )?exemples?|ex\.)(?!\w)", re.IGNORECASE)
# What begins with one speaks of the sentence before it, also across a line.
_REFERRING = re.compile(
    r"(?:[\d.]+[ ]|[-–•*][ ])?(?:elles?|ils?|celles?-ci|ceux-ci|celui-ci|cet?|cette|ces)(?!\w)", re.IGNORECASE
)
_ITEM = re.compile(r"[-–—•*]|\d+[.)°]|[a-z]\)")
_CLAUSE = ",;:(\t\n"
_ROW = ":\t"  # what is behind one is due under what is before


class RuleType(NamedTuple):
    """A type of rules, recognised by topics."""

    key: str
    extraction_class: str
    label: str  # in French
    asked: Measure  # what "combien" asks for
    any: frozenset[str]
    all: frozenset[str] = frozenset()
    states: Measure | None = None  # without which a rule is not of this type
    weak: bool = False  # yields to a type that the heading's topics give

    def fits(self, topics: frozenset[str], measures: Iterable[Measure]) -> bool:
        """Whether topics and measures are those of this type."""
        has_measure = self.states is None or self.states in measures
        return has_measure and self.all <= topics and not self.any.isdisjoint(topics)


@dataclass
class _Rule:
    span: Span
    topics: frozenset[str]
    type: RuleType
    has_value: bool
    attributes: dict[str, str] = field(default_factory=dict)


class AskedRule(NamedTuple):
    """What a question asks of a regulation."""

    topics: frozenset[str]
    key: str  # of the type of rules that it asks for; empty if unknown
    measure: Measure | None  # that the answer states
    rest: str  # its words that name no topic, folded


class Rule(NamedTuple):
    """What a rule says, as questions are compared with it."""

    key: str  # of its type; empty if unknown
    text: str  # with its attributes
    topics: frozenset[str]
    above: str  # its headings, and its type in French
    topics_above: frozenset[str]
    measures: frozenset[Measure]

    def states(self, measure: Measure) -> bool:
        """Whether it states a measure; days and hours are durations, and a duration may be that of a notice."""
        return not self.measures.isdisjoint((measure, *_ALSO.get(measure, ())))


@cache
def rule_types() -> tuple[RuleType, ...]:
    """Return the types of rules in the order in which they are tried."""
    rows = _tables()["types"]
    return tuple(RuleType(**row | {name: frozenset(row.get(name, ())) for name in ("all", "any")}) for row in rows)


@lru_cache(CACHED)
def topics_of(text: str) -> frozenset[str]:
    """Return the topics that the words of a text name."""
    return frozenset(str(match.lastgroup) for match in _topics().finditer(key_of(text)))


def asked_rule(question: str) -> AskedRule:
    """Read what a question asks of a regulation: topics, type of rule, measure of the answer."""
    words, topics = key_of(question), topics_of(question)
    rest = _topics().sub(" ", words)
    measure = next((name for name, pattern in _asked_measures() if pattern.search(words)), None)
    for rule_type in rule_types():
        is_answer = measure != "amount" or rule_type.asked == "amount"
        if (
            is_answer
            and not rule_type.weak
            and rule_type.fits(topics, [measure or rule_type.states or rule_type.asked])
        ):
            bare = measure is None and re.search(r"(?<!\w)combien(?!\w)", words)
            return AskedRule(topics, rule_type.key, rule_type.asked if bare else measure, rest)
    return AskedRule(topics, "", measure, rest)


def rule_of(entity: Entity) -> Rule:
    """Read an entity of a class of regulations, whether rules or a model found it."""
    attributes = entity["attributes"]
    named = attributes.get("rule_type", "")
    values = [value for name, value in attributes.items() if name not in _NOT_SAID]
    text = " . ".join([entity["extraction_text"], *values])
    label = next((rule_type.label for rule_type in rule_types() if rule_type.key == named), named)
    above = f"{attributes.get('section', '')} . {label}"
    topics, topics_above = topics_of(text), topics_of(above)
    measures = frozenset(_measures_of(attributes))
    if label == named:  # a model's own words
        fitting = (rule_type.key for rule_type in rule_types() if rule_type.fits(topics | topics_above, measures))
        named = next(fitting, "")
    return Rule(named, text, topics, above, topics_above, measures)


def _measures_of(attributes: Mapping[str, str]) -> Iterator[Measure]:
    words = key_of(attributes.get("duration", "")).split()
    if words:
        yield "duration"
    yield from (measure for word in words for unit, measure in _MEASURES.items() if word.startswith(unit))
    stated: dict[str, Measure] = {
        "amount": "amount",
        "rate": "amount",
        "limit": "amount",
        "start": "clock",
        "days": "weekday",
    }
    yield from (measure for name, measure in stated.items() if attributes.get(name))


def find_rules(text: str | Reading) -> list[Entity]:
    """Find the rules of a regulation: sentences on a known topic that set a figure, or allow, count or forbid.

    A sentence without a topic takes those of the one before it on its line, else those of its headings. What follows a
    rule, is of its type and sets no figure of its own belongs to it, items of lists apart.
    """
    reading = read(text)
    return [_entity(reading.text, rule) for rule in _joined(reading.text, _iter_rules(reading))]


def _entity(text: str, rule: _Rule) -> Entity:
    entity = rule_entity(rule.type.extraction_class, text, *rule.span)
    return entity | {"attributes": {"rule_type": rule.type.key, **rule.attributes}}


def _iter_rules(reading: Reading) -> Iterator[_Rule]:
    text, sections = reading.text, _Titles(reading.tree)
    durations, amounts, limits = list(reading.durations), list(reading.amounts), deque(reading.time_limits)
    title = heading = ""
    before: tuple[int, frozenset[str]] = (0, frozenset())  # end and topics of the previous sentence
    at_duration = at_amount = 0
    for start, end in without_blanks(text, reading.sentences):
        if _is_heading(text, start, end):
            heading = text[start:end]
            title, before = title or heading, (end, frozenset())
            continue
        first_duration, at_duration = at_duration, _first_from(durations, at_duration, end)
        first_amount, at_amount = at_amount, _first_from(amounts, at_amount, end)
        if end - start > SENTENCE_CHARS:
            continue
        if _EXAMPLE.match(text, start, end):
            continue
        topics = topics_of(text[start:end])
        refers = "\n" not in text[before[0] : start] or _REFERRING.match(text, start, end)
        if refers and not topics & _strong_topics():
            topics |= before[1]
        before = end, topics
        while limits and limits[0][1] <= start:
            limits.popleft()
        values = _Values(
            text, (start, end), durations[first_duration:at_duration], amounts[first_amount:at_amount], limits
        )
        titles = list(dict.fromkeys(filter(None, [*sections.at(start), heading])))
        above = topics_of(" . ".join([title, *titles]))
        if not values.measures and not _says_rule(text[start:end], topics, above):
            continue
        rule_type = _type_of(topics, above, values.measures)
        if rule_type is not None:
            section = {"section": " > ".join(titles)} if titles else {}
            yield _Rule((start, end), topics, rule_type, bool(values.measures), values.attributes(rule_type) | section)


def _says_rule(text: str, topics: frozenset[str], above: frozenset[str]) -> bool:
    """Whether a sentence without a figure is a rule: it links topics, or allows, counts, forbids something."""
    if any(kind.all and kind.any & topics and kind.fits(topics | above, ()) for kind in rule_types()):
        return True
    return bool(topics & _strong_topics() and _RULES.search(key_of(text)))


def _type_of(topics: frozenset[str], above: frozenset[str], measures: Sequence[Measure]) -> RuleType | None:
    """Return the first type that fits, by a topic of the sentence itself unless it has none but weak ones."""
    strong = topics & _strong_topics()
    for rule_type in rule_types():
        is_of_sentence = not strong or not (rule_type.all | rule_type.any).isdisjoint(strong)
        if is_of_sentence and rule_type.fits(topics | above, measures) and (topics or not rule_type.weak):
            return rule_type
    return None


def _joined(text: str, rules: Iterable[_Rule]) -> Iterator[_Rule]:
    """Join what continues a rule to it, as its mechanism."""
    last: _Rule | None = None
    for rule in rules:
        if last is not None and _continues(text, last, rule):
            mechanism = text[rule.span[0] : rule.span[1]]
            told = last.attributes.get("mechanism")
            both = {"mechanism": f"{told} {mechanism}" if told else mechanism}
            if rule.type.key == "working_hours":
                both = {name: rule.attributes[name] for name in ("end",) if name in rule.attributes}
            last.attributes |= both
            last.span = last.span[0], rule.span[1]
            continue
        if last is not None:
            yield last
        last = rule
    if last is not None:
        yield last


def _continues(text: str, last: _Rule, rule: _Rule) -> bool:
    """Whether a rule goes on with the one before it: of its type, without a figure, behind it and no item of a list."""
    is_same = last.type is rule.type and rule.span[1] - last.span[0] <= SENTENCE_CHARS
    between = text[last.span[1] : rule.span[0]]
    is_next = not between.strip() and not ("\n" in between and _ITEM.match(text, rule.span[0]))
    return is_same and is_next and (rule.type.key == "working_hours" or not rule.has_value)


class _Values:
    """What a sentence sets, and under which condition."""

    def __init__(
        self,
        text: str,
        span: Span,
        durations: Sequence[LegalDuration],
        amounts: Sequence[LegalAmount],
        limits: Sequence[Span],
    ) -> None:
        self.text, self.span, self.amounts = text, span, [amount for amount in amounts if amount.start >= span[0]]
        start, end = span
        times = [match.span() for match in _TIMES.finditer(text, start, end)]
        self.clock = [match.span() for first, last in times for match in _TIME.finditer(text, first, last)]
        self.late = [time for time in self.clock if _LATE.search(text, start, time[0])]
        days = _WEEKDAYS.search(text, start, end)
        self.weekdays = days.span() if days else None
        self.date = _YEARLY.search(text, start, end)
        self.set, self.conditions, self.notice, self.of_pay = (list[LegalDuration]() for _ in range(4))
        inside = [duration for duration in durations if duration.start >= start]
        inside = [each for each in inside if not any(first <= each.start < last for first, last in times)]
        row = max((text.find(sign, start, end) for sign in _ROW), default=-1)
        figures = [duration.start for duration in inside] + [amount.start for amount in self.amounts]
        has_due = any(figure > row for figure in figures)
        for duration in inside:
            before = duration.start < row and (has_due or duration.unit in ("mois", "an"))
            (self.conditions if before else self._kind(duration, limits)).append(duration)

    def _kind(self, duration: LegalDuration, limits: Sequence[Span]) -> list[LegalDuration]:
        text, (start, end) = self.text, self.span
        if _OF_PAY.match(text, duration.end, end):
            return self.of_pay
        is_limit = any(first <= duration.start and duration.end <= last for first, last in limits)
        if is_limit or _NOTICE_TAIL.match(text, duration.end, end):
            return self.notice
        is_condition = _TENURE.match(text, duration.end, end) or _CONDITION_LEAD.search(text, start, duration.start)
        return self.conditions if is_condition else self.set

    @property
    def measures(self) -> list[Measure]:
        """Measures of what is set; a condition or a notice alone counts as a duration."""
        measures: list[Measure] = [_MEASURES.get(duration.unit, "duration") for duration in self.set]
        stated: tuple[tuple[Measure, object], ...] = (
            ("duration", self.conditions),
            ("notice", self.notice),
            ("amount", self.amounts or self.of_pay or _SHARE.search(self.text, *self.span)),
            ("clock", self.clock),
            ("weekday", self.weekdays),
            ("date", self.date),
        )
        return measures + [measure for measure, value in stated if value]

    def attributes(self, rule_type: RuleType) -> dict[str, str]:
        """Return the attributes of the rule."""
        return dict(self._pairs(rule_type))

    def _pairs(self, rule_type: RuleType) -> Iterator[tuple[str, str]]:
        text, (start, end) = self.text, self.span
        yearly = [each for each in self.set if (each.each or self._each(each.end)) == "an"]
        main = (yearly or self.set)[:1]
        for duration in main:
            yield "duration", text[duration.start : duration.end]
            yield "value", f"{duration.value.normalize():f}"
            yield "unit", duration.unit
            if each := duration.each or self._each(duration.end):
                yield "period", each
        others = (each for each in self.set if each not in main)
        monthly = next((each for each in others if (each.each or self._each(each.end)) == "mois"), None)
        if monthly is not None and rule_type.asked == "days":
            yield "monthly_equivalent", text[monthly.start : monthly.end]
        for amount in self.amounts[:1]:
            yield "amount", text[amount.start : amount.end]
            yield "currency", amount.currency
            if not self.set and (each := self._each(amount.end)):
                yield "period", each
        for duration in self.of_pay[:1]:
            of = _OF_PAY.match(text, duration.end, end)
            yield "limit" if self.amounts else "amount", text[duration.start : of.end() if of else duration.end]
        if share := _SHARE.search(text, start, end):
            yield "rate", share.group()
        on_time = [time for time in self.clock if time not in self.late]
        for name, times in (("start", on_time[:1]), ("end", on_time[1:][-1:]), ("late_threshold", self.late[:1])):
            for time in times:
                yield name, text[slice(*time)]
        if self.weekdays:
            yield "days", text[slice(*self.weekdays)]
        if self.date:
            yield "date", self.date.group()
        if self.conditions:
            yield "condition", self._clause_around(self.conditions[0])
        if self.notice:
            yield "notice", text[self.notice[0].start : self.notice[0].end]
        if prorated := _PRORATED.search(text, start, end):
            yield "calculation_method", prorated.group()
        if rule_type.extraction_class == "LeaveRule" and (paid := _PAY_STATUS.search(text, start, end)):
            yield "pay_status", paid.group()

    def _each(self, place: int) -> str:
        rate = _RATE.match(self.text, place, min(place + RATE_CHARS, self.span[1]))
        return {"année": "an"}.get(rate["each"], rate["each"]) if rate else ""

    def _clause_around(self, duration: LegalDuration) -> str:
        """Return the clause of a condition; of a sentence without commas, what leads to the duration and follows it."""
        text, (start, end) = self.text, self.span
        first = max(start, *(text.rfind(sign, start, duration.start) + 1 for sign in _CLAUSE))
        ends = (text.find(sign, duration.end, end) for sign in f"{_CLAUSE}).")
        last = min((at for at in ends if at >= 0), default=end)
        if first == start and last >= end - 1:
            lead, tail = _CONDITION_LEAD.search(text, start, duration.start), _TENURE.match(text, duration.end, end)
            first, last = lead.start() if lead else duration.start, tail.end() if tail else duration.end
        return text[first:last].strip(" -–—•*.")


def _is_heading(text: str, start: int, end: int) -> bool:
    return (
        end - start <= HEADING_CHARS
        and text[end - 1] not in ".;:,!?"
        and (not start or text[start - 1] == "\n")
        and (text.startswith("\n\n", end) or end == len(text))
        and "\t" not in text[start:end]
        and text[start] not in "-–—•*"
    )


class _Titles:
    """Titles of the sections that a place lies in, the uppermost first."""

    def __init__(self, tree: TreeNode) -> None:
        self._starts: list[int] = []
        self._titles: list[tuple[str, ...]] = []
        path: list[str] = []
        for node in walk(tree):
            path[max(node.level - 1, 0) :] = [node.title if node.kind == "heading" and node.heading[1] else ""]
            self._starts.append(node.char_start)
            self._titles.append(tuple(filter(None, path)))

    def at(self, place: int) -> tuple[str, ...]:
        return self._titles[bisect_right(self._starts, place) - 1]


def _first_from(values: Sequence[LegalDuration] | Sequence[LegalAmount], at: int, end: int) -> int:
    while at < len(values) and values[at].start < end:
        at += 1
    return at


@cache
def _strong_topics() -> frozenset[str]:
    """Return the topics that give a type by themselves."""
    return frozenset[str]().union(*(kind.any for kind in rule_types() if not (kind.weak or kind.all)))


@cache
def weak_topics() -> frozenset[str]:
    """Return the topics of types that yield to others: most rules speak of what is paid."""
    return frozenset[str]().union(*(kind.any for kind in rule_types() if kind.weak))


@cache
def narrowing_topics() -> frozenset[str]:
    """Return the topics that narrow a rule to a case, such as a marriage."""
    return frozenset(_tables()["topics"]) - weak_topics() - frozenset(_tables()["wide"])


@cache
def _topics() -> re.Pattern[str]:
    groups = "|".join(f"(?P<{name}>{pattern})" for name, pattern in _tables()["topics"].items())
    return re.compile(rf"(?<!\w)(?:{groups})(?!\w)")


@cache
def _asked_measures() -> tuple[tuple[Measure, re.Pattern[str]], ...]:
    return tuple((name, re.compile(rf"(?<!\w)(?:{pattern})(?!\w)")) for name, pattern in _tables()["asked"].items())
