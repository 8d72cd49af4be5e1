"""What a run may cost, what it came to, and how its calls are held to it."""

import time

import dspy
import pytest
from dspy.utils import DummyLM
from support.agent_scripts import QUESTION, SEARCHED, always, in_steps, quotation, sound, wants_step
from support.scripted_server import Reply, ScriptedServer, fields, step

from legal_rag import deadline
from legal_rag.agent import Budget, LegalReActAgent, Usage, build_language_model, default_instructions
from legal_rag.agent.budget import BudgetExceededError
from legal_rag.agent.model_calls import CallTimeout, ModelCalls, UsageTracker
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


@pytest.fixture
def empty_cache(monkeypatch):
    """Give DSPy a cache in memory, with nothing in it."""
    cache = dspy.clients.Cache(enable_disk_cache=False, enable_memory_cache=True, disk_cache_dir=None)
    monkeypatch.setattr(dspy, "cache", cache)


def restless(prompt, attempt):
    """Search for something else at each step; write a sound answer when asked."""
    if not wants_step(prompt):
        return sound(prompt)
    return step("search_legal_docs", query=f"{SEARCHED} {prompt.count('[[ ## observation_')}", k=2)


def test_out_of_steps_a_model_writes_its_answer_from_what_it_found(ask):
    prediction, server = ask(restless, Budget(steps=3))
    assert (prediction.status, prediction.mode) == ("exhausted", "agent")
    assert prediction.notice == "Budget épuisé : 3 étapes"
    assert prediction.citations[0].status == "verified"
    assert len(server.prompts) == 4


def test_out_of_steps_an_answer_that_cites_nothing_is_replaced_by_passages(ask):
    def script(prompt, attempt):
        return restless(prompt, attempt) if wants_step(prompt) else fields(reasoning="?", answer="Deux mois.")

    prediction, _ = ask(script, Budget(steps=1))
    assert (prediction.status, prediction.mode) == ("exhausted", "fallback")
    assert prediction.notice == f"Budget épuisé : 1 étape. {INSTEAD}"


@pytest.mark.parametrize(
    ("budget", "calls", "limit"),
    [
        (Budget(model_calls=2), 2, "2 appels au modèle"),
        (Budget(tokens=5), 3, "5 jetons lus et écrits"),
        (Budget(cost=1.0), 1, "le prix de ce modèle est inconnu, le coût ne peut donc pas être limité"),
    ],
)
def test_a_run_that_reaches_a_limit_ends_with_passages_and_names_it(ask, budget, calls, limit):
    prediction, server = ask(restless, budget)
    assert (prediction.status, prediction.mode) == ("exhausted", "fallback")
    assert prediction.notice == f"Budget épuisé : {limit}. {INSTEAD}"
    assert prediction.usage.calls == len(server.prompts) == calls
    assert [event.type for event in prediction.events].count("think") == calls
    found = {chunk_id.rpartition("-")[0] for event in prediction.events for chunk_id in event.output_ids}
    assert {document.doc_id for document in prediction.documents} >= {one for one in found if one}


def test_dollars_are_counted_where_the_price_is_known(ask):
    prediction, server = ask(restless, Budget(cost=1e-6), model="openai/gpt-4o-mini")
    assert (prediction.status, len(server.prompts)) == ("exhausted", 2)
    assert prediction.usage.cost == pytest.approx(2 * (0.15e-6 + 0.6e-6))
    assert prediction.notice.startswith("Budget épuisé : 0,000001 dollar. ")


def test_the_seconds_end_a_tool_that_goes_on(ask, monkeypatch):
    def endless(*_, **__):
        while True:
            deadline.check()

    monkeypatch.setattr("legal_rag.agent.tools._Tools._search", endless)
    started = time.monotonic()
    prediction, _ = ask(restless, Budget(seconds=0.7))
    assert time.monotonic() - started < 4.0
    assert prediction.notice == f"Budget épuisé : 0,7 seconde. {INSTEAD}"


@pytest.mark.parametrize("settings", [{}, {"num_retries": 5}, {"timeout": 0.2, "num_retries": 50}])
def test_a_server_that_never_answers_cannot_exceed_the_seconds_by_much(ask, settings):
    started = time.monotonic()
    prediction, _ = ask(always(Reply(hangs=True)), Budget(seconds=0.7), **settings)
    assert time.monotonic() - started < 5.0
    assert (prediction.status, prediction.mode) in {("exhausted", "fallback"), ("model_failed", "fallback")}
    assert {citation.status for citation in prediction.citations} == {"verified"}


