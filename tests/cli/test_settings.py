"""Settings of `legal-rag.toml`: found upwards, checked, below the command line, and shown with their origin."""

import json
import tomllib

import pytest

from legal_rag.cli import main
from legal_rag.library import Library


def test_the_nearest_file_upwards_gives_values_and_an_option_wins(place, tmp_path, monkeypatch, said):
    (tmp_path / "dossier" / "pièces").mkdir(parents=True)
    (tmp_path / "legal-rag.toml").write_text("[search]\nk = 1\n")
    (tmp_path / "dossier" / "legal-rag.toml").write_text("[search]\nk = 2\n")
    monkeypatch.chdir(tmp_path / "dossier" / "pièces")
    assert len(json.loads(said("search", "bail", "--json", *place))) == 2
    assert len(json.loads(said("search", "bail", "--k", "3", "--json", *place))) == 3
    monkeypatch.chdir(tmp_path)
    assert len(json.loads(said("search", "bail", "--json", *place))) == 1


def test_keys_before_the_first_table_hold_for_every_command_and_subcommand(tiny_library, settings, said):
    folder, name = tiny_library.path.parent, tiny_library.path.name
    file = settings(f'index_folder = "{folder}"\nindex_name = "{name}"\n[graph.most-cited]\nk = 1\n')
    assert str(tiny_library.path) in said(*file, "info")
    assert len(json.loads(said(*file, "graph", "most-cited", "--json"))) == 1


def test_a_setting_without_an_option_reaches_the_index(tmp_path, tiny_model_folder, settings, said):
    file = settings('[index]\nquery_length = 40\nsplit_at = "sections"\nextract = false\ncorpus_index = false\n')
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"id": "A", "content": "Le bail est résilié."}\n', "utf-8")
    said(*file, "index", "--source", rows, "--encoder", tiny_model_folder, "--index-folder", tmp_path)
    manifest = Library.open(tmp_path).manifest
    assert (manifest["encoder"]["query_length"], manifest["chunks"]["split_at"]) == (40, "sections")


def test_an_address_is_read_from_a_file_that_was_named_alone(place, tmp_path, monkeypatch, settings, capsys):
    text = '[ask]\napi_base = "http://127.0.0.1:9/v1"\n'
    (tmp_path / "legal-rag.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main(["ask", "Un bail ?", *place]) == 1
    assert "api_base is read from a file named by 'legal-rag --config FILE' alone" in capsys.readouterr().err
    assert main([*settings(text), "info", *place]) == 0


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[serch]\nk = 1", "no setting [serch] (did you mean search?)"),
        ("[search]\nkk = 1", "no setting [search] kk (did you mean k?)"),
        ("[search]\nzzzzz = 1", "no setting [search] zzzzz ('legal-rag info --settings' lists them)"),
        ("zzzzz = 1", "no setting zzzzz"),
        ('[search]\nk = "2"', '[search] k = "2": expected a whole number'),
        ("[search]\nk = true", "[search] k = true: expected a whole number"),
        ("[search]\nk = 2.5", "[search] k = 2.5: expected a whole number"),
        ("exhaustive = 1", "exhaustive = 1: expected true or false"),
        ("[search]\narticle = 1240", "[search] article = 1240: expected a text"),
        ("[search]\nentity = 3", "expected a text"),
        ('[search]\nmode = "best"', "'best' is not one of"),
        ("[search]\ntemperature = 3.0", "3.0 is not in the range"),
        ("[search]\nk = ", "is not a file of settings in TOML"),
        ('api_key = "k"', "api_key is refused in a file (expected GENERATOR_API_KEY in the environment)"),
        ("trust_remote_code = true", "refused in a file (expected --trust-remote-code on the command line)"),
        ("[search]\ntrust_remote_code = true", "refused in a file (expected --trust-remote-code on the command line)"),
    ],
    ids=lambda value: value[:30],
)
def test_a_wrong_file_is_told_in_one_line_that_names_it(settings, place, refused, text, line):
    file = settings(text)
    told = refused(*file, "search", "bail", *place)
    assert line in told
    assert told.startswith(file[1])


def test_a_file_that_is_not_there_is_told_and_keeps_the_status_of_a_command(refused, tmp_path):
    assert "no settings file " in refused("--config", tmp_path / "absent.toml", "info")
    assert main(["--config", str(tmp_path / "absent.toml"), "verify", "a.md"]) == 2


@pytest.mark.usefixtures("no_endpoint")
def test_info_says_what_is_in_force_and_where_it_comes_from(place, settings, said, monkeypatch):
    monkeypatch.setenv("GENERATOR_MODEL_ID", "un-modèle")
    monkeypatch.setenv("GENERATOR_API_KEY", "sk-secret")
    file = settings('[index]\nn_bits = 2\n[ask]\nmodel = "un-autre"\n')
    out = said(*file, "info", *place)
    assert f"settings: {file[1]}\n" in out
    shown = said(*file, "info", "--settings")
    assert 'model = "un-modèle"  # environment' in shown
    assert "chunk_tokens = 511  # default" in shown
    assert "GENERATOR_API_KEY is set in the environment" in shown
    assert "sk-secret" not in out + shown
    values = tomllib.loads(shown)
    assert (values["index"]["n_bits"], values["graph"]["most-cited"]["k"]) == (2, 20)
    rows = json.loads(said(*file, "info", "--settings", "--json"))
    assert {"command": "index", "name": "n_bits", "value": 2, "origin": "file"} in rows
