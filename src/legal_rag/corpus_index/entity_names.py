"""Entities as people name them: which documents hold a name, a day, a sum, an article; and what a document names.

In: a Library of which entities were extracted. Out: ids of documents; names as a text writes them. Entities of a text
that has changed since they were extracted count for nothing.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

from legal_rag.extraction import classes
from legal_rag.extraction.terms import (
    DATE_CLASSES,
    LEFT_ASIDE,
    NAME_KINDS,
    WORD,
    amount_terms,
    name_term,
    name_words,
    words_of,
)
from legal_rag.filters import UnsupportedFilterError
from legal_rag.legal_patterns import find_dates
from legal_rag.library import Library
from legal_rag.names import all_reference_keys

MOST_NAMES = 20  # shown of a document
MOST_WORDS = 50  # of a name: none is longer
NAMED_CLASSES = (*NAME_KINDS, classes.JURIDICTION)  # people, bodies, courts: what a list of names is made of
_KINDS = tuple(dict.fromkeys(NAME_KINDS.values()))
FOLDED_CLASSES = tuple(name for name in classes.KNOWN_CLASSES if name not in NAME_KINDS and name not in DATE_CLASSES)


class EntityNames:
    """The entities of one Library.

    Args:
        library: The Library.
        column: Runs a query over the index, its store (`corpus`) and its `entities`, and returns the first column.
        pages: Runs such a query page by page, and streams the rows; see `IndexFile`.
        present: SQL that tells the documents of the commit, which the query calls `i`.
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
        """Return the ids of the documents of which an entity was extracted, in the order they were indexed.

        A name that no document holds as a whole is looked up by its words: documents hold them all in one name each.

        Raises:
            ValueError: If nothing was extracted.
        """
        if self._library.entities is None:
            raise UnsupportedFilterError(f"no entities in {self._library.path}: 'legal-rag extract' finds them")
        having = "SELECT doc_id FROM entities.terms WHERE term IN (SELECT value FROM json_each(?))"
        found = self._holding(having, json.dumps(list(dict.fromkeys(_terms(text)))))
        words = name_words(text)
        if found or not 0 < len(words) <= MOST_WORDS:
            return found
        of_word = "SELECT doc_id FROM entities.terms WHERE term = ?"
        in_kind = f"SELECT * FROM ({' INTERSECT '.join([of_word] * len(words))})"  # noqa: S608
        values = [name_term(kind + WORD, [word]) for kind in _KINDS for word in words]
        return self._holding(" UNION ".join([in_kind] * len(_KINDS)), *values)

    def _holding(self, doc_ids: str, *values: Any) -> list[str]:
        """Return those of some ids whose documents are there, with the texts that the entities are of."""
        query = f"""
            SELECT i.id FROM main.documents AS i CROSS JOIN entities.held AS h ON h.doc_id = i.id
            WHERE i.id IN ({doc_ids}) AND {self._present} AND h.content_hash = i.content_hash ORDER BY i.document_key
        """  # noqa: S608
        return self._column(query, *values)

    def shown_of(self, doc_id: str) -> tuple[str, ...]:
        """Return the names in a document as its text writes them, each once, people and bodies first."""
        entities = self._library.entities_of(doc_id) or []
        names = [
            " ".join(one["extraction_text"].split())
            for wanted in NAMED_CLASSES
            for one in entities
            if one["extraction_class"] == wanted
        ]
        return tuple(dict.fromkeys(names))[:MOST_NAMES]

    def terms(self) -> Iterator[str]:
        """Stream the terms of the documents' entities, each once, in order."""
        if self._library.entities is None:
            return iter(())
        query = f"""
            SELECT DISTINCT term FROM entities.terms AS one WHERE {self._held} AND term > ? ORDER BY term LIMIT ?
        """  # noqa: S608
        return (term for (term,) in self._pages(query, ""))

    def count(self) -> int:
        """Count the terms of the documents' entities, each once."""
        if self._library.entities is None:
            return 0
        query = f"SELECT COUNT(*) FROM (SELECT DISTINCT term FROM entities.terms) AS one WHERE {self._held}"  # noqa: S608
        return int(self._column(query)[0])

    @property
    def _held(self) -> str:
        return f"""
            EXISTS (
                SELECT 1 FROM entities.terms AS t CROSS JOIN main.documents AS i ON i.id = t.doc_id
                CROSS JOIN entities.held AS h ON h.doc_id = i.id
                WHERE t.term = one.term AND {self._present} AND h.content_hash = i.content_hash)
        """  # noqa: S608


def _terms(text: str) -> Iterator[str]:
    """Yield the terms that an entity so named may have."""
    yield text
    for day in find_dates(text):
        yield f"date:{day.value.isoformat()}"
    yield from amount_terms(text)
    yield from all_reference_keys(text)
    if words := name_words(text):
        yield from (name_term(kind, words) for kind in _KINDS)
    if words := [word for word in words_of(text) if word not in LEFT_ASIDE] or words_of(text):  # as terms are made
        yield from (name_term(name, words) for name in FOLDED_CLASSES)
