"""A row of the dataset, made of a document, a question, and where its answer stands."""

import uuid
from typing import Any, Final

from legal_rag.corpus import Document
from legal_rag.legal_patterns import find_dates, find_identifiers

# What ids are derived from: the same document, span and question have the same id, whenever and wherever.
ID_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "legal_rag/questions")
ENTITY_CHARS: Final = 400  # either side of the answer, in which names and dates are looked for
MARGIN_CHARS: Final = 60  # beyond that, so that what begins or ends there is read whole
MOST_ENTITIES: Final = 10


def make_row(document: Document, question: str, span: tuple[int, int], **columns: Any) -> dict[str, Any]:
    """Make a row; its answer is the document's own text.

    Args:
        document: The document.
        question: The question.
        span: Of the answer, in the document's text.
        columns: `main_topic`, `summary`, `score`, `model`, `prompt_hash`, and perhaps `hard_negatives`.
    """
    start, end = span
    return {
        "id": question_id(document.id, span, question),
        "doc_id": document.id,
        "question": question,
        "answer": document.content[start:end],
        "answer_span_start": start,
        "answer_span_end": end,
        "document_title": document.title,
        "key_entities": key_entities(document.content, span),
        **columns,
    }


def question_id(doc_id: str, span: tuple[int, int], question: str) -> str:
    """Return the id of a question: UUID version 5 (RFC 9562) of document, span and question."""
    return str(uuid.uuid5(ID_NAMESPACE, f"{doc_id}\n{span[0]}-{span[1]}\n{question}"))


def key_entities(content: str, span: tuple[int, int]) -> list[str]:
    """Return the decisions, articles and dates named around an answer, as the text writes them, in its order."""
    start, end = max(0, span[0] - ENTITY_CHARS), span[1] + ENTITY_CHARS
    first = max(0, start - MARGIN_CHARS)
    text = content[first : end + MARGIN_CHARS]
    found = [(one.start, one.end) for one in find_identifiers(text)]
    found += [(one.start, one.end) for one in find_dates(text)]
    around = sorted(place for place in found if start - first <= place[0] and place[1] <= end - first)
    return list(dict.fromkeys(text[slice(*place)] for place in around))[:MOST_ENTITIES]
