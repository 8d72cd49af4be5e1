"""What the corpus index says of a document, as values: level 1, one entry each, and level 2, its sections.

In: rows of the index. Out: `DocumentMeta` and `DocumentIndex`. Offsets are characters of `Document.content`.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

WHOLE = "full_document"  # the only section of a document without structure


@dataclass(frozen=True)
class DocumentMeta:
    """Level 1: what a document is, without its text."""

    doc_id: str
    file_path: str  # of the source, where it was a file of a folder; else empty
    file_size: int  # of the text, bytes in UTF-8
    char_count: int
    title: str
    summary: str  # the official one, else a model's, else sentences of the text
    keywords: tuple[str, ...]  # the weightiest first
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