def test_a_call_cut_short_by_the_seconds_left_is_an_exhausted_budget(ask):
    prediction, _ = ask(in_steps(Reply(hangs=True)), Budget(seconds=0.5))
    assert prediction.notice == f"Budget épuisé : 0,5 seconde. {INSTEAD}"


def test_a_failed_request_is_made_again_as_often_as_the_model_is_set_to(ask):
    def script(prompt, attempt):
        return Reply(status=503, raw_body="{}", headers=(("Retry-After", "0"),)) if attempt < 2 else sound(prompt)

    prediction, server = ask(script, Budget(), num_retries=2)
    assert prediction.status == "answered"
    assert prediction.usage.calls == len(server.prompts) == 9
    assert prediction.events[0].usage.calls == 3
    prediction, _ = ask(script, Budget(), num_retries=1)
    assert prediction.status == "model_failed"


def test_each_step_says_what_it_came_to(ask):
    prediction, _ = ask(sound, Budget())
    usages = [event.usage for event in prediction.events]
    one = Usage(calls=1, prompt_tokens=1, completion_tokens=1, cost=None)
    assert usages == [one, None, one, None, one]  # think, search, think, cite, answer
    assert prediction.usage == Usage(calls=3, prompt_tokens=3, completion_tokens=3, cost=None)
    assert all(event.seconds > 0 for event in prediction.events)
    assert prediction.seconds > sum(event.seconds for event in prediction.events)


def test_the_same_question_again_costs_no_call_whatever_the_seconds_left(ask, empty_cache, retriever):
    with ScriptedServer(sound) as server:
        lm = build_language_model("scripted", api_base=server.api_base, timeout=30, num_retries=0, cache=True)
        predictions = [
            LegalReActAgent(retriever, lm, default_instructions(), budget=Budget(seconds=seconds))(QUESTION)
            for seconds in (600.0, 5.0, 25.0)
        ]
    assert [prediction.usage.calls for prediction in predictions] == [3, 0, 0]
    assert predictions[1].usage == Usage(cached=3)
    assert predictions[1].events[0].usage == Usage(cached=1)
    assert len({prediction.answer for prediction in predictions}) == 1
    assert len(server.prompts) == 3


@pytest.mark.slow
def test_both_of_dspys_engines_read_a_calls_time_limit(empty_cache):
    with ScriptedServer(lambda prompt, attempt: Reply(hangs="hang" in prompt, content="Oui")) as server:
        lm = dspy.LM("openai/x", api_base=server.api_base, api_key="k", engine="litellm", timeout=30, num_retries=0)
        predictor = dspy.Predict("question -> answer")
        again = [ModelCalls(lm, Budget(seconds=left)).ask(predictor, question="?").usage for left in (600, 10)]
        assert [(usage.calls, usage.cached) for usage in again] == [(1, 0), (0, 1)]
        with pytest.raises(BudgetExceededError, match="Budget épuisé : 0,5 seconde"):
            ModelCalls(lm, Budget(seconds=0.5)).ask(predictor, question="hang")


def test_replies_from_the_cache_do_not_count_against_a_budget(empty_cache, retriever):
    with ScriptedServer(sound) as server:
        lm = build_language_model("scripted", api_base=server.api_base, timeout=30, num_retries=0, cache=True)
        LegalReActAgent(retriever, lm, default_instructions())(QUESTION)
        again = LegalReActAgent(retriever, lm, default_instructions(), budget=Budget(tokens=1, cost=1e-9))(QUESTION)
    assert again.status == "answered"


def test_a_model_is_left_as_it_was(ask, retriever):
    with ScriptedServer(sound) as server:
        lm = build_language_model("scripted", api_base=server.api_base, timeout=30, num_retries=2, cache=False)
        LegalReActAgent(retriever, lm, default_instructions(), budget=Budget(seconds=5))(QUESTION)
    assert type(lm) is dspy.LM
    assert (lm.history, lm.num_retries, lm.kwargs["timeout"]) == ([], 2, 30)


def test_somebodys_own_language_model_is_counted_too(retriever):
    steps = [{"next_thought": "Rien.", "next_tool_name": "finish", "next_tool_args": "{}"}]
    lm = DummyLM([*steps, {"reasoning": "Rien.", "answer": "Aucun passage pertinent."}])
    prediction = LegalReActAgent(retriever, lm, default_instructions())(QUESTION)
    assert (prediction.status, prediction.usage.calls, lm.history) == ("abstained", 2, [])


