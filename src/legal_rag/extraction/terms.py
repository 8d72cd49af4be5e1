"""Index terms of entities: equal dates, sums, references and names get equal terms."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from legal_rag.base.text import key_of, read_words, words_of
from legal_rag.extraction import entities as classes
from legal_rag.extraction.entities import KNOWN_CLASSES, Entity
from legal_rag.law import find_amounts, find_dates
from legal_rag.law.keys import NO_CODE, all_reference_keys, candidate_keys_of_number
from legal_rag.law.words import TITLES

DATE_CLASSES = frozenset("date deadline effective_date termination_date resolution_date compliance_deadline".split())
AMOUNT_CLASSES = frozenset("montant monetary_amount indemnity_cap liability_limitation share_capital".split())
PARTY = "partie"  # kind of the terms of names and surnames that a question may hold
WORD = "-mot"  # suffix of a kind: terms of single words of a name
NAME_KINDS = {
    **dict.fromkeys("partie party person organisation sender recipient entity_name".split(), PARTY),
    **dict.fromkeys(("avocat", "authorised_signatory"), "avocat"),
}
NUMBER_CLASSES = frozenset({classes.NUMERO, classes.ECLI})
CITING_CLASSES = frozenset(
    {classes.ARTICLE_CITE, classes.TEXTE_VISE, classes.JURISPRUDENCE_CITEE, classes.LEGAL_REFERENCE}
)
MAX_FOLDED_WORDS = 20  # per term: questions and filters have no longer ones
CACHED = 20_000  # entities with cached terms: many decisions share articles and courts
_LISTS = read_words("legal_rag.extraction")
FORMS, SMALL_WORDS = (frozenset(_LISTS[name]) for name in ("forms", "small_words"))
LEFT_ASIDE = TITLES | FORMS | SMALL_WORDS
FUNCTION_WORDS = frozenset(_LISTS["function_words"])
MAX_SEARCH_WORDS = 80  # of one entity, or of a question
# Legal forms in full, folded.
_FORMS = re.compile(
    r"\bsocietes? (?:anonyme|a responsabilite limitee|par actions simplifiee|en nom collectif|en commandite simple"
    r"|civile (?:professionnelle|immobiliere)|civile|d exercice liberal a responsabilite limitee)(?: unipersonnelle)?\b"
)
FIRST_MARK = "\u0300"  # no character before it is a combining mark
_WORDS = re.compile(r"[^\W_]+")
_CLASS_NAMES = {name.casefold(): name for name in KNOWN_CLASSES}


class WantedEntity(NamedTuple):
    """A condition on a document: its entities of a class have all these terms."""

    extraction_class: str
    terms: tuple[str, ...]


def terms_of(entity: Entity) -> list[str]:
    """Return the terms of one entity; none of a long passage."""
    text = entity["extraction_text"]
    if entity["extraction_class"] == classes.ARTICLE_CITE and (of := entity["attributes"].get("texte")):
        text = f"article {text} du {of}"
    return list(_terms_of(entity["extraction_class"], text))


def terms_of_all(entities: Iterable[Entity], decision_date: str = "") -> list[tuple[str, str]]:
    """Return the sorted terms of a document's entities with their classes; `decision_date` has the class ''."""
    terms = {(term, entity["extraction_class"]) for entity in entities for term in terms_of(entity)}
    return sorted(terms | {(term, "") for term in _date_terms(decision_date)})


def wanted_entity(condition: str) -> WantedEntity:
    """Parse a condition such as 'partie=Société Lever', 'montant=1 000 francs' or 'date=12 mai 1993'.

    Raises:
        ValueError: If it has another form, or its value has no terms.
    """
    written, sign, value = (part.strip() for part in condition.partition("="))
    if not (written and sign and value):
        raise ValueError(f"not an entity: {condition!r:.200} (expected CLASS=VALUE, e.g. 'partie=Société Lever')")
    name = class_named(written)
    terms = tuple(dict.fromkeys(_required_terms(name, value)))
    if name == classes.DATE and not terms:
        raise ValueError(f"entity {condition!r:.200} names no day (expected e.g. 'date=12 mai 1993')")
    if not terms:
        raise ValueError(f"entity {condition!r:.200} names nothing (expected e.g. 'partie=Société Lever')")
    return WantedEntity(name, terms)


