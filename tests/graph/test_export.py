"""An exported graph is whole, says where each edge stands, escapes every name, and costs no memory."""

import io
import json
import tracemalloc
from contextlib import closing
from xml.etree import ElementTree

import networkx
import pytest
from support.graph_cases import with_answer
from support.html_pages import ATTACKS

from legal_rag.graph import ExtractedEntity, ExtractedRelationship, ExtractionResult, KnowledgeGraph
from legal_rag.graph.facts import GraphFact
from legal_rag.graph.graph import EXPORTS, export_graphml, export_json
from legal_rag.graph.names import Named
from legal_rag.graph.store import SUPPORTS, GraphWriter
from legal_rag.indexer import remove_documents

NS = "{http://graphml.graphdrawing.org/xmlns}"


def exported(graph, suffix, **settings):
    out = io.StringIO()
    EXPORTS[suffix](graph, out, **settings)
    return out.getvalue()


def elements(text, name):
    return list(ElementTree.fromstring(text).iter(f"{NS}{name}"))  # noqa: S314 - our own


def graphml_names(text):
    return [one.text for one in elements(text, "data") if one.get("key") == "node_name"]


def add_edges(path, count, name="Nœud"):
    """Add edges from the first document of a graph to nodes of their own."""
    with closing(GraphWriter(path)) as writer, writer.transaction():
        text, source = writer.connection.execute("SELECT text_key, source_key FROM sources LIMIT 1").fetchone()
        for number in range(count):
            ends = Named("doc:LYON", "decision", "LYON"), Named(f"term:{number}", "concept", f"{name} {number}")
            writer.edge(source, GraphFact(*ends, "related_to", 0, 1), text)


def test_json_holds_each_node_once_and_the_place_of_each_edge(graph):
    value = json.loads(exported(graph, "json"))
    assert (value["format"], value["version"], value["supports"]) == ("legal_rag.graph", 1, ["text"])
    keys = [one["key"] for one in value["nodes"]]
    assert len(keys) == len(set(keys))
    assert {end for edge in value["edges"] for end in (edge["source"], edge["target"])} <= set(keys)
    (edge,) = [one for one in value["edges"] if (one["source"], one["target"]) == ("doc:SOC-2019", "doc:SOC-2016")]
    text = graph.library.document(edge["doc_id"]).content
    assert text[edge["char_start"] : edge["char_end"]] == "15-12.345"
    assert (edge["type"], edge["support"], edge["confidence"]) == ("cites", "text", 1.0)


def test_json_holds_the_episodes_and_cited_decisions_of_the_library_by_whatever_name(graph):
    value = json.loads(exported(graph, "json"))
    (episode,) = value["episodes"]
    assert (episode["status"], episode["lessons"]) == ("success", ["Lire les visas."])
    assert (episode["nodes"], episode["answer_id"]) == (["doc:SOC-2019"], "a1")
    decisions = [one for one in value["nodes"] if "2016" in one["name"]]
    assert [(one["key"], one["doc_id"]) for one in decisions] == [("doc:SOC-2016", "SOC-2016")]


@pytest.mark.parametrize("suffix", EXPORTS)
def test_only_facts_are_exported_unless_more_is_asked_for(graph, suffix):
    counts = [EXPORTS[suffix](graph, io.StringIO(), SUPPORTS[:n]) for n in (1, 2, 3)]
    assert [one.edges for one in counts] == [13, 14, 15]
    assert [one.nodes for one in counts] == [10, 11, 12]
    assert "vigilance" not in exported(graph, suffix, supports=("text", "stated"))
    assert "vigilance" in exported(graph, suffix, supports=SUPPORTS)


def test_an_unknown_support_and_no_folder_to_write_into_are_refused(graph, tmp_path):
    with pytest.raises(ValueError, match=r"no support 'texte' \(expected some of text, stated, none\)"):
        export_json(graph, io.StringIO(), ("texte",))
    with pytest.raises(OSError, match=r"cannot write in .*none"):
        export_graphml(graph, tmp_path / "none" / "graph.graphml")


def test_edges_of_a_document_removed_since_are_not_exported(library, tmp_path):
    copy = with_answer(library, tmp_path)
    before = KnowledgeGraph(copy)
    path = copy.path / "graph.sqlite"
    kept = path.read_bytes()
    remove_documents(["CIV-2021"], tmp_path, copy.path.name)
    path.write_bytes(kept)  # as a kill would leave it
    value = json.loads(exported(KnowledgeGraph(copy.path), "json", supports=SUPPORTS))
    assert not [one for one in value["edges"] if one["source"] == "doc:CIV-2021"]
    assert "article:1240 code civil" not in {one["key"] for one in value["nodes"]}
    assert json.loads(exported(before, "json"))["edges"]


