"""Update a Library: additions, changes and withdrawals in one commit, of which nothing that is gone stays anywhere."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from legal_rag.base.html import displayed
from legal_rag.corpus.dila import is_structure, removed_ids
from legal_rag.corpus.documents import Document, read_documents
from legal_rag.corpus.sources import BadRecord
from legal_rag.encoder.encoder import Encoder
from legal_rag.indexer.build import apply_changes
from legal_rag.indexer.commit import LibraryUpdate, committing, library_locked
from legal_rag.indexer.compaction import compact_locked
from legal_rag.indexer.config import IndexConfig, IndexReport, library_path, source_label
from legal_rag.indexer.erasure import end_erasing, has_removed, mark_erasing
from legal_rag.indexer.pipeline import Stopwatch
from legal_rag.library.library import Library


@displayed
@dataclass
class UpdateReport:
    """What an update changed, by ids of documents."""

    path: str = ""
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)  # there before with another content: replaced
    removed: list[str] = field(default_factory=list)  # withdrawn
    unchanged: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)  # withdrawn, and not in the Library
    answers: list[str] = field(default_factory=list)  # ids of saved answers that rested on what is gone: deleted
    bad: list[BadRecord] = field(default_factory=list)  # records left out; also in the Library's bad_records.jsonl
    seconds: dict[str, float] = field(default_factory=dict)  # `commit`, `erase`

    def to_json(self) -> dict[str, Any]:
        """Return the form that `legal-rag update --json` prints."""
        return {**dataclasses.asdict(self), "bad": [record._asdict() for record in self.bad]}


def update_library(
    cfg: IndexConfig,
    sources: Sequence[Any] = (),
    *,
    removed: Iterable[str] = (),
    encoder: Encoder | None = None,
    parallel: bool = False,
) -> UpdateReport:
    """Apply increments to a Library in one commit, and erase what it no longer holds from all its files.

    What a later source says of a document outweighs the earlier ones. Withdrawn are the ids in the suppression lists of
    DILA's archives, unless the same source or a later one has the document, and those of `removed`. Where anything was
    replaced or removed, now or before, the Library is then compacted; after a kill in between, whoever writes next does
    it.

    Args:
        cfg: How sources are read, and where the Library is; its own source is not read.
        sources: As for `legal_rag.corpus.read_documents`, the oldest first.
        removed: Ids of further documents to withdraw.
        encoder: The Library's, if it is loaded.
        parallel: As for `compact_index`.

    Raises:
        FileNotFoundError: If there is no Library, or no such source.
        ValueError: If a source has neither documents nor withdrawals, unless all its files are of DILA's that hold none
            (sections, tables of contents); if no document would be left, the encoder is not the Library's, or another
            process is writing to it.
        OSError: If the disk is full.
    """
    report, path = UpdateReport(path=str(library_path(cfg))), library_path(cfg)
    watch = Stopwatch(report.seconds)
    names = ", ".join(source_label(dataclasses.replace(cfg, source=source)) for source in sources)
    Library(path)  # before the lock, whose file would stay behind without a Library
    with library_locked(path):
        with watch.timed("commit"), committing(path) as update:
            changes = _changes(update, cfg, sources, list(removed), report)
            stored, cfg = IndexReport(bad=report.bad), dataclasses.replace(cfg, source=names)
            apply_changes(update, changes, cfg, encoder, stored, Stopwatch(), withdrawn=report.removed)
        with watch.timed("erase"):
            if has_removed(Library(path)):
                report.answers = compact_locked(path, parallel=parallel).answers
            end_erasing(path)
    return report


def _changes(
    update: LibraryUpdate, cfg: IndexConfig, sources: Sequence[Any], removed: Sequence[str], report: UpdateReport
) -> Iterator[Document]:
    """Yield the documents that are new or changed, those of the last source first, and note all in the report.

    All is read then, and the Library is marked for the erasing that follows the commit.
    """
    settled: set[str] = set()  # ids of which a later source has said what they are
    _withdraw(update, removed, settled, report)
    for source in reversed(sources):
        withdrawn, own = _withdrawn_by(source), set[str]()
        for document in _documents_of(source, cfg, report, may_be_empty=bool(withdrawn)):
            own.add(document.id)
            if document.id not in settled:
                state = update.state_of(document)
                getattr(report, state).append(document.id)
                if state != "unchanged":
                    yield document
        settled |= own
        _withdraw(update, withdrawn, settled, report)
    if update.manifest["counts"]["documents"] + len(report.added) == len(report.removed):
        raise ValueError(f"no document would be left in {update.path}: nothing was changed")
    mark_erasing(update.path)


def _withdraw(update: LibraryUpdate, doc_ids: Iterable[str], settled: set[str], report: UpdateReport) -> None:
    new = [doc_id for doc_id in dict.fromkeys(doc_ids) if doc_id not in settled]
    held = update.held(new)
    for doc_id in new:
        (report.removed if doc_id in held else report.absent).append(doc_id)
    settled.update(new)


def _withdrawn_by(source: Any) -> list[str]:
    return removed_ids(source) if isinstance(source, str | Path) and Path(source).expanduser().exists() else []


def _documents_of(source: Any, cfg: IndexConfig, report: UpdateReport, *, may_be_empty: bool) -> Iterator[Document]:
    n_before = len(report.bad)
    try:
        yield from read_documents(source, cfg.options, on_bad=report.bad.append)
    except ValueError:  # how reading ends where there was no document
        if may_be_empty:
            return
        if not isinstance(source, str | Path) or not is_structure(source):
            raise
        del report.bad[n_before:]  # which count such files
