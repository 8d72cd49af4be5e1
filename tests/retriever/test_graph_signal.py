"""Connections in the knowledge graph as a signal of hybrid ranking: an option, off by default."""

import math
import shutil
import sqlite3
from contextlib import closing

import pytest

from legal_rag.graph import ExtractedRelationship, ExtractionResult
from legal_rag.graph.answers import add_answer
from legal_rag.graph.names import Named, document_node
from legal_rag.graph.store import BY_ANSWER, BY_TEXT, GRAPH, STATED, UNSUPPORTED, GraphWriter, fill_graph
from legal_rag.indexer import remove_documents
from legal_rag.library import Library, SearchSettings
from legal_rag.library.library import STORE
from legal_rag.retriever import Retriever
from legal_rag.retriever.ranking import CONNECTED_DOCUMENTS, connection_densities

QUESTION = "Dans quel délai le candidat doit-il déposer son compte de campagne ?"
ALL = 10**6
SHARED = Named("article:1 code des essais", "article", "article 1 du code des essais")


@pytest.fixture
def folder(tiny_library, tmp_path):
    copy = shutil.copytree(tiny_library.path, tmp_path / "library")
    (copy / GRAPH).unlink(missing_ok=True)
    return copy


@pytest.fixture
def ranked(folder, tiny_encoder):
    def ranked(weight=1.0, k=ALL, mode="hybrid"):
        retriever = Retriever(Library(folder), tiny_encoder, SearchSettings(graph_weight=weight))
        return retriever.search(QUESTION, k, mode=mode)

    return ranked


@pytest.fixture
def link(folder):
    """Let documents name one article, by an edge of some source and support."""

    def link(doc_ids, kind=BY_TEXT, support="text", named=SHARED):
        library = Library(folder)
        with closing(GraphWriter(folder / GRAPH)) as writer, writer.transaction():
            for doc_id in doc_ids:
                text = writer.text(doc_id, library.document(doc_id).content_hash)
                of_answer = kind == BY_ANSWER
                source = writer.source(
                    kind, None if of_answer else text, "1", f"answer {doc_id}" if of_answer else None
                )
                writer.edge(source, (document_node(doc_id), named), "cites", (text, 0, 1), support=support)

    return link


def order(hits):
    return list(dict.fromkeys(hit.doc_id for hit in hits))


def test_a_document_that_names_what_the_best_ones_name_rises(ranked, link):
    before = order(ranked(0))
    link([*before[:3], before[30]])
    after = order(ranked(20))
    assert after.index(before[30]) < 10
    assert [one for one in after if one not in (*before[:3], before[30])] == before[3:30] + before[31:]


def test_weight_zero_gives_the_ranking_without_a_graph_to_the_last_digit(ranked, link, folder):
    without = ranked(0)
    link(order(without)[5:20])
    assert ranked(0) == without
    assert ranked(1) != without
    (folder / GRAPH).unlink()
    assert ranked(1) == without


def test_what_a_model_stated_or_no_text_supports_changes_nothing(ranked, link):
    without = ranked(0)
    some = order(without)[5:20]
    for support in (STATED, UNSUPPORTED, "text"):  # what an answer repeats of a text is there by that text already
        link(some, BY_ANSWER, support)
        assert ranked(5) == without
    link(some)
    assert ranked(5) != without


def test_an_answer_that_repeats_what_texts_say_changes_nothing(ranked, folder):
    fill_graph(folder, folder / STORE)
    before = ranked(1)
    assert before != ranked(0)
    library = Library(folder)
    with closing(sqlite3.connect(folder / GRAPH)) as graph:
        doc_id, article = graph.execute(
            "SELECT substr(a.key, 5), b.name FROM edges JOIN nodes AS a ON a.node_key = from_key"
            " JOIN nodes AS b ON b.node_key = to_key WHERE b.type = 'article' ORDER BY b.degree DESC, a.key LIMIT 1"
        ).fetchone()
    said = ExtractionResult(relationships=[ExtractedRelationship(doc_id, article, "cites")])
    assert add_answer(library, "an answer", said, [doc_id]).facts == 1
    assert ranked(1) == before


def test_fewer_hits_are_the_first_of_more_and_a_damaged_graph_is_named_and_ranked_without(ranked, folder, caplog):
    fill_graph(folder, folder / STORE)
    assert ranked(3, 5) == ranked(3, 40)[:5] == ranked(3)[:5]
    (folder / GRAPH).write_bytes(b"no database" * 1000)
    assert ranked(1) == ranked(0)
    assert "no graph (file is not a database), ranked without it" in caplog.text


@pytest.mark.parametrize("mode", ["bm25", "colbert", "bm25+rerank"])
def test_other_modes_do_not_weigh_it(ranked, link, mode):
    without = ranked(0, mode=mode)
    link(order(without)[5:20])
    assert ranked(5, mode=mode) == without


def test_a_removed_document_and_a_text_that_has_changed_are_connected_with_nothing(ranked, link, folder):
    best, other = (order(ranked(0))[rank] for rank in (0, 30))
    link([best, other])
    graph = (folder / GRAPH).read_bytes()
    remove_documents([best], str(folder.parent), folder.name)
    (folder / GRAPH).write_bytes(graph)  # as where a kill came between the commit and the graph
    assert ranked(20) == ranked(0)
    assert best not in order(ranked(20))
    link(order(ranked(0))[5:20])
    assert ranked(20) != ranked(0)
    with closing(sqlite3.connect(folder / GRAPH)) as graph, graph:
        graph.execute("UPDATE texts SET content_hash = 'another'")
    assert ranked(20) == ranked(0)


def test_a_rare_thing_in_common_weighs_more_than_a_hub():
    scores = {1: 3.0, 2: 2.0, 3: 2.0, 4: 0.0}
    found = connection_densities(scores, {1: {10, 11}, 2: {10}, 3: {11}}, {10: 2, 11: 4000})
    assert found[2] == pytest.approx(3 / 5 / math.log(4))
    assert found[3] == pytest.approx(3 / 5 / math.log(4002))


def test_a_document_is_not_connected_with_itself_nor_with_others_than_the_best_nor_among_those_of_one_score():
    scores = {key: -float(key) for key in range(CONNECTED_DOCUMENTS + 10)}
    last = CONNECTED_DOCUMENTS + 9
    assert connection_densities(scores, {0: {1}}, {1: 2}) == {}
    assert connection_densities(scores, {last: {1}, last - 1: {1}}, {1: 2}) == {}
    assert connection_densities(scores, {last: {1}, 0: {1}}, {1: 2}).keys() == {last}
    for scores in ({}, {1: 2.0}, {1: 2.0, 2: 2.0}):
        assert connection_densities(scores, {key: {7} for key in scores}, {7: 2}) == {}


@pytest.mark.parametrize("weight", [-0.1, math.nan, math.inf])
def test_a_weight_that_is_no_weight_is_refused_by_the_command_in_one_line(refused, folder, weight):
    with pytest.raises(ValueError, match=f"graph_weight must be a number of at least 0, got {weight}"):
        SearchSettings(graph_weight=weight)
    asked = ["search", QUESTION, "--index-folder", folder.parent, "--index-name", folder.name]
    assert f"got {weight}" in refused(*asked, "--graph-weight", weight)
