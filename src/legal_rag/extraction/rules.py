"""Rule-based entities of a decision, in the classes of `jurisprudence` or of another schema."""

import re
from collections.abc import Iterator, Mapping, Sequence

from legal_rag.extraction import entities as classes
from legal_rag.extraction.entities import REGULATION, Entity, in_order, rule_entity
from legal_rag.extraction.parties import find_counsel, find_parties
from legal_rag.extraction.regulations import find_rules
from legal_rag.extraction.schemas import Schema
from legal_rag.law import (
    ArticleCitation,
    Identifier,
    LegalText,
    Reading,
    find_cited_decisions,
    read,
)
from legal_rag.law.scanning import Around

# The rules' classes under their names in other schemas.
_REFERENCES = dict.fromkeys(
    (classes.ARTICLE_CITE, classes.TEXTE_VISE, classes.JURISPRUDENCE_CITEE), classes.LEGAL_REFERENCE
)
_RENAMED_CLASSES = {
    "general": {
        classes.MONTANT: classes.MONETARY_AMOUNT,
        classes.DELAI: classes.DEADLINE,
        classes.PARTIE: classes.PERSON,
        **_REFERENCES,
    },
    "correspondence": {classes.DELAI: classes.DEADLINE, **_REFERENCES},
    "contract": {classes.PARTIE: "party"},
}
_PERSON = re.compile(
    r"(?:M|MM|Mme|Mmes|Mlle|Melle|Monsieur|Madame|Mademoiselle|Messieurs|Mesdames|Me|Dr|époux|consorts)\b"
)
# The deciding court's own numbers for the case.
_OWN_NUMBER = Around(
    r"(?:(?<=\n)[ \t]*ARR[ÊE]T|\bRG[ \u00a0]?:?)[ \u00a0]?(?:n[°o])?[ \u00a0]?:?[ \u00a0]?(?P<number>\d{1,10})"
    r"(?![\d.,-]|\s?/)",
    ["arrêt", "arret", "rg"],
    12,
    60,
)
_ARTICLES_LETTER = re.compile(r"(?:L\.?\s?O|[LRDAC])\.?\s?\*?\s?$")
_OF_A_CODE = re.compile(r"\s+du\s+code\b", re.IGNORECASE)
# "les ordonnances n° 58-1067 du 7 novembre 1958 et 58-1097 du 15 novembre 1958"
_IN_STATUTES = re.compile(r"\d\s+et\s$"), re.compile(r"\s+du\s+\d")


def find_entities(text: str | Reading) -> list[Entity]:
    """Find the entities of a French decision, in the classes of `jurisprudence`."""
    reading = read(text)
    text = reading.text
    items = [rule_entity(classes.DATE, text, day.start, day.end, iso=day.value.isoformat()) for day in reading.dates]
    items += _statute_entities(text, reading.texts, reading.articles)
    cases = _case_numbers(text, reading)
    items += _number_entities(text, cases)
    spans = {
        classes.JURISPRUDENCE_CITEE: find_cited_decisions(text, reading.dates, cases),
        classes.MOYEN: reading.grounds,
        classes.DISPOSITIF: reading.statements,
        classes.SOLUTION: reading.outcomes,
        classes.JURIDICTION: reading.courts,
        classes.FORMATION: reading.formations,
        classes.DELAI: reading.time_limits,
    }
    items += [rule_entity(name, text, *span) for name, named in spans.items() for span in named]
    for amount in reading.amounts:
        value = f"{amount.value.normalize():f}"
        items.append(rule_entity(classes.MONTANT, text, amount.start, amount.end, valeur=value, devise=amount.currency))
    counsel = find_counsel(text)
    return in_order([*items, *counsel, *find_parties(text, counsel)])


def classes_found(schema: Schema) -> list[str]:
    """Return the classes of a schema that the rules find: all of a decision and a regulation, few of others."""
    known = {*REGULATION, *_decisions_classes(schema)}
    return [name for name in schema.classes if name in known]


def entities_of_schema(text: str | Reading, schema: Schema) -> list[Entity]:
    """Find the entities of a text in a schema's classes; classes of the rules without an equivalent are dropped."""
    reading, names = read(text), _RENAMED_CLASSES.get(schema.name, {})
    entities: list[Entity] = []
    if _decisions_classes(schema) & set(schema.classes):
        entities = [entity | {"extraction_class": _renamed(names, entity)} for entity in find_entities(reading)]
    if set(REGULATION) & set(schema.classes):
        entities += find_rules(reading)
    return in_order(entity for entity in entities if entity["extraction_class"] in schema.classes)


def _decisions_classes(schema: Schema) -> set[str]:
    return {*classes.JURISPRUDENCE, *_RENAMED_CLASSES.get(schema.name, {}).values()}


def _renamed(names: Mapping[str, str], entity: Entity) -> str:
    name = names.get(entity["extraction_class"], entity["extraction_class"])
    return classes.ORGANISATION if name == classes.PERSON and not _PERSON.match(entity["extraction_text"]) else name


def _number_entities(text: str, cases: Sequence[Identifier]) -> Iterator[Entity]:
    for case in cases:
        if case.kind == "ecli":
            yield rule_entity(classes.ECLI, text, case.start, case.end)
        else:
            first_digit = next((i for i in range(case.start, case.end) if text[i].isdecimal()), case.start)
            yield rule_entity(classes.NUMERO, text, first_digit, _end_without_stop(text, case))
    for match in _OWN_NUMBER.finditer(text):
        yield rule_entity(classes.NUMERO, text, *match.span("number"))


def _case_numbers(text: str, reading: Reading) -> list[Identifier]:
    """Find case numbers; '52-12' in 'L. 52-12' is part of an article's number."""
    cited = {place for citation in reading.articles for place in range(citation.start, citation.end)}
    return [ref for ref in reading.cases if ref.kind != "number" or not (ref.start in cited or _is_law(text, ref))]


def _is_law(text: str, case: Identifier) -> bool:
    before = text[max(case.start - 7, 0) : case.start]
    before_statute, behind_statute = _IN_STATUTES
    in_statutes = before_statute.search(before) and behind_statute.match(text, case.end)
    return bool(in_statutes or _ARTICLES_LETTER.search(before) or _OF_A_CODE.match(text, case.end))


def _end_without_stop(text: str, case: Identifier) -> int:
    """Return the end of a number: the full stop of 'AN.' ends the sentence, those of 'Q.P.C.' belong to it."""
    written = text[case.start : case.end]
    return case.end - 1 if written.endswith(".") and written.count(".") == 1 else case.end


def _statute_entities(text: str, texts: Sequence[LegalText], citations: Sequence[ArticleCitation]) -> Iterator[Entity]:
    for citation in citations:
        of = {"texte": text[citation.text_start : citation.text_end]} if citation.text_end > citation.text_start else {}
        yield rule_entity(classes.ARTICLE_CITE, text, citation.start, citation.end, numero=citation.value, **of)
    of_articles = {citation.text_start for citation in citations if citation.text_end > citation.text_start}
    for named in texts:
        if named.kind != "code" or named.start not in of_articles:
            yield rule_entity(classes.TEXTE_VISE, text, named.start, named.end)
