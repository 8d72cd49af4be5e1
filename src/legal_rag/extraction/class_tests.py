"""What a model's entity must look like to be of its class, and the attributes that are computed from the text.

A small model copies passages well and sorts them badly: a court as an outcome, a paragraph as a party. As far as a
class has a form, what the rules read at a passage decides.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple, Protocol, TypeVar

from legal_rag.base.text import Span
from legal_rag.extraction import entities as classes
from legal_rag.extraction.entities import CLASSES
from legal_rag.extraction.names import bench, office_behind
from legal_rag.extraction.rules import find_entities
from legal_rag.extraction.schemas import Schema
from legal_rag.law import Reading
from legal_rag.law.courts import find_named_courts
from legal_rag.law.outcomes import Operative, decides, kinds_of, statements

# Characters: about twice the longest of 99.9 % of what the rules find in 460 decisions.
LONGEST: Mapping[str, int] = {
    classes.JURIDICTION: 120,
    classes.FORMATION: 90,
    classes.DATE: 90,
    classes.NUMERO: 60,
    classes.ECLI: 45,
    classes.PARTIE: 160,
    classes.AVOCAT: 110,
    classes.TEXTE_VISE: 280,
    classes.ARTICLE_CITE: 300,
    classes.JURISPRUDENCE_CITEE: 200,
    classes.MOYEN: 140,
    classes.SOLUTION: 60,
    classes.MONTANT: 190,
    classes.DELAI: 60,
    classes.DISPOSITIF: 2300,
    classes.DEADLINE: 130,
    classes.LEGAL_REFERENCE: 300,
}
# Classes of other schemas, which must look like one of these of a decision.
ALIKE: Mapping[str, tuple[str, ...]] = {
    classes.MONETARY_AMOUNT: (classes.MONTANT,),
    classes.PERSON: (classes.PARTIE,),
    classes.ORGANISATION: (classes.PARTIE, classes.JURIDICTION),
    "party": (classes.PARTIE,),
}
SLACK = 12  # characters that a passage may have around what the rules read: "à compter du 3 mai 2010"
NEAR = 80  # characters around a name in which it is called counsel
# Attributes that are computed, also where the model gives none.
COMPUTED_OF: Mapping[str, tuple[str, ...]] = {
    classes.DATE: ("iso",),
    classes.MONTANT: ("valeur", "devise"),
    classes.MONETARY_AMOUNT: ("currency",),
    classes.ARTICLE_CITE: ("numero", "texte"),
}
COMPUTED = frozenset("iso valeur devise value unit currency duration amount numero texte".split())

_DETERMINER = re.compile(r"(?:(?:de[ \u00a0]la|les?|la|une?|du|des|aux?|à)[ \u00a0]|(?:de[ \u00a0])?[ld]['’])*", re.I)
_COURT = re.compile(r"(?i:cour|tribunal|conseil|juridiction|commission|chambre)\b.*\b[A-ZÀ-Þ]", re.DOTALL)
_FORMATION = re.compile(r"\b(?:chambres?|(?:sous-)?sections?|pôle|formation|assemblée)\b", re.I)
_TEXT = re.compile(
    r"(?:loi|ordonnance|décret|arrêté|code|constitution|convention|traité|directive|règlement|charte|protocole|pacte|"
    r"circulaire|accord|déclaration|préambule|livre|avenant|statuts|contrat|bail)\b",
    re.I,
)
_ARTICLE = re.compile(r"(?:articles?|art\.)\s.{0,30}?(?:\d|premier|unique)", re.I | re.DOTALL)
_DECISION = re.compile(r"\b(?:arrêt|décision|jugement|ordonnance|avis)\b", re.I)
_GROUND = re.compile(r"\b(?:moyens?|branches?|griefs?)\b", re.I)
_ECLI = re.compile(r"ECLI:[A-Z]{2}:[A-Z0-9]{1,7}:\d{4}:[A-Z0-9.]{1,25}")
_NUMBERED = re.compile(
    r"\b(?:n[°ºo]s?|numéros?|requêtes?|pourvois?|RG|général|minute|affaires?|dossiers?)\W{0,4}(?:[A-Z]\W)?$", re.I
)
_CAPITAL = re.compile(r"[A-ZÀ-ÖØ-Þ\[]")
_PROSE = re.compile(
    r"(?<![\w-])(?:que|qui|attendu|considérant|statuant|vu|est|été|sont|ont|avait|pourvoi|requête)(?![\w-])|[;:]", re.I
)
_COUNSEL = re.compile(r"(?:mes?|ma[iî]tres?|s\.?c\.?p|sel\w+|s\.?e\.?l\.?a\.?r\.?l|aarpi)\b", re.I)
_PLEADS = re.compile(r"avocat(?!\w*[ -]g[ée]n)|avou[ée]|plaidant|repr[ée]sent|assist|substitu", re.I)


class _Place(NamedTuple):
    start: int
    end: int


class _Item(Protocol):
    """What the rules read somewhere in a text."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...


