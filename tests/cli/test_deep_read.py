"""The commands `deep-read` and `trace`: arguments to one call, results to stdout, talk to stderr."""

import json
import shutil

import pytest
from support.rlm_scripts import root_model
from support.scripted_extractor import finding
from support.scripted_server import Reply, ScriptedServer

from legal_rag.cli import main
from legal_rag.extraction.entities import ENTITIES
from legal_rag.library import Library
from legal_rag.library.library import CORPUS_INDEX
from legal_rag.report import SavedAnswers

QUESTION = "Combien de décisions y a-t-il ?"
KEY = "cle-secrete-de-test"


@pytest.fixture
def place(tiny_library):
    return ["--index-folder", str(tiny_library.path.parent), "--index-name", tiny_library.path.name]


@pytest.fixture
def model(monkeypatch):
    """Serve a root model whose programs the test names."""
    servers = []
    monkeypatch.setenv("GENERATOR_API_KEY", KEY)

    def serving(*programs, **settings):
        server = ScriptedServer(root_model(list(programs), **settings))
        servers.append(server.__enter__())
        return ["--model", "m", "--api-base", server.api_base]

    yield serving
    for server in servers:
        server.__exit__()


def test_an_answer_is_printed_with_its_notice(place, model, said):
    out = said("deep-read", QUESTION, *place, *model("FINAL({'nombre': count(doc_ids)})"))
    assert "- **nombre** : 60" in out
    assert "Réponse calculée par les fonctions du corpus : r" in out


def test_without_an_endpoint_passages_are_given_and_why(place, said, no_endpoint):
    out = said("deep-read", "Quel est le délai de dépôt du compte de campagne ?", *place)
    assert out.startswith("Sans modèle de langage, rien n'est lu en profondeur")


def test_without_an_endpoint_only_the_documents_named_are_quoted(place, said, refused, no_endpoint, tiny_library):
    doc_id = list(tiny_library)[-1]
    told = json.loads(said("deep-read", tiny_library.document(doc_id).title, *place, "--doc-id", doc_id, "--json"))
    assert {citation["doc_id"] for citation in told["citations"]} <= {doc_id}
    assert "no document 'INCONNU'" in refused("deep-read", QUESTION, *place, "--doc-id", "INCONNU")


def test_what_happens_is_told_while_it_happens(place, model, capfd):
    program = "FINAL(len(grep_corpus('campagne', max_docs=2)))"
    assert main(["deep-read", QUESTION, *place, *model(program), "--stream"]) == 0
    first, *lines = capfd.readouterr().err.splitlines()
    assert first == (
        "Lecture approfondie (tout le corpus, 60 décisions) : au plus 400 appels au modèle, "
        "2\u202f000\u202f000 jetons lus et écrits, 1\u202f800 secondes ; un appel commencé va à son terme."
    )
    assert [line.split(" ")[0] for line in lines] == ["réfléchit", "cherche", "contrôle", "répond"]


def test_a_page_and_a_run_are_kept_where_they_are_asked_for(place, model, said, tiny_library, tmp_path):
    page = tmp_path / "page.html"
    said("deep-read", QUESTION, *place, *model("FINAL(60)"), "--html", page, "--save")
    assert "Combien de décisions" in page.read_text("utf-8")
    (run,) = SavedAnswers.of(tiny_library).list()
    assert (run.mode, run.question) == ("deep_read", QUESTION)


def test_a_trace_is_kept_and_shown_without_the_key(place, model, said, tmp_path):
    trace, page = tmp_path / "run.jsonl", tmp_path / "trace.html"
    said("deep-read", QUESTION, *place, *model("print('témoin')", "FINAL(60)"), "--trace", trace)
    said("trace", trace, "--html", page)
    assert "témoin" in page.read_text("utf-8")
    assert len(json.loads(said("trace", trace, "--json"))["iterations"]) == 2
    assert KEY not in trace.read_text("utf-8") + page.read_text("utf-8")


def test_a_run_that_was_cut_short_is_gone_on_with_when_asked_for_again(place, said, settings):
    programs = ["n = len(llm_query(f'lis ceci : {doc_ids[0]}'))", "FINAL({'n': n})"]

    def script(prompt, attempt):
        reply = root_model(programs, {"lis ceci": "cinq!"})(prompt, attempt)
        return Reply(status=400) if attempt == 0 and "FINAL({'n'" in reply.content else reply

    with ScriptedServer(script) as server:
        how = ["--model", "m", "--api-base", server.api_base]
        asked = [*settings('[deep-read]\nplan = "rlm"'), "deep-read", QUESTION, *place, *how]
        assert "demande refusée" in said(*asked)
        assert "- **n** : 5" in said(*asked)
        assert len(server.prompts) == 4


def test_plan_map_reads_the_documents_named(place, said, tiny_library, settings):
    doc_id = next(iter(tiny_library))

    def script(prompt, attempt):
        return Reply('{"pertinent": false, "reponse": "", "citations": []}')

    with ScriptedServer(script) as server:
        plan = settings('[deep-read]\nplan = "map"')
        named = ["--model", "m", "--api-base", server.api_base, "--doc-id", doc_id, "--json", "--no-extract"]
        told = json.loads(said(*plan, "deep-read", QUESTION, *place, *named))
    assert told["status"] == "abstained"
    assert [event["output_ids"] for event in told["events"] if event["type"] == "read"] == [[doc_id]]


