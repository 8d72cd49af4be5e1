"""What a run may cost, what it came to, and how its calls are held to it."""

import time

import dspy
import pytest
from dspy.utils import DummyLM
from support.agent_scripts import QUESTION, SEARCHED, STEPPED, always, sound, wants_step
from support.scripted_server import Reply, ScriptedServer, step

from legal_rag.agent import Budget, LegalReActAgent, build_language_model, default_instructions
from legal_rag.base import deadline
from legal_rag.llm import ModelCalls, model_of
from legal_rag.retriever import build_retriever

INSTEAD = "Voici, à la place, les passages les plus proches, cités mot pour mot."


@pytest.fixture(scope="module")
def retriever(tiny_library, tiny_encoder):
    return build_retriever(tiny_library, tiny_encoder)


@pytest.fixture
def ask(retriever):
    """Ask the question of a model that follows a script, within a budget."""

    def asking(script, budget, model="scripted", **settings):
        with ScriptedServer(script) as server:
            lm = build_language_model(
                model, api_base=server.api_base, **{"timeout": 30, "num_retries": 0, "cache": False} | settings
            )
            return LegalReActAgent(retriever, lm, default_instructions(), budget=budget)(QUESTION), server

    return asking


def restless(prompt, attempt):
    """Search for something else at each step; write a sound answer when asked."""
    if not wants_step(prompt):
        return sound(prompt)
    return step("search_legal_docs", query=f"{SEARCHED} {prompt.count(STEPPED)}", k=2)


def test_out_of_steps_a_model_writes_its_answer_from_what_it_found(ask):
    prediction, server = ask(restless, Budget(steps=3))
    assert (prediction.status, prediction.mode) == ("exhausted", "agent")
    assert prediction.notice == "Budget épuisé : 3 étapes"
    assert prediction.citations[0].status == "verified"
    assert len(server.prompts) == 4


@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        (Budget(model_calls=2), "2 appels au modèle"),
        (Budget(tokens=4), "4 jetons lus et écrits"),
        (Budget(tokens=3), "3 jetons lus et écrits (4 avec la dernière réponse)"),
    ],
)
def test_a_run_out_of_calls_or_tokens_ends_with_passages_and_names_the_limit(ask, budget, limit):
    prediction, server = ask(restless, budget)
    assert (prediction.status, prediction.mode) == ("exhausted", "fallback")
    assert prediction.notice == f"Budget épuisé : {limit}. {INSTEAD}"
    assert prediction.usage.calls == len(server.prompts) == 2
    assert [event.type for event in prediction.events].count("think") == 2
    found = {chunk_id.rpartition("-")[0] for event in prediction.events for chunk_id in event.output_ids}
    assert {document.doc_id for document in prediction.documents} >= {one for one in found if one}


def test_an_answer_that_went_beyond_the_budget_says_so(ask):
    prediction, _ = ask(sound, Budget(tokens=5))
    assert (prediction.status, prediction.usage.tokens) == ("answered", 6)
    assert prediction.notice == "Budget épuisé : 5 jetons lus et écrits (6 avec la dernière réponse)"


def test_a_model_whose_price_is_unknown_is_not_asked_where_dollars_are_limited(ask):
    prediction, server = ask(restless, Budget(cost=1.0))
    unknown = "le prix de ce modèle est inconnu, le coût ne peut donc pas être limité"
    assert prediction.notice == f"Budget épuisé : {unknown}. {INSTEAD}"
    assert len(server.prompts) == 0


def test_dollars_are_limited_where_the_price_is_known(ask):
    prediction, server = ask(restless, Budget(cost=2e-6), model="openai/gpt-4o-mini")
    assert prediction.notice.startswith("Budget épuisé : 0,000002 dollar")
    assert len(server.prompts) == 3
    assert prediction.usage.cost == pytest.approx(3 * 0.75e-6)


