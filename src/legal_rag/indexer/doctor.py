"""Verification of an index: checksums of all its files, then row counts, offsets, content hashes, leftovers."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from legal_rag.base.files import beside, locked, progress, sha256_of
from legal_rag.base.sqlite import connect_as_allowed, connect_to_read
from legal_rag.corpus.documents import Document
from legal_rag.corpus_index.building import index_problems
from legal_rag.extraction.entities import ENTITIES, Entity
from legal_rag.extraction.outputs import OUTPUTS
from legal_rag.graph.store import GRAPH, graph_problems
from legal_rag.indexer.commit import SHARED_BY_SHARDS
from legal_rag.library.bm25 import LEXICAL_FOLDER
from legal_rag.library.library import BAD_RECORDS, CORPUS_INDEX, RUNS, STORE, Library
from legal_rag.library.manifest import (
    CHECKSUMS,
    CHUNK_VECTORS,
    DIFFERS,
    FRAME,
    MANIFEST,
    checksum_problems,
    files_in_manifest,
)
from legal_rag.library.outlines import OUTLINES, outline_problems
from legal_rag.library.store import SELECT_HASHED, document_of_stored, present_at

REBUILD_VECTORS = "'legal-rag rebuild --only vectors'"
SHOWN_CHARS = 60  # of a passage in a message


BUILD = "'legal-rag index' builds all anew"
AGAIN = f"after an 'add' or 'remove' that was cut off, the same command again; else {BUILD}"
# How to remake a part, by the start of its files' paths.
REMEDIES = {
    **dict.fromkeys((STORE, MANIFEST, BAD_RECORDS, *SHARED_BY_SHARDS), AGAIN),
    LEXICAL_FOLDER: "'legal-rag rebuild --only words --force' makes it anew",
    OUTLINES: "delete it: 'legal-rag rebuild --only trees' makes it anew",
    GRAPH: "delete it: 'legal-rag rebuild --only graph' makes it anew, without what answers gave",
    CORPUS_INDEX: "'legal-rag corpus-index' rebuilds it",
    ENTITIES: "delete it: 'legal-rag extract' makes it anew",
    **dict.fromkeys(OUTPUTS, "'legal-rag extract' writes it anew"),
    RUNS: "'legal-rag answers' lists those that can be read",
    CHECKSUMS: "'legal-rag compact' records all anew",
}


def examine(library: Library) -> list[str]:
    """Verify an index; return its problems, none if it is sound.

    Every byte of every file is compared with the checksums recorded when it was last written, and files are checked
    against one another. Not verified are a user's instructions and locks.
    """
    by_file = dict(_checksum_problems(library))
    problems = [f"{name}: {problem} ({_remedy(name)})" for name, problem in by_file.items()]
    damaged = {next((part for part in REMEDIES if _lies_under(name, part)), name) for name in by_file}
    checks = {
        STORE: _store_problems,
        "shards": _shard_problems,
        CHUNK_VECTORS: chunk_vector_problems,
        LEXICAL_FOLDER: _lexical_problems,
        ENTITIES: _entity_problems,
        OUTLINES: _outline_problems,
        GRAPH: _graph_problems,
        CORPUS_INDEX: index_problems,
        "leftovers": _leftover_problems,
    }
    for part, check in checks.items():
        if part == LEXICAL_FOLDER and part in damaged:  # Tantivy panics
            continue
        try:
            problems += check(library)
        except Exception as error:  # a damaged file may hold anything
            if not {part, STORE} & damaged:
                problems.append(f"{part}: cannot be examined ({type(error).__name__}: {error}; {BUILD})")
    return problems


def damage_of(path: Path) -> str | None:
    """Return what is wrong with the files of an index that could not be read, in one line; None if they are whole."""
    try:
        library = Library(path)
        for name, problem in _checksum_problems(library) if (path / CHECKSUMS).is_file() else ():
            return f"{path / name}: {problem} ({_remedy(name)})"
        files = (_shard_problems(library), chunk_vector_problems(library))
        problems = [problem for part in files for problem in part]
    except (ValueError, OSError, sqlite3.DatabaseError) as error:
        return f"{path}: {error}" if str(path) not in str(error) else str(error)
    return f"{path}: {problems[0]}" if problems else None


def refuse_damage(library: Library) -> None:
    """Refuse a Library with a file that differs from its record, unless the record is damaged.

    A file without a record is accepted: a database that another process reads may get none. ValueError naming the file
    and the remedy.
    """
    problems = dict(_checksum_problems(library))
    for name in (name for name, problem in problems.items() if problem == DIFFERS and CHECKSUMS not in problems):
        raise ValueError(f"{library.path / name}: {DIFFERS} ({_remedy(name)})")


def _checksum_problems(library: Library) -> Iterator[tuple[str, str]]:
    parts = (STORE, LEXICAL_FOLDER, ENTITIES, OUTLINES, GRAPH, CORPUS_INDEX, *SHARED_BY_SHARDS)
    return checksum_problems(library.path, set(parts) - files_in_manifest(library.manifest))


def _remedy(name: str) -> str:
    return next((remedy for part, remedy in REMEDIES.items() if _lies_under(name, part)), BUILD)


def _lies_under(name: str, part: str) -> bool:
    return name == part or name.startswith(f"{part}/")


def _store_problems(library: Library) -> Iterator[str]:
    try:
        with closing(connect_to_read(library.path / STORE)) as connection:
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                yield f"{STORE}: {verdict}"
            yield from _count_problems(library, connection)
            yield from _offset_problems(library, connection)
            yield from _content_problems(library, connection)
    except sqlite3.DatabaseError as error:
        yield f"{STORE}: {error}"


def _count_problems(library: Library, connection: sqlite3.Connection) -> Iterator[str]:
    present = present_at(library.commit)
    queries = {
        "documents": f"SELECT COUNT(*) FROM documents WHERE {present}",  # noqa: S608
        "chunks": f"SELECT COUNT(*) FROM documents JOIN chunks USING (document_key) WHERE {present}",  # noqa: S608
    }
    for what, query in queries.items():
        (n_rows,) = connection.execute(query).fetchone()
        if n_rows != library.manifest["counts"][what]:
            yield f"{STORE}: {n_rows} {what} (the manifest says {library.manifest['counts'][what]})"
    for number, shard in enumerate(library.manifest["shards"]):
        query = "SELECT COUNT(*), MIN(position), MAX(position) FROM chunks WHERE shard = ?"
        n_chunks, first, last = connection.execute(query, (number,)).fetchone()
        if (n_chunks, first, last) != (shard["chunks"], 0, shard["chunks"] - 1):
            yield f"{STORE}: shard {number} has {n_chunks} chunks at {first} to {last} (expected {shard['chunks']})"


def _content_problems(library: Library, connection: sqlite3.Connection) -> Iterator[str]:
    rows = connection.execute(SELECT_HASHED)
    for content_hash, *row in progress("Reading", iterable=rows, unit=" documents"):
        document = document_of_stored(row)
        if document.content_hash != content_hash:
            yield f"{STORE}: document {document.id!r} is not what was written (its content hash differs)"


def _offset_problems(library: Library, connection: sqlite3.Connection) -> Iterator[str]:
    query = (
        "SELECT id, chunk_index, char_start, char_end FROM documents JOIN chunks USING (document_key)"
        " WHERE NOT (0 <= char_start AND char_start < char_end AND char_end <= length(content)) LIMIT 1"
    )
    for doc_id, chunk_index, start, end in connection.execute(query):
        yield f"{STORE}: chunk {chunk_index} of {doc_id!r} is said to be characters {start} to {end}, which it has not"


def _shard_problems(library: Library) -> Iterator[str]:
    for shard in progress("Reading", iterable=library.manifest["shards"], unit=" shards"):
        for name, checksum in shard["checksums"].items():
            file = library.path / shard["path"] / name
            if not file.is_file():
                yield f"{shard['path']}/{name}: missing ({BUILD})"
            elif sha256_of(file) != checksum:
                yield f"{shard['path']}/{name}: not what was written (its SHA-256 differs from the manifest's; {BUILD})"


def chunk_vector_problems(library: Library) -> Iterator[str]:
    """Verify the vectors by which a search finds its candidates, if there are token vectors."""
    try:
        if library.chunk_vectors() is None:
            return
        entry = library.manifest[CHUNK_VECTORS]
        written = {FRAME: entry["frame"], **{segment["file"]: segment["sha256"] for segment in entry["segments"]}}
        damaged = [name for name, sha256 in written.items() if sha256_of(library.path / CHUNK_VECTORS / name) != sha256]
    except (OSError, ValueError) as error:
        yield f"{CHUNK_VECTORS}: {error} ({REBUILD_VECTORS} makes them anew)"
        return
    for name in damaged:
        yield f"{CHUNK_VECTORS}/{name}: not what was written ({REBUILD_VECTORS} makes it anew)"


def _lexical_problems(library: Library) -> Iterator[str]:
    shards = [shard["chunks"] for shard in library.manifest["shards"]]
    try:
        n_chunks = library.lexical_index().n_chunks
    except (OSError, ValueError) as error:
        yield f"{LEXICAL_FOLDER}: {error}"
        return
    if n_chunks != sum(shards):
        yield f"{LEXICAL_FOLDER}: {n_chunks} chunks (the shards hold {sum(shards)})"


def _entity_problems(library: Library) -> Iterator[str]:
    """Check that every entity's text is what its offsets say."""
    if not (library.path / ENTITIES).is_file():
        return
    try:
        with closing(connect_as_allowed(library.path / ENTITIES)) as connection:
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            yield f"{ENTITIES}: {verdict}"
        for document in progress("Reading", iterable=library.documents(), unit=" documents"):
            yield from _misplaced(document, library.entities_of(document.id) or [])
    except (sqlite3.DatabaseError, ValueError, KeyError, TypeError) as error:  # a damaged file may hold anything
        yield f"{ENTITIES}: {type(error).__name__}: {error} ('legal-rag extract' makes it anew once it is deleted)"


def _misplaced(document: Document, entities: Sequence[Entity]) -> Iterator[str]:
    for entity in entities:
        start, end, text = entity["char_start"], entity["char_end"], entity["extraction_text"]
        if not 0 <= start < end or document.content[start:end] != text:
            passage = document.content[start:end][:SHOWN_CHARS]
            place = f"{entity['extraction_class']} at {start}-{end}"
            yield f"{ENTITIES}: {place} of {document.id!r} is {text[:SHOWN_CHARS]!r} (the text has {passage!r} there)"
            return


def _outline_problems(library: Library) -> Iterator[str]:
    documents = progress("Reading", iterable=library.documents(), unit=" documents")
    return outline_problems(library.path, documents)


def _graph_problems(library: Library) -> Iterator[str]:
    return graph_problems(library.path, library.path / STORE, present_at(library.commit, "d"))


def _leftover_problems(library: Library) -> Iterator[str]:
    places = [beside(library.path, purpose) for purpose in ("building", "adding", "compacting")]
    try:
        with locked(library.path):
            names = [folder.name for folder in places if folder.is_dir()]
    except (ValueError, OSError):  # a run still in progress; a folder that cannot be locked
        return
    yield from (f"{name}: left by a run that was cut off; the same command takes it up" for name in names)
