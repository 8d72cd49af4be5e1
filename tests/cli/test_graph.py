"""The graph's commands: what they show is French, facts alone unless asked, and steers no terminal."""

import json
import re

import pytest
from support.graph_cases import ROWS, linked_library, with_answer

from legal_rag.cli import main
from legal_rag.graph import ExtractedEntity, ExtractedEpisode, ExtractedRelationship, ExtractionResult
from legal_rag.graph.types import EDGE_TYPES, REVERSED_EDGE_TYPES

STEERING = "\x1b[31mrouge\u202eeguor\x07"


@pytest.fixture(scope="module")
def library(tiny_encoder, tmp_path_factory):
    return linked_library(tmp_path_factory.mktemp("linked"), tiny_encoder)


@pytest.fixture(scope="module")
def place(library, tmp_path_factory):
    return place_of(with_answer(library, tmp_path_factory.mktemp("answered")))


def place_of(library):
    return ["--index-folder", str(library.path.parent), "--index-name", library.path.name]


def test_show_says_what_a_decision_cites_and_who_cites_it(said, place):
    out = said("graph", "show", "n° 15-12.345", *place)
    assert out.startswith("Cass. soc., 23 nov. 2016, n° 15-12.345\n")
    assert "Traitement : cité par 2 décisions." in out
    assert "est cité par (2) :" in out
    assert re.search(r"Cass\. soc\., 9 janv\. 2019, n° 17-11\.111 \[SOC-2019, \d+-\d+\]", out)


def test_show_gives_facts_alone_and_with_all_the_models_words_apart(said, place, tmp_path):
    plain, whole = (said("graph", "show", "SOC-2019", *more, *place) for more in ((), ("--all",)))
    assert "Selon le modèle" not in plain
    assert "Plan de vigilance" not in plain
    stated, unsupported = whole.split("Selon le modèle, sans appui dans les textes lus, non vérifié :")
    assert "Selon le modèle, non vérifié :" in stated
    assert "interprète Obligation de reclassement — selon le modèle (réponse a1" in stated
    assert "Plan de vigilance" not in stated
    assert "Plan de vigilance" in unsupported
    assert said("graph", "show", "SOC-2019", "--html", tmp_path / "a.html", *place) == ""
    assert "9\u00a0janv.\u00a02019" in (tmp_path / "a.html").read_text("utf-8")


def test_show_cuts_long_lists_of_links_and_json_keeps_facts_and_statements_apart(said, place, monkeypatch):
    monkeypatch.setattr("legal_rag.cli.search.MOST_LINES", 1)
    out = said("graph", "show", "article L. 1226-2 du code du travail", *place)
    assert "est appliqué par (2) :" in out
    assert out.count("\n  - ") == 2
    assert "… et 1 autre (--json les donne tous)" in out
    value = json.loads(said("graph", "show", "SOC-2019", "--all", "--json", *place))
    assert {one["support"] for one in value["edges"]} == {"text"}
    assert [one["support"] for one in value["stated"] + value["unsupported"]] == ["stated", "none"]
    assert value["node"]["doc_id"] == "SOC-2019"


def test_path_quotes_the_text_of_each_step_and_no_path_is_said_on_stderr(said, place, capfd, library, tmp_path):
    out = said("graph", "path", "LYON", "CIV-2021", *place)
    assert [line.split(" « ")[0].strip() for line in out.splitlines()[1:]][::2] == [
        "applique article L. 1226-2 du code du travail",
        "est cité par Cass. soc., 23 nov. 2016, n° 15-12.345",
        "est cité par Cass. 2e civ., 8 avr. 2021, n° 19-25.640",
    ]
    assert "[LYON, 35-44] « COUR D'APPEL DE LYON Vu l'article L. 1226-2 du code du travail" in out
    edges = json.loads(said("graph", "path", "LYON", "CIV-2021", "--json", *place))
    assert [one["type"] for one in edges] == ["applies", "cites", "cites"]
    only = ExtractionResult([ExtractedEntity("Obligation de reclassement", "concept")], [])
    place = place_of(with_answer(library, tmp_path, only))
    assert main(["graph", "path", "SOC-2019", "Obligation de reclassement", *place]) == 0
    out, err = capfd.readouterr()
    assert (out, err) == ("", "aucune suite de faits entre eux\n")


