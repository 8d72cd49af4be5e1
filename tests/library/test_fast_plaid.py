import shutil
import subprocess
import sys
from importlib.metadata import version

import pytest
from support import ROOT

from legal_rag.encoder import install_fast_plaid
from legal_rag.encoder.runtime import fast_plaid_build


@pytest.mark.parametrize(
    ("torch", "build"),
    [
        (version("torch"), version("fast-plaid")),  # installed here
        *((one, "1.4.6.290") for one in ("2.9.0+cu126", "2.9.0+cpu", "2.9.0")),
        *((one, None) for one in ("2.9.1+cu128", "2.6.0", "2.12.0", "2.9", "", "2.9.0rc1")),
    ],
)
def test_a_torch_has_the_build_for_its_version_wherever_it_was_compiled_for(torch, build):
    assert fast_plaid_build(torch) == build


def test_nothing_is_done_where_it_is_installed(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere")
    assert install_fast_plaid() == "fast-plaid est installé."


INSTALL = """
from legal_rag.encoder import runtime as fast_plaid
fast_plaid.best_device = lambda: "cuda"
print(fast_plaid.install_fast_plaid())
"""
RUNTIME = {"torchvision": "0.24.0+cu126", "transformers": "4.57.1"}


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runtime")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return folder


def install(runtime, torch, code=INSTALL):
    (packages,) = runtime.glob("lib/python*/site-packages")
    for old in packages.glob("torch-*.dist-info"):
        shutil.rmtree(old)
    for name, number in (RUNTIME | ({"torch": torch} if torch else {})).items():
        facts = packages / f"{name}-{number}.dist-info" / "METADATA"
        facts.parent.mkdir(exist_ok=True)
        facts.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n")
        (facts.parent / "INSTALLER").write_text("pip\n")
    command = [runtime / "bin" / "python", "-c", code]
    environment = {"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
def test_another_torch_is_passed_over_with_a_sentence(runtime):
    assert install(runtime, "2.9.1+cu128") == (
        "fast-plaid n'existe pas pour PyTorch 2.9.1+cu128 (mais pour 2.7.0, 2.7.1, 2.8.0, 2.9.0, 2.10.0, 2.11.0) : "
        "les index sont écrits et cherchés sur le processeur."
    )
    assert install(runtime, "").startswith("La version de PyTorch est inconnue")
    assert install(runtime, "2.9.0", INSTALL.replace("cuda", "cpu")).startswith("Pas de GPU : ")


@pytest.mark.slow
def test_the_build_for_the_runtimes_torch_is_installed_and_leaves_the_runtime_as_it_was(runtime):
    torch = "2.9.0+cu126"
    assert install(runtime, torch) == f"fast-plaid 1.4.6.290 est installé pour PyTorch {torch}."
    listed = [runtime / "bin" / "python", "-m", "pip", "list", "--format", "freeze"]
    installed = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.splitlines()
    assert {f"{name}=={number}" for name, number in (RUNTIME | {"torch": torch}).items()} <= set(installed)
    assert "fast_plaid==1.4.6.290" in installed


@pytest.mark.slow
def test_an_installation_that_fails_is_a_sentence(runtime):
    subprocess.run([runtime / "bin" / "python", "-m", "pip", "uninstall", "-q", "-y", "fast-plaid"], check=False)
    said = install(runtime, "2.8.0", "import os\nos.environ['PIP_NO_INDEX'] = '1'\n" + INSTALL)
    assert said.startswith("fast-plaid 1.4.6.280 ne s'installe pas (ERROR: ")