Item = TypeVar("Item", bound=_Item)


class ClassTests:
    """Tests of one document's entities in the classes of a bundled schema; the caller's own classes have no form."""

    def __init__(self, text: str, schema: Schema) -> None:
        self._text, self._reading = text, Reading(text)
        self._is_bundled = CLASSES.get(schema.name) == schema.classes

    def refuses(self, name: str, span: Span) -> bool:
        """Tell whether a passage cannot be of a class: it is too long, not of its form, or of another by the rules."""
        kinds = [kind for kind in ALIKE.get(name, (name,)) if kind in LONGEST]
        return self._is_bundled and bool(kinds) and not any(self._fits(kind, span) for kind in kinds)

    def attributes(self, name: str, span: Span, given: Mapping[str, str]) -> dict[str, str]:
        """Return a model's attributes, but dates in ISO form, numbers and the like as the text has them."""
        if not self._is_bundled:
            return dict(given)
        values = dict(self._values_in(*span))
        keys = dict.fromkeys([*given, *COMPUTED_OF.get(name, ())])
        pairs = ((key, (values if key in COMPUTED else given).get(key)) for key in keys)
        return {key: value for key, value in pairs if value}

    def _fits(self, kind: str, span: Span) -> bool:
        start, end = span
        determiner = _DETERMINER.match(self._text, start, end)
        trimmed = determiner.end() if determiner else start
        by_rules = self._classes_of.get(span) or self._classes_of.get((trimmed, end))
        if by_rules and kind in by_rules:
            return True
        # Of names the rules are less sure: to them, "SECTION B" may be a party.
        if by_rules and by_rules != {classes.PARTIE} and kind in classes.JURISPRUDENCE:
            return False
        return end - start <= LONGEST[kind] and _FORMS[kind](self, trimmed, end)

    @cached_property
    def _classes_of(self) -> dict[Span, set[str]]:
        """The classes of each passage that the rules find."""
        names: dict[Span, set[str]] = {}
        for entity in find_entities(self._reading):
            names.setdefault((entity["char_start"], entity["char_end"]), set()).add(entity["extraction_class"])
        return names

    @cached_property
    def _courts(self) -> list[_Place]:
        return [_Place(*span) for span in find_named_courts(self._text)]

    @cached_property
    def _bench(self) -> list[_Place]:
        return [_Place(*span) for span in bench(self._text)]

    def _is_date(self, start: int, end: int) -> bool:
        return _fill(self._reading.dates, start, end)

    def _is_amount(self, start: int, end: int) -> bool:
        return _fill(self._reading.amounts, start, end)

    def _is_time_limit(self, start: int, end: int) -> bool:
        limits = (_Place(*span) for span in self._reading.time_limits)
        return _fill(_places(self._reading.durations, limits), start, end)

    def _is_number(self, start: int, end: int) -> bool:
        passage, before = self._text[start:end], self._text[max(0, start - SLACK) : start]
        others = _places(self._reading.dates, self._reading.articles, self._reading.texts)
        has_figures = any(sign.isdecimal() for sign in passage) and not _TEXT.match(passage)
        return has_figures and bool(_NUMBERED.search(before)) and not _overlapping(others, start, end)

    def _is_ecli(self, start: int, end: int) -> bool:
        return _ECLI.fullmatch(self._text, start, end) is not None

    def _is_article(self, start: int, end: int) -> bool:
        return _begins(self._reading.articles, start, end) or bool(_ARTICLE.match(self._text, start, end))

    def _is_text(self, start: int, end: int) -> bool:
        is_named = _TEXT.match(self._text, start, end) and len(self._text[start:end].split()) > 1
        return _begins(self._reading.texts, start, end) or bool(is_named)

    def _is_court(self, start: int, end: int) -> bool:
        return _begins(self._courts, start, end) or bool(_COURT.match(self._text, start, end))

    def _is_formation(self, start: int, end: int) -> bool:
        return bool(_FORMATION.search(self._text, start, end))

    def _is_cited_decision(self, start: int, end: int) -> bool:
        has_figures = any(sign.isdecimal() for sign in self._text[start:end])
        named = _DECISION.search(self._text, start, end) or _overlapping(self._courts, start, end)
        return has_figures and bool(named)

    def _is_ground(self, start: int, end: int) -> bool:
        return bool(_GROUND.search(self._text, start, end))

    def _is_outcome(self, start: int, end: int) -> bool:
        return bool(kinds_of(self._text[start:end])) or decides(self._text[start:end])

    def _is_statement(self, start: int, end: int) -> bool:
        part = self._reading.operative
        return part.start <= start < part.end if part else bool(statements(self._text, Operative(start, end, False)))

    def _is_party(self, start: int, end: int) -> bool:
        passage, reading = self._text[start:end], self._reading
        others = _places(self._courts, self._bench, reading.dates, reading.articles, reading.texts)
        is_name = _CAPITAL.search(passage) and not _PROSE.search(passage) and not _COUNSEL.match(passage)
        return bool(is_name) and not _overlapping(others, start, end) and not office_behind(self._text, end)

    def _is_counsel(self, start: int, end: int) -> bool:
        passage, around = self._text[start:end], self._text[max(0, start - NEAR) : end + NEAR]
        is_name = _CAPITAL.search(passage) and not _PROSE.search(passage)
        return bool(is_name) and bool(_COUNSEL.match(passage) or _PLEADS.search(around))

    def _is_deadline(self, start: int, end: int) -> bool:
        return bool(_within(_places(self._reading.dates, self._reading.durations), start, end))

    def _is_reference(self, start: int, end: int) -> bool:
        forms = (self._is_article, self._is_text, self._is_cited_decision)
        return any(form(start, end) for form in forms) or bool(_TEXT.search(self._text, start, end))

    def _values_in(self, start: int, end: int) -> Iterator[tuple[str, str]]:
        """Yield what a passage's first date, amount, duration and article are, by the name of the attribute."""
        reading, text = self._reading, self._text
        for date in _within(reading.dates, start, end)[:1]:
            yield "iso", date.value.isoformat()
        for duration in _within(reading.durations, start, end)[:1]:
            yield "duration", text[duration.start : duration.end]
            yield "value", f"{duration.value.normalize():f}"
            yield "unit", duration.unit
        for amount in _within(reading.amounts, start, end)[:1]:
            yield "amount", text[amount.start : amount.end]
            yield "valeur", f"{amount.value.normalize():f}"
            yield from (("devise", amount.currency), ("currency", amount.currency))
        for article in _overlapping(reading.articles, start, end)[:1]:
            yield "numero", article.value
            yield "texte", text[article.text_start : article.text_end]


