"""The knowledge graph: what it costs to make, what it holds, and milliseconds of its queries.

Run: python benchmarks/graph.py --index-name NAME [--index-folder FOLDER]
     python benchmarks/graph.py --index-name NAME --simulate 10000 --simulate 50000 --simulate 150000 [--scratch FOLDER]

The graph is made anew, in a scratch folder, by a process of its own, whose peak memory is the system's figure; the
Library stays as it is. Queries are timed warm, in this process: each the better of two runs, in milliseconds of the
processor, over nodes and pairs drawn at random (a fixed seed), and over hubs, the five most cited nodes of each type.

`--simulate` makes a corpus of so many decisions instead, from those of the Library, which must have entities, drawn at
random: of every five, four of the judicial courts and one of the others. Of each, the first `CHARS` characters are
kept; one article in three gets another last digit, every number of an appeal other ones, each word of five letters or
more in a name another letter. Every decision has a number of its own and cites earlier ones, a geometric number of
them, 1.5 on average: half of them drawn evenly, half from what one of the last `RECENT` decisions cites (the copying
model of Kumar et al., 2000), so that few are cited much. There are no chunks and no search index. The text is read by
the same rules as any other; entities are those of the decision drawn, at the same characters.
"""

import argparse
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from legal_rag.corpus.documents import Document
from legal_rag.extraction.entities import ARTICLE_CITE, AVOCAT, ENTITIES, PARTIE, TEXTE_VISE, Entity, ExtractionResult
from legal_rag.extraction.store import ExtractionStore, Recipe
from legal_rag.graph import KnowledgeGraph
from legal_rag.graph.store import GRAPH
from legal_rag.library import DEFAULT_FOLDER, DEFAULT_NAME, Library
from legal_rag.library.library import MANIFEST, STORE
from legal_rag.library.store import StoreWriter

