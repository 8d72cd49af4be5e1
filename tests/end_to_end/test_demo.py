"""The notebook and its script are one text, and run from top to bottom."""

import ast
import re

import jupytext
import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from support import ROOT
from support.agent_scripts import diligent
from support.rlm_scripts import is_root, root_model
from support.scripted_server import Reply, ScriptedServer

NOTEBOOKS = ("evaluer_la_recherche", "extraire_les_entites", "generer_des_questions", "lecture_profonde")
SCRIPTS = ["demo.py", *(f"notebooks/{name}.py" for name in NOTEBOOKS)]


@pytest.mark.parametrize("script", SCRIPTS)
def test_notebook_is_the_script_of_the_same_name(script):
    path = ROOT / script
    written = nbformat.read(path.with_suffix(".ipynb"), as_version=4)
    expected = jupytext.read(path)
    assert [(cell.cell_type, cell.source) for cell in written.cells] == [
        (cell.cell_type, cell.source) for cell in expected.cells
    ], "run `make notebooks`"
    assert not any(cell.get("outputs") for cell in written.cells)


@pytest.mark.parametrize("script", SCRIPTS)
def test_code_cells_are_short_and_define_nothing(script):
    cells = [cell for cell in jupytext.read(ROOT / script).cells if cell.cell_type == "code"]
    for cell in cells:
        assert len(cell.source.splitlines()) <= 10
        statements = ast.walk(ast.parse(cell.source))
        assert not any(isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Try) for node in statements)


