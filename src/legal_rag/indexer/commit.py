"""Commit a build or an update: shard mappings, BM25, rows, the manifest last; fill the parts made of the texts."""

import hashlib
import json
import logging
import os
import shutil
import sqlite3
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from legal_rag.base.files import (
    beside,
    link_or_copy,
    locked,
    progress,
    put_in_place,
    restore,
    sha256_of,
    sync,
    write_whole,
    written_whole,
)
from legal_rag.base.sqlite import connect_to_read, connect_to_write, copy_database, parameter, transaction
from legal_rag.corpus.documents import DEFAULT_CONFIG, DEFAULT_DATASET, Document
from legal_rag.corpus.sources import BadRecord
from legal_rag.corpus_index.building import fill_index, update_corpus_index
from legal_rag.extraction.entities import ENTITIES
from legal_rag.graph.fates import store_fallen
from legal_rag.graph.store import add_to_graph, carrying_graph, forget_in_graph, graph_parts, leaving_bad_graph
from legal_rag.indexer.config import RebuiltPart
from legal_rag.indexer.erasure import end_erasing, forget_removed, is_erasing
from legal_rag.indexer.pipeline import CODEBOOK, SHARDS, shard_home
from legal_rag.library.bm25 import LEXICAL_FOLDER, word_part
from legal_rag.library.library import (
    BAD_RECORDS,
    INSTRUCTIONS,
    MAPPING,
    RUNS,
    STORE,
    Library,
    locked_answers,
    place_of,
    store_version,
)
from legal_rag.library.manifest import (
    CHUNK_VECTORS,
    FORMAT_VERSION,
    FRAME,
    MANIFEST,
    files_in_manifest,
    forget_checksums,
    record_all,
    record_checksums,
    without_record,
    write_manifest,
)
from legal_rag.library.outlines import OUTLINES, outline_part
from legal_rag.library.parts import LibraryPart, bring_up_to_date, process_pool
from legal_rag.library.plaid.files import (
    CODEC_FILES,
    PLAID_FOLDER,
    SHARED_FILES,
    PlaidParts,
    count_tokens,
    lengths_of,
    part_files,
    parts_of,
)
from legal_rag.library.store import KEYED_TABLES, STORED_COLUMNS, VERSIONS_SCHEMA, has_table

logger = logging.getLogger(__name__)

BLOCK_CHUNKS = 64  # whose vectors are held at once
FRAME_CHUNKS = 2048  # that the frame of the chunk vectors is fitted to
SHARED_BY_SHARDS = (MAPPING, *(f"{PLAID_FOLDER}/{name}" for name in SHARED_FILES))  # an addition replaces them
PER_PROCESS = 1000  # documents that outweigh the start of a process
_AMONG = "id IN (SELECT value FROM json_each(?))"
COPIED = {  # tables of another store
    "documents": f"document_key, {', '.join(STORED_COLUMNS)}, added",
    "chunks": "document_key, chunk_index, char_start, char_end, shard, position",
    "names": "document_key, term, own",
    "published": "document_key",
    "versions": "document_key, article, first, until",
}
COMMIT_DOCUMENTS = 100  # copied in one transaction: few enough that readers are not locked out for long


@contextmanager
def building(index_folder: str | Path, index_name: str, key: Mapping[str, Any] | None) -> Iterator[Path]:
    """Lock a Library's folder and yield a scratch folder, which replaces it on leaving; see `replacing`.

    ValueError if another process is building the same Library, or the folder holds something else; OSError if the disk
    is full.
    """
    target = Path(index_folder).expanduser() / index_name
    if target.exists() and not (target / MANIFEST).is_file() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(
            f"will not overwrite {target}: it is not a Library (expected a {MANIFEST}, or an empty folder)"
        )
    with library_locked(target):
        forget_removed(target)
        with replacing(target, "building", key) as scratch:
            yield scratch


@contextmanager
def library_locked(target: Path) -> Iterator[None]:
    """Keep other writers out of a Library's folder, and restore it if a swap was cut off.

    ValueError if another process is writing to it.
    """
    with locked(target):
        restore(target)
        if is_erasing(target):
            logger.warning(
                "%s: an update was cut off; whoever writes erases what it withdrew, and answers on it", target
            )
        yield


