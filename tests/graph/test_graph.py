"""What the graph answers: who a name is, its neighbours, who cites and overrules whom, and by what chain."""

import shutil
import sqlite3
from contextlib import closing

import pytest
from support.small_graphs import CASSATION, DECISIONS, EARLIER, library_of

from legal_rag.graph import (
    Edge,
    ExtractedEpisode,
    ExtractedRelationship,
    ExtractionResult,
    KnowledgeGraph,
    Node,
    add_answer,
)
from legal_rag.indexer import remove_documents
from legal_rag.library import Library


@pytest.fixture(scope="module")
def built(tiny_encoder, tmp_path_factory):
    return library_of(tmp_path_factory.mktemp("graph"), DECISIONS, tiny_encoder).path


@pytest.fixture(scope="module")
def graph(built):
    return KnowledgeGraph(built)


@pytest.fixture
def own(built, tmp_path):
    """Return a Library of the test's own: a copy of the one that was built."""
    return Library(shutil.copytree(built, tmp_path / "own"))


def told(edges):
    return {(edge.source.key, edge.type, edge.target.key) for edge in edges}


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("CASS1", "doc:CASS1"),
        ("doc:CASS1", "doc:CASS1"),
        ("19-12.345", "doc:CASS1"),
        ("pourvoi n° Q 19-12.345", "doc:CASS1"),
        ("décision n° 2010-39 QPC", "doc:QPC1"),
        ("L. 1152-1 C. trav.", "article:L1152-1 code du travail"),
        ("article 1240", "article:1240 code civil"),  # the one code that cites give the number
        ("Cass. soc.", "court:cassation sociale"),
        ("loi n° 89-462 du 6 juillet 1989", "statute:loi 89-462"),
        ("statute:loi 89-462", "statute:loi 89-462"),
        ("M. Jean Martin", "name:m jean martin @CASS1"),
        ("SCP Gatineau & Fattaccini", "name:scp gatineau fattaccini"),
        ("an:2009-12", "an:2009-12"),
    ],
)
def test_a_name_is_found_however_it_is_written(graph, name, key):
    assert graph.find(name).key == key


def test_a_decision_is_found_with_what_the_corpus_says_of_it(graph):
    node = graph.find("16-22.168")
    assert (node.doc_id, node.decision_date, node.court, node.solution, node.cited) == (
        "CASS0",
        "2018-01-24",
        "Cour de cassation, Chambre sociale",
        "Rejet",
        1,
    )


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        *(
            (name, "no node")
            for name in (
                "société Quillerou",
                "",
                " ",
                "99-99.999",
                "article 9999 du code civil",
                "C. civ., 9999",  # not the code
                "%",
                "\u202e",
                "' OR 1",
            )
        ),
        ("SCP Gatineau et Fatacini", "near: .*SCP Gatineau et Fattaccini"),
        ("M. Paul Martin", "several nodes named 'M. Paul Martin' .*@CASS0.*@QPC1"),
    ],
)
def test_an_unknown_or_ambiguous_name_is_refused_with_what_is_near(graph, name, problem):
    with pytest.raises(LookupError, match=problem):
        graph.find(name)


def test_neighbours_are_the_facts_of_both_directions_or_of_one_and_a_type(graph):
    assert told(graph.neighbours("CASS0")) == {
        ("doc:CASS0", "applies", "article:L1152-1 code du travail"),
        ("doc:CASS0", "cites", "doc:QPC1"),
        ("doc:CASS0", "decided_by", "court:cassation sociale"),
        ("doc:CASS0", "upholds", "lower:court:appel paris 2016-06-02 @CASS0"),
        ("name:m paul martin @CASS0", "party_to", "doc:CASS0"),
        ("name:societe leverrier @CASS0", "party_to", "doc:CASS0"),
        ("doc:CASS1", "cites", "doc:CASS0"),
    }
    assert told(graph.neighbours("CASS0", types=("cites",), direction="in")) == {("doc:CASS1", "cites", "doc:CASS0")}
    assert told(graph.neighbours("CASS0", types=("cites",), direction="out")) == {("doc:CASS0", "cites", "doc:QPC1")}
    assert graph.neighbours("CASS0", supports=()) == []
    assert len(graph.neighbours("CASS1", direction="out", most=2)) == 2
    with pytest.raises(ValueError, match="no edge type 'likes'"):
        graph.neighbours("CASS1", types=("likes",))
    with pytest.raises(ValueError, match="'up'"):
        graph.neighbours("CASS1", direction="up")


