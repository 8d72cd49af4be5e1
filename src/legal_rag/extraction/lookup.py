"""Find documents by their entities."""

import math
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from legal_rag.corpus.patterns import find_dates
from legal_rag.corpus.references import ParsedQuery, candidate_keys
from legal_rag.extraction.terms import (
    FORMS,
    PARTY,
    SMALL_WORDS,
    TITLES,
    WORD,
    WantedEntity,
    amount_terms,
    name_term,
    words_of,
)

if TYPE_CHECKING:
    from legal_rag.extraction.store import ExtractionStore


MOST_NAMED = 1000  # documents that a fact may lead to and still be one
FEW, FEW_OF = 3, 100  # documents that facts may lead to and be a find: three, or one in a hundred
LONGEST_NAME = 6  # words of a party's name that are looked for together
ARTICLE = "article"  # kind of the facts that say what a question is about, not which case
COURTS = frozenset(
    """
    cour cours tribunal tribunaux conseil conseils chambre assemblee cassation appel instance juridiction tgi ta caa ca
    tj prudhommes hommes prud commerce
""".split()
)  # what follows them is a place
ORDINARY = COURTS | frozenset(
    """
    etat constitutionnel constitution republique francais francaise france europe europeen europeenne union code loi
    article articles ministere ministre public procureur prefet prefecture president premier avocat general generale
    juge administratif administrative judiciaire travail grande commune departement region ville national nationale
    janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre
    qui que quel quelle quels quelles quand comment pourquoi dans sur selon est pour par avec affaire contre il elle
""".split()
)  # no party by themselves, however they are written
PLAIN_TITLES = frozenset("m mme mlle monsieur madame mademoiselle".split())  # what follows them is always a name
CASE_WORDS = frozenset("affaire affaires arret arrets jurisprudence contre".split())  # "l'arrêt Perruche"
# "La loi du 6 juillet 1989" names a law, not a day.
_LAW = re.compile(
    r"\b(?:lois?|décrets?(?:-lois?)?|directives?|règlements?|ordonnances?(?= n))\b[^,;.?!]{0,40}?\bdu\s$", re.IGNORECASE
)
_WORD = re.compile(r"[^\W_]+")


class WantedFact(NamedTuple):
    """Something that a question names, and the documents that hold it."""

    term: str
    doc_ids: frozenset[str]

    @property
    def tells(self) -> bool:
        """Whether it may tell one case from others: articles of law do not."""
        return not self.term.startswith(f"{ARTICLE}:")


class FoundByFacts(NamedTuple):
    """A document that holds facts which a question names."""

    doc_id: str
    score: float  # higher for more facts and rarer ones
    facts: tuple[WantedFact, ...]  # that it holds, in the order of their terms


def documents_by_facts(question: str, store: "ExtractionStore", *, most: int = MOST_NAMED) -> list[FoundByFacts]:
    """Find the documents whose entities hold facts that a question names, best first.

    Args:
        question: In French.
        store: Of a Library's entities.
        most: Documents that a fact may lead to; one that leads to more counts for nothing.
    """
    return _scored(facts_in(question, store, most=most), store.held_count())


