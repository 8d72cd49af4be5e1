"""Outlines exported as files and read back; their summaries by a model, paid once."""

import json
import shutil
import sqlite3
import threading
from contextlib import closing

import pytest
from support.scripted_server import Reply, ScriptedServer

from legal_rag.cli import main
from legal_rag.indexer import IndexConfig, add_documents, build_index, compact_index, examine, open_index
from legal_rag.indexer.trees import check_trees, export_trees, import_trees, plan_summaries, summarise_trees
from legal_rag.law.tree import walk
from legal_rag.library import Library
from legal_rag.library.outlines import OUTLINES, whole_outline_of

SUMMARY = "Le juge a rejeté la demande du requérant pour ce motif"


class Author:
    """A model that summarises what it reads; what it says of a prompt may be an error."""

    name = "author-1"

    def __init__(self, say=lambda prompt: f"{SUMMARY} (lu en {len(prompt)} signes)."):
        self.asked, self._say, self._lock = [], say, threading.Lock()

    def query(self, prompt):
        with self._lock:
            self.asked.append(prompt)
        return self._say(prompt)


def failing(word):
    def say(prompt):
        if word in prompt:
            raise TimeoutError("the server hangs")
        return f"{SUMMARY}."

    return say


@pytest.fixture(scope="module")
def rows(sample_rows):
    """Return five decisions, of which the last has an official summary."""
    return [{**row, "summary": ""} for row in sample_rows[:4]] + [{**sample_rows[4], "summary": "Résumé officiel."}]


@pytest.fixture(scope="module")
def built(index_of, rows):
    return index_of(rows, n_bits=0).path


@pytest.fixture
def library(built, tmp_path):
    return Library(shutil.copytree(built, tmp_path / "indexes" / built.name))


@pytest.fixture
def place(library):
    return ("--index-folder", library.path.parent)


def outlines(library):
    return {one.id: whole_outline_of(library, one.id) for one in library.documents()}


def written(library):
    return [node.summary for outline in outlines(library).values() for node in walk(outline.tree) if node.summary]


def edit(folder, change):
    """Change the first tree file of a folder, and return its path."""
    path = sorted(folder.glob("*_tree.json"))[0]
    value = json.loads(path.read_text("utf-8"))
    change(value)
    path.write_text(json.dumps(value), "utf-8")
    return path


def test_outlines_are_exported_with_summaries_and_a_description(library, tmp_path):
    assert export_trees(library, tmp_path / "trees") == 5
    for document in library.documents():
        value = json.loads((tmp_path / "trees" / f"{document.id}_tree.json").read_text("utf-8"))
        assert list(value) == ["doc_name", "doc_description", "structure"]
        assert value["doc_name"] == document.id
        assert value["doc_description"] == document.summary or value["doc_description"]
        (first, *_), last = value["structure"], value["structure"][-1]
        assert {"title", "node_id", "kind", "summary", "start", "end", "nodes"} <= set(first)
        assert first["node_id"] == "0001"
        assert last["end"] == len(document.content)
        assert all(one["summary"] for one in value["structure"])


def test_what_was_exported_and_not_changed_changes_nothing(library, tmp_path):
    before = outlines(library)
    export_trees(library, tmp_path / "trees")
    assert import_trees(library, tmp_path / "trees") == 5
    assert outlines(library) == before
    assert plan_summaries(library).documents == 5