SEED = 42
DRAWN = 300  # nodes, and pairs of them
HUBS = 5  # of each type
CHARS = 2500  # kept of a decision that is simulated
BATCH = 1000  # decisions written at once
CITED = 0.6  # chance that a decision cites one more: 1.5 on average
RECENT = 5000  # decisions that keep what they cite in memory, to be copied
KEPT = (PARTIE, AVOCAT, TEXTE_VISE, ARTICLE_CITE)  # the classes of entities that the graph reads
NUMBER = re.compile(r"(?<=\barticle )(?:[LRD]\. )?\d{1,4}(?:-\d{1,3})*|(?<=\barticles )(?:[LRD]\. )?\d{1,4}")
APPEAL = re.compile(r"\b\d\d-\d\d[.\s]?\d{3}\b")  # 19-60.222
MEASURED = """
import json, sys, time
from pathlib import Path
from legal_rag.graph.store import fill_graph
def megabytes():  # at most so far; not `resource`'s figure, which a process inherits
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
before, started = megabytes(), time.perf_counter()
documents = fill_graph(*map(Path, sys.argv[1:]))
seconds = time.perf_counter() - started
print(json.dumps([documents, seconds, time.process_time(), before, megabytes()]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--index-folder", default=DEFAULT_FOLDER)
    parser.add_argument("--index-name", default=DEFAULT_NAME)
    parser.add_argument("--simulate", type=int, action="append", default=[], metavar="DECISIONS")
    parser.add_argument("--scratch", type=Path, help="An empty or new folder for what is simulated.")
    arguments = parser.parse_args()
    library = Library.open(arguments.index_folder, arguments.index_name)
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        folders = simulated(library, sorted(arguments.simulate), Path(scratch)) if arguments.simulate else ()
        figures = [measured(folder, folder) for folder in folders] or [measured(library.path, Path(scratch))]
    print(json.dumps(figures, indent=1))


def measured(library: Path, scratch: Path) -> dict[str, Any]:
    """Make the graph of a Library in a scratch folder; return what it costs and how its queries do."""
    command = [sys.executable, "-c", MEASURED, str(scratch), str(library / STORE), str(library / ENTITIES)]
    result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - this file's own
    documents, seconds, cpu, before, peak = json.loads(result.stdout)
    if scratch != library:
        for path in library.iterdir():
            if path.name != GRAPH:
                (scratch / path.name).symlink_to(path)
    cost = {"seconds": seconds, "cpu": cpu, "MB": peak, "MB before": before, "bytes": (scratch / GRAPH).stat().st_size}
    return {"documents": documents, **cost, **queries(KnowledgeGraph(scratch))}


def queries(graph: KnowledgeGraph) -> dict[str, Any]:
    """Return the counts of a graph, and the milliseconds of its queries."""
    counts = graph.counts()
    generator = random.Random(SEED)
    drawn = generator.sample(_document_keys(graph), DRAWN)
    nodes = [graph.find(one) for one in drawn]
    hubs = [
        hub for kind in ("article", "decision", "statute", "court", "party") for hub in graph.most_cited(kind, HUBS)
    ]
    pairs = [generator.sample(nodes, 2) for _ in range(DRAWN)]
    calls: dict[str, list[Callable[[], Any]]] = {
        "find": [partial(graph.find, one) for one in drawn],
        "neighbours": [partial(graph.neighbours, node) for node in nodes],
        "neighbours of hubs": [partial(graph.neighbours, hub) for hub in hubs],
        "citing": [partial(graph.citing, node) for node in nodes],
        "citing hubs": [partial(graph.citing, hub) for hub in hubs],
        "path": [partial(graph.path, *pair) for pair in pairs],
        "path from hubs": [partial(graph.path, hub, node) for hub in hubs for node in nodes[:10]],
        "most_cited": [partial(graph.most_cited, kind) for kind in ("article", "decision", "statute")],
    }
    paths = [graph.path(*pair) for pair in pairs]
    return {
        "nodes": counts["nodes"],
        "edges": counts["facts"],
        "pairs without a path": sum(not path for path in paths),
        "milliseconds": {name: _quantiles(some) for name, some in calls.items()},
    }


def _document_keys(graph: KnowledgeGraph) -> list[str]:
    return [key.removeprefix("doc:") for (key,) in graph._select("SELECT key FROM nodes WHERE key LIKE 'doc:%'")]


def _quantiles(calls: Sequence[Callable[[], Any]]) -> dict[str, float]:
    """Return the milliseconds of the processor that calls take: median, the slowest twentieth, most."""
    spent = []
    for call in calls:
        times = []
        for _ in range(2):
            began = time.process_time()
            call()
            times.append((time.process_time() - began) * 1000)
        spent.append(min(times))
    some = sorted(spent)
    return {"median": statistics.median(some), "95 %": some[int(0.95 * len(some))], "most": some[-1]}


def simulated(library: Library, sizes: Sequence[int], folder: Path) -> Iterator[Path]:
    """Simulate decisions, one corpus that grows; yield its folder, a Library without an index, at each size."""
    decisions = Simulation(library)
    manifest = {**library.manifest, "shards": [], "source": {"name": f"simulated, seed {SEED}"}}
    with (
        closing(StoreWriter(folder / STORE, shard_chunks=1)) as store,
        ExtractionStore(folder / ENTITIES) as entities,
    ):
        for size in sizes:
            while store.n_documents < size:
                some = [next(decisions) for _ in range(min(BATCH, size - store.n_documents))]
                for document, _ in some:
                    store.add(document, [])
                store.commit()
                entities.hold_many((*one[:3], RECIPE, one[3], ()) for one in map(_held, some))
            (folder / GRAPH).unlink(missing_ok=True)
            manifest["counts"] = {**library.manifest["counts"], "documents": size, "chunks": 0}
            (folder / MANIFEST).write_text(json.dumps(manifest))
            yield folder


RECIPE = Recipe("simulated", "1", "simulated", 1, "", 0)


def _held(one: tuple[Document, list[Entity]]) -> tuple[str, str, str, ExtractionResult]:
    document, found = one
    result = ExtractionResult(doc_name=document.id, extractions=found)
    return document.id, document.content_hash, document.content, result


class Simulation(Iterator[tuple[Document, list[Entity]]]):
    """An endless series of decisions, with their entities; see the head of this file."""

    def __init__(self, library: Library) -> None:
        self._generator = random.Random(SEED)
        self._courts: list[tuple[Document, list[Entity]]] = []
        self._others: list[tuple[Document, list[Entity]]] = []
        for document in library.documents():
            kept = document.content[:CHARS].rstrip()
            found = [one for one in library.entities_of(document.id) or () if _is_kept(one, len(kept))]
            is_judicial = document.juridiction.startswith(("Cour de cassation", "Cour d'appel"))
            lot = self._courts if is_judicial else self._others
            lot.append((_shortened(document, kept), found))
        self._n = 0
        self._cited: deque[list[int]] = deque(maxlen=RECENT)

    def __next__(self) -> tuple[Document, list[Entity]]:
        self._n += 1
        lot = self._courts if self._n % 5 else self._others
        document, found = self._generator.choice(lot or self._courts or self._others)
        text = self._varied(document.content, found)
        entities = [{**one, "extraction_text": text[one["char_start"] : one["char_end"]]} for one in found]
        number, cited = _number(self._n), [f"n° {_number(one)}" for one in self._citations()]
        text = f"{text}\n\nPourvoi n° {number}"
        text += f"\n\nDans le même sens : pourvois {', '.join(cited)}." if cited else ""
        title = f"{document.juridiction or 'Cour de cassation'}, {document.decision_date}, n° {number}"
        row = {**document.row(), "id": f"SIMULE{self._n:07}", "content": text, "title": title, "number": number}
        return Document(**{**vars(document), "id": row["id"], "content": text, "title": title}), entities

    def _citations(self) -> list[int]:
        """Draw earlier decisions to cite: at random, or one that a recent decision cites."""
        cited: dict[int, None] = {}
        while self._n > 1 and self._generator.random() < CITED:
            copied = self._generator.choice(self._cited) if self._cited and self._generator.random() < 0.5 else []
            cited[self._generator.choice(copied) if copied else self._generator.randrange(1, self._n)] = None
        self._cited.append(list(cited))
        return list(cited)

    def _varied(self, text: str, entities: Sequence[Entity]) -> str:
        """Change numbers and letters of names, character for character, so that places stay."""
        letters = list(text)
        for match in APPEAL.finditer(text):
            letters[match.end() - 3 : match.end()] = f"{self._generator.randrange(1000):03}"
        for match in NUMBER.finditer(text):
            if self._generator.random() < 1 / 3:
                at = match.end() - 1
                letters[at] = str(self._generator.randrange(1, 10))
        for one in entities:
            if one["extraction_class"] in (PARTIE, AVOCAT):
                self._rename(letters, one["char_start"], one["char_end"])
        return "".join(letters)

    def _rename(self, letters: list[str], start: int, end: int) -> None:
        """Change one small letter in each long word of a name."""
        for word in re.finditer(r"[^\W\d_]{5,}", "".join(letters[start:end])):
            at = start + self._generator.randrange(word.start() + 1, word.end())
            if letters[at].islower():
                letters[at] = self._generator.choice("abcdefghilmnoprstuv")


def _is_kept(entity: Entity, length: int) -> bool:
    return entity["extraction_class"] in KEPT and entity["char_end"] <= length


def _shortened(document: Document, content: str) -> Document:
    """Return a decision with the head of its text, without what would name the one that it was."""
    return Document(**{**vars(document), "content": content, "summary": "", "extra": {}})


def _number(n: int) -> str:
    """Return the number of an appeal: 10-00.001 and so on, one for each decision."""
    return f"{10 + n // 100_000:02}-{n % 100_000 // 1000:02}.{n % 1000:03}"


if __name__ == "__main__":
    main()
