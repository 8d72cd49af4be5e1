"""Edges from a document's text, columns and entities, each with its span in the text."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from legal_rag.base.text import Span
from legal_rag.corpus.documents import Document
from legal_rag.extraction.entities import ARTICLE_CITE, AVOCAT, PARTIE, TEXTE_VISE, Entity
from legal_rag.graph.names import (
    NAME,
    Named,
    article_of_statute,
    court_node,
    dated_laws,
    document_node,
    identifier_node,
    is_of_one_document,
    may_stand_for,
    numbered_statutes,
    person_node,
    statute_node,
    words_of_key,
)
from legal_rag.graph.rulings import find_rulings, is_in_quotation
from legal_rag.law import Identifier, find_courts, find_dates, find_identifiers, find_texts
from legal_rag.law.citation import is_article
from legal_rag.law.courts import SHORT_CHAMBER, words_of_value
from legal_rag.law.keys import NO_CODE, canonical_key, cited_identifiers, own_keys, relaxed_key
from legal_rag.law.mentions import EUROPEAN

NOWHERE = (-1, -1)  # span of an edge from a column
RULES_VERSION = 6  # of the rules below: edges of another version, or of other tables of law, are rebuilt
TITLE_CHARS = 200  # in which a decision without a column for it names its court
HEAD_CHARS = 3000  # in which a decision names its court
MOST_OF_HEAD = 20_000  # in which it names its parties and the pourvois it joins
PARTIES_CHARS = 6000  # in which it names all of its parties
_VISA = re.compile(
    r"^[ \t]*(?:\d{1,3}[.°)]\s*)?vu,?\s+(?:enfin\s+|aussi\s+|ensemble\s+)?(?:l['’]\s*|les?\s+|la\s+)?"
    r"(?:articles?|anciens?\s+articles?|principes?|codes?|lois?|ordonnances?|d[ée]crets?|constitution)\b[^\n]*",
    re.IGNORECASE | re.MULTILINE,
)
BEFORE_NUMBER = 100  # characters that may say whether a number is a decision's or a case's
_SAID_OF_DECISION = re.compile(
    r"(?:d[ée]cisions?|arr[êe]ts?|jugements?)\b[^;\n«»]{0,30}(?:n\s?[°os.]|num[ée]ro)[^;\n]{0,25}$", re.IGNORECASE
)
_SAID_OF_POURVOI = re.compile(
    rf"(?:pourvois?|cass(?:ation)?|{SHORT_CHAMBER}|pl[ée]ni[èe]re)\b[^;\n«»]{{0,60}}$", re.IGNORECASE
)
# The last match before a number decides whether it is a decision's or that of a pending case.
_DECIDED_OR_FILED = re.compile(
    r"(?P<filed>requ[êe]tes?|enregistr\w+|sous\s+les?\s+n|proc[ée]dures?|form[ée]\w*\s[^;\n]{0,30}?pourvois?)"
    rf"|d[ée]cisions?|arr[êe]ts?|jugements?|\b(?:cass|{SHORT_CHAMBER}|CE|cons)\b",
    re.IGNORECASE,
)
_HEAD_OF_CASSATION = re.compile(
    r"au nom du peuple|r[ .]*[ée][ .]*p[ .]*u[ .]*b[ .]*l[ .]*i[ .]*q[ .]*u[ .]*e", re.IGNORECASE
)
_FILED_POURVOIS = re.compile(r"form[ée]\w*\s[^;\n]{0,30}?pourvois?\s[^;\n]{0,200}?\bcontre\b", re.IGNORECASE)
_CONSTITUTIONAL = re.compile(r"\d{2,4}-\d+(?:/\d+)*")
_DEMAND = re.compile(
    r"\b(?:demand(?:e|ent|ant) (?:à|au|que|de (?:dire|voir|juger))|sollicite|concl(?:ut|uent|uant)|soutien"
    r"|pri(?:e|ent|ant)\b|requi[eè]r|r[ée]clam(?:e|ent|ant)\b)",
    re.IGNORECASE,
)
_AGAINST = re.compile(r"(?<=\S)[ \u00a0]c/[ \u00a0](?=\S)")
_CAPTION_END = re.compile(r"(?<!\bM)(?<!\bMM)(?<!\bMme)\.\s*|\s*[\n;:,(][\s]*|\s+-\s+")
_NAME_AFTER_NUMBER = re.compile(
    r"\bn\s?°\s?[\w.-]{5,12},\s(?P<name>(?:M\.|Mme|Mlle|[Ss]ociété|[Cc]ommune|[Vv]ille|[Aa]ssociation|[Ss]yndicat|[Ff]édération)"
    r"\s[^\n.;:,]{2,60})(?=[,.])"
)
_CAPTION_NAME = re.compile(r"(?:(?:la |l['’]|le |les )?[a-zé]+ |M\. |MM\. )?[A-ZÀ-Þ][^\d«»]{1,60}")
# "Maître des requêtes", "maître d'œuvre": not counsel.
_OFFICE = re.compile(
    r"ma[iî]tres?\s+(?:des?\s+|d['’]\s*)(?:requ[êe]tes?|œuvre|oeuvre|ouvrage|conf[ée]rences?)", re.IGNORECASE
)
_CODE = re.compile(r"(?:nouveau |ancien )?(?:code|livre)\b", re.IGNORECASE)
_OF_PERSONS = frozenset((PARTIE, AVOCAT))


class GraphFact(NamedTuple):
    """An edge with the span of the document that supports it."""

    source: Named
    target: Named
    type: str  # one of `EDGE_TYPES`
    start: int = -1  # characters of the document's content, of the name; -1: from a column
    end: int = -1
    n: int = 1  # occurrences
    detail: str = ""  # a party's role, a ruling's words


def node_of_document(document: Document) -> Named:
    """Build the node of a document: a decision, an article, or another document such as a contract."""
    return document_node(document.id, _type_of(document))


def _type_of(document: Document) -> str:
    if is_article(document):
        return "article"
    if document.juridiction or find_courts(document.title) or find_courts(document.content[:TITLE_CHARS]):
        return "decision"
    keys = own_keys(document)
    return "article" if any(key.startswith("article:") for key in keys) else "document"


def text_facts(document: Document) -> list[GraphFact]:
    """Return the edges from a document's text and columns, in linear time."""
    node, document_keys = node_of_document(document), {*own_keys(document), *joined_keys(document)}
    return [
        *_citation_facts(document, node, document_keys),
        *_court_fact(document, node),
        *_caption_facts(document, node),
        *(GraphFact(*ruling[:5], detail=ruling.detail) for ruling in find_rulings(document, node, document_keys)),
    ]