def discriminative_documents(question: str | ParsedQuery, store: "ExtractionStore") -> list[str]:
    """Return the documents with discriminative (low document frequency) entities of a question, none without such.

    They hold a fact that few documents hold, or two at once; no other holds more of what the question names, and they
    hold at least half of it. Articles of law count beside other facts only.
    """
    facts, n_documents = facts_in(question, store), store.held_count()
    named = sum(fact.tells for fact in facts)
    few = min(max(FEW, n_documents // FEW_OF), MOST_NAMED)
    found = _scored(facts, n_documents)
    best = [one for one in found if one.score >= found[0].score]
    told = [one for one in best if 2 * sum(fact.tells for fact in one.facts) >= named and _tells(one.facts, few)]
    return [one.doc_id for one in told] if len(told) <= few else []


def documents_with_entities(wanted: Sequence[WantedEntity], store: "ExtractionStore") -> list[str]:
    """Return the ids, in order, of the documents whose entities meet all conditions, however many they are."""
    held = (store.doc_ids_having(term, None, one.extraction_class) for one in wanted for term in one.terms)
    return sorted(set.intersection(*map(set, held)))


def facts_in(question: str | ParsedQuery, store: "ExtractionStore", *, most: int = MOST_NAMED) -> list[WantedFact]:
    """Return the facts that a question names: days, sums and numbers, and of parties those that some document has."""
    query, found = ParsedQuery.of(question), dict[str, WantedFact]()
    for terms in [*([term] for term in _days_and_sums(query.text)), *candidate_keys(query)]:
        if fact := _first_held(terms, store, most):
            found.setdefault(fact.term, fact)
    for fact in _parties(query.text, store, most):
        found.setdefault(fact.term, fact)
    return sorted(found.values())


def _tells(facts: Sequence[WantedFact], few: int) -> bool:
    telling = [fact for fact in facts if fact.tells]
    return len(telling) > 1 or any(len(fact.doc_ids) <= few for fact in telling)


def _scored(facts: Sequence[WantedFact], n_documents: int) -> list[FoundByFacts]:
    held: dict[str, list[WantedFact]] = {}
    for fact in facts:
        for doc_id in fact.doc_ids:
            held.setdefault(doc_id, []).append(fact)
    found = [
        FoundByFacts(doc_id, math.fsum(_weight(fact, n_documents) for fact in some), tuple(some))
        for doc_id, some in held.items()
    ]
    return sorted(found, key=lambda one: (-one.score, one.doc_id))


def _weight(fact: WantedFact, n_documents: int) -> float:
    """Weigh a fact by how rare it is, in nats; one that all documents hold still counts a little."""
    return math.log((n_documents + 1) / len(fact.doc_ids))


def _first_held(terms: Sequence[str], store: "ExtractionStore", most: int) -> WantedFact | None:
    """Look up the first of some terms that any document holds; an unheld one leads nowhere, a common one is no fact."""
    for term in terms:
        doc_ids = store.doc_ids_having(term, most + 1)
        if doc_ids:
            return WantedFact(term, frozenset(doc_ids)) if len(doc_ids) <= most else None
    return WantedFact(terms[0], frozenset())


def _days_and_sums(question: str) -> list[str]:
    """Return the terms of days and sums of money, but for days that are the name of a law."""
    names_a_law = [one.start for one in find_dates(question) if _LAW.search(question, 0, one.start)]
    days = [f"date:{one.value.isoformat()}" for one in find_dates(question) if one.start not in names_a_law]
    return [*days, *amount_terms(question)]


class _Word(NamedTuple):
    text: str  # folded
    capital: bool  # in the midst of the question
    titled: bool  # after "M." or "Mme"; with a capital letter, after any title, legal form or word for a case
    placed: bool  # after a court: its place


def _parties(question: str, store: "ExtractionStore", most: int) -> Iterator[WantedFact]:
    """Find parties' names, the longest first: each word of the question belongs to one at most."""
    words = _words(question)
    taken: set[int] = set()
    for length in range(min(LONGEST_NAME, len(words)), 0, -1):
        for start in range(len(words) - length + 1):
            places = range(start, start + length)
            if taken.isdisjoint(places) and (fact := _party(words[start : start + length], store, most)):
                taken |= set(places)
                yield fact


def _party(words: Sequence[_Word], store: "ExtractionStore", most: int) -> WantedFact | None:
    """Look up words as a party's name: some must be written as names are.

    A single word with a capital letter may be anything, a town, an acronym: what stands before must say that it is a
    name.
    """
    if words[0].placed or not any((one.capital or one.titled) and one.text not in ORDINARY for one in words):
        return None
    if len(words) == 1 and not words[0].titled:
        return None
    terms = [name_term(PARTY, [one.text for one in words])]
    if len(words) == 1 and words[0].titled:
        terms.append(name_term(PARTY + WORD, [words[0].text]))
    fact = _first_held(terms, store, most)
    return fact if fact and fact.doc_ids else None


def _words(question: str) -> list[_Word]:
    """Return the words that names may be made of, with what stands before them."""
    found: list[_Word] = []
    before = ""  # the last word that is not a small one
    for match in _WORD.finditer(question):
        for word in words_of(match.group()):
            if word not in TITLES | FORMS | SMALL_WORDS and len(word) > 1:
                capital = match.group()[0].isupper() and match.start() > 0
                titled = before in PLAIN_TITLES or (capital and before in TITLES | FORMS | CASE_WORDS)
                found.append(_Word(word, capital, titled, before in COURTS))
            if word not in SMALL_WORDS:
                before = word
    return found
