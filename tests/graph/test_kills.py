"""A graph whose writers are killed at any moment: the old state or the new one, never a mixture."""

import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import closing
from itertools import pairwise

import pytest
from support import graph_writers
from support.graph_writers import answer_of

from legal_rag.graph import KnowledgeGraph
from legal_rag.graph.store import GRAPH, fill_graph
from legal_rag.library import Library
from legal_rag.library.library import STORE

KILLS, MOST_KILLS = 25, 100  # of each kind of writer: at least, and until one was in the midst of a commit
ANSWERS_LONGEST, FILLS_LONGEST = 6, 2  # times that one takes undisturbed: until a kill, at most
IN_A_COMMIT = 1  # kills at least that left a journal to roll back; most do not, on a busy machine
CHANGED = 5  # kills at least before which something was written
RECOUNT = """
    SELECT key, degree, cited, (
        SELECT COUNT(*) FROM edges JOIN sources USING (source_key)
        WHERE support = 'text' AND answer_id IS NULL AND from_key = node_key
    ) + (
        SELECT COUNT(*) FROM edges JOIN sources USING (source_key)
        WHERE support = 'text' AND answer_id IS NULL AND to_key = node_key
    ) AS counted, (
        SELECT COUNT(*) FROM edges JOIN sources USING (source_key)
        WHERE support = 'text' AND answer_id IS NULL AND to_key = node_key AND edges.type IN ('cites', 'applies')
    ) AS counted_citing
    FROM nodes WHERE degree != counted OR cited != counted_citing
"""
LOST = """
    SELECT from_key, to_key, source_key FROM edges
    WHERE from_key NOT IN (SELECT node_key FROM nodes) OR to_key NOT IN (SELECT node_key FROM nodes)
    OR source_key NOT IN (SELECT source_key FROM sources) OR text_key NOT IN (SELECT text_key FROM texts)
"""
OF_DOCUMENTS = """
    SELECT t.doc_id, s.kind, a.key, e.type, b.key, e.char_start, e.char_end, e.n, e.detail
    FROM edges AS e JOIN sources AS s USING (source_key) JOIN texts AS t ON t.text_key = s.text_key
    JOIN nodes AS a ON a.node_key = e.from_key JOIN nodes AS b ON b.node_key = e.to_key
"""
SAID = {  # by answers, each part with its generation
    table: f"SELECT answer_id, {value} FROM {table} JOIN sources USING (source_key) WHERE answer_id IS NOT NULL"  # noqa: S608
    for table, value in (("edges", "confidence"), ("mentions", "confidence"), ("episodes", "decision"))
}

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tiny_library, tmp_path):
    copy = shutil.copytree(tiny_library.path, tmp_path / "library")
    (copy / GRAPH).unlink(missing_ok=True)
    fill_graph(copy, copy / STORE)
    return copy


def read(folder, *queries):
    """Open the graph as its users do, which rolls back what was cut off; check it; return the rows of queries."""
    assert KnowledgeGraph(folder).counts().keys() >= {"nodes", "facts", "stated", "episodes"}
    with closing(sqlite3.connect(folder / GRAPH)) as connection:
        assert connection.execute("PRAGMA quick_check").fetchall() == [("ok",)]
        assert connection.execute(RECOUNT).fetchall() == []
        assert connection.execute(LOST).fetchall() == []
        return [connection.execute(query).fetchall() for query in queries]


def kill(folder, times, work, *arguments, took=None):
    """Start a writer, kill it in the midst of a transaction or between two, which is told.

    It is killed so many `times` after it is ready, each as long as it `took` or says that it takes.

    A process of its own, for the server that forks others (`support.killable`) now and then forks one that hangs.
    """
    command = [sys.executable, graph_writers.__file__, work, folder, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        ready, *told = process.stdout.readline().split()
        assert ready == "ready"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(times * (took or float(told[0])))
        process.kill()
    journal = folder / f"{GRAPH}-journal"
    return journal.is_file() and journal.stat().st_size > 0


def test_an_answer_that_was_cut_off_is_there_as_it_was_or_as_it_became(folder):
    generator, in_a_commit, seen = random.Random(0), 0, []
    library = Library(folder)
    read_ids = list(library)[:3]
    said = answer_of(1, read_ids)
    for seed in range(MOST_KILLS):
        if seed >= KILLS and in_a_commit >= IN_A_COMMIT:
            break
        in_a_commit += kill(folder, generator.uniform(0, ANSWERS_LONGEST), "answers", seed)
        generations = defaultdict(set)
        counts = defaultdict(int)
        for table, rows in zip(SAID, read(folder, *SAID.values()), strict=True):
            for answer_id, told in rows:
                generations[answer_id].add(float(str(told).split()[0]))
                counts[answer_id, table] += 1
        assert all(len(some) == 1 for some in generations.values())
        for answer_id in generations:
            assert counts[answer_id, "edges"] == len(said.relationships)
            assert counts[answer_id, "mentions"] >= len(said.entities)
            assert counts[answer_id, "episodes"] == len(said.episodes)
        seen.append(dict(generations))
    assert sum(one != other for one, other in pairwise(seen)) >= CHANGED
    assert in_a_commit >= IN_A_COMMIT


def test_a_graph_that_was_cut_off_while_filled_holds_each_document_whole_or_not_yet(folder):
    generator, in_a_commit, sizes = random.Random(1), 0, set()
    (rows,) = read(folder, OF_DOCUMENTS)
    expected = edges_by_document(rows)
    started = time.perf_counter()
    fill_graph(folder, folder / STORE, anew=True)
    took = time.perf_counter() - started
    for number in range(MOST_KILLS):
        if number >= KILLS and in_a_commit >= IN_A_COMMIT:
            break
        if number % 2:  # every other time from nothing
            (folder / GRAPH).unlink(missing_ok=True)
            (folder / f"{GRAPH}-journal").unlink(missing_ok=True)
        in_a_commit += kill(folder, generator.uniform(0, FILLS_LONGEST), "fills", took=took)
        found = edges_by_document(read(folder, OF_DOCUMENTS)[0]) if is_made(folder) else {}
        assert found.items() <= expected.items()
        sizes.add(len(found))
    assert len(sizes) > 2
    fill_graph(folder, folder / STORE)
    assert edges_by_document(read(folder, OF_DOCUMENTS)[0]) == expected
    assert in_a_commit >= IN_A_COMMIT


def is_made(folder):
    """Tell whether the file has its tables: a first writer may be killed before."""
    if not (folder / GRAPH).is_file():
        return False
    with closing(sqlite3.connect(folder / GRAPH)) as connection:
        return connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone() != (0,)


def edges_by_document(rows):
    edges = defaultdict(set)
    for doc_id, *edge in rows:
        edges[doc_id].add(tuple(edge))
    return dict(edges)
