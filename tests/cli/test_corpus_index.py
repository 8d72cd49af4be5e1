"""The corpus index on the command line: built, left out, told of, found damaged."""

import json
import shutil
import sqlite3
from contextlib import closing

import pytest
from support.scripted_server import Reply, ScriptedServer

from legal_rag.base.files import locked
from legal_rag.cli import main
from legal_rag.corpus_index.index import CorpusIndex
from legal_rag.library import Library

TEXTS = [
    {"id": "a", "content": "Le bailleur réclame les loyers. Le preneur ne les doit pas.", "summary": "Officiel."},
    {"id": "b", "content": "Le vendeur réclame le prix. L'acheteur ne le doit pas."},
]
INDEX = "corpus_index.sqlite"


@pytest.fixture(scope="module")
def home(index_of):
    return index_of(TEXTS, n_bits=0).path.parent


@pytest.fixture
def folder(home, tmp_path):
    shutil.copytree(home / "legal_french_index", tmp_path / "legal_french_index")
    return tmp_path


@pytest.fixture
def index_file(folder):
    return folder / "legal_french_index" / INDEX


def test_the_index_is_built_and_told_of_in_one_line_or_as_json(folder, index_file, said, settings):
    index_file.unlink()
    line = said(*settings("[corpus-index]\nparallel = false"), "corpus-index", "--index-folder", folder)
    assert line == f"2 documents, 1 topics, summaries: 1 extractive, 1 official: {index_file}\n"
    assert CorpusIndex.open(Library.open(folder)).keyword("vendeur") == ["b"]
    one_by_one = settings("[corpus-index]\nparallel = false\nbatch_size = 1")
    told = json.loads(said(*one_by_one, "corpus-index", "--index-folder", folder, "--json"))
    sources = {"extractive": 1, "official": 1}
    assert told == {"path": str(index_file), "documents": 2, "topics": 1, "summaries": sources}


def test_index_builds_it_unless_told_not_to(tmp_path, tiny_model_folder, said):
    source = tmp_path / "rows.jsonl"
    source.write_text("\n".join(map(json.dumps, TEXTS)), encoding="utf-8")
    common = ("--source", source, "--encoder", tiny_model_folder, "--n-bits", 0, "--index-folder", tmp_path)
    said("index", *common, "--index-name", "with")
    said("index", *common, "--index-name", "without", "--no-corpus-index")
    assert [(tmp_path / name / INDEX).exists() for name in ("with", "without")] == [True, False]


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("UPDATE meta SET value = '\"x\"' WHERE name = 'lineage'", "is of another build of the Library"),
        ("UPDATE meta SET value = '7' WHERE name = 'format_version'", "has format 7, not 1"),
        ("DROP TABLE meta", "is damaged: no such table: meta"),
        ("DELETE FROM documents WHERE id = 'a'", "document 'a' is missing"),
        ("UPDATE totals SET chars = 1", "records (2, 1) documents and characters, holds (2, 113)"),
        ("DELETE FROM totals", "knows nothing of the Library's commit 1"),
    ],
)
def test_the_doctor_tells_what_is_wrong_and_what_mends_it(folder, index_file, capfd, damage, problem):
    with closing(sqlite3.connect(index_file, isolation_level=None)) as connection:
        connection.execute(damage)
    assert main(["doctor", "--index-folder", str(folder)]) == 1
    told = capfd.readouterr().err
    assert problem in told
    assert told.count("'legal-rag corpus-index'") == told.count("\n")
    assert main(["corpus-index", "--index-folder", str(folder)]) == 0
    assert main(["doctor", "--index-folder", str(folder)]) == 0


def test_bytes_that_were_overwritten_are_found_and_a_new_build_mends_them(folder, index_file, capfd):
    assert main(["doctor", "--index-folder", str(folder)]) == 0
    data = bytearray(index_file.read_bytes())
    data[4096:6096] = b"\xff" * 2000
    index_file.write_bytes(data)
    assert main(["doctor", "--index-folder", str(folder)]) == 1
    assert INDEX in capfd.readouterr().err
    assert main(["corpus-index", "--index-folder", str(folder)]) == 0
    assert main(["doctor", "--index-folder", str(folder)]) == 0


def test_a_model_that_nobody_reaches_is_told_before_anything_is_built(folder, refused, index_file, no_endpoint):
    index_file.unlink()
    summed_up = ("corpus-index", "--index-folder", folder, "--summaries", "m")
    assert "no endpoint to ask 'm' at" in refused(*summed_up)
    assert "serveur injoignable" in refused(*summed_up, "--api-base", "http://127.0.0.1:9/v1")
    assert not index_file.exists()


def test_how_a_model_is_asked_is_set_on_the_command_line(folder, said, monkeypatch):
    monkeypatch.setenv("GENERATOR_API_KEY", "sk-0123456789abcdef")
    options = json.dumps({"chat_template_kwargs": {"enable_thinking": False}})
    with ScriptedServer(lambda prompt, attempt: Reply("Le contrat porte sur la livraison de marchandises.")) as server:
        how = ("--api-base", server.api_base, "--timeout", "20", "--workers", "1", "--context-tokens", "8192")
        said("corpus-index", "--index-folder", folder, "--summaries", "m", *how, "--model-options", options)
        assert server.fetched[0].endswith("/props")
    assert [request["max_tokens"] for request in server.requests] == [100, 400]
    assert all(request["chat_template_kwargs"] == {"enable_thinking": False} for request in server.requests)


@pytest.mark.parametrize(
    ("option", "value", "line"),
    [
        ("--model-options", "{", "model_options '{' is no JSON object (expected one such as '{\"top_k\": 20}')"),
        ("--model-options", "[1]", "model_options '[1]' is no JSON object"),
        ("--model-options", '{"stream": true}', "a model's options cannot set stream"),
        ("--timeout", "0", "timeout must be above 0 seconds, got 0.0"),
    ],
)
def test_what_no_model_can_be_asked_by_is_refused_in_one_line(folder, refused, option, value, line):
    asked = ("corpus-index", "--index-folder", folder, "--summaries", "m", "--api-base", "http://127.0.0.1:9/v1")
    assert line in refused(*asked, option, value)


def test_what_is_no_library_or_is_written_to_is_refused_in_one_line(folder, refused, tmp_path_factory):
    assert "no index at" in refused("corpus-index", "--index-folder", tmp_path_factory.mktemp("empty"))
    with locked(folder / "legal_french_index"):
        assert "another process" in refused("corpus-index", "--index-folder", folder)
