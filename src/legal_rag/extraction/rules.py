"""The rules: entities of a French decision found by patterns alone, without a model.

In: a document's text. Out: its entities, at their places, of the classes of the schema `jurisprudence`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from legal_rag.extraction.classes import (
    ARTICLE_CITE,
    DATE,
    DEADLINE,
    DELAI,
    DISPOSITIF,
    ECLI,
    FORMATION,
    JURIDICTION,
    JURISPRUDENCE_CITEE,
    LEGAL_DATE,
    LEGAL_REFERENCE,
    MONETARY_AMOUNT,
    MONTANT,
    MOYEN,
    NUMERO,
    ORGANISATION,
    PARTIE,
    PARTY,
    PERSON,
    SOLUTION,
    TEXTE_VISE,
)
from legal_rag.extraction.counsel import find_counsel
from legal_rag.extraction.decision_parts import grounds, operative_part, solutions, statements
from legal_rag.extraction.entities import Entity, in_order, rule_entity
from legal_rag.extraction.parties import find_parties
from legal_rag.extraction.schemas import Schema
from legal_rag.legal_patterns import (
    Identifier,
    LegalDate,
    find_amounts,
    find_article_citations,
    find_cited_decisions,
    find_courts,
    find_dates,
    find_formations,
    find_identifiers,
    find_texts,
    find_time_limits,
)


def find_entities(text: str) -> list[Entity]:
    """Find the entities of a French decision."""
    dates = find_dates(text)
    found = [rule_entity(DATE, text, one.start, one.end, iso=one.value.isoformat()) for one in dates]
    identifiers = find_identifiers(text)
    found += _numbers(text, identifiers)
    amounts = find_amounts(text)
    sums = {one.start for one in amounts}
    found += (one for one in _texts(text, dates) if one["char_start"] not in sums)  # "articles 1382 et 760 euros"
    cited = find_cited_decisions(text, dates, identifiers)
    found += [rule_entity(JURISPRUDENCE_CITEE, text, *span) for span in cited]
    found += _parts(text)
    found += [rule_entity(JURIDICTION, text, *span) for span in find_courts(text)]
    found += [rule_entity(FORMATION, text, *span) for span in find_formations(text)]
    found += [rule_entity(DELAI, text, *span) for span in find_time_limits(text)]
    for amount in amounts:
        value = f"{amount.value.normalize():f}"
        found.append(rule_entity(MONTANT, text, amount.start, amount.end, valeur=value, devise=amount.currency))
    counsel = find_counsel(text)
    return in_order([*found, *counsel, *find_parties(text, counsel)])


# What the rules find is called otherwise in other schemas; what has no name there is left out.
_REFERENCES = dict.fromkeys((ARTICLE_CITE, TEXTE_VISE, JURISPRUDENCE_CITEE), LEGAL_REFERENCE)
CLASSES_ELSEWHERE = {
    "general": {DATE: LEGAL_DATE, MONTANT: MONETARY_AMOUNT, DELAI: DEADLINE, PARTIE: PERSON, **_REFERENCES},
    "correspondence": {DATE: LEGAL_DATE, DELAI: DEADLINE, **_REFERENCES},
    "contract": {PARTIE: PARTY},
}
_PERSON = re.compile(
    r"(?:M|MM|Mme|Mmes|Mlle|Melle|Monsieur|Madame|Mademoiselle|Messieurs|Mesdames|Me|Dr|époux|consorts)\b"
)


def in_classes_of(entities: list[Entity], schema: Schema) -> list[Entity]:
    """Return what the rules found as far as a schema has classes for it, under the schema's names."""
    names = CLASSES_ELSEWHERE.get(schema.name, {})
    renamed = [one | {"extraction_class": _name_in(names, one)} for one in entities]
    return [one for one in renamed if one["extraction_class"] in schema.classes]


def _name_in(names: Mapping[str, str], one: Entity) -> str:
    name = names.get(one["extraction_class"], one["extraction_class"])
    return ORGANISATION if name == PERSON and not _PERSON.match(one["extraction_text"]) else name


def _parts(text: str) -> Iterator[Entity]:
    yield from (rule_entity(MOYEN, text, *span) for span in grounds(text))
    part = operative_part(text)
    stated = statements(text, part) if part else []
    yield from (rule_entity(DISPOSITIF, text, *span) for span in stated)
    yield from (rule_entity(SOLUTION, text, *span) for span in solutions(text, part, stated))


def _numbers(text: str, identifiers: Sequence[Identifier]) -> Iterator[Entity]:
    for one in identifiers:
        if one.kind == "ecli":
            yield rule_entity(ECLI, text, one.start, one.end)
        elif one.kind != "article":
            yield rule_entity(NUMERO, text, _first_digit(text, one), _without_stop(text, one))
    for match in _ARREST_NUMBER.finditer(text):
        yield rule_entity(NUMERO, text, *match.span("number"))


# Numbers by which only the deciding court knows the case.
_ARREST_NUMBER = re.compile(
    r"(?:(?<=\n)[ \t]*ARR[ÊE]T|\bRG[ \u00a0]?:?)[ \u00a0]?(?:n[°o]|N[°o])?[ \u00a0]?:?[ \u00a0]?(?P<number>\d{1,10})"
    r"(?![\d/.,-])",
    re.IGNORECASE,
)


def _first_digit(text: str, one: Identifier) -> int:
    return next((i for i in range(one.start, one.end) if text[i].isdecimal()), one.start)


def _without_stop(text: str, one: Identifier) -> int:
    """Return where a number ends: a full stop behind 'AN' ends the sentence, those of 'Q.P.C.' belong to it."""
    written = text[one.start : one.end]
    return one.end - 1 if written.endswith(".") and written.count(".") == 1 else one.end


def _texts(text: str, dates: list[LegalDate]) -> Iterator[Entity]:
    texts = find_texts(text, dates)
    citations = find_article_citations(text, texts)
    for one in citations:
        of = {"texte": text[one.text_start : one.text_end]} if one.text_end > one.text_start else {}
        yield rule_entity(ARTICLE_CITE, text, one.start, one.end, numero=one.value, **of)
    of_articles = {one.text_start for one in citations if one.text_end > one.text_start}
    for named in texts:
        if named.kind != "code" or named.start not in of_articles:
            yield rule_entity(TEXTE_VISE, text, named.start, named.end)
