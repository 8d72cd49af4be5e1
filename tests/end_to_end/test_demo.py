"""Each notebook is its script, tells its part of one story, and stores what a run prints."""

import ast
import re
import shutil
import tomllib
from pathlib import Path

import jupytext
import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from support import ROOT, model_variables
from support.agent_scripts import diligent
from support.notebooks import clean, read_script, run, texts
from support.rlm_scripts import root_model
from support.scripted_author import author
from support.scripted_server import Reply, ScriptedServer, fields

from legal_rag.indexer import export_pylate
from legal_rag.library import Library

STORY = (  # in its order
    "demo",
    "notebooks/generer_des_questions",
    "notebooks/evaluer_la_recherche",
    "notebooks/extraire_les_entites",
    "notebooks/lecture_profonde",
    "notebooks/verifier_un_texte",
    "notebooks/explorer_le_graphe",
    "notebooks/veille",
)
SCRIPTS = [f"{name}.py" for name in STORY]
DECIMAL = re.compile(r"\d+\.\d+")  # a score, which another processor's arithmetic changes a little
PEP_723 = re.compile(r"^# /// script$\n((?:^#(?:| .*)$\n)+?)^# ///$", re.MULTILINE)


def stored(script):
    return nbformat.read((ROOT / script).with_suffix(".ipynb"), as_version=4)


def code_of(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_notebook_is_the_script_of_the_same_name_and_has_outputs_without_noise(script):
    written, expected = stored(script), read_script(Path(script))
    assert [(cell.cell_type, cell.source) for cell in written.cells] == [
        (cell.cell_type, cell.source) for cell in expected.cells
    ], "run `make notebooks`"
    outputs = [output for cell in written.cells if cell.cell_type == "code" for output in cell.outputs]
    assert len(outputs) >= 7
    assert not [output for output in outputs if output.get("name") == "stderr" or output.output_type == "error"]
    text = (ROOT / script).with_suffix(".ipynb").read_text("utf-8")
    assert not re.search(r"widget-view|iframe|/tmp/|/home/|0x[0-9a-f]{6}", text)
    assert len(text) < 200_000


def test_the_notebooks_tell_one_story():
    for place, script in enumerate(SCRIPTS):
        cells = [cell.source for cell in jupytext.read(ROOT / script).cells if cell.cell_type == "markdown"]
        assert f"Carnet {place + 1} sur {len(STORY)}" in " ".join(cells[0].split())
        links = [(ROOT / script).parent / link for link in re.findall(r"\]\(([^)]+\.ipynb)\)", " ".join(cells))]
        assert {link.resolve() for link in links} == {
            (ROOT / f"{STORY[neighbour]}.ipynb").resolve()
            for neighbour in ({place - 1, place + 1} if place + 1 < len(STORY) else {place - 1, 0})
            if neighbour >= 0
        }


@pytest.mark.parametrize("script", SCRIPTS)
def test_code_cells_are_short_and_define_nothing(script):
    for source in code_of(jupytext.read(ROOT / script)):
        assert len([line for line in source.splitlines() if line]) <= 10
        statements = ast.walk(ast.parse(source))
        assert not any(isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Try) for node in statements)