def laws_named(document: Document) -> set[tuple[str, str]]:
    """Return the laws that a document's text and columns name by number and day; see `dated_laws`."""
    text = document.content
    columns = "\n".join([document.title, str(document.extra.get("text_title", "")), *document.applied_laws])
    in_columns = find_texts(columns, find_dates(columns))
    return dated_laws([
        *(text[law.start : law.end] for law in document.reading.texts if law.kind == "statute"),
        *(columns[law.start : law.end] for law in in_columns if law.kind == "statute"),
    ])  # fmt: skip


def entity_facts(document: Document, entities: Iterable[Entity]) -> list[GraphFact]:
    """Return the edges from entities: parties with a role, their counsel, statutes and their articles."""
    node, text = node_of_document(document), document.content
    facts: dict[tuple[str, str, str], GraphFact] = {}
    kept = [
        entity
        for entity in entities
        if entity["extraction_class"] not in _OF_PERSONS or not is_in_quotation(text, entity["char_start"])
    ]
    numbered = numbered_statutes(law["extraction_text"] for law in kept if law["extraction_class"] == TEXTE_VISE)
    for fact in _sure_parties(
        _in_full([fact for entity in kept if (fact := _entity_fact(entity, node, document.id, numbered))])
    ):
        key = (fact.source.key, fact.target.key, fact.type)
        known = facts.get(key)
        facts[key] = known._replace(n=known.n + 1) if known else fact
    return list(facts.values())


