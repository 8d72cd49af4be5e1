"""Entries of the corpus index: its rows, and the store's of the same documents, as `DocumentMeta`.

In: rows. Out: one value for each document.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

from legal_rag.corpus_index.records import DocumentMeta
from legal_rag.sources import TEXT_READERS

SELECT_ENTRIES = """
    SELECT i.document_key, i.id, i.file_size, i.char_count, d.title, i.summary, i.doc_type, d.decision_date,
           d.juridiction, d.formation, d.solution, d.extra, i.cluster,
           EXISTS (SELECT 1 FROM sections AS s WHERE s.document_key = i.document_key)
    FROM main.documents AS i JOIN corpus.documents AS d USING (document_key)
"""


class Entry(NamedTuple):
    """A row of `SELECT_ENTRIES`."""

    document_key: int
    doc_id: str
    file_size: int
    char_count: int
    title: str
    summary: str
    doc_type: str
    date: str
    juridiction: str
    formation: str
    solution: str
    extra: str  # JSON
    cluster: int | None
    has_sections: int  # 0 or 1


def meta_of(entry: Entry, keywords: tuple[str, ...], entities: tuple[str, ...], index: Path) -> DocumentMeta:
    """Return what is known of a document.

    Args:
        entry: Its row.
        keywords: Its own.
        entities: Likewise.
        index: The index's file.
    """
    further: dict[str, Any] = json.loads(entry.extra)
    is_file = Path(entry.doc_id).suffix.lower() in TEXT_READERS  # a file of a folder goes by its path below it
    return DocumentMeta(
        doc_id=entry.doc_id,
        file_path=str(further.get("file_path") or (entry.doc_id if is_file else "")),
        file_size=entry.file_size,
        char_count=entry.char_count,
        title=entry.title,
        summary=entry.summary,
        keywords=keywords,
        entities=entities,
        doc_type=entry.doc_type,
        date=entry.date,
        author=str(further.get("author") or entry.juridiction),
        juridiction=entry.juridiction,
        formation=entry.formation,
        solution=entry.solution,
        number=str(further.get("number") or ""),
        cluster=entry.cluster,
        has_detailed_index=bool(entry.has_sections),
        detailed_index_path=str(index) if entry.has_sections else "",
    )