@pytest.mark.parametrize("script", SCRIPTS)
def test_all_fields_of_the_form_come_first_and_name_the_package(script):
    cells = code_of(jupytext.read(ROOT / script))
    assert cells[0].startswith('PACKAGE = ""  # @param')
    with_fields = [number for number, source in enumerate(cells) if "# @param" in source]
    assert with_fields == list(range(len(with_fields)))


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_script_says_to_uv_and_pipx_what_it_installs_in_a_notebook(script):
    text = (ROOT / script).read_text("utf-8")
    (block,) = PEP_723.findall(text)
    metadata = tomllib.loads(re.sub(r"^# ?", "", block, flags=re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert metadata["requires-python"] == project["requires-python"]
    (requirement,) = metadata["dependencies"]
    assert f'f"{requirement} @ {{address}}"' in text
    package = (ROOT / script).parent / metadata["tool"]["uv"]["sources"]["legal-rag"]["path"]
    assert package.resolve() == ROOT
    through = jupytext.writes(jupytext.reads(text, fmt="py:percent"), fmt="py:percent")
    assert PEP_723.findall(through) == [block]


def test_with_an_address_a_notebook_has_a_badge_and_installs_from_there():
    address = "https://example.org/personne/depot"
    notebook = read_script(Path("notebooks/lecture_profonde.py"), address)
    place = "https://colab.research.google.com/github/personne/depot/blob/main/notebooks/lecture_profonde.ipynb"
    assert notebook.cells[0].source.startswith("[![Ouvrir dans Colab]")
    assert f"]({place})\n\n# Lire en profondeur" in notebook.cells[0].source
    assert code_of(notebook)[0].startswith(f'PACKAGE = "git+{address}"  # @param')


def run_notebook(folder, script="demo.py", **form):
    """Run a script as a notebook, with other settings in its form; return its outputs and what it printed."""
    notebook = read_script(Path(script))
    for cell in notebook.cells:
        for name, value in form.items() if "# @param" in cell.source else ():
            cell.source = re.sub(rf"^{name} = \S+", f"{name} = {value!r}", cell.source, flags=re.MULTILINE)
    NotebookClient(notebook, timeout=900, resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return outputs, "".join(output.get("text", "") for output in outputs if output.get("name") == "stdout")


@pytest.fixture(scope="module")
def indexed(tmp_path_factory, bundled):
    """Run the first notebook; return its folder, whose index the third takes."""
    with pytest.MonkeyPatch.context() as patch:
        for name in model_variables():
            patch.delenv(name)
        folder = tmp_path_factory.mktemp("story")
        notebook = read_script(Path("demo.py"))
        run(notebook, folder)
    return folder, notebook


def same(text, other):
    """Compare texts: their words exactly, decimal numbers to a tenth."""
    numbers = [[float(number) for number in DECIMAL.findall(each)] for each in (text, other)]
    return DECIMAL.sub("", text) == DECIMAL.sub("", other) and numbers[0] == pytest.approx(numbers[1], abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_run_prints_what_is_stored(script, indexed, tmp_path, no_endpoint, monkeypatch, trec_python):
    monkeypatch.setenv("LEGAL_RAG_TREC", str(trec_python))
    folder, notebook = indexed
    if script != "demo.py":
        folder, notebook = tmp_path, read_script(Path(script))
        if "evaluer" in script:
            shutil.copytree(indexed[0] / "demo_output" / "sample", folder / "evaluation_output" / "sample")
        run(notebook, folder)
    assert not [
        output for cell in notebook.cells for output in cell.get("outputs", ()) if output.get("name") == "stderr"
    ]
    clean(notebook, folder)
    for printed, expected in zip(texts(notebook), texts(stored(script)), strict=True):
        assert same(printed, expected), f"{printed}\n--- stored:\n{expected}"


@pytest.mark.slow
def test_demo_runs_from_top_to_bottom_on_the_sample_corpus(indexed):
    folder, notebook = indexed
    printed = "".join(texts(notebook))
    assert "Agent : EvidenceAgent" in printed
    assert printed.count("[Source: FICTIF") >= 4
    assert "Aucun passage pertinent" in printed
    assert ": texte conforme, True" in printed
    assert ", False" not in printed
    answers = (folder / "demo_output" / "reponses.md").read_text("utf-8")
    assert answers.count("## ") == 3
    assert (folder / "demo_output" / "sample" / "entities.sqlite").is_file()


@pytest.mark.slow
def test_demo_shows_what_a_model_did_over_an_index_of_ones_own(tmp_path, monkeypatch, tiny_library):
    asked = "Répondez par un seul mot"

    def script(prompt, attempt):
        return Reply("prêt") if asked in prompt else diligent(prompt, attempt)

    with ScriptedServer(script) as server:
        monkeypatch.setenv("GENERATOR_API_BASE", server.api_base)
        form = {"INDEX": str(tiny_library.path), "GENERATOR_MODEL_ID": "un-modele", "SEARCH_K": 2}
        _, printed = run_notebook(tmp_path, **form)
    assert printed.count("modèle interrogé : openai/un-modele") == 1
    assert asked in server.prompts[0]
    assert "Index fourni" in printed
    assert printed.count("- lit : ") >= 3  # the steps of each question
    assert printed.count("tool_name_0    search_legal_docs") == 3
    assert printed.count("tool_name_1    search_legal_docs") == 3
    assert printed.count("tool_name_2    lookup_legal_doc") == 3
    assert re.search(r"^Décision : FICTIF\d+\nCitation : .*\nJuridiction : ", printed, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.usefixtures("no_endpoint")
def test_demo_makes_a_library_of_an_index_of_pylate_and_the_texts_of_a_dataset(
    tmp_path, tiny_library, tiny_model_folder, sample_file
):
    export_pylate(tiny_library, tmp_path / "exported")
    form = {"INDEX": str(tmp_path / "exported"), "DATASET": str(sample_file), "ENCODER": str(tiny_model_folder)}
    _, printed = run_notebook(tmp_path, **form)
    assert "Index fourni" in printed
    assert f"{len(tiny_library)} décisions, " in printed
    assert len(Library(tmp_path / "demo_output" / "pylate")) == len(tiny_library)


@pytest.mark.slow
def test_demo_says_before_the_first_question_that_a_key_is_refused(tmp_path, monkeypatch, tiny_library):
    with ScriptedServer(lambda prompt, attempt: Reply(status=401, raw_body='{"error": {"message": "bad"}}')) as server:
        monkeypatch.setenv("GENERATOR_API_BASE", server.api_base)
        with pytest.raises(CellExecutionError, match=r"clé refusée\) : vérifiez la clé"):
            run_notebook(tmp_path, INDEX=str(tiny_library.path))
    assert len(server.prompts) == 1


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


@pytest.mark.slow
def test_the_notebook_on_questions_shows_what_examples_change(tmp_path, monkeypatch):
    write = author(with_mischief=False)

    def script(prompt, attempt):
        asked = re.findall(r"\[\[ ## question ## \]\]\n(.*)", prompt)[-1]
        shown = "[[ ## query ## ]]\nRÉCRITURE" in prompt
        if "[[ ## query ## ]]" not in prompt:
            return write(prompt, attempt)
        return fields(query=f"RÉCRITURE {asked}" if shown or len(asked) % 2 else "rien")

    with ScriptedServer(script) as server:
        monkeypatch.setenv("GENERATOR_API_BASE", server.api_base)
        _, printed = run_notebook(tmp_path, "notebooks/generer_des_questions.py", GENERATOR_MODEL_ID="un-modele")
    before, after = re.search(r"Avant : ([\d.]+) ; avec 4 exemples : ([\d.]+)", printed).groups()
    assert float(before) < float(after)


@pytest.mark.slow
def test_without_trec_eval_the_figures_of_ir_measures_remain(tmp_path, monkeypatch, tiny_library):
    monkeypatch.setenv("LEGAL_RAG_TREC", str(tmp_path / "nowhere"))
    form = {"INDEX": str(tiny_library.path), "PYSERINI": False}
    _, printed = run_notebook(tmp_path, "notebooks/evaluer_la_recherche.py", **form)
    assert "Sans trec_eval, restent les chiffres d'ir_measures." in printed
    assert "trec_eval : " not in printed


@pytest.mark.slow
def test_a_bar_in_a_notebook_is_a_widget(tmp_path):
    bar = "from legal_rag.base.files import progress\nfor _ in progress('Encoding', iterable=range(3)): pass"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(bar)])
    NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}}).execute()
    (output,) = notebook.cells[0].outputs
    assert "application/vnd.jupyter.widget-view+json" in output.data
