"""Extraction of corpora, and the commands that start it: on a Library, on a source, after an index or an answer."""

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.scripted_server import Reply, ScriptedServer

from legal_rag.cli import main
from legal_rag.extraction import ExtractionResult, ExtractionSettings, ExtractionStore
from legal_rag.extraction.rules import find_entities
from legal_rag.indexer import (
    IndexConfig,
    add_documents,
    build_index,
    compact_index,
    examine,
    extract_library,
    open_index,
    remove_documents,
)
from legal_rag.indexer.commit import carrying_entities
from legal_rag.indexer.entities import complete_documents
from legal_rag.library import Library

FILES = ["entities.html", "entities.json", "entities.jsonl", "extraction_index.txt"]
TEXTS = {
    "a": "Le 12 mai 1993, la cour d'appel de Lyon a condamné M. Jean DUPONT à payer 1 000 francs.",
    "b": "Vu l'article 1382 du code civil. Le 3 mai 2001, le bail est résilié.",
    "c": "Le preneur doit 45 300 euros au bailleur.",
}
RULES = ExtractionSettings()


def rows(*ids, **texts):
    return [{"id": one, "content": texts.get(one, TEXTS.get(one, f"Texte de {one}."))} for one in ids]


pytestmark = pytest.mark.usefixtures("no_endpoint")


@pytest.fixture(scope="module")
def built(index_of):
    return index_of(rows("a", "b", "c")).path


@pytest.fixture
def library(built, tmp_path):
    return Library(shutil.copytree(built, tmp_path / "index" / built.name))


@pytest.fixture
def place(library):
    return ["--index-folder", str(library.path.parent)]


def names_in(folder):
    return sorted(path.name for path in Path(folder).iterdir() if not path.name.endswith(".lock"))


def as_rules_find(entities):
    return [(one["extraction_class"], one["char_start"], one["char_end"]) for one in entities]


def test_each_document_has_what_the_rules_find_in_it(library):
    report = extract_library(library, RULES)
    assert (report.documents, report.extracted, report.unchanged, report.failed) == (3, 3, 0, {})
    assert sorted(Path(path).name for path in report.files) == FILES
    for document in library.documents():
        entities = library.entities_of(document.id)
        assert as_rules_find(entities) == as_rules_find(find_entities(document.content))
        assert all(document.content[one["char_start"] : one["char_end"]] == one["extraction_text"] for one in entities)
    assert report.entities == sum(len(library.entities_of(doc_id)) for doc_id in library) > 3


def test_only_the_documents_asked_for_are_completed_and_the_files_hold_all_in_the_library_s_order(library, tmp_path):
    report = complete_documents(library, ["b", "b"], RULES)
    assert (report.documents, report.extracted) == (1, 1)
    assert library.entities_of("a") is None
    assert library.entities_of("b")
    assert complete_documents(library, ["b"], RULES).extracted == 0
    assert not set(FILES) & set(names_in(library.path))
    with pytest.raises(LookupError, match="no document 'z'"):
        complete_documents(library, ["z"], RULES)
    extract_library(library, RULES, tmp_path / "out")
    assert names_in(tmp_path / "out") == FILES
    assert list(json.loads((tmp_path / "out" / "entities.json").read_text("utf-8"))) == ["a", "b", "c"]
    assert not set(FILES) & set(names_in(library.path))


def test_what_is_held_is_not_extracted_again(library, tiny_encoder):
    extract_library(library, RULES)
    again = extract_library(library, RULES)
    assert (again.extracted, again.unchanged) == (0, 3)
    more = rows("b", "d", b="Un autre texte du 4 juin 2002.")
    add_documents(IndexConfig(source=more, index_folder=str(library.path.parent)), tiny_encoder)
    after = extract_library(library.reload(), RULES)
    assert (after.documents, after.extracted, after.unchanged) == (4, 2, 2)
    assert [one["extraction_text"] for one in library.reload().entities_of("b")] == ["4 juin 2002"]
    assert extract_library(library, RULES).documents == 4  # as it is now, though opened before
    remove_documents(["a"], library.path.parent)
    report = extract_library(library.reload(), RULES)
    assert (report.documents, report.extracted) == (3, 0)
    with closing(ExtractionStore(library.path / "entities.sqlite")) as store:
        assert set(store.held_ids()) == {"b", "c", "d"}
        assert store.doc_ids_having("date:1993-05-12", 10) == []


