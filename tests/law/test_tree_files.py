"""Outlines as JSON: what is written is read back, what is no outline of a text is refused."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legal_rag.law import build_tree
from legal_rag.law.tree import MOST_LEVELS, file_name, tree_from_json, tree_to_json, walk, with_summaries

LINES = (
    "MOTIFS",
    "PAR CES MOTIFS :",
    "Sur le moyen unique :",
    "1. Un point.",
    "Article 2 - Durée",
    "# Titre",
    "Un mot.",
)


def section(start, end, *nodes, **values):
    return {"title": "Un titre", "start": start, "end": end, "nodes": list(nodes), **values}


def tree(*sections, **values):
    return {"doc_name": "D1", "structure": list(sections), **values}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(LINES), st.text(max_size=60)), max_size=12).map("\n".join))
def test_every_outline_made_by_rules_is_read_back_as_it_was(text):
    outline = with_summaries(build_tree(text), lambda node: f"Résumé de {node.node_id}.")
    written = json.loads(json.dumps(tree_to_json(outline, "D1", outline.summary)))
    assert tree_from_json(written, len(text)) == ("D1", outline.summary, outline)


def test_the_outlines_of_the_sample_are_read_back_as_they_were(sample_rows):
    for row in sample_rows:
        outline = build_tree(row["content"])
        assert tree_from_json(tree_to_json(outline, row["id"]), len(row["content"])) == (row["id"], "", outline)


def test_sections_have_the_places_of_page_index_and_their_texts_on_request(sample_rows):
    content = sample_rows[0]["content"]
    outline = build_tree(content)
    bare, full = tree_to_json(outline, "D1"), tree_to_json(outline, "D1", content=content)
    sections = full["structure"]
    assert sections
    assert "text" not in bare["structure"][0]
    while sections:
        one = sections.pop()
        assert one["text"] == content[one["start_index"] : one["end_index"]]
        assert (one["start_index"], one["end_index"]) == (one["start"], one["end"])
        sections += one["nodes"]


def test_a_section_needs_a_title_and_a_span_alone_and_text_between_two_belongs_to_the_first():
    given_ = tree({"title": "A", "start_index": 2, "end_index": 10}, {"title": "B", "start": 10, "end": 30})
    read = tree_from_json(given_, 30).tree
    assert [(one.node_id, one.title, one.level, one.char_start, one.char_end, one.kind) for one in walk(read)] == [
        ("0000", "", 0, 0, 30, "document"),
        ("0001", "A", 1, 2, 10, "heading"),
        ("0002", "B", 1, 10, 30, "heading"),
    ]
    read = tree_from_json(tree(section(2, 10, section(3, 5), section(7, 8)), section(15, 20)), 30).tree
    spans = [(one.node_id, one.char_start, one.char_end) for one in walk(read)]
    assert spans == [("0000", 0, 30), ("0001", 2, 15), ("0002", 3, 7), ("0003", 7, 15), ("0004", 15, 30)]


def test_titles_and_summaries_are_put_on_one_line_of_storable_text():
    read = tree_from_json(tree(section(0, 9, title="Sur \n le\ud800 moyen", summary="a\n\nb")), 9).tree
    assert (read.children[0].title, read.children[0].summary) == ("Sur le\ufffd moyen", "a b")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([], "not a tree"),
        ({"doc_name": "D1", "structure": {}}, "not a tree"),
        ({"structure": []}, "the tree: 'doc_name' is None"),
        (tree(doc_description=3), "'doc_description' is 3"),
        (tree("Motifs"), "section 1 is not an object: 'Motifs'"),
        (tree(section(0, 10), section(8, 30)), "'0001' ends at 10, and the next starts at 8 .*no overlap"),
        (tree(section(10, 20), section(0, 10)), "'0001' ends at 20, and the next starts at 0 .*no overlap"),
        (tree(section(0, 31)), r"section '0001': end is 31 \(expected 0 to 30\)"),
        (tree(section(20, 10), section(10, 30)), r"end is 10 \(expected 20 to 30\)"),
        (tree(section(-1, 30)), "start is -1"),
        (tree(section(True, 30)), "start is True"),
        (tree(section(0.0, 30)), "start is 0.0"),
        (tree({"title": "A", "end": 30}), "start is None"),
        (tree(section(0, 30, heading_end=31)), r"heading_end is 31 \(expected 0 to 30\)"),
        (tree(section(0, 30, section(0, 30), heading_end=5)), r"section '0002': start is 0 \(expected 5 to 30\)"),
        (tree(section(0, 20, section(0, 25)), section(20, 30)), r"section '0002': end is 25 \(expected 0 to 20\)"),
        (tree(section(0, 9), section(9.5, 30)), "section '0002': start is 9.5"),
        (tree(section(0, 9, node_id="7"), section(9, 30, node_id="7")), "node_id '7' comes twice"),
        (tree(section(0, 30, section(0, 30, node_id="a"), node_id="a")), "node_id 'a' comes twice"),
        (tree(section(0, 30, node_id="0000")), "node_id '0000' comes twice, or is the document's own"),
        (tree(section(0, 30, node_id=3)), "section 1: invalid node_id 3"),
        (tree(section(0, 30, node_id="../x")), "invalid node_id '../x'"),
        (tree(section(0, 30, kind="document")), "unknown kind 'document'.*heading.*ruling"),
        (tree(section(0, 30, kind=["part"])), "unknown kind"),
        (tree(section(0, 30, title=None)), "'title' is None"),
        (tree(section(0, 30, title="a" * 2000)), "'title' is 'aaa.* at most 1000 characters"),
        (tree(section(0, 30, summary=["a"])), "'summary' is "),
        (tree({"title": "A", "start": 0, "end": 30, "nodes": {}}), "'nodes' is not a list"),
    ],
)
def test_what_is_no_outline_of_the_text_is_refused(value, reason):
    with pytest.raises(ValueError, match=reason) as told:
        tree_from_json(value, 30)
    assert len(str(told.value)) < 300


def test_a_tree_that_holds_itself_or_too_many_sections_is_refused(monkeypatch):
    loop = section(0, 30)
    loop["nodes"].append(loop)
    with pytest.raises(ValueError, match=f"nested more than {MOST_LEVELS} deep"):
        tree_from_json(tree(loop), 30)
    monkeypatch.setattr("legal_rag.law.tree.MOST_NODES", 3)
    with pytest.raises(ValueError, match="more than 3 sections"):
        tree_from_json(tree(*(section(n, n + 1) for n in range(4))), 4)


@pytest.mark.parametrize(
    ("doc_id", "name"),
    [
        ("JURITEXT000007022836", "JURITEXT000007022836_tree.json"),
        ("bail.txt", "bail.txt_tree.json"),
        ("2021-817 DC", "2021-817 DC_tree.json"),
        ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd_tree.json"),
        ("C:\\x", "C%3A%5Cx_tree.json"),
        ("..", "%2E._tree.json"),
        ("a\0b", "a%00b_tree.json"),
    ],
)
def test_a_file_is_named_by_its_document_and_stays_in_its_folder(doc_id, name):
    assert file_name(doc_id) == name


def test_long_ids_give_names_that_a_file_system_takes_and_differ():
    names = {file_name("é" * 500 + end) for end in "abc"}
    assert len(names) == 3
    assert all(len(name) < 255 and name.isascii() and "/" not in name for name in names)
