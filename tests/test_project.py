"""Rules that hold for the project as a whole; `make lint` checks which room may import which."""

import tomllib

from support import ROOT


def test_requirements_are_the_dependencies_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    assert [line for line in lines if line and not line.startswith("#")] == project["dependencies"]
