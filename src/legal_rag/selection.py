"""Which documents of a source are indexed: all, the first ones, or those of a file of ids first.

In: an `IndexConfig`. Out: a stream of documents; records that had to be left out go into the report.
"""

import itertools
import logging
from collections.abc import Iterator
from pathlib import Path

from legal_rag.corpus import BadRecord, Document, read_documents
from legal_rag.index_config import IndexConfig, IndexReport

BAD_RECORDS_LISTED = 20  # told while building; all are written into the Library

logger = logging.getLogger(__name__)


def open_documents(cfg: IndexConfig, report: IndexReport) -> tuple[Iterator[Document], set[str]]:
    """Begin to read a source, so that a wrong one is known before anything else is done.

    Returns:
        The documents, and the ids of the ids file, from which those are taken out that are found.

    Raises:
        FileNotFoundError: If the source or the ids file does not exist.
        ValueError: If there is no document, or a column is unknown.
    """
    wanted = read_ids(cfg.ids_file)
    documents = _selected_documents(cfg, wanted, report)
    first = next(documents, None)
    if first is None:
        raise ValueError(f"no document in {cfg.source!s}")
    return itertools.chain([first], documents), wanted


def _selected_documents(cfg: IndexConfig, wanted: set[str], report: IndexReport) -> Iterator[Document]:
    """Stream the documents to index: those in `wanted`, which is emptied of the ones found, then the others."""

    noted: set[BadRecord] = set()  # with an ids file the source is read twice

    def note(record: BadRecord) -> None:
        if record in noted:
            return
        noted.add(record)
        report.bad.append(record)
        if len(report.bad) <= BAD_RECORDS_LISTED:
            logger.warning("left out %s: %s", record.where, record.problem)

    if not wanted:
        yield from itertools.islice(read_documents(cfg.source, cfg.options, on_bad=note), cfg.limit)
        return
    if isinstance(cfg.source, Iterator):
        raise ValueError("with an ids file the source is read twice, and an iterator can be read only once")
    asked = frozenset(wanted)
    taken = 0
    for document in read_documents(cfg.source, cfg.options, on_bad=note):
        if document.id in asked:
            wanted.discard(document.id)
            if cfg.limit is None or taken < cfg.limit:
                taken += 1
                yield document
        if not wanted:
            break
    others = (d for d in read_documents(cfg.source, cfg.options, on_bad=note) if d.id not in asked)
    yield from itertools.islice(others, None if cfg.limit is None else cfg.limit - taken)


def read_ids(ids_file: str | None) -> set[str]:
    """Read a file of ids, one a line; none without a file.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it holds no id.
    """
    if ids_file is None:
        return set()
    path = Path(ids_file).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"no such ids file: {path}")
    ids = {line.strip() for line in path.read_text(encoding="utf-8-sig", errors="replace").splitlines()} - {""}
    if not ids:
        raise ValueError(f"no id in {path} (expected one a line)")
    return ids
