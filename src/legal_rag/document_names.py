"""Document names: which document a model means by what it writes in a citation.

In: a name. Out: the id of the document, if that is certain.
"""

import re
from collections.abc import Mapping, Sequence

from legal_rag.chunking import parse_chunk_id
from legal_rag.folding import fold_text
from legal_rag.source_texts import SourceTexts

_LEAD = re.compile(r"^(?:documents?|décision|arrêt|doc(?:_id)?|id)\s*[:=]?\s+", re.IGNORECASE)
SHORTEST_TITLE = 10  # characters of a title that may stand for a document


class DocumentNames:
    """What the names that models write stand for: ids, chunk ids, titles of documents that were read."""

    def __init__(self, sources: SourceTexts, read: Sequence[str]) -> None:
        """Take the documents, and the ids of those whose titles are known as names."""
        self._sources, self._read = sources, read
        self._titles: dict[str, str | None] | None = None

    def document(self, name: str) -> str | None:
        """Return the id of the document that a name stands for, or None."""
        bare = name.strip(" «»“”\"'*`<>()")
        for candidate in dict.fromkeys((name, bare)):
            if candidate and self._sources.get(candidate):
                return candidate
        try:
            doc_id, _ = parse_chunk_id(bare)
        except ValueError:
            doc_id = ""
        if doc_id and self._sources.get(doc_id):
            return doc_id
        return self._by_title().get(fold_text(_LEAD.sub("", bare))) if self._by_title() else None

    def _by_title(self) -> Mapping[str, str | None]:
        """Return the ids of the documents read by their folded titles; None of a title that two of them have."""
        if self._titles is None:
            self._titles = {}
            for source in filter(None, map(self._sources.get, self._read)):
                self._titles.setdefault(fold_text(source.doc_id), source.doc_id)
                if len(source.title) >= SHORTEST_TITLE:
                    title = fold_text(source.title)
                    self._titles[title] = source.doc_id if title not in self._titles else None
        return self._titles
