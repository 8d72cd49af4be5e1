from .building import CorpusIndexer as CorpusIndexer
from .index import CorpusIndex as CorpusIndex
from .index import DocumentMeta as DocumentMeta
from .index import has_corpus_index as has_corpus_index
from .sections import DocumentIndex as DocumentIndex
