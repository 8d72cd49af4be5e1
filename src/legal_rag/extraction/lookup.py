"""Index terms of entities, equal for equal dates, sums, references and names; documents and entities found by them."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from legal_rag.base.html import displayed
from legal_rag.base.text import key_of, read_words, words_of
from legal_rag.extraction import entities as classes
from legal_rag.extraction.entities import KNOWN_CLASSES, Entity
from legal_rag.extraction.regulations import AskedRule, Rule, asked_rule, narrowing_topics, rule_of, weak_topics
from legal_rag.law import find_amounts, find_dates
from legal_rag.law.courts import COURT_ACRONYMS, COURT_WORDS
from legal_rag.law.keys import NO_CODE, ParsedQuery, all_reference_keys, candidate_keys_of_number, citing_keys
from legal_rag.law.words import FULL_MONTHS, TITLES, TITLES_OF_MEN, TITLES_OF_WOMEN

if TYPE_CHECKING:
    from legal_rag.extraction.store import ExtractionStore

_LISTS = read_words("legal_rag.extraction")
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
FORMS, SMALL_WORDS = (frozenset(_LISTS[name]) for name in ("forms", "small_words"))
LEFT_ASIDE = TITLES | FORMS | SMALL_WORDS
FUNCTION_WORDS = frozenset(_LISTS["function_words"])
MAX_SEARCH_WORDS = 80  # of one entity, or of a question
# Legal forms in full, folded.
_FORMS_IN_FULL = re.compile(
    r"\bsocietes? (?:anonyme|a responsabilite limitee|par actions simplifiee|en nom collectif|en commandite simple"
    r"|civile (?:professionnelle|immobiliere)|civile|d exercice liberal a responsabilite limitee)(?: unipersonnelle)?\b"
)
_CLASS_NAMES = {name.casefold(): name for name in KNOWN_CLASSES}
MAX_SHARING = 1000  # documents; facts shared by more are ignored
FEW, FEW_OF = 3, 100  # a rare fact is shared by at most three documents, or one in a hundred
MAX_NAME_WORDS = 6  # words of a party's name
MAX_LOOKED_UP = 1500  # documents looked up by the words of a question, rarest first
DOCUMENTS_CHECKED, DOCUMENTS_READ = 100, 6  # of those: filtered per batch; read in full
LEAST_SCORE, LEAST_WORDS = 0.3, 2  # of a returned entity
TOPIC = "#"  # prefix of the index's words for topics of rules
MAX_SHARING_TOPIC = 500  # documents; a topic of more does not choose among them
RULES_READ = 50  # rules of a document that share topics with the question
# Weights in a rule's likeness to a question, against a topic in its text: of a rare word, one that names a
# topic, a weak topic, its headings.
OF_WORD, OF_NAMING, OF_WEAK, OF_HEADING = 0.5, 0.25, 0.4, 0.75
STEM_CHARS = 6  # by which words of rules are compared: "compte", "comptée"
# Factors of a rule of another type than the question asks for; without the measure it asks for; for each further topic.
OTHER_TYPE, UNMEASURED, UNASKED = 0.7, 0.77, 0.9
NAMED_ATTRIBUTE = 1.5  # factor if the question has all words of an attribute, such as a rule's type
ARTICLE = "article"  # facts of this kind tell a question's subject, not its case
COURTS, CASE_WORDS = COURT_WORDS.union(COURT_ACRONYMS, _LISTS["courts"]), frozenset(_LISTS["case_words"])
PLAIN_TITLES = TITLES_OF_MEN | TITLES_OF_WOMEN - {"dame"}  # what follows them is always a name
ORDINARY = COURTS | FULL_MONTHS.keys() | set(_LISTS["ordinary"])
# "La loi du 6 juillet 1989" names a law, not a day.
_LAW = re.compile(
    r"\b(?:lois?|décrets?(?:-lois?)?|directives?|règlements?|ordonnances?(?= n))\b[^,;.?!]{0,40}?\bdu\s$", re.IGNORECASE
)
_WORD = re.compile(r"[^\W_]+")


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
    return sorted(terms | {(term, "") for term in date_terms(decision_date)})


def wanted_entity(condition: str) -> WantedEntity:
    """Parse a condition such as 'partie=Société Lever' or 'montant=1 000 francs'; ValueError for others."""
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


@lru_cache(CACHED)
def search_words(text: str) -> tuple[str, ...]:
    """Return the distinct search words of a text: folded, singular, without function words."""
    words = (word for word in words_of(text) if word not in FUNCTION_WORDS and (len(word) > 1 or word.isdecimal()))
    return tuple(dict.fromkeys(map(singular, words)))[:MAX_SEARCH_WORDS]


def search_words_of(entity: Entity) -> tuple[str, ...]:
    """Return the search words of an entity: of its class, its attributes and its text; of a rule its topics too."""
    name = entity["extraction_class"]
    label = classes.LABELS.get(name, name)
    written = " ".join([label, *entity["attributes"].values(), entity["extraction_text"]])
    rule = rule_of(entity) if name in classes.REGULATION else None
    return search_words(written) + tuple(sorted(map(_topic_word, rule.topics | rule.topics_above)) if rule else ())


def _topic_word(topic: str) -> str:
    return f"{TOPIC}{topic}"


def singular(word: str) -> str:
    """Strip the plural ending of a folded word."""
    return word[:-1] if len(word) > 3 and word[-1] in "sx" else word


def name_words(text: str) -> list[str]:
    """Return the distinctive words of a name; none of "X..." or "la société"."""
    words = _FORMS_IN_FULL.sub(" ", key_of(text)).split()
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
        yield from _value_terms(name, text) or folded_term(name, text)
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
    return terms or ([] if name == classes.DATE else folded_term(name, value))


def _value_terms(name: str, text: str) -> list[str]:
    if name in DATE_CLASSES:
        return date_terms(text)
    if name in AMOUNT_CLASSES:
        return amount_terms(text)
    if name in NUMBER_CLASSES:
        return [term for terms in candidate_keys_of_number(text) for term in terms]
    return all_reference_keys(text) if name in CITING_CLASSES else []


def folded_term(name: str, text: str) -> list[str]:
    """Return the term of a text that is neither a name nor a value: its words but for those left aside."""
    words = [word for word in words_of(text) if word not in LEFT_ASIDE] or words_of(text)
    return [name_term(name, words)] if 0 < len(words) <= MAX_FOLDED_WORDS else []


def date_terms(text: str) -> list[str]:
    """Return the terms of the dates named in a text."""
    return [f"date:{day.value.isoformat()}" for day in find_dates(text)]


class WantedFact(NamedTuple):
    """A fact named in a question, with the documents that have it."""

    term: str
    doc_ids: frozenset[str]

    @property
    def is_discriminative(self) -> bool:
        """Whether it may identify a case: articles of law do not."""
        return not self.term.startswith(f"{ARTICLE}:")


@displayed
class FoundEntity(NamedTuple):
    """An entity that shares words with a question."""

    doc_id: str
    entity: Entity
    score: float  # in [LEAST_SCORE, 1]: share of the question's words, weighted by rarity


# Filters document ids; returns those to search with their content hashes.
Passing = Callable[[Sequence[str]], Mapping[str, str]]


class _QuestionWord(NamedTuple):
    text: str  # folded
    capital: bool  # and not the question's first
    titled: bool  # after "M." or "Mme"; capitalised, after any title, legal form or word for a case
    placed: bool  # after a court: its place


def discriminative_documents(question: str | ParsedQuery, store: "ExtractionStore") -> list[str]:
    """Return the documents with discriminative (low document frequency) entities of a question, if any.

    They share one rare fact with the question, or two facts, at least half of those it names, and score best: each fact
    weighs the logarithm of its inverse document frequency. Articles of law alone are not discriminative.
    """
    facts, n_documents = facts_in(question, store), store.held_count()
    few = min(max(FEW, n_documents // FEW_OF), MAX_SHARING)
    shared: dict[str, list[WantedFact]] = {}
    for fact in facts:
        for doc_id in fact.doc_ids:
            shared.setdefault(doc_id, []).append(fact)
    scores = {
        doc_id: math.fsum(math.log((n_documents + 1) / len(fact.doc_ids)) for fact in common)
        for doc_id, common in shared.items()
    }
    best = max(scores.values(), default=0.0)
    doc_ids = [
        doc_id for doc_id in sorted(scores) if scores[doc_id] >= best and _is_discriminative(shared[doc_id], facts, few)
    ]
    return doc_ids if len(doc_ids) <= few else []


def documents_with_entities(wanted: Sequence[WantedEntity], store: "ExtractionStore") -> list[str]:
    """Return the sorted ids of the documents whose entities meet all conditions."""
    held = (store.doc_ids_having(term, None, clause.extraction_class) for clause in wanted for term in clause.terms)
    return sorted(set.intersection(*map(set, held)))


def entities_like(
    question: str | ParsedQuery, store: "ExtractionStore", passing: Passing, most: int = 10
) -> list[FoundEntity]:
    """Return the entities that share the most words with a question, by class, attributes and text, best first.

    Looks up the question's words; reads at most `DOCUMENTS_READ` documents, whatever the size of the Library.
    """
    text = ParsedQuery.of(question).text
    words = search_words(text)
    if not words:
        return []
    asked, n_documents = asked_rule(text), store.count_worded()
    topics = {_topic_word(topic): topic for topic in asked.topics - weak_topics()}
    counts = {word: store.count_having_word(word, MAX_LOOKED_UP + 1) for word in (*words, *topics)}
    topics = {word: topic for word, topic in topics.items() if counts[word]}
    of_words = {word: math.log((n_documents + 1) / max(counts[word], 0.5)) + 0.1 for word in words}
    of_topics = {word: math.log((n_documents + 1) / counts[word]) + 0.1 for word in topics}
    places_like, missed = _weigh_places(
        {word: count for word, count in counts.items() if word in of_words or 0 < count <= MAX_SHARING_TOPIC},
        of_words | of_topics,
        store,
    )
    least = 0.0 if topics else LEAST_SCORE / NAMED_ATTRIBUTE * sum(of_words.values()) - missed
    entities = []
    for doc_id, content_hash, places in _documents_like(places_like, least, store, passing):
        held = store.entities_of(doc_id, content_hash) or []
        most_places = RULES_READ if topics else DOCUMENTS_READ
        entities += [(doc_id, held[place]) for place in places[:most_places] if place < len(held)]
    scores = _scores([entity for _, entity in entities], of_words, asked if topics else None)
    hits = [FoundEntity(*entity, score) for entity, score in zip(entities, scores, strict=True) if score >= LEAST_SCORE]
    return sorted(hits, key=lambda hit: (-hit.score, hit.doc_id, hit.entity["char_start"]))[:most]


def _weigh_places(
    counts: Mapping[str, int], weights: Mapping[str, float], store: "ExtractionStore"
) -> tuple[dict[int, dict[int, float]], float]:
    """Weigh a question's words, the rarest of many, by document key and place; also return the weight of the rest."""
    places_like: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    left, missed = MAX_LOOKED_UP, 0.0
    for word in sorted(counts, key=lambda word: counts[word]):
        left -= counts[word]
        if left < 0:
            missed += weights[word]
            continue
        for key, places in store.entities_having_word(word):
            for place in places.split():
                places_like[key][int(place)] += weights[word]
    return places_like, missed