@contextmanager
def replacing(target: Path, purpose: str, key: Mapping[str, Any] | None = None) -> Iterator[Path]:
    """Yield a scratch folder (see `staging`), which replaces the Library at `target`, with what users put into it.

    After an error or a kill, `target` is as it was.
    """
    with staging(target, purpose, key) as scratch:
        yield scratch
        if not (scratch / MANIFEST).is_file():
            raise RuntimeError(f"{scratch} was left unfinished: finish_library was not called")
        if (target / INSTRUCTIONS).is_file():
            link_or_copy(target / INSTRUCTIONS, scratch / INSTRUCTIONS)
        with carrying_entities(target, scratch), carrying_answers(target, scratch), carrying_graph(target, scratch):
            manifest = json.loads((scratch / MANIFEST).read_text(encoding="utf-8"))
            record_all(scratch, {INSTRUCTIONS, *files_in_manifest(manifest)})
            put_in_place(scratch, target)
    discard_attempt(target, "adding")  # it was at a commit of the folder that is gone
    if is_erasing(target):
        discard_attempt(target, "building")  # it may hold the same texts
        end_erasing(target)


@contextmanager
def carrying_answers(old: Path, new: Path) -> Iterator[None]:
    """Link a Library's saved answers into the folder that replaces it, and lock them until the block has done that."""
    shutil.rmtree(new / RUNS, ignore_errors=True)
    if not old.is_dir():
        yield
        return
    with locked_answers(old):
        for file in (old / RUNS).glob("*.json"):
            (new / RUNS).mkdir(exist_ok=True)
            link_or_copy(file, new / RUNS / file.name)
        yield


