"""Ground an answer's tags in the documents that were read, and record them in the graph.

A model's claim becomes a fact only if the rules find the same in the text; if one sentence has both names, the link is
kept and marked as the model's; everything else is stored separately as unsupported.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import cached_property
from pathlib import Path

from legal_rag.base.text import Span
from legal_rag.corpus.documents import Document
from legal_rag.extraction.lookup import FORMS, SMALL_WORDS
from legal_rag.graph.facts import NOWHERE, GraphFact, entity_facts, node_of_document, text_facts
from legal_rag.graph.names import (
    COURT,
    DOCUMENT,
    LOWER,
    NAME,
    NAMED_TYPES,
    STATUTE,
    TERM,
    Named,
    agrees_with,
    court_node,
    court_words,
    guessed_type,
    identifier_node,
    identifiers_in,
    is_named_by,
    is_reference,
    may_stand_for,
    node_of,
    numbered_statutes,
    person_node,
    statute_node,
    words_of_key,
)
from legal_rag.graph.store import BY_ANSWER, DAMAGE, GRAPH, STATED, TEXT, UNSUPPORTED, GraphWriter, read_graph
from legal_rag.graph.types import (
    AnswerFacts,
    ExtractedEntity,
    ExtractedEpisode,
    ExtractedRelationship,
    ExtractionResult,
)
from legal_rag.law import find_courts, find_dates, find_texts
from legal_rag.law.courts import COURT_WORDS
from legal_rag.law.keys import NO_CODE, own_keys
from legal_rag.law.sentences import split_sentences
from legal_rag.law.words import TITLES
from legal_rag.library.library import Library, locked_answers

MOST_READ = 20  # documents searched for names, in reading order
MOST_BEFORE = 40  # characters before a name that may hold its title
MOST_PLACES = 200  # of one name in one document
MADE_BY = "2"  # version of the grounding below
# The rules find these edges in full: one that they do not find in a text is wrong.
CHECKED_TYPES = frozenset(("cites", "applies", "decided_by"))
# Only the source's text can support these: an earlier decision does not know how a later one treats it.
_SAID_BY_SOURCE = frozenset(
    ("cites", "applies", "interprets", "follows", "distinguishes", "upholds", "overrules", "rectifies")
)
# If the rules find one of these, another of the group with the same source, or ends, is wrong.
_RULINGS, _ROLES = frozenset(("upholds", "overrules")), frozenset(("party_to", "pleads_in", "represents"))
# Letters to their base letters, one to one, so that offsets are kept.
_PLAIN = {
    code: base
    for code in range(0x41, 0x250)
    if (base := unicodedata.normalize("NFKD", chr(code))[:1].lower()) != chr(code) and len(base) == 1
}
_JOINT = (
    r"[^\S\n]*+(?:\n[^\S\n]*+)?(?:[-‐‑–'’&]|(?<!\w\w)\.)?+[^\S\n]*+"  # within a name: no sentence or list ends there
)
_SMALL = "|".join(sorted(SMALL_WORDS | TITLES | FORMS, key=len, reverse=True))
_BETWEEN = rf"(?!\w){_JOINT}(?:(?:{_SMALL})(?!\w){_JOINT}){{0,3}}"


def add_answer(library: Library, answer_id: str, result: ExtractionResult, read: Sequence[str]) -> AnswerFacts:
    """Record the tags of an answer in one transaction, replacing what the same answer recorded before.

    The graph is created if missing. `read` holds the ids of the documents read or found, those read first.

    Raises:
        OSError: If another process holds the lock for too long.
        sqlite3.OperationalError: If the file cannot be written.
    """
    with locked_answers(library.path), closing(AnswerRecorder(library, answer_id, read)) as recorder:
        recorder.tags = result
        return recorder.save()


def remove_answer(folder: Path, answer_id: str) -> bool:
    """Delete an answer from the graph of a Library's folder, if there is anything; raises as `add_answer` does."""
    if not (folder / GRAPH).is_file():
        return False
    with suppress(*DAMAGE), closing(read_graph(folder / GRAPH)) as connection:
        if not connection.execute("SELECT 1 FROM sources WHERE answer_id = ?", (answer_id,)).fetchone():
            return False
    with locked_answers(folder), closing(GraphWriter(folder / GRAPH)) as writer, writer.transaction():
        return writer.delete_sources("SELECT source_key FROM sources WHERE answer_id = ?", answer_id) > 0


