"""Citation links between the documents of a Library."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from legal_rag.law.keys import relaxed_key, resolve_key
from legal_rag.library.filters import distinct
from legal_rag.library.store import Place

MAX_HOLDERS = 10  # documents with one key (an article's versions); a key of more is ambiguous
MAX_COUNTED = 100_000  # citing documents; counting stops here
CITATIONS_KEPT = 2**16  # terms whose resolution is remembered: the best documents of a question cite thousands


class CitationLink(NamedTuple):
    """A document cites another."""

    citing: int  # key of the document
    cited: int
    name: str  # the relaxed key of the document cited
    share: float  # of all that the citing one cites, indexed or not; in (0, 1]


class CitingDecision(NamedTuple):
    """The metadata of a citing document."""

    doc_id: str
    title: str
    decision_date: str
    juridiction: str
    formation: str
    solution: str


class CitationLinks:
    """Citations between the documents present at one commit, which `present` selects: see `store.present_keys`."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], present: str) -> None:
        self._connect, self._present = connect, present

    def documents_at(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the document key of each place."""
        query = """
            SELECT shard, position, document_key FROM json_each(?) AS place
            JOIN chunks ON shard = json_extract(place.value, '$[0]') AND position = json_extract(place.value, '$[1]')
        """
        rows = self._connect().execute(query, (json.dumps(list(places)),))
        return {(shard, position): key for shard, position, key in rows}

    def links_from(self, documents: Iterable[int]) -> list[CitationLink]:
        """Return the links from some documents, each pair once, in the order of keys."""
        # One row a document: a row a term takes three times as long.
        query = """
            SELECT document_key, json_group_array(term) FROM names INDEXED BY names_by_document
            WHERE document_key IN (SELECT value FROM json_each(?)) AND own = 0 GROUP BY document_key
        """
        rows = self._connect().execute(query, (json.dumps(sorted(documents)),))
        cited = {citing: _resolve_terms(json.loads(terms)) for citing, terms in rows}
        held = self._find_holders({citation.key for resolved in cited.values() for citation in resolved})
        links: dict[tuple[int, int], CitationLink] = {}
        for citing, resolved in sorted(cited.items()):
            for citation in (citation for citation in resolved if citation.key in held):
                holders = held[citation.key] if citation.whole or len(held[citation.key]) == 1 else []
                for holder in holders:
                    before = links.get((citing, holder))
                    share = 1 / len(resolved) / len(holders) + (before.share if before else 0.0)
                    links[citing, holder] = CitationLink(citing, holder, citation.name, share)
        return [links[pair] for pair in sorted(links) if pair[0] != pair[1]]

    def count_citing(self, term: str) -> int:
        """Count the documents of any commit that cite a key, up to `MAX_COUNTED`."""
        query = "SELECT COUNT(*) FROM (SELECT 1 FROM names WHERE term = ? AND own = 0 LIMIT ?)"
        return int(self._connect().execute(query, (term, MAX_COUNTED)).fetchone()[0])

    def solutions(self) -> list[str]:
        """Return the distinct outcomes recorded by sources, among them "" where a document has none."""
        return [solution for (solution,) in distinct(self._connect(), ("solution",))]

    def citing(self, term: str, solutions: Iterable[str], most: int) -> list[CitingDecision]:
        """Return the documents that cite a key and have one of some outcomes.

        Args:
            term: A key of `legal_rag.law.keys.document_keys`.
            solutions: As their sources write them.
            most: Citing documents examined, those indexed last.
        """
        query = f"""
            SELECT {", ".join(CitingDecision._fields).replace("doc_id", "id")} FROM
            (SELECT document_key FROM names WHERE term = ? AND own = 0 ORDER BY document_key DESC LIMIT ?)
            CROSS JOIN documents USING (document_key)
            WHERE {self._present} AND solution IN (SELECT value FROM json_each(?))
        """  # noqa: S608
        rows = self._connect().execute(query, (term, most, json.dumps(list(solutions), ensure_ascii=False)))
        return [CitingDecision(*row) for row in rows]

    def _find_holders(self, names: Iterable[str]) -> dict[str, list[int]]:
        """Return the documents with each own key, of keys that at most `MAX_HOLDERS` have."""
        query = f"""
            SELECT value, (SELECT json_group_array(document_key) FROM (
                SELECT document_key FROM names INDEXED BY names_own
                WHERE own AND term = value AND {self._present} LIMIT {MAX_HOLDERS + 1}
            )) FROM json_each(?) WHERE EXISTS (SELECT 1 FROM names INDEXED BY names_own WHERE own AND term = value)
        """  # noqa: S608
        rows = self._connect().execute(query, (json.dumps(self._drop_absent_kinds(names)),))
        held = {name: sorted(json.loads(keys)) for name, keys in rows}
        return {name: keys for name, keys in held.items() if 0 < len(keys) <= MAX_HOLDERS}

    def _drop_absent_kinds(self, names: Iterable[str]) -> list[str]:
        """Drop keys of kinds that identify no document, such as articles where only decisions are indexed; sort."""
        by_kind: dict[str, list[str]] = defaultdict(list)
        for name in names:
            by_kind[name.partition(":")[0]].append(name)
        query = """
            SELECT value FROM json_each(?) WHERE EXISTS (
                SELECT 1 FROM names INDEXED BY names_own WHERE own AND term >= value || ':' AND term < value || ';'
            )
        """
        kinds = self._connect().execute(query, (json.dumps(list(by_kind)),))
        return sorted(name for (kind,) in kinds for name in by_kind[kind])

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


class _Citation(NamedTuple):
    key: str  # of the document cited
    whole: bool  # with code or series
    name: str  # without


@lru_cache(CITATIONS_KEPT)
def _resolve_term(term: str) -> _Citation | None:
    resolved = resolve_key(term)
    return _Citation(*resolved, relaxed_key(term)) if resolved else None


def _resolve_terms(terms: Iterable[str]) -> list[_Citation]:
    """Resolve terms; a partial citation of what is also cited in full is dropped."""
    resolved = [citation for citation in map(_resolve_term, terms) if citation is not None]
    in_full = {citation.name for citation in resolved if citation.whole}
    return [citation for citation in resolved if citation.whole or citation.name not in in_full]
