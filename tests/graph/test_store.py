"""`graph.sqlite`: filled once, in step with the corpus, right in its counts, and never lost to a kill or to damage."""

import random
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from support.killable import LONGEST_S, Killable
from support.small_graphs import CASSATION, DECISIONS, EARLIER, library_of

from legal_rag.extraction import ExtractionSettings
from legal_rag.extraction.schemas import RULES
from legal_rag.graph import (
    ExtractedEntity,
    ExtractedEpisode,
    ExtractedRelationship,
    ExtractionResult,
    KnowledgeGraph,
    add_answer,
    fill_graph,
    remove_answer,
)
from legal_rag.graph import store as graph_store
from legal_rag.graph.facts import GraphFact
from legal_rag.graph.fates import graph_of
from legal_rag.graph.names import Named, document_node, term_node
from legal_rag.graph.store import GRAPH, GraphWriter, copy_graph, count_unlinked, graph_problems
from legal_rag.indexer import IndexConfig, add_documents, build_index, compact_index, remove_documents
from legal_rag.indexer.build import plan_rebuild, rebuild
from legal_rag.library import Library
from legal_rag.library.library import STORE
from legal_rag.library.store import present_at

ANSWER = ExtractionResult(
    [ExtractedEntity("société Quillerou Pontignac", "party")],
    [
        ExtractedRelationship("CASS1", "CASS0", "cites"),
        ExtractedRelationship("article 1240 du code civil", "décret n° 2010-39", "related_to"),
        ExtractedRelationship("société Quillerou Pontignac", "CASS1", "party_to"),
    ],
    [ExtractedEpisode("Chercher", "", "success", (), ("CASS1",))],
)


@pytest.fixture(scope="module")
def built(tiny_encoder, tmp_path_factory):
    return library_of(tmp_path_factory.mktemp("store"), DECISIONS, tiny_encoder).path


@pytest.fixture
def library(built, tmp_path):
    """Return a Library of the test's own: a copy of the one that was built."""
    return Library(shutil.copytree(built, tmp_path / "own"))


def rows(folder, sql):
    with sqlite3.connect(folder / GRAPH) as connection:
        return connection.execute(sql).fetchall()


def edges(folder, of="TRUE"):
    """Return the edges of a graph, without the numbers that it gives."""
    sql = f"""
        SELECT a.key, e.type, b.key, e.support, COALESCE(t.doc_id, ''), e.char_start, e.char_end, e.n, e.detail, s.kind
        FROM edges AS e JOIN nodes AS a ON a.node_key = e.from_key JOIN nodes AS b ON b.node_key = e.to_key
        JOIN sources AS s USING (source_key) LEFT JOIN texts AS t ON t.text_key = e.text_key WHERE {of}
        ORDER BY 1, 2, 3, 10, 5
    """  # noqa: S608
    return rows(folder, sql)


def counted(folder):
    """Return what each node's counts are, and what a recount gives."""
    recount = """
        SELECT n.key, n.degree, n.cited,
            (SELECT COUNT(*) FROM edges AS e JOIN sources AS s USING (source_key)
                WHERE e.support = 'text' AND s.answer_id IS NULL AND e.from_key = n.node_key)
            + (SELECT COUNT(*) FROM edges AS e JOIN sources AS s USING (source_key)
                WHERE e.support = 'text' AND s.answer_id IS NULL AND e.to_key = n.node_key),
            (SELECT COUNT(*) FROM edges AS e JOIN sources AS s USING (source_key) WHERE e.support = 'text'
                AND s.answer_id IS NULL AND e.to_key = n.node_key AND e.type IN ('cites', 'applies'))
        FROM nodes AS n ORDER BY n.key
    """
    found = rows(folder, recount)
    return [row[:3] for row in found], [(key, degree, cited) for key, _, _, degree, cited in found]


def assert_counts_are_right(folder):
    stored, recounted = counted(folder)
    assert stored == recounted


def fill(library, **options):
    return fill_graph(library.path, library.path / STORE, **options)


