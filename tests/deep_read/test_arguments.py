"""Arguments that programs and models hand over: bounded before anything reads, logs or caches them; the deadline."""

import inspect
from itertools import product

import pytest
from support.indexed_corpora import indexed_sample

from legal_rag.agent.event_log import ARGUMENT_CHARS, EventLog
from legal_rag.agent.prediction import Event
from legal_rag.agent.tool_arguments import MAX_GUESSED
from legal_rag.agent.tools import build_tools
from legal_rag.base import deadline
from legal_rag.deep_read import create_multi_doc_env, rlm
from legal_rag.deep_read.functions import FUNCTION_NAMES, MultiDocREPL
from legal_rag.deep_read.map_reduce import map_in_threads
from legal_rag.llm import Budget, BudgetExceededError, UsageTracker
from legal_rag.retriever import Retriever

PARAMETERS = {name: [*inspect.signature(getattr(MultiDocREPL, name)).parameters][1:] for name in FUNCTION_NAMES}
NEEDED = {
    "doc_id": "FICTIF0210", "doc_ids": ["FICTIF0210"], "query": "préavis", "question": "Quel préavis ?",
    "keyword": "contrat", "keywords": ["contrat"], "entity": "Lever", "pattern": "contrat", "topic": "contrat",
    "text": "L. 1152-1 du code du travail", "section_name": "Motifs", "prompt": "oui", "prompts": ["oui"],
    "prompt_description": "des plafonds", "extraction_classes": ["plafond"],
}  # fmt: skip
# Refused whatever the parameter is, but for texts and prompts, which may be long.
REFUSED = {
    "a million and a half of characters": "x" * 1_500_000,
    "marks": "\u0301\u0323" * 1_000_000,
    "lists in lists": [[[[[["x"]]]]]],
    "deepest lists": [],  # filled below
    "a number of digits": 10**5000,
    "many items": ["x"] * 300_000,
    "long items": ["x" * 400_000] * 50,
    "an object": object(),
}
for _ in range(100_000):
    REFUSED["deepest lists"] = [REFUSED["deepest lists"]]
ODD = {
    "nothing": None, "no text": "", "yes": True, "no number": float("nan"), "less": -1, "large": 2**200,
    "key": {"a": 1},
    "odd characters": "\ud800\x00\x1b]52;c;aGk=\x07\u202e", "marks": "e" + "\u0301\u0323" * 240, "digits": "9" * 490,
    "opened": "[" * 490, "row": ("a", 1.5, "b"), "rows": [{"doc_id": "x", "text": "y" * 10_000}], "named": b"bytes",
    "blanks": "\u00a0" * 490, "numbers": "1 " * 240, "articles": "art. L. 1-1-1-1 " * 30, "set": {"a"},
}  # fmt: skip


class Model:
    def query(self, prompt):
        return '{"pertinent": false}'


@pytest.fixture(scope="module")
def corpus(sample_file, tiny_encoder, tmp_path_factory):
    return indexed_sample(tmp_path_factory.getbasetemp(), sample_file, tiny_encoder)


@pytest.fixture
def env(corpus):
    return create_multi_doc_env(corpus, Model(), workers=1)


def called(env, name, parameter, value):
    function = env.functions[name]
    parameters = inspect.signature(function).parameters.values()
    needed = {one.name: NEEDED[one.name] for one in parameters if one.default is inspect.Parameter.empty}
    return function(**needed | {parameter: value})


@pytest.mark.parametrize("name", FUNCTION_NAMES)
def test_what_is_too_much_is_refused_in_a_line_and_kept_nowhere(env, name):
    for parameter, value in product(PARAMETERS[name], REFUSED.values()):
        with pytest.raises(ValueError, match=f"^{parameter} (est trop long : plus de|n'est pas compris : )") as refused:
            called(env, name, parameter, value)
        assert len(str(refused.value)) < 100
    assert not env.repl.log.events
    assert all(not one.currsize for one in env.repl.cache_info.values())


@pytest.mark.parametrize("name", FUNCTION_NAMES)
def test_odd_values_are_answered_or_refused_in_a_line(env, name):
    for parameter, value in product(PARAMETERS[name], ODD.values()):
        said = ""
        try:
            called(env, name, parameter, value)
        except (ValueError, LookupError) as error:
            said = error.args[0]
        assert len(said) < 1000
        assert said.isprintable()


