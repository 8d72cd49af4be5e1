"""Documents by key, whatever holds them: a Library, a Hugging Face dataset, or a mapping from id to row."""

import weakref
from collections.abc import Mapping
from typing import Any

from legal_rag.corpus import ID_COLUMN, Document, read_documents

_row_numbers: "weakref.WeakKeyDictionary[Any, dict[str, int]]" = weakref.WeakKeyDictionary()


def document_of(source: Any, doc_id: str) -> Document:
    """Return a document by its id.

    A dataset's ids are read once, the first time; after that a look-up reads one row.

    Args:
        source: A Library, a Hugging Face dataset with an id column, or a mapping from id to row.
        doc_id: The document's id.

    Raises:
        LookupError: If the source has no such document.
        TypeError: If the source is none of these.
    """
    if hasattr(source, "document"):
        document: Document = source.document(doc_id)
        return document
    if isinstance(source, Mapping):
        return document_of_row({ID_COLUMN: doc_id, **source[doc_id]})
    if hasattr(source, "column_names"):
        return document_of_row(source[_numbers_of(source)[doc_id]])
    raise TypeError(f"no documents in a {type(source).__name__} (expected a Library, a dataset, or a mapping)")


def document_of_row(row: Mapping[str, Any]) -> Document:
    """Make a document of one row of a dataset.

    Raises:
        LookupError: If the row has no id or no text.
    """
    try:
        (document,) = read_documents([row], on_bad=lambda record: None)
    except ValueError as error:
        raise LookupError(str(error)) from error
    return document


def _numbers_of(dataset: Any) -> dict[str, int]:
    if dataset not in _row_numbers:
        _row_numbers[dataset] = {str(doc_id): number for number, doc_id in enumerate(dataset[ID_COLUMN][:])}
    return _row_numbers[dataset]
