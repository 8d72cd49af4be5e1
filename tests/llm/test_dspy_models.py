"""DSPy's language models over our own way of asking, and ours over DSPy's."""

import asyncio
import json
import time

import dspy
import pytest
from dspy.utils import DummyLM
from dspy.utils.exceptions import ContextWindowExceededError, LMAuthError, LMRateLimitError, LMServerError
from support.raw_server import RawServer, dripped
from support.scripted_server import Reply, ScriptedServer, fields

from legal_rag.agent import build_language_model
from legal_rag.base import deadline
from legal_rag.llm import Budget, BudgetExceededError, ModelCalls, ModelError, UsageTracker, ask, model_of
from legal_rag.llm.server import MASK

KEY = "sk-tres-secret-0123"
HELLO = [{"role": "user", "content": "Bonjour ?"}]


def nth(_prompt, attempt):
    return fields(answer=f"réponse {attempt}")


def built(server, **settings):
    return build_language_model("m", KEY, server.api_base, **{"num_retries": 0} | settings)


def test_a_program_of_dspys_asks_as_it_would_any_other_model():
    with ScriptedServer(nth) as server:
        lm = built(server)
        with dspy.context(lm=lm):
            predict = dspy.Predict("question -> answer")
            assert [predict(question="?").answer for _ in range(2)] == ["réponse 0"] * 2  # stored
            assert asyncio.run(dspy.asyncify(predict)(question="?")).answer == "réponse 0"
            assert asyncio.run(predict.acall(question="?")).answer == "réponse 0"
        assert len(server.prompts) == 1
        assert (type(lm), lm.model, lm.kwargs["temperature"]) == (dspy.LM, "openai/m", 0.2)


def test_each_rollout_of_a_program_gets_a_reply_of_its_own():
    with ScriptedServer(nth) as server, dspy.context(lm=built(server)):
        best = dspy.BestOfN(dspy.Predict("q -> answer"), 3, lambda args, found: float(found.answer.endswith("2")), 1.0)
        assert best(q="?").answer == "réponse 2"


def test_settings_of_a_copy_or_a_call_are_sent():
    with ScriptedServer(nth) as server:
        lm = built(server, cache=False)
        lm("?")
        lm.copy(temperature=0.7, top_p=0.5)("?", max_tokens=50, stop=["fin"])
    assert [one["temperature"] for one in server.requests] == [0.2, 0.7]
    assert [one["max_tokens"] for one in server.requests] == [8000, 50]
    assert (server.requests[1]["top_p"], server.requests[1]["stop"]) == (0.5, ["fin"])


@pytest.mark.parametrize(
    ("status", "error", "raised"),
    [
        (401, {}, LMAuthError),
        (429, {}, LMRateLimitError),
        (503, {}, LMServerError),
        (400, {"code": "context_length_exceeded"}, ContextWindowExceededError),
    ],
)
def test_a_program_of_dspys_gets_its_own_errors(status, error, raised):
    reply = Reply(status=status, raw_body=json.dumps({"error": error}), headers=(("Retry-After", "7"),))
    with ScriptedServer(lambda prompt, attempt: reply) as server, pytest.raises(raised) as caught:
        built(server)("?")
    assert caught.value.retry_after == 7


def test_what_is_not_text_is_refused_and_not_left_out():
    with ScriptedServer(nth) as server:
        lm = built(server)
        tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
        with pytest.raises(dspy.LMError, match="only text is sent"):
            lm("?", tools=[tool])
        assert server.prompts == []


@pytest.mark.parametrize(
    "form",
    [
        {"type": "json_object"},
        {"type": "json_schema", "json_schema": {"name": "etape", "schema": {"type": "object", "properties": {}}}},
    ],
    ids=["object", "schema"],
)
def test_the_form_of_a_reply_is_sent_as_servers_know_it(form):
    with ScriptedServer(nth) as server:
        built(server)("?", response_format=form)
    assert [request["response_format"] for request in server.requests] == [form]


# --- predictors within a budget


def test_errors_of_the_budget_come_through_dspy_as_they_are():
    with ScriptedServer(nth) as server:
        calls = ModelCalls(built(server), Budget(model_calls=1))
        predict = dspy.Predict("question -> answer")
        assert calls.ask(predict, question="a").fields == {"answer": "réponse 0"}
        with pytest.raises(BudgetExceededError):
            calls.ask(predict, question="b")
    with pytest.raises(ModelError) as caught:
        lm = build_language_model("m", KEY, "http://127.0.0.1:9/v1", num_retries=0)
        ModelCalls(lm, Budget()).ask(predict, question="c")
    assert caught.value.kind == "transport"


# --- models that are not ours


class Echo(dspy.BaseLM):
    """Raises an error of its own where it is asked to, or takes its time."""

    def forward(self, prompt=None, messages=None, **settings):
        said = messages[-1]["content"]
        if said == "panne":
            raise RuntimeError(f"broken {KEY}")
        if said == "lent":
            time.sleep(20)
        raise LMRateLimitError("slow down", retry_after=3)


def test_an_error_of_somebodys_own_model_is_a_failure_of_the_model(monkeypatch):
    monkeypatch.setenv("ECHO_API_KEY", KEY)
    model = model_of(Echo("echo", num_retries=0))
    with pytest.raises(ModelError) as caught:
        ask(model, [{"role": "user", "content": "panne"}])
    assert (caught.value.kind, caught.value.said) == ("client", f"RuntimeError: broken {MASK}")
    with pytest.raises(ModelError) as caught:
        ask(model, HELLO)
    assert (caught.value.kind, caught.value.retry_after) == ("rate limit", 3)


def test_somebodys_own_model_is_not_waited_for_beyond_the_deadline():
    model, started = model_of(Echo("echo", num_retries=0)), time.monotonic()
    with deadline.within(0.2), pytest.raises(deadline.DeadlineError):
        ask(model, [{"role": "user", "content": "lent"}])
    with pytest.raises(BudgetExceededError):
        ask(model, [{"role": "user", "content": "lent"}], tracker=UsageTracker(Budget(seconds=0.2)))
    assert time.monotonic() - started < 10


def test_somebodys_own_model_may_say_something_else_each_time():
    lm = DummyLM([{"answer": "un"}, {"answer": "deux"}])
    replies = [ask(model_of(lm), HELLO).text for _ in range(2)]
    assert ["un" in replies[0], "deux" in replies[1]] == [True, True]
    assert lm.history == []


@pytest.mark.slow  # importing LiteLLM takes seconds
def test_a_model_that_litellm_asks_is_stored_counted_and_ended_in_time():
    with ScriptedServer(lambda prompt, attempt: Reply("oui", finish_reason="length")) as server:
        lm = dspy.LM("openai/m", api_base=server.api_base, api_key=KEY, engine="litellm", num_retries=0)
        first, second = (ask(model_of(lm), HELLO) for _ in range(2))
        assert (first.text, first.cut_off, first.usage[:4]) == ("oui", True, (1, 0, 1, 1))
        assert (second.text, second.usage.cached, len(server.prompts)) == ("oui", 1, 1)
    drip = [b"HTTP/1.1 200 OK\r\n\r\n", *dripped(b" " * 5000, 0.02)]
    with RawServer(lambda request: drip) as server:
        lm = dspy.LM("openai/m", api_base=server.api_base, api_key=KEY, engine="litellm", timeout=30.0)
        started = time.monotonic()
        with pytest.raises(BudgetExceededError, match="0,3 seconde"):
            ask(model_of(lm), HELLO, tracker=UsageTracker(Budget(seconds=0.3)))
        assert time.monotonic() - started < 10
