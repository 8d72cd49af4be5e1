"""Decisions on an article by its versions: the one that a decision dates, else that of its own day."""

import json

import pytest
from support.graph_cases import linked_library

from legal_rag.cli import main
from legal_rag.graph import KnowledgeGraph
from legal_rag.graph.applications import applications

ARTICLE = "l'article L. 1233-4 du code du travail"
VERSIONS = [("LEGIARTI1", "2008-05-01", "2015-08-08"), ("LEGIARTI2", "2015-08-08", "2017-09-24"),
            ("LEGIARTI3", "2017-09-24", "")]  # fmt: skip


def version(doc_id, first, until):
    days = {"valid_from": first, **({"valid_until": until} if until else {})}
    text = f"Le licenciement pour motif économique ({doc_id})."
    return {"id": doc_id, "title": "Code du travail, article L1233-4", "content": text, **days}


def decision(doc_id, day, words):
    content = f"COUR DE CASSATION\n\n{words}\n\nPAR CES MOTIFS, REJETTE le pourvoi."
    court = {"juridiction": "Cour de cassation", "formation": "Chambre sociale", "solution": "Rejet"}
    return {"id": doc_id, "title": "", "decision_date": day, "content": content, **court}


DECISIONS = [
    decision("OWN-DAY", "2016-03-01", f"Vu {ARTICLE} ;"),
    decision("LAST-DAY", "2017-09-23", f"Vu {ARTICLE} ;"),
    decision("FIRST-DAY", "2017-09-24", f"La cour applique {ARTICLE}."),
    decision("ACT", "2019-05-01", f"Vu {ARTICLE}, dans sa rédaction issue de la loi n° 2015-990 du 6 août 2015 ;"),
    decision(
        "BEFORE", "2019-05-02", f"Vu {ARTICLE}, dans sa rédaction antérieure à la loi n° 2015-990 du 6 août 2015 ;"
    ),
    decision("DATED", "2020-01-08", f"Vu {ARTICLE}, dans sa rédaction applicable au 1er janvier 2016 ;"),
    decision("UNDATED", "2020-01-09", f"Vu {ARTICLE}, dans sa rédaction applicable au litige ;"),
    decision("TOO-EARLY", "2001-01-09", f"Vu {ARTICLE} ;"),
    decision("NO-DAY", "inconnue", f"Vu {ARTICLE} ;"),
    decision("OTHER", "2020-01-09", "Vu l'article L. 1235-3 du code du travail ;"),
]


@pytest.fixture(scope="module")
def library(tiny_encoder, tmp_path_factory):
    rows = [*(version(*one) for one in VERSIONS), *DECISIONS]
    return linked_library(tmp_path_factory.mktemp("versions"), tiny_encoder, rows)


@pytest.fixture(scope="module")
def place(library):
    return ["--index-folder", str(library.path.parent), "--index-name", library.path.name]


def test_a_decision_is_on_the_version_that_it_dates_or_that_of_its_day(library):
    versions, found = applications(KnowledgeGraph(library), "C. trav., L. 1233-4")
    assert [one.doc_id for one in versions] == ["LEGIARTI1", "LEGIARTI2", "LEGIARTI3"]
    assert {one.edge.source.doc_id: (one.doc_id, one.rule) for one in found} == {
        "OWN-DAY": ("LEGIARTI2", "decision"),
        "LAST-DAY": ("LEGIARTI2", "decision"),
        "FIRST-DAY": ("LEGIARTI3", "decision"),
        "ACT": ("LEGIARTI2", "act"),
        "BEFORE": ("LEGIARTI1", "day"),
        "DATED": ("LEGIARTI2", "day"),
        "UNDATED": ("LEGIARTI3", "undated"),
        "TOO-EARLY": ("", "none"),
        "NO-DAY": ("", "none"),
    }


@pytest.mark.parametrize("name", ["LEGIARTI2", "article L. 1233-4 du code du travail"])
def test_a_version_names_the_article_with_all_its_versions(library, name):
    assert len(applications(KnowledgeGraph(library), name)[0]) == 3


def test_show_at_a_day_lists_the_decisions_on_its_version_and_by_which_rule(said, place):
    out = said("graph", "show", "C. trav., L. 1233-4", "--at", "2016-06-01", *place)
    assert "Version en vigueur le 1er juin 2016 : LEGIARTI2" in out
    assert "; 4 décisions." in out
    assert out.count("\n  - est appliqué par ") == 4
    assert "(« dans sa rédaction issue de la loi n° 2015-990 du 6 août 2015 »)" in out
    assert out.count("Autre version : ") == 2
    assert "au jour retenu pour 2 décisions" in out
    value = json.loads(said("graph", "show", "C. trav., L. 1233-4", "--at", "1er juin 2016", "--json", *place))
    assert (value["version"], [one["decisions"] for one in value["versions"]]) == ("LEGIARTI2", [1, 4, 2])
    assert len(value["decisions"]) == 9


def test_a_day_before_all_versions_has_none(said, place):
    assert "Aucune version en vigueur le 1er mai 1990." in said(
        "graph", "show", "C. trav., L. 1233-4", "--at", "1990-05-01", *place
    )


@pytest.mark.parametrize(
    ("name", "at", "more", "message"),
    [
        ("C. trav., L. 1235-3", "2019-06-01", [], "no versions of 'article L. 1235-3 du code du travail'"),
        ("OWN-DAY", "2019-06-01", [], "no versions of "),
        ("C. trav., L. 1233-4", "en 2019", [], "--at is no day: 'en 2019' (expected e.g. '2023-11-08'"),
        ("C. trav., L. 1233-4", "2019-06-01", ["--html", "a.html"], "--at and --html exclude each other"),
    ],
)
def test_what_has_no_version_of_that_day_is_one_line(capsys, place, name, at, more, message):
    assert main(["graph", "show", name, "--at", at, *more, *place]) == 1
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1


def test_an_article_in_versions_that_nothing_cites_is_one_node(tiny_encoder, tmp_path):
    rows = [*(version(*one) for one in VERSIONS), DECISIONS[-1]]
    node = KnowledgeGraph(linked_library(tmp_path, tiny_encoder, rows)).find("C. trav., L. 1233-4")
    assert (node.key, node.type, node.cited) == ("article:L1233-4 code du travail", "article", 0)


def test_the_versions_of_an_article_of_a_law_are_not_those_of_another_law(tmp_path, tiny_encoder):
    laws = ["Loi n° 65-557 du 10 juillet 1965 fixant le statut", "Loi n° 89-462 du 6 juillet 1989 tendant à améliorer"]
    rows = [
        {"id": f"LEGIARTI{number}", "title": f"{law}, article 22", "content": f"Le texte de {law}.", "number": "22",
         "text_title": law, "valid_from": "1990-01-01"}
        for number, law in enumerate(laws)
    ]  # fmt: skip
    graph = KnowledgeGraph(linked_library(tmp_path, tiny_encoder, rows))
    for name in ("article 22 de la loi n° 89-462", "art. 22, loi du 6 juillet 1989", "LEGIARTI1"):
        assert [one.doc_id for one in applications(graph, name)[0]] == ["LEGIARTI1"]