def test_a_changed_tree_is_stored_and_outlives_rebuild_addition_and_compaction(
    library, tmp_path, tiny_encoder, sample_rows
):
    def change(value):
        value["doc_description"] = "Une affaire d'élection."
        value["structure"][0] |= {"title": "L'en-tête", "summary": "Qui juge."}

    export_trees(library, tmp_path / "trees")
    doc_id = edit(tmp_path / "trees", change).name.removesuffix("_tree.json")
    speakers = whole_outline_of(library, doc_id).passages
    import_trees(library, tmp_path / "trees")
    changed = whole_outline_of(library, doc_id)
    first = changed.tree.children[0]
    assert (changed.description, changed.made_by) == ("Une affaire d'élection.", "imported")
    assert (first.title, first.summary, changed.passages) == ("L'en-tête", "Qui juge.", speakers)
    assert main(["rebuild", "--only", "trees", "--force", "--index-folder", str(library.path.parent)]) == 0
    config = IndexConfig(source=[sample_rows[9]], n_bits=0, index_folder=str(library.path.parent))
    add_documents(config, tiny_encoder)
    compact_index(str(library.path.parent))
    assert whole_outline_of(open_index(config), doc_id) == changed
    assert examine(open_index(config)) == []


def test_a_new_build_takes_over_imported_trees_of_unchanged_texts(library, tmp_path, rows, tiny_encoder):
    export_trees(library, tmp_path / "trees", [rows[0]["id"]])
    edit(tmp_path / "trees", lambda value: value["structure"][0].update(title="X"))
    import_trees(library, tmp_path / "trees")
    config = IndexConfig(source=rows[:2], n_bits=0, corpus_index=False, index_folder=str(library.path.parent))
    build_index(config, tiny_encoder)
    assert [outline.tree.children[0].title == "X" for outline in outlines(open_index(config)).values()] == [True, False]


def test_other_rules_renew_who_speaks_and_keep_the_trees_that_were_imported(library, tmp_path, place):
    export_trees(library, tmp_path / "trees")
    edit(tmp_path / "trees", lambda value: value["structure"][0].update(title="X"))
    import_trees(library, tmp_path / "trees")
    before = outlines(library)
    with closing(sqlite3.connect(library.path / OUTLINES)) as connection, connection:
        connection.execute("UPDATE outlines SET rules = 0")
        connection.execute("DELETE FROM passages")
    assert main(["rebuild", "--only", "trees", *map(str, place)]) == 0
    assert outlines(library) == before


