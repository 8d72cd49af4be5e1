"""Records of the corpus index: what is known of a document and of its sections."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from legal_rag.corpus.sources import TEXT_READERS

WHOLE = "full_document"  # the only section of a document without structure
# The columns of `meta_of`; `corpus` is the store.
SELECT_ENTRIES = """
    SELECT i.document_key, i.id, i.file_size, i.char_count, d.title, i.summary, i.doc_type, d.decision_date,
           d.juridiction, d.formation, d.solution, d.extra, i.cluster,
           EXISTS (SELECT 1 FROM sections AS s WHERE s.document_key = i.document_key)
    FROM main.documents AS i JOIN corpus.documents AS d USING (document_key)
"""


@dataclass(frozen=True)
class DocumentMeta:
    """Level 1: what a document is, without its text."""

    doc_id: str
    file_path: str  # of the source, where it was a file of a folder; else empty
    file_size: int  # of the text, bytes in UTF-8
    char_count: int
    title: str
    summary: str  # the official one, else a model's, else sentences of the text
    keywords: tuple[str, ...]  # by falling weight
    entities: tuple[str, ...]  # as the text names them; none where nothing was extracted
    doc_type: str
    date: str  # ISO 8601, as far as it is known
    author: str  # who decided or wrote it
    juridiction: str
    formation: str
    solution: str
    number: str
    cluster: int | None
    has_detailed_index: bool
    detailed_index_path: str

    def to_json(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {**asdict(self), "keywords": list(self.keywords), "entities": list(self.entities)}


@dataclass(frozen=True)
class DocumentIndex:
    """Level 2: the sections of one document."""

    doc_id: str
    file_path: str
    has_structure: bool
    toc: dict[str, Any] = field(default_factory=dict)  # {"sections": [{"title", "start", "end", "level", "children"}]}
    section_map: dict[str, tuple[int, int]] = field(default_factory=dict)
    section_summaries: dict[str, str] = field(default_factory=dict)
    keywords_by_section: dict[str, list[str]] = field(default_factory=dict)
    entities_by_section: dict[str, list[str]] = field(default_factory=dict)


class Described(NamedTuple):
    """The rows that the index stores of one document."""

    content_hash: str
    char_count: int
    file_size: int  # bytes in UTF-8
    doc_type: str
    summary_source: str
    summary: str
    keywords: list[tuple[str, str, float]]  # term, surface form, weight; by falling weight
    postings: Mapping[str, float]  # weights by the terms that find it

    @property
    def weights(self) -> dict[str, float]:
        """The keywords' weights by term, which decide on its cluster."""
        return {term: weight for term, _, weight in self.keywords}


def meta_of(row: Sequence[Any], keywords: tuple[str, ...], entities: tuple[str, ...], index_path: Path) -> DocumentMeta:
    """Return the entry of a row of `SELECT_ENTRIES`."""
    _, doc_id, size, chars, title, summary, doc_type, date, court, formation, solution, extra, cluster, sections = row
    more: dict[str, Any] = json.loads(extra)
    is_file = Path(doc_id).suffix.lower() in TEXT_READERS  # the id of a folder's file is its path in the folder
    return DocumentMeta(
        doc_id=doc_id,
        file_path=str(more.get("file_path") or (doc_id if is_file else "")),
        file_size=size,
        char_count=chars,
        title=title,
        summary=summary,
        keywords=keywords,
        entities=entities,
        doc_type=doc_type,
        date=date,
        author=str(more.get("author") or court),
        juridiction=court,
        formation=formation,
        solution=solution,
        number=str(more.get("number") or ""),
        cluster=cluster,
        has_detailed_index=bool(sections),
        detailed_index_path=str(index_path) if sections else "",
    )
