"""What an answer's tags say becomes a fact only where a text that was read says it by itself."""

import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.small_graphs import DECISIONS, library_of

from legal_rag.graph import (
    ExtractedEntity,
    ExtractedEpisode,
    ExtractedRelationship,
    ExtractionResult,
    KnowledgeGraph,
    add_answer,
    remove_answer,
)
from legal_rag.graph.store import GRAPH
from legal_rag.graph.types import EDGE_TYPES, NODE_TYPES
from legal_rag.library import Library

READ = ("CASS1", "CASS0", "CA1", "QPC1")
TYPES_OF_ENDS = {
    "party_to": ("party", "decision"),
    "overrules": ("decision", "decision"),
    "upholds": ("decision", "decision"),
    "decided_by": ("decision", "court"),
}
STANDING = "SELECT COUNT(*) FROM sources WHERE answer_id IS NOT NULL"


@pytest.fixture(scope="module")
def built(tiny_encoder, tmp_path_factory):
    return library_of(tmp_path_factory.mktemp("answers"), DECISIONS, tiny_encoder).path


@pytest.fixture(scope="module")
def shared(built, tmp_path_factory):
    """Return a Library for tests that replace one answer, "A", and look at nothing else."""
    return Library(shutil.copytree(built, tmp_path_factory.mktemp("shared") / "library"))


@pytest.fixture
def library(built, tmp_path):
    """Return a Library of the test's own: a copy of the one that was built."""
    return Library(shutil.copytree(built, tmp_path / "library"))


def support_of(library, source, edge_type, target, types=("", ""), read=READ):
    """Return how far a relationship is supported: 'facts', 'stated', 'unsupported', or '' where it is left out."""
    entities = [ExtractedEntity(*named) for named in zip((source, target), types, strict=True) if named[1]]
    result = ExtractionResult(entities, [ExtractedRelationship(source, target, edge_type)])
    found = add_answer(library, "A", result, read)
    counts = {"facts": found.facts, "stated": found.stated}
    counts["unsupported"] = found.unsupported - (len(entities) - found.entities)
    return next((name for name, n in counts.items() if n), "")


@pytest.mark.parametrize(
    ("source", "edge_type", "target"),
    [
        ("CASS1", "cites", "article 1240 du code civil"),
        ("CASS1", "applies", "L. 1152-1 C. trav."),
        ("CASS1", "cites", "article L1152-1 du Code du travail"),  # what is applied is cited
        ("CASS1", "cites", "article 1240"),  # of the one code that the texts give it
        ("pourvoi n° 19-12.345", "cites", "CASS0"),
        ("Cass. soc., 3 mars 2021, n° 19-12.345", "cites", "pourvoi n° 16-22.168"),
        ("CASS0", "cites", "décision n° 2010-39 QPC"),
        ("CASS1", "decided_by", "Chambre sociale de la Cour de cassation"),
        ("CASS1", "decided_by", "Cour de cassation"),
        ("CA1", "decided_by", "CA Lyon"),
        ("CASS1", "overrules", "arrêt de la cour d'appel de Lyon du 12 mai 2018"),
        ("CASS0", "upholds", "cour d'appel de Paris, 2 juin 2016"),
        ("M. Jean Martin", "party_to", "CASS1"),
        ("Mme Martin", "party_to", "CASS1"),
        ("Lever", "party_to", "CASS1"),
        ("SCP Gatineau et Fattaccini", "represents", "société Lever"),
        ("SCP Gatineau et Fattaccini", "pleads_in", "CASS1"),
        ("Me Colin", "pleads_in", "CA1"),
        ("QPC1", "cites", "la Constitution"),
        ("CASS1", "cites", "loi n° 89-462"),
        ("CASS1", "cites", "article 2 de la loi n° 89-462"),
    ],
)
def test_what_a_text_says_is_a_fact(shared, source, edge_type, target):
    types = ("decision", "decision") if edge_type in ("overrules", "upholds") else ("", "")
    assert support_of(shared, source, edge_type, target, types) == "facts"


