"""Level 2 on demand: the sections of a document, made when they are asked for, kept where a model wrote of them.

In: the index, a document. Out: its `DocumentIndex`.
"""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from legal_rag.corpus_index.document_index import build_document_index
from legal_rag.corpus_index.frequencies import TermStatistics
from legal_rag.corpus_index.records import DocumentIndex
from legal_rag.corpus_index.terms import read_terms

if TYPE_CHECKING:
    from legal_rag.corpus_index.reading import CorpusIndex
    from legal_rag.corpus_index.section_summaries import SubModel


def kept_or_made(index: "CorpusIndex", document_key: int, doc_id: str) -> DocumentIndex:
    """Return the sections of a document: what was kept of them, else made now, without a model."""
    kept = index.kept_sections(document_key)
    return make_sections(index, doc_id) if kept is None else sections_of_json(kept)


def make_sections(index: "CorpusIndex", doc_id: str, sub_llm: "SubModel | None" = None) -> DocumentIndex:
    """Make the sections of a document, by the corpus's frozen frequencies."""
    document = index.library.document(doc_id)
    terms = read_terms(document.content)
    statistics = TermStatistics(index.meta["counted"], *index.frequencies(terms.counts))
    return build_document_index(
        document,
        entities=index.library.entities_of(doc_id),
        statistics=statistics,
        sub_llm=sub_llm,
        file_path=str(document.extra.get("file_path") or ""),
    )


def sections_to_json(sections: DocumentIndex) -> str:
    """Write the sections of a document as JSON."""
    return json.dumps(asdict(sections), ensure_ascii=False)


def sections_of_json(text: str) -> DocumentIndex:
    """Read what `sections_to_json` wrote."""
    values = json.loads(text)
    values["section_map"] = {name: tuple(span) for name, span in values["section_map"].items()}
    return DocumentIndex(**values)
