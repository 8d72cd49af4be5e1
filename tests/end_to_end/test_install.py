"""The notebooks install the package themselves, in one process, in an environment that lacks it."""

import functools
import http.server
import os
import subprocess
import sys
import threading

import jupytext
import pytest
from support import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Serve the package on 127.0.0.1, as a wheel and as a git repository."""
    folder = tmp_path_factory.mktemp("served")
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT], check=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run(["git", "clone", "-q", "--bare", ROOT, folder / "legal_rag.git"], check=True)
    subprocess.run(["git", "update-server-info"], cwd=folder / "legal_rag.git", check=True)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    yield {"wheel": f"{address}/{wheel.name}", "git": f"git+{address}/legal_rag.git"}
    server.shutdown()


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Make an empty environment, whose torchvision does not import, as one made for another torch."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "torchvision").mkdir()
    (packages / "torchvision" / "__init__.py").write_text(
        "raise RuntimeError('operator torchvision::nms does not exist')"
    )
    return folder


def run_cells(environment, script, source, folder, until=""):
    """Run a notebook's code cells, up to the heading `until`, in one process and an empty folder."""
    text = (ROOT / script).read_text("utf-8")
    cells = jupytext.reads(text[: text.index(until)] if until else text, fmt="py:percent").cells
    code = "\n\n".join(cell.source for cell in cells if cell.cell_type == "code")
    (folder / "cells.py").write_text(code, encoding="utf-8")
    without = ("PYTHONPATH", "GENERATOR_API_BASE", "GENERATOR_API_KEY", "GENERATOR_MODEL_ID", "HF_TOKEN")
    variables = {name: value for name, value in os.environ.items() if name not in without}
    return subprocess.run(
        [environment / "bin" / "python", "cells.py"],
        cwd=folder,
        env=variables | {"LEGAL_RAG_SOURCE": source},
        capture_output=True,
        text=True,
        check=False,
    )


def version_in(environment, name):
    code = f"from importlib.metadata import version; print(version({name!r}))"
    done = subprocess.run([environment / "bin" / "python", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_demo_says_what_changes_installs_itself_and_answers_without_a_restart(served, environment, tmp_path):
    subprocess.run([environment / "bin" / "pip", "install", "-q", "tqdm==4.65.0"], check=True)
    done = run_cells(environment, "demo.py", served["wheel"], tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert [line for line in done.stdout.splitlines() if line.startswith("Ce qui est là change")] == [
        f"Ce qui est là change : tqdm 4.65.0 devient {version_in(environment, 'tqdm')}"
    ]
    assert ": texte conforme, True" in done.stdout
    installed = subprocess.run(
        [environment / "bin" / "pip", "list", "--format", "freeze"], capture_output=True, text=True, check=True
    ).stdout
    assert "torch==" not in installed  # the runtime's own stays as it is


def test_a_notebook_installs_itself_from_git(served, environment, tmp_path):
    subprocess.run([environment / "bin" / "pip", "uninstall", "-q", "-y", "legal-rag"], check=True)
    done = run_cells(environment, "notebooks/extraire_les_entites.py", served["git"], tmp_path, until="# ## 3.")
    assert done.returncode == 0, done.stderr[-3000:]


def test_a_notebook_that_finds_no_package_says_what_to_name(tmp_path_factory, tmp_path):
    empty = tmp_path_factory.mktemp("empty")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", empty], check=True)
    done = run_cells(empty, "demo.py", "", tmp_path, until="# ## 2.")
    assert "Le paquet manque : nommez-le par PACKAGE, ou une copie du dépôt par LEGAL_RAG_SOURCE." in done.stderr
