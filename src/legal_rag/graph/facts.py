"""The edges that a document's own text, columns and entities give, each with its place in the text."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from legal_rag.corpus.documents import Document
from legal_rag.corpus.folding import Span
from legal_rag.corpus.legal_citations import legal_date
from legal_rag.corpus.patterns import Identifier, find_courts, find_dates, find_identifiers
from legal_rag.corpus.patterns.courts import court_of, words_of_value
from legal_rag.corpus.references import NO_CODE, canonical_key, cited_identifiers, own_keys, relaxed_key
from legal_rag.extraction.entities import ARTICLE_CITE, AVOCAT, PARTIE, TEXTE_VISE, Entity
from legal_rag.extraction.outcomes import ANNULATION, CASSATION, CONFIRMATION, INFIRMATION, REJET, outcome_of
from legal_rag.graph.names import (
    LOWER,
    NAME,
    Named,
    article_of_statute,
    court_node,
    document_node,
    identifier_node,
    is_of_one_document,
    is_reference,
    person_node,
    statute_node,
)

NOWHERE = (-1, -1)  # of an edge that a column gives, not the text
RULES_VERSION = 1  # of what follows: edges made by another version are made anew
HEAD_CHARS = 3000  # in which a decision names its court
ATTACKED_CHARS = 260  # from "contre l'arrêt" to the court that gave it
_VISA = re.compile(
    r"^[ \t]*(?:\d{1,3}[.°)]\s*)?vu,?\s+(?:enfin\s+|aussi\s+|ensemble\s+)?(?:l['’]\s*|les?\s+|la\s+)?"
    r"(?:articles?|anciens?\s+articles?|principes?|codes?|lois?|ordonnances?|d[ée]crets?|constitution)\b[^\n]*",
    re.IGNORECASE | re.MULTILINE,
)
_ATTACKED = re.compile(
    r"(?:pourvois?|recours|appels?|requ[êe]tes?)\b[^;\n]{0,80}?\bcontre\s+(?:l['’]|le\s+|un\s+|la\s+|une\s+)"
    r"\s?(?:arr[êe]t|jugement|ordonnance|d[ée]cision)\b",
    re.IGNORECASE,
)
BEFORE_NUMBER = 60  # characters in which a number is said to be a decision's
_SAID_OF_DECISION = re.compile(
    r"(?:d[ée]cisions?|arr[êe]ts?|jugements?|requ[êe]tes?|affaires?)\b[^;\n«»]{0,30}(?:n\s?[°os.]|num[ée]ro)[^;\n]{0,25}$",
    re.IGNORECASE,
)
_CODE = re.compile(r"(?:nouveau |ancien )?(?:code|livre)\b", re.IGNORECASE)
_REVERSED, _MAINTAINED = frozenset((CASSATION, ANNULATION, INFIRMATION)), frozenset((REJET, CONFIRMATION))


class Fact(NamedTuple):
    """An edge, and where the text of one document says so."""

    source: Named
    target: Named
    type: str  # one of `EDGE_TYPES`
    start: int = -1  # characters of the document's content, of the name that stands there; -1: a column says so
    end: int = -1
    n: int = 1  # times
    detail: str = ""  # a party's role, a ruling's words


def node_of_document(document: Document) -> Named:
    """Return the node of a document: a decision, or the article that it is."""
    keys = own_keys(document)
    return document_node(document.id, is_article=bool(keys) and all(key.startswith("article:") for key in keys))


def text_facts(document: Document) -> list[Fact]:
    """Return the edges that a document's text and columns give; linear in its length."""
    node = node_of_document(document)
    return [*_citations(document, node), *_court(document, node), *_decision_below(document, node)]


def entity_facts(document: Document, entities: Iterable[Entity]) -> list[Fact]:
    """Return the edges that entities give: parties with a role, their counsel, statutes and their articles.

    Articles of codes are left out: `text_facts` gives them.
    """
    node = node_of_document(document)
    found: dict[tuple[str, str, str], Fact] = {}
    for fact in _in_full([fact for one in entities if (fact := _entity_fact(one, node, document.id))]):
        key = (fact.source.key, fact.target.key, fact.type)
        known = found.get(key)
        found[key] = known._replace(n=known.n + 1) if known else fact
    return list(found.values())


def _citations(document: Document, node: Named) -> Iterator[Fact]:
    own, length = set(own_keys(document)), len(document.content)
    laws_end = length + sum(len(one) + 1 for one in document.applied_laws)
    visas = [match.span() for match in _VISA.finditer(document.content)]
    nodes: dict[str, Named] = {}
    places: dict[str, list[Span]] = {}
    for one in cited_identifiers(document):
        own_one = not own.isdisjoint((canonical_key(one), relaxed_key(canonical_key(one))))
        if not own_one and _is_certain(one, document.content):
            named = identifier_node(one)
            nodes.setdefault(named.key, named)
            places.setdefault(named.key, []).append((one.start, one.end))
    for named in nodes.values():
        if named.key.endswith(f" {NO_CODE}"):  # "article 2", of whatever text: no node that others could share
            continue
        found = places[named.key]
        within = [span for span in found if span[1] <= length]
        in_visa = [span for span in within if any(start <= span[0] < end for start, end in visas)]
        applies = named.type == "article" and (in_visa or any(length <= span[0] < laws_end for span in found))
        place = next(iter(in_visa or within), NOWHERE)
        yield Fact(node, named, "applies" if applies else "cites", *place, len(found))


