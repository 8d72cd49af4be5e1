"""The corpus index: what it costs to build, to open, to look into, and to keep right.

Run: python benchmarks/corpus_index.py --data FOLDER [--index-folder FOLDER]

FOLDER holds `decisions.jsonl.gz`. Without --index-folder a Library is built of it, without PLAID, with its entities by
rules; one that is given is copied first, and stays as it is. Look-ups are timed warm: each is the best of three.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from deep_read import open_or_build

from legal_rag.corpus_index.building import fill_index
from legal_rag.corpus_index.index import CorpusIndex
from legal_rag.encoder import bundled_encoder
from legal_rag.indexer import IndexConfig, add_documents, remove_documents
from legal_rag.indexer import commit as library_writer
from legal_rag.library import Library

N_TERMS = 500  # of the entities, drawn at random
SEED = 42
UPDATES = 10  # documents added, then removed, one by one
OPENING = """
import sys, time
from pathlib import Path
def megabytes():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS")) / 1024
before = megabytes()
from legal_rag.corpus_index import CorpusIndex
from legal_rag.library.library import Library
library = Library(Path(sys.argv[1]))
started = time.perf_counter()
CorpusIndex.open(library)
seconds = time.perf_counter() - started
print(seconds * 1000, megabytes() - before)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--index-folder", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "library"
        if arguments.index_folder:
            shutil.copytree(arguments.index_folder, folder)
        library = open_or_build(arguments.data, folder)
        for part in (building, opening, looking_up, updating):
            for name, value in part(library):
                print(f"{name:46} {value}", flush=True)
    return 0


def building(library: Library) -> Iterator[tuple[str, str]]:
    """Build level 1 anew: by one process, told by its own time, and by two, told by the clock."""
    lineage, n = library.manifest["lineage"], library.n_documents
    started = time.process_time()
    fill_index(library.path, lineage, library.commit)
    yield "build, one process, documents/s of its time", f"{n / (time.process_time() - started):.0f}"
    started = time.perf_counter()
    fill_index(library.path, lineage, library.commit, workers=2)
    yield "build, two processes, documents/s", f"{n / (time.perf_counter() - started):.0f}"


def opening(library: Library) -> Iterator[tuple[str, str]]:
    """Open it in an interpreter of its own."""
    command = [sys.executable, "-c", OPENING, str(library.path)]
    runs = [subprocess.check_output(command, text=True).split() for _ in range(5)]  # noqa: S603 - this file's own
    milliseconds, megabytes = (sorted(map(float, values))[2] for values in zip(*runs, strict=True))
    yield "opening, ms", f"{milliseconds:.1f}"
    yield "memory above the bare interpreter, MB", f"{megabytes:.1f}"


def looking_up(library: Library) -> Iterator[tuple[str, str]]:
    """Look up every keyword, some entities, and all entries."""
    index = CorpusIndex.open(library)
    keywords = list(index.keyword_index)
    yield f"keyword of {len(keywords)}, ms", spread([milliseconds(index.keyword, one) for one in keywords])
    terms = list(index.entity_index)
    drawn = random.Random(SEED).sample(terms, min(N_TERMS, len(terms)))
    yield f"entity, {len(drawn)} of {len(terms)}, ms", spread([milliseconds(index.entity, one) for one in drawn])
    yield f"all {index.total_docs} entries, ms", f"{milliseconds(lambda _: list(index.metas()), None):.0f}"
    yield f"all {index.total_docs} summaries, ms", f"{milliseconds(lambda _: list(index.summaries()), None):.0f}"


def updating(library: Library) -> Iterator[tuple[str, str]]:
    """Add documents and remove them, one by one: the index's part of a commit, and the whole."""
    encoder, folder, of_index = bundled_encoder(), library.path.parent, list[float]()
    update = library_writer.update_corpus_index

    def timed(*values: Any) -> None:
        started = time.perf_counter()
        update(*values)
        of_index.append((time.perf_counter() - started) * 1000)

    library_writer.update_corpus_index = timed
    rows = [{**library[doc_id], "id": f"new-{doc_id}"} for doc_id in CorpusIndex.open(library).document_ids(UPDATES)]
    adding, removing = list[float](), list[float]()
    for row in rows:
        config = IndexConfig(source=[row], index_folder=str(folder), index_name=library.path.name)
        adding.append(once(lambda config=config: add_documents(config, encoder)))
    yield "adding a document, the index's part, ms", spread(of_index)
    yield "adding a document, the whole commit, ms", spread(adding)
    of_index.clear()
    for row in rows:
        removing.append(once(lambda row=row: remove_documents([row["id"]], folder, library.path.name)))
    yield "removing a document, the index's part, ms", spread(of_index)
    yield "removing a document, the whole commit, ms", spread(removing)
    library_writer.update_corpus_index = update


def once(do: Callable[[], Any]) -> float:
    """Return how many milliseconds something takes, done once."""
    started = time.perf_counter()
    do()
    return (time.perf_counter() - started) * 1000


def milliseconds(find: Callable[[Any], Any], asked: Any) -> float:
    """Return the least of how many milliseconds something takes, done three times."""
    return min(once(lambda: find(asked)) for _ in range(3))


def spread(values: Sequence[float]) -> str:
    """Return median, 95th percentile and maximum."""
    ordered = sorted(values)
    median, p95 = (ordered[min(len(ordered) - 1, int(len(ordered) * share))] for share in (0.5, 0.95))
    return f"median {median:.2f}, p95 {p95:.2f}, max {ordered[-1]:.2f}"


if __name__ == "__main__":
    sys.exit(main())