def test_graphml_is_read_by_networkx_and_equals_the_json(graph):
    value = json.loads(exported(graph, "json", supports=SUPPORTS))
    text = exported(graph, "graphml", supports=SUPPORTS)
    read = networkx.parse_graphml(text)
    assert {data["key"]: data["name"] for _, data in read.nodes(data=True)} == {
        one["key"]: one["name"] for one in value["nodes"]
    }
    keys = networkx.get_node_attributes(read, "key")
    edges = [(keys[a], keys[b], data["type"], data["char_start"]) for a, b, data in read.edges(data=True)]
    assert sorted(edges) == sorted((e["source"], e["target"], e["type"], e["char_start"]) for e in value["edges"])
    ids = [one.get("id") for one in elements(text, "node")]
    assert len(ids) == len(set(ids)) == len(value["nodes"])
    assert not [one for one in ids if not one.replace("_", "").replace(":", "").replace("-", "").isalnum()]


def test_a_hostile_name_stays_a_name(library, tmp_path):
    attacks = [*ATTACKS, "a\x00b\x0bc\ufffed", "l'\"guillemet\" & <x> ' \\", "\\u0027 OR \\' 1"]
    attacks = [attack.replace("\ud800", "") for attack in attacks]  # which no answer can hold
    entities = [ExtractedEntity(attack, "concept") for attack in attacks]
    edges = [ExtractedRelationship(attack, "SOC-2019", "related_to") for attack in attacks]
    graph = KnowledgeGraph(with_answer(library, tmp_path, ExtractionResult(entities, edges)))
    names = [one["name"] for one in json.loads(exported(graph, "json", supports=SUPPORTS))["nodes"]]
    hostile = set(names) - {node.name for node in graph.iter_nodes()}
    in_xml = graphml_names(exported(graph, "graphml", supports=SUPPORTS))
    assert len(in_xml) == len(names)
    assert len(hostile) > len(attacks) / 2
    for name in hostile:
        assert "".join(c if c.isprintable() or c in "\u202e\ufdd0\ufdd1" else "\ufffd" for c in name) in in_xml


@pytest.mark.parametrize("suffix", EXPORTS)
def test_a_failed_export_leaves_the_old_file(graph, tmp_path, monkeypatch, suffix):
    file = tmp_path / f"graph.{suffix}"
    EXPORTS[suffix](graph, file)
    whole = file.read_bytes()

    def broken(*_):
        yield from []
        raise OSError("no space left")

    monkeypatch.setattr(KnowledgeGraph, "iter_edges", broken)
    with pytest.raises(OSError, match="no space left"):
        EXPORTS[suffix](graph, file)
    assert file.read_bytes() == whole
    assert list(tmp_path.iterdir()) == [file]


def test_an_answer_recorded_meanwhile_is_not_half_in_the_file(graph, monkeypatch):
    nodes, told = KnowledgeGraph.iter_nodes, []

    def then_write(self, *arguments):
        yield from nodes(self, *arguments)
        with closing(GraphWriter(self.library.path / "graph.sqlite")) as writer:
            writer.connection.execute("PRAGMA busy_timeout = 50")
            with pytest.raises(Exception, match="locked"), writer.transaction():
                writer.connection.execute("DELETE FROM edges")
            told.append(True)

    monkeypatch.setattr(KnowledgeGraph, "iter_nodes", then_write)
    assert len(json.loads(exported(graph, "json"))["edges"]) == 13
    assert told == [True]


def test_memory_does_not_grow_with_the_graph(library, tmp_path):
    copy = with_answer(library, tmp_path)
    peaks = []
    for count in (600, 3000):
        add_edges(copy.path / "graph.sqlite", count)
        graph = KnowledgeGraph(copy)
        export_json(graph, tmp_path / "warm.json")
        tracemalloc.start()
        assert export_json(graph, tmp_path / "graph.json").nodes == 10 + count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 3 * peaks[0]  # other threads may allocate too


def test_the_same_graph_gives_the_same_bytes(graph, tmp_path):
    for suffix, export in EXPORTS.items():
        files = [tmp_path / f"{name}.{suffix}" for name in "ab"]
        assert len({export(graph, file) for file in files}) == 1
        assert files[0].read_bytes() == files[1].read_bytes()
    assert export_graphml(graph, io.StringIO()).nodes == 10