def test_every_edge_gives_the_place_that_says_so_and_counts_are_those_of_what_is_stored(graph):
    for edge in graph.neighbours("CASS1"):
        assert edge.is_fact
        assert 0 <= edge.char_start < edge.char_end <= len(graph.library.document(edge.doc_id).content)
    counts = graph.counts()
    assert counts["facts"] > 30
    assert (counts["stated"], counts["unsupported"], counts["episodes"], counts["answers"]) == (0, 0, 0, 0)


def test_who_cites_a_decision_or_an_article_and_how_one_below_was_treated(graph):
    assert told(graph.citing("16-22.168")) == {("doc:CASS1", "cites", "doc:CASS0")}
    assert {edge.source.doc_id for edge in graph.citing("L. 1152-1 du code du travail")} == {"CASS0", "CASS1"}
    below = next(edge.target for edge in graph.neighbours("CASS1") if edge.type == "overrules")
    assert told(graph.rulings(below)) == {("doc:CASS1", "overrules", below.key)}
    assert graph.find("CASS0").cited == 1


def test_the_most_cited_articles_come_first(graph):
    first, *others = graph.most_cited("article")
    assert (first.key, first.cited) == ("article:L1152-1 code du travail", 2)
    assert all(one.cited == 1 for one in others)
    with pytest.raises(ValueError, match="no node type 'planet'"):
        graph.most_cited("planet")


def test_a_path_is_a_chain_of_facts_and_there_is_none_between_strangers(graph):
    path = graph.path("CASS1", "QPC1")
    assert [edge.type for edge in path] == ["cites", "cites"]
    reached = {"doc:CASS1"}
    for edge in path:
        ends = {edge.source.key, edge.target.key}
        assert ends & reached
        reached |= ends
    assert "doc:QPC1" in reached
    assert graph.path("article 365 du code civil", "article 1709 du code civil", most_hops=3) == []
    assert graph.path("CASS1", "QPC1", most_hops=1) == []
    assert graph.path("CASS1", "CASS1") == []


def test_no_path_leads_through_what_a_model_said(own):
    edge = ExtractedRelationship("article 1240 du code civil", "décret n° 2010-39", "related_to")
    assert add_answer(own, "A", ExtractionResult([], [edge]), ["CASS1"]).stated == 1
    assert all(one.is_fact for one in KnowledgeGraph(own).path("article 1240 du code civil", "décret n° 2010-39"))


def test_what_an_answer_says_unsupported_is_in_no_default_query(own):
    edges = [ExtractedRelationship("CASS0", "CASS1", "overrules"), ExtractedRelationship("CASS0", "CASS1", "cites")]
    before = told(KnowledgeGraph(own).neighbours("CASS0"))
    assert add_answer(own, "A", ExtractionResult([], edges), ["CASS0", "CASS1"]).unsupported == 2
    graph = KnowledgeGraph(own)
    assert told(graph.neighbours("CASS0")) == before
    assert graph.citing("CASS1") == []
    assert graph.rulings("CASS1") == []
    assert told(graph.neighbours("CASS1", supports=("none",))) == {
        ("doc:CASS0", kind, "doc:CASS1") for kind in ("overrules", "cites")
    }