def test_a_run_that_was_stopped_is_taken_up(library, monkeypatch):
    keep = ExtractionStore.hold_many

    def stop_after_one(self, some):
        keep(self, list(some)[:1])
        raise KeyboardInterrupt

    monkeypatch.setattr(ExtractionStore, "hold_many", stop_after_one)
    with pytest.raises(KeyboardInterrupt):
        extract_library(library, RULES)
    assert not set(FILES) & set(names_in(library.path))
    monkeypatch.undo()
    report = extract_library(library, RULES)
    assert (report.extracted, report.unchanged) == (2, 1)


KEY = "sk-tres-secret-0123"
PARTIES = ("M. Jean DUPONT", "preneur")


def named(prompt, _attempt):
    """Reply with the parties of the piece that is asked about, and with one who is not there."""
    piece = prompt.rsplit("Q: ", 1)[-1]
    found = [*(name for name in PARTIES if name in piece), "Mme Absente"]
    return Reply(json.dumps({"extractions": [{"partie": one, "partie_attributes": {"role": "x"}} for one in found]}))


def by_model(server, **more):
    more = {"schema_name": "jurisprudence", "extraction_passes": 1, **more}
    return ExtractionSettings(model_id="un-modèle", api_key=KEY, api_base=server.api_base, **more)


