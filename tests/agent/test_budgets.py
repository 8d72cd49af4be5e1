"""What a run may cost, what it came to, and how its calls are held to it."""

import json
import threading
import time

import dspy
import pytest
from dspy.utils import DummyLM
from support.agent_scripts import QUESTION, SEARCHED, always, in_steps, quotation, sound, wants_step
from support.scripted_server import Reply, ScriptedServer, fields, step

from legal_rag import deadline
from legal_rag.agent import Budget, LegalReActAgent, Usage, build_language_model, default_instructions
from legal_rag.agent.budget import BudgetExceededError, Need, TokenPrice
from legal_rag.agent.model_calls import (
    MESSAGE_TOKENS,
    SHORTEST_REPLY,
    BudgetedLM,
    ModelCalls,
    UsageTracker,
    least_tokens,
    most_tokens,
)
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


def test_a_run_out_of_calls_ends_with_passages_and_names_the_limit(ask):
    prediction, server = ask(restless, Budget(model_calls=2))
    assert (prediction.status, prediction.mode) == ("exhausted", "fallback")
    assert prediction.notice == f"Budget épuisé : 2 appels au modèle. {INSTEAD}"
    assert prediction.usage.calls == len(server.prompts) == 2
    assert [event.type for event in prediction.events].count("think") == 2
    found = {chunk_id.rpartition("-")[0] for event in prediction.events for chunk_id in event.output_ids}
    assert {document.doc_id for document in prediction.documents} >= {one for one in found if one}


@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        (Budget(tokens=2_000), "2\u202f000 jetons lus et écrits"),
        (Budget(cost=1.0), "le prix de ce modèle est inconnu, le coût ne peut donc pas être limité"),
    ],
)
def test_a_call_that_may_go_beyond_a_limit_is_not_made(ask, budget, limit):
    prediction, server = ask(restless, budget)
    assert (prediction.status, prediction.mode) == ("exhausted", "fallback")
    assert prediction.notice == f"Budget épuisé : {limit}. {INSTEAD}"
    assert prediction.usage.calls == len(server.prompts) == 0


def test_dollars_are_reserved_where_the_price_is_known(ask):
    prediction, server = ask(restless, Budget(cost=0.0012), model="openai/gpt-4o-mini")
    assert prediction.notice.startswith("Budget épuisé : 0,0012 dollar")
    assert 0 < len(server.prompts) < 10
    assert 0 < prediction.usage.cost <= 0.0012
    prediction, server = ask(restless, Budget(cost=1e-6), model="openai/gpt-4o-mini")
    assert (prediction.status, len(server.prompts)) == ("exhausted", 0)


def test_an_infinite_limit_is_none():
    budget = Budget(cost=float("inf"), seconds=float("inf"))
    with UsageTracker(budget).call(need=Need(100, 10, 8_000, TokenPrice(1e-6, 2e-6))) as room:
        assert room == 8_000


def test_near_the_end_of_a_budget_replies_may_be_shorter(retriever):
    limits = []

    class Sees(ScriptedServer):
        def reply(self, request):
            limits.append(request["max_completion_tokens"])
            return super().reply(request)

    with Sees(restless) as server:
        lm = build_language_model("scripted", api_base=server.api_base, timeout=30, num_retries=0, cache=False)
        prediction = LegalReActAgent(retriever, lm, default_instructions(), budget=Budget(tokens=15_000))(QUESTION)
    assert limits[0] == 8_000
    assert min(limits) < 8_000
    assert all(limit >= SHORTEST_REPLY for limit in limits)
    assert prediction.usage.tokens <= 15_000


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
    assert [usage and usage.calls for usage in usages] == [1, None, 1, None, 1]  # think, search, think, cite, answer
    total = usages[0].plus(usages[2]).plus(usages[4])
    assert prediction.usage == total
    assert total.cost is None
    assert all(event.seconds > 0 for event in prediction.events)
    assert prediction.seconds > sum(event.seconds for event in prediction.events)


@pytest.mark.parametrize(
    ("usage", "prompt", "reply"),
    [
        ({"prompt_tokens": 700, "completion_tokens": 90}, 700, 90),
        ({"prompt_tokens": 0, "completion_tokens": 0}, 500, 50),
        ({"prompt_tokens": -5, "completion_tokens": "many"}, None, 200),
        ({"prompt_tokens": 10**12, "completion_tokens": 1e308}, None, 200),
        ([1, 2], None, 200),
        (None, None, 200),
    ],
)
def test_what_a_server_says_of_its_tokens_is_believed_within_reason(usage, prompt, reply):
    completion = {
        "model": "m",
        "choices": [{"message": {"role": "assistant", "content": "mots " * 80}}],
        "usage": usage,
    }
    with ScriptedServer(always(Reply(raw_body=json.dumps(completion)))) as server:
        lm = build_language_model("scripted", api_base=server.api_base, timeout=30, num_retries=0, cache=False)
        budgeted = BudgetedLM(lm, UsageTracker(Budget()))
        budgeted(messages=[{"role": "user", "content": "mots " * 800}])
    used = budgeted.tracker.usage
    assert used.completion_tokens == reply
    assert used.prompt_tokens == (prompt or most_tokens("mots " * 800) + most_tokens("user") + 3 * MESSAGE_TOKENS)


@pytest.mark.parametrize(
    "text", ["", "Le délai court à compter de la notification.", "12 345,67 €; n° 99-1.2", "日本語"]
)
def test_estimates_of_tokens_enclose_what_tokenizers_count(text):
    assert least_tokens(text) <= len(text) / 3.5
    assert most_tokens(text) >= len(text) / 2


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


def test_calls_at_the_same_time_share_what_is_left():
    tracker, need = UsageTracker(Budget(tokens=1_000)), Need(prompt_tokens=300, reply_tokens=400)
    entered, order = threading.Event(), []

    def second():
        entered.wait()
        with tracker.call(need=need) as room:
            order.append(("second", room))

    thread = threading.Thread(target=second)
    thread.start()
    with tracker.call(need=need) as room:
        order.append(("first", room))
        entered.set()
        thread.join(0.05)
        assert tracker.reserved.tokens == 700  # 300 are left: the second one waits
        tracker.add(Usage(calls=1, prompt_tokens=100, completion_tokens=100))
    thread.join(5)
    assert order == [("first", 400), ("second", 400)]
    assert tracker.reserved.tokens == tracker.calls_under_way == 0


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