@pytest.mark.parametrize(
    ("source", "edge_type", "target"),
    [
        ("CASS1", "cites", "article 1241 du code civil"),
        ("CASS1", "cites", "article 1240-1 du code civil"),
        ("CASS1", "cites", "article 1240 du code de procédure civile"),
        ("CASS1", "cites", "article R. 1152-1 du code du travail"),
        ("CASS0", "cites", "article 1240 du code civil"),  # which the other decision cites
        ("CASS1", "applies", "article 1240 du code civil"),  # it is only cited
        ("CASS0", "cites", "CASS1"),
        ("CASS1", "cites", "pourvoi n° 16-22.169"),
        ("CASS1", "cites", "pourvoi n° 19-12.346"),
        ("CASS1", "cites", "2010-39 QPC"),  # of which the decree has the number
        ("CASS1", "cites", "décret n° 16-22.168"),
        ("CASS1", "cites", "arrêt cassé par l'arrêt n° 16-22.168"),
        ("CASS1", "decided_by", "Cass. com."),
        ("CASS1", "decided_by", "Cour d'appel de Lyon"),
        ("CASS1", "decided_by", "chambre sociale"),
        ("CA1", "decided_by", "CAA de Lyon"),
        ("CA1", "decided_by", "tribunal de Lyon"),
        ("CA1", "decided_by", "Lyon"),
        ("Cour d'appel de Lyon", "decided_by", "CA1"),
        ("CASS1", "upholds", "arrêt de la cour d'appel de Lyon du 12 mai 2018"),
        ("CASS1", "overrules", "arrêt de la cour d'appel de Lyon du 13 mai 2018"),
        ("CASS1", "overrules", "arrêt de la cour d'appel de Paris du 2 juin 2016"),
        ("CASS1", "overrules", "CASS0"),
        ("CASS0", "overrules", "CASS1"),
        ("M. Paul Martin", "party_to", "CASS1"),
        ("M. Jean Martin", "party_to", "CASS0"),
        ("société Lever", "party_to", "CASS0"),  # which has a société Leverrier
        ("SCI Lever", "party_to", "CASS1"),
        ("SARL Martin", "party_to", "CASS1"),
        ("M. Aline Martin", "party_to", "CASS1"),
        ("M. Saint-Martin", "party_to", "CASS1"),
        ("CASS1", "party_to", "M. Jean Martin"),
        ("SCP Gatineau et Fattaccini", "party_to", "CASS1"),
        ("M. Jean Martin", "represents", "CASS1"),
        ("M. Jean Маrtin", "party_to", "CASS1"),
        ("name:m jean martin @CASS1", "party_to", "CASS1"),
        ("société Quillerou", "party_to", "CASS1"),
        ("doc:CASS0", "party_to", "CASS1"),
        ("court:cassation sociale", "overrules", "CASS1"),
    ],
)
def test_what_no_text_says_is_kept_apart_as_unsupported(shared, source, edge_type, target):
    assert support_of(shared, source, edge_type, target, TYPES_OF_ENDS.get(edge_type, ("", ""))) == "unsupported"
    assert support_of(shared, source, edge_type, target) == "unsupported"


def test_two_names_of_one_sentence_are_stated_and_shown_as_the_models_word(library):
    assert support_of(library, "article 1240 du code civil", "related_to", "décret n° 2010-39") == "stated"
    graph = KnowledgeGraph(library)
    assert not [edge for edge in graph.neighbours("article 1240 du code civil") if edge.type == "related_to"]
    (edge,) = graph.neighbours("article 1240 du code civil", supports=("stated",))
    assert not edge.is_fact
    words = library.document(edge.doc_id).content[edge.char_start : edge.char_end]
    assert "1240" in words
    assert "2010-39" in words


def test_names_of_two_sentences_or_of_a_text_that_was_not_read_are_not_stated(library):
    two = ("article 1709 du code civil", "related_to", "article 1134 du code civil")
    assert support_of(library, *two) == "unsupported"
    one = ("article 1240 du code civil", "related_to", "décret n° 2010-39")
    assert support_of(library, *one, read=("CASS0",)) == "unsupported"


def test_a_text_tells_its_own_facts_unread_and_an_answer_that_repeats_one_adds_nothing_to_the_counts(library):
    assert support_of(library, "CASS1", "cites", "article 1240 du code civil", read=("QPC1",)) == "facts"
    assert support_of(library, "CASS1", "cites", "CASS0", read=("NO SUCH DOCUMENT", "CASS1", "CASS1")) == "facts"
    before = KnowledgeGraph(library).find("article 1240 du code civil").cited
    assert support_of(library, "CASS1", "cites", "article 1240 du code civil") == "facts"
    assert KnowledgeGraph(library).find("article 1240 du code civil").cited == before


def test_a_person_read_of_in_two_decisions_and_a_vague_name_of_two_answers_are_not_one(library):
    people = [ExtractedEntity("M. Paul Martin", "party")]
    edges = [ExtractedRelationship("M. Paul Martin", doc_id, "party_to") for doc_id in ("CASS0", "QPC1")]
    assert add_answer(library, "A", ExtractionResult(people, edges), READ).facts == 2
    sources = {
        edge.source.key
        for doc_id in ("CASS0", "QPC1")
        for edge in KnowledgeGraph(library).neighbours(doc_id, types=("party_to",))
        if edge.answer_id
    }
    assert len(sources) == 2
    for answer in ("A", "B"):
        named = [ExtractedEntity("arrêt du 3 mars 1999", "decision"), ExtractedEntity("la cour d'appel", "court")]
        edges = [ExtractedRelationship("arrêt du 3 mars 1999", "la cour d'appel", "decided_by")]
        add_answer(library, answer, ExtractionResult(named, edges), READ)
    with sqlite3.connect(library.path / GRAPH) as connection:
        (n,) = connection.execute("SELECT COUNT(DISTINCT from_key) FROM edges WHERE support = 'none'").fetchone()
    assert n == 2


