"""Thirty questions over thousands of real decisions: programs give the exact answer, alone and through a deep read."""

import ast
import sys
from functools import cache

import pytest
from support import ROOT

sys.path.append(str(ROOT / "benchmarks"))  # behind everything: no name there hides another

from deep_read import WAYS, open_or_build, plain_value, read_rows
from deep_read_questions import QUESTIONS

MODULES = sorted((ROOT / "benchmarks" / "deep_read_questions").glob("*.py"))
BY_ID = {one.id: one for one in QUESTIONS}


@pytest.fixture(scope="module")
def rows(shared_data):
    return read_rows(shared_data)


@pytest.fixture(scope="module")
def library(shared_data, tiny_encoder, tmp_path_factory):
    return open_or_build(shared_data, tmp_path_factory.mktemp("decisions"), tiny_encoder)


@pytest.fixture(scope="module")
def expected(rows):
    """Return what gives a question's answer, found once, by reading all rows."""
    return cache(lambda name: plain_value(BY_ID[name].oracle(rows)))


@pytest.fixture(scope="module", params=["functions", "deep_read"])  # which runs its programs in the sandbox
def way(request, library):
    with WAYS[request.param](library, QUESTIONS) as way:
        yield way


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_an_oracle_shares_no_code_with_the_toolkit(path):
    imports = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ImportFrom)]
    assert not [node.module for node in imports if node.module.startswith("legal_rag")]


@pytest.mark.parametrize("name", BY_ID)
@pytest.mark.shared
@pytest.mark.slow
def test_every_way_gives_the_answer_that_the_rows_give(name, expected, way):
    assert plain_value(way(BY_ID[name]).value) == expected(name)
