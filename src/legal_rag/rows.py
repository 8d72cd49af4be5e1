"""Document lookup by id in a Library, a Hugging Face dataset, or a mapping from id to row."""

import bisect
import difflib
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from legal_rag.corpus import ID_COLUMN, Document, read_documents

NEAR_IDS = 500  # ids compared when an unknown one is asked for

_row_numbers: "weakref.WeakKeyDictionary[Any, dict[str, int]]" = weakref.WeakKeyDictionary()


def document_of(source: Any, doc_id: str) -> Document:
    """Return a document by its id.

    A dataset's ids are read once, the first time; after that a look-up reads one row.

    Args:
        source: A Library, a Hugging Face dataset with an id column, or a mapping from id to row.
        doc_id: The document's id.

    Raises:
        LookupError: If the source has no such document.
        TypeError: If the source is something else.
        ValueError: If a dataset has no id column.
    """
    try:
        doc_id.encode()
    except UnicodeEncodeError as error:  # half a character, which no store takes
        raise LookupError(f"no document {doc_id!r}") from error
    if hasattr(source, "document"):
        document: Document = source.document(doc_id)
        return document
    if isinstance(source, Mapping):
        return document_of_row({ID_COLUMN: doc_id, **source[doc_id]})
    if hasattr(source, "column_names"):
        return document_of_row(source[_numbers_of(source)[doc_id]])
    raise _no_source(source)


def holds(source: Any, doc_id: str) -> bool:
    """Tell whether a source has a document of that id.

    Raises:
        TypeError: If the source is not one that `document_of` takes.
    """
    try:
        doc_id.encode()
        if isinstance(source, Mapping):
            return doc_id in source
        if hasattr(source, "column_names"):
            return doc_id in _numbers_of(source)
        if not hasattr(source, "document"):
            raise _no_source(source)
        return doc_id in source if hasattr(source, "__contains__") else bool(source.document(doc_id))
    except (LookupError, UnicodeEncodeError):  # half a surrogate pair is in no store
        return False


def nearest_id(source: Any, doc_id: str) -> str | None:
    """Return the document id most like `doc_id` among those beside it in the order of ids, or None."""
    doc_id = doc_id.encode(errors="replace").decode()
    if hasattr(source, "nearest_id"):
        near: str | None = source.nearest_id(doc_id)
        return near
    return nearest_among(sorted(map(str, source if isinstance(source, Mapping) else _numbers_of(source))), doc_id)


def nearest_among(sorted_ids: Sequence[str], doc_id: str) -> str | None:
    """Return the id most like `doc_id` among those beside it in a sorted sequence, or None of an empty one."""
    place = bisect.bisect_left(sorted_ids, doc_id)
    beside = sorted_ids[max(place - NEAR_IDS, 0) : place + NEAR_IDS]
    return next(iter(difflib.get_close_matches(doc_id, beside, n=1, cutoff=0.0)), None)


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


def _no_source(source: Any) -> TypeError:
    return TypeError(f"no documents in a {type(source).__name__} (expected a Library, a dataset, or a mapping)")


def _numbers_of(dataset: Any) -> dict[str, int]:
    if ID_COLUMN not in dataset.column_names:
        raise ValueError(f"no column {ID_COLUMN!r} in the dataset (its columns: {', '.join(dataset.column_names)})")
    if dataset not in _row_numbers:
        numbers: dict[str, int] = {}
        for number, doc_id in enumerate(dataset[ID_COLUMN][:]):
            numbers.setdefault(str(doc_id).strip(), number)  # as in an index, the first of two rows with one id counts
        _row_numbers[dataset] = numbers
    return _row_numbers[dataset]