def test_what_is_called_within_dspys_own_tracking_is_tracked_there_as_well(retriever):
    with ScriptedServer(sound) as server, dspy.track_usage() as tracker:
        lm = build_language_model("scripted", api_base=server.api_base, timeout=30, num_retries=0, cache=False)
        LegalReActAgent(retriever, lm, default_instructions())(QUESTION)
    assert tracker.get_total_tokens()["openai/scripted"]["prompt_tokens"] == 3


@pytest.mark.parametrize(
    ("own", "left", "seconds"),
    [(30.0, 600.0, 30.0), (30.0, 10.0, 11.64), (None, 10.0, 11.64), (30.0, 0.0, 0.0549), (0.5, -3.0, 0.0549)],
)
def test_a_call_may_take_what_is_left_rounded_up_a_little(own, left, seconds):
    timeout = CallTimeout.cut(own, left)
    assert timeout.read == timeout.write == timeout.pool == pytest.approx(seconds, rel=0.01)
    assert timeout.connect <= 10.0
    keys = {dspy.cache.cache_key({"timeout": CallTimeout.cut(own, one)}) for one in (left, 1.0, 99.0)}
    assert len(keys) == 1  # DSPy's cache sees the model's own setting alone
    assert dspy.cache.cache_key({"timeout": CallTimeout.cut(7.0, left)}) not in keys


def test_few_different_limits_are_ever_asked_for():
    assert len({CallTimeout.cut(120.0, left / 100).read for left in range(12_000)}) < 40


def test_a_limit_is_reached_when_all_of_it_is_used():
    budget = Budget(model_calls=2, tokens=10, seconds=5, cost=1.0)
    assert budget.reached(Usage(1, 0, 4, 5, 0.99), 4.9) is None
    assert budget.reached(Usage(2), 0) == "model_calls"
    assert budget.reached(Usage(1, 9, 5, 5), 0) == "tokens"
    assert budget.reached(Usage(), 5) == "seconds"
    assert budget.reached(Usage(1, cost=1.0), 0) == "cost"
    assert budget.reached(Usage(1, cost=None), 0) == "cost"
    assert Budget().reached(Usage(1, cost=None), 0) is None


@pytest.mark.parametrize("limits", [{"steps": 0}, {"model_calls": -1}, {"seconds": 0.0}, {"cost": 0.0}])
def test_a_budget_of_nothing_is_refused(limits):
    (name,) = limits
    with pytest.raises(ValueError, match=f"a budget's {name} must be above 0"):
        Budget(**limits)


def test_a_tracker_refuses_the_call_after_the_last():
    tracker = UsageTracker(Budget(model_calls=1))
    tracker.check()
    tracker.add(Usage(calls=1))
    with pytest.raises(BudgetExceededError, match="Budget épuisé : 1 appel au modèle"):
        tracker.check()


def test_the_loop_is_a_dspy_program_whose_predictors_optimisers_see(retriever):
    agent = LegalReActAgent(retriever, DummyLM([]), default_instructions())
    assert [name for name, _ in agent.react.named_predictors()] == ["react", "extract.predict"]
    lm = DummyLM(
        [
            {"next_thought": "Cherchons.", "next_tool_name": "chercher", "next_tool_args": '{"question": "compte"}'},
            {"next_thought": "Assez.", "next_tool_name": "finish", "next_tool_args": "{}"},
            {"reasoning": "Lu.", "answer": "Deux mois."},
        ]
    )
    with dspy.context(lm=lm, trace=[]):
        prediction = agent.react(question=QUESTION)
        traced = [predictor for predictor, _, _ in dspy.settings.trace]
    assert prediction.answer == "Deux mois."
    assert prediction.trajectory["tool_name_0"] == "search_legal_docs"
    assert traced == [agent.react.react, agent.react.react, agent.react.extract.predict]


def test_calls_of_one_run_are_not_counted_in_another_one(retriever):
    lm = DummyLM([{"answer": "un"}, {"answer": "deux"}])
    first, second = ModelCalls(lm, Budget()), ModelCalls(lm, Budget())
    predictor = dspy.Predict("question -> answer")
    assert first.ask(predictor, question="?").fields == {"answer": "un"}
    assert second.ask(predictor, question="?").text.startswith("[[ ## answer ## ]]")
    assert (first.tracker.usage.calls, second.tracker.usage.calls) == (1, 1)


def test_a_quotation_is_what_a_sound_model_answers(ask):
    prediction, server = ask(sound, Budget())
    assert prediction.answer == quotation(server.prompts[-1])