def class_named(written: str) -> str:
    """Resolve a class as typed by a user ('Numéro'); an unknown one is returned unchanged."""
    return _CLASS_NAMES.get("_".join(words_of(written)), _CLASS_NAMES.get(written.casefold(), written))


def search_words(text: str) -> list[str]:
    """Return the distinct search words of a text: folded, singular, without function words."""
    return list(_search_words(text))


@lru_cache(CACHED)
def _search_words(text: str) -> tuple[str, ...]:
    words = (word for word in words_of(text) if word not in FUNCTION_WORDS and (len(word) > 1 or word.isdecimal()))
    return tuple(dict.fromkeys(map(singular, words)))[:MAX_SEARCH_WORDS]


def search_words_of(entity: Entity) -> list[str]:
    """Return the search words of an entity: of its class, its attributes and its text."""
    name = entity["extraction_class"]
    label = classes.LABELS.get(name, name)
    return search_words(" ".join([label, *entity["attributes"].values(), entity["extraction_text"]]))


def singular(word: str) -> str:
    """Strip the plural ending of a folded word."""
    return word[:-1] if len(word) > 3 and word[-1] in "sx" else word


def name_words(text: str) -> list[str]:
    """Return the distinctive words of a name; none of "X..." or "la société"."""
    words = _FORMS.sub(" ", key_of(text)).split()
    return [word for word in words if word not in LEFT_ASIDE and len(word) > 1]


def amount_terms(text: str) -> list[str]:
    """Return the terms of the sums of money in a text."""
    return list(dict.fromkeys(f"amount:{money.value.normalize():f} {money.currency}" for money in find_amounts(text)))


def name_term(kind: str, words: Iterable[str]) -> str:
    """Format the term of a name from its words."""
    return f"{kind}:{' '.join(words)}"


@lru_cache(CACHED)
def _terms_of(name: str, text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_iter_terms(name, text)))


def _iter_terms(name: str, text: str) -> Iterator[str]:
    if name not in NAME_KINDS:
        yield from _value_terms(name, text) or _folded_term(name, text)
        return
    kind, words = NAME_KINDS[name], name_words(text)
    if 0 < len(words) <= MAX_FOLDED_WORDS:
        yield name_term(kind, words)
        yield from (name_term(kind, [word]) for word in _surnames(text, words))
        yield from (name_term(kind + WORD, [word]) for word in words)


def _surnames(text: str, words: list[str]) -> list[str]:
    """Return the words of a person's surname: those in capitals, else the last."""
    capitals = [word for part in re.findall(r"[^\W\d_]{2,}", text) if part.isupper() for word in name_words(part)]
    if capitals and set(capitals) != set(words):
        return capitals
    return words[-1:] if TITLES & set(words_of(text)) else []


def _required_terms(name: str, value: str) -> list[str]:
    """Return the terms a document must have; for a name one per word, in any order."""
    if name in NAME_KINDS:
        return [name_term(NAME_KINDS[name] + WORD, [word]) for word in name_words(value)]
    terms = [term for term in _value_terms(name, value) if not term.endswith(f" {NO_CODE}")]
    if name in CITING_CLASSES | NUMBER_CLASSES:
        terms = terms[:1]  # the most specific: an article with its code
    return terms or ([] if name == classes.DATE else _folded_term(name, value))


def _value_terms(name: str, text: str) -> list[str]:
    if name in DATE_CLASSES:
        return _date_terms(text)
    if name in AMOUNT_CLASSES:
        return amount_terms(text)
    if name in NUMBER_CLASSES:
        return [term for terms in candidate_keys_of_number(text) for term in terms]
    return all_reference_keys(text) if name in CITING_CLASSES else []


def _folded_term(name: str, text: str) -> list[str]:
    words = [word for word in words_of(text) if word not in LEFT_ASIDE] or words_of(text)
    return [name_term(name, words)] if 0 < len(words) <= MAX_FOLDED_WORDS else []


def _date_terms(text: str) -> list[str]:
    return [f"date:{day.value.isoformat()}" for day in find_dates(text)]
