"""A law known by its number and its day is one law: decisions that cite it by either are found together."""

import pytest
from support.small_graphs import library_of

from legal_rag.extraction import ExtractionSettings
from legal_rag.extraction.schemas import RULES
from legal_rag.graph import KnowledgeGraph
from legal_rag.graph.applications import applications
from legal_rag.graph.facts import laws_named
from legal_rag.graph.names import dated_laws, key_of_term, term_of_key
from legal_rag.indexer import IndexConfig, add_documents
from legal_rag.indexer.build import plan_rebuild, rebuild
from legal_rag.library import Library

LEASES = "Loi n° 89-462 du 6 juillet 1989 tendant à améliorer les rapports locatifs"


def decision(doc_id, words, day="2016-01-02"):
    court = {"juridiction": "Cour de cassation", "formation": "Troisième chambre civile", "solution": "Rejet"}
    content = f"COUR DE CASSATION\n\n{words}\n\nPAR CES MOTIFS, REJETTE le pourvoi."
    return {"id": doc_id, "title": "", "decision_date": day, "content": content, **court}


def version(doc_id, **days):
    title = "Loi n° 89-462 du 6 juillet 1989, article 22"
    return {"id": doc_id, "title": title, "content": f"Le dépôt de garantie ({doc_id}).", "number": "22",
            "text_title": LEASES, "article_id": "LEGIARTI1", **days}  # fmt: skip


BY_NUMBER = decision("NUMBER", "Vu l'article 22 de la loi n° 89-462 du 6 juillet 1989 ;")
BY_DAY = decision("DAY", "Vu l'article 22 de la loi du 6 juillet 1989 ;", "2010-01-01")
ROWS = [
    BY_NUMBER, BY_DAY,
    decision("LAW", "La loi du 6 juillet 1989 est d'ordre public."),
    decision("FIRST", "Vu l'article 3 de la loi n° 95-62 du 19 janvier 1995 ;"),
    decision("SECOND", "Vu l'article 3 de la loi n° 95-65 du 19 janvier 1995 ;"),
    decision("EITHER", "Vu l'article 3 de la loi du 19 janvier 1995 ;"),
    decision("UNNUMBERED", "Vu l'article 29 de la loi du 29 juillet 1881 ;"),
    decision("RIGHT-1", "La loi n° 85-677 du 5 juillet 1985 s'applique."),
    decision("RIGHT-2", "La loi n° 85-677 du 5 juillet 1985 s'applique."),
    decision("SLIP", "La loi n° 85-677 du 15 juillet 1985 s'applique."),
    decision("OF-SLIP", "La loi du 15 juillet 1985 s'applique."),
    decision("OTHER-YEAR", "La loi n° 78-17 du 6 janvier 1987 s'applique."),
    decision("OF-OTHER-YEAR", "La loi du 6 janvier 1987 s'applique."),
]  # fmt: skip


@pytest.fixture(scope="module")
def graph(tiny_encoder, tmp_path_factory):
    return KnowledgeGraph(library_of(tmp_path_factory.mktemp("laws"), ROWS, tiny_encoder))


def citing(graph, name):
    return {edge.source.doc_id for edge in graph.citing(name)}


@pytest.mark.parametrize(
    ("names", "key", "doc_ids"),
    [
        (["article 22 de la loi n° 89-462 du 6 juillet 1989", "article 22 de la loi n° 89-462",
          "article 22 de la loi du 6 juillet 1989"], "article:22 loi 89-462", {"NUMBER", "DAY"}),
        (["loi n° 89-462", "loi du 6 juillet 1989"], "statute:loi 89-462", {"NUMBER", "DAY", "LAW"}),
        (["article 3 de la loi du 19 janvier 1995"], "article:3 loi 1995-01-19", {"EITHER"}),
        (["article 3 de la loi n° 95-65 du 19 janvier 1995"], "article:3 loi 95-65", {"SECOND"}),
        (["article 29 de la loi du 29 juillet 1881"], "article:29 loi 1881-07-29", {"UNNUMBERED"}),
        (["loi du 5 juillet 1985"], "statute:loi 85-677", {"RIGHT-1", "RIGHT-2", "SLIP"}),
        (["loi du 15 juillet 1985"], "statute:loi 1985-07-15", {"OF-SLIP"}),
        (["loi du 6 janvier 1987"], "statute:loi 1987-01-06", {"OF-OTHER-YEAR"}),
    ],
)  # fmt: skip
def test_a_law_is_one_by_number_and_day_where_texts_say_so_of_one_law_only(graph, names, key, doc_ids):
    for name in names:
        node = graph.find(name)
        assert (node.key, node.cited, citing(graph, name)) == (key, len(doc_ids), doc_ids)


