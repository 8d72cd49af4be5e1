"""Which documents of a corpus cite which others of it.

In: a store. Out: links between documents, told by their keys. A citation leads to every document that goes by the name
cited; one that leaves out the code or the series, only where a single document goes by what is left.
"""

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from legal_rag.names import lead_of, loosest_of

Place = tuple[int, int]  # shard, position


class Link(NamedTuple):
    """A document cites another."""

    citing: int  # key of the document
    cited: int
    name: str  # the term by which any text would name the document cited
    share: float  # of all that the citing one cites, in the corpus or not; in (0, 1]


class CitationLinks:
    """The links between the documents present at one commit.

    Args:
        connect: Returns the calling thread's connection to the store.
        present: SQL that tells the documents of the commit; see `legal_rag.store.present_at`.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection], present: str) -> None:
        self._connect, self._present = connect, present

    def documents_at(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the key of the document that each place is of."""
        query = """
            SELECT shard, position, document_key FROM json_each(?) AS place
            JOIN chunks ON shard = json_extract(place.value, '$[0]') AND position = json_extract(place.value, '$[1]')
        """
        rows = self._connect().execute(query, (json.dumps(list(places)),))
        return {(shard, position): key for shard, position, key in rows}

    def links_from(self, documents: Iterable[int]) -> list[Link]:
        """Return the links from some documents to others, each pair once, in the order of keys."""
        query = """
            SELECT document_key, term FROM names INDEXED BY names_by_document
            WHERE document_key IN (SELECT value FROM json_each(?)) AND own = 0
        """
        rows = self._connect().execute(query, (json.dumps(list(documents)),)).fetchall()
        leads = {term: lead for _, term in rows if (lead := lead_of(term))}
        holders = self._holders({name for name, _ in leads.values()})
        n_cited = Counter(citing for citing, term in rows if term in leads)
        links = {}
        for citing, term in rows:
            if term in leads:
                name, whole = leads[term]
                held = holders[name] if whole or len(holders[name]) == 1 else []
                for cited in held:
                    links[citing, cited] = Link(citing, cited, loosest_of(term), 1 / n_cited[citing] / len(held))
        return [links[pair] for pair in sorted(links) if pair[0] != pair[1]]

    def _holders(self, names: Iterable[str]) -> dict[str, list[int]]:
        """Return the documents that go by each name."""
        query = f"""
            SELECT term, document_key FROM names INDEXED BY names_own JOIN documents USING (document_key)
            WHERE own AND term IN (SELECT value FROM json_each(?)) AND {self._present}
        """  # noqa: S608
        holders: dict[str, list[int]] = defaultdict(list)
        for term, key in self._connect().execute(query, (json.dumps(sorted(names)),)):
            holders[term].append(key)
        return holders

    def places_of(self, documents: Sequence[int]) -> dict[int, list[Place]]:
        """Return the places of each document's chunks, in order."""
        query = """
            SELECT document_key, shard, position FROM chunks
            WHERE document_key IN (SELECT value FROM json_each(?)) ORDER BY document_key, chunk_index
        """
        places: dict[int, list[Place]] = defaultdict(list)
        for key, shard, position in self._connect().execute(query, (json.dumps(list(documents)),)):
            places[key].append((shard, position))
        return places