def test_a_model_is_asked_once_and_its_entities_are_looked_up_by(library, said, place):
    with ScriptedServer(named) as server:
        report = extract_library(library, by_model(server))
        asked = len(server.prompts)
        again = extract_library(library, by_model(server))
    assert (report.extracted, report.failed, report.with_gaps) == (3, {}, [])
    assert (again.extracted, again.unchanged, len(server.prompts)) == (0, 3, asked)
    (one,) = library.entities_of("a")
    assert (one["extraction_text"], one["attributes"]) == ("M. Jean DUPONT", {"role": "x"})
    hits = json.loads(said("search", "bail", "--entity", "partie=Dupont", "--json", *place))
    assert {hit["doc_id"] for hit in hits} == {"a"}
    assert "by un-modèle, schema jurisprudence" in said("info", *place)
    assert not [path for path in library.path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


def test_a_key_that_is_refused_ends_the_run_in_one_line(place, refused, settings, monkeypatch):
    with ScriptedServer(lambda *_: Reply(status=401, raw_body="{}")) as server:
        monkeypatch.setenv("LANGEXTRACT_API_KEY", KEY)
        file = settings(f'extract_api_base = "{server.api_base}"')
        line = refused(*file, "extract", "--extract-model", "un-modèle", *place)
        assert len(server.prompts) <= 5
    assert "the key was refused" in line
    assert KEY not in line


def test_a_document_with_gaps_is_told_and_asked_for_again(library):
    broken = {"on": True}

    def script(prompt, attempt):
        is_broken = broken["on"] and "DUPONT" in prompt.rsplit("Q: ", 1)[-1]
        return Reply("no JSON") if is_broken else named(prompt, attempt)

    with ScriptedServer(script) as server:
        report = extract_library(library, by_model(server))
        assert report.with_gaps == ["a"]
        assert library.entities_of("a") is None
        broken["on"] = False
        again = extract_library(library, by_model(server))
    assert (again.extracted, again.unchanged, again.with_gaps) == (1, 2, [])
    assert library.entities_of("a") != []


def test_a_new_build_keeps_what_was_extracted_and_not_the_files_that_tell_of_the_old_one(library, tiny_encoder):
    extract_library(library, RULES)
    config = IndexConfig(source=rows("a", "d"), index_folder=str(library.path.parent))
    build_index(config, tiny_encoder)
    built = open_index(config)
    assert built.entities_of("a")
    assert built.entities_of("d") is None
    assert not set(FILES) & set(names_in(built.path))
    assert names_in(built.path.parent) == ["legal_french_index"]
    assert examine(built) == []


def test_of_a_document_removed_no_entity_is_left_after_compaction_which_keeps_the_others_and_new_files(library):
    extract_library(library, RULES)
    remove_documents(["c"], library.path.parent)
    assert not set(FILES) & set(names_in(library.path))  # they show all documents
    assert list(Library(library.path).entity_store.held_ids()) == ["a", "b"]
    compact_index(library.path.parent)
    compacted = Library(library.path)
    assert compacted.entities_of("a")
    held = list(compacted.entity_store.held_ids())
    assert held == ["a", "b"]
    assert examine(compacted) == []
    extract_library(library.reload(), RULES)
    compact_index(library.path.parent)
    compacted = Library(library.path)
    assert compacted.entities_of("a")
    assert set(FILES) <= set(names_in(compacted.path))
    assert examine(compacted) == []


def test_an_extraction_keeps_other_writers_out(library, monkeypatch):
    keep = ExtractionStore.hold_many

    def remove_first(self, some):
        with pytest.raises(ValueError, match="another process"):
            remove_documents(["c"], library.path.parent)
        keep(self, some)

    monkeypatch.setattr(ExtractionStore, "hold_many", remove_first)
    assert extract_library(library, RULES).documents == 3
    assert library.entities_of("c") is not None


def test_who_writes_while_the_folders_are_moved_has_to_wait_but_who_reads_does_not_keep_them(library, tmp_path):
    extract_library(library, RULES)
    with (
        carrying_entities(library.path, tmp_path),
        closing(sqlite3.connect(library.path / "entities.sqlite", timeout=0)) as late,
        pytest.raises(sqlite3.OperationalError, match="database is locked"),
    ):
        late.execute("DELETE FROM held")
    with closing(ExtractionStore(tmp_path / "entities.sqlite")) as copy:
        assert copy.held_count() == 3
    with closing(sqlite3.connect(library.path / "entities.sqlite")) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT COUNT(*) FROM held").fetchone()
        remove_documents(["c"], library.path.parent)
        compact_index(library.path.parent)
    assert Library(library.path).entities_of("a")


def test_damaged_entities_are_left_behind_and_told(library, tiny_encoder, caplog):
    (library.path / "entities.sqlite").write_bytes(b"not a database at all" * 100)
    assert any("entities.sqlite: " in problem for problem in examine(library))
    build_index(IndexConfig(source=rows("a"), index_folder=str(library.path.parent)), tiny_encoder)
    assert "entities.sqlite is damaged" in caplog.text
    assert Library(library.path).entity_store is None


def test_extract_fills_the_library_and_tells_how_much(place, library, said, capfd):
    assert said("extract", *place).endswith(f" entities in 3 documents: {library.path}\n")
    assert set(FILES) <= set(names_in(library.path))
    assert main(["extract", *map(str, place)]) == 0
    assert f"page: {library.path}/entities.html\n" in capfd.readouterr().err
    report = json.loads(said("extract", "--json", *place))
    assert (report["model"], report["documents"], report["unchanged"]) == ("rules", 3, 3)
    out = said("info", *place)
    assert "entities: of 3 of 3 documents, by rules" in out
    info = json.loads(said("info", "--json", *place))
    assert [(one["documents"], one["model"].partition(".")[0]) for one in info["entities"]] == [(3, "rules-4")]
    assert "entities" not in library.manifest
    assert said("doctor", *place) == "no problem found\n"


def test_extract_of_a_source_writes_where_it_is_told_and_lists_ids_that_it_does_not_have(
    tmp_path, monkeypatch, said, capfd
):
    monkeypatch.chdir(tmp_path)
    assert said("extract", "--source", "sample", "--limit", "2").endswith(" entities in 2 documents: entities\n")
    assert names_in("entities") == FILES
    said("extract", "--source", "sample", "--limit", "1", "--output", "là bas")
    assert names_in("là bas") == FILES
    assert names_in(tmp_path) == ["entities", "là bas"]
    (tmp_path / "ids.txt").write_text("FICTIF0101\nINCONNU\n")
    argv = ["extract", "--source", "sample", "--limit", "1", "--ids-file", tmp_path / "ids.txt", "--output", tmp_path]
    assert main(list(map(str, argv))) == 0
    assert "1 ids of the ids file were not found, or not readable: INCONNU" in capfd.readouterr().err


def test_view_opens_the_page_and_extraction_by_rules_says_which_classes_of_a_schema_they_know(
    place, library, said, monkeypatch, capfd
):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    said("extract", "--view", *place)
    assert opened == [(library.path / "entities.html").as_uri()]
    assert main(["extract", *map(str, place), "--extract-schema", "contract"]) == 0
    assert "they looked for 1 of the 12 classes of 'contract': party (a model" in capfd.readouterr().err
    assert main(["extract", *map(str, place), "--extract-schema", "jurisprudence"]) == 0
    assert "they looked for" not in capfd.readouterr().err


def test_remove_says_which_files_it_dropped_and_what_renews_them(place, library, capfd):
    assert main(["remove", "a", *map(str, place)]) == 0
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("1 document removed\n", 1)
    main(["extract", *map(str, place)])
    capfd.readouterr()
    assert main(["remove", "c", *map(str, place)]) == 0
    err = capfd.readouterr().err
    dropped = "entities.jsonl, entities.json, extraction_index.txt, entities.html"
    assert err.startswith(f"dropped {dropped}: 'legal-rag extract' writes them without these documents\n")
    assert "'legal-rag compact' gives back the space" in err


def test_search_filters_by_entities(place, said, refused):
    said("extract", *place)
    hits = json.loads(said("search", "bail", "--entity", "montant=mille francs", "--json", *place))
    assert {hit["doc_id"] for hit in hits} == {"a"}
    both = ["--entity", "montant=mille francs", "--entity", "date=3 mai 2001"]
    assert json.loads(said("search", "bail", *both, "--json", *place)) == []
    assert "no entities of class 'article'" in refused("search", "x", "--entity", "article=L. 1", *place)


def test_index_extracts_by_rules_unless_told_not_to(tmp_path, tiny_model_folder, said, capfd):
    argv = ["index", "--source", "sample", "--limit", "2", "--encoder", tiny_model_folder, "--index-folder", tmp_path]
    argv += ["--n-bits", "0", "--no-corpus-index"]
    assert said(*argv, "--no-extract").startswith("2 documents, ")
    assert Library.open(tmp_path).entity_store is None
    assert main(list(map(str, argv))) == 0
    out, err = capfd.readouterr()
    assert out.count("\n") == 1
    assert re.search(r" entities in 2 documents, by rules, \d+\.\d s; page: .*/entities\.html$", err, re.MULTILINE)
    assert Library.open(tmp_path).entity_store.held_count() == 2
    assert set(json.loads(said(*argv, "--json"))) >= {"documents", "chunks", "seconds"}


def test_only_who_asks_for_the_rules_loses_what_a_model_extracted(place, library, said):
    document = library.document("c")
    extract_library(library, RULES)
    with closing(ExtractionStore(library.path / "entities.sqlite")) as store:
        recipe = store.held_recipe("c", document.content_hash)._replace(model_id="gemini-2.5-flash")
        result = ExtractionResult(doc_name="c", model_id="gemini-2.5-flash")
        store.hold_many([("c", document.content_hash, document.content, recipe, result, [])])
    assert json.loads(said("extract", "--json", *place))["extracted"] == 0
    assert library.entities_of("c") == []
    assert json.loads(said("extract", "--extract-model", "rules", "--json", *place))["extracted"] == 1
    assert library.entities_of("c") != []


QUESTION = "Dans quel délai le candidat doit-il déposer son compte de campagne ?"


def test_ask_extracts_the_documents_it_cites_if_it_is_told_to(copied, said):
    argv = ["ask", QUESTION, "--json", "--index-folder", copied.parent]
    plain = json.loads(said(*argv))
    assert Library(copied).entity_store is None
    value = json.loads(said(*argv, "--extract"))
    assert set(value) == set(plain)
    assert value["answer"] == plain["answer"]
    assert set(Library(copied).entity_store.held_ids()) == {one["doc_id"] for one in value["citations"]} != set()


def test_an_answer_stands_where_its_documents_cannot_be_extracted(copied, capfd, caplog):
    (copied / "entities.sqlite").write_bytes(b"not a database at all" * 100)
    assert main(["ask", QUESTION, "--extract", "--index-folder", str(copied.parent)]) == 0
    out, err = capfd.readouterr()
    assert "Décisions consultées" in out
    assert "entities.sqlite cannot be read" in caplog.text
    assert "the documents cited were not extracted: " in err


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["extract"], "no index at "),
        (["extract", "--extract-schema", "poésie"], "poésie"),
        (["extract", "--source", "nowhere.jsonl", "--output", "out"], "nowhere.jsonl"),
        (["ask", "a", "--extract-schema", "poésie"], "poésie"),
        (["search", "a", "--entity", "partie"], "not an entity: 'partie' (expected CLASS=VALUE"),
    ],
)
def test_what_cannot_be_extracted_is_told_in_one_line(tmp_path, monkeypatch, refused, argv, line):
    monkeypatch.chdir(tmp_path)
    assert line in refused(*argv)
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["extract", "--limit", "2"], "--limit and --ids-file go with --source"),
        (
            ["extract", "--extract-model", "rules", "--extract-schema", "corporate"],
            "the rules find nothing of schema 'corporate'",
        ),
        (["search", "a", "--entity", "partie=Lever"], "no entities in "),
    ],
)
def test_what_a_library_cannot_do_is_told_in_one_line(place, refused, argv, line):
    assert line in refused(*argv, *place)
