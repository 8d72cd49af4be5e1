"""The corpus index: what each document of a Library is and says, and which documents belong together, in two levels.

In: a Library. Out: level 1, one entry a document with inverted indexes, in `corpus_index.sqlite`; level 2, a document's
sections, on demand. The main names are imported when used.
"""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

_HOMES = {
    "CorpusIndex": "reading",
    "CorpusIndexer": "building",
    "DocumentIndex": "records",
    "DocumentMeta": "records",
    "IncrementalIndexer": "updating",
    "has_corpus_index": "index_file",
}
__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from legal_rag.corpus_index.building import CorpusIndexer as CorpusIndexer
    from legal_rag.corpus_index.index_file import has_corpus_index as has_corpus_index
    from legal_rag.corpus_index.reading import CorpusIndex as CorpusIndex
    from legal_rag.corpus_index.records import DocumentIndex as DocumentIndex
    from legal_rag.corpus_index.records import DocumentMeta as DocumentMeta
    from legal_rag.corpus_index.updating import IncrementalIndexer as IncrementalIndexer
else:
    __getattr__ = lazy_exports(__name__, _HOMES)