def _citation_facts(document: Document, node: Named, document_keys: set[str]) -> Iterator[GraphFact]:
    text, length = document.content, len(document.content)
    laws_end = length + sum(len(law) + 1 for law in document.applied_laws)
    visas = _visas(text)
    nodes: dict[str, Named] = {}
    places: dict[str, list[Span]] = {}
    for identifier in cited_identifiers(document):
        is_own = not document_keys.isdisjoint((canonical_key(identifier), relaxed_key(canonical_key(identifier))))
        if not is_own and _is_unambiguous(identifier, document):
            named = identifier_node(identifier)
            nodes.setdefault(named.key, named)
            places.setdefault(named.key, []).append((identifier.start, identifier.end))
    for named in nodes.values():
        if named.key.endswith(f" {NO_CODE}"):  # "article 2" of an unknown text: not shareable
            continue
        spans = places[named.key]
        within = [span for span in spans if span[1] <= length]
        in_visa = [span for span in within if any(start <= span[0] < end for start, end in visas)]
        applies = named.type == "article" and (in_visa or any(length <= span[0] < laws_end for span in spans))
        place = next(iter(in_visa or within), NOWHERE)
        yield GraphFact(node, named, "applies" if applies else "cites", *place, len(spans))


def _visas(text: str) -> list[Span]:
    """Return the spans of the court's own visas, without those in quotations or in a party's claims."""
    spans = (match.span() for match in _VISA.finditer(text))
    return [span for span in spans if not _DEMAND.search(text[slice(*span)]) and not is_in_quotation(text, span[0])]


def joined_keys(document: Document) -> set[str]:
    """Return the keys of the pourvois that a decision of the Cour de cassation joins; they count as its own."""
    text = document.content[:MOST_OF_HEAD]
    head = _HEAD_OF_CASSATION.search(text)
    parts = [text[: head.start()] if head else "", *(match.group() for match in _FILED_POURVOIS.finditer(text))]
    if "pourvoi" not in parts[0].lower():
        parts[0] = ""
    return {canonical_key(number) for part in parts for number in find_identifiers(part) if number.kind == "pourvoi"}


def _is_unambiguous(identifier: Identifier, document: Document) -> bool:
    """Tell whether a reference alone identifies a decision or an article.

    Courts of appeal share "RG" numbers, which may look like a pourvoi's; a number without a series may be a decree's or
    another body's; a request's number is not a decision's.
    """
    if identifier.kind in ("article", "ecli", *EUROPEAN):
        return True
    text, start = document.content, max(0, identifier.start - BEFORE_NUMBER)
    before = text[start : identifier.start]
    if identifier.kind == "pourvoi":
        return "." in text[identifier.start : identifier.end] or _SAID_OF_POURVOI.search(before) is not None
    cues = list(_DECIDED_OR_FILED.finditer(before))
    if identifier.kind == "rg" or (cues and cues[-1]["filed"]):
        return False
    if identifier.kind != "number":
        return True
    is_constitutional = _CONSTITUTIONAL.fullmatch(identifier.value) is None or (
        "constitutionnel" in f"{document.juridiction} {text[start : identifier.end + BEFORE_NUMBER]}".lower()
    )
    return is_constitutional and _SAID_OF_DECISION.search(before) is not None


def _court_fact(document: Document, node: Named) -> Iterator[GraphFact]:
    if node.type != "decision":
        return
    head = document.content[:HEAD_CHARS]
    named = [document.title[start:end] for start, end in find_courts(document.title)[:1]]
    court = (
        court_node(document.juridiction, document.formation, within=document.id)
        if document.juridiction
        else court_node(*named, within=document.id)
    )
    if court:
        words = words_of_value(court.name)
        places = (span for span in find_courts(head) if words_of_value(head[slice(*span)]) <= words)
        yield GraphFact(node, court, "decided_by", *next(places, NOWHERE))