def test_a_joined_law_is_one_node_of_lists_paths_and_exports(graph):
    keys = [node.key for node in graph.iter_nodes()]
    assert keys.count("article:22 loi 89-462") == 1
    assert "article:22 loi 1989-07-06" not in keys
    assert {edge.target.key for edge in graph.iter_edges()} <= set(keys)
    assert [(node.key, node.cited) for node in graph.most_cited("article", 1)] == [("article:22 loi 89-462", 2)]
    assert len(graph.path("DAY", "NUMBER")) == 2


def test_a_second_law_of_a_day_parts_what_its_day_named(tmp_path, tiny_encoder):
    library = library_of(tmp_path, ROWS[:2], tiny_encoder)
    assert citing(KnowledgeGraph(library), "article 22 de la loi du 6 juillet 1989") == {"NUMBER", "DAY"}
    second = decision("OTHER", "Vu la loi n° 89-469 du 6 juillet 1989 ;")
    add_documents(IndexConfig(source=[second], n_bits=0, index_folder=str(tmp_path)), tiny_encoder)
    library, rules = Library.open(tmp_path), ExtractionSettings(model_id=RULES)
    rebuild(library, plan_rebuild(library, ["entities", "graph"], rules), rules)
    assert citing(KnowledgeGraph(library), "article 22 de la loi du 6 juillet 1989") == {"DAY"}


@pytest.mark.parametrize("name", ["article 22 de la loi du 6 juillet 1989", "article 22 de la loi n° 89-462", "OLD"])
def test_the_decisions_on_a_law_s_article_are_those_that_name_it_by_number_or_by_day(tmp_path, tiny_encoder, name):
    versions = [
        version("OLD", valid_from="1989-07-08", valid_until="2014-03-27"),
        version("NEW", valid_from="2014-03-27"),
    ]
    graph = KnowledgeGraph(library_of(tmp_path, [BY_NUMBER, BY_DAY, *versions], tiny_encoder))
    known, found = applications(graph, name)
    assert [one.doc_id for one in known] == ["OLD", "NEW"]
    assert {one.edge.source.doc_id: one.doc_id for one in found} == {"DAY": "OLD", "NUMBER": "NEW"}


def test_the_only_version_of_a_law_s_article_is_its_node(tmp_path, tiny_encoder):
    rows = [BY_DAY, decision("PLAIN", "L'article 22 de la loi n° 89-462 s'applique."), version("ONLY")]
    graph = KnowledgeGraph(library_of(tmp_path, rows, tiny_encoder))
    for name in ("ONLY", "article 22 de la loi du 6 juillet 1989", "article 22 de la loi n° 89-462"):
        assert (graph.find(name).key, graph.find(name).cited, citing(graph, name)) == ("doc:ONLY", 2, {"DAY", "PLAIN"})


def test_a_day_is_a_law_s_where_a_name_has_both_and_the_number_is_of_that_year():
    assert dated_laws(["loi n° 89-462 du 6 juillet 1989", "décret n° 67-223 du 17 mars 1967", "loi du 5 juillet 1985",
                       "loi n° 2018-217 du 29 mars 2017", "loi organique n° 2001-692 du 1er août 2001"]) == {
        ("loi 1989-07-06", "loi 89-462"), ("loi 2001-08-01", "loi 2001-692")}  # fmt: skip


def test_the_title_of_a_text_names_its_law():
    from legal_rag.corpus import Document

    article = Document(id="A", content="Le bail.", title="Article 22", extra={"text_title": LEASES})
    assert laws_named(article) == {("loi 1989-07-06", "loi 89-462")}


@pytest.mark.parametrize(
    ("term", "key"),
    [
        ("article:22 loi n° 89-462", "article:22 loi 89-462"),
        ("article:3-1 décret n° 67-223", "article:3-1 decret 67-223"),
        ("article:29 loi n° ? du 1881-07-29", "article:29 loi 1881-07-29"),
        ("article:2 décret-loi n° ? du 1935-10-30", "article:2 decret loi 1935-10-30"),
        ("article:L1233-4 code du travail", "article:L1233-4 code du travail"),
        ("pourvoi:1712345", "pourvoi:1712345"),
    ],
)
def test_the_keys_of_a_library_and_of_a_graph_are_turned_into_one_another(term, key):
    assert (key_of_term(term), term_of_key(key)) == (key, term)
