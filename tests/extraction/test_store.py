"""The store gives back what it was given, to any thread and process, and only for the very same text and recipe."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from legal_rag.extraction import ExtractionResult, ExtractionStore
from legal_rag.extraction.entities import rule_entity
from legal_rag.extraction.store import Recipe

TEXT = "Le 12 mai 1993, le bail est résilié."
RECIPE = Recipe("jurisprudence", "abc", "un-modèle", 2, "def", 2000)
RESULT = ExtractionResult(doc_name="d", extractions=[rule_entity("date", TEXT, 3, 14)], model_id="un-modèle", chunks=1)


@pytest.fixture
def store(tmp_path):
    with ExtractionStore(tmp_path / "e.sqlite") as opened:
        yield opened


def hold(store, doc_id, text=TEXT, recipe=RECIPE, terms=(("date:1993-05-12", "date"),)):
    store.hold_many([(doc_id, f"hash of {text}", text, recipe, RESULT, terms)])


def count(store, table):
    with closing(sqlite3.connect(store.path)) as connection:
        return connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]  # noqa: S608


def test_a_result_is_given_back_as_it_was_put_also_once_the_store_was_closed(store):
    assert store.get(TEXT, RECIPE) is None
    store.put(TEXT, RECIPE, RESULT)
    assert store.get(TEXT, RECIPE) == RESULT
    odd = ExtractionResult(doc_name="d", extractions=[rule_entity("date", TEXT, 3, 14, note="\ud800")])
    store.put(f"{TEXT} ", RECIPE, odd)
    store.close()
    with ExtractionStore(store.path) as again:
        assert (again.get(TEXT, RECIPE), again.get(f"{TEXT} ", RECIPE)) == (RESULT, odd)


@pytest.mark.parametrize("field", Recipe._fields)
def test_another_recipe_is_another_result(store, field):
    store.put(TEXT, RECIPE, RESULT)
    other = RECIPE._replace(**{field: 3 if isinstance(getattr(RECIPE, field), int) else "other"})
    assert other.key != RECIPE.key
    assert store.get(TEXT, other) is None
    assert store.get(f"{TEXT} ", RECIPE) is None


@pytest.mark.parametrize("gaps", [{"dropped_chunks": 1}, {"error": "no answer"}])
def test_a_result_with_gaps_is_refused_and_of_many_documents_all_are_held_or_none(store, gaps):
    bad = ExtractionResult(doc_name="d", **gaps)
    with pytest.raises(ValueError, match="not a complete result: 'd' has"):
        store.put(TEXT, RECIPE, bad)
    assert store.get(TEXT, RECIPE) is None
    with pytest.raises(ValueError, match="not a complete result: 'd' has"):
        store.hold_many([("a", "h", TEXT, RECIPE, RESULT, []), ("d", "h", TEXT, RECIPE, bad, [])])
    assert store.held_count() == 0


@pytest.mark.parametrize("text", ["", "\ud800", "\0", "é" * 100_000])
def test_any_text_has_its_result(store, text):
    store.put(text, RECIPE, RESULT)
    assert store.get(text, RECIPE) == RESULT


def test_a_held_document_has_its_entities_as_packed_json_as_long_as_its_text_is_the_same(store):
    hold(store, "a")
    assert store.entities_of("a", f"hash of {TEXT}") == RESULT.extractions
    assert store.entities_of("a", "hash of another") is None
    assert store.entities_of("b", f"hash of {TEXT}") is None
    assert store.held_recipe("a", f"hash of {TEXT}") == RECIPE
    assert store.held_hashes(["a", "b"]) == {"a": f"hash of {TEXT}"}
    with closing(sqlite3.connect(store.path)) as connection:
        ((result,),) = connection.execute("SELECT result FROM results")
    assert json.loads(zlib.decompress(result))["extractions"][0]["extraction_text"] == "12 mai 1993"


def test_what_is_held_anew_takes_the_place_of_what_was(store):
    hold(store, "a")
    hold(store, "a", text="Un autre texte.", terms=[("date:2001-01-01", "date")])
    assert store.doc_ids_having("date:1993-05-12", 10) == []
    assert store.doc_ids_having("date:2001-01-01", 10) == ["a"]
    assert (store.held_count(), count(store, "results")) == (1, 1)


def test_two_documents_of_one_text_share_a_result_until_both_are_dropped(store):
    hold(store, "a")
    hold(store, "b")
    assert count(store, "results") == 1
    store.drop(["a", "unknown"])
    assert store.entities_of("b", f"hash of {TEXT}") == RESULT.extractions
    assert store.doc_ids_having("date:1993-05-12", 10) == ["b"]
    store.drop(["b"])
    assert [count(store, table) for table in ("results", "held", "terms")] == [0] * 3


def test_documents_are_looked_up_by_term_and_class_in_order_and_no_more_than_asked_for(store):
    for doc_id in ("c", "a", "b"):
        hold(store, doc_id, terms=[("lyon", "partie"), ("lyon", "juridiction"), ("lyon", "partie")])
    hold(store, "d", terms=[("lyon", "partie")])
    assert store.doc_ids_having("lyon", 3) == ["a", "b", "c"]
    assert store.doc_ids_having("lyon") == ["a", "b", "c", "d"]
    assert store.doc_ids_having("lyon", None, "juridiction") == ["a", "b", "c"]
    assert store.doc_ids_having("' OR 1 --") == []


def test_recipes_are_counted_by_documents(store):
    hold(store, "a")
    hold(store, "b", text="b")
    hold(store, "c", recipe=RECIPE._replace(model_id="rules"))
    assert sorted((recipe.model_id, n) for recipe, n in store.held_recipes()) == [("rules", 1), ("un-modèle", 2)]
    assert list(store.held_ids()) == ["a", "b", "c"]


def test_results_of_a_text_or_all_are_forgotten_but_for_those_that_a_document_holds(store):
    for text in (TEXT, "autre", "tenu"):
        store.put(text, RECIPE, RESULT)
    hold(store, "d", text="tenu")
    store.invalidate(TEXT)
    store.invalidate("tenu")
    assert [store.get(text, RECIPE) is not None for text in (TEXT, "autre", "tenu")] == [False, True, True]
    store.clear()
    assert [store.get(text, RECIPE) is not None for text in (TEXT, "autre", "tenu")] == [False, False, True]


def test_threads_share_a_store(store):
    def work(number):
        for piece in range(20):
            store.put(f"{number}-{piece}", RECIPE, RESULT)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count(store, "results") == 160


WORKER = """
import sys
from pathlib import Path
from legal_rag.extraction.entities import ExtractionResult
from legal_rag.extraction.store import ExtractionStore, Recipe
recipe, result = Recipe("general", "1", "m", 1, "", 0), ExtractionResult(doc_name="d")
with ExtractionStore(Path(sys.argv[1])) as store:
    for piece in range(50):
        store.put(f"{sys.argv[2]}-{piece}", recipe, result)
