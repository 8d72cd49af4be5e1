"""Erase what a Library keeps of texts that were withdrawn or replaced: saved answers, entities, names in the graph.

An update sets a mark next to the folder before its commit. The texts themselves go with a compaction, which removes
the mark last: until then whoever writes next ends what a kill cut off.
"""

import json
import re
from collections.abc import Collection, Iterable
from contextlib import closing
from pathlib import Path

from legal_rag.base.files import beside, write_whole
from legal_rag.base.sqlite import connect_to_read
from legal_rag.extraction.entities import ENTITIES
from legal_rag.extraction.outputs import OUTPUTS, delete_outputs
from legal_rag.extraction.store import ExtractionStore
from legal_rag.graph.answers import remove_answer
from legal_rag.graph.store import answers_about, forget_in_graph, leaving_bad_graph
from legal_rag.library.library import RUNS, STORE, Library, is_library, locked_answers
from legal_rag.library.manifest import record_checksums
from legal_rag.library.store import present_at

_JSON_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
# Documents removed or replaced, with the hash of what is there now; last, whether words of theirs are there no longer.
_GONE = """
    SELECT old.id, now.content_hash, MAX(
        now.id IS NULL OR (old.title, old.summary, old.content) IS NOT (now.title, now.summary, now.content)
    ) FROM documents AS old LEFT JOIN documents AS now ON now.id = old.id AND {present}
    WHERE old.removed <= {commit:d} GROUP BY old.id ORDER BY old.id
"""


def mark_erasing(library: Path) -> None:
    """Note that what the Library at this path no longer holds is to be erased."""
    write_whole(beside(library, "erasing"), "")


def is_erasing(library: Path) -> bool:
    """Tell whether something is to be erased still."""
    return beside(library, "erasing").is_file()


def end_erasing(library: Path) -> None:
    """Note that nothing is to be erased any more."""
    beside(library, "erasing").unlink(missing_ok=True)


def has_removed(library: Library) -> bool:
    """Tell whether documents were removed or replaced since the Library was last compacted."""
    with closing(connect_to_read(library.path / STORE)) as connection:
        query = "SELECT 1 FROM documents WHERE removed <= ? LIMIT 1"
        return connection.execute(query, (library.commit,)).fetchone() is not None


def forget_removed(library: Path) -> list[str]:
    """Where something is to be erased, delete what came from removed or replaced documents but for their rows.

    Returned are the ids of the saved answers that were deleted. The caller keeps other writers out.
    """
    if not (is_erasing(library) and is_library(library)):
        return []
    commit = Library(library).commit
    with closing(connect_to_read(library / STORE)) as connection:
        gone = connection.execute(_GONE.format(present=present_at(commit, "now"), commit=commit)).fetchall()
    answers = _delete_answers(library, {doc_id for doc_id, _, has_lost in gone if has_lost})
    _forget_stale_entities(library, {doc_id: now for doc_id, now, _ in gone})
    with leaving_bad_graph(library):  # of the others a compaction deletes all that they named, too
        forget_in_graph(library, library / STORE, [doc_id for doc_id, _, has_lost in gone if not has_lost])
    return answers


def forget_entities(library: Path, doc_ids: Iterable[str]) -> None:
    """Delete the entities of removed documents, and the exported files of all: `legal-rag extract` writes new ones."""
    if (library / ENTITIES).is_file():
        with ExtractionStore(library / ENTITIES) as store:
            store.drop(doc_ids)
        delete_outputs(library)
        record_checksums(library, ENTITIES, *OUTPUTS)


def _forget_stale_entities(path: Path, present: dict[str, str | None]) -> None:
    """Delete the entities of other texts than the present ones, given by the hash of each document."""
    if not (path / ENTITIES).is_file():
        return
    with ExtractionStore(path / ENTITIES) as store:
        held = store.held_hashes(present)
    forget_entities(path, [doc_id for doc_id, content_hash in held.items() if content_hash != present[doc_id]])


def _delete_answers(library: Path, doc_ids: Collection[str]) -> list[str]:
    """Delete the saved answers that name some documents, and what answers on them gave to the graph; return their ids.

    An answer names each document that was found, read or cited, or one of its chunks.
    """
    written = {json.dumps(doc_id, ensure_ascii=False)[1:-1] for doc_id in doc_ids}

    def names_any(text: str) -> bool:
        strings = set(_JSON_STRING.findall(text))
        return not written.isdisjoint(strings | {string.rpartition("-")[0] for string in strings})

    files = sorted((library / RUNS).glob("*.json"))
    named = [file.stem for file in files if names_any(file.read_text(encoding="utf-8", errors="replace"))]
    answers = list(dict.fromkeys([*named, *answers_about(library, doc_ids)]))
    for answer_id in answers:
        remove_answer(library, answer_id)
        with locked_answers(library):
            (library / RUNS / f"{answer_id}.json").unlink(missing_ok=True)
            record_checksums(library, f"{RUNS}/{answer_id}.json")
    return answers