class AnswerRecorder:
    """Collects the tags of one answer, grounds them, and writes all or nothing on `save`."""

    def __init__(self, library: Library, answer_id: str, read: Sequence[str]) -> None:
        known = library.contents().known(list(dict.fromkeys(read)))
        documents = [library.document(doc_id) for doc_id in dict.fromkeys(read) if doc_id in known]
        self._library, self._answer_id = library, answer_id
        self._texts = [_Text(document, library) for document in documents[:MOST_READ]]
        self._types: dict[str, str] = {}
        self.tags = ExtractionResult()
        self._writer = GraphWriter(library.path / GRAPH)

    def add_entity(self, entity: ExtractedEntity) -> None:
        """Add an entity; its type holds for the same name in relationships and episodes."""
        self.tags.entities.append(entity)

    def add_relationship(self, relationship: ExtractedRelationship) -> None:
        """Add a relationship."""
        self.tags.relationships.append(relationship)

    def add_episode(self, episode: ExtractedEpisode) -> None:
        """Add an episode."""
        self.tags.episodes.append(episode)

    def save(self) -> AnswerFacts:
        """Write what was added, replacing what the same answer recorded before."""
        for entity in reversed(self.tags.entities):  # the first type of a name wins
            self._types[entity.name] = entity.type
        with self._writer.transaction():
            source = self._writer.source(BY_ANSWER, None, MADE_BY, self._answer_id)
            standing = [self._save_entity(source, entity) for entity in self.tags.entities]
            supports = [self._save_relationship(source, relationship) for relationship in self.tags.relationships]
            for episode in self.tags.episodes:
                self._writer.episode(source, episode, filter(None, map(self._resolve_name, episode.entities)))
        return AnswerFacts(
            entities=sum(standing),
            facts=supports.count(TEXT),
            stated=supports.count(STATED),
            unsupported=len(standing) - sum(standing) + supports.count(UNSUPPORTED),
            episodes=len(self.tags.episodes),
        )

    def close(self) -> None:
        """Close the file."""
        self._writer.close()

    def _save_entity(self, source: int, entity: ExtractedEntity) -> bool:
        """Store where an entity's name occurs in the documents read; return whether it does."""
        named = self._resolve_name(entity.name)
        if named is None:
            return False
        places = [(text, spans[0]) for text in self._texts if (spans := text.places(named))]
        for text, span in places:
            place = (self._text_key(text.document), *span)
            self._writer.mention(source, named, place, entity.confidence, entity.description)
        if not places:
            self._writer.mention(source, named, (None, *NOWHERE), entity.confidence, entity.description)
        return bool(places)

    def _save_relationship(self, source: int, edge: ExtractedRelationship) -> str | None:
        ends = self._resolve_name(edge.source, edge.target), self._resolve_name(edge.target, edge.source)
        if not ends[0] or not ends[1] or ends[0].key == ends[1].key:
            return None
        support, text, fact = self._support(ends[0], ends[1], edge.type)
        fact = fact._replace(type=edge.type, n=1, detail="")
        text_key = self._text_key(text.document) if text else None
        self._writer.edge(source, fact, text_key, support=support, confidence=edge.confidence)
        return support

    def _support(self, first: Named, second: Named, edge_type: str) -> "tuple[str, _Text | None, GraphFact]":
        """Return an edge's support, the text that gives it, and the edge as that text has it."""
        texts = [*self._texts, *self._ends_among(first, second)]
        for text in texts:
            if fact := text.fact(first, second, edge_type):
                return TEXT, text, fact
        unsupported = UNSUPPORTED, None, GraphFact(first, second, edge_type)
        if not _may_be(first, second, edge_type):
            return unsupported
        if edge_type in CHECKED_TYPES and first.key.startswith(DOCUMENT):
            return unsupported
        if any(text.denies(first, second, edge_type) for text in texts):
            return unsupported
        for text in self._texts:
            if span := text.together(first, second, edge_type):
                return STATED, text, GraphFact(first, second, edge_type, *span)
        return unsupported

    def _ends_among(self, *ends: Named) -> "list[_Text]":
        seen = {text.document.id for text in self._texts}
        ids = (end.key.removeprefix(DOCUMENT) for end in ends if end.key.startswith(DOCUMENT))
        return [_Text(self._library.document(doc_id), self._library) for doc_id in ids if doc_id not in seen]

    def _resolve_name(self, name: str, other: str = "") -> Named | None:
        """Return the node of a name; a person's belongs to the document that has the name, or is the other end."""
        node_type = self._types.get(name) or guessed_type(name)
        if document := self._document_named(name, node_type):
            return node_of_document(document)
        near = self._document_named(other, self._types.get(other) or guessed_type(other))
        texts = sorted(self._texts, key=lambda text: text.document != near)
        if name not in self._types or node_type in NAMED_TYPES:
            known = (text.person(name) for text in texts)
            if person := next(filter(None, known), None):
                return person
        standing = ((text, node_of(node_type, name, text.document.id)) for text in texts)
        named = next((node for text, node in standing if node and text.places(node)), None)
        if node_type == "decision" and (named is None or not is_reference(named.key)):
            named = next(filter(None, (text.decision_below(name) for text in texts)), named)
        named = named or node_of(node_type, name, self._answer_id)
        return self._with_code(named) if named and named.key.endswith(f" {NO_CODE}") else named

    def _with_code(self, named: Named) -> Named:
        """Resolve an article without a code to the one that the texts read cite by its number, if it is unique."""
        articles = {node.key: node for text in self._texts for node in text.articles(named.key.removesuffix(NO_CODE))}
        if len(articles) == 1:
            return next(iter(articles.values()))
        return Named(f"{TERM}{named.name} @{self._answer_id}", named.type, named.name)

    def _document_named(self, name: str, node_type: str) -> Document | None:
        """Return the Library's document with that id or number, if it is unique."""
        if name in self._library:
            return self._library.document(name)
        identifiers = [identifier for identifier in identifiers_in(name) if identifier.kind not in ("rg", "article")]
        if node_type != "decision" or not identifiers or not is_named_by(name, identifiers):
            return None
        keys = [identifier_node(identifier).key for identifier in identifiers]
        holders = {doc_id for doc_ids in self._library.ids_named(keys).values() for doc_id in doc_ids}
        return self._library.document(holders.pop()) if len(set(keys)) == 1 and len(holders) == 1 else None

    def _text_key(self, document: Document) -> int:
        return self._writer.text(document.id, document.content_hash)


