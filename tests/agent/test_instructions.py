"""The instructions: what every one must say, and nothing that no tool can do."""

import re

import pytest
from support.agent_scripts import QUESTION, sound
from support.scripted_server import ScriptedServer

from legal_rag.agent import LegalReActAgent, build_language_model, default_instructions
from legal_rag.agent.agent import CHARS_PER_TOKEN
from legal_rag.agent.instructions import instruction_names
from legal_rag.retriever import build_retriever

EVERY = pytest.mark.parametrize("name", ["code_du_travail", "constitutionnel", "jurisprudence"])


@pytest.fixture(scope="module")
def prompt_of(tiny_library, tiny_encoder):
    """Return the system prompt that a model with a context of so many tokens gets."""
    retriever = build_retriever(tiny_library, tiny_encoder)

    def system_prompt(name="jurisprudence", window=None, **settings):
        with ScriptedServer(sound) as server:
            lm = build_language_model("scripted", api_base=server.api_base, num_retries=0, cache=False, window=window)
            LegalReActAgent(retriever, lm, default_instructions(name), **settings)(QUESTION)
            return server.prompts[0].partition("\n<extrait>")[0]

    return system_prompt


def test_the_packages_own_instructions_are_listed_and_case_law_is_the_default():
    assert instruction_names() == ["code_du_travail", "constitutionnel", "jurisprudence"]
    assert default_instructions() == default_instructions("jurisprudence")


ALL = {"get_outline", "read_section", "lookup_entities", "graph_neighbours"}  # tools that are told of by name


@EVERY
def test_a_small_model_is_told_of_two_forms_and_of_the_answer_in_few_words(prompt_of, name):
    prompt = prompt_of(name, window=8192)
    forms = re.findall(r"^- (\{.*\}) : ", prompt, re.MULTILINE)
    assert forms == ['{"evidence": […], "answer": "…"}', '{"query": "…"}', '{"id": "…"}']
    assert not re.search(r"\b[a-z]+_[a-z_]+\b", prompt)  # no name of a tool, no optional parameter
    assert "vm:" not in prompt
    assert len(prompt) < 600 * CHARS_PER_TOKEN


@EVERY
def test_no_value_that_a_model_could_copy_stands_in_its_prompt(prompt_of, name):
    for window in (8192, None):
        prompt = prompt_of(name, window=window)
        # Numbers of passages are the only figures, and the confidences of tags.
        assert not re.search(r"\d", re.sub(r"\[P\d\]|confidence=\"0\.\d\"", "", prompt))
        assert not re.search(r"JURITEXT|CETATEXT|Cass\.|CA \w", prompt)
        assert set(re.findall(r'"(?:query|id|section|name|question)": "([^"]*)"', prompt)) == {"…"}


@EVERY
def test_a_large_model_is_told_of_every_tool_and_of_no_other(prompt_of, name):
    prompt = prompt_of(name)
    assert set(re.findall(r'"tool": "(\w+)"', prompt)) == ALL
    assert "vm:entity" in prompt


def test_tools_are_told_of_by_name_whatever_the_window(prompt_of):
    prompt = prompt_of(window=8192, tools=["get_outline"])
    assert re.findall(r'"tool": "(\w+)"', prompt) == ["get_outline"]
    assert set(re.findall(r'"tool": "(\w+)"', prompt_of(tools=["get_outline", "read_section"]))) == {
        "get_outline",
        "read_section",
    }
    assert '"tool"' not in prompt_of(tools=[])
    with pytest.raises(ValueError, match=r"no tool named 'danser' \(there are: search_legal_docs, "):
        prompt_of(tools=["danser"])


@pytest.mark.parametrize("name", ["martien", "", "../instructions/jurisprudence", "jurisprudence.md", "__init__", "\0"])
def test_instructions_that_do_not_exist_are_refused_with_those_that_do(name):
    expected = r"no instructions named .* \(there are: code_du_travail, constitutionnel, jurisprudence\)"
    with pytest.raises(LookupError, match=expected):
        default_instructions(name)