def test_filling_again_changes_nothing_and_a_graph_made_anew_is_the_same(library):
    before, numbered = edges(library.path), rows(library.path, "SELECT * FROM edges")
    assert fill(library) == 0
    assert rows(library.path, "SELECT * FROM edges") == numbered
    assert count_unlinked(library.path, library.path / STORE) == 0
    assert fill(library, anew=True) == len(DECISIONS)
    assert edges(library.path) == before
    assert_counts_are_right(library.path)


def test_a_graph_filled_in_two_parts_after_an_interruption_is_the_same(library, monkeypatch):
    wanted = edges(library.path)
    (library.path / GRAPH).unlink()
    monkeypatch.setattr("legal_rag.library.parts.BATCH", 1)
    real, calls = graph_store.text_facts, []

    def interrupted(document):
        calls.append(document.id)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(document)

    monkeypatch.setattr(graph_store, "text_facts", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fill(library)
    assert 0 < len(edges(library.path)) < len(wanted)
    assert_counts_are_right(library.path)
    assert fill(library) == len(DECISIONS) - 2
    assert edges(library.path) == wanted


def test_the_edges_of_an_interrupted_document_are_all_there_or_none(library, monkeypatch):
    (library.path / GRAPH).unlink()
    real, calls = GraphWriter.edge, []

    def interrupted(self, *arguments, **named):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return real(self, *arguments, **named)

    monkeypatch.setattr(GraphWriter, "edge", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fill(library)
    assert edges(library.path) == []


def test_an_index_of_a_part_and_then_the_rest_has_the_graph_of_the_whole(tmp_path, tiny_encoder, built):
    folder = str(tmp_path)
    library_of(folder, DECISIONS[:2], tiny_encoder)
    add_documents(IndexConfig(source=list(DECISIONS[2:]), n_bits=0, index_folder=folder), tiny_encoder)
    library = Library.open(folder)
    rebuild(library, plan_rebuild(library, ["entities", "graph"], RULE_SETTINGS), RULE_SETTINGS)
    assert edges(library.path) == edges(built)


RULE_SETTINGS = ExtractionSettings(model_id=RULES)


def test_replacing_a_document_drops_its_edges_and_an_answer_loses_that_support(tmp_path, tiny_encoder):
    library = library_of(tmp_path, DECISIONS, tiny_encoder)
    assert add_answer(library, "A", ANSWER, ["CASS1"]).facts == 1
    changed = {**CASSATION, "content": "COUR DE CASSATION\n\nVu l'article 2224 du code civil :\n\nREJETTE le pourvoi."}
    add_documents(IndexConfig(source=[changed], n_bits=0, index_folder=str(tmp_path)), tiny_encoder)
    library = Library.open(tmp_path)
    fill(library)
    targets = {edge[2] for edge in edges(library.path, "s.kind = 'text'") if edge[0] == "doc:CASS1"}
    assert "article:2224 code civil" in targets
    assert "article:1240 code civil" not in targets
    assert {edge[3] for edge in edges(library.path, "s.kind = 'answer'")} == {"none"}
    assert not [edge for edge in KnowledgeGraph(library).neighbours("CASS1") if edge.answer_id]
    assert_counts_are_right(library.path)


def test_removing_documents_drops_their_edges_and_keeps_an_answers(tmp_path, tiny_encoder):
    library = library_of(tmp_path, DECISIONS, tiny_encoder)
    add_answer(library, "A", ANSWER, ["CASS1"])
    remove_documents(["CASS1", "CA1"], str(tmp_path))
    library = Library.open(tmp_path)
    assert {edge[4] for edge in edges(library.path)} == {"CASS0", "QPC1", ""}
    assert len(edges(library.path, "s.kind = 'answer'")) == 3
    assert_counts_are_right(library.path)
    remove_answer(library.path, "A")
    nodes = {key for (key,) in rows(library.path, "SELECT key FROM nodes")}
    assert nodes == {end for edge in edges(library.path) for end in (edge[0], edge[2])}


def test_compaction_keeps_the_graph_and_what_answers_gave(tmp_path, tiny_encoder):
    library = library_of(tmp_path, DECISIONS, tiny_encoder)
    add_answer(library, "A", ANSWER, ["CASS1", "CASS0"])
    remove_documents(["CA1"], str(tmp_path))
    before = edges(library.path)
    compact_index(str(tmp_path))
    library = Library.open(tmp_path)
    assert edges(library.path) == before
    assert [one.decision for one in KnowledgeGraph(library).episodes()] == ["Chercher"]
    assert_counts_are_right(library.path)


def test_an_index_built_again_keeps_what_answers_gave(tmp_path, tiny_encoder):
    library = library_of(tmp_path, DECISIONS, tiny_encoder)
    add_answer(library, "A", ANSWER, ["CASS1", "CASS0"])
    before = edges(library.path, "s.kind = 'answer'")
    build_index(IndexConfig(source=[CASSATION, EARLIER], n_bits=0, index_folder=str(tmp_path)), tiny_encoder)
    library = Library.open(tmp_path)
    assert edges(library.path, "s.kind = 'answer'") == before
    assert {edge[4] for edge in edges(library.path, "s.kind = 'text'")} == {"CASS1", "CASS0"}
    assert len(KnowledgeGraph(library).episodes()) == 1


@pytest.mark.parametrize("seed", range(2))
def test_counts_are_right_after_any_sequence_of_changes(library, seed):
    rng = random.Random(seed)
    for step in range(12):
        kind = rng.choice(("answer", "forget", "anew", "text", "drop"))
        if kind == "answer":
            add_answer(
                library, f"A{rng.randrange(3)}", ANSWER, rng.sample(["CASS1", "CASS0", "QPC1"], rng.randrange(4))
            )
        elif kind == "forget":
            remove_answer(library.path, f"A{rng.randrange(3)}")
        elif kind == "anew":
            fill(library, anew=True)
        else:
            _change_a_source(library, rng, drop=kind == "drop", step=step)
        assert_counts_are_right(library.path)
    fill(library, anew=True)
    assert edges(library.path, "s.kind != 'answer'")


def _change_a_source(library, rng, *, drop, step):
    """Drop what one document gave, or put other edges in its place."""
    writer = GraphWriter(library.path / GRAPH)
    try:
        with writer.transaction():
            (key,) = rng.choice(writer.connection.execute("SELECT text_key FROM texts ORDER BY text_key").fetchall())
            if drop:
                writer.delete_sources("SELECT source_key FROM sources WHERE text_key = ?", key)
                return
            source = writer.source("text", key, "test")
            for number in range(rng.randrange(4)):
                ends = document_node("CASS1"), term_node("concept", f"notion {rng.randrange(step + 1)}")
                writer.edge(source, GraphFact(*ends, rng.choice(("cites", "related_to")), 0, number + 1), key)
    finally:
        writer.close()


def answer_in_a_process(ready, folder, numbers):
    """Write answers, once ready."""
    library = Library(folder)
    ready()
    for number in numbers:
        add_answer(library, f"A{number}", ANSWER, ["CASS1", "CASS0"])


@pytest.mark.slow
def test_two_processes_that_write_answers_at_once_lose_nothing(library):
    workers = [Killable(answer_in_a_process, library.path, list(range(n, 12, 2))) for n in (0, 1)]
    for worker in workers:
        worker.wait_until_ready()
    for worker in workers:
        assert not worker.killed_after(LONGEST_S)
    assert rows(library.path, "SELECT COUNT(*) FROM sources WHERE answer_id IS NOT NULL") == [(12,)]
    assert len(edges(library.path, "s.kind = 'answer'")) == 12 * 3
    assert_counts_are_right(library.path)


def test_answers_and_a_filling_at_once_lose_nothing(library):
    wanted = edges(library.path, "s.kind != 'answer'")

    def work(number):
        if number % 4:
            add_answer(library, f"A{number}", ANSWER, ["CASS1"])
        else:
            fill(library, anew=True)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(8)))
    assert edges(library.path, "s.kind != 'answer'") == wanted
    assert rows(library.path, "SELECT COUNT(*) FROM sources WHERE answer_id IS NOT NULL") == [(6,)]
    assert_counts_are_right(library.path)