def _caption_facts(document: Document, node: Named) -> Iterator[GraphFact]:
    """Yield the parties of a caption in one line: "Mme Orsini c/ société Valdor", "n° 498765, Commune de Brasles,"."""
    text = document.content
    spans: list[Span] = []
    for match in _AGAINST.finditer(text, 0, HEAD_CHARS):
        before = [cut.end() for cut in _CAPTION_END.finditer(text, 0, match.start())]
        after = _CAPTION_END.search(text, match.end())
        spans += [(before[-1] if before else 0, match.start()), (match.end(), after.start() if after else len(text))]
    spans += [match.span("name") for match in _NAME_AFTER_NUMBER.finditer(text, 0, TITLE_CHARS)]
    for start, end in spans if node.type == "decision" else ():
        name = text[start:end]
        if _CAPTION_NAME.fullmatch(name) and (party := person_node("party", name, document.id)):
            yield GraphFact(party, node, "party_to", start, end)


def _in_full(facts: list[GraphFact]) -> list[GraphFact]:
    """Give persons their longest name in this document: "Mme Pailler" becomes "Mme Aline Pailler"."""
    named = {end.key: end for fact in facts for end in (fact.source, fact.target) if end.key.startswith(NAME)}
    by_word: dict[str, list[Named]] = {}
    for person in named.values():
        for word in words_of_key(person.key):
            by_word.setdefault(word, []).append(person)
    whole: dict[str, Named] = {}
    for key, person in named.items():
        near = by_word.get(next(iter(words_of_key(key)), ""), []) if is_of_one_document(key) else []
        fuller = [other for other in near if other.key != key and may_stand_for(person, other)]
        fuller = [other for other in fuller if len(other.key) > len(key)]
        if len(fuller) == 1:
            whole[key] = fuller[0]
    return [
        fact._replace(source=whole.get(fact.source.key, fact.source), target=whole.get(fact.target.key, fact.target))
        for fact in facts
    ]


def _sure_parties(facts: list[GraphFact]) -> list[GraphFact]:
    """Drop parties first named after the head whose surname others share: "Mme Martin" may be a witness."""
    first: dict[str, int] = {}
    for fact in facts:
        if fact.type == "party_to":
            first[fact.source.key] = min(fact.start, first.get(fact.source.key, fact.start))
    sharing = Counter(words_of_key(key)[-1] for key in first)
    unsure = {key for key, start in first.items() if start >= PARTIES_CHARS and sharing[words_of_key(key)[-1]] > 1}
    return [fact for fact in facts if fact.type != "party_to" or fact.source.key not in unsure]


def _entity_fact(entity: Entity, node: Named, doc_id: str, known: Mapping[str, Named]) -> GraphFact | None:
    kind, text, span = entity["extraction_class"], entity["extraction_text"], (entity["char_start"], entity["char_end"])
    attributes = entity["attributes"]
    if entity.get("alignment") != "rules":  # extracted by a model: not a fact
        return None
    if kind in (TEXTE_VISE, ARTICLE_CITE):
        statute = statute_node(text if kind == TEXTE_VISE else attributes.get("texte", ""), doc_id)
        statute = statute and known.get(statute.key.partition(" @")[0], statute)
        if kind == TEXTE_VISE or statute is None:
            return GraphFact(node, statute, "cites", *span) if statute else None
        is_of_code = _CODE.match(statute.name)
        return (
            None
            if is_of_code or not attributes.get("numero")
            else GraphFact(node, article_of_statute(attributes["numero"], statute), "cites", *span)
        )
    # The rules find parties reliably, but less so whether one is demandeur or défendeur.
    if kind == PARTIE and attributes.get("role"):
        party = person_node("party", text, doc_id)
        return GraphFact(party, node, "party_to", *span) if party else None
    if kind == AVOCAT and not _OFFICE.match(text) and (counsel := person_node("judge_or_counsel", text, doc_id)):
        client = person_node("party", attributes.get("client", ""), doc_id)
        return GraphFact(
            counsel, client or node, "represents" if client else "pleads_in", *span, detail=attributes.get("role", "")
        )
    return None
