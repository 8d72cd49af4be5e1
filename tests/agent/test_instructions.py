"""The instructions: what every one must say, and nothing that no tool can do."""

import re

import pytest

from legal_rag.agent import build_tools, default_instructions
from legal_rag.agent.instructions import instruction_names
from legal_rag.retriever import build_retriever

EVERY = pytest.mark.parametrize("name", ["code_du_travail", "constitutionnel", "jurisprudence"])


@pytest.fixture(scope="module")
def tools(tiny_library, tiny_encoder):
    return {tool.__name__: tool for tool in build_tools(tiny_library, build_retriever(tiny_library, tiny_encoder))}


def test_the_packages_own_instructions_are_listed_and_case_law_is_the_default():
    assert instruction_names() == ["code_du_travail", "constitutionnel", "jurisprudence"]
    assert default_instructions() == default_instructions("jurisprudence")


@EVERY
def test_instructions_name_every_tool_that_there_always_is_and_no_other(name, tools):
    named = set(re.findall(r"\b[a-z]+_[a-z_]+\b", default_instructions(name)))
    assert named == set(tools) - {"graph_neighbours"}  # only where there is a graph
    assert "finish" in default_instructions(name)
    assert "start" in tools["lookup_legal_doc"].__annotations__


@pytest.mark.parametrize("name", ["martien", "", "../instructions/jurisprudence", "jurisprudence.md", "__init__", "\0"])
def test_instructions_that_do_not_exist_are_refused_with_those_that_do(name):
    expected = r"no instructions named .* \(there are: code_du_travail, constitutionnel, jurisprudence\)"
    with pytest.raises(LookupError, match=expected):
        default_instructions(name)