def test_most_cited_lists_by_how_many_documents_cite(said, place):
    lines = said("graph", "most-cited", *place).splitlines()
    assert [line.split(maxsplit=1) for line in lines] == [
        ["3", "article L. 1226-2 du code du travail"],
        ["1", "article 1240 du code civil"],
    ]
    (first,) = json.loads(said("graph", "most-cited", "--type", "decision", "--k", "1", "--json", *place))
    assert (first["doc_id"], first["cited"]) == ("SOC-2016", 2)


@pytest.mark.parametrize(("name", "begins"), [("g.json", "{"), ("g.GRAPHML", "<?xml")])
def test_export_takes_the_format_from_the_name(said, place, tmp_path, name, begins):
    assert said("graph", "export", tmp_path / name, *place) == f"10 nodes, 13 edges: {tmp_path / name}\n"
    assert (tmp_path / name).read_text("utf-8").startswith(begins)


def test_export_says_as_json_what_it_wrote(said, place, tmp_path):
    told = json.loads(said("graph", "export", tmp_path / "g.json", "--all", "--json", *place))
    assert told == {"file": str(tmp_path / "g.json"), "format": "json", "nodes": 12, "edges": 15, "episodes": 1}


def test_a_library_without_a_graph_says_how_to_make_it(refused, library, tmp_path):
    copy = with_answer(library, tmp_path)
    (copy.path / "graph.sqlite").unlink()
    for argv in (["show", "A"], ["path", "A", "B"], ["most-cited"], ["export", tmp_path / "g.json"]):
        assert "'legal-rag rebuild --only graph' makes it" in refused("graph", *argv, *place_of(copy))


def test_what_cannot_be_shown_or_written_is_one_line(refused, library, place, tmp_path):
    assert "no format for" in refused("graph", "export", tmp_path / "g.csv", *place)
    assert "no folder" in refused("graph", "export", tmp_path / "none" / "g.json", *place)
    told = refused("graph", "show", "article 1241 du code civil", *place)
    assert "no node 'article 1241 du code civil'" in told
    assert "near: article 1240 du code civil" in told
    copy = with_answer(library, tmp_path)
    (copy.path / "graph.sqlite").write_bytes(b"not a database" * 100)
    assert "graph.sqlite: not what was written" in refused("graph", "most-cited", *place_of(copy))


def test_names_and_titles_steer_no_terminal(library, tiny_encoder, tmp_path, capfd):
    said_so = ExtractionResult(
        [ExtractedEntity(f"Notion {STEERING}", "concept", 0.9, STEERING)],
        [ExtractedRelationship(f"Notion {STEERING}", "SOC-2019", "related_to")],
        [ExtractedEpisode(STEERING, STEERING, "success", (STEERING,), ("SOC-2019",))],
    )
    place = place_of(with_answer(library, tmp_path, said_so))
    assert main(["graph", "show", "SOC-2019", "--all", *place]) == 0
    assert main(["graph", "show", "Notion", *place]) == 1
    assert main(["graph", "show", f"Notion {STEERING} x", *place]) == 1
    rows = [{**ROWS[1], "title": f"Décision {STEERING}", "juridiction": "", "number": ""}, ROWS[3]]
    place = place_of(linked_library(tmp_path / "titles", tiny_encoder, rows))
    assert main(["graph", "show", "SOC-2016", *place]) == 0
    written = "".join(capfd.readouterr())
    assert "rouge" in written
    assert not re.findall("[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e]", written)


def test_each_type_of_link_can_be_read_from_both_ends():
    assert EDGE_TYPES.keys() == REVERSED_EDGE_TYPES.keys()