def test_entities_stand_where_the_texts_name_them(library):
    named = [
        "M. Jean Martin",
        "harcèlement moral",
        "L. 1152-1 C. trav.",
        "Cass. soc.",
        "société Quillerou",
        "Martin Saint",
    ]
    types = ["party", "concept", "article", "court", "party", "party"]
    found = add_answer(library, "A", ExtractionResult(list(map(ExtractedEntity, named, types))), READ)
    assert (found.entities, found.unsupported) == (4, 2)


def test_a_hostile_name_neither_fails_nor_becomes_a_fact_and_one_of_any_type_is_recorded_or_left_out(library):
    names = ["", " ", "x" * 10_000, "« »", "M. X...", "\u202eniarraM .M", "'; DROP TABLE nodes; --"]
    edges = [ExtractedRelationship(name, "CASS1", edge_type) for name in names for edge_type in EDGE_TYPES]
    entities = [ExtractedEntity("n° 99-99.999 du Quillerou", node_type) for node_type in NODE_TYPES]
    found = add_answer(library, "A", ExtractionResult(entities, edges), READ)
    assert (found.entities, found.facts, found.stated) == (0, 0, 0)
    assert KnowledgeGraph(library).counts()["nodes"] > 0


def everything(library):
    """Return all that a graph holds, but the numbers that it gives and the times."""
    query = """
        SELECT a.key, e.type, b.key, e.support, e.char_start, e.char_end, s.kind, COALESCE(s.answer_id, '')
        FROM edges AS e JOIN sources AS s USING (source_key)
        JOIN nodes AS a ON a.node_key = e.from_key JOIN nodes AS b ON b.node_key = e.to_key
        UNION ALL SELECT key, type, name, '', cited, degree, '', '' FROM nodes ORDER BY 1, 2, 3, 8
    """
    with sqlite3.connect(library.path / GRAPH) as connection:
        return connection.execute(query).fetchall()


def answer(number):
    """Return tags with a fact, a stated and an unsupported edge, a mention and an episode."""
    new = f"société Quillerou Pontignac {number}"
    edges = [
        ExtractedRelationship("CASS1", "CASS0", "cites"),
        ExtractedRelationship("article 1240 du code civil", "décret n° 2010-39", "related_to"),
        ExtractedRelationship(new, "CASS1", "party_to"),
    ]
    episode = ExtractedEpisode(f"Chercher {number}", "le contexte", "success", ("une leçon",), (new, "CASS1"))
    return ExtractionResult([ExtractedEntity(new, "party")], edges, [episode])


def test_a_removed_answer_leaves_the_graph_as_it_was_and_takes_nothing_of_another(library):
    before = everything(library)
    add_answer(library, "A", answer(1), READ)
    assert len(everything(library)) > len(before)
    assert remove_answer(library.path, "A")
    assert everything(library) == before
    assert KnowledgeGraph(library).episodes() == []
    add_answer(library, "B", answer(2), READ)
    before = everything(library)
    add_answer(library, "A", answer(1), READ)
    remove_answer(library.path, "A")
    assert everything(library) == before


def test_an_answer_given_again_replaces_what_it_gave_and_one_that_fails_leaves_it(library, monkeypatch):
    add_answer(library, "A", answer(2), READ)
    once = everything(library)
    add_answer(library, "A", answer(1), READ)
    add_answer(library, "A", answer(2), READ)
    assert everything(library) == once
    add_answer(library, "A", answer(1), READ)
    before = everything(library)

    def failing(*arguments, **named):
        raise sqlite3.OperationalError("disk full")

    monkeypatch.setattr("legal_rag.graph.store.GraphWriter.episode", failing)
    with pytest.raises(sqlite3.OperationalError, match="disk full"):
        add_answer(library, "A", answer(2), READ)
    assert everything(library) == before


def test_removing_an_answer_that_gave_nothing_or_without_a_graph_says_so(library, tmp_path):
    assert not remove_answer(library.path, "'; --")
    assert not remove_answer(tmp_path, "A")


def test_answers_written_at_once_by_threads_lose_nothing(library):
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: add_answer(library, f"A{n}", answer(n), READ), range(12)))
    with sqlite3.connect(library.path / GRAPH) as connection:
        assert connection.execute(STANDING).fetchone() == (12,)
    graph = KnowledgeGraph(library)
    assert len(graph.episodes()) == 12
    assert graph.counts()["stated"] == 12