def _is_certain(one: Identifier, text: str) -> bool:
    """Tell whether a reference identifies something by itself.

    Courts of appeal give the same "RG" numbers, and a number without a series may be one of a decree: it must be said
    to be a decision's.
    """
    if one.kind == "number":
        return _SAID_OF_DECISION.search(text[max(0, one.start - BEFORE_NUMBER) : one.start]) is not None
    return one.kind != "rg"


def _court(document: Document, node: Named) -> Iterator[Fact]:
    if node.type != "decision":
        return
    head = document.content[:HEAD_CHARS]
    named = [document.title[start:end] for start, end in find_courts(document.title)[:1]]
    court = court_node(document.juridiction, document.formation) if document.juridiction else court_node(*named)
    if court:
        words = words_of_value(court.name)
        places = (span for span in find_courts(head) if words_of_value(head[slice(*span)]) <= words)
        yield Fact(node, court, "decided_by", *next(places, NOWHERE))


def _decision_below(document: Document, node: Named) -> Iterator[Fact]:
    """Yield the edge to the one decision that a decision reverses or maintains, where its text names one."""
    found = {
        below.key: (below, span)
        for match in _ATTACKED.finditer(document.content)
        if (below := _attacked(document, match.end()))
        for span in [match.span()]
    }
    if len(found) != 1:
        return
    ((below, span),) = found.values()
    court = court_of(document.juridiction, document.formation, document.title)
    outcome = outcome_of(document.solution, court, document.content, None)
    if outcome.kinds and (outcome.kinds <= _REVERSED or outcome.kinds <= _MAINTAINED):
        kind = "overrules" if outcome.kinds <= _REVERSED else "upholds"
        yield Fact(node, below, kind, *span, detail=outcome.words)


def _attacked(document: Document, start: int) -> Named | None:
    """Name the decision that is described from a place on, by its court and date, and its number if it has one."""
    text = document.content[start : start + ATTACKED_CHARS]
    courts, dates = find_courts(text), find_dates(text)
    if not courts or not dates:
        return None
    end = max(courts[0][1], dates[0].end)
    numbers = [one for one in find_identifiers(text[:end]) if one.kind != "article"]
    unique = [named for named in map(identifier_node, numbers) if is_reference(named.key)]
    if unique and numbers[0].kind != "rg":
        return unique[0]
    court, day = court_node(text[slice(*courts[0])]), dates[0].value.isoformat()
    if court is None:
        return None
    key = f"{LOWER}{court.key} {day} {numbers[0].value if numbers else f'@{document.id}'}"
    return Named(key, "decision", f"{court.name}, {legal_date(day)}{f', n° {numbers[0].value}' if numbers else ''}")


def _in_full(facts: list[Fact]) -> list[Fact]:
    """Give persons the longest of their names in this document: "Mme Pailler" is "Mme Aline Pailler"."""
    names = {one.key: one for fact in facts for one in (fact.source, fact.target) if is_of_one_document(one.key)}
    words = {key: frozenset(key.removeprefix(NAME).split()[:-1]) for key in names}
    longest = {key: [one for one in names if words[key] < words[one]] for key in names}
    whole = {key: names[longer[0]] for key, longer in longest.items() if len(longer) == 1}
    return [
        fact._replace(source=whole.get(fact.source.key, fact.source), target=whole.get(fact.target.key, fact.target))
        for fact in facts
    ]


def _entity_fact(entity: Entity, node: Named, doc_id: str) -> Fact | None:
    kind, text, span = entity["extraction_class"], entity["extraction_text"], (entity["char_start"], entity["char_end"])
    attributes = entity["attributes"]
    if kind == TEXTE_VISE:
        statute = statute_node(text)
        return Fact(node, statute, "cites", *span) if statute else None
    if kind == ARTICLE_CITE and (of := statute_node(attributes.get("texte", ""))) and not _CODE.match(of.name):
        return Fact(node, article_of_statute(attributes["numero"], of), "cites", *span)
    if kind == PARTIE and (role := attributes.get("role")):
        party = person_node("party", text, doc_id)
        return Fact(party, node, "party_to", *span, detail=role) if party else None
    if kind == AVOCAT and (counsel := person_node("judge_or_counsel", text, doc_id)):
        client = person_node("party", attributes.get("client", ""), doc_id)
        return Fact(
            counsel, client or node, "represents" if client else "pleads_in", *span, detail=attributes.get("role", "")
        )
    return None