def _documents_like(
    places_like: Mapping[int, Mapping[int, float]], least: float, store: "ExtractionStore", passing: Passing
) -> Iterator[tuple[str, str, list[int]]]:
    """Yield the documents to read: id, content hash, places of its entities, best first."""
    weights = {key: max(places.values()) for key, places in places_like.items()}
    best = sorted((key for key in weights if weights[key] >= least), key=lambda key: (-weights[key], key))
    n_read = 0
    for start in range(0, len(best), DOCUMENTS_CHECKED):
        ids = store.worded_ids(best[start : start + DOCUMENTS_CHECKED])
        hashes = passing(list(ids.values()))
        for key in best[start : start + DOCUMENTS_CHECKED]:
            if ids.get(key) in hashes and n_read < DOCUMENTS_READ:
                n_read += 1
                places = sorted(places_like[key], key=lambda place: (-places_like[key][place], place))
                yield ids[key], hashes[ids[key]], places
        if n_read == DOCUMENTS_READ:
            return


def _scores(entities: Sequence[Entity], weights: Mapping[str, float], asked: AskedRule | None) -> list[float]:
    """Score entities against a question in [0, 1]: rules by what they are about, where it names that; else by words."""
    if asked is None:
        return [_likeness(entity, weights) for entity in entities]
    rules = {
        at: rule_of(entity) for at, entity in enumerate(entities) if entity["extraction_class"] in classes.REGULATION
    }
    of_rules = dict(zip(rules, _rule_scores(list(rules.values()), _stems(weights), asked), strict=True))
    return [of_rules[at] if at in of_rules else _likeness(entity, weights) for at, entity in enumerate(entities)]