def test_the_seconds_end_a_tool_that_goes_on(ask, monkeypatch):
    def endless(*_, **__):
        while True:
            deadline.check()

    monkeypatch.setattr("legal_rag.agent.tools._Tools._search", endless)
    prediction, _ = ask(restless, Budget(seconds=0.7))
    assert prediction.notice == f"Budget épuisé : 0,7 seconde. {INSTEAD}"


@pytest.mark.parametrize("settings", [{}, {"num_retries": 5}, {"timeout": 0.2, "num_retries": 50}])
def test_a_server_that_never_answers_cannot_exceed_the_seconds_by_much(ask, settings):
    started = time.monotonic()
    prediction, _ = ask(always(Reply(hangs=True)), Budget(seconds=0.7), **settings)
    assert time.monotonic() - started < 15
    assert (prediction.status, prediction.mode) in {("exhausted", "fallback"), ("model_failed", "fallback")}
    assert {citation.status for citation in prediction.citations} == {"verified"}


def test_each_step_says_what_it_came_to(ask):
    prediction, _ = ask(sound, Budget())
    usages = [event.usage for event in prediction.events]
    assert [usage and usage.calls for usage in usages] == [
        None,
        1,
        None,
        1,
        None,
        1,
    ]
    total = usages[1].plus(usages[3]).plus(usages[5])
    assert prediction.usage == total
    assert total.cost is None
    assert all(event.seconds > 0 for event in prediction.events)
    assert prediction.seconds > sum(event.seconds for event in prediction.events)


def test_a_failed_request_is_counted_where_it_was_made(ask):
    def script(prompt, attempt):
        return Reply(status=503, raw_body="{}", headers=(("Retry-After", "0"),)) if attempt < 2 else sound(prompt)

    prediction, server = ask(script, Budget(), num_retries=2)
    assert prediction.status == "answered"
    assert prediction.usage.calls == len(server.prompts) == 9
    assert prediction.events[1].usage.calls == 3


def test_a_model_is_left_as_it_was(retriever):
    with ScriptedServer(sound) as server:
        lm = build_language_model("scripted", api_base=server.api_base, timeout=30, num_retries=2, cache=False)
        LegalReActAgent(retriever, lm, default_instructions(), budget=Budget(seconds=5))(QUESTION)
    assert type(lm) is dspy.LM
    assert (lm.history, model_of(lm).num_retries, model_of(lm).timeout) == ([], 2, 30)


def test_somebodys_own_language_model_is_counted_too(retriever):
    lm = DummyLM([{"next_tool_name": "finish"}, {"answer": "Aucun passage pertinent."}])
    prediction = LegalReActAgent(retriever, lm, default_instructions())(QUESTION)
    assert (prediction.status, prediction.usage.calls, lm.history) == ("abstained", 2, [])


def test_the_loop_is_a_dspy_program_whose_predictors_optimisers_see(retriever):
    agent = LegalReActAgent(retriever, DummyLM([]), default_instructions())
    assert [name for name, _ in agent.react.named_predictors()] == ["react"]
    lm = DummyLM([{"query": "compte"}, {"tool": "finish"}, {"answer": "Oui."}])
    with dspy.context(lm=lm, trace=[]):
        prediction = agent.react(question=QUESTION)
        traced = [predictor for predictor, _, _ in dspy.settings.trace]
    assert prediction.answer == "Oui."
    assert prediction.trajectory["tool_args_0"] == {"query": QUESTION}
    assert prediction.trajectory["tool_args_1"] == {"query": "compte"}
    assert traced == [agent.react.react] * 3


def test_calls_of_one_run_are_not_counted_in_another_one(retriever):
    lm = DummyLM([{"answer": "un"}, {"answer": "deux"}])
    first, second = ModelCalls(lm, Budget()), ModelCalls(lm, Budget())
    predictor = dspy.Predict("question -> answer")
    assert first.ask(predictor, question="?").fields == {"answer": "un"}
    assert second.ask(predictor, question="?").text.startswith("[[ ## answer ## ]]")
    assert (first.tracker.usage.calls, second.tracker.usage.calls) == (1, 1)
