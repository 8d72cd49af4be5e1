"""Parties that an answer names: whose decisions they are in, and the sentence that supports what is said of them."""

from collections.abc import Callable, Sequence
from typing import Any

from legal_rag.citations.checks import supports
from legal_rag.citations.claims import Claim, content_words
from legal_rag.citations.sources import SourceText, SourceTexts, Span
from legal_rag.corpus.sentences import split_sentences
from legal_rag.extraction.entities import Entity
from legal_rag.extraction.terms import LEFT_ASIDE, NAME_KINDS, PARTY, name_words, words_of

AROUND = 1000  # characters of a document, either side of a name, in which its sentence is looked for
LONGEST_SENTENCE = 1500  # characters of a decision's sentence that can be cited for one name
WORDS_BESIDE = 2  # content words that a sentence must say of a party
SHORTEST_NAME = 4  # letters of a name of one word

EntityLookUp = Callable[[str], Sequence[Entity] | None]
Names = dict[tuple[str, ...], list[Span]]  # a name's words, and where the document has it


class NamedParties:
    """The parties of the documents that an answer may cite; looked up when they are first asked for."""

    def __init__(self, sources: SourceTexts, searched: Sequence[str], entities_of: EntityLookUp) -> None:
        """Take the documents, the ids of those that are searched, and what was extracted of them."""
        self._sources, self._searched, self._entities_of = sources, searched, entities_of
        self._names: dict[str, Names] | None = None

    def documents_named(self, text: str) -> dict[str, list[Span]]:
        """Return the documents that have a party which a text names, each with the party's places in it."""
        if not self._names_of_all():
            return {}
        words = words_of(text)
        capitals = {
            word for part in text.split() if part[:1].isupper() or part[1:2].isupper() for word in words_of(part)
        }
        found: dict[str, list[Span]] = {}
        for doc_id, names in self._names_of_all().items():
            spans = [span for name, places in names.items() if _is_named(name, words, capitals) for span in places]
            if spans:
                found[doc_id] = spans
        return found

    def sentence_for(self, claim: Claim) -> tuple[SourceText, Span] | None:
        """Return the document and its sentence that bear out what is said of a party; None unless one document does."""
        named = self.documents_named(claim.text)
        if len(named) != 1:
            return None
        ((doc_id, spans),) = named.items()
        source = self._sources.get(doc_id)
        if source is None:
            return None
        sentences = {_sentence_around(span, source.content) for span in spans}
        said = _without_names(claim, self._names_of_all()[doc_id])
        if len(content_words(said.text)) < WORDS_BESIDE:
            return None
        short = [one for one in sorted(sentences) if one[1] - one[0] <= LONGEST_SENTENCE]
        fitting = [one for one in short if supports(source, one, said)]
        return (source, fitting[0]) if fitting else None

    def _names_of_all(self) -> dict[str, Names]:
        if self._names is None:
            self._names = {}
            for doc_id in self._searched:
                if self._sources.get(doc_id) and (names := _names_in(self._entities(doc_id))):
                    self._names[doc_id] = names
        return self._names

    def _entities(self, doc_id: str) -> Sequence[Entity]:
        return self._entities_of(doc_id) or ()


def _names_in(entities: Sequence[Entity]) -> Names:
    names: Names = {}
    for one in entities:
        if NAME_KINDS.get(one["extraction_class"]) != PARTY:
            continue
        words = tuple(name_words(one["extraction_text"]))
        if len(words) > 1 or (words and len(words[0]) >= SHORTEST_NAME):
            names.setdefault(words, []).append((one["char_start"], one["char_end"]))
    return names


def _without_names(claim: Claim, names: Names) -> Claim:
    """Return what a claim says beside the names of parties: that a name stands somewhere bears nothing out."""
    known = {word for name in names for word in name} | LEFT_ASIDE
    return claim._replace(text=" ".join(word for word in claim.text.split() if not known & set(words_of(word))))


def _is_named(name: tuple[str, ...], words: Sequence[str], capitals: set[str]) -> bool:
    """Tell whether a name stands among words, one after the other, with a capital letter."""
    n = len(name)
    starts = [at for at, word in enumerate(words) if word == name[0]] if set(name) & capitals else []
    return any(tuple(words[at : at + n]) == name for at in starts)


def _sentence_around(span: Span, content: str) -> Span:
    first = max(0, span[0] - AROUND)
    piece = content[first : span[1] + AROUND]
    for start, end in split_sentences(piece):
        if first + start <= span[0] < first + end:
            stripped = piece[start:end]
            lead = len(stripped) - len(stripped.lstrip())
            return first + start + lead, first + start + len(stripped.rstrip())
    return span


def entity_look_up(documents: Any, extractions: Any) -> EntityLookUp:
    """Return the function that tells what was extracted of a document, by its id; None where nothing was.

    Args:
        documents: A corpus that may hold entities itself.
        extractions: A mapping from document id to entities, or `ExtractionResult`s; None takes the corpus's.
    """
    if extractions is None:
        look_up: EntityLookUp = getattr(documents, "entities_of", lambda doc_id: None)
        return look_up
    if hasattr(extractions, "get"):
        return lambda doc_id: extractions.get(doc_id)
    by_name = {one.doc_name: one.extractions for one in extractions}
    return lambda doc_id: by_name.get(doc_id)