@pytest.fixture
def own(tiny_library, tmp_path, monkeypatch):
    """Return a Library without entities, to be written to, and where it is."""
    monkeypatch.delenv("LANGEXTRACT_API_KEY", raising=False)
    shutil.copytree(tiny_library.path, tmp_path / "own")
    (tmp_path / "own" / ENTITIES).unlink(missing_ok=True)
    return Library(tmp_path / "own"), ["--index-folder", str(tmp_path), "--index-name", "own"]


def test_documents_named_that_have_no_entities_are_extracted_by_rules_before_the_read(own, model, capfd):
    library, place = own
    first, second = list(library)[:2]
    asked = ["deep-read", QUESTION, *place, *model("FINAL([len(extraction_index)])"), "--doc-id", first]
    assert main([*asked, "--no-extract"]) == 0
    assert (library.entity_store, "extracting" in capfd.readouterr().err) == (None, False)
    assert main(asked) == 0
    lines = capfd.readouterr().err.splitlines()
    assert lines[0] == "extracting 1 documents, by rules"
    assert "entities in the 1 documents, by rules" in lines[-2]
    assert lines[-1].startswith("Lecture approfondie (1 décision)")
    assert list(library.entity_store.held_ids()) == [first]
    assert main([*asked, "--doc-id", second, "--extract-schema", "general"]) == 0
    assert sorted(library.entity_store.held_ids()) == sorted([first, second])
    assert {recipe.schema_name: n for recipe, n in library.entity_store.held_recipes()} == {
        "jurisprudence": 1,
        "general": 1,
    }


def test_the_whole_corpus_is_extracted_only_where_that_is_asked_for(own, model, capfd):
    library, place = own
    asked = ["deep-read", QUESTION, *place, *model("FINAL([1])")]
    assert main(asked) == 0
    assert library.entity_store is None
    assert main([*asked, "--extract"]) == 0
    assert library.entity_store.held_count() == 60
    assert "extracting 60 documents, by rules" in capfd.readouterr().err


def test_a_model_that_extracts_before_the_read_is_named_with_its_requests(own, model, capfd, monkeypatch, settings):
    library, place = own
    doc_id = next(iter(library))
    text = library.document(doc_id).content
    number = next(word for word in text.split() if word.isdigit() and text.count(word) == 1)
    with ScriptedServer(finding([("condition", number)])) as server:
        monkeypatch.setenv("LANGEXTRACT_API_KEY", KEY)
        file = settings(f'[deep-read]\nextract_api_base = "{server.api_base}"\nextract_passes = 1')
        how = ["--extract-model", "m", "--extract-schema", "general"]
        assert main([*file, "deep-read", QUESTION, *place, *model("FINAL([1])"), "--doc-id", doc_id, *how]) == 0
        requests = len(server.prompts)
    err = capfd.readouterr().err
    assert f"extracting 1 documents, by m, about {-(-len(text) // 2000)} requests" in err
    assert requests >= len(text) // 2000
    assert [one["extraction_text"] for one in library.entities_of(doc_id)] == [number]
    assert KEY not in err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["x", "--extract-schema", "rien"], "no schema named 'rien'"),
        (["", "--api-base", "http://127.0.0.1:9"], "the question is empty"),
        (["x", "--api-base", "http://127.0.0.1:9", "--doc-id", "INCONNU"], "no document 'INCONNU'"),
        (["x", "--api-base", "127.0.0.1:9"], "invalid api_base '127.0.0.1:9' (expected a URL such as 'http://"),
        (["x", "--api-base", "http://127.0.0.1:9", "--trace", "/"], "/ is no trace (expected a path where nothing is"),
        (["x", "--html", "/nowhere/page.html"], "no folder"),
        (["x", "--instructions", "nulle part"], "no instructions 'nulle part'"),
    ],
)
def test_bad_input_is_one_clear_line(place, refused, arguments, line):
    assert line in refused("deep-read", *arguments, *place)


def test_a_library_without_a_corpus_index_is_told_how_to_build_one(tiny_library, refused, tmp_path):
    copy = tmp_path / "sans"
    shutil.copytree(tiny_library.path, copy)
    (copy / CORPUS_INDEX).unlink()
    arguments = ["--index-folder", tmp_path, "--index-name", "sans", "--api-base", "http://127.0.0.1:9"]
    assert "build one with 'legal-rag corpus-index'" in refused("deep-read", "x", *arguments)


@pytest.mark.parametrize("content", ["", "{}", "pas du JSON", '{"type": "iteration"}'])
def test_what_is_no_trace_is_refused_in_one_line(refused, tmp_path, content):
    file = tmp_path / "x.jsonl"
    file.write_text(content, encoding="utf-8")
    assert "trace" in refused("trace", file)