def test_a_dictionary_in_place_of_a_text_is_refused_and_not_searched_by_its_words(env):
    for name, parameter in (
        ("search_by_keyword", "keyword"),
        ("find_documents", "solution"),
        ("grep_corpus", "pattern"),
    ):
        with pytest.raises(ValueError, match="un dictionnaire au lieu d'un texte"):
            called(env, name, parameter, {"rejet": "contrat"})
    assert env.functions["get_doc_meta"]({"doc_id": "FICTIF0210"})["doc_id"] == "FICTIF0210"


def test_results_are_found_again_by_keys_of_a_few_bytes(env):
    env.functions["find_documents"](doc_ids=env.values["doc_ids"], solution="rejet")
    env.functions["rank_documents"]("préavis " * 2000)
    env.functions["llm_query"]("oui" * 100_000)
    caches = (env.repl.search_result_cache, env.repl.llm_response_cache)
    assert [len(one.cache) for one in caches] == [2, 1]
    assert all(len(key) < 100 for one in caches for key in one.cache)


def test_a_result_of_a_function_names_its_documents_however_long_it_is(env):
    found = env.functions["grep_corpus"]("contrat", context=1000)
    assert list(env.functions["get_doc_metas"](found)) == list(found)
    passages = env.functions["search_passages"]("contrat de travail", 20)
    assert set(env.functions["get_doc_metas"](passages)) == {one["doc_id"] for one in passages}


def test_more_names_than_are_looked_for_one_by_one_are_refused(env):
    with pytest.raises(ValueError, match="plus de 500 noms qui ne sont pas des identifiants"):
        env.functions["ask_across_documents"]("Quel préavis ?", [f"INCONNU{i}" for i in range(MAX_GUESSED + 1)])
    answers = env.functions["ask_across_documents"]("Quel préavis ?", [f"INCONNU{i}" for i in range(20)])
    assert all(one.startswith("Erreur : ") for one in answers.values())


@pytest.mark.parametrize("name", ["search_legal_docs", "lookup_legal_doc", "lookup_entities"])
def test_a_tool_says_that_it_was_not_called(corpus, tiny_encoder, name):
    log = EventLog()
    tools = {one.__name__: one for one in build_tools(corpus.library, Retriever(corpus.library, tiny_encoder), log)}
    for value in REFUSED.values():
        assert tools[name](value).startswith("Appel refusé : ")
    assert not log.events


def test_an_event_keeps_the_beginning_of_its_input():
    log = EventLog()
    with log.record("search", "s", query="x" * 20_000):
        pass
    assert log.events[0].input == {"query": "x" * ARGUMENT_CHARS + "…"}
    log.add(Event("search", "s", {"query": "préavis", "k": 5, "score": 0.5, "ids": ("a", "b"), "no": None}, [], 0.0))
    assert log.events[1].input == {"query": "préavis", "k": 5, "score": 0.5, "ids": ["a", "b"], "no": None}


class Sub:
    name = "model"


def environment(env, functions, seconds):
    """Return the environment of a run that has so many seconds."""
    setup = rlm.RunSetup(
        root=Sub(), sub=Sub(), tracker=UsageTracker(Budget(seconds=seconds)), functions=functions, values=env.values,
        prompt="", receipts=env.receipts,
    )  # fmt: skip
    return rlm.ProgramEnvironment(setup, "")


@pytest.mark.parametrize(
    "call",
    [
        "get_doc_summary(f'INCONNU{i}')",
        "rank_documents(f'préavis {i}', 50)",
        "grep_corpus(f'e(?s:.*)ZZZ|e|{i}', max_docs=None, max_matches_per_doc=None)",
        "get_all_summaries()",
    ],
)
def test_the_seconds_of_a_budget_end_a_program_whose_functions_go_on(env, call):
    code = f"for i in range(10**6):\n    try: {call}\n    except LookupError: pass"
    sandbox = environment(env, env.functions, 0.6)
    with pytest.raises(BudgetExceededError, match="0,6 seconde"):
        sandbox.execute_code(code)
    sandbox.cleanup()


def test_a_function_that_asks_the_deadline_is_interrupted_and_leaves_the_run(env):
    def endless():
        while True:
            deadline.check()

    functions = {**env.functions, "endless": endless}
    sandbox = environment(env, functions, 0.5)
    with pytest.raises(BudgetExceededError, match="0,5 seconde"):
        sandbox.execute_code("try:\n    endless()\nexcept Exception:\n    pass\nprint('encore')")
    sandbox.cleanup()


def test_threads_know_the_deadline_of_who_started_them():
    def left(_):
        return deadline.seconds_left()

    with deadline.within(5.0):
        assert all(one < 5.0 for one in map_in_threads(left, range(4), 2))
    with deadline.within(-1.0), pytest.raises(deadline.DeadlineError):
        list(map_in_threads(lambda _: deadline.check(), range(4), 2))