def _likeness(entity: Entity, weights: Mapping[str, float]) -> float:
    """Score an entity by the question's words; 0 if it shares fewer than `LEAST_WORDS` of several."""
    shared = weights.keys() & set(search_words_of(entity))
    if len(shared) < min(LEAST_WORDS, len(weights)):
        return 0.0
    values = (set(search_words(value)) for name, value in entity["attributes"].items() if name != "section")
    named = NAMED_ATTRIBUTE if any(value and value <= weights.keys() for value in values) else 1.0
    return min(1.0, named * sum(weights[word] for word in shared) / sum(weights.values()))


def _rule_scores(rules: Sequence[Rule], words: frozenset[str], asked: AskedRule) -> list[float]:
    """Score rules by topics and by words, rare among them, which count less; words that none has say nothing."""
    stems = [(_stems(search_words(rule.text)), _stems(search_words(rule.above))) for rule in rules]
    counts = Counter(word for own, above in stems for word in words & (own | above))
    weights = {word: 1 - math.log(count) / math.log(len(rules) + 1) for word, count in counts.items()}
    further = _stems(search_words(asked.rest))
    weights = {word: (OF_WORD if word in further else OF_NAMING) * weight for word, weight in weights.items()}
    topics = {topic: OF_WEAK if topic in weak_topics() else 1.0 for topic in asked.topics}
    strong = topics.keys() - weak_topics()
    whole = math.fsum(topics.values()) + math.fsum(weights.values())
    scores = []
    for rule, (own, above) in zip(rules, stems, strict=True):
        shared = _share(topics, rule.topics, rule.topics_above) + _share(weights, own, above)
        factor = UNASKED ** len(rule.topics & narrowing_topics() - asked.topics)
        if asked.key and rule.key != asked.key:
            factor *= OTHER_TYPE
        if asked.measure and not rule.states(asked.measure):
            factor *= UNMEASURED
        is_on_topic = not strong.isdisjoint(rule.topics | rule.topics_above)
        scores.append(is_on_topic * factor * shared / whole)
    return scores