def run_notebook(folder, script="demo.py", **form):
    """Run a script's notebook, with other settings in its form; return its outputs and what it printed."""
    notebook = nbformat.read((ROOT / script).with_suffix(".ipynb"), as_version=4)
    settings = next(cell for cell in notebook.cells if cell.cell_type == "code")
    for name, value in form.items():
        settings.source = re.sub(rf"^{name} = \S+", f"{name} = {value!r}", settings.source, flags=re.MULTILINE)
    NotebookClient(notebook, timeout=900, resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return outputs, "".join(one.get("text", "") for one in outputs if one.get("name") == "stdout")


@pytest.mark.slow
def test_demo_runs_from_top_to_bottom_on_the_sample_corpus(tmp_path, no_endpoint):
    _, printed = run_notebook(tmp_path)
    assert "Agent : EvidenceAgent" in printed
    assert printed.count("[Source: FICTIF") >= 4
    assert "Aucun passage pertinent" in printed
    assert ": verified, True" in printed
    assert ", False" not in printed
    assert re.search(r"^juridiction +\d+- +\d+ ", printed, re.MULTILINE)
    assert re.search(r"^.+ +applique +article .+ FICTIF\d+, \d+-\d+$", printed, re.MULTILINE)
    answers = (tmp_path / "demo_output" / "reponses.md").read_text("utf-8")
    assert answers.count("## ") == 3


@pytest.mark.slow
def test_demo_shows_what_a_model_did_over_an_index_of_ones_own(tmp_path, monkeypatch, tiny_library):
    program = "found = find_documents(solution='inéligibilité')\nFINAL({'candidats inéligibles': len(found)})"
    root = root_model([program])
    asked = "Répondez par un seul mot"

    def script(prompt, attempt):
        return Reply("prêt") if asked in prompt else (root if is_root(prompt) else diligent)(prompt, attempt)

    with ScriptedServer(script) as server:
        monkeypatch.setenv("GENERATOR_API_BASE", server.api_base)
        form = {"INDEX": str(tiny_library.path), "GENERATOR_MODEL_ID": "un-modele", "SEARCH_K": 2}
        _, printed = run_notebook(tmp_path, **form)
    assert printed.count("modèle interrogé : openai/un-modele") == 1
    assert asked in server.prompts[0]
    assert "Index fourni : rien à construire" in printed
    assert printed.count("- lit : ") >= 3  # the steps of each question
    assert printed.count("tool_name_0    search_legal_docs") == 3
    assert printed.count("tool_name_1    search_legal_docs") == 3
    assert printed.count("tool_name_2    lookup_legal_doc") == 3
    assert re.search(r"^Décision : FICTIF\d+\nCitation : .*\nJuridiction : ", printed, re.MULTILINE)
    assert "**candidats inéligibles** : " in printed


@pytest.mark.slow
def test_demo_says_before_the_first_question_that_a_key_is_refused(tmp_path, monkeypatch, tiny_library):
    with ScriptedServer(lambda prompt, attempt: Reply(status=401, raw_body='{"error": {"message": "bad"}}')) as server:
        monkeypatch.setenv("GENERATOR_API_BASE", server.api_base)
        with pytest.raises(CellExecutionError, match=r"clé refusée\) : vérifiez la clé"):
            run_notebook(tmp_path, INDEX=str(tiny_library.path))
    assert len(server.prompts) == 1


@pytest.mark.slow
def test_the_notebook_on_evaluation_runs_from_top_to_bottom_on_the_sample(tmp_path, monkeypatch, trec_python):
    monkeypatch.setenv("LEGAL_RAG_TREC", str(trec_python))
    outputs, printed = run_notebook(tmp_path, "notebooks/evaluer_la_recherche.py")
    assert "40 questions" in printed
    for ours, theirs in (pairs := re.findall(r"(\d\.\d{4})  trec_eval : (\d\.\d{4})", printed)):
        assert float(ours) == pytest.approx(float(theirs), abs=1.01e-4)
    assert len(pairs) == 7
    for mode in ("hybrid", "colbert", "bm25", "bm25+rerank"):
        run = (tmp_path / "evaluation_output" / f"run_{mode}.txt").read_text("utf-8").splitlines()
        assert 40 * 45 < len(run) <= 40 * 50  # fewer where fewer share a word with the question
        assert re.search(rf"^{re.escape(mode)} +RR +[01]\.\d+ ", printed, re.MULTILINE)
    assert (tmp_path / "evaluation_output" / "rappel.png").read_bytes().startswith(b"\x89PNG")
    assert any("image/png" in output.get("data", {}) for output in outputs)


@pytest.mark.slow
def test_the_notebook_on_questions_runs_from_top_to_bottom_on_the_sample(tmp_path, no_endpoint):
    outputs, printed = run_notebook(tmp_path, "notebooks/generer_des_questions.py")
    assert "20 questions pour 60 décisions" in printed
    assert "20 réponses sur 20 sont le texte même de leur décision" in printed
    assert re.search(r"^RR +[01]\.\d+ .*flatteur", printed, re.MULTILINE)
    assert any("text/markdown" in output.get("data", {}) for output in outputs)
    assert (tmp_path / "questions_output" / "questions" / "dataset_dict.json").is_file()


@pytest.mark.slow
def test_the_notebook_on_entities_runs_from_top_to_bottom_on_the_sample(tmp_path, no_endpoint):
    outputs, printed = run_notebook(tmp_path, "notebooks/extraire_les_entites.py")
    right, of = map(int, re.search(r"(\d+) entités sur (\d+) sont le texte même", printed).groups())
    assert right == of > 500
    assert any("iframe" in output.get("data", {}).get("text/html", "") for output in outputs)
    assert (tmp_path / "entities_output" / "sample" / "entities.html").is_file()
    assert printed.rstrip().splitlines()[-1].count("FICTIF") == 1


@pytest.mark.slow
def test_the_notebook_on_deep_reading_runs_from_top_to_bottom_without_a_model(tmp_path, no_endpoint):
    _, printed = run_notebook(tmp_path, "notebooks/lecture_profonde.py")
    assert "60 décisions, 272685 caractères" in printed
    assert re.search(r"^Cour de cassation +\d+ \| médiane +\d+\.\d\d \|", printed, re.MULTILINE)
    assert re.search(r"^(?:ok \| \d+ décisions citent l'article 700 ; \d+ textes lus)", printed, re.MULTILINE)
    assert "root:" not in printed
    assert printed.rstrip().endswith("Pas de trace : aucun modèle n'a été demandé.")


@pytest.mark.slow
def test_the_notebook_on_deep_reading_shows_what_a_model_found_and_how(tmp_path, monkeypatch):
    program = "found = find_documents(solution='infirme')\nFINAL({'décisions infirmatives': len(found)})"
    with ScriptedServer(root_model([program])) as server:
        monkeypatch.setenv("GENERATOR_API_BASE", server.api_base)
        outputs, printed = run_notebook(tmp_path, "notebooks/lecture_profonde.py")
    pages = [output.get("data", {}).get("text/html", "") for output in outputs]
    frames = [page for page in pages if "<iframe" in page]
    assert "**décisions infirmatives** : 9" in printed
    assert len(frames) == 2
    assert "décisions infirmatives" in frames[0]
    assert "find_documents" in frames[1]
    assert len(list((tmp_path / "deep_read_output").glob("lecture_*.jsonl"))) == 1
