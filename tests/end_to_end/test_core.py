"""The core alone: what it does without the packages of the extras, and what it says where it needs one."""

import subprocess
import sys

import pytest
from support import ROOT

from legal_rag.base.extras import EXTRAS

pytestmark = pytest.mark.slow

WITHOUT = f"""
import sys

class Hiding:  # a finder that does not find the packages of the extras
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, *rest):
        return None if name.partition(".")[0] in {sorted(EXTRAS)} else self.finder.find_spec(name, *rest)
    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = map(Hiding, sys.meta_path)
from legal_rag.cli import main
sys.exit(main(sys.argv[1:]))
"""


def without_extras(*argv):
    return subprocess.run([sys.executable, "-c", WITHOUT, *map(str, argv)], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def built(tmp_path_factory, tiny_model_folder, tiny_encoder):
    """A Library made without them, by an encoder that was converted before."""
    folder = tmp_path_factory.mktemp("core")
    done = without_extras(
        "index", "--source", "sample", "--limit", 8, "--encoder", tiny_model_folder, "--index-folder", folder
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize(
    "argv",
    [
        ("search", "licenciement"),
        ("ask", "Un licenciement est-il abusif ?"),
        ("lookup", "FICTIF0102"),
        ("info",),
    ],
    ids=lambda argv: argv[0],
)
def test_the_core_indexes_searches_answers_and_extracts(built, argv):
    done = without_extras(argv[0], "--index-folder", built, *argv[1:])
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize(
    ("argv", "missing"),
    [
        (
            ("ask", "--model", "openai/x", "--api-base", "http://127.0.0.1:9/v1", "Oui ?"),
            "dspy is not installed: pip install 'legal-rag[agent]'",
        ),
        (
            ("index", "--source", "owner/dataset", "--encoder", "bundled", "--index-name", "other"),
            "datasets is not installed: pip install 'legal-rag[datasets]'",
        ),
        (
            ("index", "--source", "sample", "--encoder", "owner/model", "--index-name", "other"),
            "pylate is not installed: pip install 'legal-rag[colbert]'",
        ),
    ],
    ids=["agent", "datasets", "colbert"],
)
def test_one_line_names_the_extra_that_is_missing(built, argv, missing):
    done = without_extras(argv[0], "--index-folder", built, *argv[1:])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1].startswith(f"legal-rag: {missing}, or in a clone pip install")


def test_the_demo_runs_on_the_core_alone(tmp_path):
    code = WITHOUT.partition("from legal_rag.cli")[0] + "import runpy\nrunpy.run_path(sys.argv[1], run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code, ROOT / "demo.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert ": texte conforme, True" in done.stdout