def _share(weights: Mapping[str, float], of_text: Container[str], above: Container[str]) -> float:
    """Sum the weights of what a rule's text has, and a part of those of what its headings alone have."""
    return math.fsum(
        weight * (1.0 if name in of_text else OF_HEADING * (name in above)) for name, weight in weights.items()
    )


def _stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word[:STEM_CHARS] for word in words)


def facts_in(question: str | ParsedQuery, store: "ExtractionStore") -> list[WantedFact]:
    """Return the dates, sums and references of a question, and the parties that some document has."""
    query, facts = ParsedQuery.of(question), dict[str, WantedFact]()
    for terms in [*([term] for term in _days_and_sums(query.text)), *citing_keys(query)]:
        if fact := _first_found(terms, store):
            facts.setdefault(fact.term, fact)
    for fact in _parties(query.text, store):
        facts.setdefault(fact.term, fact)
    return sorted(facts.values())


def _is_discriminative(shared: Sequence[WantedFact], facts: Sequence[WantedFact], few: int) -> bool:
    counted = [fact for fact in shared if fact.is_discriminative]
    is_half = 2 * len(counted) >= sum(fact.is_discriminative for fact in facts)
    return is_half and (len(counted) > 1 or any(len(fact.doc_ids) <= few for fact in counted))


def _first_found(terms: Sequence[str], store: "ExtractionStore") -> WantedFact | None:
    """Look up the first term that any document has; None if too many have it."""
    for term in terms:
        doc_ids = store.doc_ids_having(term, MAX_SHARING + 1)
        if doc_ids:
            return WantedFact(term, frozenset(doc_ids)) if len(doc_ids) <= MAX_SHARING else None
    return WantedFact(terms[0], frozenset())


def _days_and_sums(question: str) -> list[str]:
    dates = [day for day in find_dates(question) if not _LAW.search(question, 0, day.start)]
    return [f"date:{day.value.isoformat()}" for day in dates] + amount_terms(question)


def _parties(question: str, store: "ExtractionStore") -> Iterator[WantedFact]:
    """Look up parties' names, longest first; each word of the question belongs to at most one."""
    words = _question_words(question)
    taken: set[int] = set()
    for length in range(min(MAX_NAME_WORDS, len(words)), 0, -1):
        for start in range(len(words) - length + 1):
            places = range(start, start + length)
            if taken.isdisjoint(places) and (fact := _party(words[start : start + length], store)):
                taken |= set(places)
                yield fact


def _party(words: Sequence[_QuestionWord], store: "ExtractionStore") -> WantedFact | None:
    """Look up words written like a name; a single word needs a title, since any word may be capitalised."""
    if words[0].placed or not any((word.capital or word.titled) and word.text not in ORDINARY for word in words):
        return None
    if len(words) == 1 and not words[0].titled:
        return None
    terms = [name_term(PARTY, [word.text for word in words])]
    if len(words) == 1:
        terms.append(name_term(PARTY + WORD, [words[0].text]))
    fact = _first_found(terms, store)
    return fact if fact and fact.doc_ids else None


def _question_words(question: str) -> list[_QuestionWord]:
    words: list[_QuestionWord] = []
    before = ""  # the last word that is not a function word
    for match in _WORD.finditer(question):
        for word in words_of(match.group()):
            if word not in TITLES | FORMS | SMALL_WORDS and len(word) > 1:
                capital = match.group()[0].isupper() and match.start() > 0
                titled = before in PLAIN_TITLES or (capital and before in TITLES | FORMS | CASE_WORDS)
                words.append(_QuestionWord(word, capital, titled, before in COURTS))
            if word not in SMALL_WORDS:
                before = word
    return words