def test_episodes_name_their_nodes(own):
    episode = ExtractedEpisode("Chercher", "", "success", ("leçon",), ("QPC1",))
    add_answer(own, "A", ExtractionResult([], [], [episode]), ["CASS1"])
    (one,) = KnowledgeGraph(own).episodes()
    assert (one.lessons, one.status, [node.doc_id for node in one.nodes]) == (("leçon",), "success", ["QPC1"])


def test_the_edges_of_a_removed_document_are_unseen_at_once_and_an_older_snapshot_still_answers(tmp_path, tiny_encoder):
    library = library_of(tmp_path, [CASSATION, EARLIER], tiny_encoder)
    older = KnowledgeGraph(library)
    assert older.find("CASS1").doc_id == "CASS1"
    remove_documents(["CASS1"], str(tmp_path))
    graph = KnowledgeGraph(Library.open(tmp_path))
    assert {edge.doc_id for edge in graph.neighbours("CASS0")} == {"CASS0"}
    assert told(graph.citing("CASS0")) == set()
    assert {edge.source.key for edge in graph.citing("L. 1152-1 du code du travail")} == {"doc:CASS0"}
    assert graph.find("L. 1152-1 du code du travail").cited == 1
    assert {edge.doc_id for edge in older.neighbours("CASS0")} >= {"CASS0"}


def test_a_document_without_an_edge_is_found_by_its_id(own):
    connection = sqlite3.connect(own.path / "graph.sqlite")
    with closing(connection), connection:
        connection.execute("DELETE FROM edges")
        connection.execute("DELETE FROM nodes")
    graph = KnowledgeGraph(own)
    assert graph.find("CASS1").doc_id == "CASS1"
    assert graph.neighbours("CASS1") == []


@pytest.mark.parametrize(
    ("name", "doc_ids"),
    [
        ("Lever", ["CASS1"]),
        ("la société Lever", ["CASS1"]),
        ("Martin", ["CASS0", "CASS1", "QPC1"]),
        ("Paul Martin", ["CASS0", "QPC1"]),
        ("Jean", []),  # a first name
        ("Leverr", []),
        ("la société", []),
        ("X...", []),
        ("", []),
    ],
)
def test_a_decision_is_found_by_a_partys_surname_or_a_companys_distinctive_words(graph, name, doc_ids):
    assert sorted(graph.decisions_of_party(name)) == doc_ids


def test_decisions_of_a_party_are_bounded(graph):
    assert len(graph.decisions_of_party("Martin", most=1)) == 1


def ruling(kind, court, detail):
    source = Node("doc:B", "decision", "B", doc_id="B", court=court)
    return Edge(source, Node("doc:A", "decision", "A"), kind, "text", "B", 0, 1, 1, detail, 1.0)


@pytest.mark.parametrize(
    ("kind", "court", "detail", "words"),
    [
        ("overrules", "Cour de cassation, Chambre sociale", "Cassation", "cassé par"),
        ("overrules", "Cour de cassation", "Cassation partielle sans renvoi", "cassé en partie par"),
        ("overrules", "Conseil d'État", "Annulation", "annulé par"),
        ("overrules", "Cour d'appel de Douai", "Infirme le jugement, sauf sur les dépens", "infirmé en partie par"),
        ("upholds", "Cour d'appel de Douai", "Confirmation", "confirmé par"),
        ("upholds", "Cour administrative d'appel de Nantes", "Rejet", "confirmé par"),
        ("upholds", "Cour de cassation", "Rejet", "pourvoi rejeté par"),
        ("rectifies", "Conseil constitutionnel", "Rectification d'erreur matérielle", "rectifié par"),
        ("interprets", "Conseil d'État", "", "interprété par"),
        ("cites", "Cour de cassation", "", ""),
    ],
)
def test_a_ruling_says_in_french_what_became_of_the_decision_below(kind, court, detail, words):
    assert ruling(kind, court, detail).treatment == words
