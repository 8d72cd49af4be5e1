"""A Library of words with its entities and its corpus index, as deep reading finds it."""

from functools import cache

from legal_rag.corpus_index.building import CorpusIndexer
from legal_rag.corpus_index.index import CorpusIndex
from legal_rag.extraction import ExtractionSettings
from legal_rag.extraction.schemas import RULES
from legal_rag.indexer import IndexConfig, build_index, extract_library
from legal_rag.library import Library


def indexed(folder, source, encoder, *, entities=True):
    """Build all that the functions of a deep read look at, and open it; the rules find the entities."""
    build_index(IndexConfig(source=source, n_bits=0, index_folder=str(folder)), encoder)
    library = Library.open(folder)
    if entities:
        extract_library(library, ExtractionSettings(model_id=RULES))
    CorpusIndexer(library).build_corpus_index()
    return CorpusIndex.open(Library.open(folder))


@cache
def indexed_sample(folder, source, encoder):
    """Build it of the sample, once for all test files."""
    return indexed(folder / "indexed-sample", source, encoder)