def _may_be(first: Named, second: Named, edge_type: str) -> bool:
    """Check that the types of the ends fit the edge: a court is not decided by a decision."""
    if edge_type == "decided_by":
        return second.type == "court" and first.type not in NAMED_TYPES | {"court"}
    if edge_type in ("party_to", "pleads_in"):
        return first.type in NAMED_TYPES and second.type not in NAMED_TYPES | {"court", "article", "statute"}
    return edge_type != "represents" or (first.type in NAMED_TYPES and second.type in NAMED_TYPES)


class _Text:
    def __init__(self, document: Document, library: Library) -> None:
        self.document, self._library = document, library
        self.node = node_of_document(document)
        self._places: dict[str, list[Span]] = {}

    @cached_property
    def _facts(self) -> list[GraphFact]:
        entities = self._library.entities_of(self.document.id) or ()
        return [*text_facts(self.document), *entity_facts(self.document, entities)]

    @cached_property
    def _own_keys(self) -> frozenset[str]:
        return frozenset((self.node.key, *own_keys(self.document)))

    @cached_property
    def _unaccented(self) -> str:
        return self.document.content.translate(_PLAIN)

    @cached_property
    def _sentence_starts(self) -> list[int]:
        return [start for start, _ in split_sentences(self.document.content)]

    @cached_property
    def _reference_spans(self) -> dict[str, list[Span]]:
        refs = identifiers_in(self.document.content)
        return _spans_of((identifier_node(ref), (ref.start, ref.end)) for ref in refs)

    def fact(self, first: Named, second: Named, edge_type: str) -> GraphFact | None:
        edge_types = ("cites", "applies") if edge_type == "cites" else (edge_type,)
        for fact in self._facts:
            if fact.type in edge_types and self._is_end(first, fact.source) and self._is_end(second, fact.target):
                return fact
            of_party = edge_type == "pleads_in" and fact.type == "represents" and second.key in self._own_keys
            if of_party and self._is_end(first, fact.source):
                return fact._replace(target=self.node)
        return None

    def denies(self, first: Named, second: Named, edge_type: str) -> bool:
        """Tell whether this text contradicts the edge: another ruling, or another role of the person."""
        others = _RULINGS if edge_type in _RULINGS else _ROLES if edge_type in _ROLES else frozenset()
        facts = [fact for fact in self._facts if fact.type in others and self._is_end(first, fact.source)]
        if edge_type in _RULINGS:
            return bool(facts)
        return any(fact.type != edge_type and {fact.type, edge_type} & {"party_to"} for fact in facts)

    def articles(self, prefix: str) -> list[Named]:
        """Return the articles that this text cites with a number: `prefix` is the key up to the code."""
        return [fact.target for fact in self._facts if fact.target.key.startswith(prefix)]

    def decision_below(self, name: str) -> Named | None:
        """Return the lower decision that a name identifies by court and date, if this text rules on it."""
        dates, courts = find_dates(name), find_courts(name)
        words = court_words(name[slice(*courts[0])]) if len(courts) == len(dates) == 1 else frozenset()
        for fact in self._facts:
            if words and fact.target.key.startswith(LOWER) and fact.type in _RULINGS:
                court, _, _ = fact.target.key.removeprefix(LOWER + COURT).rpartition(f" {dates[0].value.isoformat()} ")
                if court and words == set(court.split()):
                    return fact.target
        return None

    def person(self, name: str) -> Named | None:
        person = person_node("party", name, self.document.id)
        named = {end.key: end for fact in self._facts for end in (fact.source, fact.target) if end.key.startswith(NAME)}
        if person is None or person.key in named:
            return named[person.key] if person else None
        same = [other for other in named.values() if may_stand_for(person, other)]
        return same[0] if len(same) == 1 else None

    def _is_end(self, node: Named, of_fact: Named) -> bool:
        if node.key.startswith(STATUTE):
            node = self._numbered_statutes.get(node.key.partition(" @")[0], node)
        if node.key == of_fact.key or (of_fact.key == self.node.key and node.key in self._own_keys):
            return True
        if node.key.startswith(COURT) and of_fact.key.startswith(COURT):  # a court matches its chambers
            words, of_court = (set(words_of_key(key)) for key in (node.key, of_fact.key))
            return words <= of_court and not words.isdisjoint(COURT_WORDS)
        return node.key.startswith(DOCUMENT) and of_fact.key in self._library_keys(node.key.removeprefix(DOCUMENT))

    def _library_keys(self, doc_id: str) -> list[str]:
        keys = own_keys(self._library.document(doc_id))
        return [key for key, holders in self._library.ids_named(keys).items() if holders == [doc_id]]

    def together(self, first: Named, second: Named, edge_type: str) -> Span | None:
        """Return the span of two names in one sentence; if one is this document itself, the other's first span."""
        if first.key in self._own_keys or (second.key in self._own_keys and edge_type not in _SAID_BY_SOURCE):
            other = second if first.key in self._own_keys else first
            return next(iter(self.places(other)), None)
        by_sentence = {self._sentence_number(span): span for span in reversed(self.places(first)) if span != NOWHERE}
        for span in self.places(second):
            if span != NOWHERE and (near := by_sentence.get(self._sentence_number(span))):
                return min(near[0], span[0]), max(near[1], span[1])
        return None

    def _sentence_number(self, span: Span) -> int:
        return bisect_right(self._sentence_starts, span[0])

    def places(self, named: Named) -> list[Span]:
        """Return the spans of a name in the text, in order; `NOWHERE` if only a column has it."""
        if named.key not in self._places:
            self._places[named.key] = list(self._find_spans(named))
        return self._places[named.key]

    def _find_spans(self, named: Named) -> Iterator[Span]:
        key = named.key
        if " @" in key and not key.endswith(f" @{self.document.id}"):  # of another document
            return
        if key in self._own_keys:
            yield from [*(span for name in self._own_keys for span in self._reference_spans.get(name, [])), NOWHERE][:1]
        elif key.startswith(DOCUMENT):
            cited = self._library_keys(key.removeprefix(DOCUMENT))
            yield from sorted(span for cited_key in cited for span in self._reference_spans.get(cited_key, []))
        elif is_reference(key):
            yield from self._reference_spans.get(key, [])
        elif key.startswith(COURT):
            yield from self._courts_by_key.get(key, [])
        elif key.startswith(STATUTE):
            yield from self._statutes_by_key.get(key, [])
        elif key.startswith((NAME, TERM)):
            places = self._find_words(words_of_key(key), is_name=key.startswith(NAME))
            yield from (span for span in places if key.startswith(TERM) or agrees_with(key, self._before(span[0])))

    def _before(self, place: int) -> list[str]:
        """Return the words before a place, nearest first, back to a comma, colon, bracket or line break."""
        start = max(0, place - MOST_BEFORE)
        return re.split(r"[^\w.'’-]+", re.split(r"[,;:()\n]", self._unaccented[start:place])[-1].strip())[::-1]

    def _find_words(self, words: Sequence[str], *, is_name: bool) -> Iterator[Span]:
        """Find words in sequence, accents and case aside, small words between them; never half of a double name."""
        hyphens = r"\-‐‑" if is_name else ""
        letters = _BETWEEN.join(f"{re.escape(word)}{'' if is_name else '[sx]?'}" for word in words)
        pattern = re.compile(rf"(?<![\w{hyphens}]){letters}(?![\w{hyphens}])")
        for number, match in enumerate(pattern.finditer(self._unaccented)):
            if number == MOST_PLACES:
                return
            yield match.span()

    @cached_property
    def _courts_by_key(self) -> Mapping[str, list[Span]]:
        text = self.document.content
        spans = _spans_of((court_node(text[slice(*span)], within=self.document.id), span) for span in find_courts(text))
        court = court_node(self.document.juridiction, self.document.formation, within=self.document.id)
        return spans if court is None else {court.key: [NOWHERE], **spans}

    @cached_property
    def _spans_of_statutes(self) -> list[Span]:
        text = self.document.content
        return [(statute.start, statute.end) for statute in find_texts(text, find_dates(text))]

    @cached_property
    def _numbered_statutes(self) -> Mapping[str, Named]:
        return numbered_statutes(self.document.content[slice(*span)] for span in self._spans_of_statutes)

    @cached_property
    def _statutes_by_key(self) -> Mapping[str, list[Span]]:
        text = self.document.content
        return _spans_of((statute_node(text[slice(*span)], self.document.id), span) for span in self._spans_of_statutes)


def _spans_of(pairs: Iterable[tuple[Named | None, Span]]) -> dict[str, list[Span]]:
    places: dict[str, list[Span]] = {}
    for named, span in pairs:
        if named:
            places.setdefault(named.key, []).append(span)
    return places