@pytest.mark.parametrize(
    ("change", "error", "reason"),
    [
        (lambda value: value["structure"][0].update(end=10**6), ValueError, "section '0001': end is 1000000"),
        (lambda value: value["structure"].append(value["structure"][-1]), ValueError, "expected no overlap"),
        (lambda value: value.update(doc_name="D404"), LookupError, "D404"),
        (lambda value: value.pop("doc_name"), ValueError, "'doc_name' is None"),
        (lambda value: value.pop("structure"), ValueError, "not a tree"),
    ],
)
def test_a_wrong_tree_is_named_and_no_tree_of_the_folder_is_stored(library, tmp_path, change, error, reason):
    before = outlines(library)
    export_trees(library, tmp_path / "trees")
    for path in sorted((tmp_path / "trees").iterdir())[1:]:
        path.write_text(path.read_text("utf-8").replace('"title": "', '"title": "Autre '), "utf-8")
    wrong = edit(tmp_path / "trees", change)
    with pytest.raises(error, match=rf"{wrong.name}: .*{reason}"):
        import_trees(library, tmp_path / "trees")
    assert outlines(library) == before


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "[]", '"\\ud800"', "9" * 5000, b"\xff\xfe"])
def test_a_file_that_is_no_tree_is_named(library, tmp_path, text):
    (tmp_path / "a_tree.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=r"^a_tree\.json: "):
        import_trees(library, tmp_path)


def test_folders_that_cannot_be_read_from_or_written_to_are_refused(library, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file that ends in _tree\.json"):
        check_trees(library, tmp_path)
    with pytest.raises(LookupError, match="D404"):
        export_trees(library, tmp_path / "trees", ["D404"])
    assert not (tmp_path / "trees").exists()
    export_trees(library, tmp_path / "trees")
    with pytest.raises(ValueError, match="will not overwrite"):
        export_trees(library, tmp_path / "trees")
    path = edit(tmp_path / "trees", lambda value: None)
    shutil.copy(path, path.with_name("z_tree.json"))
    with pytest.raises(ValueError, match=rf"z_tree\.json: document .* is also that of {path.name}"):
        check_trees(library, tmp_path / "trees")


def test_a_model_summarises_long_sections_once_and_is_not_asked_again(library):
    plan, author = plan_summaries(library), Author()
    report = summarise_trees(library, author)
    assert report == (5, 0)
    assert plan.requests == len(author.asked) == len(set(author.asked))
    assert plan.characters < sum(map(len, author.asked)) < plan.characters + 1000 * plan.requests
    assert written(library)
    assert all(summary.startswith(SUMMARY) for summary in written(library))
    assert all(outline.made_by == "author-1" for outline in outlines(library).values())
    again = Author()
    assert summarise_trees(library, again) == (0, 0)
    assert (again.asked, plan_summaries(library)) == ([], (0, 0, 0))


def test_the_official_summary_stays_the_description_and_is_not_asked_for(library, tmp_path, sample_rows):
    summarise_trees(library, Author())
    official = sample_rows[4]["id"]
    described = {doc_id: one.description for doc_id, one in outlines(library).items()}
    assert described.pop(official) == ""
    assert all(one.startswith(SUMMARY) for one in described.values())
    export_trees(library, tmp_path / "trees", [official])
    (path,) = (tmp_path / "trees").iterdir()
    assert json.loads(path.read_text("utf-8"))["doc_description"] == "Résumé officiel."


def test_summaries_outlive_force_and_an_export_made_before_them(library, tmp_path):
    export_trees(library, tmp_path / "before")
    summarise_trees(library, Author())
    after = written(library)
    assert main(["rebuild", "--only", "trees", "--force", "--index-folder", str(library.path.parent)]) == 0
    assert written(library) == after
    import_trees(library, tmp_path / "before")
    assert written(library) == after
    export_trees(library, tmp_path / "after")
    import_trees(library, tmp_path / "after")
    assert written(library) == after


def test_replies_that_are_no_summary_are_not_stored_and_only_sections_that_failed_asked_for_again(library):
    assert summarise_trees(library, Author(lambda prompt: "No."))[0] == 0
    assert written(library) == []
    section = "Section : Décide"
    author = Author(failing(section))
    documents, lacking = summarise_trees(library, author)
    failed = [prompt for prompt in author.asked if section in prompt]
    assert (documents, lacking) == (5, len(failed))
    assert lacking
    again = Author()
    assert summarise_trees(library, again) == (lacking, 0)
    assert sorted(again.asked) == sorted(failed)


def test_a_model_that_fails_on_and_on_is_given_up_and_what_it_wrote_is_kept(library, monkeypatch):
    monkeypatch.setattr("legal_rag.indexer.trees.AT_ONCE", 1)
    n_all, first = plan_summaries(library).requests, next(library.documents())

    def say(prompt):
        if f"Document : {first.title}" in prompt:
            return f"{SUMMARY}."
        raise ConnectionRefusedError("nobody listens")

    author, again = Author(say), Author()
    with pytest.raises(ConnectionError, match="the model failed too often: nobody listens .*are kept"):
        summarise_trees(library, author)
    n_written = len(author.asked) - 5
    assert n_written == len(written(library)) > 0
    summarise_trees(library, again)
    assert len(again.asked) == n_all - n_written


def test_a_library_without_outlines_gets_those_of_all_documents_too(library, tmp_path, rows):
    export_trees(library, tmp_path / "trees", [rows[0]["id"]])
    (library.path / OUTLINES).unlink()
    assert import_trees(Library(library.path), tmp_path / "trees") == 1
    assert all(library.stored_outline(one) for one in Library(library.path).documents())
    (library.path / OUTLINES).unlink()
    with pytest.raises(ConnectionError, match="the server hangs"):
        summarise_trees(Library(library.path), Author(failing("Document")))
    assert all(library.stored_outline(one) for one in Library(library.path).documents())


@pytest.fixture
def server():
    def script(prompt, attempt):
        return Reply(content="prêt" if "prêt" in prompt else f"{SUMMARY} (lu en {len(prompt)} signes).")

    with ScriptedServer(script) as server:
        yield server


def test_the_plan_is_shown_before_a_model_is_asked_and_a_second_run_asks_nothing(library, place, server, capfd):
    by_model = ("--only", "trees", "--summaries", "author", "--api-base", server.api_base, *map(str, place))
    requests, characters = plan_summaries(library)[1:]
    asked = f"about {requests} requests to author, {characters} characters to be read"
    assert main(["rebuild", "--dry-run", *by_model]) == 0
    assert f"summaries: 5 documents to summarise, {asked}\n" in capfd.readouterr().err
    assert server.prompts == []
    assert main(["rebuild", "--json", *by_model]) == 0
    out, err = capfd.readouterr()
    assert json.loads(out)["summaries"] == {"documents": 5, "requests": requests, "characters": characters}
    assert err.endswith("5 documents summarised\n")
    assert len(server.prompts) == requests + 1  # the model is first asked whether it answers
    assert main(["rebuild", *by_model]) == 0
    assert "summaries: no documents to summarise\n" in capfd.readouterr().err
    assert len(server.prompts) == requests + 2


def test_the_plan_names_the_cost_where_the_price_is_listed(place, capfd, no_endpoint, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    arguments = ("--only", "trees", "--dry-run", "--summaries", "gpt-4o-mini")
    assert main(["rebuild", *arguments, *map(str, place)]) == 0
    assert "to be read, about $0.0" in capfd.readouterr().err


def test_a_dead_server_is_one_line_and_changes_nothing(library, place, refused):
    before = outlines(library)
    line = refused("rebuild", "--summaries", "author", "--api-base", "http://127.0.0.1:9/v1", *place)
    assert "ne peut pas être joint" in line or "injoignable" in line
    assert outlines(library) == before


def test_trees_are_exported_and_read_back_on_the_command_line(library, place, said, tmp_path, capfd):
    doc_id = next(iter(library))
    line = said("export", "--trees", tmp_path / "trees", "--doc-id", doc_id, *place)
    assert line == f"1 trees: {tmp_path / 'trees'}\n"
    edit(tmp_path / "trees", lambda value: value["structure"][0].update(title="X"))
    assert main(["rebuild", "--trees-from", str(tmp_path / "trees"), "--dry-run", *map(str, place)]) == 0
    assert "trees: 1 files to store\n" in capfd.readouterr().err
    assert whole_outline_of(library, doc_id).made_by == ""
    assert main(["rebuild", "--trees-from", str(tmp_path / "trees"), *map(str, place)]) == 0
    assert "1 trees stored\n" in capfd.readouterr().err
    assert whole_outline_of(library, doc_id).tree.children[0].title == "X"
    told = json.loads(said("export", "--trees", tmp_path / "all", "--json", *place))
    assert told == {"folder": str(tmp_path / "all"), "trees": 5}


def test_options_that_do_not_go_together_are_refused(library, place, refused, tmp_path):
    for arguments, reason in [
        (("export",), "give one of --pylate FOLDER and --trees FOLDER"),
        (("export", "--pylate", "a", "--trees", "b"), "give one of --pylate FOLDER and --trees FOLDER"),
        (("export", "--pylate", "a", "--doc-id", "D1"), "--doc-id goes with --trees"),
        (("rebuild", "--trees-from", "a", "--only", "words"), "give one of --only"),
        (("rebuild", "--summaries", "author", "--only", "words"), "--summaries goes with the part trees"),
        (("rebuild", "--trees-from", tmp_path), "no file that ends in _tree.json"),
        (("rebuild", "--only", "trees", "--summaries", "author"), "no endpoint to ask 'author' at"),
    ]:
        assert reason in refused(*arguments, *place)