_FORMS: Mapping[str, Callable[[ClassTests, int, int], bool]] = {
    classes.JURIDICTION: ClassTests._is_court,
    classes.FORMATION: ClassTests._is_formation,
    classes.DATE: ClassTests._is_date,
    classes.NUMERO: ClassTests._is_number,
    classes.ECLI: ClassTests._is_ecli,
    classes.PARTIE: ClassTests._is_party,
    classes.AVOCAT: ClassTests._is_counsel,
    classes.TEXTE_VISE: ClassTests._is_text,
    classes.ARTICLE_CITE: ClassTests._is_article,
    classes.JURISPRUDENCE_CITEE: ClassTests._is_cited_decision,
    classes.MOYEN: ClassTests._is_ground,
    classes.SOLUTION: ClassTests._is_outcome,
    classes.MONTANT: ClassTests._is_amount,
    classes.DELAI: ClassTests._is_time_limit,
    classes.DISPOSITIF: ClassTests._is_statement,
    classes.DEADLINE: ClassTests._is_deadline,
    classes.LEGAL_REFERENCE: ClassTests._is_reference,
}


def _places(*groups: Iterable[_Item]) -> list[_Place]:
    return [_Place(item.start, item.end) for items in groups for item in items]


def _within(items: Iterable[Item], start: int, end: int) -> list[Item]:
    return [item for item in items if start <= item.start and item.end <= end]


def _overlapping(items: Iterable[Item], start: int, end: int) -> list[Item]:
    return [item for item in items if item.start < end and start < item.end]


def _fill(items: Iterable[_Item], start: int, end: int) -> bool:
    """Tell whether a passage is one of the items, but for a few words around it."""
    return any(end - start - (item.end - item.start) <= SLACK for item in _within(items, start, end))


def _begins(items: Iterable[_Item], start: int, end: int) -> bool:
    """Tell whether a passage begins with one of the items, whole or in part, but for a few words."""
    return any(item.start - start <= SLACK for item in _overlapping(items, start, end))