@pytest.mark.parametrize("damage", [b"", b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_damaged_graph_is_made_anew_with_a_warning(library, caplog, damage):
    wanted = edges(library.path)
    (library.path / GRAPH).write_bytes(damage)
    assert count_unlinked(library.path, library.path / STORE) == len(DECISIONS)
    assert fill(library) == len(DECISIONS)
    assert edges(library.path) == wanted
    assert ("is damaged" in caplog.text) == bool(damage)


def test_a_damaged_graph_is_a_problem_that_says_what_to_do(library):
    present = present_at(library.commit, "d")
    assert list(graph_problems(library.path, library.path / STORE, present)) == []
    with sqlite3.connect(library.path / GRAPH) as connection:
        connection.execute("UPDATE edges SET char_end = 999999 WHERE char_start >= 0")
    (problem,) = graph_problems(library.path, library.path / STORE, present)
    assert "999999" in problem
    assert "rebuild --only graph" in problem
    (library.path / GRAPH).write_bytes(b"no database" * 100)
    (problem,) = graph_problems(library.path, library.path / STORE, present)
    assert "DatabaseError" in problem


def test_a_graph_of_an_earlier_version_is_named_and_brought_up_to_date_with_what_answers_gave(library, caplog):
    add_answer(library, "A", ANSWER, ["CASS1"])
    wanted = edges(library.path)
    with sqlite3.connect(library.path / GRAPH) as connection:
        connection.executescript("DROP TABLE laws; PRAGMA user_version = 0;")
    with pytest.raises(
        ValueError, match=r"it is of format 0 \(expected 1\); 'legal-rag rebuild --only graph' makes it anew"
    ):
        KnowledgeGraph(library)
    assert graph_of(library) is None
    assert "later fate is not known: another version made" in caplog.text
    (problem,) = graph_problems(library.path, library.path / STORE, present_at(library.commit, "d"))
    assert "another version made" in problem
    assert count_unlinked(library.path, library.path / STORE) == len(DECISIONS)
    caplog.clear()
    assert fill(library, anew=True) == len(DECISIONS)
    assert edges(library.path) == wanted
    assert rows(library.path, "SELECT by_day, numbered FROM laws") == [("loi 1989-07-06", "loi 89-462")]
    assert not caplog.records
    KnowledgeGraph(library)


def test_a_graph_of_a_later_version_is_set_aside(library, caplog):
    with sqlite3.connect(library.path / GRAPH) as connection:
        connection.executescript("ALTER TABLE nodes ADD COLUMN later TEXT; PRAGMA user_version = 99;")
    with pytest.raises(ValueError, match="format 99"):
        KnowledgeGraph(library)
    assert fill(library) == len(DECISIONS)
    assert "it is made anew, without what answers gave" in caplog.text
    assert list(library.path.glob(".graph.sqlite.damaged*"))


def test_a_damaged_graph_is_left_behind_by_a_copy(library, tmp_path, caplog):
    copy_graph(library.path / GRAPH, tmp_path / "copy")
    assert (tmp_path / "copy").is_file()
    (library.path / GRAPH).write_bytes(b"no database" * 100)
    copy_graph(library.path / GRAPH, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    assert "made anew" in caplog.text


def test_a_writer_keeps_first_names_and_numbers_and_counts_an_edge_once(library):
    with closing(GraphWriter(library.path / GRAPH)) as writer:
        with pytest.raises(RuntimeError, match="stop"), writer.transaction():
            writer.node(Named("term:lost", "concept", "perdu"))
            raise RuntimeError("stop")
        with writer.transaction():
            number, first = (writer.node(Named(f"term:{key}", "concept", "Premier")) for key in ("lost", "x"))
            assert writer.node(Named("term:x", "concept", "Second")) == first
            writer.node(Named("term:\ud800", "concept", "\ud800"))
            source = writer.source("text", 1, "test")
            for _ in range(3):
                writer.edge(source, GraphFact(document_node("CASS1"), document_node("CASS1"), "cites", 0, 1), 1)
    named = "SELECT node_key, name FROM nodes WHERE key IN ('term:lost', 'term:x', 'term:?') ORDER BY node_key"
    assert rows(library.path, named)[:2] == [(number, "Premier"), (first, "Premier")]
    assert [name for _, name in rows(library.path, named)] == ["Premier", "Premier", "?"]
    assert_counts_are_right(library.path)
