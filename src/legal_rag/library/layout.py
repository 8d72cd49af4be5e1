"""Names of the files in an index folder, and its default place."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence

Place = tuple[int, int]  # shard, position


class Contents:
    """The texts of the documents present at one commit.

    Args:
        connect: Returns the calling thread's connection to the store.
        present: SQL that tells the documents of the commit; see `legal_rag.library.store.present_at`.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection], present: str) -> None:
        self._connect, self._present = connect, present

    def all(self) -> Iterator[tuple[str, bytes]]:
        """Stream all texts."""
        return self._stream("TRUE")

    def of(self, doc_ids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Stream the texts of some documents; unknown ids are left out."""
        return self._stream("id IN (SELECT value FROM json_each(?))", json.dumps(list(doc_ids)))

    def known(self, doc_ids: Sequence[str]) -> set[str]:
        """Return those of some ids that documents have."""
        held = "SELECT id FROM documents WHERE id IN (SELECT value FROM json_each(?))"
        query = f"{held} AND {self._present}"
        return {doc_id for (doc_id,) in self._connect().execute(query, (json.dumps(list(doc_ids)),))}

    def at(self, places: Sequence[Place]) -> Iterator[tuple[str, bytes]]:
        """Stream the texts of the documents that have a chunk at one of some places."""
        held = """
            SELECT chunks.document_key FROM json_each(?) AS place
            JOIN chunks ON shard = json_extract(place.value, '$[0]') AND position = json_extract(place.value, '$[1]')
        """
        return self._stream(f"document_key IN ({held})", json.dumps(list(places)))

    def _stream(self, condition: str, *values: str) -> Iterator[tuple[str, bytes]]:
        # As bytes: decoding takes longer than reading, and most texts are only searched.
        query = f"""
            SELECT id, CAST(content AS BLOB) FROM documents
            WHERE {condition} AND {self._present} ORDER BY document_key
        """  # noqa: S608
        yield from self._connect().execute(query, values)
