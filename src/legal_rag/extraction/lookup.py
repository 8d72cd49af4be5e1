"""Find documents by their entities: those a question singles out, and those that meet conditions."""

import math
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from legal_rag.corpus.patterns import find_dates
from legal_rag.corpus.references import ParsedQuery, candidate_keys
from legal_rag.corpus.words import read_words
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

MAX_SHARING = 1000  # documents that may share a fact; one that more share is ignored
FEW, FEW_OF = 3, 100  # documents that share a rare fact: three, or one in a hundred
MAX_NAME_WORDS = 6  # words of a party's name
ARTICLE = "article"  # kind of the facts that say what a question is about, not which case
_LISTS = read_words("legal_rag.extraction")
COURTS, PLAIN_TITLES, CASE_WORDS = (frozenset(_LISTS[name]) for name in ("courts", "plain_titles", "case_words"))
ORDINARY = COURTS.union(_LISTS["ordinary"])
# "La loi du 6 juillet 1989" names a law, not a day.
_LAW = re.compile(
    r"\b(?:lois?|décrets?(?:-lois?)?|directives?|règlements?|ordonnances?(?= n))\b[^,;.?!]{0,40}?\bdu\s$", re.IGNORECASE
)
_WORD = re.compile(r"[^\W_]+")


class WantedFact(NamedTuple):
    """A fact that a question names, and the documents that share it."""

    term: str
    doc_ids: frozenset[str]

    @property
    def is_discriminative(self) -> bool:
        """Whether it may single out a case: articles of law do not."""
        return not self.term.startswith(f"{ARTICLE}:")


class _Word(NamedTuple):
    text: str  # folded
    capital: bool  # and not the question's first
    titled: bool  # after "M." or "Mme"; capitalised, after any title, legal form or word for a case
    placed: bool  # after a court: its place


def discriminative_documents(question: str | ParsedQuery, store: "ExtractionStore") -> list[str]:
    """Return the documents with discriminative (low document frequency) entities of a question, if any.

    They share one rare fact with the question or two facts, at least half of all it names, and score best: each fact
    weighs the logarithm of its inverse document frequency. Articles of law alone are not discriminative.
    """
    facts, n_documents = facts_in(question, store), store.held_count()
    few = min(max(FEW, n_documents // FEW_OF), MAX_SHARING)
    shared: dict[str, list[WantedFact]] = {}
    for fact in facts:
        for doc_id in fact.doc_ids:
            shared.setdefault(doc_id, []).append(fact)
    scores = {
        doc_id: math.fsum(math.log((n_documents + 1) / len(fact.doc_ids)) for fact in some)
        for doc_id, some in shared.items()
    }
    best = max(scores.values(), default=0.0)
    found = [
        doc_id for doc_id in sorted(scores) if scores[doc_id] >= best and _is_discriminative(shared[doc_id], facts, few)
    ]
    return found if len(found) <= few else []


def documents_with_entities(wanted: Sequence[WantedEntity], store: "ExtractionStore") -> list[str]:
    """Return the sorted ids of the documents whose entities meet all conditions."""
    held = (store.doc_ids_having(term, None, one.extraction_class) for one in wanted for term in one.terms)
    return sorted(set.intersection(*map(set, held)))


def facts_in(question: str | ParsedQuery, store: "ExtractionStore") -> list[WantedFact]:
    """Return the dates, sums and references that a question names, and the parties that some document has."""
    query, found = ParsedQuery.of(question), dict[str, WantedFact]()
    for terms in [*([term] for term in _days_and_sums(query.text)), *candidate_keys(query)]:
        if fact := _first_found(terms, store):
            found.setdefault(fact.term, fact)
    for fact in _parties(query.text, store):
        found.setdefault(fact.term, fact)
    return sorted(found.values())


def _is_discriminative(shared: Sequence[WantedFact], facts: Sequence[WantedFact], few: int) -> bool:
    counted = [fact for fact in shared if fact.is_discriminative]
    is_half = 2 * len(counted) >= sum(fact.is_discriminative for fact in facts)
    return is_half and (len(counted) > 1 or any(len(fact.doc_ids) <= few for fact in counted))


def _first_found(terms: Sequence[str], store: "ExtractionStore") -> WantedFact | None:
    """Look up the first term that any document has; None where too many have it."""
    for term in terms:
        doc_ids = store.doc_ids_having(term, MAX_SHARING + 1)
        if doc_ids:
            return WantedFact(term, frozenset(doc_ids)) if len(doc_ids) <= MAX_SHARING else None
    return WantedFact(terms[0], frozenset())


def _days_and_sums(question: str) -> list[str]:
    """Return the terms of dates and sums; the date in a law's name is none."""
    dates = [one for one in find_dates(question) if not _LAW.search(question, 0, one.start)]
    return [f"date:{one.value.isoformat()}" for one in dates] + amount_terms(question)


def _parties(question: str, store: "ExtractionStore") -> Iterator[WantedFact]:
    """Look up parties' names, longest first; each word of the question belongs to at most one."""
    words = _words(question)
    taken: set[int] = set()
    for length in range(min(MAX_NAME_WORDS, len(words)), 0, -1):
        for start in range(len(words) - length + 1):
            places = range(start, start + length)
            if taken.isdisjoint(places) and (fact := _party(words[start : start + length], store)):
                taken |= set(places)
                yield fact


def _party(words: Sequence[_Word], store: "ExtractionStore") -> WantedFact | None:
    """Look up words that are written as a name is; a single word needs a title, for a capital may begin anything."""
    if words[0].placed or not any((one.capital or one.titled) and one.text not in ORDINARY for one in words):
        return None
    if len(words) == 1 and not words[0].titled:
        return None
    terms = [name_term(PARTY, [one.text for one in words])]
    if len(words) == 1:
        terms.append(name_term(PARTY + WORD, [words[0].text]))
    fact = _first_found(terms, store)
    return fact if fact and fact.doc_ids else None


def _words(question: str) -> list[_Word]:
    """Return the words that may belong to names, with what precedes them."""
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
