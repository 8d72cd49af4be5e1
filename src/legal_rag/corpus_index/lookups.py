"""Inverted look-ups as lazy mappings: by keyword, by entity."""

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Generic, TypeVar

from legal_rag.base.text import words_of
from legal_rag.extraction import entities as classes
from legal_rag.extraction.terms import (
    DATE_CLASSES,
    LEFT_ASIDE,
    NAME_KINDS,
    WORD,
    amount_terms,
    name_term,
    name_words,
)
from legal_rag.law import find_dates
from legal_rag.law.keys import all_reference_keys
from legal_rag.library.filters import UnsupportedFilterError
from legal_rag.library.library import Library

MAX_COMPLETIONS = 1000  # keys offered in a notebook
MAX_NAMES = 20  # shown of a document
MAX_WORDS = 50  # of a name: none is longer
NAMED_CLASSES = (*NAME_KINDS, classes.JURIDICTION)  # people, bodies, courts
_KINDS = tuple(dict.fromkeys(NAME_KINDS.values()))
FOLDED_CLASSES = tuple(name for name in classes.KNOWN_CLASSES if name not in NAME_KINDS and name not in DATE_CLASSES)

Key = TypeVar("Key")
Value = TypeVar("Value")


class QueryMapping(Mapping[Key, Value], Generic[Key, Value]):
    """A mapping that queries each value on access and keeps none in memory.

    `name` describes a key in errors; `find` returns a key's value, or None; `nearest` a key similar to an unknown one.
    """

    def __init__(
        self,
        name: str,
        find: Callable[[Any], Value | None],
        keys: Callable[[], Iterator[Key]],
        count: Callable[[], int],
        nearest: Callable[[Any], Key | None] = lambda key: None,
    ) -> None:
        self._name, self._find, self._keys, self._count, self._nearest = name, find, keys, count, nearest

    def __getitem__(self, key: Key) -> Value:
        value = self._find(key)
        if value is None:
            near = self._nearest(key)
            raise KeyError(f"no {self._name} {key!r}" + ("" if near is None else f" (the nearest is {near!r})"))
        return value

    def __contains__(self, key: object) -> bool:
        return self._find(key) is not None

    def __iter__(self) -> Iterator[Key]:
        return self._keys()

    def __len__(self) -> int:
        return self._count()

    def _ipython_key_completions_(self) -> list[Key]:
        # IPython completes an opening bracket with these.
        return list(islice(self, MAX_COMPLETIONS))

    def __repr__(self) -> str:
        return f"<{len(self)} by {self._name}>"


class EntityLookup:
    """Documents by extracted entity, and the entities of a document; those of a text that changed since are ignored.

    `column` and `pages` run a query over the index, its store (`corpus`) and its `entities`: see `CorpusIndex`. In SQL,
    `present` selects the documents of the commit, aliased `i`.
    """

    def __init__(
        self,
        library: Library,
        column: Callable[..., list[Any]],
        pages: Callable[..., Iterator[Any]],
        present: str,
    ) -> None:
        self._library, self._column, self._pages, self._present = library, column, pages, present

    def find(self, text: str) -> list[str]:
        """Return the ids of the documents that hold an entity, in indexing order.

        A name that no document has as a whole matches documents with all of its words in names of one kind.

        Raises:
            ValueError: If no entities were extracted.
        """
        if self._library.entities is None:
            raise UnsupportedFilterError(f"no entities in {self._library.path}: 'legal-rag extract' finds them")
        having = "SELECT doc_id FROM entities.terms WHERE term IN (SELECT value FROM json_each(?))"
        doc_ids = self._holding(having, json.dumps(list(dict.fromkeys(_entity_terms(text)))))
        words = name_words(text)
        if doc_ids or not 0 < len(words) <= MAX_WORDS:
            return doc_ids
        of_word = "SELECT doc_id FROM entities.terms WHERE term = ?"
        in_kind = f"SELECT * FROM ({' INTERSECT '.join([of_word] * len(words))})"  # noqa: S608
        values = [name_term(kind + WORD, [word]) for kind in _KINDS for word in words]
        return self._holding(" UNION ".join([in_kind] * len(_KINDS)), *values)

    def _holding(self, doc_ids: str, *values: Any) -> list[str]:
        """Filter document ids by presence at the commit, with the text that their entities were extracted from."""
        query = f"""
            SELECT i.id FROM main.documents AS i CROSS JOIN entities.held AS h ON h.doc_id = i.id
            WHERE i.id IN ({doc_ids}) AND {self._present} AND h.content_hash = i.content_hash ORDER BY i.document_key
        """  # noqa: S608
        return self._column(query, *values)

    def shown_of(self, doc_id: str) -> tuple[str, ...]:
        """Return the distinct names in a document as its text writes them, people and bodies first."""
        entities = self._library.entities_of(doc_id) or []
        names = [
            " ".join(entity["extraction_text"].split())
            for entity_class in NAMED_CLASSES
            for entity in entities
            if entity["extraction_class"] == entity_class
        ]
        return tuple(dict.fromkeys(names))[:MAX_NAMES]

    def terms(self) -> Iterator[str]:
        """Stream the distinct terms of the documents' entities, in order."""
        if self._library.entities is None:
            return iter(())
        query = f"""
            SELECT DISTINCT term FROM entities.terms AS one WHERE {self._is_held} AND term > ? ORDER BY term LIMIT ?
        """  # noqa: S608
        return (term for (term,) in self._pages(query, ""))

    def count(self) -> int:
        """Count the distinct terms of the documents' entities."""
        if self._library.entities is None:
            return 0
        query = f"SELECT COUNT(*) FROM (SELECT DISTINCT term FROM entities.terms) AS one WHERE {self._is_held}"  # noqa: S608
        return int(self._column(query)[0])

    @property
    def _is_held(self) -> str:
        return f"""
            EXISTS (
                SELECT 1 FROM entities.terms AS t CROSS JOIN main.documents AS i ON i.id = t.doc_id
                CROSS JOIN entities.held AS h ON h.doc_id = i.id
                WHERE t.term = one.term AND {self._present} AND h.content_hash = i.content_hash)
        """  # noqa: S608


def _entity_terms(text: str) -> Iterator[str]:
    """Yield the index terms that a query for an entity may mean."""
    yield text
    for day in find_dates(text):
        yield f"date:{day.value.isoformat()}"
    yield from amount_terms(text)
    yield from all_reference_keys(text)
    if words := name_words(text):
        yield from (name_term(kind, words) for kind in _KINDS)
    if words := [word for word in words_of(text) if word not in LEFT_ASIDE] or words_of(text):  # as in extraction
        yield from (name_term(name, words) for name in FOLDED_CLASSES)
