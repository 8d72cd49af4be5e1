"""Rules that hold for the project as a whole; `make lint` checks which room may import which."""

import re
import tomllib

from support import ROOT

from legal_rag.base.extras import EXTRAS


def test_requirements_are_the_core_and_extras_and_every_optional_package_belongs_to_its_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    optional = project["optional-dependencies"]
    extras = [one for extra in ("agent", "datasets", "langextract") for one in optional[extra]]
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    assert [line for line in lines if line and not line.startswith("#")] == sorted(project["dependencies"] + extras)
    for module, extra in EXTRAS.items():
        names = [re.split(r"[\[<>=]", one)[0] for one in optional[extra]]
        assert {"rlm": "rlms", "litellm": "dspy", "Stemmer": "PyStemmer"}.get(module, module.replace("_", "-")) in names


def test_the_citation_file_names_the_version_and_the_licence():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text("utf-8").splitlines()
    assert f"version: {project['version']}" in citation
    assert f"license: {project['license']}" in citation