@contextmanager
def carrying_entities(old: Path, new: Path) -> Iterator[None]:
    """Copy a Library's entities into the folder that replaces it, and lock them until the block ends.

    A damaged file is left behind with a warning: its entities can be extracted again.
    """
    source = old / ENTITIES
    if not source.is_file():
        yield
        return
    with closing(connect_to_write(source)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")  # holds the write lock; there is nothing to commit
            copy_database(source, new / ENTITIES)
            sync(new / ENTITIES)
        except sqlite3.OperationalError:  # such as a full disk
            raise
        except sqlite3.DatabaseError as error:
            logger.warning("%s is damaged (%s): its entities are left behind, extract them again", source, error)
        yield


@contextmanager
def staging(target: Path, purpose: str, key: Mapping[str, Any] | None) -> Iterator[Path]:
    """Yield a scratch folder next to the locked `target`, new or as an interrupted attempt with the same `key` left it.

    It stays for the next attempt after a kill, an interruption, a full disk, or an error once shards were begun; it is
    deleted after bad input before that, and at the end. The key is all that decides the outcome but the documents;
    without one, nothing is resumed.
    """
    scratch, note = _scratch_and_note(target, purpose)
    text = json.dumps(key, ensure_ascii=False, sort_keys=True, default=str)
    if key is None or not (scratch.is_dir() and note.is_file() and note.read_text(encoding="utf-8") == text):
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        write_whole(note, text)
    elif (scratch / CODEBOOK).is_dir():
        logger.warning("%s: the shards that an interrupted run has made are kept, and the rest done now", target)
    try:
        yield scratch
    except BaseException as error:
        if key is None or (isinstance(error, ValueError | LookupError) and not (scratch / CODEBOOK).is_dir()):
            discard_attempt(target, purpose)
        if isinstance(error, sqlite3.OperationalError):  # how SQLite says that the disk is full
            raise OSError(f"cannot write in {scratch}: {error}") from error
        raise
    discard_attempt(target, purpose)


def discard_attempt(target: Path, purpose: str) -> None:
    """Delete what an interrupted `staging` left."""
    scratch, note = _scratch_and_note(target, purpose)
    shutil.rmtree(scratch, ignore_errors=True)
    note.unlink(missing_ok=True)


def _scratch_and_note(target: Path, purpose: str) -> tuple[Path, Path]:
    return beside(target, purpose), beside(target, f"{purpose}.json")


def finish_library(
    folder: Path,
    manifest: Mapping[str, Any],
    n_shards: int,
    parts: Collection[RebuiltPart] = (),
    *,
    vectors: Mapping[str, Any] | None = None,
    earlier: Path | None = None,
    summaries: Path | None = None,
    others: Sequence[LibraryPart] = (),
    parallel: bool = False,
) -> dict[str, Any]:
    """Make a Library from a folder with a store and `n_shards` complete shards: mappings, manifest, words and `parts`.

    `manifest` lacks format, build id, shards and the count of tokens; the whole one is returned. `vectors` is the
    manifest's entry on chunk vectors that the folder has already; else they are made. The other arguments are those of
    `fill_parts`.
    """
    source, plaid = manifest["source"], manifest["plaid"]
    shards = _join_shards(folder, range(n_shards), folder / STORE, plaid)
    write_mapping(folder / MAPPING, source, folder / STORE)
    if vectors is None:
        shutil.rmtree(folder / CHUNK_VECTORS, ignore_errors=True)  # of an interrupted attempt
        vectors = write_chunk_vectors(folder, shards) if plaid["n_bits"] else {}
    lineage = _build_id(folder / STORE, shards)
    with closing(connect_to_write(folder / STORE)) as connection:
        connection.execute(f"PRAGMA user_version = {store_version(lineage):d}")
    for path in folder.rglob("*"):
        if path.is_file():
            sync(path)
    counts = {**manifest["counts"], "tokens": sum(shard["tokens"] for shard in shards)}
    head = {"format_version": FORMAT_VERSION, "lineage": lineage, "updates": []}
    whole = {**head, **manifest, "counts": counts, "shards": shards, **vectors}
    write_manifest(folder, whole)
    _drop_joined(folder, range(n_shards))
    names = {"words", *parts}
    fill_parts(folder, whole, names, earlier=earlier, summaries=summaries, others=others, parallel=parallel)
    return whole


def fill_parts(
    folder: Path,
    manifest: Mapping[str, Any],
    names: Collection[RebuiltPart],
    *,
    earlier: Path | None = None,
    summaries: Path | None = None,
    anew: Collection[RebuiltPart] = (),
    others: Sequence[LibraryPart] = (),
    parallel: bool = False,
) -> None:
    """Make what some parts of a Library lack, and drop what they hold of other documents; a kill costs a batch.

    The caller keeps other writers out.

    Args:
        folder: The Library's, possibly one being built.
        manifest: Of it.
        names: Among `words` and `corpus-index`, which are always made anew, `trees` and `graph`.
        earlier: The Library that it replaces, whose outlines of the same texts are copied and entities linked.
        summaries: A corpus index of the same documents and keys, whose summaries by a model are kept.
        anew: Parts of which nothing is kept but what users or a model gave.
        others: Further parts, made while the documents are read.
        parallel: In as many processes as there are cores.
    """
    store, parts, workers = folder / STORE, list(others), (os.cpu_count() or 1) if parallel else 1
    with ExitStack() as opened:
        if "words" in names:
            parts.append(opened.enter_context(word_part(folder, store)))
        if "trees" in names:
            before = earlier / OUTLINES if earlier else None
            parts.append(opened.enter_context(outline_part(folder, store, earlier=before, anew="trees" in anew)))
        if "graph" in names:
            entities = (earlier or folder) / ENTITIES
            parts += opened.enter_context(graph_parts(folder, store, entities, anew="graph" in anew))
        if "corpus-index" in names:
            lineage, commit = manifest["lineage"], manifest["commit"]
            fill_index(folder, lineage, commit, workers=workers, earlier=summaries, others=parts)
        else:
            most = max((len(part.lacking) for part in parts), default=0)
            with process_pool(workers, most // PER_PROCESS) as pool:
                bring_up_to_date(store, parts, pool=pool)
    if "graph" in names:
        store_fallen(folder)


def _join_shards(
    folder: Path,
    numbers: Sequence[int],
    store: Path,
    plaid: Mapping[str, Any],
    before: Sequence[Mapping[str, Any]] = (),
) -> list[Mapping[str, Any]]:
    """Make complete shards parts of a Library's index, after those `before`; return the manifest's entries of all."""
    if not plaid["n_bits"]:
        query = "SELECT shard, COUNT(*) FROM chunks GROUP BY shard"
        with closing(connect_to_read(store)) as connection:
            counts = dict(connection.execute(query))
        empty = {"tokens": 0, "checksums": {}}
        return [*before, *({"path": f"{SHARDS}/{i}", "chunks": counts[i], **empty} for i in numbers)]
    from legal_rag.library.plaid.codec import join_shards

    index = folder / PLAID_FOLDER
    added = [parts_of(shard_home(folder, number) / PLAID_FOLDER) for number in numbers]
    joined = join_shards(index, PlaidParts(index, 0, place_of(folder, before[-1]).end) if before else None, added)
    codec = {name: sha256_of(index / name) for name in CODEC_FILES}
    return [*before, *(_describe_shard(place, codec) for place in joined)]


def _describe_shard(place: PlaidParts, codec: Mapping[str, str]) -> dict[str, Any]:
    """Return a shard's manifest entry: its folder, its counts, its files' SHA-256."""
    lengths = lengths_of(place)
    names = [name for part in range(place.first, place.end) for name in part_files(part)]
    return {
        "path": PLAID_FOLDER,
        "chunks": len(lengths),
        "tokens": int(lengths.sum()),
        "checksums": {**codec, **{name: sha256_of(place.folder / name) for name in names}},
    }


def _drop_joined(folder: Path, numbers: Iterable[int]) -> None:
    """Delete the files of shards that are parts of a committed index."""
    for number in numbers:
        shutil.rmtree(shard_home(folder, number), ignore_errors=True)
    with suppress(OSError):
        (folder / SHARDS).rmdir()


def write_chunk_vectors(folder: Path, shards: Sequence[Mapping[str, Any]], first: int = 0) -> dict[str, Any]:
    """Write a segment of chunk vectors from the stored codes of shards, numbered from `first`.

    The frame of earlier segments is kept; without one, it is fitted to these shards. `shards` are manifest entries, and
    returned is the manifest's entry on the segment and its frame. FileNotFoundError if `first` is not 0 and the frame
    is missing; ValueError if the frame or a shard is damaged.
    """
    from legal_rag.library.chunk_vectors import (
        fit_frame,
        quantise_means,
        read_frame,
        segment_name,
        write_frame,
        write_segment,
    )
    from legal_rag.library.plaid.search import MappedShard

    target = folder / CHUNK_VECTORS

    def means(most: int, entries: Iterable[Mapping[str, Any]]) -> Iterator[np.ndarray]:
        for entry in entries:  # one shard mapped at a time: its pages count as memory
            shard = MappedShard(place_of(folder, entry))
            n_chunks = min(most, shard.size.n_passages)
            for start in range(0, n_chunks, BLOCK_CHUNKS):
                yield shard.passage_means(start, min(start + BLOCK_CHUNKS, n_chunks))

    try:
        frame = read_frame(target)
        if len(frame.mean) != MappedShard(place_of(folder, shards[0])).dim:
            raise ValueError(f"damaged chunk vectors: {target} has a frame of dim {len(frame.mean)}")
    except (FileNotFoundError, ValueError):
        if first:
            raise
        frame = fit_frame(np.concatenate(list(means(max(FRAME_CHUNKS // len(shards), 1), shards))))
        write_frame(target, frame)
    blocks = means(sys.maxsize, progress("Chunk vectors", iterable=shards, unit=" shards"))
    segment = write_segment(target, segment_name(first, len(shards)), quantise_means(blocks, frame), len(frame.mean))
    return {CHUNK_VECTORS: {"frame": sha256_of(target / FRAME), "segments": [segment]}}


def write_mapping(file: Path, source: Mapping[str, Any], store: Path) -> None:
    """Write a `doc_mapping.json` of all chunks of a store, in the order of shards; `source` is a manifest's."""
    query = "SELECT id FROM chunks JOIN documents USING (document_key) ORDER BY shard, position"
    with closing(connect_to_read(store)) as connection:
        write_mapping_of((doc_id for (doc_id,) in connection.execute(query)), file, source)


def write_mapping_of(doc_ids: Iterable[str], file: Path, source: Mapping[str, Any]) -> None:
    """Stream a `doc_mapping.json`, ids in the order of positions; `source` is a manifest's."""
    config = source["config"] or (DEFAULT_CONFIG if source["name"] == DEFAULT_DATASET else "")
    head = json.dumps({"dataset": source["name"], "split": source["split"], "config": config}, ensure_ascii=False)
    with written_whole(file) as out:
        out.write((head[:-1] + ', "entries": {').encode())
        for position, doc_id in enumerate(doc_ids):
            comma = "," if position else ""
            out.write(f'{comma}\n"{position}": {json.dumps(doc_id, ensure_ascii=False)}'.encode())
        out.write(b"\n}}\n")


class LibraryUpdate:
    """A Library open for its next commit; the caller holds the lock."""

    def __init__(self, library: Library) -> None:
        self.path, self.manifest = library.path, library.manifest
        self.commit = library.commit + 1
        # Used by the thread that reads a source, then by its caller, never by both at once.
        self._connection = connect_to_write(self.path / STORE)
        self._connection.executescript(VERSIONS_SCHEMA)
        with transaction(self._connection):
            self._delete_uncommitted_rows()

    def state_of(self, document: Document) -> Literal["added", "changed", "unchanged"]:
        """Compare a document, all its columns, with what the Library holds under its id."""
        query = "SELECT content_hash FROM documents WHERE id = ? AND removed IS NULL"
        row = self._connection.execute(query, (document.id,)).fetchone()
        if row is None:
            return "added"
        return "unchanged" if row[0] == document.content_hash else "changed"

    def held(self, doc_ids: Iterable[str]) -> set[str]:
        """Return those of some ids that the Library's documents have."""
        query = f"SELECT id FROM documents WHERE {_AMONG} AND removed IS NULL"  # noqa: S608
        return {doc_id for (doc_id,) in self._connection.execute(query, (_as_json(doc_ids),))}

    def apply(
        self,
        withdrawn: Collection[str] = (),
        store: Path | None = None,
        shards: Sequence[int] = (),
        entry: Mapping[str, Any] | None = None,
    ) -> tuple["StoredRows", "StoredRows", int]:
        """Commit the removal of documents and the addition of those of another store, which replace others.

        The shards of these are in this Library's folder already. `entry` has further fields of the commit's entry in
        the manifest, such as its `source`. Returned are what was added, what was removed or replaced, and how many
        token vectors were stored.
        """
        before = self.manifest["shards"]
        joined, added = before, StoredRows(0, 0)
        if store is not None:
            joined = self._join_addition(store, shards)
            self._connection.execute("ATTACH ? AS other", (str(store),))
        described = joined[len(before) :]
        with transaction(self._connection):
            self._mark_documents_removed(_AMONG, _as_json(withdrawn))
            if store is not None:
                self._mark_documents_removed("id IN (SELECT id FROM other.documents)")
            removed = self._count_removed()
        if store is not None:
            added = self._copy_rows()
            self._connection.execute("DETACH other")
            write_mapping(self.path / MAPPING, self.manifest["source"], self.path / STORE)
            with leaving_bad_graph(self.path):
                add_to_graph(self.path, store)
        update_corpus_index(self.path, self.manifest["lineage"], self.commit)
        self._write_manifest(joined, added, removed, entry or {}, self._extend_vectors(described))
        _drop_joined(self.path, shards)
        return added, removed, sum(shard["tokens"] for shard in described)

    def forget_in_graph(self) -> None:
        """Delete from the graph what came from the documents that this commit has removed or replaced."""
        query = "SELECT id FROM documents WHERE removed = ?"
        with leaving_bad_graph(self.path):
            ids = [doc_id for (doc_id,) in self._connection.execute(query, (self.commit,))]
            forget_in_graph(self.path, self.path / STORE, ids)

    def _join_addition(self, store: Path, shards: Sequence[int]) -> list[Mapping[str, Any]]:
        """Make shards parts of the index, and index the words and the outlines of another store; return all shards."""
        before = self.manifest["shards"]
        forget_checksums(self.path, *SHARED_BY_SHARDS)
        joined = _join_shards(self.path, shards, store, self.manifest["plaid"], before) if shards else before
        for path in (path for place in (SHARDS, PLAID_FOLDER) for path in (self.path / place).rglob("*")):
            sync(path)
        with ExitStack() as opened:
            parts = [opened.enter_context(word_part(self.path, store, first_shard=len(before)))]
            if (self.path / OUTLINES).is_file():
                parts.append(opened.enter_context(outline_part(self.path, store, keep_others=True)))
            bring_up_to_date(store, parts)
        return joined

    def close(self) -> None:
        """Close the store."""
        self._connection.close()

    def _delete_uncommitted_rows(self) -> None:
        """Delete the rows of a commit that was cut off before its manifest: the last ones, searched from the end."""
        last = "SELECT document_key FROM documents WHERE added < ? ORDER BY document_key DESC LIMIT 1"
        for table in (table for table in KEYED_TABLES if has_table(self._connection, table)):
            query = f"DELETE FROM {table} WHERE document_key > COALESCE(({last}), 0)"  # noqa: S608
            self._connection.execute(query, (self.commit,))
        self._connection.execute("UPDATE documents SET removed = NULL WHERE removed >= ?", (self.commit,))

    def _mark_documents_removed(self, condition: str, *values: str) -> None:
        query = f"UPDATE documents SET removed = ? WHERE removed IS NULL AND {condition}"  # noqa: S608
        self._connection.execute(query, (self.commit, *values))

    def _copy_rows(self) -> "StoredRows":
        """Append the other store's rows, in small transactions so that readers get in between.

        Until the manifest names this commit, readers ignore them; after a kill, the next update deletes them.
        """
        last, n_others = self._connection.execute(
            "SELECT COALESCE(MAX(document_key), 0), (SELECT COALESCE(MAX(document_key), 0) FROM other.documents)"
            " FROM documents"
        ).fetchone()
        values = {"last": last, "commit": self.commit}
        renewed = {"document_key": "document_key + :last", "added": ":commit"}
        copied = {table: names for table, names in COPIED.items() if has_table(self._connection, table)}
        counts = Counter[str]()
        for start in range(0, n_others, COMMIT_DOCUMENTS):
            values |= {"start": start, "end": start + COMMIT_DOCUMENTS}
            with transaction(self._connection):
                for table, names in copied.items():
                    select = f"SELECT {', '.join(renewed.get(name, name) for name in names.split(', '))}"
                    among = "document_key > :start AND document_key <= :end"
                    sql = f"INSERT INTO {table} ({names}) {select} FROM other.{table} WHERE {among}"
                    counts[table] += self._connection.execute(sql, values).rowcount
        return StoredRows(counts["documents"], counts["chunks"])

    def _count_removed(self) -> "StoredRows":
        query = (
            "SELECT COUNT(DISTINCT document_key), COUNT(chunk_index)"
            " FROM documents LEFT JOIN chunks USING (document_key) WHERE removed = ?"
        )
        n_documents, n_chunks = self._connection.execute(query, (self.commit,)).fetchone()
        if not self.manifest["plaid"]["n_bits"]:
            return StoredRows(n_documents, n_chunks)
        query = (
            "SELECT shard, json_group_array(position) FROM documents JOIN chunks USING (document_key)"
            " WHERE removed = ? GROUP BY shard"
        )
        places = [place_of(self.path, shard) for shard in self.manifest["shards"]]
        removed = self._connection.execute(query, (self.commit,)).fetchall()
        n_tokens = sum(count_tokens(places[number], json.loads(positions)) for number, positions in removed)
        return StoredRows(n_documents, n_chunks, n_tokens)

    def _extend_vectors(self, described: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Write the chunk vectors of new shards, if they have token vectors; return the manifest entry of all."""
        if not described or CHUNK_VECTORS not in self.manifest:
            return {}
        before = self.manifest[CHUNK_VECTORS]
        added = write_chunk_vectors(self.path, described, len(self.manifest["shards"]))[CHUNK_VECTORS]
        return {CHUNK_VECTORS: added | {"segments": [*before["segments"], *added["segments"]]}}

    def _write_manifest(
        self,
        shards: Sequence[Mapping[str, Any]],
        added: "StoredRows",
        removed: "StoredRows",
        entry: Mapping[str, Any],
        vectors: Mapping[str, Any],
    ) -> None:
        counts = self.manifest["counts"]
        n_tokens = sum(shard["tokens"] for shard in shards[len(self.manifest["shards"]) :])
        counts = counts | {
            "documents": counts["documents"] + added.documents - removed.documents,
            "chunks": counts["chunks"] + added.chunks - removed.chunks,
            "tokens": counts["tokens"] + n_tokens - removed.tokens,
            "bad_records": counts["bad_records"] + entry.get("bad_records", 0),
        }
        done = {"commit": self.commit, "added": added.documents, "removed": removed.documents, **entry}
        changes = {"commit": self.commit, "counts": counts, "shards": shards}
        write_manifest(self.path, {**self.manifest, **changes, "updates": [*self.manifest["updates"], done], **vectors})


def _as_json(doc_ids: Iterable[str]) -> str:
    return json.dumps([parameter(doc_id) for doc_id in doc_ids], ensure_ascii=False)


class StoredRows(NamedTuple):
    """Counts of documents, and of their chunks and token vectors."""

    documents: int
    chunks: int
    tokens: int = 0  # token vectors, of removed chunks


@contextmanager
def updating(index_folder: str | Path, index_name: str) -> Iterator[LibraryUpdate]:
    """Open a Library for its next commit, once it is erased what an update cut off was to; keep other writers out.

    FileNotFoundError if there is no Library; ValueError if another process is writing to it; OSError if the disk is
    full; the Library stays as it was.
    """
    from legal_rag.indexer.compaction import compact_locked  # which commits by this module

    target = Path(index_folder).expanduser() / index_name
    Library(target)  # before the lock, whose file would stay behind without a Library
    with library_locked(target):
        if is_erasing(target):
            compact_locked(target)
        with committing(target) as update:
            yield update


@contextmanager
def committing(target: Path) -> Iterator[LibraryUpdate]:
    """Open the Library of a locked folder for its next commit; OSError if the disk is full."""
    with recording(target), closing(LibraryUpdate(Library(target))) as update:
        try:
            yield update
            if Library(target).commit == update.commit:
                with leaving_bad_graph(target):
                    store_fallen(target)
        except sqlite3.OperationalError as error:
            raise OSError(f"cannot write in {target}: {error}") from error


@contextmanager
def recording(folder: Path) -> Iterator[None]:
    """Record what a commit, or an attempt at one, may have changed; other parts are recorded by their writers.

    After a kill in between these files have no checksum, which `compact` accepts.
    """
    forget_checksums(folder, STORE, BAD_RECORDS, LEXICAL_FOLDER, MANIFEST)
    try:
        yield
    finally:
        shared = without_record(folder, SHARED_BY_SHARDS)
        record_checksums(folder, MANIFEST, STORE, BAD_RECORDS, LEXICAL_FOLDER, *shared)


def append_bad_records(folder: Path, bad: Iterable[BadRecord], n_before: int) -> None:
    """Append records that were left out to the `n_before` already listed; drop what a kill left beyond those."""
    file = folder / BAD_RECORDS
    before = file.read_text(encoding="utf-8").splitlines(keepends=True)[:n_before] if file.is_file() else []
    lines = [json.dumps(record._asdict(), ensure_ascii=False) + "\n" for record in bad]
    if lines:
        write_whole(file, "".join(before + lines))


def _build_id(store: Path, shards: Sequence[Mapping[str, Any]]) -> str:
    """Identify a build by a hash of its documents and shards; its later commits keep the id."""
    digest = hashlib.sha256(json.dumps([shard["checksums"] for shard in shards], sort_keys=True).encode())
    with closing(connect_to_read(store)) as connection:
        for (content_hash,) in connection.execute("SELECT content_hash FROM documents ORDER BY document_key"):
            digest.update(content_hash.encode())
    return digest.hexdigest()