"""


def test_processes_share_a_store_that_all_of_them_begin(tmp_path):
    path = tmp_path / "new" / "e.sqlite"
    workers = [subprocess.Popen([sys.executable, "-c", WORKER, path, str(number)]) for number in range(4)]
    assert [worker.wait() for worker in workers] == [0] * 4
    with ExtractionStore(path) as store:
        assert count(store, "results") == 200


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_process_that_is_forked_off_has_a_connection_of_its_own(store):
    store.put("parent", RECIPE, RESULT)
    child = os.fork()
    if child == 0:
        store.put("child", RECIPE, RESULT)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    store.put("parent again", RECIPE, RESULT)
    assert store.get("child", RECIPE) == RESULT


def test_a_closed_store_says_so_in_every_thread(store):
    store.get(TEXT, RECIPE)
    store.close()
    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match=f"the store {store.path} was closed"):
        pool.submit(store.get, TEXT, RECIPE).result()


def test_a_file_that_is_no_store_or_one_of_a_later_version_is_refused(tmp_path, store):
    (tmp_path / "no.sqlite").write_bytes(b"not a database at all" * 100)
    with pytest.raises(sqlite3.DatabaseError, match="not a database"):
        ExtractionStore(tmp_path / "no.sqlite")
    store.close()
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(ValueError, match="is of format 99 "):
        ExtractionStore(store.path)


def test_a_store_that_cannot_be_written_to_is_read(store, monkeypatch):
    hold(store, "a")
    store.close()
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with ExtractionStore(store.path) as reader:
        assert reader.entities_of("a", f"hash of {TEXT}") == RESULT.extractions
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            hold(reader, "b")
    assert sorted(path.name for path in store.path.parent.iterdir()) == ["e.sqlite"]


def test_the_store_of_all_lies_in_the_cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LEGAL_RAG_CACHE", str(tmp_path / "cache"))
    with ExtractionStore() as store:
        assert store.path == tmp_path / "cache" / "extractions.sqlite"
        store.put(TEXT, RECIPE, RESULT)
    assert store.path.is_file()
